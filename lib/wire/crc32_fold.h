/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_FOLD_H
#define WIRE_CRC32_FOLD_H

/*
 * Private to the CRC kernels. CRC-32 by carry-less multiplication: fold 64 bytes (PCLMULQDQ) or
 * 256 bytes (VPCLMULQDQ) a step, then reduce. The method is that of Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ".
 *
 * In the bit-reflected domain the first eight bytes of a block are the low quadword and the higher
 * powers of x. To move a block D bits ahead multiply its low half by x^(D+32) mod P and its high
 * half by x^(D-32) mod P, both reflected in 33 bits: that is FOLD_<D>.
 */

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <rte_common.h>

#include "wire/payload.h"

#define BLOCK 16

#ifdef __x86_64__

/*
 * Debian's DPDK sets -march=corei7: functions that use newer instructions say so, and crc32.c
 * chooses one at run time.
 */
#define TARGET_PCLMUL  __attribute__((target("sse4.1,pclmul")))
#define TARGET_VPCLMUL __attribute__((target("sse4.1,pclmul,avx512f,avx512vl,avx512bw,vpclmulqdq")))

/* low, high */
#define FOLD_128  0x1751997d0, 0x0ccaa009e
#define FOLD_256  0x0f1da05aa, 0x15a546366
#define FOLD_384  0x03db1ecdc, 0x174359406
#define FOLD_512  0x154442bd4, 0x1c6e41596
#define FOLD_1024 0x1e88ef372, 0x14a7fe880
#define FOLD_1536 0x1821d8bc0, 0x12e958ac4
#define FOLD_2048 0x11542778a, 0x1322d1430

#define FOLD_96 0x0ccaa009e /* x^96 */
#define POLY    0x1db710641 /* P */
#define INVERSE ((int64_t)0xb4e5b025f7011641) /* POLY times this, bit by bit, is 1 mod x^64 */

/* K(FOLD_128): the multiplier of one block */
#define K(...) ((__m128i){ __VA_ARGS__ })

static TARGET_PCLMUL inline __m128i
fold_load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static TARGET_PCLMUL inline void
fold_store(uint8_t *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)(void *)p, v);
}

/* Move x ahead by the distance of multiplier k. */
static TARGET_PCLMUL inline __m128i
move(__m128i x, __m128i k)
{
	return _mm_clmulepi64_si128(x, k, 0x00) ^ _mm_clmulepi64_si128(x, k, 0x11);
}

static TARGET_PCLMUL inline __m128i
fold(__m128i x, __m128i k, __m128i next)
{
	return move(x, k) ^ next;
}

/* Fold a block of which the bits that are 1 at `ones` count as ones. */
static TARGET_PCLMUL __rte_always_inline __m128i
fold_masked(__m128i x, const uint8_t *p, const uint8_t *ones)
{
	return fold(x, K(FOLD_128), fold_load(p) | fold_load(ones));
}

/*
 * Fold the last 1 to 15 bytes. Of the 16 + len bytes "x, tail" the first len, with leading zeros,
 * form a block that is folded into the other sixteen. At least 16 bytes before end are readable.
 */
static TARGET_PCLMUL inline __m128i
fold_tail(__m128i x, const uint8_t *end, size_t len)
{
	static const uint8_t shift[48] = { [0 ... 15] = 0x80,
		0,
		1,
		2,
		3,
		4,
		5,
		6,
		7,
		8,
		9,
		10,
		11,
		12,
		13,
		14,
		15,
		[32 ... 47] = 0x80 };
	__m128i first = _mm_shuffle_epi8(x, fold_load(shift + len));
	__m128i select = fold_load(shift + 16 + len);
	__m128i rest = _mm_blendv_epi8(_mm_shuffle_epi8(x, select), fold_load(end - 16), select);

	return fold(first, K(FOLD_128), rest);
}

/*
 * Reduce 128 bits to the CRC: fold to 96 bits, then subtract the multiple of P that has the same
 * first 64 bits; the last 32 bits remain (Barrett).
 */
