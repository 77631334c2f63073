/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP: the sender's state machine (sa-multipacket B5).
 *
 * Three signs tell of a lost packet, the quickest first. 1: an ACK opens no window while later
 * segments are on their way, so the segment after it is missing: send that segment again; if the
 * next one is missing too, send all from there on. 2: nothing is heard for some round trips: send
 * again the newest segment that was sent, and the newest that was acknowledged, which every
 * receiver answers with an ACK (B6). 3: the ACK timer expires: go back to the first unacknowledged
 * segment, a limited number of times.
 */

#include <rte_common.h>

#include "mad/rmpp.h"

#define PROBES_MAX   10 /* probes without progress */
#define PROBES_FIRST 5 /* probes in all before the first ACK */
#define PROBES_UNPROVEN                                                                            \
	1 /* in all to an address that has acknowledged nothing (session.h); SA only */

#define WORK_SEGMENTS (MAD_WORK_DATA | RMPP_WORK_MISSING | RMPP_WORK_DRAW | RMPP_WORK_TAIL)

static uint64_t
ack_timer(const struct mad_session *s)
{
	return RTE_MIN(mad_response_timeout(s), mad_ms(s->w, RMPP_ACK_TIMER_MS));
}

/*
 * Segments first..last were just sent. An ACK that arrives before deaf_until left the receiver too
 * early to cover them, so it proves no loss.
 */
static void
rmpp_deafen(struct mad_session *s, uint32_t first, uint32_t last)
{
	s->rmpp.deaf_first = first;
	s->rmpp.deaf_last = last;
	s->rmpp.deaf_until = mad_now(s) + (s->srtt != 0 ? s->srtt / 2 : mad_probe_delay(s) / 4);
}

static unsigned int
max_probes(const struct mad_session *s)
{
	if (s->tx.acked != 0)
		return PROBES_MAX;
	if (s->budget == NULL)
		return PROBES_FIRST;
	/* its budget is 3 packets: keep the others for the ACK timer */
	return s->key.mgmt_class == MAD_CLASS_SUBN_ADM ? PROBES_UNPROVEN : 0;
}

static void
arm_probe(struct mad_session *s)
{
	unsigned int max = max_probes(s);

	s->rmpp.probe_due = s->tx.probes < max ? mad_now(s) + mad_probe_delay(s) : UINT64_MAX;
	rmpp_arm(s);
}

static void
restart_timers(struct mad_session *s)
{
	s->rmpp.ack_due = mad_now(s) + ack_timer(s);
	arm_probe(s);
}

/* --- what may be sent --- */

static bool
window_open(const struct mad_session *s)
{
	return s->tx.next <= s->tx.window_end && s->tx.next <= s->tx.total;
}

static bool
flight_full(const struct mad_session *s)
{
	return s->tx.next - 1 - s->tx.acked >= s->w->limits.rmpp_send_max;
}

/* State BURST while segments may be sent, else WAIT. */
static void
open_or_wait(struct mad_session *s)
{
	if (window_open(s) && !flight_full(s)) {
		s->state = MAD_STATE_BURST;
		mad_want(s, MAD_WORK_DATA);
	} else {
		s->state = MAD_STATE_WAIT;
		s->work &= ~(uint32_t)MAD_WORK_DATA;
	}
}

void
rmpp_start_sending(struct mad_session *s)
{
	uint64_t area = rmpp_area(s);
	uint32_t announced = s->tx.window;

	memset(&s->tx, 0, sizeof(s->tx));
	s->tx.total = s->source.length == 0 ? 1 : (uint32_t)((s->source.length + area - 1) / area);
	s->tx.next = 1;
	/* double-sided: start with the window that the requester announced */
	s->tx.window_end = mad_window(s, RTE_MAX(announced, 1u));
	s->retries_left = s->retries;
	s->rmpp.deaf_until = 0;
	open_or_wait(s);
	restart_timers(s);
}

/* --- ACKs --- */

void
rmpp_missing(struct mad_session *s)
{
	struct rmpp_session *r = &s->rmpp;
	uint32_t n = s->tx.acked + 1;

	if (mad_now(s) < r->deaf_until && n >= r->deaf_first && n <= r->deaf_last)
		return;
	if (s->tx.next == n)
		return; /* it is the next to be sent anyhow */
	if (n > 1 && r->deaf_first == n - 1 && r->deaf_last == n - 1) {
		/* this one and the one before were missing: the receiver holds no later segments */
		s->tx.next = n;
		s->tx.rtt_segment = 0;
		rmpp_deafen(s, n, UINT32_MAX);
		open_or_wait(s);
		return;
	}
	mad_want(s, RMPP_WORK_MISSING);
}

