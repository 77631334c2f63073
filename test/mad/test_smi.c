/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * QP0: checks of SMPs for this port, both ends of a directed route, replies byte for byte, calls
 * (smp-sma 1, 2, 6). a is the port with LID 1; the test plays b with LID 2.
 */

#include <errno.h>
#include <string.h>

#include "harness.h"

#define SMP_LEN 284 /* LRH, BTH, DETH, MAD */
#define MAD_AT  28

#define DR_SLID 32
#define DR_DLID 34

/* LRH, BTH, DETH of an SMP from LID 2 to LID 1; permissive ones of a directed route (smp-sma 1) */
static const uint8_t by_lid[MAD_AT] = { 0xF0, 0x02, 0x00, 0x01, 0x00, 0x48, 0x00, 0x02, 0x64, 0x00,
	0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00 };
static const uint8_t by_route[MAD_AT] = { 0xF0, 0x02, 0xFF, 0xFF, 0x00, 0x48, 0xFF, 0xFF, 0x64,
	0x00, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00 };

/* Get(NodeInfo), M_Key, data and the rest filled */
static uint8_t *
smi_smp(uint8_t *packet, uint8_t mgmt_class, uint8_t method)
{
	static const uint8_t header[32] = { 1, 0, 1, 0, 0x00, 0x00, 0x00, 0x00, 0, 0, 0, 0, 0xAB,
		0xCD, 0xEF, 0x01, 0x00, 0x11, 0, 0, 0x00, 0x00, 0x00, 0x05, 1, 2, 3, 4, 5, 6, 7,
		8 };
	uint8_t *mad = packet + MAD_AT;
	bool routed = mgmt_class == 0x81;

	memset(packet, 0, SMP_LEN);
	memcpy(packet, routed ? by_route : by_lid, MAD_AT);
	memcpy(mad, header, sizeof(header));
	mad[1] = mgmt_class;
	mad[3] = method;
	memset(mad + 64, 0x5D, 64);
	if (routed) {
		mad[6] = 1; /* one hop, taken */
		mad[7] = 1;
		memset(mad + DR_SLID, 0xFF, 4);
		mad[128 + 1] = 9;
	}
	return mad;
}

static enum verdict
say_smp(struct harness *h, uint8_t mgmt_class, uint8_t method)
{
	uint8_t packet[SMP_LEN];

	smi_smp(packet, mgmt_class, method);
	return say_bytes(h, packet, SMP_LEN);
}

/* A handler that knows nothing of routes: it sets data and a status. */
static enum mad_outcome
smi_answer(void *arg, struct mad_request *req)
{
	struct harness *h = arg;

	h->requests++;
	memcpy(h->request, req->mad, MAD_LEN);
	put_be16(req->reply + MAD_OFF_STATUS, h->status);
	memset(req->reply + 64, 0xA5, 64);
	if (h->outcome == MAD_SILENT)
		req->verdict = VERDICT_MKEY;
	return h->outcome;
}

static struct harness *
smi_create(unsigned int workers, unsigned int id)
{
	return harness_create(&(struct harness_config){
		.scripted = true,
		.ib = true,
		.workers = workers,
		.id = id,
	});
}

static int
smi_setup(void **state)
{
	struct harness *h = smi_create(1, 0);
	struct mad_agent agent = { 0x01, 1, "sma", MAD_SINGLE, 64, NULL, smi_answer, h };

	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	agent.mgmt_class = 0x81;
	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	h->outcome = MAD_ANSWER;
	*state = h;
	return 0;
}

/* No subnet management agent */
static int
bare_setup(void **state)
{
	*state = smi_create(1, 0);
	return 0;
}

/* The last packet sent, from its LRH on, with its CRCs checked */
static const uint8_t *
last_sent(struct harness *h)
{
	const struct frame *f = &h->a.frames[(h->a.sent - 1) % HARNESS_FRAMES];
	struct packet pkt;
	enum verdict why;

	assert_true(h->a.sent > h->a.seen);
	h->a.seen++;
	assert_int_equal(h->a.seen, h->a.sent);
	assert_int_equal(f->len, 14 + SMP_LEN + 6);
	assert_true(wire_parse(ENCAP_IB, f->bytes + 14, f->len - 14, &pkt, &why));
	assert_true(wire_crc_ok(&pkt, &why));
	return f->bytes + 14;
}

