/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Limits against floods of REQs, and the choice of a message's worker. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm/private.h"
#include "world.h"

#define REP_INTERVAL (4096 * MS)

static struct world *
limited(void **state, uint32_t half_open, uint32_t per_peer, uint32_t connections)
{
	struct world like = { .scripted = true, .limits = cm_limits_default };

	like.limits.max_connections = 64;
	like.limits.max_half_open = half_open;
	like.limits.max_half_open_per_peer = per_peer;
	like.limits.max_connections_per_peer = connections;
	*state = world_create(&like);
	return *state;
}

/* Deliver the n-th REQ of a host; each has its own IDs. */
static void
req_of(struct world *w, uint8_t net, uint8_t host, uint32_t n)
{
	struct cm_msg req;
	union gid *from;

	peer_req(w, &req);
	req.local_id = (uint32_t)host << 16 | n;
	req.req.ca_guid = (uint64_t)net << 8 | host;
	req.req.qpn = 1000 + n;
	from = &req.req.primary.local_gid;
	from->raw[14] = net;
	from->raw[15] = host;
	peer_say_as(w, &req, from);
}

static void
req_from(struct world *w, uint8_t host, uint32_t n)
{
	req_of(w, 0, host, n);
}

static void
test_half_open_per_peer(void **state)
{
	struct world *w = limited(state, 64, 4, 64);
	unsigned int i;

	for (i = 0; i < 10; i++)
		req_from(w, 7, i);
	assert_int_equal(w->a.requests, 4);
	assert_int_equal(counters_of(&w->a).half_open_limit, 6);
	assert_int_equal(counters_of(&w->a).sent[CM_REP], 4);
	assert_int_equal(counters_of(&w->a).sent[CM_REJ], 0);
	req_from(w, 8, 0);
	assert_int_equal(w->a.requests, 5);
}

/* the oldest of a peer that has its share goes once it had a second */
static void
test_oldest_of_the_same_peer_is_evicted(void **state)
{
	struct world *w = limited(state, 8, 4, 64);
	struct cm_msg rej;
	unsigned int i;

	for (i = 0; i < 4; i++)
		req_from(w, 7, i);
	pass(w, SECOND - 1);
	req_from(w, 7, 4);
	assert_int_equal(counters_of(&w->a).half_open_limit, 1);
	pass(w, 1);
	skip_messages(&w->a);
	req_from(w, 7, 5);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(rej.remote_id, 7u << 16 | 0);
	expect_messages(&w->a, "REP");
	expect_log(life_of(&w->a, 0), "request prepare timeout released");
	expect_log(life_of(&w->a, 1), "request prepare");
	assert_int_equal(counters_of(&w->a).half_open_evicted, 1);
	assert_int_equal(count_qps(&w->a), 4);
}

/* An address whose peers guess keys gets no new connection for a while, and others do. */
static void
test_paused_address(void **state)
{
	struct world *w = limited(state, 64, 4, 64);
	struct cm_msg req, rej;
	union gid addr;
	unsigned int i;

	peer_req(w, &req);
	addr = req.req.primary.local_gid;
	addr.raw[14] = 0;
	for (i = 0; i < CM_PAUSED; i++) { /* the list is full: the oldest give way */
		put_be16(addr.raw + 14, (uint16_t)(0x1000 + i));
		cm_pause_peer(w->a.cm, &addr, w->now + SECOND);
	}
	put_be16(addr.raw + 14, 7);
	cm_pause_peer(w->a.cm, &addr, w->now + SECOND);
	req_from(w, 7, 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(counters_of(&w->a).paused, 1);
	assert_int_equal(w->a.requests, 0);
	req_from(w, 8, 0);
	assert_int_equal(w->a.requests, 1);
	pass(w, SECOND);
	req_from(w, 7, 1);
	assert_int_equal(w->a.requests, 2);
	assert_int_equal(counters_of(&w->a).paused, 1);
}

/* Guessers from other addresses do not lift a pause, however long theirs are. */
static void
test_pause_survives_others(void **state)
{
	struct world *w = limited(state, 64, 4, 64);
	union gid addr = { .raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10 } };
	unsigned int i;

	put_be16(addr.raw + 14, 7);
	cm_pause_peer(w->a.cm, &addr, w->now + SECOND);
	for (i = 0; i < 1023; i++) {
		put_be16(addr.raw + 14, (uint16_t)(0x1000 + i));
		cm_pause_peer(w->a.cm, &addr, w->now + 60 * SECOND);
		/* paused again: still one entry */
		cm_pause_peer(w->a.cm, &addr, w->now + 60 * SECOND);
	}
	req_from(w, 7, 0);
	assert_int_equal(counters_of(&w->a).paused, 1);
	put_be16(addr.raw + 14, 0x2000);
	cm_pause_peer(w->a.cm, &addr, w->now + SECOND);
	req_from(w, 7, 1); /* the oldest of 1,025 */
	assert_int_equal(counters_of(&w->a).paused, 1);
	assert_int_equal(w->a.requests, 1);
}

