/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sleep of an idle worker that has clients. Other processes cannot reach its futex: a client
 * that rings while its segment says that the worker sleeps writes a byte to a pipe. Each client has
 * a pipe of its own, so none can take another's byte, nor change another's flags, and the pipe goes
 * along when the client moves to another worker. A full pipe wakes the worker, too. The worker's
 * epoll descriptor watches them all, and the worker's own pipe, by which threads of polca wake it.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "engine/clients_private.h"
#include "engine/clients_worker.h"

#define PIPES_READ_AT_ONCE 8

/* --- the control thread --- */

static int
client_wake_control(int epoll, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(epoll, op, fd, &event) == 0 ? 0 : -errno;
}

int
client_wake_open(struct worker *w, struct error *err)
{
	int ends[2], epoll, rc;

	if (w->wake_open)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return error_set(err, errno, "no pipe for worker %u: %s", w->id, strerror(errno));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	rc = epoll >= 0 ? client_wake_control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN) : -errno;
	if (rc != 0) {
		close(ends[0]);
		close(ends[1]);
		if (epoll >= 0)
			close(epoll);
		return error_set(err, -rc, "no epoll descriptor for worker %u: %s", w->id,
			strerror(-rc));
	}
	w->wake_pipe[0] = ends[0];
	w->wake_pipe[1] = ends[1];
	w->wake_epoll = epoll;
	w->wake_open = true;
	return 0;
}

void
client_wake_close(struct worker *w)
{
	if (!w->wake_open)
		return;
	close(w->wake_pipe[0]);
	close(w->wake_pipe[1]);
	close(w->wake_epoll);
	w->wake_open = false;
}

static int
client_wake_watch(struct worker *w, struct verbs_client *c, uint32_t events, struct error *err)
{
	int rc = client_wake_open(w, err);

	if (rc != 0)
		return rc;
	rc = client_wake_control(w->wake_epoll, EPOLL_CTL_ADD, c->wake[0], events);
	return rc == 0 ? 0
		       : error_set(err, -rc, "no wake pipe for a client of worker %u: %s", w->id,
				 strerror(-rc));
}

int
client_wake_join(struct worker *w, struct verbs_client *c, struct error *err)
{
	if (pipe2(c->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
		c->wake[0] = c->wake[1] = -1;
		return error_set(err, errno, "no wake pipe for a client: %s", strerror(errno));
	}
	return client_wake_watch(w, c, EPOLLIN, err);
}

void
client_wake_leave(struct worker *w, struct verbs_client *c)
{
	client_wake_control(w->wake_epoll, EPOLL_CTL_DEL, c->wake[0], 0);
}

int
client_wake_prepare(struct worker *w, struct verbs_client *c, struct error *err)
{
	return client_wake_watch(w, c, 0, err);
}

void
client_wake_accept(struct worker *w, struct verbs_client *c)
{
	client_wake_control(w->wake_epoll, EPOLL_CTL_MOD, c->wake[0], EPOLLIN);
}

/* --- a worker --- */

void
clients_wake(struct worker *w)
{
	ssize_t n = write(w->wake_pipe[1], "", 1);

	RTE_SET_USED(n); /* a full pipe is readable */
}

/* Tell all clients whether the worker sleeps. @return true if one has rung meanwhile */
static bool
clients_tell_asleep(struct worker *w, uint32_t asleep)
{
	const struct worker_clients *wc = &w->clients;
	bool rung = false;
	uint32_t i;

	for (i = 0; i < wc->num; i++)
		__atomic_store_n(&wc->looks[i].client->shared->asleep, asleep, __ATOMIC_RELAXED);
	/*
	 * Store .asleep, then load the doorbells. A client stores a doorbell
	 * (ring_doorbell_ring()), then loads .asleep. Acquire and release cannot
	 * order a store before a later load.
	 */
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; i < wc->num; i++)
		rung |= ring_doorbell_waits(&wc->looks[i].client->doorbells);
	return rung;
}

/* Once each: a client may write without end, and what is left ends the next sleep. */
static void
clients_read_wakes(const struct worker *w)
{
	struct epoll_event events[PIPES_READ_AT_ONCE];
	char bytes[4096];
	int i, num = epoll_wait(w->wake_epoll, events, PIPES_READ_AT_ONCE, 0);
	ssize_t n;

	for (i = 0; i < num; i++) {
		n = read(events[i].data.fd, bytes, sizeof(bytes));
		RTE_SET_USED(n);
	}
}

void
clients_sleep(struct worker *w, const struct timespec *ts)
{
	struct pollfd fd = { .fd = w->wake_epoll, .events = POLLIN };

	if (!clients_tell_asleep(w, 1) && ppoll(&fd, 1, ts, NULL) > 0)
		clients_read_wakes(w);
	clients_tell_asleep(w, 0);
}
