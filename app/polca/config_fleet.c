/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The keys of "fleet", and what they need of each other. */

#include <string.h>

#include "config_keys.h"

#define FLEET_TEXT(f, text) TEXT(struct config, engine.sa.fleet.f, #f, text)

static const struct table_row endpoint_value[] = {
	{ .name = "endpoint", .type = TABLE_CHARS, .size = sizeof(struct fleet_endpoint) },
};

const struct table_row config_fleet_keys[] = {
	LIST(struct config, engine.sa.fleet.endpoint, engine.sa.fleet.num_endpoints, "endpoints", 0,
		FLEET_ENDPOINTS_MAX, TABLE_VALUES, endpoint_value, NULL,
		"Client URLs of etcd's members, such as http://10.0.0.1:2379. Default: none, and "
		"there is no fleet."),
	FLEET_TEXT(prefix, "All keys in etcd begin with it and a slash."),
	FLEET_TEXT(name,
		"Name of this appliance, different from the others'. Default: the host's."),
	UINT(struct config, engine.sa.fleet.lease_s, "lease_s", 2, 60,
		"Seconds after which a leader that is silent is replaced."),
	UINT(struct config, engine.sa.fleet.max_txn_ops, "max_txn_ops", 16, 10000,
		"What etcd was started with as --max-txn-ops: a change of more records takes more "
		"transactions."),
	FLEET_TEXT(user, "User of etcd's authentication. Default: none."),
	FLEET_TEXT(password_file,
		"File whose first line is the user's password; mode 0600, or 0640 with a group."),
	FLEET_TEXT(ca_file,
		"Certificates that https endpoints are checked against, PEM. Default: "
		"the system's."),
	FLEET_TEXT(cert_file,
		"Certificate that etcd gets from this appliance, PEM. etcd's gateway "
		"needs one without a common name. Default: none."),
	FLEET_TEXT(key_file, "Its private key, PEM."),
	ROW_END,
};

static void
check_endpoint(const char *url, unsigned int i, struct config_errors *errs)
{
	const char *host = strstr(url, "://");

	/* it may be a password, so it is not repeated */
	if (strchr(host != NULL ? host : url, '@') != NULL)
		config_error(errs,
			"fleet.endpoints[%u]: has a user before an \"@\", expected http://HOST:PORT or https://HOST:PORT; use fleet.user and fleet.password_file",
			i);
	else if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		config_error(errs,
			"fleet.endpoints[%u]: got \"%s\", expected http://HOST:PORT or https://HOST:PORT",
			i, url);
	else if (url[strlen(url) - 1] == '/')
		config_error(errs, "fleet.endpoints[%u]: got \"%s\", expected no slash at the end",
			i, url);
}

void
config_check_fleet(const struct config *c, struct config_errors *errs)
{
	const struct fleet_config *f = &c->engine.sa.fleet;
	unsigned int i;

	if (f->num_endpoints == 0 &&
		(f->name[0] != '\0' || f->user[0] != '\0' || f->ca_file[0] != '\0'))
		config_error(errs,
			"fleet.endpoints: none given, and without them there is no fleet; name etcd's members, or remove \"fleet\"");
	for (i = 0; i < f->num_endpoints; i++)
		check_endpoint(f->endpoint[i].url, i, errs);
	if (f->num_endpoints > 0 && !c->engine.sa.enabled)
		config_error(errs, "fleet: needs sa.enabled");
	if (f->num_endpoints > 0 && c->engine.sa.path[0] == '\0')
		config_error(errs, "fleet: needs sa.path, where the copy of the database is");
	if (f->prefix[0] == '\0' || f->prefix[strlen(f->prefix) - 1] == '/')
		config_error(errs,
			"fleet.prefix: got \"%s\", expected a text without a slash at its end",
			f->prefix);
	if (strchr(f->name, '/') != NULL)
		config_error(errs, "fleet.name: got \"%s\", expected a text without a slash",
			f->name);
	if ((f->user[0] != '\0') != (f->password_file[0] != '\0'))
		config_error(errs, "fleet: user and password_file need each other");
	if ((f->cert_file[0] != '\0') != (f->key_file[0] != '\0'))
		config_error(errs, "fleet: cert_file and key_file need each other");
}
