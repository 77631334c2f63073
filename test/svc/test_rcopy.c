/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* rcopy: messages of librdmacm's program, in the byte order of an x86 host. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stream.h"

#define OPEN   "\x00\x01\x20\x00\xa4\x81\x00\x00\0\0\0\0\0\0\0\0/tmp/copy\0\0\0\0\0\0\0"
#define CLOSE  "\x00\x02\x10\x00\0\0\0\0\0\0\0\0\0\0\0\0"
#define WRITE5 "\x00\x03\x18\x00\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0"

struct copy {
	struct stream t;
	uint32_t to; /* offset in the server's buffer of the next byte to write */
	uint32_t from; /* offset in our buffer of the next byte to receive */
};

static struct copy
open_copy(struct bench *b, uint32_t mr_key)
{
	struct copy y = {
		.t = open_stream(b, &(struct svc_config){ .kind = "rcopy", .mr_key = mr_key }, 0x02)
	};

	next_imm(&y.t); /* the message that grants the second half */
	return y;
}

/* Open another connection to the same service. */
static struct copy
rcopy_again(const struct copy *first)
{
	struct copy y = *first;
	struct recv_wr wr = { .num_sge = 0 };
	uint8_t data[40];
	unsigned int i;

	conn_data(&y.t.b->w->a, data, 0x02);
	y.t.l = connect_with(y.t.b, data, 40);
	for (i = 0; i < 16; i++)
		assert_int_equal(rc_post_recv(y.t.b->w->a.rc, y.t.l->qpn, &wr, NULL), 0);
	y.t.va = get_be64(y.t.l->private_data + 24);
	y.t.key = get_be32(y.t.l->private_data + 16);
	y.to = 0;
	y.from = 0;
	next_imm(&y.t);
	return y;
}

static void
rcopy_put(struct copy *y, const char *bytes, uint32_t len)
{
	memcpy(y->t.b->w->a.bytes + OUT, bytes, len);
	write_imm(&y->t, OUT, len, y->t.va + y->to, DATA(len));
	y->to += len;
}
/* clang-format off */
#define PUT(y, literal) rcopy_put(y, literal, sizeof(literal) - 1)
/* clang-format on */

static void
rcopy_expect_answer(struct copy *y, uint8_t command, uint32_t status)
{
	const uint8_t *p = y->t.b->w->a.bytes + IN + y->from;
	uint8_t want[16] = { 0, command | 0x80, 16, 0, (uint8_t)status };

	assert_int_equal(next_imm(&y->t), DATA(16));
	assert_memory_equal(p, want, 16);
	y->from += 16;
}

/* --- the server --- */

static void
test_file_is_received_and_counted(void **state)
{
	struct copy y = open_copy(*state, 0);

	PUT(&y, OPEN);
	rcopy_expect_answer(&y, 1, 0);
	PUT(&y, WRITE5);
	expect_nothing_heard(y.t.l);
	PUT(&y, "hel");
	expect_nothing_heard(y.t.l);
	PUT(&y, "lo");
	rcopy_expect_answer(&y, 3, 0);
	PUT(&y, CLOSE);
	rcopy_expect_answer(&y, 2, 0);
	assert_int_equal(figures(y.t.s).exchanges, 1);
	PUT(&y, OPEN); /* another file */
	rcopy_expect_answer(&y, 1, 0);
	write_imm(&y.t, OUT, 0, 0, GOODBYE);
	assert_int_equal(next_imm(&y.t), GOODBYE);
	expect_log(y.t.l, "prepare established disconnected");
	assert_int_equal(figures(y.t.s).violations, 0);
	expect_all_released(y.t.b);
}

/* A stream has no message boundaries, so each request may arrive in any pieces. */
static void
test_requests_byte_by_byte(void **state)
{
	static const char all[] = OPEN;
	struct copy y = open_copy(*state, 0);
	unsigned int i;

	for (i = 0; i < 32; i++) {
		expect_nothing_heard(y.t.l);
		rcopy_put(&y, all + i, 1);
	}
	rcopy_expect_answer(&y, 1, 0);
	for (i = 0; i < 24; i++)
		rcopy_put(&y, &WRITE5[i], 1);
	PUT(&y, "hello");
	rcopy_expect_answer(&y, 3, 0);
}

static void
test_client_that_does_not_wait_for_the_answer_is_ended(void **state)
{
	struct copy y = open_copy(*state, 0);

	PUT(&y, OPEN WRITE5);
	exchange(y.t.b->w);
	assert_int_equal(figures(y.t.s).violations, 0); /* no answer was missing yet */
	PUT(&y, "hello" CLOSE);
	assert_int_equal(figures(y.t.s).violations, 1);
	expect_log(y.t.l, "prepare established disconnected");
	expect_all_released(y.t.b);
}

