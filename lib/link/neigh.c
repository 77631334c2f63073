/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Neighbours: next hops of paths, their MACs, resolution and ageing. neigh.h says which thread may
 * write which field.
 */

#include <stdio.h>
#include <stdlib.h>

#include <rte_debug.h>
#include <rte_malloc.h>
#include <rte_rcu_qsbr.h>

#include "base/plural.h"
#include "link/neigh.h"
#include "link/private.h"

#define RETRY_MIN_MS    100 /* first retry; doubles up to */
#define RETRY_MAX_SHIFT 5 /* 3.2 s */
#define REACHABLE_MS    30000 /* RFC 4861 REACHABLE_TIME */
#define PROBE_MS        1000 /* RFC 4861 RETRANS_TIMER */
#define UNICAST_PROBES  3 /* RFC 4861 MAX_UNICAST_SOLICIT, then as many by broadcast or multicast */
#define PROBES          6
#define MOVE_PROBES     3 /* questions to the old MAC before an entry moves (a choice) */
#define MOVE_MS         100 /* between them */
#define KEPT_MS         1000 /* after an entry was kept, until another claim is looked at */
#define WARN_S          10
#define TICK_ENTRIES    2048 /* a tick must be short: further entries wait for the next one */

struct neigh_key {
	union gid gid;
	uint64_t port; /* 64 bits, so that the key has no padding */
};

struct neigh_table *
neigh_create(void)
{
	static unsigned int serial;
	char name[RTE_HASH_NAMESIZE];
	struct rte_hash_parameters params = {
		.name = name,
		.entries = NEIGH_MAX,
		.key_len = sizeof(struct neigh_key),
		.socket_id = SOCKET_ID_ANY,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF,
	};
	struct neigh_table *t;

	snprintf(name, sizeof(name), "polca_neigh_%u", serial++);
	t = rte_zmalloc("neigh", sizeof(*t), RTE_CACHE_LINE_SIZE);
	if (t == NULL)
		return NULL;
	t->hash = rte_hash_create(&params);
	if (t->hash == NULL) {
		rte_free(t);
		return NULL;
	}
	return t;
}

void
neigh_destroy(struct neigh_table *t)
{
	if (t == NULL)
		return;
	rte_hash_free(t->hash);
	rte_free(t);
}

static int
neigh_find(const struct neigh_table *t, unsigned int port, const union gid *gid)
{
	struct neigh_key key = { .gid = *gid, .port = port };
	void *data;

	if (rte_hash_lookup_data(t->hash, &key, &data) < 0)
		return -1;
	return (int)(uintptr_t)data;
}

/* RFC 1112 6.4, RFC 2464 7 */
static void
neigh_group_mac(const union gid *gid, uint8_t mac[MAC_LEN])
{
	if (gid_is_ipv4(gid)) {
		memcpy(mac, "\x01\x00\x5E", 3);
		mac[3] = gid->raw[13] & 0x7F;
		memcpy(mac + 4, gid->raw + 14, 2);
	} else {
		memcpy(mac, "\x33\x33", 2);
		memcpy(mac + 2, gid->raw + 12, 4);
	}
}

static bool
neigh_on_link(const struct link_addr *a, const union gid *dgid)
{
	return gid_is_ipv4(&a->gid) == gid_is_ipv4(dgid) &&
		gid_same_subnet(&a->gid, dgid, a->prefix_len);
}

static bool
neigh_has_address(const struct link_port *p, const union gid *gid)
{
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++)
		if (gid_equal(&p->cfg.addr[i].gid, gid))
			return true;
	return false;
}

/*
 * The next hop is the destination if it is on the subnet of any address of the port; else the
 * source address's gateway, else another address's gateway.
 */
static const union gid *
neigh_next_hop(const struct link_port *p, const union gid *sgid, const union gid *dgid)
{
	const struct link_addr *a, *end = p->cfg.addr + p->cfg.num_addr;
	const union gid *gateway = NULL;

	if (p->back_to_back || gid_is_multicast(dgid) || gid_is_link_local(dgid))
		return dgid;
	for (a = p->cfg.addr; a < end; a++) {
		if (neigh_on_link(a, dgid))
			return dgid;
		if (gid_is_zero(&a->gateway) || gid_is_ipv4(&a->gateway) != gid_is_ipv4(dgid))
			continue;
		if (gateway == NULL || gid_equal(&a->gid, sgid))
			gateway = &a->gateway;
	}
	return gateway;
}

