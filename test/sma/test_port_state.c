/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* PortState and PortPhysState (smp-sma 3): every change in every state. */

#include "smp_fixture.h"

#define OK  0x0000
#define BAD 0x001C

enum { DOWN = 1, INIT, ARMED, ACTIVE };
enum { SLEEP = 1, POLLING, DISABLED, TRAINING, LINK_UP };

/* Bring the port from Initialize to a state; Down: disabled, so that it stays Down. */
static void
port_state_bring(struct bench *b, uint8_t to)
{
	assert_int_equal(smp_set_state(b, DOWN, POLLING), OK);
	assert_int_equal(state_of(b), INIT);
	if (to == DOWN)
		assert_int_equal(smp_set_state(b, DOWN, DISABLED), OK);
	if (to >= ARMED)
		assert_int_equal(smp_set_state(b, ARMED, 0), OK);
	if (to == ACTIVE)
		assert_int_equal(smp_set_state(b, ACTIVE, 0), OK);
	assert_int_equal(state_of(b), to);
}

/* Check the state in the last answer, and in the last call of apply(). */
static void
port_state_expect_state(struct bench *b, uint8_t state, uint8_t phys)
{
	assert_int_equal(b->data[PORT_STATE] & 0xF, state);
	assert_int_equal(b->data[PHYS_STATE] >> 4, phys);
	assert_int_equal(b->settings[0].state, state);
}

/* The Set took the port down and it came up again: two calls of apply(). */
static void
expect_retrained(struct bench *b, unsigned int applied)
{
	assert_int_equal(b->applied[0], applied + 2);
	assert_int_equal(b->before[0].state, DOWN);
	port_state_expect_state(b, INIT, LINK_UP);
}

/*
 * Rows: current state; columns: state that is set. 0: rejected, the state stays. AGAIN: Down, and
 * at once up again.
 */
#define AGAIN 9

static void
test_every_pair(void **state)
{
	struct bench *b = *state;
	static const uint8_t after[5][6] = {
		/* set    none    Down  Init Armed  Active  ActiveDefer */
		[DOWN] = { DOWN, DOWN, 0, 0, 0, 0 },
		[INIT] = { INIT, AGAIN, 0, ARMED, 0, 0 },
		[ARMED] = { ARMED, AGAIN, 0, ARMED, ACTIVE, 0 },
		[ACTIVE] = { ACTIVE, AGAIN, 0, 0, ACTIVE, 0 },
	};

	for (uint8_t from = DOWN; from <= ACTIVE; from++)
		for (uint8_t to = 0; to < 16; to++) {
			uint8_t want = to < 6 ? after[from][to] : 0;
			unsigned int applied;

			port_state_bring(b, from);
			applied = b->applied[0];
			assert_int_equal(smp_set_state(b, to, 0), want != 0 ? OK : BAD);
			if (want == AGAIN)
				expect_retrained(b, applied);
			else
				port_state_expect_state(b, want != 0 ? want : from,
					from == DOWN ? DISABLED : LINK_UP);
		}
}

/* PhysState 1, 2, 3 only, and only with PortState 0 or Down */
static void
test_phys_state_pairs(void **state)
{
	struct bench *b = *state;
	unsigned int applied;

	for (uint8_t phys = 1; phys < 16; phys++)
		for (uint8_t to = 0; to <= DOWN; to++) {
			port_state_bring(b, ARMED);
			applied = b->applied[0];
			assert_int_equal(smp_set_state(b, to, phys), phys <= DISABLED ? OK : BAD);
			if (phys == DISABLED)
				port_state_expect_state(b, DOWN, DISABLED);
			else if (phys < DISABLED || to == DOWN)
				expect_retrained(b, applied); /* PortState applies all the same */
			else
				port_state_expect_state(b, ARMED, LINK_UP);
		}
	for (uint8_t phys = 1; phys < 16; phys++) {
		port_state_bring(b, ARMED);
		assert_int_equal(smp_set_state(b, ACTIVE, phys), BAD);
		port_state_expect_state(b, ACTIVE, LINK_UP);
	}
}

/*
 * Down on a live link: applications get Down, but the answer shows the state after training,
 * because a Set is answered like a following Get. The Set's other fields apply before and after it;
 * what the SM had set before stays.
 */
