/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which requests are outstanding: those whose completion the program has not polled, and of those
 * that are not signaled, that of a later one. A queue takes no more than it was made for, so their
 * entries in the ring stay as they were posted. If polca dies, they are flushed from there.
 *
 * A CQ has a table of its queue pairs. It is changed and read under the CQ's lock.
 */

#include <string.h>

#include "provider.h"

static struct polca_user **
user_list(struct polca_cq *cq, const struct polca_qp *qp)
{
	return &cq->users[qp->verbs.qp.qp_num % POLCA_USER_LISTS];
}

static void
user_add(struct ibv_cq *ibv, struct polca_user *user, struct polca_qp *qp)
{
	struct polca_cq *cq = (struct polca_cq *)ibv;
	struct polca_user **list = user_list(cq, qp);

	user->qp = qp;
	pthread_spin_lock(&cq->lock);
	user->next = *list;
	*list = user;
	pthread_spin_unlock(&cq->lock);
}

static void
user_remove(struct ibv_cq *ibv, struct polca_user *user)
{
	struct polca_cq *cq = (struct polca_cq *)ibv;
	struct polca_user **u = user_list(cq, user->qp);

	pthread_spin_lock(&cq->lock);
	while (*u != user)
		u = &(*u)->next;
	*u = user->next;
	cq->last = NULL;
	pthread_spin_unlock(&cq->lock);
}

void
users_add(struct polca_qp *qp)
{
	const struct ibv_qp *ibv = &qp->verbs.qp;

	user_add(ibv->send_cq, &qp->send_user, qp);
	if (ibv->recv_cq != ibv->send_cq)
		user_add(ibv->recv_cq, &qp->receive_user, qp);
}

void
users_remove(struct polca_qp *qp)
{
	const struct ibv_qp *ibv = &qp->verbs.qp;

	user_remove(ibv->send_cq, &qp->send_user);
	if (ibv->recv_cq != ibv->send_cq)
		user_remove(ibv->recv_cq, &qp->receive_user);
}

/* Take a queue pair's completions out of the CQ; those of others stay, in their order. */
static void
completions_remove(struct polca_cq *cq, uint32_t qpn)
{
	uint32_t i = ring_ready(&cq->ring), to = cq->ring.index + i;
	const struct ring_completion *completion;

	while (i-- > 0) {
		completion = ring_entry(&cq->ring, cq->ring.index + i);
		if (completion->qp_num != qpn)
			*(struct ring_completion *)ring_entry(&cq->ring, --to) = *completion;
	}
	__atomic_store_n(&cq->ring.index, to, __ATOMIC_RELAXED);
	ring_publish(&cq->ring);
}

void
users_reset(struct polca_qp *qp)
{
	struct polca_cq *send = (struct polca_cq *)qp->verbs.qp.send_cq;
	struct polca_cq *receive = (struct polca_cq *)qp->verbs.qp.recv_cq;

	pthread_spin_lock(&send->lock);
	completions_remove(send, qp->verbs.qp.qp_num);
	qp->send_done = qp->send.index;
	pthread_spin_unlock(&send->lock);
	pthread_spin_lock(&receive->lock);
	completions_remove(receive, qp->verbs.qp.qp_num);
	qp->receive_done = qp->receive.index;
	pthread_spin_unlock(&receive->lock);
}

/* --- completions --- */

static bool
send_is_signaled(const struct polca_qp *qp, const struct ring_send *wqe)
{
	return qp->sq_sig_all || (wqe->flags & IBV_SEND_SIGNALED) != 0;
}

/* Of those that were posted: a batch of ibv_wr_* that is being made has entries, too. */
static uint32_t
requests_left(const struct ring_end *ring, const uint32_t *done)
{
	return __atomic_load_n(ring->own, __ATOMIC_ACQUIRE) - *done;
}

/* The places of the oldest @p n requests are free; what was read of them was read before. */
static void
requests_end(uint32_t *done, uint32_t n)
{
	__atomic_store_n(done, *done + n, __ATOMIC_RELEASE);
}

/*
 * A completion also ends the requests before it, which had none of their own: the first signaled
 * request at the latest is its own. One that failed has a completion in any case; if several have
 * its wr_id, the last of them counts, since a request that is never ended would fill its place for
 * good. A completion whose wr_id is no outstanding request's ends nothing.
 */
