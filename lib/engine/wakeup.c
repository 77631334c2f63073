/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Wake the control thread when something changed that a client's call waits for. The control thread
 * sets .awaited and then looks at the state; another thread changes the state and then looks at
 * .awaited. The two fences guarantee that one of them sees what the other did; acquire and release
 * cannot order a store before a later load. So nobody polls, and without a waiting call no thread
 * makes a system call.
 */

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "engine/worker.h"

static void
wakeup_read(evutil_socket_t fd, short events, void *arg)
{
	eventfd_t count;

	RTE_SET_USED(events);
	RTE_SET_USED(arg);
	eventfd_read(fd, &count);
}

struct event_base *
engine_event_base(const struct engine *e)
{
	return e->base;
}

int
wakeup_create(struct engine *e, struct error *err)
{
	e->base = event_base_new();
	if (e->base == NULL)
		return error_set(err, ENOMEM, "no event loop: no memory or descriptor");
	e->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (e->wakeup_fd < 0)
		return error_set(err, errno, "no eventfd: no descriptor");
	e->wakeup = event_new(e->base, e->wakeup_fd, EV_READ | EV_PERSIST, wakeup_read, NULL);
	if (e->wakeup == NULL || event_add(e->wakeup, NULL) != 0)
		return error_set(err, ENOMEM, "no event loop: no memory");
	return 0;
}

void
wakeup_destroy(struct engine *e)
{
	if (e->wakeup != NULL) {
		event_free(e->wakeup);
		close(e->wakeup_fd);
	}
	if (e->base != NULL)
		event_base_free(e->base);
	e->wakeup = NULL;
	e->base = NULL;
}

bool
engine_await(struct engine *e)
{
	bool was = __atomic_exchange_n(&e->awaited, true, __ATOMIC_RELAXED);

	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* stored .awaited, then load the state */
	return !was;
}

void
wakeup_send(struct engine *e)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* stored the state, then load .awaited */
	if (__atomic_load_n(&e->awaited, __ATOMIC_RELAXED) &&
		__atomic_exchange_n(&e->awaited, false, __ATOMIC_RELAXED))
		eventfd_write(e->wakeup_fd, 1);
}
