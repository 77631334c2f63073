/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Notices of a CA: compare the bytes with smp-sma 5, and read them with opensm's structure.
 */

#include <string.h>

#include "osm_notice.h"
#include "trap_fixture.h"

#define CAP_MASK  20
#define CAP_MASK2 60

struct fixture {
	struct bench *b;
	uint8_t notice[SMA_DATA_LEN];
};

static int
notice_setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	if (bench_setup((void **)&f.b) != 0)
		return -1;
	bench_port_info(f.b->p, LID, 0x1234);
	put_be32(f.b->p->info + CAP_MASK, 0xA1B2C3D4);
	put_be16(f.b->p->info + CAP_MASK2, 0x0E0F);
	memset(f.notice, 0xEE, sizeof(f.notice));
	*state = &f;
	return 0;
}

static int
notice_teardown(void **state)
{
	struct fixture *f = *state;

	return bench_teardown((void **)&f->b);
}

/* opensm's name of a field, and what it must read there */
static void
osm(const struct fixture *f, const char *name, uint64_t want)
{
	uint64_t got = osm_notice(f->notice, name);

	if (got != want)
		fail_msg("opensm reads %s as 0x%llx, not 0x%llx", name, (unsigned long long)got,
			(unsigned long long)want);
}

/* The fields that all notices have, as opensm reads them. */
static void
expect_generic(const struct fixture *f, uint8_t type, uint16_t number)
{
	osm(f, "generic", 1);
	osm(f, "type", type);
	osm(f, "producer", 1);
	osm(f, "trap", number);
	osm(f, "issuer_lid", 0x1234);
	osm(f, "toggle", 0);
	osm(f, "count", 0);
}

static void
test_129_130_131_link(void **state)
{
	struct fixture *f = *state;
	uint16_t number;

	for (number = 129; number <= 131; number++) {
		uint8_t want[64] = { 0x81, 0, 0, 1, 0, (uint8_t)number, 0x12, 0x34, 0, 0,
			/* details */ 0, 0, 0x12, 0x34, 1 };

		sma_notice_link(f->b->p, number, f->notice);
		assert_memory_equal(f->notice, want, 64);
		expect_generic(f, 1, number);
		osm(f, "129.lid", 0x1234);
		osm(f, "129.port", 1);
	}
}

/* the number of the port in the channel adapter is one more than its index */
static void
test_link_tells_the_port(void **state)
{
	struct fixture *f = *state;

	sma_notice_link(&f->b->sma->port[1], 130, f->notice);
	assert_int_equal(f->notice[14], 2);
	assert_int_equal(get_be16(f->notice + 6), 6);
	assert_int_equal(get_be16(f->notice + 12), 6);
}

static void
test_144_node_description_changed(void **state)
{
	static const uint8_t want[64] = { 0x84, 0, 0, 1, 0, 144, 0x12, 0x34, 0, 0, 0, 0, 0x12, 0x34,
		0, 0x01, 0xA1, 0xB2, 0xC3, 0xD4, 0, 0x01, 0x0E, 0x0F };
	struct fixture *f = *state;

	sma_notice_change(f->b->p, 0x0001, f->notice);
	assert_memory_equal(f->notice, want, 64);
	expect_generic(f, 4, 144);
	osm(f, "144.lid", 0x1234);
	osm(f, "144.other", 1);
	osm(f, "144.node_desc", 1);
	osm(f, "144.width", 0);
	osm(f, "144.speed", 0);
	osm(f, "144.cap_mask", 0xA1B2C3D4);
	osm(f, "144.cap_mask2", 0x0E0F);
}

static void
test_144_width_and_speed_changed(void **state)
{
	struct fixture *f = *state;

	sma_notice_change(f->b->p, 0x0006, f->notice);
	assert_int_equal(f->notice[15], 1);
	osm(f, "144.node_desc", 0);
	osm(f, "144.width", 1);
	osm(f, "144.speed", 1);
}

/* a CapabilityMask that changed is no "other" change */
static void
test_144_capability_changed(void **state)
{
	static const uint8_t want[64] = { 0x84, 0, 0, 1, 0, 144, 0x12, 0x34, 0, 0, 0, 0, 0x12, 0x34,
		0, 0, 0xA1, 0xB2, 0xC3, 0xD4, 0, 0, 0x0E, 0x0F };
	struct fixture *f = *state;

	sma_notice_change(f->b->p, 0, f->notice);
	assert_memory_equal(f->notice, want, 64);
}

static void
test_145_system_image_guid(void **state)
{
	static const uint8_t want[64] = { 0x84, 0, 0, 1, 0, 145, 0x12, 0x34, 0, 0, 0, 0, 0x12, 0x34,
		0, 0, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77 };
	struct fixture *f = *state;

	sma_notice_image(f->b->p, f->notice);
	assert_memory_equal(f->notice, want, 64);
	expect_generic(f, 4, 145);
	osm(f, "145.lid", 0x1234);
	osm(f, "145.guid", UINT64_C(0x0011223344556677));
}

/* --- 256 --- */

/* A Set(PortInfo) with a wrong key, M_Key 0x8899AABBCCDDEEFF. */
static struct smp
bad_smp(uint8_t *mad, uint8_t mgmt_class)
{
	static const uint8_t key[8] = { 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF };

	memset(mad, 0, MAD_LEN);
	mad[1] = mgmt_class;
	memcpy(mad + 24, key, 8);
	return (struct smp){
		.mad = mad,
		.method = 0x02,
		.attribute = 0x0015,
		.modifier = 0x01020304,
	};
}

