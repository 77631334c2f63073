/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_CLOCK_H
#define POLCA_CTL_CLOCK_H

#include <stdint.h>
#include <time.h>

/** Microseconds of the monotonic clock, which no one can set. */
static inline uint64_t
clock_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

#endif
