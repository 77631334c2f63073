/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP of the vendor classes (liveness 1, sa-multipacket B): the class header is 4 bytes, what fits
 * a packet goes without RMPP, strangers get one segment. a answers, b asks or is played.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define SYSSTAT 0x33
#define AREA    216u /* bytes from 40 on */

/* --- a's agent: streams, or answers, as the test has set --- */

static enum mad_outcome
vendor_request(void *arg, struct mad_request *req)
{
	struct harness *h = arg;

	h->requests++;
	memcpy(h->request, req->mad, MAD_LEN);
	if (req->body != NULL) {
		free(h->body);
		h->body_len = mad_body_length(req->body);
		h->body = malloc(h->body_len + 1);
		assert_non_null(h->body);
		mad_body_read(req->body, 0, h->body, h->body_len);
	}
	memcpy(req->reply + 36, req->mad + 36, 4);
	if (h->outcome == MAD_STREAM) {
		h->handle = mad_later(req);
		assert_int_not_equal(h->handle, 0);
		req->source = pattern_source(h, h->table_bytes);
	}
	return h->outcome;
}

static const struct mad_method methods[] = {
	{ MAD_GET, MAD_METHOD_LATER | MAD_METHOD_MULTI_REQUEST },
	{ 0, 0 },
};

static struct harness *
vendor_create(bool scripted, uint64_t bytes)
{
	struct harness *h = harness_create(&(struct harness_config){ .scripted = scripted });
	const struct mad_agent agent = { SYSSTAT, 1, "vendor", MAD_RMPP, 40, methods,
		vendor_request, h };

	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	h->outcome = MAD_STREAM;
	h->table_bytes = bytes;
	return h;
}

/* Get, OUI 0x001405, RMPP header zero */
static uint8_t *
vendor_get(const struct harness *h, uint8_t *mad)
{
	memset(mad, 0, MAD_LEN);
	mad[0] = 1;
	mad[1] = SYSSTAT;
	mad[2] = 1;
	mad[3] = MAD_GET;
	put_be64(mad + 8, h->tid);
	put_be16(mad + 16, 0x0012);
	put_be32(mad + 36, 0x00001405);
	return mad;
}

static const uint8_t *
rmpp(const struct harness *h, uint8_t *mad, uint8_t type, uint8_t flags, uint32_t segment,
	uint32_t length)
{
	vendor_get(h, mad);
	mad[24] = 1;
	mad[25] = type;
	mad[26] = 0xF8 | 1 | flags;
	put_be32(mad + 28, segment);
	put_be32(mad + 32, length);
	return mad;
}

#define ack(h, segment, window_end)                                                                \
	say(h, rmpp(h, (uint8_t[MAD_LEN]){ 0 }, 2, 0, segment, window_end))

static void
vendor_call(struct harness *h, uint64_t request_bytes)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	h->done = 0;
	h->taken = 0;
	call_init(&h->b, &c, mad, MAD_GET, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE);
	vendor_get(h, mad);
	c.protocol = MAD_RMPP;
	c.data_offset = 40;
	if (request_bytes != 0) {
		c.flags |= MAD_METHOD_MULTI_REQUEST;
		c.source = pattern_source(h, request_bytes);
	}
	assert_int_equal(mad_call(h->b.w, &c, h->now, NULL), 0);
}

static void
expect_pattern(const uint8_t *data, uint64_t offset, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		assert_int_equal(data[i], pattern(offset + i));
}

/* RMPP and class header of a segment, byte for byte, and its data */
static void
expect_segment(const uint8_t *mad, uint8_t method, uint8_t flags, uint8_t n, uint16_t payload,
	uint32_t len)
{
	const uint8_t want[16] = { 1, 1, 0xF9 | flags, 0, 0, 0, 0, n, 0, 0, payload >> 8,
		payload & 0xFF, 0x00, 0x00, 0x14, 0x05 };
	uint32_t i;

	assert_int_equal(mad[1], SYSSTAT);
	assert_int_equal(mad[3], method);
	assert_memory_equal(mad + 24, want, sizeof(want));
	expect_pattern(mad + 40, (uint64_t)(n - 1) * AREA, len);
	for (i = 40 + len; i < MAD_LEN; i++)
		assert_int_equal(mad[i], 0);
}

/* --- bytes --- */

