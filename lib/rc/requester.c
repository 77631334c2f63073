/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Requester: sends SQ WQEs as request packets, in order. Responses: completer.c. Timer and retries:
 * retry.c. Start: requester_life.c.
 */

#include "mem/access.h"
#include "rc/qp_directory.h"
#include "rc/sq.h"
#include "wire/payload.h"
#include "wire/put.h"

/* --- may the WQE at req->send be sent now? --- */

static inline bool
needs_credit(const struct rc_sq_wqe *wqe)
{
	return wqe->opcode != WR_RDMA_WRITE && !rc_wqe_answered(wqe);
}

/* rc-transport 3: one message past the credit limit may be sent, as a probe */
static inline bool
has_credit(struct rc_qp *qp, const struct rc_sq_wqe *wqe)
{
	struct rc_requester *req = &qp->req;

	if (likely(req->unlimited) || psn_diff(req->ssn, psn_add(req->lsn, 1)) <= 0 ||
		!needs_credit(wqe))
		return true;
	if (!req->credit_stalled)
		rc_count(qp, credit_stall);
	req->credit_stalled = true;
	return false;
}

/*
 * Give a message its SSN. A message that takes no receive WQE uses no credit, so LSN advances with
 * the SSN: the Sends after it still have all advertised credits (rc-transport 3).
 */
static inline void
take_ssn(struct rc_requester *req, const struct rc_sq_wqe *wqe)
{
	req->ssn = psn_add(req->ssn, 1);
	if (unlikely(!req->unlimited) && !needs_credit(wqe))
		req->lsn = psn_add(req->lsn, 1);
}

/* PSNs of a message: one per packet, or per response packet of a Read (rc-transport 4) */
static uint32_t
span(const struct rc_qp *qp, const struct rc_sq_wqe *wqe)
{
	return rc_message_packets(qp, rc_wqe_atomic(wqe) ? 0 : wqe->length);
}

/*
 * May a WQE without PSNs be started? `only`, a constant: posting has marked it as one packet of a
 * Send or Write without fence.
 */
static __rte_always_inline bool
may_begin(struct rc_qp *qp, struct rc_sq_wqe *wqe, bool only)
{
	struct rc_requester *req = &qp->req;

	if (unlikely(qp->state != QPS_RTS)) /* SQD finishes started messages and starts none */
		return false;
	if (only)
		return has_credit(qp, wqe);
	if ((wqe->flags & SEND_FENCE) && req->rd_atomic != 0)
		return false;
	if (rc_wqe_local(wqe))
		return true;
	if (rc_wqe_answered(wqe)) {
		if (qp->attr.max_rd_atomic == 0) {
			wqe->status = WC_LOC_QP_OP_ERR; /* no Read or Atomic can ever be sent */
			rc_sq_settle(qp);
			return false;
		}
		return req->rd_atomic < qp->attr.max_rd_atomic &&
			rc_in_flight(req) + span(qp, wqe) <= PSN_WINDOW;
	}
	return has_credit(qp, wqe);
}

/*
 * True if no RNR wait forbids to send. After it only the packet at una is sent: if it finds no
 * receive WQE again, the responder would drop all packets after it. The others follow when it is
 * acknowledged. A late sequence NAK (0x60), which rxe sends for the packets after it, arrives
 * during the retry and is ignored as stale (rc-transport 8).
 */
static inline bool
rnr_allows(const struct rc_requester *req)
{
	return likely(req->rnr_wait == RC_RNR_NONE) ||
		(req->rnr_wait == RC_RNR_PROBE && req->send_psn == req->una);
}

/* How many packets may be sent now. A retransmission is inside the window already. */
static inline uint32_t
packets_allowed(const struct rc_requester *req)
{
	uint32_t in_flight = rc_in_flight(req);

	if (unlikely(!rnr_allows(req)))
		return 0;
	if (unlikely(rc_retrying(req)))
		return UINT32_MAX;
	return in_flight < req->window ? req->window - in_flight : 0;
}

static inline bool
may_go(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	const struct rc_requester *req = &qp->req;

	if (!rnr_allows(req) || wqe->status != WC_SUCCESS)
		return false;
	if (!wqe->assigned && !may_begin(qp, wqe, false))
		return false;
	return rc_wqe_local(wqe) || packets_allowed(req) > 0;
}

