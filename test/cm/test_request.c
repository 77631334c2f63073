/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reasons to reject a REQ (cm.md 3, 6, 7); listeners; SIDR and other messages without connection.
 */

#include <errno.h>
#include <string.h>

#include "world.h"

static struct cm_msg
say_and_be_rejected(struct world *w, const struct cm_msg *req, uint16_t reason)
{
	uint64_t refused = counters_of(&w->a).refused;
	struct cm_msg rej;

	peer_say(w, req);
	rej = next_message(&w->a, CM_REJ);
	expect_silence(&w->a);
	assert_string_equal(cm_reason_name(rej.rej.reason), cm_reason_name(reason));
	assert_int_equal(rej.rej.answers, CM_ANSWERS_REQ);
	assert_int_equal(rej.local_id, 0); /* cm.md 2 */
	assert_int_equal(rej.remote_id, PEER_ID);
	assert_true(rej.tid == PEER_TID);
	assert_int_equal(count_conns(&w->a), 0);
	assert_int_equal(count_qps(&w->a), 0);
	assert_int_equal(w->a.requests, 0);
	assert_int_equal(counters_of(&w->a).refused, refused + 1);
	return rej;
}

static void
test_no_listener(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.service_id++;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_SERVICE_ID);
	/* other errors of the REQ are not checked then */
	req.req.transport = CM_TRANSPORT_UC;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_SERVICE_ID);
	assert_int_equal(counters_of(&w->a).rej_sent[CM_REJ_INVALID_SERVICE_ID], 2);
}

/* A flood of REQs that are refused must not push out all other events. */
static void
test_refusals_raise_few_events(void **state)
{
	struct world *w = *state;
	struct cm_msg req;
	unsigned int i;

	peer_req(w, &req);
	req.req.service_id++;
	for (i = 0; i < 10000; i++) {
		req.local_id++;
		req.req.qpn++;
		peer_say(w, &req);
		w->a.delivered = w->a.sent;
	}
	assert_int_equal(counters_of(&w->a).refused, 10000);
	assert_int_equal(w->a.refused_events, 16);
	assert_int_equal(w->a.unreported, 0);
	/* 4 a second later; the first of them tells how many were left out */
	pass(w, SECOND);
	for (i = 0; i < 10; i++)
		peer_say(w, &req);
	assert_int_equal(w->a.refused_events, 20);
	assert_int_equal(w->a.unreported, 10000 - 16);
}

static void
test_transport_type(void **state)
{
	static const uint8_t types[] = { CM_TRANSPORT_UC, CM_TRANSPORT_RD, CM_TRANSPORT_EXTENDED };
	struct world *w = *state;
	struct cm_msg req;
	unsigned int i;

	peer_req(w, &req);
	for (i = 0; i < 3; i++) {
		req.req.transport = types[i];
		say_and_be_rejected(w, &req, CM_REJ_INVALID_TRANSPORT);
	}
}

static void
test_invalid_qpn(void **state)
{
	static const uint32_t qpns[] = { 0, 1, 0xFFFFFF };
	struct world *w = *state;
	struct cm_msg req;
	unsigned int i;

	peer_req(w, &req);
	for (i = 0; i < 3; i++) {
		req.req.qpn = qpns[i];
		say_and_be_rejected(w, &req, CM_REJ_UNSUPPORTED);
	}
	assert_int_equal(counters_of(&w->a).malformed, 3);
}

/* The port's MTU is 1024 (code 3), which the ARI contains. */
static void
test_path_mtu(void **state)
{
	static const uint8_t codes[] = { 0, 4, 5, 6, 15 };
	struct world *w = *state;
	struct cm_msg req, rej;
	unsigned int i;

	peer_req(w, &req);
	for (i = 0; i < 5; i++) {
		req.req.mtu = codes[i];
		rej = say_and_be_rejected(w, &req, CM_REJ_INVALID_MTU);
		assert_int_equal(rej.rej.ari_len, 1);
		assert_int_equal(rej.rej.ari[0], 3);
	}
	req.req.mtu = 1;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_int_equal(w->a.request.path.mtu, 256);
}

