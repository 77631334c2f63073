/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "fork_order.h"
#include "fork_wait.h"
#include "wait.h"

/*
 * Longer than the copies of 10 GiB take. A process that is made at the same time without handlers
 * of fork(), and neither ends nor executes a program, keeps the pipe open.
 */
#define LONGEST_MS 10000

/* --- the pipe, of which the child's end closes with the child, too --- */

static int child_end = -1, parent_end = -1;

void
fork_wait_begin(bool shares)
{
	int ends[2];

	child_end = parent_end = -1;
	if (!shares || pipe2(ends, O_CLOEXEC) != 0)
		return;
	parent_end = ends[0];
	child_end = ends[1];
}

static void
fork_wait_close(int *end)
{
	if (*end >= 0)
		close(*end);
	*end = -1;
}

void
fork_wait_for_child(void)
{
	fork_wait_close(&child_end);
	if (parent_end >= 0)
		wait_for_close(parent_end, LONGEST_MS);
	fork_wait_close(&parent_end);
}

void
fork_wait_end(void)
{
	fork_wait_close(&child_end);
	fork_wait_close(&parent_end);
}

/* --- the thread that forks: both processes go on with what it had --- */

static __thread sigset_t signals_before;
static __thread int cancel_before;

static void
fork_hold_off(void)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &signals_before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_before);
}

static void
fork_let_in(void)
{
	pthread_setcancelstate(cancel_before, NULL);
	pthread_sigmask(SIG_SETMASK, &signals_before, NULL);
}

static void __attribute__((constructor(FORK_ORDER_SIGNALS))) fork_watch_signals(void)
{
	pthread_atfork(fork_hold_off, fork_let_in, fork_let_in);
}
