/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The flight recorder of sessions. Sessions are many and short, so they are recorded all or none:
 * the last MAD_TRACES of a worker, which stay when the session has ended.
 */

#include <errno.h>

#include "base/line.h"
#include "mad/core.h"

struct mad_trace_entry {
	uint64_t tid;
	struct mad_session *s; /* NULL: it has ended, or has lost the entry to a newer one */
	struct trace trace;
};

struct mad_traces {
	uint32_t opened; /* sessions recorded so far */
	struct mad_trace_entry entry[MAD_TRACES];
};

static struct trace_step
step_of(const struct mad_session *s, enum mad_step_event event)
{
	return (struct trace_step){ .time = s->w->now,
		.event = (uint8_t)event,
		.outcome = s->state };
}

/* Fill in what a packet says. */
static void
step_packet(const struct mad_session *s, struct trace_step *step, const uint8_t *mad)
{
	step->what = mad[MAD_OFF_METHOD];
	step->value = get_be16(mad + MAD_OFF_STATUS);
	if (s->protocol == &mad_protocol_rmpp) {
		step->detail = mad[RMPP_OFF_TYPE];
		step->number = get_be32(mad + RMPP_OFF_SEGMENT);
	} else if (s->protocol == &mad_protocol_v1) {
		step->number = get_be32(mad + SA1_OFF_SEGMENT);
	}
}

void
mad_trace_packet(struct mad_session *s, enum mad_step_event event, const uint8_t *mad)
{
	struct trace_step step = step_of(s, event);

	step_packet(s, &step, mad);
	step.expected = event == MAD_STEP_SENT ? s->tx.acked : s->rx.expected;
	trace_put(s->trace, step);
}

void
mad_trace_event(struct mad_session *s, enum mad_step_event event, uint8_t end)
{
	struct trace_step step = step_of(s, event);

	step.what = end;
	step.value = s->retries_left;
	trace_put(s->trace, step);
}

/* --- the worker's last sessions --- */

void
mad_trace_open(struct mad_session *s)
{
	struct mad_traces *t = s->w->traces;
	struct mad_trace_entry *e;

	if (likely(t == NULL))
		return;
	e = &t->entry[t->opened++ % MAD_TRACES];
	if (e->s != NULL)
		e->s->trace = NULL;
	e->s = s;
	e->tid = s->key.tid;
	e->trace.count = 0;
	s->trace = &e->trace;
	mad_trace_event(s, MAD_STEP_OPENED, 0);
}

void
mad_trace_close(struct mad_session *s)
{
	container_of(s->trace, struct mad_trace_entry, trace)->s = NULL;
	s->trace = NULL;
}

void
mad_trace_free(struct mad_worker *w)
{
	struct mad_traces *t = w->traces;
	unsigned int i;

	for (i = 0; t != NULL && i < MAD_TRACES; i++)
		if (t->entry[i].s != NULL)
			t->entry[i].s->trace = NULL;
	mem_free(w->config.alloc, t);
	w->traces = NULL;
}

int
mad_trace_switch(struct mad_worker *w, bool on)
{
	if (!on)
		mad_trace_free(w);
	else if (w->traces == NULL)
		w->traces = mem_zalloc(w->config.alloc, sizeof(*w->traces), 64);
	return on && w->traces == NULL ? -ENOMEM : 0;
}

int
mad_trace(const struct mad_worker *w, uint64_t tid, struct trace *copy)
{
	const struct mad_traces *t = w->traces;
	const struct mad_trace_entry *e;
	uint32_t i;

	if (t == NULL)
		return -ENODATA;
	/* the newest first: a TID may come again */
	for (i = 1; i <= MAD_TRACES && i <= t->opened; i++) {
		e = &t->entry[(t->opened - i) % MAD_TRACES];
		if (e->tid != tid)
			continue;
		*copy = e->trace;
		return 0;
	}
	return -ENOENT;
}

/* --- in words --- */

const char *
mad_step_name(uint8_t event)
{
	static const char *const names[MAD_STEP_COUNT] = {
		[MAD_STEP_OPENED] = "opened",
		[MAD_STEP_RECEIVED] = "received",
		[MAD_STEP_SENT] = "sent",
		[MAD_STEP_TIMEOUT] = "timeout",
		[MAD_STEP_ENDED] = "ended",
	};

	return event < MAD_STEP_COUNT ? names[event] : "unknown";
}

const char *
mad_step_what(const struct trace_step *s, char buf[MAD_STEP_TEXT_MAX])
{
	static const char *const types[] = { "", " DATA", " ACK", " STOP", " ABORT" };
	struct line l = { buf, MAD_STEP_TEXT_MAX, 0 };

	buf[0] = '\0';
	switch (s->event) {
	case MAD_STEP_RECEIVED:
	case MAD_STEP_SENT:
		line_put(&l, "method 0x%02x%s", s->what, s->detail < 5 ? types[s->detail] : "");
		if (s->value != 0)
			line_put(&l, ", status %s", mad_status_name((uint16_t)s->value));
		break;
	case MAD_STEP_TIMEOUT:
		line_put(&l, "%u retries left", s->value);
		break;
	case MAD_STEP_ENDED:
		line_put(&l, "%s", mad_end_name((enum mad_end)s->what));
		break;
	default:
		break;
	}
	return buf;
}
