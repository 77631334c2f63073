/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * perftest's exchange, and recognition of the client's program by its traffic. Lines and bytes were
 * recorded between client and server of Debian's version 4.5+0.17 on two soft-RoCE adapters.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "svc/perftest_exchange.h"
#include "svc/perftest_send.h"
#include "svc/perftest_target.h"
#include "svc/perftest_write.h"

#define WRITE_BW                                                                                   \
	"0000:0001:000011:5d0108:000003fd:00007f152ac5f000:"                                       \
	"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:63:00:02:00000000:"
#define READ_BW                                                                                    \
	"0000:0080:000014:b99cc7:00000405:00007fde0b549000:"                                       \
	"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:63:00:02:00000000:"
/* perftest's KEY_PRINT_FMT with LID 5 and QPN 0x123 */
#define NO_GID "0005:0010:000123:b99cc7:00000405:00007fde0b549000:00000000"

static const uint8_t gid[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 99, [15] = 2 };

/* test/data/captures/write_bw_cm.pcap, packet 31 */
static const uint8_t bytes[PERFTEST_BYTES] = { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x21, 0, 0xd3, 0xe9,
	0x98, 0, 0, 0x16, 0x66, 0, 0, 0, 0, 0, 0, 0x55, 0xd1, 0x6c, 0x69, 0xf3, 0x88, 0, 0, 0, 0, 0,
	0, 0, 0, 0, 0, 0xff, 0xff, 0x0a, 0x63, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1 };

/* --- a queue pair as text and as bytes --- */

static void
test_text_is_read(void **state)
{
	struct perftest_dest d;

	(void)state;
	assert_int_equal(sizeof(WRITE_BW), PERFTEST_TEXT);
	assert_true(perftest_text_read((const uint8_t *)WRITE_BW, PERFTEST_TEXT, &d));
	assert_int_equal(d.lid, 0);
	assert_int_equal(d.out_reads, 1);
	assert_int_equal(d.qpn, 0x11);
	assert_int_equal(d.psn, 0x5d0108);
	assert_int_equal(d.rkey, 0x3fd);
	assert_true(d.va == 0x7f152ac5f000);
	assert_true(d.has_gid);
	assert_memory_equal(d.gid.raw, gid, 16);
	assert_true(perftest_text_read((const uint8_t *)READ_BW, PERFTEST_TEXT, &d));
	assert_int_equal(d.out_reads, 128);
}

static void
test_text_without_a_gid_is_read(void **state)
{
	struct perftest_dest d;

	(void)state;
	assert_int_equal(sizeof(NO_GID), PERFTEST_TEXT_LID);
	assert_int_equal(perftest_text_length((const uint8_t *)NO_GID, sizeof(NO_GID)),
		PERFTEST_TEXT_LID);
	assert_true(perftest_text_read((const uint8_t *)NO_GID, PERFTEST_TEXT_LID, &d));
	assert_int_equal(d.lid, 5);
	assert_int_equal(d.qpn, 0x123);
	assert_false(d.has_gid);
}

static void
test_written_text_equals_the_read_one(void **state)
{
	static const char *const lines[] = { WRITE_BW, READ_BW, NO_GID };
	uint8_t out[PERFTEST_TEXT];
	struct perftest_dest d;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		size_t len = strlen(lines[i]) + 1;

		assert_true(perftest_text_read((const uint8_t *)lines[i], len, &d));
		assert_int_equal(perftest_text_write(&d, out), len);
		assert_memory_equal(out, lines[i], len);
	}
}

/* Every wrong byte of the text is detected. */
static void
test_text_is_checked(void **state)
{
	uint8_t line[PERFTEST_TEXT];
	struct perftest_dest d;
	unsigned int i;

	(void)state;
	for (i = 0; i < 50 + 48; i++) {
		memcpy(line, WRITE_BW, sizeof(line));
		line[i] = line[i] == ':' ? '0' : ':';
		assert_false(perftest_text_read(line, PERFTEST_TEXT, &d));
	}
}

