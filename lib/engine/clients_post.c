/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' work requests: a worker takes doorbells and posts what the queues hold into lib/rc.
 *
 * The client may change an entry at any time. So each word of it is read once, into private memory,
 * and the copy is checked. Inline data is opaque: lib/rc copies it once, from the entry.
 */

#include <errno.h>

#include "engine/clients_private.h"
#include "engine/clients_worker.h"

#define REQUESTS_A_QUEUE  64 /* and turn */
#define REQUESTS_A_CLIENT 64 /* after which the next client has its turn */
#define WORK_A_TURN       256 /* requests and doorbells of all clients */

_Static_assert(sizeof(struct sge) == sizeof(struct ring_sge) &&
		offsetof(struct sge, length) == offsetof(struct ring_sge, length) &&
		offsetof(struct sge, lkey) == offsetof(struct ring_sge, lkey),
	"entries of a scatter/gather list are copied as they are");

/* What a queue's entries still wait for. */
enum post_result {
	POST_DONE,
	POST_NO_ROOM, /* lib/rc's queue is full */
	POST_MALFORMED,
};

static enum post_result
post_result_of(int rc)
{
	if (likely(rc == 0))
		return POST_DONE;
	return rc == -ENOMEM ? POST_NO_ROOM : POST_MALFORMED;
}

static void
client_fill_bind(struct send_wr *wr, const struct ring_send *wqe)
{
	wr->bind_mw.mw_key = wqe->rkey;
	wr->bind_mw.new_key = wqe->imm;
	wr->bind_mw.mr_key = (uint32_t)wqe->swap;
	wr->bind_mw.access = (uint32_t)(wqe->swap >> 32);
	wr->bind_mw.addr = wqe->remote_addr;
	wr->bind_mw.length = wqe->compare_add;
}

static enum post_result
post_client_send(struct worker *w, const struct client_queue *q, const uint8_t *entry)
{
	struct sge sge[RC_SGE_MAX];
	struct ring_send wqe;
	struct send_wr wr;

	ring_copy_once(&wqe, entry, sizeof(wqe) / 8);
	if (unlikely(wqe.num_sge > q->max_send_sge || wqe.inline_len > q->max_inline))
		return POST_MALFORMED;
	ring_copy_once(sge, entry + sizeof(wqe), wqe.num_sge * (uint32_t)sizeof(sge[0]) / 8);
	wr = (struct send_wr){
		.wr_id = wqe.wr_id,
		.opcode = (enum wr_opcode)wqe.opcode,
		.send_flags = wqe.flags,
		.num_sge = wqe.num_sge,
		.sg_list = sge,
		.inline_data = entry + sizeof(wqe),
		.inline_len = wqe.inline_len,
		.imm_data = wqe.imm,
		.invalidate_rkey = wqe.imm,
		.remote_addr = wqe.remote_addr,
		.rkey = wqe.rkey,
		.compare_add = wqe.compare_add,
		.swap = wqe.swap,
	};
	if (wr.opcode == WR_BIND_MW)
		client_fill_bind(&wr, &wqe);
	return post_result_of(rc_post_send(w->rc, q->number, &wr, NULL));
}

static enum post_result
post_client_receive(struct worker *w, const struct client_queue *q, const uint8_t *entry)
{
	struct sge sge[RC_SGE_MAX];
	struct ring_receive wqe;
	struct recv_wr wr;

	ring_copy_once(&wqe, entry, sizeof(wqe) / 8);
	if (unlikely(wqe.num_sge > q->max_recv_sge))
		return POST_MALFORMED;
	ring_copy_once(sge, entry + sizeof(wqe), wqe.num_sge * (uint32_t)sizeof(sge[0]) / 8);
	wr = (struct recv_wr){ .wr_id = wqe.wr_id, .num_sge = wqe.num_sge, .sg_list = sge };
	return post_result_of(q->is_srq ? rc_srq_post(w->rc, q->number, &wr, NULL)
					: rc_post_recv(w->rc, q->number, &wr, NULL));
}

/*
 * A request that no provider posts. The QP goes to ERR, and the request is flushed as an empty one.
 * That of an SRQ, which has no one QP, is lost.
 */
