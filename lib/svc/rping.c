/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Kind "rping": librdmacm's ping-pong, both sides. One exchange:
 *
 *   client  Send: address, R_Key and length of its source buffer (struct in rping_info())
 *   server  RDMA Read of that buffer, Send "go ahead" (16 bytes of any content)
 *   client  Send: address, R_Key and length of its sink buffer
 *   server  RDMA Write of what it read, Send "go ahead"
 *
 * The client compares sink and source (verify), ends after count exchanges, and disconnects. Ping
 * data is "rdma-ping-%d: " and a run of characters from 'A' to 'z', a step further in each ping,
 * ended by a zero. One Read or Write at a time; receives of 16 bytes, one at a time.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "svc/kinds.h"
#include "wire/bytes.h"

#define INFO_LENGTH 16
#define SENDS       16
#define PING_MIN    32 /* "rdma-ping-", the largest number, ": ", a zero */
#define PING_MAX    65535 /* rping's own limit */

enum rping_step {
	RPING_READ_ADV, /* server waits for the source's address; client for its go-ahead */
	RPING_READ, /* server waits for its Read */
	RPING_WRITE_ADV, /* server waits for the sink's address */
	RPING_WRITE, /* server waits for its Write; client for its go-ahead */
};

/* The place's buffer: the received message, then the ping (server) or source and sink (client). */
#define AT_MESSAGE 0
#define AT_SOURCE  64
static uint64_t
at_sink(const struct svc_config *config)
{
	return AT_SOURCE + (((uint64_t)config->size + 63) & ~63ull);
}

struct rping_conn {
	enum rping_step step;
	uint64_t pings; /* client: exchanges done */
	uint32_t length; /* server: of the ping */
};

static void
rping_adjust(struct svc_config *c)
{
	if (c->size == 0)
		c->size = c->active ? 64 : PING_MAX;
}

static int
rping_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	uint32_t access = MEM_ACCESS_LOCAL_WRITE;
	int ret;

	ret = svc_check("size", c->size, PING_MIN, PING_MAX, err);
	if (ret != 0)
		return ret;
	if (c->active)
		access |= MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_WRITE;
	/* room for more sends than one: like rping, do not wait for the completion of a Send */
	svc_queues(s, SENDS, 1);
	return svc_buffers(s, at_sink(c) + c->size, access, err);
}

static void
rping_shape(struct svc_conn *c, struct cm_conn_param *param)
{
	/* as rping does */
	param->responder_resources = 1;
	param->initiator_depth = 1;
	if (svc_conn_active(c))
		param->access = MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_WRITE;
}

static int
rping_post_receive(struct svc_conn *c)
{
	struct svc_region r = svc_conn_buffer(c);

	return svc_recv(c, 0, &r, AT_MESSAGE, INFO_LENGTH);
}

static void
rping_post(struct svc_conn *c, const struct send_wr *wr)
{
	if (svc_post_send(c, wr) == -ENOBUFS)
		svc_disconnect(c);
}

static void
rping_send_message(struct svc_conn *c, const uint8_t *message)
{
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_INLINE,
		.inline_data = message,
		.inline_len = INFO_LENGTH,
	};

	rping_post(c, &wr);
}

/* --- server --- */

static void
go_ahead(struct svc_conn *c)
{
	static const uint8_t zeros[INFO_LENGTH];

	rping_send_message(c, zeros);
}

static void
rping_post_rdma(struct svc_conn *c, enum wr_opcode opcode, const uint8_t *info, uint32_t length)
{
	struct svc_region r = svc_conn_buffer(c);
	struct sge sge = { .addr = r.va + AT_SOURCE, .length = length, .lkey = r.lkey };
	struct send_wr wr = {
		.opcode = opcode,
		.num_sge = length != 0,
		.sg_list = &sge,
		.remote_addr = get_be64(info),
		.rkey = get_be32(info + 8),
	};

	rping_post(c, &wr);
}