/* --- packets that are no SMPs --- */

/* smp-sma 6: correct one fault after the other, in the order of the checks */
static void
test_checks(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN + 10], *mad = smi_smp(p, 0x04, MAD_GET);
	struct packet pkt;
	enum verdict why;

	p[0] = 0x00; /* VL 0 */
	p[8] = 0x04; /* RC SEND Only */
	p[5] = 0x49;
	mad[0] = 2;
	memset(p + SMP_LEN, 0, 10);
	assert_int_equal(say_bytes(h, p, SMP_LEN + 4), VERDICT_SMP);
	p[0] = 0xF0;
	assert_int_equal(say_bytes(h, p, SMP_LEN + 4), VERDICT_QP_TYPE);
	p[8] = 0x64;
	assert_true(wire_parse(ENCAP_IB, p, SMP_LEN + 10, &pkt, &why));
	pkt.port = 0;
	assert_int_equal(mad_receive_smp(h->a.w, &pkt, h->now), VERDICT_VCRC);
	put_le16(p + SMP_LEN + 8, wire_vcrc(p, SMP_LEN + 8));
	assert_int_equal(mad_receive_smp(h->a.w, &pkt, h->now), VERDICT_ICRC);
	assert_int_equal(say_bytes(h, p, SMP_LEN + 4), VERDICT_MAD_LENGTH);
	p[5] = 0x48;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_MAD_VERSION);
	mad[0] = 1;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP); /* class */
	mad[1] = 0x81;
	mad[6] = 7;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad[1] = 0x01;
	assert_int_equal(h->requests, 0);
	assert_int_equal(h->a.sent, 0);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->requests, 1);
}

/* Another QP, a GRH, another kind of port */
static void
test_not_for_the_smi(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN + 6] = { 0 };
	struct packet pkt;
	enum verdict why;
	unsigned int i;

	smi_smp(p, 0x01, MAD_GET);
	for (i = 0; i < 4; i++) {
		assert_true(wire_parse(ENCAP_IB, p, sizeof(p), &pkt, &why));
		pkt.port = 0;
		pkt.dest_qpn = i == 0 ? 1 : 0;
		pkt.has_grh = i == 1;
		pkt.encap = i == 2 ? ENCAP_ROCEV2_IPV4 : ENCAP_IB;
		pkt.vl = i == 3 ? 14 : 15;
		assert_int_equal(mad_receive_smp(h->a.w, &pkt, h->now), VERDICT_SMP);
	}
	assert_int_equal(h->requests, 0);
}

/* P_Key, Q_Key and the source QP are ignored: the answer always goes to QP0 */
static void
test_keys_do_not_matter(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN];
	const uint8_t *out;

	smi_smp(p, 0x01, MAD_GET);
	put_be16(p + 10, 0x1234);
	put_be32(p + 20, 0x80010000);
	p[27] = 5;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	out = last_sent(h);
	assert_memory_equal(out + 8, by_lid + 8, 12); /* P_Key 0xFFFF, DestQP 0, PSN 0 */
	assert_memory_equal(out + 20, by_lid + 20, 8); /* Q_Key 0, SrcQP 0 */
	assert_int_equal(mad_worker_violations(h->a.w, 0)->pkey, 0);
	assert_int_equal(h->bad_keys[0] + h->bad_keys[1], 0);
}

/* --- the directed route --- */

struct route_case {
	uint8_t count, pointer;
	uint16_t dr_dlid;
	bool accepted;
	uint8_t noted; /* expected ReturnPath[pointer]: port number 1 */
};

