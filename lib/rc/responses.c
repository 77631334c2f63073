/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "mem/access.h"
#include "rc/failure.h"
#include "wire/put.h"

/*
 * Responder: send the responses owed, in the order of the requests, up to the caller's budget.
 * Every function here can stop after any packet (budget used, sink full) and continue later.
 */

/* --- saved requests (rc-transport 7) --- */

static void __rte_noinline
ack_run_hand_on(struct rc_responder *r, const struct rc_ack_run *ack)
{
	struct rc_ack_run *next = r->saved_count > 1 ? &rc_saved_at(r, 1)->ack : &r->ack;

	if (!next->owed)
		*next = *ack;
}

/* Drop the oldest entry. An ACK owed before it moves to the next entry. */
static inline void
saved_drop(struct rc_responder *r)
{
	const struct rc_saved *old = rc_saved_at(r, 0);

	if (unlikely(old->ack.owed))
		ack_run_hand_on(r, &old->ack);
	if (r->saved_done > 0)
		r->saved_done--;
	r->saved_head = r->saved_head + 1u == r->saved_size ? 0 : r->saved_head + 1;
	r->saved_count--;
}

inline void
rc_saved_expire(struct rc_responder *r)
{
	while (r->saved_count > 0 && rc_saved_at(r, 0)->answered &&
		psn_sub(r->epsn, rc_saved_at(r, 0)->last_psn) > PSN_WINDOW)
		saved_drop(r);
}

static inline struct rc_saved *
saved_add(struct rc_qp *qp, uint32_t psn, uint32_t packets)
{
	uint32_t last_psn = psn_add(psn, packets - 1);
	struct rc_responder *r = &qp->resp;
	struct rc_saved *s;

	while (r->saved_count >= r->saved_limit)
		saved_drop(r);
	s = rc_saved_at(r, r->saved_count++);
	s->psn = psn;
	s->last_psn = last_psn;
	s->msn = r->msn;
	s->answered = false;
	s->pending = true;
	/*
	 * its response acknowledges all requests before it (rc-transport 4); with ack_per_packet
	 * they still get their own ACKs
	 */
	s->ack.owed = false;
	if (unlikely(qp->ack_per_packet))
		s->ack = r->ack;
	else if (r->ack.owed)
		rc_count(qp, ack_deferred);
	r->ack.owed = false;
	r->saved_due = true;
	rc_want(qp, WORK_RESPOND);
	return s;
}

void
rc_read_accepted(struct rc_qp *qp, const struct packet *pkt, uint32_t packets)
{
	struct rc_saved *s = saved_add(qp, pkt->psn, packets);

	s->atomic = false;
	s->rkey = pkt->rkey;
	s->va = pkt->va;
	s->length = pkt->dmalen;
	s->end = pkt->dmalen;
	s->fresh_psn = pkt->psn;
	s->start_psn = pkt->psn;
	s->next_psn = pkt->psn;
	s->end_psn = s->last_psn;
	rc_saved_expire(&qp->resp);
	rc_count(qp, rx_read_requests);
}

void
rc_atomic_accepted(struct rc_qp *qp, const struct packet *pkt, uint8_t *host)
{
	struct rc_saved *s = saved_add(qp, pkt->psn, 1);

	s->atomic = true;
	s->result = rc_atomic(host, pkt->opcode, pkt->compare, pkt->swap_add);
	rc_saved_expire(&qp->resp);
	rc_count(qp, rx_atomic_requests);
}

/* --- sending --- */

struct answer {
	struct rc_qp *qp;
	unsigned int budget;
	unsigned int sent;
	int32_t credit;
};

/* Write the BTH of a response with len payload bytes. @return the end */
static inline uint8_t *
response_bth(const struct answer *a, struct tx_headers *h, uint8_t opcode, uint32_t psn,
	uint32_t len)
{
	return put_bth_of(h->bytes, a->qp->bth, opcode, wire_pad(len) << BTH_PAD_SHIFT, psn, false);
}

/*
 * Send one packet. @retval false  not now: budget or credit used, or sink full
 *
 * @param end  of the headers
 */
