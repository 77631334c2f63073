/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Raise a trap for a cause: only one while it is pending, with limited rate and number.
 */

#include <rte_debug.h>

#include "sma/trap.h"

#define PLACES_KEPT 8 /* not available to security traps */

/*
 * Anti-flood: anybody can cause security traps by sending bad keys. They may not use the last
 * PLACES_KEPT places and the last token, so that the port's own traps still reach the SM.
 */
static bool
trap_by_strangers(const uint8_t *notice)
{
	return (notice[NOTICE_OFF_TYPE] & NOTICE_TYPE_MASK) == NOTICE_SECURITY;
}

/* A free place is best, then that of the oldest finished trap. */
static bool
better_place(const struct sma_trap *t, const struct sma_trap *than)
{
	if (than == NULL)
		return true;
	if (than->info.state == SMA_TRAP_FREE)
		return false;
	return t->info.state == SMA_TRAP_FREE || trap_older(t, than);
}

static struct sma_trap *
trap_find_place(struct sma_port *p, bool strangers)
{
	unsigned int left = 0, kept = strangers ? PLACES_KEPT : 0;
	struct sma_trap *place = NULL;

	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		struct sma_trap *t = &p->trap[i];

		if (trap_pending(t))
			continue;
		left++;
		if (better_place(t, place))
			place = t;
	}
	return left > kept ? place : NULL;
}

static bool
trap_take_token(struct sma_port *p, bool strangers, uint64_t now)
{
	if (strangers && token_bucket_low(&p->trap_rate, now))
		return false;
	return token_bucket_take(&p->trap_rate, now);
}

static uint32_t
new_id(struct sma *s)
{
	if (++s->next_trap_id == 0)
		s->next_trap_id = 1;
	return s->next_trap_id;
}

struct sma_trap *
trap_raise(struct sma_port *p, const uint8_t *notice, bool own_lid, uint64_t now)
{
	struct sma_trap *t = trap_find_cause(p, notice, own_lid);
	bool strangers = trap_by_strangers(notice);

	sma_count(p, traps_raised);
	if (t != NULL) {
		t->info.raised++;
		return t;
	}
	t = trap_find_place(p, strangers);
	if (t == NULL || !trap_take_token(p, strangers, now)) {
		sma_count(p, traps_limited);
		return NULL;
	}
	t->info = (struct sma_trap_info){
		.id = new_id(p->sma),
		.port = p->index,
		.state = SMA_TRAP_HELD,
		.number = get_be16(notice + NOTICE_OFF_NUMBER),
		.type = notice[NOTICE_OFF_TYPE] & NOTICE_TYPE_MASK,
		.raised = 1,
		.tid = rng_u64(p->sma->config.rng),
	};
	memcpy(t->info.notice, notice, SMA_DATA_LEN);
	put_be16(t->info.notice + NOTICE_OFF_TOGGLE, 0);
	t->own_lid = own_lid;
	t->first = now;
	trap_refresh(t);
	trap_proceed(t, now);
	RTE_ASSERT(t->port == p && trap_pending(t));
	return t;
}

static bool
has_own_lid(const uint8_t *notice)
{
	uint16_t number = get_be16(notice + NOTICE_OFF_NUMBER);

	return (number >= TRAP_LINK_INTEGRITY && number <= TRAP_FLOW_CONTROL) ||
		number == TRAP_LOCAL_CHANGE || number == TRAP_SYSTEM_IMAGE ||
		number == TRAP_BAD_M_KEY;
}

struct sma_trap *
sma_trap_raise(struct sma_port *p, const uint8_t notice[SMA_DATA_LEN], uint64_t now)
{
	return trap_raise(p, notice, has_own_lid(notice), now);
}
