/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_PATH_IPV4_H
#define WIRE_PATH_IPV4_H

/* Private to lib/wire: write the headers before a BTH of RoCEv2 in IPv4. */

#include <stdint.h>
#include <string.h>

#include <rte_common.h>

#include "wire/bytes.h"
#include "wire/layout.h"
#include "wire/path.h"

/* Total length (IPv4 header through ICRC) and ID as one word, in network byte order. */
static inline uint32_t
ipv4_total_id(uint32_t l3_len, uint16_t ip_id)
{
	return be32(l3_len << 16 | ip_id);
}

/*
 * Copy the path's template before the BTH and fill in IPv4 length, ID and checksum. The caller
 * writes the UDP length. The checksum is computed over words in network byte order: a one's
 * complement sum is independent of byte order.
 */
static __rte_always_inline void
put_ipv4_header(const struct path *p, uint8_t *bth, uint32_t total_id)
{
	const uint8_t *header = p->header, *last = header + p->header_len - 16;
	uint8_t *frame = bth - p->header_len, *l3 = frame + p->l3_off;
	uint16_t fixed, checksum;
	uint32_t sum;

	memcpy(frame, header, 16); /* the header has 42 bytes, or 46 with a VLAN tag */
	memcpy(frame + 16, header + 16, 16);
	memcpy(bth - 16, last, 16);
	memcpy(l3 + IPV4_TOTAL, &total_id, sizeof(total_id));
	memcpy(&fixed, header + p->l3_off + IPV4_CHECKSUM, sizeof(fixed));
	sum = fixed + (total_id & 0xFFFF) + (total_id >> 16);
	sum += sum << 16 | sum >> 16; /* add both halves; the upper half gets the carry */
	checksum = ~(sum >> 16);
	memcpy(l3 + IPV4_CHECKSUM, &checksum, sizeof(checksum));
}

#endif
