/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Every attribute except PortInfo: Get, Set, each invalid modifier; unsupported attributes; the
 * order of smp-sma 6. The expected bytes are the sheet's.
 */

#include "smp_fixture.h"

#define OK         0x0000
#define BAD_METHOD 0x0008
#define BAD_ATTR   0x000C
#define BAD_FIELD  0x001C

static const uint8_t zeros[64];
static uint8_t pattern[64];

static int
attributes_group_setup(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 64; i++)
		pattern[i] = (uint8_t)(0x11 + 7 * i);
	return 0;
}

/* smp-sma 2: an error gives the request's data back */
static void
attributes_refused(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier,
	int status)
{
	int got = ask(b, method, attribute, modifier, pattern);

	if (got != status)
		fail_msg("method 0x%x attribute 0x%x modifier 0x%x: status 0x%x", method, attribute,
			modifier, got);
	assert_memory_equal(b->data, pattern, 64);
}

/* Get and Set, where there is a Set, refuse these modifiers. */
static void
bad_modifiers(struct bench *b, uint16_t attribute, bool has_set, const uint32_t *modifiers)
{
	for (; *modifiers != 0; modifiers++) {
		attributes_refused(b, GET, attribute, *modifiers, BAD_FIELD);
		if (has_set)
			attributes_refused(b, SET, attribute, *modifiers, BAD_FIELD);
	}
}
#define BAD_MODIFIERS(b, attribute, has_set, ...)                                                  \
	bad_modifiers(b, attribute, has_set, (const uint32_t[]){ __VA_ARGS__, 0 })

/* --- the node --- */

static void
test_node_description(void **state)
{
	struct bench *b = *state;
	static const uint8_t desc[64] = "polca test node";

	assert_int_equal(get(b, 0x0010, 0), OK);
	assert_memory_equal(b->data, desc, 64);
	BAD_MODIFIERS(b, 0x0010, false, 1, 0x10000, 0x80000000);
	/* smp-sma 8: no Set without CapabilityMask2 bit 0 */
	attributes_refused(b, SET, 0x0010, 0, BAD_ATTR);
	assert_int_equal(get(b, 0x0010, 0), OK);
	assert_memory_equal(b->data, desc, 64);
}

static void
test_node_info(void **state)
{
	struct bench *b = *state;
	uint8_t info[64] = {
		1, 1, 1, 3, /* versions, CA, 3 ports */
		0x00, 0x02, 0xC9, 0x03, 0x00, 0x00, 0x01, 0xFF, /* SystemImageGUID */
		0x00, 0x02, 0xC9, 0x03, 0x00, 0x00, 0x01, 0x00, /* NodeGUID */
		0x00, 0x02, 0xC9, 0x03, 0x00, 0x00, 0x01, 0x01, /* PortGUID */
		0x00, 64, 0xBE, 0xEF, /* PartitionCap, DeviceID */
		0x00, 0x00, 0x00, 0xA1, /* Revision */
		1, 0x00, 0x14, 0x05, /* LocalPortNum, VendorID */
	};

	assert_int_equal(get(b, 0x0011, 0), OK);
	assert_memory_equal(b->data, info, 64);
	BAD_MODIFIERS(b, 0x0011, false, 1, 0xFFFFFFFF);
	attributes_refused(b, SET, 0x0011, 0, BAD_ATTR);
	/* LocalPortNum is the receiving port's */
	b->port = 1;
	info[27] = 0x02;
	info[36] = 2;
	assert_int_equal(get(b, 0x0011, 0), OK);
	assert_memory_equal(b->data, info, 64);
}

static void
test_vendor_diag(void **state)
{
	struct bench *b = *state;

	assert_int_equal(get(b, 0x0030, 0), OK);
	assert_memory_equal(b->data, zeros, 64); /* NextIndex 0 */
	BAD_MODIFIERS(b, 0x0030, false, 1, 0xFFFF);
	attributes_refused(b, SET, 0x0030, 0, BAD_ATTR);
}

static void
test_led_info(void **state)
{
	struct bench *b = *state;
	const uint8_t on[64] = { 0x80 }, others[64] = { 0x7F, 0xFF, 0xFF, 0xFF };

	assert_int_equal(get(b, 0x0031, 0), OK);
	assert_memory_equal(b->data, zeros, 64);
	assert_int_equal(set(b, 0x0031, 0, on), OK);
	assert_memory_equal(b->data, on, 64);
	BAD_MODIFIERS(b, 0x0031, true, 1, 0x100);
	assert_int_equal(get(b, 0x0031, 0), OK);
	assert_memory_equal(b->data, on, 64);
	b->port = 1; /* each port has its own */
	assert_int_equal(get(b, 0x0031, 0), OK);
	assert_memory_equal(b->data, zeros, 64);
	b->port = 0;
	assert_int_equal(set(b, 0x0031, 0, others), OK);
	assert_memory_equal(b->data, zeros, 64);
}