/* smp-sma 2, incoming request (C14-9); the handler sees HopPointer HopCount + 1 */
static void
test_route_of_a_request(void **state)
{
	static const struct route_case cases[] = {
		{ 0, 0, 0xFFFF, true, 0 }, /* no hop: the return path stays unchanged */
		{ 1, 1, 0xFFFF, true, 1 },
		{ 63, 63, 0xFFFF, true, 1 },
		{ 1, 1, 0x0007, false, 0 }, /* a LID-routed part follows: a CA does not forward */
		{ 0, 0, 0x0007, false, 0 },
		{ 0, 1, 0xFFFF, true, 0 }, /* advanced already */
		{ 4, 5, 0xFFFF, true, 0 },
		{ 63, 64, 0xFFFF, true, 0 },
		{ 1, 0, 0xFFFF, false, 0 }, /* the sender did not take the first hop */
		{ 4, 3, 0xFFFF, false, 0 }, /* in the middle */
		{ 4, 1, 0xFFFF, false, 0 },
		{ 4, 6, 0xFFFF, false, 0 }, /* past the end */
		{ 0, 2, 0xFFFF, false, 0 },
		{ 0, 255, 0xFFFF, false, 0 },
		{ 64, 64, 0xFFFF, false, 0 }, /* C14-6 */
		{ 64, 65, 0xFFFF, false, 0 },
		{ 255, 255, 0xFFFF, false, 0 },
		{ 255, 0, 0xFFFF, false, 0 },
	};
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct route_case *c = &cases[i];

		mad = smi_smp(p, 0x81, MAD_GET);
		mad[6] = c->pointer;
		mad[7] = c->count;
		put_be16(mad + DR_DLID, c->dr_dlid);
		h->requests = 0;
		assert_int_equal(say_bytes(h, p, SMP_LEN),
			c->accepted ? VERDICT_DATAGRAM : VERDICT_SMP_ROUTE);
		assert_int_equal(h->requests, c->accepted);
		if (!c->accepted)
			continue;
		assert_int_equal(h->request[6], c->count + 1);
		if (c->noted != 0)
			mad[192 + c->pointer] = 1;
		mad[6] = c->count + 1;
		assert_memory_equal(h->request, mad, MAD_LEN); /* and nothing else is changed */
	}
	assert_int_equal(h->a.sent, 6);
}

/* A response has R = 1 and D = 1, anything else neither */
static void
test_direction_and_method_agree(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;

	mad = smi_smp(p, 0x81, MAD_GET);
	mad[4] = 0x80;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad = smi_smp(p, 0x81, MAD_GET_RESP);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad[6] = 0;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	assert_int_equal(say_smp(h, 0x81, MAD_TRAP_REPRESS), VERDICT_DATAGRAM);
	assert_int_equal(h->requests, 1);
}

/* --- replies --- */

/* LIDs changed places, QP0 to QP0, GetResp, M_Key as it came; bytes 64 and on are the handler's */
static void
test_reply_by_lid(void **state)
{
	struct harness *h = *state;
	uint8_t want[SMP_LEN], *mad = smi_smp(want, 0x01, 0x81);

	put_be16(want + 2, 2);
	put_be16(want + 6, 1);
	put_be16(mad + 4, 0x001C);
	memset(mad + 64, 0xA5, 64);
	h->status = 0x001C;
	assert_int_equal(say_smp(h, 0x01, MAD_SET), VERDICT_DATAGRAM);
	assert_memory_equal(last_sent(h), want, SMP_LEN);
	assert_memory_equal(h->a.frames[0].bytes, ((uint8_t[]){ 2, 0, 0, 0, 0, 2 }), 6);
}

/* To the permissive LID, from one that has no LID yet */
static void
test_reply_to_the_permissive_lid(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], want[SMP_LEN];

	smi_smp(p, 0x01, MAD_GET);
	memcpy(p, by_route, MAD_AT);
	memset(smi_smp(want, 0x01, 0x81) + 64, 0xA5, 64);
	memcpy(want, by_route, MAD_AT);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_memory_equal(last_sent(h), want, SMP_LEN);
}

