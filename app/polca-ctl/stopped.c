/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stddef.h>

#include "stopped.h"

volatile sig_atomic_t stopped;

static void
on_stop_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

void
stopped_set_handler(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler }, was;

	if (sig == SIGHUP && sigaction(sig, NULL, &was) == 0 && was.sa_handler == SIG_IGN)
		return;
	sigaction(sig, &sa, NULL);
}

void
stopped_catch(void)
{
	stopped_set_handler(SIGHUP, on_stop_signal);
	stopped_set_handler(SIGTERM, on_stop_signal);
	stopped_set_handler(SIGINT, on_stop_signal);
}
