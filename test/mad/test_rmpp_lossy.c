/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * RMPP between two of our workers over a wire that loses, copies, reorders and damages packets: the
 * table arrives intact, every session ends, and loss costs round trips instead of timeouts.
 */

#include <stdio.h>
#include <string.h>

#include "harness.h"

#define ROUND_TRIP (40 * US) /* of the wire */

static void
rmpp_lossy_call(struct harness *h, uint8_t method, uint64_t request_bytes)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	h->done = 0;
	h->taken = 0;
	call_init(&h->b, &c, mad, method, MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE);
	mad[MAD_OFF_CLASS_VERSION] = 2;
	memset(mad + MAD_HEADER_LEN, 0, MAD_LEN - MAD_HEADER_LEN);
	c.protocol = MAD_RMPP;
	c.data_offset = SA2_OFF_DATA;
	if (method == SA2_GET_MULTI) {
		c.flags |= MAD_METHOD_MULTI_REQUEST;
		c.source = pattern_source(h, request_bytes);
	}
	assert_int_equal(mad_call(h->b.w, &c, h->now, NULL), 0);
}

/* Virtual time of a successful call. */
static uint64_t
rmpp_lossy_time_of(struct harness *h, uint8_t method, uint64_t request_bytes)
{
	rmpp_lossy_call(h, method, request_bytes);
	while (h->done == 0)
		assert_false(harness_run(h, 10 * US) && h->done == 0);
	assert_string_equal(mad_end_name(h->result.end), "OK");
	return h->result.elapsed;
}

static struct harness *
table_harness(uint64_t bytes)
{
	struct harness *h = harness_create(NULL);

	h->outcome = MAD_STREAM;
	h->table_bytes = bytes;
	return h;
}

/* request and segment 1, then 16 segments a round trip */
static void
test_no_loss(void **state)
{
	struct harness *h = table_harness(161 * 200);

	(void)state;
	assert_in_range(rmpp_lossy_time_of(h, SA_GET_TABLE, 0), 11 * ROUND_TRIP, 12 * ROUND_TRIP);
	assert_int_equal(h->taken, 161 * 200);
	assert_true(harness_run(h, 20000 * MS));
	assert_int_equal(counters_of(&h->a).segments_sent, 161);
	assert_int_equal(counters_of(&h->a).segments_resent, 0);
	assert_int_equal(counters_of(&h->a).probes, 0);
	assert_int_equal(counters_of(&h->b).ack_sent, 11);
	harness_destroy(h);
}

/* A segment lost inside a window: the gap is reported at once and costs a round trip. */
static void
test_lost_segment_costs_a_round_trip(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 1; k <= 48; k++) {
		struct harness *h = table_harness(65 * 200);

		if (k % 16 == 0) { /* the window's last segment: no later one shows the gap */
			harness_destroy(h);
			continue;
		}
		lose(&h->a, k);
		assert_in_range(rmpp_lossy_time_of(h, SA_GET_TABLE, 0), 5 * ROUND_TRIP,
			7 * ROUND_TRIP);
		assert_int_equal(counters_of(&h->a).segments_resent, 1);
		assert_int_equal(counters_of(&h->a).probes, 0);
		harness_destroy(h);
	}
}

/*
 * The last segment of a window, or an ACK, is lost: only a probe finds out, after 200 us, or 1 ms
 * while no round trip is known.
 */
static void
test_any_one_packet_lost(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 0; k < 65 + 5; k++) {
		struct harness *h = table_harness(65 * 200);

		if (k < 65)
			lose(&h->a, k);
		else /* a lost request waits for the ResponseTimer */
			lose(&h->b, k - 65 + 1);
		assert_in_range(rmpp_lossy_time_of(h, SA_GET_TABLE, 0), 5 * ROUND_TRIP,
			7 * ROUND_TRIP + (k == 0 || k == 65 ? 1000 * US : 240 * US));
		assert_int_equal(h->taken, 65 * 200);
		assert_true(harness_run(h, 20000 * MS));
		assert_int_equal(counters_of(&h->a).timeouts, 0);
		assert_int_equal(counters_of(&h->b).timeouts, 0);
		assert_int_equal(counters_of(&h->a).sessions_completed, 1);
		expect_clean(h);
		harness_destroy(h);
	}
}

/* double-sided, either direction; every packet of either side once */
static void
test_any_packet_of_a_double_sided_transaction_lost(void **state)
{
	unsigned int k;

	(void)state;
	for (k = 0; k < 2 * 45; k++) {
		struct harness *h = table_harness(40 * 200);

		lose(k % 2 ? &h->a : &h->b, k / 2);
		rmpp_lossy_time_of(h, SA2_GET_MULTI, 40 * 200);
		assert_int_equal(h->taken, 40 * 200);
		assert_int_equal(h->requests, 1);
		assert_int_equal(h->body_len, 40 * 200);
		assert_true(harness_run(h, 20000 * MS));
		assert_int_equal(counters_of(&h->a).timeouts, 0);
		assert_int_equal(counters_of(&h->a).abort_sent, 0);
		assert_int_equal(counters_of(&h->b).abort_sent, 0);
		expect_clean(h);
		harness_destroy(h);
	}
}

