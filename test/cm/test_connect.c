/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* cm.md 6 and 4: two communication managers connect, transfer, disconnect. */

#include <string.h>

#include "world.h"

static void
test_connect_transfer_disconnect(void **state)
{
	struct world *w = *state;
	struct life *a = start(&w->a), *b;

	expect_state(&w->a, a->id, CM_STATE_REQ_SENT);
	expect_messages(&w->a, "REQ");
	exchange(w);
	expect_messages(&w->b, "REP");
	expect_messages(&w->a, "RTU");
	b = last_life(&w->b);
	expect_state(&w->a, a->id, CM_STATE_ESTABLISHED);
	expect_state(&w->b, b->id, CM_STATE_ESTABLISHED);
	expect_log(a, "prepare established");
	expect_log(b, "request prepare established");

	send_data(a);
	send_data(b);
	exchange(w);
	assert_int_equal(received(&w->a), 1);
	assert_int_equal(received(&w->b), 1);

	assert_int_equal(disconnect(a), 0);
	expect_messages(&w->a, "DREQ");
	expect_state(&w->a, a->id, CM_STATE_DREQ_SENT);
	assert_int_equal(qp_state_of(&w->a, a->qpn), QPS_ERR);
	exchange(w);
	expect_messages(&w->b, "DREP");
	expect_silence(&w->a);
	expect_state(&w->a, a->id, CM_STATE_TIMEWAIT);
	expect_state(&w->b, b->id, CM_STATE_TIMEWAIT);
	expect_log(a, "prepare established disconnected");
	expect_log(b, "request prepare established disconnected");

	/* both QPs have LocalAckTimeout 19 or 20: 2 or 4 seconds of TIMEWAIT */
	pass(w, 5 * SECOND);
	expect_log(a, "prepare established disconnected released");
	expect_log(b, "request prepare established disconnected released");
	expect_nothing_left(&w->a);
	expect_nothing_left(&w->b);
	assert_int_equal(counters_of(&w->a).connections, 1);
	assert_int_equal(counters_of(&w->b).disconnects, 1);
}

/* A node connects to itself: one manager has both sides' IDs in its tables. */
static void
test_connect_to_itself(void **state)
{
	struct world *w = *state;
	struct node *n = &w->a;
	struct life *active, *passive;

	n->peer = n;
	n->port.gid[1] = n->port.gid[0];
	n->port.gid[1].gid = world_av(n).dgid;
	n->port.num_gids = 2;
	active = start(n);
	exchange(w);
	passive = last_life(n);
	expect_messages(n, "REQ", "REP", "RTU");
	expect_log(active, "prepare established");
	expect_log(passive, "request prepare established");
	send_data(active);
	send_data(passive);
	exchange(w);
	assert_int_equal(received(n), 2);
	assert_int_equal(disconnect(passive), 0);
	exchange(w);
	expect_messages(n, "DREQ", "DREP");
	pass(w, 5 * SECOND);
	expect_log(active, "prepare established disconnected released");
	expect_log(passive, "request prepare established disconnected released");
	expect_nothing_left(n);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connect_transfer_disconnect, world_setup,
			world_teardown),
		cmocka_unit_test_setup_teardown(test_connect_transfer_disconnect, world_setup_ib,
			world_teardown),
		cmocka_unit_test_setup_teardown(test_connect_to_itself, world_setup,
			world_teardown),
	};

	return cmocka_run_group_tests_name("cm: connect", tests, NULL, NULL);
}