static void
test_notice_queue(void **state)
{
	struct bench *b = *state;
	const struct sma_bad_key k = { .key = 0x1234, .lid1 = 9, .lid2 = 5 };

	assert_int_equal(get(b, 0x0002, 0), OK);
	assert_int_equal(b->data[0] & 0x7F, 0x7F); /* empty */
	BAD_MODIFIERS(b, 0x0002, false, 1);
	attributes_refused(b, SET, 0x0002, 0, BAD_ATTR);
	sma_bad_key(b->sma, 0, &k, b->now);
	assert_int_equal(get(b, 0x0002, 0), OK);
	assert_int_equal(b->data[0], 0x82); /* generic, security */
	assert_int_equal(get_be16(b->data + 4), 257);
	assert_int_equal(get_be32(b->data + 16), 0x1234);
}

/* --- tables --- */

static void
test_guid_info(void **state)
{
	struct bench *b = *state;
	uint8_t guids[64] = { 0x00, 0x02, 0xC9, 0x03, 0x00, 0x00, 0x01, 0x01 };

	assert_int_equal(get(b, 0x0014, 0), OK);
	assert_memory_equal(b->data, guids, 64);
	/* entry 0 of block 0 is the port's, read only */
	assert_int_equal(set(b, 0x0014, 0, pattern), OK);
	memcpy(guids + 8, pattern + 8, 56);
	assert_memory_equal(b->data, guids, 64);
	/* GUIDCap 32: blocks 0 to 3 */
	for (uint32_t block = 1; block < 4; block++) {
		assert_int_equal(get(b, 0x0014, block), OK);
		assert_memory_equal(b->data, zeros, 64);
		assert_int_equal(set(b, 0x0014, block, pattern), OK);
		assert_memory_equal(b->data, pattern, 64);
	}
	BAD_MODIFIERS(b, 0x0014, true, 4, 5, 0x10000, 0xFFFFFFFF);
	assert_int_equal(get(b, 0x0014, 0), OK);
	assert_memory_equal(b->data, guids, 64);
}

static void
test_pkey_table(void **state)
{
	struct bench *b = *state;
	const uint8_t pkeys[64] = { 0xFF, 0xFF };

	assert_int_equal(get(b, 0x0016, 0), OK);
	assert_memory_equal(b->data, pkeys, 64);
	/* PartitionCap 64: blocks 0 and 1 */
	assert_int_equal(get(b, 0x0016, 1), OK);
	assert_memory_equal(b->data, zeros, 64);
	assert_int_equal(set(b, 0x0016, 1, pattern), OK);
	assert_memory_equal(b->data, pattern, 64);
	assert_int_equal(get(b, 0x0016, 0), OK);
	assert_memory_equal(b->data, pkeys, 64);
	assert_int_equal(set(b, 0x0016, 0, pattern), OK);
	assert_memory_equal(b->data, pattern, 64);
	/* high half: 0, or the receiving port by its number */
	assert_int_equal(get(b, 0x0016, 0x10001), OK);
	BAD_MODIFIERS(b, 0x0016, true, 2, 0xFFFF, 0x20000, 0xFF0000);
}

static void
test_sl_to_vl(void **state)
{
	struct bench *b = *state;
	/* 8 VLs: SL i on VL i mod 8 */
	const uint8_t at_first[64] = { 0x01, 0x23, 0x45, 0x67, 0x01, 0x23, 0x45, 0x67 };
	const uint8_t map[64] = { 0xF1, 0x02, 0x13, 0x20, 0x31, 0x42, 0x53, 0x64 };
	uint8_t more[64];

	assert_int_equal(get(b, 0x0017, 0), OK);
	assert_memory_equal(b->data, at_first, 64);
	memset(more, 0xEE, 64);
	memcpy(more, map, 8);
	assert_int_equal(set(b, 0x0017, 0, more), OK);
	assert_memory_equal(b->data, map, 64); /* 8 bytes, the rest is not of the attribute */
	assert_int_equal(get(b, 0x0017, 0x0101), OK);
	BAD_MODIFIERS(b, 0x0017, true, 2, 0x0200, 0x10000, 0xFF);
	/* port 2 has one VL: no such attribute */
	b->port = 1;
	attributes_refused(b, GET, 0x0017, 0, BAD_ATTR);
	attributes_refused(b, SET, 0x0017, 0, BAD_ATTR);
}

