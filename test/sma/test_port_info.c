/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PortInfo (smp-sma 3): position, width and rule of every field, from the sheet. For every field
 * each value below is set alone, and no other field may change.
 */

#include "smp_fixture.h"

#define PORT_INFO 0x0015
#define SAME      UINT64_MAX /* the value from before */
#define OK        0x0000
#define BAD       0x001C

struct value {
	uint64_t value;
	int status;
	uint64_t after;
};

#define END                                                                                        \
	{                                                                                          \
		0, -2, 0                                                                           \
	}

static const struct value any_1[] = { { 1, OK, 1 }, { 0, OK, 0 }, END };
static const struct value any_2[] = { { 3, OK, 3 }, { 1, OK, 1 }, { 2, OK, 2 }, { 0, OK, 0 }, END };
static const struct value any_3[] = { { 7, OK, 7 }, { 1, OK, 1 }, { 5, OK, 5 }, { 0, OK, 0 }, END };
static const struct value any_4[] = { { 15, OK, 15 }, { 1, OK, 1 }, { 10, OK, 10 }, { 0, OK, 0 },
	END };
static const struct value any_5[] = { { 31, OK, 31 }, { 1, OK, 1 }, { 21, OK, 21 }, { 0, OK, 0 },
	END };
static const struct value any_8[] = { { 0xFF, OK, 0xFF }, { 1, OK, 1 }, { 0xA5, OK, 0xA5 },
	{ 0, OK, 0 }, END };
static const struct value any_16[] = { { 0xFFFF, OK, 0xFFFF }, { 1, OK, 1 }, { 0xA5C3, OK, 0xA5C3 },
	{ 0, OK, 0 }, END };
static const struct value any_64[] = { { 0x0123456789ABCDEF, OK, 0x0123456789ABCDEF },
	{ 0x8000000000000001, OK, 0x8000000000000001 }, { 0, OK, 0 }, END };
/* what a Set does not look at; bits beyond the width are cut off */
static const struct value read_only[] = { { 0xFFFFFFFF, OK, SAME }, { 0, OK, SAME },
	{ 0xA5A5A5A5, OK, SAME }, END };
static const struct value lid[] = { { 0, BAD, SAME }, { 1, OK, 1 }, { 0xBFFF, OK, 0xBFFF },
	{ 0xC000, BAD, SAME }, { 0xFFFE, BAD, SAME }, { 0xFFFF, BAD, SAME }, { 5, OK, 5 }, END };
/* port 1 has 1x and 4x */
static const struct value width[] = { { 0, OK, SAME }, { 1, OK, 1 }, { 2, OK, 2 }, { 4, BAD, SAME },
	{ 8, BAD, SAME }, { 7, BAD, SAME }, { 0x10, BAD, SAME }, { 0xFE, BAD, SAME },
	{ 0xFF, OK, 3 }, { 2, OK, 2 }, { 3, OK, 3 }, END };
/* SDR, DDR, QDR */
static const struct value speed[] = { { 0, OK, SAME }, { 1, OK, 1 }, { 2, OK, 2 }, { 4, OK, 4 },
	{ 5, OK, 5 }, { 8, BAD, SAME }, { 9, BAD, SAME }, { 14, BAD, SAME }, { 15, OK, 7 },
	{ 6, OK, 6 }, { 7, OK, 7 }, END };
/* FDR, EDR */
static const struct value speed_ext[] = { { 0, OK, SAME }, { 1, OK, 1 }, { 2, OK, 2 },
	{ 4, BAD, SAME }, { 8, BAD, SAME }, { 16, BAD, SAME }, { 30, BAD, SAME }, { 31, OK, 3 },
	{ 1, OK, 1 }, { 3, OK, 3 }, END };
static const struct value down_default[] = { { 0, OK, SAME }, { 1, OK, 1 }, { 2, OK, 2 },
	{ 0, OK, SAME }, { 3, BAD, SAME }, { 4, BAD, SAME }, { 5, BAD, SAME }, { 15, BAD, SAME },
	END };
