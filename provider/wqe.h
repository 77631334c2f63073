/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_WQE_H
#define PROVIDER_WQE_H

/**
 * @file
 * A send request as an entry of a ring, for both ways to post: ibv_post_send() and ibv_wr_*. What
 * lib/rc would refuse for its form is refused here, where the caller can still be told: polca moves
 * the queue pair of such an entry to ERR.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "provider.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct ring_sge) &&
		offsetof(struct ibv_sge, length) == offsetof(struct ring_sge, length) &&
		offsetof(struct ibv_sge, lkey) == offsetof(struct ring_sge, lkey),
	"entries of a scatter/gather list are copied as they are");

#define WQE_MESSAGE_MAX (UINT64_C(1) << 31) /* bytes (IBA) */

/* Bytes of a scatter/gather list. */
static inline uint64_t
wqe_list_length(const struct ibv_sge *list, size_t num)
{
	uint64_t length = 0;

	for (size_t i = 0; i < num; i++)
		length += list[i].length;
	return length;
}

/*
 * The bind names the window's key before and after it. Binds are executed in the order of posts, so
 * the next one finds the new key. A batch of ibv_wr_* that is not posted takes it back.
 */
static inline int
wqe_fill_bind(struct ring_send *wqe, const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;
	/* programs name the region's local rights, too, which a window does not have */
	uint64_t access = info->mw_access_flags & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mw *mw = wr->bind_mw.mw;

	if (info->mr == NULL && info->length > 0)
		return EINVAL;
	wqe->rkey = mw->rkey;
	wqe->imm = wr->bind_mw.rkey;
	wqe->remote_addr = info->addr;
	wqe->compare_add = info->length;
	wqe->swap = access << 32 | (info->mr ? info->mr->lkey : 0);
	mw->rkey = wr->bind_mw.rkey;
	return 0;
}

/* Opcode-specific fields. @return errno value */
static inline int
wqe_fill_operation(struct ring_send *wqe, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
		return 0;
	case IBV_WR_SEND_WITH_IMM:
		wqe->imm = ntohl(wr->imm_data);
		return 0;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->imm = wr->invalidate_rkey;
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = ntohl(wr->imm_data);
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		return 0;
	case IBV_WR_BIND_MW:
		return wqe_fill_bind(wqe, wr);
	default:
		return EINVAL;
	}
}

/* The next entry, without data. @return errno value */
static inline int
wqe_begin(struct polca_qp *qp, const struct ibv_send_wr *wr)
{
	struct ring_send *wqe = ring_next_free(&qp->send);

	if (requests_room(&qp->send, &qp->send_done, qp->caps.max_send_wr) == 0 ||
		!ring_has_room(&qp->send))
		return ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->send_flags &
		(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
	wqe->inline_len = 0;
	wqe->num_sge = 0;
	return wqe_fill_operation(wqe, wr);
}

/* Operations of which the ring's entry says it all. */
static inline bool
wqe_has_no_data(const struct ring_send *wqe)
{
	return wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV;
}

static inline bool
wqe_is_atomic(const struct ring_send *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* An empty list may be NULL, which memcpy() does not allow. */
static inline void
wqe_copy_list(void *to, const struct ibv_sge *list, size_t num)
{
	if (num > 0)
		memcpy(to, list, num * sizeof(struct ring_sge));
}

/* The entry's data are its own bytes, of which it has none yet. @return errno value */
static inline int
wqe_begin_inline(struct ring_send *wqe)
{
	if (wqe->opcode == IBV_WR_RDMA_READ || wqe_is_atomic(wqe))
		return EINVAL;
	wqe->flags |= IBV_SEND_INLINE;
	wqe->num_sge = 0;
	wqe->inline_len = 0;
	return 0;
}

/* Add bytes to those that are in the entry already. @return errno value */
static inline int
wqe_add_inline(const struct polca_qp *qp, struct ring_send *wqe, const void *from, size_t length)
{
	if (length > qp->caps.max_inline_data - wqe->inline_len)
		return EINVAL;
	memcpy((uint8_t *)(wqe + 1) + wqe->inline_len, from, length);
	wqe->inline_len += (uint32_t)length;
	return 0;
}

/* @return errno value */
static inline int
wqe_set_sges(const struct polca_qp *qp, struct ring_send *wqe, const struct ibv_sge *list,
	size_t num)
{
	uint64_t length;

	if (num > qp->caps.max_send_sge)
		return EINVAL;
	length = wqe_list_length(list, num);
	if (length > WQE_MESSAGE_MAX || (wqe_is_atomic(wqe) && length != sizeof(uint64_t)))
		return EINVAL;
	wqe->flags &= (uint8_t)~IBV_SEND_INLINE;
	wqe->num_sge = (uint8_t)num;
	wqe_copy_list(wqe + 1, list, num);
	return 0;
}

#endif
