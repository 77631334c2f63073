/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Versions: a commit publishes all its changes at once; a held version is kept; unused memory is
 * freed after a grace period; above the limits the oldest held version becomes stale.
 */

#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static int
version_setup(void **state)
{
	static struct fixture f;

	fixture_init(&f);
	fixture_open(&f);
	*state = &f;
	return 0;
}

static int
version_teardown(void **state)
{
	fixture_close(*state);
	return 0;
}

static void
test_nothing_is_seen_before_the_commit(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	struct row row = { 1, 1, { 0 } };
	struct store_txn *t = store_begin(f->s);

	assert_int_equal(store_put(t, 0, 7, &row, sizeof(row)), 0);
	assert_null(store_get(store_current(r), 0, 7));
	assert_non_null(store_get(store_txn_view(t), 0, 7));
	assert_int_equal(store_commit(t, NULL), 0);
	assert_non_null(store_get(store_current(r), 0, 7));
}

static void
test_a_store_of_limited_size_refuses_and_goes_on(void **state)
{
	static uint8_t big[60000];
	struct error err = { "" };
	struct store_stats stats;
	struct store_txn *t;
	struct fixture f;
	uint32_t rid;
	int rc = 0;

	(void)state;
	fixture_init(&f);
	f.config.num_indexes = 0;
	f.config.max_bytes = 1 << 20;
	fixture_open(&f);
	for (rid = 1; rc == 0; rid++) {
		assert_true(rid < 100);
		assert_false(store_is_above(f.s, 100));
		t = store_begin(f.s);
		assert_int_equal(store_put(t, 1, rid, big, sizeof(big)), 0);
		rc = store_commit(t, &err);
	}
	assert_int_equal(rc, -ENOSPC);
	assert_string_equal(err.text,
		"the records take 1 MiB, all that they may: raise sa.map_mb; nothing was changed");
	assert_int_equal(store_count(store_current(store_reader(f.s, 0)), 1), rid - 2);
	assert_true(store_is_above(f.s, 50));
	/* records may be replaced, even all of them at once */
	t = store_begin(f.s);
	for (rid -= 2; rid > 0; rid--)
		assert_int_equal(store_put(t, 1, rid, big, sizeof(big)), 0);
	assert_int_equal(store_commit(t, &err), 0);
	/* and a deletion makes room */
	fixture_del(&f, 1, 1);
	fixture_del(&f, 1, 2);
	fixture_put(&f, 1, 1000, 1, 1);
	store_stats(f.s, &stats);
	assert_true(stats.bytes - stats.old_bytes <= 1 << 20);
	fixture_close(&f);
}

static void
test_a_commit_without_a_change_makes_no_version(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	uint64_t before = store_version_number(store_current(r));

	assert_int_equal(store_commit(store_begin(f->s), NULL), 0);
	assert_int_equal(store_version_number(store_current(r)), before);
}

static void
test_an_abort_leaves_everything_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *v;
	struct row row = { 2, 2, { 0 } };
	struct store_txn *t;
	long blocks;

	fixture_put(f, 0, 7, 1, 1);
	v = store_current(r);
	t = store_begin(f->s);
	blocks = f->blocks;
	assert_int_equal(store_put(t, 0, 7, &row, sizeof(row)), 0);
	assert_int_equal(store_put(t, 0, 8, &row, sizeof(row)), 0);
	store_abort(t);
	assert_ptr_equal(store_current(r), v);
	assert_int_equal(row_of(store_get(v, 0, 7)).a, 1);
	assert_null(store_get(v, 0, 8));
	assert_in_range(f->blocks, blocks,
		blocks + 64); /* memory set aside for changes stays allocated */
}