/* up to 2048 */
static const struct value mtu[] = { { 0, BAD, SAME }, { 1, OK, 1 }, { 2, OK, 2 }, { 3, OK, 3 },
	{ 4, OK, 4 }, { 5, BAD, SAME }, { 6, BAD, SAME }, { 15, BAD, SAME }, END };
/* up to VL0-7 */
static const struct value vls[] = { { 0, OK, SAME }, { 1, OK, 1 }, { 2, OK, 2 }, { 3, OK, 3 },
	{ 0, OK, SAME }, { 4, OK, 4 }, { 5, BAD, SAME }, { 6, BAD, SAME }, { 15, BAD, SAME }, END };
/* not 0 to begin with */
static const struct value counter[] = { { 1, OK, SAME }, { 0xFFFF, OK, SAME }, { 0, OK, 0 }, END };
/* states have tests of their own */
static const struct value state[] = { { 0, OK, SAME }, END };
static const struct value reregister[] = { { 1, OK, 1 }, { 0, OK, 0 }, END };

static const struct field {
	const char *name;
	uint8_t byte, skip, bits;
	const struct value *values;
} fields[] = {
	{ "M_Key", 0, 0, 64, any_64 },
	{ "GidPrefix", 8, 0, 64, any_64 },
	{ "LID", 16, 0, 16, lid },
	{ "MasterSMLID", 18, 0, 16, lid },
	{ "CapabilityMask", 20, 0, 32, read_only },
	{ "DiagCode", 24, 0, 16, read_only },
	{ "M_KeyLeasePeriod", 26, 0, 16, any_16 },
	{ "LocalPortNum", 28, 0, 8, read_only },
	{ "LinkWidthEnabled", 29, 0, 8, width },
	{ "LinkWidthSupported", 30, 0, 8, read_only },
	{ "LinkWidthActive", 31, 0, 8, read_only },
	{ "LinkSpeedSupported", 32, 0, 4, read_only },
	{ "PortState", 32, 4, 4, state },
	{ "PortPhysState", 33, 0, 4, state },
	{ "DownDefaultState", 33, 4, 4, down_default },
	{ "M_KeyProtectBits", 34, 0, 2, any_2 },
	{ "rsvd 34", 34, 2, 3, read_only },
	{ "LMC", 34, 5, 3, any_3 },
	{ "LinkSpeedActive", 35, 0, 4, read_only },
	{ "LinkSpeedEnabled", 35, 4, 4, speed },
	{ "NeighborMTU", 36, 0, 4, mtu },
	{ "MasterSMSL", 36, 4, 4, any_4 },
	{ "VLCap", 37, 0, 4, read_only },
	{ "InitType", 37, 4, 4, any_4 },
	{ "VLHighLimit", 38, 0, 8, any_8 },
	{ "VLArbHighCap", 39, 0, 8, read_only },
	{ "VLArbLowCap", 40, 0, 8, read_only },
	{ "InitTypeReply", 41, 0, 4, read_only },
	{ "MTUCap", 41, 4, 4, read_only },
	{ "VLStallCount", 42, 0, 3, any_3 },
	{ "HOQLife", 42, 3, 5, any_5 },
	{ "OperVLs", 43, 0, 4, vls },
	{ "PartEnfIn", 43, 4, 1, any_1 },
	{ "PartEnfOut", 43, 5, 1, any_1 },
	{ "FilterRawIn", 43, 6, 1, any_1 },
	{ "FilterRawOut", 43, 7, 1, any_1 },
	{ "M_KeyViolations", 44, 0, 16, counter },
	{ "P_KeyViolations", 46, 0, 16, counter },
	{ "Q_KeyViolations", 48, 0, 16, counter },
	{ "GUIDCap", 50, 0, 8, read_only },
	{ "ClientReregister", 51, 0, 1, reregister },
	{ "McastPkeyTrapSuppr", 51, 1, 2, read_only }, /* CapabilityMask bit 29 is 0 */
	{ "SubnetTimeOut", 51, 3, 5, any_5 },
	{ "rsvd 52", 52, 0, 3, read_only },
	{ "RespTimeValue", 52, 3, 5, read_only },
	{ "LocalPhyErrors", 53, 0, 4, any_4 },
	{ "OverrunErrors", 53, 4, 4, any_4 },
	{ "MaxCreditHint", 54, 0, 16, read_only },
	{ "rsvd 56", 56, 0, 8, read_only },
	{ "LinkRoundTripLatency", 57, 0, 24, read_only },
	{ "CapabilityMask2", 60, 0, 16, read_only },
	{ "LinkSpeedExtActive", 62, 0, 4, read_only },
	{ "LinkSpeedExtSupported", 62, 4, 4, read_only },
	{ "rsvd 63", 63, 0, 3, read_only },
	{ "LinkSpeedExtEnabled", 63, 3, 5, speed_ext },
};

