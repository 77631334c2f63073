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

static inline uint16_t
get_be16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16(v);
}

static inline uint32_t
get_be32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32(v);
}

/** Low 24 bits of the four bytes at @p p: QPN, PSN and MSN follow one other byte. */
static inline uint32_t
get_be24(const uint8_t *p)
{
	return get_be32(p) & 0xFFFFFF;
}

static inline uint64_t
get_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64(v);
}

static inline void
put_be16(uint8_t *p, uint16_t v)
{
	v = be16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
put_be32(uint8_t *p, uint32_t v)
{
	v = be32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
put_be64(uint8_t *p, uint64_t v)
{
	v = be64(v);
	memcpy(p, &v, sizeof(v));
}

/* ICRC and VCRC are the exception: least significant byte first (rc-transport 9) */

static inline uint16_t
get_le16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return rte_le_to_cpu_16(v);
}

static inline uint32_t
get_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return rte_le_to_cpu_32(v);
}

static inline void
put_le16(uint8_t *p, uint16_t v)
{
	v = rte_cpu_to_le_16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void
put_le32(uint8_t *p, uint32_t v)
{
	v = rte_cpu_to_le_32(v);
	memcpy(p, &v, sizeof(v));
}

#endif
