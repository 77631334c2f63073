/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1, receiver of segments: the receiver's table of sa-multipacket A5.
 *
 * Beyond the table, if mad.v1_early_resend is set: if later segments still arrive after a round
 * trip since the Resend request, the request or its answer was lost. It is repeated without waiting
 * for the SegmentTimer; TIMED_RESENDS of the seven requests are kept for the timer.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/v1.h"

#define TIMED_RESENDS 3 /* Resend requests kept for the SegmentTimer */

void
v1_start_receiving(struct mad_session *s, uint16_t window)
{
	s->rx = (struct mad_receiver){
		.expected = 1,
		.window = window,
		.resends_left = s->retries,
	};
	v1_progress(s);
	s->state = MAD_STATE_RECV;
}

/* When a session ends that receives only copies or later segments, and so makes no progress. */
static uint64_t
kept_until(const struct mad_session *s)
{
	uint64_t total = mad_ms(s->w, s->w->limits.keepalive_total_ms);

	/* not before the Resend requests are used up */
	return s->v1.progress + RTE_MAX(total, 8 * mad_segment_timeout(s));
}

static void
segment_timer(struct mad_session *s)
{
	uint64_t due = mad_now(s) + mad_segment_timeout(s);

	mad_session_timer(s, RTE_MIN(due, kept_until(s)));
}

/* --- Resend requests --- */

static void
ask_again(struct mad_session *s)
{
	s->rx.resends_left--;
	s->rx.resend_time = mad_now(s);
	s->tx.rtt_segment = 0;
	s->state = MAD_STATE_RECOVER;
	mad_want(s, V1_WORK_RESEND);
}

/*
 * True if a status answers a Resend request of ours that an Ack of ours has overtaken. In state
 * RECV no segment is missing, so it does. In RECOVER, each Resend request for a segment that has
 * since arrived may have drawn a status, twice if the network copied it.
 */
bool
v1_overtaken(struct mad_session *s, const struct v1_packet *p)
{
	if (p->status != MAD_STATUS_INVALID_FIELD || s->rx.resend_time == 0)
		return false;
	if (s->state == MAD_STATE_RECV)
		return true;
	if (s->state != MAD_STATE_RECOVER || s->rx.resends_open == 0)
		return false;
	s->rx.resends_open--;
	return true;
}

/* Time for the Resend request to arrive and the segment to come back. */
static uint64_t
resend_delay(const struct mad_session *s)
{
	uint64_t floor = s->w->probe_floor;

	return s->srtt == 0 ? 5 * floor : RTE_MAX(2 * s->srtt, floor);
}

static enum verdict
segment_ahead(struct mad_session *s)
{
	bool timed = s->rx.resends_left <= RTE_MIN(TIMED_RESENDS, s->retries - 1);

	mad_count(s->w, segments_discarded, 1);
	segment_timer(s);
	if (s->state != MAD_STATE_RECOVER) {
		if (s->rx.resends_left > 0)
			ask_again(s);
		s->state = MAD_STATE_RECOVER;
	} else if (s->w->limits.v1_early_resend && !timed && s->rx.resends_left > 0 &&
		mad_now(s) - s->rx.resend_time > resend_delay(s)) {
		ask_again(s);
	}
	return VERDICT_MAD_DISCARDED;
}

void
v1_receiver_expire(struct mad_session *s)
{
	mad_count(s->w, timeouts, 1);
	if (s->rx.resends_left == 0 || mad_now(s) >= kept_until(s)) {
		v1_fail(s, MAD_END_TIMEOUT, -ETIMEDOUT);
		return;
	}
	ask_again(s);
	segment_timer(s);
}

/* --- Acks --- */

static enum verdict
segment_repeated(struct mad_session *s)
{
	mad_count(s->w, segments_discarded, 1);
	segment_timer(s);
	mad_want(s, V1_WORK_ACK);
	return VERDICT_MAD_DISCARDED;
}

/* A3: Acks and Resend requests have the opposite R bit of the stream. */
static uint8_t
control_method(const struct mad_session *s)
{
	return s->key.requester ? s->method : s->method | MAD_RESPONSE;
}

bool
v1_send_ack(struct mad_session *s)
{
	uint32_t n = s->rx.expected - 1;
	/* as requester repeat the first segment's Window, as receiver of a Config offer our own */
	uint16_t window =
		s->key.requester ? get_be16(s->mad + SA1_OFF_WINDOW) : s->w->limits.v1_window;

	if (!v1_send_control(s, control_method(s), SA1_ACK, n, window))
		return false;
	s->work &= ~V1_WORK_ACK;
	s->rx.acked = n;
	if (!s->key.requester)
		s->rx.window = window;
	if (s->rx.last == 0)
		mad_rtt_start(s, s->rx.expected);
	mad_count(s->w, ack_sent, 1);
	return true;
}

