/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_KERNELS_H
#define WIRE_CRC32_KERNELS_H

/* Private to lib/wire: the CRC-32 kernels that crc32.c chooses from. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t crc32_portable(uint32_t crc, const void *buf, size_t len);
uint32_t crc32_pclmul(uint32_t crc, const void *buf, size_t len);
uint32_t crc32_vpclmul(uint32_t crc, const void *buf, size_t len);
bool crc32_pclmul_supported(void);
bool crc32_vpclmul_supported(void);

#endif
