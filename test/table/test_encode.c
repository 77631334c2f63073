/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A structure as JSON, and what the schema of the same rows says of it. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "table/schema.h"
#include "table/table.h"

struct lane {
	uint8_t number;
	int16_t skew;
};

struct gauge {
	uint32_t present;
	uint8_t code;
	uint64_t big;
	uint64_t guid;
	int node;
	double share;
	bool on;
	const char *text;
	char name[8];
	struct table_bytes data;
	uint32_t mode;
	uint32_t access;
	uint16_t vlan;
	struct lane lane;
	struct table_list lanes;
	uint16_t pkey[3];
	unsigned int num_pkeys;
	json_t *counts;
	json_t *more;
};
#define GAUGE_LANE 0x1

static const struct table_word words_mode[] = { { "FAST", 3 }, { "SLOW", 5 }, { NULL, 0 } };
static const struct table_word words_access[] = { { "READ", 1 }, { "WRITE", 2 }, { NULL, 0 } };

static const struct table_row lane_rows[] = {
	ROW(struct lane, number, TABLE_UINT, .help = "its number"),
	ROW(struct lane, skew, TABLE_INT),
	ROW_END,
};

static const struct table_row pkey_value[] = {
	{ .name = "pkey", .type = TABLE_UINT, .size = sizeof(uint16_t) },
};

#define GAUGE(field, t, ...) ROW(struct gauge, field, t, __VA_ARGS__)

static const struct table_row gauge_rows[] = {
	GAUGE(code, TABLE_UINT),
	GAUGE(big, TABLE_UINT),
	GAUGE(guid, TABLE_UINT, .digits = 16),
	GAUGE(node, TABLE_INT),
	GAUGE(share, TABLE_REAL, .help = "0 to 1"),
	GAUGE(on, TABLE_BOOL),
	GAUGE(text, TABLE_STRING, .flags = TABLE_NULL, .help = "null: none"),
	GAUGE(name, TABLE_CHARS),
	GAUGE(data, TABLE_BYTES, .flags = TABLE_OPTIONAL),
	GAUGE(mode, TABLE_ENUM, .words = words_mode),
	GAUGE(access, TABLE_FLAGS, .words = words_access),
	GAUGE(vlan, TABLE_UINT, .flags = TABLE_NULL, .min = 1, .max = 4094),
	GAUGE(lane, TABLE_OBJECT, .fields = lane_rows, .bit = GAUGE_LANE),
	ROW_LIST(struct gauge, lanes, struct lane, lane_rows, .help = "all of them"),
	GAUGE(pkey, TABLE_LIST, .flags = TABLE_INLINE | TABLE_VALUES, .fields = pkey_value,
		.item_size = sizeof(uint16_t), .count = offsetof(struct gauge, num_pkeys)),
	GAUGE(counts, TABLE_COUNTS, .flags = TABLE_OPTIONAL),
	{ .name = "", .type = TABLE_MEMBERS, .offset = offsetof(struct gauge, more) },
	ROW_INCLUDE(struct gauge, lane, lane_rows),
	ROW_END,
};

static const struct gauge empty = { .mode = 3 };

/* Encode, compare with what is expected ('...' for "..."), and check against the schema. */
static void
encodes(const struct gauge *g, const char *expected)
{
	json_t *v = table_encode(gauge_rows, g), *want;
	json_t *schema = table_schema(gauge_rows, TABLE_OUT, NULL);
	char text[1024], why[300], *c, *got;

	strcpy(text, expected);
	for (c = text; *c != '\0'; c++)
		*c = *c == '\'' ? '"' : *c;
	want = json_loads(text, 0, NULL);
	assert_non_null(want);
	if (!json_equal(v, want)) {
		got = json_dumps(v, 0);
		fail_msg("%s", got);
	}
	if (!schema_accepts(schema, v, why, sizeof(why)))
		fail_msg("%s", why);
	json_decref(v);
	json_decref(want);
	json_decref(schema);
}

#define EMPTY                                                                                      \
	"'guid': '0x0000000000000000', 'node': 0, 'share': 0.0, 'name': '', 'lanes': [], "         \
	"'pkey': [], 'number': 0, 'skew': 0"

static void
test_empty_values_are_left_out_or_null_as_their_rows_say(void **state)
{
	(void)state;
	encodes(&empty,
		"{'code': 0, 'big': 0, 'on': false, 'text': null, 'mode': 'FAST', "
		"'access': [], 'vlan': null, " EMPTY "}");
}

