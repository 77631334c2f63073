/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "base/number.h"
#include "dest.h"

#define UNICAST_LIDS 0xBFFF

static bool
dest_lid(const char *text, json_t *params, const char *lid_name)
{
	uint64_t v;

	if (!number_parse(text, &v) || v == 0 || v > UNICAST_LIDS)
		return false;
	json_object_set_new(params, lid_name, json_integer((json_int_t)v));
	return true;
}

bool
dest_parse(const char *text, json_t *params, const char *gid_name, const char *lid_name)
{
	struct in6_addr addr;

	if (strncmp(text, "lid:", 4) == 0)
		return dest_lid(text + 4, params, lid_name);
	if (dest_lid(text, params, lid_name))
		return true;
	if (inet_pton(AF_INET, text, &addr) != 1 && inet_pton(AF_INET6, text, &addr) != 1)
		return false;
	json_object_set_new(params, gid_name, json_string(text));
	return true;
}
