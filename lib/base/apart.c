/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/apart.h"

/*
 * It interrupts a system call, and does nothing else. A standard signal: several are one for a
 * thread that does not take them, and by default it is ignored.
 */
#define HURRY SIGURG

struct apart {
	unsigned int users; /* atomic: the thread, and who has begun it */
	pid_t thread; /* atomic; 0: it has not begun yet */
	void (*work)(void *arg);
	void *arg;
};

static void
apart_leave(struct apart *a)
{
	if (__atomic_sub_fetch(&a->users, 1, __ATOMIC_ACQ_REL) == 0)
		free(a);
}

static void *
apart_main(void *arg)
{
	struct apart *a = arg;

	__atomic_store_n(&a->thread, gettid(), __ATOMIC_RELEASE);
	a->work(a->arg);
	apart_leave(a);
	return NULL;
}

static void
hurried(int sig)
{
	(void)sig;
}

static bool
apart_start(struct apart *a)
{
	const struct sigaction hurry = { .sa_handler = hurried }; /* no SA_RESTART */
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	bool started;

	if (pthread_attr_init(&attr) != 0)
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigaction(HURRY, &hurry, NULL);
	sigfillset(&all); /* signals are the control thread's */
	sigdelset(&all, HURRY);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(&thread, &attr, apart_main, a) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return started;
}

struct apart *
apart_begin(void (*work)(void *arg), void *arg)
{
	struct apart *a = malloc(sizeof(*a));

	if (a == NULL)
		return NULL;
	*a = (struct apart){ .users = 2, .work = work, .arg = arg };
	if (apart_start(a))
		return a;
	free(a);
	return NULL;
}

bool
apart_ended(struct apart *a)
{
	if (__atomic_load_n(&a->users, __ATOMIC_ACQUIRE) > 1)
		return false;
	free(a);
	return true;
}

void
apart_hurry(const struct apart *a)
{
	pid_t thread = __atomic_load_n(&a->thread, __ATOMIC_ACQUIRE);

	if (thread != 0)
		syscall(SYS_tgkill, getpid(), thread, HURRY);
}

void
apart_forget(struct apart *a)
{
	apart_leave(a);
}
