/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which requests are outstanding. A ring's entry stays as it was posted until the program posts
 * into its place, which it does not while the request may still be outstanding. So it is enough to
 * count what completions say is done; if polca dies, what lies between that and the newest
 * request is flushed, from the entries themselves.
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

void
users_reset(struct polca_qp *qp)
{
	struct polca_cq *send = (struct polca_cq *)qp->verbs.qp.send_cq;
	struct polca_cq *receive = (struct polca_cq *)qp->verbs.qp.recv_cq;

	pthread_spin_lock(&send->lock);
	qp->send_done = qp->send.index;
	pthread_spin_unlock(&send->lock);
	pthread_spin_lock(&receive->lock);
	qp->receive_done = qp->receive.index;
	pthread_spin_unlock(&receive->lock);
}

/* --- completions --- */

static bool
send_is_signaled(const struct polca_qp *qp, uint32_t index)
{
	const struct ring_send *wqe = ring_entry(&qp->send, index);

	return qp->sq_sig_all || (wqe->flags & IBV_SEND_SIGNALED) != 0;
}

/* Requests that may be outstanding; a program that never asks for completions has a ring full. */
static uint32_t
requests_left(const struct ring_end *ring, uint32_t *done)
{
	uint32_t index = __atomic_load_n(&ring->index, __ATOMIC_RELAXED);

	if (index - *done > ring->mask + 1)
		*done = index - (ring->mask + 1);
	return index - *done;
}

/* A completion also ends the requests before it, which had none of their own. */
static void
retire_send(struct polca_qp *qp, const struct ring_completion *completion)
{
	uint32_t left = requests_left(&qp->send, &qp->send_done), i = 0;
	const struct ring_send *wqe;

	if (completion->status == IBV_WC_SUCCESS) {
		while (i < left && !send_is_signaled(qp, qp->send_done + i))
			i++;
	} else { /* a failed request has a completion in any case */
		for (; i < left; i++) {
			wqe = ring_entry(&qp->send, qp->send_done + i);
			if (wqe->wr_id == completion->wr_id)
				break;
		}
	}
	if (i < left)
		qp->send_done += i + 1;
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
	else if (qp->receive.entries != NULL && requests_left(&qp->receive, &qp->receive_done) > 0)
		qp->receive_done++;
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

static int
flush_sends(struct polca_qp *qp, int num, struct ibv_wc *wc)
{
	const struct ring_send *wqe;
	int n = 0;

	pthread_spin_lock(&qp->send_lock);
	while (n < num && requests_left(&qp->send, &qp->send_done) > 0) {
		wqe = ring_entry(&qp->send, qp->send_done++);
		flush_one(qp, wqe->wr_id, completion_opcode(wqe->opcode), &wc[n++]);
	}
	/* there is room again for what the program goes on to post */
	__atomic_store_n(&qp->queue.shared->send_tail, qp->send_done, __ATOMIC_RELEASE);
	pthread_spin_unlock(&qp->send_lock);
	return n;
}

static int
flush_receives(struct polca_qp *qp, int num, struct ibv_wc *wc)
{
	const struct ring_receive *wqe;
	int n = 0;

	if (qp->receive.entries == NULL)
		return 0;
	pthread_spin_lock(&qp->receive_lock);
	while (n < num && requests_left(&qp->receive, &qp->receive_done) > 0) {
		wqe = ring_entry(&qp->receive, qp->receive_done++);
		flush_one(qp, wqe->wr_id, IBV_WC_RECV, &wc[n++]);
	}
	__atomic_store_n(&qp->queue.shared->receive_tail, qp->receive_done, __ATOMIC_RELEASE);
	pthread_spin_unlock(&qp->receive_lock);
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
