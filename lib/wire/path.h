/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PATH_H
#define WIRE_PATH_H

/**
 * @file
 * A path: the address vector of a QP or datagram, compiled into the bytes that stand before each of
 * its BTHs. Pure bytes: the next hop's MAC is filled in by lib/link when the frame leaves.
 */

#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

/** Enough for Ethernet + VLAN + IPv6 + UDP and for Ethernet + LRH + GRH. */
#define PATH_HEADER_MAX 80
/** Bytes after the padding: ICRC, and on native IB the VCRC. */
#define PATH_TRAILER_MAX 6
/** Extension headers that path_finish_copy() can have before it. */
#define PATH_EXT_MAX 28
#define PATH_NO_NEIGHBOUR UINT32_MAX
#define PATH_NO_VLAN 0xFFFF

/* av.traffic_class: the ECN bits */
#define ECN_MASK 0x03
#define ECN_ECT0 0x02
#define ECN_CE   0x03

/** Where a packet goes: ibv_ah_attr with the port's own side filled in. */
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
	uint8_t vl; /**< native IB: the port's SL-to-VL mapping of .sl; SMPs go on VL 15 anyway */
	bool grh; /**< native IB: send a GRH */
	uint16_t ethertype; /**< native IB: carrier EtherType, 0: 0x88B5 */
};

struct path {
	struct av av;
	/** Template; lengths, checksums and IP ID are filled per packet. */
	union {
		uint8_t header[PATH_HEADER_MAX];
		struct { /* IPv4, whose header is shorter; path_send.c */
			uint8_t ipv4_header[48];
			uint8_t icrc_state[16]; /**< of what precedes the UDP length */
			uint8_t icrc_ack[16]; /**< of what precedes an Ack's BTH */
		};
	};
	uint8_t header_len; /**< bytes from the Ethernet header to before the BTH */
	uint8_t l3_off; /**< where the ICRC starts: IP header, GRH or LRH */
	uint8_t trailer_len; /**< 4, or 6 on native IB */
	uint16_t udp_sport;
	/** lib/link's index of the next hop, or PATH_NO_NEIGHBOUR: av.dmac is final. */
	uint32_t neighbour;
};

/** Compile av into a template; lqpn and rqpn choose the UDP source port (rc-transport 10). */
void path_init(struct path *p, const struct av *av, uint32_t lqpn, uint32_t rqpn);

/**
 * Complete a packet whose BTH, extension headers, payload and padding (bth_len bytes) stand at bth:
 * write the header in front of it, lengths, IPv4 ID and checksum, and the ICRC (and VCRC) after it.
 * The caller guarantees header_len bytes of room before and trailer_len after.
 *
 * @return length of the whole frame, which starts at bth - p->header_len
 */
uint32_t path_finish(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id);

/**
 * The same while the payload, which stands elsewhere, is copied behind the headers, with its
 * padding: its bytes are read once. Two bytes more before the header must be readable, and four
 * after the payload writable.
 *
 * @param headers  bytes of BTH and extension headers, those at most PATH_EXT_MAX
 * @param from     the payload, len bytes; may be NULL when there is none
 */
uint32_t path_finish_copy(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id);

/**
 * The same for a BTH without extension headers, which is put where it belongs: it is taken from
 * the caller's words, eight bytes and four, for they are quicker than the bytes of the packet.
 * Which one it is goes with the CRC kernel (crc32.h), as does the next.
 */
extern uint32_t (*path_finish_send)(const struct path *p, uint8_t *bth, const uint8_t words[12],
	const void *from, uint32_t len, uint16_t ip_id);

/**
 * The same for BTH and four bytes more, without payload: an Ack, for one.
 *
 * @param words  BTH_LEN + 4 bytes: eight, four and four
 */
extern uint32_t (*path_finish_ack)(const struct path *p, uint8_t *bth, const uint8_t words[16],
	uint16_t ip_id);

/**
 * The same for BTH and twelve bytes more: an Atomic's answer.
 *
 * @param words  BTH_LEN + 12 bytes: eight, four, four and eight
 */
extern uint32_t (*path_finish_atomic)(const struct path *p, uint8_t *bth, const uint8_t words[24],
	uint16_t ip_id);

/**
 * The same as path_finish_copy(), but zeros stand in the ICRC's place: for links whose both ends do
 * without (native IB is not one).
 */
uint32_t path_finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id);

/** Source port of a flow (rc-transport 10). */
uint16_t rocev2_sport(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn);

#endif
