/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <poll.h>
#include <stdint.h>
#include <time.h>

#include "wait.h"

static int64_t
wait_clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

bool
wait_for_close(int fd, int wait_ms)
{
	struct pollfd closed = { .fd = fd };
	int64_t end = wait_clock_ms() + wait_ms, left = wait_ms;

	for (; left >= 0; left = end - wait_clock_ms())
		if (poll(&closed, 1, (int)left) > 0)
			return true;
	return false;
}
