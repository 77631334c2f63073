/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_ACCESS_H
#define SA_ACCESS_H

/**
 * @file
 * Who may see and change what. The right SM_Key gives trust: its owner sees everything and, unless
 * it is the well-known key, changes everything. Other requesters see records of ports that share a
 * partition with theirs, without keys, and change only their own records.
 *
 * A requester that is no port of the database (RoCE tools) counts as a full member of the default
 * partition.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/fabric.h"
#include "sa/port_view.h"
#include "sa/sa.h"

/** What a requester may see of a record that it may see at all. */
enum sa_sight {
	SA_SEES_PARTITIONS, /**< no keys, and not whose membership of a group a record is */
	SA_SEES_NO_KEYS, /**< trusted: everything but M_Keys, SM_Keys and ServiceKeys */
	SA_SEES_KEYS, /**< holds an SM_Key that is the operator's own, not the well-known one */
};

struct requester {
	enum sa_sight sight;
	bool trusted; /**< sees all records */
	bool manager; /**< changes everything */
	bool stranger; /**< its address is that of no port of the database */
	/**
	 * Owner of its records. For an unknown LID that of its GRH, if no known port has it, else
	 * ::ffff:ffff:ffff:LID; all 0 for a RoCE requester that claims such a GID
	 */
	union gid gid;
	uint16_t lid; /**< 0: none */
	struct port_view port; /**< of a stranger only the P_Keys are valid */
};

/** The owner of records from a LID that no known port has: ::ffff:ffff:ffff:LID. */
void sa_gid_of_lid(uint16_t lid, union gid *gid);
/** Identify a requester. @retval false  the SM_Key is wrong: deny the request */
bool sa_requester(const struct sa_config *config, struct fabric *f, const struct mad_peer *peer,
	uint64_t sm_key, struct requester *who);
/** True if a GID belongs to the requester's own port. */
bool sa_owns(const struct store_version *v, uint64_t prefix, const struct requester *who,
	const uint8_t *gid);
/** True if both ports share a partition in which at least one is a full member. */
bool sa_shares(const struct store_version *v, const struct requester *who,
	const struct port_view *p);
/** True if the requester may see this record of a version. */
bool sa_visible(struct fabric *f, const struct store_version *v, const struct requester *who,
	const struct sa_record_type *t, const uint8_t *rec);
/**
 * Remove what the requester may not see. Security: also before its template is compared with the
 * record, or it could find a key or a member by asking for each.
 *
 * @param guid  the requester's
 */
void sa_redact(const struct sa_record_type *t, enum sa_sight sight, uint64_t guid, uint8_t *rec);
/** True if sa_redact() may change records of this type. */
bool sa_redacts(const struct sa_record_type *t, enum sa_sight sight);

#endif
