/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1, sender of segments: the sender's table of sa-multipacket A5.
 *
 * Beyond the table, if mad.v1_early_resend is set: when an Ack is overdue by the round trips
 * measured so far, the last segment is sent again as a probe, long before the ResponseTimer
 * expires. A receiver that has it repeats its Ack; one that misses an earlier segment asks for it.
 * The probes are few and count among the seven retries.
 */

#include <errno.h>

#include <rte_common.h>

#include "mad/v1.h"

#define RETRIES_KEPT 4 /* retries kept for the ResponseTimer; the others may be probes */

/* The Window of the answer tells an unproven address how many segments its first burst has. */
void
v1_start_sending(struct mad_session *s, uint16_t window)
{
	uint16_t first = (uint16_t)mad_window(s, window);

	if (!s->key.requester)
		put_be16(s->mad + SA1_OFF_WINDOW, first);
	s->tx = (struct mad_sender){
		.total = v1_segments(s),
		.next = 1,
		.window = window,
		.window_end = first,
	};
	s->retries_left = s->retries;
	v1_progress(s);
	s->state = MAD_STATE_BURST;
	s->v1.sent_time = mad_now(s);
	mad_want(s, MAD_WORK_DATA);
}

/* --- segments --- */

/* A4: the first segment has the total length, the last one its own. */
static int
v1_build_segment(struct mad_session *s, uint32_t n, uint8_t *mad)
{
	uint32_t length = 0;
	uint8_t flags = 0;
	int len;

	memcpy(mad, s->mad, SA1_OFF_DATA);
	len = mad_segment_read(s, n, mad);
	if (unlikely(len < 0))
		return len;
	if (unlikely(n == 1)) {
		flags = v1_flags(s->w, SA1_FIRST);
		length = (uint32_t)RTE_MIN(s->source.length, UINT32_MAX);
	} else if (unlikely(n == s->tx.total)) {
		flags = v1_flags(s->w, SA1_LAST);
		length = (uint32_t)len;
	}
	put_be32(mad + SA1_OFF_SEGMENT, n);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, length);
	mad[SA1_OFF_FRAGMENT] = flags;
	return 0;
}

/* The data is gone: a responder sends a status, a requester's call ends with -ESTALE. */
static void
v1_source_stale(struct mad_session *s)
{
	if (s->key.requester)
		v1_fail(s, MAD_END_REFUSED, -ESTALE);
	else
		v1_close(s, SA_STATUS_NO_RESOURCES);
}

enum sent {
	SENT,
	NOT_NOW,
	GONE,
};

static enum sent
send_segment(struct mad_session *s, uint32_t n)
{
	uint8_t *mad = mad_packet(s);
	int ret;

	if (unlikely(mad == NULL))
		return NOT_NOW;
	ret = v1_build_segment(s, n, mad);
	if (unlikely(ret == -EAGAIN))
		return NOT_NOW;
	if (unlikely(ret < 0)) {
		v1_source_stale(s);
		return GONE;
	}
	mad_commit(s);
	s->v1.sent_time = mad_now(s);
	if (likely(n > s->tx.sent)) {
		s->tx.sent = n;
		return SENT;
	}
	s->resent++;
	s->tx.rtt_segment = 0; /* an Ack would not say which of the two it is for */
	mad_count(s->w, segments_resent, 1);
	return SENT;
}

static uint32_t
burst_end(const struct mad_session *s)
{
	return RTE_MIN(s->tx.window_end, s->tx.total);
}

/* Table 33-11: a stream stopped inside its window sends KeepAlives, well within `process`. */
static void
v1_burst_timer(struct mad_session *s)
{
	mad_session_timer(s, s->v1.sent_time + s->process - s->process / 4);
}

/* Set the timer to the next probe, or to the end of the ResponseTimer. */
static void
wait_timer(struct mad_session *s)
{
	uint64_t due = s->v1.response_due, probe;

	if (s->w->limits.v1_early_resend && s->tx.acked < s->tx.sent &&
		s->retries_left > RETRIES_KEPT) {
		probe = mad_now(s) + mad_probe_delay(s);
		due = RTE_MIN(due, probe);
	}
	mad_session_timer(s, due);
}

static void
start_waiting(struct mad_session *s)
{
	s->work &= ~MAD_WORK_DATA;
	s->state = MAD_STATE_WAIT;
	s->v1.response_due = mad_now(s) + mad_response_timeout(s);
	wait_timer(s);
}