/* All segments are acknowledged. */
static void
sent_all(struct mad_session *s)
{
	const struct mad_result ok = { .end = MAD_END_OK };

	s->work &= ~(uint32_t)WORK_SEGMENTS;
	if (!s->key.requester) {
		mad_session_linger(s, &ok, MAD_LINGER * mad_response_timeout(s));
		return;
	}
	/* double-sided (B5): wait for the reply */
	s->state = MAD_STATE_REQUESTED;
	s->retries_left = s->retries;
	s->rmpp.ack_due = s->rmpp.probe_due = UINT64_MAX; /* until the ACK is sent */
	rmpp_arm(s);
	mad_want(s, RMPP_WORK_READY);
}

static enum verdict
rmpp_take_ack(struct mad_session *s, uint32_t segment, uint32_t window_end)
{
	struct mad_sender *tx = &s->tx;
	bool advanced = segment > tx->acked;
	bool idle = segment == tx->sent;
	bool opened;

	if (segment > tx->sent) /* covers ACKs beyond the window or the Last segment */
		return rmpp_reject(s, RMPP_STATUS_S2B);
	if (window_end < tx->window_end || segment < tx->acked) {
		mad_count(s->w, ack_ignored, 1);
		return VERDICT_MAD_DISCARDED;
	}
	if (advanced)
		mad_address_proven(s);
	window_end = mad_window(s, window_end);
	opened = window_end > tx->window_end;
	tx->window_end = window_end;
	tx->window = window_end - segment;
	if (advanced) {
		mad_rtt_stop(s, segment);
		tx->acked = segment;
		tx->next = RTE_MAX(tx->next, segment + 1);
		if (tx->probes != 0) /* the last packet sent was a probe */
			mad_rtt_at_least(s, mad_now(s) - s->rmpp.probe_time);
		tx->probes = 0;
		s->retries_left = s->retries;
		s->work &= ~(uint32_t)(RMPP_WORK_MISSING | RMPP_WORK_DRAW | RMPP_WORK_TAIL);
	}
	if (tx->acked == tx->total) {
		sent_all(s);
		return VERDICT_DATAGRAM;
	}
	if (idle) /* whatever we send now is new to the receiver */
		rmpp_deafen(s, segment + 1, UINT32_MAX);
	if (advanced || (opened && idle)) /* opening the window alone does not prolong a stream */
		restart_timers(s);
	if (!opened && segment < tx->sent)
		rmpp_missing(s);
	open_or_wait(s);
	return VERDICT_DATAGRAM;
}

enum verdict
rmpp_receive_ack(struct mad_session *s, const struct mad_rx *rx)
{
	uint32_t segment = get_be32(rx->mad + RMPP_OFF_SEGMENT);
	uint32_t window_end = get_be32(rx->mad + RMPP_OFF_LENGTH);

	mad_count(s->w, ack_received, 1);
	if (rmpp_sending(s))
		return rmpp_take_ack(s, segment, window_end);
	/* our final ACK 0 was lost */
	if (s->state == MAD_STATE_REQUESTED && s->tx.total != 0 && segment == s->tx.total) {
		mad_want(s, RMPP_WORK_READY);
		return VERDICT_DATAGRAM;
	}
	if (s->state == MAD_STATE_PREP && segment == 0) {
		s->tx.window = window_end;
		return VERDICT_DATAGRAM;
	}
	mad_count(s->w, ack_ignored, 1);
	return VERDICT_MAD_DISCARDED;
}

/* --- segments --- */

/*
 * Choose the next segment to send. *again: it was sent before.
 * @return 0: none
 */
static uint32_t
choose_segment(struct mad_session *s, bool *again)
{
	struct mad_sender *tx = &s->tx;

	*again = true;
	if (s->work & RMPP_WORK_MISSING) {
		s->work &= ~(uint32_t)RMPP_WORK_MISSING;
		rmpp_deafen(s, tx->acked + 1, tx->acked + 1);
		return tx->acked + 1;
	}
	if (s->work & RMPP_WORK_TAIL) {
		s->work &= ~(uint32_t)RMPP_WORK_TAIL;
		return tx->sent;
	}
	if (s->work & RMPP_WORK_DRAW) {
		s->work &= ~(uint32_t)RMPP_WORK_DRAW;
		return tx->acked;
	}
	*again = tx->next <= tx->sent;
	return window_open(s) && !flight_full(s) ? tx->next++ : 0;
}

