/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A service on one worker: listen, connect, poll completions, clean up after connections. */

#include <errno.h>

#include <rte_debug.h>

#include "svc/private.h"

#define POLL_BURST   32
#define CLEAN_SLICES 4 /* calls of clean() in one run */
#define END_SLICE    64 /* connections that svc_worker_disconnect() ends in one run */

struct svc_worker *
svc_worker_create(struct svc *s, struct cm *cm, struct rc_worker *rc, unsigned int worker,
	struct error *err)
{
	struct svc_worker *w = mem_zalloc(s->env.alloc, sizeof(*w), SVC_CACHE_LINE);

	RTE_ASSERT(worker < s->num_cqs);
	if (w == NULL) {
		error_set(err, ENOMEM, "no memory for a service's worker");
		return NULL;
	}
	w->svc = s;
	w->cm = cm;
	w->rc = rc;
	w->cqn = s->cqs[worker];
	w->room = s->cq_depth;
	w->counters = &s->counters[worker].c;
	w->asked = (struct svc_conn){ .svc = s, .w = w };
	TAILQ_INIT(&w->opening);
	TAILQ_INIT(&w->conns);
	TAILQ_INIT(&w->gone);
	TAILQ_INIT(&w->turning);
	return w;
}

void
svc_worker_destroy(struct svc_worker *w)
{
	struct svc_conn *c;

	while ((c = TAILQ_FIRST(&w->gone)) != NULL)
		svc_conn_free(c);
	RTE_ASSERT(TAILQ_EMPTY(&w->conns) && TAILQ_EMPTY(&w->turning) && TAILQ_EMPTY(&w->opening));
	RTE_ASSERT(w->connections == 0 && w->room == w->svc->cq_depth);
	mem_free(w->svc->env.alloc, w);
}

int
svc_worker_listen(struct svc_worker *w)
{
	const struct svc_config *c = &w->svc->config;
	int ret = cm_listen(w->cm, c->service_id, c->service_mask, &svc_cm_user, w);

	w->listening |= ret == 0;
	return ret;
}

void
svc_worker_unlisten(struct svc_worker *w)
{
	const struct svc_config *c = &w->svc->config;

	if (w->listening) /* otherwise another service may listen on the ID */
		cm_unlisten(w->cm, c->service_id, c->service_mask);
	w->listening = false;
}

int
svc_worker_connect(struct svc_worker *w, struct cm_connect *request, uint64_t now, cm_id *id,
	struct error *err)
{
	struct svc_conn *c;
	int ret;

	RTE_ASSERT(w->svc->config.active);
	w->now = now;
	c = svc_conn_new(w, NULL, &request->param, err);
	if (c == NULL)
		return -ENOSPC;
	c->watcher = request->ops;
	c->watcher_user = request->user;
	request->ops = &svc_cm_user;
	request->user = c;
	ret = cm_connect(w->cm, request, now, id, err);
	request->ops = c->watcher;
	request->user = c->watcher_user;
	/* prepare() may have posted, but the QP was destroyed before anything completed */
	if (ret != 0)
		svc_conn_free(c);
	return ret;
}

/* End some connections: thousands at once would delay all other work of the worker. */
static unsigned int
end_some(struct svc_worker *w)
{
	struct svc_conn *c;
	unsigned int n;

	for (n = 0; n < END_SLICE && (c = w->ending) != NULL; n++) {
		w->ending = TAILQ_NEXT(c, link); /* svc_disconnect() may free c */
		svc_disconnect(c);
	}
	return n;
}

void
svc_worker_disconnect(struct svc_worker *w, uint64_t now)
{
	w->now = now;
	w->ending = TAILQ_FIRST(&w->conns);
	end_some(w);
}

uint32_t
svc_worker_connections(const struct svc_worker *w)
{
	return w->connections;
}

bool
svc_worker_has(const struct svc_worker *w, cm_id id)
{
	const struct svc_conn *c = cm_user_of(w->cm, id, &svc_cm_user);

	return c != NULL && c->w == w;
}

/* --- completions --- */

static void
count_success(struct svc_counters *n, const struct wc *wc)
{
	switch (wc->opcode) {
	case WC_RECV:
	case WC_RECV_RDMA_WITH_IMM:
		svc_count(n, messages_in, 1);
		svc_count(n, bytes_in, wc->byte_len);
		break;
	case WC_RDMA_READ:
		svc_count(n, messages_out, 1);
		svc_count(n, bytes_in, wc->byte_len);
		break;
	default:
		svc_count(n, messages_out, 1);
		svc_count(n, bytes_out, wc->byte_len);
		break;
	}
}

static void
svc_complete(struct svc_worker *w, struct wc *wc)
{
	bool recv;
	struct svc_conn *c = svc_conn_of_wr(w, wc->wr_id, &recv);

	if (c == NULL)
		return;
	RTE_ASSERT(c->state != SVC_CONN_FREE && (recv ? c->recvs : c->sends) > 0);
	if (recv)
		c->recvs--;
	else
		c->sends--;
	if (wc->status != WC_SUCCESS) {
		if (wc->status != WC_WR_FLUSH_ERR)
			svc_count(w->counters, errors, 1);
		/* the QP is in error, and lib/rc may have told nobody else */
		svc_disconnect(c);
		return;
	}
	count_success(w->counters, wc);
	wc->wr_id = (uint32_t)wc->wr_id;
	if (w->svc->ops->completion != NULL)
		w->svc->ops->completion(c, wc);
}

static void
tidy(struct svc_worker *w)
{
	const struct svc_ops *ops = w->svc->ops;
	struct svc_conn *c;
	unsigned int slices = 0;

	while ((c = TAILQ_FIRST(&w->gone)) != NULL && w->polled >= c->last) {
		if (ops->clean != NULL && slices++ == CLEAN_SLICES)
			return;
		if (ops->clean == NULL || ops->clean(c))
			svc_conn_free(c);
	}
}

static void
svc_worker_run_conns(struct svc_worker *w)
{
	struct svc_conn *c, *next;

	for (c = TAILQ_FIRST(&w->turning); c != NULL; c = next) {
		next = TAILQ_NEXT(c, turn); /* c may be gone from inside */
		if (c->state > SVC_CONN_STANDING || !w->svc->ops->turn(c))
			svc_conn_stop_turns(c);
	}
}

unsigned int
svc_worker_run(struct svc_worker *w, uint64_t now, unsigned int budget)
{
	struct wc wcs[POLL_BURST];
	unsigned int done = 0, n;
	int got, i;

	w->now = now;
	while (done < budget) {
		n = budget - done < POLL_BURST ? budget - done : POLL_BURST;
		got = rc_cq_poll(w->svc->env.dev, w->cqn, wcs, n);
		if (got <= 0)
			break;
		w->polled += (unsigned int)got;
		for (i = 0; i < got; i++)
			svc_complete(w, &wcs[i]);
		done += (unsigned int)got;
		if ((unsigned int)got < n)
			break;
	}
	svc_worker_run_conns(w);
	done += end_some(w);
	tidy(w);
	return done;
}
