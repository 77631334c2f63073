/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * All that one owner has on a worker moves to another one (group_move.c): a thousand queue pairs,
 * and CQs with and without queue pairs.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "rc/cq.h"
#include "rc/qp_directory.h"

#define GROUP 1000u

static struct pair *pair;
static struct rc_worker *w[2];
static struct timer_wheel *wheel;
static struct rc_share share;
static uint32_t qpns[GROUP], cqns[3];
static struct rc_group group;

static uint32_t
group_qp_create(void)
{
	struct qp_attr attr = qp_attr_of(&pair->a);
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t qpn;

	init_attr(&pair->a, &init);
	assert_int_equal(rc_qp_create(w[0], &init, &qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(w[0], qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_RTR;
	assert_int_equal(rc_qp_modify(w[0], qpn, &attr, MASK_RTR, &err), 0);
	attr.qp_state = QPS_RTS;
	assert_int_equal(rc_qp_modify(w[0], qpn, &attr, MASK_RTS, &err), 0);
	assert_int_equal(rc_qp_join(w[0], qpn, &share), 0);
	return qpn;
}

static int
group_setup(void **state)
{
	struct rc_worker_config config = { .id = 1 };
	unsigned int i;

	(void)state;
	pair = pair_create(&(struct pair_config){ .scripted = true, .max_qp = 4096, .send_wr = 4 });
	wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	config.wheel = wheel;
	config.tx = &pair->a.sink;
	w[0] = pair->a.w;
	w[1] = rc_worker_create(pair->a.dev, &config);
	assert_non_null(w[1]);
	rc_share_init(&share);
	for (i = 0; i < GROUP; i++)
		qpns[i] = group_qp_create();
	cqns[0] = pair->a.send_cq;
	cqns[1] = pair->a.recv_cq;
	/* no queue pair ever completes to this one */
	assert_int_equal(rc_cq_create(pair->a.dev, 4, &cqns[2], NULL), 0);
	group = (struct rc_group){ &share, qpns, NULL, cqns, GROUP, 0, 3 };
	return 0;
}

static int
group_teardown(void **state)
{
	unsigned int i;
	int owner;

	(void)state;
	for (i = 0; i < GROUP; i++) {
		owner = rc_owner(pair->a.dev, qpns[i]);
		if (owner >= 0)
			rc_qp_destroy(w[owner], qpns[i], NULL);
	}
	pair_destroy(pair);
	timer_wheel_destroy(wheel);
	return 0;
}

static void
group_reserve(unsigned int from)
{
	struct error err = { "" };
	unsigned int i;

	for (i = 0; i < 3; i++)
		assert_true(rc_cq_reserve_move(pair->a.dev, cqns[i], from, !from, &err) >= 0);
}

static void
group_move(unsigned int from)
{
	struct error err = { "" };

	group_reserve(from);
	if (rc_group_export(w[from], &group, !from, &err) != 0)
		fail_msg("%s", err.text);
	rc_group_import(w[!from], &group, from);
}

static void
group_post_all(void)
{
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	unsigned int i;

	make_wr(&pair->a, &wr, &sge, WR_SEND, 1, 64);
	for (i = GROUP; i-- > 0;) /* the last one is the first that waits */
		assert_int_equal(rc_post_send(w[0], qpns[i], &wr, &err), 0);
}

/* All of them wait for the turn of their share, and have it on the new worker. */
static void
test_queue_pairs_that_wait_move(void **state)
{
	unsigned int sent = 0, n;

	(void)state;
	group_post_all();
	group_move(0);
	assert_false(rc_pending(w[0]) && rc_run(w[0], pair->now, 64) > 0);
	do {
		n = rc_run(w[1], pair->now, 64);
		sent += n;
	} while (n > 0);
	assert_int_equal(sent, GROUP);
	assert_int_equal(rc_worker_qps(w[0]), 1); /* not of the group */
	assert_int_equal(rc_worker_qps(w[1]), GROUP);
}

/*
 * They leave at once: if each looked for its place among those that wait, a move would take a time
 * that grows with the square of their number. Whoever follows the list meets a bad address.
 */
static void
test_nobody_looks_for_a_place_among_those_that_wait(void **state)
{
	struct rc_qp *first;

	(void)state;
	group_post_all();
	first = STAILQ_FIRST(&group.share->waiting);
	assert_non_null(STAILQ_NEXT(first, run_link));
	STAILQ_NEXT(first, run_link) = (void *)16;
	group_move(0);
	assert_int_equal(rc_worker_qps(w[1]), GROUP);
}

/* A CQ to which no queue pair completes takes no memory on the new worker. */
static void
test_unused_cqs_take_no_memory(void **state)
{
	const struct rc_cq *cq[3];
	struct error err = { "" };
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		cq[i] = rc_cq_at(pair->a.dev, cqns[i]);
	assert_int_equal(rc_cq_reserve_move(pair->a.dev, cqns[0], 0, 1, &err), 1);
	assert_int_equal(rc_cq_reserve_move(pair->a.dev, cqns[0], 0, 1, &err), 0);
	assert_int_equal(rc_cq_reserve_move(pair->a.dev, cqns[2], 0, 1, &err), 0);
	assert_int_equal(rc_cq_reserve_move(pair->a.dev, 99, 0, 1, &err), -ENOENT);
	assert_int_equal(rc_group_export(w[0], &group, 1, &err), -ENOMEM); /* cqns[1] has none */
	rc_cq_unreserve(pair->a.dev, cqns[0], 1);
	assert_null(rc_cq_ring(cq[0], 1));
	group_move(0);
	assert_non_null(rc_cq_ring(cq[0], 1));
	assert_non_null(rc_cq_ring(cq[1], 1));
	assert_null(rc_cq_ring(cq[2], 1));
}

static void
test_shared_receive_queues_move(void **state)
{
	struct error err = { "" };
	uint32_t srqns[2];
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++)
		assert_int_equal(rc_srq_create(w[0], pair->a.pd, 8, 1, &srqns[i], &err), 0);
	group.srqns = srqns;
	group.num_srqs = 2;
	group_move(0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(rc_srq_owner(pair->a.dev, srqns[i]), 1);
		assert_int_equal(rc_srq_destroy(w[1], srqns[i], &err), 0);
	}
}

static void
test_refused_groups(void **state)
{
	const uint32_t srqns[] = { 3 };
	struct error err = { "" };

	(void)state;
	group_reserve(0);
	assert_int_equal(rc_group_export(w[0], &group, 2, &err), -EINVAL);
	group.srqns = srqns;
	group.num_srqs = 1;
	assert_int_equal(rc_group_export(w[0], &group, 1, &err), -ENOENT);
	assert_string_equal(err.text, "srq: there is no shared receive queue 3");
	group.num_srqs = 0;
	assert_int_equal(rc_qp_destroy(w[0], qpns[5], &err), 0);
	assert_int_equal(rc_group_export(w[0], &group, 1, &err), -ENOENT);
	assert_int_equal(rc_owner(pair->a.dev, qpns[0]), 0);
	qpns[5] = qpns[--group.num_qps];
	group_move(0);
	assert_int_equal(rc_owner(pair->a.dev, qpns[0]), 1);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, group_setup, group_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_queue_pairs_that_wait_move),
		CASE(test_nobody_looks_for_a_place_among_those_that_wait),
		CASE(test_unused_cqs_take_no_memory),
		CASE(test_shared_receive_queues_move),
		CASE(test_refused_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
