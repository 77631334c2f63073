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

/** PortInfo.PortState (smp-sma 3); a RoCE port is DOWN or ACTIVE. */
enum port_state {
	PORT_STATE_DOWN = 1,
	PORT_STATE_INIT,
	PORT_STATE_ARMED,
	PORT_STATE_ACTIVE,
};

#define PORT_LID_PERMISSIVE 0xFFFF
#define PORT_LID_MULTICAST  0xC000 /**< unicast LIDs are below, but 0 */
#define PORT_SLS            16

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
	uint8_t state; /**< enum port_state */
	/* native IB */
	uint16_t ethertype; /**< that carries its packets */
	uint16_t lid;
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint64_t guid;
	uint64_t gid_prefix;
	bool disabled; /**< PortPhysState Disabled: nothing is received from the wire nor sent to it */
	uint8_t sl_to_vl[PORT_SLS]; /**< 15: nothing leaves on this SL */
};

/**
 * What subnet management decides about a native IB port: the SMA's wish, which lib/link publishes
 * as attributes. Indices of GIDs and P_Keys are the tables' own, unused entries are 0.
 */
struct port_settings {
	uint8_t state; /**< enum port_state, were the link up */
	bool disabled; /**< the link is not to be used, whatever its carrier */
	uint16_t lid; /**< 0: none yet */
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint16_t mtu; /**< NeighborMTU in bytes: 256..4096 */
	uint64_t gid_prefix;
	uint64_t guid[PORT_GIDS_MAX]; /**< [0] is the port's */
	unsigned int num_guids; /**< entries up to the last one in use */
	uint16_t pkey[PORT_PKEYS_MAX];
	unsigned int num_pkeys; /**< entries up to the last one in use */
	uint8_t sl_to_vl[PORT_SLS];
};

/** Is it one of the port's 2^LMC LIDs? */
static inline bool
port_lid_own(const struct port_attr *port, uint16_t lid)
{
	return port->lid != 0 && lid != 0 && lid >> port->lmc == port->lid >> port->lmc;
}

/** The LID that packets of ours carry: the port's with a QP's source path bits; 0: has none. */
static inline uint16_t
port_slid(const struct port_attr *port, uint8_t src_path_bits)
{
	uint16_t bits = (uint16_t)((1u << port->lmc) - 1);

	return port->lid != 0 ? (uint16_t)((port->lid & ~bits) | (src_path_bits & bits)) : 0;
}

/** Low 15 bits equal and at least one side a full member (rc-transport 5.6). */
static inline bool
port_pkey_match(uint16_t a, uint16_t b)
{
	/* low bits of zero are the invalid P_Key and match nothing */
	return (a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
}
/** @return index of the first table entry that matches, or -1 */
int port_pkey_find(const struct port_attr *port, uint16_t pkey);
/** @return index in the GID table, or -1; the zero GID marks unused entries and is never found */
int port_gid_find(const struct port_attr *port, const union gid *gid, enum gid_type type);
/**
 * Largest of 256..4096 that fits the netdev MTU; as rxe, 80 bytes are kept for headers. 0: too
 * small
 */
uint16_t port_mtu_to_pmtu(uint16_t mtu);
/** Code of the largest path MTU up to @p mtu bytes, 1 (256) to 5 (4096). 0: there is none */
uint8_t port_mtu_code(uint16_t mtu);
/** Bytes of such a code. 0: it is none */
uint16_t port_mtu_bytes(uint8_t code);

/** EUI-64 of a MAC, in host byte order: its interface identifier (RFC 4291, appendix A). */
uint64_t port_eui64(const uint8_t mac[6]);

bool gid_is_ipv4(const union gid *gid);
bool gid_is_link_local(const union gid *gid);
/** Of a group of endports, IPv4 or IPv6: nobody's own. */
bool gid_is_multicast(const union gid *gid);
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
 * and port, written by that worker only. They only grow; PortInfo's 16 bits, their clearing and
 * their sticking at the top are the SMA's.
 */
struct port_violations {
	uint64_t pkey;
	uint64_t qkey;
};

/** The worker's own counter, one up; readers on other lcores see it whole. */
static inline void
port_violation(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/** Add one worker's counters to a sum. Any lcore. */
void port_violations_add(struct port_violations *sum, const struct port_violations *one);

#endif
