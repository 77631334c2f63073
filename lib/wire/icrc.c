/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ICRC and VCRC (rc-transport 9). */

#include "wire/crc32_fold.h"
#include "wire/crc32_kernels.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/wire.h"

/* all variant fields are within so many bytes */
#define HEAD_MAX (IPV6_LEN + UDP_LEN + BTH_LEN)

#define FRONT [ICRC_FRONT - 4] = 0xFF, 0xFF, 0xFF, 0xFF
/* clang-format off */
#define IPV4_ONES [ICRC_FRONT + IPV4_TOS] = 0xFF, [ICRC_FRONT + IPV4_TTL] = 0xFF, \
	[ICRC_FRONT + IPV4_CHECKSUM] = 0xFF, 0xFF
/* clang-format on */
/* an IPv6 header or a GRH */
#define IPV6_ONES    [ICRC_FRONT] = 0x0F, 0xFF, 0xFF, 0xFF, [ICRC_FRONT + IPV6_HOP_LIMIT] = 0xFF
#define UDP_ONES(at) [ICRC_FRONT + (at) + UDP_CHECKSUM] = 0xFF, 0xFF
#define BTH_ONES(at) [ICRC_FRONT + (at) + BTH_RESV8A] = 0xFF

const uint8_t icrc_masks[][ICRC_FRONT + ICRC_REST] = {
	[ENCAP_ROCEV2_IPV4] = { FRONT, IPV4_ONES, UDP_ONES(IPV4_LEN),
		BTH_ONES(IPV4_LEN + UDP_LEN) },
	[ENCAP_ROCEV2_IPV6] = { FRONT, IPV6_ONES, UDP_ONES(IPV6_LEN),
		BTH_ONES(IPV6_LEN + UDP_LEN) },
	[ENCAP_ROCEV1] = { FRONT, IPV6_ONES, BTH_ONES(GRH_LEN) },
	[ENCAP_IB] = { FRONT, [ICRC_FRONT] = 0xF0 /* VL */, BTH_ONES(LRH_LEN) },
};

/* CRC of eight 0xFF bytes in zlib's convention: the register 0xDEBB20E3, complemented */
#define CRC_AFTER_ONES 0x2144DF1Cu

/* The CRC of a packet whose first head_len bytes are masked, of a copy of these. */
static uint32_t __rte_noinline
crc32_of_copy(crc32_update_fn *update, uint32_t crc, const uint8_t *p, uint32_t len,
	const uint8_t *ones, uint32_t head_len)
{
	uint8_t head[HEAD_MAX];
	uint32_t i;

	for (i = 0; i < head_len; i++)
		head[i] = p[i] | ones[i];
	crc = update(crc, head, head_len);
	return update(crc, p + head_len, len - head_len);
}

/* Options are not variant. */
static uint32_t
icrc_with_options(const uint8_t *l3, uint32_t len)
{
	const uint8_t *mask = icrc_mask(ENCAP_ROCEV2_IPV4);
	uint32_t header_len = (l3[0] & 0x0F) * 4, crc;

	crc = crc32_of_copy(crc_kernel->update, CRC_AFTER_ONES, l3, header_len, mask, IPV4_LEN);
	return crc32_of_copy(crc_kernel->update, crc, l3 + header_len, len - header_len,
		mask + IPV4_LEN, UDP_LEN + BTH_LEN);
}

uint32_t
wire_icrc(enum encap encap, const uint8_t *l3, uint32_t len)
{
	RTE_ASSERT(encap <= ENCAP_IB);
	if (likely(encap <= ENCAP_ROCEV2_IPV6)) {
		if (likely(l3[0] == IPV4_PLAIN))
			return crc_kernel->icrc(ENCAP_ROCEV2_IPV4, l3, len);
		if (l3[0] >> 4 == 6)
			return crc_kernel->icrc(ENCAP_ROCEV2_IPV6, l3, len);
		return icrc_with_options(l3, len);
	}
	if (encap == ENCAP_IB) {
		if ((l3[1] & LRH_LNH_MASK) == LRH_LNH_LOCAL)
			return crc32_of_copy(crc_kernel->update, 0, l3, len, icrc_mask(ENCAP_IB),
				LRH_LEN + BTH_LEN);
		/* with a GRH the whole LRH counts as ones; the rest is like RoCEv1 */
		l3 += LRH_LEN;
		len -= LRH_LEN;
	}
	return crc_kernel->icrc(ENCAP_ROCEV1, l3, len);
}

/*
 * VCRC, by table. If a kernel exists, it first folds packets of VCRC_FOLD_MIN bytes or more into
 * one block.
 */
#define VCRC_FOLD_MIN 64