void
neigh_is_own(struct neigh_table *t, const struct link_port *p, const union gid *gid)
{
	uint32_t i, n = neigh_count(t);

	for (i = 0; i < n; i++) {
		if (!neigh_is_present(&t->entry[i]) || t->entry[i].port != p->index ||
			!gid_equal(&t->entry[i].gid, gid))
			continue;
		t->entry[i].permanent = true;
		__atomic_store_n(&t->mac[i], mac_word(p->mac) | NEIGH_VALID | NEIGH_SELF,
			__ATOMIC_RELAXED);
	}
}

/* A back-to-back link has only two ports, so the address must belong to one of them. */
static int
neigh_check_pair(const struct link *l, const struct link_port *p, const union gid *gid,
	struct error *err)
{
	const struct link_port *peer = &l->port[p->peer];
	char got[GID_STRLEN], first[GID_STRLEN] = "none";

	if (gid_is_multicast(gid) || neigh_has_address(p, gid) || neigh_has_address(peer, gid))
		return 0;
	if (peer->cfg.num_addr > 0)
		gid_print(&peer->cfg.addr[0].gid, first);
	return error_set(err, EHOSTUNREACH,
		"dgid: %s is nobody's: %s is joined back to back to %s, whose addresses are %s%s",
		gid_print(gid, got), p->cfg.name, peer->cfg.name, first,
		peer->cfg.num_addr > 1 ? ", ..." : "");
}

#ifdef RTE_ENABLE_ASSERT
/* Each place that was ever used is present, free, or leaving; each present entry is found. */
static void
neigh_check(const struct neigh_table *t)
{
	uint32_t i, present = 0;

	for (i = 0; i < t->count; i++) {
		if (!t->entry[i].present)
			continue;
		present++;
		RTE_ASSERT(neigh_find(t, t->entry[i].port, &t->entry[i].gid) == (int)i);
	}
	RTE_ASSERT(present == t->present);
	RTE_ASSERT(present + t->num_free + t->num_leaving == t->count);
}
#else
#define neigh_check(t) RTE_SET_USED(t)
#endif

/* Places whose grace period is over may be used again. */
static void
neigh_reclaim(struct link *l)
{
	struct neigh_table *t = l->neigh;
	uint16_t i;

	if (t->num_leaving == 0 ||
		(l->cfg.rcu != NULL &&
			rte_rcu_qsbr_check(l->cfg.rcu, t->leaving_token, false) == 0))
		return;
	while (t->num_leaving > 0) {
		i = t->leaving[--t->num_leaving];
		rte_hash_free_key_with_position(t->hash, t->entry[i].hash_place);
		t->free[t->num_free++] = i;
	}
}

/* @return a free place, or NEIGH_MAX */
static uint32_t
neigh_place(struct link *l)
{
	struct neigh_table *t = l->neigh;

	if (t->num_free == 0)
		neigh_reclaim(l);
	if (t->num_free > 0)
		return t->free[t->num_free - 1];
	return t->count;
}

/* Count it, and have unused entries looked for. */
static void
neigh_refuse(struct neigh_table *t)
{
	t->refused++;
	t->wanted = NEIGH_SEARCHES;
}

