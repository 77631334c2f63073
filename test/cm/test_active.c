/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * cm.md 6, active side; the test acts as peer. Times are those of section 5, values of section 4.
 */

#include <errno.h>
#include <string.h>

#include "world.h"

/* RoCE: PacketLifeTime 18, response timeout 20: 2 * 1024 + 4096 ms (cm.md 5) */
#define REQ_INTERVAL (6144 * MS)

static struct cm_msg
active_begin(struct world *w, struct life **l)
{
	*l = start(&w->a);
	return next_message(&w->a, CM_REQ);
}

/* Connect: the peer answers with REP. */
static struct life *
active_connected(struct world *w)
{
	struct cm_msg req, rep;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	next_message(&w->a, CM_RTU);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	return l;
}

/* --- contents of the messages --- */

static void
test_contents_of_the_req(void **state)
{
	struct world *w = *state;
	struct life *l;
	struct cm_msg m = active_begin(w, &l);

	assert_int_equal(m.local_id, l->id);
	assert_true(m.req.service_id == WORLD_SERVICE);
	assert_true(m.req.ca_guid == GUID_A);
	assert_int_equal(m.req.qpn, l->qpn);
	assert_int_equal(m.req.responder_resources, 4);
	assert_int_equal(m.req.initiator_depth, 4);
	assert_int_equal(m.req.remote_response_timeout, 20);
	assert_int_equal(m.req.local_response_timeout, 20);
	assert_int_equal(m.req.transport, CM_TRANSPORT_RC);
	assert_int_equal(m.req.retry_count, 7);
	assert_int_equal(m.req.rnr_retry_count, 7);
	assert_int_equal(m.req.max_cm_retries, 15);
	assert_int_equal(m.req.pkey, 0xFFFF);
	assert_int_equal(m.req.mtu, 3);
	assert_false(m.req.srq);
	assert_false(cm_msg_path_present(&m.req.alternate));
	/* cm.md 7: HopLimit > 1 */
	assert_int_equal(m.req.primary.local_lid, 0xFFFF);
	assert_int_equal(m.req.primary.remote_lid, 0xFFFF);
	assert_false(m.req.primary.subnet_local);
	assert_int_equal(m.req.primary.hop_limit, 64);
	assert_int_equal(m.req.primary.local_gid.raw[15], 1);
	assert_int_equal(m.req.primary.remote_gid.raw[15], 2);
	/* cm.md 4: max(15, 18 + 1) */
	assert_int_equal(m.req.primary.ack_timeout, 19);
	/* cm.md 7: version 0, IPv4, source port, addresses */
	assert_int_equal(m.private_data[0], 0x00);
	assert_int_equal(m.private_data[1], 0x40);
	assert_int_equal(get_be16(m.private_data + 2), 4711);
	assert_int_equal(get_be32(m.private_data + 16), 0x0A000001);
	assert_int_equal(get_be32(m.private_data + 32), 0x0A000002);
}

static void
test_req_on_native_ib_has_lids(void **state)
{
	struct world *w = *state;
	struct life *l;
	struct cm_msg m = active_begin(w, &l);

	assert_int_equal(m.req.primary.local_lid, 1);
	assert_int_equal(m.req.primary.remote_lid, 2);
	assert_true(m.req.primary.subnet_local);
	/* PacketLifeTime 14 of the path: max(15, 15), and + 1 as both are equal */
	assert_int_equal(m.req.primary.ack_timeout, 16);
}

/* cm.md 4: Read limits are exchanged and limited; rq_psn is the peer's starting PSN */
static void
test_qp_has_the_values_of_the_rep(void **state)
{
	struct world *w = *state;
	struct rc_qp_info qp;
	struct cm_msg req, rep, rtu;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	rtu = next_message(&w->a, CM_RTU);
	expect_silence(&w->a);
	assert_int_equal(rtu.local_id, l->id);
	assert_int_equal(rtu.remote_id, PEER_ID);
	assert_true(rtu.tid == req.tid);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.qp_state, QPS_RTS);
	assert_int_equal(qp.attr.dest_qp_num, PEER_QPN);
	assert_int_equal(qp.attr.sq_psn, PEER_PSN);
	assert_int_equal(qp.attr.rq_psn, req.req.psn);
	assert_int_equal(qp.attr.max_rd_atomic, 3); /* 4 wanted, the peer allows 3 */
	assert_int_equal(qp.attr.max_dest_rd_atomic, 2); /* 4 offered, the peer uses 2 */
	assert_int_equal(qp.attr.retry_cnt, 7);
	assert_int_equal(qp.attr.rnr_retry, 5); /* of the REP */
	assert_int_equal(qp.attr.path_mtu, 1024);
	assert_int_equal(qp.attr.timeout, 19);
	assert_int_equal(l->info.responder_resources, 2);
	assert_int_equal(l->info.initiator_depth, 3);
	assert_int_equal(l->private_len, CM_REP_PRIVATE);
}

