/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' queue pairs and shared receive queues. Each gets its rings in the client's segment, and
 * is made on the client's worker, which publishes it in the client's table in the same command.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/clients_private.h"
#include "engine/clients_worker.h"

struct client_queue_call {
	struct verbs_client *client;
	struct client_queue *queue;
	uint32_t slot;
	const struct qp_init_attr *init; /* of a QP */
	const struct ring_srq_create *srq; /* of an SRQ */
	uint32_t pd;
	uint32_t limit;
	struct error *err;
};

static struct client_queue *
client_queue_at(const struct verbs_client *c, const char *what, bool is_srq, uint32_t slot,
	struct error *err)
{
	if (slot < c->segment.geometry.num_queues && c->queue[slot] != NULL &&
		c->queue[slot]->is_srq == is_srq)
		return c->queue[slot];
	error_set(err, EINVAL, "%s: there is none in slot %u", what, slot);
	return NULL;
}

struct client_queue *
client_qp_at(const struct verbs_client *c, uint32_t slot, struct error *err)
{
	return client_queue_at(c, "qp", false, slot, err);
}

struct client_queue *
client_srq_at(const struct verbs_client *c, uint32_t slot, struct error *err)
{
	return client_queue_at(c, "srq", true, slot, err);
}

/* The table has a place for each queue that the limits allow. */
static uint32_t
client_free_slot(const struct verbs_client *c)
{
	uint32_t slot = 0;

	while (c->queue[slot] != NULL)
		slot++;
	return slot;
}

/* --- rings --- */

static uint64_t
client_ring_bytes(const struct ring_end *r)
{
	return r->entries == NULL ? 0 : ((uint64_t)r->mask + 1) * r->stride;
}

static void
client_rings_free(struct verbs_client *c, const struct client_queue *q)
{
	client_segment_free(&c->segment, q->send_offset, client_ring_bytes(&q->send));
	client_segment_free(&c->segment, q->receive_offset, client_ring_bytes(&q->receive));
}

static int
client_ring_make(struct verbs_client *c, struct ring_end *r, uint32_t max_wr, uint32_t stride,
	uint32_t *own, const uint32_t *others, uint64_t *offset, struct error *err)
{
	uint32_t num = ring_entries(max_wr);
	int rc = client_segment_alloc(&c->segment, (uint64_t)num * stride, offset, err);

	if (rc == 0)
		ring_end_init(r, client_segment_at(&c->segment, *offset), num, stride, own, others);
	return rc;
}

static int
client_rings_make(struct verbs_client *c, struct client_queue *q, uint32_t slot, bool send,
	bool receive, struct error *err)
{
	struct ring_queue *shared = &c->shared_queues[slot];
	int rc = 0;

	*shared = (struct ring_queue){ 0 };
	if (send)
		rc = client_ring_make(c, &q->send, q->caps.max_send_wr,
			ring_send_stride(q->caps.max_send_sge, q->caps.max_inline_data),
			&shared->send_tail, &shared->send_head, &q->send_offset, err);
	if (rc == 0 && receive)
		rc = client_ring_make(c, &q->receive, q->caps.max_recv_wr,
			ring_receive_stride(q->caps.max_recv_sge), &shared->receive_tail,
			&shared->receive_head, &q->receive_offset, err);
	q->max_send_sge = (uint8_t)q->caps.max_send_sge;
	q->max_recv_sge = (uint8_t)q->caps.max_recv_sge;
	q->max_inline = (uint16_t)q->caps.max_inline_data;
	return rc;
}

static void
client_queue_reply(const struct client_queue *q, uint32_t slot, struct ring_queue_reply *reply)
{
	*reply = (struct ring_queue_reply){
		.send_entries = q->send_offset,
		.receive_entries = q->receive_offset,
		.slot = slot,
		.number = q->number,
		.send_num = q->send.entries != NULL ? q->send.mask + 1 : 0,
		.receive_num = q->receive.entries != NULL ? q->receive.mask + 1 : 0,
		.send_stride = q->send.stride,
		.receive_stride = q->receive.stride,
		.caps = q->caps,
	};
}

/* --- create --- */

static int
client_qp_create_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	int rc = rc_qp_create(w->rc, a->init, &a->queue->number, a->err);

	if (rc == 0)
		a->client->queue[a->slot] = a->queue;
	return rc;
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

