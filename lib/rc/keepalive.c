/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Keep-alive: a zero-length Send that the responder must have executed before. It acknowledges the
 * duplicate and does nothing else (rc-transport 7), so a reply proves that the peer's QP is alive.
 */

#include "rc/qp_directory.h"
#include "wire/put.h"

int
rc_qp_keepalive(struct rc_worker *w, uint32_t qpn)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);
	struct tx_headers h;

	if (qp == NULL)
		return -ENOENT;
	if (qp->state != QPS_RTS)
		return -EINVAL;
	put_bth_of(h.bytes, qp->bth, RC_SEND_ONLY, 0, psn_sub(qp->req.una, 1), true);
	return rc_send_bare(qp, &h, NULL, 0) ? 0 : -EAGAIN;
}
