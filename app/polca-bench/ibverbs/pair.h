/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_IBVERBS_PAIR_H
#define BENCH_IBVERBS_PAIR_H

/**
 * @file
 * --verbs: this process is a program of libibverbs on the devices of a running polca. Both ends of
 * its queue pairs are here; polca's worker does the protocol of both.
 */

#include <infiniband/verbs.h>

#include "base/error.h"
#include "options.h"

enum { VERBS_REQUESTER, VERBS_RESPONDER, VERBS_SIDES };

#define VERBS_INLINE 64 /* bytes of a message that calls.c posts inline */

/** One end: a device, and its objects. */
struct verbs_side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *receive_cq;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct ibv_qp **qp; /**< o->qps of them */
	uint64_t next; /**< offset of the next message */
};

struct verbs_pair {
	const struct bench_options *o;
	struct verbs_side side[VERBS_SIDES];
	uint64_t bytes; /**< of each side's region */
	uint32_t stride; /**< from one message to the next */
	/* of the requester's queue pairs */
	uint32_t *credit; /**< requests that may be posted */
	uint32_t *since_signal; /**< requests posted since the last signaled one */
	bool stopping; /**< post nothing new */
	uint64_t done; /**< messages completed */
};

/** Open the devices and connect the queue pairs; verbs_pair_destroy() also after errors. */
int verbs_pair_create(struct verbs_pair *p, const struct bench_options *o, struct error *err);
void verbs_pair_destroy(struct verbs_pair *p);
/** The offset of a side's next message. */
uint64_t verbs_next(const struct verbs_pair *p, struct verbs_side *s);
int verbs_post_receive(struct verbs_pair *p, unsigned int side, uint32_t qp, struct error *err);
int verbs_post_send(struct verbs_pair *p, unsigned int side, uint32_t qp, enum ibv_wr_opcode opcode,
	unsigned int flags, struct error *err);
/** Wait for the next completion. @return 0, or the error of ibv_poll_cq() or of the request */
int verbs_wait(struct ibv_cq *cq, struct ibv_wc *wc, struct error *err);
/** 0 if @p wc is a success. */
int verbs_check(const struct ibv_wc *wc, struct error *err);

#endif
