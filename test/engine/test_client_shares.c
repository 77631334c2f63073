/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Shares of a worker's turn: 64 programs on the verbs socket, of which some post without end. The
 * test runs each turn itself and counts requests, so the result is the same on every machine.
 */

#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>
#include <rte_rcu_qsbr.h>

#include "client_node.h"
#include "engine/clients_info.h"
#include "engine/clients_private.h"
#include "engine/worker.h"
#include "rc/qp_directory.h"

#define CLIENTS 64u
#define SHARE   64u /* requests of a client in a turn */
#define SHORT   8u /* likewise, beside one that wants little */
#define LITTLE  32u /* turns after its last request */
#define QUIET   8u /* turns until a client that has rung first is heard */
#define TURN    256u /* of all, before the turn ends; the last client keeps its share */

#define CROWD     8u /* clients with more queues than a share has requests */
#define CROWD_QPS 80u

static struct engine *e;
static struct program program[CLIENTS];
static struct ring_queue_reply srq[CLIENTS][2];

/*
 * Requests for a shared receive queue have a list that is too long: the worker takes them, and
 * drops them. So nothing but the worker's share bounds how many there are.
 */
static void
shares_make_srq(struct program *p, struct ring_queue_reply *made)
{
	struct ring_srq_create create = { .pd = p->pd, .max_wr = 2 * SHARE, .max_sge = 2 };
	struct error err;
	uint32_t i;

	assert_ok(engine_client_srq_create(p->client, &create, made, &err));
	for (i = 0; i < made->receive_num; i++)
		*(struct ring_receive *)(void *)(p->segment + made->receive_entries +
			i * made->receive_stride) = (struct ring_receive){ .num_sge = UINT8_MAX };
}

static int
shares_setup(void **state)
{
	struct rc_limits *limits = &node_config()->limits;
	struct error err;
	uint32_t i;

	(void)state;
	limits->max_srq = 2 * CLIENTS + 1;
	limits->max_qp = 1024;
	e = node_create();
	for (i = 0; i < CLIENTS; i++) {
		program_open(e, &program[i], 0);
		assert_ok(engine_client_pd_alloc(program[i].client, &program[i].pd, &err));
		shares_make_srq(&program[i], &srq[i][0]);
		shares_make_srq(&program[i], &srq[i][1]);
	}
	return 0;
}

/* No turn follows: whoever destroys a region does not wait for one. */
static void
shares_worker_stops(void)
{
	rte_rcu_qsbr_thread_offline(e->rcu, 0);
}

static int
shares_teardown(void **state)
{
	uint32_t i;

	(void)state;
	shares_worker_stops();
	for (i = 0; i < CLIENTS; i++)
		program_close(&program[i]);
	node_stop(e, 0);
	return 0;
}

#define WITHOUT_END (UINT32_MAX / 2)

/* So many more requests are in a queue. */
static void
client_post_many(uint32_t client, unsigned int queue, uint32_t n)
{
	struct program *p = &program[client];

	p->queues[srq[client][queue].slot].receive_head += n;
	program_ring(p, srq[client][queue].slot);
}

static uint64_t
posted(uint32_t client)
{
	struct engine_client_info info;
	uint64_t cursor = client; /* ids begin with 1, in the order of creation */

	assert_true(engine_client_next(e, &cursor, &info));
	assert_int_equal(cursor, client + 1);
	return info.posted;
}

static uint64_t
posted_by_all(void)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < CLIENTS; i++)
		sum += posted(i);
	return sum;
}

static void
share_turn(void)
{
	engine_turn(e, 0, rte_get_tsc_cycles());
}

/* @return turns */
static uint32_t
turns_until_posted(uint32_t client, uint64_t n)
{
	uint32_t turns = 0;

	while (posted(client) < n && turns <= 512) {
		share_turn();
		turns++;
	}
	assert_true(posted(client) >= n);
	return turns;
}

/*
 * One posts without end, into two queues: a turn serves it its share, and all others at once, but
 * for those that were quiet. Beside one that wants little its share is short, for a while.
 */
