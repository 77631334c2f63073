/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The flight recorder of queue pairs: trace.h says who calls it, and why others pay nothing. */

#include <inttypes.h>

#include "base/line.h"
#include "rc/qp_directory.h"
#include "rc/trace.h"
#include "wire/bytes.h"
#include "wire/layout.h"

/* Record a step that happens now. */
static struct trace_step *
record_step(struct rc_qp *qp, struct trace_step s)
{
	s.time = qp->worker->now;
	return trace_put(qp->trace, s);
}

/* --- sent packets --- */

static void
record_sent(struct rc_trace_sink *s, const uint8_t *bth, uint32_t payload)
{
	const struct opcode_info *op = &opcodes[bth[0]];

	record_step(s->qp,
		(struct trace_step){ .event = RC_STEP_SENT,
			.what = bth[0],
			.number = get_be24(bth + BTH_PSN),
			.detail = op->headers & HDR_AETH ? bth[BTH_LEN] : 0,
			.value = payload });
}

static uint8_t *
trace_reserve(struct tx_sink *sink, const struct path *path, uint32_t len)
{
	struct rc_trace_sink *s = (struct rc_trace_sink *)sink;
	uint8_t *bth = tx_reserve(s->to, path, len);

	s->bth = bth;
	s->len = len;
	return bth;
}

static void
trace_commit(struct tx_sink *sink)
{
	struct rc_trace_sink *s = (struct rc_trace_sink *)sink;

	record_sent(s, s->bth, s->len - opcodes[s->bth[0]].header_len);
	tx_commit(s->to);
}

static bool
trace_send(struct tx_sink *sink, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	struct rc_trace_sink *s = (struct rc_trace_sink *)sink;
	bool sent = tx_send(s->to, path, headers, headers_len, from, len);

	if (sent)
		record_sent(s, headers->bytes, len);
	return sent;
}

const struct tx_sink rc_recording_sink = { trace_reserve, trace_commit, trace_send };

void
rc_trace_begin(struct rc_qp *qp)
{
	struct rc_trace_sink *s = &qp->worker->recorder;

	s->qp = qp;
	s->to = qp->worker->tx;
	s->received = NULL;
	qp->worker->tx = &s->sink;
}

void
rc_trace_end(struct rc_worker *w)
{
	w->tx = w->recorder.to;
	w->recorder.to = NULL;
}

/* --- received packets --- */

void
rc_trace_received(struct rc_qp *qp, const struct packet *pkt)
{
	bool response = pkt->op->flags & OP_RESPONSE;

	rc_trace_begin(qp);
	qp->worker->recorder.received = record_step(qp,
		(struct trace_step){ .event = RC_STEP_RECEIVED,
			.what = pkt->opcode,
			.number = pkt->psn,
			.expected = response ? qp->req.una : qp->resp.epsn,
			.outcome = VERDICT_COUNT,
			.detail = pkt->op->headers & HDR_AETH ? pkt->syndrome : 0,
			.value = pkt->payload_len });
}

void
rc_trace_verdict(struct rc_worker *w, enum verdict v)
{
	w->recorder.received->outcome = v;
	rc_trace_end(w);
}

/* --- other steps --- */

void
rc_trace_timer(struct rc_qp *qp)
{
	bool rnr = qp->req.rnr_wait == RC_RNR_WAIT;

	record_step(qp,
		(struct trace_step){ .event = rnr ? RC_STEP_RNR_OVER : RC_STEP_TIMEOUT,
			.number = qp->req.una,
			.value = rnr ? qp->req.rnr_left : qp->req.retry_left });
}

void
rc_trace_modified(struct rc_qp *qp, enum qp_state from)
{
	record_step(qp,
		(struct trace_step){ .event = RC_STEP_MODIFIED,
			.what = from,
			.outcome = qp->state });
}

void
rc_trace_failed(struct rc_qp *qp)
{
	const struct qp_failure *f = &qp->failure;

	record_step(qp,
		(struct trace_step){ .event = RC_STEP_FAILED,
			.what = f->reason,
			.number = f->psn,
			.expected = f->expected,
			.outcome = f->status,
			.detail = f->syndrome });
}

/* --- on and off --- */

void
rc_trace_free(struct rc_qp *qp)
{
	slab_free(qp->trace, sizeof(*qp->trace));
	qp->trace = NULL;
}

static int
qp_record_switch(struct rc_qp *qp, bool on)
{
	if (on == (qp->trace != NULL))
		return 0;
	if (!on)
		rc_trace_free(qp);
	else if ((qp->trace = slab_alloc(qp->worker->slab, sizeof(*qp->trace))) == NULL)
		return -ENOMEM;
	qp->apart ^= RC_APART_TRACED;
	rc_qp_changed(qp);
	return 0;
}

void
rc_trace_create(struct rc_qp *qp)
{
	if (qp->worker->trace_all)
		qp_record_switch(qp, true); /* without memory the QP works, unrecorded */
}

