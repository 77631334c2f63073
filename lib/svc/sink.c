/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "sink": receives messages of at most size bytes, with depth receives posted, and counts
 * them. As a client it sends count messages of size bytes.
 */

#include "svc/kinds.h"

struct sink_conn {
	uint64_t sent;
	uint64_t completed;
};

static int
sink_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);

	if (c->active)
		svc_queues(s, c->depth, 1);
	else
		svc_queues(s, 1, c->depth);
	return svc_buffers(s, (uint64_t)c->depth * c->size, MEM_ACCESS_LOCAL_WRITE, err);
}

static int
sink_prepare(struct svc_conn *c)
{
	return svc_conn_active(c) ? 0 : svc_recv_ring(c, svc_config(svc_conn_service(c))->depth);
}

static void
sink_send_more(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct sink_conn *k = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint64_t at;

	while (k->sent - k->completed < config->depth &&
		(config->count == 0 || k->sent < config->count)) {
		at = k->sent % config->depth * config->size;
		svc_fill(r.bytes + at, config->size, k->sent);
		if (svc_send(c, 0, &r, at, config->size) != 0)
			return;
		k->sent++;
	}
}

static void
sink_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	(void)private_data;
	(void)len;
	if (svc_conn_active(c))
		sink_send_more(c);
}

static void
sink_completion(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct sink_conn *k = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint32_t i = (uint32_t)wc->wr_id;

	if (wc->opcode == WC_RECV) {
		svc_recv(c, i, &r, (uint64_t)i * config->size, config->size);
		return;
	}
	svc_count(svc_conn_counters(c), exchanges, 1);
	if (++k->completed == config->count)
		svc_disconnect(c);
	else
		sink_send_more(c);
}

const struct svc_ops svc_sink = {
	.name = "sink",
	.help = "receives messages and counts them; as client: sends them",
	.client = true,
	.server = true,
	.defaults = { .size = 4096, .depth = 16, .max_connections = 256 },
	.conn_size = sizeof(struct sink_conn),
	.open = sink_open,
	.prepare = sink_prepare,
	.established = sink_established,
	.completion = sink_completion,
};
