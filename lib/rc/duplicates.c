/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/qp.h"

/*
 * Duplicate requests, with a PSN before ePSN (rc-transport 7). The responder executes no Send,
 * Write or Atomic twice, never NAKs a duplicate, and leaves the message in progress alone.
 */

/* The saved request that a PSN belongs to. */
static struct rc_saved *
saved_find(const struct rc_responder *r, uint32_t psn)
{
	unsigned int i;

	for (i = 0; i < r->saved_count; i++) {
		struct rc_saved *s = rc_saved_at(r, i);

		if (rc_psn_between(psn, s->psn, s->last_psn))
			return s;
	}
	return NULL;
}

/* Send the response of a saved request again. */
static void
answer_again(struct rc_qp *qp, struct rc_saved *s)
{
	s->pending = true;
	rc_saved_again(&qp->resp);
	rc_want(qp, WORK_RESPOND);
}

static void
owe_again(struct rc_qp *qp, struct rc_ack_run *run, uint32_t psn, uint32_t msn)
{
	if (!run->owed)
		*run = (struct rc_ack_run){ .first = psn, .last = psn, .msn = msn, .owed = true };
	rc_want(qp, WORK_RESPOND);
}

/*
 * A Send or Write: acknowledge all executed requests, but stop before the first Read or Atomic that
 * is newer than the duplicate: its response may be what the network lost.
 */
static enum verdict
duplicate_message(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;
	unsigned int i;

	for (i = 0; i < r->saved_count; i++) {
		struct rc_saved *s = rc_saved_at(r, i);

		if (psn_diff(s->last_psn, pkt->psn) <= 0)
			continue;
		rc_saved_again(r);
		owe_again(qp, &s->ack, psn_sub(s->psn, 1), psn_sub(s->msn, 1));
		return VERDICT_DUPLICATE_REQUEST;
	}
	owe_again(qp, &r->ack, psn_sub(r->epsn, 1), r->msn);
	return VERDICT_DUPLICATE_REQUEST;
}

/*
 * A Read: execute it again if it asks for part of the saved Read with the same R_Key, and its
 * address fits its PSN. Else drop it.
 */
static enum verdict
duplicate_read(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_responder *r = &qp->resp;
	struct rc_saved *s = saved_find(r, pkt->psn);
	uint32_t offset;

	if (s == NULL || s->atomic)
		return VERDICT_DUPLICATE_READ;
	offset = rc_offset(qp, pkt->psn, s->psn);
	if (pkt->rkey != s->rkey || pkt->va != s->va + offset || pkt->dmalen > s->length - offset ||
		(pkt->dmalen == 0 && s->length != 0))
		return VERDICT_DUPLICATE_READ;

	if (!s->answered) {
		/*
		 * The first response is still being sent. If the duplicate asks for all from an
		 * earlier packet to the end, go back there; otherwise ignore it.
		 */
		if (psn_diff(pkt->psn, s->next_psn) <= 0 && offset + pkt->dmalen == s->length)
			s->start_psn = s->next_psn = pkt->psn;
		return VERDICT_DUPLICATE_REQUEST;
	}
	s->start_psn = s->next_psn = pkt->psn;
	s->end = offset + pkt->dmalen;
	s->end_psn = psn_add(pkt->psn, rc_message_packets(qp, pkt->dmalen) - 1);
	answer_again(qp, s);
	return VERDICT_DUPLICATE_REQUEST;
}

/* An Atomic: repeat the saved result; drop it if no result is saved. Never execute it again. */
static enum verdict
duplicate_atomic(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_saved *s = saved_find(&qp->resp, pkt->psn);

	if (s == NULL || !s->atomic)
		return VERDICT_DUPLICATE_ATOMIC;
	answer_again(qp, s);
	return VERDICT_DUPLICATE_REQUEST;
}

enum verdict
rc_duplicate(struct rc_qp *qp, const struct packet *pkt)
{
	uint16_t flags = pkt->op->flags;

	if (!(flags & OP_REQUEST))
		return VERDICT_OPCODE;
	rc_count(qp, duplicate_request);
	rc_charge(qp, pkt);
	if (flags & OP_READ)
		return duplicate_read(qp, pkt);
	if (flags & OP_ATOMIC)
		return duplicate_atomic(qp, pkt);
	return duplicate_message(qp, pkt);
}