static void
test_one_floods(void **state)
{
	uint64_t before, own;
	uint32_t round, i;

	(void)state;
	client_post_many(0, 0, WITHOUT_END);
	client_post_many(0, 1, WITHOUT_END);
	assert_true(turns_until_posted(0, SHARE) <= QUIET);
	assert_int_equal(posted(0), SHARE);
	for (round = 0; round < 3 * CLIENTS; round++) {
		i = 1 + round % (CLIENTS - 1);
		own = posted(i);
		before = posted(0);
		client_post_many(i, 0, 1);
		assert_true(turns_until_posted(i, own + 1) <= QUIET);
		assert_true(posted(0) - before <= QUIET * (round == 0 ? SHARE : SHORT));
		/* it is not quiet any more: the same turn */
		before = posted(0);
		client_post_many(i, 0, 1);
		share_turn();
		assert_int_equal(posted(i), own + 2);
		assert_int_equal(posted(0), before + SHORT);
	}
	for (i = 1; i < LITTLE; i++)
		share_turn();
	before = posted(0);
	share_turn();
	assert_int_equal(posted(0), before + SHARE);
}

/*
 * One request now and then does not keep the others' shares short: in a cycle of so many turns
 * they are short for LITTLE of them.
 */
static void
test_rare_requests_hold_nobody_up(void **state)
{
	static const uint32_t cycles[] = { 256, 128, 2 * LITTLE };
	uint64_t before, turns;
	uint32_t i, round, turn;

	(void)state;
	client_post_many(0, 0, WITHOUT_END);
	client_post_many(0, 1, WITHOUT_END);
	turns_until_posted(0, 1);
	for (i = 0; i < RTE_DIM(cycles); i++) {
		before = posted(0);
		for (round = 0; round < 10; round++) {
			client_post_many(1, 0, 1);
			for (turn = 0; turn < cycles[i]; turn++)
				share_turn();
		}
		turns = (uint64_t)10 * cycles[i];
		assert_true(posted(0) - before >= (turns - 10 * (LITTLE + QUIET)) * SHARE);
	}
}

/* Whatever the sizes of the queues that ring, a client gets its share of a turn and no more. */
static void
test_no_turn_has_more_than_a_share(void **state)
{
	uint32_t first, expected;

	(void)state;
	for (first = 1; first < SHARE; first++) {
		expected = (uint32_t)posted(0);
		client_post_many(0, 0, first);
		client_post_many(0, 1, 2 * SHARE - first);
		share_turn();
		assert_int_equal(posted(0), expected + SHARE);
		share_turn();
		assert_int_equal(posted(0), expected + 2 * SHARE);
	}
}

/* All others post without end: a single request waits until each has had its share once. */
static void
test_all_but_one_flood(void **state)
{
	uint32_t turns, longest = 0, round, i;
	uint64_t own, before, heard[CLIENTS] = { 0 }, had, first;

	(void)state;
	for (i = 1; i < CLIENTS; i++)
		client_post_many(i, i % 2, WITHOUT_END);
	for (round = 0; round < 50; round++) {
		for (i = 1; round == 10 && i < CLIENTS; i++)
			heard[i] = posted(i);
		own = posted(0);
		client_post_many(0, 0, 1);
		for (turns = 0; posted(0) == own; turns++) {
			before = posted_by_all();
			share_turn();
			assert_true(posted_by_all() - before < TURN + SHARE);
		}
		longest = turns > longest ? turns : longest;
	}
	assert_true(longest <= QUIET + CLIENTS * SHARE / TURN);
	/* since all are heard each has had the same, but for the round that is under way */
	first = posted(1) - heard[1];
	for (i = 1; i < CLIENTS; i++) {
		had = posted(i) - heard[i];
		assert_true(had <= first + SHORT && first <= had + SHORT);
	}
}

/* Its send queue and its shared receive queue are full whenever the worker looks. */
static void
flood_both(struct program *p, const struct program *to, const struct ring_queue_reply *receives)
{
	struct ring_queue *queue = &p->queues[receives->slot];

	while (ring_has_room(&p->send))
		program_post_write(p, to, 64);
	program_ring(p, p->qp.slot);
	queue->receive_head = queue->receive_tail + 2 * SHARE;
	program_ring(p, receives->slot);
	p->completions.index += ring_ready(&p->completions);
	ring_publish(&p->completions);
}

/*
 * What a program waits for, while another one posts Writes and receives without end: a turn more
 * than alone, and in each turn a short share of requests.
 */
static void
test_a_write_beside_a_flood(void **state)
{
	struct program *flood = &program[2];
	uint32_t i, round, turns;
	struct program peer[2];
	uint64_t before;

	(void)state;
	for (i = 0; i < 2; i++) {
		program_open(e, &peer[i], 1);
		program_make_objects(&peer[i]);
		program_make_objects(&program[2 * i]);
		program_connect(&program[2 * i], &peer[i]);
	}
	for (round = 0; round < 200; round++) {
		before = posted(2);
		program_post_write(&program[0], &peer[0], 64);
		program_ring(&program[0], program[0].qp.slot);
		for (turns = 0; ring_ready(&program[0].completions) == 0; turns++) {
			flood_both(flood, &peer[1], &srq[2][0]);
			share_turn();
		}
		program[0].completions.index++;
		ring_publish(&program[0].completions);
		assert_true(round == 0 || turns <= 4);
		assert_true(round == 0 || posted(2) - before <= turns * SHORT);
	}
	shares_worker_stops();
	for (i = 0; i < 2; i++)
		program_close(&peer[i]);
}

