/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

static bool
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), e = strlen(end);

	return n >= e && strcmp(name + n - e, end) == 0;
}

/* Name suffixes whose values units_print() prints with a unit. */
static const char *const unit_endings[] = { "_us", "_ms", "_mbps" };

const char *
units_label(const char *name, char *buf, size_t size)
{
	size_t i, len = strlen(name);

	for (i = 0; i < sizeof(unit_endings) / sizeof(unit_endings[0]); i++)
		if (ends_with(name, unit_endings[i]))
			len = strlen(name) - strlen(unit_endings[i]);
	snprintf(buf, size, "%.*s", (int)len, name);
	return buf;
}

void
units_time(double us, char *buf, size_t size)
{
	if (us == 0)
		snprintf(buf, size, "0");
	else if (us < 1000)
		snprintf(buf, size, us < 10 ? "%.1f us" : "%.0f us", us);
	else if (us < 1e6)
		snprintf(buf, size, us < 1e4 ? "%.1f ms" : "%.0f ms", us / 1e3);
	else
		snprintf(buf, size, "%.1f s", us / 1e6);
}

/*
 * Exact in the largest unit that divides the number, else rounded once it has more than four
 * digits.
 */
static void
units_bytes(uint64_t n, char *buf, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double v = (double)n;
	unsigned int u = 0;

	if (n < 10240 && n % 1024 != 0) {
		snprintf(buf, size, "%" PRIu64 " B", n);
		return;
	}
	while (v >= 1024 && u < 4) {
		v /= 1024;
		u++;
	}
	snprintf(buf, size, v == (double)(uint64_t)v ? "%.0f %s" : "%.2f %s", v, units[u]);
}

/* Local ACK Timeout: 4.096 us * 2^code */
static void
print_ack_timeout(json_int_t code, char *buf, size_t size)
{
	char time[32];

	if (code == 0) {
		snprintf(buf, size, "0 (never)");
		return;
	}
	units_time(4.096 * (double)(UINT64_C(1) << code), time, sizeof(time));
	snprintf(buf, size, "%" JSON_INTEGER_FORMAT " (%s)", code, time);
}

/* RNR NAK timer codes 0..31 (IBA table 45): code 0 is the longest */
static void
print_rnr_timer(json_int_t code, char *buf, size_t size)
{
	static const unsigned int us_10[32] = { 65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96,
		128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152 };

	snprintf(buf, size, "%" JSON_INTEGER_FORMAT " (%.2f ms)", code, us_10[code & 31] / 100.0);
}

static bool
is_key(const char *name)
{
	return strcmp(name, "key") == 0 || ends_with(name, "_key") || strcmp(name, "lkey") == 0 ||
		ends_with(name, "rkey");
}

static bool
is_qp_number(const char *name)
{
	return strcmp(name, "qp_num") == 0 || ends_with(name, "_qp_num") ||
		strcmp(name, "remote_qpn") == 0;
}

/* Print IDs in the same notation as the server's errors and log. */
static void
print_integer(const char *name, json_int_t v, char *buf, size_t size)
{
	if (is_key(name) || strcmp(name, "connection") == 0 || strcmp(name, "remote_id") == 0)
		snprintf(buf, size, "0x%08" PRIx64, (uint64_t)v);
	else if (is_qp_number(name))
		snprintf(buf, size, "0x%06" PRIx64, (uint64_t)v);
	else if (strcmp(name, "va") == 0)
		snprintf(buf, size, "0x%" PRIx64, (uint64_t)v);
	else if (strcmp(name, "pkeys") == 0)
		snprintf(buf, size, "0x%04" PRIx64, (uint64_t)v);
	else if (strcmp(name, "crc32") == 0)
		snprintf(buf, size, "0x%08" PRIx64, (uint64_t)v);
	else if (ends_with(name, "_bytes") || strcmp(name, "length") == 0 ||
		strcmp(name, "byte_len") == 0 || strcmp(name, "bytes") == 0 ||
		strcmp(name, "bytes_in") == 0 || strcmp(name, "bytes_out") == 0 ||
		strcmp(name, "memory_used") == 0 || strcmp(name, "memory_total") == 0)
		units_bytes((uint64_t)v, buf, size);
	else if (ends_with(name, "_us"))
		units_time((double)v, buf, size);
	else if (ends_with(name, "_ms"))
		units_time((double)v * 1e3, buf, size);
	else if (ends_with(name, "_mbps"))
		snprintf(buf, size, v % 1000 == 0 ? "%" PRIu64 " Gb/s" : "%" PRIu64 " Mb/s",
			(uint64_t)(v % 1000 == 0 ? v / 1000 : v));
	else if (strcmp(name, "mtu") == 0 || ends_with(name, "_mtu"))
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT " B", v);
	else if (strcmp(name, "timeout") == 0)
		print_ack_timeout(v, buf, size);
	else if (strcmp(name, "min_rnr_timer") == 0)
		print_rnr_timer(v, buf, size);
	else
		snprintf(buf, size, "%" JSON_INTEGER_FORMAT, v);
}

static void
print_real(const char *name, double v, char *buf, size_t size)
{
	if (ends_with(name, "_share"))
		snprintf(buf, size, "%.1f %%", v * 100);
	else if (ends_with(name, "_us"))
		units_time(v, buf, size);
	else
		snprintf(buf, size, "%g", v);
}

/* Print the members of a list in one cell; of an object only its GID. */
static void
print_list(const char *name, const json_t *list, char *buf, size_t size)
{
	char cell[256];
	const json_t *v;
	size_t i;

	buf[0] = '\0';
	json_array_foreach(list, i, v) {
		if (json_is_object(v) && json_object_get(v, "gid") != NULL)
			v = json_object_get(v, "gid");
		units_print(name, v, cell, sizeof(cell));
		snprintf(buf + strlen(buf), size - strlen(buf), "%s%s", i > 0 ? ", " : "", cell);
	}
	if (buf[0] == '\0')
		snprintf(buf, size, "-");
}

const char *
units_print(const char *name, const json_t *value, char *buf, size_t size)
{
	switch (json_typeof(value)) {
	case JSON_INTEGER:
		print_integer(name, json_integer_value(value), buf, size);
		break;
	case JSON_REAL:
		print_real(name, json_real_value(value), buf, size);
		break;
	case JSON_STRING:
		snprintf(buf, size, "%s", json_string_value(value));
		break;
	case JSON_TRUE:
		snprintf(buf, size, "yes");
		break;
	case JSON_FALSE:
		snprintf(buf, size, "no");
		break;
	case JSON_NULL:
		snprintf(buf, size, "-");
		break;
	case JSON_ARRAY:
		print_list(name, value, buf, size);
		break;
	case JSON_OBJECT:
		snprintf(buf, size, "{...}");
		break;
	}
	return buf;
}
