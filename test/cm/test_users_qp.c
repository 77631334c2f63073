/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections whose user has a QP of its own, as librdmacm's programs have: the CM exchanges the
 * messages of cm.md 6 and leaves the QP alone. The test acts as peer.
 */

#include <errno.h>

#include "world.h"

#define OWN_QPN 0x777u
/* as long as for a half-open connection: what the user may take at most */
#define PATIENCE (65536 * MS)

static struct cm_msg
own_connect(struct world *w, struct life **l)
{
	struct node *n = &w->a;
	struct cm_connect c;
	struct error err;

	*l = &n->lives[n->num_lives++];
	**l = (struct life){ .node = n };
	connect_init(n, &c);
	c.param.qpn = OWN_QPN;
	c.user = *l;
	assert_int_equal(cm_connect(n->cm, &c, w->now, &(*l)->id, &err), 0);
	run(n);
	return next_message(n, CM_REQ);
}

/* The REP has come. */
static struct life *
own_responded(struct world *w)
{
	struct cm_msg req, rep;
	struct life *l;

	req = own_connect(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_REP_RCVD);
	expect_log(l, "responded");
	return l;
}

static int
own_ready(struct world *w, const struct life *l)
{
	int rc = cm_ready(w->a.cm, l->id, w->now);

	run(&w->a);
	return rc;
}

static struct life *
own_requested(struct world *w)
{
	struct cm_msg req;

	w->a.answer = CM_LATER;
	peer_req(w, &req);
	peer_say(w, &req);
	expect_silence(&w->a);
	return last_life(&w->a);
}

static struct cm_msg
own_accept(struct world *w, const struct life *l)
{
	struct cm_conn_param param = w->a.param;

	param.qpn = OWN_QPN;
	assert_int_equal(cm_accept(w->a.cm, l->id, &param, w->now), 0);
	run(&w->a);
	return next_message(&w->a, CM_REP);
}

/* --- active side --- */

static void
test_req_names_the_users_qp(void **state)
{
	struct world *w = *state;
	struct life *l;

	assert_int_equal(own_connect(w, &l).req.qpn, OWN_QPN);
	assert_int_equal(count_qps(&w->a), 0);
	expect_log(l, "");
}

/* The RTU follows when the user's QP is in RTS, not before. */
static void
test_rep_waits_for_the_users_qp(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);

	/* the values of the REP, for the user's QP */
	assert_int_equal(l->info.qpn, OWN_QPN);
	assert_int_equal(l->info.remote_qpn, PEER_QPN);
	assert_int_equal(l->info.sq_psn, PEER_PSN);
	assert_int_equal(l->info.responder_resources, 2);
	assert_int_equal(l->info.initiator_depth, 3);
	assert_int_equal(l->info.retry_count, 7);
	assert_int_equal(l->info.rnr_retry_count, 5);
	assert_int_equal(l->info.ack_timeout, 19);
	assert_int_equal(l->private_len, CM_REP_PRIVATE);
	assert_int_equal(own_ready(w, l), 0);
	expect_messages(&w->a, "RTU");
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	expect_log(l, "responded established");
	assert_int_equal(own_ready(w, l), -EINVAL);
	assert_int_equal(count_qps(&w->a), 0);
}

static void
test_psn_of_the_req_is_the_users(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;
	struct life *l;

	req = own_connect(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	assert_int_equal(l->info.rq_psn, req.req.psn);
}

/* The peer repeats its REP while the user's QP is not ready: no RTU yet. */
static void
test_rep_again_before_the_user_is_ready(void **state)
{
	struct world *w = *state;
	struct life *l;
	struct cm_msg req, rep;

	req = own_connect(w, &l);
	peer_rep(w, &rep, &req);
	peer_say(w, &rep);
	peer_say(w, &rep);
	expect_silence(&w->a);
	expect_log(l, "responded");
	assert_int_equal(own_ready(w, l), 0);
	expect_messages(&w->a, "RTU");
	peer_say(w, &rep);
	expect_messages(&w->a, "RTU");
}

static void
test_user_who_never_is_ready(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);

	pass(w, PATIENCE - 1);
	expect_silence(&w->a);
	pass(w, 1);
	assert_int_equal(next_message(&w->a, CM_REJ).rej.reason, CM_REJ_TIMEOUT);
	expect_log(l, "responded timeout released");
	expect_nothing_left(&w->a);
	assert_int_equal(cm_ready(w->a.cm, l->id, w->now), -ENOENT);
}