static void
test_down_retrains(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];
	unsigned int applied;

	port_state_bring(b, ACTIVE);
	assert_int_equal(set_16(b, LID, 0x99), OK);
	assert_int_equal(set_byte(b, 29, 1), OK); /* 1x only: from the next training on */
	assert_int_equal(b->data[31], 2);
	port_info(b, info);
	info[PORT_STATE] |= DOWN;
	info[36] = 2 << 4 | 5; /* NeighborMTU 512, MasterSMSL 5 */
	info[43] = 1 << 4; /* OperVLs: VL0 */
	applied = b->applied[0];
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	expect_retrained(b, applied);
	assert_int_equal(b->data[31], 1);
	assert_int_equal(b->data[36], 2 << 4 | 5);
	assert_int_equal(b->data[43] >> 4, 1);
	assert_int_equal(b->before[0].mtu, 512);
	assert_int_equal(b->before[0].lid, 0x99);
	assert_int_equal(b->settings[0].mtu, 512);
	assert_int_equal(b->settings[0].lid, 0x99);
	bench_pass(b, SECOND);
	assert_int_equal(b->applied[0], applied + 2);
}

static void
test_disabled_stays_down_until_polling(void **state)
{
	struct bench *b = *state;

	assert_int_equal(smp_set_state(b, DOWN, DISABLED), OK);
	bench_pass(b, 10 * SECOND);
	assert_int_equal(state_of(b), DOWN);
	assert_int_equal(phys_of(b), DISABLED);
	/* neither PortState Down alone nor the link enables it */
	assert_int_equal(smp_set_state(b, DOWN, 0), OK);
	sma_link(b->sma, 0, false, b->now);
	sma_link(b->sma, 0, true, b->now);
	bench_pass(b, SECOND);
	assert_int_equal(state_of(b), DOWN);
	assert_int_equal(phys_of(b), DISABLED);
	assert_int_equal(smp_set_state(b, 0, POLLING), OK);
	port_state_expect_state(b, INIT, LINK_UP);
}

/* Without a link there is nothing to train with. */
static void
test_down_goes_to_the_default_state(void **state)
{
	struct bench *b = *state;
	uint8_t info[64];

	sma_link(b->sma, 0, false, b->now);
	port_info(b, info);
	info[PHYS_STATE] = SLEEP; /* DownDefaultState */
	info[PORT_STATE] |= DOWN;
	assert_int_equal(set(b, 0x0015, 0, info), OK);
	assert_int_equal(b->data[PHYS_STATE], SLEEP << 4 | SLEEP);
	bench_pass(b, SECOND);
	assert_int_equal(state_of(b), DOWN);
	sma_link(b->sma, 0, true, b->now); /* the link comes up */
	assert_int_equal(state_of(b), INIT);
}

static void
test_link_down_and_up(void **state)
{
	struct bench *b = *state;

	port_state_bring(b, ACTIVE);
	sma_link(b->sma, 0, false, b->now);
	assert_int_equal(state_of(b), DOWN);
	assert_int_equal(phys_of(b), POLLING);
	assert_int_equal(b->settings[0].state, DOWN);
	assert_int_equal(smp_set_state(b, DOWN, POLLING), OK);
	bench_pass(b, SECOND);
	assert_int_equal(state_of(b), DOWN);
	sma_link(b->sma, 0, true, b->now);
	assert_int_equal(state_of(b), INIT);
	assert_int_equal(get_be16(b->data + LID), 5);
	/* told again: nothing new */
	assert_int_equal(smp_set_state(b, ARMED, 0), OK);
	sma_link(b->sma, 0, true, b->now);
	assert_int_equal(state_of(b), ARMED);
}

/* A channel adapter has no notice for its link's state; a switch has, 128 (seed 004's example) */
static void
test_link_that_comes_up_is_no_trap(void **state)
{
	struct bench *b = *state;

	for (unsigned int i = 0; i < 3; i++) {
		sma_link(b->sma, 0, false, b->now);
		bench_pass(b, SECOND);
		sma_link(b->sma, 0, true, b->now);
		port_state_bring(b, ACTIVE); /* MasterSMLID is known: a held trap would be sent */
		bench_pass(b, SECOND);
	}
	assert_int_equal(b->traps, 0);
	assert_int_equal(sma_counters(b->sma, 0)->traps_raised, 0);
}

