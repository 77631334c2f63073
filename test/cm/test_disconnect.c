/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* cm.md 6, both sides: DREQ and DREP lost, repeated or crossing, and QPs that fail. */

#include <errno.h>
#include <string.h>

#include "world.h"

/* intervals of a's REQ and of b's REP (cm.md 5) */
#define A_INTERVAL (6144 * MS)
#define B_INTERVAL (4096 * MS)

static void
test_dreq_names_the_receivers_qp(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	struct cm_msg dreq, drep;

	establish(w, &a, &b);
	assert_int_equal(cm_disconnect(w->a.cm, a->id, (const uint8_t *)"bye", 3, w->now), 0);
	run(&w->a);
	dreq = next_message(&w->a, CM_DREQ);
	assert_int_equal(dreq.dreq.qpn, b->qpn);
	assert_int_equal(dreq.local_id, a->id);
	assert_int_equal(dreq.remote_id, b->id);
	exchange(w);
	drep = next_message(&w->b, CM_DREP);
	assert_true(drep.tid == dreq.tid);
	assert_int_equal(drep.local_id, b->id);
	assert_int_equal(drep.remote_id, a->id);
	assert_int_equal(b->private_len, CM_DREQ_PRIVATE);
	assert_memory_equal(b->private_data, "bye", 4);
	assert_int_equal(cm_disconnect(w->a.cm, a->id, NULL, 0, w->now), -EALREADY);
}

static void
test_passive_side_disconnects(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	establish(w, &a, &b);
	assert_int_equal(disconnect(b), 0);
	assert_int_equal(disconnect(b), -EALREADY);
	exchange(w);
	expect_messages(&w->b, "DREQ");
	expect_messages(&w->a, "DREP");
	expect_log(a, "prepare established disconnected");
	expect_log(b, "request prepare established disconnected");
	pass(w, 10 * SECOND);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
}

static void
test_dreqs_cross(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	establish(w, &a, &b);
	disconnect(a);
	disconnect(b);
	exchange(w);
	expect_messages(&w->a, "DREQ", "DREP");
	expect_messages(&w->b, "DREQ", "DREP");
	expect_log(a, "prepare established disconnected");
	expect_log(b, "request prepare established disconnected");
	expect_state(&w->a, a->id, CM_STATE_TIMEWAIT);
	expect_state(&w->b, b->id, CM_STATE_TIMEWAIT);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
	expect_silence(&w->b);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
}

static void
test_lost_dreq_comes_again(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	establish(w, &a, &b);
	lose(&w->a, CM_DREQ);
	disconnect(a);
	exchange(w);
	expect_log(b, "request prepare established");
	pass(w, A_INTERVAL - 1);
	expect_messages(&w->a, "DREQ");
	pass(w, 1);
	expect_messages(&w->a, "DREQ");
	expect_messages(&w->b, "DREP");
	expect_log(a, "prepare established disconnected");
}

/* The peer in TIMEWAIT answers again. */
static void
test_lost_drep(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	establish(w, &a, &b);
	lose(&w->a, CM_DREP);
	disconnect(b);
	exchange(w);
	expect_state(&w->a, a->id, CM_STATE_TIMEWAIT);
	expect_state(&w->b, b->id, CM_STATE_DREQ_SENT);
	/* when b repeats the DREQ, a has forgotten the connection, but still sends a DREP */
	pass(w, B_INTERVAL);
	expect_messages(&w->b, "DREQ", "DREQ");
	expect_messages(&w->a, "DREP", "DREP");
	expect_gone(&w->a, a->id);
	expect_state(&w->b, b->id, CM_STATE_TIMEWAIT);
	assert_int_equal(counters_of(&w->b).disconnects, 1);
}

