/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * QP1: checks of a packet, choice of the agent, path of the answer (sa-multipacket A1, A2, B2, B7;
 * rc-transport 5). The test plays b.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

static const struct wire_headers good = {
	.opcode = UD_SEND_ONLY,
	.pkey = 0xFFFF,
	.dest_qpn = 1,
	.qkey = MAD_QKEY,
	.src_qpn = 0x123,
};

static uint8_t *
gsi_get(const struct harness *h, uint8_t *mad, uint8_t mgmt_class, uint8_t version, uint8_t method)
{
	v1_mad(h, mad, method, 0, 0, 0, 0);
	mad[MAD_OFF_CLASS] = mgmt_class;
	mad[MAD_OFF_CLASS_VERSION] = version;
	return mad;
}

/* In the order of the checks: class of the opcode, ICRC, P_Key, Q_Key, length, base version */
static void
test_checks(void **state)
{
	struct harness *h = *state;
	struct wire_headers bad = good;
	uint8_t mad[512] = { 0 };

	h->outcome = MAD_ANSWER;
	gsi_get(h, mad, 0x34, 1, MAD_GET);
	mad[MAD_OFF_BASE_VERSION] = 2;
	bad.opcode = RC_SEND_ONLY;
	bad.pkey = 0x7FFE;
	bad.qkey = 0x80010001;
	assert_int_equal(say_frame(h, &bad, mad, 200, true), VERDICT_QP_TYPE);
	bad.opcode = UD_SEND_ONLY;
	assert_int_equal(say_frame(h, &bad, mad, 200, true), VERDICT_ICRC);
	assert_int_equal(say_frame(h, &bad, mad, 200, false), VERDICT_PKEY);
	bad.pkey = 0xFFFF;
	assert_int_equal(say_frame(h, &bad, mad, 200, false), VERDICT_QKEY);
	bad.qkey = MAD_QKEY;
	assert_int_equal(say_frame(h, &bad, mad, 200, false), VERDICT_MAD_LENGTH);
	assert_int_equal(say_frame(h, &bad, mad, 0, false), VERDICT_MAD_LENGTH);
	assert_int_equal(say_frame(h, &bad, mad, 260, false), VERDICT_MAD_LENGTH);
	assert_int_equal(say_frame(h, &bad, mad, 256, false), VERDICT_MAD_VERSION);
	mad[MAD_OFF_BASE_VERSION] = 1;
	assert_int_equal(say_frame(h, &bad, mad, 256, false), VERDICT_DATAGRAM);
	assert_int_equal(h->requests, 1);
}

/* The port counts violations */
static void
test_violations(void **state)
{
	struct harness *h = *state;
	struct wire_headers bad = good;
	const struct port_violations *v = mad_worker_violations(h->a.w, 0);
	uint8_t mad[MAD_LEN];

	gsi_get(h, mad, 0x34, 1, MAD_GET);
	bad.pkey = 0x1234;
	say_frame(h, &bad, mad, 256, false);
	say_frame(h, &bad, mad, 256, true); /* a packet with a wrong ICRC is no violation */
	bad.pkey = 0xFFFF;
	bad.qkey = 0;
	say_frame(h, &bad, mad, 256, false);
	say_frame(h, &bad, mad, 256, false);
	assert_int_equal(v->pkey, 1);
	assert_int_equal(v->qkey, 2);
	/* and reports them: the data of traps 257 and 258 */
	assert_int_equal(h->bad_keys[0], 1);
	assert_int_equal(h->bad_keys[1], 2);
	assert_int_equal(h->bad_key.qkey, 0);
	assert_int_equal(h->bad_key.src_qpn, 0x123);
	assert_int_equal(h->bad_key.dest_qpn, 1);
	bad.pkey = 0x4321;
	say_frame(h, &bad, mad, 256, false); /* once, whatever else is wrong with it */
	assert_int_equal(h->bad_keys[0], 2);
	assert_int_equal(h->bad_keys[1], 2);
	assert_int_equal(h->bad_key.pkey, 0x4321);
	assert_null(mad_worker_violations(h->a.w, 64));
}

