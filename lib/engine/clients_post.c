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

#define REQUESTS_WORK_A_TURN 256 /* requests of all clients, doorbells, and looks at queues */
#define LINGER_TURNS         64 /* without a request */

_Static_assert(sizeof(struct sge) == sizeof(struct ring_sge) &&
		offsetof(struct sge, length) == offsetof(struct ring_sge, length) &&
		offsetof(struct sge, lkey) == offsetof(struct ring_sge, lkey),
	"entries of a scatter/gather list are copied as they are");
_Static_assert(sizeof(struct ring_send) + sizeof(struct sge) == RING_LINE,
	"the first entry of the list follows the header");

/* What a client may still have in this turn, and what it had. */
struct post_turn {
	int32_t credit; /* in receives; a look at a queue of which nothing is taken is one */
	int32_t send_cost;
	uint32_t posted; /* requests */
	uint32_t vain; /* such looks */
};

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

static __rte_always_inline enum post_result
post_client_send(struct worker *w, const struct client_queue *q, const uint8_t *entry)
{
	struct {
		struct ring_send wqe;
		struct sge sge[RC_SGE_MAX];
	} copy;
	const struct ring_send *wqe = &copy.wqe;
	struct send_wr wr;

	ring_copy_line(&copy, entry); /* an entry is a line at least: a request with one sge */
	if (unlikely(wqe->num_sge > q->max_send_sge || wqe->inline_len > q->max_inline))
		return POST_MALFORMED;
	if (wqe->num_sge > 1)
		ring_copy_once(&copy.sge[1], entry + RING_LINE,
			(wqe->num_sge - 1u) * (uint32_t)sizeof(copy.sge[0]) / 8);
	/* one by one: a literal would zero the fields of a bind, too */
	wr.wr_id = wqe->wr_id;
	wr.opcode = (enum wr_opcode)wqe->opcode;
	wr.send_flags = wqe->flags;
	wr.num_sge = wqe->num_sge;
	wr.sg_list = copy.sge;
	wr.inline_data = entry + sizeof(*wqe);
	wr.inline_len = wqe->inline_len;
	wr.imm_data = wqe->imm;
	wr.invalidate_rkey = wqe->imm;
	wr.remote_addr = wqe->remote_addr;
	wr.rkey = wqe->rkey;
	wr.compare_add = wqe->compare_add;
	wr.swap = wqe->swap;
	if (wr.opcode == WR_BIND_MW)
		client_fill_bind(&wr, wqe);
	return post_result_of(rc_post_send(w->rc, q->number, &wr, NULL));
}

