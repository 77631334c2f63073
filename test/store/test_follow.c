/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Changes that were made elsewhere become versions, and the copy on disk has its position. */

#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/lmdb_copy.h"

/* A backend that hands over one batch. */
struct elsewhere {
	struct store_batch batch;
	bool has;
	unsigned int applied;
};

static int
elsewhere_apply(void *arg, const struct store_op *ops, size_t n, struct error *err)
{
	struct elsewhere *b = arg;

	(void)ops;
	(void)err;
	b->applied += (unsigned int)n;
	return 0;
}

static const struct store_batch *
elsewhere_watch(void *arg)
{
	struct elsewhere *b = arg;

	return b->has ? &b->batch : NULL;
}

static void
elsewhere_taken(void *arg)
{
	struct elsewhere *b = arg;

	b->has = false;
}

static void
follow_init(struct fixture *f, struct elsewhere *b)
{
	memset(b, 0, sizeof(*b));
	fixture_init(f);
	f->config.backend = (struct store_backend){
		.arg = b,
		.apply = elsewhere_apply,
		.watch = elsewhere_watch,
		.taken = elsewhere_taken,
	};
	fixture_open(f);
}

static void
hand_batch(struct elsewhere *b, const struct store_op *ops, size_t n, bool replace)
{
	b->batch = (struct store_batch){ .ops = ops, .n = n, .replace = replace };
	b->has = true;
}

static const struct row follow_rows[3] = { { 10, 1, { 0 } }, { 20, 2, { 0 } }, { 30, 3, { 0 } } };
#define PUT(table, rid, i)                                                                         \
	{                                                                                          \
		table, rid, (const uint8_t *)&follow_rows[i], sizeof(follow_rows[i])               \
	}
#define DEL(table, rid)                                                                            \
	{                                                                                          \
		table, rid, NULL, 0                                                                \
	}

static uint32_t
a_of(struct fixture *f, unsigned int table, uint32_t rid)
{
	const struct store_record *r = store_get(store_current(store_reader(f->s, 0)), table, rid);

	return r != NULL ? row_of(r).a : 0;
}

static void
test_a_batch_becomes_a_version_and_is_not_applied(void **state)
{
	static const struct store_op ops[] = { PUT(0, 1, 0), PUT(1, 2, 1), DEL(0, 9), PUT(0, 1, 2),
		DEL(1, 77) };
	struct elsewhere b;
	struct fixture f;

	(void)state;
	follow_init(&f, &b);
	fixture_put(&f, 0, 9, 90, 1);
	assert_int_equal(b.applied, 1);
	assert_int_equal(store_follow(f.s, NULL), 0);
	hand_batch(&b, ops, 5, false);
	assert_int_equal(store_follow(f.s, NULL), 1);
	assert_false(b.has);
	assert_int_equal(a_of(&f, 0, 1), 30);
	assert_int_equal(a_of(&f, 1, 2), 20);
	assert_int_equal(a_of(&f, 0, 9), 0);
	assert_int_equal(b.applied, 1);
	fixture_close(&f);
}

static void
test_a_complete_batch_changes_what_differs(void **state)
{
	static const struct store_op ops[] = { PUT(0, 1, 0), PUT(0, 5, 1), PUT(1, 7, 2) };
	static const struct store_op same[] = { PUT(0, 1, 0), PUT(1, 7, 2) };
	uint64_t version, table1;
	struct elsewhere b;
	struct fixture f;

	(void)state;
	follow_init(&f, &b);
	hand_batch(&b, same, 2, false);
	assert_int_equal(store_follow(f.s, NULL), 1);
	fixture_put(&f, 0, 3, 33, 1); /* gone */
	fixture_put(&f, 0, 5, 55, 1); /* another */
	fixture_put(&f, 0, 9, 99, 1); /* gone, behind the last */
	table1 = store_table_changed(store_current(store_reader(f.s, 0)), 1);
	hand_batch(&b, ops, 3, true);
	assert_int_equal(store_follow(f.s, NULL), 1);
	assert_int_equal(store_count(store_current(store_reader(f.s, 0)), 0), 2);
	assert_int_equal(a_of(&f, 0, 1), 10);
	assert_int_equal(a_of(&f, 0, 5), 20);
	assert_int_equal(a_of(&f, 1, 7), 30);
	assert_int_equal(store_table_changed(store_current(store_reader(f.s, 0)), 1), table1);
	/* once more: nothing differs, and there is no new version */
	version = store_version_number(store_current(store_reader(f.s, 0)));
	hand_batch(&b, ops, 3, true);
	assert_int_equal(store_follow(f.s, NULL), 1);
	assert_int_equal(store_version_number(store_current(store_reader(f.s, 0))), version);
	hand_batch(&b, NULL, 0, true);
	assert_int_equal(store_follow(f.s, NULL), 1);
	assert_int_equal(store_count(store_current(store_reader(f.s, 0)), 0), 0);
	fixture_close(&f);
}

