/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* LID routes: see lids.h for who may write what. */

#include "link/lids.h"
#include "link/private.h"

/*
 * A learned route that was silent for a whole round is forgotten: LIDs are given anew, and a packet
 * to all finds who has it now. Rounds go in slices, as a tick is short.
 */
#define AGE_MS     30000
#define AGE_SLICE  2048
#define AGE_SLICES (PORT_LID_MULTICAST / AGE_SLICE)

#define LID_SET (NEIGH_VALID | LID_FIXED) /* of a configured route */

static bool
is_unicast(uint16_t lid)
{
	return lid != 0 && lid < PORT_LID_MULTICAST;
}

/* A fixed route, which replaces any other. @param mac  NULL: remove the route */
static int
set_route(const struct link_port *p, uint16_t lid, const uint8_t *mac, struct error *err)
{
	if (!is_unicast(lid))
		return port_error(p, err, EINVAL, "lid: got 0x%x, allowed 1..0x%x", lid,
			PORT_LID_MULTICAST - 1);
	if (mac != NULL && (mac_word(mac) == 0 || (mac[0] & 1)))
		return port_error(p, err, EINVAL,
			"mac of LID %u: neither zero nor a group address is a port's", lid);
	RELAXED_SET(p->lids->route[lid], mac != NULL ? mac_word(mac) | LID_SET : 0);
	return 0;
}

int
lids_create(struct link_port *p, struct error *err)
{
	const struct link_lid *fixed = p->cfg.lids;
	unsigned int i;
	int rc = 0;

	p->lids = rte_zmalloc_socket("lid_table", sizeof(*p->lids), RTE_CACHE_LINE_SIZE,
		p->memory_node);
	if (p->lids == NULL)
		return port_error(p, err, ENOMEM, "no memory for its LID routes");
	if (mac_word(p->cfg.peer_mac) != 0)
		p->lids->peer = mac_word(p->cfg.peer_mac) | LID_SET;
	for (i = 0; rc == 0 && i < p->cfg.num_lids; i++)
		rc = set_route(p, fixed[i].lid, fixed[i].mac, err);
	return rc;
}

/* Store a route unless another thread has changed it meanwhile. */
static bool
lid_replace_word(uint64_t *word, uint64_t old, uint64_t mac)
{
	return __atomic_compare_exchange_n(word, &old, mac, false, __ATOMIC_RELAXED,
		__ATOMIC_RELAXED);
}

/* A fixed route, even one set meanwhile, wins. @return true if the LID moved from another MAC */
static bool
lid_learn_word(uint64_t *word, uint64_t mac)
{
	uint64_t old = RELAXED_GET(*word);

	if (likely(old == mac) || (old & LID_FIXED))
		return false;
	return lid_replace_word(word, old, mac) && old != 0 && ((old ^ mac) & MAC_MASK) != 0;
}

void
lid_learn(struct link_worker *w, const struct link_port *p, const struct port_attr *attr,
	const struct packet *pkt, const uint8_t *smac)
{
	uint64_t mac = mac_word(smac) | NEIGH_VALID | LID_HEARD;

	if (unlikely(mac_word(smac) == p->mac_word))
		return;
	if (pkt->vl == LRH_VL_SMP)
		lid_learn_word(&p->lids->peer, mac);
	if (!is_unicast(pkt->slid) || port_lid_own(attr, pkt->slid))
		return;
	if (unlikely(lid_learn_word(&p->lids->route[pkt->slid], mac)))
		link_count(w, p->index, lid_moved, 1);
}

uint64_t
lid_route(const struct link_port *p, const struct port_attr *attr, uint16_t dlid)
{
	const uint64_t *word = &p->lids->peer;

	if (port_lid_own(attr, dlid))
		return p->mac_word | NEIGH_VALID;
	if (dlid < PORT_LID_MULTICAST)
		word = &p->lids->route[dlid];
	else if (dlid != PORT_LID_PERMISSIVE)
		return MAC_MASK | NEIGH_VALID; /* multicast LIDs are broadcast */
	return RELAXED_GET(*word);
}

static void
lids_age(struct lid_table *t)
{
	uint32_t end = t->age_cursor + AGE_SLICE;
	uint64_t old;

	for (; t->age_cursor < end; t->age_cursor++) {
		old = RELAXED_GET(t->route[t->age_cursor]);
		if (unlikely(old != 0) && !(old & LID_FIXED))
			lid_replace_word(&t->route[t->age_cursor], old,
				old & LID_HEARD ? old & ~LID_HEARD : 0);
	}
	if (t->age_cursor == PORT_LID_MULTICAST)
		t->age_cursor = 0;
}

void
lids_tick(struct link_worker *w, uint64_t now)
{
	const struct link_port *p;
	struct lid_table *t;

	LINK_FOREACH_PORT(p, w->link) {
		t = p->lids;
		if (t == NULL || now < t->age_next)
			continue;
		lids_age(t);
		t->age_next = now + link_ms(w->link, AGE_MS / AGE_SLICES);
	}
}

bool
link_lid_next(const struct link *l, unsigned int port, uint64_t *cursor, struct link_lid_info *info)
{
	const struct lid_table *t;
	uint64_t word = 0;

	if (port >= l->num_ports || l->port[port].lids == NULL)
		return false;
	t = l->port[port].lids;
	while (word == 0) {
		if (*cursor >= PORT_LID_MULTICAST)
			return false;
		word = RELAXED_GET(t->route[(*cursor)++]);
	}
	info->lid = (uint16_t)(*cursor - 1);
	info->fixed = word & LID_FIXED;
	put_mac(info->mac, word);
	return true;
}

int
link_lid_set(struct link *l, unsigned int port, uint16_t lid, const uint8_t *mac, struct error *err)
{
	struct link_port *p = link_port_checked(l, port, err);

	if (p == NULL)
		return -EINVAL;
	if (p->lids == NULL)
		return port_error(p, err, EINVAL,
			"no native InfiniBand port: it has no LID routes");
	return set_route(p, lid, mac, err);
}
