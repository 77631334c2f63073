/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* crc32_update() and the VCRC by carry-less multiplication (crc32_fold.h). */

#include "wire/crc32_fold.h"
#include "wire/crc32_kernels.h"

TARGET_PCLMUL uint32_t
crc32_pclmul(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	__m128i x;

	if (len < 16)
		return crc32_portable(crc, buf, len);
	x = _mm_xor_si128(fold_load(p), _mm_cvtsi32_si128(~crc));
	return len < 64 ? fold_finish(x, p + 16, len - 16) : finish_lanes(x, p, len);
}

/*
 * VCRC, P = 0x1100B. The multipliers need only be right mod P. The caller computes the CRC of the
 * last block by table, so no reduction is needed here.
 */
#define VCRC_FOLD_128 UINT64_C(0x1f6500000), UINT64_C(0x17e7e0000)
#define VCRC_FOLD_256 UINT64_C(0x199ce0000), UINT64_C(0x1d7c40000)
#define VCRC_FOLD_384 UINT64_C(0x159e60000), UINT64_C(0x002e40000)
#define VCRC_FOLD_512 UINT64_C(0x02aec0000), UINT64_C(0x163860000)

TARGET_PCLMUL size_t
vcrc_fold_pclmul(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16])
{
	const struct fold_by by = { K(VCRC_FOLD_128), K(VCRC_FOLD_256), K(VCRC_FOLD_384),
		K(VCRC_FOLD_512) };
	__m128i x = _mm_xor_si128(fold_load(buf), _mm_cvtsi32_si128(crc));
	const uint8_t *p = buf + len - len % 64;

	x = fold_lanes_by(by, x, (uint8_t *)(uintptr_t)buf, buf, len, false);
	len %= 64;
	for (; len >= 16; len -= 16, p += 16)
		x = fold(x, by.one, fold_load(p));
	_mm_storeu_si128((__m128i *)(void *)block, x);
	return p - buf;
}

bool
crc32_pclmul_supported(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
}

#ifdef WIRE_CRC32_VPCLMUL

TARGET_VPCLMUL uint32_t
crc32_vpclmul(uint32_t crc, const void *buf, size_t len)
{
	const uint8_t *p = buf;
	__m512i y;

	if (len < 256)
		return crc32_pclmul(crc, buf, len);
	y = _mm512_xor_si512(load512(p), _mm512_zextsi128_si512(_mm_cvtsi32_si128(~crc)));
	y = read_lanes512(y, p, len);
	return fold_finish(together(y), p + len - len % 64, len % 64);
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
