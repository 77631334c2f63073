/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Posting: one command carries a whole batch to the QP's worker.
 */

#include <errno.h>

#include "engine/verbs_private.h"

struct post_args {
	uint32_t qpn;
	const struct send_wr *send;
	const struct recv_wr *recv;
	unsigned int n;
	unsigned int posted;
	struct error *err;
};

static int
qp_post_here(struct worker *w, void *arg)
{
	struct post_args *a = arg;
	int ret = callers_qp_here(w, a->qpn, a->err);

	while (a->posted < a->n && ret == 0) {
		ret = a->send != NULL ? rc_post_send(w->rc, a->qpn, &a->send[a->posted], a->err)
				      : rc_post_recv(w->rc, a->qpn, &a->recv[a->posted], a->err);
		a->posted += ret == 0;
	}
	return ret;
}

static int
qp_post(struct engine *e, struct post_args *a)
{
	int ret;

	if (e->draining)
		return error_set(a->err, ESHUTDOWN, "shutting down: no new work is taken");
	ret = call_qp_owner(e, a->qpn, qp_post_here, a, a->err);
	return a->posted > 0 ? (int)a->posted : ret;
}

int
engine_post_send(struct engine *e, uint32_t qpn, const struct send_wr *wr, unsigned int n,
	struct error *err)
{
	struct post_args a = { .qpn = qpn, .send = wr, .n = n, .err = err };

	return qp_post(e, &a);
}

int
engine_post_recv(struct engine *e, uint32_t qpn, const struct recv_wr *wr, unsigned int n,
	struct error *err)
{
	struct post_args a = { .qpn = qpn, .recv = wr, .n = n, .err = err };

	return qp_post(e, &a);
}