/* --- queues that wait for room in lib/rc --- */

/* Queue pairs in INIT: nothing arrives, so requests wait once lib/rc's receive queues are full. */
static void
crowd_open(struct program *p, struct ring_queue_reply qp[CROWD_QPS])
{
	struct ring_qp_create create = { .caps = { 1, 1, 1, 1, 0 }, .srq = RING_NONE };
	struct ring_cq_create cq = { .cqe = 16, .channel = RING_NONE };
	struct ring_qp_attr attr = {
		.mask = QP_ATTR_STATE | QP_ATTRS_INIT,
		.qp_state = QPS_INIT,
	};
	struct verbs_client_limits limits = program_limits;
	struct error err;
	uint32_t i;

	limits.max_qp = CROWD_QPS;
	limits.ring_bytes = 4 << 20;
	program_open_within(e, p, 0, &limits);
	assert_ok(engine_client_pd_alloc(p->client, &create.pd, &err));
	assert_ok(engine_client_cq_create(p->client, &cq, &p->cq, &err));
	p->pd = create.pd;
	create.send_cq = create.recv_cq = p->cq.slot;
	for (i = 0; i < CROWD_QPS; i++) {
		assert_ok(engine_client_qp_create(p->client, &create, &qp[i], &err));
		attr.slot = qp[i].slot;
		assert_ok(engine_client_qp_modify(p->client, &attr, &err));
	}
}

static void
crowd_fill(struct program *p, const struct ring_queue_reply qp[CROWD_QPS])
{
	struct ring_queue *queue;
	uint64_t before;
	uint32_t i;

	do {
		before = __atomic_load_n(&p->client->posted, __ATOMIC_RELAXED);
		for (i = 0; i < CROWD_QPS; i++) {
			queue = &p->queues[qp[i].slot];
			queue->receive_head = queue->receive_tail + qp[i].receive_num;
			program_ring(p, qp[i].slot);
		}
		for (i = 0; i < 256; i++)
			share_turn();
	} while (__atomic_load_n(&p->client->posted, __ATOMIC_RELAXED) != before);
}

/* Queues that the worker has looked at since @p first was the next one: they went to the end. */
static uint32_t
crowd_looks(const struct program *p, const struct client_queue *first)
{
	const struct client_queue *q;
	uint32_t left = 0;

	TAILQ_FOREACH(q, &p->client->waiting, waiting_link) {
		if (q == first)
			return CROWD_QPS - left;
		left += !q->is_srq;
	}
	fail_msg("it does not wait");
	return 0;
}

/* A look at a queue that has to wait counts as a request, of the client's share and of the turn. */
static void
test_looks_have_a_share(void **state)
{
	static struct ring_queue_reply qp[CROWD_QPS];
	static struct program crowd[CROWD];
	const struct client_queue *first[CROWD];
	struct ring_queue_reply flood;
	uint32_t i, looks, turn;
	uint64_t before;

	(void)state;
	for (i = 0; i < CROWD; i++) {
		crowd_open(&crowd[i], qp);
		crowd_fill(&crowd[i], qp);
	}
	for (turn = 0; turn < 10; turn++) {
		for (i = 0; i < CROWD; i++)
			first[i] = TAILQ_FIRST(&crowd[i].client->waiting);
		share_turn();
		for (i = 0, looks = 0; i < CROWD; i++)
			looks += crowd_looks(&crowd[i], first[i]) % CROWD_QPS;
		assert_true(looks >= SHARE && looks < TURN + SHARE);
	}
	for (i = 1; i < CROWD; i++)
		program_close(&crowd[i]);
	shares_make_srq(&crowd[0], &flood);
	crowd[0].queues[flood.slot].receive_head += WITHOUT_END;
	program_ring(&crowd[0], flood.slot);
	for (turn = 0; turn < 10; turn++) {
		first[0] = TAILQ_FIRST(&crowd[0].client->waiting);
		before = crowd[0].client->posted;
		share_turn();
		looks = first[0]->is_srq ? 0 : crowd_looks(&crowd[0], first[0]) % CROWD_QPS;
		assert_true(crowd[0].client->posted - before + looks <= SHARE);
	}
	program_close(&crowd[0]);
}