static void
test_bytes_are_read_and_written(void **state)
{
	uint8_t out[PERFTEST_BYTES];
	struct perftest_dest d;

	(void)state;
	perftest_bytes_read(bytes, &d);
	assert_int_equal(d.out_reads, 1);
	assert_int_equal(d.qpn, 0x21);
	assert_int_equal(d.psn, 0xd3e998);
	assert_int_equal(d.rkey, 0x1666);
	assert_true(d.va == 0x55d16c69f388);
	assert_true(d.has_gid);
	assert_memory_equal(d.gid.raw, gid, 16);
	perftest_bytes_write(&d, out);
	/* the last four bytes, an index, have no meaning for the receiver */
	assert_memory_equal(out, bytes, PERFTEST_BYTES - 4);
}

/* --- the exchange --- */

struct talk {
	struct perftest_exchange x;
	unsigned int dests;
	uint32_t last_qpn;
	int refuse; /* what on_dest() returns */
	uint8_t answer[PERFTEST_MESSAGE_MAX];
};

static int
on_dest(void *arg, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	struct talk *t = arg;

	t->dests++;
	t->last_qpn = theirs->qpn;
	*ours = (struct perftest_dest){
		.out_reads = 16,
		.qpn = 0xabcdef,
		.psn = 0x123456,
		.rkey = 0xdeadbeef,
		.va = 0x100001000,
	};
	memcpy(ours->gid.raw, gid, 16);
	return t->refuse;
}

static int
perftest_setup(void **state)
{
	static struct talk t;

	t = (struct talk){ .x = { .stream = true, .mtu = 1024, .dest = on_dest, .arg = &t } };
	*state = &t;
	return 0;
}

/* Pass a message byte by byte. @return result of the byte that completes it */
static int
svc_perftest_say(struct talk *t, const void *message, size_t len)
{
	size_t n;

	for (n = 0; n < len; n++)
		assert_int_equal(perftest_frame(&t->x, message, n), 0);
	assert_int_equal(perftest_frame(&t->x, message, len), len);
	return perftest_answer(&t->x, message, len, t->answer);
}

static void
svc_perftest_greet(struct talk *t, const char *their_mtu)
{
	static const uint8_t version[16] = "6.06";
	static const uint8_t cycle[4] = { 0, 0, 0x10, 0 }, line[4] = { 0, 0, 0, 0x40 };

	assert_int_equal(svc_perftest_say(t, version, 16), 16);
	assert_memory_equal(t->answer, version, 16);
	assert_int_equal(svc_perftest_say(t, cycle, 4), 4);
	assert_memory_equal(t->answer, cycle, 4);
	assert_int_equal(svc_perftest_say(t, line, 4), 4);
	assert_memory_equal(t->answer, line, 4);
	assert_int_equal(svc_perftest_say(t, their_mtu, 2), 2);
}

#define OURS                                                                                       \
	"0000:0010:abcdef:123456:deadbeef:0000000100001000:"                                       \
	"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:63:00:02:00000000:"

/* The complete exchange of ib_write_bw -n 20. */
static void
test_exchange_of_ib_write_bw(void **state)
{
	static const uint8_t numbers[5][8] = { { 0, 0, 0, 0, 0, 1, 0, 0 }, { [7] = 20 },
		{ '@', 'H', 0xb0, 0xb1, 0xd8, 0x9a, 7, '6' },
		{ '@', ',', 11, 'a', 0xc9, 'H', 0xcd, 13 },
		{ '?', '-', 'h', ' ', 0xac, 0xc9, 0xf8, 'J' } };
	struct talk *t = *state;
	unsigned int i;

	svc_perftest_greet(t, "3");
	assert_memory_equal(t->answer, "3", 2);
	for (i = 0; i < 4; i++) {
		assert_int_equal(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT), PERFTEST_TEXT);
		assert_memory_equal(t->answer, OURS, PERFTEST_TEXT);
	}
	assert_int_equal(t->last_qpn, 0x11);
	for (i = 0; i < 5; i++)
		assert_int_equal(svc_perftest_say(t, numbers[i], 8), 8);
	assert_int_equal(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT), PERFTEST_TEXT);
	assert_int_equal(t->dests, 5);
	assert_int_equal(svc_perftest_say(t, "done", 5), 5);
	assert_memory_equal(t->answer, "done", 5);
	assert_int_equal(t->x.step, PERFTEST_DONE);
	assert_true(perftest_answer(&t->x, (const uint8_t *)"x", 1, t->answer) < 0);
}

