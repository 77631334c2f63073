/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Shared receive queues: each is owned by one worker.
 */

#include <errno.h>

#include "engine/verbs_private.h"

struct srq_args {
	uint32_t srqn;
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t limit;
	const struct recv_wr *wr;
	unsigned int n;
	unsigned int posted;
	struct error *err;
};

int
srq_worker(struct engine *e, uint32_t srqn, struct error *err)
{
	int worker = rc_srq_owner(e->dev, srqn);

	return worker >= 0 ? worker
			   : error_set(err, ENOENT, "srq: no shared receive queue %u", srqn);
}

/* Run fn on the worker that owns the SRQ. */
static int
srq_call_owner(struct engine *e, worker_fn fn, struct srq_args *a)
{
	int worker = srq_worker(e, a->srqn, a->err);

	return worker < 0 ? worker : engine_call(e, (unsigned int)worker, fn, a);
}

static int
srq_create_here(struct worker *w, void *arg)
{
	struct srq_args *a = arg;

	return rc_srq_create(w->rc, a->pd, a->max_wr, a->max_sge, &a->srqn, a->err);
}

int
engine_srq_create(struct engine *e, int worker, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	uint32_t *srqn, struct error *err)
{
	struct srq_args a = { .pd = pd, .max_wr = max_wr, .max_sge = max_sge, .err = err };
	int ret = callers_pd(e, pd, err);

	if (ret != 0)
		return ret;
	worker = choose_worker(e, worker, err);
	if (worker < 0)
		return worker;
	ret = engine_call(e, (unsigned int)worker, srq_create_here, &a);
	if (ret == 0)
		*srqn = a.srqn;
	return ret;
}

static int
srq_modify_here(struct worker *w, void *arg)
{
	struct srq_args *a = arg;

	return rc_srq_modify(w->rc, a->srqn, a->limit, a->err);
}

int
engine_srq_modify(struct engine *e, uint32_t srqn, uint32_t limit, struct error *err)
{
	struct srq_args a = { .srqn = srqn, .limit = limit, .err = err };

	return srq_call_owner(e, srq_modify_here, &a);
}

static int
srq_destroy_here(struct worker *w, void *arg)
{
	struct srq_args *a = arg;

	return rc_srq_destroy(w->rc, a->srqn, a->err);
}

int
engine_srq_destroy(struct engine *e, uint32_t srqn, struct error *err)
{
	struct srq_args a = { .srqn = srqn, .err = err };

	return srq_call_owner(e, srq_destroy_here, &a);
}

static int
srq_post_here(struct worker *w, void *arg)
{
	struct srq_args *a = arg;
	int ret = 0;

	while (a->posted < a->n && ret == 0) {
		ret = rc_srq_post(w->rc, a->srqn, &a->wr[a->posted], a->err);
		a->posted += ret == 0;
	}
	return ret;
}

int
engine_srq_post(struct engine *e, uint32_t srqn, const struct recv_wr *wr, unsigned int n,
	struct error *err)
{
	struct srq_args a = { .srqn = srqn, .wr = wr, .n = n, .err = err };
	int ret;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "shutting down: no new work is taken");
	ret = srq_call_owner(e, srq_post_here, &a);
	return a.posted > 0 ? (int)a.posted : ret;
}

static int
srq_next_here(struct worker *w, void *arg)
{
	struct walk *walk = arg;
	uint32_t srqn;

	return rc_srq_next(w->rc, &walk->cursor, &srqn) &&
		rc_srq_query(w->rc, srqn, walk->out) == 0;
}

bool
engine_srq_next(struct engine *e, uint64_t *cursor, struct rc_srq_info *info)
{
	return walk_workers(e, cursor, srq_next_here, info);
}
