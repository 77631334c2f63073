/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "rstream": librdmacm's rstream over rsockets, either side. The client sends 16 bytes and
 * gets 16 back; then, count times, depth transfers of size bytes and as many back (its -C, -I, -S).
 *
 * The server is not told the sizes: it sends as many bytes back as it received, as soon as there is
 * room. Their contents are what rstream's -T v expects: they count on from the client's first byte.
 */

#include <errno.h>

#include "svc/rsocket.h"

#define SYNC 16

struct rstream {
	struct rsocket_service rs; /* first */
	struct svc_region pattern;
};

struct rstream_conn {
	struct rsocket r; /* first */
	uint64_t owed; /* bytes to send */
	uint8_t pattern; /* next byte */
	bool begun;

	/* client */
	uint64_t awaited; /* bytes still to receive */
	uint64_t rounds; /* done, without the first 16 bytes */
	uint8_t next; /* byte expected */
	bool wrong; /* a wrong byte was received in this round */
};

/* --- service --- */

static void rstream_begin(struct svc_conn *c);
static void rstream_data(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
static void rstream_pump(struct svc_conn *c);

static int
rstream_open(struct svc *s, struct error *err)
{
	struct rstream *t;
	int ret;

	ret = svc_check("length", svc_config(s)->length, 2, 1u << 30, err);
	if (ret != 0)
		return ret;
	t = svc_make_state(s, sizeof(*t), err);
	if (t == NULL)
		return -ENOMEM;
	t->rs.begin = rstream_begin;
	t->rs.data = rstream_data;
	t->rs.pump = rstream_pump;
	ret = rsocket_open(s, svc_config(s)->length / 2, err);
	return ret != 0 ? ret : rsocket_pattern(s, &t->pattern, err);
}

/* --- both sides --- */

static void
rstream_pump(struct svc_conn *c)
{
	struct rstream_conn *r = svc_conn_priv(c);
	const struct rstream *t = svc_state(svc_conn_service(c));
	uint32_t sent;

	while (r->owed != 0) {
		sent = rsocket_send(c, &t->pattern, r->pattern, r->owed);
		if (sent == 0)
			return;
		r->owed -= sent;
		r->pattern = (uint8_t)(r->pattern + sent);
	}
}

/* --- client --- */

static void
rstream_begin_round(struct rstream_conn *r, uint64_t bytes)
{
	r->owed = bytes;
	r->awaited = bytes;
	r->wrong = false;
}

static void
rstream_check(struct rstream_conn *r, const uint8_t *bytes, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++) {
		if (bytes[i] != r->next++)
			r->wrong = true;
	}
}

/* All bytes of the round have come back. */
static void
round_done(struct svc_conn *c)
{
	struct rstream_conn *r = svc_conn_priv(c);
	const struct svc_config *config = svc_config(svc_conn_service(c));

	if (r->wrong)
		svc_count(svc_conn_counters(c), mismatches, 1);
	if (r->begun) {
		r->rounds++;
		svc_count(svc_conn_counters(c), exchanges, 1);
	}
	r->begun = true;
	if (r->rounds < config->count)
		rstream_begin_round(r, (uint64_t)config->size * config->depth);
	else
		rsocket_leave(c);
}

static void
come_back(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rstream_conn *r = svc_conn_priv(c);

	if (length > r->awaited) {
		svc_violation(c);
		return;
	}
	if (svc_config(svc_conn_service(c))->verify)
		rstream_check(r, bytes, length);
	r->awaited -= length;
	if (r->awaited == 0 && r->owed == 0)
		round_done(c);
}

static void
rstream_begin(struct svc_conn *c)
{
	rstream_begin_round(svc_conn_priv(c), SYNC);
}

/* --- received data --- */

static void
rstream_data(struct svc_conn *c, const uint8_t *bytes, uint32_t length)
{
	struct rstream_conn *r = svc_conn_priv(c);

	if (svc_conn_active(c)) {
		come_back(c, bytes, length);
		return;
	}
	if (!r->begun)
		r->pattern = bytes[0];
	r->begun = true;
	r->owed += length;
}

const struct svc_ops svc_rstream = {
	.name = "rstream",
	.help = "librdmacm's rstream, over rsockets: a stream there, as many bytes back",
	.client = true,
	.server = true,
	.defaults = {
		.length = 1 << 20,
		.size = 1000,
		.depth = 1000,
		.count = 1,
		.max_connections = 16,
	},
	.conn_size = sizeof(struct rstream_conn),
	.open = rstream_open,
	.close = rsocket_close,
	.shape = rsocket_shape,
	.request = rsocket_request,
	.prepare = rsocket_prepare,
	.established = rsocket_established,
	.completion = rsocket_completion,
};
