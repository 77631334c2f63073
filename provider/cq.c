/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion queues: a worker writes, the program polls. An empty poll is one load.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "channel.h"
#include "provider.h"

struct ibv_cq *
polca_create_cq(struct ibv_context *context, int cqe, struct ibv_comp_channel *channel, int vector)
{
	struct polca_context *c = context_of(context);
	struct polca_cq *cq = calloc(1, sizeof(*cq));
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int back = -1, rc;

	if (cq == NULL)
		return NULL;
	if (vector < 0 || vector >= context->num_comp_vectors) {
		free(cq);
		errno = EINVAL;
		return NULL;
	}
	req.cq.cqe = (uint32_t)cqe;
	req.cq.channel = channel != NULL ? channel_slot(c, channel->fd, &back) : RING_NONE;
	if (channel != NULL && req.cq.channel == RING_NONE) { /* another context's */
		free(cq);
		errno = EINVAL;
		return NULL;
	}
	object_begin(c, &cq->object, &cq->ibv, back);
	req.cq.cookie = cq->object.cookie;
	rc = POLCA_CALL(c, RING_CQ_CREATE, &req, cq, &reply);
	if (rc != 0) {
		free(cq);
		errno = rc;
		return NULL;
	}
	cq->slot = reply.cq.slot;
	cq->shared = &c->cqs[cq->slot];
	ring_end_init(&cq->ring, c->segment + reply.cq.entries, reply.cq.num,
		sizeof(struct ring_completion), &cq->shared->tail, &cq->shared->head);
	cq->ibv.cqe = (int)reply.cq.num;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	object_add(c, &cq->object);
	return &cq->ibv;
}

int
polca_destroy_cq(struct ibv_cq *ibv)
{
	struct polca_cq *cq = (struct polca_cq *)ibv;
	struct polca_context *c = context_of(ibv->context);
	int rc = polca_call_destroy(c, RING_CQ_DESTROY, cq->slot);

	if (rc != 0)
		return rc;
	object_remove(c, &cq->object, ibv->channel != NULL ? ibv->channel->fd : -1);
	events_wait(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed, cq->object.events);
	events_wait(&ibv->mutex, &ibv->cond, &ibv->async_events_completed, cq->object.async_events);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

static void
cq_read(const struct ring_completion *from, struct ibv_wc *wc)
{
	wc->wr_id = from->wr_id;
	wc->status = (enum ibv_wc_status)from->status;
	wc->opcode = (enum ibv_wc_opcode)from->opcode;
	wc->vendor_err = 0;
	wc->byte_len = from->byte_len;
	wc->qp_num = from->qp_num;
	wc->src_qp = from->src_qp;
	wc->wc_flags = from->flags;
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
	if (from->flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = from->imm;
	else
		wc->imm_data = htonl(from->imm);
}

/*
 * Polca is gone, and its completions are all polled: what was posted is flushed. Then an error, or
 * a program that waits for something else would poll for ever.
 */
static int
cq_poll_dead(struct polca_cq *cq, int num, struct ibv_wc *wc)
{
	int n;

	pthread_spin_lock(&cq->lock);
	n = ring_ready(&cq->ring) == 0 ? retire_flushed(cq, num, wc) : 0;
	pthread_spin_unlock(&cq->lock);
	return n > 0 || num == 0 || ring_ready(&cq->ring) > 0 ? n : -1;
}

int
polca_poll_cq(struct ibv_cq *ibv, int num, struct ibv_wc *wc)
{
	struct polca_cq *cq = (struct polca_cq *)ibv;
	uint32_t ready;
	int i;

	if (__atomic_load_n(cq->ring.others, __ATOMIC_RELAXED) ==
		__atomic_load_n(&cq->ring.index, __ATOMIC_RELAXED))
		return polca_is_dead(context_of(ibv->context)) ? cq_poll_dead(cq, num, wc) : 0;
	pthread_spin_lock(&cq->lock);
	ready = ring_ready(&cq->ring);
	for (i = 0; i < num && (uint32_t)i < ready; i++) {
		cq_read(ring_oldest(&cq->ring), &wc[i]);
		retire(cq, ring_oldest(&cq->ring));
		__atomic_store_n(&cq->ring.index, cq->ring.index + 1, __ATOMIC_RELAXED);
	}
	ring_publish(&cq->ring);
	pthread_spin_unlock(&cq->lock);
	return i;
}

/* The caller polls once more after this call, and so finds what came before it. */
int
polca_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct ring_cq *shared = ((struct polca_cq *)ibv)->shared;
	uint32_t arm = solicited_only ? RING_ARMED_SOLICITED : RING_ARMED_ANY;

	if (__atomic_load_n(&shared->armed, __ATOMIC_RELAXED) < arm)
		__atomic_store_n(&shared->armed, arm, __ATOMIC_RELAXED);
	/*
	 * Store .armed, then let the caller's next poll load the ring's index. The worker
	 * (client_cq_event()) stores the index, then loads .armed. Acquire and release cannot order
	 * a store before a later load.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (polca_is_dead(context_of(ibv->context)))
		event_wake(&((struct polca_cq *)ibv)->object);
	return 0;
}
