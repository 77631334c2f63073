/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The worker: checks before the queue pair (rc-transport 5), the QP directory, and fair sending.
 */

#include <errno.h>
#include <string.h>

#include "pair.h"
#include "rc/qp.h"
#include "rc/qp_directory.h"

/* One frame from a to b, changed on the way. */
static enum verdict
receive_changed(struct pair *p, void (*change)(struct packet *pkt))
{
	struct sent *s;
	struct packet pkt;
	enum verdict why;

	post(&p->a, WR_SEND, 1, 8);
	transmit(&p->a);
	s = &p->a.sent[p->a.sent_count - 1];
	assert_true(wire_parse(p->config.encap, s->frame + 14, s->len - 14, &pkt, &why));
	pkt.port = 0;
	if (change != NULL)
		change(&pkt);
	return rc_receive(p->b.w, &pkt, p->now);
}

static void
unknown_qpn(struct packet *pkt)
{
	pkt->dest_qpn ^= 1;
}

/* 5.3 */
static void
test_unknown_qpn(void **state)
{
	assert_int_equal(receive_changed(*state, unknown_qpn), VERDICT_QPN_UNKNOWN);
}

static void
ud_opcode(struct packet *pkt)
{
	pkt->opcode = UD_SEND_ONLY;
	pkt->op = &opcodes[UD_SEND_ONLY];
}

/* 5.4: opcode class and QP type */
static void
test_opcode_class(void **state)
{
	assert_int_equal(receive_changed(*state, ud_opcode), VERDICT_QP_TYPE);
}

/* 5.4: a QP in RESET accepts nothing, also after it was in RTS */
static void
test_reset_accepts_nothing(void **state)
{
	struct pair *p = *state;

	must_modify(&p->b, QPS_RESET, QP_ATTR_STATE);
	assert_int_equal(receive_changed(p, NULL), VERDICT_QP_STATE);
	must_modify(&p->b, QPS_INIT, MASK_INIT);
	assert_int_equal(receive_changed(p, NULL), VERDICT_QP_STATE);
}

/* 5.4: requests need RTR, RTS or SQD; responses RTS or SQD */
static void
test_states_that_receive(void **state)
{
	static const struct {
		enum qp_state state;
		bool requests, responses;
	} rows[] = {
		{ QPS_RESET, false, false },
		{ QPS_INIT, false, false },
		{ QPS_RTR, true, false },
		{ QPS_RTS, true, true },
		{ QPS_SQD, true, true },
		{ QPS_ERR, false, false },
	};
	enum verdict v;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		struct pair *p = pair_create(&(struct pair_config){
			.retry_cnt = 7,
			.scripted = true,
			.init_only = true,
		});

		if (rows[i].state != QPS_RESET)
			must_modify(&p->a, QPS_INIT, MASK_INIT);
		if (rows[i].state >= QPS_RTR && rows[i].state != QPS_ERR)
			must_modify(&p->a, QPS_RTR, MASK_RTR);
		if (rows[i].state == QPS_RTS || rows[i].state == QPS_SQD)
			must_modify(&p->a, QPS_RTS, MASK_RTS);
		if (rows[i].state == QPS_SQD || rows[i].state == QPS_ERR)
			must_modify(&p->a, rows[i].state, QP_ATTR_STATE);
		v = answer(p, &(struct wire_headers){ .opcode = RC_WRITE_ONLY, .psn = 201 }, NULL,
			0);
		assert_int_equal(v, rows[i].requests ? VERDICT_REQUEST : VERDICT_QP_STATE);
		v = ack(p, 300);
		assert_int_equal(v, rows[i].responses ? VERDICT_GHOST_RESPONSE : VERDICT_QP_STATE);
		pair_destroy(p);
	}
	*state = NULL;
}

static void
other_source(struct packet *pkt)
{
	pkt->sgid.raw[15] = 9;
}

static void
other_destination(struct packet *pkt)
{
	pkt->dgid.raw[15] = 9;
}

static void
other_port(struct packet *pkt)
{
	pkt->port = 1;
}

static void
other_encap(struct packet *pkt)
{
	pkt->encap = ENCAP_ROCEV1;
}

static void
other_udp_sport(struct packet *pkt)
{
	pkt->udp_sport = 1;
}

/*
 * 5.5: addresses must equal the QP's address vector; the UDP source port may have any value (10)
 */
