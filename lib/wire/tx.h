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

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <rte_branch_prediction.h>

#include "wire/path.h"

/** Room for headers, to be copied as a whole: what they do not fill may be anything. */
struct tx_headers {
	uint8_t bytes[48];
};

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
	/** tx_send() in one step; NULL: the sink has none. */
	bool (*send)(struct tx_sink *sink, const struct path *path,
		const struct tx_headers *headers, uint32_t headers_len, const void *from,
		uint32_t len);
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

/**
 * Send a packet: BTH and extension headers, a payload that stands elsewhere, and its padding.
 *
 * @param headers_len  at most BTH_LEN + PATH_EXT_MAX
 * @param from         len bytes; may be NULL when there is none
 * @retval false       as when tx_reserve() gives NULL
 */
static inline bool
tx_send(struct tx_sink *s, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	uint32_t pad = -len & 3;
	uint8_t *bth;

	if (likely(s->send != NULL))
		return s->send(s, path, headers, headers_len, from, len);
	bth = s->reserve(s, path, headers_len + len + pad);
	if (bth == NULL)
		return false;
	memcpy(bth, headers->bytes, headers_len);
	if (len > 0)
		memcpy(bth + headers_len, from, len);
	memset(bth + headers_len + len, 0, pad);
	s->commit(s);
	return true;
}

#endif
