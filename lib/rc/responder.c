/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "base/copy.h"
#include "mem/access.h"
#include "rc/failure.h"
#include "rc/qp_directory.h"

/*
 * Responder: one request packet in, at most one effect and one response out. Order of checks:
 * rc-transport 6; "row N" cites its table. Requests that are not executed: refusals.c.
 * Sending of responses: responses.c.
 *
 * Each check returns RESP_OK or what is wrong. No memory is written before all checks have passed,
 * and only rc_request_failed() answers a failure.
 *
 * request_run() is compiled once for any request, and once more for each of RC_COMMON_REQUESTS,
 * whose `shape` is a constant: what it rules out costs nothing. A common request that cannot be
 * executed so, because a check failed or because it is not so common, has changed nothing. It runs
 * again as any request.
 */

/* What the compiler may know of a request. */
struct shape {
	uint16_t flags; /* OP_ */
	uint8_t headers; /* HDR_ */
	uint8_t payload; /* enum payload_rule */
	/*
	 * No NAK is outstanding or owed; a Send has at least one byte, and its receive WQE is of
	 * the QP's own RQ and has one sge.
	 */
	bool common;
};

struct resp_ctx {
	struct rc_qp *qp;
	struct rc_responder *r;
	const struct packet *pkt;
	struct shape shape;
	uint32_t len; /* of the payload */
	const struct rc_rq_wqe *wqe; /* Send, Write with immediate */
	uint8_t *host; /* Write, Atomic: destination */
	unsigned int pieces; /* Send: used entries of piece[] */
	struct rc_chunk piece[RC_SGE_MAX];
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
inline bool
rc_take_wqe(struct rc_qp *qp)
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

/* @param rq  its tail is the WQE; NULL: the WQE is a copy, and has left the SRQ */
static __rte_always_inline void
retire_wqe(struct rc_qp *qp, struct rc_rq *rq, const struct rc_rq_wqe *wqe, struct wc wc,
	bool solicited)
{
	struct rc_cq_batch b = rc_cq_begin(qp->recv_cq, qp->worker);

	wc.wr_id = wqe->wr_id;
	wc.qp_num = qp->qpn;
	if (rq != NULL)
		rq->tail++;
	rc_cq_add(&b, qp, wc, solicited);
	rc_cq_end(&b, qp->worker, solicited);
}

void
rc_retire_wqe(struct rc_qp *qp, struct wc wc, bool solicited)
{
	qp->resp.wqe_taken = false;
	retire_wqe(qp, qp->srq == NULL ? qp->rq : NULL, current_wqe(qp), wc, solicited);
}

/* --- the checks, in the order of rc-transport 6 --- */

static __rte_always_inline int
check_psn(struct resp_ctx *c)
{
	if (unlikely(c->pkt->psn != c->r->epsn))
		return RESP_NOT_EXPECTED;
	if (!c->shape.common) {
		c->r->nak_sent = false;
		c->r->rnr_sent = false;
	}
	return RESP_OK;
}

/*
 * The message in progress before a request with these flags (edge OP_FIRST), or after it (OP_LAST).
 */
static __rte_always_inline enum resp_message
message_at(uint16_t flags, uint16_t edge)
{
	if (flags & edge)
		return RESP_IDLE;
	return flags & OP_SEND ? RESP_IN_SEND : RESP_IN_WRITE;
}

/* Row 2: opcode sequence (rc-transport 2). */
static __rte_always_inline int
check_sequence(struct resp_ctx *c)
{
	uint16_t flags = c->shape.flags;
	enum resp_message before = message_at(flags, OP_FIRST);

	if (c->shape.common) /* also: no NAK is outstanding or owed */
		return likely(c->r->turn == RESP_TURN(before)) ? RESP_OK : RESP_UNCOMMON;
	if (!(flags & (OP_FIRST | OP_SEND | OP_WRITE)))
		return QP_FAILURE_OPCODE;
	if (c->r->message != before)
		return QP_FAILURE_SEQUENCE;
	return RESP_OK;
}

/* The right that a request needs, at the QP and at the memory. A Send needs none. */
static __rte_always_inline uint32_t
access_of(uint16_t flags)
{
	if (flags & OP_WRITE)
		return MEM_ACCESS_REMOTE_WRITE;
	if (flags & OP_READ)
		return MEM_ACCESS_REMOTE_READ;
	return flags & OP_ATOMIC ? MEM_ACCESS_REMOTE_ATOMIC : 0;
}

/* Row 3: the operation is enabled. Sends always are. */
static __rte_always_inline int
check_support(struct resp_ctx *c)
{
	uint32_t need = access_of(c->shape.flags);

	if (!(c->shape.flags & OP_REQUEST))
		return QP_FAILURE_OPCODE;
	return likely((c->qp->access & need) == need) ? RESP_OK : QP_FAILURE_NOT_ENABLED;
}

/* Rows 4 and 4b: a receive WQE, or room for a Read or Atomic. */
static __rte_always_inline int
check_resources(struct resp_ctx *c)
{
	uint16_t flags = c->shape.flags;
	struct rc_qp *qp = c->qp;

	if (flags & OP_RQ_WQE) {
		if (c->shape.common) { /* it completes with this packet: its progress is not kept */
			if (unlikely(qp->srq != NULL || rc_rq_posted(&qp->own_rq) == 0))
				return RESP_UNCOMMON;
		} else if (unlikely(!rc_take_wqe(qp))) {
			return RESP_NOT_READY;
		}
	}
	if (flags & (OP_SEND | OP_RQ_WQE))
		c->wqe = c->shape.common ? rc_rq_at(&qp->own_rq, qp->own_rq.tail) : current_wqe(qp);
	if ((flags & (OP_READ | OP_ATOMIC)) && unlikely(!rc_saved_room(c->r)))
		return QP_FAILURE_NO_ROOM;
	return RESP_OK;
}

/* How many bytes of its WQE a Send has filled already */
static __rte_always_inline uint32_t
send_filled(const struct resp_ctx *c)
{
	return c->shape.flags & OP_FIRST ? 0 : c->r->wqe_offset;
}

static __rte_always_inline bool
payload_fits(const struct resp_ctx *c)
{
	uint32_t len = c->len, pmtu = c->qp->pmtu;

	switch (c->shape.payload) {
	case PAYLOAD_NONE:
		return len == 0;
	case PAYLOAD_PMTU: /* First and Middle: no padding either */
		return len == pmtu && c->pkt->pad == 0;
	case PAYLOAD_SOME:
		return len - 1 < pmtu; /* 1 to PMTU bytes: for length 0 the difference wraps */
	default:
		return len <= pmtu;
	}
}

/*
 * Row 5b: a Write's payloads add up to its DMALen, which is at most RC_MSG_MAX; First and Middle
 * leave at least one byte for the Last.
 */
static __rte_always_inline bool
write_length_fits(const struct resp_ctx *c)
{
	uint32_t left = c->pkt->dmalen;

	if (!(c->shape.flags & OP_FIRST))
		left = c->r->write_dmalen - c->r->write_done;
	else if (unlikely(left > RC_MSG_MAX))
		return false;
	return c->shape.flags & OP_LAST ? c->len == left : c->len < left;
}

/* Rows 5, 5b and 6. */
static __rte_always_inline int
responder_check_length(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;
	uint16_t flags = c->shape.flags;

	if (unlikely(!payload_fits(c)))
		return QP_FAILURE_LENGTH;
	if (flags & OP_SEND) {
		if (unlikely(c->len > c->wqe->length - send_filled(c)))
			return QP_FAILURE_SEND_TOO_LONG;
	} else if (flags & OP_WRITE) {
		if (unlikely(!write_length_fits(c)))
			return QP_FAILURE_DMALEN;
	} else if (flags & OP_READ) {
		if (unlikely(pkt->dmalen > RC_MSG_MAX))
			return QP_FAILURE_DMALEN;
	} else if (unlikely(pkt->va & 7)) {
		return QP_FAILURE_ALIGNMENT;
	}
	return RESP_OK;
}

/* Row 7. An access of no byte needs no valid key. */
static __rte_always_inline int
check_remote(struct resp_ctx *c, uint32_t rkey, uint64_t va, uint32_t len)
{
	struct rc_qp *qp = c->qp;
	enum mem_verdict v;
	uint8_t *host;

	if (unlikely(len == 0))
		return RESP_OK;
	v = mem_access_hint(qp->worker->mem, &c->r->key_hint, rkey, qp->pd, qp->qpn, va, len,
		access_of(c->shape.flags), &host);
	if (likely(v == MEM_OK)) {
		c->host = host;
		return RESP_OK;
	}
	return v == MEM_BAD_RANGE ? QP_FAILURE_RANGE : QP_FAILURE_RKEY;
}

/* Find `len` bytes at `offset` of a sge of a receive WQE: the next piece. */
static __rte_always_inline bool
find_piece(struct resp_ctx *c, const struct sge *sge, uint32_t offset, uint32_t len)
{
	struct rc_rq *rq = c->shape.common ? &c->qp->own_rq : c->qp->rq;
	uint8_t *host;

	if (unlikely(mem_access_hint(c->qp->worker->mem, &rq->key_hint, sge->lkey, rq->pd,
			     c->qp->qpn, sge->addr + offset, len, MEM_ACCESS_LOCAL_WRITE,
			     &host) != MEM_OK))
		return false;
	c->piece[c->pieces++] = (struct rc_chunk){ host, len };
	return true;
}

/* Find the places of a Send's payload in the scatter list. */
static __rte_always_inline int
find_pieces(struct resp_ctx *c)
{
	const struct rc_rq_wqe *wqe = c->wqe;
	uint32_t left = c->len, len, at, offset;

	if (c->shape.common) {
		if (unlikely(wqe->num_sge != 1))
			return RESP_UNCOMMON;
		return likely(find_piece(c, &wqe->sge[0], 0, left)) ? RESP_OK : QP_FAILURE_SCATTER;
	}
	at = c->r->sge_index;
	for (offset = c->r->sge_offset; left > 0; at++, offset = 0) {
		len = RTE_MIN(left, wqe->sge[at].length - offset);
		if (len != 0 && !find_piece(c, &wqe->sge[at], offset, len))
			return QP_FAILURE_SCATTER;
		left -= len;
	}
	return RESP_OK;
}

/*
 * Row 8: the local consumer posted the scatter list, so an error in it is a remote operational
 * error, NAK 0x63. Then invalidate the R_Key of a Send with Invalidate, before the consumer can see
 * the payload. If that fails the request has an invalid R_Key, NAK 0x62 (seed 001; no source gives
 * the completion status: Remote Access Error, as for any bad R_Key).
 */
static __rte_always_inline int
check_send(struct resp_ctx *c)
{
	int found = find_pieces(c);
	struct rc_qp *qp = c->qp;
	uint64_t token;

	if (unlikely(found != RESP_OK))
		return found;
	if ((c->shape.flags & OP_INVALIDATE) &&
		mem_invalidate(qp->worker->mem, c->pkt->rkey, qp->pd, qp->qpn, &token) < 0)
		return QP_FAILURE_RKEY;
	return RESP_OK;
}

/*
 * Rows 7 and 8. A Write First is checked for the whole message, so that a Write that does not fit
 * writes no byte.
 */
static __rte_always_inline int
responder_check_access(struct resp_ctx *c)
{
	const struct packet *pkt = c->pkt;
	uint16_t flags = c->shape.flags;

	if (flags & OP_SEND)
		return check_send(c);
	if (!(flags & OP_FIRST)) /* of a Write */
		return check_remote(c, c->r->write_rkey, c->r->write_va, c->len);
	return check_remote(c, pkt->rkey, pkt->va,
		flags & OP_ATOMIC ? sizeof(uint64_t) : pkt->dmalen);
}

/* --- row 9: execute --- */

static __rte_always_inline void
execute_send(struct resp_ctx *c)
{
	struct rc_responder *r = c->r;
	const uint8_t *from = c->pkt->payload;
	const struct sge *sge = c->wqe->sge;
	unsigned int i;

	if (c->shape.flags & OP_FIRST)
		rc_count(c->qp, rx_send_requests);
	if (c->shape.common) {
		copy_payload(c->piece[0].host, from, c->piece[0].len);
		return;
	}
	for (i = 0; i < c->pieces; i++) {
		copy_payload(c->piece[i].host, from, c->piece[i].len);
		from += c->piece[i].len;
		while (r->sge_offset == sge[r->sge_index].length) {
			r->sge_index++;
			r->sge_offset = 0;
		}
		r->sge_offset += c->piece[i].len;
	}
	r->wqe_offset += c->len;
}

static __rte_always_inline void
execute_write(struct resp_ctx *c)
{
	bool first = c->shape.flags & OP_FIRST;
	const struct packet *pkt = c->pkt;
	struct rc_responder *r = c->r;

	copy_payload(c->host, pkt->payload, c->len);
	if (first) {
		r->write_rkey = pkt->rkey;
		r->write_dmalen = pkt->dmalen;
		rc_count(c->qp, rx_write_requests);
	}
	r->write_va = (first ? pkt->va : r->write_va) + c->len;
	r->write_done = (first ? 0 : r->write_done) + c->len;
}

static __rte_always_inline void
execute(struct resp_ctx *c)
{
	uint16_t flags = c->shape.flags;
	struct rc_responder *r = c->r;
	uint32_t packets = 1;

	if (flags & OP_READ)
		packets = rc_message_packets(c->qp, c->pkt->dmalen);
	r->epsn = psn_add(r->epsn, packets);
	if (flags & OP_LAST)
		r->msn = psn_add(r->msn, 1);
	if ((flags & OP_ONLY) != OP_ONLY) /* after an Only it is RESP_IDLE as before */
		r->message = message_at(flags, OP_LAST);
	if (!c->shape.common && unlikely(r->nak != 0))
		rc_renew_nak(r);

	if (flags & OP_READ) {
		rc_read_accepted(c->qp, c->pkt, packets);
		return;
	}
	if (flags & OP_ATOMIC) {
		rc_atomic_accepted(c->qp, c->pkt, c->host);
		return;
	}
	if (flags & OP_SEND)
		execute_send(c);
	else
		execute_write(c);
	if (unlikely(r->saved_count > 0))
		rc_saved_expire(r);
	rc_add(c->qp, rcvd_bytes, c->len);
}

/* The last packet of a message that took a receive WQE completes it. */
static __rte_always_inline void
responder_complete(struct resp_ctx *c)
{
	uint16_t flags = c->shape.flags;
	const struct packet *pkt = c->pkt;
	struct wc wc = { .status = WC_SUCCESS };

	if (!(flags & OP_LAST) || !(flags & (OP_SEND | OP_RQ_WQE)))
		return;
	if (flags & OP_SEND) {
		wc.opcode = WC_RECV;
		wc.byte_len = c->shape.common ? c->len : c->r->wqe_offset;
	} else {
		wc.opcode = WC_RECV_RDMA_WITH_IMM;
		wc.byte_len = c->r->write_dmalen;
	}
	if (c->shape.headers & HDR_IMM) {
		wc.wc_flags = WC_WITH_IMM;
		wc.imm_data = pkt->imm;
	} else if (flags & OP_INVALIDATE) {
		wc.wc_flags = WC_WITH_INV;
		wc.imm_data = pkt->rkey;
	}
	if (c->shape.common)
		retire_wqe(c->qp, &c->qp->own_rq, c->wqe, wc, pkt->solicited);
	else
		rc_retire_wqe(c->qp, wc, pkt->solicited);
}

/*
 * Owe an ACK for a Send or Write, coalesced with one that is owed already. A Read's or Atomic's
 * response acknowledges it.
 */
static __rte_always_inline void
responder_acknowledge(struct resp_ctx *c)
{
	bool each = c->qp->ack_per_packet;
	struct rc_responder *r = c->r;
	struct rc_qp *qp = c->qp;

	if (!(c->shape.flags & (OP_SEND | OP_WRITE)))
		return;
	if (unlikely(!r->ack.owed)) {
		r->ack.owed = true;
		r->ack.first = c->pkt->psn;
	} else if (likely(!each)) {
		rc_count(qp, ack_deferred);
	}
	r->ack.last = c->pkt->psn;
	r->ack.msn = r->msn;
	/* with ack_per_packet send it at once if possible, so that it has its own MSN */
	if (likely(!each) || !rc_ack_now(qp))
		rc_want(qp, WORK_RESPOND);
}

/* --- all of it --- */

static __rte_always_inline int
request_run(struct rc_qp *qp, const struct packet *pkt, const struct shape shape)
{
	int found;
	struct resp_ctx c;

	c.qp = qp;
	c.r = &qp->resp;
	c.pkt = pkt;
	c.shape = shape;
	c.len = pkt->payload_len;
	c.wqe = NULL;
	c.host = NULL;
	c.pieces = 0;
	found = check_psn(&c);
	if (likely(found == RESP_OK))
		found = check_sequence(&c);
	if (likely(found == RESP_OK))
		found = check_support(&c);
	if (likely(found == RESP_OK))
		found = check_resources(&c);
	if (likely(found == RESP_OK))
		found = responder_check_length(&c);
	if (likely(found == RESP_OK))
		found = responder_check_access(&c);
	if (unlikely(found != RESP_OK))
		return found;
	execute(&c);
	responder_complete(&c);
	responder_acknowledge(&c);
	return RESP_OK;
}

static enum verdict __rte_noinline
respond_any(struct rc_qp *qp, const struct packet *pkt)
{
	const struct opcode_info *op = pkt->op;
	int found;

	found = request_run(qp, pkt,
		(struct shape){ .flags = op->flags,
			.headers = op->headers,
			.payload = op->payload });
	return likely(found == RESP_OK) ? VERDICT_REQUEST : rc_request_failed(qp, pkt, found);
}

#define RUN_COMMON(op, may, hdrs, rule)                                                            \
	request_run(qp, pkt,                                                                       \
		(struct shape){ .flags = may, .headers = hdrs, .payload = rule, .common = true })
#define RESPOND_COMMON(op, may, hdrs, rule)                                                        \
	case op:                                                                                   \
		if (likely(RUN_COMMON(op, may, hdrs, rule) == RESP_OK))                            \
			return VERDICT_REQUEST;                                                    \
		break;

/* A function of its own, which saves no registers for the other requests */
static enum verdict __rte_noinline
respond_send_only(struct rc_qp *qp, const struct packet *pkt)
{
	if (likely(RC_COMMON_SEND(RUN_COMMON) == RESP_OK))
		return VERDICT_REQUEST;
	return respond_any(qp, pkt);
}

static enum verdict __rte_noinline
respond_common(struct rc_qp *qp, const struct packet *pkt)
{
	if (COMMON_CASE(true)) {
		switch (pkt->opcode) {
			RC_COMMON_REQUESTS(RESPOND_COMMON)
		default:
			break;
		}
	}
	return respond_any(qp, pkt);
}

enum verdict
rc_respond(struct rc_qp *qp, const struct packet *pkt)
{
	if (likely(COMMON_CASE(pkt->opcode == RC_SEND_ONLY)))
		return respond_send_only(qp, pkt);
	return respond_common(qp, pkt);
}
