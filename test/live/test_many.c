/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Multi-packet requests and answers (liveness 2, 3; sa-multipacket B): RMPP echo in both
 * directions, ibsysstat's long answer, and anti-amplification.
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define MIB  (1u << 20)
#define MANY (MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE)

static uint8_t *
patterned(uint64_t len)
{
	uint8_t *data = malloc(len + 1);
	uint64_t i;

	assert_non_null(data);
	for (i = 0; i < len; i++)
		data[i] = pattern(i);
	return data;
}

/* A multi-packet request, even if it is short: type, Identifier, Sequence, data. */
static void
ask_many(struct pair *p, uint8_t type, uint64_t len)
{
	uint8_t mad[MAD_LEN], *body = patterned(8 + len);

	live_mad(mad, MAD_GET, type);
	memcpy(body, mad + 40, 8);
	ask_for(p, mad, body, 8 + len, MANY);
	free(body);
}

static void
expect_ok(const struct pair *p)
{
	assert_string_equal(mad_end_name(p->result.end), "OK");
}

static uint8_t *
segment_mad(uint8_t *mad, uint8_t method, uint64_t tid, uint8_t type, uint8_t flags,
	uint32_t segment, uint32_t length)
{
	live_mad(mad, method, LIVE_ECHO_REQUEST);
	put_be64(mad + 8, tid);
	mad[24] = 1;
	mad[25] = type;
	mad[26] = 0xF8 | RMPP_ACTIVE | flags;
	put_be32(mad + 28, segment);
	put_be32(mad + 32, length);
	return mad;
}

/* --- echo --- */

static void
test_echo_of_1_byte_to_1_mib(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 207, 208, 209, 215, 216, 217, 423, 424, 425, 3448,
		65535, 65536, MIB - 1, MIB };
	struct pair *p = *state;
	unsigned int i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *want = patterned(8 + sizes[i]);

		ask_many(p, LIVE_ECHO_REQUEST, sizes[i]);
		expect_ok(p);
		hex(want, "02 000000 1234 0001");
		assert_int_equal(p->len, 8 + sizes[i]);
		assert_memory_equal(p->data, want, p->len);
		/* GetResp, TID's lower half, OUI, as in one packet */
		assert_int_equal(p->mad[3], MAD_GET_RESP);
		assert_int_equal(get_be24(p->mad + 36), LIVE_OUI);
		free(want);
	}
	assert_int_equal(live_counters(p->live)->echo, i);
	assert_true(harness_run(p->h, 20000 * MS));
	expect_clean(p->h);
}

static void
test_client_echo_of_any_size(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 207, 208, 209, 5000 };
	struct pair *p = *state;
	uint8_t *data = patterned(5000);
	struct live_request req = { .mode = LIVE_MODE_ECHO, .identifier = 77, .data = data };
	struct live_reply reply;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		req.len = sizes[i];
		req.sequence = (uint16_t)i;
		ask(p, &req, &reply);
		assert_null(reply.error);
		assert_int_equal(reply.len, sizes[i]);
	}
	free(data);
	/* up to 208 bytes go in one packet */
	assert_int_equal(counters_of(&p->h->a).sessions_opened, 2);
}

static void
test_echo_longer_than_the_limit_is_001c(void **state)
{
	struct pair_config config = { .limits = live_limits_default };
	struct pair *p;

	(void)state;
	config.limits.max_echo = 1000;
	p = pair_create(&config);
	ask_many(p, LIVE_ECHO_REQUEST, 1000);
	expect_ok(p);
	ask_many(p, LIVE_ECHO_REQUEST, 1001);
	assert_int_equal(p->result.end, MAD_END_STATUS);
	assert_int_equal(p->result.status, 0x001C);
	assert_int_equal(live_counters(p->live)->refused, 1);
	assert_int_equal(live_counters(p->live)->echo, 1);
	assert_true(harness_run(p->h, 20000 * MS));
	expect_clean(p->h);
	pair_destroy(p);
}

/* A request of fewer than 8 bytes has no Type, Identifier and Sequence to return. */
static void
test_request_without_header_is_001c(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST);
	ask_for(p, mad, mad + 40, 7, MANY);
	assert_int_equal(p->result.end, MAD_END_STATUS);
	assert_int_equal(p->result.status, 0x001C);
}

