/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TIMER_WHEEL_PRIVATE_H
#define BASE_TIMER_WHEEL_PRIVATE_H

/**
 * @file
 * Private to the timer wheel and its test: what a wheel consists of, and its invariants. Builds
 * with RTE_ENABLE_ASSERT check them after each operation; others contain none of it.
 */

#include <rte_common.h>

#include "base/timer_wheel.h"

#define SLOTS     65536
#define SLOT_MASK (SLOTS - 1)
#define WORDS     (SLOTS / 64)

struct timer_wheel {
	uint64_t bound; /* no timer in a slot is to be looked at before */
	uint64_t tick; /* all slots before this tick's have been run */
	unsigned int shift; /* log2 of time units in a tick */
	struct timer *due; /* taken off the slots, not fired or put back yet */
	struct timer *started; /* by timer_start(), not in a closed group yet */
	struct timer *sealed; /* closed group, whose packets may not have left yet */
	const struct allocator *alloc;
	uint64_t words_used[WORDS / 64]; /* bit i: used[i] may have bits set */
	uint64_t used[WORDS]; /* bit 0: the slot is empty; bit 1: it may be empty */
	struct timer *slots[SLOTS];
};

#ifdef RTE_ENABLE_ASSERT
/**
 * For the end of an operation. Ends the program if an invariant of the wheel fails.
 *
 * @param t  the timer it was about, or NULL
 */
void timer_wheel_check(const struct timer_wheel *w, const struct timer *t);
#else
#define timer_wheel_check(w, t)                                                                    \
	do {                                                                                       \
		RTE_SET_USED(w);                                                                   \
		RTE_SET_USED(t);                                                                   \
	} while (0)
#endif

#endif
