/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PORT_PORT_H
#define PORT_PORT_H

/**
 * @file
 * A port's attributes: one immutable struct, published anew when something changes, read once a
 * burst (design.md, who owns what). Pure data and helpers; lib/link owns the publishing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define PORT_GIDS_MAX  32
#define PORT_PKEYS_MAX 64
#define PORT_NAME_MAX  32

enum gid_type {
	GID_ROCEV1,
	GID_ROCEV2,
	GID_IB,
};

struct port_gid {
	union gid gid;
	enum gid_type type;
	uint8_t prefix_len; /**< of the IPv4 or IPv6 address */
	union gid gateway; /**< zero: none */
};

struct port_attr {
	char name[PORT_NAME_MAX];
	uint16_t index; /**< local port index */
	uint8_t mac[6];
	uint16_t mtu; /**< of the netdev, bytes */
	uint16_t active_mtu; /**< path MTU that fits: 256..4096 */
	uint16_t vlan; /**< or PATH_NO_VLAN */
	bool up;
	bool ib; /**< native IB encapsulation */
	uint8_t subnet_timeout; /**< PortInfo.SubnetTimeout: 4.096 us * 2^it is a packet's flight */
	struct port_gid gid[PORT_GIDS_MAX];
	unsigned int num_gids;
	uint16_t pkey[PORT_PKEYS_MAX];
	unsigned int num_pkeys;
	/* native IB */
	uint16_t lid;
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint64_t guid;
	uint64_t gid_prefix;
};

/** Low 15 bits equal and at least one side a full member (rc-transport 5.6). */
bool port_pkey_match(uint16_t a, uint16_t b);
/** @return index of the first table entry that matches, or -1 */
int port_pkey_find(const struct port_attr *port, uint16_t pkey);
/** @return index in the GID table, or -1 */
int port_gid_find(const struct port_attr *port, const union gid *gid, enum gid_type type);
/**
 * Largest of 256..4096 that fits the netdev MTU; as rxe, 80 bytes are kept for headers. 0: too
 * small
 */
uint16_t port_mtu_to_pmtu(uint16_t mtu);

bool gid_is_ipv4(const union gid *gid);
bool gid_is_link_local(const union gid *gid);
bool gid_is_zero(const union gid *gid);
union gid gid_from_ipv4(const uint8_t addr[4]);
/**
 * "10.0.0.1" or "fe80::1" (an IPv4 address becomes ::ffff:10.0.0.1). @retval false not an address
 */
bool gid_parse(const char *text, union gid *gid);
#define GID_STRLEN 48
/** IPv4-mapped GIDs print as IPv4. @return buf */
const char *gid_print(const union gid *gid, char buf[GID_STRLEN]);
/** Are the two within one prefix? prefix_len counts in the address's own family. */
bool gid_same_subnet(const union gid *a, const union gid *b, uint8_t prefix_len);

/**
 * Packets dropped for a key that does not match. Kept apart from the attributes: one per worker
 * and port, written by that worker only. PortInfo has 16 bits for each sum, and they stick at the
 * top.
 */
struct port_violations {
	uint16_t pkey;
	uint16_t qkey;
};

/** The worker's own counter, one up; readers on other lcores see it whole. */
static inline void
port_violation(uint16_t *counter)
{
	if (*counter != UINT16_MAX)
		__atomic_store_n(counter, (uint16_t)(*counter + 1), __ATOMIC_RELAXED);
}

/** Add one worker's counters to a sum, as PortInfo shows it. Any lcore. */
void port_violations_add(struct port_violations *sum, const struct port_violations *one);

#endif
