/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A subnet manager in another process uses port 1, whose LID is port 0's MasterSMLID: traps reach
 * it, and it sets its SMInfo.
 */

#include <errno.h>
#include <string.h>

#include "engine/subnet.h"
#include "smp.h"

#define SM_PORT 1

static int
sm_start(void **state)
{
	struct engine_config *c = node_config_ib(true);

	c->sma.port[SM_PORT].is_sm = true;
	c->sma.port[SM_PORT].sm_priority = 3;
	*state = node_start();
	ports_up(*state);
	return 0;
}

static int
sm_stop(void **state)
{
	node_stop(*state, 0);
	return 0;
}

static unsigned int
take_sm_smps(struct engine *e, struct engine_sm_smp *smp, unsigned int n, uint64_t *lost)
{
	struct error err = { "" };
	int got = engine_sm_take(e, SM_PORT, smp, n, lost, &err);

	if (got < 0)
		fail_msg("%s", err.text);
	return (unsigned int)got;
}

static bool
was_told(struct engine *e, uint32_t number)
{
	struct event ev[64];
	unsigned int i, n = engine_events(e, ev, 64, NULL);

	for (i = 0; i < n; i++)
		if (ev[i].type == EVENT_SM_SMP && ev[i].element == number)
			return true;
	return false;
}

/* smp-sma 5: a trap of port 0 arrives at port 1. It raises an event and is delivered once. */
static void
test_traps_reach_the_manager(void **state)
{
	struct engine *e = *state;
	const struct engine_sm_smp *kept;
	struct engine_sm_smp smp[4];
	struct error err = { "" };
	uint64_t lost = 1;
	uint32_t id;

	assert_int_equal(take_sm_smps(e, smp, 4, &lost), 0);
	assert_int_equal(lost, 0);
	assert_null(engine_sm_find(e, 1));
	assert_ok(engine_trap_send(e, 0, 144, NULL, &id, &err));
	eventually(was_told(e, 1));
	assert_int_equal(take_sm_smps(e, smp, 4, &lost), 1);
	assert_int_equal(smp[0].number, 1);
	assert_int_equal(smp[0].port, SM_PORT);
	assert_int_equal(smp[0].slid, 1);
	assert_int_equal(smp[0].mad[MAD_OFF_METHOD], MAD_TRAP);
	assert_int_equal(get_be16(smp[0].mad + MAD_OFF_ATTRIBUTE), 0x0002); /* Notice */
	assert_int_equal(get_be16(smp[0].mad + DATA + 4), 144);
	assert_true(smp[0].age_us < 60000000);
	assert_int_equal(take_sm_smps(e, smp, 4, &lost), 0);
	assert_int_equal(lost, 0);
	/* the trap is kept, so that the event's number finds it later */
	kept = engine_sm_find(e, 1);
	assert_non_null(kept);
	assert_int_equal(get_be16(kept->mad + DATA + 4), 144);
	assert_null(engine_sm_find(e, 0));
	assert_null(engine_sm_find(e, 2));
	assert_null(engine_sm_find(e, 257)); /* the same entry of the ring */
}

/* Run on worker 0: store n traps as if they had arrived. */
static int
put_here(struct worker *w, void *arg)
{
	uint8_t mad[MAD_LEN] = { 1, MAD_CLASS_SUBN_LID, 1, MAD_TRAP };
	unsigned int i;

	for (i = 0; i < *(unsigned int *)arg; i++)
		sm_smp_put(w, SM_PORT, 9, mad);
	return 0;
}

/* Up to 255 wait for the control thread and 256 for the manager; older ones are replaced. */
static void
test_traps_not_taken_are_lost_and_counted(void **state)
{
	struct engine_sm_smp smp[ENGINE_SM_SMPS];
	struct engine *e = *state;
	unsigned int n = 300;
	uint64_t lost;

	assert_int_equal(engine_call(e, 0, put_here, &n), 0);
	engine_sm_watch(e);
	n = 10;
	assert_int_equal(engine_call(e, 0, put_here, &n), 0);
	assert_int_equal(take_sm_smps(e, smp, 3, &lost), 3);
	assert_int_equal(lost, 45 + 9);
	assert_int_equal(smp[0].number, 10);
	assert_int_equal(smp[2].number, 12);
	assert_int_equal(take_sm_smps(e, smp, ENGINE_SM_SMPS, &lost), 253);
	assert_int_equal(smp[0].number, 13);
	assert_int_equal(smp[252].number, 265);
	assert_null(engine_sm_find(e, 9));
	assert_non_null(engine_sm_find(e, 10));
	/* a delivered trap that is replaced is not lost */
	n = 20;
	assert_int_equal(engine_call(e, 0, put_here, &n), 0);
	assert_int_equal(take_sm_smps(e, smp, 1, &lost), 1);
	assert_int_equal(smp[0].number, 266);
	assert_int_equal(lost, 45 + 9);
}

/* smp-sma 3: SMInfo has GUID, SM_Key, ActCount, and Priority and SMState in one byte. */
static void
test_manager_sets_its_sminfo(void **state)
{
	struct engine *e = *state;
	uint8_t info[SMA_DATA_LEN];
	struct error err = { "" };

	read_sma(e, SM_PORT, SMA_SM_INFO, info);
	assert_int_equal(info[20] >> 4, 3);
	assert_ok(engine_sm_set(e, SM_PORT, 3 /* Master */, 11, &err));
	read_sma(e, SM_PORT, SMA_SM_INFO, info);
	assert_int_equal(info[20], 0xB3);
}

static void
test_port_without_a_manager(void **state)
{
	struct engine *e = *state;
	struct engine_sm_smp smp;
	struct error err = { "" };
	uint64_t lost;

	assert_int_equal(engine_sm_take(e, 0, &smp, 1, &lost, &err), -EINVAL);
	assert_string_equal(err.text,
		"port: got 0, behind which no subnet manager is configured (ib.sm)");
	assert_int_equal(engine_sm_set(e, 0, 3, 1, &err), -EINVAL);
	assert_string_equal(err.text,
		"port: got 0, behind which no subnet manager is configured (ib.sm)");
	assert_int_equal(engine_sm_take(e, 7, &smp, 1, &lost, &err), -EINVAL);
	assert_string_equal(err.text, "port: got 7, there are 2 ports from 0 on");
}

#define T(f) cmocka_unit_test_setup_teardown(f, sm_start, sm_stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_traps_reach_the_manager),
		T(test_traps_not_taken_are_lost_and_counted),
		T(test_manager_sets_its_sminfo),
		T(test_port_without_a_manager),
	};

	return cmocka_run_group_tests_name("engine: subnet manager", tests, eal_setup,
		eal_teardown);
}
