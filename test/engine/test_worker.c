/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Workers: commands, full hand-off rings, idling, heartbeat, and the order of events.
 */

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_pause.h>

#include "engine/worker.h"
#include "node.h"

static int
worker_stop(void **state)
{
	if (*state != NULL)
		node_stop(*state, 0);
	return 0;
}

/* --- keep a worker busy in a command, so that it does nothing else --- */

struct hold {
	struct engine *engine;
	unsigned int worker;
	pthread_t thread;
	uint32_t held;
	uint32_t release;
};

static int
hold_here(struct worker *w, void *arg)
{
	struct hold *h = arg;

	(void)w;
	__atomic_store_n(&h->held, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&h->release, __ATOMIC_ACQUIRE) == 0)
		rte_pause();
	return 7;
}

static void *
hold_thread(void *arg)
{
	struct hold *h = arg;

	return (void *)(intptr_t)engine_call(h->engine, h->worker, hold_here, h);
}

static void
hold(struct hold *h, struct engine *e, unsigned int worker)
{
	*h = (struct hold){ .engine = e, .worker = worker };
	assert_int_equal(pthread_create(&h->thread, NULL, hold_thread, h), 0);
	eventually(__atomic_load_n(&h->held, __ATOMIC_ACQUIRE) == 1);
}

static void
let_go(struct hold *h)
{
	void *result;

	__atomic_store_n(&h->release, 1, __ATOMIC_RELEASE);
	pthread_join(h->thread, &result);
	assert_int_equal((intptr_t)result, 7);
}

/* --- commands --- */

static int
which(struct worker *w, void *arg)
{
	*(unsigned int *)arg = w->id;
	return -EXFULL;
}

static void
test_command_runs_on_its_worker_and_answers(void **state)
{
	struct engine *e;
	unsigned int id = 99;

	node_config();
	e = *state = node_start();
	assert_int_equal(engine_call(e, 1, which, &id), -EXFULL);
	assert_int_equal(id, 1);
	assert_int_equal(engine_call(e, 0, which, &id), -EXFULL);
	assert_int_equal(id, 0);
	assert_int_equal(engine_call(e, 2, which, &id), -EINVAL);
}

struct caller {
	struct engine *engine;
	pthread_t thread;
	unsigned int number;
};

static unsigned int order[COMMAND_RING * 2];
static unsigned int ran;

static int
worker_note(struct worker *w, void *arg)
{
	(void)w;
	order[ran++] = *(unsigned int *)arg;
	return 0;
}

static void *
call_note(void *arg)
{
	struct caller *c = arg;

	return (void *)(intptr_t)engine_call(c->engine, 1, worker_note, &c->number);
}

/*
 * More commands than the ring holds wait at a held worker; none is dropped, and they run in order.
 */
static void
test_commands_run_in_order_and_none_is_dropped(void **state)
{
	enum { FITS = COMMAND_RING - 1, ALL = COMMAND_RING + 10 };
	struct caller callers[ALL];
	struct worker_info info;
	struct engine *e;
	unsigned int i;
	void *result;
	struct hold h;

	node_config();
	e = *state = node_start();
	ran = 0;
	hold(&h, e, 1);
	for (i = 0; i < ALL; i++) {
		callers[i] = (struct caller){ .engine = e, .number = i };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, call_note, &callers[i]),
			0);
		if (i >= FITS)
			continue;
		/* wait until it is in the ring, before the next one */
		do
			engine_worker_info(e, 1, &info);
		while (info.commands != i + 1);
	}
	let_go(&h);
	for (i = 0; i < ALL; i++) {
		pthread_join(callers[i].thread, &result);
		assert_int_equal((intptr_t)result, 0);
	}
	assert_int_equal(ran, ALL);
	for (i = 0; i < FITS; i++)
		assert_int_equal(order[i], i);
}

/* --- hand-off --- */

