/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LIVE_PRIVATE_H
#define LIVE_PRIVATE_H

/**
 * @file
 * Private to lib/live: the agent's state, and the functions its files share.
 */

#include <rte_common.h>

#include "base/token_bucket.h"
#include "live/live.h"
#include "port/port.h"
#include "wire/bytes.h"

/* offsets in the vendor data, which begins with Type */
/* clang-format off */
#define AT(mad_offset) ((mad_offset) - VENDOR_OFF_DATA)
/* clang-format on */
#define LIVE_HEADER AT(LIVE_OFF_DATA) /* Type, reserved, Identifier, Sequence */

#define LIVE_STREAMS     1024 /* multi-packet answers in progress at once */
#define LIVE_STREAM_HEAD 24 /* bytes that the answer may change, up to Transmit */
/* the answer of ibsysstat has a line for each CPU, and a NUL */
#define LIVE_CPU_LINE (sizeof("cpu 255: model  MHZ \n") + sizeof(struct live_cpu))

/* A multi-packet request that is being sent back. */
struct live_stream {
	struct live *live;
	struct live_stream *next_free;
	struct mad_body *body;
	uint8_t head[LIVE_STREAM_HEAD];
};

struct live {
	struct live_config config;
	struct mad_method methods[MAD_RESPONSE];
	/* classes with single-packet requests only */
	struct mad_method single_methods[MAD_RESPONSE];
	/* source.c */
	struct token_bucket *sources;
	uint32_t source_mask;
	uint64_t source_key;
	/* clock.c: the wall clock */
	uint64_t clock_at;
	uint32_t clock_ms;
	bool clock_set;
	/* echo.c */
	struct live_stream *streams, *streams_free;
	/* sysstat.c */
	char *cpu_text;
	uint32_t cpu_text_len; /* with its NUL */
	struct live_counters counters;
};

#define live_count(l, name, n)                                                                     \
	__atomic_store_n(&(l)->counters.name, (l)->counters.name + (n), __ATOMIC_RELAXED)

/* --- serve.c --- */

/* Register the three classes. @retval negative errno */
int live_serve_init(struct live *l);

/* --- answer.c --- */

/* Do not answer the request; count its packet as `verdict`. */
enum mad_outcome live_silent(struct mad_request *req, enum verdict verdict);
/* Answer with a status; but never answer a Send so, because that could start a loop. */
enum mad_outcome live_status(struct mad_request *req, uint16_t status);

/* --- check.c --- */

/* Builds with RTE_ENABLE_ASSERT check the streams after each event; others contain none of it. */
#ifdef RTE_ENABLE_ASSERT
void live_streams_check(const struct live *l);
#else
#define live_streams_check(l) RTE_SET_USED(l)
#endif

/* --- source.c --- */

int live_source_init(struct live *l);
/* Anti-flood: true if the source of this request may send one more now. */
bool live_source_take(struct live *l, const struct mad_request *req);

/* --- the classes --- */

int live_echo_init(struct live *l);
enum mad_outcome live_echo_request(struct live *l, struct mad_request *req);
/* mad_agent.departs of class 0x34: write the Transmit stamp. */
void live_departs(void *arg, uint8_t *mad, uint64_t now);
enum mad_outcome live_ibping_request(struct live *l, struct mad_request *req);
int live_sysstat_init(struct live *l);
enum mad_outcome live_sysstat_request(struct live *l, struct mad_request *req);

#endif
