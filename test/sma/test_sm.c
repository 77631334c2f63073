/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The subnet manager behind port 1 (seed 004): the SMPs it gets, and what the agent answers for it.
 */

#include "smp_fixture.h"

#define OK        0x0000
#define BAD_ATTR  0x000C
#define BAD_FIELD 0x001C

static uint8_t pattern[64];

/* --- SMInfo --- */

/* The Set is rejected, and the request's data is returned. */
static void
sm_refused(struct bench *b, uint8_t method, uint16_t attribute, uint32_t modifier, int status)
{
	assert_int_equal(ask(b, method, attribute, modifier, pattern), status);
	assert_memory_equal(b->data, pattern, 64);
}

static void
test_sm_info(void **state)
{
	struct bench *b = *state;
	uint8_t info[64] = {
		0x00, 0x02, 0xC9, 0x03, 0x00, 0x00, 0x01, 0x01, /* GUID */
		0, 0, 0, 0, 0, 0, 0, 0, /* SM_Key: shown to nobody */
		0, 0, 0, 0, /* ActCount */
		0x52, /* priority 5, standby */
	};

	assert_int_equal(get(b, 0x0020, 0), OK);
	assert_memory_equal(b->data, info, 64);
	assert_int_equal(sma_sm_alive(b->sma, 0, b->now), 0);
	info[19] = 1; /* it lives */
	assert_int_equal(get(b, 0x0020, 0), OK);
	assert_int_equal(get(b, 0x0020, 0), OK);
	assert_memory_equal(b->data, info, 64);
	sm_refused(b, GET, 0x0020, 1, BAD_FIELD);
	/* no SM behind port 2 */
	b->port = 1;
	sm_refused(b, GET, 0x0020, 0, BAD_ATTR);
	sm_refused(b, SET, 0x0020, 4, BAD_ATTR);
}

/* Send this command in this state; check the next state, or that it is rejected. */
static void
sm_command(struct bench *b, uint32_t command, uint8_t sm_state, bool legal)
{
	assert_int_equal(set(b, 0x0020, command, pattern), legal ? OK : BAD_FIELD);
	/* what is answered is the SMInfo, not the request's */
	assert_int_equal(get_be16(b->data + 6), 0x0101);
	assert_int_equal(b->data[20], 0x50 | sm_state);
}

static void
test_sm_info_commands(void **state)
{
	struct bench *b = *state;
	enum { NOT_ACTIVE, DISCOVERING, STANDBY, MASTER };
	enum { HANDOVER = 1, ACKNOWLEDGE, DISABLE, TO_STANDBY, DISCOVER };

	sm_command(b, ACKNOWLEDGE, STANDBY, false);
	sm_command(b, TO_STANDBY, STANDBY, false);
	sm_command(b, DISABLE, NOT_ACTIVE, true);
	sm_command(b, HANDOVER, NOT_ACTIVE, false);
	sm_command(b, ACKNOWLEDGE, NOT_ACTIVE, false);
	sm_command(b, DISABLE, NOT_ACTIVE, false);
	sm_command(b, DISCOVER, NOT_ACTIVE, false);
	sm_command(b, TO_STANDBY, STANDBY, true);
	sm_command(b, HANDOVER, STANDBY, false); /* no SM is alive to become master */
	assert_int_equal(sma_sm_alive(b->sma, 0, b->now), 0);
	sm_command(b, HANDOVER, MASTER, true);
	sm_command(b, HANDOVER, MASTER, false);
	sm_command(b, DISABLE, MASTER, false);
	sm_command(b, TO_STANDBY, MASTER, false);
	sm_command(b, DISCOVER, MASTER, false);
	sm_command(b, ACKNOWLEDGE, STANDBY, true);
	sm_command(b, 0, STANDBY, false);
	sm_command(b, 6, STANDBY, false);
	sm_command(b, 0x10001, STANDBY, false);
	sm_command(b, DISCOVER, DISCOVERING, true);
	for (uint32_t command = HANDOVER; command <= DISCOVER; command++)
		sm_command(b, command, DISCOVERING, false);
}

/* --- SMPs for the SM --- */

