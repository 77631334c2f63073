/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What one program on the verbs socket costs another: the time from a post to its completion, alone
 * and beside 62 idle programs and one that posts without end. All are on one worker, whose turns
 * run here, so the figures are the worker's own time: no thread has to wait for a CPU. Each round
 * measures all rows once, with an engine of its own; what is printed are medians of the rounds, and
 * the lowest and highest. The exit status is 1 if a median of the p99 misses its aim, but not with
 * --short, whose few samples judge nothing.
 *
 *   client_bench [--short] [--rounds N]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "../engine/client_node.h"
#include "engine/clients_private.h"

#define CLIENTS 64u
#define LENGTH  64u
#define P99_AIM 3.0 /* of a program beside one that posts without end, against alone */

static struct engine *e;
static struct program client[CLIENTS]; /* 0 and 1 are measured; 2 floods 3 */
static struct ring_queue_reply flood_srq;
static uint32_t samples, rounds;
static uint64_t turns;

enum { ALONE, BESIDE_IDLE, BESIDE_WRITES, BESIDE_RECEIVES, BESIDE_BOTH, SERIES };

static const char *const series_names[SERIES] = {
	[ALONE] = "alone",
	[BESIDE_IDLE] = "beside 62 that are idle",
	[BESIDE_WRITES] = "beside one that posts Writes without end",
	[BESIDE_RECEIVES] = "one that posts receives without end",
	[BESIDE_BOTH] = "one that does both",
};

#define MOST_ROUNDS    1000u
#define DEFAULT_ROUNDS 9u

/* Of each round. */
static struct {
	double median[MOST_ROUNDS], p99[MOST_ROUNDS], turns[MOST_ROUNDS];
	double ratio[MOST_ROUNDS]; /* of p99 to that of ALONE in the same round */
} series[SERIES];
static double no_client_ns[MOST_ROUNDS], idle_clients_ns[MOST_ROUNDS], idle_qps_ns[MOST_ROUNDS];

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

static void
client_series(int which, uint32_t round, void (*flood)(void))
{
	uint64_t *cycles = calloc(samples, sizeof(cycles[0]));
	double us = 1e6 / (double)rte_get_tsc_hz();
	uint32_t i;

	if (cycles == NULL)
		exit(1);
	turns = 0;
	for (i = 0; i < samples / 10; i++)
		client_measure(flood);
	for (i = 0; i < samples; i++)
		cycles[i] = client_measure(flood);
	qsort(cycles, samples, sizeof(cycles[0]), client_compare);
	series[which].median[round] = (double)cycles[samples / 2] * us;
	series[which].p99[round] = (double)cycles[samples * UINT64_C(99) / 100] * us;
	series[which].turns[round] = (double)turns / (samples * 1.1);
	free(cycles);
}

#define IDLE_TURNS 2000u

/* The median of turns without any work, in nanoseconds. */
static double
client_idle_turn(void)
{
	static uint64_t cycles[IDLE_TURNS];
	uint64_t begin;
	uint32_t i;

	for (i = 0; i < IDLE_TURNS; i++)
		engine_turn(e, 0, rte_rdtsc());
	for (i = 0; i < IDLE_TURNS; i++) {
		begin = rte_rdtsc();
		engine_turn(e, 0, begin);
		cycles[i] = rte_rdtsc() - begin;
	}
	qsort(cycles, IDLE_TURNS, sizeof(cycles[0]), client_compare);
	return (double)cycles[IDLE_TURNS / 2] * 1e9 / (double)rte_get_tsc_hz();
}

/* No turn follows: whoever destroys a region does not wait for one. */
static void
client_worker_stops(void)
{
	rte_rcu_qsbr_thread_offline(e->rcu, 0);
}

#define IDLE_QPS 10000u

/* @return what so many queue pairs that do nothing cost, of one program, in nanoseconds a turn */
static double
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
	before = client_idle_turn();
	for (uint32_t i = 0; i < IDLE_QPS; i++)
		assert_ok(engine_client_qp_create(c, &create, &made, &err));
	before = client_idle_turn() - before;
	client_worker_stops();
	engine_client_destroy(c);
	return before;
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

static void
client_close(void)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		program_close(&client[i]);
	node_stop(e, 0);
}

static void
client_bench_round(uint32_t round)
{
	e = node_create();
	no_client_ns[round] = client_idle_turn();
	client_open(0, 2);
	client_series(ALONE, round, NULL);
	client_open(2, CLIENTS);
	client_make_flood();
	idle_clients_ns[round] = client_idle_turn() - no_client_ns[round];
	client_series(BESIDE_IDLE, round, NULL);
	client_series(BESIDE_WRITES, round, client_flood_writes);
	client_series(BESIDE_RECEIVES, round, client_flood_receives);
	client_series(BESIDE_BOTH, round, client_flood_both);
	for (int i = 0; i < SERIES; i++)
		series[i].ratio[round] = series[i].p99[round] / series[ALONE].p99[round];
	idle_qps_ns[round] = client_measure_idle_qps();
	client_close();
}

static int
client_compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* @return the median; the values are sorted afterwards */
static double
client_median(double *values)
{
	qsort(values, rounds, sizeof(values[0]), client_compare_values);
	return values[rounds / 2];
}

/* @return the median */
static double
client_print_row(const char *name, double *values, int digits)
{
	double median = client_median(values);

	printf("%-40s %8.*f (%.*f to %.*f)\n", name, digits, median, digits, values[0], digits,
		values[rounds - 1]);
	return median;
}

/* @return true if the aim of the p99 is met */
static bool
client_print(void)
{
	bool met = true;

	printf("%u-byte Write, from the post to its completion: median, p99, turns of the worker\n",
		LENGTH);
	for (int i = 0; i < SERIES; i++)
		printf("%-40s %8.2f %8.2f us %8.2f turns\n", series_names[i],
			client_median(series[i].median), client_median(series[i].p99),
			client_median(series[i].turns));
	printf("Nanoseconds of a turn without work: median (lowest to highest of %u rounds)\n",
		rounds);
	client_print_row("no client", no_client_ns, 0);
	client_print_row("64 idle clients beyond it (aim 40)", idle_clients_ns, 0);
	client_print_row("10000 idle queue pairs (aim 0)", idle_qps_ns, 0);
	printf("p99 against alone (aim %.0f), in one round: median (lowest to highest)\n", P99_AIM);
	for (int i = BESIDE_IDLE; i < SERIES; i++)
		met &= client_print_row(series_names[i], series[i].ratio, 1) <= P99_AIM;
	return met;
}

static bool is_short;

static bool
client_options(int argc, char **argv)
{
	int i;

	samples = 20000;
	rounds = DEFAULT_ROUNDS;
	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--short") == 0) {
			is_short = true;
			samples = 1000;
			rounds = 2;
		} else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
			rounds = (uint32_t)atoi(argv[++i]);
		} else {
			return false;
		}
	return rounds > 0 && rounds <= MOST_ROUNDS;
}

int
main(int argc, char **argv)
{
	if (!client_options(argc, argv)) {
		fprintf(stderr, "usage: client_bench [--short] [--rounds N]\n");
		return 2;
	}
	node_workers = 1;
	if (eal_setup(NULL) != 0)
		return 1;
	node_config()->limits.max_qp = 16384;
	for (uint32_t i = 0; i < rounds; i++)
		client_bench_round(i);
	return client_print() || is_short ? 0 : 1;
}
