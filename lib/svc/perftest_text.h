/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_TEXT_H
#define SVC_PERFTEST_TEXT_H

/**
 * @file
 * What the two sides of perftest tell each other about a queue pair: as text over TCP, as bytes
 * over a connection of the CM. Seen with perftest 6.06 (Debian's 4.5-0.17).
 *
 * Text: "0000:0001:000011:5d0108:000003fd:00007f152ac5f000:00:..:02:00000000:" is LID,
 * outstanding Reads, QPN, PSN, R_Key, address, the GID's 16 bytes, SRQ number; hexadecimal and of
 * fixed width, with a zero byte behind it. Without a GID (native IB, -x not given) "SRQ number,
 * zero byte" follows the address at once. Bytes: the same as big-endian words of 32 bits, the
 * address one of 64 bits on a multiple of 8, and behind the SRQ number the sender's GID index.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define PERFTEST_TEXT     108 /* bytes of a text, zero byte included */
#define PERFTEST_TEXT_LID 59 /* without a GID */
#define PERFTEST_BYTES    56

struct perftest_dest {
	uint16_t lid;
	uint8_t out_reads; /**< Reads and Atomics its responder holds; more than 255 become 255 */
	uint32_t qpn;
	uint32_t psn; /**< where its sending starts */
	uint32_t rkey;
	uint64_t va;
	bool has_gid;
	union gid gid;
};

/** @return bytes of a text that starts so; 0: cannot be told yet; -1: none starts so */
int perftest_text_length(const uint8_t *text, size_t len);
/** @p len as perftest_text_length() has it. @return is it one? */
bool perftest_text_read(const uint8_t *text, size_t len, struct perftest_dest *d);
/** With a GID if it has one. @p text of PERFTEST_TEXT. @return its bytes */
size_t perftest_text_write(const struct perftest_dest *d, uint8_t *text);

/** @p bytes of PERFTEST_BYTES, any contents. */
void perftest_bytes_read(const uint8_t *bytes, struct perftest_dest *d);
void perftest_bytes_write(const struct perftest_dest *d, uint8_t *bytes);

#endif
