/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Damage to versions and to readers is found by the checks of the store. */

#include "fixture.h"

#include "../checked.h"
#include "store/private.h"

static void
damage_order(struct store *s)
{
	s->old->number = s->current->number;
}

static void
damage_bytes(struct store *s)
{
	s->old->bytes++;
}

static void
damage_sum(struct store *s)
{
	s->stats.old_bytes++;
}

static void
damage_tail(struct store *s)
{
	s->old_tail = &s->old;
}

static void
damage_born(struct store *s)
{
	s->old->next->blocks.at[0].born = s->old->next->number + 1; /* the first has none */
}

static void
damage_stale(struct store *s)
{
	s->stale_done = s->stale_below + 1;
}

static void
damage_grace(struct store *s)
{
	s->graced = s->in_grace->number;
}

static void
damage_txn(struct store *s)
{
	s->txn.made.n = 1;
}

static void
damage_store_and_check(void *s, void *damage)
{
	(*(void (**)(struct store *))damage)(s);
	store_check((struct store *)s);
}

static void
test_damage_to_versions_is_found(void **state)
{
	static void (*damages[])(struct store *) = { damage_order, damage_bytes, damage_sum,
		damage_tail, damage_born, damage_stale, damage_grace, damage_txn };
	struct fixture f;
	unsigned int i;

	(void)state;
	fixture_init(&f);
	fixture_open(&f);
	f.grace_now = 0; /* old versions stay */
	fixture_put(&f, 0, 7, 1, 2);
	fixture_put(&f, 0, 7, 3, 4);
	assert_non_null(f.s->old->next);
	store_check(f.s);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_store_and_check, f.s, &damages[i]), CHECKED);
	fixture_close(&f);
}

static void
damage_top(struct store_reader *r)
{
	r->top++;
}

static void
damage_held_count(struct store_reader *r)
{
	r->held[0].count = 0;
}

static void
damage_last(struct store_reader *r)
{
	r->last = r->store->slots;
}

static void
damage_reader_and_check(void *r, void *damage)
{
	(*(void (**)(struct store_reader *))damage)(r);
	store_reader_check((struct store_reader *)r);
}

static void
test_damage_to_a_reader_is_found(void **state)
{
	static void (*damages[])(
		struct store_reader *) = { damage_top, damage_held_count, damage_last };
	struct store_reader *r;
	struct fixture f;
	unsigned int i;

	(void)state;
	fixture_init(&f);
	fixture_open(&f);
	fixture_put(&f, 0, 7, 1, 2);
	r = store_reader(f.s, 0);
	assert_int_equal(store_hold(r, store_current(r)), 0);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_reader_and_check, r, &damages[i]), CHECKED);
	store_unhold(r, store_current(r));
	fixture_close(&f);
}

static void
unhold_current(void *reader, void *unused)
{
	(void)unused;
	store_unhold(reader, store_current(reader));
}

static void
change_table(void *txn, void *table)
{
	store_del(txn, *(const unsigned int *)table, 7);
}

static void
damage_and_roll_back(void *savepoint, void *store)
{
	struct store *s = store;

	damage_sum(s);
	store_rollback(&s->txn, savepoint);
}

static void
test_a_rollback_looks_for_damage(void **state)
{
	struct store_savepoint sp;
	struct store_txn *t;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_open(&f);
	t = store_begin(f.s);
	store_save(t, &sp);
	assert_int_equal(ends_process(damage_and_roll_back, &sp, f.s), CHECKED);
	store_rollback(t, &sp);
	store_abort(t);
	fixture_close(&f);
}

/* A caller's mistake ends builds with checks. */
static void
test_wrong_calls_are_found(void **state)
{
	unsigned int table = 0;
	struct store_reader *r;
	struct store_txn *t;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	fixture_open(&f);
	r = store_reader(f.s, 0);
	assert_int_equal(store_hold(r, store_current(r)), 0);
	assert_false(ends_process(unhold_current, r, NULL));
	store_unhold(r, store_current(r));
	assert_int_equal(ends_process(unhold_current, r, NULL), CHECKED);
	t = store_begin(f.s);
	assert_false(ends_process(change_table, t, &table));
	table = f.s->config.tables;
	assert_int_equal(ends_process(change_table, t, &table), CHECKED);
	store_abort(t);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_to_versions_is_found),
		cmocka_unit_test(test_damage_to_a_reader_is_found),
		cmocka_unit_test(test_a_rollback_looks_for_damage),
		cmocka_unit_test(test_wrong_calls_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
