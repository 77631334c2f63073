/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_SVC_BENCH_H
#define TEST_SVC_BENCH_H

/*
 * Services on the two nodes of test/cm/world.h, with real communication managers, QPs and frames. A
 * service replaces the node's own listener. Its peer is another service, or a connection of the
 * test (start(), struct life).
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
void bench_destroy(
	struct bench *b); /* also with open connections; expects that everything is freed */
int bench_setup(void **state);
int bench_teardown(void **state);

struct svc_env bench_env(struct node *n);
/* Create a service. It listens for WORLD_SERVICE, unless config->active. */
struct service *serve(struct bench *b, struct node *n, const struct svc_config *config);
/* Begin to connect to the peer; no frame is delivered yet. @return svc_worker_connect()'s result */
int begin(struct service *s, cm_id *id, struct error *err);
/* Connect and deliver all frames: the connection is established, or has ended already. */
cm_id dial(struct bench *b, struct service *s);
struct svc_counters figures(const struct service *s);
/* A test's own connection from a to b. */
struct life *call(struct bench *b);
/* Expect that svc_create() refuses the configuration with this text. */
void expect_refusal(struct bench *b, const struct svc_config *config, const char *text);

/* --- a test's own connection --- */

/* Post a work request and exchange frames. @return status of its completion */
enum wc_status act(struct bench *b, struct life *l, const struct send_wr *wr);
/* Send the first len bytes of the node's memory. */
enum wc_status say(struct bench *b, struct life *l, uint32_t len);
/* RDMA from or to the node's memory at offset `at`. */
enum wc_status rdma(struct bench *b, struct life *l, enum wr_opcode opcode, uint32_t at,
	uint32_t len, uint64_t remote, uint32_t rkey);
/* The next message received, at the beginning of the node's memory. Posts another receive. */
struct wc heard(struct life *l);
void expect_nothing_heard(struct life *l);
/* Wait until TIMEWAIT is over, and expect that both sides have freed everything. */
void expect_all_released(struct bench *b);

#endif
