/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * cm.md 6, passive side; the test acts as peer. Times are those of section 5, values of section 4.
 */

#include <errno.h>
#include <string.h>

#include "world.h"

/* LocalCMResponseTimeout 20 of the REQ (cm.md 5) */
#define REP_INTERVAL (4096 * MS)
/* LocalAckTimeout 19 of the REQ */
#define TIMEWAIT (2048 * MS)

/* Deliver a REQ from the peer. */
static struct life *
passive_begin(struct world *w)
{
	struct cm_msg req;

	peer_req(w, &req);
	peer_say(w, &req);
	return last_life(&w->a);
}

static struct life *
passive_half_open(struct world *w)
{
	struct life *l = passive_begin(w);

	next_message(&w->a, CM_REP);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_REP_SENT);
	return l;
}

static struct life *
passive_connected(struct world *w)
{
	struct life *l = passive_half_open(w);

	peer_answer(w, CM_RTU, l->id);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	return l;
}

static void
repeat_req(struct world *w)
{
	struct cm_msg req;

	peer_req(w, &req);
	peer_say(w, &req);
}

/* --- contents of the messages --- */

static void
test_user_gets_the_contents_of_the_req(void **state)
{
	struct world *w = *state;
	struct cm_msg req;
	uint8_t data[CM_REQ_PRIVATE];

	peer_req(w, &req);
	memcpy(data, req.private_data, CM_RDMA_LEN);
	memset(data + CM_RDMA_LEN, 0x77, CM_REQ_USER_PRIVATE);
	req.private_data = data;
	req.private_len = CM_REQ_PRIVATE;
	peer_say(w, &req);
	assert_int_equal(w->a.requests, 1);
	assert_true(w->a.request.service_id == WORLD_SERVICE);
	assert_int_equal(w->a.request.remote_id, PEER_ID);
	assert_true(w->a.request.remote_ca_guid == GUID_B);
	assert_int_equal(w->a.request.remote_qpn, PEER_QPN);
	assert_int_equal(w->a.request.responder_resources, 3);
	assert_int_equal(w->a.request.initiator_depth, 2);
	assert_int_equal(w->a.request.private_len, CM_REQ_USER_PRIVATE);
	assert_memory_equal(w->a.request_private, data + CM_RDMA_LEN, CM_REQ_USER_PRIVATE);
	assert_true(w->a.request.rdma.present);
	assert_int_equal(w->a.request.rdma.src_port, 4711);
	assert_int_equal(w->a.request.path.av.dgid.raw[15], 2);
	assert_int_equal(w->a.request.path.av.sgid.raw[15], 1);
	assert_int_equal(w->a.request.path.av.dmac[5], 2); /* source MAC of the frame */
	assert_int_equal(w->a.request.path.mtu, 1024);
}

/*
 * cm.md 4: the QP is in RTS before the REP; Read limits are exchanged and limited; PSN, timeout and
 * retries are those of the REQ.
 */
