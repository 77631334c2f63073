/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Print changes and reports: lines and tables for people, one JSON object per line for programs. */

#include <stdio.h>
#include <time.h>

#include "methods.h"
#include "table.h"
#include "units.h"
#include "watch.h"

#define TIME_LEN 32

/* UTC, with milliseconds */
static const char *
time_text(char text[TIME_LEN])
{
	struct timespec ts;
	struct tm tm;
	size_t len;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	len = strftime(text, TIME_LEN, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, TIME_LEN - len, ".%03dZ", (int)(ts.tv_nsec / 1000000));
	return text;
}

/* Print and free v. */
static void
print_json_line(json_t *v)
{
	json_dumpf(v, stdout, JSON_COMPACT);
	printf("\n");
	fflush(stdout);
	json_decref(v);
}

static void
print_change_json(const struct watch_endport *e, const struct watch_change *change,
	const json_t *row)
{
	const char *message = method_text(row, "message");
	char time[TIME_LEN];
	json_t *v = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:i}", "time", time_text(time),
		"event", "state", "endport", e->name, "state", watch_state_name(e->state), "was",
		watch_state_name(change->was), "was_for_ms", (json_int_t)(change->lasted / 1000),
		"missed", (int)e->missed);

	if (message[0] != '\0')
		json_object_set_new(v, "message", json_string(message));
	else
		json_object_set(v, "rtt_us", json_object_get(row, "time_us"));
	print_json_line(v);
}

void
watch_print_change(const struct options *o, const struct watch_endport *e,
	const struct watch_change *change, const json_t *row)
{
	char time[TIME_LEN], lasted[32];

	if (o->json) {
		print_change_json(e, change, row);
		return;
	}
	printf("%s %s %s", time_text(time), e->name, watch_state_name(e->state));
	if (e->state == WATCH_UP)
		printf(": answered in %.1f us", json_real_value(json_object_get(row, "time_us")));
	else
		printf(": %s, %u in a row", method_text(row, "message"), e->missed);
	units_time((double)change->lasted, lasted, sizeof(lasted));
	if (change->was != WATCH_NEW)
		printf("; %s for %s", watch_state_name(change->was), lasted);
	printf("\n");
	fflush(stdout);
}

void
watch_print_report(const struct options *o, json_t *rows)
{
	char time[TIME_LEN];
	json_t *v;

	if (o->json) {
		print_json_line(json_pack("{s:s, s:s, s:o}", "time", time_text(time), "event",
			"report", "endports", rows));
		return;
	}
	v = json_pack("{s:o}", "endports", rows);
	table_print(stdout, v);
	fflush(stdout);
	json_decref(v);
}
