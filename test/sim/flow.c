/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdlib.h>
#include <string.h>

#include "flow.h"

static uint32_t
flow_random_length(struct sim *s, uint32_t pmtu)
{
	switch (sim_below(s, 8)) {
	case 0:
		return 0;
	case 1:
		return 1 + sim_below(s, 4);
	case 2:
		return pmtu;
	case 3:
		return pmtu + 1;
	case 4:
		return 2 * pmtu;
	case 5:
		return 1 + sim_below(s, FLOW_MSG_MAX < 5 * pmtu ? FLOW_MSG_MAX : 5 * pmtu);
	default:
		return 1 + sim_below(s, pmtu);
	}
}

/* Cut [offset, offset + len) into up to FLOW_SGES pieces, some of them empty. */
static uint32_t
split(struct sim *s, uint32_t offset, uint32_t len, uint32_t *offsets, uint32_t *lens)
{
	uint32_t n = 1 + sim_below(s, FLOW_SGES);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? len : sim_below(s, len + 1);

		offsets[i] = offset;
		lens[i] = part;
		offset += part;
		len -= part;
	}
	return n;
}

static enum wr_opcode
flow_random_kind(struct sim *s, uint32_t kinds)
{
	for (;;) {
		uint32_t k = sim_below(s, 16);

		if (kinds & KIND(k))
			return (enum wr_opcode)k;
	}
}

static void
plan_write(struct flow *f, struct flow_op *op)
{
	struct sim *s = f->conn->sim;

	if (sim_below(s, 2) && f->once_used + op->length <= 8 * FLOW_MSG_MAX) {
		op->remote = f->once + f->once_used;
		f->once_used += op->length;
	} else {
		op->remote = f->hot + sim_below(s, 2 * FLOW_MSG_MAX - op->length + 1);
	}
}

/* A Read reads constant bytes, or bytes that an earlier Write wrote and no later one changes. */
static void
plan_read(struct flow *f, struct flow_op *op)
{
	struct sim *s = f->conn->sim;

	if (f->land_used + op->length > 12 * FLOW_MSG_MAX)
		op->length = 0;
	if (sim_below(s, 2) && f->once_used >= op->length)
		op->remote = f->once + sim_below(s, f->once_used - op->length + 1);
	else
		op->remote = f->konst + sim_below(s, 2 * FLOW_MSG_MAX - op->length + 1);
	op->num_sge = split(s, f->land + f->land_used, op->length, op->sge_offset, op->sge_len);
	f->land_used += op->length;
}

static void
plan_atomic(struct flow *f, struct flow_op *op)
{
	struct sim *s = f->conn->sim;

	if (f->land_used + 8 > 12 * FLOW_MSG_MAX) {
		op->opcode = WR_RDMA_READ;
		op->length = 0;
		plan_read(f, op);
		return;
	}
	op->length = 8;
	op->word = sim_below(s, FLOW_WORDS);
	op->remote = f->words + op->word * 8;
	op->compare_add = sim_rand(s);
	op->swap = sim_rand(s);
	op->num_sge = 1;
	op->sge_offset[0] = f->land + f->land_used;
	op->sge_len[0] = 8;
	f->land_used += 8;
}

static void
plan_one(struct flow *f, struct flow_op *op, uint32_t kinds)
{
	struct sim *s = f->conn->sim;

	op->opcode = flow_random_kind(s, kinds);
	op->length = flow_random_length(s, f->conn->opt.pmtu);
	op->imm = (uint32_t)sim_rand(s);
	op->signaled = sim_below(s, 4) != 0;
	op->flags = (op->signaled ? SEND_SIGNALED : 0) | (sim_below(s, 6) ? 0 : SEND_FENCE) |
		(sim_below(s, 4) ? 0 : SEND_SOLICITED);
	op->num_sge = split(s, f->src + sim_below(s, 2 * FLOW_MSG_MAX - op->length + 1), op->length,
		op->sge_offset, op->sge_len);
	switch (op->opcode) {
	case WR_RDMA_WRITE:
	case WR_RDMA_WRITE_WITH_IMM:
		plan_write(f, op);
		break;
	case WR_RDMA_READ:
		plan_read(f, op);
		break;
	case WR_ATOMIC_CMP_AND_SWP:
	case WR_ATOMIC_FETCH_AND_ADD:
		plan_atomic(f, op);
		break;
	default:
		break;
	}
	if (op->length <= 64 && op->opcode <= WR_SEND_WITH_IMM && sim_below(s, 3) == 0)
		op->flags |= SEND_INLINE;
}