/* Whose connection ended last. */
static void
expect_evicted(struct world *w, uint8_t net, uint8_t host, uint32_t n)
{
	const struct cm_info *info;
	unsigned int i, found = 0;

	for (i = 0; i < w->a.num_lives; i++) {
		info = &life_of(&w->a, i)->info;
		if (info->remote_ca_guid == ((uint64_t)net << 8 | host) &&
			info->remote_id == ((uint32_t)host << 16 | n))
			found += strcmp(life_of(&w->a, i)->log,
					 "request prepare timeout released") == 0;
	}
	assert_int_equal(found, 1);
}

/* The pool is full: first an address with several gives way, then a prefix, then the oldest. */
static void
test_those_with_most_give_way(void **state)
{
	struct world *w = limited(state, 6, 2, 64);
	unsigned int i;

	req_of(w, 1, 1, 0);
	req_of(w, 2, 1, 0);
	req_of(w, 3, 1, 0);
	req_of(w, 3, 2, 0);
	req_of(w, 4, 1, 0);
	req_of(w, 4, 1, 1);
	for (i = 2; i < 8; i++) /* as many REQs as the pool holds: all may give way now */
		req_of(w, 4, 1, i);
	assert_int_equal(counters_of(&w->a).half_open_limit, 6);
	req_of(w, 5, 1, 0);
	expect_evicted(w, 4, 1, 0);
	req_of(w, 6, 1, 0);
	expect_evicted(w, 3, 1, 0);
	req_of(w, 7, 1, 0);
	expect_evicted(w, 1, 1, 0);
	assert_int_equal(counters_of(&w->a).half_open_evicted, 3);
	assert_int_equal(count_qps(&w->a), 6);
}

/* An address has most, but fewer REQs than the pool holds have come since: the oldest goes. */
static void
test_young_ones_stay(void **state)
{
	struct world *w = limited(state, 4, 4, 64);
	unsigned int i;

	req_of(w, 1, 1, 0);
	req_of(w, 4, 1, 0);
	for (i = 0; i < 2; i++)
		req_of(w, 2, 1, i);
	req_of(w, 3, 1, 0);
	expect_evicted(w, 1, 1, 0);
	req_of(w, 5, 1, 0);
	expect_evicted(w, 4, 1, 0);
	req_of(w, 6, 1, 0);
	expect_evicted(w, 2, 1, 0);
}

/* Who has more than half of the pool gives way, however young: an address, */
static void
test_half_of_the_pool_gives_way(void **state)
{
	struct world *w = limited(state, 8, 8, 64);
	unsigned int i;

	for (i = 0; i < 3; i++)
		req_of(w, 1 + i, 1, 0);
	for (i = 0; i < 5; i++)
		req_of(w, 9, 1, i);
	req_of(w, 5, 1, 0);
	expect_evicted(w, 9, 1, 0);
	req_of(w, 6, 1, 0); /* 4 of 8 are no more than half */
	expect_evicted(w, 1, 1, 0);
}