static void
test_numbers_beyond_json_are_text(void **state)
{
	struct gauge g = empty;

	(void)state;
	g.code = 255;
	g.big = UINT64_MAX;
	g.vlan = 4094;
	encodes(&g,
		"{'code': 255, 'big': '0xffffffffffffffff', 'on': false, 'text': null, "
		"'mode': 'FAST', 'access': [], 'vlan': 4094, " EMPTY "}");
	g.vlan = 4095; /* beyond the row's range: there is none */
	g.big = INT64_MAX;
	encodes(&g,
		"{'code': 255, 'big': 9223372036854775807, 'on': false, 'text': null, "
		"'mode': 'FAST', 'access': [], 'vlan': null, " EMPTY "}");
}

static void
test_lists_objects_and_counters(void **state)
{
	static const uint8_t data[2] = { 0xab, 0x01 };
	struct arena arena = { NULL };
	struct gauge g = {
		.present = GAUGE_LANE,
		.guid = 0x10,
		.node = -1,
		.share = 0.5,
		.on = true,
		.text = "x",
		.name = "name",
		.data = { data, 2 },
		.mode = 5,
		.access = 3,
		.vlan = 1,
		.lane = { 7, -3 },
		.pkey = { 0xffff, 1 },
		.num_pkeys = 2,
	};
	struct lane *lane;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		lane = list_add(&arena, &g.lanes, sizeof(*lane));
		assert_non_null(lane);
		*lane = (struct lane){ (uint8_t)i, (int16_t)-i };
	}
	g.counts = arena_json(&arena, json_pack("{s:i}", "sent", 4));
	g.more = arena_json(&arena, json_pack("{s:i}", "lost", 5));
	encodes(&g,
		"{'code': 0, 'big': 0, 'guid': '0x0000000000000010', 'node': -1, 'share': 0.5, "
		"'on': true, 'text': 'x', 'name': 'name', 'data': 'ab01', 'mode': 'SLOW', "
		"'access': ['READ', 'WRITE'], 'vlan': 1, 'lane': {'number': 7, 'skew': -3}, "
		"'lanes': [{'number': 0, 'skew': 0}, {'number': 1, 'skew': -1}, "
		"{'number': 2, 'skew': -2}], 'pkey': [65535, 1], 'counts': {'sent': 4}, "
		"'lost': 5, 'number': 7, 'skew': -3}");
	arena_free(&arena);
}

static void
test_the_schema_rejects_what_rows_do_not_say(void **state)
{
	json_t *schema = table_schema(gauge_rows, TABLE_OUT, NULL), *v;
	char why[300];

	(void)state;
	v = table_encode(gauge_rows, &empty);
	json_object_set_new(v, "mode", json_string("QUICK"));
	assert_false(schema_accepts(schema, v, why, sizeof(why)));
	assert_string_equal(why, "result.mode: enum");
	json_object_set_new(v, "mode", json_string("FAST"));
	json_object_set_new(v, "lanes", json_pack("[{s:i}]", "number", 1));
	assert_false(schema_accepts(schema, v, why, sizeof(why)));
	assert_string_equal(why, "result.lanes[0].skew: required");
	json_object_set_new(v, "lanes", json_array());
	json_object_set_new(v, "code", json_integer(256));
	assert_false(schema_accepts(schema, v, why, sizeof(why)));
	assert_string_equal(why, "result.code: range");
	json_decref(v);
	json_decref(schema);
}

static void
test_a_summary_names_every_member(void **state)
{
	json_t *text = table_summary(gauge_rows);

	(void)state;
	assert_non_null(strstr(json_string_value(text), "share: 0 to 1\n"));
	assert_non_null(strstr(json_string_value(text),
		"lanes: all of them: list of number (its number), skew\n"));
	assert_non_null(
		strstr(json_string_value(text), "lane: object of number (its number), skew\n"));
	json_decref(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_values_are_left_out_or_null_as_their_rows_say),
		cmocka_unit_test(test_numbers_beyond_json_are_text),
		cmocka_unit_test(test_lists_objects_and_counters),
		cmocka_unit_test(test_the_schema_rejects_what_rows_do_not_say),
		cmocka_unit_test(test_a_summary_names_every_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
