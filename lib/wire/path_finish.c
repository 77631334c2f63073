/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Complete a packet: the headers before its BTH, and the ICRC (rc-transport 1, 9). */

#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>

#include "base/common_case.h"
#include "base/copy.h"
#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/icrc_masks.h"
#include "wire/layout.h"
#include "wire/path.h"
#include "wire/path_ipv4.h"
#include "wire/wire.h"

static void __rte_noinline
put_other_header(const struct path *p, uint8_t *bth, uint32_t l3_len)
{
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;

	memcpy(frame, p->header, p->header_len);
	switch (p->av.encap) {
	case ENCAP_ROCEV2_IPV4:
		break;
	case ENCAP_ROCEV2_IPV6:
		put_be16(l3 + IPV6_PAYLEN, l3_len - IPV6_LEN);
		put_be16(l3 + IPV6_LEN + UDP_LENGTH, l3_len - IPV6_LEN);
		break;
	case ENCAP_ROCEV1:
		put_be16(l3 + IPV6_PAYLEN, l3_len - GRH_LEN);
		break;
	case ENCAP_IB:
		put_be16(l3 + LRH_PKTLEN, l3_len / 4);
		if (p->av.grh)
			put_be16(l3 + LRH_LEN + IPV6_PAYLEN, l3_len - LRH_LEN - GRH_LEN);
		break;
	}
}

static inline void
path_put_header(const struct path *p, uint8_t *bth, uint32_t l3_len, uint16_t ip_id)
{
	if (unlikely(p->av.encap != ENCAP_ROCEV2_IPV4)) {
		put_other_header(p, bth, l3_len);
		return;
	}
	put_ipv4_header(p, bth, ipv4_total_id(l3_len, ip_id));
	put_be16(bth - UDP_LEN + UDP_LENGTH, l3_len - IPV4_LEN);
}

uint32_t
path_finish(const struct path *p, uint8_t *bth, uint32_t bth_len, uint16_t ip_id)
{
	uint8_t *l3 = bth - p->header_len + p->l3_off;
	uint32_t icrc_len = p->header_len - p->l3_off + bth_len;
	uint32_t l3_len = icrc_len + ICRC_LEN;

	RTE_ASSERT(bth_len >= BTH_LEN && bth_len % 4 == 0);
	path_put_header(p, bth, l3_len, ip_id);
	put_le32(l3 + icrc_len, wire_icrc(p->av.encap, l3, icrc_len));
	if (unlikely(p->av.encap == ENCAP_IB))
		put_le16(l3 + l3_len, wire_vcrc(l3, l3_len));
	return p->header_len + bth_len + p->trailer_len;
}

/*
 * What crc32_packet() keeps of a packet's head, from 16 bytes before layer 3 on: nothing before
 * layer 3, where the mask has ones (icrc_masks.h). The head begins there so that it has a whole
 * number of blocks.
 */
#define BLOCK         16
#define IN_FRONT      16
#define ONES_IN_FRONT 4

static const uint8_t keep[] = { [IN_FRONT... IN_FRONT + BLOCK - 1] = 0xFF };

uint32_t
path_finish_copy(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	uint32_t bth_len = headers + len + wire_pad(len);
	uint32_t head = ONES_IN_FRONT + p->header_len - p->l3_off + headers;
	uint32_t blocks = (head + BLOCK - 1) / BLOCK;
	uint32_t skip = IN_FRONT - ONES_IN_FRONT - (blocks * BLOCK - head);
	enum encap encap = p->av.encap;
	uint8_t *at = bth + headers;

	RTE_ASSERT(headers >= BTH_LEN && headers <= BTH_LEN + PATH_EXT_MAX && headers % 4 == 0);
	RTE_ASSERT(from != NULL || len == 0);
	if (unlikely(encap == ENCAP_IB)) {
		if (len > 0)
			memcpy(at, from, len);
		memset(at + len, 0, wire_pad(len));
		return path_finish(p, bth, bth_len, ip_id);
	}
	path_put_header(p, bth, p->header_len - p->l3_off + bth_len + ICRC_LEN, ip_id);
	put_le32(bth + bth_len,
		crc32_packet(at - blocks * BLOCK, keep + skip, icrc_mask(encap) - IN_FRONT + skip,
			blocks, from, len));
	return p->header_len + bth_len + ICRC_LEN;
}

/* @param plain  a constant: IPv4, and a short payload, which is copied without a call */
static __rte_always_inline uint32_t
finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from, uint32_t len,
	uint16_t ip_id, bool plain)
{
	uint32_t bth_len = headers + len + wire_pad(len);
	uint32_t before = plain ? IPV4_LEN + UDP_LEN : p->header_len - p->l3_off;

	path_put_header(p, bth, before + bth_len + ICRC_LEN, ip_id);
	if (plain)
		copy_short(bth + headers, from, len);
	else
		copy_payload(bth + headers, from, len);
	put_le32(bth + headers + len, 0); /* padding */
	put_le32(bth + bth_len, 0);
	return p->header_len + bth_len + ICRC_LEN;
}

static uint32_t __rte_noinline
finish_bare_any(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	if (unlikely(p->av.encap == ENCAP_IB))
		return path_finish_copy(p, bth, headers, from, len, ip_id);
	return finish_bare(p, bth, headers, from, len, ip_id, false);
}

uint32_t
path_finish_bare(const struct path *p, uint8_t *bth, uint32_t headers, const void *from,
	uint32_t len, uint16_t ip_id)
{
	RTE_ASSERT(headers >= BTH_LEN && headers <= BTH_LEN + PATH_EXT_MAX && headers % 4 == 0);
	RTE_ASSERT(from != NULL || len == 0);
	if (unlikely(!COMMON_CASE(p->av.encap == ENCAP_ROCEV2_IPV4 && copy_is_short(len))))
		return finish_bare_any(p, bth, headers, from, len, ip_id);
	return finish_bare(p, bth, headers, from, len, ip_id, true);
}
