/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The functions of the CRC kernels (crc32.h). crc32_fold.h explains the folding. */

#include "wire/bytes.h"
#include "wire/crc32_fold.h"
#include "wire/crc32_kernels.h"

/* --- CRC-32 and VCRC by table, eight bytes a step, one lookup each (slicing-by-8) --- */

/* [k][b]: the CRC register after byte b and k zero bytes */
typedef uint32_t crc_slices[8][256];

static crc_slices crc32_slices, vcrc_slices;

/* @param polynomial  bit-reflected */
static void
slices_init(crc_slices slice, uint32_t polynomial)
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

RTE_INIT(crc_table_init)
{
	slices_init(crc32_slices, 0xEDB88320u);
	slices_init(vcrc_slices, 0xD008); /* 0x100B */
}

/* @param crc  the register. @return the register after len more bytes */
static uint32_t
by_slices(const crc_slices slice, uint32_t crc, const uint8_t *p, size_t len)
{
	uint64_t v;

	for (; len >= 8; len -= 8, p += 8) {
		v = get_le64(p) ^ crc;
		crc = slice[7][v & 0xFF] ^ slice[6][v >> 8 & 0xFF] ^ slice[5][v >> 16 & 0xFF] ^
			slice[4][v >> 24 & 0xFF] ^ slice[3][v >> 32 & 0xFF] ^
			slice[2][v >> 40 & 0xFF] ^ slice[1][v >> 48 & 0xFF] ^ slice[0][v >> 56];
	}
	for (; len > 0; len--, p++)
		crc = crc >> 8 ^ slice[0][(crc ^ *p) & 0xFF];
	return crc;
}

uint32_t
crc32_portable(uint32_t crc, const void *buf, size_t len)
{
	return ~by_slices(crc32_slices, ~crc, buf, len);
}

uint32_t
vcrc_by_table(uint32_t crc, const uint8_t *buf, size_t len)
{
	return by_slices(vcrc_slices, crc, buf, len);
}

/* --- crc_kernel.packet(): a masked head and a payload that is copied behind it --- */

uint32_t
crc32_packet_portable(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	uint8_t masked[CRC32_HEAD_MAX];
	uint32_t i, head_len = blocks * BLOCK, crc;

	for (i = 0; i < head_len; i++)
		masked[i] = (i < BLOCK ? head[i] & keep[i] : head[i]) | ones[i];
	put_payload(head + head_len, from, len);
	crc = crc32_portable(UINT32_MAX, masked, head_len); /* starts with the register at 0 */
	return crc32_portable(crc, head + head_len, wire_padded(len));
}

#ifdef __x86_64__

static TARGET_PCLMUL __rte_always_inline __m128i
fold_packet_head(const uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks)
{
	__m128i x = (fold_load(head) & fold_load(keep)) | fold_load(ones);
	uint32_t i;

	for (i = BLOCK; i < blocks * BLOCK; i += BLOCK)
		x = fold_masked(x, head + i, ones + i);
	return x;
}

TARGET_PCLMUL uint32_t
crc32_packet_pclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	return copy_pclmul(fold_packet_head(head, keep, ones, blocks), head + blocks * BLOCK, from,
		len);
}

TARGET_VPCLMUL uint32_t
crc32_packet_vpclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	return copy_vpclmul(fold_packet_head(head, keep, ones, blocks), head + blocks * BLOCK, from,
		len);
}

/* --- crc_kernel.update(), and the VCRC --- */

TARGET_PCLMUL uint32_t
crc32_pclmul(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	__m128i x;

	if (len < 16)
		return crc32_portable(crc, buf, len);
	x = read_blocks(crc32_by, fold_load(p) ^ _mm_cvtsi32_si128(~crc), p, len);
	return read_tail(x, p + len, len);
}

/*
 * VCRC, P = 0x1100B. The multipliers need only be right mod P. The caller computes the CRC of the
 * last block by table, so no reduction is needed here.
 */
static const struct fold_by vcrc_by = {
	{ 0x1f6500000, 0x17e7e0000 },
	{ 0x199ce0000, 0x1d7c40000 },
	{ 0x159e60000, 0x002e40000 },
	{ 0x02aec0000, 0x163860000 },
};

TARGET_PCLMUL size_t
vcrc_fold_pclmul(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16])
{
	fold_store(block, read_blocks(vcrc_by, fold_load(buf) ^ _mm_cvtsi32_si128(crc), buf, len));
	return len - len % BLOCK;
}

bool
crc32_pclmul_supported(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

TARGET_VPCLMUL uint32_t
crc32_vpclmul(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	__m512i y;

	if (len < 256)
		return crc32_pclmul(crc, buf, len);
	y = load512(p) ^ _mm512_zextsi128_si512(_mm_cvtsi32_si128(~crc));
	y = read_lanes512(y, p, len);
	return read_rest(together(y), p + len - len % 64, len % 64);
}

bool
crc32_vpclmul_supported(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
		__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
		crc32_pclmul_supported();
}

#endif
