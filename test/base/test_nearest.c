/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The word that "did you mean" proposes. */

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/nearest.h"

static void
test_distance_counts_edits(void **state)
{
	(void)state;
	assert_int_equal(nearest_distance("", ""), 0);
	assert_int_equal(nearest_distance("port", "port"), 0);
	assert_int_equal(nearest_distance("port", ""), 4);
	assert_int_equal(nearest_distance("port", "ports"), 1);
	assert_int_equal(nearest_distance("port", "pot"), 1);
	assert_int_equal(nearest_distance("port", "part"), 1);
	assert_int_equal(nearest_distance("port", "prot"), 1); /* two adjacent letters swapped */
	assert_int_equal(nearest_distance("crate", "create"), 1);
	assert_int_equal(nearest_distance("kitten", "sitting"), 3);
	assert_int_equal(nearest_distance("RDMA-Write", "rdma_write"), 0);
	assert_true(nearest_distance("12345678901234567890123456789012345678901234567890", "1") ==
		UINT_MAX);
}

static const char *
nearest(const char *typed)
{
	static const char *const words[] = { "qp", "cq", "port", "stats", "neighbour", "RDMA_WRITE",
		"RDMA_READ" };
	struct nearest n = nearest_to(typed);
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		nearest_try(&n, words[i]);
	return n.word;
}

static void
test_only_what_is_near_is_named(void **state)
{
	(void)state;
	assert_string_equal(nearest("prot"), "port");
	assert_string_equal(nearest("stat"), "stats");
	assert_string_equal(nearest("neighbor"), "neighbour");
	assert_string_equal(nearest("rdma_writ"), "RDMA_WRITE");
	assert_string_equal(nearest("nei"), "neighbour"); /* a beginning that only one word has */
	assert_string_equal(nearest("RDMA-R"), "RDMA_READ");
	assert_null(nearest("ne")); /* many words begin so */
	assert_null(nearest("--n"));
	assert_null(nearest("coffee"));
	assert_null(nearest("xyz"));
	assert_null(nearest(""));
}

/* A word longer than the limit resembles none, although a long word may have more wrong letters. */
static void
test_a_word_that_is_too_long_is_like_nothing(void **state)
{
	char word[400];
	size_t len;

	(void)state;
	for (len = NEAREST_MAX + 1; len < sizeof(word); len++) {
		memset(word, 'p', len);
		word[len] = '\0';
		assert_null(nearest(word));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance_counts_edits),
		cmocka_unit_test(test_only_what_is_near_is_named),
		cmocka_unit_test(test_a_word_that_is_too_long_is_like_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
