/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Many connections of one service, and what bounds them. */

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
			run(&b->w->b); /* RTUs and data wait */
		}
	}
	assert_int_equal(svc_worker_connections(server->w), 1000);
	exchange(b->w);
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
test_no_place_is_rejected_and_a_freed_one_taken_again(void **state)
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
		assert_int_equal(three->private_data[i], 0); /* no grant for those outside */
	assert_int_equal(figures(s).refused, 1);
	disconnect(one);
	exchange(b->w);
	expect_rejected(call(b)); /* TIMEWAIT */
	pass(b->w, 10 * SECOND);
	expect_log(call(b), "prepare established");
	assert_int_equal(svc_worker_connections(s->w), 2);
}

/* Two connections of 2 * 4 + 2 * 4 work requests have room in a queue of 40, a third has not. */
static void
test_no_room_for_completions_is_rejected(void **state)
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
 * Completions of a connection that is gone still lie in the queue: its place and its share of the
 * queue come back when they have been polled, not before.
 */
static void
test_share_comes_back_with_the_last_completion(void **state)
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
	b->w->b.work = NULL; /* the service's turns are the test's */
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

/* a worker has others to serve meanwhile */
static void
test_many_are_ended_in_turns(void **state)
{
	struct bench *b = *state;
	struct service *s = serve(b, &b->w->b,
		&(struct svc_config){
			.kind = "sink",
			.max_connections = 100,
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

	assert_true(svc_worker_has(s->w, svc_conn_id(&s->svc->conns[0])));
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
test_places_of_clients_are_bounded_too(void **state)
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
test_watcher_is_told_behind_the_kind(void **state)
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
test_places_are_each_taken_once(void **state)
{
	struct svc_places p;
	bool seen[5] = { false };
	int64_t place;
	unsigned int i;

	(void)state;
	assert_int_equal(svc_places_create(&p, &allocator_malloc, 5), 0);
	for (i = 0; i < 5; i++) {
		place = svc_place_take(&p);
		assert_in_range(place, 0, 4);
		assert_false(seen[place]);
		seen[place] = true;
	}
	assert_int_equal(svc_place_take(&p), -1);
	svc_place_give(&p, 3);
	svc_place_give(&p, 1);
	assert_int_equal(svc_place_take(&p), 1);
	assert_int_equal(svc_place_take(&p), 3);
	assert_int_equal(svc_place_take(&p), -1);
	svc_places_destroy(&p, &allocator_malloc);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_thousand_connections_at_once, many_setup,
			bench_teardown),
		T(test_no_place_is_rejected_and_a_freed_one_taken_again),
		T(test_no_room_for_completions_is_rejected),
		T(test_share_comes_back_with_the_last_completion),
		T(test_unlisten_keeps_connections_disconnect_ends_them),
		T(test_many_are_ended_in_turns),
		T(test_places_of_clients_are_bounded_too),
		T(test_watcher_is_told_behind_the_kind),
		cmocka_unit_test(test_places_are_each_taken_once),
	};

	return cmocka_run_group_tests_name("svc: many", tests, NULL, NULL);
}
