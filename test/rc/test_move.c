/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A queue pair moves to another worker (design.md rule 1), in any state and during any operation,
 * and its peer does not notice. Here a's QP moves between two workers of a.
 */

#include <errno.h>
#include <string.h>

#include "pair.h"
#include "rc/qp_directory.h"
#include "rc/qp_move.h"

#define RNR_12 (AETH_RNR_NAK | 12) /* 640 us */

/* The worker of n that does not own the QP. */
static struct {
	struct rc_worker *w;
	struct timer_wheel *wheel;
} other[2];

static int
move_index_of(const struct node *n)
{
	return n == &n->pair->b;
}

/* Prepare memory so that n's QPs may move to this worker. */
static void
make_ready(struct node *n, unsigned int worker)
{
	assert_int_equal(rc_cq_reserve(n->dev, n->send_cq, worker, NULL), 0);
	assert_int_equal(rc_cq_reserve(n->dev, n->recv_cq, worker, NULL), 0);
}

static void
second_worker(struct node *n)
{
	struct rc_worker_config wc = { .id = 1, .tx = &n->sink };
	int i = move_index_of(n);

	other[i].wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	wc.wheel = other[i].wheel;
	other[i].w = rc_worker_create(n->dev, &wc);
	assert_non_null(other[i].w);
	make_ready(n, 1);
}

static unsigned int
move_worker_of(const struct node *n)
{
	return (unsigned int)rc_owner(n->dev, n->qpn);
}

/* n->w becomes the QP's worker. */
static void
move_swap_workers(struct node *n)
{
	int i = move_index_of(n);
	struct rc_worker *w = n->w;
	struct timer_wheel *wheel = n->wheel;

	n->w = other[i].w;
	n->wheel = other[i].wheel;
	other[i].w = w;
	other[i].wheel = wheel;
}

static void
move_move(struct node *n)
{
	unsigned int from = move_worker_of(n);
	struct error err = { "" };

	if (rc_qp_export(n->w, n->qpn, !from, &err) != 0)
		fail_msg("%s", err.text);
	move_swap_workers(n);
	assert_int_equal(rc_qp_import(n->w, n->qpn, from), 0);
	assert_int_equal(move_worker_of(n), !from);
	assert_int_equal(info_of(n).worker, !from);
}

/* The worker that the QP has left does nothing for it any more. */
static void
expect_left_quiet(struct node *n, uint64_t now)
{
	int i = move_index_of(n);
	struct rc_qp_info info;
	uint32_t cursor = 0, qpn;

	assert_int_equal(timer_wheel_run(other[i].wheel, now), 0);
	assert_false(rc_pending(other[i].w));
	assert_int_equal(rc_run(other[i].w, now, 100), 0);
	assert_int_equal(rc_qp_query(other[i].w, n->qpn, &info), -ENOENT);
	assert_false(rc_qp_next(other[i].w, &cursor, &qpn));
	assert_int_equal(rc_worker_qps(other[i].w), 0);
	assert_int_equal(rc_worker_qps(n->w), 1);
}

/* Advance the clock of both workers; the one that the QP has left does nothing. */
static void
pass_both(struct pair *p, uint64_t ns)
{
	pass(p, ns);
	expect_left_quiet(&p->a, p->now);
}

static void
second_workers(struct pair *p)
{
	memset(other, 0, sizeof(other));
	second_worker(&p->a);
	if (p->b.w != NULL)
		second_worker(&p->b);
}

static int
move_setup(void **state)
{
	pair_setup(state);
	second_workers(*state);
	return 0;
}

static int
script_setup(void **state)
{
	scripted_setup(state);
	second_workers(*state);
	return 0;
}

static int
move_teardown(void **state)
{
	int ret = pair_teardown(state); /* QPs that still are on another worker use its wheel */

	timer_wheel_destroy(other[0].wheel);
	timer_wheel_destroy(other[1].wheel);
	return ret;
}

/* --- states --- */

