/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * perftest: one server for ib_send_bw, ib_send_lat, ib_write_bw, ib_write_lat, ib_read_bw,
 * ib_read_lat, ib_atomic_bw and ib_atomic_lat. It offers memory for Writes, Reads and Atomics,
 * posts receives for Sends, answers each Send of a client that waits for an answer
 * (perftest_send.h), and exchanges Writes with a client that waits for the first one
 * (perftest_write.h). The parameter size is the size of ib_write_lat's Writes if they are larger
 * than 4096 bytes (-s).
 *
 * With -R a client's first connection carries the exchange and the others carry traffic; the first
 * message tells which. Without -R the exchange uses TCP, and all QPs here carry traffic.
 */

#include <errno.h>
#include <string.h>

#include "svc/kinds.h"
#include "svc/perftest.h"
#include "svc/perftest_exchange.h"
#include "svc/perftest_send.h"
#include "svc/perftest_target.h"
#include "svc/perftest_write.h"

#define SENDS       16
#define DEPTH       512 /* perftest's own */
#define LENGTH      (8u << 20) /* -a goes up to 8 MiB */
#define CONNECTIONS 16
#define TARGET_AT   4096 /* offset of the memory for clients, after the exchange's messages */
#define PATIENCE_HZ 5000 /* 200 us */
#define RD_ATOMIC   16

enum role {
	ROLE_NEW,
	ROLE_EXCHANGE,
	ROLE_TRAFFIC,
};

struct perftest_conn {
	enum role role;
	bool direct; /* without the CM */
	struct perftest_exchange exchange;
	struct perftest_send send;
	struct perftest_write write;
	struct perftest_target target; /* destination of our Writes */
	uint64_t sends; /* received */
	uint32_t send_length; /* of the last one */
	/* of the CM's request */
	union gid gid, peer_gid;
	uint32_t peer_qpn;
};

/*
 * Each connection's memory has an R_Key of its own, so that a client cannot write to another's. A
 * type 1 window: with -R the traffic of other connections goes to that of the exchange.
 */
struct perftest_state {
	struct svc_windows windows;
	struct perftest_targets targets[]; /* by place */
};

/* --- memory --- */

static int
perftest_open(struct svc *s, struct error *err)
{
	const struct svc_config *c = svc_config(s);
	struct perftest_state *state;
	int ret;

	ret = svc_check("length", c->length, PERFTEST_WRITE_FIRST, UINT32_MAX, err);
	if (ret == 0)
		ret = svc_check("size", c->size, 0, c->length, err);
	if (ret != 0)
		return ret;
	state = svc_make_state(s, sizeof(*state) + c->max_connections * sizeof(state->targets[0]),
		err);
	if (state == NULL)
		return -ENOMEM;
	svc_queues(s, SENDS, c->depth);
	ret = svc_buffers(s, TARGET_AT + c->length, MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_MW_BIND,
		err);
	return ret != 0 ? ret : svc_windows_make(s, &state->windows, MEM_MW_TYPE_1, err);
}

static int
perftest_close(struct svc *s)
{
	struct perftest_state *state = svc_state(s);

	return state != NULL ? svc_windows_free(s, &state->windows) : 0;
}

static struct perftest_state *
perftest_state(struct svc_conn *c)
{
	return svc_state(svc_conn_service(c));
}

static struct perftest_targets *
targets_of(struct svc_conn *c)
{
	return &perftest_state(c)->targets[svc_conn_place(c)];
}

static int
perftest_post_receive(struct svc_conn *c)
{
	struct svc_region r = svc_conn_buffer(c);

	return svc_recv(c, 0, &r, 0, (uint32_t)r.length);
}

/* Describe our QP and its memory for the peer. */
static void
say_ours(struct svc_conn *c, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	struct svc_region r = svc_conn_buffer(c);

	ours->out_reads = theirs->out_reads < RD_ATOMIC ? theirs->out_reads : RD_ATOMIC;
	ours->qpn = svc_conn_qpn(c);
	ours->rkey = perftest_state(c)->windows.keys[svc_conn_place(c)];
	ours->va = r.va + TARGET_AT;
}

/* --- connections --- */

static void
perftest_shape(struct svc_conn *c, struct cm_conn_param *param)
{
	(void)c;
	param->access = MEM_ACCESS_REMOTE;
	param->responder_resources = RD_ATOMIC;
	param->initiator_depth = RD_ATOMIC;
}

