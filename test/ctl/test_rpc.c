/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* JSON-RPC 2.0 as https://www.jsonrpc.org/specification has it, over any method. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"

#define ERROR_ID "{\"jsonrpc\":\"2.0\",\"id\":"

static void
line_is_refused(struct desk *d, const char *line, json_int_t code, const char *words)
{
	json_t *error;

	assert_non_null(ask(d, line));
	error = json_object_get(d->json, "error");
	assert_non_null(error);
	assert_null(json_object_get(d->json, "result"));
	assert_int_equal(num(error, "code"), code);
	if (strstr(str(error, "message"), words) == NULL)
		print_error("%s\n", d->reply);
	assert_non_null(strstr(str(error, "message"), words));
}

static void
test_a_request_is_answered_with_its_id(void **state)
{
	struct desk *d = *state;

	assert_string_equal(ask(d, "{\"jsonrpc\":\"2.0\",\"id\":17,\"method\":\"pd_create\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":17,\"result\":{\"pd\":1}}");
	assert_string_equal(
		ask(d, "{\"params\":{\"pd\":1},\"id\":\"a\",\"method\":\"pd_destroy\",\"jsonrpc\":\"2.0\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}");
}

static void
test_ids_of_any_type_come_back(void **state)
{
	static const char *const ids[] = { "0", "-5", "1.5", "\"\"", "\"x\\n\"", "null", "true",
		"[1,{\"a\":2}]", "{\"b\":[]}" };
	struct desk *d = *state;
	char line[128], start[128];
	size_t i;

	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"cq_list\"}", ids[i]);
		snprintf(start, sizeof(start), ERROR_ID "%s,\"result\"", ids[i]);
		assert_int_equal(strncmp(ask(d, line), start, strlen(start)), 0);
	}
}

static void
test_a_notification_is_carried_out_and_not_answered(void **state)
{
	struct desk *d = *state;

	assert_null(
		ask(d, "{\"jsonrpc\":\"2.0\",\"method\":\"cq_create\",\"params\":{\"depth\":9}}"));
	assert_true(d->e->cq[1].used);
	assert_int_equal(d->e->cq[1].depth, 9);
	/* not even when it fails */
	assert_null(ask(d, "{\"jsonrpc\":\"2.0\",\"method\":\"nothing\"}"));
	assert_null(
		ask(d, "{\"jsonrpc\":\"2.0\",\"method\":\"cq_create\",\"params\":{\"depth\":0}}"));
}

static void
test_text_that_is_no_json_is_a_parse_error(void **state)
{
	struct desk *d = *state;

	line_is_refused(d, "hello", -32700, "column");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",", -32700, "column");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\"} {}", -32700, "end of file expected");
	line_is_refused(d, "{\"id\":1,\"id\":2}", -32700, "duplicate");
	line_is_refused(d, "{\"id\":1,\"method\":\"\\u0000\"}", -32700, "column");
	line_is_refused(d, "{\"id\":1,\"method\":\"\xff\xfe\"}", -32700, "column");
	line_is_refused(d, "{\"id\":9223372036854775808}", -32700, "0x");
	assert_int_equal(strncmp(d->reply, ERROR_ID "null,", strlen(ERROR_ID "null,")), 0);
}

static void
test_what_is_no_request_is_refused(void **state)
{
	struct desk *d = *state;

	line_is_refused(d, "17", -32600, "object");
	line_is_refused(d, "\"text\"", -32600, "object");
	line_is_refused(d, "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pd_create\"}]", -32600,
		"batch arrays are not supported");
	line_is_refused(d, "{\"id\":1,\"method\":\"pd_create\"}", -32600, "jsonrpc");
	line_is_refused(d, "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"pd_create\"}", -32600,
		"jsonrpc");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1}", -32600, "method");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}", -32600, "method");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pd_create\",\"params\":5}",
		-32600, "params");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pd_create\",\"parms\":{}}",
		-32600, "members");
	/* with no id to answer to, the answer carries null */
	line_is_refused(d, "{\"jsonrpc\":\"2.0\"}", -32600, "method");
	assert_true(json_is_null(json_object_get(d->json, "id")));
}

static void
test_an_unknown_method_is_not_found(void **state)
{
	struct desk *d = *state;

	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"qp_crate\"}", -32601,
		"rpc_list");
}

static void
test_bad_parameters_say_which_what_and_what_is_allowed(void **state)
{
	struct desk *d = *state;
	json_t *data;

	line_is_refused(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_create\",\"params\":{\"depth\":0}}",
		-32602, "depth: got 0, allowed: integer 1..16777216");
	data = json_object_get(json_object_get(d->json, "error"), "data");
	assert_string_equal(str(data, "parameter"), "depth");
	assert_string_equal(str(data, "got"), "0");
	assert_string_equal(str(data, "allowed"), "integer 1..16777216");
	line_is_refused(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_create\",\"params\":{\"size\":1}}",
		-32602, "size: unknown name, allowed: depth");
	line_is_refused(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pd_create\",\"params\":{\"x\":1}}",
		-32602, "x: unknown name, allowed: none");
	line_is_refused(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"cq_create\",\"params\":[4]}",
		-32602, "by name");
}

