/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"

/* Not by sigtimedwait(): a thread that is to be cancelled would end there, with what it holds. */
void
signal_take_back(int number)
{
	const struct timespec no_time = { 0, 0 };
	sigset_t only;

	sigemptyset(&only);
	sigaddset(&only, number);
	while (syscall(SYS_rt_sigtimedwait, &only, NULL, &no_time, _NSIG / 8) < 0 && errno == EINTR)
		;
}