static void
test_qp_has_the_values_of_the_req(void **state)
{
	struct world *w = *state;
	struct rc_qp_info qp;
	struct cm_msg rep;
	struct life *l;

	w->a.param.rnr_retry_count = 4;
	w->a.param.private_len = 3;
	memcpy(w->a.param.private_data, "hey", 3);
	l = passive_begin(w);
	rep = next_message(&w->a, CM_REP);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.qp_state, QPS_RTS);
	assert_int_equal(qp.attr.dest_qp_num, PEER_QPN);
	assert_int_equal(qp.attr.sq_psn, PEER_PSN);
	assert_int_equal(qp.attr.rq_psn, rep.rep.psn);
	assert_int_equal(qp.attr.max_rd_atomic, 3); /* 4 wanted, the peer allows 3 */
	assert_int_equal(qp.attr.max_dest_rd_atomic, 2); /* 4 offered, the peer uses 2 */
	assert_int_equal(qp.attr.retry_cnt, 6);
	assert_int_equal(qp.attr.rnr_retry, 5); /* of the REQ */
	assert_int_equal(qp.attr.timeout, 19);
	assert_int_equal(qp.attr.path_mtu, 1024);
	assert_int_equal(rep.local_id, l->id);
	assert_int_equal(rep.remote_id, PEER_ID);
	assert_true(rep.tid == PEER_TID);
	assert_int_equal(rep.rep.qpn, l->qpn);
	assert_int_equal(rep.rep.responder_resources, 2);
	assert_int_equal(rep.rep.initiator_depth, 3);
	assert_int_equal(rep.rep.rnr_retry_count, 4);
	assert_int_equal(rep.rep.target_ack_delay, cm_limits_default.ack_delay);
	assert_int_equal(rep.rep.failover, 0);
	assert_false(rep.rep.srq);
	assert_true(rep.rep.ca_guid == GUID_A);
	assert_memory_equal(rep.private_data, "hey", 3);
	expect_log(l, "request prepare");
}

static void
test_our_resources_limit_the_rep(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;

	w->a.param.responder_resources = 255;
	w->a.param.initiator_depth = 255;
	peer_req(w, &req);
	req.req.responder_resources = 255;
	req.req.initiator_depth = 255;
	peer_say(w, &req);
	rep = next_message(&w->a, CM_REP);
	assert_int_equal(rep.rep.responder_resources, 16);
	assert_int_equal(rep.rep.initiator_depth, 16);
}

/* --- REQ_RCVD, MRA_REQ_SENT: the user decides later --- */

static void
test_user_accepts_later(void **state)
{
	struct world *w = *state;
	struct life *l;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_REQ_RCVD);
	assert_int_equal(count_qps(&w->a), 0);
	assert_int_equal(cm_accept(w->a.cm, l->id, &w->a.param, w->now), 0);
	run(&w->a);
	expect_messages(&w->a, "REP");
	expect_log(l, "request prepare");
	assert_int_equal(cm_accept(w->a.cm, l->id, &w->a.param, w->now), -EINVAL);
	assert_int_equal(cm_refuse(w->a.cm, l->id, 28, NULL, 0, w->now), -EINVAL);
}

static void
test_user_refuses_later(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;
	struct life *l;
	cm_id id;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	id = l->id;
	assert_int_equal(cm_refuse(w->a.cm, id, CM_REJ_CONSUMER, (const uint8_t *)"no", 2, w->now),
		0);
	run(&w->a);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_CONSUMER);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REQ);
	assert_int_equal(rej.local_id, 0);
	assert_int_equal(rej.remote_id, PEER_ID);
	assert_memory_equal(rej.private_data, "no", 2);
	expect_log(l, "request refused released");
	expect_nothing_left(&w->a);
	assert_int_equal(cm_accept(w->a.cm, id, &w->a.param, w->now), -ENOENT);
	assert_int_equal(cm_refuse(w->a.cm, id, 28, NULL, 0, w->now), -ENOENT);
}

static void
test_user_refuses_at_once(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rej;

	w->a.answer = CM_REJ_CONSUMER;
	w->a.param.private_len = 4;
	memcpy(w->a.param.private_data, "nope", 4);
	peer_req(w, &req);
	peer_say(w, &req);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_CONSUMER);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REQ);
	assert_int_equal(rej.local_id, 0);
	assert_true(rej.tid == PEER_TID);
	assert_memory_equal(rej.private_data, "nope", 4);
	assert_int_equal(w->a.num_lives, 0);
	expect_nothing_left(&w->a);
	assert_int_equal(counters_of(&w->a).refused, 1);
}