/* `only`, a constant: the message has one packet. */
static __rte_always_inline void
assign_psns(struct rc_qp *qp, struct rc_sq_wqe *wqe, bool only)
{
	struct rc_requester *req = &qp->req;

	wqe->assigned = true;
	wqe->only = 0; /* a retransmission uses send_any() */
	wqe->psn = req->next_psn;
	wqe->last_psn = only ? wqe->psn : psn_add(wqe->psn, span(qp, wqe) - 1);
	wqe->restart_psn = wqe->psn;
	take_ssn(req, wqe);
	if (!only && rc_wqe_answered(wqe))
		req->rd_atomic++;
}

/* What became of the WQE at req->send */
enum sent {
	SENT,
	SENT_SINK_FULL,
	SENT_FAILED, /* an lkey or a local operation: wqe->status is set */
	SENT_NOT_NOW, /* may_go() refuses for now, or the QP failed */
	SENT_NOTHING, /* a local operation: executed, no packet */
};

/* --- local operations: executed in SQ order; their completion may wait (sq.c) --- */

static enum sent
execute_local(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	struct rc_sq_more *more = rc_sq_more(&qp->req, wqe);
	struct mem *mem = qp->worker->mem;
	int rc;

	if (wqe->opcode == WR_LOCAL_INV) {
		rc = mem_invalidate(mem, wqe->imm, qp->pd, qp->qpn, &more->token);
	} else {
		struct mem_bind bind = {
			.mw_key = wqe->rkey,
			.new_key = wqe->imm,
			.mr_key = more->mr_key,
			.pd = qp->pd,
			.qpn = qp->qpn,
			.access = more->access,
			.va = wqe->remote_addr,
			.length = more->compare_add,
		};

		rc = mem_mw_bind(mem, &bind, &wqe->rkey, &more->token);
	}
	wqe->assigned = true;
	if (rc != 0) {
		more->token = 0;
		wqe->status = WC_MW_BIND_ERR;
		return SENT_FAILED;
	}
	qp->req.send++;
	return rc_sq_settle(qp) ? SENT_NOTHING : SENT_NOT_NOW;
}

/* --- packets --- */

/*
 * AckReq is set on the last packet of a message, on retransmissions, on every ack_interval-th
 * packet, and on the packet that fills the window, which would never open again without an ACK.
 */
static bool
ask_ack(const struct rc_qp *qp, bool last)
{
	const struct rc_requester *req = &qp->req;

	return last || rc_retrying(req) || rc_in_flight(req) + 1 >= req->window ||
		req->since_ackreq + 1 >= qp->worker->dev->limits.ack_interval;
}

/*
 * Account for a sent packet; `next` is the PSN after it. `only`, a constant: it is a message of one
 * packet, and no retransmission.
 */
static __rte_always_inline void
requester_sent(struct rc_qp *qp, const struct rc_sq_wqe *wqe, bool ackreq, uint32_t next,
	uint32_t payload, bool only)
{
	struct rc_requester *req = &qp->req;

	if (!only && unlikely(rc_retrying(req)))
		rc_count(qp, retransmitted_pkts);
	else
		req->next_psn = next;
	if (only || next == psn_add(wqe->last_psn, 1))
		req->send++;
	qp->credit -= (int32_t)(RC_PACKET_COST + payload);
	req->send_psn = next;
	req->since_ackreq = ackreq ? 0 : req->since_ackreq + 1;
	/* one timer per QP: it starts at the first unacknowledged packet (seed 002) */
	if (unlikely(!req->timing) && req->ack_timeout != 0) {
		req->timing = true;
		timer_start(qp->worker->wheel, &req->timer, req->ack_timeout);
	}
}

/*
 * Write all headers of a Send or Write packet with len payload bytes. @param solicited  set BTH SE
 * @return their length
 */