static void
test_addresses_equal_the_address_vector(void **state)
{
	struct pair *p = *state;

	post_recv(&p->b, 1, 8);
	assert_int_equal(receive_changed(p, other_source), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_destination), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_port), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_encap), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_udp_sport), VERDICT_REQUEST);
}

static void
other_slid(struct packet *pkt)
{
	pkt->slid = 9;
}

static void
other_dlid(struct packet *pkt)
{
	pkt->dlid = 9;
}

static void
with_grh(struct packet *pkt)
{
	pkt->has_grh = true;
}

static union gid source, destination;

static void
with_good_gids(struct packet *pkt)
{
	with_grh(pkt);
	pkt->sgid = source;
	pkt->dgid = destination;
}

/* 5.5 on native InfiniBand: LIDs, and a GRH only where the address vector has one */
static void
test_native_addresses(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){
		.encap = ENCAP_IB,
		.retry_cnt = 7,
		.rnr_retry = 7,
	});

	*state = p;
	post_recv(&p->b, 1, 8);
	assert_int_equal(receive_changed(p, other_slid), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_dlid), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, with_grh), VERDICT_ADDRESS);
	source = info_of(&p->b).attr.av.dgid;
	destination = info_of(&p->b).attr.av.sgid;
	assert_int_equal(receive_changed(p, with_good_gids), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, NULL), VERDICT_REQUEST);
	exchange(p);
	expect_wc(&p->a, 1, WC_SUCCESS);
}

static void
other_pkey(struct packet *pkt)
{
	pkt->pkey = 0x8001;
}

static void
limited_pkey(struct packet *pkt)
{
	pkt->pkey = 0x7FFF;
}

/* 5.6: same partition, and one side is a full member (here the QP) */
static void
test_pkey_of_the_same_partition(void **state)
{
	struct pair *p = *state;

	post_recv(&p->b, 1, 8);
	assert_int_equal(receive_changed(p, other_pkey), VERDICT_PKEY);
	assert_int_equal(receive_changed(p, limited_pkey), VERDICT_REQUEST);
}

static uint16_t its_pkey;

static void
changed_pkey(struct packet *pkt)
{
	pkt->pkey = its_pkey;
}

/* 5.6: all fifteen bits of the partition count, the peer's membership does not */
static void
test_each_bit_of_a_pkey(void **state)
{
	const struct port_attr attr = { .num_pkeys = 1, .pkey = { 0x8123 } };
	struct pair *p = *state;
	unsigned int i;

	post_recv(&p->b, 1, 8);
	rc_path_changed(p->b.w, 0, &attr);
	for (i = 0; i < 15; i++) {
		its_pkey = 0x8123 ^ 1u << i;
		assert_int_equal(receive_changed(p, changed_pkey), VERDICT_PKEY);
		its_pkey ^= 0x8000;
		assert_int_equal(receive_changed(p, changed_pkey), VERDICT_PKEY);
	}
	assert_int_equal(rc_worker_violations(p->b.w, 0)->pkey, 30);
	its_pkey = 0x0123;
	assert_int_equal(receive_changed(p, changed_pkey), VERDICT_REQUEST);
}

/* 5.6: a port's table may make a limited member of a QP that was a full one */
static void
test_full_member_becomes_limited(void **state)
{
	struct port_attr attr = { .num_pkeys = 1, .pkey = { 0x7FFF } };
	struct pair *p = *state;

	post_recv(&p->b, 1, 8);
	rc_path_changed(p->b.w, 0, &attr);
	assert_int_equal(receive_changed(p, limited_pkey), VERDICT_PKEY);
	attr.pkey[0] = 0xFFFF;
	rc_path_changed(p->b.w, 0, &attr);
	assert_int_equal(receive_changed(p, limited_pkey), VERDICT_REQUEST);
}

/* 5.6: two limited members may not talk */
static void
test_two_limited_members(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->b);
	struct error err = { "" };

	attr.pkey = 0x7FFF;
	attr.qp_state = QPS_SQD;
	must_modify(&p->b, QPS_SQD, QP_ATTR_STATE);
	assert_int_equal(rc_qp_modify(p->b.w, p->b.qpn, &attr, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX,
				 &err),
		0);
	assert_int_equal(receive_changed(p, limited_pkey), VERDICT_PKEY);
}

