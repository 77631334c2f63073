/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* live_ping, from the request to the verbs and back. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"

#define assert_says(text, what) assert_non_null(strstr(text, what))

static int
live_setup(void **state)
{
	struct desk *d;
	int rc = desk_setup(state);

	d = *state;
	d->e->port[1].ib = true;
	d->e->port[1].gid[0].type = GID_IB;
	return rc;
}

static const char *
ping_fails(struct desk *d, const char *params)
{
	return str(call_fails(d, "live_ping", "%s", params), "message");
}

static const json_t *
reply(const json_t *result, size_t i)
{
	const json_t *row = json_array_get(json_object_get(result, "replies"), i);

	assert_non_null(row);
	return row;
}

static const struct engine_mad_ask *
asked(const struct desk *d)
{
	return &d->e->mad.asked[(d->e->mad.asks - 1) % 4];
}

/* liveness 2: type 1, identifier and sequence, data from 48 on */
static void
test_an_echo_has_56_bytes_unless_told(void **state)
{
	struct desk *d = *state;
	static const uint8_t head[8] = { 1, 0, 0, 0, 0x12, 0x34, 0, 9 };
	const uint8_t *mad;
	const json_t *r;

	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'identifier': '0x1234', 'sequence': 9");
	assert_int_equal(num(r, "sent"), 1);
	assert_int_equal(num(r, "received"), 1);
	assert_int_equal(num(reply(r, 0), "sequence"), 9);
	assert_int_equal(num(reply(r, 0), "bytes"), 64);
	assert_true(json_real_value(json_object_get(reply(r, 0), "time_us")) == 41.25);
	mad = asked(d)->mad;
	assert_int_equal(asked(d)->qpn, 1);
	assert_int_equal(mad[1], 0x34);
	assert_memory_equal(mad + 40, head, 8);
	assert_int_equal(mad[48], 0);
	assert_int_equal(mad[48 + 55], 55);
	assert_int_equal(mad[48 + 56], 0);
	assert_false(asked(d)->many);
	assert_true(asked(d)->no_retry);
	assert_int_equal(asked(d)->timeout_ms, 1000);
	assert_int_equal(d->e->mad.ah.sgid_index, 1);
	assert_true(d->e->mad.forgotten);
}

static void
test_requests_count_on_one_after_the_other(void **state)
{
	struct desk *d = *state;
	const json_t *r;
	size_t i;

	d->e->mad.polls = 5;
	d->e->mad.lost = 3;
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'count': 4, 'sequence': 65535");
	assert_int_equal(d->e->mad.asks, 4);
	assert_int_equal(num(r, "sent"), 4);
	assert_int_equal(num(r, "received"), 3);
	for (i = 0; i < 4; i++)
		assert_int_equal(num(reply(r, i), "sequence"), (uint16_t)(65535 + i));
	assert_string_equal(str(reply(r, 2), "error"), "TIMEOUT");
	assert_says(str(reply(r, 2), "message"), "no answer");
	assert_null(json_object_get(reply(r, 2), "time_us"));
	assert_null(json_object_get(reply(r, 3), "error"));
}

/* 208 bytes fit one packet (liveness 2) */
static void
test_more_than_208_bytes_go_by_rmpp(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'size': 208, 'pattern': 'abcd'");
	assert_false(asked(d)->many);
	assert_int_equal(asked(d)->mad[255], 0xcd);
	assert_int_equal(num(reply(r, 0), "bytes"), 216);
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'size': 1048576, 'timeout_ms': 700");
	assert_true(asked(d)->many);
	assert_int_equal(asked(d)->len, 1048576 + 8);
	assert_int_equal(asked(d)->max_answer, 1048576 + 8);
	assert_int_equal(asked(d)->data_offset, 40);
	assert_int_equal(asked(d)->total_ms, 700);
	assert_false(asked(d)->no_retry);
	assert_int_equal(num(reply(r, 0), "bytes"), 1048584);
	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'size': 1048577"),
		"allowed: integer 0..1048576");
}

