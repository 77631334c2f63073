/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Check the ICRC of RoCEv2 in IPv4 without options, the common case: its variant fields are at
 * offsets known at compile time (rc-transport 9).
 */

#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/crc32_kernels.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/wire.h"

#define HEAD_LEN (IPV4_LEN + UDP_LEN + BTH_LEN)
#define BLOCK    16
#define BLOCKS   3 /* of the head and the eight bytes before it, FRONT */
#define FRONT    8

bool
icrc_ipv4_ok_portable(const uint8_t *ip, uint32_t len)
{
	return crc32_masked_portable(ip, icrc_mask(ENCAP_ROCEV2_IPV4), BLOCKS, len) ==
		get_le32(ip + len);
}

#ifdef WIRE_CRC32_PCLMUL

#include "wire/crc32_fold.h"

#define MASK (icrc_masks[ENCAP_ROCEV2_IPV4] + ICRC_FRONT - FRONT)

static TARGET_PCLMUL __rte_always_inline __m128i
load_ipv4_masked(const uint8_t *ip, uint32_t at)
{
	return _mm_or_si128(fold_load(ip + at - FRONT), fold_load(MASK + at));
}

static TARGET_PCLMUL __rte_always_inline __m128i
fold_ipv4_head(const uint8_t *ip)
{
	__m128i x = _mm_loadl_epi64((const __m128i *)(const void *)ip);

	x = _mm_or_si128(_mm_slli_si128(x, FRONT), fold_load(MASK));
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
