/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Payloads of any length arrive, and nothing beside them changes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/copy.h"

#define LONGEST   300
#define GUARD     32
#define UNTOUCHED 0xA5

static void
test_each_length_is_copied_exactly(void **state)
{
	uint8_t from[LONGEST + 1], to[GUARD + LONGEST + GUARD], expected[sizeof(to)];
	uint32_t len, skew, i;

	(void)state;
	for (i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + 1);
	for (skew = 0; skew < 2; skew++) {
		for (len = 0; len < LONGEST; len++) {
			memset(to, UNTOUCHED, sizeof(to));
			memset(expected, UNTOUCHED, sizeof(expected));
			for (i = 0; i < len; i++)
				expected[GUARD + i] = from[skew + i];
			copy_payload(to + GUARD, from + skew, len);
			assert_memory_equal(to, expected, sizeof(to));
		}
	}
	copy_payload(NULL, NULL, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_length_is_copied_exactly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
