/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_KERNELS_H
#define WIRE_CRC32_KERNELS_H

/* Private to lib/wire: the functions of the CRC kernels that crc32.c chooses from. */

#include "wire/crc32.h"

bool crc32_pclmul_supported(void);
bool crc32_vpclmul_supported(void);

crc32_update_fn crc32_portable, crc32_pclmul, crc32_vpclmul;
crc32_packet_fn crc32_packet_portable, crc32_packet_pclmul, crc32_packet_vpclmul;
icrc_fn icrc_portable, icrc_pclmul, icrc_vpclmul;
path_finish_send_fn path_finish_send_portable, path_finish_send_pclmul, path_finish_send_vpclmul;
vcrc_fold_fn vcrc_fold_pclmul;

/* VCRC by table. @param crc  the register. @return the register after len more bytes */
uint32_t vcrc_by_table(uint32_t crc, const uint8_t *buf, size_t len);

/* Precompute the CRC states of a path's header for those functions; the header must be complete. */
void path_init_states(struct path *p);

#endif