static __rte_always_inline enum post_result
post_client_receive(struct worker *w, const struct client_queue *q, const uint8_t *entry)
{
	struct sge sge[RC_SGE_MAX];
	struct ring_receive wqe;
	struct recv_wr wr;

	ring_copy_pair(&wqe, entry);
	if (unlikely(wqe.num_sge > q->max_recv_sge))
		return POST_MALFORMED;
	if (likely(wqe.num_sge == 1))
		ring_copy_pair(sge, entry + sizeof(wqe));
	else
		ring_copy_once(sge, entry + sizeof(wqe),
			wqe.num_sge * (uint32_t)sizeof(sge[0]) / 8);
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

/* Post entries of one ring, as far as the credit goes. @return true if it has more */
static __rte_always_inline bool
client_post_ring(struct worker *w, const struct client_queue *q, struct ring_end *ring,
	enum post_result (*post)(struct worker *, const struct client_queue *, const uint8_t *),
	int32_t cost, struct post_turn *t)
{
	uint32_t ready = ring_ready(ring), i;
	enum post_result result;

	ring_prefetch_oldest(ring, RTE_MIN(ready, (uint32_t)RTE_MAX(t->credit, 0)));
	for (i = 0; i < ready && t->credit > 0; i++) {
		result = post(w, q, ring_oldest(ring));
		if (result == POST_NO_ROOM)
			break;
		if (unlikely(result == POST_MALFORMED))
			client_fail_request(w, q, ring);
		ring->index++;
		t->credit -= cost;
	}
	/* the entries are free before their completions are visible: who polls may post at once */
	if (i > 0)
		ring_publish(ring);
	t->posted += i;
	return i < ready;
}

/* @return true if it has more */
static bool
client_post_queue(struct worker *w, struct client_queue *q, struct post_turn *t)
{
	bool more = false;

	if (q->receive.entries != NULL)
		more = client_post_ring(w, q, &q->receive, post_client_receive, 1, t);
	if (q->send.entries != NULL)
		more |= client_post_ring(w, q, &q->send, post_client_send, t->send_cost, t);
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

/*
 * Queues that had more than a turn takes, or more than lib/rc had room for: each once at most. A
 * look at a queue costs the worker about what a request does, so it is paid from the same share.
 */
static void
client_post_waiting(struct worker *w, struct verbs_client *c, struct post_turn *t)
{
	const struct client_queue *last = TAILQ_LAST(&c->waiting, client_waiting);
	struct client_queue *q;
	uint32_t before;

	do {
		q = TAILQ_FIRST(&c->waiting);
		before = t->posted;
		TAILQ_REMOVE(&c->waiting, q, waiting_link);
		q->waits = false;
		if (client_post_queue(w, q, t))
			client_queue_waits(c, q);
		if (t->posted == before) {
			t->credit--;
			t->vain++;
		}
	} while (q != last && t->credit > 0);
}

/* --- queues that linger: a program that posts one request after another rings once --- */

static void
client_linger_end(struct verbs_client *c, struct client_queue *q)
{
	uint32_t i = 0;

	while (c->lingering[i] != q)
		i++;
	c->lingering[i] = c->lingering[--c->num_lingering];
	q->lingers = false;
}

void
client_queue_forget(struct verbs_client *c, struct client_queue *q)
{
	if (q->waits)
		TAILQ_REMOVE(&c->waiting, q, waiting_link);
	if (q->lingers)
		client_linger_end(c, q);
}

/*
 * The worker has taken the queue's doorbell. With room in the table the queue lingers there, and
 * its flag stays set; else the next request rings again.
 */
static void
client_linger(struct verbs_client *c, struct client_queue *q)
{
	q->quiet = 0;
	if (q->lingers)
		return;
	if (c->num_lingering == CLIENT_LINGERING) {
		ring_doorbell_clear(q->shared);
		return;
	}
	q->lingers = true;
	c->lingering[c->num_lingering++] = q;
}

static bool
client_queue_is_ready(struct client_queue *q)
{
	return (q->send.entries != NULL && ring_ready(&q->send) > 0) ||
		(q->receive.entries != NULL && ring_ready(&q->receive) > 0);
}

/*
 * Queues that linger join those that wait. One of which nothing was taken for long, also because
 * lib/rc has no room, goes after a last look: the worker may sleep.
 */
static void
client_look_at_lingering(struct verbs_client *c)
{
	struct client_queue *q;
	uint32_t i, taken;

	for (i = c->num_lingering; i > 0; i--) {
		q = c->lingering[i - 1];
		taken = q->send.index + q->receive.index;
		q->quiet = taken != q->taken ? 0 : q->quiet + 1;
		q->taken = taken;
		if (unlikely(q->quiet == LINGER_TURNS)) {
			client_linger_end(c, q);
			ring_doorbell_clear(q->shared);
		} else if (!client_queue_is_ready(q)) {
			continue;
		}
		client_queue_waits(c, q);
	}
}

/*
 * Queues that the client has rung for join those that wait: so each gets its part of the share,
 * whatever the client posts to the others. @return doorbells
 */
static uint32_t
client_hear(struct verbs_client *c, uint32_t max)
{
	struct client_queue *q;
	uint32_t bells, slot;

	for (bells = 0; bells < max && ring_doorbell_take(&c->doorbells, &slot); bells++) {
		q = c->queue[slot];
		if (unlikely(q == NULL)) {
			ring_doorbell_clear(&c->shared_queues[slot]);
			continue;
		}
		client_linger(c, q);
		client_queue_waits(c, q);
	}
	return bells;
}

/*
 * Deficit round robin: a client that has overdrawn its share has less of its next one, and none
 * keeps what it has not used.
 *
 * @param work  is increased by requests, doorbells and queues that linger, so the worker does not
 *  sleep while one does; it may while a queue waits for room in lib/rc
 * @return what counts for the turn: all that, and looks in vain
 */
static unsigned int
client_post(struct worker *w, struct verbs_client *c, unsigned int *work)
{
	const struct client_share *share = client_share_of(w, c);
	struct post_turn t = {
		.credit = share->requests + RTE_MIN(c->credit, 0),
		.send_cost = share->send,
	};
	uint32_t lingering = c->num_lingering, bells;
	bool more;

	if (lingering > 0)
		client_look_at_lingering(c);
	bells = client_hear(c, (uint32_t)share->requests);
	if (!TAILQ_EMPTY(&c->waiting))
		client_post_waiting(w, c, &t);
	c->credit = t.credit;
	if (t.posted > 0)
		client_count(&c->posted, t.posted);
	more = !TAILQ_EMPTY(&c->waiting) || ring_doorbell_waits(&c->doorbells);
	if (!more)
		client_turns_had(w, c, t.posted);
	client_turns_again(w, c, more || bells > 0 || c->num_lingering > 0);
	/* a turn that ended before all queues had theirs is followed by another at once */
	*work += lingering + bells + t.posted + (t.credit <= 0);
	return lingering + bells + t.posted + t.vain;
}

/*
 * A turn goes on where the one before had to end, so a client that posts without end delays others
 * by its share only.
 */
unsigned int
clients_post(struct worker *w)
{
	struct client_turns *turns = &w->clients.turns;
	struct verbs_client *c, *last;
	unsigned int work = 0, turn = 0;

	client_turns_look(w);
	last = TAILQ_LAST(turns, client_turns);
	if (last == NULL)
		return 0;
	do {
		c = TAILQ_FIRST(turns);
		TAILQ_REMOVE(turns, c, turn_link);
		turn += client_post(w, c, &work);
	} while (c != last && turn < REQUESTS_WORK_A_TURN);
	return work;
}