/* or a prefix, before an address of another prefix that has several. */
static void
test_half_of_the_pool_of_a_prefix_gives_way(void **state)
{
	struct world *w = limited(state, 8, 8, 64);
	unsigned int i;

	req_of(w, 1, 1, 0);
	req_of(w, 2, 1, 0);
	req_of(w, 2, 1, 1);
	for (i = 0; i < 100; i++)
		req_of(w, 9, (uint8_t)(1 + i), 0);
	for (i = 0; i < 95; i++)
		expect_evicted(w, 9, (uint8_t)(1 + i), 0);
	assert_int_equal(counters_of(&w->a).half_open_evicted, 95);
	for (i = 0; i < 3; i++) /* in that prefix, an address with several comes first */
		req_of(w, 9, 200, i);
	expect_evicted(w, 9, 98, 0);
	for (i = 0; i < 8; i++)
		req_of(w, 9, 200, 3 + i);
	expect_evicted(w, 9, 200, 0);
	req_of(w, 3, 1, 0);
	assert_int_equal(count_qps(&w->a), 8);
}

/* Strangers hold all that is for half-open connections: one of ours still has room. */
static void
test_half_open_ones_do_not_count(void **state)
{
	struct world *w = limited(state, 64, 64, 64);
	unsigned int i;

	for (i = 0; i < 64; i++)
		req_from(w, (uint8_t)(3 + i), i);
	assert_int_equal(count_conns(&w->a), 64);
	for (i = 0; i < 64; i++)
		start(&w->a);
	assert_int_equal(count_conns(&w->a), 128);
}

/* REQs of those whom the listener does not admit push nobody out. */
static void
test_not_admitted_hold_nothing(void **state)
{
	struct world *w = limited(state, 4, 4, 64);
	struct cm_msg rej;
	unsigned int i;

	for (i = 0; i < 4; i++)
		req_of(w, (uint8_t)(1 + i), 1, 0);
	w->a.barred_net = 9;
	skip_messages(&w->a);
	for (i = 0; i < 20; i++)
		req_of(w, 9, (uint8_t)(1 + i), 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(counters_of(&w->a).rej_sent[CM_REJ_INVALID_SERVICE_ID], 20);
	assert_int_equal(counters_of(&w->a).half_open_evicted, 0);
	assert_int_equal(w->a.requests, 4);
	assert_int_equal(count_conns(&w->a), 4);
}

/* An established connection does not count as half open. */
static void
test_established_ones_leave_room(void **state)
{
	struct world *w = limited(state, 2, 2, 64);
	struct cm_msg rtu = { .type = CM_RTU };
	unsigned int i;

	for (i = 0; i < 6; i++) {
		req_from(w, 7, i);
		rtu.remote_id = last_life(&w->a)->id;
		rtu.local_id = 7u << 16 | i;
		peer_say_from(w, &rtu, 7);
	}
	assert_int_equal(w->a.established, 6);
	assert_int_equal(counters_of(&w->a).half_open_limit, 0);
}

/* Nor does a refused one. */
static void
test_refused_ones_leave_room(void **state)
{
	struct world *w = limited(state, 2, 2, 64);
	unsigned int i;

	w->a.answer = CM_REJ_CONSUMER;
	for (i = 0; i < 6; i++)
		req_from(w, 7, i);
	assert_int_equal(counters_of(&w->a).rej_sent[CM_REJ_CONSUMER], 6);
	assert_int_equal(counters_of(&w->a).half_open_limit, 0);
}

static void
test_connections_per_peer(void **state)
{
	struct world *w = limited(state, 64, 64, 3);
	struct cm_msg rej;
	unsigned int i;

	for (i = 0; i < 3; i++)
		req_from(w, 7, i);
	skip_messages(&w->a);
	req_from(w, 7, 3);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(counters_of(&w->a).no_resources, 1);
	req_from(w, 8, 0);
	expect_messages(&w->a, "REP");
}

/* The n-th connection of 10.0.net.host, until its RTU. @return false: its REQ is rejected */
static bool
host_of_net_connects(struct world *w, uint8_t net, uint8_t host, uint32_t n)
{
	uint64_t rejected = counters_of(&w->a).rej_sent[CM_REJ_NO_RESOURCES];
	struct cm_msg rtu = { .type = CM_RTU, .local_id = (uint32_t)host << 16 | n };
	const union gid from = {
		.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [14] = net, [15] = host },
	};

	req_of(w, net, host, n);
	if (counters_of(&w->a).rej_sent[CM_REJ_NO_RESOURCES] > rejected)
		return false;
	rtu.remote_id = last_life(&w->a)->id;
	peer_say_as(w, &rtu, &from);
	return true;
}

