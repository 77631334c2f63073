/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * sa_sweep from its request to the Gets, the import and the reply. The subnet that answers:
 *
 *   us (LID 1, port 1) -- [1] switch (LID 2, 60 ports, the others down)
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"
#include "mad/layout.h"
#include "sa/import.h"
#include "wire/bytes.h"

#define assert_says(text, what) assert_non_null(strstr(text, what))

#define SWITCH_PORTS 60

struct subnet {
	uint16_t silent; /* an attribute that nobody answers */
	bool no_lids; /* no subnet manager has been there */
	unsigned int looks_at_us; /* NodeInfos asked of our own port */
};

static bool
answer_sweep(void *arg, const uint8_t *smp, uint8_t *data)
{
	uint16_t attribute = get_be16(smp + MAD_OFF_ATTRIBUTE);
	uint32_t modifier = get_be32(smp + MAD_OFF_MODIFIER);
	bool is_switch = smp[7] == 1; /* hops */
	struct subnet *n = arg;

	assert_int_equal(smp[MAD_OFF_CLASS], 0x81);
	assert_int_equal(smp[MAD_OFF_METHOD], 1); /* Get: nothing is changed */
	n->looks_at_us += attribute == 0x11 && !is_switch;
	if (attribute == n->silent)
		return false;
	switch (attribute) {
	case 0x11: /* NodeInfo: type, ports, GUIDs, port */
		data[2] = is_switch ? 2 : 1;
		data[3] = is_switch ? SWITCH_PORTS : 1;
		data[19] = is_switch ? 2 : 1;
		data[27] = is_switch ? 2 : 1;
		data[36] = 1;
		break;
	case 0x12: /* SwitchInfo: 1024 entries, up to LID 2 */
		put_be16(data, 1024);
		put_be16(data + 6, 2);
		break;
	case 0x15: /* PortInfo: LID, state */
		if (!n->no_lids && (!is_switch || modifier == 0))
			data[17] = is_switch ? 2 : 1;
		data[32] = modifier > 1 ? 1 : 4;
		break;
	default:
		break;
	}
	return true;
}

static struct subnet subnet;

/* The desk's second port is a native IB one. */
static int
sweep_setup(void **state)
{
	struct desk *d;
	int rc = desk_setup(state);

	d = *state;
	d->e->port[1].ib = true;
	memset(&subnet, 0, sizeof(subnet));
	d->e->mad.subnet = answer_sweep;
	d->e->mad.subnet_arg = &subnet;
	return rc;
}

static const char *
sweep_fails(struct desk *d, const char *params)
{
	return str(call_fails(d, "sa_sweep", "%s", params), "message");
}

static void
test_everything_is_asked_for_and_imported(void **state)
{
	struct desk *d = *state;
	const json_t *r = call(d, "sa_sweep", "'port': 1");

	assert_int_equal(num(r, "nodes"), 2);
	assert_int_equal(num(r, "switches"), 1);
	assert_int_equal(num(r, "links"), 2);
	assert_int_equal(num(r, "without_lid"), 0);
	/*
	 * Of both NodeInfo and NodeDescription; PortInfo of our port and of ports 0 to 60;
	 * SwitchInfo, a block of LIDs; SLtoVL of our port and of the switch from ports 0 and 1 to
	 * 1.
	 */
	assert_int_equal(num(r, "asked"), 2 + 2 + 1 + 61 + 1 + 1 + 1 + 2);
	assert_int_equal(num(r, "unanswered"), 0);
	assert_int_equal(num(r, "records"), 42); /* as the import says */
	assert_true(d->e->sa.import.parser == sa_import_changes);
	assert_false(d->e->sa.import.replace);
	/*
	 * a record of each answer, but that nodes and descriptions are one, and of each way of the
	 * cable
	 */
	assert_int_equal(d->e->sa.import.len / sizeof(struct sa_change), 71 - 2 + 2);
	assert_int_equal(d->e->mad.under_way, 0);
	call(d, "sa_sweep", "'port': 1, 'replace': true");
	assert_true(d->e->sa.import.replace);
}

static void
test_gets_carry_what_the_call_says(void **state)
{
	static const uint8_t key[8] = { 0, 0, 0, 0, 0, 0, 0x12, 0x34 };
	struct desk *d = *state;
	const struct engine_mad_ask *last = &d->e->mad.asked[0];

	subnet.silent = 0x11; /* one Get, and no more */
	sweep_fails(d, "'port': 1, 'm_key': '0x1234', 'timeout_ms': 70, 'retries': 0");
	assert_int_equal(d->e->mad.asks, 1);
	assert_int_equal(last->qpn, 0);
	assert_int_equal(d->e->mad.ah.port, 1);
	assert_memory_equal(last->mad + 24, key, sizeof(key));
	assert_int_equal(last->timeout_ms, 70);
	assert_true(last->no_retry);
	sweep_fails(d, "'port': 1");
	last = &d->e->mad.asked[1];
	assert_int_equal(last->mad[31], 0);
	assert_int_equal(last->timeout_ms, 500);
	assert_int_equal(last->retries, 2);
	assert_false(last->no_retry);
}

/* 24 at a time: other methods need some of the 64 that there may be. */
static void
test_many_gets_are_under_way_at_a_time(void **state)
{
	struct desk *d = *state;

	d->e->mad.polls = 5; /* answers take their time */
	call(d, "sa_sweep", "'port': 1");
	assert_int_equal(d->e->mad.most_under_way, 24);
	assert_int_equal(d->e->mad.under_way, 0);
}

static void
test_gets_without_an_answer_are_counted(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	subnet.silent = 0x10;
	r = call(d, "sa_sweep", "'port': 1");
	assert_int_equal(num(r, "nodes"), 2);
	assert_int_equal(num(r, "unanswered"), 2);
	assert_int_equal(num(r, "asked"), 71);
}

