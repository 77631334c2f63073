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

static void
client_cq_list(struct worker *w, struct client_cq *cq)
{
	if (cq->listed)
		return;
	cq->listed = true;
	cq->next_listed = w->client_cqs;
	w->client_cqs = cq;
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
 */
static void
client_cq_event(struct client_cq *cq)
{
	bool solicited = cq->solicited;
	const struct ring_completion_event event = { cq->cookie };
	uint32_t armed;
	ssize_t n;

	cq->solicited = false;
	/* publish, then look: the client arms, and then polls */
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	armed = __atomic_load_n(&cq->shared->armed, __ATOMIC_RELAXED);
	if (armed == 0 || (armed == RING_ARMED_SOLICITED && !solicited))
		return;
	__atomic_store_n(&cq->shared->armed, 0, __ATOMIC_RELAXED);
	n = write(cq->event_fd, &event, sizeof(event));
	RTE_SET_USED(n);
}

/* @return true if no room is left in the client's ring: there may be more completions */
static bool
client_cq_copy(struct rc_dev *dev, struct client_cq *cq)
{
	struct wc wc[COMPLETIONS_A_COPY];
	bool any = false;
	uint32_t room, i;
	int n;

	do {
		room = ring_room(&cq->ring);
		n = rc_cq_poll(dev, cq->cqn, wc, RTE_MIN(room, (uint32_t)COMPLETIONS_A_COPY));
		for (i = 0; n > 0 && i < (uint32_t)n; i++) {
			client_write_completion(ring_next_free(&cq->ring), &wc[i]);
			cq->ring.index++;
		}
		if (n > 0)
			client_count(&cq->client->completed, (uint32_t)n);
		any |= n > 0;
	} while (n == COMPLETIONS_A_COPY);
	if (any)
		ring_publish(&cq->ring);
	if (any && cq->event_fd >= 0)
		client_cq_event(cq);
	return n >= 0 && (uint32_t)n == room;
}

void
clients_complete(struct worker *w)
{
	struct client_cq *cq = w->client_cqs, *next;

	w->client_cqs = NULL;
	for (; cq != NULL; cq = next) {
		next = cq->next_listed;
		cq->listed = false;
		if (unlikely(client_cq_copy(w->dev, cq)))
			client_cq_list(w, cq);
	}
}