static int
neigh_make_entry(struct link *l, const struct link_port *p, const union gid *sgid,
	const union gid *hop, uint32_t *index, struct error *err)
{
	struct neigh_key key = { .gid = *hop, .port = p->index };
	struct neigh_table *t = l->neigh;
	uint32_t i = neigh_place(l);
	uint64_t flags = NEIGH_VALID;
	uint8_t mac[MAC_LEN];
	struct neigh *n;

	if (i == NEIGH_MAX || rte_hash_add_key_data(t->hash, &key, (void *)(uintptr_t)i) != 0) {
		neigh_refuse(t);
		return error_set(err, ENOSPC, "%s: neighbour table is full (%u)", p->cfg.name,
			NEIGH_MAX);
	}
	n = &t->entry[i];
	*n = (struct neigh){
		.gid = *hop,
		.source = *sgid,
		.port = (uint16_t)p->index,
		.hash_place = rte_hash_lookup(t->hash, &key),
	};
	if (gid_is_multicast(hop)) {
		neigh_group_mac(hop, mac);
		n->permanent = true;
	} else if (neigh_has_address(p, hop)) {
		memcpy(mac, p->mac, MAC_LEN);
		flags |= NEIGH_SELF;
		n->permanent = true;
	} else if (p->back_to_back) {
		memcpy(mac, l->port[p->peer].mac, MAC_LEN);
		n->permanent = true;
	}
	__atomic_store_n(&t->mac[i], n->permanent ? mac_word(mac) | flags : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&n->present, true, __ATOMIC_RELEASE);
	if (i < t->count)
		t->num_free--;
	else
		__atomic_store_n(&t->count, t->count + 1, __ATOMIC_RELEASE);
	t->present++;
	t->order[t->made % NEIGH_MAX] = (uint16_t)i;
	__atomic_store_n(&t->made, t->made + 1, __ATOMIC_RELEASE);
	neigh_check(t);
	*index = i;
	return 0;
}

/* --- entries that nobody uses --- */

static bool
neigh_is_resolved(const struct neigh_table *t, uint32_t i)
{
	return __atomic_load_n(&t->mac[i], __ATOMIC_RELAXED) & NEIGH_VALID;
}

bool
link_neighbour_allowed(struct link *l, const union gid *who, uint32_t most)
{
	struct neigh_table *t = l->neigh;
	uint32_t i, theirs = 0, unresolved = 0, all = 0;

	for (i = 0; i < t->count; i++) {
		if (!t->entry[i].present || gid_is_zero(&t->entry[i].stranger))
			continue;
		all++;
		if (neigh_is_resolved(t, i))
			continue;
		unresolved++;
		theirs += gid_equal(&t->entry[i].stranger, who);
	}
	if (theirs < most && unresolved < NEIGH_UNRESOLVED && all < NEIGH_STRANGERS)
		return true;
	neigh_refuse(t);
	return false;
}

void
link_neighbour_caused(struct link *l, uint32_t index, const union gid *who)
{
	struct neigh_table *t = l->neigh;

	/* the first to name it answers for it, or two strangers could share what each causes */
	if (index < t->count && gid_is_zero(&t->entry[index].stranger) &&
		!neigh_is_resolved(t, index))
		t->entry[index].stranger = *who;
}

bool
link_neighbours_due(const struct link *l, uint32_t kept)
{
	return l->neigh->wanted > 0 || l->neigh->present > kept;
}

void
link_neighbours_search(struct link *l)
{
	l->neigh->searches++;
}

static void
neigh_remove(struct link *l, uint32_t i)
{
	struct neigh_table *t = l->neigh;
	struct neigh *n = &t->entry[i];
	struct neigh_key key = { .gid = n->gid, .port = n->port };

	if (rte_hash_del_key(t->hash, &key) < 0)
		return;
	__atomic_store_n(&n->present, false, __ATOMIC_RELEASE);
	t->leaving[t->num_leaving++] = (uint16_t)i;
	t->present--;
}

static int
neigh_compare_use(const void *a, const void *b, void *table)
{
	const struct neigh_table *t = table;
	uint64_t at_a = t->entry[*(const uint16_t *)a].used;
	uint64_t at_b = t->entry[*(const uint16_t *)b].used;

	return (at_a > at_b) - (at_a < at_b);
}

/* Note when entries were in use, remove the idle ones that are unresolved, and collect the rest. */
static uint32_t
neigh_sort_out(struct link *l, const struct link_neighbours_used *used, uint64_t now)
{
	struct neigh_table *t = l->neigh;
	uint32_t i, idle = 0;

	for (i = 0; i < t->count; i++) {
		if (!t->entry[i].present)
			continue;
		if (used->word[i / 64] >> i % 64 & 1)
			t->entry[i].used = now;
		else if (t->entry[i].asked + 1 >= t->searches)
			continue;
		else if (neigh_is_resolved(t, i))
			t->idle[idle++] = (uint16_t)i;
		else
			neigh_remove(l, i);
	}
	qsort_r(t->idle, idle, sizeof(t->idle[0]), neigh_compare_use, t);
	return idle;
}

