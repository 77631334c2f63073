/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What both protocols need of a session: timer, round-trip times, queueing, data, end.
 */

#include <errno.h>

#include <rte_common.h>

#include "base/time.h"
#include "mad/core.h"

/* --- time (sa-multipacket A5) --- */

void
mad_time_init(struct mad_worker *w)
{
	unsigned int code;

	for (code = 0; code < 32; code++)
		w->timeout[code] = time_of_ns(w->config.hz, UINT64_C(4096) << code);
	w->probe_floor = time_of_ns(w->config.hz, 200000);
}

uint64_t
mad_flight(const struct mad_worker *w, uint16_t port)
{
	const struct port_attr *attr = w->config.port(w->config.port_arg, port);

	return attr != NULL ? mad_timeout(w, attr->subnet_timeout) : 0;
}

void
mad_session_timer(struct mad_session *s, uint64_t deadline)
{
	uint64_t now, wait;

	mad_session_settle(s);
	now = mad_now(s);
	wait = deadline > now ? deadline - now : 0;
	s->due = s->w->now + wait;
	timer_start(s->w->config.wheel, &s->timer, wait);
}

void
mad_session_timer_stop(struct mad_session *s)
{
	timer_disarm(s->w->config.wheel, &s->timer);
}

/* --- round trips --- */

void
mad_rtt_start(struct mad_session *s, uint32_t n)
{
	if (s->tx.rtt_segment != 0)
		return;
	s->tx.rtt_segment = n;
	s->tx.rtt_start = mad_now(s);
}

/*
 * A round trip was measured: update the averages of this session and of its worker by an eighth
 * (RFC 6298). They time probes and repeated Resends; the worker's serves sessions without one.
 */
void
mad_rtt_sample(struct mad_session *s, uint64_t rtt)
{
	uint64_t *of_worker = &s->w->srtt;

	if (rtt == 0)
		rtt = 1;
	*of_worker = *of_worker == 0 ? rtt : *of_worker - *of_worker / 8 + rtt / 8;
	/*
	 * Take a sample below half the average at once: a session's first one may include the time
	 * in which the peer prepared its answer.
	 */
	if (s->srtt == 0 || rtt < s->srtt / 2)
		s->srtt = rtt;
	else
		s->srtt = s->srtt - s->srtt / 8 + rtt / 8;
}

void
mad_rtt_stop(struct mad_session *s, uint32_t n)
{
	if (s->tx.rtt_segment == 0 || n < s->tx.rtt_segment)
		return;
	s->tx.rtt_segment = 0;
	mad_rtt_sample(s, mad_now(s) - s->tx.rtt_start);
}

void
mad_rtt_at_least(struct mad_session *s, uint64_t rtt)
{
	if (s->srtt < rtt)
		s->srtt = rtt;
	if (s->w->srtt < rtt)
		s->w->srtt = rtt;
}

uint64_t
mad_probe_delay(const struct mad_session *s)
{
	uint64_t floor = s->w->probe_floor, delay = 4 * s->srtt;

	/* use other sessions' srtt too: in a storm of requests all Acks wait in the same queues */
	if (delay == 0)
		delay = s->w->srtt != 0 ? 8 * s->w->srtt : 5 * floor;
	return RTE_MAX(delay, floor) << s->tx.probes;
}

/* True for requests that only read and are answered by a stream, while probes are left. */
static bool
may_probe(const struct mad_session *s)
{
	uint8_t multi = s->flags & (MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE);

	return multi == MAD_METHOD_MULTI_RESPONSE && s->tx.probes < MAD_REQUEST_PROBES &&
		s->retries_left > MAD_REQUEST_PROBES &&
		s->retries_left + s->tx.probes == s->retries;
}

uint64_t
mad_request_due(const struct mad_session *s, uint64_t due)
{
	uint64_t delay = RTE_MAX(mad_ms(s->w, 10), 8 * s->w->srtt) << s->tx.probes;

	return may_probe(s) ? RTE_MIN(due, mad_now(s) + delay) : due;
}

void
mad_request_probed(struct mad_session *s)
{
	s->tx.probes++;
	s->retries_left--;
	s->resent++;
	mad_count(s->w, probes, 1);
}

/* --- turns --- */

void
mad_want(struct mad_session *s, uint32_t bits)
{
	s->work |= bits;
	if (s->queued || s->work == 0)
		return;
	s->queued = true;
	TAILQ_INSERT_TAIL(&s->w->run_queue, s, run_link);
}