static void
test_a_failed_call_has_an_errno(void **state)
{
	struct desk *d = *state;

	line_is_refused(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"srq_destroy\",\"params\":{\"srq\":5}}",
		-16, "queue pairs use it");
	assert_string_equal(str(json_object_get(json_object_get(d->json, "error"), "data"),
				    "errno"),
		"EBUSY");
}

static void
test_depth_is_bounded_before_parsing(void **state)
{
	struct desk *d = *state;
	static char line[1 << 20];

	/* 16 brackets are fine as far as depth goes */
	line_is_refused(d, "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", -32600, "batch");
	line_is_refused(d, "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", -32600, "brackets");
	memset(line, '[', sizeof(line) - 1);
	line_is_refused(d, line, -32600, "brackets");
	/* brackets in text do not count, wherever its end seems to be */
	line_is_refused(d,
		"{\"id\":\"\\\"[[[[[[[[[[[[[[[[[[[[\",\"jsonrpc\":\"2.0\",\"method\":\"x\"}",
		-32601, "method");
}

static void
test_a_reply_too_long_becomes_an_error(void **state)
{
	struct desk *d = *state;
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"rpc_list\"}";
	struct rpc_call *c = rpc_open(&d->state, line, strlen(line), &(int){ -1 }, 0);
	size_t len;
	char *text;

	assert_int_equal(rpc_step(c, 0), 0);
	text = rpc_reply(c, 1000, &len);
	assert_true(len < 1000);
	text[len - 1] = '\0';
	assert_string_equal(text,
		"{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32603,\"message\":"
		"\"the reply is too long: ask for less (max, length, cursor)\"}}");
	free(text);
	rpc_close(c);
}

/*
 * every method's table is one that can work: names unlike, defaults in range, text where text is
 * due
 */
static void
check_table(const struct table_row *table)
{
	const struct table_row *p, *q;

	for (p = table; p->name != NULL; p++) {
		if (p->type == TABLE_INCLUDE) {
			check_table(p->fields);
			continue;
		}
		assert_non_null(p->help);
		for (q = table; q != p; q++)
			assert_string_not_equal(p->name, q->name);
		assert_false((p->flags & TABLE_REQUIRED) != 0 && p->def != 0);
		if (p->type == TABLE_ENUM || p->type == TABLE_FLAGS) {
			assert_non_null(p->words);
			assert_int_equal(p->size, 4);
		}
		if (p->type == TABLE_UINT)
			assert_true(p->size == 1 || p->size == 2 || p->size == 4 || p->size == 8);
		if (p->type == TABLE_STRING || p->type == TABLE_BYTES || p->type == TABLE_LIST)
			assert_true(p->max > 0);
		if (p->type == TABLE_OBJECT || p->type == TABLE_LIST)
			check_table(p->fields);
		else
			assert_null(p->fields);
	}
}

/* Every member lies within the structure, and has its own name. */
static void
check_members(const struct table_row *rows, size_t size)
{
	const struct table_row *p, *q;

	for (p = rows; p->name != NULL; p++) {
		assert_true(p->offset + p->size <= size);
		for (q = rows; q != p; q++)
			assert_true(p->name[0] == '\0' || strcmp(p->name, q->name) != 0);
		if (p->type == TABLE_LIST && (p->flags & TABLE_VALUES) == 0)
			check_members(p->fields, p->item_size);
		if (p->type == TABLE_OBJECT)
			check_members(p->fields, p->size);
	}
}

static void
check_results(const struct rpc_method *m)
{
	if (m->results != NULL)
		check_members(m->results, m->result_size);
}

static void
test_the_method_table_is_sound(void **state)
{
	const struct rpc_area *a;
	const struct rpc_method *m;
	const struct table_row *p;

	(void)state;
	for (a = rpc_areas; a->title != NULL; a++)
		for (m = a->methods; m->name != NULL; m++) {
			assert_ptr_equal(rpc_find(m->name), m); /* no name twice */
			assert_non_null(m->help);
			check_results(m);
			assert_int_equal(strncmp(m->example, "polca-ctl ", 10), 0);
			check_table(m->params);
			for (p = m->params; p->name != NULL; p++)
				assert_true(p->offset + p->size <= m->args_size);
		}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, desk_setup, desk_teardown)
	const struct CMUnitTest tests[] = {
		T(test_a_request_is_answered_with_its_id),
		T(test_ids_of_any_type_come_back),
		T(test_a_notification_is_carried_out_and_not_answered),
		T(test_text_that_is_no_json_is_a_parse_error),
		T(test_what_is_no_request_is_refused),
		T(test_an_unknown_method_is_not_found),
		T(test_bad_parameters_say_which_what_and_what_is_allowed),
		T(test_a_failed_call_has_an_errno),
		T(test_depth_is_bounded_before_parsing),
		T(test_a_reply_too_long_becomes_an_error),
		T(test_the_method_table_is_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
