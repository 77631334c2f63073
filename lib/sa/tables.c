/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Keys of GIDs, and which index a template's components can use. */

#include "sa/layout.h"
#include "sa/sa.h"
#include "sa/tables.h"
#include "wire/bytes.h"

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
