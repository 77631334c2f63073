/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The reference model: the expected completions, and the final contents of memory. */

#include <string.h>

#include "coverage.h"
#include "flow.h"

static const uint32_t wc_opcodes[] = {
	[WR_RDMA_WRITE] = WC_RDMA_WRITE,
	[WR_RDMA_WRITE_WITH_IMM] = WC_RDMA_WRITE,
	[WR_SEND] = WC_SEND,
	[WR_SEND_WITH_IMM] = WC_SEND,
	[WR_RDMA_READ] = WC_RDMA_READ,
	[WR_ATOMIC_CMP_AND_SWP] = WC_COMP_SWAP,
	[WR_ATOMIC_FETCH_AND_ADD] = WC_FETCH_ADD,
	[WR_LOCAL_INV] = WC_LOCAL_INV,
	[WR_BIND_MW] = WC_BIND_MW,
	[WR_SEND_WITH_INV] = WC_SEND,
};

static void
check_send_wc(struct flow *f, const struct wc *wc)
{
	struct sim *s = f->conn->sim;
	unsigned int index = (unsigned int)wc->wr_id;
	struct flow_op *op;

	coverage_status(s->coverage, wc->status);
	sim_trace(s, "node %u completes %u %s", f->from->id, index, wc_status_name(wc->status));
	if (index >= f->posted || index < f->completed) {
		sim_fail(s, "completion for work request %u: posted %u, completed %u", index,
			f->posted, f->completed);
		return;
	}
	/* skipped requests succeeded silently, so they must be unsignaled */
	for (; f->completed < index; f->completed++) {
		op = &f->op[f->completed];
		if (op->signaled || f->failed) {
			sim_fail(s, "work request %u never completed before %u", f->completed,
				index);
			return;
		}
		op->done = true;
		op->status = WC_SUCCESS;
	}
	op = &f->op[index];
	op->done = true;
	op->status = wc->status;
	f->completed = index + 1;
	if (wc->qp_num != f->qpn)
		sim_fail(s, "completion of QP 0x%x says 0x%x", f->qpn, wc->qp_num);
	if (wc->status == WC_SUCCESS) {
		if (op->fault != FAULT_NONE)
			sim_fail(s, "work request %u with fault %d succeeded", index, op->fault);
		if (f->failed)
			sim_fail(s, "work request %u succeeded after an error", index);
		if (!op->signaled)
			sim_fail(s, "unsignaled work request %u completed", index);
		if (wc->opcode != wc_opcodes[op->opcode])
			sim_fail(s, "work request %u: opcode %u", index, wc->opcode);
	} else if (f->failed) {
		if (wc->status != WC_WR_FLUSH_ERR)
			sim_fail(s, "work request %u after an error: %s", index,
				wc_status_name(wc->status));
	} else {
		f->failed = true;
		if (!f->may_fail || !(f->allowed & (1u << wc->status)))
			sim_fail(s, "work request %u (opcode %d fault %d) ended with %s", index,
				op->opcode, op->fault, wc_status_name(wc->status));
		else if (!f->ambiguous && op->fault == FAULT_NONE)
			sim_fail(s, "work request %u without fault ended with %s", index,
				wc_status_name(wc->status));
	}
}

static bool
model_takes_recv(const struct flow_op *op)
{
	return op->opcode == WR_SEND || op->opcode == WR_SEND_WITH_IMM ||
		op->opcode == WR_SEND_WITH_INV || op->opcode == WR_RDMA_WRITE_WITH_IMM;
}

/* rc-transport 6, status at the receiver: table 17-5 and row 8 */
static bool
recv_error_allowed(const struct flow_op *op, uint32_t status)
{
	switch (op->fault) {
	case FAULT_TOO_LONG:
		return status == WC_LOC_LEN_ERR;
	case FAULT_RECV_LKEY:
		return status == WC_LOC_QP_OP_ERR;
	case FAULT_RIGHTS:
		return status == WC_REM_ACCESS_ERR;
	case FAULT_INVALIDATE:
		return status == WC_REM_ACCESS_ERR || status == WC_REM_INV_REQ_ERR;
	default:
		return false;
	}
}

