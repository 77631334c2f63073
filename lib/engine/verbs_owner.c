/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which worker: run a command on the one that owns a QP, choose one for a new object, walk the
 * objects of all. A QP may move after its owner was looked up: then the worker says so, and the
 * command goes to the new owner.
 */

#include <errno.h>

#include "engine/verbs_private.h"

struct owner_call {
	uint32_t qpn;
	worker_fn fn;
	void *arg;
	bool elsewhere;
};

int
qp_worker(struct engine *e, uint32_t qpn, struct error *err)
{
	int worker = rc_owner(e->dev, qpn);

	return worker >= 0 ? worker : error_set(err, ENOENT, "qp: no queue pair 0x%06x", qpn);
}

static int
qp_call_here(struct worker *w, void *arg)
{
	struct owner_call *c = arg;

	c->elsewhere = rc_owner(w->dev, c->qpn) != (int)w->id || rehome_is_arriving(w, c->qpn);
	return c->elsewhere ? 0 : c->fn(w, c->arg);
}

int
call_qp_owner(struct engine *e, uint32_t qpn, worker_fn fn, void *arg, struct error *err)
{
	struct owner_call c = { .qpn = qpn, .fn = fn, .arg = arg };
	int worker, ret;

	do {
		worker = qp_worker(e, qpn, err);
		if (worker < 0)
			return worker;
		ret = engine_call(e, (unsigned int)worker, qp_call_here, &c);
	} while (c.elsewhere);
	return ret;
}

/*
 * A worker that has no free number for a queue pair, or is nearly always busy, gets new objects
 * only if all others are so, too. A client may just have left the busy one to relieve it, and then
 * it has the fewest queue pairs.
 */
static bool
worker_is_better(const struct worker *w, const struct worker *than)
{
	bool full = rc_worker_full(w->rc);
	bool busy = rehome_is_busy(relaxed(&w->stats.load));

	if (full != rc_worker_full(than->rc))
		return !full;
	if (busy != rehome_is_busy(relaxed(&than->stats.load)))
		return !busy;
	return rc_worker_qps(w->rc) < rc_worker_qps(than->rc);
}

int
choose_worker(struct engine *e, int asked, struct error *err)
{
	unsigned int i, best = 0;

	if (asked >= 0) {
		if ((unsigned int)asked >= e->num_workers)
			return error_set(err, EINVAL, "worker: got %d, there are 0..%u", asked,
				e->num_workers - 1);
		return asked;
	}
	for (i = 1; i < e->num_workers; i++)
		if (worker_is_better(e->worker[i], e->worker[best]))
			best = i;
	return (int)best;
}

bool
walk_workers(struct engine *e, uint64_t *cursor, worker_fn fn, void *out)
{
	unsigned int worker = (unsigned int)(*cursor >> 32);
	struct walk walk = { (uint32_t)*cursor, out };

	for (; worker < e->num_workers; worker++, walk.cursor = 0) {
		if (engine_call(e, worker, fn, &walk) == 1) {
			*cursor = (uint64_t)worker << 32 | walk.cursor;
			return true;
		}
	}
	*cursor = (uint64_t)e->num_workers << 32;
	return false;
}