int
rc_qp_trace_switch(struct rc_worker *w, uint32_t qpn, bool on)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	return qp == NULL ? -ENOENT : qp_record_switch(qp, on);
}

unsigned int
rc_trace_switch_all(struct rc_worker *w, bool on)
{
	unsigned int n = 0;
	struct rc_qp *qp;

	w->trace_all = on;
	LIST_FOREACH(qp, &w->qps, link)
		n += qp_record_switch(qp, on) == 0;
	return n;
}

int
rc_qp_trace(const struct rc_worker *w, uint32_t qpn, struct trace *copy)
{
	const struct rc_qp *qp = rc_qp_at(w, qpn);

	if (qp == NULL)
		return -ENOENT;
	if (qp->trace == NULL)
		return -ENODATA;
	*copy = *qp->trace;
	return 0;
}

/* --- in words --- */

static void
put_packet(struct line *l, const struct trace_step *s)
{
	const struct opcode_info *op = &opcodes[s->what];
	char syndrome[RC_STEP_TEXT_MAX];

	line_put(l, "%s", op->name != NULL ? op->name : "unknown opcode");
	if (op->headers & HDR_AETH)
		line_put(l, ", %s", wire_print_syndrome(s->detail, syndrome, sizeof(syndrome)));
}

const char *
rc_step_name(uint8_t event)
{
	static const char *const names[RC_STEP_COUNT] = {
		[RC_STEP_RECEIVED] = "received",
		[RC_STEP_SENT] = "sent",
		[RC_STEP_TIMEOUT] = "timeout",
		[RC_STEP_RNR_OVER] = "RNR wait over",
		[RC_STEP_MODIFIED] = "modify",
		[RC_STEP_FAILED] = "error",
	};

	return event < RC_STEP_COUNT ? names[event] : "unknown";
}

bool
rc_step_has_psn(const struct trace_step *s)
{
	return s->event != RC_STEP_MODIFIED;
}

bool
rc_step_has_expected(const struct trace_step *s)
{
	return s->event == RC_STEP_RECEIVED;
}

const char *
rc_step_what(const struct trace_step *s, char buf[RC_STEP_TEXT_MAX])
{
	struct line l = { buf, RC_STEP_TEXT_MAX, 0 };

	buf[0] = '\0';
	switch (s->event) {
	case RC_STEP_RECEIVED:
	case RC_STEP_SENT:
		put_packet(&l, s);
		break;
	case RC_STEP_TIMEOUT:
		line_put(&l, "no answer in time");
		break;
	case RC_STEP_RNR_OVER:
		line_put(&l, "the oldest request is sent again");
		break;
	case RC_STEP_MODIFIED:
		line_put(&l, "%s to %s", qp_state_name(s->what), qp_state_name(s->outcome));
		break;
	case RC_STEP_FAILED:
		line_put(&l, "%s", qp_failure_infos[s->what].name);
		break;
	default:
		break;
	}
	return buf;
}

const char *
rc_step_outcome(const struct trace_step *s, char buf[RC_STEP_TEXT_MAX])
{
	struct line l = { buf, RC_STEP_TEXT_MAX, 0 };

	buf[0] = '\0';
	switch (s->event) {
	case RC_STEP_RECEIVED:
		line_put(&l, "%s",
			s->outcome < VERDICT_COUNT ? verdict_infos[s->outcome].name
						   : "in progress");
		break;
	case RC_STEP_SENT:
		line_put(&l, "%" PRIu32 " bytes", s->value);
		break;
	case RC_STEP_TIMEOUT:
	case RC_STEP_RNR_OVER:
		line_put(&l, "%" PRIu32 " retries left", s->value);
		break;
	case RC_STEP_FAILED:
		if (s->outcome != 0)
			line_put(&l, "%s", wc_status_name(s->outcome));
		break;
	default:
		break;
	}
	return buf;
}

static void
print_step(FILE *f, const struct trace_step *s)
{
	char what[RC_STEP_TEXT_MAX], outcome[RC_STEP_TEXT_MAX];

	fprintf(f, "%-13s  ", rc_step_name(s->event));
	if (rc_step_has_psn(s))
		fprintf(f, "PSN %-8" PRIu32, s->number);
	if (rc_step_has_expected(s))
		fprintf(f, " expected %-8" PRIu32, s->expected);
	fprintf(f, "  %s  %s", rc_step_what(s, what), rc_step_outcome(s, outcome));
}

void
rc_trace_print(FILE *f, const struct rc_qp *qp)
{
	fprintf(f, "last steps of QP 0x%06x, in %s:\n", qp->qpn, qp_state_name(qp->state));
	trace_print(f, qp->trace, qp->worker->dev->hz, print_step);
}

void
rc_trace_print_all(FILE *f, const struct rc_worker *w)
{
	const struct rc_qp *qp;

	LIST_FOREACH(qp, &w->qps, link) {
		if (qp->trace != NULL)
			rc_trace_print(f, qp);
	}
}
