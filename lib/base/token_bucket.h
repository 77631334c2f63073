/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TOKEN_BUCKET_H
#define BASE_TOKEN_BUCKET_H

/**
 * @file
 * A token bucket in the owner's unit of time. It limits what others can make us send or log (ICMP,
 * ARP and ND answers, warnings). One owner, no division, reads no clock.
 */

#include <stdbool.h>
#include <stdint.h>

struct token_bucket {
	uint64_t interval; /**< time units per token; 0: no limit */
	uint64_t slack; /**< how far .drawn may be ahead of `now`: (burst - 1) intervals */
	uint64_t drawn; /**< the time at which the bucket is full again */
};

/**
 * @param interval  time units per token; 0: no limit
 * @param burst     tokens that a full bucket holds, at least 1; it starts full
 */
static inline void
token_bucket_init(struct token_bucket *b, uint64_t interval, uint32_t burst)
{
	b->interval = interval;
	b->slack = burst > 1 ? (burst - 1) * interval : 0;
	b->drawn = 0;
}

/** Take a token. @return false: the bucket is empty */
static inline bool
token_bucket_take(struct token_bucket *b, uint64_t now)
{
	if (b->drawn < now)
		b->drawn = now;
	if (b->drawn - now > b->slack)
		return false;
	b->drawn += b->interval;
	return true;
}

/** True if at most one token is left in a bucket that holds more. */
static inline bool
token_bucket_low(const struct token_bucket *b, uint64_t now)
{
	return b->slack >= b->interval && b->drawn > now && b->drawn - now > b->slack - b->interval;
}

#endif
