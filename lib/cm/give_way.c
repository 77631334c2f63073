/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits against REQ floods. A passive connection is half open until it is established: it has a
 * connection of the pool, a QPN and a QP, but no place in its service. Half-open connections have
 * a pool of their own, limited per address, in number and in bytes. When it is full, the oldest
 * one of the address that has most ends for the new one; if no address has more than one, of the
 * prefix that has most; if no prefix has, the oldest of all. So a flood from forged addresses
 * shortens the time that a peer has for its RTU, to the time in which the pool fills once, but it
 * keeps nobody out and never ends an established connection.
 */

#include <errno.h>

#include "cm/private.h"

/* Of all QPs of half-open connections together (a choice): 8,192 of rping's need half of it. */
#define HALF_OPEN_BYTES (UINT64_C(128) << 20)

static void
half_open_end(struct cm_conn *c, uint64_t now)
{
	static const struct cm_refusal full = {
		.answers = CM_ANSWERS_OTHER,
		.reason = CM_REJ_NO_RESOURCES,
	};

	cm_count(c->cm, half_open_evicted);
	cm_reject(c, &full);
	cm_end_idle(c, CM_END_TIMEOUT, 0, NULL, 0, now);
}

/*
 * The oldest of the holder that has most at a level, if it has more than one, and if as many REQs
 * have come since as are half open: it is then older than the time in which REQs at the present
 * rate fill the pool.
 */
static struct cm_conn *
old_enough(const struct cm *cm, unsigned int level, const struct cm_conn *keep)
{
	struct share_holder *most = share_most(&cm->rank[level]);
	struct cm_conn *c;

	if (most == NULL || most->count == 1)
		return NULL;
	c = CM_OF_ITEM(TAILQ_FIRST(&most->items), level);
	return c != keep && cm->requests - c->request >= cm->everyone.count ? c : NULL;
}

bool
cm_half_open_evict(struct cm *cm, const struct cm_conn *keep, uint64_t now)
{
	struct cm_conn *c = NULL;
	unsigned int i;

	if (cm->everyone.count == 0)
		return false;
	for (i = 0; i < CM_EVERYONE && c == NULL; i++)
		c = old_enough(cm, i, keep);
	if (c == NULL)
		c = CM_OF_ITEM(TAILQ_FIRST(&cm->everyone.items), CM_EVERYONE);
	if (c == keep)
		return false;
	half_open_end(c, now);
	return true;
}

int
cm_give_way(struct cm *cm, cm_id id, uint64_t now)
{
	struct cm_conn *c = cm_conn_of(cm, id);

	if (c == NULL || !c->half_open)
		return -ENOENT;
	half_open_end(c, now);
	return 0;
}

void
cm_half_open_weigh(struct cm_conn *c, size_t bytes, uint64_t now)
{
	struct cm *cm = c->cm;

	if (!c->half_open)
		return;
	c->bytes = (uint32_t)bytes;
	cm->half_open_bytes += bytes;
	while (cm->half_open_bytes > HALF_OPEN_BYTES && cm_half_open_evict(cm, c, now))
		;
}

/*
 * End the peer's oldest half-open connection, if it is older than one retry interval of our REP, a
 * second at most. A younger one may be about to complete: a peer that opens many at a time must
 * not lose it.
 */
static bool
evict_own_oldest(struct cm *cm, struct cm_peer *p, uint64_t now)
{
	struct share_item *oldest = TAILQ_FIRST(&p->half_open.items);
	struct cm_conn *c;

	if (oldest == NULL)
		return false;
	c = CM_OF_ITEM(oldest, CM_ADDRESS);
	if (now - c->opened < RTE_MIN(c->dreq_interval, cm_time(cm, 1000)))
		return false;
	half_open_end(c, now);
	return true;
}

bool
cm_half_open_room(struct cm *cm, const struct mad_peer *from, uint64_t now)
{
	union gid addr = cm_address(&from->av);
	struct cm_peer *p = cm_peer_find(cm, &addr);

	cm->requests++;
	if (p != NULL && p->half_open.count >= cm->limits.max_half_open_per_peer &&
		!evict_own_oldest(cm, p, now)) {
		cm_count(cm, half_open_limit);
		return false;
	}
	if (cm->everyone.count >= cm->limits.max_half_open)
		cm_half_open_evict(cm, NULL, now);
	return true;
}

void
cm_half_open_heard(struct cm_conn *c, bool has_our_id)
{
	if (has_our_id)
		c->budget.proven = true;
	else
		unproven_heard(&c->budget, MAD_LEN);
}