static void
test_gids(void **state)
{
	struct world *w = *state;
	struct cm_msg req, good;

	peer_req(w, &good);
	req = good;
	req.req.primary.remote_gid.raw[15] = 9;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
	req = good;
	memset(&req.req.primary.local_gid, 0, sizeof(union gid));
	req.req.primary.subnet_local = false;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
	req = good;
	memset(&req.req.primary.remote_gid, 0, sizeof(union gid));
	req.req.primary.subnet_local = false;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
	if (w->ib)
		return;
	/* LIDs are ignored on Ethernet */
	req.req.primary.subnet_local = true;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
	/* another GID than the sender's: data would go to a host that has not asked */
	req = good;
	req.req.primary.local_gid.raw[15] = 9;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
	/* an IPv6 GID of the peer with an IPv4 GID of ours */
	req = good;
	req.req.primary.local_gid.raw[0] = 0x20;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_GID);
}

/* cm.md 2: within a native IB subnet LIDs are sufficient */
static void
test_lids_without_gids(void **state)
{
	struct world *w = *state;
	struct cm_msg req, wrong;

	peer_req(w, &req);
	req.req.primary.subnet_local = true;
	memset(&req.req.primary.local_gid, 0, sizeof(union gid));
	memset(&req.req.primary.remote_gid, 0, sizeof(union gid));
	wrong = req;
	wrong.req.primary.remote_lid = 3;
	say_and_be_rejected(w, &wrong, CM_REJ_INVALID_LID);
	wrong = req;
	wrong.req.primary.local_lid = 0;
	say_and_be_rejected(w, &wrong, CM_REJ_INVALID_LID);
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_int_equal(w->a.request.path.av.slid, 1);
	assert_int_equal(w->a.request.path.av.dlid, 2);
	assert_false(w->a.request.path.av.grh);
	assert_true(gid_equal(&w->a.request.path.av.sgid, &w->a.port.gid[0].gid));
	assert_true(gid_is_zero(&w->a.request.path.av.dgid));
}

static void
test_rate(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.primary.rate = 1;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_RATE);
}

static void
test_lids_on_native_ib(void **state)
{
	struct world *w = *state;
	struct cm_msg req, good;

	peer_req(w, &good);
	req = good;
	req.req.primary.remote_lid = 77;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_LID);
	req = good;
	req.req.primary.local_lid = 0;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_LID);
	req = good;
	req.req.primary.local_lid = 0xC000;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_LID);
}

/* SL 8 is mapped to no VL here */
static void
test_sl_and_hops_on_native_ib(void **state)
{
	struct world *w = *state;
	struct cm_msg req, good;

	peer_req(w, &good);
	req = good;
	req.req.primary.sl = 8;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_SL);
	req = good;
	req.req.primary.subnet_local = false;
	req.req.primary.hop_limit = 1;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_HOP_LIMIT);
}

/* cm.md 7: on RoCE LIDs, SubnetLocal and HopLimit are ignored */
static void
test_lids_on_roce_are_ignored(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.primary.local_lid = 0;
	req.req.primary.remote_lid = 123;
	req.req.primary.subnet_local = true;
	req.req.primary.hop_limit = 1;
	req.req.primary.sl = 8;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
}

static void
test_alternate_path(void **state)
{
	struct world *w = *state;
	struct cm_msg req, good;

	peer_req(w, &good);
	good.req.alternate = good.req.primary;
	req = good;
	req.req.alternate.remote_gid.raw[15] = 9;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_GID);
	req = good;
	req.req.alternate.rate = 1;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_RATE);
	req = good;
	req.req.alternate.remote_lid = 77;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_LID);
	req = good;
	req.req.alternate.sl = 8;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_SL);
	req = good;
	req.req.alternate.subnet_local = false;
	req.req.alternate.hop_limit = 0;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_HOP_LIMIT);
}

/*
 * A REQ whose source is no host's address, or our own GID from another MAC, is not answered, not
 * even by a REJ.
 */
