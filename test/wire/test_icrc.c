/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* ICRC and VCRC: the test vectors of rc-transport 9, and which bits each covers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hex.h"
#include "vectors.h"
#include "wire/bytes.h"
#include "wire/crc32.h"
#include "wire/wire.h"

static void
expect_crcs(enum encap encap, const char *packet, const char *icrc, const char *vcrc)
{
	uint8_t p[256], want[4];
	uint32_t len = hex_bytes(packet, p, sizeof(p));

	hex_bytes(icrc, want, sizeof(want));
	put_le32(p + len, wire_icrc(encap, p, len));
	assert_memory_equal(p + len, want, 4);
	if (vcrc == NULL)
		return;
	hex_bytes(vcrc, want, sizeof(want));
	put_le16(p + len + 4, wire_vcrc(p, len + 4));
	assert_memory_equal(p + len + 4, want, 2);
}

/* a whole Ethernet frame that ends in its ICRC */
static void
icrc_expect_frame(enum encap encap, const char *frame)
{
	uint8_t f[256];
	uint32_t len = hex_bytes(frame, f, sizeof(f));

	assert_int_equal(wire_icrc(encap, f + 14, len - 14 - 4), get_le32(f + len - 4));
}

static void
test_vectors(void **state)
{
	static const char *const kernels[] = { "portable", "pclmul", "vpclmul" };
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		if (crc32_use(kernels[i]) != 0)
			continue;
		expect_crcs(ENCAP_IB, VECTOR_LOCAL, VECTOR_LOCAL_ICRC, VECTOR_LOCAL_VCRC);
		expect_crcs(ENCAP_IB, VECTOR_GLOBAL, VECTOR_GLOBAL_ICRC, VECTOR_GLOBAL_VCRC);
		icrc_expect_frame(ENCAP_ROCEV2_IPV4, VECTOR_CNP);
		icrc_expect_frame(ENCAP_ROCEV2_IPV4, VECTOR_V4_ACK);
		icrc_expect_frame(ENCAP_ROCEV2_IPV4, VECTOR_V4_WRITE);
		icrc_expect_frame(ENCAP_ROCEV2_IPV6, VECTOR_V6_ACK);
		icrc_expect_frame(ENCAP_ROCEV1, VECTOR_V1_ACK);
	}
}

/*
 * Flip each bit: the ICRC changes if and only if the bit is in no variant field.
 * @param masked  pairs of byte offset (from layer 3) and mask of the variant bits; -1 ends the list
 */
static void
expect_covered(enum encap encap, uint8_t *l3, uint32_t len, const int *masked)
{
	uint32_t before = wire_icrc(encap, l3, len);
	uint32_t i, bit, variant;
	const int *m;

	for (i = 0; i < len; i++) {
		for (variant = 0, m = masked; *m >= 0; m += 2)
			if ((uint32_t)*m == i)
				variant = m[1];
		for (bit = 0; bit < 8; bit++) {
			if (i == 0 && encap <= ENCAP_ROCEV2_IPV6)
				/* IP version and header length decide how the packet is parsed */
				continue;
			if (encap == ENCAP_IB && i == 1 && bit < 2)
				continue; /* LNH decides how the packet is parsed */
			l3[i] ^= 1 << bit;
			if (variant >> bit & 1)
				assert_int_equal(wire_icrc(encap, l3, len), before);
			else
				assert_int_not_equal(wire_icrc(encap, l3, len), before);
			l3[i] ^= 1 << bit;
		}
	}
}

