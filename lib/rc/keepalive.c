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

	if (qp == NULL)
		return -ENOENT;
	if (qp->state != QPS_RTS)
		return -EINVAL;
	h.psn = psn_sub(qp->req.una, 1); /* una - 1 */
	return rc_send_bare(qp, h, 0) ? 0 : -EAGAIN;
}
