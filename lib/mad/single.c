/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Transactions of one packet each way: for classes without multi-packet transactions, and for the
 * single-packet cases of the other protocols.
 */

#include <errno.h>

#include "mad/core.h"

/* --- sending --- */

unsigned int
mad_single_send(struct mad_session *s)
{
	uint8_t *mad = mad_packet(s);

	if (mad == NULL)
		return 0;
	memcpy(mad, s->mad, MAD_LEN);
	mad_departs(s->w, s->agent, mad);
	mad_commit(s);
	return 1;
}

static void
single_request_sent(struct mad_session *s)
{
	static const struct mad_result sent = { .end = MAD_END_OK };

	s->work &= ~MAD_WORK_REQUEST;
	if (s->no_answer)
		mad_session_end(s, &sent);
	else
		mad_session_timer(s, mad_now(s) + mad_response_timeout(s));
}

/* Keep the answer to send it again on repeats: a request must not be executed twice. */
static void
single_answer_sent(struct mad_session *s)
{
	static const struct mad_result sent = { .end = MAD_END_OK };

	s->work &= ~MAD_WORK_ANSWER;
	mad_count(s->w, answers, 1);
	if (s->state == MAD_STATE_ANSWER)
		mad_session_answer_sent(s, &sent);
}

static unsigned int
single_send(struct mad_session *s, unsigned int budget)
{
	if (budget == 0 || mad_single_send(s) == 0)
		return 0;
	if (s->work & MAD_WORK_REQUEST)
		single_request_sent(s);
	else
		single_answer_sent(s);
	return 1;
}

/* --- requester --- */

static void
single_start_call(struct mad_session *s)
{
	s->state = MAD_STATE_REQUESTED;
	mad_want(s, MAD_WORK_REQUEST);
}

void
mad_single_expire(struct mad_session *s)
{
	static const struct mad_result timeout = { .end = MAD_END_TIMEOUT, .error = -ETIMEDOUT };

	mad_count(s->w, timeouts, 1);
	if (s->retries_left == 0) {
		mad_session_end(s, &timeout);
		return;
	}
	s->retries_left--;
	s->resent++;
	mad_want(s, MAD_WORK_REQUEST);
}

/* --- responder --- */

static void
single_start_answer(struct mad_session *s)
{
	s->state = MAD_STATE_ANSWER;
	mad_want(s, MAD_WORK_ANSWER);
}

static void
single_prepare(struct mad_session *s)
{
	s->state = MAD_STATE_PREP;
}

/* The class has no streams. */
static void
single_start_stream(struct mad_session *s)
{
	put_be16(s->mad + MAD_OFF_STATUS, MAD_STATUS_BAD_METHOD);
	single_start_answer(s);
}

static void
single_start_receive(struct mad_session *s)
{
	s->state = MAD_STATE_RECV;
}

/* --- both --- */

static enum mad_kind
single_kind(const struct mad_rx *rx)
{
	(void)rx;
	return MAD_KIND_SINGLE;
}

static enum verdict
single_stray(const struct mad_rx *rx)
{
	(void)rx;
	return VERDICT_MAD_UNMATCHED;
}

static void
single_refuse(const struct mad_rx *rx)
{
	mad_reply_status(rx, MAD_STATUS_BUSY);
}

static enum verdict
single_receive(struct mad_session *s, const struct mad_rx *rx)
{
	if (s->key.requester) {
		if (!mad_answers(s, rx->mad))
			return VERDICT_MAD_UNMATCHED;
		mad_session_answered(s, rx->mad);
		return VERDICT_DATAGRAM;
	}
	mad_count(s->w, repeated_requests, 1);
	if (s->state != MAD_STATE_LINGER)
		return VERDICT_MAD_DISCARDED;
	mad_want(s, MAD_WORK_ANSWER);
	return VERDICT_DATAGRAM;
}

static void
single_give_up(struct mad_session *s, const struct mad_result *why)
{
	mad_session_end(s, why);
}

const struct mad_protocol mad_protocol_single = {
	.name = "single",
	.kind = single_kind,
	.stray = single_stray,
	.refuse = single_refuse,
	.start_receive = single_start_receive,
	.start_call = single_start_call,
	.prepare = single_prepare,
	.start_answer = single_start_answer,
	.start_stream = single_start_stream,
	.receive = single_receive,
	.send = single_send,
	.expire = mad_single_expire,
	.give_up = single_give_up,
};