static void
test_subnet_without_a_manager_gives_nothing(void **state)
{
	struct desk *d = *state;
	const json_t *error;

	subnet.no_lids = true;
	error = call_fails(d, "sa_sweep", "'port': 1");
	assert_says(str(error, "message"),
		"2 nodes answered, none has a LID: has a subnet manager been run?");
	assert_string_equal(str(json_object_get(error, "data"), "errno"), "ENETUNREACH");
	subnet.silent = 0x11;
	assert_says(sweep_fails(d, "'port': 1"), "0 nodes answered, none has a LID");
	assert_int_equal(d->e->sa.import.len, 0); /* nothing was imported */
}

static void
test_wrong_parameters_ask_nobody(void **state)
{
	struct desk *d = *state;

	assert_says(sweep_fails(d, "'port': 0"), "port: got 0, whose link_layer is Ethernet");
	assert_says(sweep_fails(d, "'port': 2"), "port: got 2");
	assert_says(sweep_fails(d, "'port': 1, 'timeout_ms': 0"),
		"timeout_ms: got 0, allowed: integer 1..60000");
	assert_says(sweep_fails(d, "'port': 1, 'retries': 8"),
		"retries: got 8, allowed: integer 0..7");
	assert_says(sweep_fails(d, "'port': 1, 'm_key': 'secret'"), "m_key: got \"secret\"");
	assert_int_equal(d->e->mad.asks, 0);
}

/* What ends a sweep leaves no Get under way, and nothing in the next one's way. */
static void
test_sweep_that_fails_is_over(void **state)
{
	struct desk *d = *state;

	d->e->mad.polls = 3;
	d->e->mad.asks_left = 10;
	assert_says(sweep_fails(d, "'port': 1"), "64 requests are under way");
	assert_int_equal(d->e->mad.under_way, 0);
	d->e->mad.asks_left = 0;
	call(d, "sa_sweep", "'port': 1");
}

static void
test_failed_import_of_a_sweep_says_why(void **state)
{
	struct desk *d = *state;

	d->e->sa.import_result = -EINVAL;
	assert_says(sweep_fails(d, "'port': 1"), "line 3: lid: out of range");
	d->e->sa.import_polls = 5; /* somebody else's */
	assert_says(sweep_fails(d, "'port': 1"), "another import is under way");
	d->e->sa.import_polls = 0;
	d->e->sa.import_result = 0;
	call(d, "sa_sweep", "'port': 1");
}

/* --- two at a time --- */

static const char sweep_line[] =
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sa_sweep\",\"params\":{\"port\":1}}";

static struct rpc_call *
sweep_begin(struct desk *d)
{
	struct rpc_call *c =
		rpc_open(&d->state, sweep_line, strlen(sweep_line), &(int){ -1 }, d->now);

	assert_non_null(c);
	assert_int_not_equal(rpc_step(c, d->now), 0);
	return c;
}

static void
expect_reply(struct rpc_call *c, const char *text)
{
	size_t len;
	char *reply = rpc_reply(c, 4096, &len);

	assert_non_null(reply);
	assert_says(reply, text);
	free(reply);
	rpc_close(c);
}

static void
test_only_one_sweep_at_a_time(void **state)
{
	struct desk *d = *state;
	struct rpc_call *first;
	unsigned int ms;

	d->e->mad.polls = 20;
	first = sweep_begin(d);
	assert_says(sweep_fails(d, "'port': 1"), "another sweep is under way");
	assert_int_equal(subnet.looks_at_us, 1);
	for (ms = 0; ms < 10000 && rpc_step(first, ++d->now) != 0; ms++)
		;
	expect_reply(first, "\"nodes\":2"); /* it went on undisturbed */
	call(d, "sa_sweep", "'port': 1");
}

/* A client that has gone steps no more. */
static void
test_sweep_that_nobody_steps_is_replaced(void **state)
{
	struct desk *d = *state;
	struct rpc_call *first;

	d->e->mad.polls = 20;
	first = sweep_begin(d);
	assert_int_equal(d->e->mad.under_way, 1);
	d->now += 9999;
	assert_says(sweep_fails(d, "'port': 1"), "another sweep is under way");
	d->now += 1;
	call(d, "sa_sweep", "'port': 1");
	assert_int_equal(d->e->mad.under_way, 0);
	assert_int_equal(rpc_step(first, d->now), 0);
	expect_reply(first, "another sweep took the place of this one");
}

/* As after a stop of the engine's own: a Get that it does not know any more ends the sweep. */
static void
test_get_that_is_forgotten_ends_the_sweep(void **state)
{
	struct desk *d = *state;
	struct rpc_call *first;

	d->e->mad.polls = 20;
	first = sweep_begin(d);
	memset(d->e->mad.smp, 0, sizeof(d->e->mad.smp));
	d->e->mad.under_way = 0;
	assert_int_equal(rpc_step(first, d->now), 0);
	expect_reply(first, "there is no request 64");
	call(d, "sa_sweep", "'port': 1");
}

#define T(f) cmocka_unit_test_setup_teardown(f, sweep_setup, desk_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_everything_is_asked_for_and_imported),
		T(test_gets_carry_what_the_call_says),
		T(test_many_gets_are_under_way_at_a_time),
		T(test_gets_without_an_answer_are_counted),
		T(test_subnet_without_a_manager_gives_nothing),
		T(test_wrong_parameters_ask_nobody),
		T(test_sweep_that_fails_is_over),
		T(test_failed_import_of_a_sweep_says_why),
		T(test_only_one_sweep_at_a_time),
		T(test_sweep_that_nobody_steps_is_replaced),
		T(test_get_that_is_forgotten_ends_the_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
