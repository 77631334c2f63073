/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notification point of RoCEv2 congestion management: a packet with ECN CE is answered by a CNP
 * (rc-transport 10).
 */

#include "rc/qp_directory.h"

/* Least time between two CNPs of a QP (choice; NICs use 4 to 50 us). */
#define CNP_INTERVAL_NS 50000
#define CNP_PAYLOAD     16 /* zero bytes (rc-transport 2) */

void
rc_congestion(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;
	struct wire_headers h = {
		.opcode = OPCODE_CNP, /* wire_build sets BECN */
		.migreq = qp->migreq,
		.pkey = qp->pkey,
		.dest_qpn = qp->dest_qpn,
	};
	uint8_t *p;

	rc_count(qp, np_ecn_marked_roce_packets, 1);
	if (w->now < qp->next_cnp)
		return;
	p = tx_reserve(w->tx, &qp->path, BTH_LEN + CNP_PAYLOAD);
	if (p == NULL) { /* sink full: the next packet with ECN CE tries again */
		rc_count(qp, tx_stall, 1);
		return;
	}
	memset(p + wire_build(p, &h), 0, CNP_PAYLOAD);
	tx_commit(w->tx);
	qp->next_cnp = w->now + rc_ns_to_time(w->dev, CNP_INTERVAL_NS);
	rc_count(qp, np_cnp_sent, 1);
	rc_count(qp, sent_pkts, 1);
}