static void
test_more_bytes_than_memory_is_a_stop(void **state)
{
	struct pair_config config = { .harness.limits = pair_limits };
	struct pair *p;

	(void)state;
	config.harness.limits.max_bytes = config.harness.limits.max_bytes_per_peer = 64 << 10;
	p = pair_create(&config);
	ask_many(p, LIVE_ECHO_REQUEST, 100000);
	assert_int_equal(p->result.end, MAD_END_ABORTED);
	assert_int_equal(p->result.rmpp_status, RMPP_STATUS_RESX);
	assert_true(harness_run(p->h, 20000 * MS));
	expect_clean(p->h);
	ask_many(p, LIVE_ECHO_REQUEST, 1000); /* and it goes on */
	expect_ok(p);
	pair_destroy(p);
}

/* --- the other types also work with many packets --- */

static void
test_timestamp_in_a_stream(void **state)
{
	struct pair *p = *state;

	live_set_clock(p->live, p->h->now, 1000);
	ask_many(p, LIVE_TIMESTAMP_REQUEST, 4); /* Originate alone: room is made for the others */
	expect_ok(p);
	assert_int_equal(p->len, 20);
	assert_int_equal(p->data[0], LIVE_TIMESTAMP_RESPONSE);
	assert_int_equal(p->data[8], pattern(8)); /* Originate is the sender's */
	assert_int_equal(get_be32(p->data + 12), 1000);
	assert_in_range(get_be32(p->data + 16), 1000, 1005); /* it waits for the sink's turn */
	ask_many(p, LIVE_TIMESTAMP_REQUEST, 1000); /* what comes behind is data, returned */
	expect_ok(p);
	assert_int_equal(p->len, 1008);
	assert_int_equal(p->data[20], pattern(20));
	assert_int_equal(p->data[1007], pattern(1007));
}

/* --- residence time: from the request's first packet to the answer's first --- */

#define EIGHT_O_CLOCK 28800000 /* ms */

static void
many_expect_stamps(struct pair *p, uint32_t receive, uint32_t transmit)
{
	const uint8_t *mad = next_sent(&p->h->a);

	assert_int_equal(mad[40], LIVE_TIMESTAMP_RESPONSE);
	assert_int_equal(get_be32(mad + 52), receive);
	assert_int_equal(get_be32(mad + 56), transmit);
}

static void
test_request_of_800_ms(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	live_set_clock(p->live, p->h->now, EIGHT_O_CLOCK);
	segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_FIRST, 1, 3 * 220);
	mad[40] = LIVE_TIMESTAMP_REQUEST;
	say(p->h, mad);
	pass(p->h, 500 * MS);
	say(p->h, segment_mad(mad, MAD_GET, 6, RMPP_DATA, 0, 2, 0));
	live_set_clock(p->live, p->h->now, EIGHT_O_CLOCK + 500);
	pass(p->h, 300 * MS);
	skip_sent(&p->h->a);
	p->h->a.room = 0; /* the answer is ready, but the sink is full */
	say(p->h, segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_LAST, 3, 220));
	live_set_clock(p->live, p->h->now, EIGHT_O_CLOCK + 800);
	pass(p->h, 40 * MS);
	p->h->a.room = UINT_MAX;
	transmit(&p->h->a);
	assert_int_equal(next_sent(&p->h->a)[25], RMPP_ACK);
	many_expect_stamps(p, EIGHT_O_CLOCK, EIGHT_O_CLOCK + 840);
}

/* A packet sent again gets a new time stamp. */
static void
test_answer_of_many_packets_sent_again(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	live_set_clock(p->live, p->h->now, EIGHT_O_CLOCK);
	segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_FIRST | RMPP_LAST, 1, 220);
	mad[40] = LIVE_TIMESTAMP_REQUEST;
	say(p->h, mad);
	assert_int_equal(next_sent(&p->h->a)[25], RMPP_ACK);
	many_expect_stamps(p, EIGHT_O_CLOCK, EIGHT_O_CLOCK);
	for (i = 0; p->h->a.seen == p->h->a.sent; i++)
		pass(p->h, 1 * MS);
	assert_in_range(i, 2, 10000);
	many_expect_stamps(p, EIGHT_O_CLOCK, EIGHT_O_CLOCK + i);
}

