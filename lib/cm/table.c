/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The connections of a worker: a pool sized at creation. Our communication ID contains the slot;
 * the peer's ID and QPN are found through hash tables with a keyed hash, so that a peer cannot
 * choose colliding values.
 */

#include <errno.h>

#include <rte_common.h>

#include "base/siphash.h"
#include "cm/private.h"

/* --- set-up --- */

static void
cm_fill_pools(struct cm *cm, const struct cm_timers *timers)
{
	struct cm_conn *c;
	uint32_t i;

	TAILQ_INIT(&cm->work);
	TAILQ_INIT(&cm->oldest_pause);
	for (i = 0; i < CM_PAUSED; i++)
		TAILQ_INSERT_TAIL(&cm->oldest_pause, &cm->pauses[i], age);
	share_holder_init(&cm->everyone);
	for (i = 0; i <= cm->by_address.mask; i++)
		share_holder_init(&cm->prefixes[i].half_open);
	for (i = cm->slots; i-- > 0;) {
		c = &cm->conns[i];
		c->cm = cm;
		c->index = i;
		c->generation = rng_u32(cm->config.rng);
		timer_init(&c->timer, timers->expired);
		timer_init(&c->probe_timer, timers->probe_expired);
		c->free = cm->free;
		cm->free = c;
		LIST_INSERT_HEAD(&cm->peer_free, &cm->peers[i].link, chain);
	}
}

int
cm_table_create(struct cm *cm, const struct cm_timers *timers)
{
	const struct allocator *a = cm->config.alloc;
	uint32_t n = cm->slots;
	bool ok = hash_create(&cm->by_address, a, n) == 0;
	unsigned int k;

	cm->conns = mem_zalloc(a, n * sizeof(*cm->conns), 64);
	cm->peers = mem_zalloc(a, n * sizeof(*cm->peers), 64);
	cm->listeners = mem_zalloc(a, cm->limits.max_listeners * sizeof(*cm->listeners), 64);
	cm->prefixes = mem_zalloc(a, (cm->by_address.mask + 1) * sizeof(*cm->prefixes), 64);
	cm->pauses = mem_zalloc(a, CM_PAUSED * sizeof(*cm->pauses), 64);
	ok = hash_create(&cm->paused, a, CM_PAUSED) == 0 && ok;
	for (k = 0; k < CM_KEYS; k++)
		ok = hash_create(&cm->by_key[k], a, n) == 0 && ok;
	for (k = 0; k < CM_LEVELS; k++)
		ok = share_rank_create(&cm->rank[k], a, cm->limits.max_half_open) == 0 && ok;
	if (!ok || cm->prefixes == NULL || cm->conns == NULL || cm->peers == NULL ||
		cm->listeners == NULL || cm->pauses == NULL)
		return -ENOMEM;
	cm_fill_pools(cm, timers);
	return 0;
}

void
cm_table_destroy(struct cm *cm)
{
	const struct allocator *a = cm->config.alloc;
	unsigned int k;

	for (k = 0; k < CM_KEYS; k++)
		mem_free(a, cm->by_key[k].buckets);
	for (k = 0; k < CM_LEVELS; k++)
		share_rank_destroy(&cm->rank[k], a);
	mem_free(a, cm->paused.buckets);
	mem_free(a, cm->pauses);
	mem_free(a, cm->prefixes);
	mem_free(a, cm->listeners);
	mem_free(a, cm->by_address.buckets);
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
	if (id == 0 || slot >= cm->slots)
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
		.probe_timer = c->probe_timer,
	};

	*c = keep;
}

bool
cm_full(const struct cm *cm)
{
	return cm_standing(cm) >= cm->limits.max_connections;
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
	cm->used++;
	conn_clear(c);
	c->peer = p;
	p->connections++;
	p->prefix->connections++;
	cm->high = RTE_MAX(cm->high, c->index + 1);
	c->id = cm_id_make(c);
	c->to = *to;
	c->opened = now;
	cm->now = now;
	cm_trace_create(c);
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
	cm_probe_end(c);
	cm_unwant(c, c->work);
	timer_disarm(cm->config.wheel, &c->timer);
	c->peer->connections--;
	c->peer->prefix->connections--;
	cm_peer_put(cm, c->peer);
	cm_trace_free(c);
	c->peer = NULL;
	c->id = 0;
	c->state = CM_STATE_IDLE;
	c->free = cm->free;
	cm->free = c;
	cm->used--;
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

struct cm_conn *
cm_find(const struct cm *cm, enum cm_key key, uint64_t guid, uint32_t number,
	const struct mad_peer *from)
{
	uint64_t want[2] = { guid, number }, has[2];
	uint64_t hash = siphash_words(cm->config.hash_key, want, 2);
	struct hash_link *l;
	struct cm_conn *c;

	HASH_FOREACH(l, &cm->by_key[key], hash) {
		c = container_of(l - key, struct cm_conn, key_link[0]);
		conn_key(c, key, has);
		if (has[0] == want[0] && has[1] == want[1] && (from == NULL || cm_is_peer(c, from)))
			return c;
	}
	return NULL;
}

void
cm_key_add(struct cm_conn *c, enum cm_key key)
{
	uint64_t word[2];

	conn_key(c, key, word);
	hash_add(&c->cm->by_key[key], &c->key_link[key],
		siphash_words(c->cm->config.hash_key, word, 2));
	c->keyed |= (uint8_t)(1u << key);
}

void
cm_key_remove(struct cm_conn *c, enum cm_key key)
{
	if (!(c->keyed & 1u << key))
		return;
	hash_remove(&c->key_link[key]);
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

/* --- probes --- */

void
cm_probe_end(struct cm_conn *c)
{
	if (!c->probing)
		return;
	c->probing = false;
	c->peer->probes--;
	c->cm->probes[c->probe_port]--;
	timer_disarm(c->cm->config.wheel, &c->probe_timer);
}