/* 5.4 to 5.6: that a packet was admitted says nothing of others, nor of a QP that has changed */
static void
test_admitted_packets_are_checked_again(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->b);
	struct error err = { "" };

	/* without an ACK the same packet comes again and again */
	post_recv(&p->b, 1, 8);
	assert_int_equal(receive_changed(p, NULL), VERDICT_REQUEST);
	assert_int_equal(receive_changed(p, NULL), VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(receive_changed(p, limited_pkey), VERDICT_DUPLICATE_REQUEST);
	assert_int_equal(receive_changed(p, ud_opcode), VERDICT_QP_TYPE);
	assert_int_equal(receive_changed(p, other_source), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_port), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_encap), VERDICT_ADDRESS);
	assert_int_equal(receive_changed(p, other_pkey), VERDICT_PKEY);
	assert_int_equal(receive_changed(p, NULL), VERDICT_DUPLICATE_REQUEST);

	attr.pkey = 0x8001;
	attr.qp_state = QPS_SQD;
	must_modify(&p->b, QPS_SQD, QP_ATTR_STATE);
	assert_int_equal(rc_qp_modify(p->b.w, p->b.qpn, &attr, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX,
				 &err),
		0);
	assert_int_equal(receive_changed(p, NULL), VERDICT_PKEY);
	must_modify(&p->b, QPS_ERR, QP_ATTR_STATE);
	assert_int_equal(receive_changed(p, NULL), VERDICT_QP_STATE);
}

static uint8_t damaged[256];

static void
damage(struct packet *pkt)
{
	uint32_t len = pkt->icrc_len + 4;

	assert_true(len <= sizeof(damaged));
	memcpy(damaged, pkt->l3, len);
	damaged[pkt->payload - pkt->l3] ^= 0x10;
	pkt->payload = damaged + (pkt->payload - pkt->l3);
	pkt->bth = damaged + (pkt->bth - pkt->l3);
	pkt->l3 = damaged;
}

static void
damage_and_other_pkey(struct packet *pkt)
{
	damage(pkt);
	pkt->pkey = 0x8001;
}

/* 5.8: a wrong ICRC is found before a P_Key violation is counted; no byte is placed */
static void
test_icrc_before_pkey(void **state)
{
	struct pair *p = *state;

	post_recv(&p->b, 1, 8);
	memset(p->b.bytes, 0x5A, 8);
	assert_int_equal(receive_changed(p, damage), VERDICT_ICRC);
	assert_int_equal(p->b.bytes[0], 0x5A);
	assert_int_equal(receive_changed(p, damage_and_other_pkey), VERDICT_ICRC);
	assert_int_equal(counters_of(&p->b).rcvd_pkts, 0);
	expect_no_wc(&p->b);
}

/* the first good request in RTR raises COMM_EST, once */
static void
test_communication_established_once(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .scripted = true, .init_only = true });
	struct wire_headers h = { .opcode = RC_WRITE_ONLY, .psn = 201 };
	unsigned int i, n = 0;

	*state = p;
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	answer(p, &h, NULL, 0);
	h.psn++;
	answer(p, &h, NULL, 0);
	for (i = 0; i < p->a.event_count; i++) {
		n += p->a.events[i].type == EVENT_COMM_EST;
		assert_int_equal(p->a.events[i].element, p->a.qpn);
	}
	assert_int_equal(n, 1);
}

/* Packets for the former QP of this QPN have other PSNs; they do not raise COMM_EST. */
static void
test_old_packets_establish_nothing(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .scripted = true, .init_only = true });
	struct wire_headers h = { .opcode = RC_WRITE_ONLY, .psn = 200 };

	*state = p;
	must_modify(&p->a, QPS_INIT, MASK_INIT);
	must_modify(&p->a, QPS_RTR, MASK_RTR);
	answer(p, &h, NULL, 0);
	h.psn = 203;
	answer(p, &h, NULL, 0);
	assert_int_equal(p->a.event_count, 0);
	h.psn = 201;
	answer(p, &h, NULL, 0);
	assert_int_equal(p->a.event_count, 1);
	assert_int_equal(p->a.events[0].type, EVENT_COMM_EST);
}

/* cm.md 6: a QP of the communication manager raises COMM_EST in RTS; other QPs do not. */
static void
test_communication_established_in_rts(void **state)
{
	struct pair *p = pair_create(&(struct pair_config){ .scripted = true, .init_only = true });
	struct wire_headers h = { .opcode = RC_WRITE_ONLY, .psn = 201 };
	struct qp_init_attr init;
	unsigned int i, k, n;

	*state = p;
	init_attr(&p->a, &init);
	for (k = 0; k < 2; k++) {
		init.comm_est_in_rts = k == 1;
		assert_int_equal(rc_qp_create(p->a.w, &init, &p->a.qpn, NULL), 0);
		must_modify(&p->a, QPS_INIT, MASK_INIT);
		must_modify(&p->a, QPS_RTR, MASK_RTR);
		must_modify(&p->a, QPS_RTS, MASK_RTS);
		h.psn = 201;
		answer(p, &h, NULL, 0);
		h.psn++;
		answer(p, &h, NULL, 0);
		for (n = i = 0; i < p->a.event_count; i++)
			n += p->a.events[i].type == EVENT_COMM_EST &&
				p->a.events[i].element == p->a.qpn;
		assert_int_equal(n, k);
	}
}

