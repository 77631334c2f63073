/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "rc/qp_directory.h"
#include "rc/qp.h"
#include "rc/rq.h"
#include "wire/wire.h"

/*
 * Responder: one request packet in, at most one effect and one response out. Order of checks:
 * rc-transport 6; "row N" cites its table. Duplicates: rc-transport 7 (duplicates.c). Sending of
 * responses: responses.c.
 *
 * No memory is written before every check of the packet has passed. responder_fast.c handles the
 * most common requests with the same checks; all others come here.
 */

enum resp_step {
	RESP_CHECK_PSN,
	RESP_CHECK_SEQUENCE,
	RESP_CHECK_SUPPORT,
	RESP_CHECK_RESOURCES,
	RESP_CHECK_LENGTH,
	RESP_CHECK_ACCESS,
	RESP_EXECUTE,
	RESP_COMPLETE,
	RESP_ACKNOWLEDGE,
	RESP_DUPLICATE,
	RESP_DONE,
};

/* A piece of a Send's payload: its destination. */
struct piece {
	uint8_t *host;
	uint32_t len;
};

struct resp_ctx {
	struct rc_qp *qp;
	struct rc_responder *r;
	const struct packet *pkt;
	uint16_t flags; /* of the opcode */
	enum verdict verdict;
	uint8_t *host; /* Write, Atomic: destination */
	unsigned int pieces; /* Send: used entries of piece[] */
	struct piece piece[RC_SGE_MAX];
};

/* --- receive WQEs --- */

static inline struct rc_rq_wqe *
current_wqe(const struct rc_qp *qp)
{
	return qp->srq != NULL ? qp->resp.srq_wqe : rc_rq_at(qp->rq, qp->rq->tail);
}

static void __rte_noinline
take_srq_wqe(struct rc_qp *qp)
{
	const struct rc_rq_wqe *wqe = rc_rq_at(qp->rq, qp->rq->tail);

	memcpy(qp->resp.srq_wqe, wqe, sizeof(*wqe) + wqe->num_sge * sizeof(wqe->sge[0]));
	qp->rq->tail++;
	rc_srq_taken(qp->srq);
}

/*
 * Take the next receive WQE for a message. A WQE of the QP's own RQ stays at the RQ's tail until it
 * completes; a WQE of an SRQ is copied and leaves the SRQ at once. @retval false  none is posted
 */
static inline bool
take_wqe(struct rc_qp *qp)
{
	struct rc_responder *r = &qp->resp;

	if (unlikely(rc_rq_posted(qp->rq) == 0))
		return false;
	if (unlikely(qp->srq != NULL))
		take_srq_wqe(qp);
	r->wqe_taken = true;
	r->wqe_offset = 0;
	r->sge_index = 0;
	r->sge_offset = 0;
	return true;
}

void
rc_retire_wqe(struct rc_qp *qp, struct wc *wc, bool solicited)
{
	wc->wr_id = current_wqe(qp)->wr_id;
	wc->qp_num = qp->qpn;
	if (qp->srq == NULL)
		qp->rq->tail++;
	qp->resp.wqe_taken = false;
	rc_cq_push(qp->recv_cq, qp, *wc, solicited);
}

/* --- refusing --- */

static enum resp_step
responder_drop(struct resp_ctx *c, enum verdict reason)
{
	c->verdict = reason;
	return RESP_DONE;
}

static void
count_refusal(struct rc_qp *qp, uint8_t syndrome, enum wc_status status)
{
	if (status == WC_LOC_LEN_ERR)
		rc_count(qp, resp_local_length_error, 1);
	else if (syndrome == AETH_NAK_INVALID_REQUEST)
		rc_count(qp, resp_invalid_requests, 1);
	else if (syndrome == AETH_NAK_REMOTE_ACCESS)
		rc_count(qp, resp_remote_access_errors, 1);
}

/*
 * Refuse a request with NAK 0x61, 0x62 or 0x63: it is not executed, ePSN stays, the QP goes to ERR.
 * A request that uses a receive WQE completes it with the error; any other raises an affiliated
 * asynchronous event (seed 001). Any other request in the middle of a Send does both, because it
 * also ends the Send's WQE.
 */
