/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* LAP and APR, alternate paths of REQs (cm.md 2, 3, 4). A node may have a second GID, 10.0.0.3. */

#include <errno.h>
#include <string.h>

#include "world.h"

#define A_INTERVAL (6144 * MS)

static union gid
second_gid(void)
{
	return gid_from_ipv4((const uint8_t[]){ 10, 0, 0, 3 });
}

static struct cm_path
migrate_alternate_of(struct world *w)
{
	struct cm_path p = {
		.av = world_av(&w->a),
		.neighbour = PATH_NO_NEIGHBOUR,
		.pkey = 0xFFFF,
		.mtu = 1024,
		.present = true,
	};

	p.av.dgid = second_gid();
	return p;
}

static void
give_second_gid(struct node *n)
{
	n->port.gid[1] = n->port.gid[0];
	n->port.gid[1].gid = second_gid();
	n->port.num_gids = 2;
}

static enum mig_state
mig_of(struct node *n, uint32_t qpn)
{
	struct rc_qp_info info;

	assert_int_equal(rc_qp_query(n->rc, qpn, &info), 0);
	return info.attr.path_mig_state;
}

static struct cm_info
migrate_info_of(struct life *l)
{
	struct cm_info info;

	assert_true(cm_get(l->node->cm, l->id, l->node->world->now, &info));
	return info;
}

static void
migrate_load(struct world *w, struct life *a)
{
	struct cm_path p = migrate_alternate_of(w);
	struct error err = { "" };

	if (cm_load_alternate(w->a.cm, a->id, &p, w->now, &err) != 0)
		fail_msg("%s", err.text);
	run(&w->a);
}

static void
test_lap_arms_both_sides(void **state)
{
	struct world *w = *state;
	struct cm_path p = migrate_alternate_of(w);
	struct life *a, *b;
	struct cm_msg lap, apr;

	give_second_gid(&w->b);
	establish(w, &a, &b);
	migrate_load(w, a);
	lap = next_message(&w->a, CM_LAP);
	assert_int_equal(lap.lap.qpn, b->qpn);
	assert_int_equal(lap.local_id, a->id);
	assert_int_equal(lap.lap.remote_response_timeout, 20);
	assert_int_equal(lap.lap.alternate.remote_gid.raw[15], 3);
	assert_int_equal(lap.lap.alternate.local_gid.raw[15], 1);
	assert_int_equal(lap.lap.alternate.ack_timeout, 19);
	assert_int_equal(cm_load_alternate(w->a.cm, a->id, &p, w->now, NULL), -EBUSY);
	/* its next hop is in use while the LAP waits */
	assert_true(migrate_info_of(a).proposed.present);
	assert_int_equal(migrate_info_of(a).proposed.neighbour, p.neighbour);
	exchange(w);
	assert_false(migrate_info_of(a).proposed.present);
	apr = next_message(&w->b, CM_APR);
	assert_int_equal(apr.apr.status, CM_APR_OK);
	assert_true(apr.tid == lap.tid);
	assert_int_equal(mig_of(&w->a, a->qpn), MIG_REARM);
	assert_int_equal(mig_of(&w->b, b->qpn), MIG_REARM);
	assert_true(migrate_info_of(a).alternate.present);
	assert_true(migrate_info_of(b).alternate.present);
	assert_int_equal(migrate_info_of(b).alternate.av.sgid.raw[15], 3);
	assert_int_equal(migrate_info_of(b).alternate.sgid_index, 1);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
	expect_state(&w->a, a->id, CM_STATE_ESTABLISHED);
	/* another LAP may follow */
	migrate_load(w, a);
	expect_messages(&w->a, "LAP");
}

static void
test_lost_lap_and_apr(void **state)
{
	struct world *w = *state;
	struct life *a, *b;

	give_second_gid(&w->b);
	establish(w, &a, &b);
	lose(&w->a, CM_LAP);
	lose(&w->b, CM_APR);
	migrate_load(w, a);
	exchange(w);
	assert_false(migrate_info_of(b).alternate.present);
	pass(w, A_INTERVAL);
	assert_true(migrate_info_of(b).alternate.present);
	assert_false(migrate_info_of(a).alternate.present);
	pass(w, A_INTERVAL);
	assert_true(migrate_info_of(a).alternate.present);
	expect_messages(&w->a, "LAP", "LAP", "LAP");
	expect_messages(&w->b, "APR", "APR");
	assert_int_equal(counters_of(&w->b).duplicates, 1);
}

