/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_LIVE_PAIR_H
#define TEST_LIVE_PAIR_H

/*
 * test/mad's two managers: a has the liveness agent; the test plays b, or b is a requester.
 */

#include "harness.h"
#include "live/live.h"

struct pair {
	struct harness *h;
	struct live *live;
	/* result of an ask() */
	uint8_t *data;
	uint64_t len;
	uint8_t mad[MAD_LEN];
	struct mad_result result;
	unsigned int done;
};

struct pair_config {
	struct harness_config harness; /* .bare is set; limits: pair_limits by default */
	struct live_limits limits; /* live_limits_default if all zero */
	const struct live_cpu *cpu;
	unsigned int num_cpus;
};
extern const struct mad_limits pair_limits; /* room for an echo of 1 MiB */

struct pair *pair_create(const struct pair_config *config); /* NULL: a and a requester */
void pair_destroy(struct pair *p);
int pair_setup(void **state);
int pair_scripted_setup(void **state);
int pair_teardown(void **state);

/* Bytes in hexadecimal, spaces between. @return how many */
size_t hex(uint8_t *out, const char *text);
/*
 * A request of class 0x34: this method and type, TID 6, Identifier 0x1234, Sequence 1. @return mad
 */
uint8_t *live_mad(uint8_t *mad, uint8_t method, uint8_t type);
/* b sends it; the 256 bytes of the answer must be these. */
void expect_answer(struct pair *p, const uint8_t *request, const uint8_t *answer);
/* b sends it; the answer has this method and status, no data. */
void expect_status(struct pair *p, const uint8_t *request, uint8_t method, uint16_t status);
/* b sends it; there is no answer, and the packet gets this verdict. */
void expect_no_answer(struct pair *p, const uint8_t *request, enum verdict verdict);

/*
 * b sends a request and waits for its end, at most 100 s. @p many: data of a multi-packet request
 * from Type on, or NULL
 */
void ask_for(struct pair *p, const uint8_t *mad, const uint8_t *many, uint64_t len, uint8_t flags);
/* live_build(), ask_for(), live_check(). */
void ask(struct pair *p, const struct live_request *req, struct live_reply *reply);

#endif
