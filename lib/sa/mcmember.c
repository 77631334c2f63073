/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Multicast groups (sa-multipacket B10 and B11). The first full member creates a group, others join
 * and leave, and it is deleted with its last full member. A group is stored as its members'
 * records; each repeats the group's values.
 */

#include <string.h>

#include "sa/layout.h"
#include "sa/select.h"
#include "sa/server.h"
#include "sa/tables.h"
#include "wire/bytes.h"

#define JOIN_MASK (SA_BIT(MC_BIT_MGID) | SA_BIT(MC_BIT_PORT_GID) | SA_BIT(MC_BIT_STATE))
#define CREATE_MASK                                                                                \
	(SA_BIT(MC_BIT_QKEY) | SA_BIT(MC_BIT_TCLASS) | SA_BIT(MC_BIT_PKEY) | SA_BIT(MC_BIT_FLOW) | \
		SA_BIT(MC_BIT_SL))
#define PROXY       0x80
#define EXACTLY     (SELECT_EXACTLY << 6)
#define SCOPE_LOCAL 2
/* defaults of a group created without values by a port without known limits: 2048 bytes, 10 Gb/s */
#define MTU_USUAL  4
#define MTU_TOP    5
#define RATE_USUAL 3
#define RATE_TOP   23

static bool
mc_asked(const struct sa_write *w, unsigned int bit)
{
	return (w->mask & SA_BIT(bit)) != 0;
}

static bool
mc_asked_both(const struct sa_write *w, unsigned int selector_bit)
{
	return mc_asked(w, selector_bit) && mc_asked(w, selector_bit + 1);
}

static const struct store_record *
mc_find_group(const struct write_batch *b, const uint8_t *mgid)
{
	return write_find(write_view(b), SA_INDEX_MGID, sa_gid_key(mgid), MC_OFF_MGID, mgid, 16);
}

static const struct store_record *
mc_find_member(const struct write_batch *b, const uint8_t *rec)
{
	return write_find(write_view(b), SA_INDEX_MC_MEMBER,
		sa_member_key(rec, rec + MC_OFF_PORT_GID), 0, rec, MC_OFF_QKEY);
}

static bool
mc_has_room(const struct write_batch *b, struct sa_write *w)
{
	return share_has_room(b, w, SA_TABLE_MCMEMBER, w->rec + MC_OFF_PORT_GID);
}

/* Put the member that the change is about. */
static uint16_t
mc_put(struct write_batch *b, const struct sa_write *w)
{
	struct member_tail tail = { b->origin, lease_of_stranger(b) };

	return write_put(b, w->type, w->rid, w->rec, &tail, sizeof(tail));
}

/* Find the port that joins or leaves. @return a MAD status */
static uint16_t
mc_find_port(const struct write_batch *b, const struct sa_write *w, struct port_view *port)
{
	const uint8_t *gid = w->rec + MC_OFF_PORT_GID;

	if (!write_allowed(b, w, gid))
		return SA_STATUS_DENIED;
	if (port_view_gid(write_view(b), b->sa->config.gid_prefix, gid, port))
		return MAD_STATUS_OK;
	if (!w->who.stranger || memcmp(gid, w->who.gid.raw, 16) != 0)
		return SA_STATUS_REQ_INVALID;
	*port = w->who.port;
	return MAD_STATUS_OK;
}

/* --- joining an existing group --- */

/*
 * Components that a join must state as the group has them. mask: the component's bits in its bytes.
 */
static const struct {
	uint8_t bit;
	uint8_t offset;
	uint8_t bytes;
	uint32_t mask;
} fixed[] = {
	{ MC_BIT_QKEY, MC_OFF_QKEY, 4, 0xFFFFFFFF },
	{ MC_BIT_TCLASS, MC_OFF_TCLASS, 1, 0xFF },
	{ MC_BIT_PKEY, MC_OFF_PKEY, 2, 0x7FFF },
	{ MC_BIT_SL, MC_OFF_SL_FLOW_HOP, 4, 0xF0000000 },
	{ MC_BIT_FLOW, MC_OFF_SL_FLOW_HOP, 4, 0x0FFFFF00 },
	{ MC_BIT_HOP, MC_OFF_SL_FLOW_HOP, 4, 0x000000FF },
	{ MC_BIT_SCOPE, MC_OFF_SCOPE_STATE, 1, 0xF0 },
};