static void
test_file_is_kept_in_a_region_of_the_caller(void **state)
{
	struct bench *b = *state;
	struct node *n = &b->w->b;
	struct copy y = open_copy(b, n->key);

	memset(n->bytes, 0xEE, 16);
	PUT(&y, OPEN);
	rcopy_expect_answer(&y, 1, 0);
	PUT(&y, WRITE5 "he");
	PUT(&y, "llo");
	rcopy_expect_answer(&y, 3, 0);
	assert_memory_equal(n->bytes, "hello\xEE\xEE", 7);
}

static void
test_file_larger_than_the_region_is_refused_at_its_end(void **state)
{
	struct bench *b = *state;
	struct copy y;
	struct mem_mr_attr attr = {
		.pd = b->w->b.pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
		.length = 4,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(b->w->b.mem, &attr, &info, NULL), 0);
	y = open_copy(b, info.key);
	PUT(&y, OPEN);
	rcopy_expect_answer(&y, 1, 0);
	PUT(&y, WRITE5 "hell");
	expect_nothing_heard(y.t.l);
	PUT(&y, "o");
	rcopy_expect_answer(&y, 3, ENOSPC);
	assert_memory_equal(info.base, "\0\0\0\0", 4);
	assert_int_equal(figures(y.t.s).exchanges, 0);
	PUT(&y, CLOSE);
	rcopy_expect_answer(&y, 2, 0);
	assert_int_equal(mem_mr_deregister(b->w->b.mem, info.key, NULL), 0);
}

static void
test_region_deregistered_during_a_copy(void **state)
{
	struct bench *b = *state;
	struct copy y;
	struct mem_mr_attr attr = {
		.pd = b->w->b.pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
		.length = 8,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(b->w->b.mem, &attr, &info, NULL), 0);
	y = open_copy(b, info.key);
	PUT(&y, OPEN);
	rcopy_expect_answer(&y, 1, 0);
	PUT(&y, WRITE5 "he");
	assert_int_equal(mem_mr_deregister(b->w->b.mem, info.key, NULL), 0);
	PUT(&y, "llo");
	rcopy_expect_answer(&y, 3, EIO);
	assert_int_equal(figures(y.t.s).exchanges, 0);
}

static void
test_one_writer_at_a_time(void **state)
{
	struct bench *b = *state;
	struct copy y = open_copy(b, b->w->b.key), z = rcopy_again(&y);

	PUT(&y, OPEN);
	rcopy_expect_answer(&y, 1, 0);
	memset(b->w->a.bytes + IN, 0, 64);
	PUT(&z, OPEN);
	rcopy_expect_answer(&z, 1, EBUSY);
	assert_int_equal(next_imm(&z.t), GOODBYE);
	expect_log(z.t.l, "prepare established disconnected");
	/* the other client disconnects without a message */
	cm_disconnect(b->w->a.cm, y.t.l->id, NULL, 0, b->w->now);
	exchange(b->w);
	z = rcopy_again(&y);
	PUT(&z, OPEN);
	rcopy_expect_answer(&z, 1, 0);
}

static void
test_requests_out_of_order(void **state)
{
	struct copy y = open_copy(*state, 0), z;

	PUT(&y, WRITE5); /* no file is open */
	rcopy_expect_answer(&y, 3, EINVAL);
	assert_int_equal(next_imm(&y.t), GOODBYE);
	z = rcopy_again(&y);
	PUT(&z, OPEN);
	rcopy_expect_answer(&z, 1, 0);
	PUT(&z, OPEN);
	rcopy_expect_answer(&z, 1, EBUSY);
	assert_int_equal(next_imm(&z.t), GOODBYE);
	z = rcopy_again(&y);
	PUT(&z, "\x00\x09\x10\x00\0\0\0\0\0\0\0\0\0\0\0\0");
	rcopy_expect_answer(&z, 9, EINVAL);
	assert_int_equal(next_imm(&z.t), GOODBYE);
	assert_int_equal(figures(y.t.s).violations, 0);
	expect_all_released(y.t.b);
}

