/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TIMER_WHEEL_H
#define BASE_TIMER_WHEEL_H

/**
 * @file
 * Per-worker hashed timer wheel (spec/limits.md: rte_timer is too slow per packet).
 *
 * Time is whatever unit the owner counts in (TSC cycles on a worker, virtual nanoseconds in the
 * simulation). One lazily re-armed timer per object: moving a deadline later costs one store; the
 * wheel finds out when the old deadline comes. Arming, disarming and running are O(1) amortised.
 * Only the owning worker may call; nothing here allocates after timer_wheel_create().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"

struct timer;
struct timer_wheel;

/** Called from timer_wheel_run() once the deadline has passed; the timer is disarmed by then and may be armed anew. */
typedef void (*timer_fn)(struct timer *t, uint64_t now);

/** Embedded in the object it times; zeroed memory plus timer_init() is a disarmed timer. */
struct timer {
	struct timer *next;
	struct timer **prev; /**< NULL when not on the wheel */
	uint64_t deadline; /**< when it is due; UINT64_MAX: disarmed; started: how long it waits */
	uint64_t slot_time; /**< when the wheel looks at it, not after deadline; UINT64_MAX: started */
	timer_fn fn;
};

/**
 * @param tick   width of a slot in time units, a power of two; a timer fires at its deadline or up to
 *               the next run after it, never before: the tick costs memory walks, not accuracy
 * @param now    the time of creation
 */
struct timer_wheel *timer_wheel_create(const struct allocator *alloc, uint64_t tick, uint64_t now);
void timer_wheel_destroy(struct timer_wheel *w);

void timer_init(struct timer *t, timer_fn fn);
/** Arm or re-arm. A deadline in the past fires at the next run. */
void timer_arm(struct timer_wheel *w, struct timer *t, uint64_t deadline);
void timer_disarm(struct timer_wheel *w, struct timer *t);

static inline bool
timer_armed(const struct timer *t)
{
	return t->deadline != UINT64_MAX;
}

/** timer_arm() for one that mostly moves on: in line where the wheel finds out when it looks. */
static inline void
timer_move(struct timer_wheel *w, struct timer *t, uint64_t deadline)
{
	if (t->prev != NULL && deadline >= t->slot_time && deadline != UINT64_MAX)
		t->deadline = deadline;
	else
		timer_arm(w, t, deadline);
}

/**
 * Arm or re-arm for a wait that begins with a packet sent in this turn. Its deadline is `wait` after
 * the time that timer_wheel_begin() is given, so nothing that stalls before the packet has left makes
 * the wait shorter (rc-transport 8).
 */
void timer_start(struct timer_wheel *w, struct timer *t, uint64_t wait);
/**
 * Close the group of timers started so far: those started later have to wait for packets of their
 * own. Does nothing while the group before has not begun.
 *
 * @retval true  there is a new group: note which packets it waits for
 */
bool timer_wheel_seal(struct timer_wheel *w);
/** The packets of the group that was closed have left. @param now  read after they had */
void timer_wheel_begin(struct timer_wheel *w, uint64_t now);

/** Is there a group that was closed and has not begun? */
bool timer_wheel_sealed(const struct timer_wheel *w);

/** For a link that takes all at once: what was sent so far has left by `now`. */
static inline void
timer_wheel_sent(struct timer_wheel *w, uint64_t now)
{
	if (timer_wheel_seal(w))
		timer_wheel_begin(w, now);
}

/** Take a timer off its wheel and let it keep what timer_resume() on another wheel wants. */
void timer_suspend(struct timer_wheel *w, struct timer *t);
void timer_resume(struct timer_wheel *w, struct timer *t);

/** Fire what is due. @return number fired */
unsigned int timer_wheel_run(struct timer_wheel *w, uint64_t now);
/**
 * @return a time no later than the earliest deadline (UINT64_MAX: none): how long an idle worker may sleep; 0 while a
 *         timer was started and has not begun
 */
uint64_t timer_wheel_next(const struct timer_wheel *w);

#endif