/* rc-transport 11: all states from RESET to ERR, with a move before and after each step. */
static void
test_moves_in_every_state(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.init_only = true,
	});
	static const struct {
		enum qp_state to;
		uint32_t mask;
	} way[] = {
		{ QPS_INIT, MASK_INIT },
		{ QPS_RTR, MASK_RTR },
		{ QPS_RTS, MASK_RTS },
		{ QPS_SQD, QP_ATTR_STATE },
		{ QPS_RTS, QP_ATTR_STATE },
		{ QPS_ERR, QP_ATTR_STATE },
		{ QPS_RESET, QP_ATTR_STATE },
	};
	unsigned int i;

	*state = p;
	second_workers(p);
	must_modify(&p->b, QPS_INIT, MASK_INIT);
	must_modify(&p->b, QPS_RTR, MASK_RTR);
	must_modify(&p->b, QPS_RTS, MASK_RTS);
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		move_move(&p->a);
		expect_left_quiet(&p->a, p->now);
		must_modify(&p->a, way[i].to, way[i].mask);
		assert_int_equal(state_of(&p->a), way[i].to);
		move_move(&p->a);
		expect_left_quiet(&p->a, p->now);
		assert_int_equal(state_of(&p->a), way[i].to);
		if (way[i].to == QPS_INIT)
			post_recv(&p->a, 7, 256);
		if (way[i].to == QPS_RTR || way[i].to == QPS_SQD) {
			post(&p->b, WR_RDMA_WRITE, i, 300);
			exchange(p);
			expect_wc(&p->b, i, WC_SUCCESS);
		}
		if (way[i].to == QPS_RTS) {
			post(&p->a, WR_RDMA_WRITE, i, 300);
			exchange(p);
			expect_wc(&p->a, i, WC_SUCCESS);
		}
		if (way[i].to == QPS_ERR)
			expect_recv(&p->a, 7, WC_WR_FLUSH_ERR);
	}
	assert_int_equal(counters_of(&p->b).retransmitted_pkts, 0);
}

/* Between export and import no worker finds the QP, and nothing happens on it. */
static void
test_found_nowhere_on_the_way(void **state)
{
	struct pair *p = *state;
	struct rc_worker *old = p->a.w, *new = other[0].w;
	struct error err = { "" };
	struct rc_qp_info info;
	uint32_t cursor = 0, qpn;
	struct send_wr wr;
	struct sge sge;

	post(&p->b, WR_RDMA_WRITE, 1, 8);
	transmit(&p->b);
	assert_int_equal(rc_qp_export(old, p->a.qpn, 1, &err), 0);
	assert_int_equal(rc_owner(p->a.dev, p->a.qpn), 1);
	make_wr(&p->a, &wr, &sge, WR_SEND, 1, 8);
	assert_int_equal(rc_post_send(old, p->a.qpn, &wr, &err), -ENOENT);
	assert_int_equal(rc_post_send(new, p->a.qpn, &wr, &err), -ENOENT);
	assert_int_equal(rc_qp_query(old, p->a.qpn, &info), -ENOENT);
	assert_int_equal(rc_qp_query(new, p->a.qpn, &info), -ENOENT);
	assert_int_equal(rc_qp_destroy(new, p->a.qpn, &err), -ENOENT);
	assert_int_equal(rc_qp_export(new, p->a.qpn, 0, &err), -ENOENT);
	assert_false(rc_qp_next(old, &cursor, &qpn));
	cursor = 0;
	assert_false(rc_qp_next(new, &cursor, &qpn));
	move_swap_workers(&p->a);
	deliver(&p->b);
	assert_int_equal(p->a.verdict, VERDICT_QPN_UNKNOWN);

	/* only the intended worker may import it, and only with the QPN's present generation */
	assert_int_equal(rc_qp_import(old, p->a.qpn, 0), -ENOENT);
	assert_int_equal(rc_qp_import(new, p->a.qpn ^ 1u << 20, 0), -ENOENT);
	assert_int_equal(rc_qp_import(new, p->a.qpn, 0), 0);
	assert_int_equal(rc_qp_import(new, p->a.qpn, 0), -ENOENT);
	assert_int_equal(rc_qp_query(new, p->a.qpn, &info), 0);
	pass(p, 1000000000);
	exchange(p);
	expect_wc(&p->b, 1, WC_SUCCESS);
}

