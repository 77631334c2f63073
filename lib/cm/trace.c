/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder of connections. Connections that are not recorded have c->trace NULL. */

#include <errno.h>

#include "base/line.h"
#include "cm/private.h"

/* --- steps --- */

void
cm_trace_put(struct cm_conn *c, enum cm_step_event event, uint8_t what, uint16_t value)
{
	trace_put(c->trace,
		(struct trace_step){ .time = c->cm->now,
			.event = (uint8_t)event,
			.what = what,
			.outcome = c->state,
			.number = c->id,
			.value = value });
}

struct trace_step *
cm_trace_received(struct cm_conn *c, const struct cm_msg *m)
{
	return trace_put(c->trace,
		(struct trace_step){ .time = c->cm->now,
			.event = CM_STEP_RECEIVED,
			.what = (uint8_t)m->type,
			.outcome = c->state,
			.number = m->local_id,
			.expected = c->remote_id,
			.value = m->type == CM_REJ ? m->rej.reason : 0 });
}

/* --- on and off --- */

int
cm_trace_start(struct cm_conn *c)
{
	if (c->trace == NULL)
		c->trace = mem_zalloc(c->cm->config.alloc, sizeof(*c->trace), 64);
	return c->trace != NULL ? 0 : -ENOMEM;
}

void
cm_trace_free(struct cm_conn *c)
{
	mem_free(c->cm->config.alloc, c->trace);
	c->trace = NULL;
}

void
cm_trace_create(struct cm_conn *c)
{
	/* without memory the connection works, unrecorded */
	if (c->cm->trace_all && cm_trace_start(c) == 0)
		cm_trace_put(c, CM_STEP_OPENED, 0, 0);
}

/* --- in words --- */

const char *
cm_step_name(uint8_t event)
{
	static const char *const names[CM_STEP_COUNT] = {
		[CM_STEP_OPENED] = "opened",
		[CM_STEP_RECEIVED] = "received",
		[CM_STEP_SENT] = "sent",
		[CM_STEP_TIMEOUT] = "timeout",
		[CM_STEP_ENDED] = "ended",
	};

	return event < CM_STEP_COUNT ? names[event] : "unknown";
}

const char *
cm_end_name(uint8_t end)
{
	static const char *const names[CM_END_COUNT] = {
		[CM_END_DISCONNECTED] = "disconnected",
		[CM_END_REJECTED] = "the peer has rejected it",
		[CM_END_REFUSED] = "it was refused",
		[CM_END_TIMEOUT] = "no answer in time",
		[CM_END_STALE] = "the peer uses its QP for a new connection",
		[CM_END_QP_ERROR] = "its QP is in ERR",
		[CM_END_CANCELLED] = "cancelled",
	};

	return end < CM_END_COUNT ? names[end] : "unknown";
}

const char *
cm_step_what(const struct trace_step *s, char buf[CM_STEP_TEXT_MAX])
{
	struct line l = { buf, CM_STEP_TEXT_MAX, 0 };

	buf[0] = '\0';
	switch (s->event) {
	case CM_STEP_RECEIVED:
	case CM_STEP_SENT:
		line_put(&l, "%s", cm_message_name(s->what));
		if (s->what == CM_REJ)
			line_put(&l, ", reason %u: %s", s->value, cm_reason_name(s->value));
		break;
	case CM_STEP_TIMEOUT:
		line_put(&l, "no answer in time, %u retries left", s->value);
		break;
	case CM_STEP_ENDED:
		line_put(&l, "%s", cm_end_name(s->what));
		break;
	default:
		break;
	}
	return buf;
}