/* Without a session the answer waits among the worker's replies. */
static void
test_answer_of_one_packet_that_waits(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	live_set_clock(p->live, p->h->now, EIGHT_O_CLOCK);
	pass(p->h, 7 * MS);
	p->h->a.room = 0;
	say(p->h, live_mad(mad, MAD_GET, LIVE_TIMESTAMP_REQUEST));
	pass(p->h, 30 * MS);
	p->h->a.room = UINT_MAX;
	transmit(&p->h->a);
	many_expect_stamps(p, EIGHT_O_CLOCK + 7, EIGHT_O_CLOCK + 37);
	expect_silence(&p->h->a);
}

static void
test_lidguid_in_a_stream(void **state)
{
	struct pair *p = *state;

	p->h->a.attr.guid = 0x1122334455667788;
	ask_many(p, LIVE_LIDGUID_REQUEST, 0);
	expect_ok(p);
	assert_int_equal(p->len, 18);
	assert_int_equal(p->data[0], LIVE_LIDGUID_RESPONSE);
	assert_int_equal(get_be16(p->data + 8), 0);
	assert_int_equal(get_be64(p->data + 10), 0x1122334455667788);
}

static void
test_unknown_type_in_a_stream_is_000c(void **state)
{
	struct pair *p = *state;

	ask_many(p, 9, 1000);
	assert_int_equal(p->result.end, MAD_END_STATUS);
	assert_int_equal(p->result.status, 0x000C);
}

/* --- anti-amplification: an unproven address gets little --- */

/* Count the packets sent: segments of data, all number 1, and others. */
static void
count_sent(struct pair *p, unsigned int *data, unsigned int *other)
{
	struct manager *a = &p->h->a;

	for (*data = *other = 0; a->seen < a->sent;) {
		const uint8_t *mad = next_sent(a);

		if (mad[25] == RMPP_DATA) {
			assert_int_equal(get_be32(mad + 28), 1);
			(*data)++;
		} else {
			(*other)++;
		}
	}
}

/*
 * A requester that never acknowledges gets only segment 1: a few times if the ACKs for its own
 * multi-packet request prove its address, otherwise three times.
 */
static void
expect_first_segment_only(struct pair *p, unsigned int others, bool proven)
{
	unsigned int data, other, i;

	count_sent(p, &data, &other);
	assert_int_equal(data, 1);
	assert_int_equal(other, others);
	for (i = 0; i < 10; i++)
		pass(p->h, 10 * US);
	count_sent(p, &data, &other);
	assert_int_equal(data + other, 0);
	for (i = 0; i < 4000; i++)
		pass(p->h, 10 * MS);
	count_sent(p, &data, &other);
	assert_in_range(data, 1, proven ? 12 : 2);
	assert_in_range(other, 0, proven ? 1 : 0);
	expect_clean(p->h);
}

static void
test_echo_sends_one_segment_before_it_is_acknowledged(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	say(p->h, segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_FIRST, 1, 3 * 220));
	say(p->h, segment_mad(mad, MAD_GET, 6, RMPP_DATA, 0, 2, 0));
	say(p->h, segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_LAST, 3, 220));
	expect_first_segment_only(p, 2, true); /* the ACKs of segments 1 and 3 */
	assert_int_equal(live_counters(p->live)->echo, 1);
}

static void
long_list(struct live_cpu *cpu, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		snprintf(cpu[i].model, sizeof(cpu[i].model), " Example CPU @ 2.%u GHz", i);
		snprintf(cpu[i].mhz, sizeof(cpu[i].mhz), " %u.000", 2000 + i);
	}
}

static void
test_sysstat_sends_one_segment_before_it_is_acknowledged(void **state)
{
	static struct live_cpu cpu[LIVE_CPUS_MAX];
	struct pair *p;
	uint8_t mad[MAD_LEN];

	(void)state;
	long_list(cpu, 64);
	p = pair_create(&(struct pair_config){
		.harness.scripted = true,
		.cpu = cpu,
		.num_cpus = 64,
	});
	live_build(&(struct live_request){ .mode = LIVE_MODE_SYSSTAT_CPU }, mad, NULL);
	say(p->h, mad);
	expect_first_segment_only(p, 0, false);
	pair_destroy(p);
}