static void
test_dreq_gives_up(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	unsigned int i;

	establish(w, &a, &b);
	w->b.deaf = true;
	disconnect(a);
	for (i = 0; i < 16; i++) {
		expect_messages(&w->a, "DREQ");
		expect_state(&w->a, a->id, CM_STATE_DREQ_SENT);
		pass(w, A_INTERVAL);
	}
	expect_silence(&w->a);
	expect_state(&w->a, a->id, CM_STATE_TIMEWAIT);
	expect_log(a, "prepare established disconnected");
}

static void
test_every_message_twice(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	w->a.twice = w->b.twice = true;
	establish(w, &a, &b);
	expect_log(a, "prepare established");
	expect_log(b, "request prepare established");
	disconnect(a);
	exchange(w);
	expect_log(a, "prepare established disconnected");
	expect_log(b, "request prepare established disconnected");
	pass(w, 100 * SECOND);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
	assert_int_equal(counters_of(&w->a).connections, 1);
	assert_int_equal(counters_of(&w->b).connections, 1);
	assert_int_equal(counters_of(&w->b).unmatched, 0);
}

/* --- the test acts as peer --- */

static struct life *
disconnect_connected(struct world *w)
{
	struct cm_msg req;

	peer_req(w, &req);
	peer_say(w, &req);
	peer_answer(w, CM_RTU, last_life(&w->a)->id);
	skip_messages(&w->a);
	return last_life(&w->a);
}

static void
test_dreq_of_no_context(void **state)
{
	struct world *w = *state;
	struct cm_msg drep;

	peer_dreq(w, 0x1234, PEER_ID, 77);
	drep = next_message(&w->a, CM_DREP);
	assert_int_equal(drep.local_id, 0x1234);
	assert_int_equal(drep.remote_id, PEER_ID);
	assert_true(drep.tid == PEER_TID + 1);
	assert_int_equal(counters_of(&w->a).unmatched, 1);
}