static void
test_repeated_req_has_an_mra(void **state)
{
	struct world *w = *state;
	struct cm_msg mra;
	struct life *l;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	repeat_req(w);
	mra = next_message(&w->a, CM_MRA);
	assert_int_equal(mra.mra.answers, CM_ANSWERS_REQ);
	assert_int_equal(mra.mra.service_timeout, 24);
	assert_int_equal(mra.local_id, l->id);
	assert_int_equal(mra.remote_id, PEER_ID);
	expect_state(&w->a, l->id, CM_STATE_MRA_REQ_SENT);
	repeat_req(w);
	expect_messages(&w->a, "MRA");
	assert_int_equal(w->a.requests, 1);
	assert_int_equal(counters_of(&w->a).duplicates, 2);
	assert_int_equal(cm_accept(w->a.cm, l->id, &w->a.param, w->now), 0);
	run(&w->a);
	expect_messages(&w->a, "REP");
}

/* cm.md 2: a REJ after an MRA has our ID */
static void
test_rej_after_mra_has_our_id(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;
	struct life *l;
	cm_id id;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	id = l->id;
	repeat_req(w);
	cm_refuse(w->a.cm, id, CM_REJ_CONSUMER, NULL, 0, w->now);
	run(&w->a);
	next_message(&w->a, CM_MRA);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.local_id, id);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REQ);
}

static void
test_mra_can_be_switched_off(void **state)
{
	struct world like = { .scripted = true, .limits = cm_limits_default }, *w;

	like.limits.send_mra = false;
	like.limits.max_connections = 16;
	w = *state = world_create(&like);
	w->a.answer = CM_LATER;
	passive_begin(w);
	repeat_req(w);
	expect_silence(&w->a);
}

/* The user has as long as the peer waits: 16 intervals, or ms(24) after an MRA. */
static void
test_user_that_never_decides_is_given_up(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;
	struct life *l;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	pass(w, 16 * REP_INTERVAL - 1);
	expect_silence(&w->a);
	pass(w, 1);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_TIMEOUT);
	assert_true(get_be64(rej.rej.ari) == GUID_A);
	expect_log(l, "request timeout released");
	assert_int_equal(w->a.ended_events, 1);
	assert_int_equal(w->a.ended_qpn, 0); /* it had no queue pair yet */

	l = passive_begin(w);
	repeat_req(w);
	expect_messages(&w->a, "MRA");
	pass(w, 65536 * MS - 1);
	expect_silence(&w->a);
	pass(w, 1);
	expect_messages(&w->a, "REJ");
	expect_log(l, "request timeout released");
	expect_nothing_left(&w->a);
}

/*
 * The peer gives up before the user has decided. Its REJ has its GUID and ID, as it may not know
 * our ID.
 */
static void
test_peer_gives_up_its_req(void **state)
{
	struct world *w = *state;
	struct cm_msg rej = {
		.type = CM_REJ,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.rej = { .answers = CM_ANSWERS_OTHER, .reason = CM_REJ_TIMEOUT, .ari_len = 8 },
	};
	struct life *l;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	put_be64(rej.rej.ari, GUID_B + 1);
	peer_say(w, &rej);
	expect_state(&w->a, l->id, CM_STATE_REQ_RCVD);
	put_be64(rej.rej.ari, GUID_B);
	rej.local_id++;
	peer_say(w, &rej);
	expect_state(&w->a, l->id, CM_STATE_REQ_RCVD);
	rej.local_id--;
	rej.rej.ari_len = 7;
	peer_say(w, &rej);
	expect_state(&w->a, l->id, CM_STATE_REQ_RCVD);
	rej.rej.ari_len = 8;
	peer_say(w, &rej);
	expect_log(l, "request rejected released");
	assert_int_equal(l->info.reason, CM_REJ_TIMEOUT);
	expect_nothing_left(&w->a);
	assert_int_equal(counters_of(&w->a).unmatched, 3);
}

/*
 * Such a REJ repeats nothing of ours, so a forged one proves no address: what it ends raises no
 * more events than other ends of strangers.
 */
