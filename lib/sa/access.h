/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_ACCESS_H
#define SA_ACCESS_H

/**
 * @file
 * Who may see and change what. Trust comes from the SM_Key: who gives it sees everything and, unless
 * it is the one that everybody knows, changes everything. Others see what belongs to ports that
 * share a partition with theirs, without keys, and change only what is their own.
 *
 * A requester whose address is no port of the database (RoCE tools) is taken for a full member of
 * the default partition.
 */

#include <stdbool.h>
#include <stdint.h>

#include "mad/mad.h"
#include "sa/fabric.h"
#include "sa/port_view.h"
#include "sa/sa.h"

struct requester {
	bool trusted; /**< sees everything */
	bool manager; /**< changes everything */
	bool stranger; /**< no port of the database */
	union gid gid; /**< its own, for what is said of it; of an unknown LID ::ffff:ffff:ffff:LID */
	uint16_t lid; /**< 0: none */
	struct port_view port; /**< only its P_Keys if a stranger */
};

/** Under this GID stands what a requester says whose LID is no port's: ::ffff:ffff:ffff:LID. */
void sa_gid_of_lid(uint16_t lid, union gid *gid);
/** @retval false  the SM_Key is wrong: denied */
bool sa_requester(const struct sa_config *config, struct fabric *f, const struct mad_peer *peer,
	uint64_t sm_key, struct requester *who);
/** Does a GID name the requester's own port? */
bool sa_owns(const struct store_version *v, uint64_t prefix, const struct requester *who,
	const uint8_t *gid);
/** Do two ports share a partition, at least one of them as a full member? */
bool sa_shares(const struct store_version *v, const struct requester *who,
	const struct port_view *p);
/** May the requester see this record of a version? */
bool sa_visible(struct fabric *f, const struct store_version *v, const struct requester *who,
	const struct sa_record_type *t, const uint8_t *rec);
/**
 * Take out what only the trusted may know: keys, and of other ports' memberships who they are.
 *
 * @param guid  of the requester
 */
void sa_redact(const struct sa_record_type *t, uint64_t guid, uint8_t *rec);

#endif