/* @return connections that hosts of a /24 get together before they are refused */
static unsigned int
net_takes(struct world *w, uint8_t net)
{
	unsigned int n = 0;

	while (n < 200 && host_of_net_connects(w, net, (uint8_t)(1 + n / 20), n % 20))
		n++;
	return n;
}

/* Addresses are easily had: those of a /24 or /64 together leave connections for others. */
static void
test_one_prefix_leaves_connections(void **state)
{
	struct world *w = limited(state, 64, 64, 20);

	assert_int_equal(net_takes(w, 1), 48); /* three quarters of 64 */
	assert_int_equal(net_takes(w, 2), 12); /* of the 16 that are left */
	assert_int_equal(net_takes(w, 3), 3);
	assert_int_equal(net_takes(w, 4), 1);
	assert_int_equal(w->a.established, 64);
	assert_int_equal(counters_of(&w->a).prefix_limit, 3);
}

/* REQs from forged addresses of a prefix hold nothing against its true ones. */
static void
test_half_open_ones_leave_the_share_of_their_prefix(void **state)
{
	struct world *w = limited(state, 100, 100, 64);
	unsigned int i;

	for (i = 0; i < 100; i++)
		req_of(w, 1, 7, i);
	assert_true(host_of_net_connects(w, 1, 8, 0));
	assert_int_equal(w->a.established, 1);
}

/* All REPs wait for their RTUs: the prefix has its share when those come. */
static void
test_share_of_a_prefix_when_established(void **state)
{
	struct world *w = limited(state, 100, 100, 64);
	struct cm_msg rtu = { .type = CM_RTU };
	const union gid from = {
		.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [14] = 1, [15] = 7 },
	};
	cm_id ids[50];
	unsigned int i;

	for (i = 0; i < 50; i++) {
		req_of(w, 1, 7, i);
		ids[i] = last_life(&w->a)->id;
	}
	for (i = 0; i < 50; i++) {
		rtu.remote_id = ids[i];
		rtu.local_id = 7u << 16 | i;
		peer_say_as(w, &rtu, &from);
	}
	assert_int_equal(w->a.established, 48);
	assert_int_equal(counters_of(&w->a).prefix_limit, 2);
	assert_int_equal(counters_of(&w->a).no_place, 2);
	assert_int_equal(counters_of(&w->a).sent[CM_DREQ], 2);
}

static uint16_t
request_without_seat(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	struct node *n = listener;

	(void)user;
	n->request = *req;
	*param = n->param;
	return 0;
}

static int
no_seat(void *listener, const struct cm_request *req, void **user)
{
	(void)listener, (void)req, (void)user;
	return -ENOSPC;
}

/* The user has no place for an established connection: it ends with a DREQ, and nobody is told. */
static void
test_established_without_a_place_ends(void **state)
{
	struct world *w = limited(state, 8, 8, 8);
	struct cm_user full = world_user;
	struct cm_msg req, rtu = { .type = CM_RTU };
	union gid from;

	full.request = request_without_seat;
	full.seat = no_seat;
	assert_int_equal(cm_listen(w->a.cm, WORLD_SERVICE + 1, UINT64_MAX, &full, &w->a), 0);
	peer_req(w, &req);
	req.req.service_id = WORLD_SERVICE + 1;
	from = req.req.primary.local_gid;
	peer_say_as(w, &req, &from);
	assert_int_equal(counters_of(&w->a).sent[CM_REP], 1);
	rtu.local_id = req.local_id;
	rtu.remote_id = w->a.request.id;
	peer_say_as(w, &rtu, &from);
	assert_int_equal(counters_of(&w->a).no_place, 1);
	assert_int_equal(counters_of(&w->a).sent[CM_DREQ], 1);
	assert_int_equal(counters_of(&w->a).connections, 0);
	assert_int_equal(w->a.established + w->a.ended, 0);
	assert_int_equal(cm_unlisten(w->a.cm, WORLD_SERVICE + 1, UINT64_MAX), 0);
}

