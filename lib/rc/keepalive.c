/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Keep-alive: a zero-length Send that the responder must have executed before. It acknowledges the
 * duplicate and does nothing else (rc-transport 7), so a reply proves that the peer's QP is alive.
 */

#include "rc/qp_directory.h"

int
rc_qp_keepalive(struct rc_worker *w, uint32_t qpn)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);
	struct wire_headers h = { .opcode = RC_SEND_ONLY, .ackreq = true };
	uint8_t *p;

	if (qp == NULL)
		return -ENOENT;
	if (qp->state != QPS_RTS)
		return -EINVAL;
	h.migreq = qp->migreq;
	h.pkey = qp->pkey;
	h.dest_qpn = qp->dest_qpn;
	h.psn = psn_add(qp->req.una, PSN_MASK); /* una - 1 */
	p = tx_reserve(w->tx, &qp->path, BTH_LEN);
	if (p == NULL) {
		rc_count(qp, tx_stall, 1);
		return -EAGAIN;
	}
	wire_build(p, &h);
	tx_commit(w->tx);
	rc_count(qp, sent_pkts, 1);
	return 0;
}
