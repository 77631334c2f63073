/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * SA class version 1: the life of a transaction from request to answer, in both roles. v1_send.c
 * and v1_receive.c transfer its streams.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/v1.h"

/* --- packets --- */

static struct v1_packet
v1_parse(const struct mad_worker *w, const uint8_t *mad)
{
	return (struct v1_packet){
		.mad = mad,
		.flags = v1_flags(w, mad[SA1_OFF_FRAGMENT]) & SA1_FLAGS, /* ignore reserved bits */
		.status = get_be16(mad + MAD_OFF_STATUS),
		.window = get_be16(mad + SA1_OFF_WINDOW),
		.segment = get_be32(mad + SA1_OFF_SEGMENT),
		.length = get_be32(mad + SA1_OFF_PAYLOAD_LEN),
	};
}

static bool
is_single(const struct v1_packet *p)
{
	return p->flags == 0 && p->segment == 0;
}

/* --- packets without a session --- */

static enum mad_kind
v1_kind(const struct mad_rx *rx)
{
	struct v1_packet p = v1_parse(rx->w, rx->mad);
	bool config = rx->mad[MAD_OFF_METHOD] == SA1_CONFIG;

	if (config && p.status != 0) /* the requester gives up a request that we already dropped */
		return MAD_KIND_STRAY;
	if (is_single(&p))
		return MAD_KIND_SINGLE;
	if (p.flags & V1_CONTROL)
		return MAD_KIND_STRAY;
	/* the First was lost: start receiving, so that the receiver asks for segment 1 */
	if (config && p.segment > 1)
		return MAD_KIND_FIRST;
	if (!(p.flags & SA1_FIRST) || p.segment != 1)
		return MAD_KIND_STRAY;
	/* A3: some requesters send single-packet requests as "First+Last, SegmentNumber 1" */
	if (p.flags & SA1_LAST && !config)
		return MAD_KIND_SINGLE;
	return MAD_KIND_FIRST;
}

static enum verdict
v1_stray(const struct mad_rx *rx)
{
	struct v1_packet p = v1_parse(rx->w, rx->mad);

	/*
	 * Resend request for an answer that was acknowledged or given up: its data is gone (seed
	 * 000)
	 */
	if (!rx->key.requester && p.flags & SA1_RESEND && p.segment != 0) {
		mad_count(rx->w, resend_received, 1);
		if (mad_reply_status(rx, MAD_STATUS_INVALID_FIELD))
			mad_count(rx->w, status_sent, 1);
	}
	return VERDICT_MAD_UNMATCHED;
}

static void
v1_refuse(const struct mad_rx *rx)
{
	mad_reply_status(rx, SA_STATUS_NO_RESOURCES);
}

/* --- the end --- */

static void
v1_give_up(struct mad_session *s, const struct mad_result *why)
{
	mad_session_end(s, why);
}

/* The answer or status was sent. Keep the answer of an executed request, to answer repeats. */
static void
answer_sent(struct mad_session *s)
{
	struct mad_result r = { .end = MAD_END_OK, .status = get_be16(s->mad + MAD_OFF_STATUS) };
	bool closing = s->state == MAD_STATE_CLOSE;

	if (s->state == MAD_STATE_LINGER)
		return;
	mad_count(s->w, answers, 1);
	if (closing) {
		mad_count(s->w, status_sent, 1);
		r.end = MAD_END_PROTOCOL;
	}
	s->v1.repeat = MAD_WORK_ANSWER;
	if (s->key.requester || (!closing && !v1_executes(s)))
		mad_session_end(s, &r);
	else
		mad_session_answer_sent(s, &r);
}

/* --- responder --- */

static void
v1_start_request(struct mad_session *s)
{
	s->v1.request_window = get_be16(s->mad + SA1_OFF_WINDOW);
}

static void
v1_start_receive(struct mad_session *s)
{
	v1_start_request(s);
	v1_start_receiving(s, SA1_WINDOW_DEFAULT);
}