static void
test_sysstat_of_256_cpus(void **state)
{
	static struct live_cpu cpu[LIVE_CPUS_MAX];
	static char want[64 << 10];
	struct live_reply reply;
	struct pair *p;
	size_t n = 0;
	unsigned int i;

	(void)state;
	long_list(cpu, LIVE_CPUS_MAX);
	for (i = 0; i < LIVE_CPUS_MAX; i++)
		n += (size_t)sprintf(want + n,
			"cpu %u: model  Example CPU @ 2.%u GHz MHZ  %u.000\n", i, i, 2000 + i);
	p = pair_create(&(struct pair_config){ .cpu = cpu, .num_cpus = LIVE_CPUS_MAX });
	ask(p, &(struct live_request){ .mode = LIVE_MODE_SYSSTAT_CPU }, &reply);
	assert_null(reply.error);
	assert_int_equal(p->len, n + 1); /* with its NUL */
	assert_string_equal((char *)p->data, want);
	assert_memory_equal(reply.text, want, sizeof(reply.text) - 1);
	assert_true(harness_run(p->h, 20000 * MS));
	expect_clean(p->h);
	pair_destroy(p);
}

/* --- exhausted resources --- */

static void
test_no_session_for_the_long_answer_is_busy(void **state)
{
	static struct live_cpu cpu[LIVE_CPUS_MAX];
	struct pair_config config = {
		.harness = { .scripted = true, .limits = pair_limits },
		.cpu = cpu,
		.num_cpus = 64,
	};
	struct pair *p;
	uint8_t mad[MAD_LEN], reply[MAD_LEN];

	(void)state;
	long_list(cpu, 64);
	config.harness.limits.max_sessions_per_peer = 1;
	p = pair_create(&config);
	live_build(&(struct live_request){ .mode = LIVE_MODE_SYSSTAT_CPU }, mad, NULL);
	say(p->h, mad);
	next_sent(&p->h->a);
	put_be64(mad + 8, 99);
	memcpy(reply, mad, MAD_LEN);
	reply[3] = MAD_GET_RESP;
	put_be16(reply + 4, 0x0001);
	expect_answer(p, mad, reply);
	assert_int_equal(live_counters(p->live)->refused, 1);
	pair_destroy(p);
}

/* 1,024 echoes in progress that are never acknowledged, and one more */
static void
fill_up(struct pair *p)
{
	unsigned int data, other, i;
	uint8_t mad[MAD_LEN];

	for (i = 0; i < 1024; i++) {
		segment_mad(mad, MAD_GET, i, RMPP_DATA, RMPP_FIRST | RMPP_LAST, 1, 40);
		assert_int_equal(say(p->h, mad), VERDICT_DATAGRAM);
		count_sent(p, &data, &other);
		assert_int_equal(data, 1);
		p->h->a.delivered = p->h->a.sent;
	}
	put_be64(mad + 8, i);
	say(p->h, mad);
	assert_int_equal(next_sent(&p->h->a)[25], RMPP_ACK);
	assert_int_equal(get_be16(next_sent(&p->h->a) + 4), 0x0001);
	expect_silence(&p->h->a);
}

/* When they have timed out, as many are possible again. */
static void
test_no_room_for_an_answer_is_busy(void **state)
{
	struct pair_config config = { .harness.scripted = true, .limits = live_limits_default };
	struct pair *p;
	unsigned int i;

	(void)state;
	config.limits.rate = 0;
	p = pair_create(&config);
	fill_up(p);
	assert_int_equal(live_counters(p->live)->refused, 1);
	for (i = 0; i < 4000; i++) {
		pass(p->h, 10 * MS);
		skip_sent(&p->h->a);
		p->h->a.delivered = p->h->a.sent;
	}
	expect_clean(p->h);
	fill_up(p);
	assert_int_equal(live_counters(p->live)->refused, 2);
	assert_int_equal(live_counters(p->live)->echo, 2048);
	pair_destroy(p);
}

/* The rate limit applies here, too. */
static void
test_streams_are_limited_by_source(void **state)
{
	struct pair_config config = { .harness.scripted = true, .limits = live_limits_default };
	unsigned int data, other, i;
	uint8_t mad[MAD_LEN];
	struct pair *p;

	(void)state;
	config.limits.rate = config.limits.burst = 1;
	p = pair_create(&config);
	for (i = 0; i < 2; i++) {
		segment_mad(mad, MAD_GET, i, RMPP_DATA, RMPP_FIRST | RMPP_LAST, 1, 40);
		say(p->h, mad);
		count_sent(p, &data, &other);
		assert_int_equal(data, i == 0);
	}
	assert_int_equal(live_counters(p->live)->rate_limited, 1);
	pair_destroy(p);
}

