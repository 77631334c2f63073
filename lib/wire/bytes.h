/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

/**
 * @file
 * Big-endian numbers at any address. Every access to bytes of a packet goes through these.
 */

#include <stdint.h>
#include <string.h>

#include <rte_byteorder.h>

/* To big endian and back. Unlike DPDK's inline assembly, compilers can optimise these. */
#if RTE_BYTE_ORDER == RTE_LITTLE_ENDIAN
#define be16(v) __builtin_bswap16(v)
#define be32(v) __builtin_bswap32(v)
#define be64(v) __builtin_bswap64(v)
#else
#define be16(v) (v)
#define be32(v) (v)
#define be64(v) (v)
#endif

/* Define get_NAME() and put_NAME(). @param swap  from the host's byte order, and back */
#define BYTES_NUMBER(name, type, swap)                                                             \
	static inline type get_##name(const uint8_t *p)                                            \
	{                                                                                          \
		type v;                                                                            \
                                                                                                   \
		memcpy(&v, p, sizeof(v));                                                          \
		return swap(v);                                                                    \
	}                                                                                          \
	static inline void put_##name(uint8_t *p, type v)                                          \
	{                                                                                          \
		v = swap(v);                                                                       \
		memcpy(p, &v, sizeof(v));                                                          \
	}

BYTES_NUMBER(be16, uint16_t, be16)
BYTES_NUMBER(be32, uint32_t, be32)
BYTES_NUMBER(be64, uint64_t, be64)
/* ICRC and VCRC are the exception: least significant byte first (rc-transport 9) */
BYTES_NUMBER(le16, uint16_t, rte_cpu_to_le_16)
BYTES_NUMBER(le32, uint32_t, rte_cpu_to_le_32)

/** Low 24 bits of the four bytes at @p p: QPN, PSN and MSN follow one other byte. */
static inline uint32_t
get_be24(const uint8_t *p)
{
	return get_be32(p) & 0xFFFFFF;
}

#endif
