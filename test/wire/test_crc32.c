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
#include "wire/icrc_masks.h"
#include "wire/packet.h"

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
	assert_string_equal(crc_kernel->name, name);
	for (offset = 0; offset < ALIGNMENTS; offset++) {
		for (len = 0; len <= SHORT_MAX; len++) {
			seed = offset & 1 ? 0x2144DF1C * len : 0;
			if (crc_kernel->update(seed, data + offset, len) !=
				crc32(seed, data + offset, len))
				fail_msg("%s: offset %u len %u", name, offset, len);
		}
		for (i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
			if (crc_kernel->update(i, data + offset, large[i]) !=
				crc32(i, data + offset, large[i]))
				fail_msg("%s: offset %u len %u", name, offset, large[i]);
		}
	}
}

/* A kernel that this CPU cannot run reports it; every other kernel agrees with zlib. */
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
			exact = malloc(len); /* AddressSanitizer detects accesses outside */
			assert_non_null(exact);
			memcpy(exact, data, len);
			assert_int_equal(crc_kernel->update(0, exact, len), crc32(0, data, len));
			free(exact);
		}
	}
}

static void
test_crc_in_two_parts_equals_crc_of_the_whole(void **state)
{
	uint32_t whole, split, i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (crc32_use(names[i]) != 0)
			continue;
		whole = crc_kernel->update(0, data, 1100);
		for (split = 0; split <= 1100; split++)
			assert_int_equal(crc_kernel->update(crc_kernel->update(0, data, split),
						 data + split, 1100 - split),
				whole);
	}
}

/* --- crc_kernel.packet(): masked bits of the head count as ones; the payload is copied --- */

#define HEAD_MIN 3 /* blocks */
#define GUARD    0xA5

struct packet_buf {
	uint8_t keep[16];
	uint8_t ones[CRC32_HEAD_MAX];
	uint8_t bytes[ALIGNMENTS + CRC32_HEAD_MAX + 9000 + 64];
};

/* The result that crc_kernel.packet() must have, by zlib, which inverts the register: 0 is ~0. */
static uint32_t
packet_by_zlib(const struct packet_buf *b, const uint8_t *head, uint32_t blocks,
	const uint8_t *payload, uint32_t len)
{
	uint8_t masked[CRC32_HEAD_MAX];
	uint32_t i;

	for (i = 0; i < blocks * 16; i++)
		masked[i] = (i < 16 ? head[i] & b->keep[i] : head[i]) | b->ones[i];
	return crc32(crc32(crc32(UINT32_MAX, masked, blocks * 16), payload, len),
		(const uint8_t *)"\0\0\0", -len & 3);
}

static void
check_packet(struct packet_buf *b, uint32_t offset, uint32_t blocks, uint32_t len)
{
	uint8_t *head = b->bytes + offset, *at = head + blocks * 16;
	const uint8_t *from = data + offset * 7 % 61;
	uint32_t i, end = (len + 3) & ~3u, want;

	memcpy(head, data + offset, blocks * 16);
	memset(at, GUARD, end + 64);
	want = packet_by_zlib(b, head, blocks, from, len);
	if (crc_kernel->packet(head, b->keep, b->ones, blocks, len > 0 ? from : NULL, len) != want)
		fail_msg("%s: offset %u blocks %u len %u", crc_kernel->name, offset, blocks, len);
	assert_memory_equal(head, data + offset, blocks * 16);
	assert_memory_equal(at, from, len);
	for (i = len; i < end; i++)
		assert_int_equal(at[i], 0);
	for (i = end; i < end + 64; i++)
		assert_int_equal(at[i], GUARD);
}

static void
test_packet_kernels_agree_with_zlib_and_copy(void **state)
{
	static const uint32_t large[] = { 1024, 1500, 2048, 4095, 4096, 9000 };
	static struct packet_buf b;
	uint32_t k, i, offset, blocks, len;

	(void)state;
	memcpy(b.ones, data + 1000, sizeof(b.ones));
	memcpy(b.keep, data + 2000, sizeof(b.keep));
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (crc32_use(names[k]) != 0)
			continue;
		for (offset = 0; offset < ALIGNMENTS; offset += 3)
			for (len = 0; len <= SHORT_MAX; len++)
				check_packet(&b, offset, HEAD_MIN + len % 5, len);
		for (i = 0; i < sizeof(large) / sizeof(large[0]); i++)
			for (blocks = HEAD_MIN; blocks <= CRC32_HEAD_MAX / 16; blocks++)
				check_packet(&b, i * 13 % ALIGNMENTS, blocks, large[i]);
	}
}