/* --- the directory --- */

static uint32_t
receive_create(struct node *n)
{
	struct qp_init_attr init;
	struct error err = { "" };
	uint32_t qpn;

	init_attr(n, &init);
	if (rc_qp_create(n->w, &init, &qpn, &err) != 0)
		fail_msg("%s", err.text);
	return qpn;
}

/* The next QP in a slot has another QPN, so a late packet for the former one finds no QP. */
static void
test_stale_qpn_misses(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	uint32_t old = p->a.qpn, qpn, slot = old & 63;
	unsigned int i;

	assert_int_equal(rc_qp_destroy(p->a.w, old, &err), 0);
	assert_int_equal(rc_owner(p->a.dev, old), -1);
	assert_int_equal(ack(p, 201), VERDICT_QPN_UNKNOWN);
	/* until the slot is used again; 64 slots, two workers */
	for (i = 0; i < 200; i++) {
		qpn = receive_create(&p->a);
		assert_int_not_equal(qpn, old);
		if ((qpn & 63) == slot)
			break;
		assert_int_equal(rc_qp_destroy(p->a.w, qpn, &err), 0);
	}
	assert_int_equal(qpn & 63, slot);
	assert_int_equal(ack(p, 201), VERDICT_QPN_UNKNOWN); /* for `old` */
	assert_int_equal(rc_qp_destroy(p->a.w, old, &err), -ENOENT);
	p->a.qpn = qpn;
}

/* QPNs are never 0, 1, a fixed one, or the multicast QPN; any thread can tell a QPN's owner. */
static void
test_qpn_range_and_owner(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	unsigned int i, k;
	uint32_t qpns[31], cursor, qpn, seen;

	for (k = 0; k < 50; k++) {
		for (i = 0; i < 31; i++) { /* with the pair's own: all 32 of worker 0 */
			qpns[i] = receive_create(&p->a);
			assert_in_range(qpns[i], RC_QPN_MIN, 0xFFFFFE);
			assert_int_equal(rc_owner(p->a.dev, qpns[i]), 0);
		}
		cursor = seen = 0;
		while (rc_qp_next(p->a.w, &cursor, &qpn))
			seen++;
		assert_int_equal(seen, 32);
		for (i = 0; i < 31; i++)
			assert_int_equal(rc_qp_destroy(p->a.w, qpns[i], &err), 0);
	}
}

static uint64_t drawn;

static void
receive_fixed_fill(void *arg, void *buf, size_t len)
{
	(void)arg;
	memcpy(buf, &drawn, len < sizeof(drawn) ? len : sizeof(drawn));
}

/* The same for any random generation: with 8 slots the generation is nearly the whole QPN. */
static void
test_special_qpns_are_never_given(void **state)
{
	static const uint64_t draws[] = { UINT64_MAX, UINT64_MAX - 1, 0, 0x1FFFFE, 0x1FFFFD };
	const struct rng fixed = { receive_fixed_fill, NULL };
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &fixed,
	};
	struct pair *p = *state;
	struct rc_worker_config wc = { .wheel = p->a.wheel, .tx = &p->a.sink };
	struct error err = { "" };
	struct qp_init_attr init;
	struct rc_worker *w;
	struct rc_dev *dev;
	uint32_t cq, qpn, i, k;

	dc.limits.max_qp = 8;
	dc.mem = p->a.mem;
	for (k = 0; k < sizeof(draws) / sizeof(draws[0]); k++) {
		drawn = draws[k];
		dev = rc_dev_create(&dc);
		w = rc_worker_create(dev, &wc);
		assert_int_equal(rc_cq_create(dev, 4, &cq, &err), 0);
		init_attr(&p->a, &init);
		init.send_cq = init.recv_cq = cq;
		for (i = 0; i < 8; i++) {
			assert_int_equal(rc_qp_create(w, &init, &qpn, &err), 0);
			assert_in_range(qpn, RC_QPN_MIN, 0xFFFFFE);
		}
		rc_worker_destroy(w);
		rc_dev_destroy(dev);
	}
}

