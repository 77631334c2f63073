/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The general service interface, QP1: what a packet must be before anybody looks at what it says.
 */

#include "mad/core.h"

/* Any entry of the P_Key table will do; the answer carries that entry. */
static bool
pkey_ok(struct mad_rx *rx)
{
	int i = port_pkey_find(rx->port, rx->pkt->pkey);

	if (i >= 0)
		rx->pkey = rx->port->pkey[i];
	return i >= 0;
}

static void
violation(struct mad_worker *w, const struct packet *pkt, bool qkey)
{
	struct port_violations *v;

	if (pkt->port >= MAD_PORTS_MAX)
		return;
	v = &w->violations[pkt->port];
	port_violation(qkey ? &v->qkey : &v->pkey);
	if (w->config.violation != NULL)
		w->config.violation(w->config.violation_arg, pkt, qkey);
}

/* The session of a packet, if there is one. SMPs are QP0's, and nothing else is. */
static struct mad_session *
match(struct mad_rx *rx)
{
	mad_key_of(&rx->key, rx->pkt);
	if (unlikely(mad_is_smp(rx->mad) != (rx->pkt->dest_qpn == QPN_SMI)))
		return NULL;
	rx->hash = mad_hash(rx->w->config.hash_key, &rx->key);
	return mad_session_find(rx->w, &rx->key, rx->hash);
}

/* An answer nobody waits for, or a control packet of no session. */
static enum verdict
unmatched(const struct mad_rx *rx)
{
	const struct mad_agent *agent = mad_agent_find(rx->w, rx->key.mgmt_class,
		rx->key.class_version);

	if (agent == NULL)
		return VERDICT_MAD_UNMATCHED;
	return mad_protocol_of(agent->protocol)->stray(rx);
}

enum verdict
mad_hand_over(struct mad_rx *rx)
{
	struct mad_session *s = match(rx);

	if (likely(s != NULL))
		return s->protocol->receive(s, rx);
	return rx->key.requester ? unmatched(rx) : mad_dispatch(rx);
}

enum verdict
mad_receive(struct mad_worker *w, const struct packet *pkt, uint64_t now)
{
	struct mad_rx rx = { .w = w, .pkt = pkt, .mad = pkt->payload, .now = now };
	enum verdict v;

	w->now = now;
	if (unlikely(OPCODE_CLASS(pkt->opcode) != OPCODE_UD))
		return VERDICT_QP_TYPE;
	if (!w->config.icrc_unchecked && unlikely(!wire_crc_ok(pkt, &v)))
		return v;
	rx.port = w->config.port(w->config.port_arg, pkt->port);
	if (unlikely(rx.port == NULL))
		return VERDICT_ADDRESS;
	if (unlikely(!pkey_ok(&rx))) {
		violation(w, pkt, false);
		return VERDICT_PKEY;
	}
	if (unlikely(pkt->qkey != MAD_QKEY)) {
		violation(w, pkt, true);
		return VERDICT_QKEY;
	}
	if (unlikely(pkt->payload_len != MAD_LEN))
		return VERDICT_MAD_LENGTH;
	if (unlikely(rx.mad[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION))
		return VERDICT_MAD_VERSION;
	return mad_hand_over(&rx);
}