/* --- only Get of class 0x34 may have many packets --- */

static void
test_send_and_other_classes_come_in_one_packet(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];

	segment_mad(mad, MAD_SEND, 6, RMPP_DATA, RMPP_FIRST, 1, 0);
	expect_no_answer(p, mad, VERDICT_MAD_UNMATCHED);
	segment_mad(mad, MAD_GET, 6, RMPP_DATA, RMPP_FIRST, 1, 0)[1] = LIVE_CLASS_IBPING;
	assert_int_equal(say(p->h, mad), VERDICT_DATAGRAM);
	assert_int_equal(get_be16(next_sent(&p->h->a) + 4), 0x001C);
	expect_silence(&p->h->a);
	assert_int_equal(counters_of(&p->h->a).sessions_opened, 0);
}

/* --- a bad network --- */

/* A lost packet costs a repeat, whichever it is, but never the answer. */
static void
test_any_packet_of_an_echo_lost(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 0; k < 2 * 45; k++) {
		struct pair *p = pair_create(NULL);

		lose(k % 2 ? &p->h->a : &p->h->b, k / 2);
		ask_many(p, LIVE_ECHO_REQUEST, 40 * 216 - 8);
		expect_ok(p);
		assert_int_equal(p->len, 40 * 216);
		assert_int_equal(p->data[40 * 216 - 1], pattern(40 * 216 - 1));
		assert_int_equal(live_counters(p->live)->echo, 1);
		assert_true(harness_run(p->h, 20000 * MS));
		expect_clean(p->h);
		pair_destroy(p);
	}
}

static void
test_echo_at_five_percent_of_everything(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 40; seed++) {
		struct pair *p = pair_create(NULL);
		uint32_t len = seed * 7919 % 60000, i;
		uint8_t *data = patterned(len);
		const struct live_request req = {
			.mode = LIVE_MODE_ECHO,
			.data = data,
			.len = len,
			.sequence = (uint16_t)seed,
		};
		struct live_reply reply;

		p->h->wire = (struct harness_wire){ 50, 50, 50, 50, 20 * US, seed };
		ask(p, &req, &reply);
		for (i = 0; len <= LIVE_AREA && reply.error != NULL && i < 5; i++)
			ask(p, &req, &reply);
		assert_null(reply.error);
		p->h->wire.loss = p->h->wire.corrupt = 0;
		assert_true(harness_run(p->h, 200000 * MS));
		expect_clean(p->h);
		free(data);
		pair_destroy(p);
	}
}

#define PAIR(test)     cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown)
#define SCRIPTED(test) cmocka_unit_test_setup_teardown(test, pair_scripted_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR(test_echo_of_1_byte_to_1_mib),
		PAIR(test_client_echo_of_any_size),
		cmocka_unit_test(test_echo_longer_than_the_limit_is_001c),
		PAIR(test_request_without_header_is_001c),
		cmocka_unit_test(test_more_bytes_than_memory_is_a_stop),
		PAIR(test_timestamp_in_a_stream),
		SCRIPTED(test_request_of_800_ms),
		SCRIPTED(test_answer_of_many_packets_sent_again),
		SCRIPTED(test_answer_of_one_packet_that_waits),
		PAIR(test_lidguid_in_a_stream),
		PAIR(test_unknown_type_in_a_stream_is_000c),
		SCRIPTED(test_echo_sends_one_segment_before_it_is_acknowledged),
		cmocka_unit_test(test_sysstat_sends_one_segment_before_it_is_acknowledged),
		cmocka_unit_test(test_sysstat_of_256_cpus),
		cmocka_unit_test(test_no_session_for_the_long_answer_is_busy),
		cmocka_unit_test(test_no_room_for_an_answer_is_busy),
		cmocka_unit_test(test_streams_are_limited_by_source),
		SCRIPTED(test_send_and_other_classes_come_in_one_packet),
		cmocka_unit_test(test_any_packet_of_an_echo_lost),
		cmocka_unit_test(test_echo_at_five_percent_of_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
