/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion queues: order, merging of workers, overflow, arming. Many tests use a QP in ERR, where
 * each posted work request completes with a flush error at once.
 */

#include <errno.h>
#include <string.h>

#include "pair.h"

static struct pair *
pair_of(uint32_t cq_depth)
{
	return pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.cq_depth = cq_depth,
	});
}

static int
cq_setup(void **state)
{
	*state = pair_of(8);
	return 0;
}

static unsigned int
count_events(struct node *n, enum event_type type, uint32_t element)
{
	unsigned int i, k = 0;

	for (i = 0; i < n->event_count; i++)
		k += n->events[i].type == type && n->events[i].element == element;
	n->event_count = 0;
	return k;
}

/* rc-cases: CQ full: CQ error event once, QPs to ERR, nothing overwritten */
static void
test_overflow(void **state)
{
	struct pair *p = pair_of(4);
	struct rc_cq_info info;
	struct wc wc[8];
	unsigned int i;

	*state = p;
	for (i = 1; i <= 7; i++)
		post(&p->a, WR_RDMA_WRITE, i, 1);
	transmit(&p->a);
	deliver(&p->a);
	transmit(&p->b);
	deliver(&p->b);
	assert_int_equal(state_of(&p->a), QPS_ERR); /* at once with the packet */
	rc_run(p->a.w, p->now, 100);
	assert_int_equal(count_events(&p->a, EVENT_CQ_ERR, p->a.send_cq), 1);
	assert_int_equal(rc_cq_query(p->a.dev, p->a.send_cq, &info), 0);
	assert_true(info.overrun);
	/* the completions that fitted are still there */
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, WC_SUCCESS);
	}
	/* then only the error */
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), -EIO);
	post(&p->a, WR_RDMA_WRITE, 8, 1);
	rc_run(p->a.w, p->now, 100);
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), -EIO);
	assert_int_equal(count_events(&p->a, EVENT_CQ_ERR, p->a.send_cq), 0);
}

/* One ACK completes more requests than fit, for a peer that counts no credits. */
static void
test_overflow_by_one_ack(void **state)
{
	struct pair *p = pair_of(4);
	struct wc wc[8];
	unsigned int i;

	*state = p;
	post(&p->a, WR_RDMA_WRITE, 0, 1);
	exchange(p);
	expect_wc(&p->a, 0, WC_SUCCESS);
	for (i = 1; i <= 7; i++)
		post(&p->a, WR_RDMA_WRITE, i, 1);
	exchange(p);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	assert_int_equal(count_events(&p->a, EVENT_CQ_ERR, p->a.send_cq), 1);
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(wc[i].wr_id, i + 1);
		assert_int_equal(wc[i].status, WC_SUCCESS);
	}
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), -EIO);
}

/* A full CQ puts all QPs that use it, also as receive CQ, into ERR; other QPs go on. */
static void
test_overflow_ends_all_qps_of_the_cq(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct rc_counters sum = { 0 };
	struct qp_init_attr init;
	struct rc_qp_info info;
	uint32_t sharer, other, cq, i;

	init_attr(&p->a, &init);
	init.send_cq = p->a.recv_cq;
	init.recv_cq = p->a.send_cq;
	assert_int_equal(rc_qp_create(p->a.w, &init, &sharer, &err), 0);
	assert_int_equal(rc_cq_create(p->a.dev, 8, &cq, &err), 0);
	init.send_cq = init.recv_cq = cq;
	assert_int_equal(rc_qp_create(p->a.w, &init, &other, &err), 0);
	for (i = 0; i < 2; i++) {
		struct qp_attr attr = qp_attr_of(&p->a);

		attr.qp_state = QPS_INIT;
		assert_int_equal(rc_qp_modify(p->a.w, i == 0 ? sharer : other, &attr, MASK_INIT,
					 &err),
			0);
	}
	for (i = 1; i <= 9; i++)
		post(&p->a, WR_RDMA_WRITE, i, 1);
	exchange(p);
	assert_int_equal(state_of(&p->a), QPS_ERR);
	rc_qp_query(p->a.w, sharer, &info);
	assert_int_equal(info.attr.qp_state, QPS_ERR);
	assert_int_equal(info.counters.cq_overrun, 1);
	rc_qp_query(p->a.w, other, &info);
	assert_int_equal(info.attr.qp_state, QPS_INIT);
	assert_int_equal(info.counters.cq_overrun, 0);
	rc_worker_counters(p->a.w, -1, &sum);
	assert_int_equal(sum.cq_overrun, 2);
	/* no new QP may use it */
	init.send_cq = p->a.send_cq;
	assert_int_equal(rc_qp_create(p->a.w, &init, &sharer, &err), -EIO);
}