/* --- packets --- */

/* The queue pairs of a program have its share of rc_run(), and nobody else's (test_turns.c). */
static void
test_queue_pairs_have_the_share(void **state)
{
	struct rc_worker *w = worker_rc(e->worker[0]);
	uint32_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		program_make_objects(&program[i]);
		assert_ptr_equal(rc_qp_at(w, program[i].qp.number)->share,
			&program[i].client->share);
	}
}

/* --- completions --- */

#define ALL_COPIES 128u /* of a client in a turn */
#define COPIES     16u /* likewise, beside one that wants little */
#define DEEP       2048u

static uint64_t
share_completed(uint32_t client)
{
	struct engine_client_info info;
	uint64_t cursor = client;

	assert_true(engine_client_next(e, &cursor, &info));
	return info.completed;
}

/* A queue pair in ERR flushes what is posted: completions without any packet. */
static void
make_flushing_qp(struct program *p)
{
	struct ring_cq_create cq = { .cqe = DEEP, .channel = RING_NONE };
	struct ring_qp_create qp = {
		.caps = { 1, SHARE, 1, 1, 0 },
		.pd = p->pd,
		.srq = RING_NONE,
	};
	struct ring_qp_attr attr = {
		.mask = QP_ATTR_STATE | QP_ATTRS_INIT,
		.qp_state = QPS_INIT,
	};
	struct ring_queue *q;
	struct error err;

	assert_ok(engine_client_cq_create(p->client, &cq, &p->cq, &err));
	qp.send_cq = qp.recv_cq = p->cq.slot;
	assert_ok(engine_client_qp_create(p->client, &qp, &p->qp, &err));
	attr.slot = p->qp.slot;
	assert_ok(engine_client_qp_modify(p->client, &attr, &err));
	attr.mask = QP_ATTR_STATE;
	attr.qp_state = QPS_ERR;
	assert_ok(engine_client_qp_modify(p->client, &attr, &err));
	q = &p->queues[p->qp.slot];
	ring_end_init(&p->completions, p->segment + p->cq.entries, p->cq.num,
		sizeof(struct ring_completion), &p->cqs[p->cq.slot].tail, &p->cqs[p->cq.slot].head);
	ring_end_init(&p->receive, p->segment + p->qp.receive_entries, p->qp.receive_num,
		p->qp.receive_stride, &q->receive_head, &q->receive_tail);
}

static void
share_post_receives(struct program *p, uint32_t n)
{
	for (; n > 0; n--)
		program_receive(p, n, 0, 0);
	share_turn();
}

/*
 * A program reads nothing until two rings full of completions are there, and then one ring at once:
 * the other ring's completions come in turns, short ones from another program's first post on.
 */
static void
test_completions_have_a_share(void **state)
{
	struct program *p = &program[0], *other = &program[1];
	uint64_t before, left;
	uint32_t i;

	(void)state;
	make_flushing_qp(p);
	make_flushing_qp(other);
	for (i = 0; i < 2 * DEEP / SHARE; i++)
		share_post_receives(p, SHARE);
	share_turn();
	assert_int_equal(ring_ready(&p->completions), DEEP);
	p->completions.index += DEEP;
	ring_publish(&p->completions);
	before = share_completed(0);
	program_receive(other, 1, 0, 0);
	for (i = 0; i < QUIET && share_completed(1) == 0; i++)
		share_turn();
	assert_int_equal(share_completed(1), 1);
	assert_int_equal(share_completed(0), before + (i - 1) * ALL_COPIES + COPIES);
	for (i = 1; share_completed(0) < before + DEEP; i++) {
		left = before + DEEP - share_completed(0);
		share_turn();
		left -= RTE_MIN(left, i < LITTLE ? COPIES : ALL_COPIES);
		assert_int_equal(before + DEEP - share_completed(0), left);
	}
	assert_true(i > LITTLE);
	assert_int_equal(ring_ready(&p->completions), DEEP);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, shares_setup, shares_teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_one_floods),
		CASE(test_no_turn_has_more_than_a_share),
		CASE(test_all_but_one_flood),
		CASE(test_rare_requests_hold_nobody_up),
		CASE(test_a_write_beside_a_flood),
		CASE(test_looks_have_a_share),
		CASE(test_queue_pairs_have_the_share),
		CASE(test_completions_have_a_share),
	};

	node_workers = 1;
	return cmocka_run_group_tests_name("engine: shares of clients", tests, eal_setup,
		eal_teardown);
}
