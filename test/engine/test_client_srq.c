/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The limit of a client's shared receive queue counts what the program has posted, whether the
 * worker has taken it or not. The test runs each turn itself, and is both programs.
 */

#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "client_node.h"
#include "engine/clients_private.h"
#include "engine/worker.h"

#define COOKIE UINT64_C(0x5e1f)

static struct engine *e;
static struct program a, b; /* a sends to b */
static struct program_srq srq; /* of b */

static int
limit_setup(void **state)
{
	(void)state;
	node_config();
	e = node_create();
	program_open(e, &a, 0);
	program_open(e, &b, 1);
	program_make_objects(&a);
	program_make_objects(&b);
	return 0;
}

static void
limit_make(uint32_t max_wr)
{
	program_make_srq(&b, &srq, max_wr, COOKIE);
	program_connect(&a, &b);
}

static int
limit_teardown(void **state)
{
	(void)state;
	programs_stop(&a, &b);
	node_stop(e, 0);
	return 0;
}

static void
limit_turn(void)
{
	engine_turn(e, 0, rte_get_tsc_cycles());
	rte_rcu_qsbr_thread_offline(e->rcu, 0);
}

static void
limit_post(uint32_t n)
{
	while (n-- > 0)
		program_post_srq(&b, &srq, 0);
}

static void
limit_completion(struct program *p)
{
	struct ring_completion c;
	unsigned int i;

	for (i = 0; i < 1000000 && ring_ready(&p->completions) == 0; i++)
		limit_turn();
	c = program_completion(p);
	assert_int_equal(c.status, WC_SUCCESS);
}

/* A message takes one request. */
static void
limit_message(void)
{
	program_send(&a, 0, 0, 100);
	limit_completion(&a);
	limit_completion(&b);
}

/* Events of the limit that b has got since the last call. */
static unsigned int
srq_limit_events(void)
{
	struct ring_async_event event;
	int fd = b.client->event_pipe[CLIENT_PIPE_READ], bytes;
	unsigned int found = 0;
	struct event ev[16];

	engine_events(e, ev, 16, NULL);
	for (;;) {
		assert_int_equal(ioctl(fd, FIONREAD, &bytes), 0);
		if (bytes == 0)
			return found;
		assert_int_equal(read(fd, &event, sizeof(event)), sizeof(event));
		if (event.type != EVENT_SRQ_LIMIT_REACHED)
			continue;
		assert_int_equal(event.cookie, COOKIE);
		found++;
	}
}

/* Ten requests and a limit of four, which is armed before the worker has taken any. */
static void
test_event_when_three_of_ten_remain(void **state)
{
	unsigned int i;

	(void)state;
	limit_make(16);
	limit_post(10);
	program_arm_srq(&b, &srq, 4);
	assert_int_equal(srq_limit_events(), 0);
	for (i = 0; i < 6; i++)
		limit_message();
	assert_int_equal(srq_limit_events(), 0); /* four remain */
	assert_int_equal(program_srq_limit(&b, &srq), 4);
	limit_message();
	assert_int_equal(srq_limit_events(), 1); /* three */
	assert_int_equal(program_srq_limit(&b, &srq), 0);
	for (i = 0; i < 3; i++)
		limit_message();
	assert_int_equal(srq_limit_events(), 0); /* it was disarmed */
	limit_post(5);
	program_arm_srq(&b, &srq, 5);
	assert_int_equal(srq_limit_events(), 0);
	limit_message();
	assert_int_equal(srq_limit_events(), 1); /* four remain, and the limit is five */
	program_arm_srq(&b, &srq, 4);
	assert_int_equal(srq_limit_events(), 0);
	program_arm_srq(&b, &srq, 5);
	assert_int_equal(srq_limit_events(), 1); /* at once: only four are there */
}

/* The worker has room for four requests: the program's ring holds the other four. */
static void
test_requests_in_the_ring_count(void **state)
{
	unsigned int i;

	(void)state;
	limit_make(4);
	limit_post(4);
	limit_turn();
	assert_int_equal(b.queues[srq.made.slot].receive_tail, 4);
	limit_post(4);
	limit_turn();
	assert_int_equal(b.queues[srq.made.slot].receive_tail, 4);
	program_arm_srq(&b, &srq, 4);
	for (i = 0; i < 4; i++)
		limit_message();
	assert_int_equal(srq_limit_events(), 0); /* four remain */
	limit_message();
	assert_int_equal(srq_limit_events(), 1); /* three */
}

/* An index that jumps counts as a full ring. It costs only the program its event. */
static void
test_an_index_that_jumps_is_a_full_ring(void **state)
{
	struct error err;

	(void)state;
	limit_make(4);
	b.queues[srq.made.slot].receive_head = 0x80000000;
	program_arm_srq(&b, &srq, 4);
	assert_int_equal(srq_limit_events(), 0);
	b.queues[srq.made.slot].receive_head = 3;
	program_arm_srq(&b, &srq, 4);
	assert_int_equal(srq_limit_events(), 1);
	assert_ok(engine_client_qp_destroy(b.client, b.qp.slot, &err));
	assert_ok(engine_client_srq_destroy(b.client, srq.made.slot, &err));
}

#define S(f) cmocka_unit_test_setup_teardown(f, limit_setup, limit_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		S(test_event_when_three_of_ten_remain),
		S(test_requests_in_the_ring_count),
		S(test_an_index_that_jumps_is_a_full_ring),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: limit of a client's shared receive queue",
		tests, eal_setup, eal_teardown);
}
