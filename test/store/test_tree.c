/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Order, ordinals, ranks and indexes of one version. */

#include "fixture.h"

static int
tree_setup(void **state)
{
	static struct fixture f;

	fixture_init(&f);
	fixture_open(&f);
	*state = &f;
	return 0;
}

static int
tree_teardown(void **state)
{
	fixture_close(*state);
	return 0;
}

static const struct store_version *
now(struct fixture *f)
{
	return store_current(store_reader(f->s, 0));
}

static void
test_an_empty_table_has_nothing(void **state)
{
	struct fixture *f = *state;
	struct store_cursor c;

	assert_int_equal(store_count(now(f), 0), 0);
	assert_null(store_get(now(f), 0, 1));
	assert_int_equal(store_rank(now(f), 0, 5), 0);
	store_seek(&c, now(f), 0, 0);
	assert_null(store_next(&c, NULL));
	store_seek_index(&c, now(f), 0, 0);
	assert_null(store_next(&c, NULL));
}

/* Put RIDs 3, 6, ... 30000 in an order that is neither ascending nor descending. */
static void
tree_fill(struct fixture *f)
{
	struct store_txn *t = store_begin(f->s);
	uint32_t i, rid;

	for (i = 0; i < 10000; i++) {
		rid = (i * 7919 % 10000 + 1) * 3;
		assert_int_equal(store_put(t, 0, rid, &(struct row){ rid / 300, 0, { 0 } },
					 sizeof(struct row)),
			0);
	}
	assert_int_equal(store_commit(t, NULL), 0);
}

static void
test_records_come_in_the_order_of_their_rids(void **state)
{
	struct fixture *f = *state;
	const struct store_record *r;
	struct store_cursor c;
	uint32_t n = 0;

	tree_fill(f);
	assert_int_equal(store_count(now(f), 0), 10000);
	store_seek(&c, now(f), 0, 0);
	while ((r = store_next(&c, NULL)) != NULL)
		assert_int_equal(r->rid, 3 * ++n);
	assert_int_equal(n, 10000);
}

static void
test_any_ordinal_can_be_sought(void **state)
{
	struct fixture *f = *state;
	struct store_cursor c;
	uint32_t n;

	tree_fill(f);
	for (n = 0; n < 10000; n += 37) {
		store_seek(&c, now(f), 0, n);
		assert_int_equal(store_next(&c, NULL)->rid, 3 * (n + 1));
	}
	store_seek(&c, now(f), 0, 9999);
	assert_int_equal(store_next(&c, NULL)->rid, 30000);
	assert_null(store_next(&c, NULL));
	store_seek(&c, now(f), 0, 10000);
	assert_null(store_next(&c, NULL));
}

static void
test_rank_counts_smaller_rids(void **state)
{
	struct fixture *f = *state;

	tree_fill(f);
	assert_int_equal(store_rank(now(f), 0, 0), 0);
	assert_int_equal(store_rank(now(f), 0, 3), 0);
	assert_int_equal(store_rank(now(f), 0, 4), 1);
	assert_int_equal(store_rank(now(f), 0, 15000), 4999);
	assert_int_equal(store_rank(now(f), 0, UINT32_MAX), 10000);
}

static void
test_an_index_finds_all_records_of_a_key_in_order(void **state)
{
	struct fixture *f = *state;
	const struct store_record *r;
	struct store_cursor c;
	uint64_t key;
	uint32_t n = 0;

	tree_fill(f);
	store_seek_index(&c, now(f), 0, 50);
	while ((r = store_next(&c, &key)) != NULL && key == 50)
		assert_int_equal(r->rid, 15000 + 3 * n++);
	assert_int_equal(n, 100);
	assert_int_equal(key, 51);
}

static void
test_a_replaced_record_moves_in_its_index(void **state)
{
	struct fixture *f = *state;
	struct store_cursor c;
	uint64_t key;

	fixture_put(f, 0, 9, 5, 0);
	fixture_put(f, 0, 9, 6, 8);
	assert_int_equal(store_count(now(f), 0), 1);
	assert_int_equal(row_of(store_get(now(f), 0, 9)).a, 6);
	store_seek_index(&c, now(f), 0, 0);
	assert_int_equal(store_next(&c, &key)->rid, 9);
	assert_int_equal(key, 6);
	assert_int_equal(row_of(store_next(&c, &key)).b, 8);
	assert_int_equal(key, (uint64_t)1 << 32 | 8);
	assert_null(store_next(&c, NULL));
}

static void
test_index_gives_the_new_bytes_of_a_replaced_record(void **state)
{
	struct fixture *f = *state;
	struct store_cursor c;

	fixture_put(f, 0, 9, 5, 1);
	fixture_put(f, 0, 9, 5, 2);
	store_seek_index(&c, now(f), 0, 5);
	assert_int_equal(row_of(store_next(&c, NULL)).b, 2);
}

static void
test_deleting_everything_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct store_txn *t;
	struct store_cursor c;
	uint32_t i;

	tree_fill(f);
	t = store_begin(f->s);
	for (i = 0; i < 10000; i++)
		assert_int_equal(store_del(t, 0, (i * 3571 % 10000 + 1) * 3), 0);
	assert_int_equal(store_del(t, 0, 3), -2); /* ENOENT */
	assert_int_equal(store_commit(t, NULL), 0);
	assert_int_equal(store_count(now(f), 0), 0);
	store_seek_index(&c, now(f), 0, 0);
	assert_null(store_next(&c, NULL));
}

static void
test_tables_do_not_share_records(void **state)
{
	struct fixture *f = *state;

	fixture_put(f, 0, 9, 5, 0);
	fixture_put(f, 1, 9, 6, 0);
	assert_int_equal(row_of(store_get(now(f), 0, 9)).a, 5);
	assert_int_equal(row_of(store_get(now(f), 1, 9)).a, 6);
	fixture_del(f, 1, 9);
	assert_non_null(store_get(now(f), 0, 9));
	assert_null(store_get(now(f), 1, 9));
}

/* store_table_changed() is the change token of sa-multipacket A6. */
static void
test_a_table_knows_when_it_last_changed(void **state)
{
	struct fixture *f = *state;
	uint64_t one, other;

	fixture_put(f, 0, 9, 5, 0);
	one = store_table_changed(now(f), 0);
	other = store_table_changed(now(f), 1);
	assert_int_equal(one, store_version_number(now(f)));
	fixture_put(f, 1, 9, 5, 0);
	assert_int_equal(store_table_changed(now(f), 0), one);
	assert_true(store_table_changed(now(f), 1) > other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)
		T(test_an_empty_table_has_nothing),
		T(test_records_come_in_the_order_of_their_rids),
		T(test_any_ordinal_can_be_sought),
		T(test_rank_counts_smaller_rids),
		T(test_an_index_finds_all_records_of_a_key_in_order),
		T(test_a_replaced_record_moves_in_its_index),
		T(test_index_gives_the_new_bytes_of_a_replaced_record),
		T(test_deleting_everything_leaves_nothing),
		T(test_tables_do_not_share_records),
		T(test_a_table_knows_when_it_last_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
