/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients move by themselves between three workers. The test runs each worker's turns itself. In
 * most tests no worker runs: a model says how busy each would be with its clients' load.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "client_node.h"
#include "engine/clients_private.h"
#include "engine/rehome.h"

#define WORKERS     3u
#define CLIENTS_MAX 18u

static struct engine *e;
static struct program p[CLIENTS_MAX];
static uint64_t balance_now = 1;

static int
balance_setup(void **state)
{
	(void)state;
	node_config()->rehome = true;
	e = node_create();
	return 0;
}

static int
balance_teardown(void **state)
{
	(void)state;
	engine_destroy(e);
	return 0;
}

static void
place(const struct program *q, unsigned int worker)
{
	struct error err;

	assert_ok(engine_client_rehome(e, q->client->id, worker, &err));
	assert_int_equal(q->client->worker, worker);
}

static void
set_loads(uint64_t first, uint64_t second, uint64_t third)
{
	e->worker[0]->stats.load = first;
	e->worker[1]->stats.load = second;
	e->worker[2]->stats.load = third;
}

/* Another look, a second after the one before. */
static void
next_look(void)
{
	balance_now += rte_get_tsc_hz();
	clients_balance(e, balance_now);
}

/* --- the model: what each client asks for, in 1/256 of a worker --- */

static unsigned int num_clients, cost[CLIENTS_MAX];

static void
client_add(unsigned int worker, unsigned int asks)
{
	program_open(e, &p[num_clients], 0);
	place(&p[num_clients], worker);
	cost[num_clients++] = asks;
}

static void
clients_close(void)
{
	while (num_clients > 0)
		program_close(&p[--num_clients]);
}

static unsigned int
asked_of(unsigned int worker)
{
	unsigned int i, all = 0;

	for (i = 0; i < num_clients; i++)
		all += p[i].client->worker == worker ? cost[i] : 0;
	return all;
}

/* A second in which each client works as far as its worker has time. */
static void
model_second(void)
{
	unsigned int w, i, tick;
	uint64_t load, *mean;

	for (w = 0; w < WORKERS; w++) {
		load = RTE_MIN(asked_of(w), (unsigned int)REHOME_LOAD_ONE);
		mean = &e->worker[w]->stats.load;
		for (tick = 0; tick < WORKER_TICK_HZ; tick++)
			*mean = rehome_mean_load(*mean, load);
	}
	for (i = 0; i < num_clients; i++) {
		w = asked_of(p[i].client->worker);
		p[i].client->posted += 1000u * cost[i] / RTE_MAX(w, (unsigned int)REHOME_LOAD_ONE);
	}
}

/*
 * So many seconds. Each move is from a busy worker to the least busy one, which is less than half
 * as busy. @return moves
 */
static unsigned int
model_run(unsigned int seconds)
{
	unsigned int before[CLIENTS_MAX], i, w, moves = 0, of_this_second;
	uint64_t load[WORKERS];

	while (seconds-- > 0) {
		model_second();
		for (w = 0; w < WORKERS; w++)
			load[w] = e->worker[w]->stats.load;
		for (i = 0; i < num_clients; i++)
			before[i] = p[i].client->worker;
		next_look();
		of_this_second = 0;
		for (i = 0; i < num_clients; i++) {
			w = p[i].client->worker;
			if (w == before[i])
				continue;
			of_this_second++;
			assert_true(rehome_is_busy(load[before[i]]));
			assert_true(load[w] < load[before[i]] / 2);
			assert_true(load[w] <= RTE_MIN(load[0], RTE_MIN(load[1], load[2])));
		}
		assert_true(of_this_second <= 1);
		moves += of_this_second;
	}
	return moves;
}

static void
expect_asked(unsigned int first, unsigned int second, unsigned int third)
{
	assert_int_equal(asked_of(0), first);
	assert_int_equal(asked_of(1), second);
	assert_int_equal(asked_of(2), third);
}

/* --- the rules, one look at a time --- */