static inline uint32_t
put_stream_headers(const struct rc_qp *qp, const struct rc_sq_wqe *wqe, struct tx_headers *h,
	uint8_t opcode, bool solicited, bool ackreq, uint32_t len)
{
	uint8_t flags = wire_pad(len) << BTH_PAD_SHIFT, headers, *p;

	if (solicited)
		flags |= BTH_SE;
	p = put_bth_of(h->bytes, qp->bth, opcode, flags, qp->req.send_psn, ackreq);
	if (unlikely(opcode != RC_SEND_ONLY)) {
		headers = opcodes[opcode].headers;
		if (headers & HDR_RETH)
			p = put_reth(p, wqe->remote_addr, wqe->rkey, wqe->length);
		if (unlikely(headers & (HDR_IMM | HDR_IETH)))
			p = put_word(p, wqe->imm);
	}
	return p - h->bytes;
}

/* The last packet of a Send or Write with immediate has SE if the work request asked for it. */
static inline bool
sets_solicited(const struct rc_sq_wqe *wqe, bool last)
{
	return unlikely(wqe->flags & SEND_SOLICITED) && last && wqe->opcode != WR_RDMA_WRITE;
}

/* Send a packet whose payload is in several pieces: copy them into the packet. */
static bool __rte_noinline
send_pieces(const struct rc_qp *qp, const struct tx_headers *h, uint32_t headers_len,
	const struct rc_chunk *chunks, int n, uint32_t len)
{
	struct tx_sink *tx = qp->worker->tx;
	uint8_t *p = tx_begin(tx, &qp->path, h, headers_len, len);
	int i;

	if (p == NULL)
		return false;
	for (i = 0; i < n; i++) {
		memcpy(p, chunks[i].host, chunks[i].len);
		p += chunks[i].len;
	}
	put_padding(p, len);
	tx_commit(tx);
	return true;
}

/*
 * Find the payload of a packet in host memory. A message of one sge needs no walk of the list.
 * @return number of chunks, at least one, or -1: an lkey does not allow the access
 */
static __rte_always_inline int
requester_gather(struct rc_qp *qp, struct rc_sq_wqe *wqe, uint32_t at, uint32_t len, bool only,
	struct rc_chunk *chunks, struct rc_cursor *next)
{
	struct rc_requester *req = &qp->req;

	if (only || likely(COMMON_CASE(wqe->num_sge == 1 && len != 0)))
		return likely(mem_access_hint(qp->worker->mem, &req->key_hint, wqe->sge[0].lkey,
				      qp->pd, qp->qpn, wqe->sge[0].addr + at, len, 0,
				      &chunks[0].host) == MEM_OK)
			? 1
			: -1;
	if (wqe->num_sge == 0 || len == 0) { /* inline data, or no payload */
		chunks[0].host = (uint8_t *)wqe->sge + at;
		return 1;
	}
	*next = req->gather; /* mostly where the last packet ended */
	rc_cursor_seek(next, wqe, req->send, at);
	return rc_cursor_take(qp, next, wqe, len, 0, chunks);
}

/*
 * Send one packet of a Send or Write. `only`, a constant: it is the only one, for the first time,
 * of a WQE that has one sge and neither fence nor SE, and which gets its PSN when the packet is
 * sent.
 */
static __rte_always_inline enum sent
send_stream(struct rc_qp *qp, struct rc_sq_wqe *wqe, bool only)
{
	struct rc_requester *req = &qp->req;
	uint32_t psn = req->send_psn, index = only ? 0 : psn_sub(psn, wqe->psn);
	uint32_t at = index << qp->pmtu_shift, len = wqe->length - at;
	bool last = only || psn == wqe->last_psn, ackreq = ask_ack(qp, last);
	unsigned int place = (index == 0 ? RC_WR_FIRST : 0) | (last ? RC_WR_LAST : 0);
	uint8_t opcode = only ? wqe->only : rc_wr_infos[wqe->opcode].packet[place];
	struct rc_chunk chunks[RC_SGE_MAX];
	struct rc_cursor cursor;
	struct tx_headers h;
	uint32_t headers_len;
	bool out;
	int n;

	if (!last)
		len = qp->pmtu;
	n = requester_gather(qp, wqe, at, len, only, chunks, &cursor);
	if (unlikely(n < 0)) {
		wqe->only = 0;
		wqe->status = WC_LOC_PROT_ERR;
		return SENT_FAILED;
	}
	headers_len = put_stream_headers(qp, wqe, &h, opcode, !only && sets_solicited(wqe, last),
		ackreq, len);
	if (only || likely(n == 1))
		out = tx_send(qp->worker->tx, &qp->path, &h, headers_len, chunks[0].host, len);
	else
		out = send_pieces(qp, &h, headers_len, chunks, n, len);
	if (unlikely(!out))
		return SENT_SINK_FULL;
	if (only)
		assign_psns(qp, wqe, true);
	else if (unlikely(wqe->num_sge > 1 && !last))
		req->gather = cursor;
	requester_sent(qp, wqe, ackreq, psn_add(psn, 1), len, only);
	return SENT;
}