/* D set, HopPointer == HopCount, DrSLID, DrDLID and InitialPath as they came, ReturnPath noted */
static void
test_reply_by_route(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], want[SMP_LEN], *mad;

	mad = smi_smp(p, 0x81, MAD_GET);
	mad[6] = 2;
	mad[7] = 2;
	put_be16(mad + DR_SLID, 0x0123);
	memcpy(mad + 128, (uint8_t[]){ 0, 4, 7 }, 3);
	memcpy(mad + 192, (uint8_t[]){ 0, 3, 0 }, 3);
	memcpy(want, p, SMP_LEN);
	mad = want + MAD_AT;
	mad[3] = 0x81;
	put_be16(mad + 4, 0x800C);
	memset(mad + 64, 0xA5, 64);
	mad[192 + 2] = 1;
	h->status = 0x000C;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_memory_equal(last_sent(h), want, SMP_LEN);
	/* no hop: HopPointer 0 as it came */
	mad = smi_smp(p, 0x81, MAD_GET);
	mad[6] = mad[7] = 0;
	memcpy(want, p, SMP_LEN);
	mad = want + MAD_AT;
	mad[3] = 0x81;
	mad[4] = 0x80;
	want[19] = 1; /* PSN */
	memset(mad + 64, 0xA5, 64);
	h->status = 0;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_memory_equal(last_sent(h), want, SMP_LEN);
}

/* An answer with a session, at once or later, has D, too, and so has its repeat */
static void
test_reply_of_a_session(void **state)
{
	static const struct mad_method methods[] = { { MAD_SET, MAD_METHOD_SESSION }, { 0, 0 } };
	struct harness *h = *state;
	const struct mad_agent agent = { 0x81, 1, "late", MAD_SINGLE, 64, methods, smi_answer, h };
	uint8_t mad[MAD_LEN] = { 1, 0x81, 1, 0x81, 0x00, 0x0C };
	struct mad_session_info info;
	uint32_t cursor = 0;
	unsigned int i;

	assert_int_equal(mad_agent_add(h->a.w, &agent), 0);
	h->outcome = MAD_ANSWER;
	h->status = 0x001C;
	for (i = 0; i < 2; i++) {
		assert_int_equal(say_smp(h, 0x81, MAD_SET), VERDICT_DATAGRAM);
		assert_int_equal(get_be16(last_sent(h) + MAD_AT + 4), 0x801C);
	}
	assert_int_equal(h->requests, 1);
	pass(h, 1000 * MS);
	h->outcome = MAD_LATER;
	assert_int_equal(say_smp(h, 0x81, MAD_SET), VERDICT_DATAGRAM);
	assert_true(mad_session_next(h->a.w, &cursor, h->now, &info));
	assert_int_equal(mad_answer(h->a.w, info.handle, mad, h->now), 0);
	transmit(&h->a);
	assert_int_equal(get_be16(last_sent(h) + MAD_AT + 4), 0x800C);
}

/* Unknown class version: 0x0004, the request's data unchanged; with D on a directed route */
static void
test_unknown_class_version(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;

	mad = smi_smp(p, 0x01, MAD_GET);
	mad[2] = 2;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	mad[3] = 0x81;
	mad[5] = 0x04;
	assert_memory_equal(last_sent(h) + MAD_AT, mad, MAD_LEN);
	mad = smi_smp(p, 0x81, MAD_SET);
	mad[2] = 0;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	mad[3] = 0x81;
	mad[4] = 0x80;
	mad[5] = 0x04;
	mad[192 + 1] = 1;
	assert_memory_equal(last_sent(h) + MAD_AT, mad, MAD_LEN);
	assert_int_equal(h->requests, 0);
	assert_int_equal(counters_of(&h->a).bad_version, 2);
}

/* --- choice of the agent --- */

/* An agent without a method list gets every method except responses */
static void
test_every_method(void **state)
{
	static const uint8_t methods[] = { 0x01, 0x02, 0x03, 0x05, 0x06, 0x07, 0x12, 0x7F, 0x00 };
	struct harness *h = *state;
	unsigned int i;

	for (i = 0; i < sizeof(methods); i++) {
		assert_int_equal(say_smp(h, 0x01, methods[i]), VERDICT_DATAGRAM);
		assert_int_equal(h->requests, i + 1);
		assert_int_equal(h->request[3], methods[i]);
	}
	assert_int_equal(say_smp(h, 0x01, MAD_GET_RESP), VERDICT_MAD_UNMATCHED);
	assert_int_equal(say_smp(h, 0x01, 0x80), VERDICT_MAD_UNMATCHED);
	assert_int_equal(h->requests, sizeof(methods));
}

