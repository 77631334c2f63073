/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The QP states of a connection (cm.md 4): created in INIT; moved to RTR and RTS before the REP is
 * sent (passive side) or after it is received (active side); ERR at the end; destroyed after
 * TIMEWAIT.
 */

#include <errno.h>

#include "cm/private.h"

static struct rc_worker *
rc_of(const struct cm_conn *c)
{
	return c->cm->config.rc;
}

/*
 * Subnet management may have changed the port's P_Keys, GIDs or LIDs since the path was made:
 * refresh the path from the port. rc_path_changed() does the same for QPs that already have a path.
 */
static void
cm_path_follow_port(const struct cm *cm, struct cm_path *path)
{
	const struct port_attr *port = cm_port(cm, path->av.port);

	if (port == NULL)
		return;
	path->pkey = rc_port_pkey(port, path->pkey_index);
	rc_av_follow(&path->av, port, path->sgid_index, path->src_path_bits);
}

static int
cm_qp_to_init(struct cm_conn *c, uint32_t access, struct error *err)
{
	const struct qp_attr attr = {
		.qp_state = QPS_INIT,
		.qp_access_flags = access,
		.pkey_index = c->path.pkey_index,
		.pkey = c->path.pkey,
		.port = c->path.av.port,
	};

	return rc_qp_modify(rc_of(c), c->qpn, &attr, QP_ATTR_STATE | QP_ATTRS_INIT, err);
}

static void
cm_qp_note(struct cm_conn *c, const struct cm_conn_param *param)
{
	c->min_rnr_timer = param->min_rnr_timer;
	c->peer_rnr_retry = param->rnr_retry_count;
	c->srq = param->qp.srq != RC_NO_SRQ;
	c->flow_control = param->qp.flow_control;
	cm_path_follow_port(c->cm, &c->path);
}

void
cm_qp_take(struct cm_conn *c, const struct cm_conn_param *param)
{
	c->users_qp = true;
	c->qpn = param->qpn;
	cm_qp_note(c, param);
}

int
cm_qp_create(struct cm_conn *c, const struct cm_conn_param *param, struct error *err)
{
	struct qp_init_attr init = param->qp;
	int ret;

	/* data may come before the RTU: report it even though the QP is in RTS */
	init.comm_est_in_rts = !c->active;
	init.pinned = true; /* the connection's worker follows from its ID: the QP must not move */
	ret = rc_qp_create(rc_of(c), &init, &c->qpn, err);
	if (ret != 0)
		return ret;
	c->has_qp = true;
	cm_key_add(c, CM_KEY_QPN);
	cm_qp_note(c, param);
	ret = cm_qp_to_init(c, param->access, err);
	return ret != 0 ? ret : cm_qp_prepare(c, err);
}

int
cm_qp_prepare(struct cm_conn *c, struct error *err)
{
	cm_id id = c->id;
	int ret;

	if (c->ops->prepare == NULL)
		return 0;
	ret = c->ops->prepare(c->user, id, c->qpn);
	if (!cm_lives(c, id))
		return error_set(err, ECANCELED, "the connection was given up meanwhile");
	return ret == 0
		? 0
		: error_set(err, -ret, "service %s is not ready for a connection", c->ops->name);
}

int
cm_qp_connect(struct cm_conn *c, struct error *err)
{
	struct qp_attr attr = {
		.qp_state = QPS_RTR,
		.neighbour = c->path.neighbour,
		.sgid_index = c->path.sgid_index,
		.src_path_bits = c->path.src_path_bits,
		.path_mtu = c->path.mtu,
		.dest_qp_num = c->remote_qpn,
		.rq_psn = c->rq_psn,
		.sq_psn = c->sq_psn,
		.max_dest_rd_atomic = c->responder_resources,
		.max_rd_atomic = c->initiator_depth,
		.min_rnr_timer = c->min_rnr_timer,
		.timeout = c->ack_timeout,
		.retry_cnt = c->retry_cnt,
		.rnr_retry = c->rnr_retry,
	};
	int ret;

	cm_path_follow_port(c->cm, &c->path);
	attr.av = c->path.av;
	ret = rc_qp_modify(rc_of(c), c->qpn, &attr, QP_ATTR_STATE | QP_ATTRS_RTR, err);
	if (ret != 0)
		return ret;
	attr.qp_state = QPS_RTS;
	return rc_qp_modify(rc_of(c), c->qpn, &attr, QP_ATTR_STATE | QP_ATTRS_RTS, err);
}

void
cm_qp_error(struct cm_conn *c)
{
	static const struct qp_attr attr = { .qp_state = QPS_ERR };

	if (c->has_qp)
		rc_qp_modify(rc_of(c), c->qpn, &attr, QP_ATTR_STATE, NULL);
}

void
cm_qp_destroy(struct cm_conn *c)
{
	if (!c->has_qp)
		return;
	cm_key_remove(c, CM_KEY_QPN);
	rc_qp_destroy(rc_of(c), c->qpn, NULL);
	c->has_qp = false;
}

uint8_t
cm_qp_arm(struct cm_conn *c, const struct cm_path *path, uint8_t ack_timeout)
{
	const struct qp_attr attr = {
		.alt.av = path->av,
		.alt.neighbour = path->neighbour,
		.alt.pkey_index = path->pkey_index,
		.alt.pkey = path->pkey,
		.alt.port = path->av.port,
		.alt.sgid_index = path->sgid_index,
		.alt.src_path_bits = path->src_path_bits,
		.alt.timeout = ack_timeout,
		.path_mig_state = MIG_REARM,
	};
	int ret;

	if (c->users_qp)
		return CM_APR_UNSUPPORTED;
	ret = rc_qp_modify(rc_of(c), c->qpn, &attr, QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE,
		NULL);
	if (ret == 0)
		return CM_APR_OK;
	return ret == -EOPNOTSUPP ? CM_APR_UNSUPPORTED : CM_APR_REJECTED;
}