static void
test_rollback_undoes_only_changes_after_the_savepoint(void **state)
{
	struct fixture *f = *state;
	const struct store_version *v;
	struct store_savepoint sp;
	struct row row = { 2, 2, { 0 } };
	struct store_txn *t;
	struct store_cursor c;

	fixture_put(f, 0, 7, 1, 1);
	t = store_begin(f->s);
	assert_int_equal(store_put(t, 0, 8, &row, sizeof(row)), 0);
	store_save(t, &sp);
	assert_int_equal(store_del(t, 0, 7), 0);
	assert_int_equal(store_del(t, 0, 8), 0);
	assert_int_equal(store_put(t, 0, 9, &row, sizeof(row)), 0);
	store_rollback(t, &sp);
	assert_int_equal(store_put(t, 0, 10, &row, sizeof(row)), 0);
	assert_int_equal(store_commit(t, NULL), 0);
	v = store_current(store_reader(f->s, 0));
	assert_int_equal(store_count(v, 0), 3);
	assert_int_equal(row_of(store_get(v, 0, 7)).a, 1);
	assert_int_equal(row_of(store_get(v, 0, 8)).a, 2);
	assert_null(store_get(v, 0, 9));
	assert_non_null(store_get(v, 0, 10));
	store_seek_index(&c, v, 0, 2);
	assert_int_equal(store_next(&c, NULL)->rid, 8);
	assert_int_equal(store_next(&c, NULL)->rid, 10);
}

/* An RMPP transfer holds the version that it began with while the database changes. */
static void
test_a_held_version_does_not_change(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *v;
	uint32_t i;

	for (i = 1; i <= 100; i++)
		fixture_put(f, 0, i, i, 0);
	v = store_current(r);
	assert_int_equal(store_hold(r, v), 0);
	for (i = 1; i <= 100; i++)
		fixture_del(f, 0, i);
	assert_int_equal(store_count(store_current(r), 0), 0);
	assert_int_equal(store_count(v, 0), 100);
	for (i = 1; i <= 100; i++)
		assert_int_equal(row_of(store_get(v, 0, i)).a, i);
	store_unhold(r, v);
}

static uint64_t
old_bytes(struct fixture *f)
{
	struct store_stats stats;

	store_reclaim(f->s);
	store_stats(f->s, &stats);
	return stats.old_bytes;
}

static void
test_unheld_version_is_freed_after_the_grace_period(void **state)
{
	struct fixture *f = *state;

	f->grace_now = 0;
	fixture_put(f, 0, 7, 1, 1);
	fixture_put(f, 0, 7, 2, 1);
	assert_true(old_bytes(f) > 0);
	f->grace_now = f->grace_next;
	assert_int_equal(old_bytes(f), 0);
}

static void
test_held_version_is_freed_when_it_is_released(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 1);
	const struct store_version *v;

	fixture_put(f, 0, 7, 1, 1);
	v = store_current(r);
	assert_int_equal(store_hold(r, v), 0);
	assert_int_equal(store_hold(r, v), 0);
	fixture_put(f, 0, 7, 2, 1);
	assert_true(old_bytes(f) > 0);
	store_unhold(r, v);
	assert_true(old_bytes(f) > 0);
	store_unhold(r, v);
	assert_int_equal(old_bytes(f), 0);
}

/* max_versions is 4: when a fifth is held, the oldest becomes stale; newer ones stay readable. */
static void
test_oldest_version_becomes_stale_above_max_versions(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *v[5];
	struct store_stats stats;
	unsigned int i;

	for (i = 0; i < 5; i++) {
		v[i] = store_current(r);
		assert_int_equal(store_hold(r, v[i]), 0);
		assert_false(store_stale(v[0]));
		fixture_put(f, 0, 7, i, 1);
	}
	assert_true(store_stale(v[0]));
	for (i = 1; i < 5; i++)
		assert_false(store_stale(v[i]));
	store_reclaim(f->s);
	store_stats(f->s, &stats);
	assert_int_equal(stats.versions_given_up, 1);
	assert_int_equal(stats.versions_held, 5); /* the stale one is not released yet */
	for (i = 0; i < 5; i++)
		store_unhold(r, v[i]);
	store_reclaim(f->s);
	store_stats(f->s, &stats);
	assert_int_equal(stats.versions_held, 0);
}