/* the table of variant fields in rc-transport 9 */
static void
test_icrc_covers_all_but_the_variant_fields(void **state)
{
	/* TOS, TTL, header checksum, UDP checksum, BTH byte 4 */
	static const int ipv4[] = { 1, 0xFF, 8, 0xFF, 10, 0xFF, 11, 0xFF, 26, 0xFF, 27, 0xFF, 32,
		0xFF, -1 };
	/* the same with two words of IPv4 options */
	static const int options[] = { 1, 0xFF, 8, 0xFF, 10, 0xFF, 11, 0xFF, 34, 0xFF, 35, 0xFF, 40,
		0xFF, -1 };
	/* traffic class, flow label, hop limit, UDP checksum, BTH byte 4 */
	static const int ipv6[] = { 0, 0x0F, 1, 0xFF, 2, 0xFF, 3, 0xFF, 7, 0xFF, 46, 0xFF, 47, 0xFF,
		52, 0xFF, -1 };
	static const int rocev1[] = { 0, 0x0F, 1, 0xFF, 2, 0xFF, 3, 0xFF, 7, 0xFF, 44, 0xFF, -1 };
	/* VL, BTH byte 4 */
	static const int local[] = { 0, 0xF0, 12, 0xFF, -1 };
	/* the LRH, the GRH's as in RoCEv1, BTH byte 4 */
	static const int global[] = { 0, 0xFF, 1, 0xFF, 2, 0xFF, 3, 0xFF, 4, 0xFF, 5, 0xFF, 6, 0xFF,
		7, 0xFF, 8, 0x0F, 9, 0xFF, 10, 0xFF, 11, 0xFF, 15, 0xFF, 52, 0xFF, -1 };
	uint8_t p[256];
	uint32_t len;

	(void)state;
	len = hex_bytes(VECTOR_V4_WRITE, p, sizeof(p));
	expect_covered(ENCAP_ROCEV2_IPV4, p + 14, len - 18, ipv4);
	memmove(p + 14 + 28, p + 14 + 20, len - 34);
	p[14] = 0x47;
	memset(p + 34, 1, 8);
	expect_covered(ENCAP_ROCEV2_IPV4, p + 14, len - 18 + 8, options);
	len = hex_bytes(VECTOR_V6_ACK, p, sizeof(p));
	expect_covered(ENCAP_ROCEV2_IPV6, p + 14, len - 18, ipv6);
	len = hex_bytes(VECTOR_V1_ACK, p, sizeof(p));
	expect_covered(ENCAP_ROCEV1, p + 14, len - 18, rocev1);
	len = hex_bytes(VECTOR_LOCAL, p, sizeof(p));
	expect_covered(ENCAP_IB, p, len, local);
	len = hex_bytes(VECTOR_GLOBAL, p, sizeof(p));
	expect_covered(ENCAP_IB, p, len, global);
}

/* The head is masked in a copy, the rest is read in place; check lengths around the boundary. */
static void
test_icrc_of_every_length_is_the_plain_crc_of_the_masked_bytes(void **state)
{
	uint8_t p[8 + 1400], plain[8 + 1400];
	uint8_t *l3 = p + 8;
	uint32_t len, i;

	(void)state;
	for (i = 0; i < sizeof(p); i++)
		p[i] = i * 37;
	hex_bytes("45000000000040004011000000010a0002", l3, 20);
	for (len = 20 + 8 + 12; len <= 1400; len++) {
		memcpy(plain, p, sizeof(p));
		memset(plain, 0xFF, 8);
		plain[8 + 1] = plain[8 + 8] = plain[8 + 10] = plain[8 + 11] = 0xFF;
		plain[8 + 26] = plain[8 + 27] = plain[8 + 32] = 0xFF;
		assert_int_equal(wire_icrc(ENCAP_ROCEV2_IPV4, l3, len),
			crc_kernel->update(0, plain, 8 + len));
	}
}

/* The packet is a heap block of its own, so that AddressSanitizer detects accesses outside. */
static void
expect_checked(uint32_t len)
{
	static const uint32_t variant[] = { 1, 8, 10, 11, 26, 27, 32 };
	uint8_t *l3 = malloc(len + 4), head[8 + 40];
	struct packet pkt = { .encap = ENCAP_ROCEV2_IPV4, .l3 = l3, .icrc_len = len };
	enum verdict why = VERDICT_COUNT;
	uint32_t i;

	assert_non_null(l3);
	for (i = 0; i < len; i++)
		l3[i] = i * 37 + len;
	l3[0] = 0x45;
	memset(head, 0xFF, 8);
	memcpy(head + 8, l3, 40);
	for (i = 0; i < sizeof(variant) / sizeof(variant[0]); i++)
		head[8 + variant[i]] = 0xFF;
	put_le32(l3 + len, crc_kernel->update(crc_kernel->update(0, head, 48), l3 + 40, len - 40));
	assert_true(wire_crc_ok(&pkt, &why));
	for (i = 0; i < sizeof(variant) / sizeof(variant[0]); i++)
		l3[variant[i]] ^= 0x5A;
	assert_true(wire_crc_ok(&pkt, &why));
	for (i = 2; i<len + 4; i += len> 200 ? 29 : 1) {
		if (head[8 + i % 40] == 0xFF && i < 40)
			continue;
		l3[i] ^= 1 << i % 8;
		assert_false(wire_crc_ok(&pkt, &why));
		assert_int_equal(why, VERDICT_ICRC);
		l3[i] ^= 1 << i % 8;
	}
	free(l3);
}

