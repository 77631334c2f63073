/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP: the receiver's state machine (sa-multipacket B6).
 *
 * Segments out of order are held while there is memory for them. On a gap the receiver repeats at
 * once the ACK of the segments before it, window unchanged. A sender that understands this sends
 * the missing segment without waiting for its timer; others take it for an old ACK.
 */

#include <rte_common.h>

#include "mad/rmpp.h"

/* Step of NewWindowLast. */
static uint32_t
window_step(const struct mad_session *s)
{
	return RTE_MIN(RTE_MAX((uint32_t)s->w->limits.rmpp_window, 1u), RMPP_WINDOW_MAX);
}

static uint32_t
data_length(const struct mad_session *s, uint32_t n)
{
	return n == s->rx.last ? s->rmpp.last_length : rmpp_area(s);
}

static int
write_body(struct mad_session *s, uint32_t n, const uint8_t *data)
{
	return mad_body_write(s, (uint64_t)(n - 1) * rmpp_area(s), data, data_length(s, n));
}

/*
 * --- segments out of order ---
 *
 * Segments of a request go to their place in the body. An answer's taker wants them in order: they
 * are held in slots, one for each segment number of the window.
 */

/* Where segment n is held. NULL: its chunk is not allocated. */
static uint8_t *
rmpp_hold_slot(const struct mad_session *s, uint32_t n)
{
	uint32_t slot = n % window_step(s);
	uint8_t *chunk = s->rmpp.hold[slot * RMPP_HOLD_SLOT / MAD_CHUNK];

	return chunk == NULL ? NULL : chunk + slot * RMPP_HOLD_SLOT % MAD_CHUNK;
}

static bool
put_in_slot(struct mad_session *s, uint32_t n, const uint8_t *data)
{
	uint8_t **chunk = &s->rmpp.hold[n % window_step(s) * RMPP_HOLD_SLOT / MAD_CHUNK];

	if (*chunk == NULL)
		*chunk = mad_chunk_get(s);
	if (*chunk == NULL)
		return false;
	memcpy(rmpp_hold_slot(s, n), data, rmpp_area(s));
	return true;
}

static bool
rmpp_hold(struct mad_session *s, uint32_t n, const uint8_t *data)
{
	if (s->key.requester ? !put_in_slot(s, n, data) : write_body(s, n, data) != 0)
		return false;
	s->rmpp.held |= UINT64_C(1) << (n - s->rx.expected - 1);
	return true;
}

static bool
rmpp_is_held(const struct mad_session *s, uint32_t n)
{
	return s->rmpp.held >> (n - s->rx.expected - 1) & 1;
}

/* --- ACKs --- */

void
rmpp_put_ack(struct mad_session *s, uint8_t *mad)
{
	const struct rmpp_header h = {
		.type = RMPP_ACK,
		.segment = s->rx.expected - 1,
		.length = s->rx.window,
	};

	s->rx.acked = h.segment;
	rmpp_put_control(s, mad, &h);
}

/* Acknowledge all complete segments and open the next window. */
static void
rmpp_acknowledge(struct mad_session *s)
{
	uint32_t complete = s->rx.expected - 1;

	s->rx.acked = complete;
	s->rx.window = complete + window_step(s);
	s->rmpp.gap_told = 0;
	if (!s->rmpp.complete)
		mad_rtt_start(s, complete + 1);
	mad_want(s, RMPP_WORK_ACK);
}

/* A segment is missing: repeat the ACK once for each such segment, and again after a round trip. */
static void
tell_gap(struct mad_session *s)
{
	uint64_t now = mad_now(s);

	s->state = MAD_STATE_RECOVER;
	s->tx.rtt_segment = 0; /* the sample would include the loss */
	if (s->rmpp.gap_told == s->rx.expected &&
		(s->srtt == 0 || now - s->rx.resend_time < s->srtt))
		return;
	s->rmpp.gap_told = s->rx.expected;
	s->rx.resend_time = now;
	mad_want(s, RMPP_WORK_ACK);
}

static enum verdict
rmpp_discard(struct mad_session *s)
{
	mad_count(s->w, segments_discarded, 1);
	return VERDICT_MAD_DISCARDED;
}

/* --- the stream --- */

void
rmpp_start_receiving(struct mad_session *s)
{
	memset(&s->rx, 0, sizeof(s->rx));
	s->rx.expected = 1;
	s->rx.window = 1; /* initially */
	s->tx.rtt_segment = 0;
	s->state = MAD_STATE_RECV;
	s->rmpp.overall_due = mad_now(s) + mad_ms(s->w, s->w->limits.rmpp_total_ms);
	rmpp_arm(s);
}

/* The stream is complete: call the agent or the taker. */
static void
received_all(struct mad_session *s)
{
	struct mad_result r = { .end = MAD_END_OK, .mad = s->mad };

	s->rmpp.complete = true;
	rmpp_drop_held(s);
	mad_session_timer_stop(s);
	rmpp_acknowledge(s);
	/*
	 * security: only our ACK of segment 1 brings segment 2, so a single segment proves no
	 * address
	 */
	if (s->rx.last > 1)
		mad_session_answers(s);
	if (!s->key.requester) {
		mad_body_set_length(s,
			(uint64_t)(s->rx.last - 1) * rmpp_area(s) + s->rmpp.last_length);
		mad_session_request(s);
		return;
	}
	r.status = get_be16(s->mad + MAD_OFF_STATUS);
	if (r.status != MAD_STATUS_OK)
		r.end = MAD_END_STATUS;
	mad_session_linger(s, &r, mad_ms(s->w, RMPP_LINGER_MS));
}

