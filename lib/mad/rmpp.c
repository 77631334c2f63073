/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP: the life of a session from request to end, in either role, and packets without a session.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/rmpp.h"

/* --- the end --- */

static void
put_close(struct mad_session *s, uint8_t *mad, uint8_t type, uint8_t status)
{
	rmpp_put_control(s, mad, &(struct rmpp_header){ .type = type, .status = status });
	mad_commit(s);
	mad_count_abort(s->w, 0, status);
}

/*
 * The call was cancelled or our side refused its data. The caller wants the end now: send the STOP
 * or ABORT at once, or not at all.
 */
static void
rmpp_give_up(struct mad_session *s, const struct mad_result *why)
{
	bool resources =
		why->end == MAD_END_REFUSED && (why->error == -ENOMEM || why->error == -ENOSPC);
	uint8_t type = resources ? RMPP_STOP : RMPP_ABORT;
	uint8_t status = resources ? RMPP_STATUS_RESX : RMPP_STATUS_UNSPECIFIED;
	bool told = false;
	uint8_t *mad;

	if (rmpp_sending(s) || s->state == MAD_STATE_RECV || s->state == MAD_STATE_RECOVER) {
		mad = mad_packet(s);
		told = mad != NULL;
		if (told)
			put_close(s, mad, type, status);
	}
	rmpp_finish(s, why->end, told ? status : 0, why->error);
}

/* --- timers --- */

/* The requester got no answer: repeat the request, or the ACK 0 that asks for the reply. */
static void
rmpp_request_expired(struct mad_session *s)
{
	if (mad_now(s) < s->rmpp.ack_due) {
		if (mad_now(s) >= s->rmpp.probe_due) {
			mad_request_probed(s);
			s->rmpp.probe_due = UINT64_MAX; /* until it is sent */
			mad_want(s, RMPP_WORK_SINGLE);
		}
		rmpp_arm(s);
		return;
	}
	mad_count(s->w, timeouts, 1);
	if (s->retries_left == 0 && s->tx.total == 0) {
		rmpp_finish(s, MAD_END_TIMEOUT, 0, 0);
		return;
	}
	if (s->retries_left == 0) {
		rmpp_close(s, RMPP_ABORT, RMPP_STATUS_RETRIES, MAD_END_TIMEOUT, 0);
		return;
	}
	s->retries_left--;
	s->resent++;
	s->rmpp.ack_due = s->rmpp.probe_due = UINT64_MAX; /* until it is sent */
	mad_want(s, s->tx.total == 0 ? RMPP_WORK_SINGLE : RMPP_WORK_READY);
}

static void
rmpp_expire(struct mad_session *s)
{
	if (rmpp_sending(s)) {
		rmpp_sender_expired(s);
	} else if (s->state == MAD_STATE_REQUESTED) {
		rmpp_request_expired(s);
	} else if (s->state == MAD_STATE_RECV || s->state == MAD_STATE_RECOVER) {
		if (mad_now(s) < s->rmpp.overall_due) {
			rmpp_arm(s);
			return;
		}
		mad_count(s->w, timeouts, 1);
		rmpp_close(s, RMPP_ABORT, RMPP_STATUS_T2L, MAD_END_TIMEOUT, 0);
	}
}

/* --- the start --- */

static void
rmpp_start_receive(struct mad_session *s)
{
	rmpp_start_receiving(s);
}

static void
rmpp_start_call(struct mad_session *s)
{
	if (s->source.read != NULL) {
		rmpp_start_sending(s);
		return;
	}
	s->state = MAD_STATE_REQUESTED;
	s->retries_left = s->retries;
	s->rmpp.ack_due = s->rmpp.probe_due = UINT64_MAX;
	mad_want(s, RMPP_WORK_SINGLE);
}

static void
rmpp_prepare(struct mad_session *s)
{
	s->state = MAD_STATE_PREP;
	mad_session_timer_stop(s);
}

static void
rmpp_start_answer(struct mad_session *s)
{
	s->state = MAD_STATE_ANSWER;
	s->rmpp.single = true;
	mad_session_timer_stop(s);
	mad_want(s, RMPP_WORK_SINGLE);
}

/*
 * The SA's streams use RMPP even if they fit one packet (B7). Other classes answer a request
 * without RMPP by one packet without RMPP if the data fits.
 */
static bool
fits_plain_packet(const struct mad_session *s)
{
	return s->key.mgmt_class != MAD_CLASS_SUBN_ADM && !s->rmpp.complete &&
		s->source.length <= rmpp_area(s);
}

