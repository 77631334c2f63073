/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_RX_TEMPLATE_H
#define LINK_RX_TEMPLATE_H

/*
 * Masked words that nearly all received frames of a port match: to its MAC, from no group, without
 * VLAN tag, IPv4 without options, not a fragment, UDP, to the port's first address and UDP port
 * 4791. rx_classify() in rx.c checks all other frames in full. Without mbufs and ports, so that the
 * simulation receives in the same way.
 */

#include "base/common_case.h"
#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/parse_plain.h"
#include "wire/wire.h"

#define RX_TEMPLATE_WORDS 4
/* bytes of a frame that the template compares; every RoCEv2 frame is longer */
#define RX_TEMPLATE_LEN (ETH_LEN + IPV4_LEN + UDP_LEN)

/* A zeroed template matches only zeros, which are not a valid packet. */
struct rx_template {
	uint64_t want[RX_TEMPLATE_WORDS]; /* with ones in the bits that are not compared */
	uint64_t any[RX_TEMPLATE_WORDS]; /* the bits that are not compared */
};

/* Offsets of the words: MAC; EtherType and IP version; fragment and protocol; address and port */
static const uint8_t rx_template_at[RX_TEMPLATE_WORDS] = {
	0,
	8,
	ETH_LEN + IPV4_TOTAL,
	ETH_LEN + IPV4_DST,
};
_Static_assert(ETH_LEN + IPV4_DST + 8 <= RX_TEMPLATE_LEN, "the last word");

/* @param mac, ipv4  as in a frame */
static inline void
rx_template_make(struct rx_template *t, const uint8_t *mac, const void *ipv4)
{
	uint8_t want[RX_TEMPLATE_LEN] = { 0 }, mask[RX_TEMPLATE_LEN] = { 0 };
	uint8_t *ip = want + ETH_LEN, *ip_mask = mask + ETH_LEN;
	unsigned int i;

	memcpy(want, mac, 6);
	memset(mask, 0xFF, 6);
	mask[6] = 0x01; /* the source is no group */
	put_be16(want + 12, ETHERTYPE_IPV4);
	put_be16(mask + 12, 0xFFFF);
	ip[0] = IPV4_PLAIN;
	ip_mask[0] = 0xFF;
	put_be16(ip_mask + IPV4_FRAG, IPV4_FRAGMENT_BITS);
	ip[IPV4_PROTO] = IP_PROTO_UDP;
	ip_mask[IPV4_PROTO] = 0xFF;
	memcpy(ip + IPV4_DST, ipv4, 4);
	memset(ip_mask + IPV4_DST, 0xFF, 4);
	put_be16(ip + IPV4_LEN + UDP_DPORT, ROCEV2_PORT);
	put_be16(ip_mask + IPV4_LEN + UDP_DPORT, 0xFFFF);
	for (i = 0; i < RX_TEMPLATE_WORDS; i++) {
		memcpy(&t->want[i], want + rx_template_at[i], sizeof(t->want[i]));
		memcpy(&t->any[i], mask + rx_template_at[i], sizeof(t->any[i]));
		t->any[i] = ~t->any[i];
		t->want[i] |= t->any[i];
	}
}

/* @param eth  of a frame of RX_TEMPLATE_LEN bytes */
static inline bool
rx_template_match(const struct rx_template *t, const uint8_t *eth)
{
	uint64_t word, differs = 0;
	unsigned int i;

#pragma GCC unroll 4
	for (i = 0; i < RX_TEMPLATE_WORDS; i++) {
		memcpy(&word, eth + rx_template_at[i], sizeof(word));
		differs |= (word | t->any[i]) ^ t->want[i];
	}
	return differs == 0;
}

/*
 * The common case: the frame matches the template, and its packet parses without error.
 *
 * @param len  of the frame, as far as it is at eth
 */
static __rte_always_inline bool
rx_template_parse(const struct rx_template *t, const uint8_t *eth, uint32_t len, struct packet *pkt)
{
	return likely(COMMON_CASE(len >= ETH_LEN + WIRE_PLAIN_LEN)) &&
		likely(rx_template_match(t, eth)) &&
		likely(wire_parse_plain(eth + ETH_LEN, len - ETH_LEN, pkt));
}

#endif
