/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_TIME_H
#define BASE_TIME_H

/**
 * @file
 * Convert nanoseconds to the owner's unit of time.
 */

#include <stdint.h>

/** @return time units, @p hz a second, rounded up: a wait is never too short */
static inline uint64_t
time_of_ns(uint64_t hz, uint64_t ns)
{
	return (uint64_t)(((unsigned __int128)ns * hz + 999999999) / 1000000000);
}

#endif
