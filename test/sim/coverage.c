/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stdio.h>
#include <string.h>

#include "coverage.h"
#include "wire/bytes.h"

void
coverage_packet(struct coverage *c, const struct packet *pkt)
{
	c->opcode[pkt->opcode]++;
	if (pkt->op->headers & HDR_AETH)
		c->syndrome[AETH_KIND(pkt->syndrome) == AETH_NAK ? pkt->syndrome :
			AETH_KIND(pkt->syndrome)]++;
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

void
coverage_event(struct coverage *c, enum event_type t)
{
	c->event[t < 32 ? t : 32 + (t & 31)]++;
}

/* --- management datagrams --- */

/* The other reading of FragmentFlag (sa-multipacket A3). */
static uint8_t
mirror(uint8_t flags)
{
	uint8_t out = 0;

	for (unsigned int i = 0; i < 8; i++)
		if (flags & 1u << i)
			out |= 0x80 >> i;
	return out;
}

void
coverage_mad(struct coverage *c, const uint8_t *mad, bool v1_flags_lsb)
{
	uint8_t version = mad[MAD_OFF_CLASS_VERSION], flags = mad[SA1_OFF_FRAGMENT];
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
			c->v1_flag[v1_flags_lsb ? mirror(flags) : flags]++;
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

/* Verdicts that only lib/link, lib/engine or lib/mad can give: their own tests reach them. */
static const bool elsewhere[VERDICT_COUNT] = {
	[VERDICT_DATAGRAM] = true, [VERDICT_ARP] = true, [VERDICT_ND] = true,
	[VERDICT_ICMP] = true, [VERDICT_RUNT] = true, [VERDICT_NOT_OUR_MAC] = true,
	[VERDICT_NOT_OUR_VLAN] = true, [VERDICT_NOT_OUR_IP] = true,
	[VERDICT_ETHERTYPE] = true, [VERDICT_NO_MBUF] = true,
	[VERDICT_HANDOFF_FULL] = true, [VERDICT_MULTICAST] = true, [VERDICT_QKEY] = true,
	[VERDICT_MAD_LENGTH] = true, [VERDICT_MAD_VERSION] = true, [VERDICT_MAD_UNMATCHED] = true,
	[VERDICT_MAD_DISCARDED] = true, [VERDICT_MAD_REFUSED] = true,
};

/* rc-transport 11; ERR is entered from each state by the code itself as well */
static const enum qp_state transitions[][2] = {
	{ QPS_RESET, QPS_INIT }, { QPS_INIT, QPS_INIT }, { QPS_INIT, QPS_RTR },
	{ QPS_RTR, QPS_RTS }, { QPS_RTS, QPS_RTS }, { QPS_RTS, QPS_SQD }, { QPS_SQD, QPS_SQD },
	{ QPS_SQD, QPS_RTS }, { QPS_INIT, QPS_RESET }, { QPS_RTR, QPS_RESET },
	{ QPS_RTS, QPS_RESET }, { QPS_SQD, QPS_RESET }, { QPS_ERR, QPS_RESET },
	{ QPS_INIT, QPS_ERR }, { QPS_RTR, QPS_ERR }, { QPS_RTS, QPS_ERR },
	{ QPS_SQD, QPS_ERR }, { QPS_ERR, QPS_ERR },
};

static const uint8_t syndromes[] = { AETH_ACK, AETH_RNR_NAK, AETH_NAK_PSN_SEQUENCE,
	AETH_NAK_INVALID_REQUEST, AETH_NAK_REMOTE_ACCESS, AETH_NAK_REMOTE_OP };

static const uint8_t statuses[] = { WC_SUCCESS, WC_LOC_LEN_ERR, WC_LOC_QP_OP_ERR,
	WC_LOC_PROT_ERR, WC_WR_FLUSH_ERR, WC_MW_BIND_ERR, WC_BAD_RESP_ERR, WC_REM_INV_REQ_ERR,
	WC_REM_ACCESS_ERR, WC_REM_OP_ERR, WC_RETRY_EXC_ERR, WC_RNR_RETRY_EXC_ERR };

static const uint8_t events[] = { EVENT_CQ_ERR, EVENT_QP_REQ_ERR, EVENT_QP_ACCESS_ERR,
	EVENT_COMM_EST, EVENT_SQ_DRAINED, EVENT_SRQ_LIMIT_REACHED, EVENT_QP_LAST_WQE_REACHED };

static unsigned int
missing(uint64_t count, bool verbose, const char *what, const char *name)
{
	if (verbose)
		printf("  %10llu %s %s\n", (unsigned long long)count, what, name);
	if (count > 0)
		return 0;
	printf("never reached: %s %s\n", what, name);
	return 1;
}

unsigned int
coverage_report(const struct coverage *c, bool verbose)
{
	unsigned int n = 0;
	char text[64];

	for (unsigned int i = 0; i < VERDICT_COUNT; i++)
		if (!elsewhere[i])
			n += missing(c->verdict[i], verbose, "verdict", verdict_infos[i].name);
	for (unsigned int i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
		snprintf(text, sizeof(text), "%s -> %s", qp_state_name(transitions[i][0]),
			qp_state_name(transitions[i][1]));
		n += missing(c->transition[transitions[i][0]][transitions[i][1]], verbose,
			"transition", text);
	}
	for (unsigned int i = 0; i < sizeof(syndromes); i++) {
		snprintf(text, sizeof(text), "0x%02x", syndromes[i]);
		n += missing(c->syndrome[syndromes[i]], verbose, "syndrome", text);
	}
	for (unsigned int i = 0; i < sizeof(statuses); i++)
		n += missing(c->status[statuses[i]], verbose, "status", wc_status_name(statuses[i]));
	for (unsigned int i = 0; i < sizeof(events); i++)
		n += missing(c->event[events[i]], verbose, "event", event_type_name(events[i]));
	for (unsigned int i = 0; i < 256; i++)
		if (OPCODE_CLASS(i) == OPCODE_RC && i < RC_FLUSH && (opcodes[i].flags & OP_VALID))
			n += missing(c->opcode[i], verbose, "opcode", opcodes[i].name);
	return n;
}
