/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What one program on the verbs socket costs another: the time from a post to its completion, alone
 * and beside 62 idle programs and one that posts without end. All are on one worker, whose turns
 * run here, so the figures are the worker's own time: no thread has to wait for a CPU.
 *
 *   client_bench [--short]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "../engine/client_node.h"

#define CLIENTS 64u
#define LENGTH  64u

static struct engine *e;
static struct program client[CLIENTS]; /* 0 and 1 are measured; 2 floods 3 */
static struct ring_queue_reply flood_srq;
static uint32_t samples;
static uint64_t turns;

static void
client_take_completions(struct program *p)
{
	p->completions.index += ring_ready(&p->completions);
	ring_publish(&p->completions);
}

/* Its send queue is full whenever the worker looks. */
static void
client_flood_writes(void)
{
	struct program *p = &client[2];

	while (ring_has_room(&p->send))
		program_post_write(p, &client[3], LENGTH);
	program_ring(p, p->qp.slot);
	client_take_completions(p);
}

/* So is its shared receive queue, with requests that the worker refuses. */
static void
client_flood_receives(void)
{
	struct program *p = &client[2];
	struct ring_queue *queue = &p->queues[flood_srq.slot];

	queue->receive_head = __atomic_load_n(&queue->receive_tail, __ATOMIC_ACQUIRE) + 256;
	program_ring(p, flood_srq.slot);
}

static void
client_flood_both(void)
{
	client_flood_writes();
	client_flood_receives();
}

static void
client_make_flood(void)
{
	struct ring_srq_create create = { .pd = client[2].pd, .max_wr = 256, .max_sge = 2 };
	struct error err;

	assert_ok(engine_client_srq_create(client[2].client, &create, &flood_srq, &err));
	for (uint32_t i = 0; i < flood_srq.receive_num; i++)
		*(struct ring_receive *)(void *)(client[2].segment + flood_srq.receive_entries +
			i * flood_srq.receive_stride) =
			(struct ring_receive){ .num_sge = UINT8_MAX };
}

/*
 * @param flood  what the other program does before each turn; its time is not the worker's
 * @return cycles to the completion
 */
static uint64_t
client_measure(void (*flood)(void))
{
	uint64_t begin = rte_rdtsc(), before;

	program_post_write(&client[0], &client[1], LENGTH);
	program_ring(&client[0], client[0].qp.slot);
	while (ring_ready(&client[0].completions) == 0) {
		if (flood != NULL) {
			before = rte_rdtsc();
			flood();
			begin += rte_rdtsc() - before;
		}
		engine_turn(e, 0, rte_rdtsc());
		turns++;
	}
	begin = rte_rdtsc() - begin;
	client_take_completions(&client[0]);
	return begin;
}

static int
client_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* @return the 99th percentile in microseconds */
static double
client_series(const char *name, void (*flood)(void))
{
	uint64_t *cycles = calloc(samples, sizeof(cycles[0]));
	double us = 1e6 / (double)rte_get_tsc_hz(), p99;
	uint32_t i;

	for (i = 0; cycles != NULL && i < samples / 10; i++)
		client_measure(flood);
	for (i = 0; cycles != NULL && i < samples; i++)
		cycles[i] = client_measure(flood);
	if (cycles == NULL)
		exit(1);
	qsort(cycles, samples, sizeof(cycles[0]), client_compare);
	p99 = (double)cycles[samples * UINT64_C(99) / 100] * us;
	printf("%-40s %8.2f %8.2f us %8.2f turns\n", name, (double)cycles[samples / 2] * us, p99,
		(double)turns / (samples * 1.1));
	turns = 0;
	free(cycles);
	return p99;
}

#define IDLE_TURNS 2000u

/* The median of turns without any work, in nanoseconds. */
static double
client_idle_turn(const char *name)
{
	static uint64_t cycles[IDLE_TURNS];
	uint64_t begin;
	double ns;
	uint32_t i;

	for (i = 0; i < IDLE_TURNS; i++)
		engine_turn(e, 0, rte_rdtsc());
	for (i = 0; i < IDLE_TURNS; i++) {
		begin = rte_rdtsc();
		engine_turn(e, 0, begin);
		cycles[i] = rte_rdtsc() - begin;
	}
	qsort(cycles, IDLE_TURNS, sizeof(cycles[0]), client_compare);
	ns = (double)cycles[IDLE_TURNS / 2] * 1e9 / (double)rte_get_tsc_hz();
	printf("%-40s %8.0f ns a turn\n", name, ns);
	return ns;
}

#define IDLE_QPS 10000u

/* What so many queue pairs that do nothing cost, of one program. */
static void
client_measure_idle_qps(void)
{
	struct ring_qp_create create = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_cq_create cq = { .cqe = 16, .channel = RING_NONE };
	struct verbs_client_limits limits = program_limits;
	struct ring_queue_reply made;
	struct ring_cq_reply queue;
	struct verbs_client *c;
	struct error err;
	double before;

	limits.max_qp = limits.user.max_qp = IDLE_QPS;
	limits.max_wr = 2 * IDLE_QPS;
	limits.ring_bytes = 3 * 4096 * (uint64_t)IDLE_QPS;
	assert_ok(engine_client_create(e, 0, &limits, -1, &c, &err));
	engine_client_set_owner(c, 1, 1);
	assert_ok(engine_client_pd_alloc(c, &create.pd, &err));
	assert_ok(engine_client_cq_create(c, &cq, &queue, &err));
	before = client_idle_turn("a client more, without queue pairs");
	for (uint32_t i = 0; i < IDLE_QPS; i++)
		assert_ok(engine_client_qp_create(c, &create, &made, &err));
	printf("%u idle queue pairs: %.0f ns a turn (aim: 0)\n", IDLE_QPS,
		client_idle_turn("with idle queue pairs") - before);
}

static void
client_open(uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		program_open(e, &client[i], i % 2);
		program_make_objects(&client[i]);
	}
	for (uint32_t i = from; i + 1 < to; i += 2)
		program_connect(&client[i], &client[i + 1]);
}

int
main(int argc, char **argv)
{
	bool brief = argc > 1 && strcmp(argv[1], "--short") == 0;
	double none, alone, idle, worst, receives, both;

	if (argc > 2 || (argc == 2 && !brief)) {
		fprintf(stderr, "usage: client_bench [--short]\n");
		return 2;
	}
	samples = brief ? 1000 : 200000;
	node_workers = 1;
	if (eal_setup(NULL) != 0)
		return 1;
	node_config()->limits.max_qp = 16384;
	e = node_create();
	none = client_idle_turn("no client");
	client_open(0, 2);
	printf("%u-byte Write, from the post to its completion: median, p99, turns of the worker\n",
		LENGTH);
	alone = client_series("alone", NULL);
	client_open(2, CLIENTS);
	client_make_flood();
	printf("64 idle clients: %.0f ns a turn (aim: 40)\n",
		client_idle_turn("64 idle clients") - none);
	idle = client_series("beside 62 that are idle", NULL);
	worst = client_series("beside one that posts Writes without end", client_flood_writes);
	receives = client_series("one that posts receives without end", client_flood_receives);
	both = client_series("one that does both", client_flood_both);
	worst = RTE_MAX(worst, RTE_MAX(receives, both));
	client_measure_idle_qps();
	printf("p99 against alone: %.1f times (aim: 3), beside idle ones %.1f times\n",
		worst / alone, idle / alone);
	return 0;
}