static int
exchange_dest(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	struct svc_conn *c = arg;
	struct perftest_conn *p = svc_conn_priv(c);
	struct perftest_dest known = *theirs;

	say_ours(c, theirs, ours);
	ours->gid = p->gid;
	/*
	 * Security: take the GID of the connection, not of the message, so that a client can
	 * describe only its own QPs
	 */
	known.gid = p->peer_gid;
	/* the client's first message has QPN 0, because its QP does not exist yet */
	return theirs->qpn == 0 || perftest_target_note(targets_of(c), &known) ? 0 : -ENOSPC;
}

static uint16_t
perftest_request(struct svc_conn *c, const struct cm_request *req, struct cm_conn_param *param)
{
	struct perftest_conn *p = svc_conn_priv(c);

	(void)param;
	p->gid = req->path.av.sgid;
	p->peer_gid = req->path.av.dgid;
	p->peer_qpn = req->remote_qpn;
	p->exchange = (struct perftest_exchange){
		.mtu = req->path.mtu,
		.dest = exchange_dest,
		.arg = c,
	};
	return 0;
}

static int
perftest_prepare(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	uint32_t i;
	int ret = svc_window_bind(&perftest_state(c)->windows, c, TARGET_AT, config->length,
		MEM_ACCESS_REMOTE);

	perftest_targets_clear(targets_of(c));
	for (i = 0; i < config->depth && ret == 0; i++)
		ret = perftest_post_receive(c);
	return ret;
}

static void
perftest_ended(struct svc_conn *c, const struct cm_info *info)
{
	(void)info;
	perftest_targets_clear(targets_of(c));
}

void
perftest_direct(struct svc_conn *c, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	struct perftest_conn *p = svc_conn_priv(c);

	say_ours(c, theirs, ours);
	p->role = ROLE_TRAFFIC;
	p->direct = true;
	p->target = (struct perftest_target){ *theirs, 1 };
}

void
perftest_direct_again(struct svc_conn *c)
{
	struct perftest_conn *p = svc_conn_priv(c);

	p->target.told++;
}

/* --- the exchange over a connection --- */

static void
answer_exchange(struct svc_conn *c, const uint8_t *message, uint32_t len)
{
	struct perftest_conn *p = svc_conn_priv(c);
	uint8_t answer[PERFTEST_MESSAGE_MAX];
	struct send_wr wr = {
		.opcode = WR_SEND,
		.send_flags = SEND_INLINE,
		.inline_data = answer,
	};
	int n = perftest_answer(&p->exchange, message, len, answer);

	if (n < 0) {
		svc_violation(c);
		return;
	}
	wr.inline_len = (uint32_t)n;
	svc_post_send(c, &wr);
}

/* A message on a connection that is not known to carry traffic. */
static void
perftest_hear(struct svc_conn *c, uint32_t len)
{
	struct perftest_conn *p = svc_conn_priv(c);
	uint8_t message[PERFTEST_MESSAGE_MAX];

	/* copy it before checking it, because the peer can still write to the buffer */
	memcpy(message, svc_conn_buffer(c).bytes, len < sizeof(message) ? len : sizeof(message));
	if (p->role == ROLE_NEW)
		p->role = perftest_is_version(message, len) ? ROLE_EXCHANGE : ROLE_TRAFFIC;
	if (p->role == ROLE_TRAFFIC)
		return;
	if (len <= sizeof(message))
		answer_exchange(c, message, len);
	else
		svc_violation(c);
}

static void
perftest_received(struct svc_conn *c, uint32_t len)
{
	struct perftest_conn *p = svc_conn_priv(c);

	if (p->role != ROLE_TRAFFIC)
		perftest_hear(c, len);
	perftest_post_receive(c);
	if (p->role != ROLE_TRAFFIC)
		return;
	p->sends++;
	p->send_length = len;
	if (p->send.mode != PERFTEST_BANDWIDTH)
		svc_want_turn(c);
}

static void
perftest_completion(struct svc_conn *c, const struct wc *wc)
{
	struct perftest_conn *p = svc_conn_priv(c);

	if (wc->opcode == WC_RECV || wc->opcode == WC_RECV_RDMA_WITH_IMM)
		perftest_received(c, wc->byte_len);
	else
		p->send.acknowledged++;
}

/* --- traffic --- */

/* With -R, look up what the client has described on the connection of the exchange so far. */
static void
look_up_target(struct svc_conn *c)
{
	struct perftest_conn *p = svc_conn_priv(c);
	struct svc *s = svc_conn_service(c);

	if (!p->direct)
		perftest_target_find(perftest_state(c)->targets, svc_config(s)->max_connections,
			&p->peer_gid, p->peer_qpn, &p->target);
}

