/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The send queue: check and post work requests, and complete each of them once, in order.
 */

#include "rc/check.h"
#include "rc/failure.h"
#include "rc/sq.h"

/* --- properties of work request opcodes --- */

#define WR_INLINE 0x1 /* allows SEND_INLINE */
#define WR_DATA   0x2 /* has a scatter/gather list */
#define WR_EIGHT  0x4 /* length must be 8 bytes */
#define WR_PLAIN  0x8 /* needs no invalidate_rkey, Atomic or bind_mw field */
#define WR_STREAM (WR_DATA | WR_INLINE | WR_PLAIN) /* Send or Write */

const struct rc_wr_info rc_wr_infos[] = {
	[WR_RDMA_WRITE] = { WR_STREAM, WC_RDMA_WRITE,
		{ RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST, RC_WRITE_ONLY } },
	[WR_RDMA_WRITE_WITH_IMM] = { WR_STREAM, WC_RDMA_WRITE,
		{ RC_WRITE_MIDDLE, RC_WRITE_FIRST, RC_WRITE_LAST_IMM, RC_WRITE_ONLY_IMM } },
	[WR_SEND] = { WR_STREAM, WC_SEND,
		{ RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST, RC_SEND_ONLY } },
	[WR_SEND_WITH_IMM] = { WR_STREAM, WC_SEND,
		{ RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST_IMM, RC_SEND_ONLY_IMM } },
	[WR_RDMA_READ] = { WR_DATA | WR_PLAIN, WC_RDMA_READ, { RC_READ_REQUEST } },
	[WR_ATOMIC_CMP_AND_SWP] = { WR_DATA | WR_EIGHT, WC_COMP_SWAP, { RC_CMP_SWAP } },
	[WR_ATOMIC_FETCH_AND_ADD] = { WR_DATA | WR_EIGHT, WC_FETCH_ADD, { RC_FETCH_ADD } },
	[WR_LOCAL_INV] = { 0, WC_LOCAL_INV, { 0 } },
	[WR_BIND_MW] = { 0, WC_BIND_MW, { 0 } },
	[WR_SEND_WITH_INV] = { WR_DATA | WR_INLINE, WC_SEND,
		{ RC_SEND_MIDDLE, RC_SEND_FIRST, RC_SEND_LAST_INV, RC_SEND_ONLY_INV } },
};

#define SEND_FLAGS (SEND_FENCE | SEND_SIGNALED | SEND_SOLICITED | SEND_INLINE)

/* --- posting --- */

/*
 * The functions here are compiled twice. With `plain`, a constant, for what sq_is_plain() says is
 * the common case: what that rules out costs nothing.
 */

/* A Send, Write or Read with one sge, in RTS. */
static inline bool
sq_is_plain(const struct rc_qp *qp, const struct send_wr *wr)
{
	return likely(qp->state == QPS_RTS && wr->num_sge == 1 &&
		       wr->opcode < RTE_DIM(rc_wr_infos) && !(wr->send_flags & SEND_INLINE)) &&
		likely(rc_wr_infos[wr->opcode].flags & WR_PLAIN);
}

static int
check_inline(const struct rc_qp *qp, const struct send_wr *wr, struct error *err)
{
	const struct qp_cap *cap = &qp->init.cap;

	if (!(rc_wr_infos[wr->opcode].flags & WR_INLINE))
		return error_set(err, EINVAL, "send_flags: %s cannot be inline",
			wr_opcode_name(wr->opcode));
	if (wr->num_sge != 0)
		return error_set(err, EINVAL, "num_sge: got %u, an inline request has none",
			wr->num_sge);
	if (wr->inline_len > cap->max_inline_data)
		return error_set(err, EINVAL, "inline data: got %u bytes, allowed: 0 to %u",
			wr->inline_len, cap->max_inline_data);
	if (wr->inline_len != 0 && wr->inline_data == NULL)
		return error_set(err, EINVAL, "inline data: missing");
	return wr->inline_len;
}

