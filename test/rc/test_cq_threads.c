/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Two workers write completions into one CQ while a third thread polls and arms it. Each QP is in
 * ERR, so each request that its worker posts completes at once with a flush error.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "pair.h"

#define WORKERS 2
#define DEPTH   64
#define WRS     20000 /* of each worker */

struct writer {
	struct node *node;
	struct rc_worker *w;
	struct timer_wheel *wheel;
	uint32_t qpn;
	uint64_t polled; /* completions that the poller has taken; the poller counts */
	uint64_t written; /* completions of which rc_run() has told the poller */
	uint32_t woken; /* calls of awaited() */
};

static void
woken(void *arg)
{
	struct writer *writer = arg;

	__atomic_fetch_add(&writer->woken, 1, __ATOMIC_RELEASE);
}

static void
no_event(void *arg, const struct event *ev)
{
	(void)arg;
	(void)ev;
}

static void
writer_create(struct writer *writer, struct node *n, unsigned int id)
{
	struct rc_worker_config wc = {
		.id = id,
		.tx = &n->sink,
		.event = no_event,
		.awaited = woken,
		.event_arg = writer,
	};
	struct qp_attr attr = qp_attr_of(n);
	struct qp_init_attr init;
	struct error err = { "" };

	*writer = (struct writer){ .node = n };
	writer->wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	wc.wheel = writer->wheel;
	writer->w = rc_worker_create(n->dev, &wc);
	assert_non_null(writer->w);
	init_attr(n, &init);
	assert_int_equal(rc_qp_create(writer->w, &init, &writer->qpn, &err), 0);
	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(writer->w, writer->qpn, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_ERR;
	assert_int_equal(rc_qp_modify(writer->w, writer->qpn, &attr, QP_ATTR_STATE, &err), 0);
}

static void
writer_destroy(struct writer *writer)
{
	rc_worker_destroy(writer->w);
	timer_wheel_destroy(writer->wheel);
}

/* Post and complete all requests, never more than half of the CQ for each worker at a time. */
static void *
write_completions(void *arg)
{
	static char refused[] = "a request was refused";
	struct writer *writer = arg;
	uint64_t i, ahead;

	for (i = 0; i < WRS; i++) {
		struct send_wr wr;
		struct sge sge;

		do {
			ahead = i - __atomic_load_n(&writer->polled, __ATOMIC_RELAXED);
			if (ahead >= DEPTH / WORKERS)
				sched_yield();
		} while (ahead >= DEPTH / WORKERS);
		make_wr(writer->node, &wr, &sge, WR_RDMA_WRITE, i, 1);
		if (rc_post_send(writer->w, writer->qpn, &wr, NULL) != 0)
			return refused;
		rc_run(writer->w, 0, 16);
		__atomic_store_n(&writer->written, i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Completions of each QP come in its order, none is lost, none comes twice. */
static unsigned int
take_completions(struct node *n, struct writer *writers)
{
	struct wc wc[DEPTH];
	int got = rc_cq_poll(n->dev, n->send_cq, wc, DEPTH);
	int i;

	assert_true(got >= 0);
	for (i = 0; i < got; i++) {
		struct writer *from = &writers[wc[i].qp_num == writers[1].qpn];

		assert_int_equal(wc[i].qp_num, from->qpn);
		assert_int_equal(wc[i].wr_id, from->polled);
		assert_int_equal(wc[i].status, WC_WR_FLUSH_ERR);
		__atomic_store_n(&from->polled, from->polled + 1, __ATOMIC_RELAXED);
	}
	return (unsigned int)got;
}

/*
 * The poller waits only after rc_cq_await() and a poll that took nothing. Then the next completion
 * must wake it; .written shows a completion that came without.
 */
static void
test_no_completion_comes_without_waking_the_poller(void **state)
{
	struct pair *p = *state;
	struct writer writers[WORKERS];
	pthread_t thread[WORKERS];
	unsigned int i, got = 0;
	void *failed;

	for (i = 0; i < WORKERS; i++)
		writer_create(&writers[i], &p->b, i + 1);
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_completions, &writers[i]),
			0);
	while (got < WORKERS * WRS) {
		uint32_t before = 0, after;

		for (i = 0; i < WORKERS; i++)
			before += __atomic_load_n(&writers[i].woken, __ATOMIC_ACQUIRE);
		assert_int_equal(rc_cq_await(p->b.dev, p->b.send_cq), 0);
		i = take_completions(&p->b, writers);
		got += i;
		if (i != 0)
			continue;
		do { /* asleep: whoever writes wakes us before it says that it has written */
			bool written = false;

			for (i = 0; i < WORKERS; i++)
				written |= __atomic_load_n(&writers[i].written, __ATOMIC_ACQUIRE) >
					writers[i].polled;
			after = 0;
			for (i = 0; i < WORKERS; i++)
				after += __atomic_load_n(&writers[i].woken, __ATOMIC_ACQUIRE);
			assert_false(written && after == before);
			sched_yield();
		} while (after == before);
	}
	for (i = 0; i < WORKERS; i++) {
		pthread_join(thread[i], &failed);
		assert_null(failed);
		assert_int_equal(writers[i].polled, WRS);
	}
	for (i = 0; i < WORKERS; i++)
		writer_destroy(&writers[i]);
}

/* One rc_cq_await(), one call: completions that follow do not wake a poller that is awake. */
static void
test_poller_is_woken_once_for_each_await(void **state)
{
	struct pair *p = *state;
	struct writer writer;
	unsigned int i;

	writer_create(&writer, &p->b, 1);
	for (i = 0; i < 6; i++) {
		struct send_wr wr;
		struct sge sge;

		if (i % 3 == 0)
			assert_int_equal(rc_cq_await(p->b.dev, p->b.send_cq), 0);
		make_wr(writer.node, &wr, &sge, WR_RDMA_WRITE, i, 1);
		assert_int_equal(rc_post_send(writer.w, writer.qpn, &wr, NULL), 0);
		rc_run(writer.w, 0, 16);
		assert_int_equal(writer.woken, i / 3 + 1);
	}
	writer_destroy(&writer);
}

static int
cq_threads_setup(void **state)
{
	*state = pair_create(&(struct pair_config){
		.retry_cnt = 7,
		.rnr_retry = 7,
		.cq_depth = DEPTH,
		.workers = WORKERS + 1,
	});
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_no_completion_comes_without_waking_the_poller,
			cq_threads_setup, pair_teardown),
		cmocka_unit_test_setup_teardown(test_poller_is_woken_once_for_each_await,
			cq_threads_setup, pair_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
