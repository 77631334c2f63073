/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_LAYOUT_H
#define WIRE_LAYOUT_H

/**
 * @file
 * Byte offsets of the fields in each header (rc-transport 1). For lib/wire and for the few others
 * that read or write a frame's bytes themselves.
 */

#define ETH_LEN        14
#define VLAN_LEN       4
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_IPV6 0x86DD

#define IPV4_LEN      20
#define IPV4_LEN_MAX  60
#define IPV4_TOS      1
#define IPV4_TOTAL    2
#define IPV4_FRAG     6
#define IPV4_TTL      8
#define IPV4_PROTO    9
#define IPV4_CHECKSUM 10
#define IPV4_SRC      12
#define IPV4_DST      16

/* more fragments, or an offset: everything but DF and the reserved bit */
#define IPV4_FRAGMENT_BITS 0x3FFF

/* an IPv6 header and a GRH have the same layout */
#define IPV6_LEN       40
#define IPV6_PAYLEN    4
#define IPV6_NEXT      6
#define IPV6_HOP_LIMIT 7
#define IPV6_SRC       8
#define IPV6_DST       24
#define GRH_LEN        IPV6_LEN
#define GRH_NEXT_IBA   0x1B

#define IP_PROTO_UDP 17 /* IPv4's protocol, IPv6's next header */

#define UDP_LEN      8
#define UDP_SPORT    0
#define UDP_DPORT    2
#define UDP_LENGTH   4
#define UDP_CHECKSUM 6

#define LRH_LEN        8
#define LRH_DLID       2
#define LRH_PKTLEN     4
#define LRH_SLID       6
#define LRH_LNH_MASK   0x03
#define LRH_LNH_LOCAL  2
#define LRH_LNH_GLOBAL 3
#define LRH_VL_SMP     15 /* carries SMPs and nothing else */

#define BTH_FLAGS  1
#define BTH_PKEY   2
#define BTH_RESV8A 4 /* FECN, BECN and six reserved bits */
#define BTH_DESTQP 4 /* low 24 bits of the word */
#define BTH_PSN    8 /* low 24 bits of the word */

#define BTH_SE        0x80 /* byte 1 */
#define BTH_M         0x40
#define BTH_PAD_SHIFT 4
#define BTH_TVER_MASK 0x0F
#define BTH_FECN      0x80 /* byte 4 */
#define BTH_BECN      0x40
#define BTH_ACKREQ    0x80 /* byte 8 */

#endif