static void
rmpp_start_stream(struct mad_session *s)
{
	if (!fits_plain_packet(s)) {
		rmpp_start_sending(s);
		return;
	}
	memset(s->mad + RMPP_OFF_VERSION, 0, RMPP_HEADER_LEN - RMPP_OFF_VERSION);
	if (mad_segment_read(s, 1, s->mad) < 0) {
		memset(s->mad + s->data_offset, 0, rmpp_area(s));
		put_be16(s->mad + MAD_OFF_STATUS, MAD_STATUS_BUSY);
	}
	rmpp_start_answer(s);
}

/* --- packets of no session --- */

static enum mad_kind
rmpp_kind(const struct mad_rx *rx)
{
	if (!rmpp_active(rx->mad))
		return MAD_KIND_SINGLE;
	if (rmpp_fault(rx->mad) != 0 || rx->mad[RMPP_OFF_TYPE] != RMPP_DATA ||
		get_be32(rx->mad + RMPP_OFF_SEGMENT) != 1)
		return MAD_KIND_STRAY;
	return MAD_KIND_FIRST;
}

static enum verdict
rmpp_stray(const struct mad_rx *rx)
{
	uint8_t fault;

	if (!rmpp_active(rx->mad))
		return VERDICT_MAD_UNMATCHED;
	fault = rmpp_fault(rx->mad);
	if (fault != 0)
		return rmpp_answer(rx, RMPP_ABORT, fault);
	if (rx->mad[RMPP_OFF_TYPE] == RMPP_STOP || rx->mad[RMPP_OFF_TYPE] == RMPP_ABORT)
		mad_count_abort(rx->w, 1, rx->mad[RMPP_OFF_STATUS]);
	return VERDICT_MAD_UNMATCHED;
}

static void
rmpp_refuse(const struct mad_rx *rx)
{
	if (rmpp_active(rx->mad))
		rmpp_answer(rx, RMPP_STOP, RMPP_STATUS_RESX);
	else if (rx->mad[MAD_OFF_CLASS] == MAD_CLASS_SUBN_ADM)
		mad_reply_status(rx, SA_STATUS_NO_RESOURCES);
	else
		mad_reply_status(rx, MAD_STATUS_BUSY);
}

/* --- packets of a session --- */

/* A packet without RMPP and with R = 0: a repeated request. */
static enum verdict
repeated_request(struct mad_session *s)
{
	mad_count(s->w, repeated_requests, 1);
	if (s->state == MAD_STATE_LINGER && s->rmpp.single) {
		mad_want(s, RMPP_WORK_SINGLE);
		return VERDICT_DATAGRAM;
	}
	/* the requester would not repeat it if it had received segment 1 */
	if (rmpp_sending(s) && s->tx.acked == 0 && s->tx.sent > 0)
		rmpp_missing(s);
	return VERDICT_MAD_DISCARDED;
}

/* A packet without RMPP and with R = 1: a single-packet answer, or a status that ends the reply. */
static enum verdict
receive_plain(struct mad_session *s, const struct mad_rx *rx)
{
	if (!s->key.requester)
		return repeated_request(s);
	if (!mad_answers(s, rx->mad))
		return VERDICT_MAD_UNMATCHED;
	if (s->state == MAD_STATE_LINGER || s->state == MAD_STATE_CLOSE)
		return VERDICT_MAD_DISCARDED;
	if (!rmpp_sending(s) && s->state != MAD_STATE_REQUESTED &&
		get_be16(rx->mad + MAD_OFF_STATUS) == MAD_STATUS_OK)
		return VERDICT_MAD_DISCARDED;
	rmpp_drop_held(s);
	mad_session_answered(s, rx->mad);
	return VERDICT_DATAGRAM;
}

/*
 * The peer sent STOP or ABORT: end the session and send nothing (sa-multipacket B3). A lingering
 * session has ended already.
 */
static enum verdict
receive_end(struct mad_session *s, const struct mad_rx *rx)
{
	uint8_t status = rx->mad[RMPP_OFF_STATUS];

	mad_count_abort(s->w, 1, status);
	if (s->state == MAD_STATE_LINGER)
		return VERDICT_MAD_DISCARDED;
	rmpp_finish(s, MAD_END_ABORTED, status, 0);
	return VERDICT_DATAGRAM;
}

