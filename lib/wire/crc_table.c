/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* CRCs by table, for CRC-32 and VCRC; and of a packet whose head is masked in a buffer. */

#include <string.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#include "wire/crc32_kernels.h"

void
crc_slices_init(crc_slice slice[8], uint32_t polynomial)
{
	uint32_t b, k, bit, crc;

	for (b = 0; b < 256; b++) {
		crc = b;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		slice[0][b] = crc;
	}
	for (k = 1; k < 8; k++)
		for (b = 0; b < 256; b++)
			slice[k][b] = slice[k - 1][b] >> 8 ^ slice[0][slice[k - 1][b] & 0xFF];
}

uint32_t
crc_by_slices(const crc_slice slice[8], uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t v;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&v, p, sizeof(v));
		v = rte_le_to_cpu_64(v) ^ crc;
		crc = slice[7][v & 0xFF] ^ slice[6][v >> 8 & 0xFF] ^ slice[5][v >> 16 & 0xFF] ^
			slice[4][v >> 24 & 0xFF] ^ slice[3][v >> 32 & 0xFF] ^
			slice[2][v >> 40 & 0xFF] ^ slice[1][v >> 48 & 0xFF] ^ slice[0][v >> 56];
	}
	for (; len > 0; len--, p++)
		crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xFF];
	return crc;
}

/* For the portable kernel, short packets, and those with an LRH or IP options. */
uint32_t __rte_noinline
crc32_of_copy(crc32_update_fn *update, uint32_t crc, const uint8_t *p, uint32_t len,
	const uint8_t *ones, uint32_t head_len)
{
	uint8_t head[CRC32_HEAD_MAX];
	uint32_t i;

	for (i = 0; i < head_len; i++)
		head[i] = p[i] | ones[i];
	crc = update(crc, head, head_len);
	return update(crc, p + head_len, len - head_len);
}
