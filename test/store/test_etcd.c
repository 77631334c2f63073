/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What etcd's gateway sends, whole, cut short, or of wrong types. */

#include "fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/etcd_client.h"

static void
test_base64_both_ways(void **state)
{
	static const char *const pairs[][2] = { { "", "" }, { "f", "Zg==" }, { "xy", "eHk=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" } };
	uint8_t bytes[16];
	unsigned int i;
	char *text;

	(void)state;
	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) { /* RFC 4648, 10 */
		text = etcd_base64(pairs[i][0], strlen(pairs[i][0]));
		assert_string_equal(text, pairs[i][1]);
		assert_int_equal(etcd_base64_decode(text, strlen(text), bytes),
			strlen(pairs[i][0]));
		assert_memory_equal(bytes, pairs[i][0], strlen(pairs[i][0]));
		free(text);
	}
}

static void
test_what_is_no_base64(void **state)
{
	static const char *const bad[] = { "Z", "Zg",
		"Zg=", "Zm9v=", "====", "Z===", "Zg==Zg==", "Zm9\n", "Zm9-", "=m9v", "Zm=v" };
	uint8_t bytes[16];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (etcd_base64_decode(bad[i], strlen(bad[i]), bytes) >= 0)
			fail_msg("%s", bad[i]);
}

static void
test_integers_are_text_or_numbers(void **state)
{
	static const struct {
		const char *json;
		int rc;
		uint64_t value;
	} rows[] = {
		{ "{}", 0, 0 },
		{ "{\"n\": \"18446744073709551615\"}", 0, UINT64_MAX },
		{ "{\"n\": 7}", 0, 7 },
		{ "{\"n\": \"18446744073709551616\"}", -EPROTO, 0 },
		{ "{\"n\": -7}", -EPROTO, 0 },
		{ "{\"n\": \"-7\"}", -EPROTO, 0 },
		{ "{\"n\": \" 7\"}", -EPROTO, 0 },
		{ "{\"n\": \"7x\"}", -EPROTO, 0 },
		{ "{\"n\": \"\"}", -EPROTO, 0 },
		{ "{\"n\": 7.5}", -EPROTO, 0 },
		{ "{\"n\": null}", -EPROTO, 0 },
		{ "{\"n\": [7]}", -EPROTO, 0 },
	};
	uint64_t value;
	unsigned int i;
	json_t *j;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		j = json_loads(rows[i].json, 0, NULL);
		if (etcd_json_u64(j, "n", &value) != rows[i].rc)
			fail_msg("%s", rows[i].json);
		if (rows[i].rc == 0)
			assert_int_equal(value, rows[i].value);
		json_decref(j);
	}
}

/* As Debian's etcd 3.4.23 writes them. */
#define HEADER                                                                                      \
	"\"header\":{\"cluster_id\":\"13455796455940752355\",\"member_id\":\"443629905751424238\"," \
	"\"revision\":\"42\",\"raft_term\":\"2\"}"
#define KV                                                                                         \
	"{\"key\":\"a2V5\",\"create_revision\":\"3\",\"mod_revision\":\"41\",\"version\":\"5\","   \
	"\"value\":\"dmFsdWU=\"}"

static int
watched(const char *text, struct etcd_watched *w)
{
	struct error err = { "" };

	return etcd_json_watched(text, strlen(text), w, &err);
}

static void
test_messages_of_a_watch(void **state)
{
	struct etcd_watched w;

	(void)state;
	assert_int_equal(watched("{\"result\":{" HEADER ",\"created\":true}}", &w), 0);
	assert_true(w.created);
	assert_int_equal(w.header.cluster_id, 13455796455940752355u);
	assert_int_equal(w.header.revision, 42);
	etcd_watched_free(&w);
	assert_int_equal(watched("{\"result\":{" HEADER ",\"events\":[{\"kv\":" KV
				 "},{\"type\":\"DELETE\",\"kv\":{\"key\":\"a2V5\","
				 "\"mod_revision\":\"42\"}}]}}",
				 &w),
		0);
	assert_int_equal(w.events.n, 2);
	assert_string_equal(w.events.at[0].key, "key");
	assert_memory_equal(w.events.at[0].value, "value", 5);
	assert_int_equal(w.events.at[0].create_revision, 3);
	assert_int_equal(w.events.at[0].mod_revision, 41);
	assert_false(w.events.at[0].gone);
	assert_true(w.events.at[1].gone);
	assert_ptr_equal(etcd_kvs_find(&w.events, "key"), &w.events.at[0]);
	assert_null(etcd_kvs_find(&w.events, "ke"));
	etcd_watched_free(&w);
	assert_int_equal(watched("{\"result\":{" HEADER
				 ",\"canceled\":true,\"compact_revision\":\"40\"}}",
				 &w),
		0);
	assert_true(w.canceled);
	assert_int_equal(w.compact_revision, 40);
	etcd_watched_free(&w);
	assert_int_equal(watched("{\"error\":{\"grpc_code\":16,\"http_code\":401,"
				 "\"message\":\"etcdserver: invalid auth token\"}}",
				 &w),
		-EKEYEXPIRED);
}

