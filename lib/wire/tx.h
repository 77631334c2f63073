/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef WIRE_TX_H
#define WIRE_TX_H

/**
 * @file
 * The transmit sink: protocol code reserves a packet, fills it and commits it. The engine's sink
 * batches packets into ethdev bursts; the simulation's sink is a lossy network; a unit test's sink
 * is an array.
 */

#include <rte_branch_prediction.h>
#include <rte_debug.h>

#include "wire/path.h"
#include "wire/payload.h"

/** Buffer for BTH and extension headers. It may be copied whole; unused bytes are undefined. */
struct tx_headers {
	uint8_t bytes[48];
};

struct tx_sink {
	/**
	 * Room for one packet of @p len bytes from the BTH through the padding.
	 *
	 * @return where the BTH goes; NULL if the pool or queue is exhausted: the sink counts it,
	 *         the caller keeps its state and tries again in its next run
	 */
	uint8_t *(*reserve)(struct tx_sink *sink, const struct path *path, uint32_t len);
	/** Send the packet reserved last. The sink adds outer headers, addresses and ICRC. */
	void (*commit)(struct tx_sink *sink);
	/**
	 * Implements tx_send(), which only queue pairs call: in one step, or as tx_send_in_parts().
	 */
	bool (*send)(struct tx_sink *sink, const struct path *path,
		const struct tx_headers *headers, uint32_t headers_len, const void *from,
		uint32_t len);
};

static inline uint8_t *
tx_reserve(struct tx_sink *s, const struct path *path, uint32_t len)
{
	RTE_ASSERT(len % 4 == 0);
	return s->reserve(s, path, len);
}

static inline void
tx_commit(struct tx_sink *s)
{
	s->commit(s);
}

/**
 * Reserve a packet and copy its headers.
 *
 * @param len  bytes of the payload, which the caller writes, and its padding with it
 * @return     where the payload goes, or NULL as tx_reserve()
 */
static inline uint8_t *
tx_begin(struct tx_sink *s, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, uint32_t len)
{
	uint8_t *bth = tx_reserve(s, path, headers_len + wire_padded(len));

	if (bth == NULL)
		return NULL;
	memcpy(bth, headers->bytes, headers_len);
	return bth + headers_len;
}

/**
 * The send() of a sink that has no faster way than to reserve, fill and commit a packet. The
 * parameters are those of tx_send().
 */
static inline bool
tx_send_in_parts(struct tx_sink *s, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	uint8_t *to = tx_begin(s, path, headers, headers_len, len);

	if (to == NULL)
		return false;
	put_payload(to, from, len);
	tx_commit(s);
	return true;
}

/**
 * Send a packet: BTH and extension headers, a payload that is copied, and its padding.
 *
 * @param headers_len  at most BTH_LEN + PATH_EXT_MAX
 * @param from         len bytes; may be NULL when there is none
 * @retval false       as when tx_reserve() gives NULL
 */
static inline bool
tx_send(struct tx_sink *s, const struct path *path, const struct tx_headers *headers,
	uint32_t headers_len, const void *from, uint32_t len)
{
	RTE_ASSERT(s->send != NULL);
	RTE_ASSERT(headers_len <= sizeof(headers->bytes) && headers_len % 4 == 0);
	RTE_ASSERT(from != NULL || len == 0);
	return s->send(s, path, headers, headers_len, from, len);
}

#endif