/* Worker 1 has time, too, but worker 2 has more. */
static void
test_a_client_moves_to_the_least_busy_worker(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++)
		client_add(0, 0);
	set_loads(256, 100, 20);
	next_look();
	for (i = 0; i < 4; i++)
		p[i].client->posted += 100 + i;
	next_look();
	assert_int_equal(p[3].client->worker, 2);
	for (i = 0; i < 3; i++)
		assert_int_equal(p[i].client->worker, 0);
	clients_close();
}

/* Worker 1 is busy and has less to do than worker 0; both are too busy to receive. */
static void
test_a_busy_worker_receives_none(void **state)
{
	unsigned int i, second;

	(void)state;
	for (i = 0; i < 9; i++)
		client_add(i / 3, 0);
	set_loads(256, 226, 130);
	for (second = 0; second < 20; second++) {
		for (i = 0; i < 9; i++)
			p[i].client->posted += 100;
		next_look();
		for (i = 0; i < 9; i++)
			assert_int_equal(p[i].client->worker, i / 3);
	}
	clients_close();
}

/* Of two busy workers the busier one is relieved, and the other one if that has none to give. */
static void
test_the_busiest_worker_is_relieved_first(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		client_add(0, 0);
	for (i = 0; i < 3; i++)
		client_add(1, 0);
	set_loads(230, 250, 10);
	next_look();
	for (i = 0; i < 6; i++)
		p[i].client->posted += 100;
	next_look();
	for (i = 0; i < 3; i++)
		assert_int_equal(p[i].client->worker, 0);
	assert_int_equal((p[3].client->worker == 2) + (p[4].client->worker == 2) +
			(p[5].client->worker == 2),
		1);
	/* worker 1 has had one look since; nobody of worker 0 is too active */
	for (i = 0; i < 3; i++)
		p[i].client->posted += 100;
	next_look();
	assert_int_equal((p[0].client->worker == 2) + (p[1].client->worker == 2) +
			(p[2].client->worker == 2),
		1);
	clients_close();
}

/* --- many looks --- */

/* Nine equal clients on one worker spread over all, and stay. */
static void
test_equal_clients_spread(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 9; i++)
		client_add(0, 60);
	assert_int_equal(model_run(60), 6);
	expect_asked(180, 180, 180);
	assert_int_equal(model_run(1000), 0);
	clients_close();
}

/* Two full workers share the third one, and stay. */
static void
test_two_busy_workers_share_the_third(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 12; i++)
		client_add(i % 2, 40);
	assert_int_equal(asked_of(2), 0);
	assert_int_equal(model_run(60), 2);
	expect_asked(200, 200, 80);
	assert_int_equal(model_run(1000), 0);
	clients_close();
}

/* Three clients of nearly a worker each get one each; a fourth one stays where it is. */
static void
test_large_clients_get_a_worker_each(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		client_add(0, 240);
	assert_int_equal(model_run(60), 2);
	expect_asked(240, 240, 240);
	client_add(1, 240);
	assert_int_equal(model_run(1000), 0);
	clients_close();
}

/* A client that fills a worker alone stays, though two workers are idle: it would fill those. */
static void
test_a_client_alone_stays(void **state)
{
	(void)state;
	client_add(1, 300);
	assert_int_equal(model_run(1000), 0);
	assert_int_equal(p[0].client->worker, 1);
	clients_close();
}

/* The large one makes most of the work: the small ones leave it, to both others. */
static void
test_small_clients_leave_a_large_one(void **state)
{
	unsigned int i;

	(void)state;
	client_add(0, 190);
	for (i = 0; i < 6; i++)
		client_add(0, 20);
	assert_int_equal(model_run(60), 5);
	assert_int_equal(p[0].client->worker, 0);
	assert_int_equal(asked_of(0), 210);
	assert_int_equal(asked_of(1) + asked_of(2), 100);
	assert_in_range(asked_of(1), 40, 60);
	assert_int_equal(model_run(1000), 0);
	clients_close();
}

/* --- with what they share --- */

static struct program_srq srq; /* of p[2] */

static void
all_turns(unsigned int n)
{
	unsigned int w;

	while (n-- > 0)
		for (w = 0; w < WORKERS; w++)
			engine_turn(e, w, rte_get_tsc_cycles());
	for (w = 0; w < WORKERS; w++)
		rte_rcu_qsbr_thread_offline(e->rcu, w);
}