uint16_t
wire_vcrc(const uint8_t *lrh, uint32_t len)
{
	uint32_t crc = 0xFFFF;
	uint8_t block[16];
	uint32_t n;

	if (len >= VCRC_FOLD_MIN && crc_kernel->vcrc_fold != NULL) {
		n = (uint32_t)crc_kernel->vcrc_fold(crc, lrh, len, block);
		crc = vcrc_by_table(0, block, sizeof(block));
		lrh += n;
		len -= n;
	}
	return ~vcrc_by_table(crc, lrh, len);
}

bool
wire_vcrc_ok(const struct packet *pkt)
{
	uint32_t len = pkt->icrc_len + ICRC_LEN;

	return wire_vcrc(pkt->l3, len) == get_le16(pkt->l3 + len);
}

enum verdict
wire_any_crc(const struct packet *pkt)
{
	return wire_check_crc(pkt, false);
}

/* --- the kernels' ICRC: variant fields at constant offsets --- */

/*
 * The head, which has all variant fields, is with the eight bytes of ones before it three blocks of
 * 16 bytes for IPv4, and four for IPv6 and a GRH.
 */
#define ONES      8
#define HEAD_IPV6 (4 * BLOCK - ONES)

uint32_t
icrc_portable(unsigned int row, const uint8_t *l3, uint32_t len)
{
	return crc32_of_copy(crc32_portable, CRC_AFTER_ONES, l3, len, icrc_mask(row),
		RTE_MIN(len, (uint32_t)HEAD_IPV6));
}

#ifdef __x86_64__

/* Compiled twice: `row` is the constant ENCAP_ROCEV2_IPV4, or any other. */
static TARGET_PCLMUL __rte_always_inline uint32_t
icrc_fold(unsigned int row, const uint8_t *l3, uint32_t len)
{
	const uint8_t *ones = icrc_mask(row) - ONES, *p = l3 + BLOCK - ONES;
	__m128i x = _mm_slli_si128(_mm_loadu_si64(l3), ONES) | fold_load(ones);

	x = fold_masked(x, p, ones + BLOCK);
	x = fold_masked(x, p + BLOCK, ones + 2 * BLOCK);
	p += 2 * BLOCK;
	if (row != ENCAP_ROCEV2_IPV4) {
		x = fold_masked(x, p, ones + 3 * BLOCK);
		p += BLOCK;
	}
	return read_rest(x, p, len - (p - l3));
}

TARGET_PCLMUL uint32_t
icrc_pclmul(unsigned int row, const uint8_t *l3, uint32_t len)
{
	if (likely(row == ENCAP_ROCEV2_IPV4))
		return icrc_fold(ENCAP_ROCEV2_IPV4, l3, len);
	if (unlikely(len < HEAD_IPV6))
		return icrc_portable(row, l3, len);
	return icrc_fold(row, l3, len);
}

#define STEP 64

/*
 * Steps of 64 bytes, aligned to the end of the packet, so that there is no tail; the first step is
 * filled with leading zeros, which have no effect on a register of zero. The register after the
 * eight bytes of ones (0xDEBB20E3, rc-transport 9) is XORed into the packet's first four bytes
 * instead, and the mask's ones before the packet are cancelled.
 */
static const uint8_t
	late_register[3 * STEP] = { [STEP - 4] = 0xFF, 0xFF, 0xFF, 0xFF, 0xE3, 0x20, 0xBB, 0xDE };
_Static_assert(ICRC_FRONT >= STEP && ICRC_REST >= 2 * STEP, "late_register's bytes have masks");

/* @param at  bytes of the packet through this step */
static TARGET_VPCLMUL __rte_always_inline __m512i
masked_late(__m512i y, const uint8_t *mask, uint32_t at)
{
	return _mm512_ternarylogic_epi64(load512(late_register + at), y, load512(mask - STEP + at),
		0x1E); /* a ^ (b | c) */
}

TARGET_VPCLMUL uint32_t
icrc_vpclmul(unsigned int row, const uint8_t *l3, uint32_t len)
{
	uint32_t first = (len - 1) % STEP + 1; /* bytes of the first step */
	const uint8_t *p = l3 + first, *mask = icrc_mask(row);
	__m512i y;

	/* the mask keeps the load from reading before the packet */
	y = masked_late(_mm512_maskz_loadu_epi8(~UINT64_C(0) << (STEP - first), p - STEP), mask,
		first);
	len -= first;
	if (len > 0) {
		y = fold512(y, K512(FOLD_512), masked_late(load512(p), mask, STEP + first));
		p += STEP, len -= STEP;
	}
	return ~reduce(together(read_lanes512(y, p - STEP, len + STEP)));
}

#endif