/*
 * Send a Read or Atomic request. A retried Read asks from the first missing response on (rc-cases).
 */
static enum sent
send_read_or_atomic(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	uint8_t opcode = rc_wr_infos[wqe->opcode].packet[0];
	uint32_t psn = qp->req.send_psn, at = rc_offset(qp, psn, wqe->psn);
	const struct rc_sq_more *more = rc_sq_more(&qp->req, wqe);
	bool swap = opcode == RC_CMP_SWAP;
	struct tx_headers h;
	bool ackreq = ask_ack(qp, true); /* the request is one packet */
	uint8_t *p = put_bth_of(h.bytes, qp->bth, opcode, 0, psn, ackreq);

	if (opcode == RC_READ_REQUEST)
		p = put_reth(p, wqe->remote_addr + at, wqe->rkey, wqe->length - at);
	else
		p = put_atomiceth(p, wqe->remote_addr, wqe->rkey,
			swap ? more->swap : more->compare_add, swap ? more->compare_add : 0);
	if (unlikely(!tx_send(qp->worker->tx, &qp->path, &h, p - h.bytes, NULL, 0)))
		return SENT_SINK_FULL;
	wqe->restart_psn = psn;
	requester_sent(qp, wqe, ackreq, psn_add(wqe->last_psn, 1), 0, false);
	return SENT;
}

/* Send one packet of any WQE, or execute a local operation. */
static enum sent __rte_noinline
send_any(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	if (!may_go(qp, wqe))
		return SENT_NOT_NOW;
	if (unlikely(rc_wqe_local(wqe))) {
		if (!wqe->assigned)
			return execute_local(qp, wqe);
		qp->req.send++; /* executed before a rewind */
		return SENT_NOTHING;
	}
	if (!wqe->assigned)
		assign_psns(qp, wqe, false);
	return rc_wqe_answered(wqe) ? send_read_or_atomic(qp, wqe) : send_stream(qp, wqe, false);
}

/* Send a WQE that posting marked: one sge, one packet, neither fence nor SE. */
static __rte_always_inline enum sent
send_only(struct rc_qp *qp, struct rc_sq_wqe *wqe)
{
	return likely(may_begin(qp, wqe, true)) ? send_stream(qp, wqe, true) : SENT_NOT_NOW;
}

static inline unsigned int
send_requests(struct rc_qp *qp, unsigned int budget)
{
	struct rc_requester *req = &qp->req;
	uint32_t n = 0, room = COMMON_CASE(true) ? packets_allowed(req) : 0; /* of send_only() */
	struct rc_sq_wqe *wqe;
	enum sent s;

	while (n < budget) {
		if (req->send == req->head)
			goto idle;
		if (qp->credit <= 0)
			return n;
		wqe = rc_sq_at(req, req->send);
		if (likely(n < room && wqe->only != 0)) {
			s = send_only(qp, wqe);
		} else {
			s = send_any(qp, wqe);
			room = 0; /* its conditions may no longer hold */
		}
		if (likely(s == SENT)) {
			n++;
		} else if (s == SENT_SINK_FULL) {
			rc_count(qp, tx_stall);
			return n;
		} else if (s != SENT_NOTHING) {
			if (s == SENT_FAILED)
				rc_sq_settle(qp);
			goto idle;
		}
	}
	return n;
idle:
	qp->work &= ~WORK_REQUEST;
	return n;
}

unsigned int
rc_request(struct rc_qp *qp, unsigned int budget)
{
	int32_t credit = qp->credit;
	unsigned int n = send_requests(qp, budget);

	if (n > 0) { /* the credit used gives the payload bytes: requester_sent() */
		rc_add(qp, sent_pkts, n);
		rc_add(qp, sent_bytes, (uint32_t)(credit - qp->credit) - n * RC_PACKET_COST);
	}
	return n;
}
