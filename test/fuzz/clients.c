/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <rte_cycles.h>
#include <rte_log.h>

#include "clients.h"
#include "engine/worker.h"

#define TURN_US 10
/* 4.096 us * 2^n: connections must not be in TIMEWAIT for seconds, and wait for a slow machine */
#define PACKET_LIFE 8
#define RESPONSE    18

static uint64_t clients_now;

static uint64_t
clients_clock(void)
{
	return clients_now;
}

struct engine *
clients_engine(void)
{
	struct engine_config *config;

	node_workers = 1;
	if (eal_setup(NULL) != 0)
		abort();
	rte_log_set_global_level(RTE_LOG_CRIT);
	clients_now = rte_get_tsc_cycles();
	config = node_config();
	config->clock = clients_clock;
	config->cm.packet_life = PACKET_LIFE;
	config->cm.response_timeout = RESPONSE;
	return node_create();
}

void
clients_turns(struct engine *e, unsigned int n)
{
	struct event ev[16];
	unsigned int i;

	for (i = 0; i < n; i++) {
		engine_turn(e, 0, clients_now);
		clients_now += TURN_US * rte_get_tsc_hz() / 1000000;
	}
	engine_events(e, ev, 16, NULL);
}

void
clients_catch_up(void)
{
	clients_now = RTE_MAX(clients_now, rte_get_tsc_cycles());
}

void
clients_rest(struct engine *e)
{
	rte_rcu_qsbr_thread_offline(e->rcu, 0);
}
