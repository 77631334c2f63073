/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What strangers may cost: passive connections that are not established yet are half open, and
 * bounded for each address and in all. A flood can fill no more than that; what stands is not
 * touched, and nobody's half-open connection goes for another's.
 */

#include "base/siphash.h"
#include "cm/private.h"

/* --- addresses --- */

/* A peer of the own subnet is its LID; behind a router many share the router's, and have a GID. */
static union gid
address_of(const struct mad_peer *to)
{
	union gid addr = { .word = { 0, 0 } };

	if (to->av.encap != ENCAP_IB || to->av.grh)
		return to->av.dgid;
	put_be16(addr.raw + 14, to->av.dlid);
	return addr;
}

/* On the own subnet packets of one peer may have a GRH or not: its LID then. */
static bool
same_address(const struct av *a, const struct av *b)
{
	if ((a->encap == ENCAP_IB) != (b->encap == ENCAP_IB))
		return false;
	if (a->encap != ENCAP_IB || (a->grh && b->grh))
		return gid_equal(&a->dgid, &b->dgid);
	return a->dlid == b->dlid;
}

/* The address the connection began with counts for all its life: a late REQ may come from there. */
bool
cm_is_peer(const struct cm_conn *c, const struct mad_peer *from)
{
	union gid addr = address_of(from);

	return same_address(&c->to.av, &from->av) || same_address(&c->path.av, &from->av) ||
		same_address(&c->alternate.av, &from->av) || gid_equal(&c->peer->addr, &addr);
}

static struct cm_peer **
bucket_of(const struct cm *cm, const union gid *addr)
{
	return &cm->peer_buckets[siphash_words(cm->config.hash_key, addr->word, 2) & cm->mask];
}

static struct cm_peer *
peer_find(const struct cm *cm, const union gid *addr)
{
	struct cm_peer *p = *bucket_of(cm, addr);

	while (p != NULL && !gid_equal(&p->addr, addr))
		p = p->chain;
	return p;
}

struct cm_peer *
cm_peer_get(struct cm *cm, const struct mad_peer *to)
{
	union gid addr = address_of(to);
	struct cm_peer *p = peer_find(cm, &addr), **head;

	if (p != NULL)
		return p;
	p = cm->peer_free;
	if (p == NULL)
		return NULL;
	cm->peer_free = p->chain;
	*p = (struct cm_peer){ .addr = addr };
	TAILQ_INIT(&p->half_open_list);
	head = bucket_of(cm, &addr);
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
	at = bucket_of(cm, &p->addr);
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
 * The peer's oldest, if it has let one interval of our REP go by: a peer that opens many at a time
 * must not lose those it is about to complete.
 */
static bool
evict_of(struct cm *cm, struct cm_peer *p, uint64_t now)
{
	static const struct cm_refusal full = { .answers = CM_ANSWERS_OTHER,
		.reason = CM_REJ_NO_RESOURCES };
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
	union gid addr = address_of(from);
	struct cm_peer *p = peer_find(cm, &addr);

	if (cm->half_open < cm->limits.max_half_open &&
			(p == NULL || p->half_open < cm->limits.max_half_open_per_peer))
		return true;
	if (evict_of(cm, p, now))
		return true;
	cm_count(cm, half_open_limit);
	return false;
}