static void
test_a_batch_that_cannot_be_taken_stays(void **state)
{
	static const struct store_op ops[] = { PUT(0, 1, 0), PUT(2, 1, 0) };
	struct error err = { "" };
	struct elsewhere b;
	struct fixture f;

	(void)state;
	follow_init(&f, &b);
	hand_batch(&b, ops, 2, false); /* there are two tables */
	assert_int_equal(store_follow(f.s, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "does not know their table"));
	hand_batch(&b, ops, 2, true);
	assert_int_equal(store_follow(f.s, &err), -EBADMSG);
	hand_batch(&b, ops, 1, false);
	f.fail_in = 1;
	assert_int_equal(store_follow(f.s, &err), -ENOMEM);
	assert_true(b.has);
	assert_int_equal(a_of(&f, 0, 1), 0);
	f.fail_in = 0;
	assert_int_equal(store_follow(f.s, &err), 1);
	assert_int_equal(a_of(&f, 0, 1), 10);
	fixture_close(&f);
}

/* --- the copy on disk --- */

static char copy_dir[64];

static int
copy_setup(void **state)
{
	(void)state;
	strcpy(copy_dir, "/tmp/polca-copy-XXXXXX");
	return mkdtemp(copy_dir) != NULL ? 0 : -1;
}

static int
copy_teardown(void **state)
{
	static const char *const files[] = { "data.mdb", "lock.mdb", "polca.lock" };
	char path[128];
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", copy_dir, files[i]);
		unlink(path);
	}
	return rmdir(copy_dir);
}

static int
count_record(void *to, const struct store_op *op)
{
	unsigned int *n = to;

	(void)op;
	(*n)++;
	return 0;
}

static unsigned int
copy_records(const struct store_backend *copy)
{
	unsigned int n = 0;

	assert_int_equal(copy->load(copy->arg, count_record, &n, NULL), 0);
	return n;
}

static void
test_a_copy_has_its_position_in_the_same_transaction(void **state)
{
	static const struct copy_position first = { 1, 10, 9, 99 }, second = { 1, 20, 20, 7 };
	static const struct store_op ops[] = { PUT(0, 1, 0), PUT(1, 2, 1) };
	struct copy_position got;
	struct store_backend copy;

	(void)state;
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &copy, NULL), 0);
	assert_int_equal(lmdb_copy_position(&copy, &got, NULL), -ENOENT);
	assert_int_equal(lmdb_copy_write(&copy, false, ops, 2, &first, NULL), 0);
	copy.close(copy.arg);
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &copy, NULL), 0);
	assert_int_equal(lmdb_copy_position(&copy, &got, NULL), 0);
	assert_memory_equal(&got, &first, sizeof(got));
	assert_int_equal(copy_records(&copy), 2);
	assert_int_equal(lmdb_copy_write(&copy, true, ops, 1, &second, NULL), 0);
	assert_int_equal(lmdb_copy_position(&copy, &got, NULL), 0);
	assert_memory_equal(&got, &second, sizeof(got));
	assert_int_equal(copy_records(&copy), 1);
	copy.close(copy.arg);
}

static void
test_a_copy_and_a_database_are_not_mistaken(void **state)
{
	static const struct copy_position position = { 1, 10, 9, 99 };
	static const struct store_op ops[] = { PUT(0, 1, 0) };
	struct store_backend backend;
	struct error err = { "" };

	(void)state;
	assert_int_equal(store_lmdb_open(copy_dir, 1 << 20, &backend, &err), 0);
	assert_int_equal(backend.apply(backend.arg, ops, 1, &err), 0);
	backend.close(backend.arg);
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &backend, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "export them"));
	assert_null(backend.close); /* it is closed already */
	copy_teardown(NULL);
	copy_setup(NULL);
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &backend, &err), 0);
	assert_int_equal(lmdb_copy_write(&backend, false, ops, 1, &position, &err), 0);
	backend.close(backend.arg);
	assert_int_equal(store_lmdb_open(copy_dir, 1 << 20, &backend, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "fleet"));
}

static void
test_copy_of_another_prefix_is_refused(void **state)
{
	static const struct copy_position position = { 1, 10, 9, 99 };
	static const struct store_op ops[] = { PUT(0, 1, 0) };
	struct store_backend copy;
	struct error err = { "" };
	uint64_t instance;

	(void)state;
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &copy, NULL), 0);
	instance = lmdb_copy_instance(&copy);
	assert_int_not_equal(instance, 0);
	assert_int_equal(lmdb_copy_write(&copy, true, ops, 1, &position, NULL), 0);
	copy.close(copy.arg);
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/q", &copy, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "below \"/p/\", and fleet.prefix is \"/q\""));
	assert_non_null(strstr(err.text, "move the directory away"));
	assert_int_equal(lmdb_copy_open(copy_dir, 1 << 20, "/p", &copy, NULL), 0);
	assert_int_equal(lmdb_copy_instance(&copy), instance);
	assert_int_equal(copy_records(&copy), 1);
	copy.close(copy.arg);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_batch_becomes_a_version_and_is_not_applied),
		cmocka_unit_test(test_a_complete_batch_changes_what_differs),
		cmocka_unit_test(test_a_batch_that_cannot_be_taken_stays),
		cmocka_unit_test_setup_teardown(
			test_a_copy_has_its_position_in_the_same_transaction, copy_setup,
			copy_teardown),
		cmocka_unit_test_setup_teardown(test_copy_of_another_prefix_is_refused, copy_setup,
			copy_teardown),
		cmocka_unit_test_setup_teardown(test_a_copy_and_a_database_are_not_mistaken,
			copy_setup, copy_teardown),
	};

	return cmocka_run_group_tests_name("store: changes from elsewhere", tests, NULL, NULL);
}