/* A reader that never releases its stale versions cannot hold more than twice max_versions. */
static void
test_a_reader_holds_twice_the_bound_at_most(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *v[8];
	unsigned int i;

	for (i = 0; i < 8; i++) {
		v[i] = store_current(r);
		assert_int_equal(store_hold(r, v[i]), 0);
		fixture_put(f, 0, 7, i, 1);
	}
	assert_int_equal(store_hold(r, store_current(r)), -ENOSPC);
	assert_int_equal(store_hold(r, v[5]), 0); /* hold the same version once more */
	store_unhold(r, v[5]);
	store_unhold(r, v[1]);
	assert_int_equal(store_hold(r, store_current(r)), 0);
	store_unhold(r, store_current(r));
	for (i = 0; i < 8; i++)
		if (i != 1)
			store_unhold(r, v[i]);
}

static void
put_many(struct fixture *f, uint32_t from, uint32_t n)
{
	struct store_txn *t = store_begin(f->s);
	uint32_t i;

	for (i = 0; i < n; i++) {
		struct row row = { from + i, i, { 0 } };

		assert_int_equal(store_put(t, 0, i, &row, sizeof(row)), 0);
	}
	assert_int_equal(store_commit(t, NULL), 0);
}

/* Above max_old_bytes the oldest version becomes stale; newer ones stay readable. */
static void
test_oldest_version_becomes_stale_above_max_old_bytes(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *oldest, *newer;
	struct store_stats stats;

	put_many(f, 1, 5000); /* between half and all of max_old_bytes */
	oldest = store_current(r);
	assert_int_equal(store_hold(r, oldest), 0);
	put_many(f, 2, 5000);
	assert_in_range(old_bytes(f), f->config.max_old_bytes / 2, f->config.max_old_bytes);
	newer = store_current(r);
	assert_int_equal(store_hold(r, newer), 0);
	assert_false(store_stale(oldest));
	put_many(f, 3, 5000);
	assert_true(store_stale(oldest));
	assert_false(store_stale(newer));
	assert_in_range(old_bytes(f), f->config.max_old_bytes / 2, f->config.max_old_bytes);
	assert_int_equal(row_of(store_get(newer, 0, 4999)).a, 2 + 4999);
	store_stats(f->s, &stats);
	assert_int_equal(stats.versions_given_up, 1);
	assert_int_equal(stats.versions_held, 2); /* the stale one is not released yet */
	assert_true(store_stale(oldest)); /* store_stale() still works on it */
	store_unhold(r, oldest);
	store_unhold(r, newer);
}

/* A reader may have called store_stale() just before, so it may still be reading the version. */
static void
test_stale_version_is_kept_for_a_grace_period(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0);
	const struct store_version *oldest;
	uint64_t period;
	uint32_t i;

	put_many(f, 1, 10000); /* more than max_old_bytes */
	oldest = store_current(r);
	assert_int_equal(store_hold(r, oldest), 0);
	put_many(f, 2, 10000);
	f->grace_now = f->grace_next - 1;
	store_reclaim(f->s);
	assert_true(store_stale(oldest));
	period = f->grace_next; /* it began when the version became stale, and is not over */
	assert_true(old_bytes(f) > f->config.max_old_bytes);
	for (i = 0; i < 10000; i++)
		assert_int_equal(row_of(store_get(oldest, 0, i)).a, 1 + i);
	f->grace_now = period;
	assert_true(old_bytes(f) < 4096);
	store_unhold(r, oldest);
	f->grace_now = UINT64_MAX;
}