/* B4: 4 bytes of class header in every segment; first: 3 x 4 + 500, last: 4 + 68 */
static void
test_class_header_is_counted(void **state)
{
	struct harness *h = vendor_create(false, 500);

	(void)state;
	vendor_call(h, 500);
	assert_true(harness_run(h, 20000 * MS));
	expect_segment(next_sent(&h->b), 0x01, 2, 1, 512, 216);
	expect_segment(next_sent(&h->b), 0x01, 0, 2, 0, 216);
	expect_segment(next_sent(&h->b), 0x01, 4, 3, 72, 68);
	next_sent(&h->a); /* ACK 1 */
	next_sent(&h->a); /* ACK 3 */
	expect_segment(next_sent(&h->a), 0x81, 2, 1, 512, 216);
	expect_segment(next_sent(&h->a), 0x81, 0, 2, 0, 216);
	expect_segment(next_sent(&h->a), 0x81, 4, 3, 72, 68);
	assert_int_equal(h->requests, 1);
	assert_int_equal(h->body_len, 500);
	expect_pattern(h->body, 0, 500);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->taken, 500);
	assert_int_equal(get_be32(h->result_mad + 36), 0x00001405);
	expect_clean(h);
	harness_destroy(h);
}

/* A Last segment says 4 at least and 220 at most: 119 */
static void
test_length_of_the_last_segment(void **state)
{
	static const struct {
		uint32_t length;
		uint64_t bytes;
		bool good;
	} cases[] = {
		{ 0, 0, false },
		{ 3, 0, false },
		{ 4, 0, true },
		{ 5, 1, true },
		{ 220, 216, true },
		{ 221, 0, false },
	};
	uint8_t mad[MAD_LEN];
	struct harness *h;
	const uint8_t *out;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		h = vendor_create(true, 0);
		h->outcome = MAD_SILENT;
		say(h, rmpp(h, mad, 1, 2 | 4, 1, cases[i].length));
		assert_int_equal(h->requests, cases[i].good);
		if (cases[i].good) {
			assert_int_equal(h->body_len, cases[i].bytes);
		} else {
			out = next_sent(&h->a);
			assert_int_equal(out[25], 4);
			assert_int_equal(out[27], 119);
		}
		harness_destroy(h);
	}
}

/* A broken packet of no session: headers come back, class header included, data do not */
static void
test_abort_returns_no_data(void **state)
{
	struct harness *h = vendor_create(true, 0);
	uint8_t mad[MAD_LEN];
	const uint8_t *out;
	unsigned int i;

	(void)state;
	rmpp(h, mad, 7, 0, 1, 44);
	memset(mad + 40, 0x77, 216);
	say(h, mad);
	out = next_sent(&h->a);
	assert_int_equal(out[25], 4);
	assert_int_equal(out[27], 121);
	assert_int_equal(get_be32(out + 36), 0x00001405);
	for (i = 40; i < MAD_LEN; i++)
		assert_int_equal(out[i], 0);
	harness_destroy(h);
}

/* --- without RMPP --- */

/* A stream of up to 216 bytes answers a plain request as a plain packet; repeats get it again */
static void
test_plain_answer_to_a_plain_request(void **state)
{
	static const uint8_t zero[12];
	static const uint32_t lengths[] = { 0, 1, 215, 216 };
	uint8_t mad[MAD_LEN];
	const uint8_t *out;
	unsigned int i, repeat;

	(void)state;
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct harness *h = vendor_create(true, lengths[i]);

		for (repeat = 0; repeat < 2; repeat++) {
			assert_int_equal(say(h, vendor_get(h, mad)), VERDICT_DATAGRAM);
			out = next_sent(&h->a);
			assert_int_equal(out[3], 0x81);
			assert_int_equal(get_be16(out + 4), 0);
			assert_memory_equal(out + 24, zero, 12);
			assert_int_equal(get_be32(out + 36), 0x00001405);
			expect_pattern(out + 40, 0, lengths[i]);
		}
		assert_int_equal(h->requests, 1);
		assert_int_equal(h->released, 1);
		expect_silence(&h->a);
		pass(h, 1000 * MS);
		expect_clean(h);
		harness_destroy(h);
	}
}

/* A byte more, and it is RMPP even so (ibsysstat); one packet of RMPP is answered by RMPP */
static void
test_rmpp_answers(void **state)
{
	struct harness *h = vendor_create(true, 217);
	uint8_t mad[MAD_LEN];

	(void)state;
	say(h, vendor_get(h, mad));
	expect_segment(next_sent(&h->a), 0x81, 2, 1, 4 * 2 + 217, 216);
	ack(h, 1, 17);
	expect_segment(next_sent(&h->a), 0x81, 4, 2, 4 + 1, 1);
	harness_destroy(h);
	h = vendor_create(true, 10);
	say(h, rmpp(h, mad, 1, 2 | 4, 1, 4 + 7));
	next_sent(&h->a); /* ACK 1 */
	expect_segment(next_sent(&h->a), 0x81, 2 | 4, 1, 4 + 10, 10);
	harness_destroy(h);
}

