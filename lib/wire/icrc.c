/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ICRC and VCRC (rc-transport 9). */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/layout.h"
#include "wire/wire.h"

/* CRC of eight 0xFF bytes in zlib's convention: the register 0xDEBB20E3, complemented */
#define CRC_AFTER_ONES 0x2144DF1Cu

/* IPv4 with all options, UDP, BTH; and what is left over from whole 64-byte blocks of payload */
#define HEAD_MAX (IPV4_LEN_MAX + UDP_LEN + BTH_LEN + 64)

static void
mask_ipv4(uint8_t *h)
{
	h[IPV4_TOS] = 0xFF;
	h[IPV4_TTL] = 0xFF;
	memset(h + IPV4_CHECKSUM, 0xFF, 2);
}

/* an IPv6 header, or a GRH: the same fields at the same places */
static void
mask_ipv6(uint8_t *h)
{
	h[0] |= 0x0F; /* traffic class, flow label */
	memset(h + 1, 0xFF, 3);
	h[IPV6_HOP_LIMIT] = 0xFF;
}

uint32_t
wire_icrc(enum encap encap, const uint8_t *l3, uint32_t len)
{
	uint8_t head[HEAD_MAX];
	uint32_t crc = CRC_AFTER_ONES;
	uint32_t bth_off, split;

	if (encap == ENCAP_IB && (l3[1] & LRH_LNH_MASK) == LRH_LNH_GLOBAL) {
		/* the whole LRH counts as ones: like RoCEv1 */
		encap = ENCAP_ROCEV1;
		l3 += LRH_LEN;
		len -= LRH_LEN;
	}
	if (encap == ENCAP_IB)
		bth_off = LRH_LEN;
	else if (encap == ENCAP_ROCEV1)
		bth_off = GRH_LEN;
	else if (l3[0] >> 4 == 4)
		bth_off = (l3[0] & 0x0F) * 4 + UDP_LEN;
	else
		bth_off = IPV6_LEN + UDP_LEN;

	/* The copy takes the odd bytes too: the rest is whole blocks and needs no tail. */
	split = bth_off + BTH_LEN;
	split += (len - split) & 63;
	memcpy(head, l3, split);

	if (encap == ENCAP_IB) {
		head[0] |= 0xF0; /* VL */
		crc = 0;
	} else if (encap == ENCAP_ROCEV1) {
		mask_ipv6(head);
	} else {
		if (l3[0] >> 4 == 4)
			mask_ipv4(head);
		else
			mask_ipv6(head);
		memset(head + bth_off - UDP_LEN + UDP_CHECKSUM, 0xFF, 2);
	}
	head[bth_off + BTH_RESV8A] = 0xFF;

	crc = crc32_update(crc, head, split);
	return len > split ? crc32_update(crc, l3 + split, len - split) : crc;
}

/* VCRC: slices as in crc32.c, for the polynomial 0x100B, reflected 0xD008 */
static uint16_t vcrc_slice[4][256];

RTE_INIT(vcrc_init)
{
	uint32_t b, k, bit;
	uint16_t crc;

	for (b = 0; b < 256; b++) {
		crc = b;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xD008 : 0);
		vcrc_slice[0][b] = crc;
	}
	for (k = 1; k < 4; k++) {
		for (b = 0; b < 256; b++) {
			crc = vcrc_slice[k - 1][b];
			vcrc_slice[k][b] = crc >> 8 ^ vcrc_slice[0][crc & 0xFF];
		}
	}
}

uint16_t
wire_vcrc(const uint8_t *lrh, uint32_t len)
{
	uint16_t crc = 0xFFFF;
	uint32_t v;

	for (; len >= 4; len -= 4, lrh += 4) {
		v = get_le32(lrh) ^ crc;
		crc = vcrc_slice[3][v & 0xFF] ^ vcrc_slice[2][v >> 8 & 0xFF] ^
			vcrc_slice[1][v >> 16 & 0xFF] ^ vcrc_slice[0][v >> 24];
	}
	for (; len > 0; len--, lrh++)
		crc = crc >> 8 ^ vcrc_slice[0][(crc ^ *lrh) & 0xFF];
	return ~crc;
}

bool
wire_crc_ok(const struct packet *pkt, enum verdict *why)
{
	const uint8_t *icrc = pkt->l3 + pkt->icrc_len;

	/* the link's check comes first; bytes that fail it say nothing about the ICRC */
	if (unlikely(pkt->encap == ENCAP_IB) &&
		wire_vcrc(pkt->l3, pkt->icrc_len + ICRC_LEN) != get_le16(icrc + ICRC_LEN)) {
		*why = VERDICT_VCRC;
		return false;
	}
	if (unlikely(wire_icrc(pkt->encap, pkt->l3, pkt->icrc_len) != get_le32(icrc))) {
		*why = VERDICT_ICRC;
		return false;
	}
	return true;
}
