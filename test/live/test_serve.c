/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Single-packet answers of the server: liveness 2 and 3, the vectors of 4. */

#include <string.h>

#include "pair.h"
#include "../wire/build.h"

/* --- vectors (liveness 4) --- */

static void
test_vector_ibping(void **state)
{
	uint8_t request[MAD_LEN] = { 0 }, reply[MAD_LEN] = { 0 };

	hex(request,
		"01320101 00000000 0000000000000005 00000000 00000000000000000000000000000000 00 001405");
	hex(reply,
		"01320181 00000000 0000000000000005 00000000 00000000000000000000000000000000 00 001405");
	memcpy(reply + 40, "host.domain", 12);
	expect_answer(*state, request, reply);
	assert_int_equal(live_counters(((struct pair *)*state)->live)->ibping, 1);
}

static void
test_vector_echo(void **state)
{
	uint8_t request[MAD_LEN] = { 0 }, reply[MAD_LEN] = { 0 };
	unsigned int i;

	hex(request,
		"01340101 00000000 0000000000000006 00000000 00000000"
		"000000000000000000000000 00 001405 01 000000 1234 0001");
	hex(reply,
		"01340181 00000000 0000000000000006 00000000 00000000"
		"000000000000000000000000 00 001405 02 000000 1234 0001");
	for (i = 48; i < MAD_LEN; i++) /* the whole area of 208 bytes */
		request[i] = reply[i] = pattern(i) | 1;
	expect_answer(*state, request, reply);
}

/* --- choices of liveness 2 --- */

static void
test_single_echo_opens_no_session(void **state)
{
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 100; i++) {
		say(p->h, live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST));
		next_sent(&p->h->a);
	}
	expect_silence(&p->h->a);
	assert_int_equal(counters_of(&p->h->a).sessions_opened, 0);
	assert_int_equal(live_counters(p->live)->echo, 100);
	assert_int_equal(live_counters(p->live)->echo_bytes, 20800);
}

static void
test_reserved_is_ignored_on_receipt_and_zero_on_send(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	live_mad(reply, MAD_GET_RESP, LIVE_ECHO_RESPONSE);
	live_mad(request, MAD_GET, LIVE_ECHO_REQUEST);
	request[36] = 0xA5; /* beside the OUI */
	hex(request + 41, "FF EE DD");
	expect_answer(*state, request, reply);
}

static void
test_attribute_and_modifier_are_copied(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	live_mad(request, MAD_GET, LIVE_ECHO_REQUEST);
	live_mad(reply, MAD_GET_RESP, LIVE_ECHO_RESPONSE);
	hex(request + 16, "ABCD 0000 01020304");
	hex(reply + 16, "ABCD 0000 01020304");
	expect_answer(*state, request, reply);
}

static void
test_all_64_bits_of_the_tid_come_back(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	live_mad(request, MAD_GET, LIVE_ECHO_REQUEST);
	live_mad(reply, MAD_GET_RESP, LIVE_ECHO_RESPONSE);
	hex(request + 8, "FEDCBA9876543210");
	hex(reply + 8, "FEDCBA9876543210");
	expect_answer(*state, request, reply);
}

static void
test_send_is_answered_with_send(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	expect_answer(*state, live_mad(request, MAD_SEND, LIVE_ECHO_REQUEST),
		live_mad(reply, MAD_SEND, LIVE_ECHO_RESPONSE));
	/* ClassPortInfo is Get's: of a Send the type alone decides */
	put_be16(request + 16, 1);
	put_be16(reply + 16, 1);
	expect_answer(*state, request, reply);
}

static void
test_other_class_version_is_0004(void **state)
{
	static const uint8_t versions[] = { 0, 2, 255 };
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST)[2] = versions[i];
		expect_status(*state, mad, MAD_GET_RESP, 0x0004);
	}
}

static void
test_other_method_is_0008(void **state)
{
	static const uint8_t classes[] = { 0x32, 0x33, 0x34 };
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		live_mad(mad, MAD_SET, LIVE_ECHO_REQUEST)[1] = classes[i];
		expect_status(*state, mad, MAD_GET_RESP, 0x0008);
		mad[3] = MAD_REPORT;
		expect_status(*state, mad, MAD_REPORT_RESP, 0x0008);
		mad[3] = 0x7F;
		expect_status(*state, mad, 0xFF, 0x0008);
	}
}

