/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Every CRC-32 kernel against zlib's crc32. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "wire/crc32.h"

#define ALIGNMENTS 64
#define SHORT_MAX  600

static const char *const names[] = { "portable", "pclmul", "vpclmul" };
static const char *at_start;
static uint8_t *data;

static void
check_kernel(const char *name)
{
	static const uint32_t large[] = { 1024, 1500, 4096, 4097, 9000, 65535, 1 << 20 };
	uint32_t offset, len, i, seed;

	assert_int_equal(crc32_use(name), 0);
	assert_string_equal(crc32_kernel(), name);
	for (offset = 0; offset < ALIGNMENTS; offset++) {
		for (len = 0; len <= SHORT_MAX; len++) {
			seed = offset & 1 ? 0x2144DF1C * len : 0;
			if (crc32_update(seed, data + offset, len) !=
				crc32(seed, data + offset, len))
				fail_msg("%s: offset %u len %u", name, offset, len);
		}
		for (i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
			if (crc32_update(i, data + offset, large[i]) !=
				crc32(i, data + offset, large[i]))
				fail_msg("%s: offset %u len %u", name, offset, large[i]);
		}
	}
}

/* a kernel this CPU lacks must say so; one that it has must agree with zlib */
static void
test_kernels_agree_with_zlib(void **state)
{
	unsigned int i;
	int err;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		err = crc32_use(names[i]);
		if (err == 0)
			check_kernel(names[i]);
		else
			assert_int_equal(err, -ENOTSUP);
		print_message("%s: %s\n", names[i], err ? "not on this CPU" : "checked");
	}
}

static void
test_kernels_read_no_byte_outside(void **state)
{
	unsigned int i, len;
	uint8_t *exact;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (crc32_use(names[i]) != 0)
			continue;
		for (len = 1; len <= SHORT_MAX; len++) {
			exact = malloc(len); /* the address sanitizer watches both ends */
			assert_non_null(exact);
			memcpy(exact, data, len);
			assert_int_equal(crc32_update(0, exact, len), crc32(0, data, len));
			free(exact);
		}
	}
}

static void
test_any_split_gives_the_same_crc(void **state)
{
	uint32_t whole, split, i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (crc32_use(names[i]) != 0)
			continue;
		whole = crc32_update(0, data, 1100);
		for (split = 0; split <= 1100; split++)
			assert_int_equal(crc32_update(crc32_update(0, data, split), data + split,
						 1100 - split),
				whole);
	}
}

/* names[] is from the slowest to the fastest */
static void
test_fastest_kernel_is_in_use_from_the_start(void **state)
{
	const char *fastest = NULL;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (crc32_use(names[i]) == 0)
			fastest = names[i];
	assert_string_equal(at_start, fastest);
}

static void
test_choice_of_kernel(void **state)
{
	const char *before;

	(void)state;
	assert_int_equal(crc32_use("portable"), 0);
	before = crc32_kernel();
	assert_int_equal(crc32_use("abacus"), -ENOTSUP);
	assert_string_equal(crc32_kernel(), before);
#if defined(__x86_64__)
	__builtin_cpu_init();
	assert_int_equal(crc32_use("pclmul") == 0, !!__builtin_cpu_supports("pclmul"));
#endif
}

static void
test_check_values(void **state)
{
	uint32_t crc;

	(void)state;
	/* the check value every CRC-32 catalogue gives */
	assert_int_equal(crc32_update(0, "123456789", 9), 0xCBF43926);
	/* rc-transport 9: register after eight 0xFF bytes */
	crc = crc32_update(0, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
	assert_int_equal((uint32_t)~crc, 0xDEBB20E3);
}

static int
fill(void **state)
{
	size_t i, size = (1 << 20) + ALIGNMENTS;

	(void)state;
	at_start = crc32_kernel();
	data = malloc(size);
	if (data == NULL)
		return -1;
	srandom(1);
	for (i = 0; i < size; i++)
		data[i] = random() >> 7;
	return 0;
}

static int
empty(void **state)
{
	(void)state;
	free(data);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernels_agree_with_zlib),
		cmocka_unit_test(test_kernels_read_no_byte_outside),
		cmocka_unit_test(test_any_split_gives_the_same_crc),
		cmocka_unit_test(test_fastest_kernel_is_in_use_from_the_start),
		cmocka_unit_test(test_check_values),
		cmocka_unit_test(test_choice_of_kernel),
	};

	return cmocka_run_group_tests(tests, fill, empty);
}