/* --- data --- */

int
mad_segment_read(struct mad_session *s, uint32_t n, uint8_t *mad)
{
	uint32_t area = MAD_LEN - s->data_offset, len;
	uint64_t offset = (uint64_t)(n - 1) * area;
	uint8_t *data = mad + s->data_offset;
	int ret;

	if (offset >= s->source.length) {
		memset(data, 0, area);
		return 0;
	}
	len = (uint32_t)RTE_MIN(area, s->source.length - offset);
	ret = s->source.read(s->source.arg, offset, data, len);
	if (unlikely(ret < 0))
		return ret == -EAGAIN ? -EAGAIN : -ESTALE;
	if (len < area)
		memset(data + len, 0, area - len);
	return (int)len;
}

bool
mad_session_deliver(struct mad_session *s, const uint8_t *data, uint32_t len)
{
	struct mad_result why = { .end = MAD_END_REFUSED };
	uint64_t offset = s->delivered;
	int ret = 0;

	s->delivered += len;
	if (s->taker.data != NULL && len > 0) {
		s->busy = true;
		ret = s->taker.data(s->taker.arg, offset, data, len);
		s->busy = false;
	}
	if (likely(ret >= 0 && !s->cancelled))
		return true;
	if (s->cancelled)
		why.end = MAD_END_CANCELLED;
	else
		why.error = ret;
	s->protocol->give_up(s, &why);
	return false;
}

/* --- the end --- */

/* End the session for its agent, source and taker; the session itself stays. */
static void
session_finish(struct mad_session *s, const struct mad_result *r)
{
	struct mad_worker *w = s->w;
	struct mad_taker taker = s->taker;
	struct mad_source source = s->source;
	struct mad_result result = *r;

	if (s->state == MAD_STATE_LINGER)
		return; /* ended before */
	if (unlikely(s->trace != NULL))
		mad_trace_event(s, MAD_STEP_ENDED, (uint8_t)r->end);
	if (r->end == MAD_END_OK)
		mad_count(w, sessions_completed, 1);
	else
		mad_count(w, sessions_failed, 1);
	mad_body_settle(s);
	mad_body_free(w, s->body);
	s->body = NULL;
	memset(&s->source, 0, sizeof(s->source));
	memset(&s->taker, 0, sizeof(s->taker));
	if (source.release != NULL)
		source.release(source.arg);
	if (taker.done == NULL)
		return;
	result.bytes = s->delivered;
	result.segments = s->segments;
	result.resent = s->resent;
	/*
	 * `opened` may be newer than w->now: a command's clock can be ahead of the turn it runs in
	 */
	result.elapsed = w->now > s->opened ? w->now - s->opened : 0;
	taker.done(taker.arg, &result);
}

void
mad_session_end(struct mad_session *s, const struct mad_result *r)
{
	s->busy = true; /* done() may open a session, which must not reclaim this one */
	mad_session_timer_stop(s);
	session_finish(s, r);
	mad_session_free(s);
}

void
mad_session_linger(struct mad_session *s, const struct mad_result *r, uint64_t duration)
{
	s->busy = true;
	session_finish(s, r);
	s->busy = false;
	mad_session_reclaimable(s);
	mad_session_timer(s, mad_now(s) + duration);
}

bool
mad_session_answer_sent(struct mad_session *s, const struct mad_result *r)
{
	uint16_t status = get_be16(s->mad + MAD_OFF_STATUS);
	bool executed = status != MAD_STATUS_BUSY && status != SA_STATUS_NO_RESOURCES;

	if (!executed && s->state == MAD_STATE_ANSWER && s->rx.last == 0) {
		mad_session_end(s, r);
		return true;
	}
	mad_session_linger(s, r, MAD_LINGER * mad_response_timeout(s));
	return false;
}

void
mad_session_answered(struct mad_session *s, const uint8_t *mad)
{
	struct mad_result r = { .mad = mad, .status = get_be16(mad + MAD_OFF_STATUS) };

	if (mad_is_directed(mad))
		r.status &= (uint16_t)~SMP_RETURNING;
	r.end = r.status == MAD_STATUS_OK ? MAD_END_OK : MAD_END_STATUS;
	s->segments++;
	mad_session_end(s, &r);
}