static void
test_vl_arbitration(void **state)
{
	struct bench *b = *state;
	const uint8_t low[64] = { 0, 1, 1, 1, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1, 7, 1 };
	uint8_t table[64];

	assert_int_equal(get(b, 0x0018, 0x10000), OK);
	assert_memory_equal(b->data, low, 64);
	for (uint32_t part = 1; part <= 4; part++) {
		for (unsigned int i = 0; i < 64; i++)
			table[i] = (uint8_t)(part * 16 + i);
		assert_int_equal(set(b, 0x0018, part << 16, table), OK);
		for (unsigned int i = 0; i < 64; i += 2)
			table[i] &= 0x0F; /* reserved above the VL */
		assert_memory_equal(b->data, table, 64);
	}
	assert_int_equal(get(b, 0x0018, 0x20001), OK);
	assert_int_equal(b->data[1], 33);
	attributes_refused(b, GET, 0x0018, 0, BAD_FIELD); /* parts count from 1 */
	attributes_refused(b, SET, 0x0018, 0, BAD_FIELD);
	BAD_MODIFIERS(b, 0x0018, true, 1, 0x50000, 0x10002, 0xFFFF0000);
	b->port = 1;
	attributes_refused(b, GET, 0x0018, 0x10000, BAD_ATTR);
	attributes_refused(b, SET, 0x0018, 0x10000, BAD_ATTR);
}

/* --- what is not supported --- */

static void
test_unknown_attributes(void **state)
{
	struct bench *b = *state;
	static const uint16_t ids[] = { 0x0000, 0x0001, 0x0003, 0x0012, 0x0013, 0x0019, 0x001A,
		0x001B, 0x001D, 0x0021, 0x0032, 0x8010, 0xFF00, 0xFF90, 0xFFFF };

	for (unsigned int i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		attributes_refused(b, GET, ids[i], 0, BAD_ATTR);
		attributes_refused(b, SET, ids[i], 0, BAD_ATTR);
	}
}

/* All but Get, Set, Trap, TrapRepress; with R they are responses. Even to an unknown attribute. */
static void
test_unknown_methods(void **state)
{
	struct bench *b = *state;

	for (uint8_t method = 0; method < 0x80; method++) {
		if (method == GET || method == SET || method == 0x05 || method == TRAP_REPRESS)
			continue;
		attributes_refused(b, method, 0x0011, 0, BAD_METHOD);
		assert_int_equal(b->reply_mad[3], 0x81); /* smp-sma 6.6 */
		attributes_refused(b, method, 0xFF00, 0, BAD_METHOD);
	}
}

static void
test_unknown_class_version(void **state)
{
	struct bench *b = *state;

	make(b, GET, 0x0011, 0, NULL);
	b->mad_sent[2] = 2;
	assert_int_equal(send_made(b), 0x0004);
	b->mgmt_class = 0x81;
	make(b, GET, 0x0011, 0, NULL);
	b->mad_sent[2] = 0;
	assert_int_equal(send_made(b), 0x0004);
}

