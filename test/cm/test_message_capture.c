/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Every CM message of the captures, sent by Linux, decodes to the values in this file, and encodes
 * to the same 256 bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../wire/pcap.h"
#include "cm/message.h"
#include "wire/bytes.h"
#include "wire/wire.h"

/* values as an independent dissector shows them; 0 if a message has no such field */
struct seen {
	unsigned int frame;
	enum cm_message type;
	uint64_t tid;
	uint32_t local_id;
	uint32_t remote_id;
	uint32_t qpn;
	uint32_t psn;
	uint64_t service_id;
	uint16_t src_port; /* of the RDMA-CM header */
};

static const struct seen rping[] = {
	{ 3, CM_REQ, 0x2f9bf7f17, 0x177fbff9, 0, 0x17, 0x83ac23, 0x01061c06, 60267 },
	{ 4, CM_REP, 0x2f9bf7f17, 0x35c987a9, 0x177fbff9, 0x17, 0x28ceb4, 0, 0 },
	{ 5, CM_RTU, 0x2f9bf7f17, 0x177fbff9, 0x35c987a9, 0, 0, 0, 0 },
	{ 42, CM_DREQ, 0x2f9bf7f17, 0x177fbff9, 0x35c987a9, 0x17, 0, 0, 0 },
	{ 43, CM_DREP, 0x2f9bf7f17, 0x35c987a9, 0x177fbff9, 0, 0, 0, 0 },
	{ 0 },
};
/* the passive side disconnects, with a TID of its own */
static const struct seen ucmatose[] = {
	{ 1, CM_REQ, 0x2f9bf7f16, 0x167fbff9, 0, 0x18, 0x925374, 0x01061d2f, 42861 },
	{ 2, CM_REP, 0x2f9bf7f16, 0x37c987a9, 0x167fbff9, 0x18, 0xf5a5b4, 0, 0 },
	{ 3, CM_RTU, 0x2f9bf7f16, 0x167fbff9, 0x37c987a9, 0, 0, 0, 0 },
	{ 16, CM_DREQ, 0x2a987c937, 0x37c987a9, 0x167fbff9, 0x18, 0, 0, 0 },
	{ 17, CM_DREP, 0x2a987c937, 0x167fbff9, 0x37c987a9, 0, 0, 0, 0 },
	{ 0 },
};
/* both sides disconnect; one DREP */
static const struct seen rdma_client[] = {
	{ 3, CM_REQ, 0x2f9bf7f14, 0x147fbff9, 0, 0x1a, 0xa5e21b, 0x01061d2f, 56500 },
	{ 4, CM_REP, 0x2f9bf7f14, 0x33c987a9, 0x147fbff9, 0x1a, 0x84e56a, 0, 0 },
	{ 5, CM_RTU, 0x2f9bf7f14, 0x147fbff9, 0x33c987a9, 0, 0, 0, 0 },
	{ 10, CM_DREQ, 0x2f9bf7f14, 0x147fbff9, 0x33c987a9, 0x1a, 0, 0, 0 },
	{ 11, CM_DREQ, 0x2a987c933, 0x33c987a9, 0x147fbff9, 0x1a, 0, 0, 0 },
	{ 12, CM_DREP, 0x2f9bf7f14, 0x33c987a9, 0x147fbff9, 0, 0, 0, 0 },
	{ 0 },
};
static const struct seen rstream[] = {
	{ 3, CM_REQ, 0x2f9bf7f13, 0x137fbff9, 0, 0x1b, 0x517be6, 0x01061d2f, 56478 },
	{ 4, CM_REP, 0x2f9bf7f13, 0x3dc987a9, 0x137fbff9, 0x1b, 0x5762f8, 0, 0 },
	{ 5, CM_RTU, 0x2f9bf7f13, 0x137fbff9, 0x3dc987a9, 0, 0, 0, 0 },
	{ 30, CM_DREQ, 0x2f9bf7f13, 0x137fbff9, 0x3dc987a9, 0x1b, 0, 0, 0 },
	{ 31, CM_DREP, 0x2f9bf7f13, 0x3dc987a9, 0x137fbff9, 0, 0, 0, 0 },
	{ 0 },
};
/* SIDR: the RequestID as local_id */
static const struct seen udaddy[] = {
	{ 1, CM_SIDR_REQ, 0x2f9bf7f15, 0x157fbff9, 0, 0, 0, 0x01111c06, 54701 },
	{ 2, CM_SIDR_REP, 0x2f9bf7f15, 0x157fbff9, 0, 0x19, 0, 0x01111c06, 0 },
	{ 0 },
};
/* two connections */
static const struct seen write_bw_cm[] = {
	{ 1, CM_REQ, 0x2f9bf7f12, 0x127fbff9, 0, 0x20, 0xfba134, 0x01064853, 41014 },
	{ 2, CM_REP, 0x2f9bf7f12, 0x3fc987a9, 0x127fbff9, 0x20, 0xaf547d, 0, 0 },
	{ 3, CM_RTU, 0x2f9bf7f12, 0x127fbff9, 0x3fc987a9, 0, 0, 0, 0 },
	{ 24, CM_REQ, 0x2f9bf7f11, 0x117fbff9, 0, 0x21, 0x6e8b9c, 0x01064853, 48408 },
	{ 25, CM_REP, 0x2f9bf7f11, 0x39c987a9, 0x117fbff9, 0x21, 0x65d4d3, 0, 0 },
	{ 26, CM_RTU, 0x2f9bf7f11, 0x117fbff9, 0x39c987a9, 0, 0, 0, 0 },
	{ 101, CM_DREQ, 0x2f9bf7f11, 0x117fbff9, 0x39c987a9, 0x21, 0, 0, 0 },
	{ 102, CM_DREQ, 0x2a987c939, 0x39c987a9, 0x117fbff9, 0x21, 0, 0, 0 },
	{ 103, CM_DREP, 0x2f9bf7f11, 0x39c987a9, 0x117fbff9, 0, 0, 0, 0 },
	{ 104, CM_DREQ, 0x2a987c93f, 0x3fc987a9, 0x127fbff9, 0x20, 0, 0, 0 },
	{ 105, CM_DREP, 0x2a987c93f, 0x127fbff9, 0x3fc987a9, 0, 0, 0, 0 },
	{ 0 },
};

