/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "stopped.h"

volatile sig_atomic_t stopped;

static void
stop(int sig)
{
	(void)sig;
	stopped = 1;
}

void
stopped_catch(void)
{
	struct sigaction sa = { .sa_handler = stop };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}
