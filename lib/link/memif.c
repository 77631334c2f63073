/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * memif's driver lets go of a peer on EAL's interrupt thread: it takes back the flag that burst
 * functions look at, then unmaps what they read, and does not wait for a worker that is in between
 * (DPDK 22.11). A worker that loses its CPU there would find its ring gone. Nothing of the driver
 * can be told to wait, but a program may have a munmap() of its own.
 */

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "link/private.h"

#define LOOK_US 20

/* EAL's interrupt thread: those who may be in a burst function. */
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
