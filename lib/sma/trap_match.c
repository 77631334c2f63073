/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Find the trap that a repeated cause, a TrapRepress or an id refers to.
 */

#include <errno.h>

#include "sma/trap.h"

/* --- the same cause --- */

/*
 * True if the details are the same. Our own LID in them is skipped: it may have changed since the
 * trap was raised.
 */
static bool
same_details(const struct sma_trap *t, const uint8_t *notice)
{
	const uint8_t *ours = t->info.notice;
	unsigned int rest = NOTICE_OFF_DETAILS;

	if (t->own_lid) {
		if (memcmp(ours + rest, notice + rest, NOTICE_OFF_LID - rest) != 0)
			return false;
		rest = NOTICE_OFF_LID + 2;
	}
	return memcmp(ours + rest, notice + rest, SMA_DATA_LEN - rest) == 0;
}

/* Compares number, type and details; Toggle, Count and IssuerLID do not describe the cause. */
struct sma_trap *
trap_find_cause(struct sma_port *p, const uint8_t *notice, bool own_lid)
{
	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		struct sma_trap *t = &p->trap[i];

		if (trap_pending(t) && t->own_lid == own_lid &&
			memcmp(t->info.notice, notice, NOTICE_OFF_ISSUER_LID) == 0 &&
			same_details(t, notice))
			return t;
	}
	return NULL;
}

/* --- repressing --- */

static void
trap_set_repressed(struct sma_trap *t, uint64_t now)
{
	t->info.state = SMA_TRAP_REPRESSED;
	sma_count(t->port, traps_repressed);
	trap_stop(t, now);
}

/*
 * True if a TrapRepress means this trap: number and type must match, and the details if it has any.
 * The TransactionID is ignored: that it must match is UNCONFIRMED (smp-sma 5). A trap never sent
 * cannot be repressed.
 */
static bool
trap_is_meant(const struct sma_trap *t, const uint8_t *notice)
{
	static const uint8_t no_details[SMA_DATA_LEN - NOTICE_OFF_DETAILS];

	return t->info.sent > 0 && t->info.number == get_be16(notice + NOTICE_OFF_NUMBER) &&
		t->info.type == (notice[NOTICE_OFF_TYPE] & NOTICE_TYPE_MASK) &&
		(memcmp(notice + NOTICE_OFF_DETAILS, no_details, sizeof(no_details)) == 0 ||
			same_details(t, notice));
}

void
sma_trap_repressed(struct sma_port *p, const uint8_t *mad, uint64_t now)
{
	const uint8_t *notice = mad + SMP_OFF_DATA;
	bool known = false; /* also true for a trap repressed before: the SM repeats itself */

	for (unsigned int i = 0; i < SMA_TRAPS_MAX; i++) {
		struct sma_trap *t = &p->trap[i];

		if (t->info.state == SMA_TRAP_FREE || !trap_is_meant(t, notice))
			continue;
		known = true;
		if (trap_pending(t))
			trap_set_repressed(t, now);
	}
	if (!known)
		sma_count(p, repress_unmatched);
}

int
sma_trap_repress(struct sma *s, uint32_t id, uint64_t now)
{
	for (unsigned int i = 0; i < s->num_ports; i++) {
		for (unsigned int j = 0; j < SMA_TRAPS_MAX; j++) {
			struct sma_trap *t = &s->port[i].trap[j];

			if (t->info.id != id || !trap_pending(t))
				continue;
			trap_set_repressed(t, now);
			return 0;
		}
	}
	return -ENOENT;
}
