/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' queue pairs. Each gets its rings in the client's segment, and is made on the client's
 * worker, which publishes it in the client's table in the same command.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/clients_private.h"

static int
client_qp_create_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	int rc = rc_qp_create(w->rc, a->init, &a->queue->number, a->err);

	if (rc != 0)
		return rc;
	rc_qp_join(w->rc, a->queue->number, &a->client->share);
	a->client->queue[a->slot] = a->queue;
	return 0;
}

/* Limits of single values are lib/rc's, checked before memory for the rings is taken. */
static int
client_caps_check(const struct verbs_client *c, const struct ring_caps *caps, struct error *err)
{
	const struct rc_limits *l = &c->engine->config.limits;

	if (caps->max_send_wr > l->max_qp_wr || caps->max_recv_wr > l->max_qp_wr)
		return error_set(err, EINVAL,
			"max_send_wr, max_recv_wr: got %u and %u, allowed: up to %u",
			caps->max_send_wr, caps->max_recv_wr, l->max_qp_wr);
	if (caps->max_send_sge > l->max_sge || caps->max_recv_sge > l->max_sge)
		return error_set(err, EINVAL,
			"max_send_sge, max_recv_sge: got %u and %u, allowed: up to %u",
			caps->max_send_sge, caps->max_recv_sge, l->max_sge);
	if (caps->max_inline_data > l->max_inline)
		return error_set(err, EINVAL, "max_inline_data: got %u, allowed: up to %u",
			caps->max_inline_data, l->max_inline);
	return 0;
}

/*
 * The caps a QP gets: the requests that its rings hold, as far as the limit allows, at least one of
 * each kind, and the inline bytes that fit anyway.
 */
static struct ring_caps
client_caps(const struct ring_caps *asked, bool srq, const struct rc_limits *l)
{
	struct ring_caps caps = *asked;
	uint32_t fits;

	caps.max_send_wr = RTE_MIN(ring_entries(caps.max_send_wr), l->max_qp_wr);
	caps.max_send_sge = RTE_MAX(caps.max_send_sge, 1u);
	fits = ring_send_stride(caps.max_send_sge, caps.max_inline_data) - sizeof(struct ring_send);
	caps.max_inline_data = RTE_MIN(fits, l->max_inline);
	caps.max_recv_wr = srq ? 0 : RTE_MIN(ring_entries(caps.max_recv_wr), l->max_qp_wr);
	caps.max_recv_sge = srq ? 0 : RTE_MAX(caps.max_recv_sge, 1u);
	return caps;
}

/* Numbers of the objects that the client named. */
static int
client_qp_resolve(const struct verbs_client *c, const struct ring_qp_create *req,
	struct client_queue *q, struct qp_init_attr *init, struct error *err)
{
	struct client_cq *send = client_cq_at(c, "send_cq", req->send_cq, err);
	struct client_cq *recv =
		send == NULL ? NULL : client_cq_at(c, "recv_cq", req->recv_cq, err);
	int rc;

	if (recv == NULL)
		return -EINVAL;
	rc = client_pd_at(c, req->pd, &init->pd, err);
	if (rc != 0)
		return rc;
	init->send_cq = send->cqn;
	init->recv_cq = recv->cqn;
	init->srq = RC_NO_SRQ;
	if (req->srq == RING_NONE)
		return 0;
	q->srq = client_srq_at(c, req->srq, err);
	if (q->srq == NULL)
		return -EINVAL;
	init->srq = q->srq->number;
	return 0;
}

static int
client_qp_make(struct verbs_client *c, struct client_queue *q, const struct ring_qp_create *req,
	struct client_queue_call *call)
{
	struct qp_init_attr init = { .qp_type = QPT_RC, .pinned = true };
	int rc = client_caps_check(c, &req->caps, call->err);

	if (rc == 0)
		rc = client_qp_resolve(c, req, q, &init, call->err);
	if (rc != 0)
		return rc;
	q->cookie = req->cookie;
	q->caps = client_caps(&req->caps, q->srq != NULL, &c->engine->config.limits);
	init.cap = (struct qp_cap){
		.max_send_wr = q->caps.max_send_wr,
		.max_recv_wr = q->caps.max_recv_wr,
		.max_send_sge = q->caps.max_send_sge,
		.max_recv_sge = q->caps.max_recv_sge,
		.max_inline_data = q->caps.max_inline_data,
	};
	init.sq_sig_all = req->sq_sig_all != 0;
	rc = client_allow(c, CLIENT_LIMIT_REQUESTS, client_queue_requests(q), call->err);
	if (rc == 0)
		rc = client_rings_make(c, q, call->slot, true, q->srq == NULL, call->err);
	if (rc != 0)
		return rc;
	call->init = &init;
	return engine_call(c->engine, c->worker, client_qp_create_here, call);
}

int
engine_client_qp_create(struct verbs_client *c, const struct ring_qp_create *req,
	struct ring_queue_reply *reply, struct error *err)
{
	struct client_queue_call call = { .client = c, .err = err };
	struct client_queue *q;
	int rc;

	rc = client_allow(c, CLIENT_LIMIT_QP, 1, err);
	if (rc != 0)
		return rc;
	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return error_set(err, ENOMEM, "no memory for a queue pair");
	call.queue = q;
	call.slot = client_free_slot(c);
	rc = client_qp_make(c, q, req, &call);
	if (rc != 0) {
		client_rings_free(c, q);
		free(q);
		return rc;
	}
	c->use.qps++;
	c->use.requests += client_queue_requests(q);
	if (q->srq != NULL)
		q->srq->users++;
	client_queue_reply(q, call.slot, reply);
	return 0;
}

int
engine_client_qp_destroy(struct verbs_client *c, uint32_t slot, struct error *err)
{
	struct client_queue *q = client_qp_at(c, slot, err);

	return q == NULL ? -EINVAL : client_queue_destroy(c, q, slot, err);
}
