/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The subnet manager (SM) behind a port (seed 004; smp-sma 3, 6 and 7): answer SMInfo for it, and
 * pass it the SMPs meant for it.
 *
 * The SM is another process. It shows that it is alive by calling sma_sm_alive(). If it is silent
 * for SMA_SM_LEASE_S seconds, a Master becomes Not Active, and nobody can hand over to this port.
 */

#include <errno.h>

#include "sma/private.h"

/* --- SMInfo --- */

uint16_t
sma_sm_info_get(const struct smp *smp, struct sma_port *p, uint8_t *data)
{
	if (!p->config.is_sm)
		return MAD_STATUS_BAD_METHOD_ATTR;
	/* the modifier of a Set is a command, not an index */
	if (smp->method == MAD_GET && smp->modifier != 0)
		return MAD_STATUS_INVALID_FIELD;
	put_be64(data, p->guid[0]);
	/* security: SM_Key at offset 8 stays 0, it is shown to nobody */
	put_be32(data + 16, p->sm_act_count);
	data[20] = p->config.sm_priority << 4 | p->sm_state;
	return MAD_STATUS_OK;
}

static void
sm_change_state(struct sma_port *p, uint8_t state)
{
	if (p->sm_state == state)
		return;
	p->sm_state = state;
	sma_count(p, sm_changes);
}

#define HANDOVER 1

/* By a Set's modifier: the state it requires and the state it leads to (smp-sma 3, 7). */
static const struct {
	uint8_t from;
	uint8_t to;
} sm_commands[] = {
	[HANDOVER] = { SMA_SM_STANDBY, SMA_SM_MASTER },
	[2] = { SMA_SM_MASTER, SMA_SM_STANDBY }, /* acknowledge: the other SM took over */
	[3] = { SMA_SM_STANDBY, SMA_SM_NOT_ACTIVE }, /* disable */
	[4] = { SMA_SM_NOT_ACTIVE, SMA_SM_STANDBY }, /* standby */
	[5] = { SMA_SM_STANDBY, SMA_SM_DISCOVERING }, /* discover */
};

uint16_t
sma_sm_info_set(const struct smp *smp, struct sma_port *p, const uint8_t *data)
{
	(void)data;
	if (!p->config.is_sm)
		return MAD_STATUS_BAD_METHOD_ATTR;
	if (smp->modifier == 0 || smp->modifier >= sizeof(sm_commands) / sizeof(sm_commands[0]))
		return MAD_STATUS_INVALID_FIELD;
	if (p->sm_state != sm_commands[smp->modifier].from ||
		(smp->modifier == HANDOVER && !p->sm_alive))
		return MAD_STATUS_INVALID_FIELD;
	sm_change_state(p, sm_commands[smp->modifier].to);
	sma_sm_give(smp);
	return MAD_STATUS_OK;
}

/* --- SMPs for the SM --- */

bool
sma_sm_give(const struct smp *smp)
{
	const struct sma_config *c = &smp->port->sma->config;

	if (!smp->port->config.is_sm || c->to_sm == NULL)
		return false;
	sma_count(smp->port, sm_smps);
	c->to_sm(c->arg, smp->port->index, smp->slid, smp->mad);
	return true;
}

/* --- calls by the SM --- */

static void
sm_lease_expired(struct timer *t, uint64_t now)
{
	struct sma_port *p = (struct sma_port *)((char *)t - offsetof(struct sma_port, sm_lease));

	(void)now;
	p->sm_alive = false;
	sma_count(p, sm_gone);
	if (p->sm_state == SMA_SM_MASTER)
		sm_change_state(p, SMA_SM_NOT_ACTIVE);
}

static struct sma_port *
port_with_sm(const struct sma *s, uint16_t port)
{
	struct sma_port *p = sma_port_find(s, port);

	return p != NULL && p->config.is_sm ? p : NULL;
}

int
sma_sm_alive(struct sma *s, uint16_t port, uint64_t now)
{
	struct sma_port *p = port_with_sm(s, port);

	if (p == NULL)
		return -EINVAL;
	p->sm_alive = true;
	p->sm_act_count++;
	timer_arm(s->config.wheel, &p->sm_lease, now + SMA_SM_LEASE_S * s->config.hz);
	return 0;
}

int
sma_sm_set(struct sma *s, uint16_t port, uint8_t state, uint8_t priority, uint64_t now)
{
	struct sma_port *p = port_with_sm(s, port);

	if (p == NULL || state > SMA_SM_MASTER || priority > SMA_SM_PRIORITY_MAX)
		return -EINVAL;
	sma_sm_alive(s, port, now);
	sm_change_state(p, state);
	if (p->config.sm_priority != priority)
		sma_count(p, sm_changes);
	p->config.sm_priority = priority;
	return 0;
}

void
sma_sm_init(struct sma_port *p)
{
	timer_init(&p->sm_lease, sm_lease_expired);
}

void
sma_sm_fini(struct sma_port *p)
{
	timer_disarm(p->sma->config.wheel, &p->sm_lease);
}
