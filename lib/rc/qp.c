/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs: create, destroy, query, move to ERR, follow port changes. Modify: qp_modify.c.
 */

#include "rc/check.h"
#include "rc/failure.h"

int
rc_check_ranges(const struct rc_range *r, unsigned int n, const char *of, struct error *err)
{
	for (; n > 0; n--, r++)
		if (r->given && (r->got < r->min || r->got > r->max))
			return error_set(err, EINVAL, "%s%s: got %u, allowed: %u to %u", of,
				r->name, r->got, r->min, r->max);
	return 0;
}

static int
check_init(const struct rc_dev *dev, const struct qp_init_attr *attr, struct error *err)
{
	const struct rc_limits *l = &dev->limits;
	const struct qp_cap *cap = &attr->cap;
	bool own_rq = attr->srq == RC_NO_SRQ;
	const struct rc_range ranges[] = {
		{ true, "max_send_wr", cap->max_send_wr, 1, l->max_qp_wr },
		{ true, "max_send_sge", cap->max_send_sge, 0, l->max_sge },
		{ true, "max_inline_data", cap->max_inline_data, 0, l->max_inline },
		{ own_rq, "max_recv_wr", cap->max_recv_wr, 1, l->max_qp_wr },
		{ own_rq, "max_recv_sge", cap->max_recv_sge, 0, l->max_sge },
	};

	if (attr->qp_type != QPT_RC)
		return error_set(err, EINVAL, "qp_type: got %d, allowed: RC", attr->qp_type);
	return rc_check_ranges(ranges, RTE_DIM(ranges), "", err);
}

static int
attach_rq(struct rc_qp *qp, struct error *err)
{
	const struct qp_init_attr *attr = &qp->init;

	if (attr->srq == RC_NO_SRQ) {
		qp->rq = &qp->own_rq;
		rc_rq_init(qp->rq, attr->pd, attr->cap.max_recv_wr, attr->cap.max_recv_sge,
			(uint8_t *)(qp + 1));
		return 0;
	}
	/* an SRQ and its QPs must be on the same worker */
	qp->srq = rc_srq_find(qp->worker, attr->srq);
	if (qp->srq == NULL)
		return rc_no_srq(qp->worker, attr->srq, err);
	qp->srq->users++;
	qp->rq = &qp->srq->rq;
	return 0;
}

/* Size of the QP's own RQ ring */
static size_t
rq_bytes(const struct qp_init_attr *attr)
{
	size_t n = 0;

	if (attr->srq == RC_NO_SRQ)
		n = rc_rq_bytes(attr->cap.max_recv_wr, attr->cap.max_recv_sge);
	return RTE_ALIGN_CEIL(n, CACHE_LINE);
}

/* A QP and its rings are one allocation. */
size_t
rc_qp_bytes(const struct qp_init_attr *attr)
{
	return sizeof(struct rc_qp) + rq_bytes(attr) + rc_sq_bytes(&attr->cap);
}

/* Undo rc_qp_create(), which may have failed half way. */
static void
qp_release(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;

	rc_trace_free(qp);
	rc_rp_destroy(qp);
	rc_responder_destroy(qp);
	rc_requester_destroy(qp);
	if (qp->srq != NULL)
		qp->srq->users--;
	/* a CQ without users may be destroyed at once: empty w->notify, which may point to it */
	rc_cq_notify(w);
	if (qp->recv_cq != NULL)
		rc_cq_release(qp->recv_cq);
	if (qp->send_cq != NULL)
		rc_cq_release(qp->send_cq);
	mem_pd_release(w->mem, qp->pd);
	slab_free(qp, rc_qp_bytes(&qp->init));
}