static void
test_every_beginning_of_a_message_is_refused(void **state)
{
	static const char text[] = "{\"result\":{" HEADER ",\"events\":[{\"kv\":" KV "}]}}";
	struct error err = { "" };
	struct etcd_watched w;
	size_t len;
	char *part;

	(void)state;
	for (len = 0; len < strlen(text); len++) {
		part = malloc(len + 1); /* exactly, for sanitizers and valgrind */
		memcpy(part, text, len);
		assert_true(etcd_json_watched(part, len, &w, &err) < 0);
		free(part);
	}
}

static void
test_messages_of_wrong_types_are_refused(void **state)
{
	static const char *const bad[] = {
		"[]",
		"7",
		"null",
		"\"x\"",
		"{}",
		"{\"result\":7}",
		"{\"result\":null}",
		"{\"result\":{}}",
		"{\"result\":{\"header\":[]}}",
		"{\"result\":{\"header\":{\"cluster_id\":\"0\"}}}",
		"{\"result\":{\"header\":{\"cluster_id\":{}}}}",
		"{\"result\":{" HEADER ",\"compact_revision\":[]}}",
		"{\"result\":{" HEADER ",\"events\":{}}}",
		"{\"result\":{" HEADER ",\"events\":[7]}}",
		"{\"result\":{" HEADER ",\"events\":[{}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":[]}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":{}}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":7}}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":\"a2V\"}}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":\"AGs=\"}}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":{\"key\":\"a2V5\",\"value\":7}}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"type\":7,\"kv\":" KV "}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"type\":\"MOVE\",\"kv\":" KV "}]}}",
		"{\"result\":{" HEADER ",\"events\":[{\"kv\":" KV "},{\"kv\":7}]}}",
	};
	struct etcd_watched w;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (watched(bad[i], &w) >= 0)
			fail_msg("%s", bad[i]);
}

static void
test_errors_have_a_meaning(void **state)
{
	static const struct {
		long http;
		const char *text;
		int rc;
	} rows[] = {
		{ 400, "{\"error\":\"etcdserver: too many operations in txn request\",\"code\":3}",
			-E2BIG },
		{ 400, "{\"error\":\"etcdserver: request is too large\",\"code\":3}", -E2BIG },
		{ 400, "{\"error\":\"etcdserver: mvcc: required revision has been compacted\",\"code\":11}",
			-ESTALE },
		{ 400, "{\"error\":\"etcdserver: mvcc: required revision is a future revision\",\"code\":11}",
			-ESTALE },
		{ 404, "{\"error\":\"etcdserver: requested lease not found\",\"code\":5}",
			-ENOENT },
		{ 403, "{\"error\":\"etcdserver: permission denied\",\"code\":7}", -EACCES },
		{ 401, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}", -EKEYEXPIRED },
		{ 503, "{\"error\":\"etcdserver: no leader\",\"code\":14}", -EAGAIN },
		{ 429, "{\"error\":\"etcdserver: mvcc: database space exceeded\",\"code\":8}",
			-ENOSPC },
		{ 429, "{\"error\":\"etcdserver: too many requests\",\"code\":8}", -EAGAIN },
		{ 429, "{\"error\":\"grpc: received message larger than max (9 vs. 8)\",\"code\":8}",
			-E2BIG },
		/* etcd 3.5 of Debian 13, and the same in a stream of 3.4 and of 3.5 */
		{ 401, "{\"code\":16, \"message\":\"etcdserver: invalid auth token\"}",
			-EKEYEXPIRED },
		{ 404, "{\"code\":5, \"message\":\"etcdserver: requested lease not found\"}",
			-ENOENT },
		{ 200, "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}",
			-EAGAIN },
		{ 200, "{\"error\":{\"code\":14, \"message\":\"etcdserver: no leader\"}}",
			-EAGAIN },
		{ 502, "<html>Bad Gateway</html>", -EAGAIN },
		{ 404, "404 page not found\n", -EPROTO },
		{ 400, "{\"error\":7,\"code\":\"x\"}", -EPROTO },
		{ 400, "", -EPROTO },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { "" };
		int rc = etcd_json_error(rows[i].http, rows[i].text, strlen(rows[i].text), &err);

		if (rc != rows[i].rc || err.text[0] == '\0')
			fail_msg("%s: %d, %s", rows[i].text, rc, err.text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64_both_ways),
		cmocka_unit_test(test_what_is_no_base64),
		cmocka_unit_test(test_integers_are_text_or_numbers),
		cmocka_unit_test(test_messages_of_a_watch),
		cmocka_unit_test(test_every_beginning_of_a_message_is_refused),
		cmocka_unit_test(test_messages_of_wrong_types_are_refused),
		cmocka_unit_test(test_errors_have_a_meaning),
	};

	return cmocka_run_group_tests_name("store: etcd's JSON", tests, NULL, NULL);
}
