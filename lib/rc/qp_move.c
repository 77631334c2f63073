/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Move a queue pair to another worker (design.md rule 1). Its memory, QPN and state stay; only the
 * owner changes. The old owner unlinks the QP from all lists of its worker and sets the owner byte
 * to the new worker. Nobody finds the QP until the new owner, informed by a message, links it into
 * its own lists. A new list that a worker links QPs into must be handled in rc_qp_give() and
 * rc_qp_take().
 */

#include "rc/check.h"
#include "rc/failure.h"
#include "rc/qp_move.h"

/* The QP's CQs. @return one or two */
static uint32_t
cqs_of(const struct rc_qp *qp, uint32_t cqns[2])
{
	cqns[0] = qp->init.send_cq;
	cqns[1] = qp->init.recv_cq;
	return cqns[0] == cqns[1] ? 1 : 2;
}

int
rc_move_target_check(const struct rc_dev *dev, unsigned int to, struct error *err)
{
	if (to < dev->workers && dev->worker[to] != NULL)
		return 0;
	return error_set(err, EINVAL, "worker: got %u, there are 0..%u", to, dev->workers - 1);
}

int
rc_qp_movable(const struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err)
{
	const struct rc_qp *qp = rc_qp_at(w, qpn);
	int rc;

	RTE_ASSERT(w->dev->worker[w->id] == w);
	if (qp == NULL)
		return rc_no_qp(qpn, err);
	rc = rc_move_target_check(w->dev, to, err);
	if (rc != 0)
		return rc;
	if (qp->srq != NULL)
		return error_set(err, EINVAL,
			"qp: 0x%06x receives from shared receive queue %u, and lives where that does",
			qpn, qp->init.srq);
	if (qp->init.pinned)
		return error_set(err, EBUSY,
			"qp: 0x%06x belongs to a connection, a service or a program, which has its worker",
			qpn);
	if (rc_cq_ring(qp->send_cq, to) == NULL || rc_cq_ring(qp->recv_cq, to) == NULL)
		return error_set(err, ENOMEM,
			"qp: 0x%06x: its completion queues have no memory for worker %u", qpn, to);
	return 0;
}

void
rc_qp_give(struct rc_qp *qp, unsigned int to)
{
	struct rc_worker *w = qp->worker;
	struct rc_dev *dev = w->dev;
	uint32_t qpn = qp->qpn;

	rc_qp_unlink(qp);
	if (qp->req.held)
		LIST_REMOVE(qp, grace_link);
	timer_suspend(w->wheel, &qp->req.timer);
	rc_rp_disarm(qp);
	/* as qp_release(): the QP's CQs may be destroyed before this worker's next rc_run() */
	rc_cq_notify(w);
	qp->qpn |= QPN_MOVING;
	__atomic_store_n(&dev->owners[rc_slot(dev, qpn)], to, __ATOMIC_RELEASE);
	RTE_ASSERT(rc_qp_at(w, qpn) == NULL);
}

struct rc_qp *
rc_qp_take(struct rc_worker *w, uint32_t qpn, struct rc_share *share)
{
	struct rc_dev *dev = w->dev;
	uint32_t slot = rc_slot(dev, qpn);
	struct rc_qp *qp;

	if (rc_slot_owner(dev, slot) != w->id)
		return NULL;
	qp = dev->qps[slot];
	if (qp->qpn != (qpn | QPN_MOVING))
		return NULL;
	qp->qpn = qpn;
	qp->share = share;
	qp->worker = w;
	rc_qp_changed(qp);
	rc_qp_link(qp);
	timer_resume(w->wheel, &qp->req.timer);
	rc_rp_rearm(qp);
	if (qp->req.held)
		LIST_INSERT_HEAD(&w->grace, qp, grace_link);
	if (qp->work != 0)
		rc_want(qp, 0);
	/* the old owner may not have handled an overrun yet */
	if (rc_cq_overrun(qp->send_cq) || rc_cq_overrun(qp->recv_cq))
		w->errors |= RC_CQ_OVERRUN;
	return qp;
}

int
rc_qp_export(struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err)
{
	int rc = rc_qp_movable(w, qpn, to, err);
	uint32_t cqns[2];
	struct rc_qp *qp;

	RTE_ASSERT(!(w->errors & RC_QP_FAILED)); /* no step is under way */
	if (rc != 0 || to == w->id)
		return rc;
	qp = rc_qp_at(w, qpn);
	rc = rc_cq_fences_reserve(w, cqns, cqs_of(qp, cqns), to, err);
	if (rc == 0)
		rc_qp_give(qp, to);
	return rc;
}

int
rc_qp_import(struct rc_worker *w, uint32_t qpn, unsigned int from)
{
	struct rc_qp *qp = rc_qp_take(w, qpn, NULL);
	uint32_t cqns[2];

	if (qp == NULL)
		return -ENOENT;
	RTE_ASSERT(from < w->dev->workers && from != w->id);
	rc_cq_fences_place(w, cqns, cqs_of(qp, cqns), from);
	rc_qp_check(qp);
	return 0;
}
