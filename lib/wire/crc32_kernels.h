/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_CRC32_KERNELS_H
#define WIRE_CRC32_KERNELS_H

/* Private to lib/wire: the CRC kernels that crc32.c chooses from. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/path.h"

uint32_t crc32_portable(uint32_t crc, const void *buf, size_t len);
uint32_t crc32_pclmul(uint32_t crc, const void *buf, size_t len);
uint32_t crc32_vpclmul(uint32_t crc, const void *buf, size_t len);
bool crc32_pclmul_supported(void);
bool crc32_vpclmul_supported(void);

/* crc32_packet() of crc32.h */
uint32_t crc32_packet_portable(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);
uint32_t crc32_packet_pclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);
uint32_t crc32_packet_vpclmul(uint8_t *head, const uint8_t *keep, const uint8_t *ones,
	uint32_t blocks, const void *from, uint32_t len);

/* crc32_masked() of crc32.h */
uint32_t crc32_masked_portable(const uint8_t *p, const uint8_t *ones, uint32_t blocks,
	uint32_t len);
uint32_t crc32_masked_pclmul(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len);
uint32_t crc32_masked_vpclmul(const uint8_t *p, const uint8_t *ones, uint32_t blocks, uint32_t len);

/* True if the ICRC after these bytes is right: RoCEv2 in IPv4 without options. */
bool icrc_ipv4_ok_portable(const uint8_t *ip, uint32_t len);
bool icrc_ipv4_ok_pclmul(const uint8_t *ip, uint32_t len);
bool icrc_ipv4_ok_vpclmul(const uint8_t *ip, uint32_t len);

/* path_finish_send(), path_finish_ack() and path_finish_atomic() of path.h */
uint32_t path_finish_send_portable(const struct path *p, uint8_t *bth, const uint8_t words[12],
	const void *from, uint32_t len, uint16_t ip_id);
uint32_t path_finish_send_pclmul(const struct path *p, uint8_t *bth, const uint8_t words[12],
	const void *from, uint32_t len, uint16_t ip_id);
uint32_t path_finish_send_vpclmul(const struct path *p, uint8_t *bth, const uint8_t words[12],
	const void *from, uint32_t len, uint16_t ip_id);
uint32_t path_finish_ack_portable(const struct path *p, uint8_t *bth, const uint8_t words[16],
	uint16_t ip_id);
uint32_t path_finish_ack_pclmul(const struct path *p, uint8_t *bth, const uint8_t words[16],
	uint16_t ip_id);
uint32_t path_finish_atomic_portable(const struct path *p, uint8_t *bth, const uint8_t words[24],
	uint16_t ip_id);
uint32_t path_finish_atomic_pclmul(const struct path *p, uint8_t *bth, const uint8_t words[24],
	uint16_t ip_id);
/* Precompute the CRC states of a path's header for those functions; the header must be complete. */
void path_init_states(struct path *p);

/*
 * Fold the whole 16-byte blocks of buf (at least 64 bytes) with VCRC's polynomial into one block
 * whose VCRC, from a register of 0, is that of the folded bytes. @return bytes folded, a multiple
 * of 16
 */
size_t vcrc_fold_pclmul(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16]);
/* The kernel in use; NULL: VCRC uses only its table. */
extern size_t (*vcrc_fold)(uint16_t crc, const uint8_t *buf, size_t len, uint8_t block[16]);

#endif
