/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

/**
 * @file
 * Big-endian numbers at any address. Every access to bytes of a packet goes through these.
 */

#include <endian.h>
#include <stdint.h>
#include <string.h>

/*
 * Define get_NAME() and put_NAME().
 *
 * @param swap  from the host's byte order, and back: of <endian.h>, since compilers cannot optimise
 *              DPDK's inline assembly
 */
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

BYTES_NUMBER(be16, uint16_t, htobe16)
BYTES_NUMBER(be32, uint32_t, htobe32)
BYTES_NUMBER(be64, uint64_t, htobe64)
/*
 * ICRC and VCRC are the exception: least significant byte first (rc-transport 9). They are computed
 * in this order, too.
 */
BYTES_NUMBER(le16, uint16_t, htole16)
BYTES_NUMBER(le32, uint32_t, htole32)
BYTES_NUMBER(le64, uint64_t, htole64)

/** Low 24 bits of the four bytes at @p p: QPN, PSN and MSN follow one other byte. */
static inline uint32_t
get_be24(const uint8_t *p)
{
	return get_be32(p) & 0xFFFFFF;
}

#endif
