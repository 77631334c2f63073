/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * From JSON text to struct config, by the table.
 */

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/installed.h"
#include "base/log_level.h"
#include "base/pci_address.h"
#include "config.h"

/*
 * The engine's view of the ports. PCI devices are the EAL's to probe, with their arguments; virtual
 * ones are plugged by lib/link, which also clears away the sockets that an earlier run left.
 */
static void
fill_ib_port(struct config_port *p, struct sma_port_config *sma)
{
	unsigned int i;

	p->link.ib = p->encapsulation == CONFIG_IB;
	*sma = p->sma;
	sma->guid = p->link.guid;
	for (i = 0; i < p->link.num_pkeys; i++)
		sma->pkeys[i] = p->link.pkeys[i];
	sma->num_pkeys = p->link.num_pkeys;
	for (sma->vl_cap = 1; 1u << (sma->vl_cap - 1) < p->vls; sma->vl_cap++)
		;
	sma->is_sm = p->has_sm;
	sma->sm_state = (uint8_t)p->sm_state;
}

static void
fill_links(struct config *c)
{
	struct link_config *link = &c->engine.link;
	unsigned int i;

	link->num_ports = c->num_ports;
	for (i = 0; i < c->num_ports; i++) {
		struct config_port *p = &c->port[i];

		memcpy(p->link.device, p->device, sizeof(p->link.device));
		if (pci_address_parse(p->device, NULL))
			p->link.device[strcspn(p->device, ",")] = '\0';
		fill_ib_port(p, &c->engine.sma.port[i]);
		link->port[i] = p->link;
	}
}

static void
fill_services(struct config *c)
{
	struct engine_config *e = &c->engine;
	unsigned int i;

	e->num_services = c->num_services;
	for (i = 0; i < c->num_services; i++) {
		const struct config_service *s = &c->service[i];

		e->service[i] = s->svc;
		e->service[i].service_mask = UINT64_MAX;
		if (s->port != 0)
			e->service[i].service_id = cm_service_id(s->port_space, s->port);
	}
}

/*
 * Read the file up to its end, or to the first NUL byte, which is then the last of what is read:
 * the parser refuses it, as JSON has no NUL. NULL: errno says why.
 */
static char *
read_text(const char *path, size_t *len)
{
	char *text = NULL;
	size_t size = 0;
	ssize_t n;
	FILE *f;

	f = fopen(path, "r");
	if (f == NULL)
		return NULL;
	errno = 0;
	n = getdelim(&text, &size, '\0', f);
	if (n < 0 && errno != 0) {
		free(text);
		text = NULL;
	} else if (n < 0 && text != NULL) {
		text[0] = '\0'; /* an empty file: getdelim() has a buffer, and put nothing there */
	}
	*len = n > 0 ? (size_t)n : 0;
	fclose(f);
	return text;
}

static json_t *
parse_config(const char *text, size_t len, struct config_errors *errs)
{
	json_error_t je;
	char empty[256];
	json_t *root;

	if (strspn(text, " \t\r\n") == len) {
		snprintf(empty, sizeof(empty),
			"the file is empty, allowed: a JSON object such as {\"ports\": [...]}; "
			"examples are in %s/",
			example_directory());
		config_error_at(errs, 1, 1, empty);
		return NULL;
	}
	root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);

	if (root == NULL)
		config_error_at(errs, je.line, je.column, je.text);
	return root;
}

/*
 * Log components of drivers are checked when the EAL runs: keep the line of each for the error
 * message.
 */
static void
note_lines(struct config *c, const struct config_errors *errs)
{
	char path[32];
	unsigned int i;

	c->file = errs->file;
	for (i = 0; i < c->num_log; i++) {
		snprintf(path, sizeof(path), "log[%u].component", i);
		c->log[i].line = config_line_of(errs->json, path);
	}
}

static void
keep_error(struct table_decoder *d)
{
	config_error(d->arg, "%s", d->err.text);
}

static void
decode_all(struct config *c, const char *text, size_t len, struct config_errors *errs)
{
	struct table_decoder d = { .root = "configuration", .on_error = keep_error, .arg = errs };
	json_t *root = parse_config(text, len, errs);

	if (root == NULL)
		return;
	errs->json = text;
	table_decode(&d, config_rows, root, c);
	json_decref(root);
	fill_links(c);
	fill_services(c);
	config_check(c, errs);
	note_lines(c, errs);
	errs->json = NULL;
}

/* Also at a reload: the file was readable at the start, maybe as root. */
static void
cannot_read(struct config_errors *errs, int eno)
{
	const struct passwd *pw = getpwuid(geteuid());
	char text[160];

	errs->unreadable = eno;
	snprintf(text, sizeof(text), "%s", strerror(eno));
	if (eno == EACCES)
		snprintf(text, sizeof(text), "%s: it must be readable for user %s", strerror(eno),
			pw != NULL ? pw->pw_name : "polca");
	else if (eno == EISDIR)
		snprintf(text, sizeof(text), "%s: name a file", strerror(eno));
	config_error_at(errs, 0, 0, text);
}

int
config_load(struct config *c, const char *path, const char *text, struct config_errors *errs)
{
	char *read = NULL;
	size_t len;

	config_init(c);
	errs->num = errs->values = 0;
	errs->unreadable = 0;
	errs->file = path != NULL ? path : "configuration";
	if (path == NULL) {
		decode_all(c, text, strlen(text), errs);
	} else {
		read = read_text(path, &len);
		if (read == NULL)
			cannot_read(errs, errno);
		else
			decode_all(c, read, len, errs);
	}
	free(read);
	return errs->num == 0 ? 0 : -EINVAL;
}

/* @return the first key that is set, or NULL */
static const char *
config_key(const struct config *c)
{
	if (c->engine.sa.server.sm_key > SA_SM_KEY_WELL_KNOWN)
		return "sa.sm_key";
	for (unsigned int i = 0; i < c->num_ports; i++)
		if (c->port[i].sma.m_key != 0)
			return "ib.m_key";
	return NULL;
}

const char *
config_user(const struct config *c)
{
	const struct passwd *pw = NULL;

	if (c->user[0] != '\0')
		return c->user;
	if (geteuid() == 0)
		pw = getpwnam("polca");
	if (pw == NULL)
		pw = getpwuid(geteuid());
	return pw != NULL ? pw->pw_name : "polca";
}

/* The group of the user who must still be able to read the configuration. */
static const char *
config_user_group(const struct config *c)
{
	const struct passwd *pw = getpwnam(config_user(c));
	const struct group *g = pw != NULL ? getgrgid(pw->pw_gid) : NULL;

	return g != NULL ? g->gr_name : "polca";
}

bool
config_exposes_keys(const struct config *c, const char *path, char *text, size_t size)
{
	const char *key = config_key(c);
	struct stat st;

	if (key == NULL || path == NULL || stat(path, &st) != 0 || (st.st_mode & S_IROTH) == 0)
		return false;
	snprintf(text, size,
		"%s has %s, and every user of this host may read it: chgrp %s %s; chmod 640 %s",
		path, key, config_user_group(c), path, path);
	return true;
}

int
config_apply_log(const struct config *c, struct error *err)
{
	struct error why = { "" };
	unsigned int i;

	for (i = 0; i < c->num_log; i++)
		if (log_level_set(c->log[i].component, c->log[i].level, &why) != 0)
			return error_set(err, EINVAL, "%.100s:%u: log[%u].component: %s", c->file,
				c->log[i].line, i, why.text);
	return 0;
}
