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

/** Name of the kernel in use: "portable", "pclmul", "vpclmul". */
const char *crc32_kernel(void);
/** Use a kernel by name (tests, benchmarks). @retval -ENOTSUP this CPU or build does not have it */
int crc32_use(const char *name);

#endif