static enum resp_step __rte_cold __rte_noinline
responder_refuse(struct resp_ctx *c, uint8_t syndrome, enum wc_status status)
{
	struct wc wc = { .status = status, .opcode = WC_RECV };
	bool uses = c->flags & (OP_SEND | OP_RQ_WQE);
	struct rc_qp *qp = c->qp;

	count_refusal(qp, syndrome, status);
	rc_owe_nak(qp, syndrome, c->pkt->psn);
	if (!c->r->wqe_taken && (c->flags & OP_RQ_WQE))
		take_wqe(qp);
	uses &= c->r->wqe_taken;
	if (c->r->wqe_taken)
		rc_retire_wqe(qp, &wc, false);
	if (!uses)
		rc_event(qp->worker,
			syndrome == AETH_NAK_REMOTE_ACCESS ? EVENT_QP_ACCESS_ERR : EVENT_QP_REQ_ERR,
			qp->qpn);
	c->verdict = VERDICT_NAK_SENT;
	rc_qp_fail(qp,
		(struct qp_failure){ .psn = c->pkt->psn,
			.syndrome = syndrome,
			.status = uses ? status : 0,
			.verdict = VERDICT_NAK_SENT });
	return RESP_DONE;
}

static enum resp_step
responder_refuse_invalid(struct resp_ctx *c)
{
	return responder_refuse(c, AETH_NAK_INVALID_REQUEST, WC_REM_INV_REQ_ERR);
}

/* --- the checks, in the order of rc-transport 6 --- */

/* Rows 1 and 1b: PSN is not ePSN. */
static enum resp_step __rte_noinline
not_expected(struct resp_ctx *c)
{
	struct rc_responder *r = c->r;

	if (psn_diff(c->pkt->psn, r->epsn) < 0)
		return RESP_DUPLICATE;
	rc_charge(c->qp, c->pkt);
	if ((r->nak_sent || r->rnr_sent) && psn_diff(c->pkt->psn, r->dropped_psn) > 0)
		r->dropped_psn = c->pkt->psn;
	/* after an RNR NAK, only a request at ePSN may be NAKed (seed 001, rc-cases) */
	if (r->rnr_sent)
		return responder_drop(c, VERDICT_RNR_WAIT);
	rc_count(c->qp, out_of_sequence, 1);
	/* one sequence NAK until the expected PSN arrives (seed 001) */
	if (r->nak_sent)
		return responder_drop(c, VERDICT_OUT_OF_SEQUENCE);
	r->nak_sent = true;
	r->dropped_psn = c->pkt->psn;
	rc_owe_nak(c->qp, AETH_NAK_PSN_SEQUENCE, r->epsn);
	return responder_drop(c, VERDICT_NAK_SENT);
}

static __rte_always_inline enum resp_step
check_psn(struct resp_ctx *c)
{
	if (unlikely(c->pkt->psn != c->r->epsn))
		return not_expected(c);
	c->r->nak_sent = false;
	c->r->rnr_sent = false;
	return RESP_CHECK_SEQUENCE;
}

/* Row 2: opcode sequence (rc-transport 2). */
static __rte_always_inline enum resp_step
check_sequence(struct resp_ctx *c)
{
	static const uint16_t kind[] = {
		[RESP_IN_SEND] = OP_SEND,
		[RESP_IN_WRITE] = OP_WRITE,
	};

	if (c->r->message == RESP_IDLE) {
		if (!(c->flags & OP_FIRST))
			return responder_refuse_invalid(c);
	} else if ((c->flags & OP_FIRST) || !(c->flags & kind[c->r->message])) {
		return responder_refuse_invalid(c);
	}
	return RESP_CHECK_SUPPORT;
}

/* Row 3: the operation is enabled. Sends always are. */
static __rte_always_inline enum resp_step
check_support(struct resp_ctx *c)
{
	uint32_t need = 0;

	if (!(c->flags & OP_REQUEST))
		return responder_refuse_invalid(c);
	if (c->flags & OP_WRITE)
		need = MEM_ACCESS_REMOTE_WRITE;
	else if (c->flags & OP_READ)
		need = MEM_ACCESS_REMOTE_READ;
	else if (c->flags & OP_ATOMIC)
		need = MEM_ACCESS_REMOTE_ATOMIC;
	if ((c->qp->access & need) != need)
		return responder_refuse_invalid(c);
	return RESP_CHECK_RESOURCES;
}

