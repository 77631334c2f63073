/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "fork_wait.h"

/*
 * Longer than the copies of 10 GiB take. A process that is made at the same time without atfork
 * handlers, and neither ends nor executes a program, keeps the pipe open.
 */
#define LONGEST_MS 10000

/* Of the fork() that is going on. */
static int child_end = -1, parent_end = -1; /* of a pipe: it closes with the child, too */
static sigset_t signals_before;
static int cancel_before;

void
fork_wait_begin(bool shares)
{
	sigset_t all;
	int ends[2];

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &signals_before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
	child_end = parent_end = -1;
	if (!shares || pipe2(ends, O_CLOEXEC) != 0)
		return;
	parent_end = ends[0];
	child_end = ends[1];
}

static void
fork_wait_restore(void)
{
	if (child_end >= 0)
		close(child_end);
	if (parent_end >= 0)
		close(parent_end);
	pthread_setcancelstate(cancel_before, NULL);
	pthread_sigmask(SIG_SETMASK, &signals_before, NULL);
}

void
fork_wait_for_child(void)
{
	struct pollfd closed = { .fd = parent_end };

	if (parent_end >= 0) {
		close(child_end);
		child_end = -1;
		poll(&closed, 1, LONGEST_MS);
	}
	fork_wait_restore();
}

void
fork_wait_end(void)
{
	fork_wait_restore();
}
