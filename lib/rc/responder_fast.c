/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fast path of the responder, for the common requests that arrive at ePSN: a Send Only into one
 * sge, a packet of a Write without immediate, a Read request, an Atomic. Each function makes all
 * checks of rc-transport 6 before it changes anything. If one fails it returns false, and
 * responder.c repeats the checks one by one to find the right NAK.
 */

#include <rte_branch_prediction.h>

#include "base/copy.h"
#include "mem/access.h"
#include "rc/qp_directory.h"

/* rows 1 and 2: PSN is ePSN, the opcode may follow, and no NAK is outstanding */
static inline bool
fast_expected(const struct rc_responder *r, const struct packet *pkt, enum resp_message message)
{
	return likely(pkt->psn == r->epsn) && likely(r->turn == RESP_TURN(message));
}

/* row 5: 1 to PMTU bytes */
static inline bool
fast_some_payload(const struct rc_qp *qp, uint32_t len)
{
	return likely(len - 1 < qp->pmtu);
}

/* rc_owe_ack() with the common case, extending an ACK that is already owed, inline */
static inline void
fast_owe_ack(struct rc_qp *qp, uint32_t psn)
{
	struct rc_responder *r = &qp->resp;

	if (unlikely(!r->ack.owed || qp->ack_per_packet || !(qp->work & WORK_RESPOND))) {
		rc_owe_ack(qp, psn);
		return;
	}
	rc_count(qp, ack_deferred, 1);
	r->ack.last = psn;
	r->ack.msn = r->msn;
}

static inline void
fast_executed(struct rc_qp *qp, const struct packet *pkt, uint32_t len, bool last)
{
	struct rc_responder *r = &qp->resp;

	r->epsn = psn_add(r->epsn, 1);
	r->msn = psn_add(r->msn, last);
	if (unlikely(r->saved_count > 0))
		rc_saved_expire(r);
	rc_count(qp, rcvd_bytes, len);
	fast_owe_ack(qp, pkt->psn);
}

static bool __rte_noinline
fast_send_only(struct rc_qp *qp, const struct packet *pkt)
{
	uint32_t len = pkt->payload_len;
	struct rc_rq *rq = &qp->own_rq;
	const struct rc_rq_wqe *wqe;
	uint8_t *host;

	if (unlikely(!fast_expected(&qp->resp, pkt, RESP_IDLE) || qp->srq != NULL ||
		    rc_rq_posted(rq) == 0))
		return false;
	wqe = rc_rq_at(rq, rq->tail);
	if (unlikely(!fast_some_payload(qp, len) || wqe->num_sge != 1 || len > wqe->length))
		return false;
	if (unlikely(mem_access_again(qp->worker->mem, &rq->key_hint, wqe->sge[0].lkey, rq->pd,
			     qp->qpn, wqe->sge[0].addr, len, MEM_ACCESS_LOCAL_WRITE,
			     &host) != MEM_OK))
		return false;
	copy_payload(host, pkt->payload, len);
	rq->tail++;
	rc_count(qp, rx_send_requests, 1);
	fast_executed(qp, pkt, len, true);
	rc_cq_push(qp->recv_cq, qp,
		(struct wc){ .wr_id = wqe->wr_id,
			.opcode = WC_RECV,
			.byte_len = len,
			.qp_num = qp->qpn },
		pkt->solicited);
	return true;
}

/* Write First or Only: checks access to the whole message (row 7). */
static inline bool
fast_write_first(struct rc_qp *qp, const struct packet *pkt, bool last)
{
	uint32_t len = pkt->payload_len, total = pkt->dmalen;
	struct rc_responder *r = &qp->resp;
	uint8_t *host;

	if (unlikely(!fast_expected(r, pkt, RESP_IDLE) || !(qp->access & MEM_ACCESS_REMOTE_WRITE)))
		return false;
	if (unlikely(!fast_some_payload(qp, len) || total > RC_MSG_MAX))
		return false;
	if (unlikely(last ? len != total : len != qp->pmtu || pkt->pad != 0 || len >= total))
		return false;
	if (unlikely(mem_access_again(qp->worker->mem, &r->key_hint, pkt->rkey, qp->pd, qp->qpn,
			     pkt->va, total, MEM_ACCESS_REMOTE_WRITE, &host) != MEM_OK))
		return false;
	copy_payload(host, pkt->payload, len);
	r->message = last ? RESP_IDLE : RESP_IN_WRITE;
	r->write_va = pkt->va + len;
	r->write_rkey = pkt->rkey;
	r->write_dmalen = total;
	r->write_done = len;
	rc_count(qp, rx_write_requests, 1);
	fast_executed(qp, pkt, len, last);
	return true;
}

