/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* cm.md 6: every message is lost once; connects cross; a side restarts. */

#include <errno.h>
#include <string.h>

#include "world.h"

#define A_INTERVAL (6144 * MS)
#define B_INTERVAL (4096 * MS)

static void
test_lost_req(void **state)
{
	struct world *w = *state;
	struct life *a;

	lose(&w->a, CM_REQ);
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare");
	pass(w, A_INTERVAL);
	expect_messages(&w->a, "REQ", "REQ", "RTU");
	expect_messages(&w->b, "REP");
	expect_log(a, "prepare established");
	expect_log(last_life(&w->b), "request prepare established");
}

static void
test_lost_rep(void **state)
{
	struct world *w = *state;
	struct life *a;

	lose(&w->b, CM_REP);
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare");
	pass(w, B_INTERVAL - 1);
	expect_messages(&w->b, "REP");
	pass(w, 1);
	expect_messages(&w->b, "REP");
	expect_messages(&w->a, "REQ", "RTU");
	expect_log(a, "prepare established");
	assert_int_equal(w->b.requests, 1);
}

static void
test_lost_rtu(void **state)
{
	struct world *w = *state;
	struct life *a;

	lose(&w->a, CM_RTU);
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare established");
	expect_log(last_life(&w->b), "request prepare");
	pass(w, B_INTERVAL);
	expect_messages(&w->b, "REP", "REP");
	expect_messages(&w->a, "REQ", "RTU", "RTU");
	expect_log(last_life(&w->b), "request prepare established");
	expect_log(a, "prepare established");
}

static void
test_lost_rej(void **state)
{
	struct world *w = *state;
	struct life *a;

	w->b.answer = CM_REJ_CONSUMER;
	lose(&w->b, CM_REJ);
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare");
	pass(w, A_INTERVAL);
	expect_messages(&w->b, "REJ", "REJ");
	expect_log(a, "prepare rejected released");
	assert_int_equal(a->info.reason, CM_REJ_CONSUMER);
	expect_nothing_left(&w->b);
}

/* a has given up. It answers b's REP, so that b forgets the connection, too. */
static void
test_rep_after_the_end(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	w->b.answer = CM_LATER;
	lose(&w->a, CM_REJ); /* the one for the abandoned REQ */
	a = start(&w->a);
	exchange(w);
	b = last_life(&w->b);
	disconnect(a);
	exchange(w);
	expect_log(a, "prepare cancelled released");
	assert_int_equal(cm_accept(w->b.cm, b->id, &w->b.param, w->now), 0);
	exchange(w);
	expect_messages(&w->b, "REP");
	expect_messages(&w->a, "REQ", "REJ", "REJ");
	expect_log(b, "request prepare rejected released");
	assert_int_equal(b->info.reason, CM_REJ_INVALID_ID);
	expect_nothing_left(&w->b);
}

/* The peer gives up its REQ and sends REJ: we keep nothing. */
static void
test_abandoned_req_is_forgotten(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	w->b.answer = CM_LATER;
	a = start(&w->a);
	exchange(w);
	b = last_life(&w->b);
	disconnect(a);
	exchange(w);
	expect_log(b, "request rejected released");
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
}

/* Both connect to the other's listener: two connections. */
static void
test_simultaneous_connects(void **state)
{
	struct world *w = *state;
	struct life *a = start(&w->a), *b = start(&w->b);

	exchange(w);
	expect_log(a, "prepare established");
	expect_log(b, "prepare established");
	expect_log(life_of(&w->a, 1), "request prepare established");
	expect_log(life_of(&w->b, 1), "request prepare established");
	assert_int_equal(count_conns(&w->a), 2);
	assert_int_equal(count_qps(&w->b), 2);
	send_data(a);
	send_data(b);
	exchange(w);
	assert_int_equal(received(&w->a), 1);
	assert_int_equal(received(&w->b), 1);
}

/* b's communication manager has restarted: it answers a's DREQ. */
static void
test_disconnect_of_a_peer_that_forgot(void **state)
{
	struct world *w = *state;
	struct cm_info info;
	struct life *a, *b;

	establish(w, &a, &b);
	/* b forgets the connection after a REJ that a did not send */
	info = b->info;
	w->a.deaf = true;
	cm_disconnect(w->b.cm, info.id, NULL, 0, w->now);
	pass(w, 200 * SECOND);
	for (unsigned int i = 0; i < 40; i++)
		pass(w, B_INTERVAL);
	expect_gone(&w->b, info.id);
	w->a.deaf = false;
	skip_messages(&w->b);
	expect_log(a, "prepare established");
	disconnect(a);
	exchange(w);
	expect_messages(&w->b, "DREP");
	expect_log(a, "prepare established disconnected");
}