/*
 * With MRAs and long intervals a connection is half open for at most 2^16 ms, which is as long as
 * all retries of Linux take.
 */
static void
test_half_open_for_at_most_65_seconds(void **state)
{
	struct world *w = limited(state, 64, 64, 64);
	struct cm_msg req,
		mra = {
			.type = CM_MRA,
			.local_id = PEER_ID,
			.mra = { .answers = CM_ANSWERS_REP, .service_timeout = 31 },
		};
	struct life *l, *patient;
	unsigned int i;

	peer_req(w, &req);
	req.req.local_response_timeout = 23; /* 32.8 s, 16 times */
	peer_say(w, &req);
	l = last_life(&w->a);
	req.local_id++;
	req.req.qpn++;
	peer_say(w, &req);
	patient = last_life(&w->a);
	for (i = 0; i < 65; i++) {
		pass(w, SECOND);
		mra.remote_id = patient->id;
		mra.local_id = req.local_id;
		peer_say(w, &mra);
	}
	expect_state(&w->a, l->id, CM_STATE_REP_SENT);
	expect_state(&w->a, patient->id, CM_STATE_MRA_REP_RCVD);
	pass(w, 536 * MS);
	expect_log(l, "request prepare timeout released");
	expect_log(patient, "request prepare timeout released");
	expect_nothing_left(&w->a);
}

/* If many connections leave TIMEWAIT at once, they are freed in slices. */
static void
test_many_connections_are_freed_in_slices(void **state)
{
	struct world *w = limited(state, 64, 64, 64);
	struct cm_msg m = { .type = CM_RTU };
	unsigned int i;

	for (i = 0; i < 30; i++) {
		req_from(w, 7, i);
		m = (struct cm_msg){
			.type = CM_RTU,
			.remote_id = last_life(&w->a)->id,
			.local_id = 7u << 16 | i,
		};
		peer_say_from(w, &m, 7);
		m.type = CM_DREQ;
		m.dreq.qpn = last_life(&w->a)->qpn;
		peer_say_from(w, &m, 7);
	}
	assert_int_equal(w->a.ended, 30);
	w->now += 10 * SECOND;
	timer_wheel_run(w->a.wheel, w->now);
	assert_int_equal(w->a.released, 0);
	assert_int_equal(cm_run(w->a.cm, w->now, 8), 8);
	assert_int_equal(w->a.released, 8);
	assert_true(cm_pending(w->a.cm));
	run(&w->a);
	assert_int_equal(w->a.released, 30);
	expect_nothing_left(&w->a);
}

