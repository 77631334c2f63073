/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Collect the data of an endport from the store.
 */

#include <string.h>

#include "port/port.h"
#include "sa/layout.h"
#include "sa/port_view.h"
#include "sa/select.h"
#include "sa/tables.h"
#include "wire/bytes.h"

bool
gid_in_subnet(uint64_t prefix, const uint8_t *gid)
{
	uint64_t upper = get_be64(gid);

	return upper == prefix || upper == GID_LINK_LOCAL;
}

uint8_t
port_info_mtu(const uint8_t *rec)
{
	uint8_t mtu = rec[PORT_OFF_MTU] >> 4, cap = rec[PORT_OFF_MTU_CAP] & 0xF;

	/* port 0 of a switch has no neighbour: ignore its NeighborMTU (opensm) */
	if (mtu == 0 || (rec[PORT_OFF_PORT] == 0 && cap != 0))
		mtu = cap;
	return mtu != 0 ? mtu : 1;
}

uint8_t
port_info_rate(const uint8_t *rec)
{
	return rate_of_link(rec[PORT_OFF_WIDTH], rec[PORT_OFF_SPEED] >> 4,
		rec[PORT_OFF_SPEED_EXT] >> 4);
}

static bool
is_down(const uint8_t *port_info)
{
	return (port_info[PORT_OFF_STATE] & 0xF) == PORT_STATE_DOWN;
}

/* The PortInfo of a LID's endport: that of the highest base LID not above it, its first port. */
static const struct store_record *
port_info_of(const struct store_version *v, uint16_t lid)
{
	struct store_cursor c;
	const struct store_record *r;
	uint64_t rank = store_rank(v, SA_TABLE_PORT_INFO, RID_LID_LAST(lid));

	if (store_get(v, SA_TABLE_PORT_INFO, RID_LID_LAST(lid)) == NULL) {
		if (rank == 0)
			return NULL;
		rank--;
	}
	store_seek(&c, v, SA_TABLE_PORT_INFO, rank);
	r = store_next(&c, NULL);
	if (r == NULL)
		return NULL;
	r = sa_first_of_lid(v, SA_TABLE_PORT_INFO, r->rid >> 16, &c);
	if (r == NULL || (uint32_t)lid - (r->rid >> 16) >= 1u << (r->bytes[PORT_OFF_LMC] & 7))
		return NULL;
	return r;
}

/* Iterates over the P_Keys of a port, from the cache or the store. */
struct pkey_walk {
	const struct port_view *p;
	struct store_cursor cursor;
	const struct store_record *block;
	unsigned int at;
};

static const struct store_record *
next_pkey_block(struct pkey_walk *w)
{
	const struct store_record *r;

	while ((r = store_next(&w->cursor, NULL)) != NULL && r->rid >> 16 == w->p->lid)
		if (r->bytes[PKEY_OFF_PORT] == w->p->port || r->bytes[PKEY_OFF_PORT] == 0)
			return r;
	return NULL;
}

static void
walk_store(struct pkey_walk *w, const struct store_version *v, const struct port_view *p)
{
	w->p = p;
	w->at = 0;
	store_seek(&w->cursor, v, SA_TABLE_PKEY, store_rank(v, SA_TABLE_PKEY, RID_LID(p->lid)));
	w->block = next_pkey_block(w);
}

static void
walk_pkeys(struct pkey_walk *w, const struct store_version *v, const struct port_view *p)
{
	w->p = p;
	w->at = 0;
	w->block = NULL;
	if (p->num_pkeys == PORT_VIEW_MANY)
		walk_store(w, v, p);
}

/* @return the next P_Key, 0: no more. 0x0000 and 0x8000 are invalid and skipped. */
static uint16_t
next_stored(struct pkey_walk *w)
{
	uint16_t pkey;

	while (w->block != NULL) {
		if (w->at == PKEY_KEYS) {
			w->block = next_pkey_block(w);
			w->at = 0;
			continue;
		}
		pkey = get_be16(w->block->bytes + PKEY_OFF_KEYS + 2 * w->at++);
		if ((pkey & ~PKEY_FULL) != 0)
			return pkey;
	}
	return 0;
}

static uint16_t
next_pkey(struct pkey_walk *w)
{
	if (w->p->num_pkeys == PORT_VIEW_MANY)
		return next_stored(w);
	return w->at < w->p->num_pkeys ? w->p->pkey[w->at++] : 0;
}

