/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_PMA_BENCH_H
#define TEST_PMA_BENCH_H

/*
 * The agent of a channel adapter with three ports, behind test/mad's manager, whose time is in
 * nanoseconds. Requests arrive at port number 1. The test sets the ports' totals.
 */

#include "harness.h"
#include "pma/pma.h"

#define BENCH_PORTS 3

#define CLASS_PORT_INFO    0x01
#define SAMPLES_CONTROL    0x10
#define SAMPLES_RESULT     0x11
#define PORT_COUNTERS      0x12
#define PORT_COUNTERS_EXT  0x1D
#define SAMPLES_RESULT_EXT 0x1E

struct bench {
	struct harness *h;
	struct pma *pma;
	struct pma_totals totals[BENCH_PORTS];
};

int bench_setup(void **state);
int bench_teardown(void **state);
/* The answer's data for this request data (64 bytes or more, or NULL). @param status  expected */
const uint8_t *ask(struct bench *b, uint8_t method, uint16_t attribute, const uint8_t *data,
	uint16_t status);
/* For attributes that begin with PortSelect: the request has only that. */
const uint8_t *get_port(struct bench *b, uint16_t attribute, uint8_t port, uint16_t status);

#endif