static void
test_trap_is_not_answered(void **state)
{
	uint8_t mad[MAD_LEN];

	expect_no_answer(*state, live_mad(mad, MAD_TRAP, LIVE_ECHO_REQUEST), VERDICT_MAD_UNMATCHED);
	expect_no_answer(*state, live_mad(mad, MAD_TRAP_REPRESS, LIVE_ECHO_REQUEST),
		VERDICT_MAD_UNMATCHED);
}

static void
test_unknown_type_is_000c(void **state)
{
	static const uint8_t types[] = { 0, 7, 0x81, 255 };
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 4; i++)
		expect_status(p, live_mad(mad, MAD_GET, types[i]), MAD_GET_RESP, 0x000C);
	assert_int_equal(live_counters(p->live)->unknown_type, 4);
}

/* It would be answered by a Send of an unknown type, which could start a loop. */
static void
test_unknown_type_of_a_send_is_not_answered(void **state)
{
	uint8_t mad[MAD_LEN];

	expect_no_answer(*state, live_mad(mad, MAD_SEND, 0), VERDICT_MAD_UNMATCHED);
	expect_no_answer(*state, live_mad(mad, MAD_SEND, 7), VERDICT_MAD_UNMATCHED);
}

static void
test_response_types_are_never_answered(void **state)
{
	static const uint8_t methods[] = { MAD_GET, MAD_SEND, MAD_GET_RESP };
	struct pair *p = *state;
	uint8_t mad[MAD_LEN], type;
	unsigned int i;

	for (i = 0; i < 3; i++)
		for (type = 2; type <= 6; type += 2)
			expect_no_answer(p, live_mad(mad, methods[i], type), VERDICT_MAD_UNMATCHED);
	assert_int_equal(live_counters(p->live)->unknown_type, 0);
}

static void
test_class_port_info(void **state)
{
	static const uint8_t classes[] = { 0x32, 0x33, 0x34 };
	uint8_t request[MAD_LEN], reply[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		live_mad(request, MAD_GET, 0)[1] = classes[i];
		put_be16(request + 16, 1);
		memcpy(reply, request, MAD_LEN);
		reply[3] = MAD_GET_RESP;
		memset(reply + 40, 0, 216);
		/* base version, class version, no capability, the manager's RespTimeValue */
		hex(reply + 40, "01 01 0000 0000000A");
		expect_answer(*state, request, reply);
	}
}

static void
test_other_oui_is_not_answered(void **state)
{
	static const char *const ouis[] = { "00 00 00", "01 14 05", "00 15 05", "00 14 06" };
	static const uint8_t methods[] = { MAD_GET, MAD_SET, MAD_SEND, MAD_REPORT, 0x10, 0x7F };
	struct pair *p = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i, m, class;

	for (class = 0x32; class <= 0x34; class ++) {
		for (i = 0; i < 4; i++) {
			for (m = 0; m < 6; m++) {
				live_mad(mad, methods[m], LIVE_ECHO_REQUEST)[1] = (uint8_t) class;
				hex(mad + 37, ouis[i]);
				expect_no_answer(p, mad, VERDICT_MAD_UNMATCHED);
			}
		}
	}
	assert_int_equal(live_counters(p->live)->other_oui, 3 * 4 * 6);
}

/* --- timestamps --- */

static void
serve_expect_stamps(struct pair *p, uint32_t stamp)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	live_mad(request, MAD_GET, LIVE_TIMESTAMP_REQUEST);
	live_mad(reply, MAD_GET_RESP, LIVE_TIMESTAMP_RESPONSE);
	hex(request + 48, "01020304 FFFFFFFF EEEEEEEE DD");
	hex(reply + 48, "01020304 00000000 00000000 DD");
	put_be32(reply + 52, stamp);
	put_be32(reply + 56, stamp);
	expect_answer(p, request, reply);
	assert_int_equal(live_stamp(p->live, p->h->now), stamp);
}

static void
test_stamps_are_marked_while_the_time_is_not_known(void **state)
{
	struct pair *p = *state;

	serve_expect_stamps(p, 0x80000001); /* the clock of the harness begins at 1 ms */
	pass(p->h, 41 * MS);
	serve_expect_stamps(p, 0x8000002A);
	p->h->now = UINT64_MAX; /* at any time bit 31 is set */
	assert_true(live_stamp(p->live, p->h->now) & 0x80000000);
}