uint32_t
link_neighbours_forget(struct link *l, const struct link_neighbours_used *used, uint32_t kept,
	uint32_t idle_s)
{
	struct neigh_table *t = l->neigh;
	uint64_t now = __atomic_load_n(&t->now, __ATOMIC_RELAXED);
	uint32_t i, n, idle, before = t->present;

	if (t->wanted > 0)
		t->wanted--;
	neigh_reclaim(l);
	if (t->num_leaving > 0) /* a worker stands still: the next search will do */
		return 0;
	idle = neigh_sort_out(l, used, now);
	for (n = 0; n < idle; n++) {
		i = t->idle[n];
		if (t->present <= kept && now < t->entry[i].used + idle_s * l->cfg.hz)
			break;
		neigh_remove(l, i);
	}
	if (l->cfg.rcu != NULL)
		t->leaving_token = rte_rcu_qsbr_start(l->cfg.rcu);
	t->forgotten += before - t->present;
	neigh_check(t);
	if (before > t->present)
		LINK_LOG(INFO, "forgot %u neighbour%s that nobody uses, %u left",
			before - t->present, plural(before - t->present), t->present);
	return before - t->present;
}

void
link_neighbour_counts(const struct link *l, struct link_neighbour_counts *counts)
{
	const struct neigh_table *t = l->neigh;

	*counts = (struct link_neighbour_counts){ t->present, t->forgotten, t->refused };
}

bool
link_neighbour_known(const struct link *l, unsigned int port, const union gid *sgid,
	const union gid *dgid)
{
	const union gid *hop = neigh_next_hop(&l->port[port], sgid, dgid);

	return hop == NULL || neigh_find(l->neigh, port, hop) >= 0;
}

int
link_neighbour(struct link *l, unsigned int port, const union gid *sgid, const union gid *dgid,
	uint32_t *index, struct error *err)
{
	char from[GID_STRLEN], to[GID_STRLEN];
	const struct link_port *p;
	const union gid *hop;
	struct neigh *n;
	int i, rc;

	if (port >= l->num_ports)
		return error_set(err, EINVAL, "port: got %u, allowed 0..%u", port,
			l->num_ports - 1);
	p = &l->port[port];
	if (p->cfg.ib)
		return error_set(err, EINVAL, "%s: native InfiniBand: LIDs route there",
			p->cfg.name);
	if (gid_is_ipv4(sgid) != gid_is_ipv4(dgid))
		return error_set(err, EINVAL,
			"dgid: got %s, but the source %s is of the other family",
			gid_print(dgid, to), gid_print(sgid, from));
	rc = p->back_to_back ? neigh_check_pair(l, p, dgid, err) : 0;
	if (rc != 0)
		return rc;
	hop = neigh_next_hop(p, sgid, dgid);
	if (hop == NULL)
		return error_set(err, ENETUNREACH,
			"dgid: %s is on none of %s's subnets and the port has no gateway",
			gid_print(dgid, to), p->cfg.name);
	i = neigh_find(l->neigh, port, hop);
	if (i >= 0) {
		*index = i;
	} else {
		rc = neigh_make_entry(l, p, sgid, hop, index, err);
		if (rc != 0)
			return rc;
		LINK_LOG(DEBUG, "%s: %s is a new neighbour, for packets to %s", p->cfg.name,
			gid_print(hop, from), gid_print(dgid, to));
	}
	n = &l->neigh->entry[*index];
	n->asked = l->neigh->searches;
	n->used = __atomic_load_n(&l->neigh->now, __ATOMIC_RELAXED);
	return 0;
}