/* The peer has crashed, and connects again with the same QPN. */
static void
test_restarted_peer_ends_the_old_connection(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rtu = { .type = CM_RTU, .tid = PEER_TID, .local_id = PEER_ID };
	struct life *old;

	peer_req(w, &req);
	peer_say(w, &req);
	old = last_life(&w->a);
	rtu.remote_id = old->id;
	peer_say(w, &rtu);
	skip_messages(&w->a);
	req.local_id += 5;
	req.tid += 5;
	peer_say(w, &req);
	expect_messages(&w->a, "REJ");
	expect_log(old, "request prepare established");
	/* its QP does not answer our three probes */
	pass(w, 2048 * MS);
	pass(w, 2048 * MS);
	expect_log(old, "request prepare established");
	pass(w, 2048 * MS);
	expect_log(old, "request prepare established stale");
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
}

/* 10,000 connections, up to 64 at a time: everything is freed. */
static void
test_ten_thousand_connections_are_freed(void **state)
{
	struct world *w = *state;
	struct life *a[64];
	unsigned int i, k;

	for (i = 0; i < 10000 / 64 + 1; i++) {
		for (k = 0; k < 64; k++)
			a[k] = start(&w->a);
		exchange(w);
		for (k = 0; k < 64; k++) {
			expect_state(&w->a, a[k]->id, CM_STATE_ESTABLISHED);
			disconnect(a[k]);
		}
		exchange(w);
		pass(w, 10 * SECOND);
		skip_messages(&w->a);
		skip_messages(&w->b);
	}
	assert_int_equal(w->a.established, 64 * i);
	assert_int_equal(w->b.established, 64 * i);
	assert_int_equal(w->a.released, 64 * i);
	assert_int_equal(w->b.released, 64 * i);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
	assert_int_equal(counters_of(&w->b).unmatched, 0);
	assert_int_equal(counters_of(&w->a).duplicates, 0);
}

static bool
all_released(struct world *w)
{
	return w->a.released == w->a.num_lives && w->b.released == w->b.num_lives;
}

/*
 * A third of all messages is lost, a third is duplicated. A connection established on one side is
 * or was established on the other, or ends. At the end all are freed, and each user was told once.
 */
static void
test_lossy_wire(void **state)
{
	static const char *const ends[] = { "disconnected", "rejected", "timeout", "stale" };
	struct world *w = *state;
	unsigned int round, i, k, n;

	w->a.loss = w->b.loss = 333;
	for (round = 0; round < 20; round++) {
		w->a.num_lives = w->b.num_lives = 0;
		w->a.released = w->b.released = 0;
		for (i = 0; i < 16; i++)
			start(i % 2 == 0 ? &w->a : &w->b);
		for (i = 0; i < 40; i++)
			pass(w, SECOND);
		for (i = 0; i < w->a.num_lives; i++)
			cm_disconnect(w->a.cm, w->a.lives[i].id, NULL, 0, w->now);
		for (i = 0; i < 400 && !all_released(w); i++) {
			pass(w, SECOND);
			if (i % 50 == 49) /* connections that a has forgotten */
				for (k = 0; k < w->b.num_lives; k++)
					cm_disconnect(w->b.cm, w->b.lives[k].id, NULL, 0, w->now);
			skip_messages(&w->a);
			skip_messages(&w->b);
		}
		assert_true(all_released(w));
		for (i = 0; i < w->a.num_lives; i++) {
			const char *log = w->a.lives[i].log;

			for (n = k = 0; k < 4; k++)
				n += strstr(log, ends[k]) != NULL;
			n += strstr(log, "cancelled") != NULL;
			assert_int_equal(n, 1);
			assert_non_null(strstr(log, "released"));
		}
		expect_nothing_left(&w->a);
		expect_nothing_left(&w->b);
	}
	assert_true(w->a.established > 100);
	assert_true(w->b.established > 100);
	assert_true(counters_of(&w->a).retries > 100);
	assert_true(counters_of(&w->b).duplicates > 100);
}

/* Destroying the manager ends connections without messages. */
static void
test_destroy_with_connections(void **state)
{
	struct world *w = *state;
	struct life *a, *b, *half;

	establish(w, &a, &b);
	w->b.deaf = true;
	half = start(&w->a);
	cm_destroy(w->a.cm);
	w->a.cm = NULL;
	expect_log(a, "prepare established released");
	expect_log(half, "prepare released");
	assert_int_equal(count_qps(&w->a), 0);
	mad_worker_destroy(w->a.mad);
	rc_worker_destroy(w->a.rc);
	rc_dev_destroy(w->a.dev);
	mem_destroy(w->a.mem);
	timer_wheel_destroy(w->a.wheel);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define S(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_lost_req),
		T(test_lost_rep),
		T(test_lost_rtu),
		T(test_lost_rej),
		T(test_rep_after_the_end),
		T(test_abandoned_req_is_forgotten),
		T(test_simultaneous_connects),
		T(test_disconnect_of_a_peer_that_forgot),
		S(test_restarted_peer_ends_the_old_connection),
		T(test_ten_thousand_connections_are_freed),
		T(test_lossy_wire),
		T(test_destroy_with_connections),
	};

	return cmocka_run_group_tests_name("cm: loss", tests, NULL, NULL);
}
