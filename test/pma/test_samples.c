/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* PortSamplesControl and PortSamplesResult (pma.md 4). A tick is 4 ns. */

#include <string.h>

#define WR_SEND       OSM_WR_SEND
#define WR_RDMA_WRITE OSM_WR_RDMA_WRITE
#define WR_RDMA_READ  OSM_WR_RDMA_READ
#include <iba/ib_types.h>
#undef WR_SEND
#undef WR_RDMA_WRITE
#undef WR_RDMA_READ

#include "bench.h"

/* clang-format off */
#define TICKS(us) ((us) * 250)
/* clang-format on */

enum { DONE, STARTED, RUNNING };

static ib_port_samples_control_t
samples_control(struct bench *b)
{
	ib_port_samples_control_t c;

	memcpy(&c, get_port(b, SAMPLES_CONTROL, 1, 0), sizeof(c));
	return c;
}

static ib_port_samples_control_t
samples_start(struct bench *b, uint32_t wait_us, uint32_t for_us, uint16_t tag)
{
	ib_port_samples_control_t c = { .port_select = 1 };
	uint8_t data[MAD_LEN - 64] = { 0 };

	c.sample_start = cl_hton32(TICKS(wait_us));
	c.sample_interval = cl_hton32(TICKS(for_us));
	c.tag = cl_hton16(tag);
	c.counter_select0 = cl_hton16(1); /* PortXmitData */
	c.counter_select1 = cl_hton16(5); /* PortXmitWait */
	c.counter_select2 = cl_hton16(6); /* there is none */
	c.counter_select14 = cl_hton16(4); /* PortRcvPkts */
	memcpy(data, &c, sizeof(c));
	memcpy(&c, ask(b, MAD_SET, SAMPLES_CONTROL, data, 0), sizeof(c));
	return c;
}

static void
traffic(struct bench *b, uint32_t n)
{
	b->totals[0].value[PMA_XMIT_DATA] += n;
	b->totals[0].value[PMA_XMIT_WAIT] += 2 * n;
	b->totals[0].value[PMA_RCV_PKTS] += 3 * n;
}

static void
expect_result(struct bench *b, uint16_t tag, uint8_t status, uint32_t n)
{
	const uint8_t *d = ask(b, MAD_GET, SAMPLES_RESULT, NULL, 0);

	assert_int_equal(get_be16(d), tag);
	assert_int_equal(get_be16(d + 2), status);
	assert_int_equal(get_be32(d + 4), n);
	assert_int_equal(get_be32(d + 8), 2 * n);
	assert_int_equal(get_be32(d + 12), 0);
	assert_int_equal(get_be32(d + 4 + 14 * 4), 3 * n);
	d = ask(b, MAD_GET, SAMPLES_RESULT_EXT, NULL, 0);
	assert_int_equal(get_be16(d), tag);
	assert_int_equal(get_be16(d + 2), status);
	assert_true(get_be32(d + 4) == 0x80000000);
	assert_int_equal(get_be64(d + 8), n);
	assert_int_equal(get_be64(d + 8 + 14 * 8), 3 * n);
}

static void
test_control_before_any_sample(void **state)
{
	ib_port_samples_control_t c = samples_control(*state);

	assert_int_equal(c.port_select, 1);
	assert_int_equal(c.tick, 3);
	assert_int_equal(c.counter_width, 4); /* 32 bits */
	/* three bits of each of 15: it counts the mandatory quantities */
	assert_true(cl_ntoh32(c.counter_mask) == 01111111111);
	assert_true(cl_ntoh16(c.counter_mask_10to14) == 011111);
	assert_int_equal(c.sample_status, DONE);
	assert_true(c.option_mask == 0 && c.vendor_mask == 0);
	expect_result(*state, 0, DONE, 0);
}