#define NUM_FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Some violations of each kind. */
static void
violate(struct bench *b)
{
	const struct sma_totals t = { .pkey_violations = 3, .qkey_violations = 4 };
	uint8_t info[64];

	port_info(b, info);
	put_be64(info, 0xABCD);
	assert_int_equal(set(b, PORT_INFO, 0, info), OK);
	assert_int_equal(set(b, PORT_INFO, 0, info), SILENT); /* without the key */
	b->m_key = 0xABCD;
	sma_port_totals(b->sma, 0, &t, b->now);
}

static void
port_info_check(const struct field *f, const struct value *v, int status, const uint8_t *before,
	const uint8_t *after)
{
	unsigned int first = f->byte * 8 + f->skip;
	uint64_t want = v->after == SAME ? bits_of(before, first, f->bits) : v->after;
	uint64_t got = bits_of(after, first, f->bits);
	uint8_t rest[64];

	if (status != v->status)
		fail_msg("%s = 0x%llx: status 0x%x", f->name, (unsigned long long)v->value, status);
	if (got != want)
		fail_msg("%s = 0x%llx: shows 0x%llx", f->name, (unsigned long long)v->value,
			(unsigned long long)got);
	memcpy(rest, after, 64);
	bits_to(rest, first, f->bits, bits_of(before, first, f->bits));
	if (memcmp(rest, before, 64) != 0)
		fail_msg("%s = 0x%llx changed another field", f->name,
			(unsigned long long)v->value);
}

static void
test_every_field_alone(void **state)
{
	struct bench *b = *state;
	uint8_t before[64], info[64];

	violate(b);
	for (unsigned int i = 0; i < NUM_FIELDS; i++)
		for (const struct value *v = fields[i].values; v->status != -2; v++) {
			int status;

			assert_int_equal(get(b, PORT_INFO, 0), OK);
			memcpy(before, b->data, 64);
			port_info(b, info);
			bits_to(info, fields[i].byte * 8 + fields[i].skip, fields[i].bits,
				v->value);
			status = set(b, PORT_INFO, 0, info);
			port_info_check(&fields[i], v, status, before, b->data);
			b->m_key = get_be64(b->data);
			/* and a Get shows the same, except ClientReregister, which is not stored */
			memcpy(info, b->data, 64);
			info[51] &= 0x7F;
			assert_int_equal(get(b, PORT_INFO, 0), OK);
			assert_memory_equal(b->data, info, 64);
		}
}

static void
test_table_covers_every_bit_once(void **state)
{
	uint8_t seen[64] = { 0 };

	(void)state;
	for (unsigned int i = 0; i < NUM_FIELDS; i++)
		for (unsigned int n = 0; n < fields[i].bits; n++) {
			unsigned int bit = fields[i].byte * 8 + fields[i].skip + n;

			assert_int_equal(bits_of(seen, bit, 1), 0);
			bits_to(seen, bit, 1, 1);
		}
	for (unsigned int i = 0; i < 64; i++)
		assert_int_equal(seen[i], 0xFF);
}