/* A flood with random IDs and addresses: connections stay, and new ones are possible afterwards. */
static void
test_flood_of_reqs(void **state)
{
	struct world *w = limited(state, 32, 8, 64);
	struct wc wcs[16];
	const union gid gid_8_9 = {
		.raw = { [10] = 0xFF, [11] = 0xFF, [12] = 10, [14] = 8, [15] = 9 },
	};
	struct cm_msg req, drep, rtu = { .type = CM_RTU, .local_id = 9u << 16 };
	struct life l, ours; /* the first: a copy, they are remembered for a while only */
	unsigned int i;

	peer_req(w, &req);
	peer_say(w, &req);
	l = *last_life(&w->a);
	peer_answer(w, CM_RTU, l.id);
	for (i = 0; i < 20000; i++) {
		req_from(w, (uint8_t)(3 + i % 100), 0x4000 + i);
		if (i % 1000 == 999)
			pass(w, SECOND);
		w->a.delivered = w->a.sent;
		while (rc_cq_poll(w->a.dev, w->a.recv_cq, wcs, RTE_DIM(wcs)) > 0)
			; /* flushed receives */
	}
	assert_int_equal(counters_of(&w->a).received[CM_REQ], 20001);
	assert_int_equal(counters_of(&w->a).half_open_limit, 0);
	assert_int_equal(w->a.requests, 20001);
	assert_true(counters_of(&w->a).half_open_evicted > 19000);
	/* who gives way is told rarely: 16, then 4 in each of 20 s */
	assert_in_range(w->a.ended_events, 16, 16 + 4 * 20);
	assert_true(w->a.ended_events + w->a.unreported > 18000);
	assert_true(count_conns(&w->a) <= 33);
	req_of(w, 8, 9, 0); /* a peer that means it connects amid the flood */
	ours = *last_life(&w->a);
	for (i = 0; i < 31; i++)
		req_from(w, (uint8_t)(3 + i), 0x8000 + i);
	rtu.remote_id = ours.id;
	peer_say_as(w, &rtu, &gid_8_9);
	expect_state(&w->a, ours.id, CM_STATE_ESTABLISHED);
	rtu.type = CM_DREQ;
	rtu.dreq.qpn = ours.qpn;
	peer_say_as(w, &rtu, &gid_8_9);
	expect_state(&w->a, l.id, CM_STATE_ESTABLISHED);
	skip_messages(&w->a);
	peer_dreq(w, l.id, PEER_ID, l.qpn);
	drep = next_message(&w->a, CM_DREP);
	assert_int_equal(drep.local_id, l.id);
	for (i = 0; i < 16; i++)
		pass(w, REP_INTERVAL);
	expect_nothing_left(&w->a);
	req_from(w, 9, 1);
	expect_state(&w->a, last_life(&w->a)->id, CM_STATE_REP_SENT);
}

/* REQs without a listener use no memory. */
static void
test_flood_without_listener(void **state)
{
	struct world *w = limited(state, 32, 8, 64);
	struct cm_msg req;
	unsigned int i;

	assert_int_equal(cm_unlisten(w->a.cm, WORLD_SERVICE, UINT64_MAX), 0);
	for (i = 0; i < 1000; i++) {
		peer_req(w, &req);
		req.local_id += i;
		req.req.qpn += i;
		peer_say(w, &req);
	}
	assert_int_equal(counters_of(&w->a).rej_sent[CM_REJ_INVALID_SERVICE_ID], 1000);
	expect_nothing_left(&w->a);
}

static void
test_number_of_connections_is_limited(void **state)
{
	struct world *w = limited(state, 64, 64, 64);
	struct error err = { "" };
	struct cm_connect c;
	cm_id id;
	unsigned int i;

	for (i = 0; i < 64; i++)
		start(&w->a);
	connect_init(&w->a, &c);
	assert_int_equal(cm_connect(w->a.cm, &c, w->now, &id, &err), -ENOSPC);
	assert_int_equal(counters_of(&w->a).no_resources, 1);
}

/* --- IDs and owners --- */

static void
test_ids_are_a_permutation(void **state)
{
	uint8_t *seen = calloc(1, 1 << 16);
	unsigned int i, same = 0;
	uint32_t id;

	(void)state;
	for (i = 0; i < 1 << 16; i++) {
		id = cm_scramble(42, i);
		assert_int_equal(cm_unscramble(42, id), i);
		same += cm_scramble(43, i) == id;
		seen[id & 0xFFFF]++;
	}
	assert_true(same < 4);
	/* the low halves of consecutive IDs are spread: no value is frequent */
	for (i = 0; i < 1 << 16; i++)
		assert_true(seen[i] < 16);
	free(seen);
}

static void
test_ids_are_not_used_again_soon(void **state)
{
	struct world *w = limited(state, 64, 64, 64);
	cm_id ids[200];
	unsigned int i, k;
	struct life *l;

	for (i = 0; i < 200; i++) {
		l = start(&w->a);
		ids[i] = l->id;
		for (k = 0; k < i; k++)
			assert_int_not_equal(ids[k], l->id);
		disconnect(l);
		skip_messages(&w->a);
		w->a.delivered = w->a.sent;
	}
	for (i = 0; i < 200; i++)
		expect_gone(&w->a, ids[i]);
}

#define WORKERS 3

