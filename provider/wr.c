/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The newer way to post: between ibv_wr_start() and ibv_wr_complete() the program fills entries of
 * the ring by one call for the operation and one for its data. The first error is told at the end,
 * and then nothing is posted.
 */

#include "provider.h"
#include "wqe.h"

static inline struct polca_qp *
qp_of(struct ibv_qp_ex *ibv)
{
	return (struct polca_qp *)(void *)ibv;
}

static void
wr_start(struct ibv_qp_ex *ibv)
{
	struct polca_qp *qp = qp_of(ibv);

	pthread_spin_lock(&qp->send_lock);
	qp->wr_first = qp->send.index;
	qp->wr_windows = NULL;
	qp->wr_error = ibv->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
}

/* No more data follow for the operation that was begun last: an Atomic has what it returns. */
static inline void
wr_finish_last(struct polca_qp *qp)
{
	const struct ring_send *wqe = ring_entry(&qp->send, qp->send.index - 1);

	if (qp->wr_error == 0 && qp->send.index != qp->wr_first && wqe_is_atomic(wqe) &&
		wqe->num_sge == 0)
		qp->wr_error = EINVAL;
}

/* Nothing of the batch is posted: windows have the keys that they had before it. */
static void
wr_take_back(struct polca_qp *qp)
{
	struct polca_mw *w;

	qp->send.index = qp->wr_first;
	for (w = qp->wr_windows; w != NULL; w = w->next)
		w->ibv.rkey = w->rkey_before;
}

/* The windows are let go before the lock: then another thread of the program may free them. */
static void
wr_end(struct polca_qp *qp)
{
	struct polca_mw *w;

	for (; (w = qp->wr_windows) != NULL; qp->wr_windows = w->next)
		w->in_batch = false;
	pthread_spin_unlock(&qp->send_lock);
}

static int
wr_complete(struct ibv_qp_ex *ibv)
{
	struct polca_qp *qp = qp_of(ibv);
	int rc;

	wr_finish_last(qp);
	rc = qp->wr_error;
	if (rc != 0) {
		wr_take_back(qp);
	} else if (qp->send.index != qp->wr_first) {
		ring_publish(&qp->send);
		polca_ring_bell(&qp->queue);
	}
	wr_end(qp);
	return rc;
}

static void
wr_abort(struct ibv_qp_ex *ibv)
{
	struct polca_qp *qp = qp_of(ibv);

	wr_take_back(qp);
	wr_end(qp);
}

/* --- operations --- */

static inline void
wr_begin(struct ibv_qp_ex *ibv, struct ibv_send_wr wr)
{
	struct polca_qp *qp = qp_of(ibv);

	wr_finish_last(qp);
	if (qp->wr_error != 0)
		return;
	wr.wr_id = ibv->wr_id;
	wr.send_flags = ibv->wr_flags;
	qp->wr_error = wqe_begin(qp, &wr);
	if (qp->wr_error == 0)
		qp->send.index++;
}

static void
wr_send(struct ibv_qp_ex *ibv)
{
	wr_begin(ibv, (struct ibv_send_wr){ .opcode = IBV_WR_SEND });
}

static void
wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm)
{
	wr_begin(ibv, (struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = imm });
}

static void
wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	wr_begin(ibv,
		(struct ibv_send_wr){ .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = rkey });
}

static void
wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	wr_begin(ibv, (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = rkey });
}

static void
wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr)
{
	wr_begin(ibv,
		(struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE, .wr.rdma = { addr, rkey } });
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, __be32 imm)
{
	wr_begin(ibv,
		(struct ibv_send_wr){
			.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
			.imm_data = imm,
			.wr.rdma = { addr, rkey },
		});
}

static void
wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr)
{
	wr_begin(ibv,
		(struct ibv_send_wr){ .opcode = IBV_WR_RDMA_READ, .wr.rdma = { addr, rkey } });
}

static void
wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, uint64_t compare,
	uint64_t swap)
{
	wr_begin(ibv,
		(struct ibv_send_wr){
			.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
			.wr.atomic = { addr, compare, swap, rkey },
		});
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t addr, uint64_t add)
{
	wr_begin(ibv,
		(struct ibv_send_wr){
			.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
			.wr.atomic = { addr, add, 0, rkey },
		});
}

static void
wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	struct polca_qp *qp = qp_of(ibv);
	struct polca_mw *w = (struct polca_mw *)mw;
	uint32_t before = mw->rkey;

	wr_begin(ibv,
		(struct ibv_send_wr){ .opcode = IBV_WR_BIND_MW, .bind_mw = { mw, rkey, *info } });
	if (qp->wr_error != 0 || w->in_batch)
		return;
	w->in_batch = true;
	w->rkey_before = before;
	w->next = qp->wr_windows;
	qp->wr_windows = w;
}

/* --- their data --- */

/* The entry of the operation that was begun last; NULL after an error, or if it has no data. */
static inline struct ring_send *
wr_present(struct polca_qp *qp)
{
	struct ring_send *wqe = ring_entry(&qp->send, qp->send.index - 1);

	if (qp->wr_error == 0 && qp->send.index == qp->wr_first)
		qp->wr_error = EINVAL;
	return qp->wr_error != 0 || wqe_has_no_data(wqe) ? NULL : wqe;
}

static void
wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num, const struct ibv_sge *list)
{
	struct polca_qp *qp = qp_of(ibv);
	struct ring_send *wqe = wr_present(qp);

	if (wqe == NULL)
		return;
	qp->wr_error = wqe_set_sges(qp, wqe, list, num);
}

static void
wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	wr_set_sge_list(ibv, 1, &sge);
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num, const struct ibv_data_buf *list)
{
	struct polca_qp *qp = qp_of(ibv);
	struct ring_send *wqe = wr_present(qp);

	if (wqe == NULL)
		return;
	qp->wr_error = wqe_begin_inline(wqe);
	for (size_t i = 0; i < num && qp->wr_error == 0; i++)
		qp->wr_error = wqe_add_inline(qp, wqe, list[i].addr, list[i].length);
}

static void
wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t length)
{
	struct ibv_data_buf data = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibv, 1, &data);
}

bool
wr_operations_allowed(uint64_t operations)
{
	uint64_t allowed = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;

	return (operations & ~allowed) == 0;
}

void
wr_set_operations(struct polca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->verbs.qp_ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	for (unsigned int i = 0; i < VERBS_QP_MASKS; i++)
		qp->verbs.comp_masks[i] = VERBS_QP_EX;
}