/* Any entry of the table: full with limited; the answer carries our entry */
static void
test_any_pkey(void **state)
{
	struct harness *h = *state;
	struct wire_headers headers = good;
	struct packet pkt;
	enum verdict why;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_ANSWER;
	headers.pkey = 0x0001;
	assert_int_equal(say_frame(h, &headers, gsi_get(h, mad, 0x34, 1, MAD_GET), 256, false),
		VERDICT_DATAGRAM);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, h->a.frames[0].bytes + 14,
		h->a.frames[0].len - 14, &pkt, &why));
	assert_int_equal(pkt.pkey, 0x8001);
}

/* The answer goes to the request's address, QP and MAC; UD SEND Only from QP1, 256 bytes */
static void
test_answer_goes_back(void **state)
{
	struct harness *h = *state;
	const struct frame *f = &h->a.frames[0];
	const uint8_t from[4] = { 10, 0, 0, 1 }, to[4] = { 10, 0, 0, 2 };
	const uint8_t smac[6] = { 2, 0, 0, 0, 0, 1 }, dmac[6] = { 2, 0, 0, 0, 0, 2 };
	struct packet pkt;
	enum verdict why;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_ANSWER;
	say_frame(h, &good, gsi_get(h, mad, 0x34, 1, MAD_GET), 256, false);
	assert_int_equal(h->a.sent, 1);
	assert_memory_equal(f->bytes, dmac, 6);
	assert_memory_equal(f->bytes + 6, smac, 6);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, f->bytes + 14, f->len - 14, &pkt, &why));
	assert_true(wire_crc_ok(&pkt, &why));
	assert_int_equal(pkt.opcode, 0x64);
	assert_int_equal(pkt.dest_qpn, 0x123);
	assert_int_equal(pkt.src_qpn, 1);
	assert_int_equal(pkt.qkey, 0x80010000);
	assert_int_equal(pkt.payload_len, 256);
	assert_memory_equal(pkt.sgid.raw + 12, from, 4);
	assert_memory_equal(pkt.dgid.raw + 12, to, 4);
	assert_int_equal(pkt.payload[MAD_OFF_METHOD], 0x81);
	assert_int_equal(get_be64(pkt.payload + MAD_OFF_TID), 0x77);
}

/* native IB: the LIDs are swapped; a request without GRH is answered without */
static void
test_answer_by_lid(void **state)
{
	struct harness *h =
		harness_create(&(struct harness_config){ .scripted = true, .ib = true });
	uint8_t mad[MAD_LEN];
	struct packet pkt;
	enum verdict why;

	(void)state;
	h->outcome = MAD_ANSWER;
	assert_int_equal(say_frame(h, &good, gsi_get(h, mad, 0x34, 1, MAD_GET), 256, false),
		VERDICT_DATAGRAM);
	assert_true(wire_parse(ENCAP_IB, h->a.frames[0].bytes + 14, h->a.frames[0].len - 14, &pkt,
		&why));
	assert_int_equal(pkt.slid, 1);
	assert_int_equal(pkt.dlid, 2);
	assert_false(pkt.has_grh);
	harness_destroy(h);
}

/* native IB over a router: the GIDs are swapped; SL, class and flow label are the request's */
static void
test_answer_by_gid_of_the_grh(void **state)
{
	struct harness *h =
		harness_create(&(struct harness_config){ .scripted = true, .ib = true });
	struct av av = harness_av(&h->b);
	uint8_t mad[MAD_LEN];
	struct packet pkt;
	unsigned int i;

	(void)state;
	av.grh = true;
	av.sl = 5;
	av.traffic_class = 0xB8;
	av.flow_label = 0x12345;
	/* without a session, and with one */
	for (i = 0; i < 2; i++) {
		h->outcome = i == 0 ? MAD_ANSWER : MAD_STREAM;
		assert_int_equal(say_by(h, &av, &good,
					 i == 0 ? gsi_get(h, mad, 0x34, 1, MAD_GET)
						: gsi_get(h, mad, 0x03, 1, SA_GET_TABLE)),
			VERDICT_DATAGRAM);
		next_packet(&h->a, &pkt);
		assert_int_equal(pkt.slid, 1);
		assert_int_equal(pkt.dlid, 2);
		assert_true(pkt.has_grh);
		assert_memory_equal(pkt.sgid.raw, av.dgid.raw, 16);
		assert_memory_equal(pkt.dgid.raw, av.sgid.raw, 16);
		assert_int_equal(pkt.sl, 5);
		assert_int_equal(pkt.vl, 6); /* as the port's table maps it */
		assert_int_equal(pkt.tclass, 0xB8);
		assert_int_equal(pkt.flow_label, 0x12345);
	}
	harness_destroy(h);
}