/* Refused moves: a QP with an SRQ, a pinned QP, and a worker number that does not exist. */
static void
test_refused_moves(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t srqn, qpn;

	assert_int_equal(rc_qp_export(p->a.w, p->a.qpn, 2, &err), -EINVAL);
	assert_string_equal(err.text, "worker: got 2, there are 0..1");
	assert_int_equal(rc_qp_export(p->a.w, 99, 1, &err), -ENOENT);
	assert_int_equal(rc_srq_create(p->a.w, p->a.pd, 8, 1, &srqn, &err), 0);
	init_attr(&p->a, &init);
	init.srq = srqn;
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
	assert_int_equal(rc_qp_export(p->a.w, qpn, 1, &err), -EINVAL);
	assert_non_null(strstr(err.text, "shared receive queue"));
	init.srq = RC_NO_SRQ;
	init.pinned = true;
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
	assert_int_equal(rc_qp_export(p->a.w, qpn, 1, &err), -EBUSY);
	assert_int_equal(rc_qp_export(p->a.w, p->a.qpn, 0, &err), 0); /* the QP itself could move */
	assert_int_equal(move_worker_of(&p->a), 0);
	assert_int_equal(rc_qp_query(p->a.w, p->a.qpn, &(struct rc_qp_info){ 0 }), 0);
}

/* design.md rule 4: a move allocates nothing; without prepared memory the QP stays. */
static void
test_stays_without_memory_for_completions(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t qpn;

	init_attr(&p->a, &init);
	assert_int_equal(rc_cq_create(p->a.dev, 16, &init.recv_cq, &err), 0);
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
	assert_int_equal(rc_qp_movable(p->a.w, qpn, 1, &err), -ENOMEM);
	assert_int_equal(rc_qp_export(p->a.w, qpn, 1, &err), -ENOMEM);
	assert_non_null(strstr(err.text, "its completion queues have no memory for worker 1"));
	assert_int_equal(rc_owner(p->a.dev, qpn), 0);
	assert_int_equal(rc_cq_reserve(p->a.dev, 99, 1, &err), -ENOENT);
	assert_int_equal(rc_cq_reserve(p->a.dev, init.recv_cq, 1, &err), 0);
	assert_int_equal(rc_qp_export(p->a.w, qpn, 1, &err), 0);
	assert_int_equal(rc_qp_import(other[0].w, qpn, 0), 0);
	assert_int_equal(rc_qp_destroy(other[0].w, qpn, &err), 0);
	assert_int_equal(rc_cq_destroy(p->a.dev, init.recv_cq, &err), 0);
}

/* --- in the middle of something --- */

/* Work on the run queue moves along: requests, and an ACK that is due. */
static void
test_run_queue(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_WRITE, 1, 600);
	post(&p->b, WR_RDMA_WRITE, 2, 8);
	transmit(&p->b);
	deliver(&p->b);
	move_move(&p->a);
	expect_left_quiet(&p->a, p->now);
	expect_silence(&p->a);
	transmit(&p->a);
	expect_tx(&p->a, "ACK 201", "WRITE First 201", "WRITE Middle 202", "WRITE Last 203");
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	expect_wc(&p->b, 2, WC_SUCCESS);
}