unsigned int
v1_burst(struct mad_session *s, unsigned int budget)
{
	uint32_t end = burst_end(s), highest = s->tx.sent;
	unsigned int sent = 0;
	enum sent r = SENT;

	while (sent < budget && s->tx.next <= end) {
		r = send_segment(s, s->tx.next);
		if (unlikely(r != SENT))
			break;
		s->tx.next++;
		sent++;
	}
	mad_count(s->w, segments_sent, sent);
	if (unlikely(r == GONE))
		return sent;
	if (s->tx.next <= end) {
		v1_burst_timer(s);
		return sent;
	}
	if (highest < end) /* the last segment was sent for the first time: time its Ack */
		mad_rtt_start(s, end);
	start_waiting(s);
	return sent;
}

/* Send the last segment again, as a probe or a retry. */
bool
v1_send_last(struct mad_session *s)
{
	enum sent r = send_segment(s, s->tx.sent);

	if (r == SENT) {
		s->work &= ~V1_WORK_LAST;
		mad_count(s->w, segments_sent, 1);
	}
	return r == SENT;
}

/* Send the status that tells that a segment is gone. The session continues. */
bool
v1_send_released(struct mad_session *s)
{
	uint8_t *mad = mad_packet(s);

	if (mad == NULL)
		return false;
	v1_status(s, MAD_STATUS_INVALID_FIELD, mad);
	mad_commit(s);
	s->work &= ~V1_WORK_RELEASED;
	mad_count(s->w, status_sent, 1);
	return true;
}

/* The sink or the source has blocked segments for most of `process`: send a KeepAlive. */
static void
burst_stalls(struct mad_session *s)
{
	uint64_t now = mad_now(s);

	if (s->tx.sent > 0 && now - s->v1.sent_time >= s->process - s->process / 4) {
		mad_want(s, V1_WORK_KEEPALIVE);
		s->v1.sent_time = now;
	}
	v1_burst_timer(s);
}

void
v1_sender_expire(struct mad_session *s)
{
	if (s->state == MAD_STATE_BURST) {
		burst_stalls(s);
		return;
	}
	s->v1.probe_time = mad_now(s);
	if (mad_now(s) < s->v1.response_due) {
		s->tx.probes++;
		mad_count(s->w, probes, 1);
	} else {
		mad_count(s->w, timeouts, 1);
		if (s->retries_left == 0) {
			if (s->v1.released)
				v1_fail(s, MAD_END_PROTOCOL, 0);
			else
				v1_fail(s, MAD_END_TIMEOUT, -ETIMEDOUT);
			return;
		}
		s->v1.response_due = mad_now(s) + mad_response_timeout(s);
	}
	s->retries_left--;
	mad_want(s, V1_WORK_LAST);
	wait_timer(s);
}

/* --- control packets of the receiver --- */

/* Leaves the timer running: v1_burst() moves it. */
static void
v1_go_on(struct mad_session *s)
{
	s->work &= ~V1_WORK_LAST;
	s->state = MAD_STATE_BURST;
	s->v1.sent_time = mad_now(s);
	mad_want(s, MAD_WORK_DATA);
}

static void
all_acked(struct mad_session *s)
{
	struct mad_result r = { .end = MAD_END_OK };

	if (s->key.requester) { /* the ConfigResp must still come */
		s->work = 0;
		start_waiting(s);
	} else if (v1_executes(s)) {
		s->work = 0;
		mad_session_linger(s, &r, MAD_LINGER * mad_response_timeout(s));
	} else {
		mad_session_end(s, &r);
	}
}

static void
v1_acked(struct mad_session *s, uint32_t n, uint32_t window)
{
	s->tx.acked = n;
	s->tx.window_end = n + window < n ? UINT32_MAX : n + window;
	s->tx.next = RTE_MAX(s->tx.next, n + 1);
	if (s->tx.probes != 0)
		mad_rtt_at_least(s, mad_now(s) - s->v1.probe_time);
	s->tx.probes = 0;
	s->v1.resend_segment = 0;
	s->v1.resend_count = 0;
	s->v1.released = false;
	v1_progress(s);
	mad_rtt_stop(s, n);
	mad_address_proven(s);
	/* keep retries_left: the Last of a request is sent seven times in all */
	if (n == s->tx.total) {
		all_acked(s);
		return;
	}
	s->retries_left = s->retries;
	if (!s->key.requester)
		put_be16(s->mad + SA1_OFF_WINDOW, (uint16_t)s->tx.window);
	v1_go_on(s);
}