/* rping_rdma_info: address (64), R_Key (32), length (32) */
static void
server_message(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct rping_conn *p = svc_conn_priv(c);
	uint8_t info[INFO_LENGTH];
	uint32_t length;

	memcpy(info, svc_conn_buffer(c).bytes + AT_MESSAGE, sizeof(info));
	length = get_be32(info + 12);
	if (wc->byte_len != INFO_LENGTH || length > config->size ||
		(p->step != RPING_READ_ADV && p->step != RPING_WRITE_ADV)) {
		svc_violation(c);
		return;
	}
	rping_post_receive(c);
	if (p->step == RPING_READ_ADV) {
		p->step = RPING_READ;
		p->length = length;
		rping_post_rdma(c, WR_RDMA_READ, info, length);
	} else {
		p->step = RPING_WRITE;
		rping_post_rdma(c, WR_RDMA_WRITE, info, length < p->length ? length : p->length);
	}
}

static void
server_completion(struct svc_conn *c, const struct wc *wc)
{
	struct rping_conn *p = svc_conn_priv(c);

	switch (wc->opcode) {
	case WC_RECV:
		server_message(c, wc);
		break;
	case WC_RDMA_READ:
		p->step = RPING_WRITE_ADV;
		go_ahead(c);
		break;
	case WC_RDMA_WRITE:
		p->step = RPING_READ_ADV;
		svc_count(svc_conn_counters(c), exchanges, 1);
		go_ahead(c);
		break;
	default:
		break;
	}
}

/* --- client --- */

static void
rping_send_address(struct svc_conn *c, uint64_t at)
{
	struct svc_region r = svc_conn_buffer(c);
	uint8_t info[INFO_LENGTH];

	put_be64(info, r.va + at);
	put_be32(info + 8, r.rkey);
	put_be32(info + 12, svc_config(svc_conn_service(c))->size);
	rping_send_message(c, info);
}

static void
make_ping(uint8_t *source, uint32_t size, uint64_t ping)
{
	const unsigned int first = 'A', letters = 'z' - 'A' + 1;
	uint32_t i;
	unsigned int k = ping % letters;

	i = (uint32_t)snprintf((char *)source, size, "rdma-ping-%d: ", (int)(ping & INT32_MAX));
	for (; i < size - 1; i++) {
		source[i] = (uint8_t)(first + k);
		k = (k + 1) % letters;
	}
	source[size - 1] = 0;
}

static void
begin_ping(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct rping_conn *p = svc_conn_priv(c);

	make_ping(svc_conn_buffer(c).bytes + AT_SOURCE, config->size, p->pings);
	p->step = RPING_READ_ADV;
	rping_send_address(c, AT_SOURCE);
}

static void
end_ping(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	const uint8_t *bytes = svc_conn_buffer(c).bytes;
	struct rping_conn *p = svc_conn_priv(c);

	if (config->verify &&
		memcmp(bytes + AT_SOURCE, bytes + at_sink(config), config->size) != 0) {
		svc_count(svc_conn_counters(c), mismatches, 1);
		svc_disconnect(c);
		return;
	}
	svc_count(svc_conn_counters(c), exchanges, 1);
	if (++p->pings == config->count)
		svc_disconnect(c);
	else
		begin_ping(c);
}

static void
client_completion(struct svc_conn *c, const struct wc *wc)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct rping_conn *p = svc_conn_priv(c);

	if (wc->opcode != WC_RECV)
		return;
	if (wc->byte_len != INFO_LENGTH) {
		svc_violation(c);
		return;
	}
	rping_post_receive(c);
	if (p->step == RPING_READ_ADV) {
		p->step = RPING_WRITE;
		rping_send_address(c, at_sink(config));
	} else {
		end_ping(c);
	}
}

/* --- both --- */

static void
rping_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len)
{
	(void)private_data;
	(void)len;
	if (svc_conn_active(c))
		begin_ping(c);
}

static void
rping_completion(struct svc_conn *c, const struct wc *wc)
{
	if (svc_conn_active(c))
		client_completion(c, wc);
	else
		server_completion(c, wc);
}

const struct svc_ops svc_rping = {
	.name = "rping",
	.help = "the ping-pong of librdmacm's rping; as client: drives it",
	.client = true,
	.server = true,
	.defaults = { .max_connections = 64 },
	.conn_size = sizeof(struct rping_conn),
	.adjust = rping_adjust,
	.open = rping_open,
	.shape = rping_shape,
	.prepare = rping_post_receive,
	.established = rping_established,
	.completion = rping_completion,
};
