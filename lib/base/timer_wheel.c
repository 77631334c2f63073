/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * SLOTS slots of one tick each make a turn. A timer due in a later turn stays in its slot and is
 * looked at once a turn. A turn of a worker's wheel (0.8 s) is as long as most timeouts: with a
 * shorter one the wheel would look at each of 100,000 timers several times before it is due, and
 * each look is a cache miss. A bitmap of the slots in use lets a run after a long pause, and the
 * search for the next deadline, skip empty slots.
 *
 * No timer is due before `bound`, so the common run is one compare.
 */

#include <string.h>

#include <rte_debug.h>

#include "base/timer_wheel_private.h"

struct timer_wheel *
timer_wheel_create(const struct allocator *alloc, uint64_t tick, uint64_t now)
{
	struct timer_wheel *w;

	if (tick == 0 || (tick & (tick - 1)) != 0)
		return NULL;
	w = mem_zalloc(alloc, sizeof(*w), 64);
	if (w == NULL)
		return NULL;
	w->alloc = alloc;
	w->shift = (unsigned int)__builtin_ctzll(tick);
	w->tick = now >> w->shift;
	w->bound = UINT64_MAX;
	return w;
}

void
timer_wheel_destroy(struct timer_wheel *w)
{
	if (w != NULL)
		mem_free(w->alloc, w);
}

void
timer_init(struct timer *t, timer_fn fn)
{
	memset(t, 0, sizeof(*t));
	t->deadline = UINT64_MAX;
	t->fn = fn;
}

static void
list_push(struct timer **head, struct timer *t)
{
	t->next = *head;
	t->prev = head;
	if (t->next != NULL)
		t->next->prev = &t->next;
	*head = t;
}

static void
list_remove(struct timer *t)
{
	RTE_ASSERT(*t->prev == t && (t->next == NULL || t->next->prev == &t->next));
	*t->prev = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	t->next = NULL;
	t->prev = NULL;
}

/* Put a timer into the slot of its deadline; a past deadline goes into the next slot to be run. */
static void
slot_add(struct timer_wheel *w, struct timer *t)
{
	uint64_t tick = t->deadline >> w->shift;
	unsigned int slot;

	RTE_ASSERT(t->prev == NULL && t->fn != NULL);
	if (tick < w->tick)
		tick = w->tick;
	slot = tick & SLOT_MASK;
	t->slot_time = t->deadline;
	list_push(&w->slots[slot], t);
	w->used[slot / 64] |= UINT64_C(1) << (slot % 64);
	w->words_used[slot / 4096] |= UINT64_C(1) << (slot / 64 % 64);
	if (t->slot_time < w->bound)
		w->bound = t->slot_time;
}

void
timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline)
{
	if (deadline == UINT64_MAX) {
		timer_disarm(w, t);
		return;
	}
	t->deadline = deadline;
	if (t->prev != NULL) {
		if (deadline >= t->slot_time)
			return; /* stays in its slot: timer_wheel_run() moves it then */
		list_remove(t);
	}
	slot_add(w, t);
	timer_wheel_check(w, t);
}

void
timer_disarm(struct timer_wheel *w, struct timer *t)
{
	t->deadline = UINT64_MAX;
	if (t->prev != NULL)
		list_remove(t);
	timer_wheel_check(w, t);
}

/* slot_time UINT64_MAX tells timer_arm() and timer_move() that the timer is in no slot. */
void
timer_start(struct timer_wheel *w, struct timer *t, uint64_t wait)
{
	if (t->prev != NULL)
		list_remove(t);
	t->deadline = wait;
	t->slot_time = UINT64_MAX;
	list_push(&w->started, t);
	timer_wheel_check(w, t);
}

bool
timer_wheel_seal(struct timer_wheel *w)
{
	if (w->started == NULL || w->sealed != NULL)
		return false;
	w->sealed = w->started;
	w->sealed->prev = &w->sealed;
	w->started = NULL;
	timer_wheel_check(w, NULL);
	return true;
}

bool
timer_wheel_sealed(const struct timer_wheel *w)
{
	return w->sealed != NULL;
}

void
timer_wheel_begin(struct timer_wheel *w, uint64_t now)
{
	struct timer *t;

	while ((t = w->sealed) != NULL) {
		list_remove(t);
		t->deadline += now;
		slot_add(w, t);
	}
	timer_wheel_check(w, NULL);
}

void
timer_suspend(struct timer_wheel *w, struct timer *t)
{
	uint64_t deadline = t->deadline;

	timer_disarm(w, t);
	t->deadline = deadline;
}

void
timer_resume(struct timer_wheel *w, struct timer *t)
{
	if (t->slot_time == UINT64_MAX && t->deadline != UINT64_MAX)
		timer_start(w, t, t->deadline);
	else
		timer_arm(w, t, t->deadline);
}

