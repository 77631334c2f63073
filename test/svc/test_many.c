/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Many connections of one service, and their limits. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "svc/private.h"

static int
many_setup(void **state)
{
	struct world like = { .limits = cm_limits_default, .max_qp = 2048 };

	like.limits.max_connections = 2048;
	like.limits.max_connections_per_peer = 2048;
	like.limits.max_half_open = 2048;
	like.limits.max_half_open_per_peer = 2048;
	*state = bench_create(&like);
	return 0;
}

static void
test_a_thousand_connections_at_once(void **state)
{
	struct bench *b = *state;
	struct service *server = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "echo",
			.size = 64,
			.depth = 1,
			.max_connections = 1000,
			.max_connections_per_peer = 1000,
		});
	struct service *client = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "echo",
			.active = true,
			.size = 64,
			.depth = 1,
			.count = 3,
			.verify = true,
			.max_connections = 1001,
		});
	struct error err;
	unsigned int i;
	cm_id id;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(begin(client, &id, &err), 0);
		if (i % 50 == 49) {
			deliver(&b->w->a);
			run(&b->w->b); /* RTUs and data are not delivered yet */
		}
	}
	assert_int_equal(svc_worker_connections(server->w), 0);
	exchange(b->w);
	assert_int_equal(svc_worker_connections(server->w), 1000);
	pass(b->w, 10 * MS); /* RNR NAKs are possible */
	assert_int_equal(figures(client).established, 1000);
	assert_int_equal(figures(client).exchanges, 3000);
	assert_int_equal(figures(client).mismatches, 0);
	assert_int_equal(figures(server).messages_out, 3000);
	assert_int_equal(figures(server).errors, 0);
	expect_all_released(b);
}

static void
expect_rejected(struct life *l)
{
	assert_int_equal(l->info.end, CM_END_REJECTED);
	assert_int_equal(l->info.reason, CM_REJ_NO_RESOURCES);
}

static void
test_connection_without_a_place_is_rejected(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "memory",
			.max_connections = 2,
		});
	struct life *one = call(b), *two = call(b), *three;

	(void)two;
	three = call(b);
	expect_rejected(three);
	assert_int_equal(three->private_len, CM_REJ_PRIVATE);
	for (unsigned int i = 0; i < CM_REJ_PRIVATE; i++)
		assert_int_equal(three->private_data[i], 0); /* a rejected client gets no grant */
	assert_int_equal(figures(s).refused, 1);
	disconnect(one);
	exchange(b->w);
	expect_rejected(call(b)); /* the ended one is in TIMEWAIT */
	pass(b->w, 10 * SECOND);
	expect_log(call(b), "prepare established");
	assert_int_equal(svc_worker_connections(s->w), 2);
}

/* A REQ takes no place: as many as there are places, and one peer more, are half open. */
static void
test_half_open_ones_take_no_place(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "echo",
			.size = 64,
			.max_connections = 2,
		});
	struct life *l[3];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		l[i] = start(&b->w->a);
		deliver(&b->w->a);
		run(&b->w->b);
		assert_int_equal(svc_worker_connections(s->w), 0);
	}
	exchange(b->w);
	assert_int_equal(svc_worker_connections(s->w), 2);
	expect_log(l[0], "prepare established");
	expect_log(l[1], "prepare established");
	expect_log(l[2], "prepare established disconnected"); /* too late: a DREQ */
	assert_int_equal(counters_of(&b->w->b).no_place, 1);
	assert_int_equal(figures(s).refused, 1);
	disconnect(l[0]);
	disconnect(l[1]);
	exchange(b->w);
	expect_all_released(b);
}

/* The RTU is lost: data find no receive, and the place is taken because of them. */
static void
test_data_take_the_place(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	const struct send_wr wr = { .opcode = WR_SEND, .send_flags = SEND_SIGNALED };
	struct life *l;
	struct wc wc;

	lose(&b->w->a, CM_RTU);
	l = call(b);
	assert_int_equal(svc_worker_connections(s->w), 0);
	assert_int_equal(rc_post_send(b->w->a.rc, l->qpn, &wr, NULL), 0);
	exchange(b->w);
	pass(b->w, MS); /* the RNR NAK's time */
	assert_int_equal(svc_worker_connections(s->w), 1);
	assert_int_equal(rc_cq_poll(b->w->a.dev, b->w->a.send_cq, &wc, 1), 1);
	assert_int_equal(wc.status, WC_SUCCESS);
	assert_int_equal(figures(s).messages_in, 1);
}

