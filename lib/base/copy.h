/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_COPY_H
#define BASE_COPY_H

/**
 * @file
 * Copy payloads; short ones are copied inline, without a call of memcpy().
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define COPY_PIECE 16 /* a register */

/** True for 16 to 64 bytes, the lengths that copy_short() copies. */
static inline bool
copy_is_short(uint32_t len)
{
	return len - COPY_PIECE <= 3 * COPY_PIECE;
}

/** Copy 16 to 64 bytes, in pieces that may overlap. */
static __rte_always_inline void
copy_short(uint8_t *to, const uint8_t *from, uint32_t len)
{
	memcpy(to, from, COPY_PIECE);
	if (len > 2 * COPY_PIECE) {
		memcpy(to + COPY_PIECE, from + COPY_PIECE, COPY_PIECE);
		memcpy(to + len - 2 * COPY_PIECE, from + len - 2 * COPY_PIECE, COPY_PIECE);
	}
	memcpy(to + len - COPY_PIECE, from + len - COPY_PIECE, COPY_PIECE);
}

/** Copy any number of bytes, also 0. */
static __rte_always_inline void
copy_payload(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (likely(copy_is_short(len)))
		copy_short(to, from, len);
	else if (len > 0)
		memcpy(to, from, len);
}

#endif