/* Every kind of message for a connection goes to the worker that owns it. */
static void
test_owner_is_in_the_id(void **state)
{
	static const enum cm_message types[] = { CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP,
		CM_LAP, CM_APR };
	struct cm cm = { .config = { .hash_key = 0xABC, .workers = WORKERS } };
	struct cm_conn conn = { .cm = &cm };
	uint8_t mad[MAD_LEN];
	struct cm_msg m;
	unsigned int i, k;

	(void)state;
	cm_id_format(&cm.ids, WORKERS, 1000);
	for (i = 0; i < 3000; i++) {
		cm.config.id = i % WORKERS;
		conn.index = i / WORKERS;
		conn.id = cm_id_make(&conn);
		assert_int_equal(cm_worker_of(0xABC, WORKERS, conn.id), i % WORKERS);
		for (k = 0; k < 8; k++) {
			m = (struct cm_msg){ .type = types[k], .remote_id = conn.id };
			cm_msg_encode(&m, mad);
			assert_int_equal(cm_owner(0xABC, WORKERS, mad), i % WORKERS);
		}
	}
}

/* CA GUID and QPN of a REQ choose the worker; REQs are spread over all workers. */
static void
test_owner_of_reqs(void **state)
{
	unsigned int count[WORKERS] = { 0 }, i, owner;
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	(void)state;
	for (i = 0; i < 3000; i++) {
		m = (struct cm_msg){
			.type = CM_REQ,
			.tid = i,
			.local_id = 5,
			.req = { .ca_guid = GUID_B, .qpn = 100 + i, .qkey = i },
		};
		cm_msg_encode(&m, mad);
		owner = cm_owner(0xABC, WORKERS, mad);
		count[owner]++;
		m.local_id = i;
		m.tid++;
		m.req.psn = i;
		m.req.responder_resources = (uint8_t)i;
		cm_msg_encode(&m, mad);
		assert_int_equal(cm_owner(0xABC, WORKERS, mad), owner);
		assert_int_equal(cm_owner(0xABC, 1, mad), 0);
	}
	for (i = 0; i < WORKERS; i++)
		assert_in_range(count[i], 850, 1150);
}

/* Any bytes have a valid owner. */
static void
test_owner_of_any_bytes(void **state)
{
	uint8_t mad[MAD_LEN];
	unsigned int i, k;

	(void)state;
	srand(1);
	for (i = 0; i < 100000; i++) {
		for (k = 0; k < 64; k++)
			mad[k] = (uint8_t)rand();
		mad[MAD_OFF_ATTRIBUTE] = 0;
		mad[MAD_OFF_ATTRIBUTE + 1] = 0x0F + i % 14;
		assert_true(cm_owner(i, 1 + i % 7, mad) < 1 + i % 7);
	}
}

#define N(name) cmocka_unit_test_teardown(name, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		N(test_half_open_per_peer),
		N(test_oldest_of_the_same_peer_is_evicted),
		N(test_paused_address),
		N(test_pause_survives_others),
		N(test_those_with_most_give_way),
		N(test_young_ones_stay),
		N(test_half_of_the_pool_gives_way),
		N(test_half_of_the_pool_of_a_prefix_gives_way),
		N(test_half_open_ones_do_not_count),
		N(test_not_admitted_hold_nothing),
		N(test_established_ones_leave_room),
		N(test_refused_ones_leave_room),
		N(test_connections_per_peer),
		N(test_one_prefix_leaves_connections),
		N(test_half_open_ones_leave_the_share_of_their_prefix),
		N(test_share_of_a_prefix_when_established),
		N(test_established_without_a_place_ends),
		N(test_half_open_for_at_most_65_seconds),
		N(test_many_connections_are_freed_in_slices),
		N(test_flood_of_reqs),
		N(test_flood_without_listener),
		N(test_number_of_connections_is_limited),
		cmocka_unit_test(test_ids_are_a_permutation),
		N(test_ids_are_not_used_again_soon),
		cmocka_unit_test(test_owner_is_in_the_id),
		cmocka_unit_test(test_owner_of_reqs),
		cmocka_unit_test(test_owner_of_any_bytes),
	};

	return cmocka_run_group_tests_name("cm: limits", tests, NULL, NULL);
}