/* The verdict of an unanswered request is the handler's */
static void
test_verdict_of_the_handler(void **state)
{
	struct harness *h = *state;

	h->outcome = MAD_SILENT;
	assert_int_equal(say_smp(h, 0x01, MAD_GET), VERDICT_MKEY);
	assert_int_equal(say_smp(h, 0x81, MAD_SET), VERDICT_MKEY);
	assert_int_equal(h->requests, 2);
	expect_silence(&h->a);
}

/* A response that no call waits for, by either class */
static void
test_response_nobody_waits_for(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;

	assert_int_equal(say_smp(h, 0x01, MAD_GET_RESP), VERDICT_MAD_UNMATCHED);
	mad = smi_smp(p, 0x81, MAD_GET_RESP);
	mad[4] = 0x80;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
}

/*
 * No subnet manager and no agent here: notices are dropped for want of an SM, others are answered
 */
static void
test_no_subnet_manager(void **state)
{
	struct harness *h = *state;

	assert_int_equal(say_smp(h, 0x01, MAD_TRAP), VERDICT_SMP_NO_SM);
	assert_int_equal(say_smp(h, 0x01, MAD_REPORT), VERDICT_SMP_NO_SM);
	assert_int_equal(say_smp(h, 0x81, MAD_TRAP), VERDICT_SMP_NO_SM);
	assert_int_equal(say_smp(h, 0x01, MAD_TRAP_REPRESS), VERDICT_MAD_UNMATCHED);
	expect_silence(&h->a);
	assert_int_equal(say_smp(h, 0x01, MAD_GET), VERDICT_DATAGRAM);
	assert_int_equal(last_sent(h)[MAD_AT + 5], 0x04);
}

/* Security: the agent of QP0 cannot be reached by QP1, nor that of QP1 by QP0 */
static void
test_qp1_is_another_door(void **state)
{
	static const uint8_t classes[] = { 0x01, 0x81 };
	struct wire_headers qp1 = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
		.src_qpn = 1,
	};
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	const uint8_t *out;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		mad = smi_smp(p, classes[i], MAD_GET);
		assert_int_equal(say_frame(h, &qp1, mad, MAD_LEN, false), VERDICT_DATAGRAM);
		out = next_sent(&h->a);
		assert_int_equal(out[3], 0x81);
		assert_int_equal(get_be16(out + 4), 0x0004);
	}
	assert_int_equal(h->requests, 0);
	assert_int_equal(say_smp(h, 0x03, MAD_GET), VERDICT_SMP);
	assert_int_equal(say_smp(h, 0x34, MAD_GET), VERDICT_SMP);
	expect_silence(&h->a);
}

/* --- calls --- */

static void
smi_done(void *arg, const struct mad_result *result)
{
	struct harness *h = arg;

	h->done++;
	h->result = *result;
	if (result->mad != NULL)
		memcpy(h->result_mad, result->mad, MAD_LEN);
}

/* From a; to LID 2, or by a route with the permissive LIDs. @return the MAD, .mad of the call */
static uint8_t *
call_init_smp(struct harness *h, struct mad_call *c, uint8_t *packet, uint8_t mgmt_class)
{
	*c = (struct mad_call){
		.to = { .av = harness_av(&h->a), .neighbour = PATH_NO_NEIGHBOUR, .pkey = 0xFFFF },
		.protocol = MAD_SINGLE,
		.data_offset = 64,
		.mad = smi_smp(packet, mgmt_class, MAD_GET),
		.resp_time = 10,
		.taker = { .arg = h, .done = smi_done },
	};
	memset(c->to.av.dmac, 0, 6);
	if (mgmt_class == 0x81) {
		c->to.av.slid = c->to.av.dlid = 0xFFFF;
		packet[MAD_AT + 6] = 0;
	}
	return packet + MAD_AT;
}

