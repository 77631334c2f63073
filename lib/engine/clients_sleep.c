/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sleep of an idle worker that has clients. Other processes cannot reach its futex: a client
 * that rings while its segment says that the worker sleeps writes a byte to the worker's pipe.
 * Each client has a writing end of its own, so none can take another's byte, nor change another's
 * flags; a full pipe wakes the worker, too.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "engine/clients_private.h"
#include "engine/clients_worker.h"

int
client_wake_open(struct worker *w, struct error *err)
{
	int ends[2];

	if (w->wake_open)
		return 0;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return error_set(err, errno, "no pipe for worker %u: %s", w->id, strerror(errno));
	w->wake_pipe[0] = ends[0];
	w->wake_pipe[1] = ends[1];
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
	w->wake_open = false;
}

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
	/* store, then load: a client rings, and then reads .asleep */
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; i < wc->num; i++)
		rung |= ring_doorbell_waits(&wc->looks[i].client->doorbells);
	return rung;
}

void
clients_sleep(struct worker *w, const struct timespec *ts)
{
	struct pollfd fd = { .fd = w->wake_pipe[0], .events = POLLIN };
	char bytes[4096];
	ssize_t n;

	if (!clients_tell_asleep(w, 1) && ppoll(&fd, 1, ts, NULL) > 0) {
		/* once: a client may write without end, and what is left ends the next sleep */
		n = read(fd.fd, bytes, sizeof(bytes));
		RTE_SET_USED(n);
	}
	clients_tell_asleep(w, 0);
}