/* rc-transport 8: the transport timer fires on the new worker, at the same time. */
static void
test_transport_timer(void **state)
{
	struct pair *p = *state;
	const uint64_t timeout = UINT64_C(4096) << 14;

	post(&p->a, WR_RDMA_WRITE, 1, 8);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	pass(p, timeout / 2);
	move_move(&p->a);
	expect_left_quiet(&p->a, p->now);
	pass_both(p, timeout / 2 - 1);
	transmit(&p->a);
	expect_silence(&p->a);
	pass_both(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "WRITE Only 201");
	assert_int_equal(counters_of(&p->a).local_ack_timeout_err, 1);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
	move_move(&p->a); /* the lazy timer is still on the wheel */
	expect_left_quiet(&p->a, p->now);
	pass_both(p, 10 * timeout);
	transmit(&p->a);
	expect_silence(&p->a);
}

/* An RNR wait goes on with its full time. */
static void
test_rnr_wait(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_SEND, 1, 8);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	nak(p, RNR_12, 201);
	pass(p, 320000);
	move_move(&p->a);
	expect_left_quiet(&p->a, p->now);
	transmit(&p->a);
	pass_both(p, 319999);
	transmit(&p->a);
	expect_silence(&p->a);
	pass_both(p, 1);
	transmit(&p->a);
	expect_tx(&p->a, "SEND Only 201");
	assert_int_equal(info_of(&p->a).rnr_left, 7);
	ack(p, 201);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

/* The requester moves when half of a Read has arrived. */
static void
test_read_half_received(void **state)
{
	struct pair *p = *state;

	post(&p->a, WR_RDMA_READ, 1, 1024);
	transmit(&p->a);
	expect_tx(&p->a, "READ Request 201");
	memset(p->a.bytes, 0, 1024);
	read_response(p, RC_READ_RESP_FIRST, 201, 0, 256);
	read_response(p, RC_READ_RESP_MIDDLE, 202, 256, 256);
	move_move(&p->a);
	read_response(p, RC_READ_RESP_MIDDLE, 203, 512, 256);
	read_response(p, RC_READ_RESP_LAST, 204, 768, 256);
	expect_wc(&p->a, 1, WC_SUCCESS);
	assert_memory_equal(p->a.bytes, p->b.bytes, 1024);
	transmit(&p->a);
	expect_silence(&p->a);
}

/* The responder moves when half of a Read's answer is sent. */
static void
test_read_half_answered(void **state)
{
	struct pair *p = *state;

	post(&p->b, WR_RDMA_READ, 1, 1024);
	transmit(&p->b);
	deliver(&p->b);
	p->a.room = 2;
	transmit(&p->a);
	expect_tx(&p->a, "READ Response First 201", "READ Response Middle 202");
	move_move(&p->a);
	p->a.room = UINT32_MAX;
	expect_left_quiet(&p->a, p->now);
	transmit(&p->a);
	expect_tx(&p->a, "READ Response Middle 203", "READ Response Last 204");
	exchange(p);
	expect_wc(&p->b, 1, WC_SUCCESS);
	assert_memory_equal(p->a.bytes, p->b.bytes, 1024);
}

static void
test_send_half_received(void **state)
{
	struct pair *p = *state;

	post_recv(&p->a, 5, 1024);
	post(&p->b, WR_SEND, 1, 1024);
	p->b.room = 2;
	transmit(&p->b);
	deliver(&p->b);
	move_move(&p->a);
	p->b.room = UINT32_MAX;
	exchange(p);
	expect_wc(&p->b, 1, WC_SUCCESS);
	assert_int_equal(expect_recv(&p->a, 5, WC_SUCCESS).byte_len, 1024);
	assert_memory_equal(p->a.bytes, p->b.bytes, 1024);
	assert_int_equal(counters_of(&p->b).rcvd_seq_err, 0);
}

/*
 * The new worker answers a duplicate of an Atomic that the old one executed; it is executed once.
 */
