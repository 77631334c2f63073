/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What a Set does to the port: settings for lib/link, events; and reports of the engine to the
 * agent: totals with their thresholds, bad keys.
 */

#include "../checked.h"
#include "smp_fixture.h"

#define OK  0x0000
#define BAD 0x001C

static void
test_settings_at_first(void **state)
{
	struct bench *b = *state;
	const struct port_settings *s = &b->settings[0];

	assert_int_equal(s->state, 2);
	assert_int_equal(s->lid, 5);
	assert_int_equal(s->lmc, 0);
	assert_int_equal(s->sm_lid, 7);
	assert_int_equal(s->sm_sl, 2);
	assert_int_equal(s->subnet_timeout, 18);
	assert_int_equal(s->mtu, 2048);
	assert_true(s->gid_prefix == 0xFE80000000000000ull);
	assert_int_equal(s->num_guids, 1);
	assert_true(s->guid[0] == PORT1_GUID);
	assert_int_equal(s->num_pkeys, 1);
	assert_int_equal(s->pkey[0], 0xFFFF);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(s->sl_to_vl[i], i % 8);
	assert_int_equal(b->settings[1].mtu, 4096);
	assert_int_equal(b->settings[1].sl_to_vl[15], 0);
	/*
	 * Down at the start, Initialize with the link, which came up before the start of the other
	 * port; a beginning is no change.
	 */
	assert_int_equal(b->applied[0], 2);
	assert_int_equal(b->applied[1], 1);
	assert_int_equal(b->settings[1].state, 2);
	expect_no_event(b);
}

static void
test_lid_change(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];

	assert_int_equal(set_16(b, LID, 0x0123), OK);
	assert_int_equal(b->settings[0].lid, 0x0123);
	expect_event(b, EVENT_LID_CHANGE, 0);
	expect_no_event(b);
	/* the answer swaps the LIDs of the request, whatever the port's LIDs are now */
	assert_int_equal(b->reply.dlid, 7);
	assert_int_equal(b->reply.slid, 5);
	port_info(b, info);
	info[34] |= 2;
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	assert_int_equal(b->settings[0].lmc, 2);
	expect_event(b, EVENT_LID_CHANGE, 0);
	/* the same values again, and a Set that is rejected: no call, no event */
	assert_int_equal(set_16(b, LID, 0x0123), OK);
	assert_int_equal(set_16(b, LID, 0xFFFF), BAD);
	expect_no_event(b);
	b->port = 1;
	assert_int_equal(set_16(b, LID, 0x0200), OK);
	expect_event(b, EVENT_LID_CHANGE, 1);
	assert_int_equal(b->settings[0].lid, 0x0123);
	assert_int_equal(b->settings[1].lid, 0x0200);
}

static void
test_sm_change(void **state)
{
	struct bench *b = *state;

	assert_int_equal(set_16(b, MASTER_SM_LID, 0x0042), OK);
	assert_int_equal(b->settings[0].sm_lid, 0x0042);
	expect_event(b, EVENT_SM_CHANGE, 0);
	assert_int_equal(set_byte(b, 36, 0x49), OK);
	assert_int_equal(b->settings[0].sm_sl, 9);
	expect_event(b, EVENT_SM_CHANGE, 0);
	expect_no_event(b);
}

static void
test_pkey_change(void **state)
{
	struct bench *b = *state;
	uint8_t pkeys[64] = { 0xFF, 0xFF, 0x80, 0x01 };

	assert_int_equal(set(b, 0x0016, 0, pkeys), OK);
	assert_int_equal(b->settings[0].num_pkeys, 2);
	assert_int_equal(b->settings[0].pkey[1], 0x8001);
	expect_event(b, EVENT_PKEY_CHANGE, 0);
	assert_int_equal(set(b, 0x0016, 0, pkeys), OK);
	expect_no_event(b);
	memset(pkeys, 0, 64);
	pkeys[62] = 0x7F; /* entry 63 */
	assert_int_equal(set(b, 0x0016, 1, pkeys), OK);
	assert_int_equal(b->settings[0].num_pkeys, 64);
	assert_int_equal(b->settings[0].pkey[63], 0x7F00);
	assert_int_equal(b->settings[0].pkey[2], 0);
	expect_event(b, EVENT_PKEY_CHANGE, 0);
}

static void
test_gid_change(void **state)
{
	struct bench *b = *state;
	uint8_t info[64], guids[64] = { 0 };

	port_info(b, info);
	put_be64(info + 8, 0xFEC0000000000001ull);
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	assert_true(b->settings[0].gid_prefix == 0xFEC0000000000001ull);
	expect_event(b, EVENT_GID_CHANGE, 0);
	put_be64(guids + 16, 0xABCDull);
	assert_int_equal(set(b, 0x0014, 0, guids), OK);
	assert_int_equal(b->settings[0].num_guids, 3);
	assert_true(b->settings[0].guid[0] == PORT1_GUID);
	assert_true(b->settings[0].guid[2] == 0xABCD);
	expect_event(b, EVENT_GID_CHANGE, 0);
	expect_no_event(b);
}