static void
test_rej_without_our_id_proves_nothing(void **state)
{
	struct world *w = *state;
	struct cm_msg req,
		rej = {
			.type = CM_REJ,
			.tid = PEER_TID,
			.rej = { .answers = CM_ANSWERS_OTHER,
				.reason = CM_REJ_TIMEOUT,
				.ari_len = 8 },
		};
	unsigned int i;

	put_be64(rej.rej.ari, GUID_B);
	peer_req(w, &req);
	for (i = 0; i < 20; i++) {
		rej.local_id = ++req.local_id;
		req.req.qpn++;
		peer_say(w, &req);
		peer_say(w, &rej);
	}
	assert_int_equal(w->a.ended, 20);
	assert_int_equal(w->a.ended_events, 16);
	assert_int_not_equal(w->a.ended_qpn, 0);
	/* with our ID it is one of the peer's, and so is its event */
	rej.local_id = ++req.local_id;
	req.req.qpn++;
	peer_say(w, &req);
	rej.remote_id = last_life(&w->a)->id;
	peer_say(w, &rej);
	assert_int_equal(w->a.ended, 21);
	assert_int_equal(w->a.ended_events, 17);
}

static void
test_late_acceptance_can_fail(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;
	struct life *l;

	w->a.answer = CM_LATER;
	l = passive_begin(w);
	assert_int_equal(disconnect(l), 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_CONSUMER);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REQ);
	expect_log(l, "request cancelled released");
}

static void
test_user_that_is_not_ready(void **state)
{
	struct world *w = *state;
	struct cm_msg rej;

	w->a.prepare_error = -ENOMEM;
	passive_begin(w);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_RESOURCES);
	expect_log(last_life(&w->a), "request prepare refused released");
	expect_nothing_left(&w->a);
	assert_int_equal(counters_of(&w->a).no_resources, 1);

	w->a.prepare_error = 0;
	w->a.param.qp.pd = 99;
	passive_begin(w);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_QP);
	expect_log(last_life(&w->a), "request refused released");
	expect_nothing_left(&w->a);
}

/* --- REP_SENT --- */

/* An MRA proves the peer's address: the REP is repeated as often as the REQ allows. */
static void
test_rep_repeats_exactly_and_gives_up(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);
	struct cm_msg rej,
		mra = {
			.type = CM_MRA,
			.local_id = PEER_ID,
			.remote_id = l->id,
			.mra = { .answers = CM_ANSWERS_REP },
		};
	unsigned int i;

	peer_say(w, &mra);
	pass(w, 2049 * MS); /* the MRA's interval */
	expect_messages(&w->a, "REP");
	for (i = 0; i < 14; i++) {
		pass(w, REP_INTERVAL - 1);
		expect_silence(&w->a);
		pass(w, 1);
		expect_messages(&w->a, "REP");
	}
	pass(w, REP_INTERVAL);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_TIMEOUT);
	assert_int_equal(rej.local_id, l->id);
	assert_int_equal(rej.remote_id, PEER_ID);
	expect_log(l, "request prepare timeout released");
	expect_nothing_left(&w->a);
}

/* The source of a REQ may be forged: each REQ earns it three messages, whatever retries it asks. */
static void
test_no_more_than_three_times_the_req(void **state)
{
	struct world *w = *state;
	struct cm_msg req;
	unsigned int i;

	peer_req(w, &req);
	req.req.max_cm_retries = 15;
	req.req.local_response_timeout = 8; /* 1 ms */
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	for (i = 0; i < 4; i++)
		pass(w, MS);
	expect_messages(&w->a, "REP", "REP");
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	for (i = 0; i < 20; i++)
		pass(w, MS);
	expect_messages(&w->a, "REP", "REP");
	expect_nothing_left(&w->a);
	assert_true(counters_of(&w->a).unproven > 0);
}

