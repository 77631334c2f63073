/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Replay the client's messages of captures between Linux hosts to our passive side. Our REP must
 * equal the captured server's, except for numbers that each side chooses.
 */

#include <stdio.h>
#include <string.h>

#include "../wire/pcap.h"
#include "world.h"

#define MESSAGES_MAX 16

/* The CM messages of a capture: frames from the client, and MADs. */
struct exchange {
	unsigned int num;
	struct {
		uint8_t frame[512];
		uint32_t len;
		uint8_t mad[MAD_LEN];
		struct cm_msg m;
	} at[MESSAGES_MAX];
};

static void
capture_read_capture(struct exchange *e, const char *name)
{
	static struct pcap pcap;
	struct packet pkt;
	enum verdict why;
	char path[512];

	e->num = 0;
	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURE_DIR, name);
	assert_int_equal(pcap_open(&pcap, path), 0);
	while (pcap_next(&pcap) == 1 && e->num < MESSAGES_MAX) {
		if (get_be16(pcap.data + 12) != 0x0800 ||
			!wire_parse(ENCAP_ROCEV2_IPV4, pcap.data + 14, pcap.len - 14, &pkt, &why) ||
			pkt.opcode != UD_SEND_ONLY || pkt.payload_len != MAD_LEN)
			continue;
		memcpy(e->at[e->num].frame, pcap.data, pcap.len);
		e->at[e->num].len = pcap.len;
		memcpy(e->at[e->num].mad, pkt.payload, MAD_LEN);
		if (cm_msg_decode(e->at[e->num].mad, &e->at[e->num].m) == 0)
			e->num++;
	}
	pcap_close(&pcap);
}

static const struct cm_msg *
nth(const struct exchange *e, unsigned int i, enum cm_message type)
{
	assert_true(i < e->num);
	assert_int_equal(e->at[i].m.type, type);
	return &e->at[i].m;
}

/* Deliver the captured frame unchanged, with its ICRC, addresses and P_Key. */
static void
capture_replay(struct world *w, const struct exchange *e, unsigned int i)
{
	struct packet pkt;
	enum verdict why;

	assert_true(
		wire_parse(ENCAP_ROCEV2_IPV4, e->at[i].frame + 14, e->at[i].len - 14, &pkt, &why));
	pkt.port = 0;
	pkt.smac = e->at[i].frame + 6;
	assert_string_equal(verdict_infos[mad_receive(w->a.mad, &pkt, w->now)].name, "datagram");
	run(&w->a);
}

/* Deliver it with our connection's numbers. */
static void
replay_for(struct world *w, const struct cm_msg *captured, const struct life *l)
{
	const union gid client = gid_from_ipv4((const uint8_t[]){ 10, 99, 0, 2 });
	struct cm_msg m = *captured;

	m.remote_id = l->id;
	if (m.type == CM_DREQ)
		m.dreq.qpn = l->qpn;
	peer_say_as(w, &m, &client);
}

static struct world *
linux_server(void **state, const struct cm_msg *req, const struct cm_msg *rep)
{
	struct world like = { .scripted = true, .limits = cm_limits_default }, *w;

	like.limits.max_rd_atomic = 128; /* as soft-RoCE has */
	w = *state = world_create(&like);
	w->a.port.gid[0].gid = gid_from_ipv4((const uint8_t[]){ 10, 99, 0, 1 });
	assert_int_equal(cm_listen(w->a.cm, req->req.service_id, UINT64_MAX, &world_user, &w->a),
		req->req.service_id == WORLD_SERVICE ? -17 : 0);
	w->a.param.responder_resources = rep->rep.responder_resources;
	w->a.param.initiator_depth = rep->rep.initiator_depth;
	w->a.param.qp.flow_control = rep->rep.flow_control;
	memcpy(w->a.param.private_data, rep->private_data, CM_REP_PRIVATE);
	w->a.param.private_len = CM_REP_PRIVATE;
	return w;
}

static void
expect_same_rep(const struct cm_msg *ours, const struct cm_msg *theirs)
{
	uint8_t got[MAD_LEN], want[MAD_LEN];
	struct cm_msg m = *ours;

	/* each side chooses these */
	m.local_id = theirs->local_id;
	m.rep.qpn = theirs->rep.qpn;
	m.rep.psn = theirs->rep.psn;
	m.rep.ca_guid = theirs->rep.ca_guid;
	cm_msg_encode(&m, got);
	cm_msg_encode(theirs, want);
	assert_memory_equal(got, want, MAD_LEN);
}

