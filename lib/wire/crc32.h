/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_H
#define WIRE_CRC32_H

/**
 * @file
 * CRC-32 as Ethernet and the ICRC use it (reflected 0xEDB88320). Our own kernels, chosen at run
 * time, because they measured faster; the tests compare them with zlib.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Continue a CRC over more bytes, in zlib's convention: start with 0, pass the result to the next
 * call. Any alignment, any length.
 */
extern uint32_t (*crc32_update)(uint32_t crc, const void *buf, size_t len);

/** The longest head of crc32_packet(), in bytes. */
#define CRC32_HEAD_MAX 112

/**
 * Copy a payload behind a packet's head, add zeros up to a multiple of four bytes, and compute the
 * CRC of head, payload and zeros. The CRC register starts at zero, so leading zeros have no effect.
 *
 * @param head    blocks * 16 bytes, 32 at least, CRC32_HEAD_MAX at most
 * @param keep    16 bytes: mask of the first block; bits that are 0 here count as zeros
 * @param ones    blocks * 16 bytes: mask of the head; bits that are 1 here count as ones
 * @param from    payload; may be NULL when len is 0
 * @return in zlib's convention, as crc32_update()
 */
extern uint32_t (*crc32_packet)(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);

/**
 * CRC of eight bytes 0xFF followed by a packet. The packet is not changed.
 *
 * @param p       len bytes
 * @param ones    blocks * 16 - 8 bytes: mask of the packet's first bytes; 1 bits count as ones
 * @param blocks  2 at least, CRC32_HEAD_MAX / 16 at most
 * @param len     blocks * 16 - 8 at least
 * @return in zlib's convention, as crc32_update()
 */
extern uint32_t (
	*crc32_masked)(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len);

/** Name of the kernel in use: "portable", "pclmul", "vpclmul". */
const char *crc32_kernel(void);
/** Use a kernel by name (tests, benchmarks). @retval -ENOTSUP this CPU or build does not have it */
int crc32_use(const char *name);

#endif
