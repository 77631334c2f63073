/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Destinations of datagrams: back to a packet's source, or where a call says. And answers of one
 * packet that no session sends.
 */

#include <errno.h>

#include "mad/core.h"
#include "wire/put.h"

void
mad_peer_of(struct mad_peer *peer, const struct mad_rx *rx)
{
	const struct port_attr *port = rx->port;
	const struct packet *pkt = rx->pkt;
	bool grh = pkt->encap != ENCAP_IB || pkt->has_grh;
	bool smp = pkt->dest_qpn == QPN_SMI;

	*peer = (struct mad_peer){
		.av = {
			.encap = pkt->encap,
			.port = pkt->port,
			.vlan = port->vlan,
			.sl = smp ? 0 : pkt->sl,
			.traffic_class = pkt->tclass & 0xFC, /* ECN is the packet's own */
			.flow_label = pkt->flow_label,
			.slid = pkt->dlid,
			.dlid = pkt->slid,
			.grh = grh,
			.vl = port->sl_to_vl[pkt->sl % PORT_SLS],
			.ethertype = port->ethertype,
		},
		.qpn = smp ? 0 : pkt->src_qpn,
		.qkey = smp ? 0 : MAD_QKEY,
		.pkey = rx->pkey,
		.neighbour = PATH_NO_NEIGHBOUR,
	};
	if (grh) {
		peer->av.sgid = pkt->dgid;
		peer->av.dgid = pkt->sgid;
	}
	memcpy(peer->av.smac, port->mac, sizeof(port->mac));
	/* answer to the source MAC: no neighbour entry is needed */
	if (pkt->smac != NULL)
		memcpy(peer->av.dmac, pkt->smac, sizeof(peer->av.dmac));
}

void
mad_path_to(struct path *path, uint8_t transport[MAD_TRANSPORT_LEN], const struct mad_peer *to)
{
	uint32_t from = to->qpn == QPN_SMI ? QPN_SMI : QPN_GSI; /* QP0 sends only to QP0 */

	path_init(path, &to->av, from, to->qpn);
	path->neighbour = to->neighbour;
	put_ud(transport, to->pkey, to->qpn, to->qkey, from);
}

void
mad_peer_of_session(struct mad_peer *peer, const struct mad_session *s)
{
	*peer = (struct mad_peer){
		.av = s->path.av,
		.qpn = s->qpn,
		.qkey = s->qkey,
		.pkey = s->pkey,
		.neighbour = s->path.neighbour,
	};
}

/* --- answers without a session --- */

static bool
send_now(struct mad_worker *w, struct tx_sink *tx, const struct path *path,
	const uint8_t *transport, const struct mad_agent *agent, const uint8_t *mad)
{
	uint8_t *p = tx_reserve(tx, path, MAD_TRANSPORT_LEN + MAD_LEN);

	if (p == NULL) {
		mad_count(w, tx_stall, 1);
		return false;
	}
	memcpy(p, transport, MAD_TRANSPORT_LEN);
	put_be32(p + MAD_PSN_OFF, w->psn++ & PSN_MASK);
	memcpy(p + MAD_TRANSPORT_LEN, mad, MAD_LEN);
	mad_departs(w, agent, p + MAD_TRANSPORT_LEN);
	tx_commit(tx);
	mad_count(w, answers, 1);
	return true;
}

bool
mad_reply_to(struct mad_worker *w, const struct mad_peer *peer, const struct mad_agent *agent,
	const uint8_t *mad)
{
	struct mad_reply_queue *q = peer->qpn == QPN_SMI ? &w->smp_replies : &w->replies;
	struct tx_sink *tx = mad_sink(w, peer->qpn);
	uint8_t transport[MAD_TRANSPORT_LEN];
	struct mad_waiting_reply *wait;

	mad_path_to(&w->reply_path, transport, peer);
	if (q->count == 0 && send_now(w, tx, &w->reply_path, transport, agent, mad))
		return true;
	if (q->count == MAD_REPLIES)
		return false;
	wait = &q->wait[(q->head + q->count++) % MAD_REPLIES];
	wait->path = w->reply_path;
	memcpy(wait->transport, transport, sizeof(transport));
	memcpy(wait->mad, mad, MAD_LEN);
	wait->agent = agent;
	return true;
}