static uint32_t
read_bytes(const uint8_t *p, unsigned int bytes)
{
	return bytes == 4 ? get_be32(p) : bytes == 2 ? get_be16(p) : *p;
}

static bool
fits_group(const struct sa_write *w, const uint8_t *group)
{
	unsigned int i;

	for (i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (mc_asked(w, fixed[i].bit) &&
			((read_bytes(w->rec + fixed[i].offset, fixed[i].bytes) ^
				 read_bytes(group + fixed[i].offset, fixed[i].bytes)) &
				fixed[i].mask) != 0)
			return false;
	if (mc_asked_both(w, MC_BIT_MTU_SEL) &&
		!satisfies_mtu(w->rec[MC_OFF_MTU] >> 6, w->rec[MC_OFF_MTU] & 0x3F,
			group[MC_OFF_MTU] & 0x3F))
		return false;
	if (mc_asked_both(w, MC_BIT_RATE_SEL) &&
		!satisfies_rate(w->rec[MC_OFF_RATE] >> 6, w->rec[MC_OFF_RATE] & 0x3F,
			group[MC_OFF_RATE] & 0x3F))
		return false;
	return !mc_asked_both(w, MC_BIT_LIFE_SEL) ||
		satisfies_life(w->rec[MC_OFF_LIFE] >> 6, w->rec[MC_OFF_LIFE] & 0x3F,
			group[MC_OFF_LIFE] & 0x3F);
}

/* A member must support the group's MTU and rate. Limits 0: unknown, accept. */
static bool
port_can(const struct port_view *port, const uint8_t *group)
{
	uint8_t rate = group[MC_OFF_RATE] & 0x3F;

	return (port->mtu == 0 || port->mtu >= (group[MC_OFF_MTU] & 0x3F)) &&
		(port->rate == 0 || rate_min(port->rate, rate) == rate);
}

static uint16_t
mc_join(struct write_batch *b, struct sa_write *w, const struct port_view *port,
	const uint8_t *group)
{
	const struct store_record *member = mc_find_member(b, w->rec);
	uint8_t rec[SA_RECORD_MAX], state = w->rec[MC_OFF_SCOPE_STATE] & 0xF;

	if (!fits_group(w, group) || !port_can(port, group))
		return SA_STATUS_REQ_INVALID;
	if (port_member(write_view(b), port, get_be16(group + MC_OFF_PKEY)) == 0)
		return SA_STATUS_DENIED;
	if (member == NULL && !mc_has_room(b, w))
		return SA_STATUS_NO_RESOURCES;
	memcpy(rec, group, w->type->len);
	memcpy(rec + MC_OFF_PORT_GID, w->rec + MC_OFF_PORT_GID, 16);
	rec[MC_OFF_PROXY] = 0;
	if (member != NULL) {
		state |= member->bytes[MC_OFF_SCOPE_STATE] & 0xF;
		rec[MC_OFF_PROXY] = member->bytes[MC_OFF_PROXY];
	} else if (!sa_owns(write_view(b), b->sa->config.gid_prefix, &w->who,
			   rec + MC_OFF_PORT_GID)) {
		rec[MC_OFF_PROXY] = PROXY;
	}
	rec[MC_OFF_SCOPE_STATE] = (rec[MC_OFF_SCOPE_STATE] & 0xF0) | state;
	w->rid = member != NULL ? member->rid : write_new_rid(b, w->type->table);
	if (w->rid == 0)
		return SA_STATUS_NO_RESOURCES;
	memcpy(w->rec, rec, w->type->len);
	return mc_put(b, w);
}

/* --- creating a group --- */

static bool
mlid_is_free(const struct write_batch *b, uint16_t mlid)
{
	struct store_cursor c;
	uint64_t key;

	store_seek_index(&c, write_view(b), SA_INDEX_MLID, mlid);
	return store_next(&c, &key) == NULL || key != mlid;
}

/* The next free MLID in turn, so that one is not reused for long. @return 0: none */
static uint16_t
new_mlid(struct write_batch *b)
{
	uint16_t *next = &b->sa->writer.next_mlid;
	unsigned int tries;

	for (tries = 0; tries < LID_MULTICAST_END - LID_UNICAST_END; tries++) {
		uint16_t mlid = *next >= LID_UNICAST_END ? *next : LID_UNICAST_END;

		*next = mlid + 1 == LID_MULTICAST_END ? LID_UNICAST_END : mlid + 1;
		if (mlid_is_free(b, mlid))
			return mlid;
	}
	return 0;
}

/* A new MGID: transient, scope, signature A01C, subnet prefix, MLID (as opensm makes them). */
static void
new_mgid(const struct write_batch *b, uint8_t scope, uint16_t mlid, uint8_t *mgid)
{
	uint32_t turn = 0;

	mgid[0] = 0xFF;
	mgid[1] = 0x10 | scope;
	put_be16(mgid + 2, 0xA01C);
	put_be64(mgid + 4, b->sa->config.gid_prefix);
	do
		put_be32(mgid + 12, turn++ << 16 | mlid);
	while (mc_find_group(b, mgid) != NULL);
}

static uint16_t
new_scope(struct sa_write *w, bool own_mgid, uint8_t *scope)
{
	uint8_t given = w->rec[MC_OFF_SCOPE_STATE] >> 4;

	if (own_mgid) {
		*scope = mc_asked(w, MC_BIT_SCOPE) && given != 0 ? given : SCOPE_LOCAL;
		return MAD_STATUS_OK;
	}
	*scope = w->rec[MC_OFF_MGID + 1] & 0xF;
	if (w->rec[MC_OFF_MGID] != 0xFF || (mc_asked(w, MC_BIT_SCOPE) && given != *scope))
		return SA_STATUS_REQ_INVALID;
	return MAD_STATUS_OK;
}

/* MTU, rate and life time: as requested, within the port's limits. */
static bool
new_limits(const struct write_batch *b, struct sa_write *w, const struct port_view *port)
{
	bool mtu_asked = mc_asked_both(w, MC_BIT_MTU_SEL),
	     rate_asked = mc_asked_both(w, MC_BIT_RATE_SEL);
	uint8_t mtu = port->mtu, rate = port->rate, life = b->sa->config.packet_life;
	uint8_t *rec = w->rec;

	if (mtu == 0)
		mtu = mtu_asked ? MTU_TOP : MTU_USUAL;
	if (rate == 0)
		rate = rate_asked ? RATE_TOP : RATE_USUAL;
	if ((mtu_asked && !select_mtu(rec[MC_OFF_MTU] >> 6, rec[MC_OFF_MTU] & 0x3F, &mtu)) ||
		(rate_asked &&
			!select_rate(rec[MC_OFF_RATE] >> 6, rec[MC_OFF_RATE] & 0x3F, &rate)) ||
		(mc_asked_both(w, MC_BIT_LIFE_SEL) &&
			!select_life(rec[MC_OFF_LIFE] >> 6, rec[MC_OFF_LIFE] & 0x3F, &life)))
		return false;
	rec[MC_OFF_MTU] = EXACTLY | mtu;
	rec[MC_OFF_RATE] = EXACTLY | rate;
	rec[MC_OFF_LIFE] = EXACTLY | life;
	return true;
}

/* A creator need not name an SL if the operator configured one for the partition: take that. */
static uint64_t
take_partition_sl(const struct write_batch *b, struct sa_write *w)
{
	int sl = sa_partition_sl(&b->sa->config, get_be16(w->rec + MC_OFF_PKEY));
	uint8_t *at = w->rec + MC_OFF_SL_FLOW_HOP;

	if (mc_asked(w, MC_BIT_SL) || !mc_asked(w, MC_BIT_PKEY) || sl < 0)
		return CREATE_MASK;
	*at = (uint8_t)(sl << 4 | (*at & 0xF));
	return CREATE_MASK & ~SA_BIT(MC_BIT_SL);
}

static uint16_t
mc_create(struct write_batch *b, struct sa_write *w, const struct port_view *port, bool own_mgid)
{
	uint16_t pkey = get_be16(w->rec + MC_OFF_PKEY), mlid, status;
	uint64_t needed = take_partition_sl(b, w);
	uint8_t scope, *rec = w->rec;

	if ((rec[MC_OFF_SCOPE_STATE] & MC_FULL_MEMBER) == 0)
		return SA_STATUS_REQ_INVALID;
	if ((w->mask & needed) != needed)
		return SA_STATUS_INSUFFICIENT;
	status = new_scope(w, own_mgid, &scope);
	if (status != MAD_STATUS_OK)
		return status;
	if ((pkey & ~PKEY_FULL) == 0 || !new_limits(b, w, port))
		return SA_STATUS_REQ_INVALID;
	if (port_member(write_view(b), port, pkey) == 0)
		return SA_STATUS_DENIED;
	if (!mc_has_room(b, w))
		return SA_STATUS_NO_RESOURCES;
	mlid = new_mlid(b);
	w->rid = write_new_rid(b, w->type->table);
	if (mlid == 0 || w->rid == 0)
		return SA_STATUS_NO_RESOURCES;
	put_be16(rec + MC_OFF_MLID, mlid);
	if (own_mgid)
		new_mgid(b, scope, mlid, rec + MC_OFF_MGID);
	if (!mc_asked(w, MC_BIT_HOP))
		rec[MC_OFF_SL_FLOW_HOP + 3] = 0;
	rec[MC_OFF_SCOPE_STATE] = scope << 4 | (rec[MC_OFF_SCOPE_STATE] & 0xF);
	rec[MC_OFF_PROXY] =
		sa_owns(write_view(b), b->sa->config.gid_prefix, &w->who, rec + MC_OFF_PORT_GID)
		? 0
		: PROXY;
	memset(rec + MC_OFF_PROXY + 1, 0, 2);
	write_event(b, TRAP_GROUP_CREATED, pkey, rec + MC_OFF_MGID);
	return mc_put(b, w);
}

uint16_t
write_mc_join(struct write_batch *b, struct sa_write *w)
{
	static const uint8_t zero[16];
	const struct store_record *group;
	struct port_view port;
	uint16_t status;
	bool own_mgid;

	if ((w->mask & JOIN_MASK) != JOIN_MASK)
		return SA_STATUS_INSUFFICIENT;
	if ((w->rec[MC_OFF_SCOPE_STATE] & 0xF) == 0)
		return SA_STATUS_REQ_INVALID;
	status = mc_find_port(b, w, &port);
	if (status != MAD_STATUS_OK)
		return status;
	own_mgid = memcmp(w->rec + MC_OFF_MGID, zero, 16) == 0;
	group = own_mgid ? NULL : mc_find_group(b, w->rec + MC_OFF_MGID);
	if (group != NULL)
		return mc_join(b, w, &port, group->bytes);
	return mc_create(b, w, &port, own_mgid);
}

/* --- leaving --- */

/* The next member of the group behind a cursor on the index of MGIDs, or NULL. */
static const struct store_record *
mc_next_member(struct store_cursor *c, const uint8_t *mgid)
{
	uint64_t key = sa_gid_key(mgid), at;
	const struct store_record *r;

	while ((r = store_next(c, &at)) != NULL && at == key)
		if (memcmp(r->bytes, mgid, 16) == 0)
			return r;
	return NULL;
}

/* True if a record other than @p rid is a full member of the group. */
static bool
has_other_full_member(const struct write_batch *b, const uint8_t *mgid, uint32_t rid)
{
	const struct store_record *r;
	struct store_cursor c;

	store_seek_index(&c, write_view(b), SA_INDEX_MGID, sa_gid_key(mgid));
	while ((r = mc_next_member(&c, mgid)) != NULL)
		if (r->rid != rid && (r->bytes[MC_OFF_SCOPE_STATE] & MC_FULL_MEMBER) != 0)
			return true;
	return false;
}

static uint16_t
mc_delete_group(struct write_batch *b, const struct sa_record_type *t, const uint8_t *rec)
{
	const struct store_record *r;
	uint16_t status = MAD_STATUS_OK;

	while (status == MAD_STATUS_OK && (r = mc_find_group(b, rec + MC_OFF_MGID)) != NULL)
		status = write_del(b, t, r->rid);
	write_event(b, TRAP_GROUP_DELETED, get_be16(rec + MC_OFF_PKEY), rec + MC_OFF_MGID);
	return status;
}

/* True if removing the whole group takes more than half of what one transaction may change. */
static bool
mc_group_is_large(const struct write_batch *b, const uint8_t *mgid)
{
	size_t max = store_max_ops(b->sa->config.store), n = 0;
	struct store_cursor c;

	store_seek_index(&c, write_view(b), SA_INDEX_MGID, sa_gid_key(mgid));
	while (max != 0 && n <= max / 2 && mc_next_member(&c, mgid) != NULL)
		n++;
	return n > max / 2;
}

/* Any member of the group except @p rid, or NULL. */
static const struct store_record *
mc_other_member(const struct write_batch *b, const uint8_t *mgid, uint32_t rid)
{
	const struct store_record *r;
	struct store_cursor c;

	store_seek_index(&c, write_view(b), SA_INDEX_MGID, sa_gid_key(mgid));
	do
		r = mc_next_member(&c, mgid);
	while (r != NULL && r->rid == rid);
	return r;
}

/*
 * A large group goes by several transactions. All but the last one remove members that are no full
 * ones; the last full member goes at the end. If this stops in between, the group still has its
 * full member, and whoever lets it leave again goes on.
 */
static uint16_t
mc_shrink_group(struct write_batch *b, const struct store_record *last)
{
	size_t part = store_max_ops(b->sa->config.store) / 2;
	const struct store_record *r;
	uint16_t status = MAD_STATUS_OK;

	while (status == MAD_STATUS_OK && part-- > 0 &&
		(r = mc_other_member(b, last->bytes + MC_OFF_MGID, last->rid)) != NULL)
		status = write_del(b, sa_table_type(SA_TABLE_MCMEMBER), r->rid);
	b->unfinished = status == MAD_STATUS_OK;
	return status;
}

uint16_t
mc_remove_member(struct write_batch *b, struct sa_write *w, const struct store_record *r,
	uint8_t leave_states)
{
	uint8_t left = r->bytes[MC_OFF_SCOPE_STATE] & 0xF & ~leave_states;
	bool ends = (left & MC_FULL_MEMBER) == 0 &&
		!has_other_full_member(b, r->bytes + MC_OFF_MGID, r->rid);
	uint16_t status;

	if (ends && mc_group_is_large(b, r->bytes + MC_OFF_MGID))
		return mc_shrink_group(b, r);
	w->rid = r->rid;
	memcpy(w->rec, r->bytes, w->type->len);
	w->rec[MC_OFF_SCOPE_STATE] = (w->rec[MC_OFF_SCOPE_STATE] & 0xF0) | left;
	status = left != 0 ? mc_put(b, w) : write_del(b, w->type, w->rid);
	if (status != MAD_STATUS_OK || !ends)
		return status;
	return mc_delete_group(b, w->type, w->rec);
}

uint16_t
write_mc_leave(struct write_batch *b, struct sa_write *w)
{
	uint8_t leave = w->rec[MC_OFF_SCOPE_STATE] & 0xF;
	const struct store_record *r;

	if ((w->mask & JOIN_MASK) != JOIN_MASK)
		return SA_STATUS_INSUFFICIENT;
	if (!write_allowed(b, w, w->rec + MC_OFF_PORT_GID))
		return SA_STATUS_DENIED;
	r = mc_find_member(b, w->rec);
	if (r == NULL || leave == 0 || (leave & ~r->bytes[MC_OFF_SCOPE_STATE] & 0xF) != 0)
		return SA_STATUS_REQ_INVALID;
	return mc_remove_member(b, w, r, leave);
}