static void
test_malformed_message_ends_the_connection(void **state)
{
	struct copy y = open_copy(*state, 0), z = rcopy_again(&y);

	PUT(&y, "\x01\x01\x10\x00\0\0\0\0\0\0\0\0\0\0\0\0"); /* version */
	expect_log(y.t.l, "prepare established disconnected");
	PUT(&z, "\x00\x01\x0f\x00\0\0\0\0\0\0\0\0\0\0\0\0"); /* length below that of a header */
	expect_log(z.t.l, "prepare established disconnected");
	assert_int_equal(figures(y.t.s).violations, 2);
	expect_all_released(y.t.b);
}

static void
test_region_is_checked(void **state)
{
	struct bench *b = *state;
	struct mem_mr_attr attr = {
		.pd = b->w->b.pd,
		.length = 8,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	char text[80];

	expect_refusal(b, &(struct svc_config){ .kind = "rcopy", .mr_key = 0x12345678 },
		"mr_key: there is no memory region 0x12345678");
	assert_int_equal(mem_mr_register(b->w->b.mem, &attr, &info, NULL), 0);
	snprintf(text, sizeof(text), "mr_key: 0x%08x has no access LOCAL_WRITE", info.key);
	expect_refusal(b, &(struct svc_config){ .kind = "rcopy", .mr_key = info.key }, text);
	assert_int_equal(mem_mr_deregister(b->w->b.mem, info.key, NULL), 0);
}

/* --- the client, and our server --- */

static struct service *
send_file(struct bench *b, uint64_t length)
{
	struct service *c = serve(b, &b->w->a,
		&(struct svc_config){ .kind = "rcopy", .length = length, .active = true });

	dial(b, c);
	return c;
}

static void
test_client_sends_a_file(void **state)
{
	struct bench *b = *state;
	struct node *n = &b->w->b;
	struct service *s = serve(b, n, &(struct svc_config){ .kind = "rcopy", .mr_key = n->key });
	struct service *c = send_file(b, 1000);
	unsigned int i;

	assert_int_equal(figures(c).exchanges, 1);
	assert_int_equal(figures(s).exchanges, 1);
	for (i = 0; i < 1000; i++)
		assert_int_equal(n->bytes[i], (uint8_t)i);
	assert_int_equal(figures(c).connections, 0); /* it left */
	assert_int_equal(figures(c).errors + figures(s).errors, 0);
	expect_all_released(b);
}

static void
test_client_sends_more_than_buffers_hold(void **state)
{
	struct bench *b = *state;
	struct mem_mr_attr attr = {
		.pd = b->w->b.pd,
		.access = MEM_ACCESS_LOCAL_WRITE,
		.length = 3000001,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
	struct mem_mr_info info;
	struct service *s, *c;
	unsigned int i;

	assert_int_equal(mem_mr_register(b->w->b.mem, &attr, &info, NULL), 0);
	s = serve(b, &b->w->b, &(struct svc_config){ .kind = "rcopy", .mr_key = info.key });
	c = send_file(b, 3000001);
	for (i = 0; i < 3000001; i++) {
		if (((const uint8_t *)info.base)[i] != (uint8_t)i)
			fail_msg("byte %u", i);
	}
	assert_int_equal(mem_mr_deregister(b->w->b.mem, info.key, NULL), 0);
	assert_int_equal(figures(c).exchanges, 1);
	assert_int_equal(figures(s).exchanges, 1);
	assert_int_equal(figures(s).violations, 0);
	expect_all_released(b);
}

static void
test_refused_client(void **state)
{
	struct bench *b = *state;
	struct node *n = &b->w->b;
	struct service *s = serve(b, n, &(struct svc_config){ .kind = "rcopy", .mr_key = n->key });
	struct service *c = send_file(b, WORLD_MEM + 1);

	assert_int_equal(figures(c).exchanges, 0);
	assert_int_equal(figures(c).mismatches, 1);
	assert_int_equal(figures(c).connections, 0);
	assert_int_equal(figures(s).exchanges, 0);
	expect_all_released(b);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_file_is_received_and_counted),
		T(test_requests_byte_by_byte),
		T(test_client_that_does_not_wait_for_the_answer_is_ended),
		T(test_file_is_kept_in_a_region_of_the_caller),
		T(test_file_larger_than_the_region_is_refused_at_its_end),
		T(test_region_deregistered_during_a_copy),
		T(test_one_writer_at_a_time),
		T(test_requests_out_of_order),
		T(test_malformed_message_ends_the_connection),
		T(test_region_is_checked),
		T(test_client_sends_a_file),
		T(test_client_sends_more_than_buffers_hold),
		T(test_refused_client),
	};

	return cmocka_run_group_tests_name("svc: rcopy", tests, NULL, NULL);
}