/*
 * Take segment `expected`. @param data  NULL: the body has it already
 * @retval false  the session is ending
 */
static bool
rmpp_take_segment(struct mad_session *s, const uint8_t *data)
{
	uint32_t n = s->rx.expected, len = data_length(s, n);
	int rc;

	s->segments++;
	mad_count(s->w, segments_received, 1);
	if (s->key.requester) {
		if (len != 0 && !mad_session_deliver(s, data, len))
			return false;
	} else if (data != NULL) {
		rc = write_body(s, n, data);
		if (rc != 0) {
			mad_count_refused(s->w, &s->key);
			rmpp_close(s, RMPP_STOP, RMPP_STATUS_RESX, MAD_END_REFUSED, rc);
			return false;
		}
	}
	s->rx.expected++;
	if (n % RMPP_OVERALL_SEGMENTS == 0)
		s->rmpp.overall_due += mad_ms(s->w, s->w->limits.rmpp_total_ms);
	return true;
}

/* Segment `expected` has arrived: take it, and the held segments behind it. */
static void
rmpp_advance(struct mad_session *s, const uint8_t *data)
{
	bool more;

	mad_rtt_stop(s, s->rx.expected);
	do {
		if (!rmpp_take_segment(s, data))
			return;
		more = s->rmpp.held & 1;
		s->rmpp.held >>= 1;
		data = more && s->key.requester ? rmpp_hold_slot(s, s->rx.expected) : NULL;
	} while (more);
	if (s->rx.expected - 1 == s->rx.last) {
		received_all(s);
		return;
	}
	if (s->rmpp.held == 0) {
		rmpp_drop_held(s);
		s->state = MAD_STATE_RECV;
	}
	if (s->rx.expected - 1 == s->rx.window) /* the first window is segment 1 alone */
		rmpp_acknowledge(s);
	else if (s->rmpp.held != 0)
		tell_gap(s);
}

static enum verdict
out_of_order(struct mad_session *s, uint32_t n, const uint8_t *data)
{
	if (rmpp_is_held(s, n)) { /* sent again: the sender wants an ACK */
		mad_want(s, RMPP_WORK_ACK);
		return rmpp_discard(s);
	}
	tell_gap(s);
	return rmpp_hold(s, n, data) ? VERDICT_DATAGRAM : rmpp_discard(s);
}

/* The Last segment tells the data's length. Only one is allowed, and no segment behind it. */
static bool
note_last(struct mad_session *s, uint32_t n, const uint8_t *mad)
{
	uint32_t length = get_be32(mad + RMPP_OFF_LENGTH);

	if (length > RMPP_AREA || length < rmpp_class_header(s))
		return false;
	if (s->rx.last != 0 || s->rmpp.held >> (n - s->rx.expected) != 0)
		return false;
	s->rx.last = n;
	s->rmpp.last_length = (uint8_t)(length - rmpp_class_header(s));
	return true;
}

static enum verdict
receive_segment(struct mad_session *s, const uint8_t *mad)
{
	uint32_t n = get_be32(mad + RMPP_OFF_SEGMENT);
	const uint8_t *data = mad + s->data_offset;

	if (n < s->rx.expected) {
		if (n <= s->rx.acked) /* the ACK was lost */
			mad_want(s, RMPP_WORK_ACK);
		return rmpp_discard(s);
	}
	if (n > s->rx.window || (s->rx.last != 0 && n > s->rx.last))
		return rmpp_discard(s);
	if ((mad[RMPP_OFF_FLAGS] & RMPP_LAST) && n != s->rx.last && !note_last(s, n, mad))
		return rmpp_reject(s, RMPP_STATUS_BAD_LEN);
	if (n != s->rx.expected)
		return out_of_order(s, n, data);
	if (n == 1)
		s->rx.announced = get_be32(mad + RMPP_OFF_LENGTH);
	rmpp_advance(s, data);
	return VERDICT_DATAGRAM;
}

/* Segment 1 of the reply arrived: so our request did, whatever ACKs are missing. */
static void
start_reply(struct mad_session *s, const uint8_t *mad)
{
	s->work = 0;
	memcpy(s->mad, mad, MAD_LEN);
	rmpp_start_receiving(s);
}

enum verdict
rmpp_receive_data(struct mad_session *s, const struct mad_rx *rx)
{
	if (s->state == MAD_STATE_RECV || s->state == MAD_STATE_RECOVER)
		return receive_segment(s, rx->mad);
	if (s->rmpp.complete) { /* the last ACK was lost */
		mad_want(s, RMPP_WORK_ACK);
		return rmpp_discard(s);
	}
	if (!s->key.requester || s->state == MAD_STATE_LINGER)
		return VERDICT_MAD_UNMATCHED;
	if (!mad_answers(s, rx->mad))
		return VERDICT_MAD_UNMATCHED;
	if (get_be32(rx->mad + RMPP_OFF_SEGMENT) != 1)
		return rmpp_discard(s);
	if (s->taker.data == NULL)
		return rmpp_reject(s, RMPP_STATUS_UNSPECIFIED);
	start_reply(s, rx->mad);
	return receive_segment(s, rx->mad);
}
