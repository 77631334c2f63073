/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Class version 1 between two of our workers over a wire that loses, copies, reorders and damages
 * packets: the table arrives intact and every session ends; with v1_early_resend loss costs round
 * trips instead of timeouts.
 */

#include <string.h>

#include "harness.h"

static const uint8_t table = MAD_METHOD_SESSION | MAD_METHOD_MULTI_RESPONSE;
static const uint8_t config =
	MAD_METHOD_SESSION | MAD_METHOD_MULTI_REQUEST | MAD_METHOD_MULTI_RESPONSE;

static struct harness *
v1_lossy_early_harness(uint8_t subnet_timeout)
{
	struct harness_config c = { .limits = harness_limits, .subnet_timeout = subnet_timeout };

	c.limits.v1_early_resend = true;
	return harness_create(&c);
}

static void
v1_lossy_call(struct harness *h, uint8_t method, uint64_t config_bytes)
{
	uint8_t mad[MAD_LEN];
	struct mad_call c;

	h->done = 0;
	h->taken = 0;
	call_init(&h->b, &c, mad, method, method == 0x14 ? config : table);
	if (method == 0x14)
		c.source = pattern_source(h, config_bytes);
	assert_int_equal(mad_call(h->b.w, &c, h->now, NULL), 0);
}

/* Virtual time a call took. */
static uint64_t
v1_lossy_time_of(struct harness *h, uint8_t method, uint64_t config_bytes)
{
	v1_lossy_call(h, method, config_bytes);
	while (h->done == 0)
		assert_false(harness_run(h, 10 * US) && h->done == 0);
	assert_string_equal(mad_end_name(h->result.end), "OK");
	return h->result.elapsed;
}

/* 1,000 segments in 16 windows: 17 round trips of 40 us */
static void
test_no_loss(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_STREAM;
	h->table_bytes = 1000 * 192;
	assert_in_range(v1_lossy_time_of(h, 0x12, 0), 16 * 40 * US, 18 * 40 * US);
	assert_int_equal(h->taken, 192000);
	assert_int_equal(counters_of(&h->a).segments_sent, 1000);
	assert_int_equal(counters_of(&h->a).probes, 0);
}

/* The kth packet of either side lost: a round trip or a probe more, never a timeout */
static void
test_any_one_packet_lost(void **state)
{
	uint64_t plain = 4 * 40 * US + 1;
	unsigned int k;

	(void)state;
	/* not the request: only the ResponseTimer knows of it */
	for (k = 0; k < 150 + 3; k++) {
		struct harness *h = v1_lossy_early_harness(0);

		h->outcome = MAD_STREAM;
		h->table_bytes = 150 * 192;
		if (k < 150)
			lose(&h->a, k);
		else
			lose(&h->b, k - 150 + 1);
		/* a probe comes after 200 us at the latest, 1 ms if no round trip is known yet */
		assert_in_range(v1_lossy_time_of(h, 0x12, 0), 3 * 40 * US,
			plain + MS + 2 * 40 * US);
		assert_int_equal(counters_of(&h->a).timeouts, 0);
		assert_int_equal(counters_of(&h->b).timeouts, 0);
		harness_destroy(h);
	}
}

static void
test_any_packet_of_a_config_lost(void **state)
{
	unsigned int k, i;

	(void)state;
	for (k = 0; k <= 150; k++) {
		struct harness *h = v1_lossy_early_harness(0);

		h->outcome = MAD_ANSWER;
		if (k < 150) /* the First too, without which the others belong to nothing */
			lose(&h->b, k);
		for (i = 0; k == 150 && i < 64; i++) /* the whole first burst */
			lose(&h->b, i);
		assert_in_range(v1_lossy_time_of(h, 0x14, 150 * 192), 3 * 40 * US,
			4 * 40 * US + 3 * MS);
		assert_int_equal(h->requests, 1);
		assert_int_equal(h->body_len, 150 * 192);
		assert_int_equal(counters_of(&h->a).timeouts, 0);
		assert_int_equal(counters_of(&h->b).timeouts, 0);
		harness_destroy(h);
	}
}

/* 1 % loss: a table of 1,000 records of 108 bytes in milliseconds */
static void
test_thousand_records_at_one_percent(void **state)
{
	uint64_t worst = 0, sum = 0, t;
	unsigned int seed;

	(void)state;
	for (seed = 1; seed <= 100; seed++) {
		struct harness *h = v1_lossy_early_harness(0);

		h->wire.rng = seed;
		h->outcome = MAD_STREAM;
		h->table_bytes = 1000 * 112;
		h->wire.loss = 10;
		t = v1_lossy_time_of(h, 0x12, 0);
		sum += t;
		if (t > worst)
			worst = t;
		harness_destroy(h);
	}
	/* a request or a KeepAlive lost costs a ResponseTimeout of 6.3 ms */
	assert_true(sum / 100 < 2 * MS);
	assert_true(worst < 10 * MS);
}

