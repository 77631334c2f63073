/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Shared receive queues.
 */

#include <errno.h>
#include <stdlib.h>

#include "provider.h"

struct ibv_srq *
polca_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct polca_context *c = context_of(pd->context);
	struct polca_srq *srq = calloc(1, sizeof(*srq));
	const struct ring_queue_reply *made;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	if (srq == NULL)
		return NULL;
	object_begin(c, &srq->object, &srq->ibv, -1);
	req.srq = (struct ring_srq_create){
		.cookie = srq->object.cookie,
		.pd = ((struct polca_pd *)pd)->slot,
		.max_wr = init->attr.max_wr,
		.max_sge = init->attr.max_sge,
	};
	rc = POLCA_CALL(c, RING_SRQ_CREATE, &req, srq, &reply);
	if (rc != 0) {
		free(srq);
		errno = rc;
		return NULL;
	}
	made = &reply.queue;
	srq->queue = (struct polca_queue){ c, &c->queues[made->slot], made->slot };
	ring_end_init(&srq->receive, c->segment + made->receive_entries, made->receive_num,
		made->receive_stride, &srq->queue.shared->receive_head,
		&srq->queue.shared->receive_tail);
	pthread_spin_init(&srq->lock, PTHREAD_PROCESS_PRIVATE);
	init->attr.max_wr = made->caps.max_recv_wr;
	init->attr.max_sge = made->caps.max_recv_sge;
	/* with no limit: that is ibv_modify_srq()'s */
	srq->attr = (struct ibv_srq_attr){
		.max_wr = init->attr.max_wr,
		.max_sge = init->attr.max_sge,
	};
	object_add(c, &srq->object);
	return &srq->ibv;
}

int
polca_destroy_srq(struct ibv_srq *ibv)
{
	struct polca_srq *srq = (struct polca_srq *)ibv;
	int rc = polca_call_destroy(srq->queue.context, RING_SRQ_DESTROY, srq->queue.slot);

	if (rc != 0)
		return rc;
	object_remove(srq->queue.context, &srq->object, -1);
	events_wait(&ibv->mutex, &ibv->cond, &ibv->events_completed, srq->object.async_events);
	pthread_spin_destroy(&srq->lock);
	free(srq);
	return 0;
}

int
polca_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct polca_srq *srq = (struct polca_srq *)ibv;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	req.srq_modify = (struct ring_srq_modify){ srq->queue.slot, attr->srq_limit };
	rc = POLCA_CALL(srq->queue.context, RING_SRQ_MODIFY, &req, srq_modify, &reply);
	if (rc == 0)
		srq->attr.srq_limit = attr->srq_limit;
	return rc;
}

/* Polca disarms the limit with its event. An older one does not say: then it is the last one. */
int
polca_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct polca_srq *srq = (struct polca_srq *)ibv;
	struct polca_context *c = srq->queue.context;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	*attr = srq->attr;
	if ((c->hello.features & RING_FEATURE_SRQ_QUERY) == 0)
		return 0;
	req.slot.slot = srq->queue.slot;
	rc = POLCA_CALL(c, RING_SRQ_QUERY, &req, slot, &reply);
	if (rc == 0)
		attr->srq_limit = reply.srq.limit;
	return rc;
}

int
polca_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct polca_srq *srq = (struct polca_srq *)ibv;
	int rc;

	pthread_spin_lock(&srq->lock);
	rc = polca_post_receives(&srq->queue, &srq->receive, srq->attr.max_sge, UINT32_MAX, wr,
		bad);
	pthread_spin_unlock(&srq->lock);
	return rc;
}