static void
replay_exchange(void **state, const char *name, unsigned int dreq)
{
	static struct exchange e;
	struct cm_msg rep, drep;
	struct rc_qp_info qp;
	struct world *w;
	struct life *l;

	capture_read_capture(&e, name);
	nth(&e, 0, CM_REQ);
	w = linux_server(state, &e.at[0].m, nth(&e, 1, CM_REP));
	capture_replay(w, &e, 0);
	rep = next_message(&w->a, CM_REP);
	expect_silence(&w->a);
	expect_same_rep(&rep, &e.at[1].m);
	l = last_life(&w->a);
	assert_int_equal(rc_qp_query(w->a.rc, l->qpn, &qp), 0);
	assert_int_equal(qp.attr.dest_qp_num, e.at[0].m.req.qpn);
	assert_int_equal(qp.attr.sq_psn, e.at[0].m.req.psn);
	assert_int_equal(qp.attr.path_mtu, 1024);
	assert_int_equal(qp.attr.timeout, 19);
	assert_int_equal(qp.attr.av.dgid.raw[15], 2);
	assert_memory_equal(qp.attr.av.dmac, e.at[0].frame + 6, 6);

	replay_for(w, nth(&e, 2, CM_RTU), l);
	expect_log(l, "request prepare established");
	replay_for(w, nth(&e, dreq, CM_DREQ), l);
	drep = next_message(&w->a, CM_DREP);
	assert_true(drep.tid == e.at[dreq].m.tid);
	assert_int_equal(drep.remote_id, e.at[dreq].m.local_id);
	assert_int_equal(drep.local_id, l->id);
	expect_log(l, "request prepare established disconnected");
}

static void
test_rping(void **state)
{
	replay_exchange(state, "rping", 3);
}

static void
test_rdma_client(void **state)
{
	replay_exchange(state, "rdma_client", 3);
}

static void
test_rstream(void **state)
{
	replay_exchange(state, "rstream", 3);
}

/* The service ID is the next after WORLD_SERVICE: nobody listens, the client is rejected. */
static void
test_captured_req_without_a_listener(void **state)
{
	static struct exchange e;
	struct cm_msg rej;
	struct world *w;

	capture_read_capture(&e, "rping");
	w = linux_server(state, nth(&e, 0, CM_REQ), nth(&e, 1, CM_REP));
	assert_int_equal(cm_unlisten(w->a.cm, e.at[0].m.req.service_id, UINT64_MAX), 0);
	capture_replay(w, &e, 0);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(rej.remote_id, e.at[0].m.local_id);
	assert_true(rej.tid == e.at[0].m.tid);
}

/* Our active side sends the same REQ as Linux for the same connection. */
static void
test_our_req_equals_that_of_linux(void **state)
{
	static const struct world scripted = { .scripted = true };
	static struct exchange e;
	struct world *w = world_create(&scripted);
	uint8_t got[MAD_LEN], want[MAD_LEN];
	const struct cm_msg *theirs;
	static struct life l;
	struct cm_connect c;
	struct cm_msg ours;

	*state = w;
	l = (struct life){ .node = &w->a };
	capture_read_capture(&e, "rping");
	theirs = nth(&e, 0, CM_REQ);
	connect_init(&w->a, &c);
	c.user = &l;
	c.service_id = theirs->req.service_id;
	c.path.av.sgid = theirs->req.primary.local_gid;
	c.path.av.dgid = theirs->req.primary.remote_gid;
	c.path.av.flow_label = theirs->req.primary.flow_label;
	c.rdma.src = c.path.av.sgid;
	c.rdma.dst = c.path.av.dgid;
	c.rdma.src_port = get_be16(theirs->private_data + 2);
	c.param.responder_resources = theirs->req.responder_resources;
	c.param.initiator_depth = theirs->req.initiator_depth;
	c.param.retry_count = theirs->req.retry_count;
	c.param.rnr_retry_count = theirs->req.rnr_retry_count;
	c.param.qp.flow_control = theirs->req.flow_control;
	memcpy(c.param.private_data, theirs->private_data + CM_RDMA_LEN, CM_REQ_USER_PRIVATE);
	c.param.private_len = CM_REQ_USER_PRIVATE;
	assert_int_equal(cm_connect(w->a.cm, &c, 0, &l.id, NULL), 0);
	run(&w->a);
	ours = next_message(&w->a, CM_REQ);
	ours.tid = theirs->tid;
	ours.local_id = theirs->local_id;
	ours.req.qpn = theirs->req.qpn;
	ours.req.psn = theirs->req.psn;
	ours.req.ca_guid = theirs->req.ca_guid;
	cm_msg_encode(&ours, got);
	cm_msg_encode(theirs, want);
	assert_memory_equal(got, want, MAD_LEN);
}

#define N(name) cmocka_unit_test_teardown(name, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		N(test_rping),
		N(test_rdma_client),
		N(test_rstream),
		N(test_captured_req_without_a_listener),
		N(test_our_req_equals_that_of_linux),
	};

	return cmocka_run_group_tests_name("cm: capture", tests, NULL, NULL);
}
