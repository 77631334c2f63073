/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_TABLES_H
#define SA_TABLES_H

/**
 * @file
 * The SA's tables in the store and their indexes. Tables by LID use the standard's RID as key
 * (sa-multipacket A6); in Service, MCMember and InformInfo the SA assigns RIDs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/record.h"
#include "store/store.h"

enum sa_index {
	SA_INDEX_PORT_GUID,
	SA_INDEX_NODE_GUID,
	SA_INDEX_ALIAS_GUID, /**< GUIDs of GUIDInfo */
	SA_INDEX_SERVICE_ID,
	SA_INDEX_SERVICE_GID,
	SA_INDEX_MGID,
	SA_INDEX_MC_PORT,
	SA_INDEX_MC_MEMBER, /**< MGID and PortGID: one record */
	SA_INDEX_MLID,
	SA_INDEX_SUBSCRIBER,
	SA_INDEX_LEASE_END, /**< services, by end in seconds, 0: not known; no endless ones */
	SA_INDEX_MEMBERSHIP_END, /**< of strangers, as SA_INDEX_LEASE_END */
	SA_INDEX_SUBSCRIPTION_END, /**< of strangers, as SA_INDEX_LEASE_END */
	/* records of strangers, by share_origin() */
	SA_INDEX_STRANGER_SERVICE,
	SA_INDEX_STRANGER_MEMBER,
	SA_INDEX_STRANGER_SUBSCRIBER,
	SA_INDEXES
};

/** Security: keyed hash of a GID, so that nobody can choose GIDs with the same key. */
uint64_t sa_gid_key(const uint8_t *gid);
uint64_t sa_member_key(const uint8_t *mgid, const uint8_t *port_gid);

/** Record type of a table. */
const struct sa_record_type *sa_table_type(unsigned int table);
/** True if the SA assigns the table's RIDs, false if they contain LIDs. */
bool sa_rid_assigned(unsigned int table);

/** First record of a LID, or NULL. */
const struct store_record *sa_first_of_lid(const struct store_version *v, unsigned int table,
	uint16_t lid, struct store_cursor *c);

/** How to find the records of a template: an index, or a range of RIDs. */
struct sa_access_path {
	bool index;
	unsigned int which; /**< enum sa_index */
	uint64_t key;
	uint32_t first_rid; /**< if not by index */
	uint32_t last_rid;
};
/** @param mask  version 2's numbering. @return false: only a scan finds the records */
bool sa_access_path(const struct sa_record_type *t, const uint8_t *tmpl, uint64_t mask,
	struct sa_access_path *path);

#endif