static void
test_req_from_an_impossible_source_is_not_answered(void **state)
{
	static const uint8_t none[][4] = { { 0 }, { 127, 0, 0, 1 }, { 224, 0, 0, 1 },
		{ 255, 255, 255, 255 } };
	struct world *w = *state;
	struct cm_msg req;
	union gid source;
	unsigned int i;

	for (i = 0; i < RTE_DIM(none); i++) {
		peer_req(w, &req);
		source = gid_from_ipv4(none[i]);
		req.req.primary.local_gid = source;
		peer_say_as(w, &req, &source);
		expect_silence(&w->a);
	}
	peer_req(w, &req);
	source = w->a.port.gid[0].gid;
	req.req.primary.local_gid = source;
	peer_say_as(w, &req, &source);
	expect_silence(&w->a);
	w->a.port.gid[0].prefix_len = 24;
	source.raw[15] = 255; /* the broadcast address of the subnet */
	req.req.primary.local_gid = source;
	peer_say_as(w, &req, &source);
	expect_silence(&w->a);
	assert_int_equal(count_conns(&w->a), 0);
}

/* On RoCE a REQ must not name an alternate path to another host. */
static void
test_alternate_path_to_another_host_is_rejected(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.alternate = req.req.primary;
	req.req.alternate.local_gid.raw[15] = 9;
	say_and_be_rejected(w, &req, CM_REJ_INVALID_ALT_GID);
	req.req.alternate.local_gid = req.req.primary.local_gid;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
}

static void
test_pkey(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	peer_req(w, &req);
	req.req.pkey = 0x8001;
	say_and_be_rejected(w, &req, CM_REJ_CONSUMER);
}

/* cm.md 7: version 0, IP version 4 or 6 */
static void
test_rdma_cm_header(void **state)
{
	struct world *w = *state;
	uint8_t data[CM_RDMA_LEN];
	struct cm_msg req;

	peer_req(w, &req);
	memcpy(data, req.private_data, sizeof(data));
	req.private_data = data;
	data[0] = 0x10;
	say_and_be_rejected(w, &req, CM_REJ_CONSUMER);
	data[0] = 0;
	data[1] = 0x50;
	say_and_be_rejected(w, &req, CM_REJ_CONSUMER);
	data[1] = 0x60;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
}

/* A service ID outside of RDMA-CM has no header: all private data belong to the user. */
static void
test_service_without_rdma_cm(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	assert_int_equal(cm_listen(w->a.cm, 0x1000, UINT64_MAX, &world_user, &w->a), 0);
	peer_req(w, &req);
	req.req.service_id = 0x1000;
	req.private_data = (const uint8_t *)"\x99\x99";
	req.private_len = 2;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_false(w->a.request.rdma.present);
	assert_int_equal(w->a.request.private_len, CM_REQ_PRIVATE);
	assert_int_equal(w->a.request_private[1], 0x99);
}

static void
test_no_room_for_a_qp(void **state)
{
	struct world like = { .scripted = true, .max_qp = 1 }, *w = world_create(&like);
	struct cm_msg req, rej;

	*state = w;
	peer_req(w, &req);
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	peer_answer(w, CM_RTU, last_life(&w->a)->id);
	req.local_id++;
	req.req.qpn++;
	peer_say(w, &req);
	rej = next_message(&w->a, CM_REJ);
	assert_int_equal(rej.rej.reason, CM_REJ_NO_QP);
	assert_int_equal(counters_of(&w->a).no_resources, 1);
	assert_int_equal(count_conns(&w->a), 1);
}

/* --- listeners --- */

static void
test_more_exact_mask_wins(void **state)
{
	struct world *w = *state;
	struct cm_user any = { .name = "any" };
	struct cm_msg req;

	/* listens on all TCP ports; it has no request(), so it must not be chosen */
	assert_int_equal(cm_listen(w->a.cm, 0x01060000, 0xFFFFFFFFFFFF0000, &any, NULL), 0);
	peer_req(w, &req);
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_int_equal(w->a.requests, 1);
}

