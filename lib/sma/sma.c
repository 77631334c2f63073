/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The agent as a whole: create its ports, and process what the engine reports about them. */

#include <rte_debug.h>

#include "sma/notice.h"
#include "sma/port_info.h"
#include "sma/private.h"

#define MTU_MAX    4096
#define VL_CAP_MAX 5
#define WIDTH_4X   2
#define SPEED_SDR  1

/* Fill in what a port's configuration leaves out. */
static void
port_defaults(struct sma_port_config *c)
{
	if (c->mtu == 0)
		c->mtu = MTU_MAX;
	if (c->vl_cap == 0 || c->vl_cap > VL_CAP_MAX)
		c->vl_cap = 1;
	if (c->width == 0)
		c->width = WIDTH_4X;
	if (c->speed == 0)
		c->speed = SPEED_SDR;
}

static void
port_init(struct sma_port *p, struct sma *s, const struct sma_port_config *config)
{
	p->sma = s;
	p->config = *config;
	p->index = config->port;
	p->sm_state = config->sm_state;
	port_defaults(&p->config);
	RTE_ASSERT(config->lmc <= 7 && config->m_key_protect <= 3 && config->sm_sl < PORT_SLS);
	RTE_ASSERT(config->sm_state <= SMA_SM_MASTER && config->sm_priority <= SMA_SM_PRIORITY_MAX);
	RTE_ASSERT(s->port_of[p->index] == NULL);
	sma_tables_init(p);
	sma_port_info_init(p);
	sma_port_state_init(p);
	sma_mkey_init(p);
	sma_trap_init(p);
	sma_sm_init(p);
	s->port_of[p->index] = p;
}

static bool
ports_fit(const struct sma_config *c)
{
	if (c->num_managed > SMA_PORTS_MAX)
		return false;
	for (unsigned int i = 0; i < c->num_managed; i++)
		if (c->port[i].port >= SMA_PORTS_MAX || c->port[i].num_pkeys > PORT_PKEYS_MAX)
			return false;
	return true;
}

struct sma *
sma_create(const struct sma_config *config)
{
	struct sma *s;

	if (!ports_fit(config))
		return NULL;
	s = mem_zalloc(config->alloc, sizeof(*s) + config->num_managed * sizeof(s->port[0]),
		_Alignof(struct sma));
	if (s == NULL)
		return NULL;
	s->config = *config;
	s->config.port = NULL; /* each port has its copy */
	if (sma_agents_add(s) != 0) {
		mem_free(config->alloc, s);
		return NULL;
	}
	for (unsigned int i = 0; i < config->num_managed; i++)
		port_init(&s->port[s->num_ports++], s, &config->port[i]);
	return s;
}

void
sma_destroy(struct sma *s)
{
	if (s == NULL)
		return;
	for (unsigned int i = 0; i < s->num_ports; i++) {
		sma_trap_fini(&s->port[i]);
		sma_mkey_fini(&s->port[i]);
		sma_sm_fini(&s->port[i]);
	}
	mem_free(s->config.alloc, s);
}

void
sma_start(struct sma *s, uint64_t now)
{
	for (unsigned int i = 0; i < s->num_ports; i++) {
		RTE_ASSERT(!s->port[i].started);
		s->port[i].started = true;
		sma_apply(&s->port[i], now);
	}
}

void
sma_link(struct sma *s, uint16_t port, bool up, uint64_t now)
{
	struct sma_port *p = sma_port_find(s, port);

	if (p == NULL)
		return;
	sma_port_state_link(p, up);
	sma_apply(p, now);
}

void
sma_data_heard(struct sma *s, uint16_t port, uint64_t now)
{
	struct sma_port *p = sma_port_find(s, port);

	if (p == NULL || !sma_port_state_data(p))
		return;
	sma_apply(p, now);
}

/*
 * Raise the trap if the count exceeds its threshold, and start counting anew. @retval true  raised
 */
static bool
threshold(struct sma_port *p, uint64_t total, uint64_t *since, enum sma_port_info_id limit,
	uint16_t trap, uint64_t now)
{
	uint8_t notice[SMA_DATA_LEN];

	if (total - *since <= sma_pi_get(p->info, limit))
		return false;
	*since = total;
	sma_notice_link(p, trap, notice);
	sma_trap_raise(p, notice, now);
	return true;
}

/* The sheet does not give a counting period; we use one second. */
void
sma_port_totals(struct sma *s, uint16_t port, const struct sma_totals *t, uint64_t now)
{
	struct sma_port *p = sma_port_find(s, port);

	if (p == NULL)
		return;
	/* totals since the start only grow */
	RTE_ASSERT(t->pkey_violations >= p->totals.pkey_violations);
	RTE_ASSERT(t->qkey_violations >= p->totals.qkey_violations);
	RTE_ASSERT(t->link_errors >= p->totals.link_errors && t->overruns >= p->totals.overruns);
	if (now >= p->window_end) {
		p->since = p->totals;
		p->window_end = now + s->config.hz;
	}
	p->totals = *t;
	if (threshold(p, t->link_errors, &p->since.link_errors, PI_LOCAL_PHY_ERRORS,
		    TRAP_LINK_INTEGRITY, now))
		sma_count(p, link_integrity_errors);
	if (threshold(p, t->overruns, &p->since.overruns, PI_OVERRUN_ERRORS, TRAP_BUFFER_OVERRUN,
		    now))
		sma_count(p, buffer_overrun_errors);
}

void
sma_bad_key(struct sma *s, uint16_t port, const struct sma_bad_key *k, uint64_t now)
{
	struct sma_port *p = sma_port_find(s, port);
	uint8_t notice[SMA_DATA_LEN];

	if (p == NULL)
		return;
	sma_notice_key(p, k, notice);
	sma_trap_raise(p, notice, now);
}

const struct sma_counters *
sma_counters(const struct sma *s, uint16_t port)
{
	const struct sma_port *p = sma_port_find(s, port);

	return p != NULL ? &p->counters : NULL;
}
