/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' completions: the worker is the poller of its clients' CQs in lib/rc and copies what it
 * finds to the clients' rings. A client that does not poll fills its ring, and then overruns its
 * CQ.
 */

#include <errno.h>
#include <unistd.h>

#include "engine/clients_private.h"
#include "engine/clients_worker.h"

#define COMPLETIONS_A_COPY 32
/* a turn ends after so much work: a completion and a look at a queue are 1 */
#define COMPLETIONS_WORK_A_TURN 512
#define WORK_OF_AN_EVENT        16 /* a system call */

/* At the end: a queue that has more waits until the client's others had their turn. */
static void
client_cq_list(struct worker *w, struct client_cq *cq)
{
	struct verbs_client *c = cq->client;

	if (cq->listed)
		return;
	cq->listed = true;
	if (TAILQ_EMPTY(&c->due))
		TAILQ_INSERT_TAIL(&w->clients.completing, c, completing_link);
	TAILQ_INSERT_TAIL(&c->due, cq, due_link);
}

void
client_cq_completed(void *worker, uint32_t cqn, bool solicited)
{
	struct worker *w = worker;
	struct client_cq *cq = w->engine->client_cqs[cqn];

	cq->solicited |= solicited;
	client_cq_list(w, cq);
}

static void
client_write_completion(struct ring_completion *to, const struct wc *wc)
{
	to->wr_id = wc->wr_id;
	to->byte_len = wc->byte_len;
	to->imm = wc->imm_data;
	to->qp_num = wc->qp_num;
	to->mw_key = wc->mw_key;
	to->src_qp = 0;
	to->status = (uint8_t)wc->status;
	to->opcode = (uint8_t)wc->opcode;
	to->flags = (uint8_t)wc->wc_flags;
	to->reserved = 0;
}

/*
 * Tell the program that sleeps on the CQ's channel, if it asked for it. The write never waits; a
 * full pipe has events that the program has not yet read.
 *
 * @param more  completions are still to be copied, of which one may be solicited
 * @return work
 */
static unsigned int
client_cq_event(struct client_cq *cq, bool more)
{
	bool solicited = cq->solicited;
	const struct ring_completion_event event = { cq->cookie };
	uint32_t armed;
	ssize_t n;

	cq->solicited = solicited && more;
	/*
	 * Store the ring's index, then load .armed. The client (polca_req_notify_cq()) stores
	 * .armed, then loads the index. Acquire and release cannot order a store before a later
	 * load.
	 */
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	armed = __atomic_load_n(&cq->shared->armed, __ATOMIC_RELAXED);
	if (armed == 0 || (armed == RING_ARMED_SOLICITED && !solicited))
		return 0;
	__atomic_store_n(&cq->shared->armed, 0, __ATOMIC_RELAXED);
	n = write(cq->event_fd, &event, sizeof(event));
	RTE_SET_USED(n);
	return WORK_OF_AN_EVENT;
}

/*
 * Copy as many completions as the client's ring has room for, and its share allows.
 *
 * @param copied  is increased by their number
 * @return true if it stopped there: there may be more completions
 */
static bool
client_cq_copy(struct rc_dev *dev, struct client_cq *cq, uint32_t max, unsigned int *copied)
{
	struct wc wc[COMPLETIONS_A_COPY];
	uint32_t room, done = 0, i;
	int n;

	do {
		room = RTE_MIN(ring_room_for(&cq->ring, COMPLETIONS_A_COPY), max - done);
		n = rc_cq_poll(dev, cq->cqn, wc, RTE_MIN(room, (uint32_t)COMPLETIONS_A_COPY));
		for (i = 0; n > 0 && i < (uint32_t)n; i++) {
			client_write_completion(ring_next_free(&cq->ring), &wc[i]);
			cq->ring.index++;
		}
		done += n > 0 ? (uint32_t)n : 0;
		/* a CQ that has moved may give fewer than it has, where a fence was in the way */
	} while (n == COMPLETIONS_A_COPY || (unlikely(cq->has_moved) && n > 0));
	if (done > 0) {
		client_count(&cq->client->completed, done);
		ring_publish(&cq->ring);
		ring_prefetch_free(&cq->ring);
	}
	/* all rings of the CQ are empty, and no fence is left */
	if (unlikely(cq->has_moved) && n == 0 && room > 0)
		cq->has_moved = false;
	*copied += done;
	return n >= 0 && (uint32_t)n == room;
}

/* Copy, and tell the program. @return true: there may be more */
static bool
client_cq_serve(struct worker *w, struct client_cq *cq, uint32_t max, unsigned int *copied,
	unsigned int *work)
{
	unsigned int before = *copied;
	bool more = client_cq_copy(w->dev, cq, max, copied);

	*work += 1;
	if (*copied > before && cq->event_fd >= 0)
		*work += client_cq_event(cq, more);
	return more;
}

void
client_cq_empty(struct worker *w, struct client_cq *cq)
{
	unsigned int copied = 0, work = 0;

	client_cq_serve(w, cq, UINT32_MAX, &copied, &work);
}

/* A client's turn: each of its listed CQs once at most. @return work, of which copies *copied */
static unsigned int
client_complete(struct worker *w, struct verbs_client *c, unsigned int *copied)
{
	const struct client_cq *last = TAILQ_LAST(&c->due, client_due);
	uint32_t max = client_share_of(w, c)->completions;
	unsigned int done = 0, work = 0;
	struct client_cq *cq;
	bool more;

	do {
		cq = TAILQ_FIRST(&c->due);
		more = client_cq_serve(w, cq, max - done, &done, &work);
		TAILQ_REMOVE(&c->due, cq, due_link);
		if (unlikely(more))
			TAILQ_INSERT_TAIL(&c->due, cq, due_link);
		else
			cq->listed = false;
	} while (cq != last && done < max && work < max);
	*copied += done;
	return work + done;
}

/*
 * Each client with listed CQs once at most. A program that reads thousands of completions at once,
 * or has a hundred CQs that it never reads, delays others by its share only.
 */
unsigned int
clients_complete(struct worker *w)
{
	struct client_turns *completing = &w->clients.completing;
	const struct verbs_client *last = TAILQ_LAST(completing, client_turns);
	unsigned int copied = 0, work = 0;
	struct verbs_client *c;

	do {
		c = TAILQ_FIRST(completing);
		work += client_complete(w, c, &copied);
		TAILQ_REMOVE(completing, c, completing_link);
		if (unlikely(!TAILQ_EMPTY(&c->due)))
			TAILQ_INSERT_TAIL(completing, c, completing_link);
	} while (c != last && work < COMPLETIONS_WORK_A_TURN);
	/* the turn after one that was cut short comes at once */
	return work < COMPLETIONS_WORK_A_TURN ? copied : work;
}