static TARGET_PCLMUL inline uint32_t
reduce(__m128i x)
{
	const __m128i k = { POLY, INVERSE };
	__m128i multiple;

	x = _mm_srli_si128(x, 8) ^ _mm_clmulepi64_si128(x, K(FOLD_96), 0x00);
	multiple = _mm_clmulepi64_si128(_mm_clmulepi64_si128(x, k, 0x10), k, 0x00);
	return _mm_extract_epi32(x ^ multiple, 2);
}

/* Load a block. @param copy  a constant: also store it at `to`, which is not used otherwise */
static TARGET_PCLMUL __rte_always_inline __m128i
fold_take(uint8_t *to, const uint8_t *from, bool copy)
{
	__m128i v = fold_load(from);

	if (copy)
		fold_store(to, v);
	return v;
}

/* The multipliers that move a block ahead by one to four blocks. */
struct fold_by {
	__m128i one, two, three, four;
};

static const struct fold_by crc32_by = { { FOLD_128 }, { FOLD_256 }, { FOLD_384 }, { FOLD_512 } };

/*
 * Fold in four lanes, for 64 bytes or more.
 *
 * @param by    of the polynomial, constants
 * @param x     CRC state of all bytes through the first block at `from`
 * @param copy  as in fold_take()
 * @return      CRC state of all but the last len % 64 bytes
 */
static TARGET_PCLMUL __rte_always_inline __m128i
fold_lanes(struct fold_by by, __m128i x, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	__m128i x1 = fold_take(to + 16, from + 16, copy), x2 = fold_take(to + 32, from + 32, copy);
	__m128i x3 = fold_take(to + 48, from + 48, copy);

	for (to += 64, from += 64, len -= 64; len >= 64; to += 64, from += 64, len -= 64) {
		x = fold(x, by.four, fold_take(to, from, copy));
		x1 = fold(x1, by.four, fold_take(to + 16, from + 16, copy));
		x2 = fold(x2, by.four, fold_take(to + 32, from + 32, copy));
		x3 = fold(x3, by.four, fold_take(to + 48, from + 48, copy));
	}
	return fold(x, by.three, fold(x1, by.two, fold(x2, by.one, x3)));
}

/*
 * Fold whole blocks that stay where they are, from 64 bytes on in four lanes.
 *
 * @param x  CRC state of all bytes through the first block at p, which is there
 * @return   CRC state of all but the last len % 16 bytes
 */
static TARGET_PCLMUL __rte_always_inline __m128i
read_blocks(struct fold_by by, __m128i x, const uint8_t *p, size_t len)
{
	size_t done = BLOCK;

	if (len >= 64) {
		x = fold_lanes(by, x, (uint8_t *)(uintptr_t)p, p, len, false);
		done = len - len % 64;
	}
	for (p += done, len -= done; len >= BLOCK; p += BLOCK, len -= BLOCK)
		x = fold(x, by.one, fold_load(p));
	return x;
}

/* @param x  CRC state of all but the last len % 16 bytes before end. @return CRC of them all */
static TARGET_PCLMUL __rte_always_inline uint32_t
read_tail(__m128i x, const uint8_t *end, size_t len)
{
	return ~reduce(len % BLOCK == 0 ? x : fold_tail(x, end, len % BLOCK));
}

/* @param x  CRC state of all bytes before p. @param len  any length. @return CRC of them all */
static TARGET_PCLMUL __rte_always_inline uint32_t
read_rest(__m128i x, const uint8_t *p, size_t len)
{
	if (len >= BLOCK)
		x = read_blocks(crc32_by, fold(x, crc32_by.one, fold_load(p)), p, len);
	return read_tail(x, p + len, len);
}

/* Fewer than 16 bytes and the padding: copy them, then fold the copy. */
static TARGET_PCLMUL __rte_noinline __rte_unused uint32_t
copy_odd(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	put_payload(to, from, len);
	return read_rest(x, to, wire_padded(len));
}

/* Copy what 64 bytes at a time have left. */
static TARGET_PCLMUL __rte_always_inline uint32_t
copy_rest(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	for (; len >= BLOCK; len -= BLOCK, to += BLOCK, from += BLOCK)
		x = fold(x, crc32_by.one, fold_take(to, from, true));
	return len == 0 ? ~reduce(x) : copy_odd(x, to, from, len);
}

/*
 * Copy a payload, reading its bytes once, and add padding. Without a payload `from` may be NULL.
 *
 * @param x  CRC state of the head. @return CRC of the packet
 */
