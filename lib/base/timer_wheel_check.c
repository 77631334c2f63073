/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the comments of timer_wheel.h, timer_wheel.c and timer_wheel_private.h claim, asserted. */

#include <rte_debug.h>

#include "base/timer_wheel_private.h"

#ifdef RTE_ENABLE_ASSERT

/* Slots from the present one on, and timers of a list, that are checked: others come later. */
#define WALK_MAX 64

static void
check_link(const struct timer *t)
{
	RTE_ASSERT(*t->prev == t && t->fn != NULL);
	RTE_ASSERT(t->next == NULL || t->next->prev == &t->next);
}

/* A timer in a slot: that of its time to be looked at, or the present one if that is over. */
static void
check_in_slot(const struct timer_wheel *w, const struct timer *t)
{
	uint64_t tick = t->slot_time >> w->shift;
	unsigned int slot = (tick < w->tick ? w->tick : tick) & SLOT_MASK;
	const struct timer *in = w->slots[slot];
	unsigned int n;

	check_link(t);
	RTE_ASSERT(t->slot_time <= t->deadline && timer_armed(t));
	RTE_ASSERT(w->bound <= t->slot_time);
	RTE_ASSERT(w->used[slot / 64] & UINT64_C(1) << (slot % 64));
	RTE_ASSERT(w->words_used[slot / 4096] & UINT64_C(1) << (slot / 64 % 64));
	for (n = 0; in != NULL && in != t && n < WALK_MAX; n++)
		in = in->next;
	RTE_ASSERT(in == t || n == WALK_MAX);
}

/* Started timers are in no slot: their waits have not begun. */
static void
check_started(struct timer *const *head)
{
	const struct timer *t = *head;
	unsigned int n;

	RTE_ASSERT(t == NULL || t->prev == head);
	for (n = 0; t != NULL && n < WALK_MAX; t = t->next, n++) {
		check_link(t);
		RTE_ASSERT(t->slot_time == UINT64_MAX && timer_armed(t));
	}
}

/* Timers that a run has taken, and has neither fired nor put back yet, are in no slot either. */
static void
check_due(const struct timer_wheel *w)
{
	const struct timer *t = w->due;
	unsigned int n;

	RTE_ASSERT(t == NULL || t->prev == &w->due);
	for (n = 0; t != NULL && n < WALK_MAX; t = t->next, n++) {
		check_link(t);
		RTE_ASSERT(t->slot_time <= t->deadline && timer_armed(t));
	}
}

static void
check_timer(const struct timer_wheel *w, const struct timer *t)
{
	RTE_ASSERT(timer_armed(t) == (t->prev != NULL));
	if (t->prev == NULL)
		RTE_ASSERT(t->next == NULL);
	else if (t->slot_time == UINT64_MAX)
		check_link(t);
	else if (w->due == NULL) /* else it may be there */
		check_in_slot(w, t);
}

void
timer_wheel_check(const struct timer_wheel *w, const struct timer *t)
{
	unsigned int i, n, slot;
	const struct timer *in;

	if (t != NULL)
		check_timer(w, t);
	check_started(&w->started);
	check_started(&w->sealed);
	check_due(w);
	for (i = 0; i < WALK_MAX; i++) {
		slot = (w->tick + i) & SLOT_MASK;
		in = w->slots[slot];
		RTE_ASSERT(in == NULL || in->prev == &w->slots[slot]);
		for (n = 0; in != NULL && n < WALK_MAX; in = in->next, n++)
			check_in_slot(w, in);
	}
}

#endif
