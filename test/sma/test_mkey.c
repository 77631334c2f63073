/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The M_Key (smp-sma 4): which requests pass, violations, lease, trap 256. */

#include "smp_fixture.h"

#define PORT_INFO 0x0015
#define KEY       0x1122334455667788ull
#define WRONG     0x1122334455667789ull
#define OK        0x0000

enum outcome {
	PASS,
	SHOWN, /* passes, and the key is seen */
	HIDDEN, /* passes, the key shows as 0 */
	FAIL,
};

/* M_Key, ProtectBits, lease; from now on requests carry the key. */
static void
guard(struct bench *b, uint64_t key, uint8_t protect, uint16_t lease)
{
	uint8_t info[64];

	port_info(b, info);
	put_be64(info, key);
	put_be16(info + M_KEY_LEASE, lease);
	info[PROTECT] = (info[PROTECT] & 0x3F) | protect << 6;
	assert_int_equal(set(b, PORT_INFO, 0, info), OK);
	b->m_key = key;
}

/* M_KeyViolations, without touching the lease */
static uint16_t
violations(struct bench *b)
{
	uint8_t data[64];

	assert_int_equal(sma_read(b->sma, 0, PORT_INFO, 0, data), OK);
	return get_be16(data + 44);
}

static uint8_t
protect_bits(struct bench *b)
{
	uint8_t data[64];

	assert_int_equal(sma_read(b->sma, 0, PORT_INFO, 0, data), OK);
	return data[PROTECT] >> 6;
}

static int
ask_with(struct bench *b, uint8_t method, uint64_t key)
{
	uint8_t data[64];
	uint64_t own = b->m_key;
	int status;

	assert_int_equal(sma_read(b->sma, 0, PORT_INFO, 0, data), OK);
	data[PORT_STATE] &= 0xF0;
	data[PHYS_STATE] &= 0x0F;
	memset(data + 44, 0xFF, 6);
	b->m_key = key;
	status = ask(b, method, method == TRAP_REPRESS ? 0x0002 : PORT_INFO, 0, data);
	b->m_key = own;
	return status;
}

static void
mkey_expect(struct bench *b, uint8_t method, uint64_t key, enum outcome want, uint64_t real)
{
	uint16_t before = violations(b);
	int status = ask_with(b, method, key);

	assert_int_equal(violations(b), want == FAIL ? before + 1 : before);
	assert_int_equal(b->verdict, want == FAIL ? VERDICT_MKEY : VERDICT_DATAGRAM);
	if (want == FAIL || method == TRAP_REPRESS) {
		assert_int_equal(status, SILENT);
		return;
	}
	assert_int_equal(status, OK);
	if (want != PASS)
		assert_true(get_be64(b->data) == (want == SHOWN ? real : 0));
}

/* The sheet's table, its columns by ProtectBits 0 to 3 */
static void
test_table(void **state)
{
	struct bench *b = *state;
	static const struct {
		uint64_t m_key; /* of the port */
		uint64_t sent;
		enum outcome get[4];
		enum outcome set[4];
	} rows[] = {
		{ 0, 0, { SHOWN, SHOWN, SHOWN, SHOWN }, { PASS, PASS, PASS, PASS } },
		{ 0, WRONG, { SHOWN, SHOWN, SHOWN, SHOWN }, { PASS, PASS, PASS, PASS } },
		{ KEY, KEY, { SHOWN, SHOWN, SHOWN, SHOWN }, { SHOWN, SHOWN, SHOWN, SHOWN } },
		{ KEY, WRONG, { SHOWN, HIDDEN, FAIL, FAIL }, { FAIL, FAIL, FAIL, FAIL } },
		{ KEY, 0, { SHOWN, HIDDEN, FAIL, FAIL }, { FAIL, FAIL, FAIL, FAIL } },
	};

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint8_t protect = 0; protect < 4; protect++) {
			guard(b, rows[i].m_key, protect, 0);
			mkey_expect(b, GET, rows[i].sent, rows[i].get[protect], rows[i].m_key);
			mkey_expect(b, TRAP_REPRESS, rows[i].sent, rows[i].set[protect], 0);
			mkey_expect(b, SET, rows[i].sent, rows[i].set[protect], rows[i].m_key);
		}
}

/* A Set that fails has no effect; the M_Key is checked before the attribute */
static void
test_failed_set_changes_nothing(void **state)
{
	struct bench *b = *state;
	const uint8_t on[64] = { 0x80 };

	guard(b, KEY, 0, 0);
	b->m_key = WRONG;
	assert_int_equal(set(b, 0x0031, 0, on), SILENT);
	assert_int_equal(set(b, 0xFF00, 0, on), SILENT);
	assert_int_equal(b->verdict, VERDICT_MKEY);
	assert_int_equal(get(b, 0x0031, 0), OK);
	assert_int_equal(b->data[0], 0);
	/* methods that do not exist are answered as such, key or not */
	assert_int_equal(ask(b, 0x03, 0x0031, 0, on), 0x0008);
	assert_int_equal(violations(b), 2);
}

static void
test_violations_stick_at_the_top(void **state)
{
	struct bench *b = *state;

	guard(b, KEY, 2, 0);
	for (unsigned int i = 0; i < 0x10003; i++)
		assert_int_equal(ask_with(b, GET, WRONG), SILENT);
	assert_int_equal(violations(b), 0xFFFF);
	assert_int_equal(sma_counters(b->sma, 0)->mkey_violations, 0x10003);
	assert_int_equal(set_16(b, 44, 0), OK);
	assert_int_equal(violations(b), 0);
	assert_int_equal(ask_with(b, GET, WRONG), SILENT);
	assert_int_equal(violations(b), 1);
}

