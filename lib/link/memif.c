/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * When a peer leaves, memif's driver clears a flag that its burst functions check, then unmaps the
 * rings that they read, all on EAL's interrupt thread and without waiting for a worker between the
 * check and the read (DPDK 22.11). Such a worker would crash. The driver has no hook to make it
 * wait, but the program's own munmap() (unmap.c) waits on that thread for a grace period.
 */

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "link/private.h"

#define LOOK_US 20

/* On EAL's interrupt thread: RCU whose readers, the workers, may be in a burst function. */
static __thread struct rte_rcu_qsbr *pollers;

static void
set_pollers(void *rcu)
{
	pollers = rcu;
}

void
memif_guard(struct rte_rcu_qsbr *rcu)
{
	interrupts_run(set_pollers, rcu);
}

void
link_unmapping(void)
{
	uint64_t token;

	if (pollers == NULL)
		return;
	token = rte_rcu_qsbr_start(pollers);
	while (rte_rcu_qsbr_check(pollers, token, false) == 0)
		rte_delay_us_sleep(LOOK_US);
}