static void
test_stamps_are_milliseconds_since_midnight(void **state)
{
	struct pair *p = *state;

	live_set_clock(p->live, p->h->now, 43200000);
	serve_expect_stamps(p, 43200000);
	pass(p->h, 1999999);
	serve_expect_stamps(p, 43200001);
	pass(p->h, 1);
	serve_expect_stamps(p, 43200002);
	/* set anew, to an earlier time */
	live_set_clock(p->live, p->h->now, 43200001);
	serve_expect_stamps(p, 43200001);
	/* a packet that came before the clock was told last: 4.5 ms before, rounded to the past */
	live_set_clock(p->live, p->h->now + 9 * MS / 2, 43200006);
	serve_expect_stamps(p, 43200001);
}

static void
test_stamps_wrap_at_midnight(void **state)
{
	struct pair *p = *state;

	live_set_clock(p->live, p->h->now, 86399999);
	serve_expect_stamps(p, 86399999);
	pass(p->h, 1 * MS);
	serve_expect_stamps(p, 0);
	live_set_clock(p->live, p->h->now, 86400000);
	serve_expect_stamps(p, 0);
	live_set_clock(p->live, p->h->now + 1, 86400000);
	serve_expect_stamps(p, 86399999);
}

/* --- LID and GUID of the port that was asked --- */

static void
expect_lidguid(struct pair *p, const char *lid_guid)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	live_mad(request, MAD_GET, LIVE_LIDGUID_REQUEST);
	live_mad(reply, MAD_GET_RESP, LIVE_LIDGUID_RESPONSE);
	memset(request + 48, 0xEE, 10);
	hex(reply + 48, lid_guid);
	expect_answer(p, request, reply);
}

static void
test_lidguid_of_a_roce_port(void **state)
{
	struct pair *p = *state;

	/* the EUI-64 of 02:00:00:00:00:01 */
	expect_lidguid(p, "0000 000000FFFE000001");
	p->h->a.attr.guid = 0x1122334455667788;
	p->h->a.attr.lid = 7; /* a RoCE port has none */
	expect_lidguid(p, "0000 1122334455667788");
	assert_int_equal(live_counters(p->live)->lidguid, 2);
}

static void
test_lidguid_of_a_native_port(void **state)
{
	struct pair *p =
		pair_create(&(struct pair_config){ .harness = { .scripted = true, .ib = true } });

	(void)state;
	p->h->a.attr.ib = true;
	p->h->a.attr.lid = 0x1234;
	p->h->a.attr.guid = 0x0002C90300000001;
	expect_lidguid(p, "1234 0002C90300000001");
	pair_destroy(p);
}

/* --- sources --- */

static struct pair *
limited_pair(bool ib)
{
	struct pair_config config = {
		.harness = { .scripted = true, .ib = ib },
		.limits = live_limits_default,
	};

	config.limits.rate = 10;
	config.limits.burst = 3;
	return pair_create(&config);
}

static void
expect_from(struct pair *p, uint16_t who, enum verdict verdict)
{
	uint8_t mad[MAD_LEN];
	enum verdict v = say_from(p->h, live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST), who, 1);

	assert_string_equal(verdict_infos[v].name, verdict_infos[verdict].name);
	if (verdict == VERDICT_DATAGRAM)
		next_sent(&p->h->a);
	expect_silence(&p->h->a);
}

static void
test_each_source_has_its_bucket(void **state)
{
	struct pair *p = limited_pair(false);
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		expect_from(p, 0x0002, VERDICT_DATAGRAM);
	for (i = 0; i < 5; i++)
		expect_from(p, 0x0002, VERDICT_RATE_LIMITED);
	expect_from(p, 0x0003, VERDICT_DATAGRAM);
	assert_int_equal(live_counters(p->live)->rate_limited, 5);
	assert_int_equal(live_counters(p->live)->echo, 4);
	pair_destroy(p);
}

static void
test_buckets_fill_at_the_rate(void **state)
{
	struct pair *p = limited_pair(false);
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		expect_from(p, 0x0002, VERDICT_DATAGRAM);
	pass(p->h, 99 * MS);
	expect_from(p, 0x0002, VERDICT_RATE_LIMITED);
	pass(p->h, 1 * MS);
	expect_from(p, 0x0002, VERDICT_DATAGRAM);
	expect_from(p, 0x0002, VERDICT_RATE_LIMITED);
	pass(p->h, 10000 * MS); /* no fuller than full */
	for (i = 0; i < 3; i++)
		expect_from(p, 0x0002, VERDICT_DATAGRAM);
	expect_from(p, 0x0002, VERDICT_RATE_LIMITED);
	pair_destroy(p);
}