static TARGET_PCLMUL __rte_always_inline uint32_t
copy_pclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t done = len - len % 64;

	if (done > 0) {
		x = fold_lanes(crc32_by, fold(x, crc32_by.one, fold_take(to, from, true)), to, from,
			len, true);
		to += done, from += done;
	}
	return copy_rest(x, to, from, len % 64);
}

static TARGET_VPCLMUL inline __m512i
load512(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}

static TARGET_VPCLMUL inline __m512i
fold512(__m512i x, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
		_mm512_clmulepi64_epi128(x, k, 0x11), next, 0x96); /* a ^ b ^ c */
}

#define K512(...) _mm512_broadcast_i32x4(K(__VA_ARGS__))

/* Fold x, the block before y, into y's first block. */
static TARGET_VPCLMUL inline __m512i
onto(__m128i x, __m512i y)
{
	return y ^ _mm512_zextsi128_si512(move(x, K(FOLD_128)));
}

/* As fold_take(), 64 bytes. */
static TARGET_VPCLMUL __rte_always_inline __m512i
fold_take512(uint8_t *to, const uint8_t *from, bool copy)
{
	__m512i v = load512(from);

	if (copy)
		_mm512_storeu_si512(to, v);
	return v;
}

/*
 * Fold vectors, from 256 bytes on four in parallel, for 64 bytes or more.
 * @param y  CRC state of all bytes through the first 64 at `from`. @param copy  as in fold_take()
 * @return CRC state of all but the last len % 64 bytes
 */
static TARGET_VPCLMUL __rte_always_inline __m512i
fold_lanes512(__m512i y, uint8_t *to, const uint8_t *from, size_t len, bool copy)
{
	__m512i y1, y2, y3;

	if (len >= 256) {
		y1 = fold_take512(to + 64, from + 64, copy);
		y2 = fold_take512(to + 128, from + 128, copy);
		y3 = fold_take512(to + 192, from + 192, copy);
		for (to += 256, from += 256, len -= 256; len >= 256;
			to += 256, from += 256, len -= 256) {
			y = fold512(y, K512(FOLD_2048), fold_take512(to, from, copy));
			y1 = fold512(y1, K512(FOLD_2048), fold_take512(to + 64, from + 64, copy));
			y2 = fold512(y2, K512(FOLD_2048), fold_take512(to + 128, from + 128, copy));
			y3 = fold512(y3, K512(FOLD_2048), fold_take512(to + 192, from + 192, copy));
		}
		y = fold512(y, K512(FOLD_1536),
			fold512(y1, K512(FOLD_1024), fold512(y2, K512(FOLD_512), y3)));
	} else {
		to += 64, from += 64, len -= 64;
	}
	for (; len >= 64; to += 64, from += 64, len -= 64)
		y = fold512(y, K512(FOLD_512), fold_take512(to, from, copy));
	return y;
}

/* fold_lanes512() of bytes that stay where they are. */
static TARGET_VPCLMUL inline __m512i
read_lanes512(__m512i y, const uint8_t *p, size_t len)
{
	return fold_lanes512(y, (uint8_t *)(uintptr_t)p, p, len, false);
}

/* Fold the four blocks of a vector, the first in the lowest bits, into the last one. */
static TARGET_VPCLMUL inline __m128i
together(__m512i y)
{
	const __m512i k = { FOLD_384, FOLD_256, FOLD_128, 0, 0 };
	__m256i h;

	y = fold512(y, k, _mm512_maskz_mov_epi64(0xC0, y));
	h = _mm512_extracti64x4_epi64(y, 1) ^ _mm512_castsi512_si256(y);
	return _mm256_extracti128_si256(h, 1) ^ _mm256_castsi256_si128(h);
}

static TARGET_VPCLMUL __rte_always_inline uint32_t
copy_vpclmul(__m128i x, uint8_t *to, const uint8_t *from, uint32_t len)
{
	uint32_t done = len - len % 64;

	if (done > 0) {
		x = together(
			fold_lanes512(onto(x, fold_take512(to, from, true)), to, from, len, true));
		to += done, from += done;
	}
	return copy_rest(x, to, from, len % 64);
}

#endif

#endif
