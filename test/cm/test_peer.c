/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Forged messages: they have a connection's IDs, or its peer's CA GUID, but come from another
 * address than the peer's. An attacker can guess 32-bit IDs and knows GUIDs, so such messages must
 * have no effect. Host 7 is the attacker.
 */

#include <string.h>

#include "world.h"

#define STRANGER 7

static struct life *
peer_half_open(struct world *w)
{
	struct cm_msg req;

	peer_req(w, &req);
	peer_say(w, &req);
	skip_messages(&w->a);
	return last_life(&w->a);
}

static struct life *
peer_connected(struct world *w)
{
	struct life *l = peer_half_open(w);

	peer_answer(w, CM_RTU, l->id);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	return l;
}

/* Deliver a message that fits the connection, from the attacker's address. */
static void
peer_forge(struct world *w, const struct life *l, struct cm_msg m)
{
	m.tid = PEER_TID;
	m.local_id = PEER_ID;
	m.remote_id = l->id;
	if (m.type == CM_DREQ)
		m.dreq.qpn = l->qpn;
	peer_say_from(w, &m, STRANGER);
}

static void
test_stranger_does_not_end_a_connection(void **state)
{
	static const struct cm_msg rej = {
		.type = CM_REJ,
		.rej = { .answers = CM_ANSWERS_OTHER, .reason = CM_REJ_CONSUMER },
	};
	struct world *w = *state;
	struct life *l = peer_connected(w);
	struct cm_msg short_rej = rej;

	peer_forge(w, l, rej);
	expect_silence(&w->a);
	/* a REJ that needs only our ID (cm.md 2) */
	short_rej.remote_id = l->id;
	peer_say_from(w, &short_rej, STRANGER);
	expect_silence(&w->a);
	/* answered as if the connection did not exist */
	peer_forge(w, l, (struct cm_msg){ .type = CM_DREQ });
	expect_messages(&w->a, "DREP");
	expect_log(l, "request prepare established");
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	assert_int_equal(qp_state_of(&w->a, l->qpn), QPS_RTS);
	assert_int_equal(counters_of(&w->a).wrong_peer, 3);
	peer_rej(w, l->id, 0, CM_REJ_CONSUMER);
	expect_log(l, "request prepare established rejected");
}

static void
test_stranger_does_not_complete_a_connection(void **state)
{
	struct world *w = *state;
	struct life *l = peer_half_open(w);

	peer_forge(w, l, (struct cm_msg){ .type = CM_RTU });
	peer_forge(w, l, (struct cm_msg){ .type = CM_MRA, .mra = { .answers = CM_ANSWERS_REP } });
	expect_state(&w->a, l->id, CM_STATE_REP_SENT);
	assert_int_equal(counters_of(&w->a).wrong_peer, 2);
	peer_answer(w, CM_RTU, l->id);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

static void
test_stranger_does_not_answer_our_req(void **state)
{
	struct world *w = *state;
	struct life *l = start(&w->a);
	struct cm_msg req = next_message(&w->a, CM_REQ), rep, rej = { .type = CM_REJ };

	peer_rep(w, &rep, &req);
	peer_say_from(w, &rep, STRANGER);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_INVALID_ID);
	rej = (struct cm_msg){ .type = CM_REJ, .rej = { .reason = CM_REJ_INVALID_SERVICE_ID } };
	peer_forge(w, l, rej);
	expect_state(&w->a, l->id, CM_STATE_REQ_SENT);
	peer_say(w, &rep);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

static void
test_stranger_does_not_end_our_dreq(void **state)
{
	struct world *w = *state;
	struct life *l = peer_connected(w);

	assert_int_equal(disconnect(l), 0);
	expect_messages(&w->a, "DREQ");
	peer_forge(w, l, (struct cm_msg){ .type = CM_DREP });
	expect_state(&w->a, l->id, CM_STATE_DREQ_SENT);
	peer_answer(w, CM_DREP, l->id);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
}

/* A forged LAP does not load another path. */
static void
test_stranger_does_not_load_a_path(void **state)
{
	struct world *w = *state;
	struct life *l = peer_connected(w);
	struct cm_msg req, apr;

	peer_req(w, &req);
	peer_forge(w, l,
		(struct cm_msg){
			.type = CM_LAP,
			.lap = { .qpn = l->qpn, .alternate = req.req.primary },
		});
	apr = next_message(&w->a, CM_APR);
	assert_int_equal(apr.apr.status, CM_APR_INVALID_ID);
}

/* Deliver a REQ of the attacker with the peer's CA GUID. */
static void
claim(struct world *w, uint32_t id, uint32_t qpn)
{
	struct cm_msg req;

	peer_req(w, &req);
	req.local_id = id;
	req.req.qpn = qpn;
	req.req.primary.local_gid.raw[15] = STRANGER;
	req.req.primary.local_lid = w->ib ? STRANGER : 0xFFFF;
	peer_say_from(w, &req, STRANGER);
}

/*
 * cm.md 6: a REQ is stale or a duplicate only if its address is the peer's, too. Connections of
 * others stay, and do not prevent new ones.
 */
static void
test_forged_guid_does_not_end_connections(void **state)
{
	struct world *w = *state;
	struct life *l = peer_connected(w);

	claim(w, PEER_ID + 7, PEER_QPN);
	expect_messages(&w->a, "REP");
	claim(w, PEER_ID, PEER_QPN + 1);
	expect_messages(&w->a, "REP");
	expect_log(l, "request prepare established");
	assert_int_equal(counters_of(&w->a).stale, 0);
}

static void
test_forged_guid_does_not_prevent_connections(void **state)
{
	struct world *w = *state;

	claim(w, PEER_ID + 7, PEER_QPN);
	claim(w, PEER_ID, PEER_QPN + 1);
	expect_messages(&w->a, "REP", "REP");
	peer_connected(w);
}

/* A forged REJ with only the GUID and the peer's ID (cm.md 2) ends no attempt. */
static void
test_stranger_does_not_end_a_half_open_connection(void **state)
{
	struct world *w = *state;
	struct cm_msg rej = {
		.type = CM_REJ,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.rej = { .answers = CM_ANSWERS_OTHER, .reason = CM_REJ_TIMEOUT, .ari_len = 8 },
	};
	struct life *l = peer_half_open(w);

	put_be64(rej.rej.ari, GUID_B);
	peer_say_from(w, &rej, STRANGER);
	expect_state(&w->a, l->id, CM_STATE_REP_SENT);
	peer_say(w, &rej);
	expect_gone(&w->a, l->id);
}

static int
peer_ib_setup(void **state)
{
	static const struct world ib = { .scripted = true, .ib = true };

	*state = world_create(&ib);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)
/* clang-format off */
#define I(name)                                                                                    \
	{ #name " on native ib", name, peer_ib_setup, world_teardown, NULL }
/* clang-format on */

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_stranger_does_not_end_a_connection),
		I(test_stranger_does_not_end_a_connection),
		T(test_stranger_does_not_complete_a_connection),
		T(test_stranger_does_not_answer_our_req),
		I(test_stranger_does_not_answer_our_req),
		T(test_stranger_does_not_end_our_dreq),
		T(test_stranger_does_not_load_a_path),
		T(test_forged_guid_does_not_end_connections),
		I(test_forged_guid_does_not_end_connections),
		T(test_forged_guid_does_not_prevent_connections),
		T(test_stranger_does_not_end_a_half_open_connection),
	};

	return cmocka_run_group_tests_name("cm: peer", tests, NULL, NULL);
}