/* Records made and deleted after a held version are not kept for it. */
static void
test_held_version_keeps_only_its_own_records(void **state)
{
	struct fixture *f = *state;
	struct store_reader *r = store_reader(f->s, 0), *other = store_reader(f->s, 1);
	const struct store_version *v, *brief;
	uint64_t one_round = 0;
	uint32_t i;

	put_many(f, 1, 100);
	v = store_current(r);
	assert_int_equal(store_hold(r, v), 0);
	for (i = 0; i < 1000; i++) {
		brief = store_current(other);
		assert_int_equal(store_hold(other, brief), 0);
		fixture_put(f, 0, i % 100, i, 7);
		store_unhold(other, brief);
		if (i == 200)
			one_round = old_bytes(f);
	}
	assert_int_equal(old_bytes(f), one_round);
	for (i = 0; i < 100; i++)
		assert_int_equal(row_of(store_get(v, 0, i)).a, 1 + i);
	store_unhold(r, v);
	assert_int_equal(old_bytes(f), 0);
}

/* Nodes that a transaction made and replaced were never published: no grace period is needed. */
static void
test_unpublished_nodes_are_freed_at_once(void **state)
{
	struct fixture *f = *state;
	struct store_savepoint sp;
	struct row row = { 1, 1, { 0 } };
	struct store_stats once, often;
	struct store_txn *t;
	uint32_t i;

	f->grace_now = 0;
	fixture_put(f, 0, 7, 1, 1);
	fixture_put(f, 0, 7, 2, 1);
	store_stats(f->s, &once);
	t = store_begin(f->s);
	for (i = 0; i < 100; i++) {
		store_save(t, &sp);
		assert_int_equal(store_put(t, 0, 7, &row, sizeof(row)), 0);
	}
	assert_int_equal(store_commit(t, NULL), 0);
	store_stats(f->s, &often);
	/* no more than a transaction of one change leaves (the first had no node to retire) */
	assert_in_range(often.old_bytes, once.old_bytes + 1, 2 * once.old_bytes);
	f->grace_now = UINT64_MAX;
}

/* If any allocation fails, the change is made completely or not at all, and nothing leaks. */
static void
test_a_failed_allocation_leaves_the_transaction_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct row row = { 5, 6, { 0 } };
	struct store_txn *t;
	unsigned int failures = 0;
	uint32_t i, rid = 1000;
	long k;
	int rc;

	for (i = 1; i <= 500; i++)
		fixture_put(f, 0, i, i, i);
	for (k = 1; k < 200; k++) {
		t = store_begin(f->s);
		assert_non_null(t);
		f->fail_in = k;
		rc = 0;
		for (i = 0; i < 300 && rc == 0; i++)
			rc = store_put(t, 0, rid + i, &row, sizeof(row));
		f->fail_in = 0;
		if (rc != 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(store_count(store_txn_view(t), 0), 500 + i - 1);
			assert_null(store_get(store_txn_view(t), 0, rid + i - 1));
			failures++;
		}
		store_abort(t);
		assert_int_equal(store_count(store_current(store_reader(f->s, 0)), 0), 500);
	}
	assert_true(failures > 100);
}

/* --- one writer, two readers on other threads --- */

#define ROUNDS 5000

#define READERS 2

struct race {
	struct fixture *f;
	uint64_t period; /* grace periods begun */
	uint64_t seen
		/* period at the reader's last quiescent point; UINT64_MAX: it has ended */
		[READERS];
	uint64_t turns[READERS];
	unsigned int next; /* reader to start */
	bool done;
};

static uint64_t
race_start(void *arg)
{
	struct race *race = arg;

	return __atomic_add_fetch(&race->period, 1, __ATOMIC_SEQ_CST);
}

static bool
race_done(void *arg, uint64_t token)
{
	struct race *race = arg;

	unsigned int i;

	for (i = 0; i < READERS; i++)
		if (__atomic_load_n(&race->seen[i], __ATOMIC_ACQUIRE) < token)
			return false;
	return true;
}