/* a whole window is lost: a probe finds out, then all is sent again without another timeout */
static void
test_burst_lost(void **state)
{
	struct harness *h = table_harness(65 * 200);
	unsigned int k;

	(void)state;
	for (k = 1; k <= 16; k++)
		lose(&h->a, k);
	assert_true(rmpp_lossy_time_of(h, SA_GET_TABLE, 0) < 10 * ROUND_TRIP + 300 * US);
	assert_int_equal(counters_of(&h->a).timeouts, 0);
	harness_destroy(h);
}

/* 1 % loss: a table of 1,000 records of 112 bytes in milliseconds */
static void
test_thousand_records_at_one_percent(void **state)
{
	uint64_t worst = 0, sum = 0, t;
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 100; seed++) {
		struct harness *h = table_harness(1000 * 112);

		h->wire.rng = seed;
		h->wire.loss = 10;
		t = rmpp_lossy_time_of(h, SA_GET_TABLE, 0);
		sum += t;
		worst = t > worst ? t : worst;
		harness_destroy(h);
	}
	/* 36 round trips without loss: 1.4 ms; a request lost costs a ResponseTimeout of 6.3 ms */
	assert_true(sum / 100 < 3 * MS);
	assert_true(worst < 12 * MS);
}

/* The request lost, and its repeat: 10 ms and 20 ms, not the 138 ms of the ResponseTimer */
static void
test_lost_request(void **state)
{
	unsigned int lost;

	(void)state;
	for (lost = 1; lost <= 2; lost++) {
		struct harness *h =
			harness_create(&(struct harness_config){ .subnet_timeout = 14 });
		unsigned int i;

		h->outcome = MAD_STREAM;
		h->table_bytes = 10 * 192;
		for (i = 0; i < lost; i++)
			lose(&h->b, i);
		assert_in_range(rmpp_lossy_time_of(h, SA_GET_TABLE, 0),
			lost == 1 ? 10 * MS : 30 * MS, lost == 1 ? 11 * MS : 31 * MS);
		assert_int_equal(h->taken, 1920);
		assert_int_equal(h->requests, 1);
		assert_int_equal(counters_of(&h->b).timeouts, 0);
		assert_int_equal(counters_of(&h->b).probes, lost);
		harness_destroy(h);
	}
}

struct bad_wire {
	uint32_t loss, duplicate, reorder, corrupt;
};

/* Every transfer ends with the exact table or an error, all sessions end, sources are released. */
static void
rmpp_lossy_one_seed(uint64_t seed, const struct bad_wire *w, uint8_t method, unsigned int *ok)
{
	struct harness *h = table_harness(seed * 7919 % 60000);
	uint64_t bytes = h->table_bytes;

	h->wire = (struct harness_wire){ w->loss, w->duplicate, w->reorder, w->corrupt, 20 * US,
		seed };
	rmpp_lossy_call(h, method, bytes);
	assert_true(harness_run(h, 200000 * MS));
	assert_int_equal(h->done, 1);
	if (h->result.end == MAD_END_OK) {
		(*ok)++;
		assert_int_equal(h->taken, bytes);
		if (method == SA2_GET_MULTI)
			assert_int_equal(h->body_len, bytes);
	} else if (h->result.end != MAD_END_TIMEOUT && h->result.end != MAD_END_ABORTED) {
		fail_msg("seed %u: %s, RMPP status %u", (unsigned int)seed,
			mad_end_name(h->result.end), h->result.rmpp_status);
	}
	expect_clean(h);
	harness_destroy(h);
}

static void
rmpp_lossy_many_seeds(const struct bad_wire *w, unsigned int at_least)
{
	unsigned int ok = 0, seed;

	for (seed = 1; seed <= 50; seed++) {
		rmpp_lossy_one_seed(seed, w, SA_GET_TABLE, &ok);
		rmpp_lossy_one_seed(seed, w, SA2_GET_MULTI, &ok);
	}
	if (ok < at_least)
		fail_msg("%u of 100 completed", ok);
}

static void
test_one_percent_of_everything(void **state)
{
	(void)state;
	rmpp_lossy_many_seeds(&(struct bad_wire){ 10, 10, 10, 10 }, 100);
}

static void
test_five_percent_of_everything(void **state)
{
	(void)state;
	rmpp_lossy_many_seeds(&(struct bad_wire){ 50, 50, 50, 50 }, 100);
}

static void
test_twenty_percent(void **state)
{
	(void)state;
	rmpp_lossy_many_seeds(&(struct bad_wire){ 200, 0, 0, 0 }, 90);
	rmpp_lossy_many_seeds(&(struct bad_wire){ 0, 200, 200, 0 }, 100);
	rmpp_lossy_many_seeds(&(struct bad_wire){ 100, 100, 200, 100 }, 80);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_loss),
		cmocka_unit_test(test_lost_segment_costs_a_round_trip),
		cmocka_unit_test(test_any_one_packet_lost),
		cmocka_unit_test(test_any_packet_of_a_double_sided_transaction_lost),
		cmocka_unit_test(test_burst_lost),
		cmocka_unit_test(test_thousand_records_at_one_percent),
		cmocka_unit_test(test_lost_request),
		cmocka_unit_test(test_one_percent_of_everything),
		cmocka_unit_test(test_five_percent_of_everything),
		cmocka_unit_test(test_twenty_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