static void
test_mask_takes_a_range(void **state)
{
	struct world *w = *state;
	struct cm_msg req;

	assert_int_equal(cm_listen(w->a.cm, 0x01060123, 0xFFFFFFFFFFFF0000, &world_user, &w->a), 0);
	assert_int_equal(cm_listen(w->a.cm, 0x01060000, 0xFFFFFFFFFFFF0000, &world_user, &w->a),
		-EEXIST);
	peer_req(w, &req);
	req.req.service_id = 0x0106FFFF;
	peer_say(w, &req);
	expect_messages(&w->a, "REP");
	assert_true(w->a.request.service_id == 0x0106FFFF);
	assert_int_equal(cm_unlisten(w->a.cm, 0x01060000, 0xFFFFFFFFFFFF0000), 0);
	assert_int_equal(cm_unlisten(w->a.cm, 0x01060000, 0xFFFFFFFFFFFF0000), -ENOENT);
	req.local_id++;
	req.req.qpn++;
	peer_say(w, &req);
	expect_messages(&w->a, "REJ");
	/* the present connection stays */
	expect_state(&w->a, last_life(&w->a)->id, CM_STATE_REP_SENT);
}

static void
test_listeners_are_limited(void **state)
{
	struct world *w = *state;
	uint64_t i;

	for (i = 1; i < cm_limits_default.max_listeners; i++)
		assert_int_equal(cm_listen(w->a.cm, i, UINT64_MAX, &world_user, &w->a), 0);
	assert_int_equal(cm_listen(w->a.cm, i, UINT64_MAX, &world_user, &w->a), -ENOSPC);
}

/* --- SIDR --- */

static struct cm_msg
ask_sidr(struct world *w, uint64_t service_id)
{
	const struct cm_msg m = {
		.type = CM_SIDR_REQ,
		.tid = PEER_TID,
		.sidr_req = { .request_id = 0x51D, .pkey = 0xFFFF, .service_id = service_id },
	};
	struct cm_msg rep;

	peer_say(w, &m);
	rep = next_message(&w->a, CM_SIDR_REP);
	assert_true(rep.tid == PEER_TID);
	assert_int_equal(rep.sidr_rep.request_id, 0x51D);
	assert_true(rep.sidr_rep.service_id == service_id);
	return rep;
}

static void
test_sidr(void **state)
{
	struct world *w = *state;
	struct cm_msg rep;

	assert_int_equal(ask_sidr(w, 0x01111C06).sidr_rep.status, CM_SIDR_UNSUPPORTED);
	assert_int_equal(cm_listen_ud(w->a.cm, 0x01111C06, UINT64_MAX, 77, 0x01234567), -ENOENT);
	cm_listen(w->a.cm, 0x01111C06, UINT64_MAX, &world_user, &w->a);
	assert_int_equal(ask_sidr(w, 0x01111C06).sidr_rep.status, CM_SIDR_UNSUPPORTED);
	assert_int_equal(cm_listen_ud(w->a.cm, 0x01111C06, UINT64_MAX, 77, 0x01234567), 0);
	rep = ask_sidr(w, 0x01111C06);
	assert_int_equal(rep.sidr_rep.status, CM_SIDR_OK);
	assert_int_equal(rep.sidr_rep.qpn, 77);
	assert_int_equal(rep.sidr_rep.qkey, 0x01234567);
	assert_int_equal(w->a.requests, 0);
}

/* --- the class itself --- */

static const uint8_t *
last_mad(struct world *w, struct packet *pkt)
{
	const struct frame *f = &w->a.frames[(w->a.sent - 1) % WORLD_FRAMES];
	enum verdict why;

	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, f->bytes + 14, f->len - 14, pkt, &why));
	return pkt->payload;
}

static void
test_class_port_info(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_LEN] = { 1, CM_CLASS, 2, MAD_GET };
	struct packet pkt;
	const uint8_t *got;

	mad[MAD_OFF_ATTRIBUTE + 1] = 1;
	peer_say_raw(w, mad);
	got = last_mad(w, &pkt);
	assert_int_equal(got[MAD_OFF_METHOD], MAD_GET_RESP);
	assert_int_equal(get_be16(got + MAD_OFF_STATUS), 0);
	assert_int_equal(got[24], 1); /* BaseVersion */
	assert_int_equal(got[25], 2); /* ClassVersion */
	assert_int_equal(got[31], 11); /* RespTimeValue of the manager */
	mad[MAD_OFF_ATTRIBUTE + 1] = 0x10;
	peer_say_raw(w, mad);
	assert_int_equal(get_be16(last_mad(w, &pkt) + MAD_OFF_STATUS), MAD_STATUS_BAD_METHOD_ATTR);
	mad[MAD_OFF_METHOD] = MAD_SET;
	peer_say_raw(w, mad);
	assert_int_equal(get_be16(last_mad(w, &pkt) + MAD_OFF_STATUS), MAD_STATUS_BAD_METHOD);
}

