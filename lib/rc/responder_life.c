/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Responder: memory for saved requests, reset, and flush of the receive queue. Processing of
 * requests: responder.c.
 */

#include "rc/qp.h"

static size_t
srq_wqe_bytes(const struct rc_qp *qp)
{
	return sizeof(struct rc_rq_wqe) + qp->rq->max_sge * sizeof(struct sge);
}

int
rc_responder_resize(struct rc_qp *qp)
{
	struct rc_responder *r = &qp->resp;
	struct rc_saved *saved;
	unsigned int i;

	r->saved_limit = RTE_MIN(qp->attr.max_dest_rd_atomic, r->saved_size);
	if (qp->attr.max_dest_rd_atomic <= r->saved_size)
		return 0;
	saved = slab_alloc(qp->worker->slab, qp->attr.max_dest_rd_atomic * sizeof(*saved));
	if (saved == NULL)
		return -ENOMEM;
	for (i = 0; i < r->saved_count; i++)
		saved[i] = *rc_saved_at(r, i);
	slab_free(r->saved, r->saved_size * sizeof(*saved));
	r->saved = saved;
	r->saved_head = 0;
	r->saved_size = r->saved_limit = qp->attr.max_dest_rd_atomic;
	return 0;
}

int
rc_responder_create(struct rc_qp *qp)
{
	struct rc_responder *r = &qp->resp;

	if (rc_responder_resize(qp) != 0)
		return -ENOMEM;
	if (qp->srq == NULL)
		return 0;
	r->srq_wqe = slab_alloc(qp->worker->slab, srq_wqe_bytes(qp));
	if (r->srq_wqe != NULL)
		return 0;
	rc_responder_destroy(qp);
	return -ENOMEM;
}

void
rc_responder_destroy(struct rc_qp *qp)
{
	struct rc_responder *r = &qp->resp;

	slab_free(r->saved, r->saved_size * sizeof(*r->saved));
	if (r->srq_wqe != NULL)
		slab_free(r->srq_wqe, srq_wqe_bytes(qp));
	*r = (struct rc_responder){ .saved = NULL };
}

void
rc_responder_reset(struct rc_qp *qp)
{
	rc_responder_destroy(qp);
	if (qp->srq == NULL) {
		qp->rq->tail = qp->rq->head;
		rc_rq_not_missed(qp->rq);
	}
}

void
rc_responder_flush(struct rc_qp *qp)
{
	struct wc wc = { .status = WC_WR_FLUSH_ERR, .opcode = WC_RECV };
	struct rc_responder *r = &qp->resp;

	rc_forget_answers(r);
	if (r->wqe_taken)
		rc_retire_wqe(qp, wc, false);
	while (qp->srq == NULL && rc_rq_posted(qp->rq) > 0)
		rc_retire_wqe(qp, wc, false);
}
