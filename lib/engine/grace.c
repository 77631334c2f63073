/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Grace periods: memory that readers may still use is released when each of them has been
 * quiescent. The readers are the workers, and the control thread because it reads the SA's store.
 */

#include <errno.h>

#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "engine/worker.h"

int
grace_create(struct engine *e, struct error *err)
{
	unsigned int i, readers = e->num_workers + 1;

	e->rcu = rte_zmalloc(NULL, rte_rcu_qsbr_get_memsize(readers), RTE_CACHE_LINE_SIZE);
	if (e->rcu == NULL || rte_rcu_qsbr_init(e->rcu, readers) != 0)
		return error_set(err, ENOMEM, "no memory for RCU: raise eal.memory_mb");
	for (i = 0; i < readers; i++)
		rte_rcu_qsbr_thread_register(e->rcu, i);
	return 0;
}

uint64_t
engine_grace_start(void *rcu)
{
	return rte_rcu_qsbr_start(rcu);
}

bool
engine_grace_done(void *rcu, uint64_t token)
{
	return rte_rcu_qsbr_check(rcu, token, false) == 1;
}
