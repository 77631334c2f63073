/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_COPY_H
#define BASE_COPY_H

/**
 * @file
 * Copies of payloads, of which short ones are not worth a call.
 */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define COPY_PIECE 16 /* a register */

/** One to four pieces? Not for no bytes. */
static inline bool
copy_is_short(uint32_t len)
{
	return len - COPY_PIECE <= 3 * COPY_PIECE;
}

/** So many bytes, in pieces of which two may overlap. */
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

/** As many as there are. */
static __rte_always_inline void
copy_payload(uint8_t *to, const uint8_t *from, uint32_t len)
{
	if (likely(copy_is_short(len)))
		copy_short(to, from, len);
	else if (len > 0)
		memcpy(to, from, len);
}

#endif
