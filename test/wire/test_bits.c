/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Read and write numbers of any width at any bit. Bit 0 is the most significant bit of byte 0. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "wire/bits.h"

static const struct {
	unsigned int offset, width;
	uint64_t value;
} rows[] = {
	/* offset, width and value in 01 23 45 67 89 ab cd ef fe */
	{ 0, 8, 0x01 },
	{ 7, 1, 1 },
	{ 6, 1, 0 },
	{ 8, 3, 1 }, /* 001 of 0010 0011 */
	{ 11, 5, 3 },
	{ 4, 8, 0x12 },
	{ 12, 20, 0x34567 },
	{ 0, 64, 0x0123456789abcdef },
	{ 8, 64, 0x23456789abcdeffe },
	{ 1, 64,
		/* the first eight bytes shifted left by one bit, then the first bit of fe */
		0x02468acf13579bdf },
	{ 71, 1, 0 },
};

static void
test_get_reads_any_width_at_any_bit(void **state)
{
	static const uint8_t bytes[] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(get_bits(bytes, rows[i].offset, rows[i].width) == rows[i].value);
}

/* Other bits do not change, whatever the old value was; a value that is too wide is cut. */
static void
test_put_touches_nothing_else(void **state)
{
	uint64_t value;
	uint8_t bytes[9], want[9];

	(void)state;
	for (unsigned int fill = 0; fill < 2; fill++)
		for (unsigned int width = 1; width <= 64; width++)
			for (unsigned int offset = 0; offset + width <= 72; offset++) {
				value = UINT64_C(0xa5c396f00f69963c);
				memset(bytes, fill ? 0xff : 0, sizeof(bytes));
				memcpy(want, bytes, sizeof(want));
				put_bits(bytes, offset, width, value);
				for (unsigned int i = 0; i < width; i++) { /* bit by bit */
					unsigned int at = offset + width - 1 - i;

					want[at / 8] &= (uint8_t) ~(0x80 >> at % 8);
					want[at / 8] |= (uint8_t)((value >> i & 1) << (7 - at % 8));
				}
				assert_memory_equal(bytes, want, sizeof(want));
			}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get_reads_any_width_at_any_bit),
		cmocka_unit_test(test_put_touches_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
