/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>

#include <rte_debug.h>

#include "ctl/event_log.h"

#define FILL_BURST 64

struct event_log {
	uint64_t next; /* number of the next event */
	uint64_t lost;
	struct {
		struct event event;
		bool lost; /* it found no room on its way: only its number is left */
	} ring[EVENT_LOG_SIZE];
};

struct event_log *
event_log_create(void)
{
	struct event_log *log = calloc(1, sizeof(*log));

	if (log != NULL)
		log->next = 1;
	return log;
}

void
event_log_destroy(struct event_log *log)
{
	free(log);
}

/* @param ev  NULL: an event that was lost */
static void
event_log_add(struct event_log *log, const struct event *ev)
{
	unsigned int i = log->next++ % EVENT_LOG_SIZE;

	log->ring[i].lost = ev == NULL;
	if (ev != NULL)
		log->ring[i].event = *ev;
}

void
event_log_fill(struct event_log *log, struct engine *e)
{
	struct event ev[FILL_BURST];
	uint64_t lost = 0;
	unsigned int i, n, bursts = 0;

	do {
		n = engine_events(e, ev, FILL_BURST, &lost);
		for (i = 0; i < n; i++)
			event_log_add(log, &ev[i]);
	} while (n == FILL_BURST && ++bursts < EVENT_LOG_SIZE / FILL_BURST);
	lost -= log->lost;
	log->lost += lost;
	if (lost > EVENT_LOG_SIZE) { /* most of them are too old to be kept */
		log->next += lost - EVENT_LOG_SIZE;
		lost = EVENT_LOG_SIZE;
	}
	while (lost-- > 0) /* where they were lost is not known: behind those that came */
		event_log_add(log, NULL);
}

uint64_t
event_log_end(const struct event_log *log)
{
	return log->next;
}

uint64_t
event_log_first(const struct event_log *log)
{
	return log->next > EVENT_LOG_SIZE ? log->next - EVENT_LOG_SIZE : 1;
}

const struct event *
event_log_at(const struct event_log *log, uint64_t seq)
{
	unsigned int i = seq % EVENT_LOG_SIZE;

	RTE_ASSERT(seq >= event_log_first(log) && seq < event_log_end(log));
	return log->ring[i].lost ? NULL : &log->ring[i].event;
}

uint64_t
event_log_lost(const struct event_log *log)
{
	return log->lost;
}
