/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Limits against REQ floods. A passive connection is half open until it is established; half-open
 * connections are limited per peer address and per worker. A flood cannot take more than that,
 * never ends established connections and never ends the half-open connections of another peer.
 */

#include "base/siphash.h"
#include "cm/private.h"

/* --- addresses --- */

/*
 * The address that limits count by: on our own IB subnet the LID, as ::lid; otherwise the GID,
 * since all peers behind a router share the router's LID.
 */
static union gid
peer_address(const struct mad_peer *to)
{
	union gid addr = { .word = { 0, 0 } };

	if (to->av.encap != ENCAP_IB || to->av.grh)
		return to->av.dgid;
	put_be16(addr.raw + 14, to->av.dlid);
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
	union gid addr = peer_address(from);

	return same_peer_address(&c->to.av, &from->av) ||
		same_peer_address(&c->path.av, &from->av) ||
		same_peer_address(&c->alternate.av, &from->av) || gid_equal(&c->peer->addr, &addr);
}

static struct cm_peer **
cm_peer_bucket(const struct cm *cm, const union gid *addr)
{
	return &cm->peer_buckets[siphash_words(cm->config.hash_key, addr->word, 2) & cm->mask];
}

static struct cm_peer *
cm_peer_find(const struct cm *cm, const union gid *addr)
{
	struct cm_peer *p = *cm_peer_bucket(cm, addr);

	while (p != NULL && !gid_equal(&p->addr, addr))
		p = p->chain;
	return p;
}

struct cm_peer *
cm_peer_get(struct cm *cm, const struct mad_peer *to)
{
	union gid addr = peer_address(to);
	struct cm_peer *p = cm_peer_find(cm, &addr), **head;

	if (p != NULL)
		return p;
	p = cm->peer_free;
	if (p == NULL)
		return NULL;
	cm->peer_free = p->chain;
	*p = (struct cm_peer){ .addr = addr };
	TAILQ_INIT(&p->half_open_list);
	head = cm_peer_bucket(cm, &addr);
	p->chain = *head;
	*head = p;
	return p;
}

void
cm_peer_put(struct cm *cm, struct cm_peer *p)
{
	struct cm_peer **at;

	if (p == NULL || p->connections != 0)
		return;
	at = cm_peer_bucket(cm, &p->addr);
	while (*at != p)
		at = &(*at)->chain;
	*at = p->chain;
	p->chain = cm->peer_free;
	cm->peer_free = p;
}

/* --- half open --- */

void
cm_half_open_add(struct cm_conn *c)
{
	c->half_open = true;
	c->cm->half_open++;
	c->peer->half_open++;
	TAILQ_INSERT_TAIL(&c->peer->half_open_list, c, half_open_link);
}

void
cm_half_open_remove(struct cm_conn *c)
{
	if (!c->half_open)
		return;
	c->half_open = false;
	c->cm->half_open--;
	c->peer->half_open--;
	TAILQ_REMOVE(&c->peer->half_open_list, c, half_open_link);
}

/*
 * End the peer's oldest half-open connection, if it is older than one retry interval of our REP. A
 * younger one may be about to complete: a peer that opens many at a time must not lose it.
 */
static bool
evict_oldest_half_open(struct cm *cm, struct cm_peer *p, uint64_t now)
{
	static const struct cm_refusal full = {
		.answers = CM_ANSWERS_OTHER,
		.reason = CM_REJ_NO_RESOURCES,
	};
	struct cm_conn *c = p != NULL ? TAILQ_FIRST(&p->half_open_list) : NULL;

	if (c == NULL || now - c->opened < c->dreq_interval)
		return false;
	cm_count(cm, half_open_evicted);
	cm_reject(c, &full);
	cm_end_idle(c, CM_END_TIMEOUT, 0, NULL, 0, now);
	return true;
}

bool
cm_half_open_room(struct cm *cm, const struct mad_peer *from, uint64_t now)
{
	union gid addr = peer_address(from);
	struct cm_peer *p = cm_peer_find(cm, &addr);

	if (cm->half_open < cm->limits.max_half_open &&
		(p == NULL || p->half_open < cm->limits.max_half_open_per_peer))
		return true;
	if (evict_oldest_half_open(cm, p, now))
		return true;
	cm_count(cm, half_open_limit);
	return false;
}
