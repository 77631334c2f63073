/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/table.h"
#include "table/value.h"
#include "ctl/forms.h"
#include "port/port.h"

struct inner {
	uint32_t present;
	uint32_t length;
	uint8_t code;
};
#define INNER_CODE 0x1

struct outer {
	uint32_t present;
	uint32_t count;
	uint64_t va;
	int worker;
	bool flag;
	const char *text;
	const char *id;
	struct table_bytes data;
	uint32_t mode;
	uint32_t access;
	union gid gid;
	uint8_t mac[6];
	struct inner one;
	struct table_list many;
};
#define OUTER_VA 0x4

static const struct table_word words_mode[] = { { "FAST", 3 }, { "SLOW", 5 }, { NULL, 0 } };
static const struct table_word words_access[] = { { "READ", 1 }, { "WRITE", 2 }, { NULL, 0 } };

static const struct table_row inner_params[] = {
	ROW(struct inner, length, TABLE_UINT, .flags = TABLE_REQUIRED, .help = "bytes"),
	ROW(struct inner, code, TABLE_UINT, .max = 31, .bit = INNER_CODE, .help = "a code"),
	ROW_END,
};

static const struct table_row outer_params[] = {
	ROW(struct outer, count, TABLE_UINT, .flags = TABLE_REQUIRED, .min = 2, .max = 10,
		.help = "how many"),
	ROW(struct outer, va, TABLE_UINT, .bit = OUTER_VA, .help = "an address"),
	ROW(struct outer, worker, TABLE_UINT, .max = 127, .def = UINT64_MAX, .def_text = "any",
		.help = "a worker"),
	ROW(struct outer, flag, TABLE_BOOL, .def = 1, .help = "a flag"),
	ROW(struct outer, text, TABLE_STRING, .max = 5, .help = "a text"),
	ROW(struct outer, data, TABLE_BYTES, .max = 4, .help = "bytes"),
	ROW(struct outer, mode, TABLE_ENUM, .def = 3, .words = words_mode, .help = "a mode"),
	ROW(struct outer, access, TABLE_FLAGS, .words = words_access, .help = "rights"),
	ROW(struct outer, gid, TABLE_GID, .help = "an address"),
	ROW(struct outer, mac, TABLE_MAC, .help = "a MAC"),
	ROW(struct outer, one, TABLE_OBJECT, .fields = inner_params, .help = "an object"),
	ROW(struct outer, many, TABLE_LIST, .min = 1, .max = 3, .fields = inner_params,
		.item_size = sizeof(struct inner), .help = "objects"),
	ROW(struct outer, id, TABLE_NAME, .max = 5, .help = "a number or a name"),
	ROW_END,
};

struct fixture {
	struct arena arena;
	struct table_decoder d;
	struct outer out;
	json_t *json;
};

static int
decode(struct fixture *f, const char *text)
{
	json_decref(f->json);
	arena_free(&f->arena);
	memset(&f->out, 0, sizeof(f->out));
	f->json = json_loads(text, 0, NULL);
	assert_non_null(f->json);
	f->d = (struct table_decoder){ .arena = &f->arena };
	return table_decode(&f->d, outer_params, f->json, &f->out);
}

static void
refused(struct fixture *f, const char *text, const char *parameter, const char *got,
	const char *allowed)
{
	assert_int_equal(decode(f, text), -EINVAL);
	assert_string_equal(f->d.err.member, parameter);
	assert_string_equal(f->d.err.got, got);
	assert_string_equal(f->d.err.allowed, allowed);
	assert_non_null(strstr(f->d.err.text, parameter));
}

static int
decode_setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	*state = &f;
	return 0;
}

static int
decode_teardown(void **state)
{
	struct fixture *f = *state;

	json_decref(f->json);
	arena_free(&f->arena);
	return 0;
}

static void
test_values_reach_their_fields(void **state)
{
	struct fixture *f = *state;
	union gid v4;

	assert_int_equal(
		decode(f,
			"{\"count\": 10, \"va\": \"0xfedcba9876543210\", \"worker\": 5, \"flag\": false,"
			" \"text\": \"hello\", \"data\": \"00fFA1\", \"mode\": \"slow\","
			" \"access\": [\"READ\", \"WRITE\"], \"gid\": \"10.0.0.2\","
			" \"mac\": \"02:00:5e:10:ff:01\", \"one\": {\"length\": 7, \"code\": 31},"
			" \"many\": [{\"length\": 1}, {\"length\": 2, \"code\": 0}]}"),
		0);
	assert_int_equal(f->out.count, 10);
	assert_true(f->out.va == UINT64_C(0xfedcba9876543210));
	assert_int_equal(f->out.present, OUTER_VA);
	assert_int_equal(f->out.worker, 5);
	assert_false(f->out.flag);
	assert_string_equal(f->out.text, "hello");
	assert_int_equal(f->out.data.len, 3);
	assert_memory_equal(f->out.data.data, "\x00\xff\xa1", 3);
	assert_int_equal(f->out.mode, 5);
	assert_int_equal(f->out.access, 3);
	v4 = gid_from_ipv4((const uint8_t[]){ 10, 0, 0, 2 });
	assert_memory_equal(&f->out.gid, &v4, sizeof(v4));
	assert_memory_equal(f->out.mac, "\x02\x00\x5e\x10\xff\x01", 6);
	assert_int_equal(f->out.one.length, 7);
	assert_int_equal(f->out.one.code, 31);
	assert_int_equal(f->out.many.num, 2);
	assert_int_equal(((struct inner *)f->out.many.items)[0].present, 0);
	assert_int_equal(((struct inner *)f->out.many.items)[1].length, 2);
	assert_int_equal(((struct inner *)f->out.many.items)[1].present, INNER_CODE);
}