/* A user that does not want the connection after all: REJ 28 answers the REP. */
static void
test_user_rejects_the_rep(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);
	struct cm_msg rej;

	assert_int_equal(cm_disconnect(w->a.cm, l->id, (const uint8_t *)"no", 2, w->now), 0);
	run(&w->a);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_CONSUMER);
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REP);
	assert_memory_equal(rej.private_data, "no", 2);
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	expect_log(l, "responded cancelled");
}

static void
test_ready_needs_a_rep(void **state)
{
	struct world *w = *state;
	struct life *l;

	own_connect(w, &l);
	assert_int_equal(own_ready(w, l), -EINVAL);
	expect_silence(&w->a);
}

/* --- passive side --- */

static void
test_rep_names_the_users_qp(void **state)
{
	struct world *w = *state;
	struct life *l = own_requested(w);
	struct cm_msg rep = own_accept(w, l);

	assert_int_equal(rep.rep.qpn, OWN_QPN);
	/* what the user's QP was told before its REP was sent */
	assert_int_equal(rep.rep.psn, w->a.request.local_psn);
	assert_int_equal(w->a.request.remote_psn, PEER_PSN);
	assert_int_equal(w->a.request.ack_timeout, 19);
	assert_int_equal(count_qps(&w->a), 0);
	peer_answer(w, CM_RTU, l->id);
	expect_log(l, "request established");
	assert_int_equal(l->info.qpn, OWN_QPN);
}

static void
test_accepted_only_once(void **state)
{
	struct world *w = *state;
	struct life *l = own_requested(w);
	struct cm_conn_param param = w->a.param;

	own_accept(w, l);
	param.qpn = OWN_QPN;
	assert_int_equal(cm_accept(w->a.cm, l->id, &param, w->now), -EINVAL);
	expect_silence(&w->a);
}

/* Data before the RTU: the user hears of them, and tells. */
static void
test_data_stand_for_the_rtu(void **state)
{
	struct world *w = *state;
	struct life *l = own_requested(w);

	assert_int_equal(cm_heard(w->a.cm, l->id, w->now), -EINVAL);
	own_accept(w, l);
	assert_int_equal(cm_heard(w->a.cm, l->id, w->now), 0);
	expect_log(l, "request established");
	assert_int_equal(cm_heard(w->a.cm, l->id, w->now), -EINVAL);
	assert_int_equal(cm_heard(w->a.cm, l->id + 1, w->now), -ENOENT);
}

/* --- established --- */

static void
test_ends_leave_the_users_qp_alone(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);

	own_ready(w, l);
	skip_messages(&w->a);
	peer_dreq(w, l->id, PEER_ID, OWN_QPN);
	expect_messages(&w->a, "DREP");
	expect_log(l, "responded established disconnected");
	pass(w, 10 * SECOND);
	expect_log(l, "responded established disconnected released");
	expect_nothing_left(&w->a);
}

/* The CM cannot send with a QP that may be another worker's: it neither probes nor migrates it. */
static void
test_users_qp_is_not_probed(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);
	struct cm_msg req;

	own_ready(w, l);
	skip_messages(&w->a);
	peer_req(w, &req);
	req.local_id++;
	peer_say(w, &req);
	assert_int_equal(next_message(&w->a, CM_REJ).rej.reason, CM_REJ_STALE);
	pass(w, 10 * SECOND);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	assert_int_equal(counters_of(&w->a).probes, 0);
}

static void
test_users_qp_has_no_alternate_path(void **state)
{
	struct world *w = *state;
	struct life *l = own_responded(w);
	struct cm_connect c;
	struct error err;

	own_ready(w, l);
	connect_init(&w->a, &c);
	assert_int_equal(cm_load_alternate(w->a.cm, l->id, &c.path, w->now, &err), -EOPNOTSUPP);
}

#define SCRIPTED(test) cmocka_unit_test_setup_teardown(test, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPTED(test_req_names_the_users_qp),
		SCRIPTED(test_rep_waits_for_the_users_qp),
		SCRIPTED(test_psn_of_the_req_is_the_users),
		SCRIPTED(test_rep_again_before_the_user_is_ready),
		SCRIPTED(test_user_who_never_is_ready),
		SCRIPTED(test_user_rejects_the_rep),
		SCRIPTED(test_ready_needs_a_rep),
		SCRIPTED(test_rep_names_the_users_qp),
		SCRIPTED(test_accepted_only_once),
		SCRIPTED(test_data_stand_for_the_rtu),
		SCRIPTED(test_ends_leave_the_users_qp_alone),
		SCRIPTED(test_users_qp_is_not_probed),
		SCRIPTED(test_users_qp_has_no_alternate_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
