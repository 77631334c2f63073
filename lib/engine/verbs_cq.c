/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion queues: the control thread creates them, and is their only poller.
 */

#include <errno.h>

#include "engine/placement.h"
#include "engine/verbs_private.h"

static int
no_cq(uint32_t cqn, struct error *err)
{
	return error_set(err, ENOENT, "cq: no completion queue %u", cqn);
}

int
engine_cq_create(struct engine *e, uint32_t depth, uint32_t *cqn, struct error *err)
{
	return rc_cq_create(e->dev, depth, cqn, err);
}

int
engine_cq_destroy(struct engine *e, uint32_t cqn, struct error *err)
{
	int ret = callers_cq(e, "cq", cqn, err);

	return ret != 0 ? ret : rc_cq_destroy(e->dev, cqn, err);
}

int
engine_cq_poll(struct engine *e, uint32_t cqn, struct wc *wc, unsigned int n, struct error *err)
{
	int ret = callers_cq(e, "cq", cqn, err);

	if (ret != 0)
		return ret;
	ret = rc_cq_poll(e->dev, cqn, wc, n);
	if (ret == -ENOENT)
		return no_cq(cqn, err);
	if (ret == -EIO)
		return error_set(err, EIO,
			"cq: completion queue %u has overrun, completions are lost: "
			"destroy it and its queue pairs",
			cqn);
	return ret;
}

int
engine_cq_arm(struct engine *e, uint32_t cqn, bool solicited_only, struct error *err)
{
	int ret = callers_cq(e, "cq", cqn, err);

	if (ret != 0)
		return ret;
	ret = rc_cq_arm(e->dev, cqn, solicited_only);
	return ret == -ENOENT ? no_cq(cqn, err) : ret;
}

int
engine_cq_await(struct engine *e, uint32_t cqn, struct error *err)
{
	int ret = callers_cq(e, "cq", cqn, err);

	if (ret != 0)
		return ret;
	ret = rc_cq_await(e->dev, cqn);
	return ret == -ENOENT ? no_cq(cqn, err) : ret;
}

bool
engine_cq_next(struct engine *e, uint64_t *cursor, struct rc_cq_info *info)
{
	return rc_cq_next(e->dev, cursor, info);
}

/* Allocate the rings on the worker's NUMA node. */
int
reserve_completions(struct engine *e, const struct qp_init_attr *init, unsigned int worker,
	struct error *err)
{
	rte_cpuset_t before = placement_enter(e->worker[worker]->lcore);
	int ret = rc_cq_reserve(e->dev, init->send_cq, worker, err);

	if (ret == 0)
		ret = rc_cq_reserve(e->dev, init->recv_cq, worker, err);
	placement_leave(&before);
	return ret;
}
