/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "ctl/forms.h"
#include "port/port.h"
#include "table/value.h"

_Static_assert(GID_STRLEN <= TABLE_FORM_MAX, "a GID's text fits");

static bool
form_parse_gid(const char *text, void *gid)
{
	return gid_parse(text, gid);
}

static const char *
form_print_gid(const void *gid, char buf[TABLE_FORM_MAX])
{
	return gid_print(gid, buf);
}

bool
mac_parse(const char *text, uint8_t mac[6])
{
	int i;

	for (i = 0; i < 6; i++) {
		if (hex_decode(text, strnlen(text, 2), mac + i, 1) != 1)
			return false;
		text += 2;
		if (i < 5 && *text++ != ':')
			return false;
	}
	return *text == '\0';
}

static bool
form_parse_mac(const char *text, void *mac)
{
	return mac_parse(text, mac);
}

static const char *
form_print_mac(const void *field, char buf[TABLE_FORM_MAX])
{
	const uint8_t *mac = field;

	snprintf(buf, TABLE_FORM_MAX, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		mac[3], mac[4], mac[5]);
	return buf;
}

/* The text belongs to the request, which lives as long as the call. */
static bool
form_parse_file(const char *text, void *field)
{
	*(const char **)field = text;
	return text[0] != '\0';
}

static const char *
form_print_file(const void *field, char buf[TABLE_FORM_MAX])
{
	snprintf(buf, TABLE_FORM_MAX, "%s", *(const char *const *)field);
	return buf;
}

const struct table_form form_gid = { "address", "IPv4 or IPv6 address as text", "^[0-9A-Fa-f:.]+$",
	form_parse_gid, form_print_gid };
const struct table_form form_mac = { "mac", "MAC address as text \"02:00:00:00:00:01\"",
	"^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$", form_parse_mac, form_print_mac };
const struct table_form form_file = { "file",
	"name of a regular file whose descriptor comes with the request", "^.", form_parse_file,
	form_print_file };
