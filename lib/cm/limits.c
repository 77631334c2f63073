/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the limits of connections count: addresses and their prefixes, paused addresses, and who
 * has half-open connections. give_way.c acts on it.
 */

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

struct cm_peer *
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

	RTE_ASSERT(until != 0); /* which stands for a place that was never used */
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

/* --- half open --- */

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