static void
test_saved_atomic(void **state)
{
	struct pair *p = *state;
	struct send_wr wr;
	struct sge sge;

	memset(p->a.bytes, 0, 8);
	make_wr(&p->b, &wr, &sge, WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	wr.compare_add = 5;
	assert_int_equal(rc_post_send(p->b.w, p->b.qpn, &wr, NULL), 0);
	lose(&p->a, 201);
	exchange(p);
	move_move(&p->a);
	pass(p, 1000000000);
	exchange(p);
	expect_wc(&p->b, 1, WC_SUCCESS);
	assert_int_equal(*(uint64_t *)p->a.bytes, 5);
	assert_int_equal(counters_of(&p->a).duplicate_request, 1);
}

/* --- operations with a grace period --- */

static uint64_t grace_over;

static uint64_t
move_grace_start(void *arg)
{
	(void)arg;
	return 1;
}

static bool
move_grace_done(void *arg, uint64_t token)
{
	(void)arg;
	return token <= grace_over;
}

static void
bind(struct node *n, uint64_t wr_id, uint32_t mw, uint32_t new_key)
{
	struct send_wr wr = { .wr_id = wr_id, .opcode = WR_BIND_MW, .send_flags = SEND_SIGNALED,
		.bind_mw = { .mw_key = mw, .new_key = new_key, .mr_key = n->key,
			.access = MEM_ACCESS_REMOTE_WRITE, .addr = n->va, .length = 4096, }, };
	struct error err = { "" };

	if (rc_post_send(n->w, n->qpn, &wr, &err) != 0)
		fail_msg("%s", err.text);
}

/* A completion that waits for a grace period waits, and is written, on the new worker. */
static void
test_grace_period(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.scripted = true,
		.grace = { move_grace_start, move_grace_done, NULL },
	});
	struct error err = { "" };
	uint32_t mw;

	*state = p;
	second_workers(p);
	grace_over = 0;
	assert_int_equal(mem_mw_alloc(p->a.mem, p->a.pd, MEM_MW_TYPE_1, &mw, &err), 0);
	bind(&p->a, 1, mw, 0);
	transmit(&p->a);
	mw = expect_wc(&p->a, 1, WC_SUCCESS).mw_key;
	bind(&p->a, 2, mw, 0); /* other workers may still be using the old binding */
	transmit(&p->a);
	expect_no_wc(&p->a);
	move_move(&p->a);
	expect_left_quiet(&p->a, p->now);
	assert_true(rc_pending(p->a.w));
	transmit(&p->a);
	expect_no_wc(&p->a);
	grace_over = 1;
	transmit(&p->a);
	expect_wc(&p->a, 2, WC_SUCCESS);
	assert_false(rc_pending(p->a.w));
}

/* design.md: a type 2 window belongs to the worker that owns its QP. */
static void
test_window_moves_along(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	uint32_t mw, key;

	assert_int_equal(mem_mw_alloc(p->a.mem, p->a.pd, MEM_MW_TYPE_2, &mw, &err), 0);
	key = (mw & ~0xFFu) | 0x5A;
	bind(&p->a, 1, mw, key);
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
	move_move(&p->a);
	make_wr(&p->b, &wr, &sge, WR_RDMA_WRITE, 2, 64);
	wr.rkey = key;
	assert_int_equal(rc_post_send(p->b.w, p->b.qpn, &wr, &err), 0);
	exchange(p);
	expect_wc(&p->b, 2, WC_SUCCESS);
	wr = (struct send_wr){
		.wr_id = 3,
		.opcode = WR_LOCAL_INV,
		.invalidate_rkey = key,
		.send_flags = SEND_SIGNALED,
	};
	assert_int_equal(rc_post_send(p->a.w, p->a.qpn, &wr, &err), 0);
	exchange(p);
	expect_wc(&p->a, 3, WC_SUCCESS);
	/* bound again, it is unbound when its QP is destroyed */
	bind(&p->a, 4, key, key);
	exchange(p);
	expect_wc(&p->a, 4, WC_SUCCESS);
	move_move(&p->a);
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	assert_int_equal(mem_mw_free(p->a.mem, key, &err), 0);
	assert_int_equal(mem_mr_deregister(p->a.mem, p->a.key, &err), 0);
}

/* --- completions --- */

