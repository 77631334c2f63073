/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * From bytes to a packet view. Every length is checked here, against the bytes that are there and
 * against the lengths of the layer around it; nobody below has to look again.
 */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/wire.h"

#define TVER_MASK   0x0F
#define IPPROTO_UDP 17
#define IPPROTO_V6_FRAGMENT 44

/* more fragments, or an offset: everything but DF and the reserved bit */
#define IPV4_FRAGMENT_BITS 0x3FFF

/* what is no option, no fragment and UDP says in an IPv4 header's first ten bytes (be64, byte 9) */
#define PLAIN_MASK UINT64_C(0xFF00000000003FFF)
#define PLAIN      UINT64_C(0x4500000000000000)
_Static_assert(WIRE_PLAIN_LEN == IPV4_LEN + UDP_LEN + BTH_LEN + ICRC_LEN, "no extension headers");

#define FAIL(verdict)                                                                              \
	do {                                                                                       \
		*why = VERDICT_##verdict;                                                          \
		return 0;                                                                          \
	} while (0)

/* Of ::ffff:a.b.c.d the second half, in one piece; addr as it stands in the packet. */
static inline uint64_t
mapped_ipv4(const uint8_t *addr)
{
	uint32_t a;

	memcpy(&a, addr, sizeof(a));
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
	return be64(UINT64_C(0xFFFF00000000)) | (uint64_t)a << 32;
#else
	return UINT64_C(0xFFFF00000000) | a;
#endif
}

static inline void
parse_ipv4_fields(const uint8_t *ip, struct packet *pkt)
{
	pkt->encap = ENCAP_ROCEV2_IPV4;
	pkt->tclass = ip[IPV4_TOS];
	pkt->hop_limit = ip[IPV4_TTL];
	pkt->flow_label = 0;
	pkt->sgid.word[0] = 0;
	pkt->sgid.word[1] = mapped_ipv4(ip + IPV4_SRC);
	pkt->dgid.word[0] = 0;
	pkt->dgid.word[1] = mapped_ipv4(ip + IPV4_DST);
}

/* traffic class, flow label, hop limit and addresses: the same in an IPv6 header and in a GRH */
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
 * One's complement: 2^16 leaves 1, so words of any size and byte order may be added up. The sum is
 * not 0.
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

static inline uint64_t
word32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* the same without options; a swap of bytes multiplies by 2^8 and leaves 0 what it is */
static inline bool
plain_checksum_ok(const uint8_t *h)
{
	return (word32(h) + word32(h + 4) + word32(h + 8) + word32(h + 12) + word32(h + 16)) %
		0xFFFF == 0;
}

/*
 * Each of these returns the first byte of the next header, or NULL, and puts into *end where that
 * layer's bytes end.
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
	/* the checksum is not looked at (rc-transport 10): the ICRC covers more */
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

/* The opcode's row says which headers stand here, in this order (rc-transport 2). */
static inline void
parse_extension_headers(const uint8_t *p, uint8_t headers, struct packet *pkt)
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
		pkt->syndrome = p[0];
		pkt->msn = get_be24(p);
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

/* BTH through ICRC (rc-transport 5, checks 1 and 2) */
static __rte_always_inline const uint8_t *
parse_bth(const uint8_t *bth, const uint8_t *end, struct packet *pkt, enum verdict *why)
{
	uint32_t len = end - bth;
	uint32_t flags, pad, around, word;
	const struct opcode_info *op;

	if (unlikely(len < BTH_LEN + ICRC_LEN))
		FAIL(LENGTH);
	op = &opcodes[bth[0]];
	if (unlikely(op->name == NULL))
		FAIL(OPCODE);
	flags = bth[BTH_FLAGS];
	pad = flags >> 4 & 3;
	pkt->op = op;
	pkt->opcode = bth[0];
	pkt->solicited = flags & BTH_SE;
	pkt->migreq = flags & BTH_M;
	pkt->pad = pad;
	around = op->header_len + pad + (uint32_t)ICRC_LEN;
	if (unlikely(len < around))
		FAIL(LENGTH);
	if (unlikely(flags & TVER_MASK))
		FAIL(TVER);
	pkt->pkey = get_be16(bth + BTH_PKEY);
	word = get_be32(bth + BTH_DESTQP);
	pkt->fecn = bth[BTH_DESTQP] & BTH_FECN;
	pkt->becn = bth[BTH_DESTQP] & BTH_BECN;
	pkt->dest_qpn = word & 0xFFFFFF;
	word = get_be32(bth + BTH_PSN);
	pkt->ackreq = bth[BTH_PSN] & BTH_ACKREQ;
	pkt->psn = word & PSN_MASK;
	if (op->headers)
		parse_extension_headers(bth + BTH_LEN, op->headers, pkt);
	pkt->payload = bth + op->header_len;
	pkt->payload_len = len - around;
	pkt->bth = bth;
	return bth;
}

static inline void
parse_no_lrh(struct packet *pkt)
{
	pkt->has_grh = true;
	pkt->sl = 0;
	pkt->vl = 0;
	pkt->slid = 0;
	pkt->dlid = 0;
}

static inline bool
plain(const uint8_t *ip, uint32_t len)
{
	return len >= WIRE_PLAIN_LEN && (get_be64(ip) & PLAIN_MASK) == PLAIN &&
		ip[IPV4_PROTO] == IPPROTO_UDP &&
		get_be16(ip + IPV4_LEN + UDP_DPORT) == ROCEV2_PORT;
}

/*
 * The straight line of nearly all packets. False: not this way; the long way says why it is
 * refused.
 */
bool
wire_parse_plain(const uint8_t *ip, uint32_t len, struct packet *pkt)
{
	const uint8_t *udp = ip + IPV4_LEN;
	uint32_t total = get_be16(ip + IPV4_TOTAL);
	enum verdict why;

	if (unlikely(total > len || total < WIRE_PLAIN_LEN || !plain_checksum_ok(ip)))
		return false;
	if (unlikely(get_be16(udp + UDP_LENGTH) != total - IPV4_LEN))
		return false;
	if (unlikely(parse_bth(udp + UDP_LEN, ip + total, pkt, &why) == NULL))
		return false;
	pkt->l3 = ip;
	pkt->icrc_len = total - ICRC_LEN;
	pkt->udp_sport = get_be16(udp + UDP_SPORT);
	parse_no_lrh(pkt);
	parse_ipv4_fields(ip, pkt);
	pkt->ecn_ce = (pkt->tclass & ECN_MASK) == ECN_CE;
	return true;
}

static bool __rte_noinline
parse(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt, enum verdict *why)
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
		bth = encap == ENCAP_ROCEV1 ? parse_grh(l3, len, pkt, &end, why) :
					      parse_lrh(l3, len, pkt, &end, why);
	}
	if (bth == NULL || parse_bth(bth, end, pkt, why) == NULL)
		return false;
	pkt->ecn_ce = encap <= ENCAP_ROCEV2_IPV6 && (pkt->tclass & ECN_MASK) == ECN_CE;
	pkt->icrc_len = end - l3 - ICRC_LEN;
	return true;
}

bool
wire_parse(enum encap encap, const uint8_t *l3, uint32_t len, struct packet *pkt,
	enum verdict *why)
{
	if (likely(encap <= ENCAP_ROCEV2_IPV6 && plain(l3, len)) && likely(wire_parse_plain(l3, len, pkt)))
		return true;
	return parse(encap, l3, len, pkt, why);
}