static enum verdict
rmpp_receive(struct mad_session *s, const struct mad_rx *rx)
{
	static enum verdict (*const receivers[])(struct mad_session *, const struct mad_rx *) = {
		[RMPP_DATA] = rmpp_receive_data,
		[RMPP_ACK] = rmpp_receive_ack,
		[RMPP_STOP] = receive_end,
		[RMPP_ABORT] = receive_end,
	};
	uint8_t fault;

	if (!rmpp_active(rx->mad))
		return receive_plain(s, rx);
	if (s->state == MAD_STATE_CLOSE)
		return VERDICT_MAD_DISCARDED;
	fault = rmpp_fault(rx->mad);
	if (fault != 0)
		return s->state == MAD_STATE_LINGER ? rmpp_answer(rx, RMPP_ABORT, fault)
						    : rmpp_reject(s, fault);
	return receivers[rx->mad[RMPP_OFF_TYPE]](s, rx);
}

/* --- sending --- */

static void
put_single(const struct mad_session *s, uint8_t *mad)
{
	memcpy(mad, s->mad, MAD_LEN);
	mad_departs(s->w, s->agent, mad);
}

/* @return true if the session ended */
static bool
single_sent(struct mad_session *s)
{
	const struct mad_result ok = { .end = MAD_END_OK };

	if (s->key.requester) {
		if (s->rmpp.ack_due == UINT64_MAX)
			s->rmpp.ack_due = mad_now(s) + mad_response_timeout(s);
		s->rmpp.probe_due = mad_request_due(s, UINT64_MAX);
		rmpp_arm(s);
		return false;
	}
	mad_count(s->w, answers, 1);
	return s->state == MAD_STATE_ANSWER && mad_session_answer_sent(s, &ok);
}

static void
control_sent(struct mad_session *s, uint32_t bit)
{
	mad_count(s->w, ack_sent, 1);
	if (bit == RMPP_WORK_READY && s->state == MAD_STATE_REQUESTED) {
		s->rmpp.ack_due = mad_now(s) + mad_response_timeout(s);
		rmpp_arm(s);
	}
}

/* Send one packet that is not a segment, the most urgent first. @return 1; 0: the sink is full */
static unsigned int
rmpp_send_other(struct mad_session *s, bool *gone)
{
	static const struct rmpp_header ready = { .type = RMPP_ACK, .segment = 0, .length = 1 };
	uint8_t *mad = mad_packet(s);
	uint32_t bit;

	if (mad == NULL)
		return 0;
	if (s->work & RMPP_WORK_CLOSE) {
		put_close(s, mad, s->rmpp.type, s->rmpp.status);
		*gone = true;
		rmpp_finish(s, s->rmpp.end, s->rmpp.status, s->rmpp.error);
		return 1;
	}
	bit = s->work & (RMPP_WORK_ACK | RMPP_WORK_READY | RMPP_WORK_SINGLE);
	bit &= -bit; /* the lowest bit first */
	s->work &= ~bit;
	if (bit == RMPP_WORK_ACK)
		rmpp_put_ack(s, mad);
	else if (bit == RMPP_WORK_READY)
		rmpp_put_control(s, mad, &ready);
	else
		put_single(s, mad);
	mad_commit(s);
	if (bit == RMPP_WORK_SINGLE)
		*gone = single_sent(s);
	else
		control_sent(s, bit);
	return 1;
}

#define RMPP_WORK_OTHER (RMPP_WORK_CLOSE | RMPP_WORK_ACK | RMPP_WORK_READY | RMPP_WORK_SINGLE)

static unsigned int
rmpp_send(struct mad_session *s, unsigned int budget)
{
	unsigned int sent = 0, one;
	bool gone = false;

	while (sent < budget && s->work != 0) {
		one = s->work & RMPP_WORK_OTHER ? rmpp_send_other(s, &gone)
						: rmpp_send_segment(s, &gone);
		sent += one;
		if (gone)
			return sent;
		if (one == 0 && s->work != 0)
			break; /* the sink is full */
	}
	return sent;
}

const struct mad_protocol mad_protocol_rmpp = {
	.name = "rmpp",
	.kind = rmpp_kind,
	.stray = rmpp_stray,
	.refuse = rmpp_refuse,
	.start_receive = rmpp_start_receive,
	.start_call = rmpp_start_call,
	.prepare = rmpp_prepare,
	.start_answer = rmpp_start_answer,
	.start_stream = rmpp_start_stream,
	.receive = rmpp_receive,
	.send = rmpp_send,
	.expire = rmpp_expire,
	.give_up = rmpp_give_up,
};
