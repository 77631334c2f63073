/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RSOCKET_H
#define SVC_RSOCKET_H

/**
 * @file
 * Streams over rsockets, for kinds of services on either side. Such a kind's state begins with a
 * struct rsocket_service, its connections' with a struct rsocket; its row has the functions below.
 */

#include "svc/kinds.h"

#define RSOCKET_SEND_MAX 65536u /**< bytes of one message */

struct rsocket_service {
	struct svc_windows windows;
	uint64_t half; /**< bytes of half a receive buffer */
	/** A connection of ours stands; pump() follows. */
	void (*begin)(struct svc_conn *c);
	/** Bytes of the stream, in order; they are gone with the return. */
	void (*data)(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
	/** Room to send may have come: rsocket_send() until it takes no more. */
	void (*pump)(struct svc_conn *c);
};

struct rsocket {
	/* of the peer's private data */
	bool known;
	bool net; /**< what it writes, and its list, is big-endian */
	bool own_net; /* our list */
	uint64_t list_va;
	uint32_t list_key;
	uint32_t list_entries;
	uint32_t list_at; /* entry that we write next */

	/* receiving */
	uint64_t at; /* offset of what comes next */
	uint64_t open; /* bytes that it may still write */
	uint64_t free; /* bytes of the buffer that nobody may write */
	uint64_t next_half; /* offset of the half that is granted next */
	uint16_t received; /* data messages */
	uint16_t grant_at; /* number of the one at which new credits are due */

	/* sending */
	uint32_t target_at; /* entry of our list in use */
	uint16_t sent; /* data messages */
	uint16_t granted;
	uint32_t sends, controls; /* under way */
	bool leave, left; /* the last word is due, was said */
};

/** In open(): queues and buffers; @p half  bytes of half a receive buffer, of each connection. */
int rsocket_open(struct svc *s, uint64_t half, struct error *err);
/** Contents to send, for any offset below 256 of a message: 0, 1, ... 255, 0, ... */
int rsocket_pattern(struct svc *s, struct svc_region *r, struct error *err);

/* --- of a row --- */

int rsocket_close(struct svc *s);
void rsocket_shape(struct svc_conn *c, struct cm_conn_param *param);
uint16_t rsocket_request(struct svc_conn *c, const struct cm_request *req,
	struct cm_conn_param *param);
int rsocket_prepare(struct svc_conn *c);
void rsocket_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len);
void rsocket_completion(struct svc_conn *c, const struct wc *wc);

/* --- for pump() --- */

/**
 * Send bytes of a region, that stay until they are gone.
 * @return how many of them were taken: as much as one message may have now
 */
uint32_t rsocket_send(struct svc_conn *c, const struct svc_region *r, uint64_t offset,
	uint64_t length);
/** The same from anywhere, SVC_INLINE bytes at most. */
uint32_t rsocket_say(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
/** Both have said everything; the connection's end follows what was sent. */
void rsocket_leave(struct svc_conn *c);

#endif