/* A service that ends forgets those that have no place yet. */
static void
test_unlisten_ends_half_open_ones(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	struct life *l = start(&b->w->a);

	deliver(&b->w->a);
	svc_worker_unlisten(s->w);
	exchange(b->w);
	expect_log(l, "prepare established rejected");
	expect_all_released(b);
}

/* rsockets' REP names the place: forged REQs hold half of them, and only for a while. */
static void
test_places_in_a_rep_give_way(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "memory",
			.length = 4096,
			.per_connection = true,
			.max_connections = 32,
		});
	unsigned int i;

	b->w->a.deaf = true; /* the REPs reach nobody */
	for (i = 0; i < 100; i++) {
		start(&b->w->a);
		deliver(&b->w->a);
		run(&b->w->b);
	}
	assert_int_equal(svc_worker_connections(s->w), 16);
	b->w->a.deaf = false;
	expect_log(call(b), "prepare established");
}

/* --- the share of an address --- */

static int
strangers_setup(void **state)
{
	*state = bench_create(&(struct world){ .scripted = true });
	return 0;
}

/* The n-th connection of 10.0.0.@p host. @return false: its REQ is rejected */
static bool
host_connects(struct bench *b, uint8_t host, uint32_t n)
{
	struct cm_msg req, rtu = { .type = CM_RTU };
	struct node *node = &b->w->a;
	uint64_t rejected = counters_of(node).rej_sent[CM_REJ_NO_RESOURCES];

	skip_messages(node);
	peer_req(b->w, &req);
	rtu.local_id = req.local_id = (uint32_t)host << 16 | n;
	req.req.ca_guid = host;
	req.req.qpn = 1000 + n;
	req.req.primary.local_gid.raw[15] = host;
	peer_say_as(b->w, &req, &req.req.primary.local_gid);
	if (counters_of(node).rej_sent[CM_REJ_NO_RESOURCES] > rejected)
		return false;
	rtu.remote_id = next_message(node, CM_REP).local_id;
	peer_say_as(b->w, &rtu, &req.req.primary.local_gid);
	return true;
}

/* @return connections that the host gets before it is refused */
static unsigned int
host_takes(struct bench *b, uint8_t host)
{
	uint32_t n = 0;

	while (n < 100 && host_connects(b, host, n))
		n++;
	return n;
}

/* However many addresses take what they can get, the next one finds a place. */
static void
test_one_address_leaves_places(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a, &(struct svc_config){ .kind = "rping" });

	assert_int_equal(host_takes(b, 7), 48); /* three quarters of 64 */
	assert_int_equal(host_takes(b, 8), 12); /* of the 16 that are left */
	assert_int_equal(host_takes(b, 9), 3);
	assert_int_equal(host_takes(b, 10), 1);
	assert_int_equal(figures(s).connections, 64);
	assert_int_equal(figures(s).peer_limit, 3);
	assert_int_equal(figures(s).refused, 4);
}

/* The same for a service whose place is taken at the REQ. */
static void
test_one_address_leaves_places_in_a_rep(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "memory",
			.length = 4096,
			.per_connection = true,
		});

	assert_int_equal(host_takes(b, 7), 12); /* of 16 */
	assert_int_equal(host_takes(b, 8), 3);
	assert_int_equal(figures(s).peer_limit, 2);
	pass(b->w, 10 * SECOND);
	assert_int_equal(figures(s).connections, 15);
}

/* REPs wait for their RTUs: the address has its share when those come. */
static void
test_share_is_asked_for_when_the_place_is_taken(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "rping",
			.max_connections = 4,
		});
	struct life *l[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		l[i] = start(&b->w->a);
		deliver(&b->w->a);
		run(&b->w->b);
	}
	exchange(b->w);
	assert_int_equal(figures(s).connections, 3);
	assert_int_equal(figures(s).peer_limit, 1);
	expect_log(l[3], "prepare established disconnected");
}

