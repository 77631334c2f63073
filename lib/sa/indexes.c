/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The store's indexes: which keys a record has in each. */

#include "sa/layout.h"
#include "sa/sa.h"
#include "sa/tables.h"
#include "sa/write.h"
#include "wire/bytes.h"

const unsigned int sa_num_tables = SA_TABLES;

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