/* design.md rule 1: if the ring is full, the sender drops and counts; the transport recovers. */
static void
test_full_handoff_ring_drops_and_counts(void **state)
{
	struct link_counters c0, c1;
	struct worker_info w0;
	struct engine *e;
	struct pair p;
	struct hold h;

	node_config()->handoff_ring = 64;
	e = *state = node_start();
	pair_create(e, &p, 0, 1);
	fill(p.a.mr.base, BUF_SIZE, 3);
	hold(&h, e, 1);
	/* 1024 packets for a worker that is busy: 63 fit */
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, BUF_SIZE, 1), 1);
	do {
		pause_ms(1);
		engine_worker_info(e, 0, &w0);
	} while (w0.handoff_full == 0);
	assert_int_equal(w0.handoff_out, 63);
	let_go(&h);
	expect_wc(e, &p.a, 1);
	assert_memory_equal(p.a.mr.base, p.b.mr.base, BUF_SIZE);
	engine_worker_info(e, 0, &w0);
	engine_port_counters(e, 1, 0, &c0);
	engine_port_counters(e, 1, 1, &c1);
	assert_int_equal(c0.verdict[VERDICT_HANDOFF_FULL], w0.handoff_full);
	assert_int_equal(c1.verdict[VERDICT_HANDOFF_FULL], 0);
	/* the owner counts the packets handed over */
	assert_true(c1.verdict[VERDICT_REQUEST] > 0);
	assert_int_equal(c0.verdict[VERDICT_REQUEST], 0);
	pair_destroy(e, &p);
}

/* --- idling --- */

static void
test_backoff_sleeps_and_wakes_for_commands(void **state)
{
	struct worker_info before, after;
	struct engine_config *c = node_config();
	struct engine *e;
	unsigned int id;

	c->idle = IDLE_BACKOFF;
	c->idle_spin_us = 0;
	c->idle_sleep_us = 10000;
	e = *state = node_start();
	engine_worker_info(e, 1, &before);
	do {
		pause_ms(1);
		engine_worker_info(e, 1, &after);
	} while (after.sleeps < before.sleeps + 20);
	/* it sleeps nearly all the time: few polls between two sleeps */
	assert_true(after.polls - before.polls < 1000 * (after.sleeps - before.sleeps));
	assert_int_equal(engine_call(e, 1, which, &id), -EXFULL);
	assert_int_equal(id, 1);
}

static void
test_polling_never_sleeps(void **state)
{
	struct worker_info before, after;
	struct engine *e;

	node_config()->idle = IDLE_POLL;
	e = *state = node_start();
	engine_worker_info(e, 0, &before);
	do {
		pause_ms(1);
		engine_worker_info(e, 0, &after);
	} while (after.polls < before.polls + 10000);
	assert_int_equal(after.sleeps, 0);
}

/*
 * A packet that arrives at a sleeping worker is received when a timer or the sleep ends.
 */
static void
test_traffic_wakes_a_sleeping_worker(void **state)
{
	struct engine_config *c = node_config();
	struct worker_info info;
	struct engine *e;
	struct pair p;
	int i;

	c->idle_spin_us = 0;
	c->idle_sleep_us = 10000;
	e = *state = node_start();
	pair_create(e, &p, 0, 1);
	for (i = 0; i < 10; i++) {
		uint64_t sleeps;

		engine_worker_info(e, 1, &info);
		sleeps = info.sleeps;
		do {
			pause_ms(1);
			engine_worker_info(e, 1, &info);
		} while (info.sleeps < sleeps + 5);
		assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 5000, 1), 1);
		expect_wc(e, &p.a, 1);
	}
	pair_destroy(e, &p);
}

/* --- heartbeat and events --- */

static void
test_stalled_worker_raises_an_alarm_once(void **state)
{
	struct worker_info info;
	struct engine *e;
	struct event ev;
	struct hold h;

	node_config()->stall_ms = 50;
	e = *state = node_start();
	while (engine_events(e, &ev, 1, NULL) == 1)
		;
	hold(&h, e, 1);
	pause_ms(100);
	engine_watch(e);
	engine_watch(e);
	engine_worker_info(e, 1, &info);
	assert_true(info.stalled);
	assert_true(info.heartbeat_age_us >= 50000);
	do
		assert_int_equal(engine_events(e, &ev, 1, NULL), 1);
	while (ev.type != EVENT_WORKER_STALL ||
		ev.element != 1); /* on a busy machine other workers stall, too */
	while (engine_events(e, &ev, 1, NULL) == 1)
		assert_false(ev.type == EVENT_WORKER_STALL && ev.element == 1);
	let_go(&h);
	do {
		pause_ms(1);
		engine_watch(e);
		engine_worker_info(e, 1, &info);
	} while (info.stalled);
	assert_true(info.longest_gap_us >= 50000);
}

static int
raise_events(struct worker *w, void *arg)
{
	struct event ev = { EVENT_COMM_EST, 0 };
	unsigned int i;

	for (i = 0; i < *(unsigned int *)arg; i++) {
		ev.element = w->id * 10000 + i;
		events_put(w, &ev);
	}
	return 0;
}