static void
test_settings_without_event(void **state)
{
	struct bench *b = *state;
	const uint8_t map[64] = { 0x10, 0x32, 0, 0, 0, 0, 0, 0x0F };
	unsigned int calls = b->applied[0];

	assert_int_equal(set_byte(b, 36, 0x12), OK); /* NeighborMTU 256 */
	assert_int_equal(b->settings[0].mtu, 256);
	assert_int_equal(set_byte(b, 51, 20), OK);
	assert_int_equal(b->settings[0].subnet_timeout, 20);
	assert_int_equal(set(b, 0x0017, 0, map), OK);
	assert_int_equal(b->settings[0].sl_to_vl[0], 1);
	assert_int_equal(b->settings[0].sl_to_vl[1], 0);
	assert_int_equal(b->settings[0].sl_to_vl[2], 3);
	assert_int_equal(b->settings[0].sl_to_vl[15], 15);
	assert_int_equal(b->applied[0], calls + 3);
	/* OperVLs VL0 and VL1: SL 2, mapped to VL 3, carries no data */
	assert_int_equal(set_byte(b, 43, 0x20), OK);
	assert_int_equal(b->settings[0].sl_to_vl[0], 1);
	assert_int_equal(b->settings[0].sl_to_vl[2], 15);
	calls++;
	/* a Set that does not change the link's settings causes no call */
	assert_int_equal(set_byte(b, 38, 9), OK);
	assert_int_equal(set(b, 0x0031, 0, (const uint8_t[64]){ 0x80 }), OK);
	assert_int_equal(get(b, 0x0015, 0), OK);
	assert_int_equal(b->applied[0], calls + 3);
	assert_int_equal(b->applied[1], 1);
	expect_no_event(b);
}

/* All in one Set, one call, and the events in order; re-registration last */
static void
test_many_changes_at_once(void **state)
{
	struct bench *b = *state;
	unsigned int calls = b->applied[0];
	uint8_t info[64];

	port_info(b, info);
	put_be16(info + LID, 0x0301);
	put_be16(info + MASTER_SM_LID, 0x0302);
	put_be64(info + 8, 0xFEC0000000000000ull);
	info[PORT_STATE] |= 3;
	info[51] |= 0x80;
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	assert_int_equal(b->data[51], 0x80 | 18); /* echoed */
	assert_int_equal(b->applied[0], calls + 1);
	assert_int_equal(b->settings[0].state, 3);
	expect_event(b, EVENT_LID_CHANGE, 0);
	expect_event(b, EVENT_SM_CHANGE, 0);
	expect_event(b, EVENT_GID_CHANGE, 0);
	expect_event(b, EVENT_CLIENT_REREGISTER, 0);
	expect_no_event(b);
	/* again: it is a request each time */
	port_info(b, info);
	assert_int_equal(info[51], 18);
	info[51] |= 0x80;
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	expect_event(b, EVENT_CLIENT_REREGISTER, 0);
	expect_no_event(b);
}

static void
first_pkeys(struct sma_config *c, struct sma_port_config *port)
{
	(void)c;
	port[0].num_pkeys = 3;
	port[0].pkeys[0] = 0x7FFF;
	port[0].pkeys[2] = 0x8002;
	port[0].gid_prefix = 0xFEC0000000000007ull;
	port[0].lmc = 1;
	port[0].lid = 4;
	port[0].mtu = 300;
	port[1].vl_cap = 3;
}

static void
test_configuration(void **state)
{
	struct bench *b = bench_create(first_pkeys);

	*state = b;
	assert_int_equal(b->settings[0].num_pkeys, 3);
	assert_int_equal(b->settings[0].pkey[0], 0x7FFF);
	assert_int_equal(b->settings[0].pkey[2], 0x8002);
	assert_true(b->settings[0].gid_prefix == 0xFEC0000000000007ull);
	assert_int_equal(b->settings[0].lmc, 1);
	assert_int_equal(b->settings[0].mtu, 256);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(b->settings[1].sl_to_vl[i], i % 4);
}

/* --- traps of totals and keys --- */

static void
activate(struct bench *b)
{
	assert_int_equal(smp_set_state(b, 3, 0), OK);
	assert_int_equal(smp_set_state(b, 4, 0), OK);
}

static void
test_thresholds(void **state)
{
	struct bench *b = *state;
	struct sma_totals t = { .link_errors = 100, .overruns = 0 };

	activate(b);
	assert_int_equal(set_byte(b, 53, 0x53), OK); /* LocalPhyErrors 5, OverrunErrors 3 */
	sma_port_totals(b->sma, 0, &t, b->now);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 1);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 129);
	assert_int_equal(b->trap_mad[64 + 14], 1); /* the port */
	/* up to the threshold: fine */
	t.link_errors += 5;
	t.overruns += 3;
	sma_port_totals(b->sma, 0, &t, b->now);
	sma_port_totals(b->sma, 0, &t, b->now);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 1);
	t.overruns += 4;
	sma_port_totals(b->sma, 0, &t, b->now);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 2);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 130);
	t.link_errors += 6;
	sma_port_totals(b->sma, 0, &t, b->now);
	assert_int_equal(sma_counters(b->sma, 0)->traps_raised, 3);
	assert_int_equal(sma_counters(b->sma, 0)->link_integrity_errors, 2);
	assert_int_equal(sma_counters(b->sma, 0)->buffer_overrun_errors, 1);
	/* a port that is not managed */
	sma_port_totals(b->sma, 2, &t, b->now);
	sma_port_totals(b->sma, 64, &t, b->now);
}