static union gid
client(void)
{
	return gid_from_ipv4((const uint8_t[]){ 10, 99, 0, 2 });
}

static union gid
message_capture_server(void)
{
	return gid_from_ipv4((const uint8_t[]){ 10, 99, 0, 1 });
}

static void
check_rdma_header(const struct cm_msg *m, uint16_t src_port)
{
	union gid src = client(), dst = message_capture_server();
	uint8_t again[CM_RDMA_LEN];
	struct cm_rdma rdma;

	assert_int_equal(cm_rdma_decode(m->private_data, &rdma), 0);
	assert_int_equal(rdma.src_port, src_port);
	assert_true(gid_equal(&rdma.src, &src));
	assert_true(gid_equal(&rdma.dst, &dst));
	cm_rdma_encode(&rdma, again);
	assert_memory_equal(again, m->private_data, CM_RDMA_LEN);
}

/* Values that all REQs of these captures have. */
static void
check_req(const struct cm_msg *m, const struct seen *s)
{
	const struct cm_msg_path *p = &m->req.primary;
	union gid local = client(), remote = message_capture_server();

	assert_int_equal(m->req.ca_guid, 0x505400fffe990002);
	assert_int_equal(m->req.qpn, s->qpn);
	assert_int_equal(m->req.psn, s->psn);
	assert_int_equal(m->req.service_id, s->service_id);
	assert_int_equal(m->req.remote_response_timeout, 20);
	assert_int_equal(m->req.local_response_timeout, 20);
	assert_int_equal(m->req.transport, CM_TRANSPORT_RC);
	assert_int_equal(m->req.pkey, 0xFFFF);
	assert_int_equal(m->req.mtu, 3);
	assert_int_equal(m->req.max_cm_retries, 15);
	assert_int_equal(p->local_lid, 0xFFFF);
	assert_int_equal(p->remote_lid, 0xFFFF);
	assert_true(gid_equal(&p->local_gid, &local));
	assert_true(gid_equal(&p->remote_gid, &remote));
	assert_int_equal(p->rate, 0);
	assert_int_equal(p->hop_limit, 64);
	assert_false(p->subnet_local);
	assert_int_equal(p->ack_timeout, 19);
	assert_false(cm_msg_path_present(&m->req.alternate));
	assert_int_equal(cm_port_space(m->req.service_id), CM_PS_TCP);
	check_rdma_header(m, s->src_port);
}

static void
check_rep(const struct cm_msg *m, const struct seen *s)
{
	assert_int_equal(m->rep.qpn, s->qpn);
	assert_int_equal(m->rep.psn, s->psn);
	assert_int_equal(m->rep.target_ack_delay, 15);
	assert_int_equal(m->rep.failover, 0);
	assert_int_equal(m->rep.rnr_retry_count, 7);
	assert_false(m->rep.srq);
	assert_int_equal(m->rep.ca_guid, 0x505400fffe990001);
}

static void
check_message(const uint8_t *mad, const struct seen *s)
{
	uint8_t again[MAD_LEN];
	struct cm_msg m;

	assert_int_equal(cm_msg_decode(mad, &m), 0);
	cm_msg_encode(&m, again);
	assert_memory_equal(again, mad, MAD_LEN);
	assert_int_equal(m.type, s->type);
	assert_int_equal(m.tid, s->tid);
	switch (m.type) {
	case CM_SIDR_REQ:
		assert_int_equal(m.sidr_req.request_id, s->local_id);
		assert_int_equal(m.sidr_req.pkey, 0xFFFF);
		assert_int_equal(m.sidr_req.service_id, s->service_id);
		check_rdma_header(&m, s->src_port);
		return;
	case CM_SIDR_REP:
		assert_int_equal(m.sidr_rep.request_id, s->local_id);
		assert_int_equal(m.sidr_rep.status, 0);
		assert_int_equal(m.sidr_rep.qpn, s->qpn);
		assert_int_equal(m.sidr_rep.service_id, s->service_id);
		assert_int_equal(m.sidr_rep.qkey, 0x01234567);
		return;
	case CM_REQ:
		check_req(&m, s);
		break;
	case CM_REP:
		check_rep(&m, s);
		break;
	case CM_DREQ:
		assert_int_equal(m.dreq.qpn, s->qpn);
		break;
	default:
		break;
	}
	assert_int_equal(m.local_id, s->local_id);
	assert_int_equal(m.remote_id, s->remote_id);
}

