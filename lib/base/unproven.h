/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_UNPROVEN_H
#define BASE_UNPROVEN_H

/**
 * @file
 * Anti-amplification: the source of a datagram can be forged. Until an address has proven that it
 * receives what we send, we send it at most three times as many bytes as came from it (RFC 9000,
 * 8.1). A message proves an address if it repeats a number of ours that nobody can guess. All
 * agents that answer strangers keep such a budget.
 */

#include <stdbool.h>
#include <stdint.h>

#define UNPROVEN_FACTOR 3

struct unproven {
	uint32_t left; /**< bytes that may be sent */
	bool proven; /**< no limit any more */
};

/** @p bytes came from the address. */
static inline void
unproven_heard(struct unproven *u, uint32_t bytes)
{
	u->left += UNPROVEN_FACTOR * bytes;
}

/** Take @p bytes from the budget. @return false: they must not be sent */
static inline bool
unproven_spend(struct unproven *u, uint32_t bytes)
{
	if (u->proven)
		return true;
	if (u->left < bytes)
		return false;
	u->left -= bytes;
	return true;
}

#endif