/* @return the message's length, or a negative error */
static __rte_always_inline int64_t
check_wr(const struct rc_qp *qp, const struct send_wr *wr, bool plain, struct error *err)
{
	uint32_t i, n = plain ? 1 : wr->num_sge;
	uint64_t sum = 0;
	uint8_t may;

	if (unlikely(wr->opcode >= RTE_DIM(rc_wr_infos)))
		return error_set(err, EINVAL, "opcode: got %d, which is no work request",
			wr->opcode);
	may = plain ? WR_DATA : rc_wr_infos[wr->opcode].flags;
	if (unlikely(wr->send_flags & ~SEND_FLAGS))
		return error_set(err, EINVAL, "send_flags: got 0x%x, allowed: bits of 0x%x",
			wr->send_flags, SEND_FLAGS);
	if (!plain && (wr->send_flags & SEND_INLINE))
		return check_inline(qp, wr, err);
	if (unlikely(n != 0 && !(may & WR_DATA)))
		return error_set(err, EINVAL, "num_sge: got %u, %s has none", n,
			wr_opcode_name(wr->opcode));
	if (unlikely(n > qp->req.max_sge))
		return error_set(err, EINVAL, "num_sge: got %u, allowed: 0 to %u", n,
			qp->req.max_sge);
	if (unlikely(n != 0 && wr->sg_list == NULL))
		return error_set(err, EINVAL, "sg_list: missing");
	for (i = 0; i < n; i++)
		sum += wr->sg_list[i].length;
	if (unlikely(sum > RC_MSG_MAX))
		return error_set(err, EINVAL, "sg_list: %llu bytes, a message has at most %u",
			(unsigned long long)sum, RC_MSG_MAX);
	if ((may & WR_EIGHT) && sum != 8)
		return error_set(err, EINVAL, "sg_list: %llu bytes, %s needs 8",
			(unsigned long long)sum, wr_opcode_name(wr->opcode));
	return sum;
}

/* Fields and data of work requests that are not plain */
static void
fill_special(const struct rc_qp *qp, struct rc_sq_wqe *wqe, const struct send_wr *wr)
{
	if (wr->opcode == WR_SEND_WITH_INV || wr->opcode == WR_LOCAL_INV) {
		wqe->imm = wr->invalidate_rkey;
	} else if (wr->opcode == WR_BIND_MW) {
		wqe->rkey = wr->bind_mw.mw_key;
		wqe->imm = wr->bind_mw.new_key;
		wqe->remote_addr = wr->bind_mw.addr;
	}
	if (rc_wqe_atomic(wqe) || rc_wqe_local(wqe))
		*rc_sq_more(&qp->req, wqe) = (struct rc_sq_more){
			.compare_add =
				wr->opcode == WR_BIND_MW ? wr->bind_mw.length : wr->compare_add,
			.swap = wr->swap,
			.mr_key = wr->bind_mw.mr_key,
			.access = wr->bind_mw.access,
		};
	if (likely(wr->num_sge == 1))
		wqe->sge[0] = wr->sg_list[0];
	else if ((wqe->flags & SEND_INLINE) && wqe->length != 0)
		memcpy(wqe->sge, wr->inline_data, wqe->length);
	else if (wr->num_sge != 0)
		memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(wr->sg_list[0]));
}

/* The opcode if send_only() may send it: 1 to PMTU bytes, neither fence nor SE; 0: it may not. */
static inline uint8_t
sq_only(const struct rc_qp *qp, const struct send_wr *wr, uint32_t length)
{
	/* for length 0 the difference wraps */
	if (likely(length - 1 < qp->pmtu) &&
		likely(!(wr->send_flags & (SEND_FENCE | SEND_SOLICITED))))
		return rc_wr_infos[wr->opcode].packet[RC_WR_ONLY];
	return 0;
}

/*
 * Field by field: a wide load right after the caller's narrow stores would miss store forwarding.
 * Until PSNs are assigned, nobody reads them.
 */
static __rte_always_inline void
fill_wqe(const struct rc_qp *qp, struct rc_sq_wqe *wqe, const struct send_wr *wr, bool plain,
	uint32_t length)
{
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags | (qp->sig_all ? SEND_SIGNALED : 0);
	wqe->num_sge = plain ? 1 : wr->num_sge;
	wqe->assigned = false;
	wqe->status = WC_SUCCESS;
	wqe->only = plain ? sq_only(qp, wr, length) : 0;
	wqe->length = length;
	wqe->imm = wr->imm_data;
	wqe->rkey = wr->rkey;
	wqe->remote_addr = wr->remote_addr;
	if (plain) {
		wqe->sge[0].addr = wr->sg_list[0].addr;
		wqe->sge[0].length = length;
		wqe->sge[0].lkey = wr->sg_list[0].lkey;
	} else {
		fill_special(qp, wqe, wr);
	}
}

