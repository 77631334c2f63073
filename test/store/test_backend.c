/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The interface to durable storage (struct store_backend): the store loads its records, and
 * publishes nothing that it refuses.
 */

#include "fixture.h"

#include <errno.h>
#include <string.h>

/* A backend in memory: the test decides what load() reports. */
struct fake {
	const struct store_op *has;
	size_t num_has;
	int refuse;
	unsigned int applied, closed;
	struct store_op last; /* applied */
	const struct fixture *f; /* apply() checks what readers see meanwhile */
	uint64_t seen;
};

static int
fake_load(void *arg, int (*each)(void *to, const struct store_op *op), void *to, struct error *err)
{
	struct fake *b = arg;
	size_t i;
	int rc = 0;

	(void)err;
	for (i = 0; i < b->num_has && rc == 0; i++)
		rc = each(to, &b->has[i]);
	return rc;
}

static int
fake_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct fake *b = arg;

	b->seen = store_count(store_current(store_reader(b->f->s, 0)), 0);
	if (b->refuse != 0)
		return error_set(err, b->refuse, "the disk is on fire");
	b->applied += (unsigned int)n;
	b->last = ops[n - 1];
	return 0;
}

static void
fake_close(void *arg)
{
	struct fake *b = arg;

	b->closed++;
}

static void
init(struct fixture *f, struct fake *b)
{
	memset(b, 0, sizeof(*b));
	b->f = f;
	fixture_init(f);
	f->config.backend = (struct store_backend){ b, fake_load, fake_apply, fake_close };
}

static const struct row rows[3] = { { 10, 1, { 0 } }, { 20, 2, { 0 } }, { 30, 3, { 0 } } };
#define PUT(rid, i)                                                                                \
	{                                                                                          \
		0, rid, (const uint8_t *)&rows[i], sizeof(rows[i])                                 \
	}

static void
test_records_of_the_backend_are_loaded_in_any_order(void **state)
{
	static const struct store_op has[] = { PUT(9, 2), PUT(2, 0), PUT(5, 1) };
	const struct store_version *v;
	struct store_cursor c;
	struct fixture f;
	struct fake b;

	(void)state;
	init(&f, &b);
	b.has = has;
	b.num_has = 3;
	fixture_open(&f);
	v = store_current(store_reader(f.s, 0));
	store_seek(&c, v, 0, 0);
	assert_int_equal(store_next(&c, NULL)->rid, 2);
	assert_int_equal(store_next(&c, NULL)->rid, 5);
	assert_int_equal(store_next(&c, NULL)->rid, 9);
	assert_null(store_next(&c, NULL));
	store_seek_index(&c, v, 0, 20);
	assert_int_equal(store_next(&c, NULL)->rid, 5);
	assert_int_equal(b.applied, 0); /* what the backend reported is not applied to it again */
	fixture_close(&f);
	assert_int_equal(b.closed, 1);
}

static void
test_a_batch_is_durable_before_it_is_seen(void **state)
{
	struct fixture f;
	struct fake b;

	(void)state;
	init(&f, &b);
	fixture_open(&f);
	fixture_put(&f, 0, 7, 1, 1);
	assert_int_equal(b.seen, 0);
	assert_int_equal(b.applied, 1);
	assert_int_equal(b.last.rid, 7);
	fixture_del(&f, 0, 7);
	assert_int_equal(b.seen, 1);
	assert_int_equal(b.applied, 2);
	assert_null(b.last.bytes);
	fixture_close(&f);
}

static void
test_batch_that_the_backend_refuses_changes_nothing(void **state)
{
	const struct store_version *v;
	struct error err = { "" };
	struct store_txn *t;
	struct fixture f;
	struct fake b;

	(void)state;
	init(&f, &b);
	fixture_open(&f);
	fixture_put(&f, 0, 7, 1, 1);
	v = store_current(store_reader(f.s, 0));
	b.refuse = EIO;
	t = store_begin(f.s);
	assert_int_equal(store_put(t, 0, 8, &rows[0], sizeof(rows[0])), 0);
	assert_int_equal(store_del(t, 0, 7), 0);
	assert_int_equal(store_commit(t, &err), -EIO);
	assert_string_equal(err.text, "the disk is on fire");
	assert_ptr_equal(store_current(store_reader(f.s, 0)), v);
	assert_int_equal(store_count(v, 0), 1);
	assert_int_equal(row_of(store_get(v, 0, 7)).a, 1);
	b.refuse = 0;
	fixture_put(&f, 0, 8, 2, 2);
	assert_int_equal(b.applied, 2);
	fixture_close(&f);
}

static void
test_changes_rolled_back_are_not_made_durable(void **state)
{
	struct store_savepoint sp;
	struct store_txn *t;
	struct fixture f;
	struct fake b;

	(void)state;
	init(&f, &b);
	fixture_open(&f);
	t = store_begin(f.s);
	assert_int_equal(store_put(t, 0, 1, &rows[0], sizeof(rows[0])), 0);
	store_save(t, &sp);
	assert_int_equal(store_put(t, 0, 2, &rows[1], sizeof(rows[1])), 0);
	store_rollback(t, &sp);
	assert_int_equal(store_commit(t, NULL), 0);
	assert_int_equal(b.applied, 1);
	assert_int_equal(b.last.rid, 1);
	/* a commit without a change applies no batch */
	t = store_begin(f.s);
	store_save(t, &sp);
	assert_int_equal(store_put(t, 0, 2, &rows[1], sizeof(rows[1])), 0);
	store_rollback(t, &sp);
	assert_int_equal(store_commit(t, NULL), 0);
	assert_int_equal(b.applied, 1);
	fixture_close(&f);
}

/* If any allocation of store_create() fails, nothing leaks and the backend is closed. */
static void
test_a_store_that_cannot_be_made_closes_its_backend(void **state)
{
	static const struct store_op has[] = { PUT(9, 2), PUT(2, 0), PUT(5, 1) };
	struct error err;
	struct fixture f;
	struct fake b;
	long k;

	(void)state;
	for (k = 1;; k++) {
		init(&f, &b);
		b.has = has;
		b.num_has = 3;
		f.fail_in = k;
		err.text[0] = '\0';
		f.s = store_create(&f.config, &err);
		if (f.s != NULL)
			break;
		assert_true(err.text[0] != '\0');
		assert_int_equal(b.closed, 1);
		assert_int_equal(f.blocks, 0);
	}
	assert_true(k > 10);
	f.fail_in = 0;
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_of_the_backend_are_loaded_in_any_order),
		cmocka_unit_test(test_a_batch_is_durable_before_it_is_seen),
		cmocka_unit_test(test_batch_that_the_backend_refuses_changes_nothing),
		cmocka_unit_test(test_changes_rolled_back_are_not_made_durable),
		cmocka_unit_test(test_a_store_that_cannot_be_made_closes_its_backend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
