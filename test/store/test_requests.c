/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A fleet's requests as its watch brings them: what the leader executes, what others learn. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/fleet_private.h"

static unsigned int wakes;

static void
count_wake(void *arg)
{
	(void)arg;
	wakes++;
}

/* A fleet without a thread and without etcd. */
static int
requests_setup(void **state)
{
	struct fleet *f = calloc(1, sizeof(*f));

	pthread_mutex_init(&f->lock, NULL);
	STAILQ_INIT(&f->queue);
	STAILQ_INIT(&f->news);
	TAILQ_INIT(&f->requests);
	strcpy(f->key.requests, "/p/q/");
	strcpy(f->key.answers, "/p/a/");
	f->wake = count_wake;
	f->lead = 5;
	*state = f;
	return 0;
}

static int
requests_teardown(void **state)
{
	struct fleet *f = *state;

	fleet_requests_free(f);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

/* The watch brings one event. */
static void
bring(struct fleet *f, const char *key, const char *value, uint64_t created, uint64_t revision,
	bool gone)
{
	struct etcd_kv kv = {
		.key = (char *)(uintptr_t)key,
		.key_len = strlen(key),
		.value = (uint8_t *)(uintptr_t)value,
		.value_len = strlen(value),
		.create_revision = created,
		.mod_revision = revision,
		.gone = gone,
	};
	struct etcd_kvs kvs = { &kv, 1 };

	fleet_take_requests(f, &kvs);
}

static void
test_leader_gets_each_request_once_and_in_order(void **state)
{
	struct fleet *f = *state;
	struct fleet_request *r[4];

	bring(f, "/p/q/one", "1", 10, 10, false);
	bring(f, "/p/q/one", "1", 10, 10, false);
	bring(f, "/p/q/two", "22", 11, 11, false);
	bring(f, "/p/r/0100000001", "record", 12, 12, false);
	assert_int_equal(fleet_take(f, r, 4), 2);
	assert_string_equal(r[0]->id, "one");
	assert_int_equal(r[0]->created, 10);
	assert_int_equal(r[1]->len, 2);
	assert_memory_equal(r[1]->bytes, "22", 2);
	fleet_settle(f, r, 1, true);
	fleet_settle(f, r + 1, 1, false); /* not executed: once more */
	assert_int_equal(fleet_take(f, r, 4), 1);
	assert_string_equal(r[0]->id, "two");
	fleet_settle(f, r, 1, true);
	assert_int_equal(fleet_take(f, r, 4), 0);
}

static void
test_withdrawn_request_is_not_executed(void **state)
{
	struct fleet *f = *state;
	struct fleet_request *r[4];

	bring(f, "/p/q/one", "1", 10, 10, false);
	bring(f, "/p/q/one", "", 0, 11, true);
	assert_int_equal(fleet_take(f, r, 4), 0);
	/* while the store's writer has it */
	bring(f, "/p/q/one", "1", 12, 12, false);
	assert_int_equal(fleet_take(f, r, 4), 1);
	bring(f, "/p/q/one", "", 0, 13, true);
	fleet_settle(f, r, 1, false);
	assert_int_equal(fleet_take(f, r, 4), 0);
	/* an older removal than the request that was read when the lead was taken */
	bring(f, "/p/q/one", "1", 20, 20, false);
	bring(f, "/p/q/one", "", 0, 15, true);
	assert_int_equal(fleet_take(f, r, 4), 1);
	fleet_settle(f, r, 1, true);
}

static void
test_only_the_leader_executes(void **state)
{
	struct fleet *f = *state;
	struct fleet_request *r[4];

	bring(f, "/p/q/one", "1", 10, 10, false);
	assert_int_equal(fleet_take(f, r, 4), 1);
	fleet_drop_requests(f); /* it does not lead any more */
	f->lead = 0;
	fleet_settle(f, r, 1, false);
	assert_int_equal(f->num_requests, 0);
	bring(f, "/p/q/two", "1", 11, 11, false);
	assert_int_equal(f->num_requests, 0);
	assert_int_equal(fleet_take(f, r, 4), 0);
}

static void
test_table_of_requests_is_bounded(void **state)
{
	struct fleet *f = *state;
	char key[32];
	unsigned int i;

	for (i = 0; i < 3000; i++) {
		snprintf(key, sizeof(key), "/p/q/%u", i);
		bring(f, key, "1", 10 + i, 10 + i, false);
	}
	assert_int_equal(f->num_requests, 1024);
	assert_true(f->requests_left); /* the others are read from etcd later */
	/* an ID that is too long is nobody's */
	bring(f,
		"/p/q/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		"1", 9, 9, false);
	assert_int_equal(f->num_requests, 1024);
}

/* Read your writes: the answer is told after the records before it have been published. */
static void
test_answer_waits_for_the_records_before_it(void **state)
{
	struct fleet *f = *state;
	struct fleet_news *news;
	unsigned int n;

	bring(f, "/p/a/one", "yes", 10, 10, false);
	assert_null(fleet_news(f)); /* nobody waits for any */
	fleet_expect(f, 1);
	f->queued = 3;
	f->unqueued = 2;
	bring(f, "/p/a/one", "yes", 11, 11, false);
	bring(f, "/p/q/one", "", 0, 11, true);
	assert_null(fleet_news(f));
	f->unqueued = 3;
	news = fleet_news(f);
	assert_non_null(news);
	assert_int_equal(news->kind, FLEET_ANSWERED);
	assert_string_equal(news->id, "one");
	assert_int_equal(news->len, 3);
	assert_memory_equal(news->bytes, "yes", 3);
	free(news);
	news = fleet_news(f);
	assert_int_equal(news->kind, FLEET_GONE);
	free(news);
	assert_null(fleet_news(f));
	for (n = 0; n < 10000; n++)
		bring(f, "/p/a/one", "yes", 20, 20 + n, false);
	assert_int_equal(f->num_news, 8192);
}

static void
queue_batch(struct fleet *f, bool replace)
{
	struct fleet_batch *b = calloc(1, sizeof(*b));

	b->batch.replace = replace;
	fleet_queue(f, b);
}

static void
take_batch(struct fleet *f)
{
	struct fleet_batch *b = STAILQ_FIRST(&f->queue);

	fleet_unqueue(f);
	free(b);
}

/* The records before it are dropped, because a read of the whole database brings them later. */
static void
test_answer_waits_for_what_replaces_its_records(void **state)
{
	struct fleet *f = *state;
	struct fleet_news *news;

	fleet_expect(f, 1);
	queue_batch(f, false);
	queue_batch(f, false);
	queue_batch(f, false);
	bring(f, "/p/a/one", "yes", 11, 11, false);
	queue_batch(f, true);
	queue_batch(f, true);
	take_batch(f); /* the store's writer had it already */
	assert_null(fleet_news(f));
	take_batch(f);
	news = fleet_news(f);
	assert_non_null(news);
	free(news);
	assert_true(STAILQ_EMPTY(&f->queue));
	assert_int_equal(f->queued, f->unqueued);
}

int
main(void)
{
#define REQUESTS_TEST(name) cmocka_unit_test_setup_teardown(name, requests_setup, requests_teardown)
	const struct CMUnitTest tests[] = {
		REQUESTS_TEST(test_leader_gets_each_request_once_and_in_order),
		REQUESTS_TEST(test_withdrawn_request_is_not_executed),
		REQUESTS_TEST(test_only_the_leader_executes),
		REQUESTS_TEST(test_table_of_requests_is_bounded),
		REQUESTS_TEST(test_answer_waits_for_the_records_before_it),
		REQUESTS_TEST(test_answer_waits_for_what_replaces_its_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