static __rte_always_inline int
sq_post(struct rc_qp *qp, const struct send_wr *wr, bool plain, struct error *err)
{
	struct rc_requester *req = &qp->req;
	int64_t length;

	if (qp->state != QPS_RTS && qp->state != QPS_SQD && qp->state != QPS_ERR)
		return error_set(err, EINVAL,
			"post_send: the queue pair is in %s; allowed: RTS, SQD, ERR",
			qp_state_name(qp->state));
	length = check_wr(qp, wr, plain, err);
	if (unlikely(length < 0))
		return length;
	if (unlikely(req->head - req->tail >= req->max_wr))
		return error_set(err, ENOMEM, "post_send: %u work requests are posted, max_send_wr",
			req->max_wr);
	fill_wqe(qp, rc_sq_at(req, req->head), wr, plain, length);
	req->head++;
	if (!plain && qp->state == QPS_ERR)
		rc_requester_flush(qp);
	else
		rc_want(qp, WORK_REQUEST);
	rc_qp_check(qp);
	return 0;
}

static int __rte_noinline
sq_post_any(struct rc_qp *qp, const struct send_wr *wr, struct error *err)
{
	return sq_post(qp, wr, false, err);
}

int
rc_post_send(struct rc_worker *w, uint32_t qpn, const struct send_wr *wr, struct error *err)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	if (unlikely(qp == NULL))
		return rc_no_qp(qpn, err);
	if (likely(COMMON_CASE(sq_is_plain(qp, wr))))
		return sq_post(qp, wr, true, err);
	return sq_post_any(qp, wr, err);
}

/* --- the queue --- */

static size_t
sq_wqe_stride(const struct qp_cap *cap)
{
	size_t room = RTE_MAX(cap->max_send_sge * sizeof(struct sge), cap->max_inline_data);

	return RTE_ALIGN_CEIL(sizeof(struct rc_sq_wqe) + sizeof(struct rc_sq_more) + room,
		CACHE_LINE);
}

size_t
rc_sq_bytes(const struct qp_cap *cap)
{
	return rte_align32pow2(cap->max_send_wr) * sq_wqe_stride(cap);
}

void
rc_requester_create(struct rc_qp *qp, uint8_t *wqes)
{
	struct rc_requester *req = &qp->req;

	req->mask = rte_align32pow2(qp->init.cap.max_send_wr) - 1;
	req->stride = sq_wqe_stride(&qp->init.cap);
	req->max_wr = qp->init.cap.max_send_wr;
	req->max_sge = qp->init.cap.max_send_sge;
	req->wqes = wqes;
}

void
rc_sq_hold(struct rc_qp *qp, bool hold)
{
	if (hold == qp->req.held)
		return;
	if (hold)
		LIST_INSERT_HEAD(&qp->worker->grace, qp, grace_link);
	else
		LIST_REMOVE(qp, grace_link);
	qp->req.held = hold;
}

void
rc_requester_destroy(struct rc_qp *qp)
{
	timer_disarm(qp->worker->wheel, &qp->req.timer);
	rc_sq_hold(qp, false);
}

bool
rc_requester_drained(const struct rc_qp *qp)
{
	const struct rc_requester *req = &qp->req;

	return req->tail == req->ack && (req->ack == req->head || !rc_sq_oldest(req)->assigned);
}

/* rc-transport 11, SQD: raise EVENT_SQ_DRAINED once, when all started requests have completed. */
static void
tell_drained(struct rc_qp *qp)
{
	if (qp->state == QPS_SQD && qp->req.drain_notify && rc_requester_drained(qp)) {
		qp->req.drain_notify = false;
		rc_qp_event(qp, EVENT_SQ_DRAINED);
	}
}

void
rc_requester_drain(struct rc_qp *qp)
{
	qp->req.drain_notify = qp->attr.en_sqd_async_notify;
	tell_drained(qp);
}