/* However often totals are reported, the threshold counts per second. */
static void
test_thresholds_are_a_second_s(void **state)
{
	struct bench *b = *state;
	struct sma_totals t = { 0 };
	unsigned int i;

	activate(b);
	assert_int_equal(set_byte(b, 53, 0x53), OK); /* LocalPhyErrors 5, OverrunErrors 3 */
	/* one in 250 ms: 5 in a second at most */
	for (i = 0; i < 20; i++) {
		t.link_errors++;
		sma_port_totals(b->sma, 0, &t, b->now);
		bench_pass(b, 250 * MS);
	}
	assert_int_equal(b->traps, 0);
	bench_pass(b, SECOND);
	sma_port_totals(b->sma, 0, &t, b->now);
	/* one in 10 ms: the sixth is too many, and so is the twelfth */
	for (i = 1; i <= 12; i++) {
		assert_int_equal(sma_counters(b->sma, 0)->traps_raised, i > 6);
		t.link_errors++;
		sma_port_totals(b->sma, 0, &t, b->now);
		bench_pass(b, 10 * MS);
	}
	assert_int_equal(sma_counters(b->sma, 0)->traps_raised, 2);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 129);
}

static void
test_bad_keys(void **state)
{
	struct bench *b = *state;
	struct sma_bad_key k = {
		.key = 0x8123,
		.lid1 = 9,
		.lid2 = 5,
		.sl = 3,
		.qp1 = 0x111111,
		.qp2 = 0x222222,
	};

	activate(b);
	sma_bad_key(b->sma, 0, &k, b->now);
	bench_pass(b, MS);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 257);
	k.qkey = true;
	k.key = 0x80010000;
	sma_bad_key(b->sma, 0, &k, b->now);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 2);
	assert_int_equal(get_be16(b->trap_mad + 64 + 4), 258);
	assert_int_equal(get_be32(b->trap_mad + 64 + 16), 0x80010000);
	sma_bad_key(b->sma, 2, &k, b->now);
	sma_bad_key(b->sma, 64, &k, b->now);
}

static void
no_sm(struct sma_config *c, struct sma_port_config *port)
{
	(void)c;
	port[0].sm_lid = 0;
}

/* Held traps are sent when the port is Active and knows its SM, in either order */
static void
test_held_traps_go_when_active_with_sm(void **state)
{
	struct bench *b = bench_create(no_sm);
	const struct sma_bad_key k = { .key = 0x8123 };
	uint8_t info[64];

	*state = b;
	sma_bad_key(b->sma, 0, &k, b->now);
	/* MasterSMLID 0 is no valid value to set again (smp-sma 3): each Set brings one */
	port_info(b, info);
	info[PORT_STATE] |= 3;
	assert_int_equal(set(b, 0x0015, 0, info), BAD);
	port_info(b, info);
	info[PORT_STATE] |= 4;
	assert_int_equal(set(b, 0x0015, 0, info), BAD);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 0);
	assert_int_equal(set_16(b, MASTER_SM_LID, 7), OK);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 1);
	/* the other port: an SM first, then Active */
	b->port = 1;
	sma_bad_key(b->sma, 1, &k, b->now);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 1);
	activate(b);
	bench_pass(b, MS);
	assert_int_equal(b->traps, 2);
}

#define T(name)   cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)
#define OWN(name) cmocka_unit_test_teardown(name, bench_teardown)

static void
report_totals(void *sma, void *totals)
{
	sma_port_totals(sma, 0, totals, SECOND);
}

static void
start_agent(void *sma, void *now)
{
	sma_start(sma, *(const uint64_t *)now);
}

/* A caller's mistake ends builds with checks. */
static void
test_wrong_reports_are_found(void **state)
{
	struct bench *b = *state;
	struct sma_totals more = { .pkey_violations = 6 }, less = { .pkey_violations = 5 };

	sma_port_totals(b->sma, 0, &more, b->now);
	assert_false(ends_process(report_totals, b->sma, &more));
	assert_int_equal(ends_process(report_totals, b->sma, &less), CHECKED);
	/* once only */
	assert_int_equal(ends_process(start_agent, b->sma, &b->now), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_settings_at_first),
		T(test_lid_change),
		T(test_sm_change),
		T(test_pkey_change),
		T(test_gid_change),
		T(test_settings_without_event),
		T(test_many_changes_at_once),
		OWN(test_configuration),
		T(test_thresholds),
		T(test_thresholds_are_a_second_s),
		T(test_bad_keys),
		T(test_wrong_reports_are_found),
		OWN(test_held_traps_go_when_active_with_sm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