static void
gather(const struct flow *f, const struct flow_op *op, uint8_t *out)
{
	for (uint32_t i = 0; i < op->num_sge; out += op->sge_len[i++])
		memcpy(out, f->from->model + op->sge_offset[i], op->sge_len[i]);
}

static void
scatter(uint8_t *memory, const uint32_t *offsets, const uint32_t *lens, uint32_t n,
	const uint8_t *in, uint32_t len)
{
	for (uint32_t i = 0; i < n && len > 0; i++) {
		uint32_t part = lens[i] < len ? lens[i] : len;

		memcpy(memory + offsets[i], in, part);
		in += part;
		len -= part;
	}
}

static void
check_recv_wc(struct flow *f, const struct wc *wc)
{
	struct sim *s = f->conn->sim;
	struct flow_op *op;
	uint8_t bytes[FLOW_MSG_MAX];

	coverage_status(s->coverage, wc->status);
	sim_trace(s, "node %u receive %u %s", f->to->id, (unsigned int)wc->wr_id,
		wc_status_name(wc->status));
	if (wc->wr_id != f->received) {
		sim_fail(s, "receive completion %u where %u is next", (unsigned int)wc->wr_id,
			f->received);
		return;
	}
	f->recv[f->received].dirty = wc->status != WC_SUCCESS;
	f->received++;
	if (wc->status == WC_WR_FLUSH_ERR) {
		f->recv_failed = true;
		return;
	}
	while (f->next_recv_op < f->posted && !model_takes_recv(&f->op[f->next_recv_op]))
		f->next_recv_op++;
	if (f->recv_failed || f->next_recv_op >= f->posted) {
		sim_fail(s, "receive completion without a message");
		return;
	}
	op = &f->op[f->next_recv_op++];
	if (wc->status != WC_SUCCESS) {
		f->recv_failed = true;
		if (!f->ambiguous && !recv_error_allowed(op, wc->status))
			sim_fail(s, "receive ended with %s", wc_status_name(wc->status));
		return;
	}
	if (op->fault != FAULT_NONE)
		sim_fail(s, "message with fault %d was received", op->fault);
	if (wc->byte_len != op->length)
		sim_fail(s, "received %u bytes of %u", wc->byte_len, op->length);
	if ((op->opcode == WR_SEND_WITH_IMM || op->opcode == WR_RDMA_WRITE_WITH_IMM) !=
			!!(wc->wc_flags & WC_WITH_IMM) ||
		((wc->wc_flags & WC_WITH_IMM) && wc->imm_data != op->imm))
		sim_fail(s, "immediate data 0x%x flags %u", wc->imm_data, wc->wc_flags);
	if ((wc->opcode == WC_RECV_RDMA_WITH_IMM) != (op->opcode == WR_RDMA_WRITE_WITH_IMM))
		sim_fail(s, "receive opcode %u", wc->opcode);
	if (op->opcode != WR_RDMA_WRITE_WITH_IMM) {
		struct flow_recv *r = &f->recv[f->received - 1];

		gather(f, op, bytes);
		scatter(f->to->model, r->sge_offset, r->sge_len, r->num_sge, bytes, op->length);
	}
}

void
flow_poll(struct flow *f)
{
	struct wc wc[16];
	int n;

	while ((n = rc_cq_poll(f->from->dev, f->send_cq, wc, 16)) > 0)
		for (int i = 0; i < n; i++)
			f->lenient ? coverage_status(f->conn->sim->coverage, wc[i].status)
				   : check_send_wc(f, &wc[i]);
	while ((n = rc_cq_poll(f->to->dev, f->recv_cq, wc, 16)) > 0)
		for (int i = 0; i < n; i++)
			f->lenient ? (void)f->received++ : check_recv_wc(f, &wc[i]);
}

/* The bytes of this op may have been written or not: copy them from memory. */
static void
accept_range(struct sim_node *n, uint32_t offset, uint32_t len)
{
	memcpy(n->model + offset, n->arena + offset, len);
}

