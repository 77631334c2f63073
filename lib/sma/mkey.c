/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The M_Key protects a port's attributes (smp-sma 4): check, violations, lease. */

#include "sma/port_info.h"
#include "sma/private.h"

#define PROTECT_HIDE 1 /* ProtectBits 1: a Get with a wrong key sees M_Key 0 */
#define PROTECT_GET  2 /* ProtectBits 2 and 3: a Get with a wrong key fails, too */

static void
mkey_lease_expired(struct timer *t, uint64_t now)
{
	struct sma_port *p = (struct sma_port *)((char *)t - offsetof(struct sma_port, lease));

	(void)now;
	p->lease_running = false;
	/*
	 * the key stays, but ProtectBits become 0: every Get succeeds and shows the key (smp-sma 4)
	 */
	sma_pi_put(p->info, PI_M_KEY_PROTECT, 0);
	sma_count(p, mkey_expired);
}

static void
mkey_lease_stop(struct sma_port *p)
{
	p->lease_running = false;
	timer_disarm(p->sma->config.wheel, &p->lease);
}

static void
mkey_lease_start(struct sma_port *p, uint64_t now)
{
	uint64_t seconds = sma_pi_get(p->info, PI_M_KEY_LEASE);

	if (seconds == 0 || p->lease_running)
		return;
	p->lease_running = true;
	timer_arm(p->sma->config.wheel, &p->lease, now + seconds * p->sma->config.hz);
}

static void
mkey_violation(struct sma_port *p, const struct smp *smp)
{
	uint8_t notice[SMA_DATA_LEN];

	if (p->mkey_violations != UINT16_MAX)
		p->mkey_violations++;
	sma_count(p, mkey_violations);
	mkey_lease_start(p, smp->now);
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
			mkey_lease_stop(p);
		return SMA_MKEY_VALID;
	}
	if (smp->method == MAD_GET && protect < PROTECT_GET) {
		smp->hide_m_key = protect == PROTECT_HIDE;
		return SMA_MKEY_ALLOWED;
	}
	mkey_violation(p, smp);
	return SMA_MKEY_FAILED;
}

void
sma_mkey_init(struct sma_port *p)
{
	timer_init(&p->lease, mkey_lease_expired);
}

void
sma_mkey_fini(struct sma_port *p)
{
	mkey_lease_stop(p);
}
