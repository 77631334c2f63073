/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* RDMA-CM over the CM: service IDs and the header of private data (cm.md 7, 8). */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../wire/hex.h"
#include "vectors.h"

static void
check_both_ways(const struct cm_rdma_vector *v)
{
	uint8_t want[CM_RDMA_LEN], got[CM_RDMA_LEN];
	struct cm_rdma rdma;

	assert_int_equal(hex_bytes(v->hex, want, sizeof(want)), 36);
	memset(got, 0xAA, sizeof(got));
	cm_rdma_encode(&v->rdma, got);
	assert_memory_equal(got, want, sizeof(want));
	assert_int_equal(cm_rdma_decode(want, &rdma), 0);
	assert_true(rdma.present);
	assert_int_equal(rdma.src_port, v->rdma.src_port);
	assert_memory_equal(&rdma.src, &v->rdma.src, 16);
	assert_memory_equal(&rdma.dst, &v->rdma.dst, 16);
}

static void
test_ipv4_and_ipv6_headers(void **state)
{
	(void)state;
	check_both_ways(&cm_rdma_v4);
	check_both_ways(&cm_rdma_v6);
}

static void
test_one_ipv6_address_makes_it_ipv6(void **state)
{
	struct cm_rdma rdma = cm_rdma_v4.rdma;
	uint8_t data[CM_RDMA_LEN];

	(void)state;
	rdma.dst = cm_rdma_v6.rdma.dst;
	cm_rdma_encode(&rdma, data);
	assert_int_equal(data[1], 0x60);
	assert_memory_equal(data + 4, &cm_rdma_v4.rdma.src, 16);
	rdma = cm_rdma_v4.rdma;
	rdma.src = cm_rdma_v6.rdma.src;
	cm_rdma_encode(&rdma, data);
	assert_int_equal(data[1], 0x60);
}

/* Bytes beside an IPv4 address, and reserved bits, are ignored. */
static void
test_reserved_bits_of_the_header(void **state)
{
	uint8_t data[CM_RDMA_LEN];
	struct cm_rdma rdma;

	(void)state;
	hex_bytes(cm_rdma_v4.hex, data, sizeof(data));
	data[1] |= 0x0F;
	data[4] = data[15] = data[20] = data[31] = 0xFF;
	assert_int_equal(cm_rdma_decode(data, &rdma), 0);
	assert_memory_equal(&rdma.src, &cm_rdma_v4.rdma.src, 16);
	assert_memory_equal(&rdma.dst, &cm_rdma_v4.rdma.dst, 16);
}

static void
test_other_versions_are_refused(void **state)
{
	uint8_t data[CM_RDMA_LEN];
	struct cm_rdma rdma;

	(void)state;
	hex_bytes(cm_rdma_v4.hex, data, sizeof(data));
	for (unsigned int version = 0; version < 256; version++) {
		data[0] = (uint8_t)version;
		assert_int_equal(cm_rdma_decode(data, &rdma), version == 0 ? 0 : -EINVAL);
	}
	data[0] = 0;
	for (unsigned int ip = 0; ip < 16; ip++) {
		data[1] = (uint8_t)(ip << 4);
		assert_int_equal(cm_rdma_decode(data, &rdma), ip == 4 || ip == 6 ? 0 : -EINVAL);
	}
}

static void
test_port_spaces(void **state)
{
	(void)state;
	assert_int_equal(cm_port_space(0x0000000001061234), 0x0106);
	assert_int_equal(cm_port_space(0x0000000001110000), 0x0111);
	assert_int_equal(cm_port_space(0x00000000013FFFFF), 0x013F);
	assert_int_equal(cm_port_space(0x0000000000020001), 0x0002);
	assert_int_equal(cm_port_space(0), 0);
	assert_int_equal(cm_port_space(0x0000000001071234), 0);
	assert_int_equal(cm_port_space(0x0000000101061234), 0);
	assert_int_equal(cm_port_space(0x0106000001061234), 0);
	assert_int_equal(cm_service_id(CM_PS_TCP, 0x1234), 0x0000000001061234);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4_and_ipv6_headers),
		cmocka_unit_test(test_one_ipv6_address_makes_it_ipv6),
		cmocka_unit_test(test_reserved_bits_of_the_header),
		cmocka_unit_test(test_other_versions_are_refused),
		cmocka_unit_test(test_port_spaces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