/* RoCE: the answer has the request's DSCP; ECN is each packet's own */
static void
test_answer_keeps_the_dscp(void **state)
{
	struct harness *h = *state;
	struct av av = harness_av(&h->b);
	uint8_t mad[MAD_LEN];
	struct packet pkt;

	h->outcome = MAD_ANSWER;
	av.traffic_class = 0xB8 | 3; /* congestion experienced */
	assert_int_equal(say_by(h, &av, &good, gsi_get(h, mad, 0x34, 1, MAD_GET)),
		VERDICT_DATAGRAM);
	next_packet(&h->a, &pkt);
	assert_int_equal(pkt.tclass & 0xFC, 0xB8);
	assert_int_not_equal(pkt.tclass & 3, 3);
}

struct status_case {
	uint8_t mgmt_class, version, method;
	uint16_t status;
	uint8_t answer; /* method; 0: silence */
};

/* B2: unknown class or class version 0x0004, unknown method 0x0008 */
static void
test_unknown_is_answered(void **state)
{
	static const struct status_case cases[] = {
		{ 0x04, 1, 0x01, 0x0004, 0x81 },
		{ 0x03, 3, 0x01, 0x0004, 0x81 },
		{ 0x03, 0, 0x12, 0x0004, 0x92 },
		{ 0x81, 1, 0x02, 0x0004, 0x81 },
		{ 0x03, 1, 0x15, 0x0008, 0x95 },
		{ 0x03, 2, 0x10, 0x0008, 0x90 },
		{ 0x34, 1, 0x12, 0x0008, 0x92 },
		{ 0x04, 1, 0x03, 0, 0 }, /* Send, Trap and TrapRepress expect no answer */
		{ 0x04, 1, 0x05, 0, 0 },
		{ 0x03, 1, 0x07, 0, 0 },
		{ 0x04, 1, 0x81, 0, 0 }, /* a response is never answered */
		{ 0x03, 1, 0x92, 0, 0 },
		{ 0x03, 2, 0x92, 0, 0 },
	};
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct status_case *c = &cases[i];
		enum verdict v = say(h, gsi_get(h, mad, c->mgmt_class, c->version, c->method));
		const uint8_t *sent;

		if (c->answer == 0) {
			assert_int_equal(v, VERDICT_MAD_UNMATCHED);
			expect_silence(&h->a);
			continue;
		}
		assert_int_equal(v, VERDICT_DATAGRAM);
		sent = next_sent(&h->a);
		assert_int_equal(sent[MAD_OFF_METHOD], c->answer);
		assert_int_equal(get_be16(sent + MAD_OFF_STATUS), c->status);
		assert_int_equal(get_be64(sent + MAD_OFF_TID), 0x77);
		assert_int_equal(get_be16(sent + MAD_OFF_ATTRIBUTE), 0x11);
	}
	assert_int_equal(counters_of(&h->a).bad_version, 4);
	assert_int_equal(counters_of(&h->a).bad_method, 3);
	assert_int_equal(h->requests, 0);
}

/* The reply starts with the request's header, R set, status 0, and no data of the request */
static void
test_reply_header(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	const uint8_t *sent;
	unsigned int i;

	h->outcome = MAD_ANSWER;
	gsi_get(h, mad, 0x34, 1, MAD_SET);
	put_be32(mad + MAD_OFF_MODIFIER, 0xABCD);
	memset(mad + 24, 0x55, 232);
	put_be16(mad + MAD_OFF_STATUS, 0x7777);
	say(h, mad);
	sent = next_sent(&h->a);
	assert_int_equal(sent[MAD_OFF_METHOD], 0x81);
	assert_int_equal(get_be16(sent + MAD_OFF_STATUS), 0);
	assert_int_equal(get_be32(sent + MAD_OFF_MODIFIER), 0xABCD);
	for (i = 24; i < 256; i++)
		assert_int_equal(sent[i], 0);
}

/* A multi-packet request for a method that allows none */
static void
test_first_of_a_single_method(void **state)
{
	struct harness *h = *state;

	say_v1(h, 0x12, SA1_FIRST, 1, 400, 0);
	expect_tx(&h->a, "92 single status 0x001c");
	assert_int_equal(h->requests, 0);
}