static void
test_a_sample(void **state)
{
	struct bench *b = *state;
	ib_port_samples_control_t c;

	traffic(b, 1000);
	c = samples_start(b, 100, 1000, 0xABCD);
	assert_int_equal(c.sample_status, STARTED);
	assert_int_equal(cl_ntoh32(c.sample_interval), TICKS(1000));
	assert_int_equal(cl_ntoh16(c.counter_select14), 4);
	pass(b->h, 99 * US);
	traffic(b, 10); /* before it begins */
	expect_result(b, 0xABCD, STARTED, 0);
	pass(b->h, 1 * US);
	assert_int_equal(samples_control(b).sample_status, RUNNING);
	traffic(b, 7);
	expect_result(b, 0xABCD, RUNNING, 0);
	pass(b->h, 1000 * US);
	expect_result(b, 0xABCD, DONE, 7);
	traffic(b, 50); /* after its end */
	expect_result(b, 0xABCD, DONE, 7);
}

/* During a sample a Set changes nothing. */
static void
test_set_while_it_runs(void **state)
{
	struct bench *b = *state;
	ib_port_samples_control_t c;

	samples_start(b, 10, 100, 1);
	c = samples_start(b, 0, 1, 2);
	assert_int_equal(c.sample_status, STARTED);
	assert_int_equal(cl_ntoh16(c.tag), 1);
	pass(b->h, 10 * US);
	c = samples_start(b, 0, 1, 2);
	assert_int_equal(c.sample_status, RUNNING);
	traffic(b, 5);
	pass(b->h, 100 * US);
	expect_result(b, 1, DONE, 5);
	samples_start(b, 0, 1, 2);
	pass(b->h, 1 * US);
	pass(b->h, 1 * US);
	expect_result(b, 2, DONE, 0);
}

/* A reset of counters during a sample does not affect it. */
static void
test_reset_while_it_runs(void **state)
{
	uint8_t data[MAD_LEN - 64] = { 0, 1, 0xFF, 0xFF };
	struct bench *b = *state;

	traffic(b, 1000);
	samples_start(b, 0, 100, 1);
	pass(b->h, 1);
	traffic(b, 5);
	data[18] = 1;
	ask(b, MAD_SET, PORT_COUNTERS, data, 0);
	traffic(b, 6);
	pass(b->h, 100 * US);
	expect_result(b, 1, DONE, 11);
}

static void
test_result_stops_at_its_largest_value(void **state)
{
	struct bench *b = *state;
	const uint8_t *d;

	samples_start(b, 0, 100, 1);
	pass(b->h, 1);
	b->totals[0].value[PMA_XMIT_DATA] += UINT64_C(1) << 33;
	pass(b->h, 100 * US);
	d = ask(b, MAD_GET, SAMPLES_RESULT, NULL, 0);
	assert_true(get_be32(d + 4) == UINT32_MAX);
	d = ask(b, MAD_GET, SAMPLES_RESULT_EXT, NULL, 0);
	assert_true(get_be64(d + 8) == UINT64_C(1) << 33);
}

/* The result names no port: only the receiving port can be sampled. */
static void
test_samples_are_of_the_port_that_is_asked(void **state)
{
	static const uint8_t others[] = { 0, 2, 3, 0xFF };
	uint8_t data[MAD_LEN - 64] = { 0 };
	unsigned int i;

	for (i = 0; i < sizeof(others); i++) {
		get_port(*state, SAMPLES_CONTROL, others[i], 0x001C);
		data[1] = others[i];
		ask(*state, MAD_SET, SAMPLES_CONTROL, data, 0x001C);
	}
	assert_int_equal(samples_control(*state).sample_status, DONE);
}

/* 10 bit times of a lane, times code + 1, are 4 ns. */
static void
test_ticks(void **state)
{
	(void)state;
	assert_int_equal(pma_tick(0), 0);
	assert_int_equal(pma_tick(2500), 0);
	assert_int_equal(pma_tick(5000), 1);
	assert_int_equal(pma_tick(10000), 3);
	assert_int_equal(pma_tick(25000), 9);
	assert_int_equal(pma_tick(100000), 39);
	assert_int_equal(pma_tick(1000000), 255);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_control_before_any_sample),
		TEST(test_a_sample),
		TEST(test_set_while_it_runs),
		TEST(test_reset_while_it_runs),
		TEST(test_result_stops_at_its_largest_value),
		TEST(test_samples_are_of_the_port_that_is_asked),
		cmocka_unit_test(test_ticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