static void
accept_op(struct flow *f, const struct flow_op *op)
{
	switch (op->opcode) {
	case WR_RDMA_WRITE:
	case WR_RDMA_WRITE_WITH_IMM:
		if (op->fault == FAULT_NONE)
			accept_range(f->to, op->remote, op->length);
		break;
	case WR_RDMA_READ:
		for (uint32_t i = 0; i < op->num_sge; i++)
			if (op->fault != FAULT_LANDING)
				accept_range(f->from, op->sge_offset[i], op->sge_len[i]);
		break;
	case WR_ATOMIC_CMP_AND_SWP:
	case WR_ATOMIC_FETCH_AND_ADD:
		if (op->fault == FAULT_NONE) {
			accept_range(f->to, f->words, FLOW_WORDS * 8);
			accept_range(f->from, op->sge_offset[0], 8);
		}
		break;
	default:
		break;
	}
}

static void
apply_op(struct flow *f, const struct flow_op *op)
{
	uint8_t bytes[FLOW_MSG_MAX];
	uint64_t old, new;

	switch (op->opcode) {
	case WR_RDMA_WRITE:
	case WR_RDMA_WRITE_WITH_IMM:
		gather(f, op, bytes);
		memcpy(f->to->model + op->remote, bytes, op->length);
		break;
	case WR_RDMA_READ:
		scatter(f->from->model, op->sge_offset, op->sge_len, op->num_sge,
			f->to->model + op->remote, op->length);
		break;
	case WR_ATOMIC_CMP_AND_SWP:
	case WR_ATOMIC_FETCH_AND_ADD:
		memcpy(&old, f->to->model + op->remote, 8);
		new = op->opcode == WR_ATOMIC_FETCH_AND_ADD ? old + op->compare_add
			: old == op->compare_add            ? op->swap
							    : old;
		memcpy(f->to->model + op->remote, &new, 8);
		memcpy(f->from->model + op->sge_offset[0], &old, 8);
		break;
	default: /* Sends take effect with their receive completion */
		break;
	}
}

void
flow_settle(struct flow *f)
{
	struct sim *s = f->conn->sim;
	unsigned int want = 0;

	flow_poll(f);
	if (f->lenient) {
		accept_range(f->from, f->land, 12 * FLOW_MSG_MAX);
		accept_range(f->to, f->hot, 2 * FLOW_MSG_MAX);
		accept_range(f->to, f->once, 8 * FLOW_MSG_MAX);
		accept_range(f->to, f->words, FLOW_WORDS * 8);
		accept_range(f->to, f->pool, FLOW_POOL);
		return;
	}
	for (unsigned int i = 0; i < f->posted; i++) {
		struct flow_op *op = &f->op[i];

		if (op->done && op->status == WC_SUCCESS) {
			apply_op(f, op);
			want += model_takes_recv(op);
		} else if (f->ambiguous || f->gone || f->tail_ran ||
			op->status != WC_WR_FLUSH_ERR) {
			accept_op(f, op);
		}
	}
	/* receive buffers of a failed or unfinished message */
	for (unsigned int i = 0; i < f->recvs; i++)
		if (f->recv[i].dirty ||
			(i >= f->received && (f->gone || f->failed || f->ambiguous)))
			for (uint32_t k = 0; k < f->recv[i].num_sge && !f->recv[i].bad_lkey; k++)
				accept_range(f->to, f->recv[i].sge_offset[k],
					f->recv[i].sge_len[k]);
	if (!f->gone && !f->conn->destroyed[f->to->id]) {
		unsigned int got = 0;

		for (unsigned int i = 0; i < f->next_recv_op; i++)
			got += model_takes_recv(&f->op[i]) && f->op[i].fault == FAULT_NONE;
		if (got < want)
			sim_fail(s, "%u messages were acknowledged, %u received", want, got);
		if (!f->failed && !f->ambiguous && got != want)
			sim_fail(s, "%u messages were received, %u acknowledged", got, want);
	}
}

void
sim_check_memory(struct sim *s)
{
	for (unsigned int i = 0; i < s->nodes; i++) {
		struct sim_node *n = &s->node[i];

		if (memcmp(n->arena, n->model, n->arena_used) == 0)
			continue;
		for (uint32_t k = 0; k < n->arena_used; k++)
			if (n->arena[k] != n->model[k]) {
				sim_fail(s, "node %u memory at 0x%x: 0x%02x, the model has 0x%02x",
					i, k, n->arena[k], n->model[k]);
				return;
			}
	}
}