/* As configured, before any Set by a subnet manager; literal bytes in the sheet's order. */
static void
test_get_at_first(void **state)
{
	struct bench *b = *state;
	static const uint8_t port1[64] = {
		0, 0, 0, 0, 0, 0, 0, 0, /* M_Key */
		0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 5, 0, 7,
		/*
		 * IsSM 1, Notice 2, Trap 3, AutoMigration 5, SLMapping 6, LedInfo 9,
		 * SystemImageGUID 11, ExtendedSpeeds 14, CM 16, VendorClass 20, DRNotice 21,
		 * CapMaskNotice 22, ClientReregistration 25, OtherLocalChangesNotice 26
		 */
		0x06, 0x71, 0x4A, 0x6E, 0, 0, 0, 0, /* DiagCode, lease */
		1, 0x03, 0x03, 0x02, /* port; widths */
		0x72, 0x52, /* speeds, Initialize; LinkUp, Polling */
		0x00, 0x47, /* LMC; speed active QDR, all enabled */
		0x42, 0x40, 0x00, 64, 64, /* MTU 2048, SL 2; 8 VLs; high limit; arbitration */
		0x04, 0x00, 0x40, /* MTUCap 2048; HOQLife; OperVLs */
		0, 0, 0, 0, 0, 0, /* violations */
		32, 18, 16, /* GUIDCap, SubnetTimeOut, RespTimeValue */
		0x88, 0, 0, 0, 0, 0, 0, /* thresholds; hint; latency */
		0, 0, /* CapabilityMask2 */
		0x23, 0x03, /* EDR of FDR and EDR */
	};
	static const uint8_t port2[64] = { 0, 0, 0, 0, 0, 0, 0, 0, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0,
		6, 0, 7, 0x06, 0x71, 0x0A, 0x2C, 0, 0, 0, 0, 2, 0x02, 0x02, 0x02, 0x12, 0x52, 0x00,
		0x11, 0x50, 0x10, 0x00, 0, 0, 0x05, 0x00, 0x10, 0, 0, 0, 0, 0, 0, 32, 18, 16, 0x88,
		0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x00 };

	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_memory_equal(b->data, port1, 64);
	b->port = 1;
	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_memory_equal(b->data, port2, 64);
}

static void
test_modifier_names_the_port(void **state)
{
	struct bench *b = *state;

	assert_int_equal(get(b, PORT_INFO, 1), OK);
	assert_int_equal(get_be16(b->data + LID), 5);
	/* another port of the CA: its PortInfo, but the receiving port's LocalPortNum */
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_int_equal(get_be16(b->data + LID), 6);
	assert_int_equal(b->data[28], 1);
	/* exists, but is not managed; does not exist */
	assert_int_equal(get(b, PORT_INFO, 3), BAD);
	assert_int_equal(get(b, PORT_INFO, 4), BAD);
	assert_int_equal(get(b, PORT_INFO, 0x10001), BAD);
	/* bit 31: the SM knows extended speeds; opensm sets it when the port has them */
	assert_int_equal(get(b, PORT_INFO, 0x80000002), OK);
	assert_int_equal(get_be16(b->data + LID), 6);
	assert_int_equal(get(b, PORT_INFO, 0x80000000), OK);
	assert_int_equal(get_be16(b->data + LID), 5);
}

/* smp-sma 3: a Set of another port changes nothing and is answered like a Get */
static void
test_set_of_another_port_is_a_get(void **state)
{
	struct bench *b = *state;
	uint8_t info[64], before[64];

	assert_int_equal(get(b, PORT_INFO, 2), OK);
	memcpy(before, b->data, 64);
	memset(info, 0xFF, 64);
	assert_int_equal(set(b, PORT_INFO, 2, info), OK);
	assert_memory_equal(b->data, before, 64);
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_memory_equal(b->data, before, 64);
	expect_no_event(b);
	/* if that port does not exist, the request's data is returned */
	assert_int_equal(set(b, PORT_INFO, 3, info), BAD);
	assert_memory_equal(b->data, info, 64);
}

