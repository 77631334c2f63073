/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Import of our own JSON: what an export writes, and what is rejected. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sa/import.h"

struct taken {
	struct sa_change changes[8];
	unsigned int n;
};

static int
sa_import_json_take(void *arg, const struct sa_change *change)
{
	struct taken *t = arg;

	if (t->n == 8)
		return -ENOSPC;
	t->changes[t->n++] = *change;
	return 0;
}

/* The text in memory of exactly its size, so that a sanitizer sees reads behind it. */
static int
sa_import_json_import(struct taken *t, const char *text, size_t len, struct error *err)
{
	struct sa_import_sink sink = { t, sa_import_json_take };
	char *copy = malloc(len > 0 ? len : 1);
	int rc;

	memcpy(copy, text, len);
	memset(t, 0, sizeof(*t));
	err->text[0] = '\0';
	rc = sa_import_json(copy, len, &sink, err);
	free(copy);
	return rc;
}

static void
test_records_of_an_export(void **state)
{
	static const char text[] = "{\"records\": [\n"
				   "{\"record\":\"LinkRecord\",\"rid\":\"0x00020700\",\"from_lid\":"
				   "\"2\",\"from_port\":7,\"to_port\":1,\"to_lid\":\"4\"},\n"
				   "{\"record\":\"ServiceRecord\",\"rid\":\"0x0000beef\",\"service_"
				   "id\":\"0x1\",\"service_lease\":\"forever\"}\n"
				   "]}\n";
	struct taken t;
	struct error err;

	(void)state;
	assert_int_equal(sa_import_json_import(&t, text, strlen(text), &err), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.changes[0].type->attribute, SA_LINK);
	assert_int_equal(t.changes[0].rid, 0); /* from the record */
	assert_memory_equal(t.changes[0].rec, "\x00\x02\x07\x01\x00\x04", 6);
	assert_int_equal(t.changes[1].type->attribute, SA_SERVICE);
	assert_int_equal(t.changes[1].rid, 0xBEEF);
	assert_memory_equal(t.changes[1].rec, "\0\0\0\0\0\0\0\1", 8);
	assert_memory_equal(t.changes[1].rec + 28, "\xFF\xFF\xFF\xFF", 4);
	assert_false(t.changes[1].remove);
}

static void
test_forms_that_are_taken(void **state)
{
	static const struct {
		const char *text;
		unsigned int n;
	} good[] = {
		{ "[]", 0 },
		{ " {\t\"records\"\r\n: [ ] } ", 0 },
		{ "[{\"record\":\"node\",\"lid\":1}]", 1 },
		{ "[{\"lid\":1,\"record\":\"0x11\"} , {\"record\":\"NODERECORD\"}]", 2 },
		{ "[{\"record\":\"pkey\",\"lid\":\"3\",\"pkeys\":\"0xffff,0x8001\"}]", 1 },
	};
	struct taken t;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(sa_import_json_import(&t, good[i].text, strlen(good[i].text),
					 &err),
			0);
		assert_int_equal(t.n, good[i].n);
	}
}

/* as sa table path --json writes them: SLs by source LID, in blocks of 64 destinations */
static void
test_sls_of_path_records(void **state)
{
	static const char text[] = "{\"records\":[\n"
				   "{\"record\":\"path\",\"slid\":4,\"dlid\":66,\"sl\":3},\n"
				   "{\"record\":\"path\",\"slid\":4,\"dlid\":5,\"sl\":1},\n"
				   "{\"record\":\"link\",\"from_lid\":2},\n"
				   "{\"record\":\"path\",\"slid\":2,\"dlid\":4,\"sl\":0},\n"
				   "{\"record\":\"path\",\"slid\":2,\"dlid\":\"0xc000\",\"sl\":2}\n"
				   "],\n\"status\": 0,\"words\": [\"x\"]}";
	struct taken t;
	struct error err;

	(void)state;
	assert_int_equal(sa_import_json_import(&t, text, strlen(text), &err), 0);
	assert_int_equal(t.n, 4);
	assert_int_equal(t.changes[0].type->attribute, SA_LINK);
	assert_int_equal(t.changes[1].type->attribute, SA_PATH_SL);
	assert_memory_equal(t.changes[1].rec, "\0\2\0\0\0\0\0\0\xFF\xFF\xFF\xFF\0\xFF", 14);
	assert_memory_equal(t.changes[2].rec, "\0\4\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\1\xFF", 15);
	assert_memory_equal(t.changes[3].rec, "\0\4\0\1\0\0\0\0\xFF\xFF\3\xFF", 12);
	assert_int_equal(t.changes[3].rec[71], 0xFF);
}