/* When all slots of a worker are in use, the error says so. */
static void
test_all_slots_in_use(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t i, qpn;

	for (i = 0; i < 31; i++)
		receive_create(&p->a);
	init_attr(&p->a, &init);
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), -ENOSPC);
	assert_string_equal(err.text,
		"all 32 queue pairs that worker 0 can make are in use (limits.max_qp)");
}

/* A slot is not used again until `quarantine` others were freed, if there are that many. */
static void
test_quarantine(void **state)
{
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = 1,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct pair *p = *state;
	struct rc_worker_config wc = { .wheel = p->a.wheel, .tx = &p->a.sink };
	struct rc_worker *w;
	struct rc_dev *dev;
	struct error err = { "" };
	struct qp_init_attr init;
	uint32_t cq, first, qpn, i, round;

	dc.limits.max_qp = 64;
	dc.limits.quarantine = 20;
	dc.mem = p->a.mem;
	dev = rc_dev_create(&dc);
	w = rc_worker_create(dev, &wc);
	assert_int_equal(rc_cq_create(dev, 4, &cq, &err), 0);
	init_attr(&p->a, &init);
	init.send_cq = init.recv_cq = cq;
	for (round = 0; round < 50; round++) {
		assert_int_equal(rc_qp_create(w, &init, &first, &err), 0);
		rc_qp_destroy(w, first, &err);
		for (i = 0; i < 20; i++) {
			assert_int_equal(rc_qp_create(w, &init, &qpn, &err), 0);
			assert_int_not_equal(qpn & 63, first & 63);
			rc_qp_destroy(w, qpn, &err);
		}
	}
	rc_worker_destroy(w);
	rc_dev_destroy(dev);
}

/* Limits that are reloaded hold for what is made from then on; those that size memory stay. */
static void
test_reloaded_limits(void **state)
{
	struct pair *p = *state;
	struct rc_dev *dev = p->a.w->dev;
	struct rc_limits was = dev->limits, l = was;
	struct qp_init_attr init;
	struct error err = { "" };
	uint32_t qpn, cq;

	l.max_qp = was.max_qp * 2;
	l.max_cq = was.max_cq * 2;
	l.max_srq = was.max_srq + 1;
	l.max_rd_atomic = 1;
	l.max_qp_wr = 8;
	l.max_cqe = 9;
	l.window = 10;
	l.ack_interval = 11;
	l.quarantine = 12;
	l.min_ack_timeout = 13;
	rc_dev_reload_limits(dev, &l);
	assert_int_equal(dev->limits.max_qp, was.max_qp);
	assert_int_equal(dev->limits.max_cq, was.max_cq);
	assert_int_equal(dev->limits.max_srq, was.max_srq);
	assert_int_equal(dev->limits.max_rd_atomic, was.max_rd_atomic);
	assert_int_equal(dev->limits.window, 10);
	assert_int_equal(dev->limits.ack_interval, 11);
	assert_int_equal(dev->limits.quarantine, 12);
	assert_int_equal(dev->limits.min_ack_timeout, 13);
	init_attr(&p->a, &init);
	init.cap.max_send_wr = 9;
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), -EINVAL);
	assert_string_equal(err.text, "max_send_wr: got 9, allowed: 1 to 8");
	assert_int_equal(rc_cq_create(dev, 10, &cq, &err), -EINVAL);
}

/* A lowered quarantine lets go of all slots beyond it at the next destroy. */
static void
test_lowered_quarantine(void **state)
{
	struct pair *p = *state;
	const struct rc_slots *slots = p->a.w->slots;
	struct rc_dev *dev = p->a.w->dev;
	struct rc_limits l = dev->limits;
	struct qp_init_attr init;
	struct error err = { "" };
	uint32_t qpn, i;

	init_attr(&p->a, &init);
	l.quarantine = 10;
	rc_dev_reload_limits(dev, &l);
	for (i = 0; i < 12; i++) {
		assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
		rc_qp_destroy(p->a.w, qpn, &err);
	}
	assert_int_equal(slots->resting_count, 10);
	l.quarantine = 2;
	rc_dev_reload_limits(dev, &l);
	assert_int_equal(rc_qp_create(p->a.w, &init, &qpn, &err), 0);
	rc_qp_destroy(p->a.w, qpn, &err);
	assert_int_equal(slots->resting_count, 2);
}

