/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Parse bytes into a packet view. Every length is checked here, against the received bytes and
 * against the lengths of the enclosing layer; later code relies on it.
 */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/parse_plain.h"
#include "wire/wire.h"

#define IPPROTO_UDP         17
#define IPPROTO_V6_FRAGMENT 44

/* more fragments, or an offset: everything but DF and the reserved bit */
#define IPV4_FRAGMENT_BITS 0x3FFF

/* first eight bytes of an IPv4 header without options that is not a fragment (plain_ipv4()) */
#define PLAIN_MASK UINT64_C(0xFF00000000003FFF)
#define PLAIN      UINT64_C(0x4500000000000000)

/* An IPv6 header and a GRH have these fields at the same offsets. */
static inline void
parse_ipv6_fields(const uint8_t *h, struct packet *pkt)
{
	uint32_t word = get_be32(h);

	pkt->tclass = word >> 20;
	pkt->flow_label = word & 0xFFFFF;
	pkt->hop_limit = h[IPV6_HOP_LIMIT];
	memcpy(pkt->sgid.raw, h + IPV6_SRC, 16);
	memcpy(pkt->dgid.raw, h + IPV6_DST, 16);
}

/*
 * One's complement sum: 2^16 is 1 modulo 2^16 - 1, so words of any size may be added. The version
 * field is not zero, so a sum of all zeros cannot pass.
 */
static inline bool
ipv4_checksum_ok(const uint8_t *h, uint32_t header_len)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < header_len; i += 4)
		sum += get_be32(h + i);
	return sum % 0xFFFF == 0;
}

/*
 * Each of these functions returns the first byte of the next header, or NULL with *why set, and
 * sets
 * *end to the end of its layer's bytes.
 */

static const uint8_t *
parse_udp(const uint8_t *udp, const uint8_t *end, struct packet *pkt, enum verdict *why)
{
	if (unlikely(end - udp < UDP_LEN))
		FAIL(UDP_LENGTH);
	if (unlikely(get_be16(udp + UDP_DPORT) != ROCEV2_PORT))
		FAIL(UDP_PORT);
	if (unlikely(get_be16(udp + UDP_LENGTH) != end - udp))
		FAIL(UDP_LENGTH);
	/* the checksum is ignored (rc-transport 10): the ICRC covers more */
	pkt->udp_sport = get_be16(udp + UDP_SPORT);
	return udp + UDP_LEN;
}

static const uint8_t *
parse_ipv4(const uint8_t *ip, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t header_len, total;

	if (unlikely(len < IPV4_LEN))
		FAIL(RUNT);
	header_len = (ip[0] & 0x0F) * 4;
	total = get_be16(ip + IPV4_TOTAL);
	if (unlikely(header_len < IPV4_LEN || total < header_len || total > len))
		FAIL(IP_HEADER);
	if (unlikely(!ipv4_checksum_ok(ip, header_len)))
		FAIL(IP_CHECKSUM);
	if (unlikely(get_be16(ip + IPV4_FRAG) & IPV4_FRAGMENT_BITS))
		FAIL(IP_FRAGMENT);
	if (unlikely(ip[IPV4_PROTO] != IPPROTO_UDP))
		FAIL(IP_PROTOCOL);
	parse_ipv4_fields(ip, pkt);
	*end = ip + total;
	return parse_udp(ip + header_len, *end, pkt, why);
}

static const uint8_t *
parse_ipv6(const uint8_t *ip, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t payload;

	if (len < IPV6_LEN)
		FAIL(RUNT);
	payload = get_be16(ip + IPV6_PAYLEN);
	if (payload > len - IPV6_LEN)
		FAIL(IP_HEADER);
	if (ip[IPV6_NEXT] == IPPROTO_V6_FRAGMENT)
		FAIL(IP_FRAGMENT);
	if (ip[IPV6_NEXT] != IPPROTO_UDP)
		FAIL(IP_PROTOCOL);
	pkt->encap = ENCAP_ROCEV2_IPV6;
	parse_ipv6_fields(ip, pkt);
	*end = ip + IPV6_LEN + payload;
	return parse_udp(ip + IPV6_LEN, *end, pkt, why);
}

static const uint8_t *
parse_grh(const uint8_t *grh, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t payload;

	if (len < GRH_LEN || grh[0] >> 4 != 6 || grh[IPV6_NEXT] != GRH_NEXT_IBA)
		FAIL(GRH);
	payload = get_be16(grh + IPV6_PAYLEN);
	if (payload > len - GRH_LEN)
		FAIL(GRH);
	parse_ipv6_fields(grh, pkt);
	*end = grh + GRH_LEN + payload;
	return grh + GRH_LEN;
}