static void
fill_pkeys(const struct store_version *v, struct port_view *p)
{
	struct pkey_walk w;
	uint16_t pkey;

	walk_store(&w, v, p);
	if (w.block == NULL) {
		/* no table is stored: assume what every port has before an SM sets it */
		p->pkey[p->num_pkeys++] = PKEY_DEFAULT;
		return;
	}
	while ((pkey = next_stored(&w)) != 0) {
		if (p->num_pkeys == PORT_VIEW_PKEYS) {
			p->num_pkeys = PORT_VIEW_MANY;
			return;
		}
		p->pkey[p->num_pkeys++] = pkey;
	}
}

/* The port's link, and the limits of the port at its other end. */
static void
fill_link(const struct store_version *v, struct port_view *p)
{
	struct store_cursor c;
	const struct store_record *r = sa_first_of_lid(v, SA_TABLE_LINK, p->lid, &c);

	if (p->node_type == NODE_TYPE_SWITCH)
		return; /* port 0 is inside the switch */
	for (; r != NULL && r->rid >> 16 == p->lid; r = store_next(&c, NULL)) {
		const struct store_record *peer;
		uint16_t to = get_be16(r->bytes + LINK_OFF_TO_LID);

		if (r->bytes[LINK_OFF_FROM_PORT] != p->port)
			continue;
		p->link_lid = to;
		peer = store_get(v, SA_TABLE_PORT_INFO,
			RID_LID(to) | (uint32_t)r->bytes[LINK_OFF_TO_PORT] << 8);
		if (peer == NULL)
			return;
		if (is_down(peer->bytes))
			p->link_lid = 0;
		p->mtu = mtu_min(p->mtu, port_info_mtu(peer->bytes));
		p->rate = rate_min(p->rate, port_info_rate(peer->bytes));
		return;
	}
}

bool
port_view_lid(const struct store_version *v, uint16_t lid, struct port_view *p)
{
	const struct store_record *info, *node;
	struct store_cursor c;

	if (lid == 0 || lid >= LID_UNICAST_END)
		return false;
	info = port_info_of(v, lid);
	if (info == NULL || is_down(info->bytes))
		return false;
	memset(p, 0, sizeof(*p));
	p->lid = info->rid >> 16;
	node = sa_first_of_lid(v, SA_TABLE_NODE, p->lid, &c);
	if (node == NULL)
		return false;
	p->guid = get_be64(node->bytes + NODE_OFF_PORT_GUID);
	p->node_type = node->bytes[NODE_OFF_TYPE];
	p->port = info->bytes[PORT_OFF_PORT];
	p->lmc = info->bytes[PORT_OFF_LMC] & 7;
	p->mtu = port_info_mtu(info->bytes);
	p->rate = port_info_rate(info->bytes);
	fill_pkeys(v, p);
	fill_link(v, p);
	return true;
}

static const struct store_record *
by_guid(const struct store_version *v, unsigned int index, uint64_t guid)
{
	struct store_cursor c;
	const struct store_record *r;
	uint64_t key;

	store_seek_index(&c, v, index, guid);
	r = store_next(&c, &key);
	return r != NULL && key == guid ? r : NULL;
}

uint16_t
port_lid_of_guid(const struct store_version *v, uint64_t guid)
{
	const struct store_record *r;

	if (guid == 0)
		return 0;
	r = by_guid(v, SA_INDEX_PORT_GUID, guid);
	if (r == NULL)
		r = by_guid(v, SA_INDEX_ALIAS_GUID, guid);
	return r != NULL ? get_be16(r->bytes) : 0;
}

bool
port_view_gid(const struct store_version *v, uint64_t prefix, const uint8_t *gid,
	struct port_view *p)
{
	return gid_in_subnet(prefix, gid) &&
		port_view_lid(v, port_lid_of_guid(v, get_be64(gid + 8)), p);
}

void
port_view_stranger(struct port_view *p)
{
	memset(p, 0, sizeof(*p));
	p->pkey[0] = PKEY_DEFAULT;
	p->num_pkeys = 1;
}

uint16_t
port_member(const struct store_version *v, const struct port_view *p, uint16_t pkey)
{
	struct pkey_walk w;
	uint16_t have, found = 0;

	walk_pkeys(&w, v, p);
	while ((have = next_pkey(&w)) != 0)
		if (((have ^ pkey) & ~PKEY_FULL) == 0) {
			found = have;
			if ((have & PKEY_FULL) != 0)
				break;
		}
	return found;
}

uint16_t
port_common_pkey(const struct store_version *v, const struct port_view *a,
	const struct port_view *b, uint16_t asked)
{
	struct pkey_walk w;
	uint16_t mine;

	walk_pkeys(&w, v, a);
	while ((mine = next_pkey(&w)) != 0) {
		if (asked != 0 && ((mine ^ asked) & ~PKEY_FULL) != 0)
			continue;
		if (port_pkey_match(mine, port_member(v, b, mine)))
			return mine | PKEY_FULL;
	}
	return 0;
}