/* Requests count whether they are answered or refused. */
static void
test_every_request_counts(void **state)
{
	struct pair *p = limited_pair(false);
	uint8_t mad[MAD_LEN] = { 0 };

	(void)state;
	expect_status(p, live_mad(mad, MAD_SET, LIVE_ECHO_REQUEST), MAD_GET_RESP, 0x0008);
	expect_status(p, live_mad(mad, MAD_GET, 9), MAD_GET_RESP, 0x000C);
	live_mad(mad, MAD_GET, 0)[1] = LIVE_CLASS_IBPING;
	assert_int_equal(say(p->h, mad), VERDICT_DATAGRAM);
	next_sent(&p->h->a);
	expect_no_answer(p, mad, VERDICT_RATE_LIMITED);
	mad[1] = LIVE_CLASS_SYSSTAT;
	expect_no_answer(p, mad, VERDICT_RATE_LIMITED);
	put_be16(mad + 16, 1);
	expect_no_answer(p, mad, VERDICT_RATE_LIMITED);
	pair_destroy(p);
}

static void
test_sources_of_a_native_port_are_lids(void **state)
{
	static const struct wire_headers headers = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	struct pair *p = limited_pair(true);
	struct av av = harness_av(&p->h->b);
	uint8_t mad[MAD_LEN];
	unsigned int i;

	(void)state;
	live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST);
	for (i = 0; i < 4; i++)
		assert_int_equal(say_by(p->h, &av, &headers, mad),
			i < 3 ? VERDICT_DATAGRAM : VERDICT_RATE_LIMITED);
	av.slid = 9;
	assert_int_equal(say_by(p->h, &av, &headers, mad), VERDICT_DATAGRAM);
	pair_destroy(p);
}

static void
test_rate_0_is_no_limit(void **state)
{
	struct pair_config config = { .harness.scripted = true, .limits = live_limits_default };
	struct pair *p;
	unsigned int i;

	(void)state;
	config.limits.rate = 0;
	p = pair_create(&config);
	for (i = 0; i < 2000; i++) {
		expect_from(p, 0x0002, VERDICT_DATAGRAM);
		p->h->a.delivered = p->h->a.sent;
	}
	pair_destroy(p);
}

/* --- ibping and ibsysstat (liveness 3) --- */

static uint8_t *
vendor_mad(uint8_t *mad, uint8_t class, uint8_t method, uint16_t attribute)
{
	memset(mad, 0, MAD_LEN);
	hex(mad,
		"01000100 00000000 0000000000000005 00000000 00000000000000000000000000000000 00 001405");
	mad[1] = class;
	mad[3] = method;
	put_be16(mad + 16, attribute);
	return mad;
}

/* Class 0x32 has no types: the request's data is ignored. */
static void
test_ibping_looks_at_no_data(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	vendor_mad(request, 0x32, MAD_GET, 0);
	memset(request + 40, 0x02, 216);
	vendor_mad(reply, 0x32, MAD_GET_RESP, 0);
	memcpy(reply + 40, "host.domain", 12);
	expect_answer(*state, request, reply);
}

static void
test_ibping_and_sysstat_are_asked_with_get(void **state)
{
	uint8_t mad[MAD_LEN];

	expect_no_answer(*state, vendor_mad(mad, 0x32, MAD_SEND, 0), VERDICT_MAD_UNMATCHED);
	expect_no_answer(*state, vendor_mad(mad, 0x33, MAD_SEND, 0x10), VERDICT_MAD_UNMATCHED);
}

static void
test_sysstat_ping_and_host(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	vendor_mad(request, 0x33, MAD_GET, 0x10);
	vendor_mad(reply, 0x33, MAD_GET_RESP, 0x10);
	expect_answer(*state, request, reply);
	put_be16(request + 16, 0x11);
	put_be16(reply + 16, 0x11);
	memcpy(reply + 40, "host.domain", 12);
	expect_answer(*state, request, reply);
	assert_int_equal(live_counters(((struct pair *)*state)->live)->sysstat, 2);
}

