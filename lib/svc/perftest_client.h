/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_CLIENT_H
#define SVC_PERFTEST_CLIENT_H

/**
 * @file
 * The client's side of perftest's exchange (perftest_exchange.h): the messages that ib_send_bw and
 * the other programs send, their order, and the points at which QPs are connected and traffic runs.
 * Observed with perftest 6.06 (Debian's 4.5-0.17), over TCP and with -R.
 *
 *     while ((step = perftest_client_step(c)) != PERFTEST_CLIENT_OVER)
 *             PERFTEST_CLIENT_SAY      perftest_client_say(), perftest_client_hear() the answer
 *             PERFTEST_CLIENT_CONNECT  connect, then perftest_client_done()
 *             PERFTEST_CLIENT_MEASURE  traffic, then perftest_client_done()
 *
 * The functions only transform bytes; they do no I/O.
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

/** The result that the server of a one-sided test prints. */
struct perftest_report {
	uint64_t size, iterations;
	double peak, average; /**< MiB/s */
	double rate; /**< million messages/s */
};

#define PERFTEST_SCRIPT_MAX 24

struct perftest_client {
	/* set by the caller */
	bool stream; /**< over TCP; else over a connection */
	uint16_t mtu; /**< ours, bytes; from PERFTEST_CLIENT_CONNECT on the smaller of both */
	uint32_t num_qps;
	const struct perftest_dest *ours; /**< .num_qps */
	struct perftest_dest *theirs;
	struct perftest_report report; /**< before the last perftest_client_done() */
	/* results for the caller */
	char version[PERFTEST_VERSION_LEN]; /**< of the server */
	uint32_t cycle_buffer; /**< least size of the server's memory in bytes */
	/* private */
	char script[PERFTEST_SCRIPT_MAX];
	unsigned int at; /**< index in .script */
	uint32_t nth; /**< number of repetitions of the current step */
};

/** "ib_send_bw" */
const char *perftest_program_name(enum perftest_program program);

/** Call after the caller's fields are set. */
void perftest_client_begin(struct perftest_client *c, enum perftest_program program);
enum perftest_client_step perftest_client_step(const struct perftest_client *c);
/**
 * Write the next message.
 * @param message  room for PERFTEST_MESSAGE_MAX bytes
 * @return its length, which is also that of the answer
 */
size_t perftest_client_say(const struct perftest_client *c, uint8_t *message);
/**
 * Process the answer. @return NULL, or what is wrong with it, as the end of a sentence: the server
 * "..."
 */
const char *perftest_client_hear(struct perftest_client *c, const uint8_t *answer, size_t len);
/** The caller has connected the QPs, or measured. */
void perftest_client_done(struct perftest_client *c);

#endif
