/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_TEXT_H
#define SVC_PERFTEST_TEXT_H

/**
 * @file
 * The descriptions of QPs that perftest's two sides exchange: as text over TCP, as bytes over a
 * connection of the CM. Observed with perftest 6.06 (Debian's 4.5-0.17).
 *
 * Text: "0000:0001:000011:5d0108:000003fd:00007f152ac5f000:00:..:02:00000000:" is LID,
 * outstanding Reads, QPN, PSN, R_Key, address, the GID's 16 bytes, SRQ number; hexadecimal and of
 * fixed width, followed by a zero byte. Without a GID (native IB, -x not given) the SRQ number and
 * the zero byte directly follow the address. Bytes: the same fields as big-endian words of 32 bits,
 * the address as an aligned word of 64 bits, and after the SRQ number the sender's GID index.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define PERFTEST_TEXT     108 /* bytes of a text, including the zero byte */
#define PERFTEST_TEXT_LID 59 /* without a GID */
#define PERFTEST_BYTES    56

struct perftest_dest {
	uint16_t lid;
	uint8_t out_reads; /**< Reads and Atomics that its responder accepts; at most 255 */
	uint32_t qpn;
	uint32_t psn; /**< first PSN that it sends */
	uint32_t rkey;
	uint64_t va;
	bool has_gid;
	union gid gid;
};

/** @return length of the text that begins here; 0: not known yet; -1: not a valid text */
int perftest_text_length(const uint8_t *text, size_t len);
/**
 * Read a text of the length that perftest_text_length() returned. @return false: not a valid text
 */
bool perftest_text_read(const uint8_t *text, size_t len, struct perftest_dest *d);
/**
 * Write a text, with the GID if there is one. @param text  room for PERFTEST_TEXT bytes @return its
 * length
 */
size_t perftest_text_write(const struct perftest_dest *d, uint8_t *text);

/** @p bytes of PERFTEST_BYTES, any contents. */
void perftest_bytes_read(const uint8_t *bytes, struct perftest_dest *d);
void perftest_bytes_write(const struct perftest_dest *d, uint8_t *bytes);

#endif
