/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Store indexes, and which index a template's components can use.
 */

#include <stddef.h>
#include <string.h>

#include "sa/layout.h"
#include "sa/sa.h"
#include "sa/tables.h"
#include "sa/write.h"
#include "wire/bytes.h"

const unsigned int sa_num_tables = SA_TABLES;

/* set once, before the store is created: sa_index_secret() */
static uint64_t secret = UINT64_C(0x9E3779B97F4A7C15);

void
sa_index_secret(uint64_t key)
{
	secret = key | 1;
}

/* xor of both halves of the 128-bit product: depends on every bit of both factors */
static uint64_t
key_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 p = (unsigned __int128)a * b;

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

uint64_t
sa_gid_key(const uint8_t *gid)
{
	return key_mix(get_be64(gid) ^ secret, key_mix(get_be64(gid + 8) ^ ~secret, secret) | 1);
}

uint64_t
sa_member_key(const uint8_t *mgid, const uint8_t *port_gid)
{
	return key_mix(sa_gid_key(mgid) ^ secret, sa_gid_key(port_gid) | 1);
}

static unsigned int
keys_port_guid(const struct store_record *r, uint64_t *keys)
{
	keys[0] = get_be64(r->bytes + NODE_OFF_PORT_GUID);
	return 1;
}

static unsigned int
keys_node_guid(const struct store_record *r, uint64_t *keys)
{
	keys[0] = get_be64(r->bytes + NODE_OFF_NODE_GUID);
	return 1;
}

static unsigned int
keys_alias_guid(const struct store_record *r, uint64_t *keys)
{
	unsigned int i, j, n = 0;

	for (i = 0; i < GUIDINFO_GUIDS; i++) {
		uint64_t guid = get_be64(r->bytes + GUIDINFO_OFF_GUIDS + 8 * i);

		for (j = 0; j < n && keys[j] != guid; j++)
			;
		if (guid != 0 && j == n)
			keys[n++] = guid;
	}
	return n;
}

static unsigned int
keys_service_id(const struct store_record *r, uint64_t *keys)
{
	keys[0] = get_be64(r->bytes + SERVICE_OFF_ID);
	return 1;
}

static unsigned int
keys_service_gid(const struct store_record *r, uint64_t *keys)
{
	keys[0] = sa_gid_key(r->bytes + SERVICE_OFF_GID);
	return 1;
}

static unsigned int
keys_mgid(const struct store_record *r, uint64_t *keys)
{
	keys[0] = sa_gid_key(r->bytes + MC_OFF_MGID);
	return 1;
}

static unsigned int
keys_mc_port(const struct store_record *r, uint64_t *keys)
{
	keys[0] = sa_gid_key(r->bytes + MC_OFF_PORT_GID);
	return 1;
}

static unsigned int
keys_mc_member(const struct store_record *r, uint64_t *keys)
{
	keys[0] = sa_member_key(r->bytes + MC_OFF_MGID, r->bytes + MC_OFF_PORT_GID);
	return 1;
}

static unsigned int
keys_mlid(const struct store_record *r, uint64_t *keys)
{
	keys[0] = get_be16(r->bytes + MC_OFF_MLID);
	return 1;
}

static unsigned int
keys_subscriber(const struct store_record *r, uint64_t *keys)
{
	keys[0] = sa_gid_key(r->bytes + INFORM_OFF_GID);
	return 1;
}

static unsigned int
keys_lease_end(const struct store_record *r, uint64_t *keys)
{
	keys[0] = service_lease_end(r);
	return keys[0] != LEASE_NEVER;
}

/* All three tails of records by strangers contain an origin. */
static unsigned int
stranger_key(uint64_t origin, uint64_t *keys)
{
	keys[0] = origin;
	return origin != 0;
}

static unsigned int
keys_stranger_service(const struct store_record *r, uint64_t *keys)
{
	return stranger_key(service_origin(r), keys);
}

