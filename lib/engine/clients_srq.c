/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' shared receive queues. They live on the client's worker, as its queue pairs do.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/clients_private.h"

/* Requests that the program has posted and the worker has not taken yet: lib/rc's count_waiting. */
static uint32_t
client_srq_waiting(const void *queue)
{
	return ring_ready(&((const struct client_queue *)queue)->receive);
}

static int
client_srq_create_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	int rc = rc_srq_create(w->rc, a->pd, a->srq->max_wr, a->queue->caps.max_recv_sge,
		&a->queue->number, a->err);

	if (rc != 0)
		return rc;
	rc_srq_count_waiting(w->rc, a->queue->number, client_srq_waiting, a->queue);
	a->client->queue[a->slot] = a->queue;
	return 0;
}

static int
client_srq_make(struct verbs_client *c, struct client_queue *q, const struct ring_srq_create *req,
	struct client_queue_call *call)
{
	const struct rc_limits *l = &c->engine->config.limits;
	int rc;

	if (req->max_wr == 0 || req->max_wr > l->max_srq_wr || req->max_sge > l->max_sge)
		return error_set(call->err, EINVAL,
			"max_wr, max_sge: got %u and %u, allowed: 1 to %u, and up to %u",
			req->max_wr, req->max_sge, l->max_srq_wr, l->max_sge);
	rc = client_pd_at(c, req->pd, &call->pd, call->err);
	if (rc != 0)
		return rc;
	q->is_srq = true;
	q->cookie = req->cookie;
	q->caps = (struct ring_caps){
		.max_recv_wr = req->max_wr,
		.max_recv_sge = RTE_MAX(req->max_sge, 1u),
	};
	rc = client_allow(c, CLIENT_LIMIT_REQUESTS, client_queue_requests(q), call->err);
	if (rc == 0)
		rc = client_rings_make(c, q, call->slot, false, true, call->err);
	call->srq = req;
	return rc != 0 ? rc : engine_call(c->engine, c->worker, client_srq_create_here, call);
}

int
engine_client_srq_create(struct verbs_client *c, const struct ring_srq_create *req,
	struct ring_queue_reply *reply, struct error *err)
{
	struct client_queue_call call = { .client = c, .err = err };
	struct client_queue *q;
	int rc;

	rc = client_allow(c, CLIENT_LIMIT_SRQ, 1, err);
	if (rc != 0)
		return rc;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return error_set(err, ENOMEM, "no memory for a shared receive queue");
	call.queue = q;
	call.slot = client_free_slot(c);
	rc = client_srq_make(c, q, req, &call);
	if (rc != 0) {
		client_rings_free(c, q);
		free(q);
		return rc;
	}
	c->use.srqs++;
	c->use.requests += client_queue_requests(q);
	client_queue_reply(q, call.slot, reply);
	return 0;
}

static int
client_srq_modify_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;

	return rc_srq_modify(w->rc, a->queue->number, a->limit, a->err);
}

int
engine_client_srq_modify(struct verbs_client *c, const struct ring_srq_modify *modify,
	struct error *err)
{
	struct client_queue_call call = { .client = c, .limit = modify->limit, .err = err };

	call.queue = client_srq_at(c, modify->slot, err);
	if (call.queue == NULL)
		return -EINVAL;
	return engine_call(c->engine, c->worker, client_srq_modify_here, &call);
}

static int
client_srq_query_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	struct rc_srq_info info;
	int rc = rc_srq_query(w->rc, a->queue->number, &info);

	if (rc == 0)
		a->limit = info.limit;
	return rc;
}

int
engine_client_srq_query(struct verbs_client *c, uint32_t slot, struct ring_srq_reply *reply,
	struct error *err)
{
	struct client_queue_call call = { .client = c, .err = err };
	int rc;

	call.queue = client_srq_at(c, slot, err);
	if (call.queue == NULL)
		return -EINVAL;
	rc = engine_call(c->engine, c->worker, client_srq_query_here, &call);
	if (rc != 0)
		return error_set(err, -rc, "srq: there is none on the client's worker");
	reply->limit = call.limit;
	return 0;
}

int
engine_client_srq_destroy(struct verbs_client *c, uint32_t slot, struct error *err)
{
	struct client_queue *q = client_srq_at(c, slot, err);

	if (q == NULL)
		return -EINVAL;
	if (q->users > 0)
		return error_set(err, EBUSY, "srq: %u queue pairs use it", q->users);
	return client_queue_destroy(c, q, slot, err);
}
