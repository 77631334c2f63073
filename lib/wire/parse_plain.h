/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PARSE_PLAIN_H
#define WIRE_PARSE_PLAIN_H

/**
 * @file
 * The parser of the common packet, RoCEv2 in IPv4 without options, for lib/wire and for the receive
 * path of lib/link.
 */

#include "wire/layout.h"
#include "wire/wire.h"

/* Private to the parser: end a function that returns false, 0 or NULL on failure */
#define PARSE_FAIL(verdict)                                                                        \
	do {                                                                                       \
		*why = VERDICT_##verdict;                                                          \
		return 0;                                                                          \
	} while (0)

/* Four bytes as they are */
static inline uint64_t
word32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The second half of ::ffff:a.b.c.d, as one word in network byte order. @param addr  4 bytes */
static inline uint64_t
mapped_ipv4(const uint8_t *addr)
{
#if BYTE_ORDER == LITTLE_ENDIAN
	return htobe64(UINT64_C(0xFFFF00000000)) | word32(addr) << 32;
#else
	return UINT64_C(0xFFFF00000000) | word32(addr);
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

/*
 * One's complement sum: 2^16 is 1 modulo 2^16 - 1, so words of any size may be added. They are
 * added in host byte order: swapping bytes multiplies by 2^8, so a sum of 0 stays 0. The version
 * field is not zero, so a sum of all zeros cannot pass.
 */
static __rte_always_inline bool
ipv4_checksum_ok(const uint8_t *h, uint32_t header_len)
{
	uint64_t sum = word32(h) + word32(h + 4) + word32(h + 8) + word32(h + 12) + word32(h + 16);
	uint32_t i;

	for (i = IPV4_LEN; i < header_len; i += 4)
		sum += word32(h + i);
	return sum % 0xFFFF == 0;
}

/* Bytes of a 24-bit field, as a 32-bit field in host byte order */
#if BYTE_ORDER == LITTLE_ENDIAN
#define HOST24(zero, high, middle, low) low, middle, high, zero
#else
#define HOST24(zero, high, middle, low) zero, high, middle, low
#endif
#define ALL_BITS 0xFF
#define ANY_BYTE -1 /* which byte it is does not matter: it is masked */

/*
 * Fill in the BTH fields of a packet view, except the pad count: all bytes of the view at once. May
 * read four bytes after the BTH; at least the ICRC is there.
 */
static __rte_always_inline void
parse_bth_fields(const uint8_t *bth, struct packet *pkt)
{
	typedef uint8_t bytes16 __attribute__((vector_size(16)));
	/* bytes that are copied, and the bit of each byte that becomes a bool */
	const bytes16 copied = { ALL_BITS, 0, 0, 0, 0, 0, 0, 0,
		HOST24(0, ALL_BITS, ALL_BITS, ALL_BITS), HOST24(0, ALL_BITS, ALL_BITS, ALL_BITS) };
	const bytes16 bit = { 0, 0, BTH_SE, BTH_ACKREQ, BTH_M, BTH_FECN, BTH_BECN };
	/* what (v & bit) is if that bit is set; for other bytes a value that it never has */
	const bytes16 set = bit | (bytes16)(bit == 0);
	bytes16 v;

	memcpy(&v, bth, sizeof(v));
	v = __builtin_shufflevector(v, v, 0, ANY_BYTE, BTH_FLAGS, BTH_PSN, BTH_FLAGS, BTH_RESV8A,
		BTH_RESV8A, ANY_BYTE, HOST24(ANY_BYTE, 5, 6, 7), HOST24(ANY_BYTE, 9, 10, 11));
	/* a comparison that is true gives -1: a bit that is set adds 1 to its byte, others 0 */
	v = (v & copied) - (bytes16)((v & bit) == set);
	memcpy(&pkt->opcode, &v, sizeof(v));
	pkt->pkey = get_be16(bth + BTH_PKEY);
}

#undef ALL_BITS
#undef ANY_BYTE
#undef HOST24

#define VIEW_BYTE(field, n)                                                                        \
	(offsetof(struct packet, field) == offsetof(struct packet, opcode) + (n))
_Static_assert(VIEW_BYTE(solicited, 2) && VIEW_BYTE(ackreq, 3) && VIEW_BYTE(migreq, 4) &&
		VIEW_BYTE(fecn, 5) && VIEW_BYTE(becn, 6) && VIEW_BYTE(dest_qpn, 8) &&
		VIEW_BYTE(psn, 12),
	"bytes of the view");
#undef VIEW_BYTE

static inline void
parse_aeth(const uint8_t *p, struct packet *pkt)
{
	uint32_t aeth = get_be32(p);

	pkt->syndrome = aeth >> 24;
	pkt->msn = aeth & 0xFFFFFF;
}

/* Private to lib/wire. */
void wire_parse_extension_headers(const uint8_t *p, uint8_t headers, struct packet *pkt);

/*
 * Parse BTH through ICRC, `len` bytes (rc-transport 5, checks 1 and 2). @retval false  *why says
 * which check failed
 */
static __rte_always_inline bool
parse_bth(const uint8_t *bth, uint32_t len, struct packet *pkt, enum verdict *why)
{
	const struct opcode_info *op;
	uint32_t around;
	uint8_t headers;

	if (unlikely(len < BTH_LEN + ICRC_LEN))
		PARSE_FAIL(LENGTH);
	op = &opcodes[bth[0]];
	if (unlikely(op->name == NULL))
		PARSE_FAIL(OPCODE);
	headers = op->headers;
	pkt->op = op;
	parse_bth_fields(bth, pkt);
	pkt->pad = bth[BTH_FLAGS] >> BTH_PAD_SHIFT & 3;
	around = op->header_len + pkt->pad + (uint32_t)ICRC_LEN;
	if (unlikely(len < around))
		PARSE_FAIL(LENGTH);
	if (unlikely(bth[BTH_FLAGS] & BTH_TVER_MASK))
		PARSE_FAIL(TVER);
	if (headers == HDR_AETH) /* an ACK */
		parse_aeth(bth + BTH_LEN, pkt);
	else if (headers)
		wire_parse_extension_headers(bth + BTH_LEN, headers, pkt);
	pkt->payload = bth + op->header_len;
	pkt->payload_len = len - around;
	pkt->bth = bth;
	return true;
}

static inline void
parse_no_lrh(struct packet *pkt)
{
	pkt->syndrome = 0; /* with the others in one store */
	pkt->has_grh = true;
	pkt->sl = 0;
	pkt->vl = 0;
	pkt->slid = 0;
	pkt->dlid = 0;
}

/*
 * Parse what follows the layers before a BTH, `len` bytes. @param ip  IP has ECN bits.
 * @retval false  *why says which check failed
 */
static __rte_always_inline bool
parse_transport(const uint8_t *l3, const uint8_t *bth, uint32_t len, bool ip, struct packet *pkt,
	enum verdict *why)
{
	if (unlikely(!parse_bth(bth, len, pkt, why)))
		return false;
	pkt->l3 = l3;
	pkt->icrc_len = bth - l3 + len - ICRC_LEN;
	pkt->ecn_ce = ip && (pkt->tclass & ECN_MASK) == ECN_CE;
	return true;
}

/* @param plain  the caller has checked the destination port. @return the BTH, or NULL and *why */
static __rte_always_inline const uint8_t *
parse_udp(const uint8_t *udp, uint32_t len, bool plain, struct packet *pkt, enum verdict *why)
{
	if (unlikely(len < UDP_LEN))
		PARSE_FAIL(UDP_LENGTH);
	if (!plain && unlikely(get_be16(udp + UDP_DPORT) != ROCEV2_PORT))
		PARSE_FAIL(UDP_PORT);
	if (unlikely(get_be16(udp + UDP_LENGTH) != len))
		PARSE_FAIL(UDP_LENGTH);
	/* the checksum is ignored (rc-transport 10): the ICRC covers more */
	pkt->udp_sport = get_be16(udp + UDP_SPORT);
	return udp + UDP_LEN;
}

/* True if the fixed part of an IP header is there, and of this version. @param version  4 or 6 */
static inline bool
ip_header_fits(const uint8_t *ip, uint32_t len, uint8_t version, enum verdict *why)
{
	if (unlikely(len < (version == 4 ? IPV4_LEN : IPV6_LEN)))
		PARSE_FAIL(RUNT);
	if (unlikely(ip[0] >> 4 != version))
		PARSE_FAIL(IP_HEADER);
	return true;
}

/*
 * Check an IPv4 header (rc-transport 10).
 *
 * @param len    of what the frame holds from the header on, at least IPV4_LEN
 * @param plain  a constant: true if the caller has checked that it has no options and that the
 *               packet is no fragment
 * @return       bytes of the header, or 0 and *why
 */
static __rte_always_inline uint32_t
parse_ipv4(const uint8_t *ip, uint32_t len, bool plain, enum verdict *why)
{
	uint32_t header_len = plain ? IPV4_LEN : (ip[0] & 0x0F) * 4;
	uint32_t total = get_be16(ip + IPV4_TOTAL);

	if (unlikely(header_len < IPV4_LEN || total < header_len || total > len))
		PARSE_FAIL(IP_HEADER);
	if (unlikely(!ipv4_checksum_ok(ip, header_len)))
		PARSE_FAIL(IP_CHECKSUM);
	if (!plain && unlikely(get_be16(ip + IPV4_FRAG) & IPV4_FRAGMENT_BITS))
		PARSE_FAIL(IP_FRAGMENT);
	return header_len;
}

_Static_assert(WIRE_PLAIN_LEN == IPV4_LEN + UDP_LEN + BTH_LEN + ICRC_LEN, "no extension headers");

/*
 * Parse RoCEv2 in IPv4.
 *
 * @param plain  a constant: true if the caller has made the checks that wire_parse_plain() names.
 *               The length check that this adds makes those of the single layers unnecessary.
 */
static __rte_always_inline bool
parse_rocev2_ipv4(const uint8_t *ip, uint32_t len, bool plain, struct packet *pkt,
	enum verdict *why)
{
	uint32_t header_len, total;
	const uint8_t *bth;

	if (!plain && unlikely(!ip_header_fits(ip, len, 4, why)))
		return false;
	total = get_be16(ip + IPV4_TOTAL);
	if (plain && unlikely(total < WIRE_PLAIN_LEN))
		PARSE_FAIL(LENGTH);
	header_len = parse_ipv4(ip, len, plain, why);
	if (unlikely(header_len == 0))
		return false;
	if (!plain && unlikely(ip[IPV4_PROTO] != IP_PROTO_UDP))
		PARSE_FAIL(IP_PROTOCOL);
	bth = parse_udp(ip + header_len, total - header_len, plain, pkt, why);
	if (unlikely(bth == NULL))
		return false;
	parse_no_lrh(pkt);
	parse_ipv4_fields(ip, pkt);
	return parse_transport(ip, bth, total - header_len - UDP_LEN, true, pkt, why);
}

/**
 * wire_parse() for a caller that has already checked that the packet is RoCEv2 in IPv4 without
 * options, not a fragment, to UDP port 4791, and has at least WIRE_PLAIN_LEN bytes.
 *
 * @retval false  another check failed: call wire_parse() for the verdict
 */
static __rte_always_inline bool
wire_parse_plain(const uint8_t *ip, uint32_t len, struct packet *pkt)
{
	enum verdict why;

	return parse_rocev2_ipv4(ip, len, true, pkt, &why);
}

#endif