static void
move_complete(struct pair *p, uint64_t wr_id)
{
	post(&p->a, WR_RDMA_WRITE, wr_id, 1);
	exchange(p);
}

/* verbs: completions of a work queue come in order, although two workers' rings hold them. */
static void
test_completions_in_order(void **state)
{
	unsigned int chunk, i, k, moves, next, posted;
	struct pair *p;
	struct wc wc[8];
	int n;

	for (chunk = 1; chunk <= 7; chunk++) {
		for (moves = 1; moves <= 9; moves++) {
			p = pair_create(&(struct pair_config){ .retry_cnt = 7, .rnr_retry = 7 });
			second_workers(p);
			posted = next = 0;
			for (k = 0; k <= moves; k++) {
				/* sometimes no completion between two moves */
				for (i = 0; i < (k * 3 + moves) % 5; i++)
					move_complete(p, posted++);
				if (k < moves)
					move_move(&p->a);
				if (k == 4)
					next += (unsigned int)rc_cq_poll(p->a.dev, p->a.send_cq, wc,
						1);
			}
			/* a poll returns 0 only if there is no completion */
			while ((n = rc_cq_poll(p->a.dev, p->a.send_cq, wc, chunk)) != 0) {
				for (i = 0; i < (unsigned int)n; i++)
					assert_int_equal(wc[i].wr_id, next++);
			}
			assert_int_equal(next, posted);
			/* the fences are consumed, so that the QP can move again */
			for (k = 0; k < 40; k++)
				move_move(&p->a);
			move_complete(p, 99);
			expect_wc(&p->a, 99, WC_SUCCESS);
			timer_wheel_destroy(other[0].wheel);
			timer_wheel_destroy(other[1].wheel);
			pair_destroy(p);
		}
	}
	*state = NULL;
	memset(other, 0, sizeof(other));
}

/*
 * Via a worker on which nothing completed: its fence keeps the order, although its ring is empty.
 */
static void
test_order_over_three_workers(void **state)
{
	struct pair *p;
	struct rc_worker_config wc = { .id = 2 };
	struct rc_worker *w[3];
	struct error err = { "" };
	struct timer_wheel *wheel;
	struct wc got;
	unsigned int first, i;

	for (first = 0; first < 3; first++) { /* the ring polled first */
		p = pair_create(&(struct pair_config){
			.retry_cnt = 7,
			.rnr_retry = 7,
			.workers = 3,
		});
		second_worker(&p->a);
		wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
		wc.wheel = wheel;
		wc.tx = &p->a.sink;
		w[0] = p->a.w;
		w[1] = other[0].w;
		w[2] = rc_worker_create(p->a.dev, &wc);
		make_ready(&p->a, 2);
		for (i = 0; i < first; i++)
			assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, &got, 1), 0);
		move_complete(p, 1);
		assert_int_equal(rc_qp_export(w[0], p->a.qpn, 1, &err), 0);
		assert_int_equal(rc_qp_import(w[1], p->a.qpn, 0), 0);
		assert_int_equal(rc_qp_export(w[1], p->a.qpn, 2, &err), 0);
		assert_int_equal(rc_qp_import(w[2], p->a.qpn, 1), 0);
		p->a.w = w[2];
		move_complete(p, 2);
		expect_wc(&p->a, 1, WC_SUCCESS);
		expect_wc(&p->a, 2, WC_SUCCESS);
		expect_no_wc(&p->a);
		pair_destroy(p);
		timer_wheel_destroy(other[0].wheel);
		timer_wheel_destroy(wheel);
	}
	*state = NULL;
	memset(other, 0, sizeof(other));
}

