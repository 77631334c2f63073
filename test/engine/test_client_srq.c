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
static struct ring_queue_reply srq;
static struct ring_end ring;

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

/* In place of its queue pair, b gets one with a shared receive queue. */
static void
limit_make(uint32_t max_wr)
{
	struct ring_srq_create create = {
		.cookie = COOKIE,
		.pd = b.pd,
		.max_wr = max_wr,
		.max_sge = 1,
	};
	struct ring_qp_create qp = {
		.pd = b.pd,
		.send_cq = b.cq.slot,
		.recv_cq = b.cq.slot,
		.caps = { 1, 0, 1, 0, 0 },
	};
	struct ring_queue *queue;
	struct error err;

	assert_ok(engine_client_srq_create(b.client, &create, &srq, &err));
	assert_ok(engine_client_qp_destroy(b.client, b.qp.slot, &err));
	qp.srq = srq.slot;
	assert_ok(engine_client_qp_create(b.client, &qp, &b.qp, &err));
	queue = &b.queues[srq.slot];
	ring_end_init(&ring, b.segment + srq.receive_entries, srq.receive_num, srq.receive_stride,
		&queue->receive_head, &queue->receive_tail);
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
	struct ring_receive *wqe;

	while (n-- > 0) {
		assert_true(ring_has_room(&ring));
		wqe = ring_next_free(&ring);
		*wqe = (struct ring_receive){ .num_sge = 1 };
		*(struct ring_sge *)(wqe + 1) = (struct ring_sge){ b.address, 4096, b.mr.key };
		ring.index++;
	}
	ring_publish(&ring);
	program_ring(&b, srq.slot);
}

static void
limit_arm(uint32_t limit)
{
	struct ring_srq_modify modify = { srq.slot, limit };
	struct error err;

	assert_ok(engine_client_srq_modify(b.client, &modify, &err));
}

static uint32_t
limit_armed(void)
{
	struct ring_srq_reply reply;
	struct error err;

	assert_ok(engine_client_srq_query(b.client, srq.slot, &reply, &err));
	return reply.limit;
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
	limit_arm(4);
	assert_int_equal(srq_limit_events(), 0);
	for (i = 0; i < 6; i++)
		limit_message();
	assert_int_equal(srq_limit_events(), 0); /* four remain */
	assert_int_equal(limit_armed(), 4);
	limit_message();
	assert_int_equal(srq_limit_events(), 1); /* three */
	assert_int_equal(limit_armed(), 0);
	for (i = 0; i < 3; i++)
		limit_message();
	assert_int_equal(srq_limit_events(), 0); /* it was disarmed */
	limit_post(5);
	limit_arm(5);
	assert_int_equal(srq_limit_events(), 0);
	limit_message();
	assert_int_equal(srq_limit_events(), 1); /* four remain, and the limit is five */
	limit_arm(4);
	assert_int_equal(srq_limit_events(), 0);
	limit_arm(5);
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
	assert_int_equal(b.queues[srq.slot].receive_tail, 4);
	limit_post(4);
	limit_turn();
	assert_int_equal(b.queues[srq.slot].receive_tail, 4);
	limit_arm(4);
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
	b.queues[srq.slot].receive_head = 0x80000000;
	limit_arm(4);
	assert_int_equal(srq_limit_events(), 0);
	b.queues[srq.slot].receive_head = 3;
	limit_arm(4);
	assert_int_equal(srq_limit_events(), 1);
	assert_ok(engine_client_qp_destroy(b.client, b.qp.slot, &err));
	assert_ok(engine_client_srq_destroy(b.client, srq.slot, &err));
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