static void
make_active(struct sma_config *c, struct sma_port_config *port)
{
	(void)c;
	port[0].active = true;
}

/* Configured to run without a subnet manager: Active when the link is up, and after training */
static void
test_active_without_sm(void **state)
{
	struct bench *b = bench_create(make_active);

	*state = b;
	assert_int_equal(state_of(b), ACTIVE);
	assert_int_equal(b->settings[0].state, ACTIVE);
	assert_int_equal(b->settings[1].state, INIT);
	assert_int_equal(smp_set_state(b, DOWN, 0), OK);
	assert_int_equal(b->before[0].state, DOWN);
	port_state_expect_state(b, ACTIVE, LINK_UP);
}

/* The SM repeats a Set because our answer was lost: nothing changes, no event. */
static void
test_state_it_is_in(void **state)
{
	struct bench *b = *state;
	const struct sma_counters *c = sma_counters(b->sma, 0);
	unsigned int applied;

	for (uint8_t to = ARMED; to <= ACTIVE; to++) {
		port_state_bring(b, to);
		applied = b->applied[0];
		assert_int_equal(smp_set_state(b, to, 0), OK);
		port_state_expect_state(b, to, LINK_UP);
		assert_int_equal(b->applied[0], applied);
		assert_int_equal(c->smp_invalid_field, 0);
	}
}

/* A valid packet on a data VL shows that the peer is Active: an armed port becomes Active. */
static void
test_data_makes_an_armed_port_active(void **state)
{
	struct bench *b = *state;

	for (uint8_t from = DOWN; from <= ACTIVE; from++) {
		port_state_bring(b, from);
		sma_data_heard(b->sma, 0, b->now);
		sma_data_heard(b->sma, 2, b->now); /* has no agent */
		assert_int_equal(state_of(b), from == ARMED ? ACTIVE : from);
		assert_int_equal(b->settings[0].state, from == ARMED ? ACTIVE : from);
	}
	/* an SM that sets Active afterwards gets no error */
	assert_int_equal(smp_set_state(b, ACTIVE, 0), OK);
}

/* The link layer is silent in PortPhysState Disabled, and only then. */
static void
test_disabled_is_told(void **state)
{
	struct bench *b = *state;

	port_state_bring(b, ACTIVE);
	assert_false(b->settings[0].disabled);
	assert_int_equal(smp_set_state(b, DOWN, DISABLED), OK);
	assert_true(b->settings[0].disabled);
	sma_link(b->sma, 0, false, b->now);
	assert_true(b->settings[0].disabled);
	assert_int_equal(smp_set_state(b, 0, SLEEP), OK);
	assert_false(b->settings[0].disabled);
	assert_false(b->settings[1].disabled);
}

static void
test_changes_are_counted(void **state)
{
	struct bench *b = *state;
	const struct sma_counters *c = sma_counters(b->sma, 0);

	assert_int_equal(smp_set_state(b, ACTIVE, 0), BAD);
	assert_int_equal(c->state_changes, 0);
	assert_int_equal(smp_set_state(b, ARMED, 0), OK);
	assert_int_equal(smp_set_state(b, 0, 0), OK);
	assert_int_equal(c->state_changes, 1);
	assert_int_equal(smp_set_state(b, DOWN, 0), OK); /* up again it comes by itself */
	assert_int_equal(c->state_changes, 2);
	assert_int_equal(sma_counters(b->sma, 1)->state_changes, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_every_pair),
		T(test_phys_state_pairs),
		T(test_down_retrains),
		T(test_disabled_stays_down_until_polling),
		T(test_down_goes_to_the_default_state),
		T(test_link_down_and_up),
		T(test_link_that_comes_up_is_no_trap),
		cmocka_unit_test_teardown(test_active_without_sm, bench_teardown),
		T(test_state_it_is_in),
		T(test_data_makes_an_armed_port_active),
		T(test_disabled_is_told),
		T(test_changes_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