/* The request lost, and its repeat: 10 ms and 20 ms, not the 138 ms of the ResponseTimer */
static void
test_lost_request(void **state)
{
	unsigned int lost;

	(void)state;
	for (lost = 1; lost <= 2; lost++) {
		struct harness *h = v1_lossy_early_harness(14);
		unsigned int i;

		h->outcome = MAD_STREAM;
		h->table_bytes = 10 * 192;
		for (i = 0; i < lost; i++)
			lose(&h->b, i);
		assert_in_range(v1_lossy_time_of(h, 0x12, 0), lost == 1 ? 10 * MS : 30 * MS,
			lost == 1 ? 11 * MS : 31 * MS);
		assert_int_equal(h->taken, 1920);
		assert_int_equal(h->requests, 1);
		assert_int_equal(counters_of(&h->b).timeouts, 0);
		assert_int_equal(counters_of(&h->b).probes, lost);
		harness_destroy(h);
	}
}

struct bad_wire {
	uint32_t loss, duplicate, reorder, corrupt;
	bool unproven; /* the requester has never acknowledged: three packets for one at first */
};

/* Every transfer ends with the exact table or an error, all sessions end, sources are released */
static void
v1_lossy_one_seed(uint64_t seed, const struct bad_wire *w, uint8_t method, bool early,
	unsigned int *ok)
{
	struct harness *h = early ? v1_lossy_early_harness(0) : harness_create(NULL);
	uint64_t bytes;

	if (!w->unproven)
		harness_prove(h);
	h->wire = (struct harness_wire){ w->loss, w->duplicate, w->reorder, w->corrupt, 20 * US,
		seed };
	bytes = seed * 7919 % 60000;
	h->outcome = method == 0x14 && seed % 2 ? MAD_ANSWER : MAD_STREAM;
	h->table_bytes = bytes;
	v1_lossy_call(h, method, bytes);
	assert_true(harness_run(h, 100000 * MS));
	assert_int_equal(h->done, 1);
	if (h->result.end == MAD_END_OK) {
		(*ok)++;
		assert_true(h->requests >= 1);
		if (h->outcome == MAD_STREAM)
			assert_int_equal(h->taken, bytes);
		if (method == 0x14 && bytes > 192)
			assert_int_equal(h->body_len, bytes);
	} else if (h->result.end != MAD_END_TIMEOUT && h->result.end != MAD_END_PROTOCOL &&
		h->result.status != MAD_STATUS_INVALID_FIELD) {
		/* a status for a Resend request that an Ack overtook may still end one */
		fail_msg("seed %u: %s, status 0x%04x", (unsigned int)seed,
			mad_end_name(h->result.end), h->result.status);
	}
	if (method == 0x14)
		assert_true(h->requests <= 1);
	expect_clean(h);
	harness_destroy(h);
}

static void
v1_lossy_many_seeds(const struct bad_wire *w, unsigned int at_least)
{
	unsigned int ok[2] = { 0, 0 }, seed, early;

	for (early = 0; early <= 1; early++) {
		for (seed = 1; seed <= 50; seed++) {
			v1_lossy_one_seed(seed, w, 0x12, early, &ok[early]);
			v1_lossy_one_seed(seed, w, 0x14, early, &ok[early]);
		}
		if (ok[early] < at_least)
			fail_msg("%u of 100 completed, early %u, at least %u", ok[early], early,
				at_least);
	}
}

static void
test_one_percent_of_everything(void **state)
{
	(void)state;
	v1_lossy_many_seeds(&(struct bad_wire){ 10, 10, 10, 10, false }, 100);
}

static void
test_five_percent_of_everything(void **state)
{
	(void)state;
	v1_lossy_many_seeds(&(struct bad_wire){ 50, 50, 50, 50, false }, 100);
}

static void
test_unproven_at_five_percent(void **state)
{
	(void)state;
	v1_lossy_many_seeds(&(struct bad_wire){ 50, 50, 50, 50, true }, 100);
	v1_lossy_many_seeds(&(struct bad_wire){ 100, 100, 100, 100, true }, 95);
}

static void
test_twenty_percent(void **state)
{
	(void)state;
	v1_lossy_many_seeds(&(struct bad_wire){ 200, 0, 0, 0, false }, 90);
	v1_lossy_many_seeds(&(struct bad_wire){ 0, 200, 200, 0, false }, 100);
	v1_lossy_many_seeds(&(struct bad_wire){ 100, 100, 200, 100, false }, 80);
}

#define T(test) cmocka_unit_test_setup_teardown(test, harness_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_no_loss),
		cmocka_unit_test(test_any_one_packet_lost),
		cmocka_unit_test(test_any_packet_of_a_config_lost),
		cmocka_unit_test(test_thousand_records_at_one_percent),
		cmocka_unit_test(test_lost_request),
		cmocka_unit_test(test_one_percent_of_everything),
		cmocka_unit_test(test_five_percent_of_everything),
		cmocka_unit_test(test_unproven_at_five_percent),
		cmocka_unit_test(test_twenty_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
