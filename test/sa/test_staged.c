/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The form of an import that one appliance of a fleet passes to the leader. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sa/forward.h"
#include "sa/server.h"
#include "sa/staged.h"

static const struct staged_head sample = {
	.replace = SA_REPLACE_SUBNET,
	.owner = "polca1",
	.id = UINT64_C(0x0102030405060708),
	.parts = 0x11121314,
	.len = UINT64_C(0x2122232425262728),
	.sum = UINT64_C(0x3132333435363738),
};

static void
test_head_is_read_as_it_was_written(void **state)
{
	uint8_t bytes[STAGED_HEAD_MAX];
	struct staged_head got, longest = sample;
	size_t len;

	(void)state;
	len = staged_put_head(&sample, bytes);
	assert_int_equal(staged_get_head(&got, bytes, len), 0);
	assert_int_equal(got.replace, SA_REPLACE_SUBNET);
	assert_string_equal(got.owner, "polca1");
	assert_true(got.id == sample.id && got.len == sample.len && got.sum == sample.sum);
	assert_int_equal(got.parts, sample.parts);
	memset(longest.owner, 'x', OWNED_NAME_MAX - 1);
	len = staged_put_head(&longest, bytes);
	assert_in_range(len, OWNED_NAME_MAX, STAGED_HEAD_MAX);
	assert_int_equal(staged_get_head(&got, bytes, len), 0);
	assert_string_equal(got.owner, longest.owner);
}

/* What etcd has may be anything. */
static void
test_bad_heads_are_refused(void **state)
{
	uint8_t bytes[STAGED_HEAD_MAX + 1];
	struct staged_head got;
	size_t len, n;

	(void)state;
	len = staged_put_head(&sample, bytes);
	for (n = 0; n < len; n++)
		assert_int_equal(staged_get_head(&got, bytes, n), -EBADMSG);
	bytes[len] = 'x';
	assert_int_equal(staged_get_head(&got, bytes, len + 1), -EBADMSG);
	bytes[0] = SA_REPLACE_ALL + 1;
	assert_int_equal(staged_get_head(&got, bytes, len), -EBADMSG);
	len = staged_put_head(&sample, bytes);
	bytes[len - strlen("polca1") - 1] = 0; /* no owner */
	assert_int_equal(staged_get_head(&got, bytes, len), -EBADMSG);
}

static void
test_request_needs_a_head(void **state)
{
	static uint8_t bytes[FORWARD_REQUEST_MAX];
	uint8_t head[STAGED_HEAD_MAX];
	char id[FORWARD_ID_LEN + 1];
	struct sa_write w = {
		.kind = WRITE_IMPORT,
		.version = SA_V2,
		.type = sa_record_type(SA_NODE),
		.forwarded = head,
	};
	struct sa_write got;
	size_t len;

	(void)state;
	w.data_len = (uint32_t)staged_put_head(&sample, head);
	len = forward_put_request(&w, NULL, bytes, id);
	assert_int_equal(forward_get_request(&got, bytes, len), 0);
	assert_int_equal(got.kind, WRITE_IMPORT);
	assert_int_equal(got.data_len, w.data_len);
	assert_memory_equal(got.forwarded, head, w.data_len);
	w.data_len--;
	len = forward_put_request(&w, NULL, bytes, id);
	assert_int_equal(forward_get_request(&got, bytes, len), -EBADMSG);
}

/* A refused import has a reason; an appliance that could not read it has given none. */
static void
test_answer_has_the_reason(void **state)
{
	struct sa_write w = {
		.kind = WRITE_IMPORT,
		.type = sa_record_type(SA_NODE),
		.status = SA_STATUS_REQ_INVALID,
		.rec = "NodeRecord: LID 0",
	};
	struct sa_write got = { .kind = WRITE_IMPORT, .type = w.type };
	uint8_t bytes[FORWARD_ANSWER_MAX];
	size_t len;

	(void)state;
	len = forward_put_answer(&w, bytes);
	assert_int_equal(forward_get_answer(&got, bytes, len), 0);
	assert_int_equal(got.status, SA_STATUS_REQ_INVALID);
	assert_string_equal((const char *)got.rec, "NodeRecord: LID 0");
	memset(got.rec, 0, sizeof(got.rec));
	w.kind = WRITE_SERVICE_SET;
	len = forward_put_answer(&w, bytes);
	assert_int_equal(forward_get_answer(&got, bytes, len), 0);
	assert_int_equal(got.rec[0], 0);
}

/* A part ends before a record that does not fit. */
static void
test_parts_are_bounded(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	const size_t n = STAGED_PART_MAX / (7 + t->len) + 10;
	struct sa_change *c = calloc(n, sizeof(*c));
	uint8_t *bytes = malloc(STAGED_PART_MAX);
	size_t i, taken, more, len;

	(void)state;
	for (i = 0; i < n; i++)
		c[i].type = t;
	len = staged_put_part(c, n, bytes, STAGED_PART_MAX, &taken);
	assert_int_equal(taken, n - 10);
	assert_int_equal(len, taken * (7 + t->len));
	len = staged_put_part(c + taken, n - taken, bytes, STAGED_PART_MAX, &more);
	assert_int_equal(more, 10);
	assert_int_equal(len, 10 * (7 + t->len));
	/* a removal is a RID */
	c[0].remove = true;
	assert_int_equal(staged_put_part(c, 1, bytes, STAGED_PART_MAX, &taken), 7);
	free(bytes);
	free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_head_is_read_as_it_was_written),
		cmocka_unit_test(test_bad_heads_are_refused),
		cmocka_unit_test(test_request_needs_a_head),
		cmocka_unit_test(test_answer_has_the_reason),
		cmocka_unit_test(test_parts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