/* MaxCMRetries of the REQ limits our REPs. */
static void
test_max_cm_retries_of_the_req(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.max_cm_retries = 1;
	req.req.local_response_timeout = 10; /* 4 ms */
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	pass(w, 4 * MS);
	expect_messages(&w->a, "REP");
	pass(w, 4 * MS);
	expect_messages(&w->a, "REJ");
	expect_nothing_left(&w->a);
}

/* Codes allow waits of hours, but a half-open connection is kept for a limited time. */
static void
test_waits_chosen_by_the_peer_are_limited(void **state)
{
	struct world *w = *state;
	struct cm_msg req;
	struct life *l;

	peer_req(w, &req);
	req.req.local_response_timeout = 31;
	req.req.max_cm_retries = 0;
	req.req.primary.ack_timeout = 31;
	peer_say(w, &req);
	l = last_life(&w->a);
	pass(w, 65536 * MS);
	expect_log(l, "request prepare timeout released");
	req.req.max_cm_retries = 15;
	peer_say(w, &req);
	l = last_life(&w->a);
	peer_answer(w, CM_RTU, l->id);
	peer_dreq(w, l->id, PEER_ID, l->qpn);
	pass(w, 65536 * MS);
	expect_log(l, "request prepare established disconnected released");
}

static void
test_repeated_req_has_the_rep_again(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);

	repeat_req(w);
	expect_messages(&w->a, "REP");
	expect_log(l, "request prepare");
	assert_int_equal(w->a.requests, 1);
	assert_int_equal(counters_of(&w->a).duplicates, 1);
	/* the timer has not been restarted */
	pass(w, REP_INTERVAL);
	expect_messages(&w->a, "REP");
}

static void
test_mra_of_rep_waits_longer(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);
	struct cm_msg m = {
		.type = CM_MRA,
		.tid = PEER_TID,
		.local_id = PEER_ID,
		.remote_id = l->id,
		.mra = { .answers = CM_ANSWERS_REP, .service_timeout = 21 },
	};

	peer_say(w, &m);
	expect_state(&w->a, l->id, CM_STATE_MRA_REP_RCVD);
	repeat_req(w);
	expect_silence(&w->a);
	/* ms(21) + ms(19) */
	pass(w, (8192 + 2048) * MS - 1);
	expect_silence(&w->a);
	pass(w, 1);
	expect_messages(&w->a, "REP");
	peer_answer(w, CM_RTU, l->id);
	expect_log(l, "request prepare established");
}

static void
test_rtu_establishes_once(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);

	peer_answer(w, CM_RTU, l->id);
	expect_log(l, "request prepare established");
	assert_int_equal(l->private_len, CM_RTU_PRIVATE);
	peer_answer(w, CM_RTU, l->id);
	repeat_req(w);
	expect_silence(&w->a);
	expect_log(l, "request prepare established");
	assert_int_equal(counters_of(&w->a).duplicates, 2);
	assert_int_equal(counters_of(&w->a).connections, 1);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

static void
test_rej_of_rep(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);

	peer_rej(w, l->id, PEER_ID, CM_REJ_CONSUMER);
	expect_log(l, "request prepare rejected released");
	expect_nothing_left(&w->a);
}

static void
test_rej_stale_of_rep_leads_to_timewait(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);

	peer_rej(w, l->id, PEER_ID, CM_REJ_STALE);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	pass(w, TIMEWAIT - 1);
	expect_log(l, "request prepare rejected");
	pass(w, 1);
	expect_nothing_left(&w->a);
}

static void
test_dreq_before_rtu(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);

	peer_dreq(w, l->id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	expect_log(l, "request prepare disconnected");
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
	expect_nothing_left(&w->a);
}

static void
test_disconnect_before_rtu_rejects(void **state)
{
	struct world *w = *state;
	struct life *l = passive_half_open(w);
	struct cm_msg rej;

	assert_int_equal(disconnect(l), 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_CONSUMER);
	expect_log(l, "request prepare cancelled");
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
}