/* In every version the 64 records have the same a, which never decreases. */
static uint32_t
check_version(const struct store_version *v)
{
	uint32_t a = row_of(store_get(v, 0, 1)).a;
	const struct store_record *r;
	struct store_cursor c;
	unsigned int n = 0;

	store_seek(&c, v, 0, 0);
	while ((r = store_next(&c, NULL)) != NULL) {
		struct row row = row_of(r);

		if (row.a != a || row.filling[3] != ~r->rid)
			abort();
		n++;
	}
	if (n != 64)
		abort();
	return a;
}

static void *
reader_main(void *arg)
{
	struct race *race = arg;
	unsigned int me = __atomic_fetch_add(&race->next, 1, __ATOMIC_RELAXED);
	struct store_reader *r = store_reader(race->f->s, me);
	const struct store_version *held = NULL;
	uint32_t a, last = 0, held_a = 0;
	uint64_t turn = 0;

	while (!__atomic_load_n(&race->done, __ATOMIC_RELAXED)) {
		a = check_version(store_current(r));
		if (a < last)
			abort();
		last = a;
		if (held != NULL && !store_stale(held) && check_version(held) != held_a)
			abort();
		if (turn++ % (16 + 100 * me) == 0) {
			if (held != NULL)
				store_unhold(r, held);
			held = store_current(r);
			held_a = check_version(held);
			if (store_hold(r, held) != 0)
				abort();
		}
		__atomic_store_n(&race->seen[me], __atomic_load_n(&race->period, __ATOMIC_SEQ_CST),
			__ATOMIC_RELEASE);
	}
	if (held != NULL)
		store_unhold(r, held);
	race->turns[me] = turn;
	__atomic_store_n(&race->seen[me], UINT64_MAX, __ATOMIC_RELEASE);
	return NULL;
}

static void
put_all(struct fixture *f, uint32_t a)
{
	struct store_txn *t = store_begin(f->s);
	uint32_t rid;

	for (rid = 1; rid <= 64; rid++) {
		struct row row = { a, rid, { 0, 0, 0, ~rid } };

		assert_int_equal(store_put(t, 0, rid, &row, sizeof(row)), 0);
	}
	assert_int_equal(store_commit(t, NULL), 0);
}

static void
test_readers_on_other_threads_see_whole_versions(void **state)
{
	struct fixture f;
	struct race race = { .f = &f };
	pthread_t reader[READERS];
	uint32_t i;

	(void)state;
	fixture_init(&f);
	f.config.grace.start = race_start;
	f.config.grace.done = race_done;
	f.config.grace.arg = &race;
	fixture_open(&f);
	put_all(&f, 0);
	for (i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&reader[i], NULL, reader_main, &race), 0);
	for (i = 1; i < ROUNDS; i++)
		put_all(&f, i);
	__atomic_store_n(&race.done, true, __ATOMIC_RELAXED);
	for (i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(reader[i], NULL), 0);
	assert_true(race.turns[0] > 100 && race.turns[1] > 100);
	assert_int_equal(old_bytes(&f), 0);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, version_setup, version_teardown)
		T(test_nothing_is_seen_before_the_commit),
		cmocka_unit_test(test_a_store_of_limited_size_refuses_and_goes_on),
		T(test_a_commit_without_a_change_makes_no_version),
		T(test_an_abort_leaves_everything_as_it_was),
		T(test_rollback_undoes_only_changes_after_the_savepoint),
		T(test_a_held_version_does_not_change),
		T(test_unheld_version_is_freed_after_the_grace_period),
		T(test_held_version_is_freed_when_it_is_released),
		T(test_oldest_version_becomes_stale_above_max_versions),
		T(test_a_reader_holds_twice_the_bound_at_most),
		T(test_oldest_version_becomes_stale_above_max_old_bytes),
		T(test_stale_version_is_kept_for_a_grace_period),
		T(test_held_version_keeps_only_its_own_records),
		T(test_unpublished_nodes_are_freed_at_once),
		T(test_a_failed_allocation_leaves_the_transaction_as_it_was),
		cmocka_unit_test(test_readers_on_other_threads_see_whole_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