/* HopPointer 1, QP0 to QP0 on VL 15, SL 0, no GRH; the answer returns with HopPointer 1, D set */
static void
test_call_by_route(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], want[SMP_LEN], *mad;
	const uint8_t *out;
	struct mad_call c;

	mad = call_init_smp(h, &c, p, 0x81);
	mad[7] = 3;
	c.to.av.sl = 5;
	c.to.qkey = MAD_QKEY;
	c.to.pkey = 0x8001;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	smi_smp(want, 0x81, MAD_GET);
	want[MAD_AT + 7] = 3;
	out = last_sent(h);
	memcpy(want + MAD_AT + 8, out + MAD_AT + 8, 8); /* the TID */
	assert_memory_equal(out, want, SMP_LEN);
	/* lib/link sets the MAC */
	assert_memory_equal(h->a.frames[0].bytes, ((uint8_t[6]){ 0 }), 6);
	/* no answer: another TID, R without D, not the last hop, a LID-routed part left */
	memcpy(p, want, SMP_LEN);
	mad[3] = 0x81;
	mad[4] = 0x80;
	mad[15]++;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_MAD_UNMATCHED);
	mad[15]--;
	mad[4] = 0;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad[4] = 0x80;
	mad[6] = 2;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad[6] = 1;
	put_be16(mad + DR_SLID, 7);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	put_be16(mad + DR_SLID, 0xFFFF);
	mad[7] = 64;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_SMP_ROUTE);
	mad[7] = 3;
	assert_int_equal(h->done, 0);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK); /* D is not part of the status */
	assert_int_equal(h->result.status, 0);
	assert_int_equal(h->result_mad[6], 0);
	expect_clean(h);
}

/* Status of an answer that returns with HopPointer 0 */
static void
test_call_by_route_refused(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	struct mad_call c;

	mad = call_init_smp(h, &c, p, 0x81);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	memcpy(p, last_sent(h), SMP_LEN);
	mad[3] = 0x81;
	put_be16(mad + 4, 0x800C);
	mad[6] = 0;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->result.end, MAD_END_STATUS);
	assert_int_equal(h->result.status, 0x000C);
}

/* No hop: the port itself, HopPointer stays 0; so does an own LID of any class */
static void
test_call_to_itself(void **state)
{
	static const uint8_t own[6] = { 2, 0, 0, 0, 0, 1 };
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	const uint8_t *out;
	struct mad_call c;

	mad = call_init_smp(h, &c, p, 0x81);
	mad[7] = 0;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	out = last_sent(h);
	assert_int_equal(out[MAD_AT + 6], 0);
	assert_memory_equal(out - 14, own, 6);
	/* delivered to the port itself, and answered to it */
	h->outcome = MAD_ANSWER;
	memcpy(p, out, SMP_LEN);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	memcpy(p, last_sent(h), SMP_LEN);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
	assert_int_equal(h->result.end, MAD_END_OK);

	call_init_smp(h, &c, p, 0x01);
	c.to.av.dlid = 1;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	assert_memory_equal(last_sent(h) - 14, own, 6);
}

/* By LID; the timeout is the caller's */
static void
test_call_by_lid(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	const uint8_t *out;
	struct mad_call c;

	mad = call_init_smp(h, &c, p, 0x01);
	c.timeout = 12345;
	c.retries = 1;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	out = last_sent(h);
	assert_memory_equal(out, ((uint8_t[]){ 0xF0, 0x02, 0, 2, 0, 0x48, 0, 1 }), 8);
	assert_memory_equal(out + 8, by_lid + 8, 20);
	pass(h, 12344);
	assert_int_equal(h->a.sent, 1);
	pass(h, 1);
	memcpy(p + 8, last_sent(h) + 8, SMP_LEN - 8); /* again; and now it is answered */
	mad[3] = 0x81;
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->result.end, MAD_END_OK);
	assert_int_equal(h->result.elapsed, 12345);

	call_init_smp(h, &c, p, 0x01);
	c.timeout = 777;
	c.retries = 1;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	pass(h, 0);
	pass(h, 777);
	pass(h, 777);
	assert_int_equal(h->done, 2);
	assert_int_equal(h->result.end, MAD_END_TIMEOUT);
}

/* The answer to an SMP is not accepted on QP1, whatever source QP it names */
static void
test_answer_by_qp1(void **state)
{
	const struct wire_headers qp1 = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = 1,
		.qkey = MAD_QKEY,
	};
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	struct mad_call c;

	mad = call_init_smp(h, &c, p, 0x01);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	transmit(&h->a);
	memcpy(p + 8, last_sent(h) + 8, SMP_LEN - 8);
	mad[3] = 0x81;
	assert_int_equal(say_frame(h, &qp1, mad, MAD_LEN, false), VERDICT_MAD_UNMATCHED);
	assert_int_equal(h->done, 0);
	assert_int_equal(say_bytes(h, p, SMP_LEN), VERDICT_DATAGRAM);
	assert_int_equal(h->done, 1);
}