void
member_tail_of(const struct store_record *r, struct member_tail *tail)
{
	memset(tail, 0, sizeof(*tail));
	/* without .expiry: written before strangers' memberships had leases */
	if (r->len == MC_LEN + sizeof(*tail) ||
		r->len == MC_LEN + offsetof(struct member_tail, expiry))
		memcpy(tail, r->bytes + MC_LEN, r->len - MC_LEN);
}

static unsigned int
keys_stranger_member(const struct store_record *r, uint64_t *keys)
{
	struct member_tail tail;

	member_tail_of(r, &tail);
	return stranger_key(tail.origin, keys);
}

static unsigned int
keys_membership_end(const struct store_record *r, uint64_t *keys)
{
	struct member_tail tail;

	member_tail_of(r, &tail);
	keys[0] = tail.expiry;
	return tail.origin != 0;
}

static unsigned int
keys_subscription_end(const struct store_record *r, uint64_t *keys)
{
	struct subscriber s;

	if (!subscriber_of(r, &s))
		return 0;
	keys[0] = s.expiry;
	return s.origin != 0;
}

static unsigned int
keys_stranger_subscriber(const struct store_record *r, uint64_t *keys)
{
	struct subscriber s;

	return subscriber_of(r, &s) ? stranger_key(s.origin, keys) : 0;
}

const struct store_index sa_indexes[] = {
	[SA_INDEX_PORT_GUID] = { SA_TABLE_NODE, keys_port_guid },
	[SA_INDEX_NODE_GUID] = { SA_TABLE_NODE, keys_node_guid },
	[SA_INDEX_ALIAS_GUID] = { SA_TABLE_GUID_INFO, keys_alias_guid },
	[SA_INDEX_SERVICE_ID] = { SA_TABLE_SERVICE, keys_service_id },
	[SA_INDEX_SERVICE_GID] = { SA_TABLE_SERVICE, keys_service_gid },
	[SA_INDEX_MGID] = { SA_TABLE_MCMEMBER, keys_mgid },
	[SA_INDEX_MC_PORT] = { SA_TABLE_MCMEMBER, keys_mc_port },
	[SA_INDEX_MC_MEMBER] = { SA_TABLE_MCMEMBER, keys_mc_member },
	[SA_INDEX_MLID] = { SA_TABLE_MCMEMBER, keys_mlid },
	[SA_INDEX_SUBSCRIBER] = { SA_TABLE_INFORM, keys_subscriber },
	[SA_INDEX_LEASE_END] = { SA_TABLE_SERVICE, keys_lease_end },
	[SA_INDEX_MEMBERSHIP_END] = { SA_TABLE_MCMEMBER, keys_membership_end },
	[SA_INDEX_SUBSCRIPTION_END] = { SA_TABLE_INFORM, keys_subscription_end },
	[SA_INDEX_STRANGER_SERVICE] = { SA_TABLE_SERVICE, keys_stranger_service },
	[SA_INDEX_STRANGER_MEMBER] = { SA_TABLE_MCMEMBER, keys_stranger_member },
	[SA_INDEX_STRANGER_SUBSCRIBER] = { SA_TABLE_INFORM, keys_stranger_subscriber },
};
const unsigned int sa_num_indexes = SA_INDEXES;

/* how the bytes of a template become an index key */
enum key_form {
	KEY_U64,
	KEY_U16,
	KEY_GID,
	KEY_MEMBER, /* MGID and PortGID */
};