/* The source's data is gone: send a STOP for lack of resources and end. */
static void
put_stop(struct mad_session *s, uint8_t *mad, int error)
{
	const struct rmpp_header h = { .type = RMPP_STOP, .status = RMPP_STATUS_RESX };

	rmpp_put_control(s, mad, &h);
	mad_commit(s);
	mad_count_abort(s->w, 0, h.status);
	rmpp_finish(s, MAD_END_REFUSED, h.status, error);
}

static void
after_segment(struct mad_session *s, uint32_t n, bool again)
{
	struct mad_sender *tx = &s->tx;

	mad_count(s->w, segments_sent, 1);
	if (again) {
		mad_count(s->w, segments_resent, 1);
		s->resent++;
		if (n == tx->rtt_segment || n == tx->acked + 1)
			tx->rtt_segment = 0; /* the ACK may answer either copy */
	} else {
		tx->sent = n;
		/* the receiver acknowledges these at once */
		if (n == tx->total || n == tx->window_end)
			mad_rtt_start(s, n);
	}
	if (s->state != MAD_STATE_BURST) {
		arm_probe(s);
		return;
	}
	if (window_open(s) && !flight_full(s))
		return;
	open_or_wait(s);
	restart_timers(s);
	if (s->rmpp.deaf_last == UINT32_MAX)
		rmpp_deafen(s, s->rmpp.deaf_first, UINT32_MAX);
	/* our own limit stopped us, so the receiver owes no ACK yet: draw one */
	if (window_open(s) && tx->acked > 0)
		mad_want(s, RMPP_WORK_DRAW);
}

unsigned int
rmpp_send_segment(struct mad_session *s, bool *gone)
{
	struct rmpp_header h = { .type = RMPP_DATA };
	uint32_t before = s->work, next = s->tx.next, n;
	uint8_t *mad;
	bool again;
	int len;

	n = choose_segment(s, &again);
	if (n == 0) {
		s->work &= ~(uint32_t)WORK_SEGMENTS;
		return 0;
	}
	mad = mad_packet(s);
	if (mad == NULL) {
		s->work = before;
		s->tx.next = next;
		return 0;
	}
	memcpy(mad, s->mad, s->data_offset);
	len = mad_segment_read(s, n, mad);
	if (len < 0) {
		*gone = true;
		put_stop(s, mad, len);
		return 1;
	}
	h.flags = (n == 1 ? RMPP_FIRST : 0) | (n == s->tx.total ? RMPP_LAST : 0);
	h.segment = n;
	h.length = rmpp_payload_length(s, n);
	rmpp_put_header(mad, &h);
	if (n == 1)
		mad_departs(s->w, s->agent, mad);
	mad_commit(s);
	after_segment(s, n, again);
	return 1;
}

/* --- time --- */

static void
go_back(struct mad_session *s)
{
	s->tx.next = s->tx.acked + 1;
	if (s->tx.acked != 0)
		s->tx.probes = 0;
	s->tx.rtt_segment = 0;
	s->work &= ~(uint32_t)WORK_SEGMENTS;
	rmpp_deafen(s, s->tx.next, UINT32_MAX);
	open_or_wait(s);
	if (!window_open(s)) /* the receiver closed the window: ask whether it is open again */
		mad_want(s, RMPP_WORK_DRAW);
	restart_timers(s);
}

/* Sign 2: draw an ACK, which also says whether the window is open. */
static void
rmpp_probe(struct mad_session *s)
{
	mad_count(s->w, probes, 1);
	s->tx.probes++;
	s->rmpp.deaf_first = s->rmpp.deaf_last = 0; /* believe what that ACK says is missing */
	if (s->tx.sent > s->tx.acked)
		mad_want(s, RMPP_WORK_TAIL);
	if (s->tx.acked > 0)
		mad_want(s, RMPP_WORK_DRAW);
	s->rmpp.probe_time = mad_now(s);
	arm_probe(s);
}

void
rmpp_sender_expired(struct mad_session *s)
{
	uint64_t now = mad_now(s);

	/*
	 * we still send: the timers start when the burst ends, however long it waits for the sink
	 */
	if (s->state == MAD_STATE_BURST)
		return;
	if (now < s->rmpp.ack_due) {
		if (now < s->rmpp.probe_due)
			rmpp_arm(s);
		else
			rmpp_probe(s);
		return;
	}
	mad_count(s->w, timeouts, 1);
	if (s->retries_left == 0) {
		rmpp_close(s, RMPP_ABORT, RMPP_STATUS_RETRIES, MAD_END_TIMEOUT, 0);
		return;
	}
	s->retries_left--;
	go_back(s);
}
