/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The M_Key guards a port (smp-sma 4): who may pass, what a wrong key sets off, and its lease. */

#include "sma/port_info.h"
#include "sma/private.h"

#define PROTECT_HIDE 1 /* from here on a wrong key does not see the M_Key */
#define PROTECT_GET  2 /* and here not even a Get passes */

static void
lease_expired(struct timer *t, uint64_t now)
{
	struct sma_port *p = (struct sma_port *)((char *)t - offsetof(struct sma_port, lease));

	(void)now;
	p->lease_running = false;
	/* the key stays, but nothing is hidden any more */
	sma_pi_put(p->info, PI_M_KEY_PROTECT, 0);
	sma_count(p, mkey_expired);
}

static void
lease_stop(struct sma_port *p)
{
	p->lease_running = false;
	timer_disarm(p->sma->config.wheel, &p->lease);
}

static void
lease_start(struct sma_port *p, uint64_t now)
{
	uint64_t seconds = sma_pi_get(p->info, PI_M_KEY_LEASE);

	if (seconds == 0 || p->lease_running)
		return;
	p->lease_running = true;
	timer_arm(p->sma->config.wheel, &p->lease, now + seconds * p->sma->config.hz);
}

static void
violation(struct sma_port *p, const struct smp *smp)
{
	uint8_t notice[SMA_DATA_LEN];

	if (p->mkey_violations != UINT16_MAX)
		p->mkey_violations++;
	sma_count(p, mkey_violations);
	lease_start(p, smp->now);
	sma_notice_mkey(p, smp, notice);
	sma_trap_raise(p, notice, smp->now);
}

enum sma_mkey
sma_mkey_check(struct smp *smp, struct sma_port *p)
{
	uint64_t key = sma_pi_get(p->info, PI_M_KEY);
	uint8_t protect = sma_pi_get(p->info, PI_M_KEY_PROTECT);

	if (key == 0 || get_be64(smp->mad + SMP_OFF_M_KEY) == key) {
		if (p->lease_running)
			lease_stop(p);
		return SMA_MKEY_VALID;
	}
	if (smp->method == MAD_GET && protect < PROTECT_GET) {
		smp->hide_m_key = protect == PROTECT_HIDE;
		return SMA_MKEY_ALLOWED;
	}
	violation(p, smp);
	return SMA_MKEY_FAILED;
}

void
sma_mkey_init(struct sma_port *p)
{
	timer_init(&p->lease, lease_expired);
}

void
sma_mkey_fini(struct sma_port *p)
{
	lease_stop(p);
}
