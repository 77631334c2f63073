/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* cm.md 4 and 5: time codes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cm/timing.h"

static void
test_codes_in_milliseconds(void **state)
{
	(void)state;
	assert_int_equal(cm_ms(0), 1);
	assert_int_equal(cm_ms(7), 1);
	assert_int_equal(cm_ms(8), 1);
	assert_int_equal(cm_ms(9), 2);
	assert_int_equal(cm_ms(18), 1024);
	assert_int_equal(cm_ms(20), 4096);
	assert_int_equal(cm_ms(31), 8388608);
	assert_int_equal(cm_ms(32), 8388608);
	assert_int_equal(cm_ms(255), 8388608);
}

/* t = max(D, L + 1), plus 1 if the smaller one is at least max - 1; at most 31 */
static void
test_local_ack_timeout(void **state)
{
	static const struct {
		uint8_t packet_life, delay, code;
	} rows[] = {
		{ 18, 15, 19 }, /* RoCE in Linux: the captures */
		{ 16, 15, 17 }, /* newer kernels: 17 and 15 differ by more than 1 */
		{ 15, 15, 17 }, /* 16 and 15 differ by 1: plus 1 */
		{ 14, 15, 16 }, /* 15 and 15: plus 1 */
		{ 13, 15, 16 }, /* 14 and 15 */
		{ 12, 15, 15 }, /* 13 and 15: the delay alone */
		{ 0, 0, 2 }, /* 1 and 0 */
		{ 1, 0, 2 },
		{ 0, 31, 31 },
		{ 31, 0, 31 },
		{ 30, 30, 31 },
		{ 31, 31, 31 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(cm_ack_timeout(rows[i].packet_life, rows[i].delay), rows[i].code);
}

static void
test_intervals(void **state)
{
	(void)state;
	/* Linux: PacketLifeTime 18, response timeout 20 */
	assert_int_equal(cm_req_interval_ms(18, 20), 6144);
	assert_int_equal(cm_req_interval_ms(0, 0), 3);
	assert_int_equal(cm_rep_interval_ms(20), 4096);
	/* Linux's MRA: 24; the QP's timeout 19 */
	assert_int_equal(cm_mra_interval_ms(24, 19), 65536 + 2048);
	assert_int_equal(cm_timewait_ms(19), 2048);
	/* nothing overflows */
	assert_int_equal(cm_req_interval_ms(31, 31), 3 * 8388608);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_codes_in_milliseconds),
		cmocka_unit_test(test_local_ack_timeout),
		cmocka_unit_test(test_intervals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