/* A ring holds a limited number of fences; a further move waits until the CQ is polled. */
static void
test_moves_wait_for_the_poller(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	unsigned int i;

	for (i = 0; i < 32; i++) { /* 16 fences in each ring */
		move_complete(p, i);
		move_move(&p->a);
	}
	assert_int_equal(rc_qp_export(p->a.w, p->a.qpn, 1, &err), -EAGAIN);
	assert_string_equal(err.text,
		"completion queue 0 holds completions from before earlier moves: poll it");
	/* the QP stays on its worker and works */
	move_complete(p, 32);
	for (i = 0; i <= 32; i++)
		expect_wc(&p->a, i, WC_SUCCESS);
	expect_no_wc(&p->a);
	move_move(&p->a);
	move_complete(p, 33);
	expect_wc(&p->a, 33, WC_SUCCESS);
}

/* The CQ of sends has room for a fence, that of receives has none: the QP holds neither. */
static void
test_move_fails_at_the_second_queue(void **state)
{
	struct pair *p = *state;
	struct rc_qp *qp = rc_qp_at(p->a.w, p->a.qpn);
	struct error err = { "" };
	unsigned int i;

	for (i = 0; rc_cq_fences_reserve(p->a.w, &qp->init.recv_cq, 1, 1, NULL) == 0; i++)
		;
	assert_int_equal(i, 16);
	for (i = 0; i < 20; i++)
		assert_int_equal(rc_qp_export(p->a.w, p->a.qpn, 1, &err), -EAGAIN);
	assert_string_equal(err.text,
		"completion queue 1 holds completions from before earlier moves: poll it");
	assert_ptr_equal(rc_qp_at(p->a.w, p->a.qpn), qp); /* it stays on its worker */
	for (i = 0; rc_cq_fences_reserve(p->a.w, &qp->init.send_cq, 1, 1, NULL) == 0; i++)
		;
	assert_int_equal(i, 16);
}

/* A fence of one QP holds back only the ring that it is in. */
static void
test_other_rings_are_not_held_back(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_init_attr init;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct send_wr wr;
	struct sge sge;
	struct wc wc[4];
	uint32_t qpn;
	int n;

	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(other[0].w, &init, &qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(other[0].w, qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_ERR;
	assert_int_equal(rc_qp_modify(other[0].w, qpn, &attr, QP_ATTR_STATE, &err), 0);
	make_wr(&p->a, &wr, &sge, WR_SEND, 100, 1);
	assert_int_equal(rc_post_send(other[0].w, qpn, &wr, &err), 0); /* before the fence */
	move_complete(p, 1);
	move_move(&p->a);
	move_complete(p, 2);
	/* whichever ring is polled first: 100 is not behind a fence, 2 is behind 1 */
	n = rc_cq_poll(p->a.dev, p->a.send_cq, wc, 2);
	assert_int_equal(n, 2);
	assert_int_equal(wc[0].wr_id + wc[1].wr_id, 101);
	assert_int_equal(rc_cq_poll(p->a.dev, p->a.send_cq, wc, 4), 1);
	assert_int_equal(wc[0].wr_id, 2);
}

/* An armed CQ raises its event for a completion before the move. */
static void
test_armed(void **state)
{
	struct pair *p = *state;

	rc_cq_arm(p->a.dev, p->a.send_cq, false);
	post(&p->a, WR_RDMA_WRITE, 1, 1);
	transmit(&p->a);
	deliver(&p->a);
	transmit(&p->b);
	deliver(&p->b); /* completed, event not raised yet */
	p->a.event_count = 0;
	move_move(&p->a);
	assert_int_equal(p->a.event_count, 1);
	assert_int_equal(p->a.events[0].type, EVENT_CQ_COMPLETION);
	expect_left_quiet(&p->a, p->now);
}

/* rc-cases: an overrun CQ puts its QPs into ERR, also one that has just moved. */
static void
test_overrun(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.cq_depth = 2,
	});
	struct error err = { "" };
	struct qp_init_attr init;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct send_wr wr;
	struct sge sge;
	uint32_t qpn, i;

	*state = p;
	second_workers(p);
	/* a QP on the other worker overruns the CQ while ours moves there */
	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(other[0].w, &init, &qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(other[0].w, qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_ERR;
	assert_int_equal(rc_qp_modify(other[0].w, qpn, &attr, QP_ATTR_STATE, &err), 0);
	make_wr(&p->a, &wr, &sge, WR_SEND, 100, 1);
	assert_int_equal(rc_qp_export(p->a.w, p->a.qpn, 1, &err), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(rc_post_send(other[0].w, qpn, &wr, &err), 0);
	rc_run(other[0].w, p->now, 100);
	move_swap_workers(&p->a);
	assert_int_equal(rc_qp_import(p->a.w, p->a.qpn, 0), 0);
	rc_run(p->a.w, p->now, 100);
	assert_int_equal(state_of(&p->a), QPS_ERR);
}

/* --- slots, and the port --- */

/* The slot of a QP destroyed on another worker returns to the worker that it is from. */
static void
test_destroyed_elsewhere(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t qpn[32], round, i;

	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	init_attr(&p->a, &init);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 32; i++) { /* limits.max_qp 64, two workers */
			assert_int_equal(rc_qp_create(p->a.w, &init, &qpn[i], &err), 0);
			assert_int_equal(rc_qp_export(p->a.w, qpn[i], 1, &err), 0);
			assert_int_equal(rc_qp_import(other[0].w, qpn[i], 0), 0);
		}
		assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), -ENOSPC);
		assert_true(rc_worker_full(p->a.w));
		assert_false(rc_worker_full(other[0].w));
		assert_int_equal(rc_worker_qps(p->a.w), 0);
		assert_int_equal(rc_worker_qps(other[0].w), 32);
		for (i = 0; i < 32; i++)
			assert_int_equal(rc_qp_destroy(other[0].w, qpn[i], &err), 0);
		assert_false(rc_worker_full(p->a.w));
	}
	for (i = 0; i < 32; i++)
		assert_int_equal(rc_qp_create(other[0].w, &init, &qpn[i], &err), 0);
	assert_int_equal(rc_qp_create(other[0].w, &init, &p->a.qpn, &err), -ENOSPC);
	assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, &err), 0);
}