/* The connection goes on without the alternate path. */
static void
test_lap_gives_up(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	unsigned int i;

	establish(w, &a, &b);
	w->b.deaf = true;
	migrate_load(w, a);
	for (i = 0; i < 16; i++) {
		expect_messages(&w->a, "LAP");
		pass(w, A_INTERVAL);
	}
	expect_silence(&w->a);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
	expect_state(&w->a, a->id, CM_STATE_ESTABLISHED);
	assert_false(migrate_info_of(a).alternate.present);
}

static void
test_mra_of_lap_waits_longer(void **state)
{
	struct world *w = *state;
	struct cm_msg req,
		m = {
			.type = CM_MRA,
			.local_id = PEER_ID,
			.mra = { .answers = CM_ANSWERS_LAP, .service_timeout = 21 },
		};
	struct life *l;

	peer_req(w, &req);
	peer_say(w, &req);
	l = last_life(&w->a);
	peer_answer(w, CM_RTU, l->id);
	m.remote_id = l->id;
	peer_say(w, &m);
	assert_int_equal(counters_of(&w->a).unmatched, 1);
	migrate_load(w, l);
	skip_messages(&w->a);
	peer_say(w, &m);
	pass(w, (8192 + 2048) * MS - 1);
	expect_silence(&w->a);
	pass(w, 1);
	expect_messages(&w->a, "LAP");
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

/* --- LAPs from the peer --- */

static struct life *
migrate_connected(struct world *w, struct cm_msg *lap)
{
	struct cm_msg req;
	struct life *l;

	peer_req(w, &req);
	peer_say(w, &req);
	l = last_life(&w->a);
	peer_answer(w, CM_RTU, l->id);
	skip_messages(&w->a);
	*lap = (struct cm_msg){
		.type = CM_LAP,
		.tid = 99,
		.local_id = PEER_ID,
		.remote_id = l->id,
		.lap = { .qpn = l->qpn, .alternate = req.req.primary },
	};
	give_second_gid(&w->a);
	lap->lap.alternate.remote_gid = second_gid();
	return l;
}

static void
expect_apr(struct world *w, const struct cm_msg *lap, enum cm_apr_status status)
{
	struct cm_msg apr;

	peer_say(w, lap);
	apr = next_message(&w->a, CM_APR);
	expect_silence(&w->a);
	assert_int_equal(apr.apr.status, status);
	assert_true(apr.tid == lap->tid);
	assert_int_equal(apr.remote_id, lap->local_id);
	assert_int_equal(apr.local_id, lap->remote_id);
}

static void
test_lap_statuses(void **state)
{
	struct world *w = *state;
	struct cm_msg good, lap;
	struct life *l = migrate_connected(w, &good);

	lap = good;
	lap.tid = 1;
	lap.lap.qpn++;
	expect_apr(w, &lap, CM_APR_INVALID_QPN);
	lap = good;
	lap.tid = 2;
	lap.lap.alternate.remote_gid.raw[15] = 9;
	expect_apr(w, &lap, CM_APR_INVALID_GID);
	lap = good;
	lap.tid = 3;
	lap.lap.alternate.rate = 1;
	expect_apr(w, &lap, CM_APR_INVALID_RATE);
	lap = good;
	lap.tid = 4;
	lap.lap.alternate.remote_gid.raw[15] = 1;
	expect_apr(w, &lap, CM_APR_IS_CURRENT);
	/* an alternate path to another host */
	lap = good;
	lap.tid = 5;
	lap.lap.alternate.local_gid.raw[15] = 9;
	expect_apr(w, &lap, CM_APR_INVALID_GID);
	lap = good;
	lap.remote_id = 0x1234;
	expect_apr(w, &lap, CM_APR_INVALID_ID);
	assert_false(migrate_info_of(l).alternate.present);
	expect_apr(w, &good, CM_APR_OK);
	assert_true(migrate_info_of(l).alternate.present);
	assert_int_equal(mig_of(&w->a, l->qpn), MIG_REARM);
	expect_apr(w, &good, CM_APR_OK); /* the LAP is repeated */
	assert_int_equal(counters_of(&w->a).duplicates, 1);
}

/* An APR of an earlier LAP is ignored. */
static void
test_apr_of_another_lap(void **state)
{
	struct world *w = *state;
	struct cm_msg lap, apr = { .type = CM_APR, .local_id = PEER_ID };
	struct life *l = migrate_connected(w, &lap);

	migrate_load(w, l);
	lap = next_message(&w->a, CM_LAP);
	apr.remote_id = l->id;
	apr.tid = lap.tid - 1;
	peer_say(w, &apr);
	assert_false(migrate_info_of(l).alternate.present);
	assert_int_equal(counters_of(&w->a).duplicates, 1);
	apr.tid = lap.tid;
	peer_say(w, &apr);
	assert_true(migrate_info_of(l).alternate.present);
}

/* The peer refuses the alternate path. */
static void
test_apr_refuses(void **state)
{
	struct world *w = *state;
	struct cm_msg lap,
		apr = {
			.type = CM_APR,
			.local_id = PEER_ID,
			.apr = { .status = CM_APR_UNSUPPORTED },
		};
	struct life *l = migrate_connected(w, &lap);

	migrate_load(w, l);
	lap = next_message(&w->a, CM_LAP);
	apr.remote_id = l->id;
	apr.tid = lap.tid;
	peer_say(w, &apr);
	assert_false(migrate_info_of(l).alternate.present);
	assert_int_equal(mig_of(&w->a, l->qpn), MIG_MIGRATED);
	pass(w, 100 * SECOND);
	expect_silence(&w->a);
}

/* The port's MTU has become smaller than the connection's. */
static void
test_lap_to_a_port_with_a_smaller_mtu(void **state)
{
	struct world *w = *state;
	struct cm_msg lap;

	migrate_connected(w, &lap);
	w->a.port.active_mtu = 512;
	expect_apr(w, &lap, CM_APR_REJECTED);
	w->a.port.active_mtu = 1024;
	lap.tid++;
	expect_apr(w, &lap, CM_APR_OK);
}

/* --- in the REQ --- */

static void
test_alternate_path_of_the_req(void **state)
{
	struct world *w = *state;
	struct error err = { "" };
	struct cm_connect c;
	static struct life a;
	struct life *b;
	struct cm_msg rep;

	give_second_gid(&w->b);
	a = (struct life){ .node = &w->a };
	connect_init(&w->a, &c);
	c.user = &a;
	c.alternate = migrate_alternate_of(w);
	assert_int_equal(cm_connect(w->a.cm, &c, w->now, &a.id, &err), 0);
	exchange(w);
	b = last_life(&w->b);
	rep = next_message(&w->b, CM_REP);
	assert_int_equal(rep.rep.failover, 0);
	assert_int_equal(mig_of(&w->a, a.qpn), MIG_REARM);
	assert_int_equal(mig_of(&w->b, b->qpn), MIG_REARM);
	assert_true(migrate_info_of(&a).alternate.present);
	assert_true(migrate_info_of(b).alternate.present);
}

/* FailoverAccepted 1: no alternate path */
static void
test_peer_without_migration(void **state)
{
	struct world *w = *state;
	struct cm_msg req, rep;
	struct error err = { "" };
	struct cm_connect c;
	static struct life a;

	a = (struct life){ .node = &w->a };
	connect_init(&w->a, &c);
	c.user = &a;
	c.alternate = migrate_alternate_of(w);
	assert_int_equal(cm_connect(w->a.cm, &c, w->now, &a.id, &err), 0);
	run(&w->a);
	req = next_message(&w->a, CM_REQ);
	assert_true(cm_msg_path_present(&req.req.alternate));
	assert_int_equal(req.req.alternate.remote_gid.raw[15], 3);
	peer_rep(w, &rep, &req);
	rep.rep.failover = 1;
	peer_say(w, &rep);
	expect_state(&w->a, a.id, CM_STATE_ESTABLISHED);
	assert_false(migrate_info_of(&a).alternate.present);
	assert_int_equal(mig_of(&w->a, a.qpn), MIG_MIGRATED);
}

/* EVENT_PATH_MIG: the alternate path has become the connection's path. */
static void
test_migrated_connection_has_the_new_path(void **state)
{
	struct world *w = *state;
	struct event ev = { .type = EVENT_PATH_MIG };
	struct life *a, *b;

	give_second_gid(&w->b);
	establish(w, &a, &b);
	migrate_load(w, a);
	exchange(w);
	ev.element = a->qpn;
	cm_qp_event(w->a.cm, &ev);
	run(&w->a);
	assert_int_equal(migrate_info_of(a).path.av.dgid.raw[15], 3);
	assert_false(migrate_info_of(a).alternate.present);
}

/* After a migration DREQ and DREP use the new path. */
static void
test_messages_follow_the_migration(void **state)
{
	const union gid second = second_gid();
	struct world *w = *state;
	struct event ev = { .type = EVENT_PATH_MIG };
	struct cm_msg dreq;
	struct packet pkt;
	struct life *a, *b;

	give_second_gid(&w->b);
	establish(w, &a, &b);
	migrate_load(w, a);
	exchange(w);
	ev.element = a->qpn;
	cm_qp_event(w->a.cm, &ev);
	ev.element = b->qpn;
	cm_qp_event(w->b.cm, &ev);
	run(&w->a);
	run(&w->b);
	skip_messages(&w->a);
	disconnect(a);
	dreq = next_message(&w->a, CM_DREQ);
	assert_int_equal(dreq.remote_id, b->id);
	world_parse(&w->a, world_frame(&w->a, w->a.sent - 1), &pkt);
	assert_true(gid_equal(&pkt.dgid, &second));
	exchange(w);
	expect_state(&w->a, a->id, CM_STATE_TIMEWAIT);
	expect_state(&w->b, b->id, CM_STATE_TIMEWAIT);
	assert_int_equal(counters_of(&w->a).retries, 0);
}

static void
migrate_to(struct world *w, struct life *l, struct cm_msg *lap, uint8_t from, uint8_t to)
{
	struct event ev = { .type = EVENT_PATH_MIG, .element = l->qpn };
	struct cm_msg apr;

	lap->tid++;
	lap->lap.alternate.local_lid = to;
	peer_say_from(w, lap, from);
	apr = next_message(&w->a, CM_APR);
	assert_int_equal(apr.apr.status, CM_APR_OK);
	cm_qp_event(w->a.cm, &ev);
	run(&w->a);
	assert_int_equal(migrate_info_of(l).path.av.dlid, to);
}

/*
 * A repeated REQ that arrives late is recognised, although its address belongs to neither path any
 * more. Otherwise it would open a second connection with the same QP.
 */
static void
test_late_req_after_two_migrations(void **state)
{
	struct world *w = *state;
	struct cm_msg lap, req;
	struct life *l = migrate_connected(w, &lap);

	migrate_to(w, l, &lap, 2, 3);
	migrate_to(w, l, &lap, 3, 4);
	peer_req(w, &req);
	peer_say(w, &req);
	assert_ptr_equal(last_life(&w->a), l);
	assert_int_equal(counters_of(&w->a).duplicates, 1);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

static void
test_alternate_path_fails(void **state)
{
	struct world *w = *state;
	struct event ev = { .type = EVENT_PATH_MIG_ERR };
	struct life *a, *b;

	give_second_gid(&w->b);
	establish(w, &a, &b);
	migrate_load(w, a);
	exchange(w);
	ev.element = a->qpn;
	cm_qp_event(w->a.cm, &ev);
	run(&w->a);
	assert_int_equal(migrate_info_of(a).path.av.dgid.raw[15], 2);
	assert_false(migrate_info_of(a).alternate.present);
	expect_state(&w->a, a->id, CM_STATE_ESTABLISHED);
}

#define T(name)  cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define S(name)  cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)
#define IB(name) cmocka_unit_test_setup_teardown(name, world_setup_ib, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_lap_arms_both_sides),
		T(test_lost_lap_and_apr),
		T(test_lap_gives_up),
		S(test_mra_of_lap_waits_longer),
		S(test_lap_statuses),
		S(test_lap_to_a_port_with_a_smaller_mtu),
		S(test_apr_of_another_lap),
		S(test_apr_refuses),
		T(test_alternate_path_of_the_req),
		S(test_peer_without_migration),
		T(test_migrated_connection_has_the_new_path),
		T(test_messages_follow_the_migration),
		IB(test_late_req_after_two_migrations),
		T(test_alternate_path_fails),
	};

	return cmocka_run_group_tests_name("cm: migrate", tests, NULL, NULL);
}
