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

#include <string.h>

#include <rte_alarm.h>
#include <rte_cycles.h>

#include "link/private.h"

#define LOOK_US 100

struct ending {
	uint16_t ethdev;
	void (*fn)(uint16_t ethdev);
	uint32_t done;
};

static void
stop(uint16_t ethdev)
{
	rte_eth_dev_stop(ethdev);
}

static void
finish(uint16_t ethdev)
{
	rte_eth_dev_close(ethdev);
}

static void
end_there(void *arg)
{
	struct ending *e = arg;

	e->fn(e->ethdev);
	__atomic_store_n(&e->done, 1, __ATOMIC_RELEASE);
}

static void
end_device(const struct link_port *p, void (*fn)(uint16_t ethdev))
{
	struct ending e = { .ethdev = p->ethdev, .fn = fn };

	if (strcmp(p->driver, "net_memif") != 0 || rte_eal_alarm_set(1, end_there, &e) != 0) {
		fn(p->ethdev);
		return;
	}
	while (__atomic_load_n(&e.done, __ATOMIC_ACQUIRE) == 0)
		rte_delay_us_sleep(LOOK_US);
}

void
device_stop(const struct link_port *p)
{
	end_device(p, stop);
}

void
device_close(const struct link_port *p)
{
	end_device(p, finish);
}