static void
test_each_kernel_checks_icrcs_of_every_length(void **state)
{
	static const char *const kernels[] = { "portable", "pclmul", "vpclmul" };
	unsigned int i, len;

	(void)state;
	for (i = 0; i < 3; i++) {
		if (crc32_use(kernels[i]) != 0)
			continue;
		for (len = 20 + 8 + 12; len <= 1400; len++)
			expect_checked(len);
		expect_checked(40 + 4096);
		expect_checked(40 + 16 + 4095);
	}
}

static void
test_vcrc_covers_every_bit(void **state)
{
	uint8_t p[256];
	uint32_t len = hex_bytes(VECTOR_LOCAL VECTOR_LOCAL_ICRC, p, sizeof(p));
	uint16_t before = wire_vcrc(p, len);
	uint32_t bit;

	(void)state;
	for (bit = 0; bit < len * 8; bit++) {
		p[bit / 8] ^= 1 << bit % 8;
		assert_int_not_equal(wire_vcrc(p, len), before);
		p[bit / 8] ^= 1 << bit % 8;
	}
	/* CRC-16, reflected 0xD008, bit by bit, for lengths that are no multiple of four */
	for (len = 1; len < 20; len++) {
		uint16_t crc = 0xFFFF;

		for (bit = 0; bit < len * 8; bit++) {
			crc ^= p[bit / 8] >> bit % 8 & 1;
			crc = crc >> 1 ^ (crc & 1 ? 0xD008 : 0);
		}
		assert_int_equal(wire_vcrc(p, len), (uint16_t)~crc);
	}
}

/* CRC-16, reflected 0xD008, bit by bit: every length, at any alignment, by every kernel */
static void
test_vcrc_kernels_agree(void **state)
{
	static const char *const kernels[] = { "portable", "pclmul", "vpclmul" };
	uint8_t p[700];
	unsigned int i, len, bit;

	(void)state;
	for (i = 0; i < sizeof(p); i++)
		p[i] = (uint8_t)(i * 167 + (i >> 3) * 29 + 1);
	for (i = 0; i < 3; i++) {
		uint16_t crc = 0xFFFF;

		if (crc32_use(kernels[i]) != 0)
			continue;
		for (len = 1; len < sizeof(p) - i; len++) {
			for (bit = 0; bit < 8; bit++) {
				crc ^= p[i + len - 1] >> bit & 1;
				crc = crc >> 1 ^ (crc & 1 ? 0xD008 : 0);
			}
			assert_int_equal(wire_vcrc(p + i, len), (uint16_t)~crc);
		}
	}
}

static void
test_wrong_icrc_and_wrong_vcrc_have_verdicts(void **state)
{
	enum verdict why = VERDICT_COUNT;
	struct packet pkt;
	uint8_t p[256];
	uint32_t len;

	(void)state;
	len = hex_bytes(VECTOR_V4_WRITE, p, sizeof(p));
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, p + 14, len - 14, &pkt, &why));
	assert_true(wire_crc_ok(&pkt, &why));
	p[len - 6] ^= 1; /* the padding is covered, too */
	assert_false(wire_crc_ok(&pkt, &why));
	assert_int_equal(why, VERDICT_ICRC);

	len = hex_bytes(VECTOR_LOCAL VECTOR_LOCAL_ICRC VECTOR_LOCAL_VCRC, p, sizeof(p));
	assert_true(wire_parse(ENCAP_IB, p, len, &pkt, &why));
	assert_true(wire_crc_ok(&pkt, &why));
	p[20] ^= 1;
	assert_false(wire_crc_ok(&pkt, &why));
	assert_int_equal(why, VERDICT_VCRC);
	/* a switch computes a new VCRC, also for a packet that was damaged before */
	put_le16(p + len - 2, wire_vcrc(p, len - 2));
	assert_false(wire_crc_ok(&pkt, &why));
	assert_int_equal(why, VERDICT_ICRC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_icrc_covers_all_but_the_variant_fields),
		cmocka_unit_test(test_icrc_of_every_length_is_the_plain_crc_of_the_masked_bytes),
		cmocka_unit_test(test_each_kernel_checks_icrcs_of_every_length),
		cmocka_unit_test(test_vcrc_covers_every_bit),
		cmocka_unit_test(test_vcrc_kernels_agree),
		cmocka_unit_test(test_wrong_icrc_and_wrong_vcrc_have_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
