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
rc_send_bare(struct rc_qp *qp, struct wire_headers h, uint32_t zeros)
{
	struct tx_sink *tx = qp->worker->tx;
	uint8_t *p = tx_reserve(tx, &qp->path, BTH_LEN + zeros);

	if (p == NULL) {
		rc_count(qp, tx_stall, 1);
		return false;
	}
	h.migreq = qp->migreq;
	h.pkey = qp->pkey;
	h.dest_qpn = qp->dest_qpn;
	memset(p + wire_build(p, &h), 0, zeros);
	tx_commit(tx);
	rc_count(qp, sent_pkts, 1);
	return true;
}

void
rc_qp_changed(struct rc_qp *qp)
{
	qp->known = RC_KNOWN_NONE;
	qp->bth = bth_common(qp->migreq ? BTH_M : 0, qp->pkey, qp->dest_qpn);
	rc_choose_totals(qp);
}
