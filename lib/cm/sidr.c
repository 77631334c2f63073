/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* SIDR_REQ: answer with the UD QP of a listener (cm.md 2, 3). Keeps no state. */

#include "cm/private.h"

void
cm_sidr_req(struct cm_conn *c, struct cm_rx *rx)
{
	const struct cm_sidr_req *req = &rx->msg.sidr_req;
	const struct cm_listener *l = cm_listener_find(rx->cm, req->service_id);
	struct cm_msg m = {
		.type = CM_SIDR_REP,
		.tid = rx->msg.tid,
		.sidr_rep = {
			.request_id = req->request_id,
			.status = CM_SIDR_UNSUPPORTED,
			.service_id = req->service_id,
		},
	};

	RTE_SET_USED(c);
	if (l != NULL && l->qpn_ud != 0) {
		m.sidr_rep.status = CM_SIDR_OK;
		m.sidr_rep.qpn = l->qpn_ud;
		m.sidr_rep.qkey = l->qkey_ud;
	}
	cm_send(rx->cm, rx->peer, &m);
}