static void
test_smaller_mtu_is_used(void **state)
{
	struct talk *t = *state;

	svc_perftest_greet(t, "5");
	assert_memory_equal(t->answer, "3", 2);
	assert_int_equal(t->x.mtu, 1024);
	perftest_setup(state);
	t->x.mtu = 4096;
	svc_perftest_greet(t, "2");
	assert_memory_equal(t->answer, "5", 2);
	assert_int_equal(t->x.mtu, 512);
}

/* write_bw_cm.pcap: the MTU is two bytes and padding, QPs are binary, the first one is empty. */
static void
test_exchange_over_a_connection(void **state)
{
	static const uint8_t version[16] = "6.06", cycle[4] = { 0, 0, 0x10, 0 }, mtu[4] = "3";
	static const uint8_t none[PERFTEST_BYTES], number[8] = { [6] = 0x13, [7] = 0x88 };
	struct talk *t = *state;
	unsigned int i;

	t->x.stream = false;
	assert_int_equal(perftest_answer(&t->x, version, 16, t->answer), 16);
	assert_int_equal(perftest_answer(&t->x, cycle, 4, t->answer), 4);
	assert_int_equal(perftest_answer(&t->x, cycle, 4, t->answer), 4);
	assert_int_equal(perftest_answer(&t->x, mtu, 4, t->answer), 4);
	assert_memory_equal(t->answer, "3\0\0", 4);
	assert_int_equal(perftest_answer(&t->x, none, sizeof(none), t->answer), PERFTEST_BYTES);
	assert_int_equal(t->last_qpn, 0);
	assert_int_equal(perftest_answer(&t->x, bytes, sizeof(bytes), t->answer), PERFTEST_BYTES);
	assert_int_equal(t->last_qpn, 0x21);
	for (i = 0; i < 5; i++)
		assert_int_equal(perftest_answer(&t->x, number, 8, t->answer), 8);
	assert_int_equal(perftest_answer(&t->x, bytes, sizeof(bytes), t->answer), PERFTEST_BYTES);
	assert_true(perftest_answer(&t->x, bytes, 55, t->answer) < 0);
}

static void
test_malformed_messages_are_refused(void **state)
{
	static const uint8_t old[16] = "5.69", letters[16] = "6.x6",
			     endless[16] = "6.06060606060606";
	struct talk *t = *state;
	uint8_t line[PERFTEST_TEXT] = WRITE_BW;

	assert_true(perftest_answer(&t->x, old, 16, t->answer) < 0);
	assert_true(perftest_answer(&t->x, letters, 16, t->answer) < 0);
	assert_false(perftest_is_version(endless, 16));
	svc_perftest_greet(t, "3");
	assert_int_equal(perftest_frame(&t->x, (const uint8_t *)"GET / HTTP", 10), -1);
	assert_int_equal(perftest_frame(&t->x, (const uint8_t *)"dome", 5), -1);
	line[20] = 'X';
	assert_true(perftest_answer(&t->x, line, sizeof(line), t->answer) < 0);
	t->refuse = -EPERM;
	assert_true(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT) < 0);
}

/* Our queue pair is not known yet: the same message is answered later. */
static void
test_answer_comes_later(void **state)
{
	struct talk *t = *state;

	svc_perftest_greet(t, "3");
	t->refuse = -EAGAIN;
	assert_int_equal(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT), 0);
	assert_int_equal(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT), 0);
	t->refuse = 0;
	assert_int_equal(svc_perftest_say(t, WRITE_BW, PERFTEST_TEXT), PERFTEST_TEXT);
	assert_memory_equal(t->answer, OURS, PERFTEST_TEXT);
}