/* smp-sma 6.3: Traps and Reports are for a subnet manager, and none is here */
static void
test_traps_and_responses_are_not_for_an_agent(void **state)
{
	struct bench *b = *state;

	b->port = 1; /* no SM behind it */
	assert_int_equal(ask(b, 0x05, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_SMP_NO_SM);
	assert_int_equal(ask(b, 0x81, 0x0011, 0, pattern), SILENT);
	assert_int_not_equal(b->verdict, VERDICT_DATAGRAM);
	b->m_key = 1;
	assert_int_equal(ask(b, 0x05, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_SMP_NO_SM);
}

static void
test_trap_repress_is_not_answered(void **state)
{
	struct bench *b = *state;

	assert_int_equal(ask(b, TRAP_REPRESS, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_DATAGRAM);
	assert_int_equal(sma_counters(b->sma, 0)->repress_unmatched, 1);
}

static void
test_port_without_agent(void **state)
{
	struct bench *b = *state;

	b->port = 2;
	assert_int_equal(get(b, 0x0011, 0), SILENT);
	assert_int_equal(b->verdict, VERDICT_SMP);
}

/* --- the answer as a packet --- */

static void
test_answer_to_a_lid_routed_request(void **state)
{
	struct bench *b = *state;

	assert_int_equal(get(b, 0x0010, 0), OK);
	assert_int_equal(b->reply.dlid, 7); /* swapped */
	assert_int_equal(b->reply.slid, 5);
	assert_int_equal(b->reply.dest_qpn, 0);
	assert_int_equal(b->reply.vl, 15);
	assert_memory_equal(b->reply_mad,
		((const uint8_t[]){ 1, 1, 1, 0x81, 0, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66,
			0x77, 0x88, 0, 0x10, 0, 0, 0, 0, 0, 0 }),
		24);
	for (unsigned int i = 128; i < 256; i++)
		assert_int_equal(b->reply_mad[i], 0);
}

static void
test_answer_to_a_directed_route(void **state)
{
	struct bench *b = *state;

	b->mgmt_class = 0x81;
	make(b, SET, 0x0031, 0, (const uint8_t[64]){ 0x80 });
	b->mad_sent[6] = 2; /* HopPointer, HopCount */
	b->mad_sent[7] = 2;
	memcpy(b->mad_sent + 128, (const uint8_t[]){ 0, 1, 4 }, 3);
	memcpy(b->mad_sent + 192, (const uint8_t[]){ 0, 3 }, 2);
	assert_int_equal(send_made(b), OK);
	assert_int_equal(b->reply.dlid, 0xFFFF);
	assert_int_equal(b->reply.slid, 0xFFFF);
	assert_memory_equal(b->reply_mad, ((const uint8_t[]){ 1, 0x81, 1, 0x81, 0x80, 0, 2, 2 }),
		8);
	assert_memory_equal(b->reply_mad + 128, ((const uint8_t[]){ 0, 1, 4 }), 3);
	assert_memory_equal(b->reply_mad + 192, ((const uint8_t[]){ 0, 3, 1 }), 3);
	assert_int_equal(b->data[0], 0x80);
	/* an error keeps the D bit */
	assert_int_equal(set(b, 0x0010, 0, pattern), BAD_ATTR);
	assert_int_equal(get_be16(b->reply_mad + 4), 0x800C);
}

/* --- sma_read() and counters --- */

static void
test_read_without_m_key(void **state)
{
	struct bench *b = *state;
	uint8_t info[64], data[64];

	port_info(b, info);
	put_be64(info, 0x99);
	info[34] |= 3 << 6;
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	assert_int_equal(get(b, 0x0015, 0), SILENT);
	assert_int_equal(sma_read(b->sma, 0, 0x0015, 0, data), OK);
	assert_int_equal(get_be16(data + LID), 5);
	assert_int_equal(get_be16(data + 44), 1); /* and that was no violation */
	assert_int_equal(sma_read(b->sma, 1, 0x0015, 0, data), OK);
	assert_int_equal(get_be16(data + LID), 6);
	assert_int_equal(sma_read(b->sma, 0, 0x0016, 2, data), BAD_FIELD);
	assert_int_equal(sma_read(b->sma, 0, 0x0012, 0, data), BAD_ATTR);
	assert_int_equal(sma_read(b->sma, 2, 0x0011, 0, data), BAD_FIELD);
	assert_int_equal(sma_read(b->sma, 64, 0x0011, 0, data), BAD_FIELD);
}

static void
test_counters(void **state)
{
	struct bench *b = *state;
	const struct sma_counters *c = sma_counters(b->sma, 0);

	get(b, 0x0010, 0);
	get(b, 0x0012, 0);
	get(b, 0x0010, 1);
	set(b, 0x0031, 0, zeros);
	set(b, 0x0031, 1, zeros);
	ask(b, 0x03, 0x0010, 0, zeros);
	assert_int_equal(c->smp_get, 3);
	assert_int_equal(c->smp_set, 2);
	assert_int_equal(c->smp_bad_attribute, 1);
	assert_int_equal(c->smp_invalid_field, 2);
	assert_int_equal(c->smp_bad_method, 1);
	assert_int_equal(sma_counters(b->sma, 1)->smp_get, 0);
	assert_null(sma_counters(b->sma, 2));
	assert_null(sma_counters(b->sma, 64));
}

static void
test_classes_are_taken_once(void **state)
{
	struct bench *b = *state;
	const struct sma_config c = {
		.mad = b->mad,
		.wheel = b->wheel,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
		.hz = SECOND,
	};

	assert_null(sma_create(&c));
	assert_int_equal(get(b, 0x0011, 0), OK);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_node_description),
		T(test_node_info),
		T(test_vendor_diag),
		T(test_led_info),
		T(test_notice_queue),
		T(test_guid_info),
		T(test_pkey_table),
		T(test_sl_to_vl),
		T(test_vl_arbitration),
		T(test_unknown_attributes),
		T(test_unknown_methods),
		T(test_unknown_class_version),
		T(test_traps_and_responses_are_not_for_an_agent),
		T(test_trap_repress_is_not_answered),
		T(test_port_without_agent),
		T(test_answer_to_a_lid_routed_request),
		T(test_answer_to_a_directed_route),
		T(test_read_without_m_key),
		T(test_counters),
		T(test_classes_are_taken_once),
	};

	return cmocka_run_group_tests(tests, attributes_group_setup, NULL);
}