/* smp-sma 4: another port's M_Key is checked, too */
static void
test_other_port_has_its_own_m_key(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];

	b->port = 1;
	port_info(b, info);
	put_be64(info, 0x77);
	info[PROTECT] |= 1 << 6;
	assert_int_equal(set(b, PORT_INFO, 0, info), OK);
	b->port = 0;
	/* ProtectBits 1 of port 2: seen, but for the key */
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_true(get_be64(b->data) == 0);
	assert_int_equal(set(b, PORT_INFO, 2, info), SILENT);
	assert_int_equal(b->verdict, VERDICT_MKEY);
	/* port 1 has no key, so any is right there */
	b->m_key = 0x77;
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_true(get_be64(b->data) == 0x77);
	assert_int_equal(get_be16(b->data + 44), 1);
	assert_int_equal(set(b, PORT_INFO, 2, info), OK);
	/* port 1's own hidden M_Key does not hide port 2's */
	b->m_key = 0;
	port_info(b, info);
	put_be64(info, 0x55);
	info[PROTECT] |= 1 << 6;
	assert_int_equal(set(b, PORT_INFO, 0, info), OK);
	b->m_key = 0x77;
	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_true(get_be64(b->data) == 0);
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_true(get_be64(b->data) == 0x77);
	b->m_key = 0x55;
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_true(get_be64(b->data) == 0);
}

/* smp-sma 3: an invalid field sets the status, the other fields still apply */
static void
test_other_fields_apply_beside_an_invalid_one(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];

	port_info(b, info);
	put_be16(info + LID, 0xC000);
	put_be16(info + MASTER_SM_LID, 0x1234);
	info[36] = 0x6B; /* NeighborMTU 6 invalid, MasterSMSL 11 */
	info[38] = 0x99; /* VLHighLimit */
	info[PORT_STATE] |= 3; /* Armed */
	assert_int_equal(set(b, PORT_INFO, 0, info), BAD);
	assert_int_equal(get_be16(b->data + LID), 5);
	assert_int_equal(get_be16(b->data + MASTER_SM_LID), 0x1234);
	assert_int_equal(b->data[36], 0x4B);
	assert_int_equal(b->data[38], 0x99);
	assert_int_equal(b->data[PORT_STATE] & 0xF, 3);
}

/* LMC goes with the LID */
static void
test_lmc_without_a_valid_lid_stays(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];

	port_info(b, info);
	put_be16(info + LID, 0);
	info[34] |= 3;
	assert_int_equal(set(b, PORT_INFO, 0, info), BAD);
	assert_int_equal(b->data[34] & 7, 0);
}

static void
test_violation_counters_stick_and_count_from_their_clearing(void **state)
{
	struct bench *b = *state;
	struct sma_totals t = { .pkey_violations = 0x10005, .qkey_violations = 9 };

	sma_port_totals(b->sma, 0, &t, b->now);
	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_int_equal(get_be16(b->data + 46), 0xFFFF);
	assert_int_equal(get_be16(b->data + 48), 9);
	assert_int_equal(set_16(b, 46, 0), OK); /* P_Key alone */
	t.pkey_violations += 2;
	t.qkey_violations += 1;
	sma_port_totals(b->sma, 0, &t, b->now);
	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_int_equal(get_be16(b->data + 46), 2);
	assert_int_equal(get_be16(b->data + 48), 10);
	/* the other port has its own */
	assert_int_equal(get(b, PORT_INFO, 2), OK);
	assert_int_equal(get_be16(b->data + 46), 0);
}

/* If no extended speed is supported, "all that is supported" means none and is no error. */
static void
test_no_extended_speeds(void **state)
{
	struct bench *b = *state;

	b->port = 1;
	assert_int_equal(set_byte(b, 63, 31), OK);
	assert_int_equal(b->data[63], 0);
	assert_int_equal(set_byte(b, 63, 1), BAD);
	assert_int_equal(b->data[63], 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_get_at_first),
		cmocka_unit_test(test_table_covers_every_bit_once),
		T(test_every_field_alone),
		T(test_modifier_names_the_port),
		T(test_set_of_another_port_is_a_get),
		T(test_other_port_has_its_own_m_key),
		T(test_other_fields_apply_beside_an_invalid_one),
		T(test_lmc_without_a_valid_lid_stays),
		T(test_violation_counters_stick_and_count_from_their_clearing),
		T(test_no_extended_speeds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
