/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PORT_PORT_H
#define PORT_PORT_H

/**
 * @file A port's attributes: one immutable struct, published anew when something changes and read
 * once per burst (design.md, who owns what). Only data and helpers are here, also for GIDs as IP
 * addresses and for what subnet management sets; lib/link publishes it.
 */

#include <stdbool.h>
#include <stdint.h>

#include <rte_debug.h>

#include "wire/packet.h"

#define PKEY_FULL 0x8000 /**< membership bit of a P_Key: a full member */

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
#define PORT_LID_MULTICAST  0xC000 /**< multicast LIDs start here; unicast ones are 1 to 0xBFFF */
#define PORT_SLS            16

enum gid_type {
	GID_ROCEV1,
	GID_ROCEV2,
	GID_IB,
};

struct port_gid {
	union gid gid;
	enum gid_type type;
	uint8_t prefix_len; /**< prefix length of the IPv4 or IPv6 address */
	union gid gateway; /**< zero: none */
};

struct port_attr {
	char name[PORT_NAME_MAX];
	uint16_t index; /**< local port index */
	uint8_t mac[6];
	uint16_t mtu; /**< MTU of the netdev, bytes */
	uint16_t active_mtu; /**< largest path MTU that fits: 256..4096 */
	uint16_t vlan; /**< or PATH_NO_VLAN */
	bool up;
	bool ib; /**< native IB encapsulation */
	uint8_t subnet_timeout; /**< PortInfo.SubnetTimeOut: packet life time 4.096 us * 2^code */
	struct port_gid gid[PORT_GIDS_MAX];
	unsigned int num_gids;
	uint16_t pkey[PORT_PKEYS_MAX];
	unsigned int num_pkeys;
	uint8_t state; /**< enum port_state */
	/* native IB */
	uint16_t ethertype; /**< EtherType that carries its packets */
	uint16_t lid;
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint64_t guid;
	uint64_t gid_prefix;
	bool disabled; /**< PortPhysState Disabled: do not receive or send packets */
	uint8_t sl_to_vl[PORT_SLS]; /**< 15: nothing may be sent on this SL */
};

/**
 * What subnet management sets on a native IB port. The SMA requests it, lib/link publishes it as
 * attributes. GID and P_Key indices are those of the tables; unused entries are 0.
 */
struct port_settings {
	uint8_t state; /**< enum port_state while the link is up */
	bool disabled; /**< do not use the link, whatever its carrier */
	uint16_t lid; /**< 0: none */
	uint8_t lmc;
	uint16_t sm_lid;
	uint8_t sm_sl;
	uint8_t subnet_timeout;
	uint16_t mtu; /**< NeighborMTU in bytes: 256..4096 */
	uint64_t gid_prefix;
	uint64_t guid[PORT_GIDS_MAX]; /**< [0] is the port GUID */
	unsigned int num_guids; /**< entries up to the last one in use */
	uint16_t pkey[PORT_PKEYS_MAX];
	unsigned int num_pkeys; /**< entries up to the last one in use */
	uint8_t sl_to_vl[PORT_SLS];
};

/** True if @p lid is one of the port's 2^LMC LIDs. */
static inline bool
port_lid_own(const struct port_attr *port, uint16_t lid)
{
	RTE_ASSERT(port->lmc <= 7);
	return port->lid != 0 && lid != 0 && lid >> port->lmc == port->lid >> port->lmc;
}

/** SLID of our packets: the port's LID with a QP's source path bits; 0: the port has no LID. */
static inline uint16_t
port_slid(const struct port_attr *port, uint8_t src_path_bits)
{
	uint16_t bits = (uint16_t)((1u << port->lmc) - 1);

	RTE_ASSERT(port->lmc <= 7);
	return port->lid != 0 ? (uint16_t)((port->lid & ~bits) | (src_path_bits & bits)) : 0;
}

/** Low 15 bits equal and at least one side a full member (rc-transport 5.6). */
static inline bool
port_pkey_match(uint16_t a, uint16_t b)
{
	/* the invalid P_Key, low bits zero, matches nothing */
	return (a & 0x7fff) != 0 && (a & 0x7fff) == (b & 0x7fff) && ((a | b) & 0x8000) != 0;
}
/** @return index of the first table entry that matches, or -1 */
int port_pkey_find(const struct port_attr *port, uint16_t pkey);
/** @return index in the GID table, or -1; the zero GID marks unused entries and is never found */
int port_gid_find(const struct port_attr *port, const union gid *gid, enum gid_type type);
/**
 * True if a packet's source can be a host: gid_is_host(), and not the broadcast address of one of
 * the port's subnets. Nothing is sent to any other, whatever a packet gives as its source.
 */
bool port_source_is_host(const struct port_attr *port, const union gid *source);
/**
 * Largest path MTU, 256..4096, that fits the netdev MTU with 80 bytes kept for headers, as in rxe.
 * 0: the MTU is too small
 */
uint16_t port_mtu_to_pmtu(uint16_t mtu);
/** Code of the largest path MTU up to @p mtu bytes, 1 (256) to 5 (4096). 0: none is that small */
uint8_t port_mtu_code(uint16_t mtu);
/** Path MTU in bytes for such a code. 0: invalid code */
uint16_t port_mtu_bytes(uint8_t code);

/** EUI-64 of a MAC, in host byte order: its interface identifier (RFC 4291, appendix A). */
uint64_t port_eui64(const uint8_t mac[6]);

bool gid_is_ipv4(const union gid *gid);
/** The default subnet prefix */
#define LINK_LOCAL_PREFIX UINT64_C(0xfe80000000000000)
bool gid_is_link_local(const union gid *gid);
/** True for a multicast group's GID, IPv4 or IPv6; no endport owns one. */
bool gid_is_multicast(const union gid *gid);
bool gid_is_zero(const union gid *gid);
/**
 * True for an address that a host can have: not zero, loopback, multicast, nor in IPv4 0/8 or 240/4
 * (RFC 1122 3.2.1.3). See port_source_is_host().
 */
bool gid_is_host(const union gid *gid);
/** True if @p gid is the broadcast address of the IPv4 subnet that @p member is in. */
bool gid_is_broadcast(const union gid *gid, const union gid *member, uint8_t prefix_len);
/**
 * The IPv4 /24 or the /64 of an address, to count by: who has one of its addresses may have all.
 * The LIDs of a subnet (::lid) share one.
 */
union gid gid_prefix(const union gid *gid);
union gid gid_from_ipv4(const uint8_t addr[4]);
/**
 * "10.0.0.1" or "fe80::1" (an IPv4 address becomes ::ffff:10.0.0.1). @retval false not an address
 */
bool gid_parse(const char *text, union gid *gid);
#define GID_STRLEN 48
/** IPv4-mapped GIDs print as IPv4. @return buf */
const char *gid_print(const union gid *gid, char buf[GID_STRLEN]);
/** True if both GIDs share a prefix. prefix_len counts in the address's own family. */
bool gid_same_subnet(const union gid *a, const union gid *b, uint8_t prefix_len);

/**
 * Packets dropped for a P_Key or Q_Key that does not match. One struct per worker and port, written
 * only by that worker. The counters only grow; the SMA derives PortInfo's 16-bit counters, which
 * can be cleared and stop at their maximum.
 */
struct port_violations {
	uint64_t pkey;
	uint64_t qkey;
};

/** Increment the worker's own counter; readers on other lcores never see a torn value. */
static inline void
port_violation(uint64_t *counter)
{
	__atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

/** Add one worker's counters to a sum. Any lcore. */
void port_violations_add(struct port_violations *sum, const struct port_violations *one);

#endif
