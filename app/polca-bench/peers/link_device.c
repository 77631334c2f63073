/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A network device of this host, named as in polca's configuration. The other endpoint is a Polca
 * service (--connect), perftest's server (--perftest) or another polca-bench (--peer).
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/bench_link.h"

#define IPV4_PREFIX 24
#define IPV6_PREFIX 64

int
link_device_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err)
{
	if (strlen(o->link) >= sizeof(device[role]))
		return error_set(err, EINVAL, "--link: got %zu bytes, allowed: up to %zu",
			strlen(o->link), sizeof(device[role]) - 1);
	snprintf(device[role], sizeof(device[role]), "%s", o->link);
	return 0;
}

/* Parse "10.0.0.1/24" or "10.0.0.1". */
static bool
parse_device_address(const char *text, struct link_addr *a)
{
	const char *slash = strchr(text, '/');
	char host[64];
	unsigned long len;
	char *end;

	snprintf(host, sizeof(host), "%.*s", (int)(slash != NULL ? slash - text : 63), text);
	if (!gid_parse(host, &a->gid))
		return false;
	len = gid_is_ipv4(&a->gid) ? IPV4_PREFIX : IPV6_PREFIX;
	if (slash != NULL) {
		len = strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end != '\0' || len > (gid_is_ipv4(&a->gid) ? 32 : 128))
			return false;
	}
	a->prefix_len = (uint8_t)len;
	return true;
}

int
link_device_address(const struct bench_options *o, struct link_addr *a, struct error *err)
{
	if (o->address == NULL || parse_device_address(o->address, a))
		return 0;
	return error_set(err, EINVAL,
		"--address: got \"%.64s\", allowed: ADDRESS/LENGTH, as 10.0.0.1/24", o->address);
}