/* A3: "First+Last, SegmentNumber 1" is a request of one packet; reserved bits do not count */
static void
test_odd_single_requests(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_ANSWER;
	say_v1(h, 0x12, SA1_FIRST | SA1_LAST, 1, 0, 0);
	expect_tx(&h->a, "92 single of 0");
	say_v1(h, 0x12, 0x4A, 0, 0, 0);
	expect_tx(&h->a, "92 single of 0");
}

/* Control packets and segments without a session */
static void
test_strays(void **state)
{
	struct harness *h = *state;

	assert_int_equal(say_v1(h, 0x12, SA1_ACK, 64, 0, 64), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x12, SA1_RESEND, 0, 0, 64), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x14, SA1_KEEPALIVE, 0, 0, 0), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x12, 0, 2, 0, 0), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_v1(h, 0x14, SA1_LAST, 1, 0, 0), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
	expect_clean(h);
}

/* If the sink is full, a limited number of answers wait; others are dropped and counted */
static void
test_answers_wait_for_the_sink(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	h->outcome = MAD_ANSWER;
	h->a.room = 0;
	for (i = 0; i < 64; i++) {
		h->tid = i;
		assert_int_equal(say(h, gsi_get(h, mad, 0x34, 1, MAD_GET)), VERDICT_DATAGRAM);
	}
	assert_int_equal(say(h, gsi_get(h, mad, 0x34, 1, MAD_GET)), VERDICT_MAD_REFUSED);
	assert_true(mad_pending(h->a.w));
	h->a.room = 1000;
	transmit(&h->a);
	for (i = 0; i < 64; i++)
		assert_int_equal(get_be64(next_sent(&h->a) + MAD_OFF_TID), i);
	expect_silence(&h->a);
	assert_int_equal(counters_of(&h->a).answers, 64);
	assert_false(mad_pending(h->a.w));
}

static enum mad_outcome
ignore(void *arg, struct mad_request *req)
{
	(void)arg;
	(void)req;
	return MAD_SILENT;
}

/* A Get opens a session only if its answer comes later; repeats find that session */
static void
test_session_for_a_late_answer_only(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];

	h->outcome = MAD_ANSWER;
	say_v1(h, MAD_GET, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single of 0");
	assert_int_equal(h->handle, 0);
	assert_int_equal(counters_of(&h->a).sessions_opened, 0);
	h->outcome = MAD_LATER;
	say_v1(h, MAD_GET, 0, 0, 0, 0);
	expect_silence(&h->a);
	assert_string_equal(state_of(&h->a), "PREP");
	assert_int_equal(counters_of(&h->a).sessions_opened, 1);
	say_v1(h, MAD_GET, 0, 0, 0, 0);
	assert_int_equal(h->requests, 2);
	assert_int_equal(counters_of(&h->a).repeated_requests, 1);
	skip_sent(&h->a);
	v1_mad(h, mad, 0x81, 0, 0, 0, 0);
	assert_int_equal(mad_answer(h->a.w, h->handle, mad, h->now), 0);
	transmit(&h->a);
	expect_tx(&h->a, "81 single of 0");
}

/* The same in class version 2; if no session is free, the request is answered at once */
static void
test_no_session_for_a_late_answer(void **state)
{
	struct harness *h = *state;
	uint8_t mad[MAD_LEN];
	unsigned int i;

	h->outcome = MAD_LATER;
	for (i = 0; i < h->config.limits.max_sessions_per_peer; i++) {
		h->tid++;
		assert_int_equal(say(h, gsi_get(h, mad, 0x03, 2, MAD_GET)), VERDICT_DATAGRAM);
		assert_int_not_equal(h->handle, 0);
	}
	expect_silence(&h->a);
	h->tid++;
	say_v1(h, MAD_GET, 0, 0, 0, 0);
	expect_tx(&h->a, "81 single status 0x0100");
	assert_int_equal(counters_of(&h->a).sessions_refused, 1);
}

static void
test_agents_table(void **state)
{
	static const struct mad_method none[] = { { 0, 0 } };
	struct mad_agent agent = { 0x34, 1, "again", MAD_SINGLE, 24, none, ignore, NULL };
	struct harness *h = *state;
	unsigned int i;

	assert_int_equal(mad_agent_add(h->a.w, &agent), -EEXIST);
	for (i = 3; i < 32; i++) {
		agent.class_version = i;
		assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	}
	agent.class_version = 77;
	assert_int_equal(mad_agent_add(h->a.w, &agent), -ENOSPC);
}

