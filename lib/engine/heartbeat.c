/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the control thread looks at now and then, the workers' heartbeats among it. */

#include <rte_cycles.h>

#include "engine/own_ports_fleet.h"
#include "engine/subnet.h"
#include "engine/verbs_cm.h"
#include "engine/verbs_mad.h"
#include "engine/verbs_sa.h"

void
engine_watch(struct engine *e)
{
	unsigned int i;

	engine_sa_watch(e);
	engine_mad_watch(e);
	engine_sm_watch(e);
	engine_cm_watch(e);
	neighbours_watch(e, rte_get_tsc_cycles());
	subnet_watch(e);
	own_ports_follow(e);
	leader_addresses_follow(e);
	fleet_events_follow(e);
	own_ports_fleet_follow(e);
	reconnect_watch(e);
	events_log_watch(e);
	lost_memory_watch(e);
	clients_balance(e, rte_get_tsc_cycles());
	for (i = 0; i < e->num_workers && e->running; i++) {
		struct worker *w = e->worker[i];
		uint64_t age = heartbeat_age_us(e, w);
		bool stalled = age > e->config.stall_ms * 1000ull;

		if (stalled == w->stalled)
			continue;
		w->stalled = stalled;
		if (!stalled) {
			ENGINE_LOG(NOTICE, "worker %u on lcore %u polls again", i, w->lcore);
			continue;
		}
		ENGINE_LOG(WARNING,
			"worker %u on lcore %u has not polled for %" PRIu64
			" ms: is its CPU shared?",
			i, w->lcore, age / 1000);
		events_put_control(e, &(struct event){ EVENT_WORKER_STALL, i });
	}
}

void
engine_set_stall_ms(struct engine *e, uint32_t ms)
{
	e->config.stall_ms = ms;
}

void
engine_reload_limits(struct engine *e, const struct rc_limits *limits)
{
	rc_limits_reload(&e->config.limits, limits);
	rc_dev_reload_limits(e->dev, limits);
}

unsigned int
engine_stalled(const struct engine *e)
{
	unsigned int i, n = 0;

	for (i = 0; i < e->num_workers; i++)
		n += e->worker[i]->stalled;
	return n;
}
