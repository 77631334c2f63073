/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class 0x34 (liveness 2): echo, timestamp, LID/GUID. The answer is the request's data with another
 * Type and what the type fills in; of one packet as it stands, of many packets as a stream out of
 * the request's own memory.
 */

#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "live/private.h"

/* --- what the types fill in; data begins with Type --- */

static void
fill_echo(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	(void)l;
	(void)req;
	(void)data;
}

/* The request may have come in many packets: it arrived with its first. Transmit: live_departs(). */
static void
fill_timestamp(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	put_be32(data + AT(LIVE_OFF_RECEIVE), live_stamp(l, req->arrived));
}

static uint64_t
guid_of(const struct port_attr *port)
{
	return port->guid != 0 ? port->guid : port_eui64(port->mac);
}

static void
fill_lidguid(const struct live *l, const struct mad_request *req, uint8_t *data)
{
	const struct port_attr *port = l->config.port(l->config.port_arg, req->peer->av.port);

	put_be16(data + AT(LIVE_OFF_LID), port != NULL && port->ib ? port->lid : 0);
	put_be64(data + AT(LIVE_OFF_GUID), port != NULL ? guid_of(port) : 0);
}

/* A request type, or a response type: nobody here waits for those. */
struct type_row {
	void (*fill)(const struct live *l, const struct mad_request *req, uint8_t *data);
	size_t counter; /* in struct live_counters */
	uint32_t len; /* the answer has these bytes at least */
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
fill(struct live *l, const struct mad_request *req, const struct type_row *t, uint8_t *data)
{
	data[AT(LIVE_OFF_TYPE)]++; /* the response follows the request */
	memset(data + AT(LIVE_OFF_TYPE) + 1, 0, 3);
	t->fill(l, req, data);
}

static void
count(struct live *l, const struct type_row *t, uint64_t bytes)
{
	uint64_t *c = (uint64_t *)((char *)&l->counters + t->counter);

	__atomic_store_n(c, *c + 1, __ATOMIC_RELAXED);
	if (c == &l->counters.echo)
		live_count(l, echo_bytes, bytes);
}

/* --- many packets --- */

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
}

static enum mad_outcome
refuse(struct live *l, struct mad_request *req, uint16_t status)
{
	live_count(l, refused, 1);
	return live_status(req, status);
}

static enum mad_outcome
answer_stream(struct live *l, struct mad_request *req, const struct type_row *t)
{
	uint64_t len = mad_body_length(req->body);
	struct live_stream *s = l->streams_free;

	if (len < LIVE_HEADER || len - LIVE_HEADER > l->config.limits.max_echo)
		return refuse(l, req, MAD_STATUS_INVALID_FIELD);
	if (s == NULL)
		return refuse(l, req, MAD_STATUS_BUSY);
	l->streams_free = s->next_free;
	memset(s->head, 0, sizeof(s->head));
	mad_body_read(req->body, 0, s->head, RTE_MIN(len, sizeof(s->head)));
	fill(l, req, t, s->head);
	s->body = req->body;
	req->take_body = true;
	req->source = (struct mad_source){
		.arg = s,
		.length = RTE_MAX(len, t->len),
		.read = stream_read,
		.release = stream_release,
	};
	count(l, t, len - LIVE_HEADER);
	return MAD_STREAM;
}

/* --- the answer departs --- */

void
live_departs(void *arg, uint8_t *mad, uint64_t now)
{
	const struct live *l = arg;

	/* an answer with a status and one of ClassPortInfo have other bytes there */
	if (mad[LIVE_OFF_TYPE] == LIVE_TIMESTAMP_RESPONSE)
		put_be32(mad + LIVE_OFF_TRANSMIT, live_stamp(l, now));
}

/* --- requests --- */

static const struct type_row *
type_of(const struct mad_request *req)
{
	uint8_t type = req->mad[LIVE_OFF_TYPE];

	if (type >= RTE_DIM(types) || (types[type].fill == NULL && !types[type].response))
		return NULL;
	return &types[type];
}

enum mad_outcome
live_echo_request(struct live *l, struct mad_request *req)
{
	const struct type_row *t = type_of(req);
	uint8_t *data = req->reply + VENDOR_OFF_DATA;

	if (t == NULL) {
		live_count(l, unknown_type, 1);
		return live_status(req, MAD_STATUS_BAD_METHOD_ATTR);
	}
	if (t->response) /* never answered: no reply may start a loop */
		return live_silent(req, VERDICT_MAD_UNMATCHED);
	if (req->body != NULL)
		return answer_stream(l, req, t);
	memcpy(data, req->mad + VENDOR_OFF_DATA, VENDOR_AREA);
	fill(l, req, t, data);
	count(l, t, LIVE_AREA);
	return MAD_ANSWER;
}
