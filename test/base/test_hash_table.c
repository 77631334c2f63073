/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The hash table: objects are found by hash among others of their chain, and only while added. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash_table.h"

static unsigned int
found(const struct hash_table *t, uint64_t hash)
{
	struct hash_link *l;
	unsigned int n = 0;

	HASH_FOREACH(l, t, hash)
		n++;
	return n;
}

static void
test_objects_are_found_by_hash_until_removed(void **state)
{
	struct hash_link a, b, c, d;
	struct hash_table t;

	(void)state;
	assert_int_equal(hash_create(&t, &allocator_malloc, 5), 0);
	assert_int_equal(t.mask, 7);
	hash_add(&t, &a, 3);
	hash_add(&t, &b, 3 + 8); /* same chain, another hash */
	hash_add(&t, &c, 3);
	hash_add(&t, &d, 4);
	assert_int_equal(found(&t, 3), 2);
	assert_int_equal(found(&t, 3 + 8), 1);
	assert_int_equal(found(&t, 3 + 16), 0);
	hash_remove(&c);
	assert_int_equal(found(&t, 3), 1);
	hash_remove(&a);
	assert_int_equal(found(&t, 3), 0);
	assert_int_equal(found(&t, 3 + 8), 1);
	assert_int_equal(found(&t, 4), 1);
	mem_free(&allocator_malloc, t.buckets);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects_are_found_by_hash_until_removed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
