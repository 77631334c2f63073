/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Asynchronous events of clients' objects, on the control thread: the client's event pipe gets
 * those that libibverbs knows, with the cookie by which the program knows the object. A full pipe
 * has events that the program has not read; further ones are lost.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/clients_private.h"

#define EVENT_OF_VERBS 0x100 /* types from here on are Polca's own */

static void
client_tell(const struct verbs_client *c, enum event_type type, uint64_t cookie)
{
	const struct ring_async_event event = { .cookie = cookie, .type = type };
	ssize_t n = write(c->event_pipe[CLIENT_PIPE_POLCA], &event, sizeof(event));

	RTE_SET_USED(n);
}

/* The queue pair or shared receive queue with this number. @return false: it is nobody's here */
static bool
client_tell_queue(const struct verbs_client *c, const struct event *ev, bool is_srq)
{
	const struct client_queue *q;
	uint32_t slot;

	for (slot = 0; slot < c->segment.geometry.num_queues; slot++) {
		q = c->queue[slot];
		if (q == NULL || q->is_srq != is_srq || q->number != ev->element)
			continue;
		client_tell(c, ev->type, q->cookie);
		return true;
	}
	return false;
}

/* @return true: no other client gets it */
static bool
client_takes_event(const struct verbs_client *c, const struct event *ev)
{
	const struct client_cq *cq;

	switch (ev->type) {
	case EVENT_CQ_ERR:
		cq = c->engine->client_cqs[ev->element];
		if (cq == NULL || cq->client != c)
			return false;
		client_tell(c, ev->type, cq->cookie);
		return true;
	case EVENT_SRQ_LIMIT_REACHED:
		return client_tell_queue(c, ev, true);
	case EVENT_PORT_ACTIVE:
	case EVENT_PORT_ERR:
	case EVENT_LID_CHANGE:
	case EVENT_PKEY_CHANGE:
	case EVENT_SM_CHANGE:
	case EVENT_CLIENT_REREGISTER:
	case EVENT_GID_CHANGE:
		if (ev->element == c->port)
			client_tell(c, ev->type, 1); /* the number of a device's only port */
		return false;
	default:
		return client_tell_queue(c, ev, false);
	}
}

void
clients_event(const struct engine *e, const struct event *ev)
{
	const struct verbs_client *c;

	if (ev->type >= EVENT_OF_VERBS)
		return;
	for (c = e->verbs_clients; c != NULL; c = c->next_client)
		if (client_takes_event(c, ev))
			return;
}

int
client_open_again(int fd, struct error *err)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (again < 0)
		return error_set(err, errno, "no end of a pipe: %s: %s", path, strerror(errno));
	return again;
}

int
client_pipe(int ends[CLIENT_PIPE_ENDS], struct error *err)
{
	int made[2], again;

	if (pipe2(made, O_CLOEXEC) != 0)
		return error_set(err, errno, "no pipe for events: %s", strerror(errno));
	fcntl(made[1], F_SETFL, O_NONBLOCK);
	again = client_open_again(made[1], err);
	if (again < 0) {
		close(made[0]);
		close(made[1]);
		return again;
	}
	ends[CLIENT_PIPE_READ] = made[0];
	ends[CLIENT_PIPE_PROGRAM] = again;
	ends[CLIENT_PIPE_POLCA] = made[1];
	return 0;
}
