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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct path;

/** The longest head of crc32_packet(), in bytes. */
#define CRC32_HEAD_MAX 112

typedef uint32_t crc32_update_fn(uint32_t crc, const void *buf, size_t len);
typedef uint32_t crc32_packet_fn(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);
typedef uint32_t crc32_masked_fn(const uint8_t *p, const uint8_t *ones, uint32_t blocks,
	uint32_t len);
typedef bool icrc_ipv4_ok_fn(const uint8_t *ip, uint32_t len);
typedef uint32_t path_finish_send_fn(const struct path *p, uint8_t *bth, const uint8_t *words,
	uint32_t headers, const void *from, uint32_t len, uint16_t ip_id);
typedef size_t vcrc_fold_fn(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16]);

/** What a CPU's instructions decide: the CRC, and what computes it on the way. */
struct crc_kernel {
	const char *name;
	bool (*supported)(void);
	crc32_update_fn *update;
	crc32_packet_fn *packet;
	crc32_masked_fn *masked;
	/** True if the ICRC after @p len bytes is right: RoCEv2 in IPv4 without options. */
	icrc_ipv4_ok_fn *ipv4_ok;
	path_finish_send_fn *send; /**< path_finish_send() of path.h */
	/**
	 * Fold the whole 16-byte blocks of buf (at least 64 bytes) with VCRC's polynomial into one
	 * block whose VCRC, from a register of 0, is that of the folded bytes. NULL: VCRC uses only
	 * its table. @return bytes folded, a multiple of 16
	 */
	vcrc_fold_fn *vcrc_fold;
};

/** The kernel in use: the fastest that this CPU has, unless crc32_use() chose another. */
extern const struct crc_kernel *crc_kernel;

/**
 * Continue a CRC over more bytes, in zlib's convention: start with 0, pass the result to the next
 * call. Any alignment, any length.
 */
static inline uint32_t
crc32_update(uint32_t crc, const void *buf, size_t len)
{
	return crc_kernel->update(crc, buf, len);
}

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
static inline uint32_t
crc32_packet(uint8_t *head, const uint8_t *keep, const uint8_t *ones, uint32_t blocks,
	const void *from, uint32_t len)
{
	return crc_kernel->packet(head, keep, ones, blocks, from, len);
}

/**
 * CRC of eight bytes 0xFF followed by a packet. The packet is not changed.
 *
 * @param p       len bytes
 * @param ones    blocks * 16 - 8 bytes: mask of the packet's first bytes; 1 bits count as ones
 * @param blocks  2 at least, CRC32_HEAD_MAX / 16 at most
 * @param len     blocks * 16 - 8 at least
 * @return in zlib's convention, as crc32_update()
 */
static inline uint32_t
crc32_masked(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len)
{
	return crc_kernel->masked(p, ones, blocks, len);
}

/** Name of the kernel in use: "portable", "pclmul", "vpclmul". */
static inline const char *
crc32_kernel(void)
{
	return crc_kernel->name;
}

/** Use a kernel by name (tests, benchmarks). @retval -ENOTSUP this CPU or build does not have it */
int crc32_use(const char *name);

#endif