static struct pcap pcap;

/* The next CM message. @return its frame's number, 0: no more */
static unsigned int
next_mad(unsigned int *frame, const uint8_t **mad)
{
	struct packet pkt;
	enum verdict why;

	while (pcap_next(&pcap) == 1) {
		++*frame;
		memset(&pkt, 0, sizeof(pkt));
		if (get_be16(pcap.data + 12) != 0x0800 ||
			!wire_parse(ENCAP_ROCEV2_IPV4, pcap.data + 14, pcap.len - 14, &pkt, &why) ||
			pkt.opcode != UD_SEND_ONLY || pkt.dest_qpn != 1)
			continue;
		assert_int_equal(pkt.payload_len, MAD_LEN);
		*mad = pkt.payload;
		return *frame;
	}
	return 0;
}

static void
check_capture(const char *name, const struct seen *s)
{
	unsigned int frame = 0;
	const uint8_t *mad;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURE_DIR, name);
	assert_int_equal(pcap_open(&pcap, path), 0);
	for (; next_mad(&frame, &mad) != 0; s++) {
		assert_int_equal(frame, s->frame);
		check_message(mad, s);
	}
	assert_int_equal(s->frame, 0);
	pcap_close(&pcap);
}

static void
test_every_message_of_the_captures(void **state)
{
	(void)state;
	check_capture("rping", rping);
	check_capture("ucmatose", ucmatose);
	check_capture("rdma_client", rdma_client);
	check_capture("rstream", rstream);
	check_capture("udaddy", udaddy);
	check_capture("write_bw_cm", write_bw_cm);
}

/* Decode message `number` of the capture. */
static void
open_message(const char *name, unsigned int number, struct cm_msg *m)
{
	unsigned int frame = 0;
	const uint8_t *mad = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURE_DIR, name);
	assert_int_equal(pcap_open(&pcap, path), 0);
	while (number-- > 0)
		assert_true(next_mad(&frame, &mad) != 0);
	assert_int_equal(cm_msg_decode(mad, m), 0);
	pcap_close(&pcap);
}

/* Values that differ between programs. */
static void
test_values_of_different_programs(void **state)
{
	/* REQ, REP: responder resources, initiator depth, flow control; the REQ's retry counts */
	static const struct {
		const char *name;
		uint8_t req[3], rep[3], retry, rnr;
		uint32_t flow_label;
	} rows[] = {
		{ "rping", { 1, 1, 0 }, { 1, 1, 0 }, 7, 7, 0xc9dfb },
		{ "ucmatose", { 1, 1, 0 }, { 1, 1, 0 }, 5, 0, 0x46362 },
		{ "rdma_client", { 128, 128, 0 }, { 128, 128, 0 }, 7, 7, 0xad6fb },
		{ "rstream", { 0, 0, 1 }, { 0, 0, 1 }, 7, 7, 0xad451 },
		{ "write_bw_cm", { 0, 0, 0 }, { 0, 0, 0 }, 7, 7, 0x3aedd },
	};
	struct cm_msg m;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_message(rows[i].name, 1, &m);
		assert_int_equal(m.req.responder_resources, rows[i].req[0]);
		assert_int_equal(m.req.initiator_depth, rows[i].req[1]);
		assert_int_equal(m.req.flow_control, rows[i].req[2]);
		assert_int_equal(m.req.retry_count, rows[i].retry);
		assert_int_equal(m.req.rnr_retry_count, rows[i].rnr);
		assert_int_equal(m.req.primary.flow_label, rows[i].flow_label);
		open_message(rows[i].name, 2, &m);
		assert_int_equal(m.rep.responder_resources, rows[i].rep[0]);
		assert_int_equal(m.rep.initiator_depth, rows[i].rep[1]);
		assert_int_equal(m.rep.flow_control, rows[i].rep[2]);
	}
	/* private data of a REP begin with rsocket's header */
	open_message("rstream", 2, &m);
	assert_memory_equal(m.private_data, "\x01\x02\x01\x80\x00\x00\x00\x00", 8);
	/* in a REQ it follows the RDMA-CM header */
	open_message("rstream", 1, &m);
	assert_memory_equal(m.private_data + CM_RDMA_LEN, "\x01\x02\x01\x80\x00\x00\x00\x00", 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message_of_the_captures),
		cmocka_unit_test(test_values_of_different_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