void
neigh_heard(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac)
{
	uint64_t said = mac_word(mac) | NEIGH_VALID, known;
	struct neigh_table *t = w->link->neigh;
	int i = neigh_find(t, p->index, gid);

	if (i < 0 || !neigh_is_present(&t->entry[i]) || t->entry[i].permanent || (mac[0] & 1))
		return;
	known = __atomic_load_n(&t->mac[i], __ATOMIC_RELAXED);
	if ((known & NEIGH_VALID) && known != said) {
		/* the first claim counts until the old MAC has had its time to answer */
		if (__atomic_load_n(&t->entry[i].moving, __ATOMIC_RELAXED) == 0)
			__atomic_store_n(&t->entry[i].moving, said, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&t->entry[i].confirmed, w->now, __ATOMIC_RELAXED);
	__atomic_store_n(&t->mac[i], said, __ATOMIC_RELAXED);
	if (!(known & NEIGH_VALID) && w->link->cfg.neighbour_known != NULL)
		w->link->cfg.neighbour_known(w->link->cfg.neighbour_arg);
}

static void
neigh_ask(struct link_worker *w, const struct neigh *n, const uint8_t *mac)
{
	struct link_port *p = &w->link->port[n->port];

	if (gid_is_ipv4(&n->gid))
		arp_send(w, p, &n->source, &n->gid, mac);
	else
		nd_solicit(w, p, &n->source, &n->gid, mac);
}

static void
neigh_move_end(struct neigh *n)
{
	n->move_probes = 0;
	__atomic_store_n(&n->moving, 0, __ATOMIC_RELAXED);
}

static void
neigh_tell(struct link_worker *w, const struct link_news *news)
{
	if (w->tell != NULL)
		w->tell(w->tell_arg, news);
}

/*
 * A resolved entry is confirmed from time to time, by unicast first; it is cleared if nobody
 * answers.
 */
static void
neigh_confirm(struct link_worker *w, struct neigh *n, uint64_t *mac, uint64_t now)
{
	uint64_t ms = w->link->cfg.hz / 1000;
	uint64_t confirmed = __atomic_load_n(&n->confirmed, __ATOMIC_RELAXED);
	uint64_t word = __atomic_load_n(mac, __ATOMIC_RELAXED);

	if (now < confirmed + REACHABLE_MS * ms) {
		n->probes = 0;
		n->next = confirmed + REACHABLE_MS * ms;
	} else if (n->probes == PROBES) {
		__atomic_store_n(mac, 0, __ATOMIC_RELAXED);
		neigh_move_end(n);
		n->probes = 0;
		n->next = now + RETRY_MIN_MS * ms;
		neigh_tell(w,
			&(struct link_news){ .what = LINK_NEIGHBOUR_LOST,
				.port = n->port,
				.gid = n->gid });
	} else if (token_bucket_take(&w->requests, now)) {
		neigh_ask(w, n, n->probes < UNICAST_PROBES ? (const uint8_t *)&word : NULL);
		n->probes++;
		n->next = now + PROBE_MS * ms;
	}
}

static void
neigh_resolve(struct link_worker *w, struct neigh *n, uint64_t now)
{
	if (!token_bucket_take(&w->requests, now))
		return;
	neigh_ask(w, n, NULL);
	n->next = now + ((uint64_t)RETRY_MIN_MS << n->probes) * (w->link->cfg.hz / 1000);
	if (n->probes < RETRY_MAX_SHIFT)
		n->probes++;
}

/*
 * Another MAC claims the address: ask the old one. If it answers, it keeps the address; otherwise
 * the entry moves.
 */
static void
neigh_move(struct link_worker *w, struct neigh *n, uint64_t *mac, uint64_t now)
{
	uint64_t step = MOVE_MS * (w->link->cfg.hz / 1000), to;
	uint64_t word = __atomic_load_n(mac, __ATOMIC_RELAXED);
	struct link_counters *count = &w->counters[n->port];
	struct link_news news = { .what = LINK_NEIGHBOUR_MOVED, .port = n->port, .gid = n->gid };

	if (n->move_probes > 0 &&
		__atomic_load_n(&n->confirmed, __ATOMIC_RELAXED) >= n->move_began) {
		link_count(&count->neighbour_kept, 1);
		neigh_move_end(n);
		n->move_next = now + KEPT_MS * (w->link->cfg.hz / 1000);
	} else if (now < n->move_next) {
		return;
	} else if (n->move_probes < MOVE_PROBES) {
		/* claims are not trusted: they must not use up the requests that resolve others */
		if (!token_bucket_take(&w->moves, now))
			return;
		if (n->move_probes++ == 0)
			n->move_began = now;
		neigh_ask(w, n, (const uint8_t *)&word);
		n->move_next = now + step;
	} else {
		to = __atomic_load_n(&n->moving, __ATOMIC_RELAXED);
		__atomic_store_n(mac, to, __ATOMIC_RELAXED);
		__atomic_store_n(&n->confirmed, now, __ATOMIC_RELAXED);
		link_count(&count->neighbour_moved, 1);
		memcpy(news.mac, &to, sizeof(news.mac));
		neigh_tell(w, &news);
		neigh_move_end(n);
	}
}

static void
neigh_entry_tick(struct link_worker *w, uint32_t i, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	struct neigh *n = &t->entry[i];

	if (!neigh_is_present(n) || n->permanent || !w->link->port[n->port].attr->up)
		return;
	if (__atomic_load_n(&n->moving, __ATOMIC_RELAXED) != 0)
		neigh_move(w, n, &t->mac[i], now);
	if (now < n->next)
		return;
	if (__atomic_load_n(&t->mac[i], __ATOMIC_RELAXED) & NEIGH_VALID)
		neigh_confirm(w, n, &t->mac[i], now);
	else
		neigh_resolve(w, n, now);
}

void
neigh_new(struct link_worker *w, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	uint32_t made = neigh_made(t);

	while (w->neigh_seen != made)
		neigh_entry_tick(w, t->order[w->neigh_seen++ % NEIGH_MAX], now);
	link_tx_flush(w, now);
}

void
neigh_tick(struct link_worker *w, uint64_t now)
{
	struct neigh_table *t = w->link->neigh;
	uint32_t count = neigh_count(t);
	uint32_t n = RTE_MIN(count, (uint32_t)TICK_ENTRIES);

	__atomic_store_n(&t->now, now, __ATOMIC_RELAXED);
	while (n-- > 0) {
		if (w->neigh_cursor >= count)
			w->neigh_cursor = 0;
		neigh_entry_tick(w, w->neigh_cursor++, now);
	}
}

void
neigh_conflict(struct link_worker *w, const struct link_port *p, const union gid *gid,
	const uint8_t *mac)
{
	if (mac_word(mac) == p->mac_word) /* our own message came back */
		return;
	w->limits[p->index].conflict = *gid;
	w->limits[p->index].conflict_mac = mac_word(mac);
}

void
neigh_warn(struct link_worker *w, uint64_t now)
{
	struct link_news news = { .what = LINK_ADDRESS_CONFLICT };
	struct port_limits *l;
	unsigned int i;

	for (i = 0; i < w->link->num_ports; i++) {
		l = &w->limits[i];
		if (l->conflict_mac == 0 || now < l->conflict_next)
			continue;
		memcpy(news.mac, &l->conflict_mac, sizeof(news.mac));
		news.port = (uint16_t)i;
		news.gid = l->conflict;
		neigh_tell(w, &news);
		l->conflict_mac = 0;
		l->conflict_next = now + WARN_S * w->link->cfg.hz;
	}
}

bool
link_neighbour_next(const struct link *l, uint32_t *cursor, struct link_neighbour_info *info)
{
	const struct neigh_table *t = l->neigh;
	const struct neigh *n;
	uint64_t word, confirmed, now;

	while (*cursor < neigh_count(t) && !neigh_is_present(&t->entry[*cursor]))
		(*cursor)++;
	if (*cursor >= neigh_count(t))
		return false;
	n = &t->entry[*cursor];
	word = __atomic_load_n(&t->mac[*cursor], __ATOMIC_RELAXED);
	confirmed = __atomic_load_n(&n->confirmed, __ATOMIC_RELAXED);
	now = __atomic_load_n(&t->now, __ATOMIC_RELAXED);
	memset(info, 0, sizeof(*info));
	info->gid = n->gid;
	info->port = n->port;
	info->resolved = word & NEIGH_VALID;
	memcpy(info->mac, &word, MAC_LEN);
	if (info->resolved && !n->permanent && now > confirmed)
		info->age_ms = (now - confirmed) * 1000 / l->cfg.hz;
	(*cursor)++;
	return true;
}