static void
test_packet_kernels_read_no_payload_byte_outside(void **state)
{
	static const uint8_t keep[16], ones[64];
	uint8_t frame[64 + SHORT_MAX + 4] = { 0 };
	unsigned int i, len;
	uint8_t *exact;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (crc32_use(names[i]) != 0)
			continue;
		for (len = 1; len <= SHORT_MAX; len++) {
			exact = malloc(len);
			assert_non_null(exact);
			memcpy(exact, data, len);
			crc_kernel->packet(frame, keep, ones, 4, exact, len);
			assert_memory_equal(frame + 64, data, len);
			free(exact);
		}
	}
}

/* --- the kernels' ICRC: bytes of ones first, masked bits of the head count as ones, no copy --- */

/* The packet is a heap block of its own, so that AddressSanitizer detects accesses outside. */
static void
check_icrc(unsigned int row, uint32_t len)
{
	uint8_t *exact = malloc(len), *masked = malloc(8 + len);
	uint32_t i, want;

	assert_non_null(exact);
	assert_non_null(masked);
	memcpy(exact, data + len % ALIGNMENTS, len);
	memset(masked, 0xFF, 8);
	for (i = 0; i < len; i++)
		masked[8 + i] = exact[i] | (i < ICRC_REST ? icrc_mask(row)[i] : 0);
	want = crc32(0, masked, 8 + len);
	if (crc_kernel->icrc(row, exact, len) != want)
		fail_msg("%s: row %u len %u", crc_kernel->name, row, len);
	assert_memory_equal(exact, data + len % ALIGNMENTS, len);
	free(masked);
	free(exact);
}

static void
test_masked_kernels_agree_with_zlib_and_read_no_byte_outside(void **state)
{
	static const uint32_t large[] = { 1024, 1500, 2048, 4095, 4096, 9000 };
	static const uint32_t shortest[] = {
		[ENCAP_ROCEV2_IPV4] = 20 + 8 + 12,
		[ENCAP_ROCEV2_IPV6] = 40 + 8 + 12,
		[ENCAP_ROCEV1] = 40 + 12,
	};
	uint32_t k, i, row, len;

	(void)state;
	for (k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		if (crc32_use(names[k]) != 0)
			continue;
		for (row = 0; row < sizeof(shortest) / sizeof(shortest[0]); row++) {
			for (len = shortest[row]; len <= SHORT_MAX + 64; len++)
				check_icrc(row, len);
			for (i = 0; i < sizeof(large) / sizeof(large[0]); i++)
				check_icrc(row, large[i]);
		}
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
	before = crc_kernel->name;
	assert_int_equal(crc32_use("abacus"), -ENOTSUP);
	assert_string_equal(crc_kernel->name, before);
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
	assert_int_equal(crc_kernel->update(0, "123456789", 9), 0xCBF43926);
	/* rc-transport 9: the register after eight bytes 0xFF */
	crc = crc_kernel->update(0, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
	assert_int_equal((uint32_t)~crc, 0xDEBB20E3);
}

static int
crc32_fill(void **state)
{
	size_t i, size = (1 << 20) + ALIGNMENTS;

	(void)state;
	at_start = crc_kernel->name;
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
		cmocka_unit_test(test_crc_in_two_parts_equals_crc_of_the_whole),
		cmocka_unit_test(test_packet_kernels_agree_with_zlib_and_copy),
		cmocka_unit_test(test_packet_kernels_read_no_payload_byte_outside),
		cmocka_unit_test(test_masked_kernels_agree_with_zlib_and_read_no_byte_outside),
		cmocka_unit_test(test_fastest_kernel_is_in_use_from_the_start),
		cmocka_unit_test(test_check_values),
		cmocka_unit_test(test_choice_of_kernel),
	};

	return cmocka_run_group_tests(tests, crc32_fill, empty);
}