static enum verdict
v1_take_ack(struct mad_session *s, const struct v1_packet *p)
{
	mad_count(s->w, ack_received, 1);
	if (p->segment <= s->tx.acked || p->segment > s->tx.sent) {
		mad_count(s->w, ack_ignored, 1);
		return VERDICT_MAD_DISCARDED;
	}
	/* A5: never below the window of the first burst, which is 64 for a Config */
	v1_acked(s, p->segment, RTE_MAX(s->tx.window, p->window));
	return VERDICT_DATAGRAM;
}

/*
 * A Resend request for an acknowledged segment: its data is gone, and seed 000 requires a status at
 * once. But an Ack may have overtaken the request on the way. Then the receiver no longer wants
 * that segment and its next Ack will show it, so the session continues.
 */
static enum verdict
resend_released(struct mad_session *s)
{
	s->v1.released = s->tx.acked < s->tx.total;
	mad_want(s, V1_WORK_RELEASED);
	return VERDICT_DATAGRAM;
}

/* For this long the receiver cannot have seen our answer to its last Resend request. */
static uint64_t
resend_answered(const struct mad_session *s)
{
	uint64_t trip = s->srtt != 0 ? s->srtt : s->w->srtt;

	if (s->w->limits.v1_early_resend) /* the peer may resend early, too */
		return s->w->probe_floor / 2;
	if (trip == 0)
		trip = 5 * s->w->probe_floor;
	return RTE_MIN(trip, s->process);
}

/*
 * True if a Resend request needs no answer. A receiver asks for one segment until it comes, never
 * for an earlier one, and at most seven times. If it asks once for each packet that it discards,
 * one answer is enough: each further one would be a whole window.
 */
static bool
resend_repeats(struct mad_session *s, uint32_t n)
{
	uint64_t now = mad_now(s);

	if (n < s->v1.resend_segment)
		return true;
	if (n == s->v1.resend_segment) {
		if (now - s->v1.resend_served < resend_answered(s))
			return true;
		if (s->v1.resend_count >= RTE_MAX(s->retries, 1u))
			return true;
	} else {
		s->v1.resend_count = 0;
	}
	s->v1.resend_segment = n;
	s->v1.resend_count++;
	s->v1.resend_served = now;
	return false;
}

static enum verdict
v1_take_resend(struct mad_session *s, const struct v1_packet *p)
{
	uint32_t n = p->segment;

	mad_count(s->w, resend_received, 1);
	if (n == 0)
		return VERDICT_MAD_DISCARDED;
	if (n <= s->tx.acked)
		return resend_released(s);
	/* A5: the receiver asks for what comes next, so its Ack was lost */
	if (s->state == MAD_STATE_WAIT && n == s->tx.sent + 1 && n <= s->tx.total) {
		v1_acked(s, n - 1, s->tx.window);
		resend_repeats(s, n); /* count it as served, so that copies are ignored */
		return VERDICT_DATAGRAM;
	}
	if (n > s->tx.sent || resend_repeats(s, n))
		return VERDICT_MAD_DISCARDED;
	s->tx.rtt_segment = 0;
	s->tx.probes = 0;
	s->tx.next = n;
	mad_session_answers(s);
	v1_go_on(s);
	return VERDICT_DATAGRAM;
}

enum verdict
v1_sender_control(struct mad_session *s, const struct v1_packet *p)
{
	bool is_ack = p->flags & SA1_ACK;

	/* an answer of many packets that is completely acknowledged */
	if (s->state == MAD_STATE_LINGER && s->tx.total > 1 && !is_ack && p->segment != 0) {
		mad_count(s->w, resend_received, 1);
		return resend_released(s);
	}
	if (s->tx.total == 0 || (s->state != MAD_STATE_BURST && s->state != MAD_STATE_WAIT)) {
		if (is_ack)
			mad_count(s->w, ack_ignored, 1);
		return VERDICT_MAD_DISCARDED;
	}
	return is_ack ? v1_take_ack(s, p) : v1_take_resend(s, p);
}