/* A repeated Trap keeps its TID; its agent repeats it as often as it likes */
static void
test_tid_is_kept(void **state)
{
	struct harness *h = *state;
	uint8_t p[SMP_LEN], *mad;
	struct mad_call c;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		mad = call_init_smp(h, &c, p, 0x01);
		mad[3] = MAD_TRAP;
		c.no_answer = true;
		c.keep_tid = true;
		assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
		transmit(&h->a);
		assert_int_equal(h->done, i + 1);
		assert_memory_equal(last_sent(h) + MAD_AT, mad, MAD_LEN);
	}
	/* not while it waits for the sink */
	h->a.room = 0;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EEXIST);
	h->a.room = 10;
	pass(h, 0);
	assert_int_equal(h->done, 4);
	/* one of ours otherwise */
	c.keep_tid = false;
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	skip_sent(&h->a);
	transmit(&h->a);
	assert_int_not_equal(get_be64(last_sent(h) + MAD_AT + 8), 0xABCDEF01);
	expect_clean(h);
}

/* QP0 belongs to worker 0; a TID may be kept only if the answer reaches this worker */
static void
test_calls_of_other_workers(void **state)
{
	struct harness *h = smi_create(8, 5), *first = smi_create(8, 0);
	unsigned int i, taken = 0;
	uint8_t p[SMP_LEN], *mad;
	struct mad_call c;

	(void)state;
	call_init_smp(h, &c, p, 0x01);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EINVAL);
	c.source = pattern_source(h, 100);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), -EINVAL);
	assert_int_equal(h->released, 1);
	mad = call_init_smp(h, &c, p, 0x34);
	c.to.qpn = 1;
	c.keep_tid = true;
	for (i = 0; i < 32; i++) {
		put_be64(mad + 8, i);
		taken += mad_call(h->a.w, &c, h->now, NULL) == 0;
	}
	assert_in_range(taken, 1, 12); /* one in eight */
	c.no_answer = true;
	put_be64(mad + 8, 1000);
	assert_int_equal(mad_call(h->a.w, &c, h->now, NULL), 0);
	mad = call_init_smp(first, &c, p, 0x01);
	c.keep_tid = true;
	for (i = 0; i < 8; i++) {
		put_be64(mad + 8, i);
		assert_int_equal(mad_call(first->a.w, &c, first->now, NULL), 0);
	}
	harness_destroy(first);
	harness_destroy(h);
}

/* lib/link gives packets of ports that are configured; another has no address. */
static void
test_smp_of_a_port_that_is_not_there(void **state)
{
	struct harness *h = *state;
	struct packet pkt;

	assert_int_equal(say_smp(h, 0x01, MAD_GET), VERDICT_DATAGRAM);
	next_packet(&h->a, &pkt); /* any packet of QP0 */
	pkt.port = 1;
	assert_int_equal(mad_receive_smp(h->a.w, &pkt, h->now), VERDICT_ADDRESS);
	expect_silence(&h->a);
}

#define T(test)    cmocka_unit_test_setup_teardown(test, smi_setup, harness_teardown)
#define BARE(test) cmocka_unit_test_setup_teardown(test, bare_setup, harness_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_smp_of_a_port_that_is_not_there),
		T(test_checks),
		T(test_not_for_the_smi),
		T(test_keys_do_not_matter),
		T(test_route_of_a_request),
		T(test_direction_and_method_agree),
		T(test_reply_by_lid),
		T(test_reply_to_the_permissive_lid),
		T(test_reply_by_route),
		BARE(test_reply_of_a_session),
		T(test_unknown_class_version),
		T(test_every_method),
		T(test_verdict_of_the_handler),
		T(test_response_nobody_waits_for),
		BARE(test_no_subnet_manager),
		T(test_qp1_is_another_door),
		T(test_call_by_route),
		T(test_call_by_route_refused),
		T(test_call_to_itself),
		T(test_call_by_lid),
		T(test_answer_by_qp1),
		T(test_tid_is_kept),
		cmocka_unit_test(test_calls_of_other_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