/* The source's data are gone */
static void
test_plain_answer_without_data(void **state)
{
	struct harness *h = vendor_create(true, 100);
	uint8_t mad[MAD_LEN];
	const uint8_t *out;
	unsigned int i;

	(void)state;
	h->stale_at = 1;
	say(h, vendor_get(h, mad));
	out = next_sent(&h->a);
	assert_int_equal(get_be16(out + 4), MAD_STATUS_BUSY);
	for (i = 40; i < MAD_LEN; i++)
		assert_int_equal(out[i], 0);
	assert_int_equal(h->released, 1);
	harness_destroy(h);
}

/* May come in many packets, but this one does not: no session */
static void
test_single_request_needs_no_session(void **state)
{
	struct harness *h = vendor_create(true, 0);
	uint8_t mad[MAD_LEN];

	(void)state;
	h->outcome = MAD_ANSWER;
	say(h, vendor_get(h, mad));
	assert_int_equal(next_sent(&h->a)[3], 0x81);
	assert_int_equal(counters_of(&h->a).sessions_opened, 0);
	harness_destroy(h);
}

/* b's call: a plain answer is its result, though it would take a stream */
static void
test_call_answered_by_a_plain_packet(void **state)
{
	struct harness *h = vendor_create(false, 50);

	(void)state;
	vendor_call(h, 0);
	assert_true(harness_run(h, 20000 * MS));
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->taken, 0);
	expect_pattern(h->result_mad + 40, 0, 50);
	expect_clean(h);
	harness_destroy(h);
}

/* --- no reflection --- */

struct told {
	unsigned int first, later, ends;
};

static struct told
what_was_sent(struct harness *h)
{
	struct told t = { 0 };
	const uint8_t *mad;

	while (h->a.seen < h->a.sent) {
		mad = next_sent(&h->a);
		if (mad[25] != 1)
			t.ends++;
		else if (get_be32(mad + 28) == 1)
			t.first++;
		else
			t.later++;
	}
	return t;
}

/* One small packet under another's address: segment 1 at once, then B5's seven retries and 126 */
static void
test_stranger_gets_one_segment(void **state)
{
	struct harness *h = vendor_create(true, 100000);
	uint8_t mad[MAD_LEN];
	struct told t;
	unsigned int i;

	(void)state;
	say(h, vendor_get(h, mad));
	pass(h, RESPONSE_TIMEOUT - 1);
	t = what_was_sent(h);
	assert_int_equal(t.first, 1);
	assert_int_equal(t.later, 0);
	for (i = 0; i < 100; i++)
		pass(h, 100 * MS);
	t = what_was_sent(h);
	assert_int_equal(t.first, 2);
	assert_int_equal(t.later + t.ends, 0);
	expect_clean(h);
	harness_destroy(h);
}

/* no answer larger than its request: one more for each time it is asked again */
static void
test_stranger_asks_again(void **state)
{
	struct harness *h = vendor_create(true, 100000);
	uint8_t mad[MAD_LEN];
	struct told t;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		say(h, vendor_get(h, mad));
		pass(h, RESPONSE_TIMEOUT / 4);
		t = what_was_sent(h);
		assert_int_equal(t.first, 1);
		assert_int_equal(t.later + t.ends, 0);
	}
	assert_int_equal(h->requests, 1);
	harness_destroy(h);
}

/* one segment as a whole request: our ACK has not been heard yet */
static void
test_single_segment_shows_nothing(void **state)
{
	struct harness *h = vendor_create(true, 100000);
	uint8_t mad[MAD_LEN];
	struct told t;
	unsigned int i;

	(void)state;
	say(h, rmpp(h, mad, 1, 2 | 4, 1, 220));
	for (i = 0; i < 100; i++)
		pass(h, 100 * MS);
	t = what_was_sent(h);
	assert_int_equal(t.first, 2);
	assert_int_equal(t.later, 0);
	assert_int_equal(t.ends, 1); /* the ACK */
	expect_clean(h);
	harness_destroy(h);
}

