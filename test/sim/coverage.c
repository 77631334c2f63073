/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "base/common_case.h"
#include "coverage.h"
#include "wire/bytes.h"

void
coverage_packet(struct coverage *c, const struct packet *pkt)
{
	c->opcode[pkt->opcode]++;
	if (pkt->op->headers & HDR_AETH)
		c->syndrome[AETH_KIND(pkt->syndrome) == AETH_NAK ? pkt->syndrome
								 : AETH_KIND(pkt->syndrome)]++;
}

void
coverage_verdict(struct coverage *c, enum verdict v)
{
	c->verdict[v]++;
}

void
coverage_transition(struct coverage *c, enum qp_state from, enum qp_state to)
{
	c->transition[from][to]++;
}

void
coverage_status(struct coverage *c, uint32_t status)
{
	if (status < WC_STATUS_COUNT)
		c->status[status]++;
}

/* Polca's own events, beyond ibv_event_type, have the slots from 32 on. */
static unsigned int
event_slot(enum event_type t)
{
	return t < 32 ? t : 32 + (t & 31);
}

void
coverage_event(struct coverage *c, enum event_type t)
{
	c->event[event_slot(t)]++;
}

/* --- management datagrams --- */

void
coverage_mad(struct coverage *c, const uint8_t *mad, uint8_t flags)
{
	uint8_t version = mad[MAD_OFF_CLASS_VERSION];
	uint16_t status = get_be16(mad + MAD_OFF_STATUS);

	if (mad[MAD_OFF_METHOD] & MAD_RESPONSE) {
		c->mad_status[status & 0x1F]++;
		c->sa_status[status >> 8]++;
	}
	if (mad[MAD_OFF_CLASS] != MAD_CLASS_SUBN_ADM || version < 1 || version > 2)
		return;
	c->mad_method[version][mad[MAD_OFF_METHOD]]++;
	if (version == 1) {
		if (get_be32(mad + SA1_OFF_SEGMENT) != 0 || flags != 0)
			c->v1_flag[flags]++;
	} else if (mad[RMPP_OFF_FLAGS] & RMPP_ACTIVE) {
		c->rmpp_type[mad[RMPP_OFF_TYPE]]++;
		c->rmpp_flags[mad[RMPP_OFF_FLAGS] & 7]++;
		c->rmpp_status[mad[RMPP_OFF_STATUS]]++;
	}
}

static const char *const mad_states[] = {
#define X(name) #name,
	MAD_STATES(X)
#undef X
};

uint8_t
coverage_mad_state_of(const char *name)
{
	uint8_t i;

	for (i = 0; i < MAD_STATE_COUNT && strcmp(mad_states[i], name) != 0; i++)
		;
	return i < MAD_STATE_COUNT ? i : MAD_STATE_FREE;
}

void
coverage_mad_state(struct coverage *c, unsigned int group, uint8_t from, uint8_t to)
{
	c->mad_state[group][from][to]++;
}

void
coverage_mad_end(struct coverage *c, enum mad_end end)
{
	c->mad_end[end]++;
}

void
coverage_light(struct coverage *c, bool completed)
{
	c->light++;
	c->light_failed += !completed;
}

void
coverage_add(struct coverage *sum, const struct coverage *c)
{
	uint64_t *a = (uint64_t *)sum;
	const uint64_t *b = (const uint64_t *)c;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		a[i] += b[i];
}

/*
 * Verdicts of lib/link and lib/engine, which the simulation lacks, and of allow lists; their own
 * tests reach them.
 */
static const bool elsewhere[VERDICT_COUNT] = {
	[VERDICT_ARP] = true,
	[VERDICT_NOT_ALLOWED] = true,
	[VERDICT_ND] = true,
	[VERDICT_ICMP] = true,
	[VERDICT_RUNT] = true,
	[VERDICT_NOT_OUR_MAC] = true,
	[VERDICT_NOT_OUR_VLAN] = true,
	[VERDICT_NOT_OUR_IP] = true,
	[VERDICT_ETHERTYPE] = true,
	[VERDICT_NO_MBUF] = true,
	[VERDICT_HANDOFF_FULL] = true,
	[VERDICT_MULTICAST] = true,
	[VERDICT_VL15_DROPPED] = true,
	[VERDICT_PORT_STATE] = true,
};