static void
test_wrong_mtus_are_refused(void **state)
{
	static const char *const wrong[] = { "0", "6", "x" };
	struct talk *t = *state;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		t->x.step = PERFTEST_MTU;
		assert_true(svc_perftest_say(t, wrong[i], 2) < 0);
	}
}

/* --- does the client wait for answers? --- */

#define PATIENCE 200

static void
test_pingpong_is_answered(void **state)
{
	struct perftest_send p = { 0 };
	uint64_t i, now = 1000;

	(void)state;
	assert_false(perftest_send_answers(&p, 0, false, now, PATIENCE));
	assert_false(perftest_send_answers(&p, 0, true, now, PATIENCE));
	assert_false(perftest_send_answers(&p, 1, false, now, PATIENCE));
	assert_false(perftest_send_answers(&p, 1, false, now + 199, PATIENCE));
	assert_true(perftest_send_answers(&p, 1, false, now + 200, PATIENCE));
	assert_false(perftest_send_answers(&p, 1, false, now + 400, PATIENCE));
	for (i = 2; i < 100; i++) { /* answered at once; the last answer is not acknowledged yet */
		p.acknowledged = i - 2;
		assert_true(perftest_send_answers(&p, i, false, now + 500, PATIENCE));
	}
	assert_int_equal(p.mode, PERFTEST_LATENCY);
}

static void
test_messages_that_follow_at_once_are_not_answered(void **state)
{
	struct perftest_send two = { 0 }, part = { 0 };

	(void)state;
	assert_false(perftest_send_answers(&two, 2, false, 1000, PATIENCE));
	assert_int_equal(two.mode, PERFTEST_BANDWIDTH);
	assert_false(perftest_send_answers(&part, 1, false, 1000, PATIENCE));
	assert_false(perftest_send_answers(&part, 1, true, 1100, PATIENCE));
	assert_int_equal(part.mode, PERFTEST_BANDWIDTH);
	assert_false(perftest_send_answers(&part, 1, false, 2000, PATIENCE));
}

/* The first message was alone by chance: answers end when the client is ahead. */
static void
test_answers_end_when_the_client_is_ahead(void **state)
{
	struct perftest_send ahead = { 0 }, deaf = { 0 };
	uint64_t i;

	(void)state;
	assert_false(perftest_send_answers(&ahead, 1, false, 1000, PATIENCE));
	assert_true(perftest_send_answers(&ahead, 1, false, 2000, PATIENCE));
	assert_false(perftest_send_answers(&ahead, 3, false, 2000, PATIENCE));
	assert_int_equal(ahead.mode, PERFTEST_BANDWIDTH);

	assert_false(perftest_send_answers(&deaf, 1, false, 1000, PATIENCE));
	for (i = 1; i <= 4; i++)
		assert_true(perftest_send_answers(&deaf, i, false, 2000, PATIENCE));
	assert_false(perftest_send_answers(&deaf, 5, false, 2000, PATIENCE));
	assert_int_equal(deaf.mode, PERFTEST_BANDWIDTH);
}

/* --- both sides write in turn --- */

static void
perftest_expect_answer(struct perftest_write *p, uint64_t writes, uint64_t bytes, uint64_t length,
	uint8_t last, bool prepare)
{
	struct perftest_write_answer a;

	assert_true(perftest_write_answers(p, writes, bytes, false, &a));
	assert_int_equal(a.length, length);
	assert_int_equal(a.last, last);
	assert_int_equal(a.prepare, prepare);
	assert_false(perftest_write_answers(p, writes, bytes, false, &a));
}

/*
 * ib_write_lat: the server's first Write has the number 1, its answer to the client's first has 2.
 */
static void
test_writes_are_numbered(void **state)
{
	struct perftest_write p = { .begun = true };
	unsigned int i;

	(void)state;
	for (i = 1; i <= 300; i++)
		perftest_expect_answer(&p, i, 2 * i, 2, (uint8_t)(i + 1), false);
}

