/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Addresses in the configuration: stricter than those of RPC parameters, as they are to be this
 * machine's own.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "config_keys.h"

static bool
config_parse_mac(const char *text, void *field)
{
	struct rte_ether_addr mac;

	if (rte_ether_unformat_addr(text, &mac) != 0 || !rte_is_valid_assigned_ether_addr(&mac))
		return false;
	memcpy(field, mac.addr_bytes, sizeof(mac.addr_bytes));
	return true;
}

static const char *
config_print_mac(const void *field, char buf[TABLE_FORM_MAX])
{
	rte_ether_format_addr(buf, TABLE_FORM_MAX, field);
	return buf;
}

static bool
config_parse_address(const char *text, void *field)
{
	return gid_parse(text, field) && !gid_is_zero(field);
}

static const char *
config_print_address(const void *field, char buf[TABLE_FORM_MAX])
{
	return gid_print(field, buf);
}

/* "ADDRESS/PREFIX" */
static bool
parse_prefix_of(const char *text, union gid *gid, uint8_t *prefix_len)
{
	const char *slash = strchr(text, '/');
	char address[GID_STRLEN];
	unsigned long len;
	char *end;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(address) || slash[1] < '0' ||
		slash[1] > '9')
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	len = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || !gid_parse(address, gid) || len > (gid_is_ipv4(gid) ? 32u : 128u))
		return false;
	*prefix_len = (uint8_t)len;
	return true;
}

static const char *
print_prefix_of(const union gid *gid, uint8_t prefix_len, char buf[TABLE_FORM_MAX])
{
	char text[GID_STRLEN];

	snprintf(buf, TABLE_FORM_MAX, "%s/%u", gid_print(gid, text), prefix_len);
	return buf;
}

static bool
config_parse_prefix(const char *text, void *field)
{
	struct link_addr *a = field;

	return parse_prefix_of(text, &a->gid, &a->prefix_len) && !gid_is_zero(&a->gid);
}

static const char *
config_print_prefix(const void *field, char buf[TABLE_FORM_MAX])
{
	const struct link_addr *a = field;

	return print_prefix_of(&a->gid, a->prefix_len, buf);
}

/* An address alone stands for itself. */
static bool
config_parse_peers(const char *text, void *field)
{
	struct allow_prefix *p = field;

	if (strchr(text, '/') != NULL)
		return parse_prefix_of(text, &p->gid, &p->prefix_len);
	if (!gid_parse(text, &p->gid))
		return false;
	p->prefix_len = gid_is_ipv4(&p->gid) ? 32 : 128;
	return true;
}

static const char *
config_print_peers(const void *field, char buf[TABLE_FORM_MAX])
{
	const struct allow_prefix *p = field;

	return print_prefix_of(&p->gid, p->prefix_len, buf);
}

const struct table_form config_form_mac = { "mac",
	"a unicast MAC address such as \"02:00:00:00:00:01\"",
	"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$", config_parse_mac, config_print_mac };
const struct table_form config_form_address = { "address",
	"an address such as \"10.0.0.254\" or \"fe80::1\"", "^[0-9A-Fa-f:.]+$",
	config_parse_address, config_print_address };
const struct table_form config_form_prefix = { "prefix", "ADDRESS/PREFIX such as \"10.0.0.1/24\"",
	"^[0-9A-Fa-f:.]+/[0-9]{1,3}$", config_parse_prefix, config_print_prefix };
const struct table_form config_form_peers = { "peers",
	"ADDRESS/PREFIX or ADDRESS such as \"10.0.0.0/24\" or \"fe80::1\"",
	"^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$", config_parse_peers, config_print_peers };