static void
test_absent_parameters_get_their_defaults(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"count\": 2}"), 0);
	assert_int_equal(f->out.worker, -1);
	assert_true(f->out.flag);
	assert_int_equal(f->out.mode, 3);
	assert_int_equal(f->out.present, 0);
	assert_null(f->out.text);
}

static void
test_an_object_stands_for_a_list_of_one(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"count\": 2, \"many\": {\"length\": 9}}"), 0);
	assert_int_equal(f->out.many.num, 1);
	assert_int_equal(((struct inner *)f->out.many.items)[0].length, 9);
}

static void
test_range_is_kept_at_both_ends(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"count\": 2}"), 0);
	assert_int_equal(decode(f, "{\"count\": 10}"), 0);
	refused(f, "{\"count\": 1}", "count", "1", "integer 2..10");
	refused(f, "{\"count\": 11}", "count", "11", "integer 2..10");
	refused(f, "{\"count\": -1}", "count", "-1", "integer 2..10");
	refused(f, "{\"count\": 4294967298}", "count", "4294967298", "integer 2..10");
	refused(f, "{\"count\": \"0xffffffffffffffffff\"}", "count", "\"0xffffffffffffffffff\"",
		"integer 2..10");
}

static void
test_wrong_types_are_named(void **state)
{
	struct fixture *f = *state;

	refused(f, "{\"count\": 2.0}", "count", "2", "integer 2..10");
	refused(f, "{\"count\": \"3\"}", "count", "\"3\"", "integer 2..10");
	refused(f, "{\"count\": \"0x\"}", "count", "\"0x\"", "integer 2..10");
	refused(f, "{\"count\": \"0x-1\"}", "count", "\"0x-1\"", "integer 2..10");
	refused(f, "{\"count\": null}", "count", "null", "integer 2..10");
	refused(f, "{\"count\": [2]}", "count", "a list of 1", "integer 2..10");
	refused(f, "{\"count\": 2, \"flag\": 1}", "flag", "1", "true or false");
	refused(f, "{\"count\": 2, \"text\": {}}", "text", "an object", "text of 1 to 5 bytes");
	refused(f, "{\"count\": 2, \"text\": \"\"}", "text", "\"\"", "text of 1 to 5 bytes");
	refused(f, "{\"count\": 2, \"text\": \"sixsix\"}", "text", "\"sixsix\"",
		"text of 1 to 5 bytes");
	refused(f, "{\"count\": 2, \"data\": \"abc\"}", "data", "\"abc\"",
		"up to 4 bytes as hex text");
	refused(f, "{\"count\": 2, \"data\": \"xx\"}", "data", "\"xx\"",
		"up to 4 bytes as hex text");
	refused(f, "{\"count\": 2, \"data\": \"0011223344\"}", "data", "\"0011223344\"",
		"up to 4 bytes as hex text");
	refused(f, "{\"count\": 2, \"mode\": \"QUICK\"}", "mode", "\"QUICK\"", "one of FAST, SLOW");
	refused(f, "{\"count\": 2, \"mode\": 3}", "mode", "3", "one of FAST, SLOW");
	refused(f, "{\"count\": 2, \"access\": \"READ\"}", "access", "\"READ\"",
		"list of READ, WRITE");
	refused(f, "{\"count\": 2, \"access\": [\"READ\", \"X\"]}", "access", "\"X\"",
		"list of READ, WRITE");
	refused(f, "{\"count\": 2, \"gid\": \"10.0.0\"}", "gid", "\"10.0.0\"",
		"IPv4 or IPv6 address as text");
	refused(f, "{\"count\": 2, \"mac\": \"02:00:5e:10:ff\"}", "mac", "\"02:00:5e:10:ff\"",
		"MAC address as text \"02:00:00:00:00:01\"");
	refused(f, "{\"count\": 2, \"mac\": \"02:00:5e:10:ff:011\"}", "mac",
		"\"02:00:5e:10:ff:011\"", "MAC address as text \"02:00:00:00:00:01\"");
	refused(f, "{\"count\": 2, \"one\": [1]}", "one", "a list of 1", "object of length, code");
}

static void
test_missing_and_unknown_parameters_are_named(void **state)
{
	struct fixture *f = *state;

	refused(f, "{}", "count", "nothing", "integer 2..10");
	refused(f, "{\"count\": 2, \"colour\": 1}", "colour", "",
		"count, va, worker, flag, text, data, mode, access, gid, mac, one, many, id");
	refused(f, "{\"count\": 2, \"one\": {\"length\": 1, \"lenght\": 1}}", "one.lenght", "",
		"length, code");
}

