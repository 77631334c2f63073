/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Run a command on the worker that owns a QP. The QP may move after its owner was looked up: then
 * the worker says so, and the command goes to the new owner.
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