static struct ring_completion
shared_completion(struct program *q)
{
	unsigned int i;

	for (i = 0; i < 100000 && ring_ready(&q->completions) == 0; i++)
		all_turns(1);
	return program_completion(q);
}

/* p[2]'s, on port 1: two queue pairs with one SRQ and one CQ, connected to p[0]'s and p[1]'s. */
static void
shared_start(struct program *second)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		program_open(e, &p[i], i == 2);
		program_make_objects(&p[i]);
		place(&p[i], 0);
	}
	program_make_srq(&p[2], &srq, 16, 0);
	*second = p[2];
	program_make_qp_of_srq(&p[2], &srq, &second->qp);
	program_connect(&p[0], &p[2]);
	program_connect(&p[1], second);
}

static void
shared_receive(uint64_t wr_id)
{
	struct ring_completion c = shared_completion(&p[2]);

	assert_int_equal(c.status, WC_SUCCESS);
	assert_int_equal(c.wr_id, wr_id);
}

static void
shared_send(struct program *from, uint64_t wr_id)
{
	program_send(from, wr_id, 0, 100);
	assert_int_equal(shared_completion(from).status, WC_SUCCESS);
}

static void
expect_all_on(unsigned int worker, const struct program *second)
{
	assert_int_equal(p[2].client->worker, worker);
	assert_int_equal(rc_srq_owner(e->dev, srq.made.number), worker);
	assert_int_equal(rc_owner(e->dev, p[2].qp.number), worker);
	assert_int_equal(rc_owner(e->dev, second->qp.number), worker);
}

/* Until p[2] has left the busy worker. */
static void
until_it_has_left(unsigned int from)
{
	unsigned int i, k;

	for (i = 0; i < 100 && p[2].client->worker == from; i++) {
		for (k = 0; k < 3; k++)
			p[k].client->posted += k == 2 ? 400 : 300;
		next_look();
	}
}

/* Receives posted and completions not polled before a move come first, in order, after it. */
static void
test_a_client_tours_with_its_shared_queues(void **state)
{
	struct program second;
	unsigned int i;

	(void)state;
	shared_start(&second);
	p[0].client->rests_until = p[1].client->rests_until = UINT64_MAX;
	for (i = 0; i < 8; i++)
		program_post_srq(&p[2], &srq, i);
	shared_send(&p[0], 0);
	shared_send(&p[1], 1);
	program_arm_srq(&p[2], &srq, 6);
	set_loads(256, 100, 10);
	until_it_has_left(0);
	expect_all_on(2, &second);
	/* as many remain: armed, as before the move */
	assert_int_equal(program_srq_limit(&p[2], &srq), 6);
	shared_send(&p[0], 2);
	assert_int_equal(program_srq_limit(&p[2], &srq), 0); /* the event has disarmed it */
	shared_send(&p[1], 3);
	place(&p[0], 2);
	place(&p[1], 2);
	set_loads(100, 10, 256);
	until_it_has_left(2);
	expect_all_on(1, &second);
	shared_send(&p[0], 4);
	place(&p[0], 1);
	place(&p[1], 1);
	set_loads(10, 256, 100);
	until_it_has_left(1);
	expect_all_on(0, &second);
	shared_send(&p[1], 5);
	for (i = 0; i < 6; i++)
		shared_receive(i);
	for (i = 0; i < 3; i++)
		program_close(&p[i]);
	assert_int_equal(programs_objects(e), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, balance_setup, balance_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_client_moves_to_the_least_busy_worker),
		CASE(test_a_busy_worker_receives_none),
		CASE(test_the_busiest_worker_is_relieved_first),
		CASE(test_equal_clients_spread),
		CASE(test_two_busy_workers_share_the_third),
		CASE(test_large_clients_get_a_worker_each),
		CASE(test_a_client_alone_stays),
		CASE(test_small_clients_leave_a_large_one),
		CASE(test_a_client_tours_with_its_shared_queues),
	};

	node_workers = WORKERS;
	return cmocka_run_group_tests_name("engine: balance of clients on three workers", tests,
		eal_setup, eal_teardown);
}