bool
v1_send_resend(struct mad_session *s)
{
	if (!v1_send_control(s, control_method(s), SA1_RESEND, s->rx.expected,
		    get_be16(s->mad + SA1_OFF_WINDOW)))
		return false;
	s->work &= ~V1_WORK_RESEND;
	s->rx.resend_time = mad_now(s);
	mad_rtt_start(s, s->rx.expected);
	mad_count(s->w, resend_sent, 1);
	return true;
}

/* --- segments --- */

/* Keep the first segment: Acks copy its header, and done() gets it. */
static void
first_segment(struct mad_session *s, const struct v1_packet *p)
{
	s->rx.announced = p->length;
	memcpy(s->mad, p->mad, MAD_LEN);
	if (!s->key.requester)
		s->v1.request_window = p->window;
}

/*
 * A response tells after how many segments its sender waits for an Ack. That may grow: the first
 * burst to an unproven address is short.
 */
static void
v1_told_window(struct mad_session *s, uint16_t window)
{
	if (s->key.requester && window != 0)
		s->rx.window = RTE_MIN((uint32_t)s->w->limits.v1_window, window);
}

/*
 * A4: valid bytes of this segment. In a request the total of the first segment decides, in a
 * response the length in the last one.
 *
 * @retval -1  the lengths contradict each other
 */
static int
valid_bytes(const struct mad_session *s, const struct v1_packet *p)
{
	uint64_t before = (uint64_t)(p->segment - 1) * SA1_AREA;
	uint64_t len = SA1_AREA;
	bool last = p->flags & SA1_LAST;

	if (!s->key.requester) {
		if (last)
			len = s->rx.announced - before;
		else if (s->rx.announced <= before + SA1_AREA)
			return -1; /* no data would be left for the Last segment */
	} else if (last) {
		len = p->length;
	}
	if (len > SA1_AREA || (len == 0 && p->segment > 1))
		return -1;
	return (int)len;
}

/* The first segment announces more than the peer may store: refuse now rather than later. */
static bool
v1_too_long(const struct mad_session *s)
{
	return !s->key.requester && s->rx.announced > s->w->limits.max_bytes_per_peer;
}

static enum verdict
no_room(struct mad_session *s)
{
	mad_count_refused(s->w, &s->key);
	v1_close(s, SA_STATUS_NO_RESOURCES);
	return VERDICT_MAD_REFUSED;
}

/* @retval false  the session is over */
static bool
v1_store(struct mad_session *s, const uint8_t *data, uint32_t len)
{
	if (s->key.requester)
		return mad_session_deliver(s, data, len);
	if (mad_body_write(s, s->delivered, data, len) != 0) {
		no_room(s);
		return false;
	}
	s->delivered += len;
	return true;
}

static enum verdict
bad_length(struct mad_session *s)
{
	if (s->key.requester)
		v1_fail(s, MAD_END_PROTOCOL, -EPROTO);
	else
		v1_close(s, MAD_STATUS_INVALID_FIELD);
	return VERDICT_DATAGRAM;
}

/* The Last segment is stored: acknowledge a response, execute a request (A5). */
static void
v1_complete(struct mad_session *s)
{
	struct mad_result r = { .end = MAD_END_OK, .mad = s->mad };

	mad_session_timer_stop(s);
	if (!s->key.requester) {
		s->work = 0; /* the ConfigResp replaces the Ack */
		mad_session_answers(s);
		mad_session_request(s);
		return;
	}
	s->v1.repeat = V1_WORK_ACK;
	s->work = 0;
	mad_want(s, V1_WORK_ACK);
	mad_session_linger(s, &r, MAD_LINGER * mad_response_timeout(s));
}

enum verdict
v1_segment(struct mad_session *s, const struct v1_packet *p)
{
	int len;

	if (unlikely(p->segment > s->rx.expected))
		return segment_ahead(s);
	if (unlikely(p->segment < s->rx.expected))
		return p->segment != 0 ? segment_repeated(s) : VERDICT_MAD_DISCARDED;
	if (unlikely(p->segment == 1))
		first_segment(s, p);
	if (unlikely(p->segment == 1 && v1_too_long(s)))
		return no_room(s);
	len = valid_bytes(s, p);
	if (unlikely(len < 0))
		return bad_length(s);
	if (unlikely(!v1_store(s, p->mad + SA1_OFF_DATA, (uint32_t)len)))
		return VERDICT_MAD_REFUSED;
	v1_told_window(s, p->window);
	mad_rtt_stop(s, p->segment);
	s->work &= ~V1_WORK_RESEND;
	s->rx.expected++;
	s->rx.resends_open += 2 * (s->retries - s->rx.resends_left);
	s->rx.resends_left = s->retries;
	s->state = MAD_STATE_RECV;
	s->segments++;
	v1_progress(s);
	mad_count(s->w, segments_received, 1);
	if (unlikely(p->flags & SA1_LAST)) {
		s->rx.last = p->segment;
		v1_complete(s);
		return VERDICT_DATAGRAM;
	}
	if (p->segment - s->rx.acked >= s->rx.window)
		mad_want(s, V1_WORK_ACK);
	segment_timer(s);
	return VERDICT_DATAGRAM;
}
