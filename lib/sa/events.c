/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Events on their way from the store's thread to worker 0, which reports them, and the numbers of
 * kept events back when they have been told. Each kept event that was posted comes back once, so no
 * more than SA_EVENTS are under way.
 */

#include "sa/server.h"

void
sa_events_lost(struct sa *sa, unsigned int n)
{
	__atomic_fetch_add(&sa->events.lost, n, __ATOMIC_RELAXED);
}

uint64_t
sa_events_lost_count(const struct sa *sa)
{
	return __atomic_load_n(&sa->events.lost, __ATOMIC_RELAXED);
}

/* --- the store's thread --- */

void
sa_event_post(struct sa *sa, const struct sa_event *e)
{
	struct sa_event_ring *r = &sa->events;
	uint32_t tail = __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE);

	if (r->head - tail == SA_EVENTS) {
		sa_events_lost(sa, 1);
		return;
	}
	r->under_way += e->number != 0;
	r->event[r->head % SA_EVENTS] = *e;
	__atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
}

unsigned int
sa_events_room(const struct sa *sa)
{
	return SA_EVENTS - sa->events.under_way;
}

uint64_t
sa_event_told(struct sa *sa)
{
	struct sa_event_ring *r = &sa->events;
	uint64_t number;

	if (__atomic_load_n(&r->told_head, __ATOMIC_ACQUIRE) == r->told_tail)
		return 0;
	number = r->told[r->told_tail % SA_EVENTS];
	__atomic_store_n(&r->told_tail, r->told_tail + 1, __ATOMIC_RELEASE);
	r->under_way--;
	return number;
}

void
sa_events_forget(struct sa *sa, uint64_t below)
{
	__atomic_store_n(&sa->events.forget, below, __ATOMIC_RELEASE);
}

/* --- worker 0 --- */

bool
sa_event_take(struct sa *sa, struct sa_event *e)
{
	struct sa_event_ring *r = &sa->events;

	if (__atomic_load_n(&r->head, __ATOMIC_ACQUIRE) == r->tail)
		return false;
	*e = r->event[r->tail % SA_EVENTS];
	__atomic_store_n(&r->tail, r->tail + 1, __ATOMIC_RELEASE);
	return true;
}

void
sa_event_was_told(struct sa *sa, uint64_t number)
{
	struct sa_event_ring *r = &sa->events;

	RTE_ASSERT(r->told_head - __atomic_load_n(&r->told_tail, __ATOMIC_ACQUIRE) < SA_EVENTS);
	r->told[r->told_head % SA_EVENTS] = number;
	__atomic_store_n(&r->told_head, r->told_head + 1, __ATOMIC_RELEASE);
}
