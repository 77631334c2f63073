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

/** The longest head of crc_kernel.packet(), in bytes. */
#define CRC32_HEAD_MAX 112

typedef uint32_t crc32_update_fn(uint32_t crc, const void *buf, size_t len);
typedef uint32_t crc32_packet_fn(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);
typedef uint32_t icrc_fn(unsigned int row, const uint8_t *l3, uint32_t len);
typedef uint32_t path_finish_send_fn(const struct path *p, uint8_t *bth, const uint8_t *words,
	uint32_t headers, const void *from, uint32_t len, uint16_t ip_id);
typedef size_t vcrc_fold_fn(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16]);

/** What a CPU's instructions decide: the CRC, and what computes it on the way. */
struct crc_kernel {
	const char *name; /**< "portable", "pclmul", "vpclmul" */
	bool (*supported)(void);
	/**
	 * Continue a CRC over more bytes, in zlib's convention: start with 0, pass the result to
	 * the next call. Any alignment, any length.
	 */
	crc32_update_fn *update;
	/**
	 * Copy a payload behind a packet's head, add zeros up to a multiple of four bytes, and
	 * compute the CRC of head, payload and zeros. The CRC register starts at zero, so leading
	 * zeros have no effect. The head has `blocks` * 16 bytes, 32 at least, CRC32_HEAD_MAX at
	 * most. `keep`, 16 bytes, masks the first block: bits that are 0 there count as zeros.
	 * `ones` masks the head: bits that are 1 there count as ones. `from` may be NULL when len
	 * is 0. @return in zlib's convention
	 */
	crc32_packet_fn *packet;
	/**
	 * ICRC of @p len bytes from layer 3 on, masked by a row of icrc_masks: any but ENCAP_IB. An
	 * IPv4 header has no options.
	 */
	icrc_fn *icrc;
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
 * Use a kernel by name (tests, benchmarks). @param name  NULL: the fastest that this CPU has
 * @retval -ENOTSUP this CPU or build does not have it
 */
int crc32_use(const char *name);

#endif