/* One system call for a change that somebody waits for, and none otherwise. */
static void
test_a_change_wakes_only_who_waits(void **state)
{
	struct engine *e;
	unsigned int one = 1;
	eventfd_t count;

	node_config();
	e = *state = node_start();
	engine_call(e, 1, raise_events, &one);
	assert_int_equal(eventfd_read(e->wakeup_fd, &count), -1);
	assert_true(engine_await(e));
	assert_false(engine_await(e));
	one = 3;
	engine_call(e, 1, raise_events, &one);
	assert_int_equal(eventfd_read(e->wakeup_fd, &count), 0);
	assert_int_equal(count, 1);
	assert_true(engine_await(e));
}

static void
test_events_come_oldest_first_and_the_lost_are_counted(void **state)
{
	unsigned int few = 3, many = EVENT_RING + 100, i, n;
	struct event ev[2 * EVENT_RING];
	struct engine *e;
	uint64_t lost;

	node_config();
	e = *state = node_start();
	while (engine_events(e, ev, 64, &lost) > 0)
		;
	assert_int_equal(lost, 0);
	engine_call(e, 1, raise_events, &few);
	engine_call(e, 0, raise_events, &few);
	assert_int_equal(engine_events(e, ev, 64, &lost), 6);
	for (i = 0; i < 6; i++)
		assert_int_equal(ev[i].element, i < 3 ? 10000 + i : i - 3);
	assert_int_equal(lost, 0);
	engine_call(e, 0, raise_events, &many);
	n = engine_events(e, ev, 2 * EVENT_RING, &lost);
	assert_int_equal(n, EVENT_RING - 1);
	assert_int_equal(lost, 101);
	for (i = 0; i < n; i++)
		assert_int_equal(ev[i].element, i);
}

/* The information about a worker has plausible values. */
static void
test_worker_info_has_plausible_values(void **state)
{
	struct worker_info info;
	struct engine *e;
	struct pair p;

	node_config();
	e = *state = node_start();
	pair_create(e, &p, 1, 1);
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, BUF_SIZE, 1), 1);
	expect_wc(e, &p.a, 1);
	engine_worker_info(e, 1, &info);
	assert_int_equal(info.lcore, 2);
	assert_true(info.cpu >= 0);
	assert_true(info.polls > info.busy_polls);
	assert_true(info.busy_polls > 0);
	assert_true(info.busy_share > 0 && info.busy_share < 1);
	assert_int_equal(info.qps, 2);
	assert_int_equal(info.commands, 0);
	assert_int_equal(info.handoff_depth, 0);
	pair_destroy(e, &p);
}

static void
test_created_but_not_started_and_started_again(void **state)
{
	struct error err = { "" };
	struct engine *e;
	unsigned int id;
	struct pair p;

	(void)state;
	e = engine_create(node_config(), &err);
	if (e == NULL)
		fail_msg("%s", err.text);
	assert_int_equal(engine_call(e, 1, which, &id), -EXFULL);
	assert_int_equal(id, 1);
	engine_stop(e, 100); /* not running: no effect */
	assert_ok(engine_start(e, &err));
	engine_stop(e, 0);
	assert_ok(engine_start(e, &err));
	pair_create(e, &p, 0, 1);
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 5000, 1), 1);
	expect_wc(e, &p.a, 1);
	/* destroyed with QPs, regions and an outstanding message: ASan finds no leak */
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, BUF_SIZE, 1), 1);
	node_stop(e, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_command_runs_on_its_worker_and_answers, worker_stop),
		cmocka_unit_test_teardown(test_commands_run_in_order_and_none_is_dropped,
			worker_stop),
		cmocka_unit_test_teardown(test_full_handoff_ring_drops_and_counts, worker_stop),
		cmocka_unit_test_teardown(test_backoff_sleeps_and_wakes_for_commands, worker_stop),
		cmocka_unit_test_teardown(test_polling_never_sleeps, worker_stop),
		cmocka_unit_test_teardown(test_traffic_wakes_a_sleeping_worker, worker_stop),
		cmocka_unit_test_teardown(test_stalled_worker_raises_an_alarm_once, worker_stop),
		cmocka_unit_test_teardown(test_a_change_wakes_only_who_waits, worker_stop),
		cmocka_unit_test_teardown(test_events_come_oldest_first_and_the_lost_are_counted,
			worker_stop),
		cmocka_unit_test_teardown(test_worker_info_has_plausible_values, worker_stop),
		cmocka_unit_test(test_created_but_not_started_and_started_again),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
