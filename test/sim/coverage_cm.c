/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the scripts of the communication manager must reach (cm.md 1, 3, 6): every change of state,
 * every message in every state in which it has an effect, every message, REJ reason, APR status and
 * end that lib/cm knows, and crashes at every message.
 *
 * Not expected: REP_RCVD and DREQ_RCVD, which are entered and left within one step.
 */

#include <stdio.h>

#include "coverage.h"

void
coverage_cm_state(struct coverage *c, uint8_t from, uint8_t to)
{
	c->cm_state[from][to]++;
}

void
coverage_cm_step(struct coverage *c, uint8_t state, enum cm_message type)
{
	c->cm_step[state][type]++;
}

void
coverage_cm_end(struct coverage *c, enum cm_end end)
{
	c->cm_end[end]++;
}

void
coverage_cm_counters(struct coverage *c, const struct cm_counters *counters)
{
	const uint64_t *plain = (const uint64_t *)counters;

	for (unsigned int i = 0; i < CM_COUNTER_COUNT; i++)
		c->cm_counter[i] += plain[i];
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		c->cm_sent[i] += counters->sent[i];
		c->cm_received[i] += counters->received[i];
	}
	for (unsigned int i = 0; i < CM_REASONS; i++) {
		c->cm_rej_sent[i] += counters->rej_sent[i];
		c->cm_rej_received[i] += counters->rej_received[i];
	}
}

void
coverage_cm_apr(struct coverage *c, uint8_t status)
{
	if (status <= CM_APR_INVALID_SL)
		c->cm_apr[status]++;
}

void
coverage_cm_crash(struct coverage *c, enum cm_message type, bool received)
{
	c->cm_crash[received][type]++;
}

void
coverage_cm_by_data(struct coverage *c)
{
	c->cm_by_data++;
}

/* --- what must be reached --- */

#define S(name) CM_STATE_##name

/* as seen after each step: a request accepted at once is in REP_SENT from the beginning */
static const uint8_t changes[][2] = {
	{ S(IDLE), S(REQ_SENT) },
	{ S(IDLE), S(REQ_RCVD) },
	{ S(IDLE), S(REP_SENT) },
	{ S(REQ_SENT), S(MRA_REQ_RCVD) },
	{ S(REQ_SENT), S(ESTABLISHED) },
	{ S(REQ_SENT), S(TIMEWAIT) },
	{ S(REQ_SENT), S(IDLE) },
	{ S(MRA_REQ_RCVD), S(ESTABLISHED) },
	{ S(MRA_REQ_RCVD), S(TIMEWAIT) },
	{ S(MRA_REQ_RCVD), S(IDLE) },
	{ S(REQ_RCVD), S(MRA_REQ_SENT) },
	{ S(REQ_RCVD), S(REP_SENT) },
	{ S(REQ_RCVD), S(IDLE) },
	{ S(MRA_REQ_SENT), S(REP_SENT) },
	{ S(MRA_REQ_SENT), S(IDLE) },
	{ S(REP_SENT), S(ESTABLISHED) },
	{ S(REP_SENT), S(MRA_REP_RCVD) },
	{ S(REP_SENT), S(TIMEWAIT) },
	{ S(REP_SENT), S(IDLE) },
	{ S(MRA_REP_RCVD), S(ESTABLISHED) },
	{ S(MRA_REP_RCVD), S(TIMEWAIT) },
	{ S(MRA_REP_RCVD), S(IDLE) },
	{ S(ESTABLISHED), S(DREQ_SENT) },
	{ S(ESTABLISHED), S(TIMEWAIT) },
	{ S(DREQ_SENT), S(TIMEWAIT) },
	{ S(TIMEWAIT), S(IDLE) },
};

/* cm.md 6 */
#define BIT(name) (1u << CM_##name)
static const uint32_t steps[CM_STATES] = {
	[S(IDLE)] = BIT(REQ) | BIT(REP) | BIT(DREQ) | BIT(LAP) | BIT(SIDR_REQ),
	[S(REQ_SENT)] = BIT(REP) | BIT(MRA) | BIT(REJ),
	[S(MRA_REQ_RCVD)] = BIT(REP) | BIT(MRA) | BIT(REJ),
	[S(REQ_RCVD)] = BIT(REQ) | BIT(REJ),
	[S(MRA_REQ_SENT)] = BIT(REQ) | BIT(REJ),
	[S(REP_SENT)] = BIT(REQ) | BIT(RTU) | BIT(MRA) | BIT(REJ) | BIT(DREQ),
	[S(MRA_REP_RCVD)] = BIT(REQ) | BIT(RTU) | BIT(MRA) | BIT(REJ) | BIT(DREQ),
	[S(ESTABLISHED)] = BIT(REQ) | BIT(REP) | BIT(RTU) | BIT(MRA) | BIT(REJ) | BIT(DREQ) |
		BIT(LAP) | BIT(APR),
	[S(DREQ_SENT)] = BIT(REQ) | BIT(REP) | BIT(RTU) | BIT(REJ) | BIT(DREQ) | BIT(DREP),
	[S(TIMEWAIT)] = BIT(REQ) | BIT(REP) | BIT(RTU) | BIT(DREQ) | BIT(DREP),
};