/* Reason 31, in the class version of the REQ; the ARI has our version. */
static void
test_class_version(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_LEN];
	const uint8_t *got;
	struct cm_msg req;
	struct packet pkt;

	peer_req(w, &req);
	cm_msg_encode(&req, mad);
	mad[MAD_OFF_CLASS_VERSION] = 1;
	peer_say_raw(w, mad);
	got = last_mad(w, &pkt);
	assert_int_equal(got[MAD_OFF_CLASS], CM_CLASS);
	assert_int_equal(got[MAD_OFF_CLASS_VERSION], 1);
	assert_int_equal(got[MAD_OFF_METHOD], MAD_SEND);
	assert_int_equal(get_be16(got + MAD_OFF_ATTRIBUTE), 0x12);
	assert_true(get_be64(got + MAD_OFF_TID) == PEER_TID);
	assert_int_equal(get_be32(got + 24), 0);
	assert_int_equal(get_be32(got + 28), PEER_ID);
	assert_int_equal(got[24 + 8] >> 6, 0); /* message rejected: REQ */
	assert_int_equal(got[24 + 9] >> 1, 1); /* one byte of ARI */
	assert_int_equal(get_be16(got + 24 + 10), 31);
	assert_int_equal(got[24 + 12], 2);
	assert_int_equal(w->a.requests, 0);
	assert_int_equal(w->a.sent, 1);
	/* other messages of another version are dropped: a DREQ of version 1 */
	mad[MAD_OFF_ATTRIBUTE + 1] = 0x15;
	peer_say_raw(w, mad);
	assert_int_equal(w->a.sent, 1);
	assert_int_equal(counters_of(&w->a).malformed, 1);
	/* a Get is answered with an error status */
	mad[MAD_OFF_METHOD] = MAD_GET;
	peer_say_raw(w, mad);
	assert_int_equal(get_be16(last_mad(w, &pkt) + MAD_OFF_STATUS), MAD_STATUS_BAD_VERSION);
}

static void
test_unknown_attribute_is_malformed(void **state)
{
	struct world *w = *state;
	uint8_t mad[MAD_LEN] = { 1, CM_CLASS, 2, MAD_SEND };

	mad[MAD_OFF_ATTRIBUTE + 1] = 0x1B;
	peer_say_raw(w, mad);
	assert_int_equal(w->a.sent, 0);
	assert_int_equal(counters_of(&w->a).malformed, 1);
}

static int
scripted_ib_setup(void **state)
{
	static const struct world ib = { .scripted = true, .ib = true };

	*state = world_create(&ib);
	return 0;
}

#define T(name)  cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)
#define IB(name) cmocka_unit_test_setup_teardown(name, scripted_ib_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_no_listener),
		T(test_refusals_raise_few_events),
		T(test_transport_type),
		T(test_invalid_qpn),
		T(test_path_mtu),
		T(test_gids),
		IB(test_gids),
		IB(test_lids_without_gids),
		T(test_rate),
		IB(test_lids_on_native_ib),
		IB(test_sl_and_hops_on_native_ib),
		T(test_lids_on_roce_are_ignored),
		IB(test_alternate_path),
		T(test_alternate_path_to_another_host_is_rejected),
		T(test_req_from_an_impossible_source_is_not_answered),
		T(test_pkey),
		T(test_rdma_cm_header),
		T(test_service_without_rdma_cm),
		cmocka_unit_test_teardown(test_no_room_for_a_qp, world_teardown),
		T(test_more_exact_mask_wins),
		T(test_mask_takes_a_range),
		T(test_listeners_are_limited),
		T(test_sidr),
		T(test_class_port_info),
		T(test_class_version),
		T(test_unknown_attribute_is_malformed),
	};

	return cmocka_run_group_tests_name("cm: request", tests, NULL, NULL);
}
