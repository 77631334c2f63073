/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class 0x34 (liveness 2): echo, timestamp, LID/GUID. The answer is the request's data with the
 * response Type and the fields of that type filled in. A multi-packet answer is streamed from the
 * request's own body.
 */

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "live/private.h"

/* --- the fields of each type; data begins with Type --- */

static void
fill_echo(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	(void)l;
	(void)req;
	(void)data;
}

/* Receive is the arrival of the request's first packet. live_departs() writes Transmit. */
static void
fill_timestamp(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	put_be32(data + AT(LIVE_OFF_RECEIVE), live_stamp(l, req->arrived));
}

static uint64_t
echo_port_guid(const struct port_attr *port)
{
	return port->guid != 0 ? port->guid : port_eui64(port->mac);
}

static void
fill_lidguid(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	const struct port_attr *port = l->config.port(l->config.port_arg, req->peer->av.port);

	put_be16(data + AT(LIVE_OFF_LID), port != NULL && port->ib ? port->lid : 0);
	put_be64(data + AT(LIVE_OFF_GUID), port != NULL ? echo_port_guid(port) : 0);
}

/* A request type, or a response type, which is never answered. */
struct type_row {
	void (*fill)(const struct live *l, const struct mad_request *req, uint8_t *data);
	size_t counter; /* in struct live_counters */
	uint32_t len; /* minimum length of the answer */
	bool response;
};

static const struct type_row types[] = {
	[LIVE_ECHO_REQUEST] = { fill_echo, offsetof(struct live_counters, echo), LIVE_HEADER },
	[LIVE_ECHO_RESPONSE] = { .response = true },
	[LIVE_TIMESTAMP_REQUEST] = { fill_timestamp, offsetof(struct live_counters, timestamp),
		AT(LIVE_OFF_TRANSMIT + 4) },
	[LIVE_TIMESTAMP_RESPONSE] = { .response = true },
	[LIVE_LIDGUID_REQUEST] = { fill_lidguid, offsetof(struct live_counters, lidguid),
		AT(LIVE_OFF_GUID + 8) },
	[LIVE_LIDGUID_RESPONSE] = { .response = true },
};

static void
echo_fill(struct live *l, const struct mad_request *req, const struct type_row *t, uint8_t *data)
{
	data[AT(LIVE_OFF_TYPE)]++; /* a response type is its request type + 1 */
	memset(data + AT(LIVE_OFF_TYPE) + 1, 0, 3);
	t->fill(l, req, data);
}

static void
echo_count(struct live *l, const struct type_row *t, uint64_t bytes)
{
	uint64_t *c = (uint64_t *)((char *)&l->counters + t->counter);

	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
	if (c == &l->counters.echo)
		live_count(l, echo_bytes, bytes);
}

/* --- multi-packet echo --- */

int
live_echo_init(struct live *l)
{
	unsigned int i;

	l->streams = mem_zalloc(l->config.alloc, LIVE_STREAMS * sizeof(*l->streams), 64);
	if (l->streams == NULL)
		return -ENOMEM;
	for (i = LIVE_STREAMS; i-- > 0;) {
		l->streams[i].live = l;
		l->streams[i].next_free = l->streams_free;
		l->streams_free = &l->streams[i];
	}
	return 0;
}

static int
stream_read(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct live_stream *s = arg;
	uint32_t head = 0;

	if (offset < LIVE_STREAM_HEAD) {
		head = RTE_MIN(len, (uint32_t)(LIVE_STREAM_HEAD - offset));
		memcpy(buf, s->head + offset, head);
	}
	if (head < len)
		mad_body_read(s->body, offset + head, buf + head, len - head);
	return 0;
}

static void
stream_release(void *arg)
{
	struct live_stream *s = arg;
	struct live *l = s->live;

	mad_body_free(l->config.mad, s->body);
	s->body = NULL;
	s->next_free = l->streams_free;
	l->streams_free = s;
	live_streams_check(l);
}

static enum mad_outcome
echo_refuse(struct live *l, struct mad_request *req, uint16_t status)
{
	live_count(l, refused, 1);
	return live_status(req, status);
}

static enum mad_outcome
echo_answer_stream(struct live *l, struct mad_request *req, const struct type_row *t)
{
	uint64_t len = mad_body_length(req->body);
	struct live_stream *s = l->streams_free;

	if (len < LIVE_HEADER || len - LIVE_HEADER > l->config.limits.max_echo)
		return echo_refuse(l, req, MAD_STATUS_INVALID_FIELD);
	if (s == NULL)
		return echo_refuse(l, req, MAD_STATUS_BUSY);
	l->streams_free = s->next_free;
	memset(s->head, 0, sizeof(s->head));
	mad_body_read(req->body, 0, s->head, RTE_MIN(len, sizeof(s->head)));
	echo_fill(l, req, t, s->head);
	s->body = req->body;
	req->take_body = true;
	req->source = (struct mad_source){
		.arg = s,
		.length = RTE_MAX(len, t->len),
		.read = stream_read,
		.release = stream_release,
	};
	echo_count(l, t, len - LIVE_HEADER);
	live_streams_check(l);
	return MAD_STREAM;
}

/* --- sending --- */

void
live_departs(void *arg, uint8_t *mad, uint64_t now)
{
	const struct live *l = arg;

	/* other answers (status, ClassPortInfo) do not have this Type */
	if (mad[LIVE_OFF_TYPE] == LIVE_TIMESTAMP_RESPONSE)
		put_be32(mad + LIVE_OFF_TRANSMIT, live_stamp(l, now));
}

/* --- requests --- */

static const struct type_row *
echo_type(const struct mad_request *req)
{
	uint8_t type = req->mad[LIVE_OFF_TYPE];

	if (type >= RTE_DIM(types) || (types[type].fill == NULL && !types[type].response))
		return NULL;
	return &types[type];
}

enum mad_outcome
live_echo_request(struct live *l, struct mad_request *req)
{
	const struct type_row *t = echo_type(req);
	uint8_t *data = req->reply + VENDOR_OFF_DATA;

	if (t == NULL) {
		live_count(l, unknown_type, 1);
		return live_status(req, MAD_STATUS_BAD_METHOD_ATTR);
	}
	if (t->response) /* never answer a response: that could start a loop */
		return live_silent(req, VERDICT_MAD_UNMATCHED);
	if (req->body != NULL)
		return echo_answer_stream(l, req, t);
	memcpy(data, req->mad + VENDOR_OFF_DATA, VENDOR_AREA);
	echo_fill(l, req, t, data);
	echo_count(l, t, LIVE_AREA);
	return MAD_ANSWER;
}
