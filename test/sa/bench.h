/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SA_BENCH_H
#define TEST_SA_BENCH_H

/*
 * The SA server alone: a store in memory, requests passed to its agents as lib/mad would, answers
 * and Reports recorded. A small fabric:
 *
 *   A (LID 4, alias A1) --EDR 4096-- S1 (LID 1) --FDR 2048-- S2 (LID 2) --EDR 4096-- C (LIDs 8, 9)
 *   B (LID 5)           --QDR 2048-- S1                      S2         --EDR 4096-- D (LID 12)
 *
 * P_Keys: A FFFF 8001; B none stored; C 7FFF 8002; D 7FFF 8001.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../counted.h"
#include "sa/bulk.h"
#include "sa/layout.h"
#include "sa/sa.h"
#include "wire/bytes.h"

#define SM_KEY    UINT64_C(0x5345435245543031)
#define PREFIX    UINT64_C(0xFE80000000000000)
#define GUID_A    UINT64_C(0x0A)
#define GUID_A1   UINT64_C(0xA1)
#define GUID_B    UINT64_C(0x0B)
#define GUID_C    UINT64_C(0x0C)
#define GUID_D    UINT64_C(0x0D)
#define CALLS_MAX 64

struct bench_call {
	struct mad_call call;
	uint8_t mad[MAD_LEN];
	bool open;
};

struct bench {
	struct sa_config config;
	struct counted memory; /* of the SA */
	struct counted store_memory;
	struct store *store;
	struct sa *sa;
	struct sa_worker *w;
	struct store_reader *reader;
	struct mad_agent agent[2];
	unsigned int agents;
	uint64_t seconds; /* wall clock of the store's thread */
	const uint8_t *our_gid; /* RoCE: that requests are sent to; NULL: fe80::5a */
	uint64_t now;
	/* changes submitted; they wait if hold_writes is set */
	struct sa_write *writes[64];
	unsigned int num_writes;
	bool hold_writes;
	bool refuse_writes;
	bool fail_commits;
	unsigned int commits;
	unsigned int fail_commit; /* number of the one that fails; 0: none */
	/* the answer to the last request */
	enum mad_outcome outcome; /* first one */
	bool answered;
	bool streamed;
	uint8_t reply[MAD_LEN];
	uint8_t *data; /* of a stream */
	uint64_t len;
	int read_error;
	bool keep_source; /* leave the stream unread, in .source and .silent */
	struct mad_source source;
	/* sessions that were left unread, by handle */
	struct {
		struct mad_source source; /* .release NULL: ended */
		bool proven; /* its peer has answered */
	} silent[64];
	bool makes_room; /* mad_make_room() ends the oldest of them */
	unsigned int gave_way; /* sessions that the server ended */
	unsigned int handles;
	struct bench_call calls[CALLS_MAX];
	unsigned int num_calls;
	unsigned int calls_allowed;
};

/* change() may modify the configuration before the server is created; may be NULL */
/* Bytes of the store that the next bench_create() makes; 0: no limit. */
extern uint64_t bench_store_bytes;
/* Changes that one transaction of it takes, as in a fleet; 0: any number. */
extern size_t bench_store_max_ops;
struct bench *bench_create(void (*change)(struct sa_config *config));
void bench_destroy(struct bench *b);
int bench_setup(void **state);
int bench_teardown(void **state);

/* Put or remove a record as the operator. */
void bench_put(struct bench *b, const struct sa_change *c);
struct sa_change change_of(uint16_t attribute);
void set_field(struct sa_change *c, const char *name, uint64_t value);
void set_gid(uint8_t *at, uint64_t guid);
void put_port(struct bench *b, uint16_t lid, uint64_t guid, uint8_t type, uint8_t lmc);
void put_port_info(struct bench *b, uint16_t lid, uint8_t port, uint8_t lmc, uint8_t mtu,
	uint8_t speed, uint8_t ext);
void put_link(struct bench *b, uint16_t from, uint8_t from_port, uint16_t to, uint8_t to_port);
void put_pkeys(struct bench *b, uint16_t lid, uint8_t port, const uint16_t *pkeys, unsigned int n);

/* A request. from: a GUID of the fabric, 0: a stranger. trusted: with the right SM_Key. */
struct ask {
	uint8_t version;
	uint8_t method;
	uint16_t attribute;
	uint32_t modifier;
	uint64_t mask; /* as the version numbers it */
	const uint8_t *data; /* of the AdminData area */
	uint32_t data_len;
	uint64_t from;
	uint64_t sm_key;
	bool untrusted;
	uint64_t sa_key;
	uint32_t end_rid;
	uint8_t edit;
	uint32_t payload_len; /* version 1, Config */
	struct mad_body *body;
	uint16_t slid; /* native IB; with .from or .sgid: and a GRH */
	const uint8_t *sgid; /* a GID of no port */
};
/* @return the status of the answer */
uint16_t ask(struct bench *b, const struct ask *a);
/* Send a request without waiting for its answer: see b->answered. */
void ask_only(struct bench *b, const struct ask *a);
/* The server's word on the first packet of a long request of version 1: its status. */
uint16_t bench_admit(struct bench *b, const struct ask *a, bool *trusted);
/* Execute changes and slices until the answer is there. */
void bench_run(struct bench *b);
/* Records of a stream, or in an answer: number n of a type. */
const uint8_t *record_of(struct bench *b, uint16_t attribute, uint8_t version, unsigned int n);
unsigned int records(struct bench *b, uint16_t attribute, uint8_t version);
uint64_t count_of(struct bench *b, unsigned int table);

struct mad_body {
	uint8_t bytes[4096];
	uint64_t len;
	bool taken; /* by the server */
	bool freed; /* by the server, or because it was not taken; once */
};
/* Answer a Report, or let it time out. */
void bench_answer_call(struct bench *b, unsigned int i, enum mad_end end);

#endif
