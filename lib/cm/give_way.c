/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits against REQ floods. A passive connection is half open until it is established: it has a
 * connection of the pool, a QPN and a QP, but no place in its service. Half-open connections have
 * a pool of their own, limited per address, in number and in bytes. When it is full, the oldest
 * one of the address that has most ends for the new one; if no address has more than one, of the
 * prefix that has most; if no prefix has, the oldest of all. An address or a prefix with more than
 * half of the pool comes before all others. So a flood from one prefix takes nothing from others,
 * and one from everywhere shortens the time that a peer has for its RTU, to the time in which the
 * pool fills once; neither keeps anybody out or ends an established connection.
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
	limit_peer_note(&c->cm->limited.evicted, c->peer->addr.raw);
	cm_reject(c, &full);
	cm_end_idle(c, CM_END_TIMEOUT, 0, NULL, 0, now);
	cm_conn_check(c);
}

/*
 * True if as many REQs have come since as are half open: the connection is then older than the time
 * in which REQs at the present rate fill the pool.
 */
static bool
old_enough(const struct cm *cm, const struct cm_conn *c)
{
	return cm->requests - c->request >= cm->everyone.count;
}

/*
 * The oldest of the holder that has most at a level, if it has more than one. Anti-exhaustion: age
 * protects others from a flood, not the flood from itself. Who has more than half loses its oldest,
 * which is still older than half of the time above.
 */
static struct cm_conn *
half_open_of_most(const struct cm *cm, unsigned int level, const struct cm_conn *keep)
{
	const struct share_holder *most = share_most(&cm->rank[level]);
	struct cm_conn *c;

	if (most == NULL || most->count == 1)
		return NULL;
	c = CM_OF_ITEM(TAILQ_FIRST(&most->items), level);
	if (c == keep || !(old_enough(cm, c) || share_is_majority(most, cm->everyone.count)))
		return NULL;
	return c;
}

static struct cm_conn *
who_gives_way(const struct cm *cm, const struct cm_conn *keep)
{
	struct cm_conn *of_address = half_open_of_most(cm, CM_ADDRESS, keep);
	struct cm_conn *of_prefix = half_open_of_most(cm, CM_PREFIX, keep);

	if (of_address != NULL && of_prefix != NULL &&
		share_prefix_first(of_prefix->origin[CM_PREFIX], of_address->origin[CM_PREFIX],
			cm->everyone.count))
		return of_prefix;
	if (of_address != NULL)
		return of_address;
	if (of_prefix != NULL)
		return of_prefix;
	return CM_OF_ITEM(TAILQ_FIRST(&cm->everyone.items), CM_EVERYONE);
}

bool
cm_half_open_evict(struct cm *cm, const struct cm_conn *keep, uint64_t now)
{
	struct cm_conn *c;

	if (cm->everyone.count == 0)
		return false;
	c = who_gives_way(cm, keep);
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
		limit_peer_note(&cm->limited.half_open, addr.raw);
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
