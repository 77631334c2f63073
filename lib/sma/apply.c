/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Turn the attributes into port settings for lib/link, and changes into events for applications. */

#include <rte_debug.h>

#include "sma/port_info.h"
#include "sma/private.h"
#include "wire/layout.h"

static unsigned int
guids_in_use(const struct sma_port *p)
{
	unsigned int n = PORT_GIDS_MAX;

	while (n > 0 && p->guid[n - 1] == 0)
		n--;
	return n;
}

static unsigned int
pkeys_in_use(const struct sma_port *p)
{
	unsigned int n = PORT_PKEYS_MAX;

	while (n > 0 && p->pkey[n - 1] == 0)
		n--;
	return n;
}

/* The VL of an SL. 15 means that the SL carries no data: its VL is not operational (smp-sma 3). */
static uint8_t
data_vl(const struct sma_port *p, unsigned int sl)
{
	uint8_t vl = p->sltovl[sl / 2] >> (sl % 2 == 0 ? 4 : 0) & 0xF;

	return vl < sma_vls(sma_pi_get(p->info, PI_OPER_VLS)) ? vl : LRH_VL_SMP;
}

static void
settings_of(const struct sma_port *p, struct port_settings *s)
{
	memset(s, 0, sizeof(*s));
	s->state = sma_port_state(p);
	s->disabled = sma_pi_get(p->info, PI_PHYS_STATE) == SMA_PHYS_DISABLED;
	s->lid = sma_lid(p);
	s->lmc = sma_pi_get(p->info, PI_LMC);
	s->sm_lid = sma_master_sm_lid(p);
	s->sm_sl = sma_master_sm_sl(p);
	s->subnet_timeout = sma_subnet_timeout(p);
	s->mtu = port_mtu_bytes((uint8_t)sma_pi_get(p->info, PI_NEIGHBOR_MTU));
	s->gid_prefix = sma_pi_get(p->info, PI_GID_PREFIX);
	memcpy(s->guid, p->guid, sizeof(s->guid));
	s->num_guids = guids_in_use(p);
	memcpy(s->pkey, p->pkey, sizeof(s->pkey));
	s->num_pkeys = pkeys_in_use(p);
	for (unsigned int sl = 0; sl < PORT_SLS; sl++)
		s->sl_to_vl[sl] = data_vl(p, sl);
}

void
sma_tell(const struct sma_port *p, enum event_type type)
{
	const struct event ev = { .type = type, .element = p->index };

	if (p->sma->config.event != NULL)
		p->sma->config.event(p->sma->config.arg, &ev);
}

static void
tell_changes(const struct sma_port *p, const struct port_settings *old,
	const struct port_settings *s)
{
	if (old->lid != s->lid || old->lmc != s->lmc)
		sma_tell(p, EVENT_LID_CHANGE);
	if (old->sm_lid != s->sm_lid || old->sm_sl != s->sm_sl)
		sma_tell(p, EVENT_SM_CHANGE);
	if (memcmp(old->pkey, s->pkey, sizeof(s->pkey)) != 0)
		sma_tell(p, EVENT_PKEY_CHANGE);
	if (old->gid_prefix != s->gid_prefix || memcmp(old->guid, s->guid, sizeof(s->guid)) != 0)
		sma_tell(p, EVENT_GID_CHANGE);
}

/* Member by member, as assignments need not copy padding. */
static bool
settings_equal(const struct port_settings *a, const struct port_settings *b)
{
	return a->state == b->state && a->disabled == b->disabled && a->lid == b->lid &&
		a->lmc == b->lmc && a->sm_lid == b->sm_lid && a->sm_sl == b->sm_sl &&
		a->subnet_timeout == b->subnet_timeout && a->mtu == b->mtu &&
		a->gid_prefix == b->gid_prefix && a->num_guids == b->num_guids &&
		a->num_pkeys == b->num_pkeys && memcmp(a->guid, b->guid, sizeof(a->guid)) == 0 &&
		memcmp(a->pkey, b->pkey, sizeof(a->pkey)) == 0 &&
		memcmp(a->sl_to_vl, b->sl_to_vl, sizeof(a->sl_to_vl)) == 0;
}

void
sma_apply(struct sma_port *p, uint64_t now)
{
	const struct sma_config *c = &p->sma->config;
	struct port_settings s, old = p->applied;

	settings_of(p, &s);
	RTE_ASSERT(s.state >= PORT_STATE_DOWN && s.state <= PORT_STATE_ACTIVE && s.lmc <= 7);
	RTE_ASSERT(s.mtu >= 256 && s.num_guids <= PORT_GIDS_MAX && s.num_pkeys <= PORT_PKEYS_MAX);
	if (!p->started || settings_equal(&s, &old))
		return;
	p->applied = s;
	if (c->apply != NULL)
		c->apply(c->arg, p->index, &s);
	if (old.state != 0) /* not at the first call */
		tell_changes(p, &old, &s);
	sma_trap_resume(p, now);
}
