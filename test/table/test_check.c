/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A table whose row contradicts table.h ends a build with checks at its first use. */

#include <string.h>

#include <jansson.h>

#include "../checked.h"
#include "table/table.h"

struct thing {
	uint32_t number;
	struct table_list list;
};

static void
thing_encode(void *rows, void *thing)
{
	json_decref(table_encode(rows, thing));
}

static void
thing_decode(void *rows, void *thing)
{
	struct arena arena = { 0 };
	struct table_decoder d = { .arena = &arena, .root = "thing" };

	table_decode(&d, rows, NULL, thing);
	arena_free(&arena);
}

static void
test_a_wrong_row_is_found(void **state)
{
	struct table_row wrong[][2] = {
		{ ROW(struct thing, number, TABLE_MEMBERS + 1, "no type"), ROW_END },
		{ ROW(struct thing, number, TABLE_UINT, "range", .min = 2, .max = 1), ROW_END },
		{ ROW(struct thing, number, TABLE_BOOL, "size"), ROW_END },
		{ ROW(struct thing, number, TABLE_ENUM, "no words"), ROW_END },
		{ ROW(struct thing, number, TABLE_FORM, "no form"), ROW_END },
		{ ROW(struct thing, number, TABLE_OBJECT, "no fields"), ROW_END },
	};
	struct table_row right[] = { ROW(struct thing, number, TABLE_UINT, "help"), ROW_END };
	struct thing thing = { 0 };
	unsigned int i;

	(void)state;
	assert_false(ends_process(thing_encode, right, &thing));
	assert_false(ends_process(thing_decode, right, &thing));
	for (i = 0; CHECKED && i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(ends_process(thing_encode, wrong[i], &thing));
		assert_true(ends_process(thing_decode, wrong[i], &thing));
	}
}

static void
append_beyond_the_end(void *buf, void *arg)
{
	(void)arg;
	table_append(buf, 4, "more");
}

static void
list_without_items(void *list, void *arg)
{
	(void)arg;
	list_add(NULL, list, 8);
}

static void
test_wrong_arguments_are_found(void **state)
{
	struct table_list list = { .items = NULL, .num = 3 };
	char text[8] = "long";

	(void)state;
	if (!CHECKED)
		return;
	assert_true(ends_process(append_beyond_the_end, text, NULL));
	assert_true(ends_process(list_without_items, &list, NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_wrong_row_is_found),
		cmocka_unit_test(test_wrong_arguments_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
