/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What a queue pair derives from its address vector and state: the headers of its packets, and
 * packets that have no other.
 */

#include "rc/qp.h"
#include "wire/put.h"

void
rc_qp_path(struct rc_qp *qp)
{
	struct av av = qp->attr.av;

	/* congestion 1: switches mark only packets with an ECN-capable codepoint */
	if (qp->rp != NULL && av.encap <= ENCAP_ROCEV2_IPV6 && (av.traffic_class & ECN_MASK) == 0)
		av.traffic_class |= ECN_ECT0;
	path_init(&qp->path, &av, qp->qpn, qp->dest_qpn);
	qp->path.neighbour = qp->attr.neighbour;
}

bool
rc_send_bare(struct rc_qp *qp, const struct tx_headers *bth, const void *payload, uint32_t len)
{
	if (!tx_send(qp->worker->tx, &qp->path, bth, BTH_LEN, payload, len)) {
		rc_count(qp, tx_stall);
		return false;
	}
	rc_count(qp, sent_pkts);
	return true;
}

void
rc_qp_changed(struct rc_qp *qp)
{
	qp->known = RC_KNOWN_NONE;
	qp->bth = bth_common(qp->migreq ? BTH_M : 0, qp->pkey, qp->dest_qpn);
	qp->totals = &qp->worker->counters[qp->path.av.port];
}
