/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * When a peer leaves, memif's driver clears a flag that its burst functions check, then unmaps the
 * rings that they read, all on EAL's interrupt thread and without waiting for a worker between the
 * check and the read (DPDK 22.11). Such a worker would crash. The driver has no hook to make it
 * wait, but the program's own munmap() (unmap.c) waits on that thread for a grace period.
 */

#include "base/fault.h"
#include "link/device.h"
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

/* --- a peer that crashes the driver --- */

/*
 * The driver follows the descriptors that its peer writes into the shared ring, wherever they lead.
 * A check before would be a race with the peer, which can change them at any time. So a memif peer
 * is trusted, like another thread of this process, and a fault in the driver ends the process: the
 * driver may be in the middle of a change of its state, so closing the port alone is not safe.
 */
static struct {
	struct code_range driver;
	/* [ethdev]: what to write before the process ends; "": no memif port */
	char line[RTE_MAX_ETHPORTS][160];
} crash;

__thread uint16_t ethdev_in_burst = RTE_MAX_ETHPORTS;

static void
write_line(uint16_t ethdev)
{
	ssize_t rc = write(STDERR_FILENO, crash.line[ethdev], strlen(crash.line[ethdev]));

	RTE_SET_USED(rc); /* the process ends either way */
}

/*
 * The address says nothing about the port, because a wrong descriptor may lead anywhere. But a
 * worker runs the driver's code in bursts only. Other threads run it too, when a peer comes or
 * leaves: then any memif port may be the one.
 */
static bool
memif_fault(const struct fault *f)
{
	uint16_t i;

	if (f->ip < crash.driver.from || f->ip >= crash.driver.to)
		return false;
	if (ethdev_in_burst < RTE_MAX_ETHPORTS)
		write_line(ethdev_in_burst);
	else
		for (i = 0; i < RTE_MAX_ETHPORTS; i++)
			write_line(i);
	return false;
}

void
memif_watch(const struct link_port *p)
{
	crash.driver = code_of_object("rte_net_memif");
	fault_add(memif_fault);
	snprintf(crash.line[p->ethdev], sizeof(crash.line[0]),
		"polca: %s: the memif peer gave a descriptor outside its memory, or took the memory "
		"away: the process ends\n",
		p->cfg.name);
}