static const uint8_t *
parse_lrh(const uint8_t *lrh, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t packet_len, lnh;
	const uint8_t *next;

	if (len < LRH_LEN)
		FAIL(RUNT);
	lnh = lrh[1] & LRH_LNH_MASK;
	packet_len = (get_be16(lrh + LRH_PKTLEN) & 0x7FF) * 4;
	if ((lrh[0] & 0x0F) != 0 || lnh < LRH_LNH_LOCAL)
		FAIL(GRH);
	if (packet_len < LRH_LEN || packet_len + VCRC_LEN > len)
		FAIL(GRH);
	pkt->encap = ENCAP_IB;
	pkt->sl = lrh[1] >> 4;
	pkt->vl = lrh[0] >> 4;
	pkt->dlid = get_be16(lrh + LRH_DLID);
	pkt->slid = get_be16(lrh + LRH_SLID);
	*end = lrh + packet_len;
	if (lnh == LRH_LNH_GLOBAL) {
		next = parse_grh(lrh + LRH_LEN, packet_len - LRH_LEN, pkt, end, why);
		if (next != NULL && *end != lrh + packet_len)
			FAIL(GRH);
		return next;
	}
	pkt->has_grh = false;
	pkt->tclass = 0;
	pkt->flow_label = 0;
	pkt->hop_limit = 0;
	memset(&pkt->sgid, 0, sizeof(pkt->sgid));
	memset(&pkt->dgid, 0, sizeof(pkt->dgid));
	return lrh + LRH_LEN;
}

/* Parse the extension headers that the opcode's row names, in this order (rc-transport 2). */
void
wire_parse_extension_headers(const uint8_t *p, uint8_t headers, struct packet *pkt)
{
	if (headers & HDR_DETH) {
		pkt->qkey = get_be32(p);
		pkt->src_qpn = get_be24(p + 4);
		p += 8;
	}
	if (headers & HDR_FETH)
		p += 4;
	if (headers & HDR_RETH) {
		pkt->va = get_be64(p);
		pkt->rkey = get_be32(p + 8);
		pkt->dmalen = get_be32(p + 12);
		p += 16;
	}
	if (headers & HDR_ATOMICETH) {
		pkt->va = get_be64(p);
		pkt->rkey = get_be32(p + 8);
		pkt->swap_add = get_be64(p + 12);
		pkt->compare = get_be64(p + 20);
		p += 28;
	}
	if (headers & HDR_AETH) {
		parse_aeth(p, pkt);
		p += 4;
	}
	if (headers & HDR_ATOMICACK) {
		pkt->atomic_orig = get_be64(p);
		p += 8;
	}
	if (headers & HDR_IMM) {
		pkt->imm = get_be32(p);
		p += 4;
	}
	if (headers & HDR_IETH)
		pkt->rkey = get_be32(p);
}

static inline bool
plain_ipv4(const uint8_t *ip, uint32_t len)
{
	return len >= WIRE_PLAIN_LEN && (get_be64(ip) & PLAIN_MASK) == PLAIN &&
		ip[IPV4_PROTO] == IPPROTO_UDP && get_be16(ip + IPV4_LEN + UDP_DPORT) == ROCEV2_PORT;
}

static bool __rte_noinline
parse_any(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt, enum verdict *why)
{
	const uint8_t *bth, *end;

	pkt->l3 = l3;
	parse_no_lrh(pkt);
	if (encap <= ENCAP_ROCEV2_IPV6) {
		if (len == 0)
			FAIL(RUNT);
		if (l3[0] >> 4 == 4)
			bth = parse_ipv4(l3, len, pkt, &end, why);
		else if (l3[0] >> 4 == 6)
			bth = parse_ipv6(l3, len, pkt, &end, why);
		else
			FAIL(IP_HEADER);
	} else {
		pkt->udp_sport = 0;
		pkt->encap = ENCAP_ROCEV1;
		bth = encap == ENCAP_ROCEV1 ? parse_grh(l3, len, pkt, &end, why)
					    : parse_lrh(l3, len, pkt, &end, why);
	}
	if (bth == NULL || parse_bth(bth, end, pkt, why) == NULL)
		return false;
	pkt->ecn_ce = encap <= ENCAP_ROCEV2_IPV6 && (pkt->tclass & ECN_MASK) == ECN_CE;
	pkt->icrc_len = end - l3 - ICRC_LEN;
	return true;
}

bool
wire_parse(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt, enum verdict *why)
{
	if (likely(encap <= ENCAP_ROCEV2_IPV6 && plain_ipv4(l3, len)) &&
		likely(wire_parse_plain(l3, len, pkt)))
		return true;
	return parse_any(encap, l3, len, pkt, why);
}
