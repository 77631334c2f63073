/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_NODE_H
#define TEST_ENGINE_NODE_H

/*
 * A running engine with the built-in default configuration: two workers, ports 0 and 1 connected to
 * each other, no hugepages, no NIC. Frames sent by worker w arrive at worker w, so two QPs on one
 * worker never need the hand-off, and two QPs on different workers always do.
 */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "engine/verbs.h"

#define BUF_SIZE (1u << 20)

/* One end of a connection, with a region of its own. */
struct end {
	uint32_t pd;
	uint32_t cq;
	uint32_t qpn;
	struct mem_mr_info mr;
	uint8_t traffic_class; /* of its path; set before end_connect() */
	/* native IB, set before end_connect() */
	uint8_t path_bits; /* of its port's LID */
	bool grh;
};

struct pair {
	struct end a; /* on port 0 */
	struct end b; /* on port 1 */
};

extern unsigned int node_workers; /* 2; a test may change it before eal_setup() */
/* cmocka fixtures: the EAL once, an engine per test. */
int eal_setup(void **state);
int eal_teardown(void **state);
/* The default without services. A test changes it before node_start(). */
struct engine_config *node_config(void);
/*
 * The same with native IB ports: either without LIDs, as before a subnet manager has configured
 * them, or Active with LIDs 1 and 2, where port 1's LID is the subnet manager's.
 */
struct engine_config *node_config_ib(bool active);
struct engine *node_create(void); /* not started: the test polls it with engine_turn() */
struct engine *node_start(void);
void node_stop(struct engine *e, unsigned int drain_ms);

/* Fail with the verb's error text. */
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		err.text[0] = '\0';                                                                \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

void end_create(struct engine *e, struct end *end, int worker);
void end_destroy(struct engine *e, struct end *end);
/*
 * Bring the QP to RTS, connected to peer's QP. `port` is the end's port; the peer uses the other.
 */
void end_connect(struct engine *e, struct end *end, uint16_t port, const struct end *peer);
void pair_create(struct engine *e, struct pair *p, int worker_a, int worker_b);
void pair_destroy(struct engine *e, struct pair *p);

/* Post one signaled work request for [local, local + len) of the region. */
int post(struct engine *e, struct end *end, enum wr_opcode op, const struct end *peer,
	uint64_t local, uint64_t remote, uint32_t len, uint64_t wr_id);
void post_recvs(struct engine *e, struct end *end, uint64_t local, uint32_t len, unsigned int n);
/* Wait for n completions. @return how many came: n, or fewer after ms milliseconds */
unsigned int wait_wc(struct engine *e, uint32_t cq, struct wc *wc, unsigned int n, unsigned int ms);
#define expect_wc(e, end, n)                                                                       \
	do {                                                                                       \
		struct wc wcs_[64];                                                                \
		unsigned int i_, got_ = wait_wc(e, (end)->cq, wcs_, n, 30000);                     \
		assert_int_equal(got_, n);                                                         \
		for (i_ = 0; i_ < got_; i_++)                                                      \
			assert_string_equal(wc_status_name(wcs_[i_].status), "SUCCESS");           \
	} while (0)
void fill(uint8_t *buf, size_t len, uint32_t seed);
/* Wait for a condition for up to 30 s. */
#define eventually(condition)                                                                      \
	do {                                                                                       \
		bool met_ = false;                                                                 \
		int ms_;                                                                           \
		for (ms_ = 0; ms_ < 30000 && !(met_ = (condition)); ms_++)                         \
			pause_ms(1);                                                               \
		assert_true(met_);                                                                 \
	} while (0)
void pause_ms(unsigned int ms);
/* Wait until both ports are up, and the SA's records, if there is one, say so. */
void ports_up(struct engine *e);
/* Put or remove records of the SA, all or none. */
void change_records(struct engine *e, const struct sa_change *changes, size_t n);
uint64_t verdict_total(const struct engine *e, enum verdict v);

#endif
