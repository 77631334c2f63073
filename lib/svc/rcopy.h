/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_RCOPY_H
#define SVC_RCOPY_H

/**
 * @file
 * Shared by rcopy.c, rcopy_server.c, rcopy_client.c and rcopy_wire.c. The messages of librdmacm's
 * rcopy, in the byte order of both hosts (the program does not swap bytes):
 *
 *   0 version 0 [8]   1 command [8]   2 bytes of the message [16]   4 data [32]   8 ID [64]
 *
 * After OPEN follows the file's path, after WRITE the file's size [64] and its bytes. Each message
 * is answered by one of 16 bytes: the command plus 0x80, and in data a status, 0 or an errno.
 */

#include "svc/rsocket.h"

#define RCOPY_HEAD     16
#define RCOPY_OPEN     1 /**< data: the file's mode */
#define RCOPY_CLOSE    2
#define RCOPY_WRITE    3
#define RCOPY_RESPONSE 0x80

enum rcopy_stage {
	RCOPY_AT_HEAD, /**< 0: the first stage of a connection */
	RCOPY_AT_PATH,
	RCOPY_AT_SIZE,
	RCOPY_AT_FILE,
	RCOPY_OVER, /**< received bytes are ignored; disconnect once our answer is sent */
};

struct rcopy {
	struct rsocket_service rs; /* first */
	struct mem_mr_info file; /* the caller's region, for a server; of length 0: none */
	struct svc_region pattern; /* of a client */
	uint32_t writer; /* place + 1 of the connection that writes .file; atomic */
};

struct rcopy_conn {
	struct rsocket r; /* first */
	uint8_t stage; /* enum rcopy_stage */
	bool open;
	uint8_t asked; /* command whose answer the client waits for */
	uint8_t in[RCOPY_HEAD];
	uint32_t in_length;
	uint8_t out[SVC_INLINE];
	uint32_t out_length;
	uint64_t left; /* bytes of this stage still to receive */
	uint64_t at; /* offset in the file */
	uint64_t size; /* of the file */
	uint32_t status; /* of this file */
	uint64_t id; /* of the request */
	uint64_t to_send; /* bytes of the client's file */
};

struct rcopy_head {
	uint8_t version;
	uint8_t command;
	uint16_t length;
	uint32_t data;
	uint64_t id;
};
struct rcopy_head rcopy_get_head(const uint8_t *at, bool net);
/** Write a head to .out, in the connection's byte order. */
void rcopy_put_head(struct rcopy_conn *r, const struct rcopy_head *h);
uint64_t rcopy_get64(const uint8_t *at, bool net);
void rcopy_put64(uint8_t *at, uint64_t value, bool net);

/** Gather up to @p want bytes in .in, now .in_length. @return how many were taken */
uint32_t rcopy_gather(struct rcopy_conn *r, uint32_t want, const uint8_t *bytes, uint32_t length);

void rcopy_serve(struct svc_conn *c, const uint8_t *bytes, uint32_t length);
void rcopy_release(struct svc_conn *c);

void rcopy_begin(struct svc_conn *c);
void rcopy_answered(struct svc_conn *c, const uint8_t *bytes, uint32_t length);

#endif
