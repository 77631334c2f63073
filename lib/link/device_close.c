/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Stop and close a device.
 *
 * When a peer leaves, memif disconnects it on EAL's interrupt thread, by the same steps as when the
 * device is stopped, and without a lock. If both happened at the same time, memory would be freed
 * twice. So memif devices are stopped and closed on that thread too.
 */

#include <rte_alarm.h>

#include "link/device.h"
#include "link/private.h"

#define LOOK_US 100

struct errand {
	void (*fn)(void *arg);
	void *arg;
	uint32_t done;
};

static void
interrupts_call(void *arg)
{
	struct errand *e = arg;

	e->fn(e->arg);
	RELEASE_SET(e->done, 1);
}

void
interrupts_run(void (*fn)(void *arg), void *arg)
{
	struct errand e = { .fn = fn, .arg = arg };

	if (rte_eal_alarm_set(1, interrupts_call, &e) != 0) {
		fn(arg);
		return;
	}
	while (ACQUIRE_GET(e.done) == 0)
		rte_delay_us_sleep(LOOK_US);
}

static void
device_stop_now(void *port)
{
	struct link_port *p = port;

	if (p->started)
		rte_eth_dev_stop(p->ethdev);
	p->started = false;
}

static void
device_close_now(void *port)
{
	device_stop_now(port);
	rte_eth_dev_close(((const struct link_port *)port)->ethdev);
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
	if (p->started)
		end_device(p, device_stop_now);
}

void
device_close(struct link_port *p)
{
	end_device(p, device_close_now);
}