void
flow_plan(struct flow *f, unsigned int ops, uint32_t kinds)
{
	if (ops > FLOW_OPS_MAX - f->ops)
		ops = FLOW_OPS_MAX - f->ops;
	for (unsigned int i = 0; i < ops; i++)
		plan_one(f, &f->op[f->ops++], kinds);
	if (f->ops > 0) { /* the last one is signaled, so that all earlier ones complete */
		f->op[f->ops - 1].signaled = true;
		f->op[f->ops - 1].flags |= SEND_SIGNALED;
	}
}

static bool
flow_takes_recv(const struct flow_op *op)
{
	return op->opcode == WR_SEND || op->opcode == WR_SEND_WITH_IMM ||
		op->opcode == WR_SEND_WITH_INV || op->opcode == WR_RDMA_WRITE_WITH_IMM;
}

/* for each fault the op's kind and its status at the requester (rc-transport 6 and 8) */
static const struct {
	enum wr_opcode opcode;
	uint32_t status;
} faults[FAULT_COUNT] = {
	[FAULT_RKEY] = { WR_RDMA_WRITE, WC_REM_ACCESS_ERR },
	[FAULT_RANGE] = { WR_RDMA_READ, WC_REM_ACCESS_ERR },
	[FAULT_RIGHTS] = { WR_RDMA_WRITE_WITH_IMM, WC_REM_ACCESS_ERR },
	[FAULT_UNALIGNED] = { WR_ATOMIC_FETCH_AND_ADD, WC_REM_INV_REQ_ERR },
	[FAULT_LKEY] = { WR_SEND, WC_LOC_PROT_ERR },
	[FAULT_LANDING] = { WR_RDMA_READ, WC_LOC_PROT_ERR },
	[FAULT_TOO_LONG] = { WR_SEND, WC_REM_INV_REQ_ERR },
	[FAULT_RECV_LKEY] = { WR_SEND, WC_REM_OP_ERR },
	[FAULT_INVALIDATE] = { WR_SEND_WITH_INV, WC_REM_ACCESS_ERR },
	[FAULT_BIND] = { WR_BIND_MW, WC_MW_BIND_ERR },
};

void
flow_fault(struct flow *f, unsigned int index, enum op_fault fault)
{
	struct sim *s = f->conn->sim;
	struct flow_op *op = &f->op[index];

	/* replace the planned op completely */
	memset(op, 0, sizeof(*op));
	op->opcode = faults[fault].opcode;
	op->fault = fault;
	op->signaled = sim_below(s, 2); /* an error completes an unsignaled request too */
	op->flags = op->signaled ? SEND_SIGNALED : 0;
	op->length = 8 + sim_below(s, 4 * f->conn->opt.pmtu);
	op->num_sge = 1;
	op->sge_offset[0] = f->src;
	op->sge_len[0] = op->length;
	op->remote = f->hot;
	if (op->opcode == WR_RDMA_READ || op->opcode == WR_ATOMIC_FETCH_AND_ADD) {
		op->remote = f->konst;
		op->sge_offset[0] = f->land + 11 * FLOW_MSG_MAX;
	}
	if (op->opcode == WR_ATOMIC_FETCH_AND_ADD)
		op->length = op->sge_len[0] = 8;
	if (fault == FAULT_RANGE)
		op->remote = f->konst + 2 * FLOW_MSG_MAX - op->length + 1;
	if (fault == FAULT_UNALIGNED)
		op->remote = f->words + 1 + sim_below(s, 7);
	f->tail_ran = fault == FAULT_LANDING;
	f->may_fail = true;
	f->allowed = 1u << faults[fault].status;
}

/* @return the planned op that will use this receive, or NULL */
static const struct flow_op *
op_of_recv(const struct flow *f, unsigned int recv_index)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->ops; i++)
		if (flow_takes_recv(&f->op[i]) && n++ == recv_index)
			return &f->op[i];
	return NULL;
}

/* Long enough for its message, or too short when that is the fault. */
static uint32_t
recv_length(struct flow *f, const struct flow_op *op)
{
	struct sim *s = f->conn->sim;

	if (op == NULL)
		return sim_below(s, 64);
	if (op->fault == FAULT_TOO_LONG)
		return sim_below(s, op->length);
	return op->length + sim_below(s, 64);
}