/* The first word at or after `from` that may have bits set; WORDS: none. */
static unsigned int
word_find(const struct timer_wheel *w, unsigned int from)
{
	uint64_t mask = ~UINT64_C(0) << (from % 64);
	unsigned int i;

	for (i = from / 64; i < WORDS / 64; i++, mask = ~UINT64_C(0))
		if ((w->words_used[i] & mask) != 0)
			return i * 64 + (unsigned int)__builtin_ctzll(w->words_used[i] & mask);
	return WORDS;
}

/* Find the first slot in use from `from` to `to` inclusive; clears the bits of empty slots. */
static bool
slot_find(struct timer_wheel *w, unsigned int from, unsigned int to, unsigned int *slot)
{
	unsigned int i;
	uint64_t bits;

	for (i = word_find(w, from / 64); i <= to / 64; i = word_find(w, i + 1)) {
		bits = w->used[i];
		if (i == from / 64)
			bits &= ~UINT64_C(0) << (from % 64);
		while (bits != 0) {
			*slot = i * 64 + (unsigned int)__builtin_ctzll(bits);
			if (*slot > to)
				return false;
			if (w->slots[*slot] != NULL)
				return true;
			w->used[i] &= ~(UINT64_C(1) << (*slot % 64));
			bits &= bits - 1;
		}
		if (w->used[i] == 0)
			w->words_used[i / 64] &= ~(UINT64_C(1) << (i % 64));
	}
	return false;
}

/* Find the distance in ticks from slot `from` to the next one in use, wrapping: 0 .. SLOTS-1. */
static bool
slot_next(struct timer_wheel *w, unsigned int from, unsigned int *distance)
{
	unsigned int slot;

	if (!slot_find(w, from, SLOTS - 1, &slot) &&
		(from == 0 || !slot_find(w, 0, from - 1, &slot)))
		return false;
	*distance = (slot - from) & SLOT_MASK;
	return true;
}

/*
 * Move the timers of a slot to look at by `now` to the due list. @return the new tail of that list
 */
static struct timer **
slot_take(struct timer_wheel *w, unsigned int slot, uint64_t now, struct timer **tail)
{
	struct timer *t, *next;

	for (t = w->slots[slot]; t != NULL; t = next) {
		next = t->next;
		if (t->slot_time > now)
			continue;
		RTE_ASSERT(t->slot_time <= t->deadline);
		list_remove(t);
		list_push(tail, t);
		tail = &t->next;
	}
	return tail;
}

/* Compute .bound, after all slots up to the current one have been run. */
static uint64_t
find_bound(struct timer_wheel *w)
{
	unsigned int slot = w->tick & SLOT_MASK, distance;
	uint64_t bound = UINT64_MAX;
	const struct timer *t;

	for (t = w->slots[slot]; t != NULL; t = t->next) {
		if (t->slot_time >> w->shift <= w->tick && t->slot_time < bound)
			bound = t->slot_time;
	}
	if (bound != UINT64_MAX)
		return bound;
	if (slot_next(w, (slot + 1) & SLOT_MASK, &distance))
		bound = (w->tick + 1 + distance) << w->shift;
	return bound;
}

unsigned int
timer_wheel_run(struct timer_wheel *w, uint64_t now)
{
	uint64_t tick = now >> w->shift, span;
	unsigned int slot, distance, fired = 0;
	struct timer **tail = &w->due, *t;

	if (now < w->bound)
		return 0;
	if (tick < w->tick)
		tick = w->tick;
	span = tick - w->tick;
	if (span >= SLOTS)
		span = SLOTS - 1;
	slot = w->tick & SLOT_MASK;
	/* set before callbacks run: a timer they arm must not go into a slot already passed */
	w->tick = tick;
	w->bound = UINT64_MAX;
	while (slot_next(w, slot, &distance) && distance <= span) {
		slot = (slot + distance) & SLOT_MASK;
		tail = slot_take(w, slot, now, tail);
		if (distance == span)
			break;
		span -= distance + 1;
		slot = (slot + 1) & SLOT_MASK;
	}
	w->bound = find_bound(w);

	/* Callbacks may arm and disarm any timer, including those still on the due list. */
	while ((t = w->due) != NULL) {
		list_remove(t);
		if (t->deadline > now) { /* its deadline was moved later */
			slot_add(w, t);
			continue;
		}
		RTE_ASSERT(t->slot_time <= now);
		t->deadline = UINT64_MAX;
		t->fn(t, now);
		fired++;
	}
	timer_wheel_check(w, NULL);
	return fired;
}

uint64_t
timer_wheel_next(const struct timer_wheel *w)
{
	return w->started != NULL || w->sealed != NULL ? 0 : w->bound;
}