/* --- lease --- */

static void
test_lease_expires(void **state)
{
	struct bench *b = *state;

	guard(b, KEY, 2, 3);
	bench_pass(b, 100 * SECOND); /* no lease runs before a violation */
	assert_int_equal(protect_bits(b), 2);
	assert_int_equal(ask_with(b, SET, WRONG), SILENT);
	bench_pass(b, 2 * SECOND);
	assert_int_equal(ask_with(b, SET, WRONG), SILENT); /* it is not started anew */
	bench_pass(b, SECOND - MS);
	assert_int_equal(protect_bits(b), 2);
	bench_pass(b, 2 * MS);
	assert_int_equal(protect_bits(b), 0);
	assert_int_equal(sma_counters(b->sma, 0)->mkey_expired, 1);
	/* the key stays, so a Set still needs it, but every Get shows it */
	assert_int_equal(ask_with(b, SET, WRONG), SILENT);
	assert_int_equal(ask_with(b, GET, WRONG), OK);
	assert_true(get_be64(b->data) == KEY);
	/* that Set has started the next lease */
	bench_pass(b, 4 * SECOND);
	assert_int_equal(sma_counters(b->sma, 0)->mkey_expired, 2);
}

static void
test_lease_of_0_is_for_ever(void **state)
{
	struct bench *b = *state;

	guard(b, KEY, 1, 0);
	assert_int_equal(ask_with(b, SET, WRONG), SILENT);
	bench_pass(b, 100000 * SECOND);
	assert_int_equal(protect_bits(b), 1);
}

static void
test_lease_stopped_by(struct bench *b, uint8_t method)
{
	guard(b, KEY, 2, 3);
	assert_int_equal(ask_with(b, GET, WRONG), SILENT);
	bench_pass(b, 2 * SECOND);
	ask_with(b, method, KEY);
	bench_pass(b, 100 * SECOND);
	assert_int_equal(protect_bits(b), 2);
	/* and starts from the beginning next time */
	assert_int_equal(ask_with(b, GET, WRONG), SILENT);
	bench_pass(b, 2 * SECOND);
	assert_int_equal(protect_bits(b), 2);
	bench_pass(b, 2 * SECOND);
	assert_int_equal(protect_bits(b), 0);
}

static void
test_key_holder_stops_the_lease(void **state)
{
	test_lease_stopped_by(*state, GET);
	test_lease_stopped_by(*state, SET);
	test_lease_stopped_by(*state, TRAP_REPRESS);
}

/* A Get that passes without the key is no violation: no counter, no lease, no trap */
static void
test_allowed_get_sets_nothing_off(void **state)
{
	struct bench *b = *state;

	for (uint8_t protect = 0; protect < 2; protect++) {
		guard(b, KEY, protect, 3);
		assert_int_equal(ask_with(b, GET, WRONG), OK);
		bench_pass(b, 100 * SECOND);
		assert_int_equal(protect_bits(b), protect);
	}
	assert_int_equal(violations(b), 0);
	assert_int_equal(sma_counters(b->sma, 0)->traps_raised, 0);
	/* nor does it stop a lease that a violation has started */
	guard(b, KEY, 1, 3);
	assert_int_equal(ask_with(b, SET, WRONG), SILENT);
	assert_int_equal(ask_with(b, GET, WRONG), OK);
	bench_pass(b, 4 * SECOND);
	assert_int_equal(protect_bits(b), 0);
}

/* --- trap 256 --- */

static void
test_trap_256(void **state)
{
	struct bench *b = *state;

	guard(b, KEY, 0, 0);
	assert_int_equal(smp_set_state(b, 3, 0), OK);
	assert_int_equal(smp_set_state(b, 4, 0), OK);
	b->m_key = WRONG;
	assert_int_equal(set(b, 0x0016, 0x00010001, (const uint8_t[64]){ 0 }), SILENT);
	assert_int_equal(b->traps, 1);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 256);
	assert_int_equal(b->trap_mad[64 + 16], SET);
	assert_int_equal(get_be16(b->trap_mad + 64 + 18), 0x0016);
	assert_int_equal(get_be32(b->trap_mad + 64 + 20), 0x00010001);
	assert_true(get_be64(b->trap_mad + 64 + 24) == WRONG);
}

/* --- configured --- */

static void
guard_config(struct sma_config *c, struct sma_port_config *port)
{
	(void)c;
	port[0].m_key = KEY;
	port[0].m_key_protect = 3;
	port[0].m_key_lease = 60;
}

static void
test_m_key_of_the_configuration(void **state)
{
	struct bench *b = bench_create(guard_config);

	*state = b;
	assert_int_equal(get(b, PORT_INFO, 0), SILENT);
	b->m_key = KEY;
	assert_int_equal(get(b, PORT_INFO, 0), OK);
	assert_true(get_be64(b->data) == KEY);
	assert_int_equal(get_be16(b->data + M_KEY_LEASE), 60);
	assert_int_equal(b->data[PROTECT], 0xC0);
	assert_int_equal(get_be16(b->data + 44), 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_table),
		T(test_failed_set_changes_nothing),
		T(test_violations_stick_at_the_top),
		T(test_lease_expires),
		T(test_lease_of_0_is_for_ever),
		T(test_key_holder_stops_the_lease),
		T(test_allowed_get_sets_nothing_off),
		T(test_trap_256),
		cmocka_unit_test_teardown(test_m_key_of_the_configuration, bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
