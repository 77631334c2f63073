/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Does the peer of an established connection still have its QP?
 *
 * cm.md 6 ends a connection when a REQ names its remote QPN again, because the peer must have
 * restarted. Anybody can forge such a REQ, and a DREQ would not ask the peer but make it end the
 * connection. So the QP itself is asked: up to three duplicate Sends, a Local ACK Timeout apart,
 * which every responder acknowledges. Any valid packet from the peer ends the probe; silence ends
 * the connection, and then the restarted peer can use its QPN for a new one.
 */

#include "cm/private.h"

#define PROBES 3
/* Least LocalAckTimeout between two probes, 64 ms (a choice): a host may stall that long. */
#define ACK_TIMEOUT_MIN 14
/* Most probes at the same time (a choice), so that forged REQs cannot turn us against a peer. */
#define PROBES_PER_PEER 4
#define PROBES_PER_PORT 64

static uint64_t
packets_heard(const struct cm_conn *c)
{
	struct rc_qp_received r = { .packets = 0 };

	rc_qp_received(c->cm->config.rc, c->qpn, &r);
	return r.packets;
}

/* Without room in the sink, the next expiry of the timer tries again. */
static void
probe_send(struct cm_conn *c)
{
	uint8_t code = RTE_MAX(c->ack_timeout, ACK_TIMEOUT_MIN);

	if (rc_qp_keepalive(c->cm->config.rc, c->qpn) == 0) {
		c->probes_left--;
		cm_count(c->cm, probes);
	}
	timer_start(c->cm->config.wheel, &c->probe_timer, cm_peer_time(c->cm, cm_ms(code)));
}

void
cm_probe(struct cm_conn *c)
{
	/* a user's own QP is not ours to send with */
	if (c->state != CM_STATE_ESTABLISHED || c->probing || c->users_qp)
		return;
	if (c->peer->probes >= PROBES_PER_PEER ||
		c->cm->probes[c->path.av.port] >= PROBES_PER_PORT) {
		cm_count(c->cm, probe_limit);
		return;
	}
	c->probing = true;
	c->probe_port = c->path.av.port;
	c->peer->probes++;
	c->cm->probes[c->probe_port]++;
	c->probes_left = PROBES;
	c->heard = packets_heard(c);
	probe_send(c);
	cm_conn_check(c);
}

void
cm_probe_expired(struct timer *timer, uint64_t now)
{
	struct cm_conn *c =
		(struct cm_conn *)((char *)timer - offsetof(struct cm_conn, probe_timer));

	if (packets_heard(c) != c->heard) {
		cm_probe_end(c);
	} else if (c->probes_left > 0) {
		probe_send(c);
	} else {
		/*
		 * The peer has no such QP any more: its new life may use the same QPN and ID at
		 * once.
		 */
		cm_key_remove(c, CM_KEY_REMOTE_ID);
		cm_key_remove(c, CM_KEY_REMOTE_QPN);
		cm_end_timewait(c, CM_END_STALE, CM_REJ_STALE, NULL, 0, now);
	}
	cm_conn_check(c);
}
