/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TIMER_WHEEL_H
#define BASE_TIMER_WHEEL_H

/**
 * @file
 * Per-worker hashed timer wheel, because rte_timer is too slow to use per packet.
 *
 * Time is whatever unit the owner counts in (TSC cycles on a worker, virtual nanoseconds in the
 * simulation). Moving a deadline later costs one store: the timer stays in its slot until the old
 * deadline, when the wheel puts it into the slot of the new one. Arming, disarming and running are
 * O(1) amortised. Only the owning worker may call; nothing here allocates after
 * timer_wheel_create().
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/env.h"

struct timer;
struct timer_wheel;

/**
 * timer_wheel_run() calls it after the deadline. The timer is disarmed; the function may arm it.
 */
typedef void (*timer_fn)(struct timer *t, uint64_t now);

/** Embedded in the object it times; zeroed memory plus timer_init() is a disarmed timer. */
struct timer {
	struct timer *next;
	struct timer **prev; /**< NULL if not on the wheel */
	uint64_t deadline; /**< UINT64_MAX: disarmed; after timer_start(): the length of the wait */
	/** when the wheel looks at it, not after .deadline; UINT64_MAX after timer_start() */
	uint64_t slot_time;
	timer_fn fn;
};

/**
 * @param tick   width of a slot in time units, a power of two; a timer fires in the first
 *               run at or after its deadline, never before it, whatever the tick
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

/** timer_arm() for timers whose deadline mostly moves later: that case is handled inline. */
static inline void
timer_move(struct timer_wheel *w, struct timer *t, uint64_t deadline)
{
	if (t->prev != NULL && deadline >= t->slot_time && deadline != UINT64_MAX)
		t->deadline = deadline;
	else
		timer_arm(w, t, deadline);
}

/**
 * Arm or re-arm for a wait that begins with a packet sent in this turn. Its deadline is `wait`
 * after the time given to timer_wheel_begin(), so a stall before the packet has left does not
 * shorten the wait (rc-transport 8).
 */
void timer_start(struct timer_wheel *w, struct timer *t, uint64_t wait);
/**
 * Close the group of timers started so far; timers started later form the next group, with packets
 * of their own. Does nothing while the previous closed group waits for timer_wheel_begin().
 *
 * @retval true  a new group was closed: the caller notes which packets it waits for
 */
bool timer_wheel_seal(struct timer_wheel *w);
/** Begin the waits of the closed group: its packets have left. @param now  read after they left */
void timer_wheel_begin(struct timer_wheel *w, uint64_t now);

/** True if a closed group waits for timer_wheel_begin(). */
bool timer_wheel_sealed(const struct timer_wheel *w);

/** For a link that sends at once: everything sent so far has left by `now`. */
static inline void
timer_wheel_sent(struct timer_wheel *w, uint64_t now)
{
	if (timer_wheel_seal(w))
		timer_wheel_begin(w, now);
}

/** Take a timer off its wheel; timer_resume() arms it again, also on another wheel. */
void timer_suspend(struct timer_wheel *w, struct timer *t);
void timer_resume(struct timer_wheel *w, struct timer *t);

/** Fire the timers that are due. @return number fired */
unsigned int timer_wheel_run(struct timer_wheel *w, uint64_t now);
/**
 * How long an idle worker may sleep.
 *
 * @return a time no later than the earliest deadline; UINT64_MAX: no timer; 0: a started timer
 * waits
 *         for timer_wheel_begin()
 */
uint64_t timer_wheel_next(const struct timer_wheel *w);

#endif