/* cm.md 4: TargetAckDelay of the REP: max(18, 19), and + 1 as both are close */
static void
test_rep_ack_delay_counts(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;
	struct rc_qp_info qp;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	rep.rep.target_ack_delay = 18;
	peer_say(w, &rep);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.timeout, 20);
}

static void
test_connection_ids_and_psns_differ(void **state)
{
	struct world *w = *state;
	struct cm_msg first, second;
	struct life *l;

	first = active_begin(w, &l);
	second = active_begin(w, &l);
	assert_int_not_equal(first.local_id, second.local_id);
	assert_true(first.tid != second.tid);
	assert_int_not_equal(first.req.psn, second.req.psn);
}

/* --- REQ_SENT --- */

/* cm.md 5: the REQ is sent 1 + MaxCMRetries times, then REJ 4 with our GUID ends the attempt */
static void
test_req_repeats_exactly_and_gives_up(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rej;
	struct life *l;
	unsigned int i;

	req = active_begin(w, &l);
	for (i = 0; i < 15; i++) {
		pass(w, REQ_INTERVAL - 1);
		expect_silence(&w->a);
		pass(w, 1);
		assert_int_equal(next_message(&w->a, CM_REQ).local_id, req.local_id);
		expect_silence(&w->a);
	}
	pass(w, REQ_INTERVAL - 1);
	expect_silence(&w->a);
	expect_log(l, "prepare");
	pass(w, 1);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(rej.rej.ari_len, 8);
	assert_true(get_be64(rej.rej.ari) == GUID_A);
	assert_int_equal(rej.local_id, l->id);
	assert_int_equal(rej.remote_id, 0);
	expect_log(l, "prepare timeout released");
	expect_nothing_left(&w->a);
	assert_int_equal(counters_of(&w->a).retries, 15);
	assert_int_equal(counters_of(&w->a).timeouts, 1);
}

static void
test_mra_of_req_waits_longer(void **state)
{
	struct world *w = *state;
	struct cm_msg m = {
		.type = CM_MRA,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.mra = { .answers = CM_ANSWERS_REQ, .service_timeout = 22 },
	};
	struct cm_msg req, rep;
	struct life *l;

	req = active_begin(w, &l);
	m.remote_id = req.local_id;
	pass(w, SECOND);
	peer_say(w, &m);
	expect_state(&w->a, l->id, CM_STATE_MRA_REQ_RCVD);
	/* ms(22) + ms(19) */
	pass(w, (16384 + 2048) * MS - 1);
	expect_silence(&w->a);
	pass(w, 1);
	expect_messages(&w->a, "REQ");
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	expect_messages(&w->a, "RTU");
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

/* An MRA with another MessageMRAed than REQ is ignored. */
static void
test_mra_of_another_message_is_ignored(void **state)
{
	struct world *w = *state;
	struct cm_msg m = {
		.type = CM_MRA,
		.local_id = PEER_ID,
		.mra = { .answers = CM_ANSWERS_REP, .service_timeout = 22 },
	};
	struct life *l;

	m.remote_id = active_begin(w, &l).local_id;
	peer_say(w, &m);
	expect_state(&w->a, l->id, CM_STATE_REQ_SENT);
	assert_int_equal(counters_of(&w->a).unmatched, 1);
	pass(w, REQ_INTERVAL);
	expect_messages(&w->a, "REQ");
}

static void
test_rej_ends_the_attempt(void **state)
{
	struct world *w = *state;
	struct life *l;
	cm_id id = active_begin(w, &l).local_id;

	peer_rej(w, id, 0, CM_REJ_INVALID_SERVICE_ID);
	expect_log(l, "prepare rejected released");
	assert_int_equal(l->info.end, CM_END_REJECTED);
	assert_int_equal(l->info.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(l->private_len, CM_REJ_PRIVATE);
	expect_nothing_left(&w->a);
	assert_int_equal(counters_of(&w->a).rejected, 1);
	assert_int_equal(counters_of(&w->a).rej_received[CM_REJ_INVALID_SERVICE_ID], 1);
}

static void
test_rej_stale_leads_to_timewait(void **state)
{
	struct world *w = *state;
	struct life *l;
	cm_id id = active_begin(w, &l).local_id;

	peer_rej(w, id, 0, CM_REJ_STALE);
	expect_log(l, "prepare rejected");
	expect_state(&w->a, id, CM_STATE_TIMEWAIT);
	/* LocalAckTimeout 19 */
	pass(w, 2048 * MS - 1);
	expect_state(&w->a, id, CM_STATE_TIMEWAIT);
	pass(w, 1);
	expect_gone(&w->a, id);
	expect_log(l, "prepare rejected released");
}

static void
test_rej_of_an_unknown_reason_is_counted(void **state)
{
	struct world *w = *state;
	struct life *l;

	peer_rej(w, active_begin(w, &l).local_id, 0, 999);
	expect_log(l, "prepare rejected released");
	assert_int_equal(l->info.reason, 999);
	assert_int_equal(counters_of(&w->a).rej_received[0], 1);
}

static void
test_abandoned_req_is_rejected_with_timeout(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;
	struct life *l;

	active_begin(w, &l);
	assert_int_equal(disconnect(l), 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_TIMEOUT);
	assert_true(get_be64(rej.rej.ari) == GUID_A);
	expect_log(l, "prepare cancelled released");
	expect_nothing_left(&w->a);
	assert_int_equal(disconnect(l), -ENOENT);
}

/* --- REP --- */

static void
test_repeated_rep_has_rtu_again(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	peer_say(w, &rep);
	expect_messages(&w->a, "RTU", "RTU");
	expect_log(l, "prepare established");
	assert_int_equal(counters_of(&w->a).duplicates, 1);
}

/* A REP with unknown IDs is rejected, so that the peer need not wait. */
static void
test_rep_of_no_connection_is_rejected(void **state)
{
	struct world *w = *state;
	struct cm_msg req = { .tid = 7, .local_id = 0x1234 }, rep, rej;

	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_INVALID_ID);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REP);
	assert_int_equal(rej.remote_id, PEER_ID);
	assert_int_equal(rej.local_id, 0x1234);
}