int
mad_send(struct mad_worker *w, const struct mad_peer *to, const uint8_t mad[MAD_LEN])
{
	RTE_ASSERT(to->qpn <= PSN_MASK && mad[MAD_OFF_METHOD] != 0);
	return mad_reply_to(w, to, NULL, mad) ? 0 : -EAGAIN;
}

bool
mad_reply(const struct mad_rx *rx, const uint8_t *mad)
{
	struct mad_peer peer;

	mad_peer_of(&peer, rx);
	return mad_reply_to(rx->w, &peer, NULL, mad);
}

static unsigned int
replies_run(struct mad_worker *w, struct mad_reply_queue *q, struct tx_sink *tx,
	unsigned int budget)
{
	const struct mad_waiting_reply *wait;
	unsigned int sent = 0;

	while (q->count > 0 && sent < budget) {
		wait = &q->wait[q->head];
		if (!send_now(w, tx, &wait->path, wait->transport, wait->agent, wait->mad))
			break;
		q->head = (q->head + 1) % MAD_REPLIES;
		q->count--;
		sent++;
	}
	return sent;
}

/* Send waiting replies, SMPs first. */
unsigned int
mad_replies_run(struct mad_worker *w, unsigned int budget)
{
	unsigned int sent = replies_run(w, &w->smp_replies, w->smp_tx, budget);

	return sent + replies_run(w, &w->replies, w->tx, budget - sent);
}

/* Copy what an SMP's answer repeats of its request besides the common header. */
static void
mad_smp_reply(uint8_t reply[MAD_LEN], const uint8_t *request)
{
	memcpy(reply + SMP_OFF_M_KEY, request + SMP_OFF_M_KEY, 8);
	if (!mad_is_directed(request))
		return;
	/*
	 * The request's HopPointer became HopCount + 1 on arrival. The answer leaves with HopCount:
	 * its first hop back is done. mad_smp_return() sets the direction.
	 */
	reply[SMP_OFF_HOP_POINTER] = request[SMP_OFF_HOP_COUNT];
	memcpy(reply + SMP_OFF_DR_SLID, request + SMP_OFF_DR_SLID, 4); /* and DrDLID */
	/* and the return path */
	memcpy(reply + SMP_OFF_INITIAL_PATH, request + SMP_OFF_INITIAL_PATH, 2 * SMP_PATH_LEN);
}

void
mad_smp_return(uint8_t *mad)
{
	if (mad_is_directed(mad))
		put_be16(mad + MAD_OFF_STATUS, get_be16(mad + MAD_OFF_STATUS) | SMP_RETURNING);
}

uint8_t
mad_response_method(uint8_t mgmt_class, uint8_t class_version, uint8_t method)
{
	method &= ~MAD_RESPONSE;
	if (method == MAD_SET)
		method = MAD_GET;
	else if (mgmt_class == MAD_CLASS_SUBN_ADM && class_version == 2 && method == SA2_GET_TRACE)
		method = SA_GET_TABLE;
	return method | MAD_RESPONSE;
}

void
mad_reply_header(uint8_t reply[MAD_LEN], const uint8_t *request)
{
	memset(reply, 0, MAD_LEN);
	memcpy(reply, request, MAD_HEADER_LEN);
	put_be16(reply + MAD_OFF_STATUS, 0);
	reply[MAD_OFF_METHOD] = mad_response_method(request[MAD_OFF_CLASS],
		request[MAD_OFF_CLASS_VERSION], request[MAD_OFF_METHOD]);
	if (mad_is_smp(request))
		mad_smp_reply(reply, request);
}

bool
mad_reply_status(const struct mad_rx *rx, uint16_t status)
{
	uint8_t reply[MAD_LEN];

	mad_reply_header(reply, rx->mad);
	put_be16(reply + MAD_OFF_STATUS, status);
	if (rx->pkt->dest_qpn == QPN_SMI) { /* an SMP's data is returned unchanged */
		memcpy(reply + SMP_OFF_DATA, rx->mad + SMP_OFF_DATA, SMP_DATA_LEN);
		mad_smp_return(reply);
	}
	return mad_reply(rx, reply);
}
