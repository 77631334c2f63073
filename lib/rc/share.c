/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Fairness between the owners of QPs: all QPs of one owner (struct rc_share) together may send as
 * much as a single QP of another owner, however many they are.
 *
 * Therefore only one QP of an owner is on the worker's run queue at a time. The owner's other QPs
 * with packets to send wait in the list rc_share.waiting. When the QP on the run queue leaves it,
 * because its turn is over or it has nothing left to send, rc_share_pass() puts the first waiting
 * QP on the run queue.
 *
 * The scheduler (schedule.c) gives a QP a credit of bytes for its turn. An owner has one credit:
 * the next QP begins with what the QP before has left of it. If something is left, the owner's turn
 * is not over, and the next QP becomes the first of the run queue. Else it becomes the last, so all
 * other owners have their turns before it.
 */

#include "rc/qp_directory.h"

void
rc_share_init(struct rc_share *share)
{
	*share = (struct rc_share){ 0 };
	STAILQ_INIT(&share->waiting);
}

int
rc_qp_join(struct rc_worker *w, uint32_t qpn, struct rc_share *share)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);

	if (qp == NULL)
		return -ENOENT;
	RTE_ASSERT(!qp->on_run_queue && qp->share == NULL);
	qp->share = share;
	qp->credit = 0;
	return 0;
}

/*
 * The QP gets the owner's credit. Its own is negative if rc_charge() has charged it for duplicates
 * while it waited; the owner pays for that. The debt stays below a quantum, so that the QP sends at
 * least one packet in its next turn, which may repair a loss.
 */
static void
share_give_turn(struct rc_share *share, struct rc_qp *qp)
{
	share->turn = qp;
	qp->credit = RTE_MAX(qp->credit + share->credit, 1 - RC_QUANTUM);
	share->credit = 0;
}

void
rc_share_want(struct rc_qp *qp)
{
	struct rc_share *share = qp->share;

	if (share->turn != NULL) {
		STAILQ_INSERT_TAIL(&share->waiting, qp, run_link);
		return;
	}
	share_give_turn(share, qp);
	STAILQ_INSERT_TAIL(&qp->worker->run_queue, qp, run_link);
}

void
rc_share_pass(struct rc_qp *qp, bool full)
{
	struct rc_share *share = qp->share;
	struct rc_qp *next = STAILQ_FIRST(&share->waiting);

	share->credit = qp->credit;
	qp->credit = 0;
	share->turn = NULL;
	if (next == NULL)
		return;
	STAILQ_REMOVE_HEAD(&share->waiting, run_link);
	share_give_turn(share, next);
	if (next->credit > 0 && !full)
		STAILQ_INSERT_HEAD(&qp->worker->run_queue, next, run_link);
	else
		STAILQ_INSERT_TAIL(&qp->worker->run_queue, next, run_link);
	next = STAILQ_FIRST(&share->waiting);
	if (next != NULL)
		rc_prefetch_turn(next);
}

/* Before all queue pairs leave: one by one, each would look for its place among those that wait. */
void
rc_share_stop(struct rc_worker *w, struct rc_share *share)
{
	if (share->turn != NULL) {
		STAILQ_REMOVE(&w->run_queue, share->turn, rc_qp, run_link);
		share->credit = share->turn->credit;
		share->turn->credit = 0;
		share->turn = NULL;
	}
	STAILQ_INIT(&share->waiting);
}

void
rc_share_unlink(struct rc_qp *qp)
{
	struct rc_share *share = qp->share;

	if (qp->on_run_queue && qp != share->turn) {
		STAILQ_REMOVE(&share->waiting, qp, rc_qp, run_link);
	} else if (qp->on_run_queue) {
		STAILQ_REMOVE(&qp->worker->run_queue, qp, rc_qp, run_link);
		rc_share_pass(qp, true);
	}
	qp->share = NULL;
}