/* Polled completions make room; indices wrap around the ring. */
static void
test_indices_wrap_around_the_ring(void **state)
{
	struct pair *p = *state;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		post(&p->a, WR_RDMA_WRITE, i, 1);
		post(&p->a, WR_RDMA_WRITE, 1000 + i, 1);
		exchange(p);
		expect_wc(&p->a, i, WC_SUCCESS);
		expect_wc(&p->a, 1000 + i, WC_SUCCESS);
		expect_no_wc(&p->a);
	}
}

/* An ACK completes as many requests as the ring holds, around its end: one poll returns all. */
static void
test_one_ack_fills_the_ring_around_its_end(void **state)
{
	struct pair *p = *state;
	struct wc wc[8];
	unsigned int round, i;

	for (round = 0; round < 8; round++) {
		for (i = 0; i < 5; i++)
			post(&p->a, WR_RDMA_WRITE, i, 1);
		exchange(p);
		assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), 5);
		for (i = 0; i < 8; i++)
			post(&p->a, WR_RDMA_WRITE, 100 + i, 1 + i);
		exchange(p);
		assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 8), 8);
		for (i = 0; i < 8; i++) {
			assert_int_equal(wc[i].wr_id, 100 + i);
			assert_int_equal(wc[i].status, WC_SUCCESS);
			assert_int_equal(wc[i].opcode, WC_RDMA_WRITE);
			assert_int_equal(wc[i].byte_len, 1 + i);
			assert_int_equal(wc[i].qp_num, p->a.qpn);
		}
	}
	assert_int_equal(state_of(&p->a), QPS_RTS);
}

/*
 * One CQ of two workers: completions of each QP stay in order, and both rings are polled in turn.
 */
static void
test_workers_are_merged(void **state)
{
	struct pair *p = *state;
	struct rc_worker_config wc = { .id = 1, .wheel = p->a.wheel, .tx = &p->a.sink };
	struct rc_worker *w;
	struct error err = { "" };
	struct qp_init_attr init;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct send_wr wr;
	struct sge sge;
	struct wc got[16];
	uint32_t qpn, i, next[2] = { 0, 100 };
	unsigned int ones = 0;

	w = rc_worker_create(p->a.dev, &wc);
	assert_non_null(w);
	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(w, &init, &qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(w, qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_ERR;
	assert_int_equal(rc_qp_modify(w, qpn, &attr, QP_ATTR_STATE, &err), 0);
	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	for (i = 0; i < 8; i++) { /* each worker's ring has the full depth */
		post(&p->a, WR_SEND, i, 1);
		make_wr(&p->a, &wr, &sge, WR_SEND, 100 + i, 1);
		assert_int_equal(rc_post_send(w, qpn, &wr, &err), 0);
	}
	for (i = 0; i < 16; i++) {
		assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, got, 1), 1);
		ones += i < 8 && got[0].wr_id >= 100;
		assert_int_equal(got[0].wr_id, next[got[0].wr_id >= 100]++);
		assert_int_equal(got[0].qp_num, got[0].wr_id >= 100 ? qpn : p->a.qpn);
	}
	assert_int_equal(ones, 4); /* the rings take turns */
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, got, 16), 0);
	rc_worker_destroy(w);
}

/* ibv_req_notify_cq: one event for the next completion, then none until armed again */
static void
test_armed_cq_raises_one_event(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 1);
	exchange(p);
	assert_int_equal(count_events(&p->a, EVENT_CQ_COMPLETION, p->a.send_cq), 0);
	assert_int_equal(rc_cq_arm(p->a.dev, p->a.send_cq, false), 0);
	rc_run(p->a.w, p->now, 100);
	assert_int_equal(count_events(&p->a, EVENT_CQ_COMPLETION, p->a.send_cq), 0);
	post(&p->a, WR_RDMA_WRITE, 2, 1);
	post(&p->a, WR_RDMA_WRITE, 3, 1);
	exchange(p);
	post(&p->a, WR_RDMA_WRITE, 4, 1);
	exchange(p);
	assert_int_equal(count_events(&p->a, EVENT_CQ_COMPLETION, p->a.send_cq), 1);
	assert_int_equal(rc_cq_arm(p->a.dev, 99, false), -ENOENT);
}

/* armed for solicited only: a Send with SE, or an error, and nothing else */
static void
test_armed_for_solicited(void **state)
{
	struct pair *p = *state;

	post_recv(&p->b, 1, 1);
	post_recv(&p->b, 2, 1);
	post_recv(&p->b, 3, 1);
	rc_cq_arm(p->b.dev, p->b.recv_cq, true);
	post(&p->a, WR_SEND, 1, 1);
	exchange(p);
	assert_int_equal(count_events(&p->b, EVENT_CQ_COMPLETION, p->b.recv_cq), 0);
	post_flags(&p->a, WR_SEND, 2, 1, SEND_SOLICITED);
	exchange(p);
	assert_int_equal(count_events(&p->b, EVENT_CQ_COMPLETION, p->b.recv_cq), 1);
	rc_cq_arm(p->b.dev, p->b.recv_cq, true);
	must_modify(&p->b, QPS_ERR, QP_ATTR_STATE);
	rc_run(p->b.w, p->now, 100);
	assert_int_equal(count_events(&p->b, EVENT_CQ_COMPLETION, p->b.recv_cq), 1);
}

