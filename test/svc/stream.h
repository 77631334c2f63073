/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SVC_STREAM_H
#define TEST_SVC_STREAM_H

/* The test acts as a client of an rsockets service. */

#include "bench.h"

/* offsets in the client's memory: its SGL, send buffer, and receive buffer of two halves */
#define LIST       0
#define OUT        256
#define IN         1024
#define HALF       1024u
#define DATA(n)    (n)
#define CREDITS(n) (0x80000000u | (n))
#define GOODBYE    0xE0000000u

struct stream {
	struct bench *b;
	struct life *l;
	struct service *s;
	uint64_t list_va, va; /* addresses of the server's SGL and receive buffer */
	uint32_t key;
};

/* Private data as rstream sends: version 1, IOMAP, 384 credits, an SGL of 2, half a buffer. */
void conn_data(const struct node *a, uint8_t *data, uint8_t flags);
struct life *connect_with(struct bench *b, const uint8_t *data, uint8_t len);
struct stream open_stream(struct bench *b, const struct svc_config *config, uint8_t flags);
void write_imm(struct stream *t, uint32_t at, uint32_t len, uint64_t remote, uint32_t imm);
/* @return the immediate data of the server's next message */
uint32_t next_imm(struct stream *t);

#endif
