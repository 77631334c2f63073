/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Messages of programs on the verbs socket, for valgrind --tool=callgrind
 * --toggle-collect=client_messages (count_instructions.py): four pairs of programs, whose send
 * queues are full whenever the worker looks. The clock advances by a fixed step per turn.
 *
 * And turns in which nothing happens: without a program (idle_turn_empty) and with 64 idle ones
 * (idle_turn_clients); or with one that has no queue pair (idle_turn_clients), and then has 10,000
 * that nobody uses (idle_turn_qps).
 *
 *   client_count send|write MESSAGES
 *   client_count clients|qps TURNS
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "../engine/client_node.h"

#define PAIRS   4u
#define LENGTH  64u
#define TURN_US 2

static struct engine *e;
static struct program sender[PAIRS], receiver[PAIRS];
static uint64_t now, step, completed;
static bool sends;

static uint64_t
count_clock(void)
{
	return now;
}

static void
count_post_send(struct program *p, const struct program *to)
{
	struct ring_send *wqe = ring_next_free(&p->send);

	*wqe = (struct ring_send){
		.opcode = sends ? WR_SEND : WR_RDMA_WRITE,
		.num_sge = 1,
		.remote_addr = to->address,
		.rkey = to->mr.key,
	};
	*(struct ring_sge *)(wqe + 1) = (struct ring_sge){ p->address, LENGTH, p->mr.key };
	p->send.index++;
}

static void
count_post_receive(struct program *p)
{
	struct ring_receive *wqe = ring_next_free(&p->receive);

	*wqe = (struct ring_receive){ .num_sge = 1 };
	*(struct ring_sge *)(wqe + 1) = (struct ring_sge){ p->address, LENGTH, p->mr.key };
	p->receive.index++;
}

/* @return how many; all of them are successes */
static uint32_t
count_take(struct program *p)
{
	uint32_t n = ring_ready(&p->completions), i;

	for (i = 0; i < n; i++, p->completions.index++) {
		const struct ring_completion *c = ring_oldest(&p->completions);

		assert_int_equal(c->status, 0);
	}
	ring_publish(&p->completions);
	return n;
}

/* Post as much as there is room for at both ends, the receives first. */
static void
count_fill(uint32_t i)
{
	while (sends && ring_has_room(&receiver[i].receive))
		count_post_receive(&receiver[i]);
	ring_publish(&receiver[i].receive);
	program_ring(&receiver[i], receiver[i].qp.slot);
	while (ring_has_room(&sender[i].send))
		count_post_send(&sender[i], &receiver[i]);
	ring_publish(&sender[i].send);
	program_ring(&sender[i], sender[i].qp.slot);
}

/* A function of its own, so that callgrind counts from here on. */
static void __rte_noinline
client_messages(uint64_t n)
{
	uint64_t end = completed + n;
	uint32_t i;

	while (completed < end) {
		for (i = 0; i < PAIRS; i++)
			count_fill(i);
		engine_turn(e, 0, now);
		now += step;
		for (i = 0; i < PAIRS; i++) {
			completed += count_take(&sender[i]);
			count_take(&receiver[i]);
		}
	}
}

/* --- idle turns --- */

#define IDLE_CLIENTS 64u
#define IDLE_QPS     10000u

/*
 * Functions of their own, so that callgrind counts what each calls. They differ, or the compiler
 * would make one of them.
 */
static volatile int idle_turn;

static void __rte_noinline
idle_turn_empty(void)
{
	idle_turn = 0;
	engine_turn(e, 0, now);
	now += step;
}

static void __rte_noinline
idle_turn_clients(void)
{
	idle_turn = 1;
	engine_turn(e, 0, now);
	now += step;
}

static void __rte_noinline
idle_turn_qps(void)
{
	idle_turn = 2;
	engine_turn(e, 0, now);
	now += step;
}

static void
idle_turns(void (*turn)(void), uint64_t n)
{
	while (n-- > 0)
		turn();
}

/* Turns for what new objects cause once. */
static void
idle_settle(void)
{
	for (uint32_t i = 0; i < 1000; i++) {
		engine_turn(e, 0, now);
		now += step;
	}
}

static void
idle_open_clients(void)
{
	static struct program idle[IDLE_CLIENTS];

	for (uint32_t i = 0; i < IDLE_CLIENTS; i++) {
		program_open(e, &idle[i], i % 2);
		program_make_objects(&idle[i]);
	}
}

static struct program idle_owner;

static void
idle_open_owner(void)
{
	struct verbs_client_limits limits = program_limits;

	limits.max_qp = limits.user.max_qp = IDLE_QPS;
	limits.max_wr = 2 * IDLE_QPS;
	limits.ring_bytes = 3 * 4096 * (uint64_t)IDLE_QPS;
	program_open_within(e, &idle_owner, 0, &limits);
	engine_client_set_owner(idle_owner.client, 1, 1);
}

static void
idle_make_qps(void)
{
	struct ring_qp_create create = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_cq_create cq = { .cqe = 16, .channel = RING_NONE };
	struct error err;

	assert_ok(engine_client_pd_alloc(idle_owner.client, &create.pd, &err));
	assert_ok(engine_client_cq_create(idle_owner.client, &cq, &idle_owner.cq, &err));
	create.send_cq = create.recv_cq = idle_owner.cq.slot;
	for (uint32_t i = 0; i < IDLE_QPS; i++)
		assert_ok(
			engine_client_qp_create(idle_owner.client, &create, &idle_owner.qp, &err));
}

static void __rte_noinline
client_idle(bool qps, uint64_t n)
{
	idle_settle();
	idle_turns(idle_turn_empty, n);
	if (qps)
		idle_open_owner();
	else
		idle_open_clients();
	idle_settle();
	idle_turns(idle_turn_clients, n);
	if (!qps)
		return;
	idle_make_qps();
	idle_settle();
	idle_turns(idle_turn_qps, n);
}

int
main(int argc, char **argv)
{
	uint64_t n = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, before;
	struct engine_config *config;
	uint32_t i;
	bool idle;

	sends = argc == 3 && strcmp(argv[1], "send") == 0;
	idle = argc == 3 && (strcmp(argv[1], "clients") == 0 || strcmp(argv[1], "qps") == 0);
	if (n == 0 || (!sends && !idle && strcmp(argv[1], "write") != 0)) {
		fprintf(stderr, "usage: client_count send|write MESSAGES | clients|qps TURNS\n");
		return 2;
	}
	node_workers = 1;
	if (eal_setup(NULL) != 0)
		return 1;
	now = rte_rdtsc();
	step = TURN_US * (rte_get_tsc_hz() / 1000000);
	config = node_config();
	config->clock = count_clock;
	if (idle)
		config->limits.max_qp = 16384;
	e = node_create();
	if (idle) {
		client_idle(strcmp(argv[1], "qps") == 0, n);
		printf("%lu\n", (unsigned long)n);
		return 0;
	}
	for (i = 0; i < PAIRS; i++) {
		program_open(e, &sender[i], 0);
		program_open(e, &receiver[i], 1);
		program_make_objects(&sender[i]);
		program_make_objects(&receiver[i]);
		program_connect(&sender[i], &receiver[i]);
	}
	before = completed;
	client_messages(n);
	printf("%lu\n", (unsigned long)(completed - before));
	return 0;
}