static void
test_256_lid_routed(void **state)
{
	static const uint8_t want[64] = { 0x82, 0, 0, 1, 0x01, 0x00, 0x12, 0x34, 0, 0, 0, 0, 0x12,
		0x34, 0, 0, 0x02, 0, 0x00, 0x15, 1, 2, 3, 4, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD,
		0xEE, 0xFF };
	struct fixture *f = *state;
	uint8_t mad[MAD_LEN];
	struct smp smp = bad_smp(mad, 0x01);

	memset(mad + 32, 0x77, 32); /* reserved there, and no route */
	memset(mad + 128, 0x77, 128);
	sma_notice_mkey(f->b->p, &smp, f->notice);
	assert_memory_equal(f->notice, want, 64);
	expect_generic(f, 2, 256);
	osm(f, "256.lid", 0x1234);
	osm(f, "256.dr_slid", 0);
	osm(f, "256.method", 2);
	osm(f, "256.attribute", 0x15);
	osm(f, "256.modifier", 0x01020304);
	osm(f, "256.m_key", UINT64_C(0x8899AABBCCDDEEFF));
	osm(f, "256.dr", 0);
}

/* An SMP with a route of this many hops; hop i has port 0x40 + i in the return path. */
static void
put_way(uint8_t *mad, uint8_t hops)
{
	unsigned int i;

	mad[7] = hops;
	put_be16(mad + 32, 0xFFFF);
	for (i = 1; i <= 63; i++)
		mad[192 + i] = (uint8_t)(0x40 + i);
}

static void
test_256_directed_route(void **state)
{
	static const uint8_t want[64] = { 0x82, 0, 0, 1, 0x01, 0x00, 0x12, 0x34, 0, 0, 0, 0, 0x12,
		0x34, 0xFF, 0xFF, 0x02, 0, 0x00, 0x15, 1, 2, 3, 4, 0x88, 0x99, 0xAA, 0xBB, 0xCC,
		0xDD, 0xEE, 0xFF, 0, 0x80 | 3, 0, 0x41, 0x42, 0x43 };
	struct fixture *f = *state;
	uint8_t mad[MAD_LEN];
	struct smp smp = bad_smp(mad, 0x81);

	put_way(mad, 3);
	sma_notice_mkey(f->b->p, &smp, f->notice);
	assert_memory_equal(f->notice, want, 64);
	osm(f, "256.dr_slid", 0xFFFF);
	osm(f, "256.dr", 0x83);
	osm(f, "256.path[3]", 0x43);
}

/* 30 bytes of the path have room, byte 0 is one of them */
static void
test_256_long_route_is_truncated(void **state)
{
	static const struct {
		uint8_t hops, byte33, last;
	} way[] = { { 0, 0x80, 0 }, { 29, 0x80 | 29, 0x40 + 29 }, { 30, 0xC0 | 30, 0x40 + 29 },
		{ 63, 0xC0 | 63, 0x40 + 29 } };
	struct fixture *f = *state;
	uint8_t mad[MAD_LEN];
	struct smp smp = bad_smp(mad, 0x81);
	unsigned int i;

	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
		put_way(mad, way[i].hops);
		sma_notice_mkey(f->b->p, &smp, f->notice);
		assert_int_equal(f->notice[33], way[i].byte33);
		assert_int_equal(f->notice[34], 0);
		assert_int_equal(f->notice[63], way[i].last);
	}
}

/* --- 257, 258 --- */

static const struct sma_bad_key bad_key = {
	.key = 0x00008001,
	.lid1 = 0x0A0B,
	.lid2 = 0x0C0D,
	.sl = 0xF,
	.qp1 = 0x123456,
	.qp2 = 0xABCDEF,
	.gid1.raw = { 0xFE, 0x80, [15] = 1 },
	.gid2.raw = { 0xFE, 0x80, [15] = 2 },
};

static void
test_257_bad_pkey(void **state)
{
	static const uint8_t want[64] = { 0x82, 0, 0, 1, 0x01, 0x01, 0x12, 0x34, 0, 0, 0, 0, 0x0A,
		0x0B, 0x0C, 0x0D, 0, 0, 0x80, 0x01, 0xF0, 0x12, 0x34, 0x56, 0, 0xAB, 0xCD,
		0xEF, [28] = 0xFE, [29] = 0x80, [43] = 1, [44] = 0xFE, [45] = 0x80, [59] = 2 };
	struct fixture *f = *state;

	sma_notice_key(f->b->p, &bad_key, f->notice);
	assert_memory_equal(f->notice, want, 64);
	expect_generic(f, 2, 257);
	osm(f, "257.lid1", 0x0A0B);
	osm(f, "257.lid2", 0x0C0D);
	osm(f, "257.key", 0x8001);
	osm(f, "257.sl_qp1", 0xF0123456);
	osm(f, "257.qp2", 0xABCDEF);
	osm(f, "257.gid1", 1);
	osm(f, "257.gid2", 2);
}

static void
test_258_bad_qkey(void **state)
{
	struct sma_bad_key k = bad_key;
	struct fixture *f = *state;

	k.qkey = true;
	k.key = 0x80010000;
	sma_notice_key(f->b->p, &k, f->notice);
	expect_generic(f, 2, 258);
	assert_int_equal(get_be32(f->notice + 16), 0x80010000);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, notice_setup, notice_teardown)
	const struct CMUnitTest tests[] = {
		T(test_129_130_131_link),
		T(test_link_tells_the_port),
		T(test_144_node_description_changed),
		T(test_144_width_and_speed_changed),
		T(test_144_capability_changed),
		T(test_145_system_image_guid),
		T(test_256_lid_routed),
		T(test_256_directed_route),
		T(test_256_long_route_is_truncated),
		T(test_257_bad_pkey),
		T(test_258_bad_qkey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
