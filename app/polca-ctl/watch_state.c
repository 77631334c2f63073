/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The state of an endport: up while it answers, suspect from the first request without an answer,
 * down after `misses` of them in a row.
 */

#include <stdlib.h>
#include <string.h>

#include "watch.h"

const char *
watch_state_name(enum watch_state state)
{
	static const char *const names[] = {
		[WATCH_NEW] = "new",
		[WATCH_UP] = "up",
		[WATCH_SUSPECT] = "suspect",
		[WATCH_DOWN] = "down",
	};

	return names[state];
}

bool
watch_endport_init(struct watch_endport *e, const char *name, uint64_t now)
{
	*e = (struct watch_endport){
		.name = strdup(name),
		.params = json_object(),
		.since = now,
		.due = now,
		.rtt = calloc(WATCH_SAMPLES, sizeof(*e->rtt)),
		.residence = calloc(WATCH_SAMPLES, sizeof(*e->residence)),
	};
	return e->name != NULL && e->params != NULL && e->rtt != NULL && e->residence != NULL;
}

void
watch_endport_fini(struct watch_endport *e)
{
	free(e->name);
	json_decref(e->params);
	free(e->rtt);
	free(e->residence);
}

static void
take_sample(struct watch_endport *e, const json_t *row)
{
	const json_t *residence = json_object_get(row, "residence_ms");
	size_t i = e->received++ % WATCH_SAMPLES;

	e->rtt[i] = json_number_value(json_object_get(row, "time_us"));
	e->residence[i] = (uint32_t)json_integer_value(residence);
	e->has_residence |= residence != NULL;
}

bool
watch_reply(struct watch_endport *e, const json_t *row, unsigned int misses, uint64_t now,
	struct watch_change *change)
{
	enum watch_state state = WATCH_UP;

	e->sent++;
	if (json_object_get(row, "error") == NULL) {
		e->missed = 0;
		take_sample(e, row);
	} else {
		state = ++e->missed >= misses ? WATCH_DOWN : WATCH_SUSPECT;
	}
	if (state == e->state)
		return false;
	*change = (struct watch_change){ e->state, now - e->since };
	e->state = state;
	e->since = now;
	return true;
}

/* --- figures --- */

static int
compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The smallest sample that is not exceeded by this percentage of the samples. */
static double
percentile(const double *sorted, size_t n, unsigned int percent)
{
	size_t rank = (n * percent + 99) / 100;

	return sorted[rank > 0 ? rank - 1 : 0];
}

static void
add_round_trips(json_t *row, const struct watch_endport *e, size_t n)
{
	static const struct {
		const char *name;
		unsigned int percent;
	} figures[] = {
		{ "rtt_min_us", 0 },
		{ "rtt_p50_us", 50 },
		{ "rtt_p90_us", 90 },
		{ "rtt_p99_us", 99 },
		{ "rtt_max_us", 100 },
	};
	double sorted[WATCH_SAMPLES];
	size_t i;

	memcpy(sorted, e->rtt, n * sizeof(sorted[0]));
	qsort(sorted, n, sizeof(sorted[0]), compare_doubles);
	for (i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		json_object_set_new(row, figures[i].name,
			n == 0 ? json_null()
			       : json_real(percentile(sorted, n, figures[i].percent)));
}

static json_t *
longest_residence(const struct watch_endport *e, size_t n)
{
	uint32_t ms = 0;
	size_t i;

	for (i = 0; i < n; i++)
		ms = e->residence[i] > ms ? e->residence[i] : ms;
	return e->has_residence ? json_integer(ms) : json_null();
}

json_t *
watch_report(const struct watch_endport *e, uint64_t now)
{
	size_t n = e->received < WATCH_SAMPLES ? (size_t)e->received : WATCH_SAMPLES;
	json_t *row = json_object();

	json_object_set_new(row, "endport", json_string(e->name));
	json_object_set_new(row, "state", json_string(watch_state_name(e->state)));
	json_object_set_new(row, "for_ms", json_integer((json_int_t)((now - e->since) / 1000)));
	json_object_set_new(row, "sent", json_integer((json_int_t)e->sent));
	json_object_set_new(row, "received", json_integer((json_int_t)e->received));
	add_round_trips(row, e, n);
	json_object_set_new(row, "residence_max_ms", longest_residence(e, n));
	return row;
}