void
flow_post_recv(struct flow *f, unsigned int recvs)
{
	struct sim *s = f->conn->sim;
	unsigned int node = f->to->id;
	struct sge sge[FLOW_SGES];

	while (recvs-- > 0 && f->recvs < FLOW_RECVS_MAX && !f->conn->destroyed[node]) {
		struct flow_recv *r = &f->recv[f->recvs];
		const struct flow_op *op = op_of_recv(f, f->recvs);
		uint32_t len = recv_length(f, op);
		struct recv_wr wr = { .wr_id = f->recvs, .sg_list = sge };
		struct error err = { 0 };

		if (f->pool_used + len > FLOW_POOL)
			abort();
		r->num_sge = split(s, f->pool + f->pool_used, len, r->sge_offset, r->sge_len);
		r->bad_lkey = op != NULL && op->fault == FAULT_RECV_LKEY;
		for (uint32_t i = 0; i < r->num_sge; i++)
			sge[i] = (struct sge){ SIM_VA + r->sge_offset[i], r->sge_len[i],
				r->bad_lkey ? f->pool_key ^ 0xFF00 : f->pool_key };
		wr.num_sge = r->num_sge;
		if (f->conn->opt.srq[node] != RC_NO_SRQ
				? rc_srq_post(f->to->worker, f->conn->opt.srq[node], &wr, &err) < 0
				: rc_post_recv(f->to->worker, f->conn->qpn[node], &wr, &err) < 0)
			return; /* full at present, or the QP is destroyed */
		f->pool_used += len;
		f->recvs++;
	}
}

static uint32_t
remote_key(const struct flow *f, const struct flow_op *op)
{
	uint32_t key;

	if (op->remote >= f->words && op->remote < f->words + FLOW_WORDS * 8)
		key = f->words_key;
	else if (op->remote >= f->konst && op->remote <= f->konst + 2 * FLOW_MSG_MAX)
		key = f->konst_key;
	else if (op->remote >= f->once && op->remote <= f->once + 8 * FLOW_MSG_MAX)
		key = f->once_key;
	else
		key = f->hot_key;
	if (op->fault == FAULT_RKEY)
		key ^= 0x5500;
	else if (op->fault == FAULT_RIGHTS)
		key = f->hot_ro_key;
	return key;
}

static int
post_one(struct flow *f, const struct flow_op *op)
{
	bool lands = op->opcode == WR_RDMA_READ || op->opcode == WR_ATOMIC_CMP_AND_SWP ||
		op->opcode == WR_ATOMIC_FETCH_AND_ADD;
	uint32_t key = lands ? f->land_key : f->src_key;
	uint8_t inline_data[64];
	struct sge sge[FLOW_SGES];
	struct send_wr wr = {
		.wr_id = f->posted,
		.opcode = op->opcode,
		.send_flags = op->flags,
		.num_sge = op->num_sge,
		.sg_list = sge,
		.imm_data = op->imm,
		.remote_addr = SIM_VA + op->remote,
		.rkey = remote_key(f, op),
		.compare_add = op->compare_add,
		.swap = op->swap,
		.invalidate_rkey = f->hot_key,
	};
	struct error err = { 0 };

	if (op->fault == FAULT_LKEY)
		key ^= 0x7700;
	else if (op->fault == FAULT_LANDING)
		key = f->land_ro_key;
	for (uint32_t i = 0; i < op->num_sge; i++)
		sge[i] = (struct sge){ SIM_VA + op->sge_offset[i], op->sge_len[i], key };
	if (op->fault == FAULT_BIND) {
		wr.num_sge = 0;
		wr.bind_mw.mw_key = key; /* the key of a region */
		wr.bind_mw.mr_key = key;
		wr.bind_mw.addr = SIM_VA + op->sge_offset[0];
		wr.bind_mw.length = 8;
		wr.bind_mw.access = MEM_ACCESS_REMOTE_READ;
	}
	if (op->flags & SEND_INLINE) {
		for (uint32_t i = 0, at = 0; i < op->num_sge; at += op->sge_len[i++])
			memcpy(inline_data + at, f->from->arena + op->sge_offset[i],
				op->sge_len[i]);
		wr.inline_data = inline_data;
		wr.inline_len = op->length;
		wr.num_sge = 0;
	}
	return rc_post_send(f->from->worker, f->qpn, &wr, &err);
}

void
flow_post(struct flow *f, unsigned int sends)
{
	while (sends-- > 0 && f->posted < f->ops && !f->gone) {
		if (post_one(f, &f->op[f->posted]) < 0)
			return; /* queue full: try again later */
		f->posted++;
	}
}

bool
flow_done(const struct flow *f)
{
	if (f->gone)
		return true;
	if (f->lenient)
		return false;
	return f->completed == f->posted && (f->posted == f->ops || f->failed);
}
