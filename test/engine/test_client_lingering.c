/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queues of a program that linger: for some turns after a request the worker looks at them without
 * a doorbell. The test runs each turn itself, and is the program.
 */

#include <string.h>

#include <rte_cycles.h>

#include "client_node.h"
#include "engine/clients_info.h"
#include "engine/worker.h"

#define QUEUES 20u /* more than can linger */
#define TURNS  200u /* more than a quiet queue lingers */

static struct engine *e;
static struct program program;
static struct ring_queue_reply srq[QUEUES];
static struct ring_end ring[QUEUES];

/* Shared receive queues, whose requests the worker takes and drops: their lists are too long. */
static void
lingering_make(uint32_t i)
{
	struct ring_srq_create create = { .pd = program.pd, .max_wr = 16, .max_sge = 2 };
	struct ring_queue *queue;
	struct error err;

	assert_ok(engine_client_srq_create(program.client, &create, &srq[i], &err));
	queue = &program.queues[srq[i].slot];
	ring_end_init(&ring[i], program.segment + srq[i].receive_entries, srq[i].receive_num,
		srq[i].receive_stride, &queue->receive_head, &queue->receive_tail);
}

static int
lingering_setup(void **state)
{
	struct error err;
	uint32_t i;

	(void)state;
	node_config()->limits.max_srq = QUEUES;
	e = node_create();
	program_open(e, &program, 0);
	assert_ok(engine_client_pd_alloc(program.client, &program.pd, &err));
	for (i = 0; i < QUEUES; i++)
		lingering_make(i);
	return 0;
}

static int
lingering_teardown(void **state)
{
	(void)state;
	program_close(&program);
	node_stop(e, 0);
	return 0;
}

/* @return true if it had to ring */
static bool
lingering_post(uint32_t i)
{
	*(struct ring_receive *)ring_next_free(&ring[i]) =
		(struct ring_receive){ .num_sge = UINT8_MAX };
	ring[i].index++;
	ring_publish(&ring[i]);
	return ring_doorbell_ring(program.doorbells, program.hello.geometry.num_queues - 1,
		&program.next_doorbell, &program.queues[srq[i].slot], srq[i].slot);
}

static uint64_t
lingering_posted(void)
{
	struct engine_client_info info;
	uint64_t cursor = 0;

	assert_true(engine_client_next(e, &cursor, &info));
	return info.posted;
}

static bool
lingering_turn(void)
{
	return engine_turn(e, 0, rte_get_tsc_cycles());
}

static void
lingering_quiet(void)
{
	uint32_t i;

	for (i = 0; i < TURNS; i++)
		lingering_turn();
}

static void
test_program_that_goes_on_rings_once(void **state)
{
	uint64_t n;

	(void)state;
	assert_true(lingering_post(0));
	lingering_turn();
	assert_int_equal(lingering_posted(), 1);
	for (n = 2; n < 3 * TURNS; n++) {
		assert_false(lingering_post(0));
		lingering_turn();
		assert_int_equal(lingering_posted(), n);
	}
}

/* However long it was quiet: the worker looks at the queue, or the program rings. */
static void
test_no_request_is_forgotten(void **state)
{
	uint32_t quiet, i;
	bool rang = false;

	(void)state;
	lingering_post(0);
	for (quiet = 0; quiet < TURNS; quiet++) {
		for (i = 0; i < quiet; i++)
			lingering_turn();
		rang |= lingering_post(0);
		lingering_turn();
		lingering_turn();
		assert_int_equal(lingering_posted(), quiet + 2);
	}
	assert_true(rang);
}

/* The worker sleeps only when no queue lingers any more: nobody would ring for it. */
static void
test_worker_is_busy_while_a_queue_lingers(void **state)
{
	uint32_t turns;

	(void)state;
	lingering_quiet();
	assert_false(lingering_turn());
	lingering_post(0);
	for (turns = 0; lingering_turn(); turns++)
		assert_true(turns < TURNS);
	assert_true(turns > 0);
	assert_int_equal(program.queues[srq[0].slot].rung, 0);
}

/* More queues than can linger: the others ring, and none is forgotten. */
static void
test_many_queues_post(void **state)
{
	uint32_t round, i, rang = 0;

	(void)state;
	for (round = 0; round < TURNS; round++) {
		for (i = 0; i < QUEUES; i++)
			rang += lingering_post(i);
		lingering_turn();
		assert_int_equal(lingering_posted(), (round + 1) * QUEUES);
	}
	assert_true(rang > QUEUES && rang < TURNS * QUEUES);
	lingering_quiet();
	for (i = 0; i < QUEUES; i++)
		assert_int_equal(program.queues[srq[i].slot].rung, 0);
}

static void
test_queue_that_lingers_is_destroyed(void **state)
{
	struct error err;
	uint32_t i;

	(void)state;
	for (i = 0; i < QUEUES; i++)
		lingering_post(i);
	lingering_turn();
	for (i = 0; i < QUEUES; i += 2)
		assert_ok(engine_client_srq_destroy(program.client, srq[i].slot, &err));
	for (i = 0; i < QUEUES; i += 2)
		lingering_make(i);
	for (i = 0; i < QUEUES; i++)
		lingering_post(i);
	lingering_turn();
	assert_int_equal(lingering_posted(), 2 * QUEUES);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, lingering_setup, lingering_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_program_that_goes_on_rings_once),
		CASE(test_no_request_is_forgotten),
		CASE(test_worker_is_busy_while_a_queue_lingers),
		CASE(test_many_queues_post),
		CASE(test_queue_that_lingers_is_destroyed),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: queues that linger", tests, eal_setup,
		eal_teardown);
}
