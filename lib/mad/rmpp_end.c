/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* RMPP: the end of a session, and its timer, for sender, receiver and the packets between them. */

#include <rte_common.h>

#include "mad/rmpp.h"

void
rmpp_drop_held(struct mad_session *s)
{
	unsigned int i;

	for (i = 0; i < RMPP_HOLD_CHUNKS; i++) {
		if (s->rmpp.hold[i] != NULL)
			mad_chunk_put(s, s->rmpp.hold[i]);
		s->rmpp.hold[i] = NULL;
	}
	s->rmpp.held = 0;
}

void
rmpp_finish(struct mad_session *s, enum mad_end end, uint8_t rmpp_status, int error)
{
	struct mad_result r = { .end = end, .rmpp_status = rmpp_status, .error = error };

	if (s->key.requester && s->rx.expected > 1)
		r.mad = s->mad;
	rmpp_drop_held(s);
	mad_session_end(s, &r);
}

void
rmpp_close(struct mad_session *s, uint8_t type, uint8_t status, enum mad_end end, int error)
{
	rmpp_drop_held(s);
	mad_session_timer_stop(s);
	s->state = MAD_STATE_CLOSE;
	s->rmpp.type = type;
	s->rmpp.status = status;
	s->rmpp.end = end;
	s->rmpp.error = error;
	s->work = 0;
	mad_want(s, RMPP_WORK_CLOSE);
}

enum verdict
rmpp_reject(struct mad_session *s, uint8_t status)
{
	rmpp_close(s, RMPP_ABORT, status, MAD_END_PROTOCOL, 0);
	return VERDICT_DATAGRAM;
}

void
rmpp_arm(struct mad_session *s)
{
	uint64_t due = UINT64_MAX;

	if (rmpp_sending(s) || s->state == MAD_STATE_REQUESTED)
		due = RTE_MIN(s->rmpp.ack_due, s->rmpp.probe_due);
	else if (s->state == MAD_STATE_RECV || s->state == MAD_STATE_RECOVER)
		due = s->rmpp.overall_due;
	if (due != UINT64_MAX)
		mad_session_timer(s, due);
	else
		mad_session_timer_stop(s);
}
