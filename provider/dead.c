/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Polca's end. One thread of the process sleeps on the sockets of all open devices. When one is
 * closed, polca was killed or has ended: the program gets IBV_EVENT_DEVICE_FATAL, who sleeps on a
 * completion channel wakes, polls flush what was posted (retire.c), and registered memory becomes
 * private again. After that the program can open the device anew.
 *
 * A request that finds the socket closed does the same at once.
 */

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fork_order.h"
#include "move.h"
#include "provider.h"

#define WATCHER_STACK ((size_t)256 << 10)

/* Held while a context is buried: who finds polca dead waits until all is done. */
static pthread_mutex_t death_lock = PTHREAD_MUTEX_INITIALIZER;
static int watcher_epoll = -1; /* under the lock, also the next two */
static bool watcher_runs;
static uint64_t last_id;
static sem_t watcher_ready;

/* The caller holds the lock. */
static void
context_bury(struct polca_context *c)
{
	if (!c->buried) {
		__atomic_store_n(&c->dead, true, __ATOMIC_SEQ_CST);
		epoll_ctl(watcher_epoll, EPOLL_CTL_DEL, c->socket, NULL);
		event_fatal(c);
		event_wake_all(c);
		c->buried = true;
	}
	/* else a thread of the program does it, when it deregisters or opens a device */
	if (move_is_safe())
		regions_return(c);
}

void
death_notice(struct polca_context *c)
{
	if (!polca_is_gone(c))
		return;
	pthread_mutex_lock(&death_lock);
	context_bury(c);
	pthread_mutex_unlock(&death_lock);
}

/* --- all contexts --- */

/* Contexts stay while the lock on deaths is held, so the list's own need not be. */
struct search {
	uint64_t after; /* the next one with a greater id */
	struct polca_context *found;
};

static int
context_nearest(struct polca_context *c, void *arg)
{
	struct search *s = arg;

	if (c->id > s->after && (s->found == NULL || c->id < s->found->id))
		s->found = c;
	return 0;
}

/* The caller holds the lock on deaths. */
static struct polca_context *
context_after(uint64_t id)
{
	struct search s = { .after = id };

	contexts_each(context_nearest, &s);
	return s.found;
}

void
death_notice_all(void)
{
	struct polca_context *c;
	uint64_t id = 0;

	pthread_mutex_lock(&death_lock);
	for (; (c = context_after(id)) != NULL; id = c->id)
		if (polca_is_gone(c))
			context_bury(c);
	pthread_mutex_unlock(&death_lock);
}

/* --- the thread --- */

static void *
watcher(void *arg)
{
	int epoll = (int)(intptr_t)arg;
	struct polca_context *c;
	struct epoll_event ev;

	move_thread_is_quiet();
	sem_post(&watcher_ready);
	for (;;) {
		if (epoll_wait(epoll, &ev, 1, -1) != 1) {
			if (errno == EINTR)
				continue;
			break; /* the program has closed the descriptor */
		}
		pthread_mutex_lock(&death_lock);
		c = context_after(ev.data.u64 - 1);
		if (c != NULL && c->id == ev.data.u64)
			context_bury(c);
		pthread_mutex_unlock(&death_lock);
	}
	pthread_mutex_lock(&death_lock);
	watcher_epoll = -1;
	watcher_runs = false;
	move_quiet_thread_ends();
	pthread_mutex_unlock(&death_lock);
	return NULL;
}

/* It takes no signal: those are for the program's threads. */
static int
watcher_start(void)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (watcher_epoll < 0)
		watcher_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (watcher_epoll < 0)
		return errno;
	sem_init(&watcher_ready, 0, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, WATCHER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, watcher, (void *)(intptr_t)watcher_epoll);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	while (rc == 0 && sem_wait(&watcher_ready) != 0)
		;
	watcher_runs = rc == 0;
	return rc;
}

int
death_watch(struct polca_context *c)
{
	struct epoll_event ev = { .events = 0 }; /* a closed socket is always told */
	int rc;

	pthread_mutex_lock(&death_lock);
	rc = watcher_runs ? 0 : watcher_start();
	ev.data.u64 = c->id = ++last_id;
	if (rc == 0 && epoll_ctl(watcher_epoll, EPOLL_CTL_ADD, c->socket, &ev) != 0)
		rc = errno;
	pthread_mutex_unlock(&death_lock);
	return rc;
}

void
death_ignore(struct polca_context *c)
{
	pthread_mutex_lock(&death_lock);
	if (!c->buried)
		epoll_ctl(watcher_epoll, EPOLL_CTL_DEL, c->socket, NULL);
	c->buried = true;
	pthread_mutex_unlock(&death_lock);
}

void
death_forget(struct polca_context *c)
{
	pthread_mutex_lock(&death_lock);
	contexts_remove(c);
	pthread_mutex_unlock(&death_lock);
}

/* A child has no device and no such thread, whatever the parent's was doing. */
static void
death_fork_child(void)
{
	if (watcher_epoll >= 0)
		close(watcher_epoll);
	watcher_epoll = -1;
	watcher_runs = false;
	pthread_mutex_init(&death_lock, NULL);
}

static void __attribute__((constructor(FORK_ORDER_DEATH))) death_watch_forks(void)
{
	pthread_atfork(NULL, NULL, death_fork_child);
}
