/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

/**
 * @file
 * Parse and build packets. Pure functions without state; any lcore may call them.
 */

/* the system's headers for the whole folder, with those of bytes.h */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>

#include "base/common_case.h"
#include "base/verdict.h"
#include "wire/bytes.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/path.h"

#define ROCEV2_PORT      4791
#define ETHERTYPE_ROCEV1 0x8915
#define ETHERTYPE_IB     0x88B5
#define BTH_LEN          12
#define ICRC_LEN         4
#define VCRC_LEN         2
#define QPN_SMI          0 /**< subnet management packets */
#define QPN_GSI          1 /**< general management packets */
#define QPN_MULTICAST    0xFFFFFFu
#define MTU_MAX          4096
/** IPv4 without options, UDP, BTH and ICRC: the shortest packet of wire_parse_plain() */
#define WIRE_PLAIN_LEN 44
/** First byte of an IPv4 header without options */
#define IPV4_PLAIN 0x45

/** True if it is not QP0, QP1 or the multicast QPN. */
static inline bool
qpn_ordinary(uint32_t qpn)
{
	return qpn - (QPN_GSI + 1) < QPN_MULTICAST - (QPN_GSI + 1);
}

/**
 * Parse a transport packet that starts at its layer-3 header: IPv4 or IPv6 (UDP port 4791), GRH
 * (RoCEv1) or LRH (native IB), as @p encap says. For RoCEv2 pass either RoCEv2 value: the IP
 * version decides. All lengths are checked against @p len, which may exceed the packet (Ethernet
 * padding). The ICRC is not verified here: the packet's owner calls
 * wire_crc_ok().
 *
 * @param l3   contiguous bytes
 * @param pkt  written; port, rx_time, smac and mbuf are left to the caller
 * @retval true   pkt describes a transport packet
 * @retval false  *why says which check failed
 */
bool wire_parse(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt,
	enum verdict *why);

/**
 * ICRC of a packet's bytes from layer 3 through the padding, the variant fields masked
 * (rc-transport 9).
 *
 * @return the ICRC; little-endian on the wire
 */
uint32_t wire_icrc(enum encap encap, const uint8_t *l3, uint32_t len);
/** VCRC over LRH through ICRC; little-endian on the wire. */
uint16_t wire_vcrc(const uint8_t *lrh, uint32_t len);

/* Private to lib/wire: wire_check_crc() for any packet, and the VCRC of a native IB packet */
enum verdict wire_any_crc(const struct packet *pkt);
bool wire_vcrc_ok(const struct packet *pkt);

/*
 * The VCRC is checked before the ICRC: a packet damaged on the link must not count as an ICRC
 * error.
 *
 * @param plain  constant: the packet is IPv4 without options
 * @return VERDICT_COUNT: it is right
 */
static __rte_always_inline enum verdict
wire_check_crc(const struct packet *pkt, bool plain)
{
	uint32_t icrc;

	if (!plain && pkt->encap == ENCAP_IB && !wire_vcrc_ok(pkt))
		return VERDICT_VCRC;
	icrc = plain ? crc_kernel->icrc(ENCAP_ROCEV2_IPV4, pkt->l3, pkt->icrc_len)
		     : wire_icrc(pkt->encap, pkt->l3, pkt->icrc_len);
	return icrc == get_le32(pkt->l3 + pkt->icrc_len) ? VERDICT_COUNT : VERDICT_ICRC;
}

/** True if the ICRC, and on native IB the VCRC, of a parsed packet is right; else *why is set. */
static inline bool
wire_crc_ok(const struct packet *pkt, enum verdict *why)
{
	*why = likely(COMMON_CASE(pkt->encap == ENCAP_ROCEV2_IPV4 && pkt->l3[0] == IPV4_PLAIN))
		? wire_check_crc(pkt, true)
		: wire_any_crc(pkt);
	return *why == VERDICT_COUNT;
}

/** Print an AETH syndrome in words. @return buf */
const char *wire_print_syndrome(uint8_t syndrome, char *buf, size_t size);

#endif