/* lib/cm answers SIDR requests, but never sends one */
static const uint32_t never_sent = BIT(SIDR_REQ);
/* SIDR has no state that a crash could lose */
static const uint32_t never_crashes = BIT(SIDR_REQ) | BIT(SIDR_REP);

/*
 * cm.md 3. Not expected: reasons of EE contexts and RDCs (2, 11), redirection (24, 25), vendor
 * options (35), and of values that our side never refuses: instance, traffic class, packet rates of
 * others, RNR retry count, responder resources, flow labels.
 */
static const uint8_t reasons[] = { CM_REJ_NO_QP, CM_REJ_NO_RESOURCES, CM_REJ_TIMEOUT,
	CM_REJ_UNSUPPORTED, CM_REJ_INVALID_ID, CM_REJ_INVALID_SERVICE_ID, CM_REJ_INVALID_TRANSPORT,
	CM_REJ_STALE, CM_REJ_INVALID_GID, CM_REJ_INVALID_LID, CM_REJ_INVALID_SL,
	CM_REJ_INVALID_HOP_LIMIT, CM_REJ_INVALID_RATE, CM_REJ_INVALID_ALT_GID,
	CM_REJ_INVALID_ALT_LID, CM_REJ_INVALID_ALT_SL, CM_REJ_INVALID_ALT_HOP_LIMIT,
	CM_REJ_INVALID_ALT_RATE, CM_REJ_INVALID_MTU, CM_REJ_CONSUMER, CM_REJ_DUPLICATE_ID,
	CM_REJ_INVALID_CLASS_VERSION };

/* not expected: unsupported (lib/rc always supports alternate paths) and redirect */
static const uint8_t aprs[] = { CM_APR_OK, CM_APR_INVALID_ID, CM_APR_IS_CURRENT, CM_APR_INVALID_QPN,
	CM_APR_INVALID_LID, CM_APR_INVALID_GID, CM_APR_INVALID_HOP_LIMIT, CM_APR_INVALID_RATE,
	CM_APR_INVALID_SL };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- the report --- */

static unsigned int
report_states(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;
	char text[64];

	for (unsigned int i = 0; i < COUNT(changes); i++) {
		const uint8_t *p = changes[i];

		snprintf(text, sizeof(text), "%s -> %s", cm_state_name(p[0]), cm_state_name(p[1]));
		n += coverage_missing(c->cm_state[p[0]][p[1]], verbose, "connection", text);
	}
	for (unsigned int s = 0; s < CM_STATES; s++)
		for (unsigned int m = 0; m < CM_MESSAGES; m++) {
			if (!(steps[s] >> m & 1))
				continue;
			snprintf(text, sizeof(text), "%s in %s", cm_message_name(m),
				cm_state_name(s));
			n += coverage_missing(c->cm_step[s][m], verbose, "CM", text);
		}
	return n;
}

static unsigned int
report_messages(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;

	for (unsigned int m = 0; m < CM_MESSAGES; m++) {
		const char *name = cm_message_name(m);

		n += coverage_missing(c->cm_received[m], verbose, "CM received", name);
		if (!(never_sent >> m & 1))
			n += coverage_missing(c->cm_sent[m], verbose, "CM sent", name);
		if (never_crashes >> m & 1)
			continue;
		n += coverage_missing(c->cm_crash[0][m], verbose, "crash after sending", name);
		n += coverage_missing(c->cm_crash[1][m], verbose, "crash after receiving", name);
	}
	for (unsigned int i = 0; i < COUNT(aprs); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", aprs[i]);
		n += coverage_missing(c->cm_apr[aprs[i]], verbose, "APR status", text);
	}
	return n;
}

static unsigned int
report_ends(const struct coverage *c, bool verbose)
{
	static const char *const ends[CM_END_COUNT] = { "disconnected", "rejected", "refused",
		"timeout", "stale", "QP error", "cancelled" };
	unsigned int n = 0;

	for (unsigned int i = 0; i < CM_END_COUNT; i++)
		n += coverage_missing(c->cm_end[i], verbose, "end", ends[i]);
	for (unsigned int i = 0; i < COUNT(reasons); i++)
		n += coverage_missing(c->cm_rej_sent[reasons[i]], verbose, "REJ sent",
			cm_reason_name(reasons[i]));
	/* the peer may send any reason */
	n += coverage_missing(c->cm_rej_received[0], verbose, "REJ received",
		"of an unknown reason");
	for (unsigned int i = 1; i < CM_REASONS; i++)
		if (cm_reason_name(i)[0] != '?')
			n += coverage_missing(c->cm_rej_received[i], verbose, "REJ received",
				cm_reason_name(i));
	return n;
}

unsigned int
coverage_report_cm(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < CM_COUNTER_COUNT; i++)
		n += coverage_missing(c->cm_counter[i], verbose, "CM counter",
			cm_counter_infos[i].name);
	n += coverage_missing(c->cm_by_data, verbose, "established", "by data");
	return n + report_states(c, verbose) + report_messages(c, verbose) +
		report_ends(c, verbose);
}