static void
test_traps_are_the_sms(void **state)
{
	struct bench *b = *state;
	const struct sma_counters *c = sma_counters(b->sma, 0);

	assert_int_equal(ask(b, 0x05, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_DATAGRAM);
	assert_int_equal(b->to_sm, 1);
	assert_int_equal(b->sm_port, 0);
	assert_int_equal(b->sm_slid, 7);
	assert_memory_equal(b->sm_mad, b->mad_sent, MAD_LEN);
	/* M_Keys guard the agent, not the SM (smp-sma 4) */
	assert_int_equal(set_byte(b, 7, 1), OK);
	b->m_key = 99;
	assert_int_equal(ask(b, 0x05, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->to_sm, 2);
	assert_int_equal(c->sm_smps, 2);
	assert_int_equal(c->mkey_violations, 0);
	/* a Trap is a Notice, and nothing that returns is for a queue */
	assert_int_equal(ask(b, 0x05, 0x0015, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_SMP_NO_SM);
	assert_int_equal(ask(b, 0x81, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->to_sm, 2);
}

static void
test_no_sm_no_traps(void **state)
{
	struct bench *b = *state;

	b->port = 1;
	assert_int_equal(ask(b, 0x05, 0x0002, 0, pattern), SILENT);
	assert_int_equal(b->verdict, VERDICT_SMP_NO_SM);
	assert_int_equal(b->to_sm, 0);
	assert_int_equal(sma_sm_alive(b->sma, 1, b->now), -22);
	assert_int_equal(sma_sm_set(b->sma, 1, SMA_SM_MASTER, 1, b->now), -22);
	assert_int_equal(sma_sm_alive(b->sma, 2, b->now), -22);
}

/* Another SM changes our SM's state: our SM gets the Set. */
static void
test_commands_are_told(void **state)
{
	struct bench *b = *state;

	sm_command(b, 2, SMA_SM_STANDBY, false);
	assert_int_equal(b->to_sm, 0);
	sm_command(b, 3, SMA_SM_NOT_ACTIVE, true);
	assert_int_equal(b->to_sm, 1);
	assert_int_equal(b->sm_mad[3], SET);
	assert_int_equal(get_be16(b->sm_mad + 16), 0x0020);
	assert_int_equal(get_be32(b->sm_mad + 20), 3);
	assert_int_equal(sma_counters(b->sma, 0)->sm_changes, 1);
}

/* --- calls by the SM --- */

static void
expect_sm(struct bench *b, uint8_t sm_state, uint8_t priority)
{
	assert_int_equal(get(b, 0x0020, 0), OK);
	assert_int_equal(b->data[20], priority << 4 | sm_state);
}

static void
test_it_says_what_it_is(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sma_sm_set(b->sma, 0, SMA_SM_MASTER, 9, b->now), 0);
	expect_sm(b, SMA_SM_MASTER, 9);
	assert_int_equal(sma_sm_set(b->sma, 0, 4, 9, b->now), -22);
	assert_int_equal(sma_sm_set(b->sma, 0, SMA_SM_STANDBY, 16, b->now), -22);
	expect_sm(b, SMA_SM_MASTER, 9);
	assert_int_equal(sma_sm_set(b->sma, 0, SMA_SM_NOT_ACTIVE, 0, b->now), 0);
	expect_sm(b, SMA_SM_NOT_ACTIVE, 0);
}

/* A Master that has gone becomes Not Active; one that stays alive does not. */
static void
test_master_is_claimed_while_it_is_there(void **state)
{
	struct bench *b = *state;
	const struct sma_counters *c = sma_counters(b->sma, 0);

	assert_int_equal(sma_sm_set(b->sma, 0, SMA_SM_MASTER, 5, b->now), 0);
	for (unsigned int i = 0; i < 5; i++) {
		bench_pass(b, 29 * SECOND);
		assert_int_equal(sma_sm_alive(b->sma, 0, b->now), 0);
	}
	expect_sm(b, SMA_SM_MASTER, 5);
	bench_pass(b, 31 * SECOND);
	expect_sm(b, SMA_SM_NOT_ACTIVE, 5);
	assert_int_equal(c->sm_gone, 1);
	/* a Standby SM may be silent */
	assert_int_equal(sma_sm_set(b->sma, 0, SMA_SM_STANDBY, 5, b->now), 0);
	bench_pass(b, 31 * SECOND);
	expect_sm(b, SMA_SM_STANDBY, 5);
	sm_command(b, 1, SMA_SM_STANDBY, false);
}

static int
sm_group_setup(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(0xA0 + i);
	return 0;
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_sm_info),
		T(test_sm_info_commands),
		T(test_traps_are_the_sms),
		T(test_no_sm_no_traps),
		T(test_commands_are_told),
		T(test_it_says_what_it_is),
		T(test_master_is_claimed_while_it_is_there),
	};

	return cmocka_run_group_tests(tests, sm_group_setup, NULL);
}