static inline bool
fast_write_next(struct rc_qp *qp, const struct packet *pkt, bool last)
{
	struct rc_responder *r = &qp->resp;
	uint32_t len = pkt->payload_len, left = r->write_dmalen - r->write_done;
	uint8_t *host;

	if (unlikely(!fast_expected(r, pkt, RESP_IN_WRITE) ||
		    !(qp->access & MEM_ACCESS_REMOTE_WRITE)))
		return false;
	if (unlikely(!fast_some_payload(qp, len)))
		return false;
	if (unlikely(last ? len != left : len != qp->pmtu || pkt->pad != 0 || len >= left))
		return false;
	if (unlikely(mem_access_again(qp->worker->mem, &r->key_hint, r->write_rkey, qp->pd, qp->qpn,
			     r->write_va, len, MEM_ACCESS_REMOTE_WRITE, &host) != MEM_OK))
		return false;
	copy_payload(host, pkt->payload, len);
	r->message = last ? RESP_IDLE : RESP_IN_WRITE;
	r->write_va += len;
	r->write_done += len;
	fast_executed(qp, pkt, len, last);
	return true;
}

/* Accept a Read or Atomic: its response, not an ACK, acknowledges it. */
static inline void
fast_accepted(struct rc_responder *r, uint32_t packets)
{
	r->epsn = psn_add(r->epsn, packets);
	r->msn = psn_add(r->msn, 1);
}

static inline bool
fast_read_request(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;
	uint32_t len = pkt->dmalen, packets;
	uint8_t *host;

	if (unlikely(!fast_expected(r, pkt, RESP_IDLE) || !(qp->access & MEM_ACCESS_REMOTE_READ)))
		return false;
	if (unlikely(pkt->payload_len != 0 || len == 0 || len > RC_MSG_MAX || !rc_saved_room(r)))
		return false;
	if (unlikely(mem_access_again(qp->worker->mem, &r->key_hint, pkt->rkey, qp->pd, qp->qpn,
			     pkt->va, len, MEM_ACCESS_REMOTE_READ, &host) != MEM_OK))
		return false;
	packets = rc_read_packets(qp, len);
	fast_accepted(r, packets);
	rc_read_accepted(qp, pkt, packets);
	return true;
}

static inline bool
fast_atomic(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;
	uint8_t *host;

	if (unlikely(!fast_expected(r, pkt, RESP_IDLE) || !(qp->access & MEM_ACCESS_REMOTE_ATOMIC)))
		return false;
	if (unlikely(pkt->payload_len != 0 || (pkt->va & 7) != 0 || !rc_saved_room(r)))
		return false;
	if (unlikely(mem_access_again(qp->worker->mem, &r->key_hint, pkt->rkey, qp->pd, qp->qpn,
			     pkt->va, sizeof(uint64_t), MEM_ACCESS_REMOTE_ATOMIC, &host) != MEM_OK))
		return false;
	fast_accepted(r, 1);
	rc_atomic_accepted(qp, pkt, host);
	return true;
}

/* Out of line, so that the path of a Send saves no registers for it */
static bool __rte_noinline
fast_write_or_answer(struct rc_qp *qp, const struct packet *pkt)
{
	switch (pkt->opcode) {
	case RC_WRITE_ONLY:
		return fast_write_first(qp, pkt, true);
	case RC_WRITE_FIRST:
		return fast_write_first(qp, pkt, false);
	case RC_WRITE_MIDDLE:
		return fast_write_next(qp, pkt, false);
	case RC_WRITE_LAST:
		return fast_write_next(qp, pkt, true);
	case RC_READ_REQUEST:
		return fast_read_request(qp, pkt);
	case RC_CMP_SWAP:
	case RC_FETCH_ADD:
		return fast_atomic(qp, pkt);
	default:
		return false;
	}
}

bool
rc_respond_in_order(struct rc_qp *qp, const struct packet *pkt)
{
	if (likely(pkt->opcode == RC_SEND_ONLY))
		return fast_send_only(qp, pkt);
	return fast_write_or_answer(qp, pkt);
}
