/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Posting: a work request becomes an entry of a ring, and one doorbell tells the worker of a whole
 * list.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "provider.h"
#include "signals.h"
#include "wqe.h"

/*
 * End the worker's sleep. If polca was killed in it, nobody reads the pipe: the signal of that
 * write is not the program's.
 */
static void
wake_worker(int fd)
{
	sigset_t pipe, before, pending;
	long n;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	sigpending(&pending);
	/* a full pipe is readable; write() would be a cancellation point, under the queue's lock */
	n = syscall(SYS_write, fd, "", 1);
	if (n < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE))
		signal_take_back(SIGPIPE);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void
polca_ring_bell(const struct polca_queue *q)
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
polca_post_receives(struct polca_queue *q, struct ring_end *ring, uint32_t max_sge, uint32_t most,
	struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	uint32_t first = ring->index;
	int rc = 0;

	for (; wr != NULL; wr = wr->next) {
		struct ring_receive *wqe = ring_next_free(ring);

		if ((uint32_t)wr->num_sge > max_sge ||
			wqe_list_length(wr->sg_list, (size_t)wr->num_sge) > WQE_MESSAGE_MAX)
			rc = EINVAL;
		else if (ring->index - first == most || !ring_has_room(ring))
			rc = ENOMEM;
		if (rc != 0) {
			*bad = wr;
			break;
		}
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = (uint32_t)wr->num_sge;
		wqe_copy_list(wqe + 1, wr->sg_list, (size_t)wr->num_sge);
		ring->index++;
	}
	if (ring->index != first) {
		ring_publish(ring);
		polca_ring_bell(q);
		ring_prefetch_free(ring);
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
	rc = polca_post_receives(&qp->queue, &qp->receive, qp->caps.max_recv_sge,
		requests_room(&qp->receive, &qp->receive_done, qp->caps.max_recv_wr), wr, bad);
	pthread_spin_unlock(&qp->receive_lock);
	return rc;
}

/* --- send --- */

/* @return errno value */
static int
fill_send(struct polca_qp *qp, const struct ibv_send_wr *wr)
{
	struct ring_send *wqe = ring_next_free(&qp->send);
	int rc = wqe_begin(qp, wr), i;

	if (rc != 0 || wqe_has_no_data(wqe))
		return rc;
	if ((wr->send_flags & IBV_SEND_INLINE) == 0)
		return wqe_set_sges(qp, wqe, wr->sg_list, (unsigned int)wr->num_sge);
	rc = (uint32_t)wr->num_sge > qp->caps.max_send_sge ? EINVAL : wqe_begin_inline(wqe);
	for (i = 0; i < wr->num_sge && rc == 0; i++)
		rc = wqe_add_inline(qp, wqe, (const void *)(uintptr_t)wr->sg_list[i].addr,
			wr->sg_list[i].length);
	return rc;
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
		polca_ring_bell(&qp->queue);
		ring_prefetch_free(&qp->send);
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
