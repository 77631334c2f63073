/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SVC_STREAM_H
#define TEST_SVC_STREAM_H

/* A client of an rsockets service, played by hand. */

#include "bench.h"

/* in the client's memory: its list, what it sends, its receive buffer of two halves */
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
	uint64_t list_va, va; /* of the server */
	uint32_t key;
};

/* Private data as the program's: version 1, IOMAP, 384 credits, list of 2, half a buffer. */
void conn_data(const struct node *a, uint8_t *data, uint8_t flags);
struct life *connect_with(struct bench *b, const uint8_t *data, uint8_t len);
struct stream open_stream(struct bench *b, const struct svc_config *config, uint8_t flags);
void write_imm(struct stream *t, uint32_t at, uint32_t len, uint64_t remote, uint32_t imm);
/* The next message of the server: its immediate data. */
uint32_t next_imm(struct stream *t);

#endif