static void
test_sysstat_cpus_that_fit_a_packet(void **state)
{
	static const struct live_cpu cpu[] = { { "One", "1000.5" }, { "Two", "" } };
	struct pair *p = pair_create(&(struct pair_config){
		.harness.scripted = true,
		.cpu = cpu,
		.num_cpus = 2,
	});
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	(void)state;
	vendor_mad(request, 0x33, MAD_GET, 0x12);
	vendor_mad(reply, 0x33, MAD_GET_RESP, 0x12);
	strcpy((char *)reply + 40, "cpu 0: model One MHZ 1000.5\ncpu 1: model Two MHZ \n");
	expect_answer(p, request, reply);
	assert_int_equal(counters_of(&p->h->a).sessions_opened, 0);
	pair_destroy(p);
}

static void
test_sysstat_without_cpus(void **state)
{
	uint8_t request[MAD_LEN], reply[MAD_LEN];

	expect_answer(*state, vendor_mad(request, 0x33, MAD_GET, 0x12),
		vendor_mad(reply, 0x33, MAD_GET_RESP, 0x12));
}

static void
test_sysstat_other_attribute_is_000c(void **state)
{
	static const uint16_t attributes[] = { 0, 0x0F, 0x13, 0xFFFF };
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < 4; i++)
		expect_status(*state, vendor_mad(mad, 0x33, MAD_GET, attributes[i]), MAD_GET_RESP,
			0x000C);
}

static void
test_classes_that_are_not_wanted_are_not_there(void **state)
{
	struct pair_config config = { .harness.scripted = true, .limits = live_limits_default };
	uint8_t mad[MAD_LEN], reply[MAD_LEN];
	struct pair *p;

	(void)state;
	config.limits.ibping = config.limits.sysstat = false;
	p = pair_create(&config);
	expect_status(p, vendor_mad(mad, 0x32, MAD_GET, 0), MAD_GET_RESP, 0x0004);
	expect_status(p, vendor_mad(mad, 0x33, MAD_GET, 0x10), MAD_GET_RESP, 0x0004);
	expect_answer(p, live_mad(mad, MAD_GET, LIVE_ECHO_REQUEST),
		live_mad(reply, MAD_GET_RESP, LIVE_ECHO_RESPONSE));
	pair_destroy(p);
}

#define SCRIPTED(test) cmocka_unit_test_setup_teardown(test, pair_scripted_setup, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SCRIPTED(test_vector_ibping),
		SCRIPTED(test_vector_echo),
		SCRIPTED(test_single_echo_opens_no_session),
		SCRIPTED(test_reserved_is_ignored_on_receipt_and_zero_on_send),
		SCRIPTED(test_attribute_and_modifier_are_copied),
		SCRIPTED(test_all_64_bits_of_the_tid_come_back),
		SCRIPTED(test_send_is_answered_with_send),
		SCRIPTED(test_other_class_version_is_0004),
		SCRIPTED(test_other_method_is_0008),
		SCRIPTED(test_trap_is_not_answered),
		SCRIPTED(test_unknown_type_is_000c),
		SCRIPTED(test_unknown_type_of_a_send_is_not_answered),
		SCRIPTED(test_response_types_are_never_answered),
		SCRIPTED(test_class_port_info),
		SCRIPTED(test_other_oui_is_not_answered),
		SCRIPTED(test_stamps_are_marked_while_the_time_is_not_known),
		SCRIPTED(test_stamps_are_milliseconds_since_midnight),
		SCRIPTED(test_stamps_wrap_at_midnight),
		SCRIPTED(test_lidguid_of_a_roce_port),
		cmocka_unit_test(test_lidguid_of_a_native_port),
		cmocka_unit_test(test_each_source_has_its_bucket),
		cmocka_unit_test(test_buckets_fill_at_the_rate),
		cmocka_unit_test(test_every_request_counts),
		cmocka_unit_test(test_sources_of_a_native_port_are_lids),
		cmocka_unit_test(test_rate_0_is_no_limit),
		SCRIPTED(test_ibping_looks_at_no_data),
		SCRIPTED(test_ibping_and_sysstat_are_asked_with_get),
		SCRIPTED(test_sysstat_ping_and_host),
		cmocka_unit_test(test_sysstat_cpus_that_fit_a_packet),
		SCRIPTED(test_sysstat_without_cpus),
		SCRIPTED(test_sysstat_other_attribute_is_000c),
		cmocka_unit_test(test_classes_that_are_not_wanted_are_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
