/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RSOCKET_H
#define SVC_RSOCKET_H

/**
 * @file
 * Streams over rsockets, for kinds of services on either side. The state of such a kind
 * begins with a struct rsocket_service, that of its connections with a struct rsocket, and its
 * struct svc_ops uses the functions below.
 */

#include "svc/kinds.h"

#define RSOCKET_SEND_MAX 65536u /**< bytes of one message */

struct rsocket_service {
	struct svc_windows windows;
	uint64_t half; /**< bytes of half a receive buffer */
	/** A connection that we opened is established; pump() follows. */
	void (*begin)(struct svc_conn *c);
	/** Bytes of the stream, in order; valid until it returns. */
	void (*data)(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
	/** There may be room to send: call rsocket_send() until it takes no more. */
	void (*pump)(struct svc_conn *c);
};

struct rsocket {
	/* from the peer's private data */
	bool known; /* it was received */
	bool net; /**< the peer's list, and what it writes, is big-endian */
	bool own_net; /* our list is big-endian */
	uint64_t list_va;
	uint32_t list_key;
	uint32_t list_entries;
	uint32_t list_at; /* entry of the peer's list that we write next */

	/* receiving */
	uint64_t at; /* buffer offset of the next message */
	uint64_t open; /* bytes that the peer may still write */
	uint64_t free; /* bytes of the buffer that are not granted */
	uint64_t next_half; /* offset of the half to grant next */
	uint16_t received; /* data messages */
	uint16_t grant_at; /* number of the data message after which we grant new credits */

	/* sending */
	uint32_t target_at; /* entry of our list in use */
	uint16_t sent; /* data messages */
	uint16_t granted;
	uint32_t sends, controls; /* outstanding */
	bool leave, left; /* the disconnect message is to be sent, was sent */
};

/** In open(): queues and buffers. @param half  bytes of half of a connection's receive buffer */
int rsocket_open(struct svc *s, uint64_t half, struct error *err);
/** A region to send from, at any offset below 256; contents 0, 1, ... 255, 0, ... */
int rsocket_pattern(struct svc *s, struct svc_region *r, struct error *err);

/* --- functions for struct svc_ops --- */

int rsocket_close(struct svc *s);
void rsocket_shape(struct svc_conn *c, struct cm_conn_param *param);
uint16_t rsocket_request(struct svc_conn *c, const struct cm_request *req,
	struct cm_conn_param *param);
int rsocket_prepare(struct svc_conn *c);
void rsocket_established(struct svc_conn *c, const uint8_t *private_data, uint8_t len);
void rsocket_completion(struct svc_conn *c, const struct wc *wc);

/* --- for pump() --- */

/**
 * Send bytes of a region; they must not change until the Send completes.
 * @return bytes taken, as many as one message may have now
 */
uint32_t rsocket_send(struct svc_conn *c, const struct svc_region *r, uint64_t offset,
	uint64_t length);
/** rsocket_send() of bytes that are copied, at most SVC_INLINE. */
uint32_t rsocket_say(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
/** Both sides have sent everything: disconnect after the outstanding sends. */
void rsocket_leave(struct svc_conn *c);

#endif
