/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ICRC and VCRC (rc-transport 9). */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>

#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/crc32_fold.h"
#include "wire/crc32_kernels.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/wire.h"

#define HEAD_MAX (IPV4_LEN_MAX + UDP_LEN + BTH_LEN)

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

/* The mask of an IPv4 header with options, which are not variant, and what follows it. */
static void
mask_with_options(uint8_t mask[HEAD_MAX], uint32_t header_len)
{
	const uint8_t *plain = icrc_mask(ENCAP_ROCEV2_IPV4);

	memcpy(mask, plain, IPV4_LEN);
	memset(mask + IPV4_LEN, 0, header_len - IPV4_LEN);
	memcpy(mask + header_len, plain + IPV4_LEN, UDP_LEN + BTH_LEN);
}

static __rte_always_inline uint32_t
masked_crc(const uint8_t *l3, uint32_t len, enum encap encap, uint32_t head_len)
{
	/* whole blocks of 16 bytes that cover eight bytes 0xFF and all variant fields */
	uint32_t blocks = (8 + head_len - (BTH_LEN - BTH_RESV8A - 1) + 15) / 16;

	if (unlikely(len < blocks * 16 - 8))
		return crc32_of_copy(crc32_update, CRC_AFTER_ONES, l3, len, icrc_mask(encap),
			head_len);
	return crc32_masked(l3, icrc_mask(encap), blocks, len);
}

static uint32_t
icrc_with_options(const uint8_t *l3, uint32_t len)
{
	uint32_t header_len = (l3[0] & 0x0F) * 4;
	uint8_t mask[HEAD_MAX];

	mask_with_options(mask, header_len);
	return crc32_of_copy(crc32_update, CRC_AFTER_ONES, l3, len, mask,
		header_len + UDP_LEN + BTH_LEN);
}

uint32_t
wire_icrc(enum encap encap, const uint8_t *l3, uint32_t len)
{
	RTE_ASSERT(encap <= ENCAP_IB);
	if (likely(encap <= ENCAP_ROCEV2_IPV6)) {
		if (likely(l3[0] == IPV4_PLAIN))
			return masked_crc(l3, len, ENCAP_ROCEV2_IPV4, IPV4_LEN + UDP_LEN + BTH_LEN);
		if (l3[0] >> 4 == 6)
			return masked_crc(l3, len, ENCAP_ROCEV2_IPV6, IPV6_LEN + UDP_LEN + BTH_LEN);
		return icrc_with_options(l3, len);
	}
	if (encap == ENCAP_IB) {
		if ((l3[1] & LRH_LNH_MASK) == LRH_LNH_LOCAL)
			return crc32_of_copy(crc32_update, 0, l3, len, icrc_mask(ENCAP_IB),
				LRH_LEN + BTH_LEN);
		/* with a GRH the whole LRH counts as ones; the rest is like RoCEv1 */
		l3 += LRH_LEN;
		len -= LRH_LEN;
	}
	return masked_crc(l3, len, ENCAP_ROCEV1, GRH_LEN + BTH_LEN);
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

/* Checked before the ICRC: damaged on the link, a packet must not count as an ICRC error. */
static bool __rte_noinline
vcrc_ok(const struct packet *pkt)
{
	uint32_t len = pkt->icrc_len + ICRC_LEN;

	return wire_vcrc(pkt->l3, len) == get_le16(pkt->l3 + len);
}

bool
wire_other_crc_ok(const struct packet *pkt, enum verdict *why)
{
	const uint8_t *l3 = pkt->l3;

	if (pkt->encap == ENCAP_IB && !vcrc_ok(pkt)) {
		*why = VERDICT_VCRC;
		return false;
	}
	return wire_icrc(pkt->encap, l3, pkt->icrc_len) == get_le32(l3 + pkt->icrc_len);
}

/* --- RoCEv2 in IPv4 without options, the common case: variant fields at constant offsets --- */

#define HEAD_LEN   (IPV4_LEN + UDP_LEN + BTH_LEN)
#define BLOCKS     3 /* of the head and the eight bytes before it, IPV4_FRONT */
#define IPV4_FRONT 8

bool
icrc_ipv4_ok_portable(const uint8_t *ip, uint32_t len)
{
	return crc32_masked_portable(ip, icrc_mask(ENCAP_ROCEV2_IPV4), BLOCKS, len) ==
		get_le32(ip + len);
}

#ifdef WIRE_CRC32_PCLMUL

#define MASK (icrc_masks[ENCAP_ROCEV2_IPV4] + ICRC_FRONT - IPV4_FRONT)

static TARGET_PCLMUL __rte_always_inline __m128i
load_ipv4_masked(const uint8_t *ip, uint32_t at)
{
	return _mm_or_si128(fold_load(ip + at - IPV4_FRONT), fold_load(MASK + at));
}

static TARGET_PCLMUL __rte_always_inline __m128i
fold_ipv4_head(const uint8_t *ip)
{
	__m128i x = _mm_loadl_epi64((const __m128i *)(const void *)ip);

	x = _mm_or_si128(_mm_slli_si128(x, IPV4_FRONT), fold_load(MASK));
	x = fold(x, K(FOLD_128), load_ipv4_masked(ip, BLOCK));
	return fold(x, K(FOLD_128), load_ipv4_masked(ip, 2 * BLOCK));
}

TARGET_PCLMUL bool
icrc_ipv4_ok_pclmul(const uint8_t *ip, uint32_t len)
{
	const uint8_t *p = ip + HEAD_LEN, *icrc = ip + len;
	__m128i x = fold_ipv4_head(ip);

	len -= HEAD_LEN;
	if (len >= 128)
		return finish_lanes(fold(x, K(FOLD_128), fold_load(p)), p, len) == get_le32(icrc);
	if (len >= 64) {
		x = fold_64(x, (uint8_t *)(uintptr_t)p, p, false);
		p += 64, len -= 64;
	}
	return fold_finish(x, p, len) == get_le32(icrc);
}

#endif

#ifdef WIRE_CRC32_VPCLMUL

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
masked_late(__m512i y, uint32_t at)
{
	return _mm512_ternarylogic_epi64(load512(late_register + at), y,
		load512(icrc_mask(ENCAP_ROCEV2_IPV4) - STEP + at), 0x1E); /* a ^ (b | c) */
}

TARGET_VPCLMUL bool
icrc_ipv4_ok_vpclmul(const uint8_t *ip, uint32_t len)
{
	uint32_t first = (len - 1) % STEP + 1; /* bytes of the first step */
	const uint8_t *p = ip + first, *icrc = ip + len;
	__m512i y;

	/* the mask keeps the load from reading before the packet */
	y = masked_late(_mm512_maskz_loadu_epi8(~UINT64_C(0) << (STEP - first), p - STEP), first);
	len -= first;
	if (len > 0) {
		y = fold512(y, K512(FOLD_512), masked_late(load512(p), STEP + first));
		p += STEP, len -= STEP;
	}
	if (len >= 4 * STEP) {
		y = read_lanes512(y, p - STEP, len + STEP);
		len = 0;
	}
	for (; len > 0; p += STEP, len -= STEP)
		y = fold512(y, K512(FOLD_512), load512(p));
	return ~reduce(together(y)) == get_le32(icrc);
}

#endif
