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

static bool
config_parse_prefix(const char *text, void *field)
{
	const char *slash = strchr(text, '/');
	struct link_addr *a = field;
	char address[GID_STRLEN];
	unsigned long len;
	char *end;

	if (slash == NULL || (size_t)(slash - text) >= sizeof(address) || slash[1] < '0' ||
		slash[1] > '9')
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	len = strtoul(slash + 1, &end, 10);
	if (*end != '\0' || !config_parse_address(address, &a->gid) ||
		len > (gid_is_ipv4(&a->gid) ? 32u : 128u))
		return false;
	a->prefix_len = (uint8_t)len;
	return true;
}

static const char *
config_print_prefix(const void *field, char buf[TABLE_FORM_MAX])
{
	const struct link_addr *a = field;
	char text[GID_STRLEN];

	snprintf(buf, TABLE_FORM_MAX, "%s/%u", gid_print(&a->gid, text), a->prefix_len);
	return buf;
}

const struct table_form config_form_mac = { "mac",
	"a unicast MAC address such as \"02:00:00:00:00:01\"",
	"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$", config_parse_mac, config_print_mac };
const struct table_form config_form_address = { "address",
	"an address such as \"10.0.0.254\" or \"fe80::1\"", "^[0-9A-Fa-f:.]+$",
	config_parse_address, config_print_address };
const struct table_form config_form_prefix = { "prefix", "ADDRESS/PREFIX such as \"10.0.0.1/24\"",
	"^[0-9A-Fa-f:.]+/[0-9]{1,3}$", config_parse_prefix, config_print_prefix };
