/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A REQ with the QPN of an established connection's peer means that the peer has restarted, or is
 * forged. So it does not end the connection. The peer's QP is probed, and the connection ends only
 * if the QP does not answer.
 */

#include <string.h>

#include "world.h"

#define ACK_TIMEOUT (2048 * MS) /* LocalAckTimeout 19 of the REQ */

/* @return number of RC packets that n has sent since the last call. @param pkt  the last one */
static unsigned int
rc_packets(struct node *n, struct packet *pkt)
{
	unsigned int count = 0;
	struct packet p;

	while (n->seen < n->sent) {
		world_parse(n, world_frame(n, n->seen++), &p);
		if (OPCODE_CLASS(p.opcode) != OPCODE_RC)
			continue;
		*pkt = p;
		count++;
	}
	return count;
}

static void
say_req(struct world *w, uint32_t qpn, uint32_t id)
{
	struct cm_msg req;

	peer_req(w, &req);
	req.req.qpn = qpn;
	req.local_id = id;
	req.tid = PEER_TID + id;
	peer_say(w, &req);
}

static struct life *
connect_peer(struct world *w, uint32_t qpn, uint32_t id)
{
	struct cm_msg rtu = { .type = CM_RTU, .tid = PEER_TID + id, .local_id = id };
	struct life *l;

	say_req(w, qpn, id);
	l = last_life(&w->a);
	rtu.remote_id = l->id;
	peer_say(w, &rtu);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	skip_messages(&w->a);
	return l;
}

static void
expect_stale_rej(struct world *w, uint32_t id)
{
	struct cm_msg rej = next_message(&w->a, CM_REJ);

	assert_int_equal(rej.rej.reason, CM_REJ_STALE);
	assert_int_equal(rej.remote_id, id);
}

static void
test_forged_req_ends_nothing(void **state)
{
	struct world *w = *state;
	struct life *a, *b;
	unsigned int i;

	establish(w, &a, &b);
	send_data(a);
	exchange(w);
	for (i = 1; i <= 3; i++) {
		say_req(w, b->qpn, 0x1000 + i);
		expect_stale_rej(w, 0x1000 + i);
		exchange(w); /* b's QP acknowledges the probe */
		pass(w, 5 * SECOND);
		assert_int_equal(counters_of(&w->a).probes, i);
	}
	expect_silence(&w->b); /* it got no DREQ */
	send_data(a);
	send_data(b);
	exchange(w);
	assert_int_equal(received(&w->a), 1);
	assert_int_equal(received(&w->b), 2);
	expect_log(a, "prepare established");
	expect_log(b, "request prepare established");
	assert_int_equal(counters_of(&w->a).stale, 0);
}

static void
test_probe_is_a_duplicate_send(void **state)
{
	struct world *w = *state;
	struct life *l = connect_peer(w, PEER_QPN, PEER_ID);
	struct packet pkt;

	say_req(w, PEER_QPN, PEER_ID + 7);
	assert_int_equal(rc_packets(&w->a, &pkt), 1);
	assert_int_equal(pkt.opcode, RC_SEND_ONLY);
	assert_int_equal(pkt.psn, PEER_PSN - 1);
	assert_int_equal(pkt.dest_qpn, PEER_QPN);
	assert_int_equal(pkt.payload_len, 0);
	assert_true(pkt.ackreq);
	/* with Sends in flight, the PSN is the one before the oldest */
	send_data(l);
	send_data(l);
	skip_messages(&w->a);
	pass(w, ACK_TIMEOUT);
	assert_true(rc_packets(&w->a, &pkt) > 0);
	assert_int_equal(pkt.psn, PEER_PSN - 1);
}