/* The operator's number stands for three times what is left. A place is free after TIMEWAIT. */
static void
test_share_is_configurable(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "rping",
			.max_connections = 8,
			.max_connections_per_peer = 2,
		});
	struct life *one = call(b);

	call(b);
	expect_rejected(call(b));
	assert_int_equal(figures(s).peer_limit, 1);
	disconnect(one);
	exchange(b->w);
	pass(b->w, 10 * SECOND);
	expect_log(call(b), "prepare established");
	expect_refusal(b,
		&(struct svc_config){
			.kind = "rping",
			.max_connections = 8,
			.max_connections_per_peer = 9,
		},
		"max_connections_per_peer: got 9, allowed: 0 to max_connections, 8");
}

/* Connections of 2 * 4 + 2 * 4 work requests each: a CQ of 40 has room for two, not for three. */
static void
test_connection_without_room_in_the_cq_is_rejected(void **state)
{
	struct bench *b = *state;
	struct service *s = &b->services[b->num_services++];
	struct svc_env env = bench_env(&b->w->b);
	struct svc_config c = {
		.kind = "echo",
		.size = 64,
		.depth = 4,
		.max_connections = 10,
		.service_id = WORLD_SERVICE,
		.service_mask = UINT64_MAX,
	};
	struct rc_cq_info info;
	struct life *one, *two;
	struct error err;

	env.max_cqe = 40;
	s->node = &b->w->b;
	s->svc = svc_create(&env, &c, &err);
	assert_non_null(s->svc);
	s->w = svc_worker_create(s->svc, s->node->cm, s->node->rc, 0, &err);
	cm_unlisten(s->node->cm, WORLD_SERVICE, UINT64_MAX);
	assert_int_equal(svc_worker_listen(s->w), 0);
	one = call(b);
	two = call(b);
	expect_log(one, "prepare established");
	expect_log(two, "prepare established");
	expect_rejected(call(b));
	assert_int_equal(rc_cq_query(s->node->dev, s->w->cqn, &info), 0);
	assert_int_equal(info.depth, 40);
	disconnect(one);
	exchange(b->w);
	pass(b->w, 10 * SECOND);
	assert_int_equal(s->w->room, 40 - 16);
	expect_log(call(b), "prepare established");

	c.depth = 11;
	assert_null(svc_create(&env, &c, &err));
	assert_string_equal(err.text,
		"depth: 44 work requests a connection, a completion queue has at most 40");
}

/*
 * The CQ still holds completions of a connection that has ended. Its place and its share of the CQ
 * are free only after they have been polled.
 */
static void
test_share_of_the_cq_is_free_after_the_last_completion(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "echo",
			.size = 64,
			.depth = 4,
			.max_connections = 1,
		});
	struct life *l = call(b);
	struct rc_cq_info info;

	assert_int_equal(s->w->room, 0);
	b->w->b.work = NULL; /* the test itself calls the service's turns */
	disconnect(l);
	exchange(b->w);
	pass(b->w, 10 * SECOND);
	assert_int_equal(rc_cq_query(s->node->dev, s->w->cqn, &info), 0);
	assert_int_equal(info.pending, 8); /* flushed receives */
	assert_int_equal(svc_worker_run(s->w, b->w->now, 7), 7);
	assert_int_equal(svc_worker_connections(s->w), 1);
	expect_rejected(call(b));
	assert_int_equal(svc_worker_run(s->w, b->w->now, 7), 1);
	assert_int_equal(svc_worker_connections(s->w), 0);
	assert_int_equal(s->w->room, 16);
	assert_int_equal(figures(s).errors, 0);
}

/* Many connections are ended in several turns, so that the worker can serve others meanwhile. */
static void
test_many_are_ended_in_turns(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "sink",
			.max_connections = 100,
			.max_connections_per_peer = 100,
		});
	unsigned int i;

	for (i = 0; i < 100; i++)
		call(b);
	assert_int_equal(figures(s).connections, 100);
	svc_worker_disconnect(s->w, b->w->now);
	assert_int_equal(counters_of(&b->w->b).sent[CM_DREQ], 64);
	svc_worker_run(s->w, b->w->now, 0);
	assert_int_equal(counters_of(&b->w->b).sent[CM_DREQ], 100);
	exchange(b->w);
	assert_int_equal(figures(s).connections, 0);
	expect_all_released(b);
}