int
rc_qp_create(struct rc_worker *w, const struct qp_init_attr *attr, uint32_t *qpn, struct error *err)
{
	struct rc_qp *qp;
	int rc;

	RTE_ASSERT(attr != NULL && qpn != NULL);
	RTE_ASSERT(!(w->errors & RC_QP_FAILED)); /* no step is under way */
	rc = check_init(w->dev, attr, err);
	if (rc != 0)
		return rc;
	if (mem_pd_hold(w->mem, attr->pd) != 0)
		return error_set(err, ENOENT, "pd: there is no protection domain %u", attr->pd);
	qp = slab_alloc(w->slab, rc_qp_bytes(attr));
	if (qp == NULL) {
		mem_pd_release(w->mem, attr->pd);
		return error_set(err, ENOMEM,
			"no memory for a queue pair of %u send and %u receive work requests",
			attr->cap.max_send_wr, attr->cap.max_recv_wr);
	}
	qp->worker = w;
	qp->pd = attr->pd;
	qp->init = *attr;
	qp->ack_per_packet = attr->ack_per_packet;
	qp->flow_control = attr->flow_control;
	qp->sig_all = attr->sq_sig_all;
	qp->state = QPS_RESET;
	timer_init(&qp->req.timer, rc_requester_timer);
	rc_migration_reset(qp);
	rc_qp_changed(qp);
	rc = rc_cq_hold(w, attr->send_cq, "send_cq", &qp->send_cq, err);
	if (rc == 0)
		rc = rc_cq_hold(w, attr->recv_cq, "recv_cq", &qp->recv_cq, err);
	if (rc == 0)
		rc = attach_rq(qp, err);
	if (rc != 0)
		goto fail;
	rc_requester_create(qp, (uint8_t *)(qp + 1) + rq_bytes(attr));
	rc = rc_rp_create(qp);
	if (rc != 0) {
		error_set(err, ENOMEM, "no memory for a rate limiter");
		goto fail;
	}
	rc = rc_slot_take(qp);
	if (rc != 0) {
		error_set_limit(err, ENOSPC,
			"all %u queue pairs that worker %u can make are in use (limits.max_qp)",
			w->slots->size, w->id);
		goto fail;
	}
	rc_trace_create(qp);
	rc_qp_link(qp);
	*qpn = qp->qpn;
	RTE_ASSERT(rc_qp_at(w, *qpn) == qp);
	rc_qp_check(qp);
	return 0;

fail:
	qp_release(qp);
	return rc;
}

void
rc_qp_link(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;

	LIST_INSERT_HEAD(&w->qps, qp, link);
	__atomic_store_n(&w->num_qps, w->num_qps + 1, __ATOMIC_RELAXED);
}

void
rc_qp_unlink(struct rc_qp *qp)
{
	struct rc_worker *w = qp->worker;

	if (qp->share != NULL)
		rc_share_unlink(qp);
	else if (qp->on_run_queue)
		STAILQ_REMOVE(&w->run_queue, qp, rc_qp, run_link);
	qp->on_run_queue = false;
	LIST_REMOVE(qp, link);
	__atomic_store_n(&w->num_qps, w->num_qps - 1, __ATOMIC_RELAXED);
}

void
rc_qp_free(struct rc_qp *qp)
{
	rc_slot_release(qp);
	rc_qp_unlink(qp);
	mem_qp_gone(qp->worker->mem, qp->qpn);
	qp_release(qp);
}

int
rc_qp_destroy(struct rc_worker *w, uint32_t qpn, struct error *err)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	RTE_ASSERT(!(w->errors & RC_QP_FAILED)); /* no step is under way */
	if (qp == NULL)
		return rc_no_qp(qpn, err);
	rc_qp_free(qp);
	return 0;
}

int
rc_qp_query(const struct rc_worker *w, uint32_t qpn, struct rc_qp_info *info)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	if (qp == NULL)
		return -ENOENT;
	*info = (struct rc_qp_info){
		.qpn = qpn,
		.worker = w->id,
		.init = qp->init,
		.attr = qp->attr,
		.counters = qp->counters,
		.sq_posted = qp->req.head - qp->req.tail,
		.rq_posted = rc_rq_posted(qp->rq),
		.sq_unacked = rc_in_flight(&qp->req),
		.retry_left = qp->req.retry_left,
		.rnr_left = qp->req.rnr_left,
		.udp_sport = qp->path.udp_sport,
		.alt_loaded = qp->alt_loaded,
		.rate_limit = rc_rp_update_rate(qp),
		.traced = qp->trace != NULL,
		.failure = qp->failure,
	};
	info->attr.qp_state = qp->state;
	info->attr.cur_qp_state = qp->state;
	info->attr.path_mig_state = qp->mig_state;
	if (qp->state == QPS_RTS || qp->state == QPS_SQD)
		info->attr.sq_psn = qp->req.next_psn;
	if (qp->state != QPS_RESET && qp->state != QPS_INIT)
		info->attr.rq_psn = qp->resp.epsn;
	rc_qp_check(qp);
	return 0;
}

