/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Events of librdmacm's IDs. They wait here until the program fetches them, so that those of a
 * destroyed ID vanish. The program's descriptor is readable exactly while events wait: we put one
 * byte into the socket pair, and take it out at the program's end.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/rdmacm_private.h"

int
rdmacm_events_open(struct rdmacm_channel *ch, struct error *err)
{
	TAILQ_INIT(&ch->events);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ch->end) != 0)
		return error_set(err, errno, "no socket for an event channel: %s", strerror(errno));
	return 0;
}

void
rdmacm_events_close(struct rdmacm_channel *ch)
{
	close(ch->end[0]);
	close(ch->end[1]);
}

/* A program that takes the byte out, or puts others in, deceives only itself. */
static void
events_show(struct rdmacm_channel *ch)
{
	bool readable = !TAILQ_EMPTY(&ch->events);
	char byte = 0;
	ssize_t n;

	if (readable == ch->readable)
		return;
	ch->readable = readable;
	if (readable)
		n = send(ch->end[0], &byte, sizeof(byte), MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		n = recv(ch->end[1], &byte, sizeof(byte), MSG_DONTWAIT);
	RTE_SET_USED(n);
}

struct rdmacm_event *
rdmacm_event_put(struct rdmacm_id *id, enum rdmacm_event_type type, int status)
{
	struct rdmacm_event *ev;

	if (id->uid == 0)
		return NULL;
	ev = calloc(1, sizeof(*ev));
	if (ev == NULL)
		return NULL;
	ev->id = id;
	ev->resp.uid = id->uid;
	ev->resp.id = id->number;
	ev->resp.event = type;
	ev->resp.status = (uint32_t)status;
	id->events_waiting++;
	TAILQ_INSERT_TAIL(&id->channel->events, ev, link);
	events_show(id->channel);
	return ev;
}

void
rdmacm_event_param(struct rdmacm_event *ev, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len)
{
	struct rdma_ucm_conn_param *p = &ev->resp.param.conn;

	p->qp_num = info->remote_qpn;
	p->responder_resources = info->responder_resources;
	p->initiator_depth = info->initiator_depth;
	p->retry_count = info->retry_count;
	p->rnr_retry_count = info->rnr_retry_count;
	p->private_data_len = len;
	if (len > 0)
		memcpy(p->private_data, private_data, len);
}

static void
event_free(struct rdmacm_event *ev)
{
	struct rdmacm_channel *ch = ev->id->channel;

	TAILQ_REMOVE(&ch->events, ev, link);
	ev->id->events_waiting--;
	if (ev->child != NULL)
		ev->child->request = NULL;
	if (ev->child != NULL && ev->id->listener != NULL) {
		ev->id->listener->waiting--;
		rdmacm_listener_refill(ev->id->listener);
	}
	free(ev);
	events_show(ch);
}

struct rdmacm_id *
rdmacm_events_drop(struct rdmacm_id *id)
{
	struct rdmacm_channel *ch = id->channel;
	struct rdmacm_event *ev, *next;
	struct rdmacm_id *child = NULL;

	if (id->request != NULL)
		event_free(id->request);
	for (ev = TAILQ_FIRST(&ch->events); ev != NULL && child == NULL; ev = next) {
		next = TAILQ_NEXT(ev, link);
		if (ev->id != id)
			continue;
		child = ev->child;
		event_free(ev);
	}
	return child;
}

void
rdmacm_events_move(struct rdmacm_id *id, struct rdmacm_channel *to)
{
	struct rdmacm_channel *from = id->channel;
	struct rdmacm_event *ev, *next;

	if (from == to)
		return;
	for (ev = TAILQ_FIRST(&from->events); ev != NULL; ev = next) {
		next = TAILQ_NEXT(ev, link);
		if (ev->id != id)
			continue;
		TAILQ_REMOVE(&from->events, ev, link);
		TAILQ_INSERT_TAIL(&to->events, ev, link);
		if (ev->child != NULL)
			ev->child->channel = to;
	}
	events_show(from);
	events_show(to);
}

int
rdmacm_get_event(struct rdmacm_call *c)
{
	struct rdmacm_event *ev = TAILQ_FIRST(&c->channel->events);

	/* the kernel takes programs of the time before ECE, whose structure is shorter */
	if (c->out < offsetof(struct rdma_ucm_event_resp, reserved))
		return error_set(c->err, ENOSPC, "GET_EVENT: room for %u bytes only", c->out);
	if (ev == NULL)
		return -EAGAIN;
	memcpy(c->reply->bytes, &ev->resp, sizeof(ev->resp));
	c->reply->length = sizeof(ev->resp);
	ev->id->events_fetched++;
	event_free(ev);
	return 0;
}
