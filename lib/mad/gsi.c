/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The general service interface, QP1: check a packet, then pass it to its session or agent.
 */

#include "mad/core.h"

/* Any entry of the P_Key table may match; the answer carries that entry. */
static bool
pkey_ok(struct mad_rx *rx)
{
	int i = port_pkey_find(rx->port, rx->pkt->pkey);

	if (i >= 0)
		rx->pkey = rx->port->pkey[i];
	return i >= 0;
}

static void
gsi_violation(struct mad_worker *w, const struct packet *pkt, bool qkey)
{
	struct port_violations *v;

	if (pkt->port >= MAD_PORTS_MAX)
		return;
	v = &w->violations[pkt->port];
	port_violation(qkey ? &v->qkey : &v->pkey);
	if (w->config.violation != NULL)
		w->config.violation(w->config.violation_arg, pkt, qkey);
}

/* The session of a packet, or NULL. SMPs are valid only on QP0, other MADs only on QP1. */
static struct mad_session *
gsi_find_session(struct mad_rx *rx)
{
	mad_key_of(&rx->key, rx->pkt);
	if (unlikely(mad_is_smp(rx->mad) != (rx->pkt->dest_qpn == QPN_SMI)))
		return NULL;
	rx->hash = mad_hash(rx->w->config.hash_key, &rx->key);
	return mad_session_find(rx->w, &rx->key, rx->hash);
}

/* A response that no call waits for, or a control packet without a session. */
static enum verdict
gsi_unmatched(const struct mad_rx *rx)
{
	const struct mad_agent *agent =
		mad_agent_find(rx->w, rx->key.mgmt_class, rx->key.class_version);

	if (agent == NULL)
		return VERDICT_MAD_UNMATCHED;
	return mad_protocol_of(agent->protocol)->stray(rx);
}

enum verdict
mad_hand_over(struct mad_rx *rx)
{
	struct mad_session *s = gsi_find_session(rx);
	enum verdict v;

	if (likely(s != NULL)) {
		mad_heard(s);
		if (unlikely(s->trace != NULL))
			mad_trace_packet(s, MAD_STEP_RECEIVED, rx->mad);
		v = s->protocol->receive(s, rx);
		mad_session_check(s);
		return v;
	}
	return rx->key.requester ? gsi_unmatched(rx) : mad_dispatch(rx);
}

/*
 * Security: a source that no host can have, or our own GID from another MAC. Answers to it would go
 * to nobody, or a packet would pass for one of ours.
 */
static bool
source_ok(const struct mad_rx *rx)
{
	enum gid_type type = rx->pkt->encap == ENCAP_ROCEV1 ? GID_ROCEV1 : GID_ROCEV2;
	const struct packet *pkt = rx->pkt;

	if (!pkt->has_grh)
		return true;
	if (!port_source_is_host(rx->port, &pkt->sgid))
		return false;
	return pkt->encap == ENCAP_IB || port_gid_find(rx->port, &pkt->sgid, type) < 0 ||
		memcmp(pkt->smac, rx->port->mac, sizeof(rx->port->mac)) == 0;
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
		gsi_violation(w, pkt, false);
		return VERDICT_PKEY;
	}
	if (unlikely(pkt->qkey != MAD_QKEY)) {
		gsi_violation(w, pkt, true);
		return VERDICT_QKEY;
	}
	if (unlikely(!source_ok(&rx)))
		return VERDICT_SOURCE;
	if (unlikely(pkt->payload_len != MAD_LEN))
		return VERDICT_MAD_LENGTH;
	if (unlikely(rx.mad[MAD_OFF_BASE_VERSION] != MAD_BASE_VERSION))
		return VERDICT_MAD_VERSION;
	return mad_hand_over(&rx);
}