/*
	 * MAD_ANY_VERSION applies only to versions without a row of their own, in any order of
	 * adding
	 */
static void
test_agent_of_any_version(void **state)
{
	static const struct mad_method get_only[] = { { MAD_GET, 0 }, { 0, 0 } };
	struct harness *h = *state;
	struct mad_agent agent = { 0x34, MAD_ANY_VERSION, "any", MAD_SINGLE, 24, get_only, ignore,
		NULL };
	uint8_t mad[MAD_LEN];

	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	assert_int_equal(mad_agent_add(h->a.w, &agent), -EEXIST);
	say(h, gsi_get(h, mad, 0x34, 7, MAD_GET));
	/* this agent does not answer; without an agent status 0x0004 would come */
	expect_silence(&h->a);
	h->outcome = MAD_ANSWER;
	say(h, gsi_get(h, mad, 0x34, 1, MAD_GET));
	next_sent(&h->a);
	assert_int_equal(h->requests, 1);
	agent.class_version = 9;
	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
}

static void
test_send_without_a_session(void **state)
{
	struct harness *h = *state;
	struct mad_peer to = {
		.av = harness_av(&h->a),
		.qpn = 1,
		.qkey = MAD_QKEY,
		.pkey = 0xFFFF,
		.neighbour = PATH_NO_NEIGHBOUR,
	};
	uint8_t mad[MAD_LEN] = { 1, 0x07, 2, MAD_SEND };
	struct packet pkt;
	unsigned int i;

	mad[255] = 0x77;
	assert_int_equal(mad_send(h->a.w, &to, mad), 0);
	next_packet(&h->a, &pkt);
	assert_memory_equal(pkt.payload, mad, MAD_LEN);
	assert_int_equal(pkt.dest_qpn, 1);
	assert_int_equal(pkt.qkey, MAD_QKEY);
	assert_int_equal(pkt.dgid.raw[15], 2);
	h->a.room = 0;
	for (i = 0; i < 64; i++) {
		mad[8] = (uint8_t)i;
		assert_int_equal(mad_send(h->a.w, &to, mad), 0);
	}
	assert_int_equal(mad_send(h->a.w, &to, mad), -EAGAIN);
	h->a.room = 1000;
	transmit(&h->a);
	for (i = 0; i < 64; i++)
		assert_int_equal(next_sent(&h->a)[8], i);
	expect_silence(&h->a);
}

static void
test_names(void **state)
{
	unsigned int i;

	(void)state;
	assert_string_equal(mad_status_name(0x001C), "INVALID_FIELD");
	assert_string_equal(mad_status_name(0x0300), "NO_RECORDS");
	assert_string_equal(mad_status_name(0xFF00), "UNKNOWN");
	for (i = 118; i < 128; i++)
		assert_string_not_equal(rmpp_status_name(i), "UNKNOWN");
	assert_string_equal(rmpp_status_name(1), "RESOURCES_EXHAUSTED");
	assert_string_equal(rmpp_status_name(117), "UNKNOWN");
	assert_string_equal(rmpp_status_name(128), "UNKNOWN");
	for (i = 0; i < MAD_END_COUNT; i++)
		assert_string_not_equal(mad_end_name(i), "UNKNOWN");
	for (i = 0; i < MAD_COUNTER_COUNT; i++)
		assert_true(strlen(mad_counter_infos[i].help) > 5);
}

#define T(test) cmocka_unit_test_setup_teardown(test, scripted_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_checks),
		T(test_violations),
		T(test_any_pkey),
		T(test_answer_goes_back),
		cmocka_unit_test(test_answer_by_lid),
		cmocka_unit_test(test_answer_by_gid_of_the_grh),
		T(test_answer_keeps_the_dscp),
		T(test_unknown_is_answered),
		T(test_reply_header),
		T(test_first_of_a_single_method),
		T(test_odd_single_requests),
		T(test_strays),
		T(test_answers_wait_for_the_sink),
		T(test_session_for_a_late_answer_only),
		T(test_no_session_for_a_late_answer),
		T(test_agents_table),
		T(test_agent_of_any_version),
		T(test_send_without_a_session),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