static void
test_the_path_leads_to_the_fault(void **state)
{
	struct fixture *f = *state;

	refused(f, "{\"count\": 2, \"many\": [{\"length\": 1}, {\"length\": 1, \"code\": 32}]}",
		"many[1].code", "32", "integer 0..31");
	refused(f, "{\"count\": 2, \"many\": [{}]}", "many[0].length", "nothing",
		"integer 0..4294967295");
	refused(f, "{\"count\": 2, \"many\": []}", "many", "a list of 0",
		"an object, or a list of 1..3 objects, of length, code");
	refused(f, "{\"count\": 2, \"many\": [{\"length\": 1}, 5]}", "many[1]", "5",
		"object of length, code");
	refused(f,
		"{\"count\": 2, \"many\": [{\"length\": 1},{\"length\": 1},{\"length\": 1},{\"length\": 1}]}",
		"many", "a list of 4", "an object, or a list of 1..3 objects, of length, code");
}

/* what is quoted back stays short, and valid UTF-8, whatever was sent */
static void
test_long_text_is_cut_between_characters(void **state)
{
	struct fixture *f = *state;
	char text[4096] = "{\"count\": \"";
	json_t *back;
	size_t n;

	for (n = 0; n < 500; n++)
		strcat(text, n == 0 ? "x" : "\xe2\x82\xac");
	strcat(text, "\"}");
	assert_int_equal(decode(f, text), -EINVAL);
	assert_true(strlen(f->d.err.got) < sizeof(f->d.err.got));
	assert_non_null(strstr(f->d.err.got, "\xe2\x82\xac...\""));
	back = json_string(f->d.err.got);
	assert_non_null(back);
	json_decref(back);
	back = json_string(f->d.err.text);
	assert_non_null(back);
	json_decref(back);
}

static void
test_defaults_are_told_in_words(void **state)
{
	static const struct table_row none[] = {
		ROW(struct outer, access, TABLE_FLAGS, .words = words_access),
		ROW(struct outer, access, TABLE_FLAGS, .def = 3, .words = words_access),
		ROW_END,
	};
	char buf[64];

	(void)state;
	assert_null(table_default(&outer_params[0], buf, sizeof(buf)));
	assert_string_equal(table_default(&outer_params[2], buf, sizeof(buf)), "any");
	assert_string_equal(table_default(&outer_params[3], buf, sizeof(buf)), "true");
	assert_string_equal(table_default(&outer_params[6], buf, sizeof(buf)), "FAST");
	assert_string_equal(table_default(&none[0], buf, sizeof(buf)), "none");
	assert_string_equal(table_default(&none[1], buf, sizeof(buf)), "READ, WRITE");
}

static void
test_numbers_beyond_json_integers_are_text(void **state)
{
	json_t *v;

	(void)state;
	v = json_u64(INT64_MAX);
	assert_true(json_is_integer(v) && json_integer_value(v) == INT64_MAX);
	json_decref(v);
	v = json_u64((uint64_t)INT64_MAX + 1);
	assert_string_equal(json_string_value(v), "0x8000000000000000");
	json_decref(v);
}

static void
test_a_name_may_be_a_number(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(decode(f, "{\"count\": 5, \"id\": \"mine\"}"), 0);
	assert_string_equal(f->out.id, "mine");
	assert_int_equal(decode(f, "{\"count\": 5, \"id\": 4294967295}"), 0);
	assert_string_equal(f->out.id, "4294967295");
	refused(f, "{\"count\": 5, \"id\": -1}", "id", "-1", "number, or text of 1 to 5 bytes");
	refused(f, "{\"count\": 5, \"id\": \"longer\"}", "id", "\"longer\"",
		"number, or text of 1 to 5 bytes");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_values_reach_their_fields, decode_setup,
			decode_teardown),
		cmocka_unit_test_setup_teardown(test_absent_parameters_get_their_defaults,
			decode_setup, decode_teardown),
		cmocka_unit_test_setup_teardown(test_an_object_stands_for_a_list_of_one,
			decode_setup, decode_teardown),
		cmocka_unit_test_setup_teardown(test_range_is_kept_at_both_ends, decode_setup,
			decode_teardown),
		cmocka_unit_test_setup_teardown(test_wrong_types_are_named, decode_setup,
			decode_teardown),
		cmocka_unit_test_setup_teardown(test_missing_and_unknown_parameters_are_named,
			decode_setup, decode_teardown),
		cmocka_unit_test_setup_teardown(test_the_path_leads_to_the_fault, decode_setup,
			decode_teardown),
		cmocka_unit_test_setup_teardown(test_long_text_is_cut_between_characters,
			decode_setup, decode_teardown),
		cmocka_unit_test(test_defaults_are_told_in_words),
		cmocka_unit_test_setup_teardown(test_a_name_may_be_a_number, decode_setup,
			decode_teardown),
		cmocka_unit_test(test_numbers_beyond_json_integers_are_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