static void
test_silent_peer_loses_its_connection(void **state)
{
	struct world *w = *state;
	struct life *l = connect_peer(w, PEER_QPN, PEER_ID);
	struct packet pkt;
	unsigned int i;

	for (i = 1; i <= 3; i++) {
		say_req(w, PEER_QPN, PEER_ID + i); /* does not restart the probe */
		pass(w, ACK_TIMEOUT - 1);
		assert_int_equal(rc_packets(&w->a, &pkt), 1);
		expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
		pass(w, 1);
	}
	expect_state(&w->a, l->id, CM_STATE_TIMEWAIT);
	expect_log(l, "request prepare established stale");
	assert_int_equal(counters_of(&w->a).stale, 1);
	assert_int_equal(counters_of(&w->a).probes, 3);
	skip_messages(&w->a);
	/* the restarted peer may connect, even with the same QPN and ID */
	say_req(w, PEER_QPN, PEER_ID);
	expect_messages(&w->a, "REP");
}

static void
test_half_open_connection_stays(void **state)
{
	struct world *w = *state;
	struct life *l;

	say_req(w, PEER_QPN, PEER_ID);
	l = last_life(&w->a);
	expect_messages(&w->a, "REP");
	say_req(w, PEER_QPN, PEER_ID + 7);
	expect_stale_rej(w, PEER_ID + 7);
	expect_silence(&w->a);
	expect_state(&w->a, l->id, CM_STATE_REP_SENT);
	assert_int_equal(counters_of(&w->a).probes, 0);
	peer_answer(w, CM_RTU, l->id);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
}

/* A REQ with the same IDs and another PSN is from a restarted peer, or forged. */
static void
test_same_ids_with_another_psn(void **state)
{
	struct world *w = *state;
	struct life *l = connect_peer(w, PEER_QPN, PEER_ID);
	struct cm_msg req;

	peer_req(w, &req);
	req.tid = PEER_TID + PEER_ID;
	req.req.psn++;
	peer_say(w, &req);
	expect_stale_rej(w, PEER_ID);
	expect_state(&w->a, l->id, CM_STATE_ESTABLISHED);
	pass(w, ACK_TIMEOUT);
	pass(w, ACK_TIMEOUT);
	pass(w, ACK_TIMEOUT);
	expect_log(l, "request prepare established stale");
}

static void
test_probes_are_limited_per_peer(void **state)
{
	struct world *w = *state;
	struct packet pkt;
	uint32_t i;

	for (i = 0; i < 6; i++)
		connect_peer(w, PEER_QPN + i, PEER_ID + i);
	for (i = 0; i < 6; i++)
		say_req(w, PEER_QPN + i, PEER_ID + 0x100 + i);
	assert_int_equal(rc_packets(&w->a, &pkt), 4);
	assert_int_equal(counters_of(&w->a).probe_limit, 2);
	/* new probes are possible when the others have ended */
	for (i = 0; i < 3; i++)
		pass(w, ACK_TIMEOUT);
	assert_int_equal(counters_of(&w->a).stale, 4);
	skip_messages(&w->a);
	say_req(w, PEER_QPN + 5, PEER_ID + 0x200);
	assert_int_equal(rc_packets(&w->a, &pkt), 1);
}

static void
test_disconnect_ends_the_probe(void **state)
{
	struct world *w = *state;
	struct life *l = connect_peer(w, PEER_QPN, PEER_ID);
	struct packet pkt;

	say_req(w, PEER_QPN, PEER_ID + 7);
	peer_dreq(w, l->id, PEER_ID, l->qpn);
	skip_messages(&w->a);
	pass(w, ACK_TIMEOUT);
	assert_int_equal(rc_packets(&w->a, &pkt), 0);
	pass(w, ACK_TIMEOUT);
	expect_log(l, "request prepare established disconnected released");
	expect_nothing_left(&w->a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
#define S(name) cmocka_unit_test_setup_teardown(name, scripted_setup, world_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_forged_req_ends_nothing),
		S(test_probe_is_a_duplicate_send),
		S(test_silent_peer_loses_its_connection),
		S(test_half_open_connection_stays),
		S(test_same_ids_with_another_psn),
		S(test_probes_are_limited_per_peer),
		S(test_disconnect_ends_the_probe),
	};

	return cmocka_run_group_tests_name("cm: probe", tests, NULL, NULL);
}
