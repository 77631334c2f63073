/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PACKET_H
#define WIRE_PACKET_H

/**
 * @file
 * The packet view: the fields of one received transport packet, in host byte order. wire_parse()
 * writes it once, all other code only reads it, and it owns no memory (design.md, the seams). The
 * engine keeps it in the private area of the packet's mbuf, so that it moves with a hand-off.
 */

#include <stdbool.h>
#include <stdint.h>

struct opcode_info;

/** How transport packets are carried (rc-transport 1). */
enum encap {
	ENCAP_ROCEV2_IPV4,
	ENCAP_ROCEV2_IPV6,
	ENCAP_ROCEV1,
	ENCAP_IB, /**< native InfiniBand packet, LRH first */
};

/** 128 bits in network byte order; an IPv4 address a.b.c.d is ::ffff:a.b.c.d (rc-transport 10). */
union gid {
	uint8_t raw[16];
	uint64_t word[2];
};

static inline bool
gid_equal(const union gid *a, const union gid *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* The first two cache lines hold all that packets of connected services need. */
struct packet {
	const struct opcode_info *op; /**< row of the opcode table; never NULL after wire_parse() */
	const uint8_t *payload; /**< first byte after the extension headers */
	/* the packet's bytes: the owner checks the ICRC, UD copies 40 bytes of GRH space */
	const uint8_t *l3; /**< LRH, GRH or IP header */
	uint32_t payload_len; /**< bytes, padding not counted */
	uint32_t icrc_len; /**< bytes from l3 through the padding, the ICRC follows */
	uint8_t opcode;
	uint8_t pad; /**< PadCnt */
	bool solicited; /**< BTH SE */
	bool ackreq; /**< BTH AckReq */
	bool migreq; /**< BTH M */
	bool fecn;
	bool becn;
	bool ecn_ce; /**< IP ECN says congestion experienced */
	uint32_t dest_qpn;
	uint32_t psn;
	uint16_t pkey;
	uint16_t port; /**< local port index it came in on */
	enum encap encap;

	/* source and destination; more of them below */
	union gid sgid; /**< source GID or IP address as a GID; zero on a local IB packet */
	union gid dgid;

	/* extension headers; op->headers tells which are set */
	uint64_t va; /**< RETH or AtomicETH */
	uint32_t rkey; /**< RETH, AtomicETH, or IETH */
	uint32_t dmalen; /**< RETH */
	uint32_t imm; /**< ImmDt, host order of the wire number */
	uint32_t msn; /**< AETH */
	uint8_t syndrome; /**< AETH */

	bool has_grh; /**< a GRH or IP header was there (always on RoCE) */
	uint8_t sl; /**< LRH SL, or the VLAN's PCP */
	uint8_t vl; /**< native IB: LRH VL */
	uint16_t slid; /**< native IB */
	uint16_t dlid; /**< native IB */

	uint64_t rx_time; /**< when its burst was received, in the worker's time */
	void *mbuf; /**< opaque handle of the buffer that holds the bytes */
	const uint8_t *bth;
	/** source MAC of the frame, for answers to datagrams; NULL if there is none */
	const uint8_t *smac;
	uint32_t flow_label;
	uint16_t udp_sport;
	uint8_t tclass;
	uint8_t hop_limit;

	uint64_t swap_add; /**< AtomicETH */
	uint64_t compare; /**< AtomicETH */
	uint64_t atomic_orig; /**< AtomicAckETH */
	uint32_t qkey; /**< DETH */
	uint32_t src_qpn; /**< DETH */
};

/* 24-bit sequence arithmetic (rc-transport 4) */
#define PSN_MASK 0xFFFFFFu
/** Half of the circle: the most PSNs in flight, and a PSN further behind would look newer. */
#define PSN_WINDOW (1u << 23)

static inline uint32_t
psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/** n before psn; or how far psn is after PSN n, once around at most. */
static inline uint32_t
psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & PSN_MASK;
}

/** Signed distance a - b: 0 equal, > 0 a is ahead, < 0 a is behind; in [-2^23, 2^23 - 1]. */
static inline int32_t
psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

/** Padding for a payload length: 0..3. */
static inline uint32_t
wire_pad(uint32_t payload_len)
{
	return -payload_len & 3;
}

/** Length of a payload with its padding. */
static inline uint32_t
wire_padded(uint32_t payload_len)
{
	return (payload_len + 3) & ~3u;
}

#endif