static __rte_always_inline bool
response_emit(struct answer *a, const struct tx_headers *h, const uint8_t *end,
	const uint8_t *payload, uint32_t len)
{
	struct rc_qp *qp = a->qp;

	if (a->sent == a->budget || a->credit <= 0)
		return false;
	if (unlikely(!tx_send(qp->worker->tx, &qp->path, h, end - h->bytes, payload, len))) {
		rc_count(qp, tx_stall);
		return false;
	}
	a->sent++;
	a->credit -= (int32_t)(RC_PACKET_COST + len);
	rc_count(qp, sent_pkts);
	rc_add(qp, sent_bytes, len);
	return true;
}

/*
 * Credit code of an AETH (rc-transport 3): the receive WQEs posted, without the one being filled.
 */
static uint8_t
response_credits(const struct rc_qp *qp)
{
	if (!qp->flow_control || qp->srq != NULL)
		return AETH_ACK | AETH_NO_CREDITS;
	return AETH_ACK | credit_encode(rc_rq_posted(qp->rq) - qp->resp.wqe_taken);
}

static __rte_noinline bool
send_aeth(struct answer *a, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	struct tx_headers h;
	uint8_t *p = response_bth(a, &h, RC_ACK, psn, 0);

	return response_emit(a, &h, put_aeth(p, syndrome, msn), NULL, 0);
}

static bool
send_acks(struct answer *a, struct rc_ack_run *run)
{
	if (!run->owed)
		return true;
	if (!a->qp->ack_per_packet)
		run->first = run->last;
	/* all requests of the run were executed: every ACK has the newest MSN (seed 002) */
	while (send_aeth(a, response_credits(a->qp), run->first, run->msn)) {
		run->owed = run->first != run->last;
		if (!run->owed)
			return true;
		run->first = psn_add(run->first, 1);
	}
	return false;
}

static bool
send_nak(struct answer *a)
{
	struct rc_responder *r = &a->qp->resp;

	if (r->nak == 0)
		return true;
	if (!send_aeth(a, r->nak, r->nak_psn, r->msn))
		return false;
	if (AETH_KIND(r->nak) == AETH_RNR_NAK)
		rc_count(a->qp, send_rnr_err);
	else if (r->nak == AETH_NAK_PSN_SEQUENCE)
		rc_count(a->qp, send_seq_err);
	r->nak = 0;
	return true;
}

static bool
send_atomic(struct answer *a, struct rc_saved *s)
{
	struct tx_headers h;
	uint8_t *p = response_bth(a, &h, RC_ATOMIC_ACK, s->psn, 0);

	p = put_aeth(p, response_credits(a->qp), s->msn);
	return response_emit(a, &h, put_atomicack(p, s->result), NULL, 0);
}

/*
 * A Read's memory is no longer accessible. Send a NAK with the PSN of the missing response, drop
 * all later responses, and let the QP fail (seed 001). A replay just stops: duplicates are never
 * NAKed.
 */
static void
read_refused(struct rc_qp *qp, struct rc_saved *s)
{
	struct rc_responder *r = &qp->resp;
	uint32_t psn = s->next_psn;

	if (s->answered)
		return;
	r->nak = 0; /* one that is owed is for a request after this Read: drop it, too */
	rc_forget_answers(r);
	rc_count(qp, resp_remote_access_errors);
	rc_owe_nak(qp, AETH_NAK_REMOTE_ACCESS, psn);
	if (qp->state == QPS_ERR)
		return; /* an earlier fatal NAK, owed after this Read, moved the QP to ERR */
	rc_qp_event(qp, EVENT_QP_ACCESS_ERR);
	rc_fail(qp,
		(struct qp_failure){ .psn = psn,
			.expected = psn,
			.opcode = RC_READ_REQUEST,
			.reason = QP_FAILURE_READ_MEMORY,
			.syndrome = AETH_NAK_REMOTE_ACCESS,
			.verdict = VERDICT_NAK_SENT });
}

static uint8_t
read_opcode(const struct rc_saved *s)
{
	if (s->next_psn == s->start_psn)
		return s->next_psn == s->end_psn ? RC_READ_RESP_ONLY : RC_READ_RESP_FIRST;
	return s->next_psn == s->end_psn ? RC_READ_RESP_LAST : RC_READ_RESP_MIDDLE;
}

/*
 * Send the response packet with s->next_psn, which the caller advances. host: local address of the
 * data. @return false: not now
 */
