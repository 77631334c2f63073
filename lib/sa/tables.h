/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_TABLES_H
#define SA_TABLES_H

/**
 * @file
 * The SA's tables in the store and their indexes. Tables of LIDs are keyed by the RID of the
 * standard (sa-multipacket A6); Service, MCMember and InformInfo by a RID that is assigned.
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
	SA_INDEX_LEASE_END, /**< of services: seconds; 0: not known yet. Not those that last for ever */
	SA_INDEXES
};

/** 128 bits to a key; keyed, so that strangers cannot choose GIDs that share one. */
uint64_t sa_gid_key(const uint8_t *gid);
uint64_t sa_member_key(const uint8_t *mgid, const uint8_t *port_gid);

/** Type of a table's records. */
const struct sa_record_type *sa_table_type(unsigned int table);
/** Are its RIDs assigned, not made of LIDs? */
bool sa_rid_assigned(unsigned int table);

/** First record of a LID, or NULL. */
const struct store_record *sa_first_of_lid(const struct store_version *v, unsigned int table,
	uint16_t lid, struct store_cursor *c);

/** An index that a selected component leads to, or a range of RIDs. */
struct sa_access_path {
	bool index;
	unsigned int which; /**< enum sa_index */
	uint64_t key;
	uint32_t first_rid; /**< without an index */
	uint32_t last_rid;
};
/** @param mask  version 2's numbering. @return false: only a scan finds the records */
bool sa_access_path(const struct sa_record_type *t, const uint8_t *tmpl, uint64_t mask,
	struct sa_access_path *path);

#endif
