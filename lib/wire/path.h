/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PATH_H
#define WIRE_PATH_H

/**
 * @file
 * A path: the address vector of a QP or datagram, compiled into a template of the headers
 * before its BTHs. lib/link fills in the next hop's MAC when it sends the frame.
 */

#include "wire/crc32.h"
#include "wire/packet.h"

/** Enough for Ethernet + VLAN + IPv6 + UDP and for Ethernet + LRH + GRH. */
#define PATH_HEADER_MAX 80
/** Bytes after the padding: ICRC, and on native IB the VCRC. */
#define PATH_TRAILER_MAX 6
/** Most bytes of extension headers that path_finish_copy() accepts. */
#define PATH_EXT_MAX      28
#define PATH_NO_NEIGHBOUR UINT32_MAX
#define PATH_NO_VLAN      0xFFFF

/* av.traffic_class: the ECN bits */
#define ECN_MASK 0x03
#define ECN_ECT0 0x02
#define ECN_CE   0x03

/** An address vector: ibv_ah_attr plus the fields of the local port. */
struct av {
	enum encap encap;
	uint16_t port; /**< local port index */
	union gid sgid;
	union gid dgid;
	uint8_t smac[6]; /**< of the port */
	uint8_t dmac[6]; /**< of the next hop; zero: lib/link resolves it */
	uint16_t vlan; /**< VLAN id, or PATH_NO_VLAN */
	uint8_t sl; /**< LRH SL; VLAN PCP when there is a VLAN */
	uint8_t traffic_class; /**< DSCP and ECN */
	uint8_t hop_limit; /**< 0: 64 */
	uint32_t flow_label;
	uint16_t slid; /**< native IB */
	uint16_t dlid;
	uint8_t vl; /**< native IB: the port's SL-to-VL mapping of .sl; SMPs always use VL 15 */
	bool grh; /**< native IB: send a GRH */
	uint16_t ethertype; /**< native IB: carrier EtherType, 0: 0x88B5 */
};

struct path {
	struct av av;
	/** Template; lengths, checksums and IP ID are filled per packet. */
	union {
		uint8_t header[PATH_HEADER_MAX];
		struct { /* IPv4 only: its header is shorter and leaves room (path_finish.c) */
			uint8_t ipv4_header[48];
			uint8_t icrc_state[16]; /**< CRC of the bytes before the UDP length */
			uint8_t icrc_ack[16]; /**< CRC of the bytes before the BTH of an Ack */
		};
	};
	uint8_t header_len; /**< bytes before the BTH, from the Ethernet header on */
	uint8_t l3_off; /**< where the ICRC starts: IP header, GRH or LRH */
	uint8_t trailer_len; /**< 4, or 6 on native IB */
	uint16_t udp_sport;
	/** lib/link's index of the next hop; PATH_NO_NEIGHBOUR: use av.dmac. */
	uint32_t neighbour;
};

/** Compile av into a template; lqpn and rqpn choose the UDP source port (rc-transport 10). */
void path_init(struct path *p, const struct av *av, uint32_t lqpn, uint32_t rqpn);

/**
 * Complete a packet. The caller has written BTH, extension headers, payload and padding (bth_len
 * bytes) at bth. This writes the headers before it with lengths, IPv4 ID and checksum, and the ICRC
 * (and VCRC) after it. The caller guarantees header_len bytes of room before and trailer_len after.
 *
 * @return length of the whole frame, which starts at bth - p->header_len
 */
uint32_t path_finish(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id);

/**
 * path_finish() that also copies the payload behind the headers and pads it, reading its bytes
 * once. Two more bytes before the header must be readable, and four more after the payload
 * writable.
 *
 * @param headers  bytes of BTH and extension headers, those at most PATH_EXT_MAX
 * @param from     the payload, len bytes; may be NULL when there is none
 */
uint32_t path_finish_copy(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id);

/**
 * path_finish_copy() that also copies BTH and extension headers, from @p words. They are stored
 * there as eight and four bytes, then by field, and loading these is faster than loading bytes just
 * written to the packet. The CRC kernel does this, best of all for a Send, an Ack and an Atomic
 * Acknowledge.
 *
 * @param words  `headers` bytes
 */
static inline uint32_t
path_finish_send(const struct path *p, uint8_t *bth, const uint8_t *words, uint32_t headers,
	const void *from, uint32_t len, uint16_t ip_id)
{
	return crc_kernel->send(p, bth, words, headers, from, len, ip_id);
}

/**
 * path_finish_copy() with zeros instead of the ICRC, for links whose both ends do not check it. On
 * native IB it does write the ICRC. On others @p headers may include the payload.
 */
uint32_t path_finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id);

/** UDP source port of a flow (rc-transport 10). */
uint16_t rocev2_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);

#endif
