/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Receive queues, of a QP or shared: post, take and complete receive requests. */

#include "rc/check.h"

static size_t
rq_wqe_stride(uint32_t max_sge)
{
	return RTE_ALIGN_CEIL(sizeof(struct rc_rq_wqe) + max_sge * sizeof(struct sge), 16);
}

size_t
rc_rq_bytes(uint32_t max_wr, uint32_t max_sge)
{
	return rte_align32pow2(max_wr) * rq_wqe_stride(max_sge);
}

void
rc_rq_init(struct rc_rq *rq, uint32_t pd, uint32_t max_wr, uint32_t max_sge, uint8_t *wqes)
{
	*rq = (struct rc_rq){
		.mask = rte_align32pow2(max_wr) - 1,
		.max_wr = max_wr,
		.max_sge = max_sge,
		.stride = rq_wqe_stride(max_sge),
		.pd = pd,
		.wqes = wqes,
	};
	rc_rq_not_missed(rq);
}

/*
 * Post a receive. `single`, a constant: it has one sge, which is copied field by field: a wide load
 * right after the caller's narrow stores would miss store forwarding.
 */
static __rte_always_inline int
rq_post_sges(struct rc_rq *rq, const struct recv_wr *wr, bool single, struct error *err)
{
	uint32_t i, n = single ? 1 : wr->num_sge;
	const struct sge *sge = wr->sg_list;
	struct rc_rq_wqe *wqe;
	uint64_t length = 0;

	if (unlikely(n > rq->max_sge))
		return error_set(err, EINVAL, "num_sge: got %u, this queue takes at most %u", n,
			rq->max_sge);
	if (unlikely(n > 0 && sge == NULL))
		return error_set(err, EINVAL, "sg_list: missing, num_sge is %u", n);
	for (i = 0; i < n; i++)
		length += sge[i].length;
	if (unlikely(length > RC_MSG_MAX))
		return error_set(err, EINVAL,
			"sg_list: %llu bytes in all, a message has at most %u",
			(unsigned long long)length, RC_MSG_MAX);
	if (unlikely(rc_rq_posted(rq) >= rq->max_wr))
		return error_set(err, ENOMEM, "receive queue full: %u work requests posted",
			rc_rq_posted(rq));

	wqe = rc_rq_at(rq, rq->head++);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = n;
	wqe->length = length;
	if (single) {
		wqe->sge[0].addr = sge->addr;
		wqe->sge[0].length = length;
		wqe->sge[0].lkey = sge->lkey;
	} else if (n > 0) {
		memcpy(wqe->sge, sge, n * sizeof(*sge));
	}
	return 0;
}

static int __rte_noinline
rq_post_any(struct rc_rq *rq, const struct recv_wr *wr, struct error *err)
{
	return rq_post_sges(rq, wr, false, err);
}

inline int
rc_rq_post(struct rc_rq *rq, const struct recv_wr *wr, struct error *err)
{
	if (likely(COMMON_CASE(wr->num_sge == 1)))
		return rq_post_sges(rq, wr, true, err);
	return rq_post_any(rq, wr, err);
}

/* Error text: no such queue pair, or it does not take receives */
static int __rte_noinline
rq_not_here(const struct rc_worker *w, uint32_t qpn, const struct rc_qp *qp, struct error *err)
{
	if (qp == NULL)
		return error_set(err, ENOENT, "qp_num: no queue pair 0x%06x on worker %u", qpn,
			w->id);
	if (qp->srq != NULL)
		return error_set(err, EINVAL,
			"qp_num: queue pair 0x%06x receives from SRQ %u, post there", qpn,
			qp->srq->srqn);
	return error_set(err, EINVAL,
		"qp_num: queue pair 0x%06x is in RESET, posting needs INIT or later", qpn);
}

int
rc_post_recv(struct rc_worker *w, uint32_t qpn, const struct recv_wr *wr, struct error *err)
{
	struct rc_qp *qp = rc_qp_at(w, qpn);
	int rc;

	if (unlikely(qp == NULL || qp->srq != NULL || qp->state == QPS_RESET))
		return rq_not_here(w, qpn, qp, err);
	rc = rc_rq_post(&qp->own_rq, wr, err);
	/* in ERR, receives may be posted and are flushed at once (rc-transport 11) */
	if (unlikely(qp->state == QPS_ERR) && rc == 0)
		rc_responder_flush(qp);
	rc_qp_check(qp);
	return rc;
}