static void
retire_send(struct polca_qp *qp, const struct ring_completion *completion)
{
	bool failed = completion->status != IBV_WC_SUCCESS;
	uint32_t left = requests_left(&qp->send, &qp->send_done), end = 0, i;
	const struct ring_send *wqe;
	bool signaled = false;

	for (i = 0; i < left && !signaled; i++) {
		wqe = ring_entry(&qp->send, qp->send_done + i);
		signaled = send_is_signaled(qp, wqe);
		if (wqe->wr_id == completion->wr_id && (signaled || failed))
			end = i + 1;
	}
	if (end > 0)
		requests_end(&qp->send_done, end);
}

/* Receives complete in order. */
static void
retire_receive(struct polca_qp *qp, const struct ring_completion *completion)
{
	const struct ring_receive *wqe = ring_entry(&qp->receive, qp->receive_done);

	if (requests_left(&qp->receive, &qp->receive_done) > 0 && wqe->wr_id == completion->wr_id)
		requests_end(&qp->receive_done, 1);
}

void
retire(struct polca_cq *cq, const struct ring_completion *completion)
{
	struct polca_qp *qp = cq->last;
	struct polca_user *u;

	if (qp == NULL || qp->verbs.qp.qp_num != completion->qp_num) {
		u = cq->users[completion->qp_num % POLCA_USER_LISTS];
		while (u != NULL && u->qp->verbs.qp.qp_num != completion->qp_num)
			u = u->next;
		if (u == NULL)
			return; /* destroyed */
		qp = cq->last = u->qp;
	}
	if ((completion->opcode & IBV_WC_RECV) == 0)
		retire_send(qp, completion);
	else if (qp->receive.entries != NULL)
		retire_receive(qp, completion);
}

/* --- without polca --- */

static enum ibv_wc_opcode
completion_opcode(uint8_t opcode)
{
	static const enum ibv_wc_opcode of[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	};

	return opcode < sizeof(of) / sizeof(of[0]) ? of[opcode] : IBV_WC_SEND;
}

static void
flush_one(const struct polca_qp *qp, uint64_t wr_id, enum ibv_wc_opcode opcode, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->status = IBV_WC_WR_FLUSH_ERR;
	wc->opcode = opcode;
	wc->qp_num = qp->verbs.qp.qp_num;
}

/*
 * Without the queue's lock, which the same thread may hold: ibv_wr_start() has taken it. What is
 * flushed was published, and stays as it is until it has ended.
 */
static int
flush_sends(struct polca_qp *qp, int num, struct ibv_wc *wc)
{
	const struct ring_send *wqe;
	int n = 0;

	while (n < num && requests_left(&qp->send, &qp->send_done) > 0) {
		wqe = ring_entry(&qp->send, qp->send_done);
		flush_one(qp, wqe->wr_id, completion_opcode(wqe->opcode), &wc[n++]);
		requests_end(&qp->send_done, 1);
	}
	/* there is room again for what the program goes on to post */
	__atomic_store_n(&qp->queue.shared->send_tail, qp->send_done, __ATOMIC_RELEASE);
	return n;
}

static int
flush_receives(struct polca_qp *qp, int num, struct ibv_wc *wc)
{
	const struct ring_receive *wqe;
	int n = 0;

	if (qp->receive.entries == NULL)
		return 0;
	while (n < num && requests_left(&qp->receive, &qp->receive_done) > 0) {
		wqe = ring_entry(&qp->receive, qp->receive_done);
		flush_one(qp, wqe->wr_id, IBV_WC_RECV, &wc[n++]);
		requests_end(&qp->receive_done, 1);
	}
	__atomic_store_n(&qp->queue.shared->receive_tail, qp->receive_done, __ATOMIC_RELEASE);
	return n;
}

int
retire_flushed(struct polca_cq *cq, int num, struct ibv_wc *wc)
{
	const struct polca_user *u;
	int n = 0;

	for (unsigned int i = 0; i < POLCA_USER_LISTS; i++)
		for (u = cq->users[i]; u != NULL && n < num; u = u->next) {
			const struct ibv_qp *ibv = &u->qp->verbs.qp;

			if (ibv->send_cq == &cq->ibv)
				n += flush_sends(u->qp, num - n, wc + n);
			if (ibv->recv_cq == &cq->ibv)
				n += flush_receives(u->qp, num - n, wc + n);
		}
	return n;
}