/* A5 PREP: send a KeepAlive before `process` is over, again and again. */
static void
v1_prepare_timer(struct mad_session *s)
{
	mad_session_timer(s, mad_now(s) + s->process - s->process / 4);
}

static void
v1_prepare(struct mad_session *s)
{
	s->state = MAD_STATE_PREP;
	v1_prepare_timer(s);
}

static void
prepare_expire(struct mad_session *s)
{
	/* the ConfigResp will be late, so it cannot replace the last Ack: send the Ack */
	if (s->rx.last != 0 && s->rx.acked != s->rx.last)
		mad_want(s, V1_WORK_ACK);
	mad_want(s, V1_WORK_KEEPALIVE);
	v1_prepare_timer(s);
}

static void
v1_start_answer(struct mad_session *s)
{
	mad_session_timer_stop(s);
	s->work = 0;
	s->state = MAD_STATE_ANSWER;
	mad_want(s, MAD_WORK_ANSWER);
}

/* A3: send an answer that fits one packet without segment numbers. */
static void
single_packet(struct mad_session *s)
{
	int len = mad_segment_read(s, 1, s->mad);

	if (len < 0) {
		v1_close(s, SA_STATUS_NO_RESOURCES);
		return;
	}
	put_be32(s->mad + SA1_OFF_SEGMENT, 0);
	put_be32(s->mad + SA1_OFF_PAYLOAD_LEN, (uint32_t)len);
	s->mad[SA1_OFF_FRAGMENT] = 0;
	v1_start_answer(s);
}

static void
v1_start_stream(struct mad_session *s)
{
	uint16_t n = v1_window(s->v1.request_window);

	s->work = 0;
	if (v1_segments(s) > 1) {
		v1_start_sending(s, n);
		return;
	}
	put_be16(s->mad + SA1_OFF_WINDOW, n);
	single_packet(s);
}

/* A5: a repeated request starts no second stream. */
static enum verdict
v1_repeated_request(struct mad_session *s)
{
	mad_count(s->w, repeated_requests, 1);
	if (s->state == MAD_STATE_PREP)
		mad_want(s, V1_WORK_KEEPALIVE);
	else if (s->state == MAD_STATE_LINGER && s->v1.repeat != 0)
		mad_want(s, s->v1.repeat);
	else
		return VERDICT_MAD_DISCARDED;
	return VERDICT_DATAGRAM;
}

/* A segment of a request that is already complete. */
static enum verdict
repeated_segment(struct mad_session *s)
{
	mad_count(s->w, segments_discarded, 1);
	if (s->state == MAD_STATE_PREP && s->rx.last != 0)
		mad_want(s, V1_WORK_ACK);
	else if (s->state == MAD_STATE_LINGER && s->v1.repeat != 0)
		mad_want(s, s->v1.repeat);
	return VERDICT_MAD_DISCARDED;
}

static enum verdict
responder_receive(struct mad_session *s, const struct v1_packet *p)
{
	bool receiving = s->state == MAD_STATE_RECV || s->state == MAD_STATE_RECOVER;

	if (p->flags & SA1_KEEPALIVE)
		return v1_keepalive(s);
	if (p->flags & (SA1_ACK | SA1_RESEND))
		return v1_sender_control(s, p);
	if (receiving && v1_overtaken(s, p))
		return VERDICT_MAD_DISCARDED;
	if (receiving && p->status != 0) {
		v1_fail(s, MAD_END_STATUS, 0); /* the requester gave up (A5, any state) */
		return VERDICT_DATAGRAM;
	}
	if (receiving)
		return v1_segment(s, p);
	return is_single(p) || s->rx.last == 0 ? v1_repeated_request(s) : repeated_segment(s);
}

/* --- requester --- */

