/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "echo": sends every message back, with its immediate data if it has any; messages have at
 * most size bytes. As a client it sends count messages of size bytes, at most depth outstanding,
 * and expects each back. It works with librdmacm's rdma_server (size 16, count 1) and rdma_client.
 *
 * Buffers of a place: a client has depth for receives and depth for sends; a server has twice
 * depth, because the next message may arrive before the completion of the last reply is polled.
 */

#include "svc/kinds.h"

/* A client's message counts. Message n is sent from buffer n % depth. */
struct echo_conn {
	uint64_t sent;
	uint64_t completed; /* sends completed, their buffers are free */
	uint64_t received;
};

static uint32_t
receives(const struct svc_config *c)
{
	return c->active ? c->depth : 2 * c->depth;
}

static int
echo_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	uint32_t queue = receives(c);

	svc_queues(s, queue, queue);
	return svc_buffers(s, 2 * (uint64_t)c->depth * c->size, MEM_ACCESS_LOCAL_WRITE, err);
}

static int
echo_prepare(struct svc_conn *c)
{
	return svc_recv_ring(c, receives(svc_config(svc_conn_service(c))));
}

/* --- server --- */

static void
echo_send_back(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct svc_region r = svc_conn_buffer(c);
	uint32_t i = (uint32_t)wc->wr_id;
	struct sge sge = {
		.addr = r.va + (uint64_t)i * config->size,
		.length = wc->byte_len,
		.lkey = r.lkey,
	};
	struct send_wr wr = {
		.wr_id = i,
		.opcode = wc->wc_flags & WC_WITH_IMM ? WR_SEND_WITH_IMM : WR_SEND,
		.imm_data = wc->imm_data,
		.num_sge = wc->byte_len != 0,
		.sg_list = &sge,
	};

	if (wc->opcode == WC_RECV)
		svc_post_send(c, &wr);
	else /* the reply is sent: reuse the buffer for a receive */
		svc_recv(c, i, &r, (uint64_t)i * config->size, config->size);
}

/* --- client --- */

static void
echo_send_more(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct echo_conn *e = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint64_t settled = e->received < e->completed ? e->received : e->completed, at;

	while (e->sent - settled < config->depth &&
		(config->count == 0 || e->sent < config->count)) {
		at = (config->depth + e->sent % config->depth) * config->size;
		svc_fill(r.bytes + at, config->size, e->sent);
		if (svc_send(c, 0, &r, at, config->size) != 0)
			return;
		e->sent++;
	}
}

static void
echo_received_back(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct echo_conn *e = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint64_t at = (uint64_t)(uint32_t)wc->wr_id * config->size;

	if (config->verify &&
		(wc->byte_len != config->size ||
			!svc_filled(r.bytes + at, config->size, e->received)))
		svc_count(svc_conn_counters(c), mismatches, 1);
	e->received++;
	svc_count(svc_conn_counters(c), exchanges, 1);
	svc_recv(c, (uint32_t)wc->wr_id, &r, at, config->size);
}

static void
echo_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	(void)private_data;
	(void)len;
	if (svc_conn_active(c))
		echo_send_more(c);
}

static void
echo_completion(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct echo_conn *e = svc_conn_priv(c);

	if (!svc_conn_active(c)) {
		echo_send_back(c, wc);
		return;
	}
	if (wc->opcode == WC_RECV)
		echo_received_back(c, wc);
	else
		e->completed++;
	/* the last answer can overtake the ACK of the message, which counts it as sent */
	if (e->received == config->count && e->completed == config->count)
		svc_disconnect(c);
	else
		echo_send_more(c);
}

const struct svc_ops svc_echo = {
	.name = "echo",
	.help = "every message comes back; as client: sends messages and expects them back",
	.client = true,
	.server = true,
	.defaults = { .size = 4096, .depth = 8, .max_connections = 256 },
	.conn_size = sizeof(struct echo_conn),
	.open = echo_open,
	.prepare = echo_prepare,
	.established = echo_established,
	.completion = echo_completion,
};