int
rc_qp_received(const struct rc_worker *w, uint32_t qpn, struct rc_qp_received *r)
{
	const struct rc_qp *qp = rc_qp_at(w, qpn);

	if (qp == NULL)
		return -ENOENT;
	*r = (struct rc_qp_received){
		.packets = qp->counters.rcvd_pkts,
		.writes = qp->counters.rx_write_requests - (qp->resp.message == RESP_IN_WRITE),
		.requests = qp->counters.rx_send_requests + qp->counters.rx_write_requests +
			qp->counters.rx_read_requests + qp->counters.rx_atomic_requests,
		.bytes = qp->counters.rcvd_bytes,
		.partial = qp->resp.message != RESP_IDLE,
	};
	RTE_ASSERT(r->writes <= r->requests && r->requests <= r->packets);
	return 0;
}

bool
rc_qp_next(const struct rc_worker *w, uint32_t *cursor, uint32_t *qpn)
{
	while (rc_dev_qp_next(w->dev, cursor, qpn))
		if (rc_qp_at(w, *qpn) != NULL)
			return true;
	return false;
}

bool
rc_dev_qp_next(const struct rc_dev *dev, uint32_t *cursor, uint32_t *qpn)
{
	uint32_t slot;

	while (*cursor < dev->limits.max_qp) {
		slot = (*cursor)++;
		if (rc_slot_owner(dev, slot) != RC_NO_OWNER) {
			*qpn = __atomic_load_n(&dev->qpns[slot], __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}

uint16_t
rc_port_pkey(const struct port_attr *port, uint16_t index)
{
	return index < port->num_pkeys ? port->pkey[index] : 0;
}

void
rc_av_follow(struct av *av, const struct port_attr *port, uint16_t sgid_index,
	uint8_t src_path_bits)
{
	if (av->encap != ENCAP_IB)
		return;
	RTE_ASSERT(av->sl < PORT_SLS);
	av->slid = port_slid(port, src_path_bits);
	av->vl = port->sl_to_vl[av->sl];
	if (sgid_index < port->num_gids)
		av->sgid = port->gid[sgid_index].gid;
}

/* Look up the QP's P_Keys, GIDs and LIDs in the port's tables again. */
static void
path_changed(struct rc_qp *qp, uint16_t port, const struct port_attr *attr)
{
	struct qp_attr *a = &qp->attr;

	if (a->port == port && qp->state != QPS_RESET) {
		a->pkey = rc_port_pkey(attr, a->pkey_index);
		qp->pkey = a->pkey;
		if (qp->state != QPS_INIT) { /* it has a path */
			rc_av_follow(&a->av, attr, a->sgid_index, a->src_path_bits);
			rc_qp_path(qp);
			rc_qp_changed(qp);
		}
	}
	if (qp->alt_loaded && a->alt.port == port) {
		a->alt.pkey = rc_port_pkey(attr, a->alt.pkey_index);
		rc_av_follow(&a->alt.av, attr, a->alt.sgid_index, a->alt.src_path_bits);
	}
	rc_qp_check(qp);
}

void
rc_path_changed(struct rc_worker *w, uint16_t port, const struct port_attr *attr)
{
	struct rc_qp *qp;

	RTE_ASSERT(port < RC_PORTS_MAX);
	LIST_FOREACH(qp, &w->qps, link)
		path_changed(qp, port, attr);
}

void
rc_qp_path_changed(struct rc_worker *w, uint32_t qpn, uint16_t port, const struct port_attr *attr)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	if (qp != NULL)
		path_changed(qp, port, attr);
}

const struct port_violations *
rc_worker_violations(const struct rc_worker *w, uint16_t port)
{
	return port < RC_PORTS_MAX ? &w->violations[port] : NULL;
}
