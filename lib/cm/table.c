/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The connections of a worker: a pool sized at creation. Our communication ID contains the slot;
 * the peer's ID and QPN are found through hash tables with a keyed hash, so that a peer cannot
 * choose colliding values.
 */

#include <errno.h>

#include <rte_bitops.h>
#include <rte_common.h>

#include "base/siphash.h"
#include "cm/private.h"

/* --- set-up --- */

static void
cm_fill_pools(struct cm *cm)
{
	struct cm_conn *c;
	uint32_t i;

	TAILQ_INIT(&cm->work);
	for (i = cm->limits.max_connections; i-- > 0;) {
		c = &cm->conns[i];
		c->cm = cm;
		c->index = i;
		c->generation = rng_u32(cm->config.rng);
		timer_init(&c->timer, cm_expired);
		c->free = cm->free;
		cm->free = c;
		cm->peers[i].chain = cm->peer_free;
		cm->peer_free = &cm->peers[i];
	}
}

int
cm_table_create(struct cm *cm)
{
	const struct allocator *a = cm->config.alloc;
	uint32_t n = cm->limits.max_connections, buckets = rte_align32pow2(n);
	unsigned int k;
	bool ok = true;

	cm->mask = buckets - 1;
	cm->conns = mem_zalloc(a, n * sizeof(*cm->conns), 64);
	cm->peers = mem_zalloc(a, n * sizeof(*cm->peers), 64);
	cm->peer_buckets = mem_zalloc(a, buckets * sizeof(*cm->peer_buckets), 64);
	cm->listeners = mem_zalloc(a, cm->limits.max_listeners * sizeof(*cm->listeners), 64);
	for (k = 0; k < CM_KEYS; k++) {
		cm->buckets[k] = mem_zalloc(a, buckets * sizeof(*cm->buckets[k]), 64);
		ok = ok && cm->buckets[k] != NULL;
	}
	if (!ok || cm->conns == NULL || cm->peers == NULL || cm->peer_buckets == NULL ||
		cm->listeners == NULL)
		return -ENOMEM;
	cm_fill_pools(cm);
	return 0;
}

void
cm_table_destroy(struct cm *cm)
{
	const struct allocator *a = cm->config.alloc;
	unsigned int k;

	for (k = 0; k < CM_KEYS; k++)
		mem_free(a, cm->buckets[k]);
	mem_free(a, cm->listeners);
	mem_free(a, cm->peer_buckets);
	mem_free(a, cm->peers);
	mem_free(a, cm->conns);
}

/* --- the pool --- */

struct cm_conn *
cm_conn_of(const struct cm *cm, cm_id id)
{
	uint32_t plain = cm_unscramble(cm->config.hash_key, id), slot;
	struct cm_conn *c;

	slot = plain >> cm->ids.worker_bits & ((1u << cm->ids.slot_bits) - 1);
	if (id == 0 || slot >= cm->limits.max_connections)
		return NULL;
	c = &cm->conns[slot];
	return c->id == id ? c : NULL;
}

/* Zero all fields but those that cm_fill_pools() set once. */
static void
conn_clear(struct cm_conn *c)
{
	struct cm_conn keep = {
		.cm = c->cm,
		.index = c->index,
		.generation = c->generation,
		.timer = c->timer,
	};

	*c = keep;
}

struct cm_conn *
cm_conn_new(struct cm *cm, const struct mad_peer *to, uint64_t now)
{
	struct cm_conn *c = cm->free;
	struct cm_peer *p;

	if (c == NULL)
		return NULL;
	p = cm_peer_get(cm, to);
	if (p == NULL || p->connections >= cm->limits.max_connections_per_peer) {
		cm_peer_put(cm, p);
		return NULL;
	}
	cm->free = c->free;
	conn_clear(c);
	c->peer = p;
	p->connections++;
	cm->high = RTE_MAX(cm->high, c->index + 1);
	c->id = cm_id_make(c);
	c->to = *to;
	c->opened = now;
	return c;
}

void
cm_conn_free(struct cm_conn *c)
{
	struct cm *cm = c->cm;
	unsigned int k;

	for (k = 0; k < CM_KEYS; k++)
		cm_key_remove(c, k);
	cm_half_open_remove(c);
	cm_unwant(c, c->work);
	timer_disarm(cm->config.wheel, &c->timer);
	c->peer->connections--;
	cm_peer_put(cm, c->peer);
	c->peer = NULL;
	c->id = 0;
	c->state = CM_STATE_IDLE;
	c->free = cm->free;
	cm->free = c;
}

/* --- keys --- */

static void
conn_key(const struct cm_conn *c, enum cm_key key, uint64_t word[2])
{
	word[0] = key == CM_KEY_QPN ? 0 : c->remote_ca_guid;
	word[1] = key == CM_KEY_QPN        ? c->qpn
		: key == CM_KEY_REMOTE_QPN ? c->remote_qpn
					   : c->remote_id;
}

static struct cm_conn **
conn_bucket(const struct cm *cm, enum cm_key key, const uint64_t word[2])
{
	return &cm->buckets[key][siphash_words(cm->config.hash_key, word, 2) & cm->mask];
}

struct cm_conn *
cm_find(const struct cm *cm, enum cm_key key, uint64_t guid, uint32_t number,
	const struct mad_peer *from)
{
	uint64_t want[2] = { guid, number }, has[2];
	struct cm_conn *c;

	for (c = *conn_bucket(cm, key, want); c != NULL; c = c->chain[key]) {
		conn_key(c, key, has);
		if (has[0] == want[0] && has[1] == want[1] && (from == NULL || cm_is_peer(c, from)))
			return c;
	}
	return NULL;
}

void
cm_key_add(struct cm_conn *c, enum cm_key key)
{
	struct cm_conn **head;
	uint64_t word[2];

	conn_key(c, key, word);
	head = conn_bucket(c->cm, key, word);
	c->chain[key] = *head;
	*head = c;
	c->keyed |= (uint8_t)(1u << key);
}

void
cm_key_remove(struct cm_conn *c, enum cm_key key)
{
	struct cm_conn **at;
	uint64_t word[2];

	if (!(c->keyed & 1u << key))
		return;
	conn_key(c, key, word);
	at = conn_bucket(c->cm, key, word);
	while (*at != c)
		at = &(*at)->chain[key];
	*at = c->chain[key];
	c->keyed &= (uint8_t) ~(1u << key);
}

/* --- the work list of cm_run() --- */

void
cm_want(struct cm_conn *c, uint8_t work)
{
	if (c->work == 0)
		TAILQ_INSERT_TAIL(&c->cm->work, c, work_link);
	c->work |= work;
}

void
cm_unwant(struct cm_conn *c, uint8_t work)
{
	if (c->work == 0)
		return;
	c->work &= (uint8_t)~work;
	if (c->work == 0)
		TAILQ_REMOVE(&c->cm->work, c, work_link);
}