/*
 * seed 001: raise EVENT_RQ_EMPTY so that the consumer posts a receive before the requester retries.
 */
static void
ask_for_receives(struct rc_qp *qp)
{
	if (qp->rq->missed_at == qp->rq->head)
		return; /* raised already, and nothing was posted since */
	qp->rq->missed_at = qp->rq->head;
	rc_event(qp->worker, EVENT_RQ_EMPTY, qp->qpn);
}

static enum resp_step __rte_noinline
not_ready(struct resp_ctx *c)
{
	struct rc_qp *qp = c->qp;

	c->r->rnr_sent = true;
	if (c->r->nak == 0) /* otherwise a sequence NAK not sent yet has set a newer dropped_psn */
		c->r->dropped_psn = c->pkt->psn;
	rc_owe_nak(qp, AETH_RNR_NAK | qp->attr.min_rnr_timer, c->pkt->psn);
	ask_for_receives(qp);
	return responder_drop(c, VERDICT_RNR_NAK_SENT);
}

/* Rows 4 and 4b: a receive WQE, or room for a Read or Atomic. */
static __rte_always_inline enum resp_step
check_resources(struct resp_ctx *c)
{
	struct rc_qp *qp = c->qp;

	if ((c->flags & OP_RQ_WQE) && unlikely(!take_wqe(qp)))
		return not_ready(c);
	if ((c->flags & (OP_READ | OP_ATOMIC)) && !rc_saved_room(c->r))
		return responder_refuse_invalid(c);
	return RESP_CHECK_LENGTH;
}

static bool
payload_fits(const struct rc_qp *qp, const struct packet *pkt)
{
	uint32_t len = pkt->payload_len;

	switch (pkt->op->payload) {
	case PAYLOAD_NONE:
		return len == 0;
	case PAYLOAD_PMTU: /* First and Middle: no padding either */
		return len == qp->pmtu && pkt->pad == 0;
	case PAYLOAD_SOME:
		return len > 0 && len <= qp->pmtu;
	default:
		return len <= qp->pmtu;
	}
}

/*
 * Row 5b: a Write's payloads add up to its DMALen, which is at most RC_MSG_MAX; First and Middle
 * leave at least one byte for the Last.
 */
static bool
write_length_fits(const struct resp_ctx *c)
{
	bool first = c->flags & OP_FIRST;
	uint32_t total = first ? c->pkt->dmalen : c->r->write_dmalen;
	uint32_t left;

	if (total > RC_MSG_MAX)
		return false;
	left = total - (first ? 0 : c->r->write_done);
	return c->flags & OP_LAST ? c->pkt->payload_len == left : c->pkt->payload_len < left;
}

/* Rows 5, 5b and 6. */
static __rte_always_inline enum resp_step
responder_check_length(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;

	if (!payload_fits(c->qp, pkt))
		return responder_refuse_invalid(c);
	if (c->flags & OP_SEND) {
		/* table 17-5: the only Local Length Error */
		if (pkt->payload_len > current_wqe(c->qp)->length - c->r->wqe_offset)
			return responder_refuse(c, AETH_NAK_INVALID_REQUEST, WC_LOC_LEN_ERR);
	} else if (c->flags & OP_WRITE) {
		if (!write_length_fits(c))
			return responder_refuse_invalid(c);
	} else if (c->flags & OP_READ) {
		if (pkt->dmalen > RC_MSG_MAX)
			return responder_refuse_invalid(c);
	} else if (pkt->va & 7) {
		return responder_refuse_invalid(c);
	}
	return RESP_CHECK_ACCESS;
}

/*
 * Row 7. The NAK is 0x62 in all cases; the receive completion tells a region that is too small
 * from a key or right that is wrong (table 17-5).
 */