/* A QP that has moved gets its port's present attributes; other QPs do not change. */
static void
test_port_of_one(void **state)
{
	struct pair *p = *state;
	struct port_attr port = { .num_pkeys = 1, .pkey = { 0x8123 } };

	move_move(&p->a);
	rc_qp_path_changed(p->a.w, 99, 0, &port);
	assert_int_equal(info_of(&p->a).attr.pkey, 0xFFFF);
	rc_qp_path_changed(p->a.w, p->a.qpn, 1, &port);
	assert_int_equal(info_of(&p->a).attr.pkey, 0xFFFF);
	rc_qp_path_changed(p->a.w, p->a.qpn, 0, &port);
	assert_int_equal(info_of(&p->a).attr.pkey, 0x8123);
}

#define PAIR(t)     cmocka_unit_test_setup_teardown(t, move_setup, move_teardown)
#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, script_setup, move_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_moves_in_every_state, move_teardown),
		PAIR(test_found_nowhere_on_the_way),
		PAIR(test_refused_moves),
		PAIR(test_stays_without_memory_for_completions),
		PAIR(test_run_queue),
		SCRIPTED(test_transport_timer),
		SCRIPTED(test_rnr_wait),
		SCRIPTED(test_read_half_received),
		PAIR(test_read_half_answered),
		PAIR(test_send_half_received),
		PAIR(test_saved_atomic),
		cmocka_unit_test_teardown(test_grace_period, move_teardown),
		PAIR(test_window_moves_along),
		cmocka_unit_test_teardown(test_completions_in_order, move_teardown),
		cmocka_unit_test_teardown(test_order_over_three_workers, move_teardown),
		PAIR(test_moves_wait_for_the_poller),
		PAIR(test_move_fails_at_the_second_queue),
		PAIR(test_other_rings_are_not_held_back),
		PAIR(test_armed),
		cmocka_unit_test_teardown(test_overrun, move_teardown),
		PAIR(test_destroyed_elsewhere),
		PAIR(test_port_of_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