/* A Config that fits one packet is sent as one, a longer one in segments. */
static void
v1_start_call(struct mad_session *s)
{
	v1_progress(s);
	s->mad[SA1_OFF_FRAGMENT] = 0;
	put_be32(s->mad + SA1_OFF_SEGMENT, 0);
	if (s->source.read != NULL && v1_segments(s) > 1) {
		v1_start_sending(s, SA1_WINDOW_DEFAULT);
		return;
	}
	if (s->source.read != NULL) {
		int len = mad_segment_read(s, 1, s->mad);

		put_be32(s->mad + SA1_OFF_PAYLOAD_LEN, len < 0 ? 0 : (uint32_t)len);
		s->v1.stale = len < 0;
	} else if (s->flags & MAD_METHOD_MULTI_RESPONSE) {
		put_be16(s->mad + SA1_OFF_WINDOW, s->w->limits.v1_window);
	}
	s->state = MAD_STATE_REQUESTED;
	mad_want(s, MAD_WORK_REQUEST);
}

static bool
v1_send_request(struct mad_session *s)
{
	if (mad_single_send(s) == 0)
		return false;
	s->work &= ~MAD_WORK_REQUEST;
	if (s->retries_left == s->retries)
		mad_rtt_start(s, 1);
	else
		s->tx.rtt_segment = 0;
	if (s->v1.response_due == 0)
		s->v1.response_due = mad_now(s) + mad_response_timeout(s);
	mad_session_timer(s,
		s->w->limits.v1_early_resend ? mad_request_due(s, s->v1.response_due)
					     : s->v1.response_due);
	return true;
}

static void
v1_request_expired(struct mad_session *s)
{
	if (mad_now(s) < s->v1.response_due) {
		mad_request_probed(s);
		mad_want(s, MAD_WORK_REQUEST);
		return;
	}
	s->v1.response_due = 0;
	mad_single_expire(s);
}

/* A4: use PayloadLength of a single-packet answer, but at most the data area. */
static enum verdict
single_answer(struct mad_session *s, const struct v1_packet *p)
{
	uint32_t len = RTE_MIN(p->length, (uint32_t)SA1_AREA);

	if (!mad_answers(s, p->mad))
		return VERDICT_MAD_UNMATCHED;
	/* a Config's answer also acknowledges its last segment: all segments must have been sent */
	if (s->state != MAD_STATE_REQUESTED &&
		(s->tx.total == 0 || s->tx.sent < s->tx.total || s->rx.expected > 1))
		return VERDICT_MAD_DISCARDED;
	if (s->flags & MAD_METHOD_MULTI_RESPONSE &&
		!mad_session_deliver(s, p->mad + SA1_OFF_DATA, len))
		return VERDICT_MAD_REFUSED;
	mad_count(s->w, segments_received, 1);
	mad_session_answered(s, p->mad);
	return VERDICT_DATAGRAM;
}

/* A segment of the answer. The first one starts reception from any state. */
static enum verdict
answer_segment(struct mad_session *s, const struct v1_packet *p)
{
	if (s->state == MAD_STATE_LINGER)
		return repeated_segment(s);
	if (!mad_answers(s, p->mad))
		return VERDICT_MAD_UNMATCHED;
	if (s->state != MAD_STATE_RECV && s->state != MAD_STATE_RECOVER) {
		if (s->tx.total != 0 && s->tx.sent < s->tx.total)
			return VERDICT_MAD_DISCARDED;
		s->work = 0;
		v1_start_receiving(s, s->w->limits.v1_window);
	}
	return v1_segment(s, p);
}

static enum verdict
requester_receive(struct mad_session *s, const struct v1_packet *p)
{
	if (v1_overtaken(s, p))
		return VERDICT_MAD_DISCARDED;
	/* A5, any state: a response with a status ends the session */
	if (p->status != 0 && s->state != MAD_STATE_LINGER && s->state != MAD_STATE_CLOSE) {
		mad_session_answered(s, p->mad);
		return VERDICT_DATAGRAM;
	}
	if (s->state == MAD_STATE_CLOSE)
		return VERDICT_MAD_DISCARDED;
	if (p->flags & (SA1_ACK | SA1_RESEND))
		return v1_sender_control(s, p);
	if (p->flags & SA1_KEEPALIVE)
		return v1_keepalive(s);
	if (is_single(p) && s->state != MAD_STATE_LINGER)
		return single_answer(s, p);
	return answer_segment(s, p);
}