/* Write length bytes of our memory to the client's memory. */
static void
write_to(struct svc_conn *c, uint64_t length)
{
	struct perftest_conn *p = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	struct sge sge = { .addr = r.va + TARGET_AT, .length = (uint32_t)length, .lkey = r.lkey };
	struct send_wr wr = {
		.opcode = WR_RDMA_WRITE,
		.num_sge = 1,
		.sg_list = &sge,
		.remote_addr = p->target.theirs.va,
		.rkey = p->target.theirs.rkey,
	};

	svc_post_send(c, &wr);
}

static void
write_byte(struct svc_conn *c, uint64_t at)
{
	static const uint8_t one = 1;
	struct perftest_conn *p = svc_conn_priv(c);
	struct send_wr wr = {
		.opcode = WR_RDMA_WRITE,
		.send_flags = SEND_INLINE,
		.inline_data = &one,
		.inline_len = 1,
		.remote_addr = p->target.theirs.va + at,
		.rkey = p->target.theirs.rkey,
	};

	svc_post_send(c, &wr);
}

/*
 * True for a client of ib_write_lat: only it describes its QP so often before the first message,
 * with memory and without a depth for Reads. ib_read_lat and ib_atomic_lat give a depth; with -o 1
 * they cannot be told apart.
 */
static bool
waits_for_write(const struct perftest_target *t)
{
	return t->told >= PERFTEST_WRITE_TOLD && t->theirs.rkey != 0 && t->theirs.out_reads <= 1;
}

static void
begin_writing(struct svc_conn *c)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct perftest_conn *p = svc_conn_priv(c);
	uint64_t length = PERFTEST_WRITE_FIRST;

	look_up_target(c);
	if (!waits_for_write(&p->target))
		return;
	if (config->size > length)
		length = config->size;
	p->write.begun = true;
	memset(svc_conn_buffer(c).bytes + TARGET_AT, 1, length);
	write_to(c, length);
}

static void
answer_write(struct svc_conn *c, const struct rc_qp_received *in)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct perftest_conn *p = svc_conn_priv(c);
	struct perftest_write_answer a;
	uint64_t size;

	if (!perftest_write_answers(&p->write, in->writes, in->bytes, in->partial, &a) ||
		a.length > config->length)
		return;
	for (size = PERFTEST_WRITE_BEYOND; a.prepare && size <= PERFTEST_WRITE_LARGEST; size *= 2)
		write_byte(c, size - 1);
	svc_conn_buffer(c).bytes[TARGET_AT + a.length - 1] = a.last;
	write_to(c, a.length);
}

static void
answer_send(struct svc_conn *c, const struct rc_qp_received *in)
{
	struct perftest_conn *p = svc_conn_priv(c);
	struct svc_region r = svc_conn_buffer(c);
	uint64_t patience = svc_env(svc_conn_service(c))->hz / PATIENCE_HZ;

	if (perftest_send_answers(&p->send, p->sends, in->partial, svc_conn_now(c), patience))
		svc_send(c, 0, &r, 0, p->send_length);
}

/*
 * True if the service must poll in the next turn: Writes raise no completion, and the wait after
 * the first Send ends by time. Later Sends request a turn by their completions.
 */
static bool
must_look(const struct perftest_conn *p, const struct rc_qp_received *in)
{
	if (p->write.begun)
		return true;
	return p->sends != 0 ? p->send.mode == PERFTEST_LEARNING : in->requests == 0;
}

static bool
perftest_turn(struct svc_conn *c)
{
	struct perftest_conn *p = svc_conn_priv(c);
	struct rc_qp_received in;

	if (p->role == ROLE_EXCHANGE || p->send.mode == PERFTEST_BANDWIDTH)
		return false;
	if (svc_conn_received(c, &in) != 0)
		return true;
	if (p->write.begun)
		answer_write(c, &in);
	else if (p->sends != 0)
		answer_send(c, &in);
	else if (in.requests == 0)
		begin_writing(c);
	return must_look(p, &in);
}

const struct svc_ops svc_perftest = {
	.name = "perftest",
	.help = "server for ib_send_bw, ib_write_lat and other perftest programs; without -R on tcp_port",
	.server = true,
	.defaults = { .length = LENGTH, .depth = DEPTH, .max_connections = CONNECTIONS },
	.conn_size = sizeof(struct perftest_conn),
	.open = perftest_open,
	.close = perftest_close,
	.shape = perftest_shape,
	.request = perftest_request,
	.prepare = perftest_prepare,
	.completion = perftest_completion,
	.turn = perftest_turn,
	.ended = perftest_ended,
};
