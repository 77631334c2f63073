/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The table of neighbours, which are the next hops of paths: the control thread makes the entries.
 * neigh.h says which thread may write which field.
 */

#include "link/neigh.h"
#include "link/control.h"

struct neigh_table *
neigh_create(struct rte_rcu_qsbr *rcu)
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
	t->rcu = rcu;
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

int
neigh_find(const struct neigh_table *t, unsigned int port, const union gid *gid)
{
	struct neigh_key key = { .gid = *gid, .port = port };
	void *data;

	if (rte_hash_lookup_data(t->hash, &key, &data) < 0 ||
		!neigh_is_present(&t->entry[(uintptr_t)data]))
		return -1;
	return (int)(uintptr_t)data;
}

/* The word of a neighbour that is not resolved: a group, this port, or the other one of a pair. */
static uint64_t
neigh_fixed_word(const struct link_port *p, const union gid *hop)
{
	uint8_t ipv4[MAC_LEN] = { 0x01, 0x00, 0x5E, hop->raw[13] & 0x7F, hop->raw[14],
		hop->raw[15] };

	if (gid_is_multicast(hop)) /* RFC 1112 6.4 */
		return NEIGH_VALID | (gid_is_ipv4(hop) ? mac_word(ipv4) : ipv6_group_mac(hop->raw));
	if (port_has_address(p, hop))
		return NEIGH_VALID | NEIGH_SELF | p->mac_word;
	return p->peer != NULL ? NEIGH_VALID | p->peer->mac_word : 0;
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

	if (p->peer != NULL || gid_is_multicast(dgid) || gid_is_link_local(dgid))
		return dgid;
	for (a = p->cfg.addr; a < end; a++) {
		if (gid_is_ipv4(&a->gid) == gid_is_ipv4(dgid) &&
			gid_same_subnet(&a->gid, dgid, a->prefix_len))
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
	int i = neigh_find(t, p->index, gid);

	if (i < 0)
		return;
	t->entry[i].permanent = true;
	RELAXED_SET(t->mac[i], p->mac_word | NEIGH_VALID | NEIGH_SELF);
	neigh_entry_check(t, i);
}

/* A back-to-back link has only two ports, so the address must belong to one of them. */
static int
neigh_check_pair(const struct link_port *p, const union gid *gid, struct error *err)
{
	const struct link_port *peer = p->peer;
	char got[GID_STRLEN], first[GID_STRLEN] = "none";

	if (gid_is_multicast(gid) || port_has_address(p, gid) || port_has_address(peer, gid))
		return 0;
	if (peer->cfg.num_addr > 0)
		gid_print(&peer->cfg.addr[0].gid, first);
	return error_set(err, EHOSTUNREACH,
		"dgid: %s is nobody's: %s is joined back to back to %s, whose addresses are %s%s",
		gid_print(gid, got), p->cfg.name, peer->cfg.name, first,
		peer->cfg.num_addr > 1 ? ", ..." : "");
}

#ifdef RTE_ENABLE_ASSERT
void
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
#endif

void
neigh_reclaim(struct neigh_table *t)
{
	uint16_t i;

	if (t->rcu != NULL && rte_rcu_qsbr_check(t->rcu, t->leaving_token, false) == 0)
		return;
	while (t->num_leaving > 0) {
		i = t->leaving[--t->num_leaving];
		rte_hash_free_key_with_position(t->hash, t->entry[i].hash_place);
		t->free[t->num_free++] = i;
	}
}

/* @return a free place, or NEIGH_MAX */
static uint32_t
neigh_place(struct neigh_table *t)
{
	if (t->num_free == 0)
		neigh_reclaim(t);
	return t->num_free > 0 ? t->free[t->num_free - 1] : t->count;
}

void
neigh_refuse(struct neigh_table *t)
{
	t->refused++;
	t->wanted = NEIGH_SEARCHES;
}

/* @return its index, or a negative errno */
static int
neigh_make_entry(struct link *l, const struct link_port *p, const union gid *sgid,
	const union gid *hop, struct error *err)
{
	struct neigh_key key = { .gid = *hop, .port = p->index };
	struct neigh_table *t = l->neigh;
	uint32_t i = neigh_place(t);
	uint64_t word = neigh_fixed_word(p, hop);

	if (i == NEIGH_MAX || rte_hash_add_key_data(t->hash, &key, (void *)(uintptr_t)i) != 0) {
		neigh_refuse(t);
		return port_error(p, err, ENOSPC, "neighbour table is full (%u)", NEIGH_MAX);
	}
	t->entry[i] = (struct neigh){
		.gid = *hop,
		.source = *sgid,
		.port = (uint16_t)p->index,
		.permanent = word != 0,
	};
	RELAXED_SET(t->mac[i], word);
	RELEASE_SET(t->entry[i].present, true);
	if (i < t->count)
		t->num_free--;
	else
		RELEASE_SET(t->count, t->count + 1);
	t->present++;
	t->order[t->made % NEIGH_MAX] = (uint16_t)i;
	RELEASE_SET(t->made, t->made + 1);
	neigh_check(t);
	return i;
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
	const struct link_port *p = link_port_checked(l, port, err);
	const union gid *hop;
	struct neigh *n;
	int i, rc;

	if (p == NULL)
		return -EINVAL;
	if (p->cfg.ib)
		return port_error(p, err, EINVAL, "native InfiniBand: LIDs route there");
	if (gid_is_ipv4(sgid) != gid_is_ipv4(dgid))
		return error_set(err, EINVAL,
			"dgid: got %s, but the source %s is of the other family",
			gid_print(dgid, to), gid_print(sgid, from));
	rc = p->peer != NULL ? neigh_check_pair(p, dgid, err) : 0;
	if (rc != 0)
		return rc;
	hop = neigh_next_hop(p, sgid, dgid);
	if (hop == NULL)
		return error_set(err, ENETUNREACH,
			"dgid: %s is on none of %s's subnets and the port has no gateway",
			gid_print(dgid, to), p->cfg.name);
	i = neigh_find(l->neigh, port, hop);
	if (i < 0) {
		i = neigh_make_entry(l, p, sgid, hop, err);
		if (i < 0)
			return i;
		PORT_LOG(p, DEBUG, "%s is a new neighbour, for packets to %s", gid_print(hop, from),
			gid_print(dgid, to));
	}
	n = &l->neigh->entry[i];
	n->asked = l->neigh->searches;
	n->used = RELAXED_GET(l->neigh->now);
	*index = i;
	return 0;
}

bool
link_neighbour_next(const struct link *l, uint32_t *cursor, struct link_neighbour_info *info)
{
	const struct neigh_table *t = l->neigh;
	const struct neigh *n;
	uint64_t word, confirmed, now;
	uint32_t i;

	do {
		i = *cursor;
		if (i >= ACQUIRE_GET(t->count))
			return false;
		*cursor = i + 1;
	} while (!neigh_is_present(&t->entry[i]));
	n = &t->entry[i];
	word = RELAXED_GET(t->mac[i]);
	confirmed = RELAXED_GET(n->confirmed);
	now = RELAXED_GET(t->now);
	memset(info, 0, sizeof(*info));
	info->gid = n->gid;
	info->port = n->port;
	info->resolved = word & NEIGH_VALID;
	put_mac(info->mac, word);
	if (info->resolved && !n->permanent && now > confirmed)
		info->age_ms = (now - confirmed) * 1000 / l->cfg.hz;
	return true;
}