static void
test_dreq_with_a_wrong_qpn(void **state)
{
	struct world *w = *state;
	struct life *l = disconnect_connected(w);

	peer_dreq(w, l->id, PEER_ID, l->qpn + 1);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	assert_int_equal(counters_of(&w->a).malformed, 1);
	peer_dreq(w, l->id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	peer_dreq(w, l->id, PEER_ID, l->qpn + 1);
	expect_silence(&w->a);
	peer_dreq(w, l->id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	assert_int_equal(counters_of(&w->a).duplicates, 1);
}

static void
test_rej_of_dreq_ends_it(void **state)
{
	struct world *w = *state;
	struct life *l = disconnect_connected(w);

	disconnect(l);
	peer_rej(w, l->id, PEER_ID, CM_REJ_INVALID_ID);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	expect_log(l, "request prepare established disconnected");
}

/* A DREQ that waits for the sink is not sent if the connection ends before. */
static void
test_waiting_dreq_is_not_sent_after_the_end(void **state)
{
	struct world *w = *state;
	struct life *l = disconnect_connected(w);
	unsigned int i;

	w->a.room = 0;
	for (i = 0; i < 64; i++)
		peer_dreq(w, 0x1234, PEER_ID, 77); /* lib/mad keeps their DREPs */
	disconnect(l);
	assert_true(cm_pending(w->a.cm));
	peer_dreq(w, l->id, PEER_ID, l->qpn);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	assert_false(cm_pending(w->a.cm));
	w->a.room = UINT32_MAX;
	run(&w->a);
	for (i = 0; i < 64; i++)
		next_message(&w->a, CM_DREP);
	expect_silence(&w->a);
}

/* --- users that call the manager in a callback --- */

static void
disconnect_now(struct life *l)
{
	assert_int_equal(cm_disconnect(l->node->cm, l->id, NULL, 0, l->node->world->now), 0);
}

static void
disconnect_too_late(struct life *l)
{
	cm_disconnect(l->node->cm, l->id, NULL, 0, l->node->world->now);
}

static void
test_user_disconnects_from_established(void **state)
{
	struct world *w = *state;
	struct life *a;

	w->a.on_established = disconnect_now;
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare established disconnected");
	w->a.on_established = NULL;
	w->b.on_established = disconnect_now;
	w->b.on_ended = w->a.on_ended = disconnect_too_late;
	a = start(&w->a);
	exchange(w);
	expect_log(a, "prepare established disconnected");
	expect_log(last_life(&w->b), "request prepare established disconnected");
	pass(w, 100 * SECOND);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
}

/* --- events of lib/rc --- */

/* An RDMA Write with a wrong R_Key: NAK, and EVENT_QP_ACCESS_ERR at b. */
static void
test_qp_error_disconnects(void **state)
{
	struct world *w = *state;
	struct send_wr wr = { .opcode = WR_RDMA_WRITE, .num_sge = 1, .remote_addr = 1, .rkey = 1 };
	struct life *a, *b;
	struct sge sge;

	establish(w, &a, &b);
	sge = (struct sge){ w->a.va, 8, w->a.key };
	wr.sg_list = &sge;
	assert_int_equal(rc_post_send(w->a.rc, a->qpn, &wr, NULL), 0);
	exchange(w);
	expect_messages(&w->b, "DREQ");
	expect_messages(&w->a, "DREP");
	expect_log(b, "request prepare established qp error");
	expect_log(a, "prepare established disconnected");
	pass(w, 100 * SECOND);
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
}

/* cm.md 6: data establish the connection if the RTU was lost */
static void
test_data_before_rtu(void **state)
{
	struct world *w = *state;
	struct life *a = start(&w->a);

	lose(&w->a, CM_RTU);
	exchange(w);
	expect_log(a, "prepare established");
	expect_log(last_life(&w->b), "request prepare");
	send_data(a);
	exchange(w);
	expect_log(last_life(&w->b), "request prepare established");
	assert_int_equal(last_life(&w->b)->private_len, 0);
	assert_int_equal(received(&w->b), 1);
	pass(w, 100 * SECOND);
	assert_int_equal(counters_of(&w->b).retries, 0);
}

static void
test_events_of_other_qps_are_ignored(void **state)
{
	struct world *w = *state;
	const struct event ev = { EVENT_QP_FATAL, 0x123 };
	struct life *a, *b;

	establish(w, &a, &b);
	cm_qp_event(w->a.cm, &ev);
	assert_false(cm_pending(w->a.cm));
	expect_log(a, "prepare established");
}

/* The connection has ended before cm_run() handles its event. */
static void
test_event_of_an_ended_connection(void **state)
{
	struct world *w = *state;
	struct life *l = disconnect_connected(w);
	const struct event ev = { EVENT_QP_FATAL, l->qpn };

	cm_qp_event(w->a.cm, &ev);
	cm_disconnect(w->a.cm, l->id, NULL, 0, w->now);
	run(&w->a);
	expect_messages(&w->a, "DREQ");
	peer_answer(w, CM_DREP, l->id);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	assert_false(cm_pending(w->a.cm));
	cm_qp_event(w->a.cm, &ev);
	assert_false(cm_pending(w->a.cm));
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define S(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_dreq_names_the_receivers_qp),
		T(test_passive_side_disconnects),
		T(test_dreqs_cross),
		T(test_lost_dreq_comes_again),
		T(test_lost_drep),
		T(test_dreq_gives_up),
		T(test_every_message_twice),
		S(test_dreq_of_no_context),
		S(test_dreq_with_a_wrong_qpn),
		S(test_rej_of_dreq_ends_it),
		S(test_waiting_dreq_is_not_sent_after_the_end),
		T(test_user_disconnects_from_established),
		T(test_qp_error_disconnects),
		T(test_data_before_rtu),
		T(test_events_of_other_qps_are_ignored),
		S(test_event_of_an_ended_connection),
	};

	return cmocka_run_group_tests_name("cm: disconnect", tests, NULL, NULL);
}
