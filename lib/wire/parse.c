/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Parse bytes into a packet view. Every length is checked here, against the received bytes and
 * against the lengths of the enclosing layer; later code relies on it.
 */

#include "wire/parse_plain.h"

#define IPPROTO_V6_FRAGMENT 44

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
 * As parse_udp(), each of these functions returns the first byte of the next header, or NULL with
 * *why set, and sets *end to the end of its layer's bytes.
 */

static const uint8_t *
parse_ipv6(const uint8_t *ip, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t payload;

	if (!ip_header_fits(ip, len, 6, why))
		return NULL;
	payload = get_be16(ip + IPV6_PAYLEN);
	if (payload > len - IPV6_LEN)
		PARSE_FAIL(IP_HEADER);
	if (ip[IPV6_NEXT] == IPPROTO_V6_FRAGMENT)
		PARSE_FAIL(IP_FRAGMENT);
	if (ip[IPV6_NEXT] != IP_PROTO_UDP)
		PARSE_FAIL(IP_PROTOCOL);
	pkt->encap = ENCAP_ROCEV2_IPV6;
	parse_ipv6_fields(ip, pkt);
	*end = ip + IPV6_LEN + payload;
	return parse_udp(ip + IPV6_LEN, payload, false, pkt, why);
}

static const uint8_t *
parse_grh(const uint8_t *grh, uint32_t len, struct packet *pkt, const uint8_t **end,
	enum verdict *why)
{
	uint32_t payload;

	if (len < GRH_LEN || grh[0] >> 4 != 6 || grh[IPV6_NEXT] != GRH_NEXT_IBA)
		PARSE_FAIL(GRH);
	payload = get_be16(grh + IPV6_PAYLEN);
	if (payload > len - GRH_LEN)
		PARSE_FAIL(GRH);
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
		PARSE_FAIL(RUNT);
	lnh = lrh[1] & LRH_LNH_MASK;
	packet_len = (get_be16(lrh + LRH_PKTLEN) & 0x7FF) * 4;
	if ((lrh[0] & 0x0F) != 0 || lnh < LRH_LNH_LOCAL || packet_len < LRH_LEN ||
		packet_len + VCRC_LEN > len)
		PARSE_FAIL(GRH);
	pkt->encap = ENCAP_IB;
	pkt->sl = lrh[1] >> 4;
	pkt->vl = lrh[0] >> 4;
	pkt->dlid = get_be16(lrh + LRH_DLID);
	pkt->slid = get_be16(lrh + LRH_SLID);
	*end = lrh + packet_len;
	if (lnh == LRH_LNH_GLOBAL) {
		next = parse_grh(lrh + LRH_LEN, packet_len - LRH_LEN, pkt, end, why);
		if (next != NULL && *end != lrh + packet_len)
			PARSE_FAIL(GRH);
		return next;
	}
	pkt->has_grh = false;
	pkt->tclass = 0;
	pkt->flow_label = 0;
	pkt->hop_limit = 0;
	pkt->sgid = pkt->dgid = (union gid){ { 0 } };
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
	if (headers & (HDR_RETH | HDR_ATOMICETH)) {
		pkt->va = get_be64(p);
		pkt->rkey = get_be32(p + 8);
		p += 12;
	}
	if (headers & HDR_RETH) {
		pkt->dmalen = get_be32(p);
		p += 4;
	}
	if (headers & HDR_ATOMICETH) {
		pkt->swap_add = get_be64(p);
		pkt->compare = get_be64(p + 8);
		p += 16;
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
parse_all(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt, enum verdict *why)
{
	const uint8_t *bth, *end;

	if (encap <= ENCAP_ROCEV2_IPV6) {
		if (len == 0)
			PARSE_FAIL(RUNT);
		if (l3[0] >> 4 == 4)
			return parse_rocev2_ipv4(l3, len, false, pkt, why);
		parse_no_lrh(pkt);
		bth = parse_ipv6(l3, len, pkt, &end, why);
	} else {
		parse_no_lrh(pkt);
		pkt->udp_sport = 0;
		pkt->encap = ENCAP_ROCEV1;
		bth = encap == ENCAP_ROCEV1 ? parse_grh(l3, len, pkt, &end, why)
					    : parse_lrh(l3, len, pkt, &end, why);
	}
	return bth != NULL &&
		parse_transport(l3, bth, end - bth, encap <= ENCAP_ROCEV2_IPV6, pkt, why);
}

bool
wire_parse(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt, enum verdict *why)
{
	bool ok = parse_all(encap, l3, len, pkt, why);

	/* what all others rely on: payload, padding and ICRC are within the bytes given */
	RTE_ASSERT(!ok || (pkt->op == &opcodes[pkt->opcode] && pkt->l3 == l3));
	RTE_ASSERT(!ok || (pkt->icrc_len <= len && ICRC_LEN <= len - pkt->icrc_len));
	RTE_ASSERT(!ok || pkt->payload + pkt->payload_len + pkt->pad == l3 + pkt->icrc_len);
	return ok;
}