/* ib_write_lat -a -n 3 */
static void
test_each_size_counts_from_one(void **state)
{
	struct perftest_write p = { .begun = true };
	uint64_t writes = 0, bytes = 0, size;
	uint8_t n;

	(void)state;
	for (size = 2; size <= PERFTEST_WRITE_LARGEST; size *= 2) {
		for (n = 1; n <= 3; n++)
			perftest_expect_answer(&p, ++writes, bytes += size, size, (uint8_t)(n + 1),
				size == 4 && n == 1);
	}
}

static void
test_writes_that_do_not_wait_are_not_answered(void **state)
{
	struct perftest_write p = { .begun = true }, part = p, never = { 0 };
	struct perftest_write_answer a;

	(void)state;
	perftest_expect_answer(&p, 1, 65536, 65536, 2, false);
	assert_false(perftest_write_answers(&p, 3, 3 * 65536, false, &a));
	assert_false(perftest_write_answers(&p, 4, 4 * 65536, false, &a));
	assert_false(perftest_write_answers(&never, 1, 2, false, &a));
	assert_false(perftest_write_answers(&part, 0, 1024, true, &a));
	assert_false(perftest_write_answers(&part, 1, 65536 + 1024, true, &a));
	assert_false(perftest_write_answers(&part, 2, 2 * 65536, false, &a));
}

/* --- the client describes the memory of another connection --- */

static void
test_targets_are_noted_and_found(void **state)
{
	static struct perftest_targets t[2];
	struct perftest_dest d;
	struct perftest_target found;
	union gid other = { .raw = { 1 } };
	unsigned int i;

	(void)state;
	perftest_bytes_read(bytes, &d);
	assert_true(perftest_target_note(&t[1], &d));
	assert_true(perftest_target_note(&t[1], &d));
	assert_int_equal(t[1].count, 1);
	assert_true(perftest_target_find(t, 2, &d.gid, 0x21, &found));
	assert_int_equal(found.told, 2);
	assert_true(found.theirs.va == 0x55d16c69f388);
	assert_false(perftest_target_find(t, 2, &d.gid, 0x22, &found));
	assert_false(perftest_target_find(t, 2, &other, 0x21, &found));
	perftest_targets_clear(&t[1]);
	assert_false(perftest_target_find(t, 2, &d.gid, 0x21, &found));
	for (i = 0; i < PERFTEST_TARGETS; i++) {
		d.qpn = 100 + i;
		assert_true(perftest_target_note(&t[0], &d));
	}
	d.qpn = 99;
	assert_false(perftest_target_note(&t[0], &d));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_read),
		cmocka_unit_test(test_text_without_a_gid_is_read),
		cmocka_unit_test(test_written_text_equals_the_read_one),
		cmocka_unit_test(test_text_is_checked),
		cmocka_unit_test(test_bytes_are_read_and_written),
		cmocka_unit_test_setup(test_exchange_of_ib_write_bw, perftest_setup),
		cmocka_unit_test_setup(test_smaller_mtu_is_used, perftest_setup),
		cmocka_unit_test_setup(test_exchange_over_a_connection, perftest_setup),
		cmocka_unit_test_setup(test_malformed_messages_are_refused, perftest_setup),
		cmocka_unit_test_setup(test_answer_comes_later, perftest_setup),
		cmocka_unit_test_setup(test_wrong_mtus_are_refused, perftest_setup),
		cmocka_unit_test(test_pingpong_is_answered),
		cmocka_unit_test(test_messages_that_follow_at_once_are_not_answered),
		cmocka_unit_test(test_answers_end_when_the_client_is_ahead),
		cmocka_unit_test(test_writes_are_numbered),
		cmocka_unit_test(test_each_size_counts_from_one),
		cmocka_unit_test(test_writes_that_do_not_wait_are_not_answered),
		cmocka_unit_test(test_targets_are_noted_and_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