/* A CQ can be destroyed once its last QP is, although an event for its completions is still due. */
static void
test_cq_destroyed_before_its_event(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };

	must_modify(&p->a, QPS_ERR, QP_ATTR_STATE);
	rc_cq_arm(p->a.dev, p->a.send_cq, false);
	post(&p->a, WR_SEND, 1, 1);
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	assert_int_equal(count_events(&p->a, EVENT_CQ_COMPLETION, p->a.send_cq), 1);
	assert_int_equal(rc_cq_destroy(p->a.dev, p->a.send_cq, &err), 0);
	rc_run(p->a.w, p->now, 100);
}

/* creation, look-up, destruction */
static void
test_life(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct rc_cq_info info;
	uint64_t cursor = 0;
	uint32_t cq, again, top, found = 0;
	struct wc wc;

	assert_int_equal(rc_cq_create(p->a.dev, 0, &cq, &err), -EINVAL);
	assert_string_equal(err.text, "cqe: got 0, allowed: 1 to 65536");
	assert_int_equal(rc_cq_create(p->a.dev, 65537, &cq, &err), -EINVAL);
	assert_int_equal(rc_cq_create(p->a.dev, 5, &cq, &err), 0);
	assert_int_equal(rc_cq_query(p->a.dev, cq, &info), 0);
	assert_int_equal(info.depth, 5);
	assert_int_equal(info.users, 0);
	while (rc_cq_next(p->a.dev, &cursor, &info))
		found += info.cqn == cq || info.cqn == p->a.send_cq || info.cqn == p->a.recv_cq;
	assert_int_equal(found, 3);
	assert_int_equal(rc_cq_query(p->a.dev, p->a.send_cq, &info), 0);
	assert_int_equal(info.users, 1);
	assert_int_equal(rc_cq_destroy(p->a.dev, p->a.send_cq, &err), -EBUSY);
	assert_int_equal(rc_cq_destroy(p->a.dev, cq, &err), 0);
	assert_int_equal(rc_cq_destroy(p->a.dev, cq, &err), -ENOENT);
	assert_int_equal(rc_cq_poll(p->a.dev, cq, &wc, 1), -ENOENT);
	assert_int_equal(rc_cq_create(p->a.dev, 5, &again, &err), 0);
	assert_int_not_equal(again, cq); /* the number is not used again at once */
	/* a number from the top of the table, which leaves the next low number as it is */
	assert_int_equal(rc_cq_create_top(p->a.dev, 5, &cq, &err), 0);
	assert_int_equal(cq, rc_limits_default.max_cq - 1);
	assert_int_equal(rc_cq_create_top(p->a.dev, 5, &top, &err), 0);
	assert_int_equal(top, cq - 1);
	assert_int_equal(rc_cq_destroy(p->a.dev, cq, &err), 0);
	assert_int_equal(rc_cq_create_top(p->a.dev, 5, &top, &err), 0);
	assert_int_equal(top, cq);
	assert_int_equal(rc_cq_create(p->a.dev, 5, &cq, &err), 0);
	assert_int_equal(cq, again + 1);
}

/* The last free number is taken, then both ways to create a CQ are refused; others are unknown. */
static void
test_every_number_is_used_then_refused(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	uint32_t cq, n;

	for (n = 2; n < rc_limits_default.max_cq; n++)
		assert_int_equal(rc_cq_create(p->a.dev, 1, &cq, &err), 0);
	assert_int_equal(rc_cq_create(p->a.dev, 1, &cq, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "completion queues are in use"));
	assert_int_equal(rc_cq_create_top(p->a.dev, 1, &cq, &err), -ENOSPC);
	assert_int_equal(rc_cq_await(p->a.dev, rc_limits_default.max_cq), -ENOENT);
	assert_int_equal(rc_cq_arm(p->a.dev, UINT32_MAX, false), -ENOENT);
}

#define BOTH(t) cmocka_unit_test_setup_teardown(t, cq_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_overflow, pair_teardown),
		cmocka_unit_test_teardown(test_overflow_by_one_ack, pair_teardown),
		BOTH(test_overflow_ends_all_qps_of_the_cq),
		BOTH(test_indices_wrap_around_the_ring),
		BOTH(test_one_ack_fills_the_ring_around_its_end),
		BOTH(test_workers_are_merged),
		BOTH(test_every_number_is_used_then_refused),
		BOTH(test_armed_cq_raises_one_event),
		BOTH(test_armed_for_solicited),
		BOTH(test_cq_destroyed_before_its_event),
		BOTH(test_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
