/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_CLIENT_NODE_H
#define TEST_ENGINE_CLIENT_NODE_H

/*
 * A program on the verbs socket, without the socket: it has a client of the engine, maps its
 * segment as the provider does, and may write anything there.
 */

#include "engine/clients.h"
#include "node.h"
#include "ring/doorbell.h"
#include "ring/queue.h"

#define PROGRAM_MEMORY    65536u
#define PROGRAM_DEPTH     16u
#define PROGRAM_QP_COOKIE UINT64_C(0x1234567890)

struct program {
	struct verbs_client *client;
	struct ring_hello_reply hello;
	uint8_t *segment;
	uint32_t *doorbells;
	struct ring_queue *queues;
	struct ring_cq *cqs;
	uint32_t next_doorbell;
	/* one of each object */
	uint32_t pd;
	struct ring_cq_reply cq;
	struct ring_queue_reply qp;
	struct ring_mr_reply mr;
	uint8_t *memory; /* the region, as the program sees it */
	uint64_t address;
	struct ring_end send, receive, completions;
};

/* A shared receive queue of a program. */
struct program_srq {
	struct ring_queue_reply made;
	struct ring_end ring;
};

extern const struct verbs_client_limits program_limits;

void program_open(struct engine *e, struct program *p, unsigned int port);
void program_open_within(struct engine *e, struct program *p, unsigned int port,
	const struct verbs_client_limits *limits);
/* A PD, a CQ, a QP, and a region of PROGRAM_MEMORY bytes. */
void program_make_objects(struct program *p);
/* Bring both QPs to RTS, p's on port 0 and q's on port 1. */
void program_connect(struct program *p, struct program *q);
/* Unmap, and destroy the client. */
void program_close(struct program *p);

/* Two programs with objects, connected: p on port 0, q on port 1. */
void programs_start(struct engine *e, struct program *p, struct program *q);
void programs_stop(struct program *p, struct program *q);
/* Send one message from p to q, and compare its bytes. */
void programs_message(struct program *p, struct program *q, uint64_t wr_id);
/* Number of QPs, CQs, PDs and regions of the whole engine. */
unsigned int programs_objects(struct engine *e);

/* Post, without ringing. */
void program_post_write(struct program *p, const struct program *to, uint32_t length);
/* Post, and ring. */
void program_send(struct program *p, uint64_t wr_id, uint64_t offset, uint32_t length);
void program_receive(struct program *p, uint64_t wr_id, uint64_t offset, uint32_t length);
void program_ring(struct program *p, uint32_t slot);
/* Wait for the next completion. */
struct ring_completion program_completion(struct program *p);

/* Make it, and in the place of the program's QP one that receives from it. */
void program_make_srq(struct program *p, struct program_srq *srq, uint32_t max_wr, uint64_t cookie);
/* Another QP of this program that receives from it. */
void program_make_qp_of_srq(struct program *p, const struct program_srq *srq,
	struct ring_queue_reply *qp);
/* Post, and ring. */
void program_post_srq(struct program *p, struct program_srq *srq, uint64_t wr_id);
void program_arm_srq(struct program *p, const struct program_srq *srq, uint32_t limit);
/* The armed limit; 0: none. */
uint32_t program_srq_limit(struct program *p, const struct program_srq *srq);

#endif