static void
test_rep_without_qpn_is_dropped(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	rep.rep.qpn = 0;
	peer_say(w, &rep);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_REQ_SENT);
	assert_int_equal(counters_of(&w->a).malformed, 1);
}

/* cm.md 6: the stale test on a REP */
static void
test_rep_with_a_qpn_in_use_is_stale(void **state)
{
	struct world *w = *state;
	struct life *old = active_connected(w), *l;
	struct cm_msg req, rep, rej;
	unsigned int i;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	rep.local_id = PEER_ID + 1;
	peer_say(w, &rep);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_STALE);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REP);
	expect_log(l, "prepare refused released");
	assert_int_equal(l->info.reason, CM_REJ_STALE);
	/* the old connection stays while its peer's QP is probed */
	expect_log(old, "prepare established");
	for (i = 0; i < 3; i++)
		pass(w, 10 * SECOND);
	expect_log(old, "prepare established stale");
	assert_int_equal(counters_of(&w->a).stale, 1);
}

static void
test_rep_with_an_id_in_use_is_rejected(void **state)
{
	struct world *w = *state;
	struct life *old = active_connected(w), *l;
	struct cm_msg req, rep, rej;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	rep.rep.qpn = PEER_QPN + 1;
	peer_say(w, &rep);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_DUPLICATE_ID);
	expect_log(old, "prepare established");
	expect_log(l, "prepare refused released");
}

/* --- established --- */

static void
test_rej_ends_an_established_connection(void **state)
{
	struct world *w = *state;
	struct life *l = active_connected(w);

	peer_rej(w, l->id, PEER_ID, CM_REJ_CONSUMER);
	expect_log(l, "prepare established rejected");
	assert_int_equal(l->info.reason, CM_REJ_CONSUMER);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
}

/* The message has our ID, but another ID of the peer. */
static void
test_messages_with_another_peer_id_are_ignored(void **state)
{
	struct world *w = *state;
	struct life *l = active_connected(w);

	peer_rej(w, l->id, PEER_ID + 1, CM_REJ_CONSUMER);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	peer_dreq(w, l->id, PEER_ID + 1, l->qpn);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	expect_messages(&w->a, "DREP"); /* as for an unknown connection */
	expect_log(l, "prepare established");
}