/* The SA's answers are no exception. */
static void
test_stranger_gets_one_segment_of_the_sa(void **state)
{
	struct harness *h = vendor_create(true, 100000);
	uint8_t mad[MAD_LEN];
	struct told t;
	unsigned int i;

	(void)state;
	vendor_get(h, mad);
	mad[1] = MAD_CLASS_SUBN_ADM;
	mad[2] = 2;
	mad[3] = SA_GET_TABLE;
	say(h, mad);
	for (i = 0; i < 1000; i++)
		pass(h, 10 * MS);
	t = what_was_sent(h);
	assert_int_equal(t.later, 0);
	assert_int_equal(t.first, 3);
	assert_int_equal(t.ends, 0);
	assert_true(counters_of(&h->a).unproven > 0);
	harness_destroy(h);
}

/* His first ACK opens the window he names, no more */
static void
test_ack_opens_the_window(void **state)
{
	struct harness *h = vendor_create(true, 100000);
	uint8_t mad[MAD_LEN];
	struct told t;

	(void)state;
	say(h, vendor_get(h, mad));
	ack(h, 1, 5);
	t = what_was_sent(h);
	assert_int_equal(t.first, 1);
	assert_int_equal(t.later, 4);
	harness_destroy(h);
}

/* --- loss --- */

static void
vendor_one_seed(uint64_t seed, const struct harness_wire *wire, uint64_t request_bytes,
	unsigned int *ok)
{
	struct harness *h = vendor_create(false, seed * 7919 % 60000);

	h->wire = *wire;
	h->wire.rng = seed;
	vendor_call(h, request_bytes);
	assert_true(harness_run(h, 200000 * MS));
	assert_int_equal(h->done, 1);
	if (h->result.end == MAD_END_OK) {
		(*ok)++;
		if (request_bytes != 0 || h->table_bytes > AREA)
			assert_int_equal(h->taken, h->table_bytes);
		assert_int_equal(h->requests, 1);
		if (request_bytes != 0) {
			assert_int_equal(h->body_len, request_bytes);
			expect_pattern(h->body, 0, request_bytes);
		}
	}
	expect_clean(h);
	harness_destroy(h);
}

static void
vendor_many_seeds(const struct harness_wire *wire, unsigned int at_least)
{
	unsigned int ok = 0, seed;

	for (seed = 1; seed <= 50; seed++) {
		vendor_one_seed(seed, wire, 0, &ok);
		vendor_one_seed(seed, wire, seed * 1237, &ok);
	}
	if (ok < at_least)
		fail_msg("%u of 100 completed", ok);
}

/* Both roles with data of many segments, over a wire that does everything a wire may do */
static void
test_five_percent_of_everything(void **state)
{
	(void)state;
	vendor_many_seeds(&(struct harness_wire){ 50, 50, 50, 50, 20 * US, 0 }, 100);
}

static void
test_twenty_percent_lost(void **state)
{
	(void)state;
	vendor_many_seeds(&(struct harness_wire){ 200, 0, 0, 0, 20 * US, 0 }, 90);
}

/* A limited number of ABORTs waits for the sink; a packet whose ABORT finds no place is refused. */
static void
test_aborts_wait_for_the_sink(void **state)
{
	struct harness *h = vendor_create(true, 1000);
	uint8_t mad[MAD_LEN];
	unsigned int i;

	*state = h;
	h->a.room = 0;
	for (i = 0; i < 65; i++) {
		h->tid = i;
		rmpp(h, mad, 9, 0, 1, 0); /* there is no type 9 */
		assert_int_equal(say(h, mad), i < 64 ? VERDICT_DATAGRAM : VERDICT_MAD_REFUSED);
	}
	h->a.room = 1000;
	transmit(&h->a);
	assert_int_equal(h->a.sent, 64);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_class_header_is_counted),
		cmocka_unit_test_teardown(test_aborts_wait_for_the_sink, harness_teardown),
		cmocka_unit_test(test_length_of_the_last_segment),
		cmocka_unit_test(test_abort_returns_no_data),
		cmocka_unit_test(test_plain_answer_to_a_plain_request),
		cmocka_unit_test(test_rmpp_answers),
		cmocka_unit_test(test_plain_answer_without_data),
		cmocka_unit_test(test_single_request_needs_no_session),
		cmocka_unit_test(test_call_answered_by_a_plain_packet),
		cmocka_unit_test(test_stranger_gets_one_segment),
		cmocka_unit_test(test_stranger_asks_again),
		cmocka_unit_test(test_single_segment_shows_nothing),
		cmocka_unit_test(test_stranger_gets_one_segment_of_the_sa),
		cmocka_unit_test(test_ack_opens_the_window),
		cmocka_unit_test(test_five_percent_of_everything),
		cmocka_unit_test(test_twenty_percent_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