bool
rc_sq_waits(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	struct rc_sq_more *more = rc_sq_more(&qp->req, wqe);

	if (more->token == 0)
		return false;
	if (!mem_grace_done(qp->worker->mem, more->token))
		return true;
	more->token = 0;
	return false;
}

/* Complete WQEs from tail to `end`, all with this error. */
static void
sq_complete_to(struct rc_qp *qp, uint32_t end, enum wc_status status)
{
	struct rc_cq_batch b = rc_cq_begin(qp->send_cq, qp->worker);
	struct rc_requester *req = &qp->req;

	while (req->tail != end)
		rc_sq_complete(qp, &b, rc_sq_at(req, req->tail++), status, true);
}

/* Advance ack past local operations that were executed: all WQEs before them are done. */
static void
pass_local(struct rc_requester *req)
{
	const struct rc_sq_wqe *wqe;

	for (; req->ack != req->head; req->ack++) {
		wqe = rc_sq_oldest(req);
		if (!rc_wqe_local(wqe) || !wqe->assigned || wqe->status != WC_SUCCESS)
			return;
		if (req->send == req->ack)
			req->send++;
	}
}

bool
rc_sq_settle(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;
	const struct rc_sq_wqe *oldest;

	pass_local(req);
	rc_sq_retire(qp, false);
	oldest = rc_sq_oldest(req);
	/* a local failure waits until all earlier WQEs completed; a NAK does not (rc_sq_fail()) */
	if (req->tail == req->ack && req->ack != req->head && oldest->status != WC_SUCCESS) {
		rc_sq_fail(qp, oldest->status);
		return false;
	}
	tell_drained(qp);
	return true;
}

/* What a completion status says about the failure of a QP. */
struct sq_failure {
	uint8_t reason; /* enum qp_failure_reason */
	uint8_t syndrome; /* of the NAK that the status stands for; 0: none */
	bool response; /* a response of the peer is the cause */
};

static const struct sq_failure sq_failures[WC_STATUS_COUNT] = {
	[WC_LOC_QP_OP_ERR] = { QP_FAILURE_RD_ATOMIC },
	[WC_LOC_PROT_ERR] = { QP_FAILURE_LKEY },
	[WC_MW_BIND_ERR] = { QP_FAILURE_BIND },
	[WC_BAD_RESP_ERR] = { QP_FAILURE_BAD_RESPONSE, 0, true },
	[WC_REM_INV_REQ_ERR] = { QP_FAILURE_NAK_INVALID, AETH_NAK_INVALID_REQUEST, true },
	[WC_REM_ACCESS_ERR] = { QP_FAILURE_NAK_ACCESS, AETH_NAK_REMOTE_ACCESS, true },
	[WC_REM_OP_ERR] = { QP_FAILURE_NAK_OPERATION, AETH_NAK_REMOTE_OP, true },
	[WC_RETRY_EXC_ERR] = { QP_FAILURE_RETRIES },
	[WC_RNR_RETRY_EXC_ERR] = { QP_FAILURE_RNR_RETRIES, 0, true },
};

void
rc_sq_fail(struct rc_qp *qp, enum wc_status status)
{
	const struct sq_failure *f = &sq_failures[status];
	struct rc_requester *req = &qp->req;
	struct qp_failure why = { .psn = req->una,
		.expected = req->una,
		.status = status,
		.reason = f->reason,
		.syndrome = f->syndrome,
		.verdict = f->response ? VERDICT_RESPONSE : VERDICT_COUNT };

	RTE_ASSERT(!(qp->worker->errors & RC_QP_FAILED)); /* the step would have ended */
	rc_sq_retire(qp, true);
	why.opcode = rc_sq_at(req, req->ack++)->opcode;
	sq_complete_to(qp, req->ack, status);
	rc_fail(qp, why);
}

void
rc_requester_flush(struct rc_qp *qp)
{
	struct rc_requester *req = &qp->req;

	timer_disarm(qp->worker->wheel, &req->timer);
	rc_sq_retire(qp, true);
	sq_complete_to(qp, req->head, WC_WR_FLUSH_ERR);
	req->ack = req->send = req->head;
	req->una = req->send_psn = req->next_psn;
	req->rd_atomic = 0;
	req->rnr_wait = req->timing = req->gap = false;
}
