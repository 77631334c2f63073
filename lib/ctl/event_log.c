/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>

#include "ctl/event_log.h"

#define FILL_BURST 64

struct event_log {
	uint64_t next; /* number of the next event */
	uint64_t untaken;
	uint64_t lost;
	struct event ring[EVENT_LOG_SIZE];
};

struct event_log *
event_log_create(void)
{
	struct event_log *log = calloc(1, sizeof(*log));

	if (log != NULL)
		log->next = log->untaken = 1;
	return log;
}

void
event_log_destroy(struct event_log *log)
{
	free(log);
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
			log->ring[log->next++ % EVENT_LOG_SIZE] = ev[i];
	} while (n == FILL_BURST && ++bursts < EVENT_LOG_SIZE / FILL_BURST);
	log->lost = lost;
}

uint64_t
event_log_end(const struct event_log *log)
{
	return log->next;
}

uint64_t
event_log_untaken(const struct event_log *log)
{
	return log->untaken;
}

void
event_log_taken(struct event_log *log, uint64_t next)
{
	if (next > log->untaken)
		log->untaken = next;
}

uint64_t
event_log_first(const struct event_log *log)
{
	return log->next > EVENT_LOG_SIZE ? log->next - EVENT_LOG_SIZE : 1;
}

const struct event *
event_log_at(const struct event_log *log, uint64_t seq)
{
	return &log->ring[seq % EVENT_LOG_SIZE];
}

uint64_t
event_log_lost(const struct event_log *log)
{
	return log->lost;
}