static void
test_each_mode_tells_its_own(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'timestamp'");
	assert_int_equal(asked(d)->mad[40], 3);
	assert_int_equal(num(reply(r, 0), "receive"), 7);
	assert_int_equal(num(reply(r, 0), "transmit"), 8);
	assert_int_equal(num(reply(r, 0), "residence_ms"), 1);
	assert_true(num(reply(r, 0), "originate") < 86400000);
	assert_true(json_is_true(json_object_get(reply(r, 0), "standard")));
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'lidguid'");
	assert_int_equal(num(reply(r, 0), "lid"), 5);
	assert_string_equal(str(reply(r, 0), "guid"), "0x0002c90300000005");
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'ibping'");
	assert_int_equal(asked(d)->mad[1], 0x32);
	assert_string_equal(str(reply(r, 0), "text"), "host.example");
	assert_int_equal(num(reply(r, 0), "bytes"), 216);
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'sysstat_host'");
	assert_int_equal(asked(d)->mad[1], 0x33);
	assert_int_equal(asked(d)->mad[17], 0x11);
	assert_string_equal(str(reply(r, 0), "text"), "host.example");
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'sysstat_ping'");
	assert_int_equal(asked(d)->mad[17], 0x10);
	assert_null(json_object_get(reply(r, 0), "text"));
	/* an answer that may have many packets, and has one */
	r = call(d, "live_ping", "'dgid': '10.0.0.9', 'mode': 'sysstat_cpu'");
	assert_string_equal(str(reply(r, 0), "text"), "host.example");
	assert_int_equal(asked(d)->mad[17], 0x12);
	assert_true(asked(d)->many);
	assert_int_equal(asked(d)->len, 0);
}

static void
test_a_lid_is_asked_on_a_native_ib_port(void **state)
{
	struct desk *d = *state;

	call(d, "live_ping", "'dlid': 5, 'port': 1, 'sl': 3, 'pkey_index': 2");
	assert_int_equal(d->e->mad.ah.port, 1);
	assert_int_equal(d->e->mad.ah.dlid, 5);
	assert_int_equal(d->e->mad.ah.sl, 3);
	assert_int_equal(asked(d)->pkey_index, 2);
	assert_says(ping_fails(d, "'dlid': 5"),
		"dlid: got 5, but local port 0 is a RoCE port: give dgid");
	assert_says(ping_fails(d, ""), "dgid: missing, local port 0 is a RoCE port");
	assert_says(ping_fails(d, "'port': 1"),
		"dlid: missing, local port 1 is a native InfiniBand port");
	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'port': 2"), "port: got 2, there are 2");
}

static void
test_data_is_for_echoes_only(void **state)
{
	struct desk *d = *state;

	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'mode': 'ibping', 'size': 5"),
		"size, pattern: got mode ibping, allowed: echo");
	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'pattern': ''"), "pattern: got nothing");
	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'count': 1001"), "allowed: integer 1..1000");
	assert_says(ping_fails(d, "'dgid': '10.0.0.9', 'mode': 'pong'"),
		"allowed: one of echo, timestamp, ");
	assert_int_equal(d->e->mad.asks, 0);
}

static void
test_a_wrong_answer_and_a_status_are_not_counted_as_received(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->mad.wrong_sequence = true;
	r = call(d, "live_ping", "'dgid': '10.0.0.9'");
	assert_int_equal(num(r, "received"), 0);
	assert_string_equal(str(reply(r, 0), "error"), "BAD_ANSWER");
	assert_says(str(reply(r, 0), "message"), "sequence");
	d->e->mad.wrong_sequence = false;
	d->e->mad.status = 0x0004;
	r = call(d, "live_ping", "'dgid': '10.0.0.9'");
	assert_int_equal(num(r, "received"), 0);
	assert_string_equal(str(reply(r, 0), "error"), "BAD_VERSION");
}

static void
test_the_first_request_waits_for_the_next_hop(void **state)
{
	struct desk *d = *state;
	uint64_t start = d->now;

	d->e->hop_silent = true;
	call(d, "live_ping", "'dgid': '10.0.0.9', 'count': 3");
	assert_true(d->now - start >= 500 && d->now - start < 600);
}

#define t(test) cmocka_unit_test_setup_teardown(test, live_setup, desk_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		t(test_an_echo_has_56_bytes_unless_told),
		t(test_requests_count_on_one_after_the_other),
		t(test_more_than_208_bytes_go_by_rmpp),
		t(test_each_mode_tells_its_own),
		t(test_a_lid_is_asked_on_a_native_ib_port),
		t(test_data_is_for_echoes_only),
		t(test_a_wrong_answer_and_a_status_are_not_counted_as_received),
		t(test_the_first_request_waits_for_the_next_hop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