/* --- sending --- */

/*
 * QPs take turns of 9216 bytes. A packet costs its payload and 512 bytes: 12 packets of 256 bytes.
 */
static void
test_fair_turns(void **state)
{
	struct pair *p = *state;
	struct qp_attr attr = qp_attr_of(&p->a);
	struct error err = { "" };
	struct send_wr wr;
	struct sge sge;
	uint32_t other = receive_create(&p->a);
	unsigned int i;

	attr.qp_state = QPS_INIT;
	assert_int_equal(rc_qp_modify(p->a.w, other, &attr, MASK_INIT, &err), 0);
	attr.qp_state = QPS_RTR;
	attr.dest_qp_num = 0x777;
	assert_int_equal(rc_qp_modify(p->a.w, other, &attr, MASK_RTR, &err), 0);
	attr.qp_state = QPS_RTS;
	assert_int_equal(rc_qp_modify(p->a.w, other, &attr, MASK_RTS, &err), 0);
	post(&p->a, WR_RDMA_WRITE, 1, 100 * 256);
	make_wr(&p->a, &wr, &sge, WR_RDMA_WRITE, 2, 100 * 256);
	assert_int_equal(rc_post_send(p->a.w, other, &wr, &err), 0);
	assert_int_equal(rc_run(p->a.w, p->now, 64), 64);
	for (i = 0; i < 64; i++) {
		p->a.looked = 0;
		p->a.seen = p->a.sent_count;
		assert_int_equal(sent_packet(&p->a, i).dest_qpn == 0x777, i / 12 % 2);
	}
	assert_true(rc_pending(p->a.w));
}

/* After the destruction of a QP with outstanding requests nothing is sent, completed or timed. */
static void
test_destroy_in_mid_flight(void **state)
{
	struct pair *p = *state;
	struct error err = { "" };

	post(&p->a, WR_RDMA_WRITE, 1, 600);
	post(&p->a, WR_RDMA_READ, 2, 600);
	rc_run(p->a.w, p->now, 2);
	p->a.seen = p->a.sent_count;
	assert_true(rc_pending(p->a.w));
	assert_int_equal(rc_qp_destroy(p->a.w, p->a.qpn, &err), 0);
	pass(p, UINT64_C(1) << 40);
	transmit(&p->a);
	expect_silence(&p->a);
	expect_no_wc(&p->a);
	assert_false(rc_pending(p->a.w));
	assert_int_equal(ack(p, 201), VERDICT_QPN_UNKNOWN);
}

/* rc_counter_names[] has a name for each counter, in the order of the struct. */
static void
test_counter_names(void **state)
{
	(void)state;
	assert_string_equal(rc_counter_infos[0].name, "sent_pkts");
	assert_string_equal(
		rc_counter_infos[offsetof(struct rc_counters, retry_exceeded_err) / 8].name,
		"retry_exceeded_err");
	assert_string_equal(rc_counter_infos[RC_COUNTER_COUNT - 1].name, "rp_rate_limited");
}

#define BOTH(t)     cmocka_unit_test_setup_teardown(t, pair_setup, pair_teardown)
#define SCRIPTED(t) cmocka_unit_test_setup_teardown(t, scripted_setup, pair_teardown)
#define OWN(t)      cmocka_unit_test_teardown(t, pair_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_unknown_qpn),
		BOTH(test_opcode_class),
		OWN(test_states_that_receive),
		BOTH(test_addresses_equal_the_address_vector),
		OWN(test_native_addresses),
		BOTH(test_reset_accepts_nothing),
		BOTH(test_pkey_of_the_same_partition),
		BOTH(test_each_bit_of_a_pkey),
		BOTH(test_full_member_becomes_limited),
		BOTH(test_two_limited_members),
		BOTH(test_admitted_packets_are_checked_again),
		BOTH(test_icrc_before_pkey),
		OWN(test_communication_established_once),
		OWN(test_old_packets_establish_nothing),
		OWN(test_communication_established_in_rts),
		SCRIPTED(test_stale_qpn_misses),
		SCRIPTED(test_qpn_range_and_owner),
		SCRIPTED(test_special_qpns_are_never_given),
		SCRIPTED(test_all_slots_in_use),
		SCRIPTED(test_quarantine),
		SCRIPTED(test_reloaded_limits),
		SCRIPTED(test_lowered_quarantine),
		SCRIPTED(test_fair_turns),
		SCRIPTED(test_destroy_in_mid_flight),
		cmocka_unit_test(test_counter_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