/* rc-transport 11; errors also lead from each state to ERR */
static const enum qp_state transitions[][2] = {
	{ QPS_RESET, QPS_INIT },
	{ QPS_INIT, QPS_INIT },
	{ QPS_INIT, QPS_RTR },
	{ QPS_RTR, QPS_RTS },
	{ QPS_RTS, QPS_RTS },
	{ QPS_RTS, QPS_SQD },
	{ QPS_SQD, QPS_SQD },
	{ QPS_SQD, QPS_RTS },
	{ QPS_INIT, QPS_RESET },
	{ QPS_RTR, QPS_RESET },
	{ QPS_RTS, QPS_RESET },
	{ QPS_SQD, QPS_RESET },
	{ QPS_ERR, QPS_RESET },
	{ QPS_INIT, QPS_ERR },
	{ QPS_RTR, QPS_ERR },
	{ QPS_RTS, QPS_ERR },
	{ QPS_SQD, QPS_ERR },
	{ QPS_ERR, QPS_ERR },
};

static const uint8_t syndromes[] = { AETH_ACK, AETH_RNR_NAK, AETH_NAK_PSN_SEQUENCE,
	AETH_NAK_INVALID_REQUEST, AETH_NAK_REMOTE_ACCESS, AETH_NAK_REMOTE_OP };

static const uint8_t statuses[] = { WC_SUCCESS, WC_LOC_LEN_ERR, WC_LOC_QP_OP_ERR, WC_LOC_PROT_ERR,
	WC_WR_FLUSH_ERR, WC_MW_BIND_ERR, WC_BAD_RESP_ERR, WC_REM_INV_REQ_ERR, WC_REM_ACCESS_ERR,
	WC_REM_OP_ERR, WC_RETRY_EXC_ERR, WC_RNR_RETRY_EXC_ERR };

static const enum event_type events[] = { EVENT_CQ_ERR, EVENT_QP_REQ_ERR, EVENT_QP_ACCESS_ERR,
	EVENT_COMM_EST, EVENT_SQ_DRAINED, EVENT_PATH_MIG, EVENT_PATH_MIG_ERR,
	EVENT_SRQ_LIMIT_REACHED, EVENT_QP_LAST_WQE_REACHED, EVENT_RQ_EMPTY };

/*
 * sa-multipacket A5, B5, B6: changes of state as seen after each step; a state entered and left
 * within one step is not seen. Groups: class version 1 as responder and as requester, RMPP as
 * responder and as requester.
 */
#define S(name) MAD_STATE_##name
static const struct {
	uint8_t group, from, to;
} mad_transitions[] = {
	{ 0, S(FREE), S(PREP) },
	{ 0, S(FREE), S(BURST) },
	{ 0, S(FREE), S(RECV) },
	{ 0, S(FREE), S(ANSWER) },
	{ 0, S(FREE), S(CLOSE) },
	{ 0, S(PREP), S(ANSWER) },
	{ 0, S(PREP), S(BURST) },
	{ 0, S(BURST), S(WAIT) },
	{ 0, S(WAIT), S(BURST) },
	{ 0, S(WAIT), S(FREE) },
	{ 0, S(RECV), S(PREP) },
	{ 0, S(RECV), S(RECOVER) },
	{ 0, S(RECV), S(CLOSE) },
	{ 0, S(RECOVER), S(RECV) },
	{ 0, S(RECOVER), S(FREE) },
	{ 0, S(ANSWER), S(FREE) },
	{ 0, S(ANSWER), S(LINGER) },
	{ 0, S(CLOSE), S(LINGER) },
	{ 0, S(LINGER), S(FREE) },
	{ 1, S(FREE), S(REQUESTED) },
	{ 1, S(FREE), S(BURST) },
	{ 1, S(REQUESTED), S(FREE) },
	{ 1, S(REQUESTED), S(RECV) },
	{ 1, S(REQUESTED), S(RECOVER) },
	{ 1, S(BURST), S(WAIT) },
	{ 1, S(WAIT), S(BURST) },
	{ 1, S(WAIT), S(FREE) },
	{ 1, S(RECV), S(RECOVER) },
	{ 1, S(RECV), S(LINGER) },
	{ 1, S(RECOVER), S(RECV) },
	{ 1, S(RECOVER), S(FREE) },
	{ 1, S(LINGER), S(FREE) },
	{ 2, S(FREE), S(PREP) },
	{ 2, S(FREE), S(BURST) },
	{ 2, S(FREE), S(RECV) },
	{ 2, S(FREE), S(ANSWER) },
	{ 2, S(PREP), S(ANSWER) },
	{ 2, S(PREP), S(WAIT) }, /* its address is unproven: two segments, then an ACK is awaited */
	{ 2, S(BURST), S(WAIT) },
	{ 2, S(WAIT), S(BURST) },
	{ 2, S(WAIT), S(CLOSE) },
	{ 2, S(WAIT), S(LINGER) },
	{ 2, S(RECV), S(CLOSE) },
	{ 2, S(ANSWER), S(LINGER) },
	{ 2, S(CLOSE), S(FREE) },
	{ 2, S(LINGER), S(FREE) },
	{ 3, S(FREE), S(REQUESTED) },
	{ 3, S(REQUESTED), S(FREE) },
	{ 3, S(REQUESTED), S(RECV) },
	{ 3, S(REQUESTED), S(CLOSE) },
	{ 3, S(REQUESTED), S(LINGER) },
	{ 3, S(RECV), S(RECOVER) },
	{ 3, S(RECV), S(LINGER) },
	{ 3, S(RECOVER), S(RECV) },
	{ 3, S(RECOVER), S(LINGER) },
	{ 3, S(CLOSE), S(FREE) },
	{ 3, S(LINGER), S(FREE) },
};
#undef S
static const char *const mad_groups[] = { "version 1 responder", "version 1 requester",
	"RMPP responder", "RMPP requester" };

