/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_VERBS_PROBE_H
#define TEST_VERBS_PROBE_H

/*
 * A verbs program of our own, which polca-run runs on a live appliance (dts/suites/verbs): it does
 * what no distribution's program does, and checks each answer. It writes a line for each step that
 * the test waits for, reads a line where it waits for the test, and ends with 1 at the first thing
 * that is not as expected.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#define expect(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			probe_fail(__FILE__, __LINE__, #condition);                                \
	} while (0)

/* One side: a device, and one of each object. */
struct side {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory;
};

#define SIDE_DEPTH 32
#define SIDE_BYTES ((size_t)64 << 10)

_Noreturn void probe_fail(const char *file, int line, const char *condition);
/* Write a line, at once. */
void probe_say(const char *line);
/* Wait for this line. */
void probe_hear(const char *line);

struct ibv_device *find_device(const char *name);
/* Objects on an open device; the memory may be there already. */
void side_make(struct side *s, struct ibv_context *context, uint8_t *memory);
struct ibv_qp *side_make_qp(struct side *s, bool all_signaled);
void probe_side_destroy(struct side *s);
/* Of queue pairs; 7 unless changed. */
extern uint8_t probe_retries;
/* Of the first packet in both directions; 0 unless changed. */
extern uint32_t probe_psn;
/* Bring a queue pair to this state, INIT, RTR or RTS, towards another one. */
void qp_advance(struct ibv_qp *qp, struct ibv_qp *peer, enum ibv_qp_state to);
void side_post_receive(struct side *s, uint64_t wr_id);
void side_post_send(struct side *s, uint64_t wr_id, bool signaled);
/* Likewise, where the queue may be full: errno value. */
int side_try_receive(struct side *s, uint64_t wr_id);
int side_try_send(struct side *s, uint64_t wr_id, bool signaled);
/* Wait for the next completion. */
struct ibv_wc next_completion(struct ibv_cq *cq);

int probe_death(int argc, char **argv);
int probe_acknowledge(int argc, char **argv);
int probe_close(int argc, char **argv);
int probe_limits(int argc, char **argv);
int probe_victim(int argc, char **argv);
int probe_survivor(int argc, char **argv);
int probe_stranger(int argc, char **argv);
int probe_windows(int argc, char **argv);
int probe_wr(int argc, char **argv);
int probe_shared(int argc, char **argv);
int probe_swapped(int argc, char **argv);
int probe_left(int argc, char **argv);
int probe_refused(int argc, char **argv);
int probe_reset(int argc, char **argv);
int probe_unsupported(int argc, char **argv);

#endif