static __rte_always_inline enum resp_step
check_remote(struct resp_ctx *c, uint32_t rkey, uint64_t va, uint32_t len, uint32_t access)
{
	struct rc_qp *qp = c->qp;
	enum mem_verdict v;

	if (len == 0)
		return RESP_EXECUTE;
	v = mem_access_hint(qp->worker->mem, &c->r->key_hint, rkey, qp->pd, qp->qpn, va, len,
		access, &c->host);
	if (likely(v == MEM_OK))
		return RESP_EXECUTE;
	return responder_refuse(c, AETH_NAK_REMOTE_ACCESS,
		v == MEM_BAD_RANGE ? WC_REM_INV_REQ_ERR : WC_REM_ACCESS_ERR);
}

/*
 * Row 8: the local consumer posted the scatter list, so an error in it is a remote operational
 * error, NAK 0x63. Then invalidate the R_Key of a Send with Invalidate, before the consumer can see
 * the payload. If that fails the request has an invalid R_Key, NAK 0x62 (seed 001; no source gives
 * the completion status: Remote Access Error, as for any bad R_Key).
 */
static __rte_always_inline enum resp_step
check_send(struct resp_ctx *c)
{
	const struct rc_rq_wqe *wqe = current_wqe(c->qp);
	struct rc_qp *qp = c->qp;
	uint32_t left = c->pkt->payload_len;
	uint32_t at = c->r->sge_index;
	uint32_t offset = c->r->sge_offset;
	uint64_t token;

	for (; left > 0; at++, offset = 0) {
		const struct sge *sge = &wqe->sge[at];
		struct piece *p = &c->piece[c->pieces];

		p->len = RTE_MIN(left, sge->length - offset);
		if (p->len == 0)
			continue;
		if (mem_access_hint(qp->worker->mem, &qp->rq->key_hint, sge->lkey, qp->rq->pd,
			    qp->qpn, sge->addr + offset, p->len, MEM_ACCESS_LOCAL_WRITE,
			    &p->host) != MEM_OK)
			return responder_refuse(c, AETH_NAK_REMOTE_OP, WC_LOC_QP_OP_ERR);
		left -= p->len;
		c->pieces++;
	}
	if ((c->flags & OP_INVALIDATE) &&
		mem_invalidate(qp->worker->mem, c->pkt->rkey, qp->pd, qp->qpn, &token) < 0)
		return responder_refuse(c, AETH_NAK_REMOTE_ACCESS, WC_REM_ACCESS_ERR);
	return RESP_EXECUTE;
}

/*
 * Rows 7 and 8. A Write First is checked for the whole message, so that a Write that does not fit
 * writes no byte.
 */
static __rte_always_inline enum resp_step
responder_check_access(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;

	if (c->flags & OP_SEND)
		return check_send(c);
	if (c->flags & OP_ATOMIC)
		return check_remote(c, pkt->rkey, pkt->va, sizeof(uint64_t),
			MEM_ACCESS_REMOTE_ATOMIC);
	if (c->flags & OP_READ)
		return check_remote(c, pkt->rkey, pkt->va, pkt->dmalen, MEM_ACCESS_REMOTE_READ);
	if (c->flags & OP_FIRST)
		return check_remote(c, pkt->rkey, pkt->va, pkt->dmalen, MEM_ACCESS_REMOTE_WRITE);
	return check_remote(c, c->r->write_rkey, c->r->write_va, pkt->payload_len,
		MEM_ACCESS_REMOTE_WRITE);
}

/* --- row 9: execute --- */

static __rte_always_inline void
execute_send(struct resp_ctx *c)
{
	const struct sge *sge = current_wqe(c->qp)->sge;
	const uint8_t *from = c->pkt->payload;
	struct rc_responder *r = c->r;
	unsigned int i;

	for (i = 0; i < c->pieces; i++) {
		uint32_t len = c->piece[i].len;

		memcpy(c->piece[i].host, from, len);
		from += len;
		while (r->sge_offset == sge[r->sge_index].length) {
			r->sge_index++;
			r->sge_offset = 0;
		}
		r->sge_offset += len;
	}
	r->wqe_offset += c->pkt->payload_len;
	if (c->flags & OP_FIRST)
		rc_count(c->qp, rx_send_requests, 1);
}

static __rte_always_inline void
execute_write(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;
	struct rc_responder *r = c->r;

	if (c->flags & OP_FIRST) {
		r->write_va = pkt->va;
		r->write_rkey = pkt->rkey;
		r->write_dmalen = pkt->dmalen;
		r->write_done = 0;
		rc_count(c->qp, rx_write_requests, 1);
	}
	if (pkt->payload_len > 0)
		memcpy(c->host, pkt->payload, pkt->payload_len);
	r->write_va += pkt->payload_len;
	r->write_done += pkt->payload_len;
}