/* --- TIMEWAIT --- */

static void
test_timewait_lasts_the_ack_timeout(void **state)
{
	struct world *w = *state;
	struct life *l = passive_connected(w);
	cm_id id = l->id;

	peer_dreq(w, id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	assert_int_equal(qp_state_of(&w->a, l->qpn), QPS_ERR);
	pass(w, TIMEWAIT - 1);
	expect_state(&w->a, id, CM_STATE_TIMEWAIT);
	assert_int_equal(count_qps(&w->a), 1);
	pass(w, 1);
	expect_gone(&w->a, id);
	expect_log(l, "request prepare established disconnected released");
	expect_nothing_left(&w->a);
}

/* cm.md 6: in TIMEWAIT the same REQ is stale, and so is one with its QPN and another ID. */
static void
test_req_in_timewait_is_stale(void **state)
{
	struct world *w = *state;
	struct life *l = passive_connected(w);
	struct cm_msg rej, req;
	unsigned int i;

	peer_dreq(w, l->id, PEER_ID, l->qpn);
	expect_messages(&w->a, "DREP");
	for (i = 0; i < 2; i++) {
		peer_req(w, &req);
		req.local_id += i;
		peer_say(w, &req);
		rej = next_message(&w->a, CM_REJ);
		assert_int_equal(rej.rej.reason, CM_REJ_STALE);
		assert_int_equal(rej.local_id, 0);
		assert_int_equal(rej.remote_id, PEER_ID + i);
	}
	expect_log(l, "request prepare established disconnected");
	/* after TIMEWAIT a new connection is possible */
	pass(w, TIMEWAIT);
	passive_begin(w);
	expect_messages(&w->a, "REP");
}

/* --- a restarted peer --- */

static void
test_id_in_use_with_another_qpn_is_duplicate(void **state)
{
	struct world *w = *state;
	struct life *l = passive_connected(w);
	struct cm_msg req, rej;

	peer_req(w, &req);
	req.req.qpn++;
	peer_say(w, &req);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_DUPLICATE_ID);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

/* Another CA may use the same IDs and QPNs. */
static void
test_ids_belong_to_a_ca(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	passive_connected(w);
	peer_req(w, &req);
	req.req.ca_guid++;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_int_equal(count_conns(&w->a), 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_user_gets_the_contents_of_the_req),
		T(test_qp_has_the_values_of_the_req),
		T(test_our_resources_limit_the_rep),
		T(test_user_accepts_later),
		T(test_user_refuses_later),
		T(test_user_refuses_at_once),
		T(test_repeated_req_has_an_mra),
		T(test_rej_after_mra_has_our_id),
		cmocka_unit_test_teardown(test_mra_can_be_switched_off, world_teardown),
		T(test_user_that_never_decides_is_given_up),
		T(test_peer_gives_up_its_req),
		T(test_rej_without_our_id_proves_nothing),
		T(test_late_acceptance_can_fail),
		T(test_user_that_is_not_ready),
		T(test_rep_repeats_exactly_and_gives_up),
		T(test_no_more_than_three_times_the_req),
		T(test_max_cm_retries_of_the_req),
		T(test_waits_chosen_by_the_peer_are_limited),
		T(test_repeated_req_has_the_rep_again),
		T(test_mra_of_rep_waits_longer),
		T(test_rtu_establishes_once),
		T(test_rej_of_rep),
		T(test_rej_stale_of_rep_leads_to_timewait),
		T(test_dreq_before_rtu),
		T(test_disconnect_before_rtu_rejects),
		T(test_timewait_lasts_the_ack_timeout),
		T(test_req_in_timewait_is_stale),
		T(test_id_in_use_with_another_qpn_is_duplicate),
		T(test_ids_belong_to_a_ca),
	};

	return cmocka_run_group_tests_name("cm: passive", tests, NULL, NULL);
}
