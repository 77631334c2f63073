/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A device is stopped and closed.
 *
 * memif lets go of a peer that leaves on EAL's interrupt thread, by the same steps as when it is
 * stopped, and nothing keeps the two apart: what both free is freed twice when both ends go at a
 * time. On that thread one comes after the other.
 */

#include <rte_alarm.h>
#include <rte_cycles.h>

#include "link/private.h"

#define LOOK_US 100

struct errand {
	void (*fn)(void *arg);
	void *arg;
	uint32_t done;
};

static void
run_errand(void *arg)
{
	struct errand *e = arg;

	e->fn(e->arg);
	__atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
}

void
interrupts_run(void (*fn)(void *arg), void *arg)
{
	struct errand e = { .fn = fn, .arg = arg };

	if (rte_eal_alarm_set(1, run_errand, &e) != 0) {
		fn(arg);
		return;
	}
	while (__atomic_load_n(&e.done, __ATOMIC_ACQUIRE) == 0)
		rte_delay_us_sleep(LOOK_US);
}

static void
stop(void *port)
{
	rte_eth_dev_stop(((const struct link_port *)port)->ethdev);
}

static void
finish(void *port)
{
	struct link_port *p = port;

	if (p->started)
		rte_eth_dev_stop(p->ethdev);
	p->started = false;
	rte_eth_dev_close(p->ethdev);
}

static void
end_device(struct link_port *p, void (*fn)(void *port))
{
	if (device_is_memif(p))
		interrupts_run(fn, p);
	else
		fn(p);
}

void
device_stop(struct link_port *p)
{
	end_device(p, stop);
}

void
device_close(struct link_port *p)
{
	end_device(p, finish);
}
