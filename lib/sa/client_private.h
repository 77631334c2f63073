/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SA_CLIENT_PRIVATE_H
#define SA_CLIENT_PRIVATE_H

/**
 * @file
 * Private to the client: a query under way.
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
	struct client_query *next; /* free */
	struct sa_client *client;
	struct sa_taker taker;
	const struct sa_record_type *type; /* of a GetBulk: of the record being taken */
	const uint8_t *records;
	const uint32_t *rids;
	enum sa_op op;
	enum sa_version version;
	uint32_t wire_len; /* of a record */
	uint32_t held; /* bytes of .part that a segment's end has left */
	uint32_t left; /* GetBulk: records of this table that are to come; 0: a header is */
	uint8_t part[4 + SA_RECORD_MAX];
	uint8_t multi[24]; /* GetMulti: MultiPathRecord without GIDs, which are .records */
	struct mad_call call; /* the query's, which may have to wait for the ClassPortInfo */
	uint8_t mad[MAD_LEN]; /* its MAD */
	uint64_t asked; /* when */
};

/* client_known.c: what the query's SA has announced. @return RespTimeValue, -1: nothing yet */
int client_known(const struct client_query *s);
void client_learn(const struct client_query *s, uint8_t resp_time);
void client_forget(const struct client_query *s);

/* client_source.c: what a request of many packets is made of. */
void client_source(struct client_query *s, const struct sa_query *q, struct mad_source *source);

#endif
