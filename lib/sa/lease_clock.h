/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_LEASE_CLOCK_H
#define SA_LEASE_CLOCK_H

/**
 * @file
 * The time that leases are counted in: seconds of the wall clock, so that a lease in the database
 * still ends on time after a restart. If the wall clock is set back, this one goes on at a steady
 * pace instead; otherwise every lease would last longer by as much. If it is set forward, this one
 * follows.
 */

#include <stdint.h>

/** Zeroed memory is a clock that has not been read yet. */
struct lease_clock {
	uint64_t now; /**< what it last said */
	uint64_t steady; /**< when */
};

/**
 * @param wall    seconds of the wall clock
 * @param steady  seconds of a clock that is never set
 */
static inline uint64_t
lease_clock_read(struct lease_clock *c, uint64_t wall, uint64_t steady)
{
	uint64_t on = c->now + (steady - c->steady);

	c->now = c->now != 0 && on > wall ? on : wall;
	c->steady = steady;
	return c->now;
}

#endif
