/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A fleet's kept notices as its watch brings them, and what the leader does with them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/fleet_private.h"

static void
notices_no_wake(void *arg)
{
	(void)arg;
}

/* A leader without a thread and without etcd. */
static int
notices_setup(void **state)
{
	struct fleet *f = calloc(1, sizeof(*f));

	pthread_mutex_init(&f->lock, NULL);
	TAILQ_INIT(&f->notices);
	strcpy(f->key.notices, "/p/e/");
	f->wake = notices_no_wake;
	f->lead = 5;
	*state = f;
	return 0;
}

static int
notices_teardown(void **state)
{
	struct fleet *f = *state;

	fleet_notices_free(f);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

/* The watch brings a notice, or that it has gone. */
static void
bring_notice(struct fleet *f, uint64_t id, uint64_t revision, bool gone)
{
	char key[64];
	struct etcd_kv kv = {
		.key = key,
		.value = (uint8_t *)(uintptr_t) "what",
		.value_len = gone ? 0 : 4,
		.create_revision = revision,
		.mod_revision = revision,
		.gone = gone,
	};
	struct etcd_kvs kvs = { &kv, 1 };

	snprintf(key, sizeof(key), "/p/e/%016llx", (unsigned long long)id);
	kv.key_len = strlen(key);
	fleet_watch_notices(f, &kvs);
}

static void
test_notice_is_taken_once_and_in_order(void **state)
{
	struct fleet *f = *state;
	struct fleet_notice *a, *b;

	bring_notice(f, 77, 10, false);
	bring_notice(f, 11, 11, false);
	a = fleet_take_notice(f);
	assert_int_equal(a->id, 77);
	assert_int_equal(a->len, 4);
	assert_memory_equal(a->bytes, "what", 4);
	bring_notice(f, 77, 10, false); /* read again */
	b = fleet_take_notice(f);
	assert_int_equal(b->id, 11);
	assert_null(fleet_take_notice(f));
	fleet_notice_told(f, a);
	bring_notice(f, 77, 10, false); /* its removal has not come yet */
	assert_null(fleet_take_notice(f));
	bring_notice(f, 77, 12, true);
	assert_int_equal(f->num_notices, 1);
	fleet_notice_untold(f, b); /* the lead has changed */
	assert_ptr_equal(fleet_take_notice(f), b);
	bring_notice(f, 11, 13, true); /* the next leader has told it */
	fleet_notice_untold(f, b);
	assert_int_equal(f->num_notices, 0);
}

static void
test_only_the_leader_takes_notices(void **state)
{
	struct fleet *f = *state;

	bring_notice(f, 1, 10, false);
	f->lead = 0;
	assert_null(fleet_take_notice(f));
	bring_notice(f, 2, 11, false);
	assert_int_equal(f->num_notices, 1);
	f->lead = 6;
	f->notices_read = 20;
	bring_notice(f, 3, 20, false); /* it has been read, and told, before */
	assert_int_equal(f->num_notices, 1);
	bring_notice(f, 4, 21, false);
	assert_int_equal(f->num_notices, 2);
}

/* A port's Report is not sent before queries find the port. */
static void
test_notice_waits_for_the_records_before_it(void **state)
{
	struct fleet *f = *state;

	f->queued = 3;
	f->unqueued = 2;
	bring_notice(f, 1, 10, false);
	assert_null(fleet_take_notice(f));
	f->unqueued = 3;
	assert_non_null(fleet_take_notice(f));
}

static void
test_notices_are_bounded(void **state)
{
	struct fleet *f = *state;
	uint64_t first;
	unsigned int i;

	for (i = 1; i < FLEET_NOTICES_MAX; i++)
		bring_notice(f, i, 10, false);
	assert_true(fleet_keep_notice(f, "x", 1));
	first = f->keep_id;
	assert_int_equal(f->keep_len, 1);
	assert_true(fleet_keep_notice(f, "x", 1));
	assert_true(f->keep_id != first);
	assert_true(fleet_keep_notice(f, NULL, 0));
	assert_int_equal(f->keep_len, 0);
	bring_notice(f, i, 10, false);
	assert_false(fleet_keep_notice(f, "x", 1));
	assert_int_equal(f->keep_len, 0);
	/* another leader may have kept more: the table is bounded, too; the rest is read later */
	assert_false(f->notices_left);
	for (i = 0; i < 3 * FLEET_NOTICES_MAX; i++)
		bring_notice(f, 10000 + i, 10, false);
	assert_int_equal(f->num_notices, 2 * FLEET_NOTICES_MAX);
	assert_true(f->notices_left);
}

int
main(void)
{
#define NOTICES_TEST(name) cmocka_unit_test_setup_teardown(name, notices_setup, notices_teardown)
	const struct CMUnitTest tests[] = {
		NOTICES_TEST(test_notice_is_taken_once_and_in_order),
		NOTICES_TEST(test_only_the_leader_takes_notices),
		NOTICES_TEST(test_notice_waits_for_the_records_before_it),
		NOTICES_TEST(test_notices_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
