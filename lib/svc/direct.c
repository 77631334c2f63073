/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections without the CM: both sides exchange their queue pairs by other means (perftest's
 * exchange over TCP). The kind treats them like other connections; the caller of svc_direct_open()
 * closes them.
 */

#include <rte_debug.h>

#include "svc/private.h"

static int
direct_qp_to(const struct svc_conn *c, struct qp_attr *attr, enum qp_state state, uint32_t mask,
	struct error *err)
{
	attr->qp_state = state;
	return rc_qp_modify(c->w->rc, c->qpn, attr, QP_ATTR_STATE | mask, err);
}

/* Move the QP to INIT, post receives, move it to RTR and RTS. */
static int
direct_bring_up(struct svc_conn *c, const struct qp_attr *from, const struct cm_conn_param *param,
	struct error *err)
{
	struct qp_attr attr = *from;
	int ret;

	attr.qp_access_flags = param->access;
	attr.min_rnr_timer = param->min_rnr_timer;
	attr.retry_cnt = param->retry_count;
	attr.rnr_retry = param->rnr_retry_count;
	ret = direct_qp_to(c, &attr, QPS_INIT, QP_ATTRS_INIT, err);
	if (ret == 0 && c->svc->ops->prepare != NULL)
		ret = c->svc->ops->prepare(c);
	if (ret == 0)
		ret = direct_qp_to(c, &attr, QPS_RTR, QP_ATTRS_RTR, err);
	if (ret == 0)
		ret = direct_qp_to(c, &attr, QPS_RTS, QP_ATTRS_RTS, err);
	return ret;
}

struct svc_conn *
svc_direct_open(struct svc_worker *w, const union gid *peer, const struct qp_attr *attr,
	struct error *err)
{
	struct cm_conn_param param;
	struct svc_conn *c = svc_conn_new(w, peer, &param, err);

	if (c == NULL)
		return NULL;
	param.qp.pinned = true; /* only this worker polls its completion queue */
	if (rc_qp_create(w->rc, &param.qp, &c->qpn, err) != 0) {
		svc_conn_free(c);
		return NULL;
	}
	if (direct_bring_up(c, attr, &param, err) != 0) {
		svc_direct_close(c);
		return NULL;
	}
	svc_conn_stands(c);
	return c;
}

void
svc_direct_close(struct svc_conn *c)
{
	RTE_ASSERT(c->state == SVC_CONN_OPENING || c->state == SVC_CONN_STANDING);
	rc_qp_destroy(c->w->rc, c->qpn, NULL);
	svc_conn_gone(c);
}

int
svc_conn_received(const struct svc_conn *c, struct rc_qp_received *r)
{
	return rc_qp_received(c->w->rc, c->qpn, r);
}
