/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_CLIENT_PRIVATE_H
#define SA_CLIENT_PRIVATE_H

/**
 * @file
 * Private to client*.c: a query in progress.
 */

#include "sa/bulk.h"
#include "sa/client.h"
#include "wire/bytes.h"

struct sa_client {
	struct mad_worker *mad;
	const struct allocator *alloc;
	struct client_query *slots;
	struct client_query *free;
	struct sa_known *known; /* .own, or shared */
	struct sa_known own;
	uint8_t edit_code[SA_EDIT_EDIT + 1];
};

struct client_query {
	struct client_query *next; /* free list */
	struct sa_client *client;
	struct sa_taker taker;
	const struct sa_record_type *type; /* GetBulk: type of the records being read */
	const uint8_t *records;
	const uint32_t *rids;
	enum sa_op op;
	enum sa_version version;
	uint32_t wire_len; /* length of a record */
	uint32_t held; /* bytes in .part: the beginning of a record that a segment's end split */
	uint32_t left; /* GetBulk: records of this table still to come; 0: a header comes */
	uint8_t part[4 + SA_RECORD_MAX];
	uint8_t multi[24]; /* GetMulti: MultiPathRecord without GIDs; .records points to the GIDs */
	struct mad_call call; /* the query's call; may wait for the ClassPortInfo */
	uint8_t mad[MAD_LEN]; /* MAD of that call */
	uint64_t asked; /* start time */
};

/* client_known.c: RespTimeValue of the query's SA. @return -1: unknown */
int client_known(const struct client_query *s);
void client_learn(const struct client_query *s, uint8_t resp_time);
void client_forget(const struct client_query *s);

/* client_source.c: the data source of a multi-packet request. */
void client_source(struct client_query *s, const struct sa_query *q, struct mad_source *source);

#endif
