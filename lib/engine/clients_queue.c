/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What queue pairs and shared receive queues of clients have in common: a slot in the client's
 * table, rings in its segment, and their end.
 */

#include <errno.h>
#include <stdlib.h>

#include "engine/clients_private.h"

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
uint32_t
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

void
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

int
client_rings_make(struct verbs_client *c, struct client_queue *q, uint32_t slot, bool send,
	bool receive, struct error *err)
{
	struct ring_queue *shared = &c->shared_queues[slot];
	int rc = 0;

	*shared = (struct ring_queue){ 0 };
	q->shared = shared;
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

void
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

/* --- destroy --- */

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
		c->use.srqs--;
	else
		c->use.qps--;
	c->use.requests -= client_queue_requests(q);
	free(q);
}

int
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

/*
 * One command for all queues, QPs before the SRQs that they use. The client is detached, so its
 * list .waiting is free for those that the control thread frees.
 */
static int
client_queues_destroy_here(struct worker *w, void *arg)
{
	struct client_queue_call *a = arg;
	struct verbs_client *c = a->client;
	struct client_queue *q;
	uint32_t slot;

	TAILQ_INIT(&c->waiting);
	c->num_lingering = 0;
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
		if (q != NULL)
			TAILQ_INSERT_TAIL(&c->waiting, q, waiting_link);
	}
	return 0;
}

void
client_queues_destroy(struct verbs_client *c)
{
	struct client_queue_call call = { .client = c };
	struct client_queue *q;

	engine_call(c->engine, c->worker, client_queues_destroy_here, &call);
	while ((q = TAILQ_FIRST(&c->waiting)) != NULL) {
		TAILQ_REMOVE(&c->waiting, q, waiting_link);
		q->srq = NULL; /* it may be free already */
		client_queue_free(c, q);
	}
}
