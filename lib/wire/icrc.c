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
		if (likely(l3[0] == 0x45))
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
 * VCRC: the polynomial 0x100B, reflected 0xD008, by table. If a kernel exists, it first folds
 * packets of VCRC_FOLD_MIN bytes or more into one block.
 */
#define VCRC_FOLD_MIN 64

static crc_slice vcrc_slice[8];

RTE_INIT(vcrc_init)
{
	crc_slices_init(vcrc_slice, 0xD008);
}

uint16_t
wire_vcrc(const uint8_t *lrh, uint32_t len)
{
	uint32_t crc = 0xFFFF;
	uint8_t block[16];
	uint32_t n;

	if (len >= VCRC_FOLD_MIN && crc_kernel->vcrc_fold != NULL) {
		n = (uint32_t)crc_kernel->vcrc_fold(crc, lrh, len, block);
		crc = crc_by_slices(vcrc_slice, 0, block, sizeof(block));
		lrh += n;
		len -= n;
	}
	return ~crc_by_slices(vcrc_slice, crc, lrh, len);
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
