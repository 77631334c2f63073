/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Move a QP to another worker on request.
 */

#include <errno.h>

#include <rte_cycles.h>

#include "engine/verbs_private.h"

struct rehome_args {
	uint32_t qpn;
	unsigned int to;
	unsigned int from; /* out: the worker that owned it */
	struct error *err;
};

static int
qp_rehome_here(struct worker *w, void *arg)
{
	struct rehome_args *a = arg;
	int ret = callers_qp_here(w, a->qpn, a->err);

	a->from = w->id;
	if (ret != 0 || a->to == w->id)
		return ret;
	return rehome_offer(w, a->qpn, a->to, a->err);
}

static int
qp_is_leaving_here(struct worker *w, void *arg)
{
	struct rehome_args *a = arg;

	return rehome_is_leaving(w, a->qpn);
}

void
qp_move_without_workers(struct engine *e)
{
	unsigned int i;

	for (i = 0; i < e->num_workers; i++) {
		rehome_take(e->worker[i], rte_get_tsc_cycles());
		rehome_give(e->worker[i]);
	}
}

int
engine_qp_rehome(struct engine *e, uint32_t qpn, unsigned int worker, struct error *err)
{
	struct rehome_args a = { .qpn = qpn, .to = worker, .err = err };
	int now, ret = choose_worker(e, (int)worker, err);
	struct rc_qp_info info;
	unsigned int us = 10;

	if (ret >= 0)
		ret = engine_qp_query(e, qpn, &info, err);
	if (ret == 0)
		ret = reserve_completions(e, &info.init, worker, err);
	if (ret == 0)
		ret = call_qp_owner(e, qpn, qp_rehome_here, &a, err);
	if (ret != 0)
		return ret;
	while (engine_call(e, a.from, qp_is_leaving_here, &a) != 0) {
		if (e->running)
			grace_pause(&us);
		else
			qp_move_without_workers(e);
	}
	now = rc_owner(e->dev, qpn);
	if (now == (int)worker)
		return 0;
	return error_set(err, EAGAIN,
		"qp: 0x%06x stays on worker %d: completions from before earlier moves wait "
		"to be polled, or too many others move to worker %u: try again",
		qpn, now, worker);
}