static __rte_always_inline enum resp_step
execute(struct resp_ctx *c)
{
	struct rc_responder *r = c->r;
	uint32_t packets = 1;

	if (c->flags & OP_READ)
		packets = rc_read_packets(c->qp, c->pkt->dmalen);
	r->epsn = psn_add(r->epsn, packets);
	if (c->flags & OP_LAST) {
		r->message = RESP_IDLE;
		r->msn = (r->msn + 1) & PSN_MASK;
	} else {
		r->message = c->flags & OP_SEND ? RESP_IN_SEND : RESP_IN_WRITE;
	}
	if (unlikely(r->nak != 0))
		rc_renew_nak(r);

	if (c->flags & OP_SEND)
		execute_send(c);
	else if (c->flags & OP_WRITE)
		execute_write(c);
	else if (c->flags & OP_READ)
		rc_read_accepted(c->qp, c->pkt, packets);
	else
		rc_atomic_accepted(c->qp, c->pkt, c->host);
	if (unlikely(r->saved_count > 0))
		rc_saved_expire(r);
	rc_count(c->qp, rcvd_bytes, c->pkt->payload_len);
	c->verdict = VERDICT_REQUEST;
	return RESP_COMPLETE;
}

static __rte_always_inline enum resp_step
responder_complete(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;
	struct wc wc = { .status = WC_SUCCESS };

	if (!(c->flags & OP_LAST) || !c->r->wqe_taken)
		return RESP_ACKNOWLEDGE;
	if (c->flags & OP_SEND) {
		wc.opcode = WC_RECV;
		wc.byte_len = c->r->wqe_offset;
	} else {
		wc.opcode = WC_RECV_RDMA_WITH_IMM;
		wc.byte_len = c->r->write_dmalen;
	}
	if (pkt->op->headers & HDR_IMM) {
		wc.wc_flags = WC_WITH_IMM;
		wc.imm_data = pkt->imm;
	} else if (c->flags & OP_INVALIDATE) {
		wc.wc_flags = WC_WITH_INV;
		wc.imm_data = pkt->rkey;
	}
	rc_retire_wqe(c->qp, &wc, pkt->solicited);
	return RESP_ACKNOWLEDGE;
}

/* Owe an ACK for a Send or Write; a Read's or Atomic's response acknowledges it. */
static __rte_always_inline enum resp_step
responder_acknowledge(struct resp_ctx *c)
{
	if (c->flags & (OP_SEND | OP_WRITE))
		rc_owe_ack(c->qp, c->pkt->psn);
	return RESP_DONE;
}

/*
 * Run the steps in order while each returns the next one. @return RESP_DONE or RESP_DUPLICATE
 */
static inline enum resp_step
straight_line(struct resp_ctx *c)
{
	enum resp_step step = check_psn(c);

	if (likely(step == RESP_CHECK_SEQUENCE))
		step = check_sequence(c);
	if (likely(step == RESP_CHECK_SUPPORT))
		step = check_support(c);
	if (likely(step == RESP_CHECK_RESOURCES))
		step = check_resources(c);
	if (likely(step == RESP_CHECK_LENGTH))
		step = responder_check_length(c);
	if (likely(step == RESP_CHECK_ACCESS))
		step = responder_check_access(c);
	if (likely(step == RESP_EXECUTE))
		step = execute(c);
	if (likely(step == RESP_COMPLETE))
		step = responder_complete(c);
	if (likely(step == RESP_ACKNOWLEDGE))
		step = responder_acknowledge(c);
	return step;
}

enum verdict
rc_respond(struct rc_qp *qp, const struct packet *pkt)
{
	struct resp_ctx c;

	c.qp = qp;
	c.r = &qp->resp;
	c.pkt = pkt;
	c.flags = pkt->op->flags;
	c.host = NULL;
	c.pieces = 0;
	if (unlikely(straight_line(&c) == RESP_DUPLICATE))
		return rc_duplicate(qp, pkt);
	return c.verdict;
}
