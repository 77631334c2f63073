/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * SA class version 1: what the life of a transaction and both halves of its streams need: fields,
 * control packets, the end.
 */

#include <rte_common.h>

#include "mad/v1.h"

/* A3: FragmentFlag can be read from either end; one reading is the mirror image of the other. */
uint8_t
v1_flags(const struct mad_worker *w, uint8_t f)
{
	if (!w->limits.v1_flags_lsb)
		return f;
	f = (f & 0xF0) >> 4 | (f & 0x0F) << 4;
	f = (f & 0xCC) >> 2 | (f & 0x33) << 2;
	return (f & 0xAA) >> 1 | (f & 0x55) << 1;
}

uint16_t
v1_window(uint16_t window)
{
	return window != 0 ? window : SA1_WINDOW_DEFAULT;
}

uint32_t
v1_segments(const struct mad_session *s)
{
	uint64_t n = (s->source.length + SA1_AREA - 1) / SA1_AREA;

	return n == 0 ? 1 : (uint32_t)RTE_MIN(n, UINT32_MAX - 1);
}

bool
v1_executes(const struct mad_session *s)
{
	return s->method != MAD_GET && s->method != SA_GET_TABLE && s->method != SA1_GET_BULK;
}

bool
v1_send_control(struct mad_session *s, uint8_t method, uint8_t flag, uint32_t segment,
	uint16_t window)
{
	uint8_t *mad = mad_packet(s);

	if (mad == NULL)
		return false;
	memcpy(mad, s->mad, SA1_OFF_DATA);
	memset(mad + SA1_OFF_DATA, 0, SA1_AREA);
	mad[MAD_OFF_METHOD] = method;
	put_be16(mad + MAD_OFF_STATUS, 0);
	put_be32(mad + SA1_OFF_SEGMENT, segment);
	put_be32(mad + SA1_OFF_PAYLOAD_LEN, 0);
	mad[SA1_OFF_FRAGMENT] = v1_flags(s->w, flag);
	put_be16(mad + SA1_OFF_WINDOW, window);
	mad_commit(s);
	return true;
}

void
v1_fail(struct mad_session *s, enum mad_end end, int error)
{
	struct mad_result r = { .end = end, .error = error };

	mad_session_end(s, &r);
}

void
v1_status(const struct mad_session *s, uint16_t status, uint8_t mad[MAD_LEN])
{
	mad_reply_header(mad, s->mad);
	if (s->key.requester)
		mad[MAD_OFF_METHOD] = s->method;
	put_be16(mad + MAD_OFF_STATUS, status);
}

void
v1_close(struct mad_session *s, uint16_t status)
{
	uint8_t mad[MAD_LEN];

	v1_status(s, status, mad);
	memcpy(s->mad, mad, MAD_LEN);
	mad_session_timer_stop(s);
	s->state = MAD_STATE_CLOSE;
	s->work = 0;
	mad_want(s, MAD_WORK_ANSWER);
}

/* True while we wait for the peer's stream, Ack or ConfigResp (table 33-11: either side). */
static bool
v1_waits(const struct mad_session *s)
{
	return s->state == MAD_STATE_REQUESTED || s->state == MAD_STATE_RECV ||
		s->state == MAD_STATE_RECOVER || s->state == MAD_STATE_WAIT;
}

enum verdict
v1_keepalive(struct mad_session *s)
{
	uint64_t now = mad_now(s);

	if (!v1_waits(s) || s->work & MAD_WORK_REQUEST)
		return VERDICT_MAD_DISCARDED;
	mad_count(s->w, keepalive_received, 1);
	if (now - s->v1.progress > mad_ms(s->w, s->w->limits.keepalive_total_ms)) {
		v1_fail(s, MAD_END_TIMEOUT, -ETIMEDOUT);
		return VERDICT_DATAGRAM;
	}
	s->tx.rtt_segment = 0;
	if (s->state == MAD_STATE_REQUESTED) /* the request has arrived: no probes */
		s->tx.probes = MAD_REQUEST_PROBES;
	s->v1.response_due = now + mad_segment_timeout(s);
	mad_session_timer(s, s->v1.response_due);
	return VERDICT_DATAGRAM;
}

void
v1_progress(struct mad_session *s)
{
	s->v1.progress = mad_now(s);
}