static void
client_fail_request(struct worker *w, const struct client_queue *q, const struct ring_end *ring)
{
	const struct qp_attr error = { .qp_state = QPS_ERR };
	uint64_t wr_id;

	if (q->is_srq)
		return;
	ring_copy_once(&wr_id, ring_oldest(ring), 1);
	rc_qp_modify(w->rc, q->number, &error, QP_ATTR_STATE, NULL);
	if (ring == &q->send)
		rc_post_send(w->rc, q->number,
			&(struct send_wr){ .wr_id = wr_id, .opcode = WR_SEND }, NULL);
	else
		rc_post_recv(w->rc, q->number, &(struct recv_wr){ .wr_id = wr_id }, NULL);
}

/* Post up to @p max entries of one ring. @return true if it has more */
static bool
client_post_ring(struct worker *w, const struct client_queue *q, struct ring_end *ring,
	enum post_result (*post)(struct worker *, const struct client_queue *, const uint8_t *),
	uint32_t max, unsigned int *posted)
{
	uint32_t ready = ring_ready(ring), n = RTE_MIN(ready, max), i;
	enum post_result result = POST_DONE;

	for (i = 0; i < n && result != POST_NO_ROOM; i++) {
		result = post(w, q, ring_oldest(ring));
		if (result == POST_NO_ROOM)
			break;
		if (unlikely(result == POST_MALFORMED))
			client_fail_request(w, q, ring);
		ring->index++;
	}
	/* the entries are free before their completions are visible: who polls may post at once */
	if (i > 0)
		ring_publish(ring);
	*posted += i;
	return i < ready;
}

/* @return true if it has more */
static bool
client_post_queue(struct worker *w, struct client_queue *q, unsigned int *posted)
{
	bool more = false;

	if (q->receive.entries != NULL)
		more = client_post_ring(w, q, &q->receive, post_client_receive, REQUESTS_A_QUEUE,
			posted);
	if (q->send.entries != NULL)
		more |= client_post_ring(w, q, &q->send, post_client_send, REQUESTS_A_QUEUE,
			posted);
	return more;
}

static void
client_queue_waits(struct verbs_client *c, struct client_queue *q)
{
	if (q->waits)
		return;
	q->waits = true;
	TAILQ_INSERT_TAIL(&c->waiting, q, waiting_link);
}

/* Queues that had more than a turn takes, or more than lib/rc had room for: each once at most. */
static void
client_post_waiting(struct worker *w, struct verbs_client *c, unsigned int *posted)
{
	const struct client_queue *last = TAILQ_LAST(&c->waiting, client_waiting);
	struct client_queue *q;

	do {
		q = TAILQ_FIRST(&c->waiting);
		TAILQ_REMOVE(&c->waiting, q, waiting_link);
		q->waits = false;
		if (client_post_queue(w, q, posted))
			client_queue_waits(c, q);
	} while (q != last && *posted < REQUESTS_A_CLIENT);
}

static unsigned int
client_post(struct worker *w, struct verbs_client *c)
{
	unsigned int posted = 0, bells = 0;
	struct client_queue *q;
	uint32_t slot;

	if (unlikely(!TAILQ_EMPTY(&c->waiting)))
		client_post_waiting(w, c, &posted);
	while (bells < REQUESTS_A_CLIENT && posted < REQUESTS_A_CLIENT &&
		ring_doorbell_take(&c->doorbells, c->shared_queues, &slot)) {
		bells++;
		q = c->queue[slot];
		if (likely(q != NULL) && client_post_queue(w, q, &posted))
			client_queue_waits(c, q);
	}
	client_count(&c->posted, posted);
	return bells + posted;
}

/*
 * A turn goes on where the one before had to end, so a client that posts without end delays others
 * by its share only.
 */
unsigned int
clients_post(struct worker *w)
{
	struct verbs_client *first = w->next_client != NULL ? w->next_client : w->clients;
	struct verbs_client *c = first;
	unsigned int work = 0;

	do {
		work += client_post(w, c);
		c = c->next != NULL ? c->next : w->clients;
	} while (c != first && work < WORK_A_TURN);
	w->next_client = c;
	return work;
}
