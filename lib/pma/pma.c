/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The agent as a whole: create its ports, and process what the engine reports about them. */

#include <rte_debug.h>

#include "pma/private.h"

#define LANE_SDR_MBPS 2500 /* at this speed Tick 0, 10 bit times, is PMA_TICK_NS */

uint8_t
pma_tick(uint32_t lane_mbps)
{
	uint32_t speeds = lane_mbps / LANE_SDR_MBPS;

	return speeds > 256 ? 255 : speeds > 0 ? (uint8_t)(speeds - 1) : 0;
}

struct pma *
pma_create(const struct pma_config *config)
{
	struct pma *p;
	unsigned int i;

	RTE_ASSERT(config->mad != NULL && config->wheel != NULL && config->alloc != NULL);
	RTE_ASSERT(config->totals != NULL && config->hz > 0);
	if (config->num_ports > PMA_PORTS_MAX)
		return NULL;
	p = mem_zalloc(config->alloc, sizeof(*p) + config->num_ports * sizeof(p->port[0]), 64);
	if (p == NULL)
		return NULL;
	p->config = *config;
	for (i = 0; i < config->num_ports; i++) {
		p->port[i].pma = p;
		p->port[i].index = (uint16_t)i;
		pma_sample_init(&p->port[i]);
	}
	if (pma_agent_add(p) != 0) {
		pma_destroy(p);
		return NULL;
	}
	return p;
}

void
pma_destroy(struct pma *p)
{
	unsigned int i;

	if (p == NULL)
		return;
	for (i = 0; i < p->config.num_ports; i++)
		pma_sample_fini(&p->port[i]);
	mem_free(p->config.alloc, p);
}

void
pma_link(struct pma *p, uint16_t port, bool up)
{
	struct pma_port *pp;

	if (port >= p->config.num_ports)
		return;
	pp = &p->port[port];
	if (pp->known && pp->up && !up)
		__atomic_store_n(&pp->link_downed, pp->link_downed + 1, __ATOMIC_RELAXED);
	pp->known = true;
	pp->up = up;
	pma_port_check(pp);
}

uint64_t
pma_link_downed(const struct pma *p, uint16_t port)
{
	return port < p->config.num_ports
		? __atomic_load_n(&p->port[port].link_downed, __ATOMIC_RELAXED)
		: 0;
}