static inline bool
send_read_packet(struct answer *a, const struct rc_saved *s, const uint8_t *host, uint32_t len)
{
	uint8_t opcode = read_opcode(s), *p;
	struct tx_headers h;

	p = response_bth(a, &h, opcode, s->next_psn, len);
	if (opcode != RC_READ_RESP_MIDDLE)
		p = put_aeth(p, response_credits(a->qp), s->msn);
	return response_emit(a, &h, p, host, len);
}

/*
 * Send response packets of a Read. Each packet checks the R_Key again (rc-cases: region
 * deregistered during a Read).
 */
static bool
send_read(struct answer *a, struct rc_saved *s)
{
	struct rc_qp *qp = a->qp;
	uint32_t offset, len;
	uint8_t *host = NULL;

	while (psn_diff(s->next_psn, s->end_psn) <= 0) {
		offset = rc_offset(qp, s->next_psn, s->psn);
		len = RTE_MIN(s->end - offset, (uint32_t)qp->pmtu);
		if (len > 0 &&
			mem_access_hint(qp->worker->mem, &qp->resp.key_hint, s->rkey, qp->pd,
				qp->qpn, s->va + offset, len, MEM_ACCESS_REMOTE_READ,
				&host) != MEM_OK) {
			if (!s->answered && s->next_psn != s->fresh_psn) {
				/*
				 * a repeated packet: skip to the first new one, which may be NAKed
				 */
				s->next_psn = s->fresh_psn;
				continue;
			}
			read_refused(qp, s);
			return true;
		}
		if (!send_read_packet(a, s, host, len))
			return false;
		if (s->next_psn == s->fresh_psn)
			s->fresh_psn = psn_add(s->fresh_psn, 1);
		s->next_psn = psn_add(s->next_psn, 1);
	}
	return true;
}

static bool
send_saved(struct answer *a, struct rc_saved *s)
{
	if (!s->pending)
		return true;
	if (!(s->atomic ? send_atomic(a, s) : send_read(a, s)))
		return false;
	s->pending = false;
	s->answered = true;
	return true;
}

static bool
send_all_saved(struct answer *a)
{
	struct rc_responder *r = &a->qp->resp;

	if (!r->saved_due)
		return true;
	for (; r->saved_done < r->saved_count; r->saved_done++) {
		struct rc_saved *s = rc_saved_at(r, r->saved_done);

		if (!send_acks(a, &s->ack) || !send_saved(a, s))
			return false;
	}
	r->saved_due = false;
	return true;
}

unsigned int
rc_answer(struct rc_qp *qp, unsigned int budget)
{
	struct answer a = { .qp = qp, .budget = budget, .credit = qp->credit };

	if (send_all_saved(&a) && send_acks(&a, &qp->resp.ack) && send_nak(&a))
		qp->work &= ~WORK_RESPOND;
	qp->credit = a.credit;
	return a.sent;
}

/* --- record what is owed --- */

bool
rc_ack_now(struct rc_qp *qp)
{
	struct answer a = { .qp = qp, .budget = 1, .credit = 1 };
	struct rc_responder *r = &qp->resp;

	return !r->saved_due && r->nak == 0 && send_acks(&a, &r->ack);
}

void
rc_owe_nak(struct rc_qp *qp, uint8_t syndrome, uint32_t psn)
{
	qp->resp.nak = syndrome;
	qp->resp.nak_psn = psn;
	rc_want(qp, WORK_RESPOND);
}

void
rc_renew_nak(struct rc_responder *r)
{
	if (psn_diff(r->dropped_psn, r->epsn) < 0) {
		r->nak = 0; /* all dropped requests have arrived again */
		return;
	}
	r->nak = AETH_NAK_PSN_SEQUENCE;
	r->nak_psn = r->epsn;
	r->nak_sent = true;
}

void
rc_forget_answers(struct rc_responder *r)
{
	bool waiting = false;
	unsigned int i;

	if (r->nak > AETH_NAK_PSN_SEQUENCE)
		return;
	for (i = 0; i < r->saved_count; i++) {
		struct rc_saved *s = rc_saved_at(r, i);

		s->ack.owed &= !waiting; /* it is sent before this entry's response */
		waiting |= s->pending;
		s->pending = false;
	}
	r->ack.owed &= !waiting;
	r->nak = 0;
}
