/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_VALUE_H
#define LINK_DEVICE_VALUE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/**
 * The value of KEY in a device's text, "name,KEY=value,...".
 *
 * @param value  gets as much of it as fits, and a NUL
 * @param len    if not NULL: gets the length of the whole value; it was cut if that is size or more
 * @return false: there is no such key, value is unchanged
 */
static inline bool
device_value(const char *device, const char *key, char *value, size_t size, size_t *len)
{
	size_t key_len = strlen(key), n;
	const char *p = device;

	while ((p = strchr(p, ',')) != NULL) {
		p++;
		if (strncmp(p, key, key_len) != 0 || p[key_len] != '=')
			continue;
		p += key_len + 1;
		n = strcspn(p, ",");
		snprintf(value, size, "%.*s", (int)n, p);
		if (len != NULL)
			*len = n;
		return true;
	}
	return false;
}

#endif
