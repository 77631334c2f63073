/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Posting: a work request becomes an entry of a ring, and one doorbell tells the worker of a whole
 * list. What lib/rc would refuse is refused here, as the caller can still be told.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "provider.h"

_Static_assert(sizeof(struct ibv_sge) == sizeof(struct ring_sge) &&
		offsetof(struct ibv_sge, length) == offsetof(struct ring_sge, length) &&
		offsetof(struct ibv_sge, lkey) == offsetof(struct ring_sge, lkey),
	"entries of a scatter/gather list are copied as they are");

/*
 * End the worker's sleep. If polca was killed in it, nobody reads the pipe: the signal of that
 * write is not the program's.
 */
static void
wake_worker(int fd)
{
	const struct timespec no_time = { 0, 0 };
	sigset_t pipe, before, pending;
	ssize_t n;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	sigpending(&pending);
	n = write(fd, "", 1); /* a full pipe is readable */
	if (n < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		while (sigtimedwait(&pipe, NULL, &no_time) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The queue's head is published: tell the worker, and end its sleep. */
static void
ring_bell(const struct polca_queue *q)
{
	struct polca_context *c = q->context;

	if (!ring_doorbell_ring(c->doorbells, c->hello.geometry.num_queues - 1, &c->next_doorbell,
		    q->shared, q->slot))
		return;
	/* ring, then look: both are sequentially consistent, as the worker's counterparts are */
	if (__atomic_load_n(&c->shared->asleep, __ATOMIC_SEQ_CST) != 0 && !polca_is_dead(c))
		wake_worker(c->wake_fd);
}

/* --- receive --- */

int
polca_post_receives(struct polca_queue *q, struct ring_end *ring, uint32_t max_sge,
	struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t first = ring->index;
	int rc = 0;

	for (; wr != NULL; wr = wr->next) {
		struct ring_receive *wqe = ring_next_free(ring);

		if ((uint32_t)wr->num_sge > max_sge)
			rc = EINVAL;
		else if (!ring_has_room(ring))
			rc = ENOMEM;
		if (rc != 0) {
			*bad = wr;
			break;
		}
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = (uint32_t)wr->num_sge;
		memcpy(wqe + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ring_sge));
		ring->index++;
	}
	if (ring->index != first) {
		ring_publish(ring);
		ring_bell(q);
	}
	return rc;
}

int
polca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct polca_qp *qp = (struct polca_qp *)(void *)ibv;
	int rc;

	if (ibv->state == IBV_QPS_RESET || qp->receive.entries == NULL) {
		*bad = wr;
		return EINVAL;
	}
	pthread_spin_lock(&qp->receive_lock);
	rc = polca_post_receives(&qp->queue, &qp->receive, qp->caps.max_recv_sge, wr, bad);
	pthread_spin_unlock(&qp->receive_lock);
	return rc;
}

/* --- send --- */

/*
 * The bind names the window's key before and after it. Binds are executed in the order of posts, so
 * the next one finds the new key.
 */
static int
fill_bind(struct ring_send *wqe, const struct ibv_send_wr *wr)
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
static int
fill_operation(struct ring_send *wqe, const struct ibv_send_wr *wr)
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
		return fill_bind(wqe, wr);
	default:
		return EOPNOTSUPP;
	}
}

static int
fill_inline(const struct polca_qp *qp, struct ring_send *wqe, const struct ibv_send_wr *wr)
{
	uint8_t *to = (uint8_t *)(wqe + 1);
	uint32_t length = 0;
	int i;

	if (wr->opcode == IBV_WR_RDMA_READ || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->caps.max_inline_data - length)
			return EINVAL;
		memcpy(to + length, (const void *)(uintptr_t)sge->addr, sge->length);
		length += sge->length;
	}
	wqe->inline_len = length;
	wqe->num_sge = 0;
	return 0;
}

/* @return errno value */
static int
fill_send(struct polca_qp *qp, const struct ibv_send_wr *wr)
{
	struct ring_send *wqe = ring_next_free(&qp->send);
	int rc;

	if (!ring_has_room(&qp->send))
		return ENOMEM;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)(wr->send_flags &
		(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE));
	wqe->inline_len = 0;
	wqe->num_sge = 0;
	rc = fill_operation(wqe, wr);
	if (rc != 0 || wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
		return rc; /* these have no data */
	if (wr->send_flags & IBV_SEND_INLINE)
		return fill_inline(qp, wqe, wr);
	if ((uint32_t)wr->num_sge > qp->caps.max_send_sge)
		return EINVAL;
	wqe->num_sge = (uint8_t)wr->num_sge;
	memcpy(wqe + 1, wr->sg_list, (size_t)wr->num_sge * sizeof(struct ring_sge));
	return 0;
}

int
polca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct polca_qp *qp = (struct polca_qp *)(void *)ibv;
	uint32_t first;
	int rc = 0;

	if (ibv->state < IBV_QPS_RTS) {
		*bad = wr;
		return EINVAL;
	}
	pthread_spin_lock(&qp->send_lock);
	first = qp->send.index;
	for (; wr != NULL; wr = wr->next) {
		rc = fill_send(qp, wr);
		if (rc != 0) {
			*bad = wr;
			break;
		}
		qp->send.index++;
	}
	if (qp->send.index != first) {
		ring_publish(&qp->send);
		ring_bell(&qp->queue);
	}
	pthread_spin_unlock(&qp->send_lock);
	return rc;
}

/* ibv_bind_mw() updates the window's key at once, so the provider chooses it. */
int
polca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags & ~(unsigned int)IBV_SEND_INLINE,
			.bind_mw = { mw, ibv_inc_rkey(mw->rkey), bind->bind_info },
		};

	return mw->type == IBV_MW_TYPE_1 ? polca_post_send(qp, &wr, &bad) : EINVAL;
}
