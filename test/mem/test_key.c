/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Keys: design.md rule 6. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "mem/key.h"

#define SPACE (UINT32_C(1) << 24)

static void
test_permutation_is_a_bijection_of_24_bits(void **state)
{
	uint8_t *seen = calloc(SPACE / 8, 1);
	struct key_space k;
	uint32_t x, y;

	(void)state;
	assert_non_null(seen);
	key_space_init(&k, &rng_kernel, 1000);
	for (x = 0; x < SPACE; x++) {
		y = key_permute(&k, x, false);
		if (y >= SPACE || (seen[y / 8] & (1 << (y % 8))) != 0 ||
			key_permute(&k, y, true) != x)
			fail_msg("0x%06x -> 0x%x", x, y);
		seen[y / 8] |= (uint8_t)(1 << (y % 8));
	}
	free(seen);
}

static void
test_index_comes_back_from_every_key(void **state)
{
	const uint32_t sizes[] = { 1, 2, 3, 1000, 65536, 65537, UINT32_C(1) << KEY_INDEX_BITS_MAX };
	struct key_space k;
	uint32_t i, index, serial;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		key_space_init(&k, &rng_kernel, sizes[i]);
		for (index = 0; index < sizes[i]; index += 1 + sizes[i] / 300) {
			for (serial = 0; serial < 300; serial++)
				assert_int_equal(key_index(&k, key_make(&k, index, serial)), index);
		}
	}
}

/*
 * 65536 entries leave 16 of the 32 bits to each: an entry has 65536 keys before the first repeats.
 */
static void
test_an_index_gives_no_key_twice(void **state)
{
	uint8_t *seen = calloc(UINT32_C(1) << 29, 1);
	const uint32_t indices[] = { 0, 1, 40000, 65535 };
	uint32_t i, serial, key;
	struct key_space k;

	(void)state;
	assert_non_null(seen);
	key_space_init(&k, &rng_kernel, 65536);
	for (i = 0; i < 4; i++) {
		for (serial = 0; serial < 65536; serial++) {
			key = key_make(&k, indices[i], serial);
			assert_int_equal(seen[key / 8] & (1 << (key % 8)), 0);
			seen[key / 8] |= (uint8_t)(1 << (key % 8));
		}
	}
	free(seen);
}

/* The key of index n must not reveal the key of index n + 1. */
static void
test_neighbours_have_unrelated_keys(void **state)
{
	uint32_t i, near = 0, same_step = 0, low_same = 0, step = 0, key, last;
	struct key_space k;

	(void)state;
	key_space_init(&k, &rng_kernel, 65536);
	last = key_make(&k, 0, 0);
	for (i = 1; i < 65536; i++) {
		key = key_make(&k, i, 0);
		near += (key >> 8) - (last >> 8) + 256 < 512;
		same_step += (key >> 8) - (last >> 8) == step;
		low_same += (key & 0xff) == (last & 0xff);
		step = (key >> 8) - (last >> 8);
		last = key;
	}
	/* random keys give 2, 0.004 and 256; a counter or a linear map would give 65535 */
	assert_true(near < 200);
	assert_true(same_step < 200);
	assert_true(low_same < 1024);
}

static void
test_low_byte_takes_every_value(void **state)
{
	uint32_t count[256] = { 0 }, i;
	struct key_space k;

	(void)state;
	key_space_init(&k, &rng_kernel, 65536);
	for (i = 0; i < 65536; i++)
		count[key_make(&k, i, 0) & 0xff]++;
	for (i = 0; i < 256; i++) /* expected 256, standard deviation 16 */
		assert_in_range(count[i], 100, 500);
}

static void
test_another_start_gives_other_keys(void **state)
{
	struct key_space a, b;
	uint32_t i, same = 0;

	(void)state;
	key_space_init(&a, &rng_kernel, 65536);
	key_space_init(&b, &rng_kernel, 65536);
	for (i = 0; i < 65536; i++)
		same += key_make(&a, i, 0) == key_make(&b, i, 0);
	assert_true(same < 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_permutation_is_a_bijection_of_24_bits),
		cmocka_unit_test(test_index_comes_back_from_every_key),
		cmocka_unit_test(test_an_index_gives_no_key_twice),
		cmocka_unit_test(test_neighbours_have_unrelated_keys),
		cmocka_unit_test(test_low_byte_takes_every_value),
		cmocka_unit_test(test_another_start_gives_other_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