/* A DREQ for a connection that is not established is answered with DREP. */
static void
test_dreq_before_rep(void **state)
{
	struct world *w = *state;
	struct life *l;
	cm_id id = active_begin(w, &l).local_id;

	peer_dreq(w, id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	expect_state(&w->a, id, CM_STATE_REQ_SENT);
	expect_log(l, "prepare");
}

static void
test_unmatched_messages_are_dropped(void **state)
{
	static const enum cm_message types[] = { CM_MRA, CM_RTU, CM_DREP, CM_APR, CM_SIDR_REP };
	struct world *w = *state;
	unsigned int i;

	for (i = 0; i < 5; i++)
		peer_answer(w, types[i], 0x1234);
	peer_rej(w, 0x1234, PEER_ID, CM_REJ_CONSUMER);
	expect_silence(&w->a);
	assert_int_equal(counters_of(&w->a).unmatched, 6);
}

/* --- attempts that cannot begin --- */

static void
test_connect_refuses_values_that_a_req_cannot_have(void **state)
{
	struct world *w = *state;
	struct error err = { "" };
	struct cm_connect c;
	struct life l = { .node = &w->a };
	cm_id id;

	connect_init(&w->a, &c);
	c.user = &l;
	c.path.mtu = 2048;
	assert_int_equal(cm_connect(w->a.cm, &c, 0, &id, &err), -EINVAL);
	assert_string_equal(err.text, "path mtu: got 2048, allowed: 256 to 1024");
	c.path.mtu = 1024;
	c.param.private_len = 57;
	assert_int_equal(cm_connect(w->a.cm, &c, 0, &id, &err), -EINVAL);
	assert_string_equal(err.text, "private_data: got 57 bytes, allowed: 56");
	c.param.private_len = 0;
	c.param.qp.pd = 99;
	assert_int_equal(cm_connect(w->a.cm, &c, 0, &id, &err), -ENOENT);
	c.param.qp.pd = w->a.pd;
	w->a.prepare_error = -ENOMEM;
	assert_int_equal(cm_connect(w->a.cm, &c, 0, &id, &err), -ENOMEM);
	run(&w->a);
	expect_silence(&w->a);
	expect_log(&l, "prepare");
	expect_nothing_left(&w->a);
}

/* If the QP cannot use the REP's values, the peer gets a REJ. */
static void
test_rep_that_our_qp_cannot_take(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep, rej;
	struct life *l;

	req = active_begin(w, &l);
	peer_rep(w, &rep, &req);
	rep.rep.qpn = 0xFFFFFF;
	peer_say(w, &rep);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REP);
	expect_log(l, "prepare refused released");
	expect_nothing_left(&w->a);
}

/* --- a sink that is full --- */

static void
test_req_waits_for_the_sink(void **state)
{
	struct world *w = *state;
	struct life *l[70];
	unsigned int i;

	w->a.room = 0;
	for (i = 0; i < 70; i++)
		l[i] = start(&w->a);
	expect_silence(&w->a);
	/* lib/mad queues 64 */
	assert_int_equal(counters_of(&w->a).sent[CM_REQ], 64);
	assert_true(cm_pending(w->a.cm));
	w->a.room = UINT32_MAX;
	run(&w->a);
	for (i = 0; i < 70; i++)
		next_message(&w->a, CM_REQ);
	expect_silence(&w->a);
	assert_false(cm_pending(w->a.cm));
	expect_state(&w->a, l[69]->id, CM_STATE_REQ_SENT);
}

/*
 * Subnet management changes the port between path, REQ and REP: the QP has the port's attributes at
 * its creation.
 */
static void
test_port_changes_during_an_attempt(void **state)
{
	struct world *w = *state;
	struct rc_qp_info qp;
	struct life *l;

	w->a.port.pkey[0] = 0x7FFF; /* the path still has 0xFFFF */
	l = start(&w->a);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.pkey, 0x7FFF);
	w->a.port.lid = 9;
	w->a.port.sl_to_vl[0] = 3;
	w->a.port.gid[0].gid.raw[0] = 0x2A;
	exchange(w);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.qp_state, QPS_RTS);
	assert_int_equal(qp.attr.av.slid, 9);
	assert_int_equal(qp.attr.av.vl, 3);
	assert_int_equal(qp.attr.av.sgid.raw[0], 0x2A);
	assert_int_equal(qp.attr.av.dlid, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_contents_of_the_req),
		cmocka_unit_test_setup_teardown(test_req_on_native_ib_has_lids, world_setup_ib,
			world_teardown),
		T(test_qp_has_the_values_of_the_rep),
		T(test_rep_ack_delay_counts),
		T(test_connection_ids_and_psns_differ),
		T(test_req_repeats_exactly_and_gives_up),
		T(test_mra_of_req_waits_longer),
		T(test_mra_of_another_message_is_ignored),
		T(test_rej_ends_the_attempt),
		T(test_rej_stale_leads_to_timewait),
		T(test_rej_of_an_unknown_reason_is_counted),
		T(test_abandoned_req_is_rejected_with_timeout),
		T(test_repeated_rep_has_rtu_again),
		T(test_rep_of_no_connection_is_rejected),
		T(test_rep_without_qpn_is_dropped),
		T(test_rep_with_a_qpn_in_use_is_stale),
		T(test_rep_with_an_id_in_use_is_rejected),
		T(test_rej_ends_an_established_connection),
		T(test_messages_with_another_peer_id_are_ignored),
		T(test_dreq_before_rep),
		T(test_unmatched_messages_are_dropped),
		T(test_connect_refuses_values_that_a_req_cannot_have),
		T(test_rep_that_our_qp_cannot_take),
		T(test_req_waits_for_the_sink),
		cmocka_unit_test_setup_teardown(test_port_changes_during_an_attempt, world_setup_ib,
			world_teardown),
	};

	return cmocka_run_group_tests_name("cm: active", tests, NULL, NULL);
}