/* The caps a QP gets: at least one request in each queue, and the inline bytes that fit anyway. */
static struct ring_caps
client_caps(const struct ring_caps *asked, bool srq)
{
	struct ring_caps caps = *asked;

	caps.max_send_wr = RTE_MAX(caps.max_send_wr, 1u);
	caps.max_send_sge = RTE_MAX(caps.max_send_sge, 1u);
	caps.max_recv_wr = srq ? 0 : RTE_MAX(caps.max_recv_wr, 1u);
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
	q->caps = client_caps(&req->caps, q->srq != NULL);
	init.cap = (struct qp_cap){
		.max_send_wr = q->caps.max_send_wr,
		.max_recv_wr = q->caps.max_recv_wr,
		.max_send_sge = q->caps.max_send_sge,
		.max_recv_sge = q->caps.max_recv_sge,
		.max_inline_data = q->caps.max_inline_data,
	};
	init.sq_sig_all = req->sq_sig_all != 0;
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

	if (c->num_qps == c->limits.max_qp)
		return error_set(err, ENOMEM, "qp: all %u are in use (verbs.max_qp)",
			c->limits.max_qp);
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
	c->num_qps++;
	if (q->srq != NULL)
		q->srq->users++;
	client_queue_reply(q, call.slot, reply);
	return 0;
}

static int
client_srq_create_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	int rc = rc_srq_create(w->rc, a->pd, a->srq->max_wr, a->queue->caps.max_recv_sge,
		&a->queue->number, a->err);

	if (rc != 0)
		return rc;
	if (a->srq->limit > 0)
		rc_srq_modify(w->rc, a->queue->number, a->srq->limit, NULL);
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

	if (c->num_srqs == c->limits.max_srq)
		return error_set(err, ENOMEM, "srq: all %u are in use (verbs.max_srq)",
			c->limits.max_srq);
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
	c->num_srqs++;
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

/* --- destroy --- */

/* Take a queue out of the list of those that wait. */
static void
client_queue_forget(struct verbs_client *c, struct client_queue *q)
{
	struct client_queue **p = &c->waiting;

	if (!q->waits)
		return;
	while (*p != q)
		p = &(*p)->next_waiting;
	*p = q->next_waiting;
}

static int
client_queue_destroy_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	int rc = a->queue->is_srq ? rc_srq_destroy(w->rc, a->queue->number, a->err)
				  : rc_qp_destroy(w->rc, a->queue->number, a->err);

	if (rc != 0)
		return rc;
	client_queue_forget(a->client, a->queue);
	a->client->queue[a->slot] = NULL;
	return 0;
}

static void
client_queue_free(struct verbs_client *c, struct client_queue *q)
{
	client_rings_free(c, q);
	if (q->srq != NULL)
		q->srq->users--;
	if (q->is_srq)
		c->num_srqs--;
	else
		c->num_qps--;
	free(q);
}

static int
client_queue_destroy(struct verbs_client *c, struct client_queue *q, uint32_t slot,
	struct error *err)
{
	struct client_queue_call call = {
		.client = c,
		.queue = q,
		.slot = slot,
		.err = err,
	};
	int rc = engine_call(c->engine, c->worker, client_queue_destroy_here, &call);

	if (rc == 0)
		client_queue_free(c, q);
	return rc;
}

int
engine_client_qp_destroy(struct verbs_client *c, uint32_t slot, struct error *err)
{
	struct client_queue *q = client_qp_at(c, slot, err);

	return q == NULL ? -EINVAL : client_queue_destroy(c, q, slot, err);
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

/* One command for all queues of a kind, QPs before the SRQs that they use. */
static int
client_queues_destroy_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	struct verbs_client *c = a->client;
	struct client_queue *q;
	uint32_t slot;

	c->waiting = NULL;
	for (slot = 0; slot < c->segment.geometry.num_queues; slot++) {
		q = c->queue[slot];
		if (q != NULL && !q->is_srq)
			rc_qp_destroy(w->rc, q->number, NULL);
	}
	for (slot = 0; slot < c->segment.geometry.num_queues; slot++) {
		q = c->queue[slot];
		if (q != NULL && q->is_srq)
			rc_srq_destroy(w->rc, q->number, NULL);
		c->queue[slot] = NULL;
		if (q != NULL) {
			q->next_waiting = a->queue;
			a->queue = q;
		}
	}
	return 0;
}

void
client_queues_destroy(struct verbs_client *c)
{
	struct client_queue_call call = { .client = c };
	struct client_queue *q, *next;

	engine_call(c->engine, c->worker, client_queues_destroy_here, &call);
	for (q = call.queue; q != NULL; q = next) {
		next = q->next_waiting;
		q->srq = NULL; /* it may be free already */
		client_queue_free(c, q);
	}
}