/* A3; 0: a middle segment */
static const uint8_t v1_flags[] = { 0, SA1_FIRST, SA1_LAST, SA1_RESEND, SA1_ACK, SA1_KEEPALIVE };
static const uint8_t rmpp_types[] = { RMPP_DATA, RMPP_ACK, RMPP_STOP, RMPP_ABORT };
static const uint8_t rmpp_flags[] = { RMPP_ACTIVE, RMPP_ACTIVE | RMPP_FIRST,
	RMPP_ACTIVE | RMPP_LAST, RMPP_ACTIVE | RMPP_FIRST | RMPP_LAST };
/* B3 */
static const uint8_t rmpp_statuses[] = { 0, RMPP_STATUS_RESX, RMPP_STATUS_T2L, RMPP_STATUS_BAD_LEN,
	RMPP_STATUS_BAD_FIRST, RMPP_STATUS_BAD_TYPE, RMPP_STATUS_W2S, RMPP_STATUS_S2B,
	RMPP_STATUS_BAD_STATUS, RMPP_STATUS_BAD_VERSION, RMPP_STATUS_RETRIES,
	RMPP_STATUS_UNSPECIFIED };
/* B2, B8 */
static const uint16_t mad_statuses[] = { MAD_STATUS_OK, MAD_STATUS_BUSY, MAD_STATUS_BAD_VERSION,
	MAD_STATUS_BAD_METHOD, MAD_STATUS_BAD_METHOD_ATTR, MAD_STATUS_INVALID_FIELD,
	SA_STATUS_NO_RESOURCES, SA_STATUS_REQ_INVALID, SA_STATUS_NO_RECORDS, SA_STATUS_TOO_MANY,
	SA_STATUS_INVALID_GID, SA_STATUS_INSUFFICIENT, SA_STATUS_DENIED };
/* A2, B7: class version, method */
static const uint8_t methods[][2] = { { 1, MAD_GET }, { 1, MAD_SET }, { 1, MAD_GET_RESP },
	{ 1, SA1_INFORM }, { 1, SA1_INFORM | MAD_RESPONSE }, { 1, MAD_REPORT },
	{ 1, MAD_REPORT_RESP }, { 1, SA_GET_TABLE }, { 1, SA_GET_TABLE | MAD_RESPONSE },
	{ 1, SA1_GET_BULK }, { 1, SA1_GET_BULK | MAD_RESPONSE }, { 1, SA1_CONFIG },
	{ 1, SA1_CONFIG | MAD_RESPONSE }, { 2, MAD_GET }, { 2, MAD_SET }, { 2, MAD_GET_RESP },
	{ 2, MAD_REPORT }, { 2, MAD_REPORT_RESP }, { 2, SA_GET_TABLE },
	{ 2, SA_GET_TABLE | MAD_RESPONSE }, { 2, SA2_DELETE }, { 2, SA2_DELETE | MAD_RESPONSE } };

