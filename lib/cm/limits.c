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

#include "base/siphash.h"
#include "cm/private.h"

/* --- addresses --- */

union gid
cm_address(const struct av *av)
{
	union gid addr = { .word = { 0, 0 } };

	if (av->encap != ENCAP_IB || av->grh)
		return av->dgid;
	put_be16(addr.raw + 14, av->dlid);
	return addr;
}

/* Packets of a peer on our own IB subnet may or may not have a GRH: without one compare LIDs. */
static bool
same_peer_address(const struct av *a, const struct av *b)
{
	if ((a->encap == ENCAP_IB) != (b->encap == ENCAP_IB))
		return false;
	if (a->encap != ENCAP_IB || (a->grh && b->grh))
		return gid_equal(&a->dgid, &b->dgid);
	return a->dlid == b->dlid;
}

/*
 * The first address of the connection stays valid after a migration: a late REQ may come from it.
 */
bool
cm_is_peer(const struct cm_conn *c, const struct mad_peer *from)
{
	union gid addr = cm_address(&from->av);

	return same_peer_address(&c->to.av, &from->av) ||
		same_peer_address(&c->path.av, &from->av) ||
		same_peer_address(&c->alternate.av, &from->av) || gid_equal(&c->peer->addr, &addr);
}

static uint64_t
cm_address_hash(const struct cm *cm, const union gid *addr)
{
	return siphash_words(cm->config.hash_key, addr->word, 2);
}

static struct cm_peer *
cm_peer_find(const struct cm *cm, const union gid *addr)
{
	uint64_t hash = cm_address_hash(cm, addr);
	struct hash_link *l;
	struct cm_peer *p;

	HASH_FOREACH(l, &cm->by_address, hash) {
		p = container_of(l, struct cm_peer, link);
		if (gid_equal(&p->addr, addr))
			return p;
	}
	return NULL;
}

static struct cm_prefix *
cm_prefix_of(const struct cm *cm, const union gid *addr)
{
	const union gid prefix = gid_prefix(addr);

	return &cm->prefixes[cm_address_hash(cm, &prefix) & cm->by_address.mask];
}

struct cm_peer *
cm_peer_get(struct cm *cm, const struct mad_peer *to)
{
	union gid addr = cm_address(&to->av);
	struct cm_peer *p = cm_peer_find(cm, &addr);

	if (p != NULL || LIST_EMPTY(&cm->peer_free))
		return p;
	p = container_of(LIST_FIRST(&cm->peer_free), struct cm_peer, link);
	hash_remove(&p->link);
	*p = (struct cm_peer){ .addr = addr, .prefix = cm_prefix_of(cm, &addr) };
	share_holder_init(&p->half_open);
	hash_add(&cm->by_address, &p->link, cm_address_hash(cm, &addr));
	return p;
}

void
cm_peer_put(struct cm *cm, struct cm_peer *p)
{
	if (p == NULL || p->connections != 0)
		return;
	hash_remove(&p->link);
	LIST_INSERT_HEAD(&cm->peer_free, &p->link, chain);
}

/* --- paused addresses --- */

static struct cm_pause *
pause_find(const struct cm *cm, const union gid *addr)
{
	uint64_t hash = cm_address_hash(cm, addr);
	struct hash_link *l;
	struct cm_pause *p;

	HASH_FOREACH(l, &cm->paused, hash) {
		p = container_of(l, struct cm_pause, link);
		if (gid_equal(&p->addr, addr))
			return p;
	}
	return NULL;
}

void
cm_pause_peer(struct cm *cm, const union gid *addr, uint64_t until)
{
	struct cm_pause *p = pause_find(cm, addr);

	if (p == NULL) {
		p = TAILQ_FIRST(&cm->oldest_pause);
		if (p->until != 0)
			hash_remove(&p->link);
		p->addr = *addr;
		hash_add(&cm->paused, &p->link, cm_address_hash(cm, addr));
	}
	p->until = until;
	TAILQ_REMOVE(&cm->oldest_pause, p, age);
	TAILQ_INSERT_TAIL(&cm->oldest_pause, p, age);
}

bool
cm_is_paused(const struct cm *cm, const union gid *addr, uint64_t now)
{
	const struct cm_pause *p = pause_find(cm, addr);

	return p != NULL && now < p->until;
}

/* --- the share of a prefix --- */

/*
 * Anti-exhaustion: an established connection does not give way, and whoever has a prefix has all of
 * its addresses. So a stranger's connection is taken only while its prefix leaves some for others.
 * Half-open ones, whose addresses may be forged, do not count.
 */

uint32_t
cm_standing(const struct cm *cm)
{
	return cm->used - cm->everyone.count;
}

static uint32_t
prefix_standing(const struct cm_prefix *p)
{
	return p->connections - p->half_open.count;
}

static bool
prefix_leaves_room(struct cm *cm, uint32_t held, uint32_t all)
{
	uint32_t most = cm->limits.max_connections;

	if (share_leaves_room(held, most > all ? most - all : 0))
		return true;
	cm_count(cm, prefix_limit);
	return false;
}

bool
cm_prefix_room(struct cm *cm, const struct mad_peer *from)
{
	const union gid addr = cm_address(&from->av);

	return prefix_leaves_room(cm, prefix_standing(cm_prefix_of(cm, &addr)), cm_standing(cm));
}

bool
cm_prefix_room_for(const struct cm_conn *c)
{
	return prefix_leaves_room(c->cm, prefix_standing(c->peer->prefix) - 1,
		cm_standing(c->cm) - 1);
}

/* --- half open: counting --- */

/* Of all QPs of half-open connections together (a choice): 8,192 of rping's need half of it. */
#define HALF_OPEN_BYTES (UINT64_C(128) << 20)

void
cm_half_open_add(struct cm_conn *c)
{
	struct cm *cm = c->cm;
	unsigned int i;

	c->half_open = true;
	c->request = cm->requests;
	c->origin[CM_ADDRESS] = &c->peer->half_open;
	c->origin[CM_PREFIX] = &c->peer->prefix->half_open;
	c->origin[CM_EVERYONE] = &cm->everyone;
	for (i = 0; i < CM_LEVELS; i++)
		share_add(&cm->rank[i], c->origin[i], &c->half_open_item[i]);
}

void
cm_half_open_remove(struct cm_conn *c)
{
	struct cm *cm = c->cm;
	unsigned int i;

	if (!c->half_open)
		return;
	c->half_open = false;
	for (i = 0; i < CM_LEVELS; i++)
		share_remove(&cm->rank[i], c->origin[i], &c->half_open_item[i]);
	cm->half_open_bytes -= c->bytes;
	c->bytes = 0;
}

/* --- half open: giving way --- */

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