static void
test_errors_in_words(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} bad[] = {
		{ "", "line 1: got the end, expected the list of records, [" },
		{ "\n\n#", "line 3: got '#', expected the list of records, [" },
		{ "{\"nodes\": []}", "line 1: got '\"', expected \"records\": and the list" },
		{ "{\"records\": {}}", "line 1: got '{', expected the list of records, [" },
		{ "{\"records\": []", "line 1: got the end, expected } after the records" },
		{ "[", "got the end, expected a record as {...}" },
		{ "[1]", "got '1', expected a record as {...}" },
		{ "[{}]", "line 1: a record is an object with \"record\": its type" },
		{ "[{\"record\":\"node\"}", "got the end, expected , and a record or ]" },
		{ "[{\"record\":\"node\"},]", "got ']', expected a record as {...}" },
		{ "[]]", "got ']', expected the end" },
		{ "[\n{\"record\":\"node\"},\n{\"record\":\"nodes\"}]",
			"line 3: record: got \"nodes\", which is not a record type" },
		{ "[{\"record\":\"multipath\"}]",
			"record: got \"multipath\", which is not stored" },
		{ "[{\"record\":\"path\",\"dlid\":1,\"sl\":1}]",
			"line 1: slid: got 0, expected a LID" },
		{ "{\"records\": [], 5}", "got '5', expected a name and its value" },
		{ "{\"records\": [], \"a\": }", "expected a name and its value" },
		{ "[{\"record\":\"node\",\n\"lid\":65536}]",
			"line 1: lid: got \"65536\", allowed: 0 to 65535" },
		{ "[{\"record\":\"node\",\"lids\":1}]", "lids: NodeRecord has no such field" },
		{ "[{\"record\":\"node\",\"reserved\":1}]",
			"reserved: NodeRecord has no such field" },
		{ "[{\"record\":\"node\",\"lid\":1.5}]", "lid: expected text or a number" },
		{ "[{\"record\":\"node\",\"lid\":-1}]", "lid: got \"-1\"" },
		{ "[{\"record\":\"node\",\"lid\":1,\"lid\":2}]", "line 1: duplicate object key" },
		{ "[{\"record\":\"service\",\"rid\":5}]",
			"rid: expected text like \"0x00010000\"" },
		{ "[{\"record\":\"service\",\"rid\":\"0x123456789\"}]", "rid: expected text" },
		{ "[{\"record\":\"service\",\"rid\":\"0x-1\"}]", "rid: expected text" },
		{ "[\n{\"record\":\n\"node}]", "line 3: " },
	};
	struct taken t;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(sa_import_json_import(&t, bad[i].text, strlen(bad[i].text), &err),
			-EINVAL);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("\"%s\" should say \"%s\"", err.text, bad[i].says);
	}
	assert_int_equal(sa_import_json_import(&t, "[\0]", 3, &err), -EINVAL);
	assert_string_equal(err.text, "line 1: got byte 0x00, expected a record as {...}");
}

static void
test_sink_that_refuses(void **state)
{
	static const char one[] = "{\"record\":\"node\"},\n";
	struct taken t;
	struct error err;
	char text[512] = "[";

	(void)state;
	for (unsigned int i = 0; i < 9; i++)
		strcat(text, one);
	assert_int_equal(sa_import_json_import(&t, text, strlen(text), &err), -ENOSPC);
	assert_non_null(strstr(err.text, "line 9: the record could not be stored"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_of_an_export),
		cmocka_unit_test(test_forms_that_are_taken),
		cmocka_unit_test(test_sls_of_path_records),
		cmocka_unit_test(test_errors_in_words),
		cmocka_unit_test(test_sink_that_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
