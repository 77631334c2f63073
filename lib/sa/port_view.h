/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_PORT_VIEW_H
#define SA_PORT_VIEW_H

/**
 * @file
 * An endport as the store describes it, collected from its Node, PortInfo, P_Key and Link records.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sa/sa.h"

#define PORT_VIEW_PKEYS 20
#define PORT_VIEW_MANY  0xFF /* .num_pkeys: too many to keep, read them from the store */
#define PKEY_DEFAULT    0xFFFF
#define GID_LINK_LOCAL  UINT64_C(0xFE80000000000000) /* prefix valid in every subnet */

struct port_view {
	uint64_t guid;
	uint32_t generation; /**< of the cache that holds it */
	uint16_t lid; /**< base LID */
	uint16_t link_lid; /**< LID at the other end of its link, 0: none */
	uint8_t lmc;
	uint8_t port; /**< port number, 0 for a switch */
	uint8_t node_type;
	uint8_t mtu; /**< code; of the link, if it has one */
	uint8_t rate; /**< code, 0: no known limit */
	uint8_t num_pkeys;
	uint16_t pkey[PORT_VIEW_PKEYS];
};

/** The endport with this LID among its LMC's LIDs. @return false: none, or its link is down */
bool port_view_lid(const struct store_version *v, uint16_t lid, struct port_view *p);
/** LID of the port with this GUID or GUIDInfo alias; 0: none. */
uint16_t port_lid_of_guid(const struct store_version *v, uint64_t guid);
/** The endport with this GID: prefix and GUID must match. */
bool port_view_gid(const struct store_version *v, uint64_t prefix, const uint8_t *gid,
	struct port_view *p);
/** True if a GID's upper half is this subnet's prefix or the link-local one. */
bool gid_in_subnet(uint64_t prefix, const uint8_t *gid);
/**
 * The view of an address that belongs to no stored port: a full member of the default partition.
 */
void port_view_stranger(struct port_view *p);

/**
 * The port's P_Key for a partition, with the port's own membership; 0: not a member.
 *
 * @param pkey  with either membership
 */
uint16_t port_member(const struct store_version *v, const struct port_view *p, uint16_t pkey);
/**
 * A partition that both ports share, at least one as a full member: as a full P_Key; 0: none.
 *
 * @param asked  only this partition; 0: any
 */
uint16_t port_common_pkey(const struct store_version *v, const struct port_view *a,
	const struct port_view *b, uint16_t asked);

/** MTU code and rate code of a port from its PortInfoRecord. */
uint8_t port_info_mtu(const uint8_t *rec);
uint8_t port_info_rate(const uint8_t *rec);

#endif
