/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Checks of a received REQ, in order; the first that fails gives the REJ reason (cm.md 3, 4, 7). A
 * bad P_Key or RDMA-CM header has no reason of its own: it is rejected with 28 (consumer).
 */

#include "cm/private.h"
#include "wire/wire.h"

static bool
request_refuse(struct cm_refusal *r, uint16_t reason)
{
	r->answers = CM_ANSWERS_REQ;
	r->reason = reason;
	return false;
}

static bool
check_req_transport(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	RTE_SET_USED(req);
	return rx->msg.req.transport == CM_TRANSPORT_RC ||
		request_refuse(r, CM_REJ_INVALID_TRANSPORT);
}

/* A REQ cannot ask for a connection to QP0, QP1 or the multicast QPN. */
static bool
check_req_qpn(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	req->remote_qpn = rx->msg.req.qpn;
	if (qpn_ordinary(req->remote_qpn))
		return true;
	cm_count(rx->cm, malformed);
	return request_refuse(r, CM_REJ_UNSUPPORTED);
}

static bool
check_req_primary(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	uint16_t reason = cm_path_back(rx, NULL, &rx->msg.req.primary, &req->path);

	return reason == 0 || request_refuse(r, reason);
}

static bool
check_req_alternate(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	const struct cm_msg_path *m = &rx->msg.req.alternate;
	uint16_t reason;

	if (!cm_msg_path_present(m))
		return true;
	reason = cm_path_back(rx, NULL, m, &req->alternate);
	return reason == 0 || request_refuse(r, cm_reason_alternate(reason));
}

/* REJ 26 carries our largest path MTU in its ARI: a code in one byte. */
static bool
check_req_mtu(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	uint16_t mtu = port_mtu_bytes(rx->msg.req.mtu), most = req->path.mtu;

	if (req->alternate.present && req->alternate.mtu < most)
		most = req->alternate.mtu;
	req->path.mtu = mtu;
	req->alternate.mtu = mtu;
	if (mtu != 0 && mtu <= most)
		return true;
	r->ari[0] = port_mtu_code(most);
	r->ari_len = 1;
	return request_refuse(r, CM_REJ_INVALID_MTU);
}

static bool
check_req_pkey(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	uint16_t pkey = rx->msg.req.pkey;

	return (cm_path_take_pkey(rx->cm, &req->path, pkey) &&
		       (!req->alternate.present ||
			       cm_path_take_pkey(rx->cm, &req->alternate, pkey))) ||
		request_refuse(r, CM_REJ_CONSUMER);
}

static bool
check_req_rdma(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	req->private_data = rx->msg.private_data;
	req->private_len = rx->msg.private_len;
	if (cm_port_space(rx->msg.req.service_id) == 0)
		return true;
	if (cm_rdma_decode(req->private_data, &req->rdma) != 0)
		return request_refuse(r, CM_REJ_CONSUMER);
	req->private_data += CM_RDMA_LEN;
	req->private_len -= CM_RDMA_LEN;
	return true;
}

static bool (*const checks[])(struct cm_rx *, struct cm_request *,
	struct cm_refusal *) = { check_req_transport, check_req_qpn, check_req_primary,
	check_req_alternate, check_req_mtu, check_req_pkey, check_req_rdma };

uint16_t
cm_request_check(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r)
{
	const struct cm_req *m = &rx->msg.req;
	unsigned int i;

	*r = (struct cm_refusal){ .reason = 0 };
	*req = (struct cm_request){
		.service_id = m->service_id,
		.remote_id = rx->msg.local_id,
		.remote_ca_guid = m->ca_guid,
		.remote_psn = m->psn,
		.responder_resources = m->responder_resources,
		.initiator_depth = m->initiator_depth,
		.retry_count = m->retry_count,
		.rnr_retry_count = m->rnr_retry_count,
		.ack_timeout = m->primary.ack_timeout,
		.srq = m->srq,
		.flow_control = m->flow_control,
	};
	for (i = 0; i < RTE_DIM(checks); i++)
		if (!checks[i](rx, req, r))
			return r->reason;
	req->port = req->path.av.port;
	return 0;
}
