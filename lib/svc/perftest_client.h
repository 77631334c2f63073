/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_CLIENT_H
#define SVC_PERFTEST_CLIENT_H

/**
 * @file
 * The client's side of perftest's exchange (perftest_exchange.h): what ib_send_bw and its like say
 * to their servers, in which order, and when queue pairs are connected and traffic runs in between.
 * As perftest 6.06 (Debian's 4.5-0.17) was seen to do it, over TCP and with -R.
 *
 *     while ((step = perftest_client_step(c)) != PERFTEST_CLIENT_OVER)
 *             PERFTEST_CLIENT_SAY      perftest_client_say(), perftest_client_hear() the answer
 *             PERFTEST_CLIENT_CONNECT  connect, then perftest_client_done()
 *             PERFTEST_CLIENT_MEASURE  traffic, then perftest_client_done()
 *
 * Pure: bytes in, bytes out.
 */

#include "svc/perftest_exchange.h"

enum perftest_program {
	PERFTEST_SEND_BW,
	PERFTEST_SEND_LAT,
	PERFTEST_WRITE_BW,
	PERFTEST_WRITE_LAT,
	PERFTEST_READ_BW,
	PERFTEST_READ_LAT,
	PERFTEST_ATOMIC_BW,
	PERFTEST_ATOMIC_LAT,
};

enum perftest_client_step {
	PERFTEST_CLIENT_SAY,
	PERFTEST_CLIENT_CONNECT,
	PERFTEST_CLIENT_MEASURE,
	PERFTEST_CLIENT_OVER,
};

/** What the server prints of one-sided tests. */
struct perftest_report {
	uint64_t size, iterations;
	double peak, average; /**< MiB/s */
	double rate; /**< million messages/s */
};

#define PERFTEST_SCRIPT_MAX 24

struct perftest_client {
	/* the caller's */
	bool stream; /**< TCP; else over a connection */
	uint16_t mtu; /**< ours, bytes; from PERFTEST_CLIENT_CONNECT on the smaller of both */
	uint32_t num_qps;
	const struct perftest_dest *ours; /**< .num_qps */
	struct perftest_dest *theirs;
	struct perftest_report report; /**< before the last perftest_client_done() */
	/* for the caller */
	char version[PERFTEST_VERSION_LEN]; /**< theirs */
	uint32_t cycle_buffer; /**< least bytes of their memory, also where messages are smaller */
	/* private */
	char script[PERFTEST_SCRIPT_MAX];
	unsigned int at; /**< in it */
	uint32_t nth; /**< of what is said more than once in a row */
};

/** "ib_send_bw" */
const char *perftest_program_name(enum perftest_program program);

/** The caller's fields are set. */
void perftest_client_begin(struct perftest_client *c, enum perftest_program program);
enum perftest_client_step perftest_client_step(const struct perftest_client *c);
/**
 * What is to be said now.
 * @param message  room of PERFTEST_MESSAGE_MAX
 * @return bytes; the answer has as many
 */
size_t perftest_client_say(const struct perftest_client *c, uint8_t *message);
/** Its answer. @return NULL, or what is wrong with it: the server "..." */
const char *perftest_client_hear(struct perftest_client *c, const uint8_t *answer, size_t len);
/** Connected, measured. */
void perftest_client_done(struct perftest_client *c);

#endif
