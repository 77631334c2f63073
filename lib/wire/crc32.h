/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_H
#define WIRE_CRC32_H

/**
 * @file
 * CRC-32 of Ethernet and the ICRC (reflected 0xEDB88320). Own kernels, chosen at run time,
 * because measurement says so (spec/limits.md); checked against zlib in the tests.
 */

#include <stddef.h>
#include <stdint.h>

/**
 * Continue a CRC over more bytes, zlib's convention: start with 0, feed the result back in.
 * Any alignment, any length.
 */
extern uint32_t (*crc32_update)(uint32_t crc, const void *buf, size_t len);

/** The longest head of crc32_packet(), in bytes. */
#define CRC32_HEAD_MAX 112

/**
 * CRC of a packet while its payload is put into it, behind the head and with zeros up to a
 * multiple of four bytes. The register starts at zero, so that zeros in front do not count.
 *
 * @param head    blocks * 16 bytes, 32 at least, CRC32_HEAD_MAX at most
 * @param keep    16 bytes: bits of the first block that count; the others count as zeros
 * @param ones    blocks * 16 bytes: bits of the head that count as ones, whatever they are
 * @param from    payload; may be NULL when len is 0
 * @return in zlib's convention, as crc32_update()
 */
extern uint32_t (*crc32_packet)(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);

/**
 * CRC of a packet that stays where it is, and of eight bytes 0xFF in front of it.
 *
 * @param p       len bytes
 * @param ones    blocks * 16 - 8 bytes: bits of the packet's first that count as ones
 * @param blocks  2 at least, CRC32_HEAD_MAX / 16 at most
 * @param len     blocks * 16 - 8 at least
 * @return in zlib's convention, as crc32_update()
 */
extern uint32_t (*crc32_masked)(const uint8_t *p, const uint8_t *ones, uint32_t blocks,
	uint32_t len);

/** Name of the kernel in use: "portable", "pclmul", "vpclmul". */
const char *crc32_kernel(void);
/** Use a kernel by name (tests, benchmarks). @retval -ENOTSUP this CPU or build does not have it */
int crc32_use(const char *name);

#endif