/* the most selective index first; usable if all bits of .mask are selected */
static const struct {
	uint8_t table;
	uint8_t index;
	uint8_t form;
	uint8_t offset;
	uint64_t mask;
} leads[] = {
	{ SA_TABLE_NODE, SA_INDEX_PORT_GUID, KEY_U64, NODE_OFF_PORT_GUID, SA_BIT(8) },
	{ SA_TABLE_NODE, SA_INDEX_NODE_GUID, KEY_U64, NODE_OFF_NODE_GUID, SA_BIT(7) },
/* clang-format off */
#define GUID_LEAD(i)                                                                               \
	{ SA_TABLE_GUID_INFO, SA_INDEX_ALIAS_GUID, KEY_U64, GUIDINFO_OFF_GUIDS + 8 * (i),          \
		SA_BIT(GUIDINFO_BIT_GUID + (i)) }
	/* clang-format on */
	GUID_LEAD(0),
	GUID_LEAD(1),
	GUID_LEAD(2),
	GUID_LEAD(3),
	GUID_LEAD(4),
	GUID_LEAD(5),
	GUID_LEAD(6),
	GUID_LEAD(7),
	{ SA_TABLE_SERVICE, SA_INDEX_SERVICE_ID, KEY_U64, SERVICE_OFF_ID, SA_BIT(SERVICE_BIT_ID) },
	{ SA_TABLE_SERVICE, SA_INDEX_SERVICE_GID, KEY_GID, SERVICE_OFF_GID,
		SA_BIT(SERVICE_BIT_GID) },
	{ SA_TABLE_MCMEMBER, SA_INDEX_MC_MEMBER, KEY_MEMBER, MC_OFF_MGID,
		SA_BIT(MC_BIT_MGID) | SA_BIT(MC_BIT_PORT_GID) },
	{ SA_TABLE_MCMEMBER, SA_INDEX_MGID, KEY_GID, MC_OFF_MGID, SA_BIT(MC_BIT_MGID) },
	{ SA_TABLE_MCMEMBER, SA_INDEX_MC_PORT, KEY_GID, MC_OFF_PORT_GID, SA_BIT(MC_BIT_PORT_GID) },
	{ SA_TABLE_MCMEMBER, SA_INDEX_MLID, KEY_U16, MC_OFF_MLID, SA_BIT(MC_BIT_MLID) },
	{ SA_TABLE_INFORM, SA_INDEX_SUBSCRIBER, KEY_GID, INFORM_OFF_GID, SA_BIT(INFORM_BIT_GID) },
};

static uint64_t
template_key(enum key_form form, const uint8_t *p)
{
	switch (form) {
	case KEY_U64:
		return get_be64(p);
	case KEY_U16:
		return get_be16(p);
	case KEY_GID:
		return sa_gid_key(p);
	case KEY_MEMBER:
	default:
		return sa_member_key(p, p + MC_OFF_PORT_GID - MC_OFF_MGID);
	}
}

bool
sa_rid_assigned(unsigned int table)
{
	return table == SA_TABLE_SERVICE || table == SA_TABLE_MCMEMBER || table == SA_TABLE_INFORM;
}

bool
sa_access_path(const struct sa_record_type *t, const uint8_t *tmpl, uint64_t mask,
	struct sa_access_path *path)
{
	unsigned int i;

	if (!sa_rid_assigned(t->table) && (mask & LID_MASK) != 0) {
		path->index = false;
		path->first_rid = RID_LID(get_be16(tmpl));
		path->last_rid = RID_LID_LAST(get_be16(tmpl));
		return true;
	}
	for (i = 0; i < sizeof(leads) / sizeof(leads[0]); i++)
		if (leads[i].table == t->table && (mask & leads[i].mask) == leads[i].mask) {
			uint64_t key = template_key(leads[i].form, tmpl + leads[i].offset);

			if (leads[i].index == SA_INDEX_ALIAS_GUID && key == 0)
				continue; /* unused entries are not indexed */
			path->index = true;
			path->which = leads[i].index;
			path->key = key;
			return true;
		}
	return false;
}

const struct sa_record_type *
sa_table_type(unsigned int table)
{
	unsigned int i;

	for (i = 0; i < sa_num_record_types; i++)
		if (sa_record_types[i].stored && sa_record_types[i].table == table)
			return &sa_record_types[i];
	return NULL;
}

const struct store_record *
sa_first_of_lid(const struct store_version *v, unsigned int table, uint16_t lid,
	struct store_cursor *c)
{
	const struct store_record *r;

	store_seek(c, v, table, store_rank(v, table, RID_LID(lid)));
	r = store_next(c, NULL);
	return r != NULL && r->rid >> 16 == lid ? r : NULL;
}
