/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_TX_H
#define WIRE_TX_H

/**
 * @file
 * The transmit sink: protocol code asks it for a packet, fills it, commits it. The engine's
 * sink batches into ethdev bursts; the simulation's is the lossy network; a unit test's is an
 * array.
 */

#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "wire/path.h"

struct tx_sink {
	/**
	 * Room for one packet of @p len bytes from the BTH through the padding.
	 *
	 * @return where the BTH goes, or NULL when no packet can be had now (pool or queue
	 *         exhausted): the caller keeps its state and tries again in its next run; the sink
	 *         counts it
	 */
	uint8_t *(*reserve)(struct tx_sink *sink, const struct path *path, uint32_t len);
	/** Send what was reserved last; headers, ICRC and addresses are the sink's work. */
	void (*commit)(struct tx_sink *sink);
	/**
	 * The same, with the payload still to be copied: from @p at, where it goes, through its
	 * padding. NULL: the sink has no quicker way than tx_commit_copy()'s.
	 */
	void (*commit_copy)(struct tx_sink *sink, uint8_t *at, const void *from, uint32_t len);
};

static inline uint8_t *
tx_reserve(struct tx_sink *s, const struct path *path, uint32_t len)
{
	return s->reserve(s, path, len);
}

static inline void
tx_commit(struct tx_sink *s)
{
	s->commit(s);
}

/** Send what was reserved last; its payload and padding are put at @p at on the way. */
static inline void
tx_commit_copy(struct tx_sink *s, uint8_t *at, const void *from, uint32_t len)
{
	if (likely(s->commit_copy != NULL)) {
		s->commit_copy(s, at, from, len);
		return;
	}
	if (len > 0)
		memcpy(at, from, len);
	memset(at + len, 0, -len & 3);
	s->commit(s);
}

#endif
