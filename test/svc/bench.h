/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SVC_BENCH_H
#define TEST_SVC_BENCH_H

/*
 * Services on test/cm's world: real communication managers, queue pairs and frames. A service
 * listens in place of the node's own listener; its peer is another service, or a test's own
 * connection (start(), struct life).
 */

#include "../cm/world.h"
#include "svc/svc.h"

struct service {
	struct node *node;
	struct svc *svc;
	struct svc_worker *w;
};

#define BENCH_SERVICES 4
struct bench {
	struct world *w;
	struct service services[BENCH_SERVICES];
	unsigned int num_services;
};

struct bench *bench_create(const struct world *like);
void bench_destroy(struct bench *b); /* whatever stands; everything must come back */
int bench_setup(void **state);
int bench_teardown(void **state);

struct svc_env bench_env(struct node *n);
/* Listens for WORLD_SERVICE, unless config->active. */
struct service *serve(struct bench *b, struct node *n, const struct svc_config *config);
/* Connect to the peer; nothing is delivered. @return what svc_worker_connect() says */
int begin(struct service *s, cm_id *id, struct error *err);
/* As a whole: it stands, or the service is through with it. */
cm_id dial(struct bench *b, struct service *s);
struct svc_counters figures(const struct service *s);
/* A test's own connection from a to b. */
struct life *call(struct bench *b);
/* What svc_create() says about it. */
void expect_refusal(struct bench *b, const struct svc_config *config, const char *text);

/* --- a test's own connection --- */

/* Post, and let it happen. @return status of the completion */
enum wc_status act(struct bench *b, struct life *l, const struct send_wr *wr);
/* One Send of the first len bytes of the node's memory. */
enum wc_status say(struct bench *b, struct life *l, uint32_t len);
/* RDMA at the node's memory from byte `at` on. */
enum wc_status rdma(struct bench *b, struct life *l, enum wr_opcode opcode, uint32_t at,
	uint32_t len, uint64_t remote, uint32_t rkey);
/* The next message received (always at the node's memory's begin); a receive is posted anew. */
struct wc heard(struct life *l);
void expect_nothing_heard(struct life *l);
/* TIMEWAIT passes: nothing of either side is left. */
void expect_all_released(struct bench *b);

#endif