static void
test_unlisten_keeps_connections_disconnect_ends_them(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b, &(struct svc_config){ .kind = "echo" });
	struct life *one = call(b), *two = call(b), *late;

	assert_true(svc_worker_has(s->w, s->svc->conns[0].id));
	svc_worker_unlisten(s->w);
	late = call(b);
	assert_int_equal(late->info.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(say(b, one, 10), WC_SUCCESS);
	svc_worker_disconnect(s->w, b->w->now);
	exchange(b->w);
	expect_log(one, "prepare established disconnected");
	expect_log(two, "prepare established disconnected");
	expect_all_released(b);
	assert_false(svc_worker_has(s->w, 0x12345678));
}

static void
test_places_of_clients_are_limited(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "echo",
			.active = true,
			.size = 16,
		});
	struct error err = { "" };
	cm_id id;

	dial(b, s);
	assert_int_equal(begin(s, &id, &err), -ENOSPC);
	assert_string_equal(err.text, "service echo: no place for one more connection, it has 1");
}

/* --- a watcher --- */

static void
watch_established(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	(void)info;
	assert_int_equal(len, CM_REP_PRIVATE);
	assert_int_equal(data[0], 0);
	strcat(user, "established ");
}

static void
watch_ended(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	(void)data;
	(void)len;
	assert_int_equal(info->end, CM_END_DISCONNECTED);
	strcat(user, "ended ");
}

static void
watch_released(void *user)
{
	strcat(user, "released");
}

static void
test_watcher_is_called_after_the_service_kind(void **state)
{
	static const struct cm_user watcher = {
		.established = watch_established,
		.ended = watch_ended,
		.released = watch_released,
	};
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->a,
		&(struct svc_config){
			.kind = "rping",
			.active = true,
			.count = 2,
		});
	struct cm_connect c;
	struct error err;
	char log[64] = "";
	cm_id id;

	serve(b, &b->w->b, &(struct svc_config){ .kind = "rping" });
	connect_init(&b->w->a, &c);
	c.ops = &watcher;
	c.user = log;
	assert_int_equal(svc_worker_connect(s->w, &c, b->w->now, &id, &err), 0);
	exchange(b->w);
	assert_string_equal(log, "established ended ");
	pass(b->w, 10 * SECOND);
	assert_string_equal(log, "established ended released");
}

/* --- places --- */

static void
test_each_place_is_given_once(void **state)
{
	const struct svc_env env = { .alloc = &allocator_malloc, .rng = &rng_kernel };
	struct svc_places p;
	bool seen[5] = { false };
	int64_t place;
	unsigned int i;

	(void)state;
	assert_int_equal(svc_places_create(&p, &env, 5, 0), 0);
	for (i = 0; i < 5; i++) {
		place = svc_place_take(&p, NULL);
		assert_in_range(place, 0, 4);
		assert_false(seen[place]);
		seen[place] = true;
	}
	assert_int_equal(svc_place_take(&p, NULL), -ENOSPC);
	svc_place_give(&p, 3, NULL);
	svc_place_give(&p, 1, NULL);
	assert_int_equal(svc_place_take(&p, NULL), 1);
	assert_int_equal(svc_place_take(&p, NULL), 3);
	assert_int_equal(svc_place_take(&p, NULL), -ENOSPC);
	svc_places_destroy(&p, &allocator_malloc);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_thousand_connections_at_once, many_setup,
			bench_teardown),
		T(test_connection_without_a_place_is_rejected),
		T(test_half_open_ones_take_no_place),
		T(test_data_take_the_place),
		T(test_unlisten_ends_half_open_ones),
		T(test_places_in_a_rep_give_way),
		cmocka_unit_test_setup_teardown(test_one_address_leaves_places, strangers_setup,
			bench_teardown),
		cmocka_unit_test_setup_teardown(test_one_address_leaves_places_in_a_rep,
			strangers_setup, bench_teardown),
		T(test_share_is_asked_for_when_the_place_is_taken),
		T(test_share_is_configurable),
		T(test_connection_without_room_in_the_cq_is_rejected),
		T(test_share_of_the_cq_is_free_after_the_last_completion),
		T(test_unlisten_keeps_connections_disconnect_ends_them),
		T(test_many_are_ended_in_turns),
		T(test_places_of_clients_are_limited),
		T(test_watcher_is_called_after_the_service_kind),
		cmocka_unit_test(test_each_place_is_given_once),
	};

	return cmocka_run_group_tests_name("svc: many", tests, NULL, NULL);
}