/* --- both --- */

static enum verdict
v1_receive(struct mad_session *s, const struct mad_rx *rx)
{
	struct v1_packet p = v1_parse(s->w, rx->mad);

	return s->key.requester ? requester_receive(s, &p) : responder_receive(s, &p);
}

static bool
send_keepalive(struct mad_session *s)
{
	uint8_t method =
		s->key.requester ? s->method : mad_response_method(s->key.mgmt_class, 1, s->method);

	if (!mad_has_spare_packet(s)) {
		s->work &= ~V1_WORK_KEEPALIVE;
		mad_count(s->w, unproven, 1);
		return true;
	}
	if (!v1_send_control(s, method, SA1_KEEPALIVE, 0, 0))
		return false;
	s->work &= ~V1_WORK_KEEPALIVE;
	s->v1.sent_time = mad_now(s);
	mad_count(s->w, keepalive_sent, 1);
	return true;
}

static bool
v1_send_answer(struct mad_session *s)
{
	if (mad_single_send(s) == 0)
		return false;
	s->work &= ~MAD_WORK_ANSWER;
	answer_sent(s);
	return true;
}

/* Order of sending (A5: the last Ack before KeepAlives). */
static const struct {
	uint32_t bit;
	bool (*send)(struct mad_session *s);
} controls[] = {
	{ V1_WORK_ACK, v1_send_ack }, { V1_WORK_RESEND, v1_send_resend },
	{ V1_WORK_KEEPALIVE, send_keepalive }, { V1_WORK_RELEASED, v1_send_released },
	{ V1_WORK_LAST, v1_send_last }, { MAD_WORK_REQUEST, v1_send_request },
	{ MAD_WORK_ANSWER, v1_send_answer }, /* last: it may end the session */
};

static unsigned int
v1_send(struct mad_session *s, unsigned int budget)
{
	unsigned int i, sent = 0;

	if (unlikely(s->work & ~MAD_WORK_DATA)) {
		if (s->v1.stale) {
			v1_fail(s, MAD_END_REFUSED, -ESTALE);
			return 0;
		}
		for (i = 0; i < RTE_DIM(controls); i++) {
			if (!(s->work & controls[i].bit))
				continue;
			if (sent == budget || !controls[i].send(s))
				return sent;
			sent++;
		}
	}
	if (s->work & MAD_WORK_DATA)
		sent += v1_burst(s, budget - sent);
	return sent;
}

static void
v1_expire(struct mad_session *s)
{
	switch (s->state) {
	case MAD_STATE_REQUESTED:
		v1_request_expired(s);
		break;
	case MAD_STATE_PREP:
		prepare_expire(s);
		break;
	case MAD_STATE_BURST:
	case MAD_STATE_WAIT:
		v1_sender_expire(s);
		break;
	case MAD_STATE_RECV:
	case MAD_STATE_RECOVER:
		v1_receiver_expire(s);
		break;
	default:
		break;
	}
}

const struct mad_protocol mad_protocol_v1 = {
	.name = "sa1",
	.kind = v1_kind,
	.stray = v1_stray,
	.refuse = v1_refuse,
	.start_request = v1_start_request,
	.start_receive = v1_start_receive,
	.start_call = v1_start_call,
	.prepare = v1_prepare,
	.start_answer = v1_start_answer,
	.start_stream = v1_start_stream,
	.receive = v1_receive,
	.send = v1_send,
	.expire = v1_expire,
	.give_up = v1_give_up,
};
