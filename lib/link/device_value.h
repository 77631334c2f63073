/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_DEVICE_VALUE_H
#define LINK_DEVICE_VALUE_H

#include <stdio.h>
#include <string.h>

/**
 * The value of KEY in a device's text, "name,KEY=value,...".
 *
 * @param value  gets as much of it as fits, and a NUL
 * @return length of the whole value, which was cut if that is size or more; -1: there is no such
 *   key, and value is unchanged
 */
static inline int
device_value(const char *device, const char *key, char *value, size_t size)
{
	size_t key_len = strlen(key);
	const char *p = device;

	while ((p = strchr(p, ',')) != NULL) {
		p++;
		if (strncmp(p, key, key_len) != 0 || p[key_len] != '=')
			continue;
		p += key_len + 1;
		return snprintf(value, size, "%.*s", (int)strcspn(p, ","), p);
	}
	return -1;
}

#endif