unsigned int
coverage_missing(uint64_t count, bool verbose, const char *what, const char *name)
{
	if (verbose)
		printf("  %10llu %s %s\n", (unsigned long long)count, what, name);
	if (count > 0)
		return 0;
	printf("never reached: %s %s\n", what, name);
	return 1;
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static unsigned int
report_sessions(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;
	char text[80];

	for (unsigned int i = 0; i < COUNT(mad_transitions); i++) {
		snprintf(text, sizeof(text), "%s %s -> %s", mad_groups[mad_transitions[i].group],
			mad_states[mad_transitions[i].from], mad_states[mad_transitions[i].to]);
		n += coverage_missing(c->mad_state[mad_transitions[i].group]
						  [mad_transitions[i].from][mad_transitions[i].to],
			verbose, "session", text);
	}
	for (unsigned int i = 0; i < MAD_END_COUNT; i++)
		n += coverage_missing(c->mad_end[i], verbose, "end", mad_end_name((enum mad_end)i));
	return n;
}

static unsigned int
report_fields(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;
	char text[32];

	for (unsigned int i = 0; i < COUNT(v1_flags); i++) {
		snprintf(text, sizeof(text), "0x%02x", v1_flags[i]);
		n += coverage_missing(c->v1_flag[v1_flags[i]], verbose, "FragmentFlag", text);
	}
	for (unsigned int i = 0; i < COUNT(rmpp_types); i++) {
		snprintf(text, sizeof(text), "%u", rmpp_types[i]);
		n += coverage_missing(c->rmpp_type[rmpp_types[i]], verbose, "RMPPType", text);
	}
	for (unsigned int i = 0; i < COUNT(rmpp_flags); i++) {
		snprintf(text, sizeof(text), "0x%x", rmpp_flags[i]);
		n += coverage_missing(c->rmpp_flags[rmpp_flags[i]], verbose, "RMPPFlags", text);
	}
	for (unsigned int i = 0; i < COUNT(rmpp_statuses); i++)
		n += coverage_missing(c->rmpp_status[rmpp_statuses[i]], verbose, "RMPPStatus",
			rmpp_status_name(rmpp_statuses[i]));
	for (unsigned int i = 0; i < COUNT(mad_statuses); i++)
		n += coverage_missing(mad_statuses[i] < 0x100 ? c->mad_status[mad_statuses[i]]
							      : c->sa_status[mad_statuses[i] >> 8],
			verbose, "MAD status", mad_status_name(mad_statuses[i]));
	for (unsigned int i = 0; i < COUNT(methods); i++) {
		snprintf(text, sizeof(text), "version %u 0x%02x", methods[i][0], methods[i][1]);
		n += coverage_missing(c->mad_method[methods[i][0]][methods[i][1]], verbose,
			"method", text);
	}
	return n;
}

/* At most 1 % loss: at least 99.9 % of the seeds complete. */
unsigned int
coverage_report_light(const struct coverage *c, bool verbose)
{
	if (verbose)
		printf("  %10llu SA seeds with at most 1 %% loss, %llu with a query that failed\n",
			(unsigned long long)c->light, (unsigned long long)c->light_failed);
	if (1000 * c->light_failed <= c->light)
		return 0;
	printf("%llu of %llu SA seeds with at most 1 %% loss did not complete\n",
		(unsigned long long)c->light_failed, (unsigned long long)c->light);
	return 1;
}

unsigned int
coverage_report_rehome(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < QPS_COUNT; i++)
		if (i != QPS_SQE) /* not a state of RC */
			n += coverage_missing(c->rehomed[i], verbose, "rehomed in",
				qp_state_name((enum qp_state)i));
	return n;
}

unsigned int
coverage_report(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;
	char text[64];

	if (COMMON_CASE(true))
		n += coverage_missing(c->by_template, verbose, "frame", "that matches a template");
	for (unsigned int i = 0; i < VERDICT_COUNT; i++)
		if (!elsewhere[i])
			n += coverage_missing(c->verdict[i], verbose, "verdict",
				verdict_infos[i].name);
	for (unsigned int i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		snprintf(text, sizeof(text), "%s -> %s", qp_state_name(transitions[i][0]),
			qp_state_name(transitions[i][1]));
		n += coverage_missing(c->transition[transitions[i][0]][transitions[i][1]], verbose,
			"transition", text);
	}
	for (unsigned int i = 0; i < sizeof(syndromes); i++) {
		snprintf(text, sizeof(text), "0x%02x", syndromes[i]);
		n += coverage_missing(c->syndrome[syndromes[i]], verbose, "syndrome", text);
	}
	for (unsigned int i = 0; i < sizeof(statuses); i++)
		n += coverage_missing(c->status[statuses[i]], verbose, "status",
			wc_status_name(statuses[i]));
	for (unsigned int i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		n += coverage_missing(c->event[event_slot(events[i])], verbose, "event",
			event_type_name(events[i]));
	for (unsigned int i = 0; i < 256; i++)
		if (OPCODE_CLASS(i) == OPCODE_RC && i < RC_FLUSH && (opcodes[i].flags & OP_VALID))
			n += coverage_missing(c->opcode[i], verbose, "opcode", opcodes[i].name);
	return n + report_sessions(c, verbose) + report_fields(c, verbose) +
		coverage_report_smi(c, verbose) + coverage_report_cm(c, verbose) +
		coverage_report_rehome(c, verbose) + coverage_report_light(c, verbose);
}
