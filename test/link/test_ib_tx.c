/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Sent native InfiniBand frames: the MAC for a LID, and the port states that allow sending. */

#include <stdlib.h>
#include <string.h>

#include "ib.h"
#include "../wire/build.h"
#include "link/private.h"

static const struct link_counters *
counters(struct bench *b)
{
	return link_worker_counters(b->worker[0], 0);
}

static void
ib_tx_hear(struct bench *b, const char *frame)
{
	bench_verdict(b, frame, VERDICT_COUNT);
}

/* The ICRC was computed with zlib's CRC-32, the VCRC bit by bit with IBA's polynomial. */
static void
test_frame_is_complete(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x22, 1);

	ib_tx_hear(b, DATA(US A, 0x10, 0x22));
	ib_send(b, &path);
	bench_expect(b,
		A US "88b5 0002 0022 000a 0010 6400ffff 00000001 00000000"
		     "80010000 00000001 0102030405060708 6352d92a 57c8 00000000");
	assert_int_equal(counters(b)->tx_packets, 1);
	assert_int_equal(counters(b)->tx_bytes, 60);
	assert_int_equal(counters(b)->tx_pad, 4);
}

static void
test_longer_frame_is_not_padded(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x22, 1);
	uint8_t *bth = tx_reserve(link_tx_sink(b->worker[0]), &path, 36);

	memset(bth, 0, 36);
	tx_commit(link_tx_sink(b->worker[0]));
	link_tx_flush(b->worker[0], b->now);
	assert_int_equal(counters(b)->tx_bytes, 14 + 8 + 36 + 6);
	assert_int_equal(counters(b)->tx_pad, 0);
	bench_discard(b);
}

static void
test_unknown_lid_is_broadcast_and_a_learned_one_is_not(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x22, 1);

	ib_send(b, &path);
	ib_expect(b, ALL, 0x22);
	assert_int_equal(counters(b)->tx_flooded, 1);
	ib_tx_hear(b, DATA(US A, 0x10, 0x22));
	ib_send(b, &path);
	ib_expect(b, A, 0x22);
	/* the same path, after the LID has moved */
	ib_tx_hear(b, DATA(US B, 0x10, 0x22));
	ib_send(b, &path);
	ib_expect(b, B, 0x22);
	assert_int_equal(counters(b)->tx_flooded, 1);
	assert_int_equal(counters(b)->tx_unresolved, 0);
}

static void
test_fixed_route_is_used(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x22, 1);
	struct error err;

	assert_int_equal(link_lid_set(b->link, 0, 0x22, (const uint8_t *)"\2\0\0\0\0\xB", &err), 0);
	ib_tx_hear(b, DATA(US A, 0x10, 0x22));
	ib_send(b, &path);
	ib_expect(b, B, 0x22);
}

static void
test_multicast_is_broadcast_and_not_counted_as_flooding(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0xC001, 0xFFFFFF);

	ib_send(b, &path);
	ib_expect(b, ALL, 0xC001);
	assert_int_equal(counters(b)->tx_flooded, 0);
}

/* The path of an answer has the MAC of the request, so the route is not looked up. */
static void
test_mac_of_the_path_is_final(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x22, 1);
	struct av av = path.av;

	ib_tx_hear(b, DATA(US A, 0x10, 0x22));
	memcpy(av.dmac, "\2\0\0\0\0\xB", 6);
	path_init(&path, &av, 1, 1);
	ib_send(b, &path);
	ib_expect(b, B, 0x22);
}

static void
expect_from_ourselves(struct bench *b, uint16_t dlid)
{
	bench_expect_nothing(b);
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(b->pkts[0]->dlid, dlid);
	assert_memory_equal(b->pkts[0]->smac, "\2\0\0\0\0\2", 6);
}

static void
test_own_lids_reach_the_port_itself(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0x10, 1);
	struct av av;

	ib_set(b, PORT_STATE_ACTIVE, 0x10, 1);
	ib_send(b, &path);
	expect_from_ourselves(b, 0x10);
	path = ib_path(0x11, 1);
	ib_send(b, &path);
	expect_from_ourselves(b, 0x11);
	/* an SMP to ourselves: no LID yet, but the path has the MAC of the request */
	ib_set(b, PORT_STATE_INIT, 0, 0);
	path = ib_path(0xFFFF, 0);
	av = path.av;
	memcpy(av.dmac, av.smac, 6);
	path_init(&path, &av, 0, 0);
	ib_send(b, &path);
	expect_from_ourselves(b, 0xFFFF);
	/* our own SMP does not make us the peer of the permissive LID */
	path = ib_path(0xFFFF, 0);
	ib_send(b, &path);
	ib_expect(b, ALL, 0xFFFF);
}

static void
test_permissive_lid_goes_to_the_sender_of_the_last_smp(void **state)
{
	struct bench *b = *state;
	struct path path = ib_path(0xFFFF, 0);

	ib_send(b, &path);
	ib_expect(b, ALL, 0xFFFF);
	assert_int_equal(counters(b)->tx_flooded, 1);
	ib_tx_hear(b, SMP(US A, 0xFFFF, 0xFFFF));
	ib_send(b, &path);
	ib_expect(b, A, 0xFFFF);
	ib_tx_hear(b, SMP(US B, 0x10, 0x22));
	ib_send(b, &path);
	ib_expect(b, B, 0xFFFF);
	ib_tx_hear(b, DATA(US A, 0x10, 0x23)); /* no SMP */
	ib_send(b, &path);
	ib_expect(b, B, 0xFFFF);
	assert_int_equal(counters(b)->tx_flooded, 1);
	assert_int_equal(counters(b)->lid_moved, 0);
}

static void
test_configured_peer_is_not_replaced(void **state)
{
	struct path path = ib_path(0xFFFF, 0);
	struct bench b;

	(void)state;
	ib_config(&b);
	memcpy(b.cfg.port[0].peer_mac, "\2\0\0\0\0\xB", 6);
	bench_open(&b);
	ib_tx_hear(&b, SMP(US A, 0xFFFF, 0xFFFF));
	ib_send(&b, &path);
	ib_expect(&b, B, 0xFFFF);
	bench_close(&b);
}

static void
test_only_smps_leave_a_port_that_is_not_active(void **state)
{
	static const uint8_t states[] = { PORT_STATE_DOWN, PORT_STATE_INIT, PORT_STATE_ARMED };
	struct bench *b = *state;
	struct path data = ib_path(0x22, 1), smp = ib_path(0x22, 0);
	unsigned int i;

	for (i = 0; i < 3; i++) {
		ib_set(b, states[i], 0x10, 0);
		ib_send(b, &data);
		bench_expect_nothing(b);
		assert_int_equal(counters(b)->tx_port_state, i + 1);
		ib_send(b, &smp);
		ib_expect(b, ALL, 0x22);
	}
	/* the same path, when the port is active */
	ib_set(b, PORT_STATE_ACTIVE, 0x10, 0);
	ib_send(b, &data);
	ib_expect(b, ALL, 0x22);
	assert_int_equal(counters(b)->tx_port_state, 3);
	assert_int_equal(counters(b)->tx_packets, 4);
}

/* smp-sma 1, 3: VL 15 carries SMPs and nothing else; an SL that is mapped there has no VL */
static void
test_data_does_not_leave_on_vl_15(void **state)
{
	struct bench *b = *state;
	struct path data = ib_path(0x22, 1);

	ib_set(b, PORT_STATE_ACTIVE, 0x10, 0);
	data.av.vl = 15;
	ib_send(b, &data);
	bench_expect_nothing(b);
	assert_int_equal(counters(b)->tx_port_state, 1);
}

/* A disabled port sends nothing, not even SMPs, except to itself. */
static void
test_disabled_port_is_silent(void **state)
{
	struct bench *b = *state;
	struct port_settings s = ib_settings(PORT_STATE_DOWN, 0x10, 0);
	struct path there = ib_path(0x22, 0), itself = ib_path(0x10, 0);

	s.disabled = true;
	link_port_set(b->worker[0], 0, &s);
	ib_send(b, &there);
	bench_expect_nothing(b);
	assert_int_equal(counters(b)->tx_port_state, 1);
	bench_verdict(b, SMP(US A, 0x10, 0x22), VERDICT_PORT_STATE);
	bench_verdict(b, SMP(US A, 0xFFFF, 0xFFFF), VERDICT_PORT_STATE);
	/* a frame from outside with our MAC is not from ourselves */
	bench_verdict(b, SMP(US US, 0x10, 0x10), VERDICT_PORT_STATE);
	ib_send(b, &itself);
	expect_from_ourselves(b, 0x10);
	s.disabled = false;
	link_port_set(b->worker[0], 0, &s);
	bench_verdict(b, SMP(US A, 0x10, 0x22), VERDICT_COUNT);
	ib_send(b, &there);
	ib_expect(b, A, 0x22);
}

/* Send an SMP or data packet with a number in its payload. @return false: the sink has no room */
static bool
send_number(struct bench *b, struct tx_sink *s, const struct path *path, uint8_t number)
{
	struct wire_headers h = {
		.opcode = UD_SEND_ONLY,
		.pkey = 0xFFFF,
		.dest_qpn = s == link_tx_sink(b->worker[0]) ? 0x11 : 0,
		.src_qpn = 1,
	};
	uint8_t *bth = tx_reserve(s, path, 24);

	if (bth == NULL)
		return false;
	assert_int_equal(wire_build(bth, &h), 20);
	memset(bth + 20, number, 4);
	tx_commit(s);
	return true;
}

static void
expect_number(struct bench *b, bool smp, uint8_t number)
{
	uint8_t buf[256];
	enum verdict why;
	struct packet p;
	uint32_t len = hex_bytes(bench_sent(b), buf, sizeof(buf));

	assert_true(wire_parse(ENCAP_IB, buf + 14, len - 14, &p, &why));
	assert_int_equal(p.dest_qpn, smp ? 0 : 0x11);
	assert_int_equal(p.payload[0], number);
}

/*
 * Seed 004, "accepted into the VL15 transmit buffer": SMPs are sent first, however full others are.
 */
static void
test_vl15_has_its_own_transmit_buffer(void **state)
{
	struct bench b;
	struct tx_sink *data, *smps;
	struct path path = ib_path(0x22, 0x11), smp = ib_path(0x22, 0);
	unsigned int i, n = 0;

	(void)state;
	ib_config(&b);
	b.out_depth = 4;
	bench_open(&b);
	ib_set(&b, PORT_STATE_ACTIVE, 0x10, 0);
	data = link_tx_sink(b.worker[0]);
	smps = link_smp_sink(b.worker[0]);
	assert_non_null(smps);
	link_tx_flush(b.worker[0], b.now); /* tells the sink the time */
	while (send_number(&b, data, &path, n))
		n++;
	assert_int_equal(n, 4 + LINK_BURST);
	link_tx_mark(b.worker[0]);
	for (i = 0; i < 3; i++)
		assert_true(send_number(&b, smps, &smp, i));
	assert_false(send_number(&b, data, &path, 99));
	link_tx_flush(b.worker[0], b.now);
	for (i = 0; i < 4; i++)
		expect_number(&b, false, i); /* the device had taken these already */
	link_tx_flush(b.worker[0], b.now);
	for (i = 0; i < 3; i++)
		expect_number(&b, true, i);
	expect_number(&b, false, 4);
	link_tx_mark(b.worker[0]);
	assert_true(send_number(&b, smps, &smp, 7)); /* the first of four places */
	link_tx_flush(b.worker[0], b.now);
	expect_number(&b, true, 7);
	expect_number(&b, false, 5);
	assert_false(link_tx_left(b.worker[0]));
	/* until the VL 15 buffer is full, too */
	for (i = 0; send_number(&b, smps, &smp, i) && i < 100; i++)
		;
	assert_in_range(i, LINK_BURST, LINK_BURST + 4);
	b.now += 300 * MS;
	link_tx_flush(b.worker[0], b.now); /* the device took nothing for too long: dropped */
	link_tx_flush(b.worker[0], b.now);
	assert_true(send_number(&b, smps, &smp, 0));
	bench_discard(&b);
	bench_close(&b);
}

/* VL 15 has mbufs of its own, so SMPs are sent although data have emptied the pool. */
static void
test_vl15_has_packets_of_its_own(void **state)
{
	struct bench *b = *state;
	struct tx_sink *smps = link_smp_sink(b->worker[0]);
	struct rte_mempool *mp = b->link->port[0].pool->mp;
	static void *taken[1 << 16];
	struct path path = ib_path(0x22, 0x11), smp = ib_path(0x22, 0);
	unsigned int i, n = 0;

	while (n < RTE_DIM(taken) && rte_mempool_get(mp, &taken[n]) == 0)
		n++;
	assert_in_range(n, 1, RTE_DIM(taken) - 1);
	assert_false(send_number(b, link_tx_sink(b->worker[0]), &path, 0));
	for (i = 0; i < LINK_BURST; i++)
		assert_true(send_number(b, smps, &smp, i));
	assert_false(send_number(b, smps, &smp, i));
	rte_mempool_put_bulk(mp, taken, n);
	assert_true(send_number(b, smps, &smp, i));
	bench_discard(b);
}

/* A packet that is not committed goes back to its batch's buffers before these are filled up. */
static void
test_packet_not_committed_is_taken_back(void **state)
{
	struct path path = ib_path(0x22, 0x11), smp = ib_path(0x22, 0);
	struct link_port_config *pair;
	struct tx_sink *sink[2];
	struct bench b;
	unsigned int i;

	(void)state;
	ib_config(&b);
	pair = &b.cfg.port[1];
	*pair = b.cfg.port[0];
	strcpy(pair->name, "port1");
	pair->device[0] = '\0';
	pair[1] = pair[0];
	strcpy(pair->back_to_back, "port2");
	strcpy(pair[1].name, "port2");
	b.cfg.num_ports = 3;
	bench_open(&b);
	for (i = 0; i < b.cfg.num_ports; i++)
		link_port_set(b.worker[0], i, &(struct port_settings){ .mtu = 2048 });
	ib_set(&b, PORT_STATE_ACTIVE, 0x10, 0);
	sink[0] = link_smp_sink(b.worker[0]);
	sink[1] = link_tx_sink(b.worker[0]);
	/* twice of one batch, then of the other batch and of other ports, in turn */
	for (i = 0; i < 1000; i++) {
		smp.av.port = path.av.port = i / 4 % 3;
		assert_non_null(tx_reserve(sink[i / 2 % 2], i / 2 % 2 == 0 ? &smp : &path, 24));
		assert_in_range(b.worker[0]->port[i / 4 % 3].vl15.num_cached, 0, LINK_BURST);
		assert_in_range(b.worker[0]->port[i / 4 % 3].tx.num_cached, 0, LINK_BURST);
	}
	smp.av.port = 0;
	assert_true(send_number(&b, sink[0], &smp, 7));
	link_tx_flush(b.worker[0], b.now);
	expect_number(&b, true, 7);
	bench_close(&b);
}

static void
test_only_worker_0_sends_smps(void **state)
{
	struct bench b;

	(void)state;
	ib_config(&b);
	b.cfg.workers = 2;
	bench_open(&b);
	assert_non_null(link_smp_sink(b.worker[0]));
	assert_null(link_smp_sink(b.worker[1]));
	bench_close(&b);
}

static void
test_neighbours_are_refused(void **state)
{
	struct bench *b = *state;
	struct error err = { 0 };
	union gid gid;
	uint32_t index;

	assert_true(gid_parse("fe80::1", &gid));
	assert_int_equal(link_neighbour(b->link, 0, &gid, &gid, &index, &err), -22);
	assert_string_equal(err.text, "port0: native InfiniBand: LIDs route there");
}

static void
test_native_port_announces_nothing(void **state)
{
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		b->now += 100 * MS;
		link_tick(b->worker[0], b->now);
		bench_poll(b, 0);
	}
	bench_expect_nothing(b);
}

int
main(void)
{
#define WITH_IB(t) cmocka_unit_test_setup_teardown(t, ib_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_IB(test_frame_is_complete),
		WITH_IB(test_longer_frame_is_not_padded),
		WITH_IB(test_unknown_lid_is_broadcast_and_a_learned_one_is_not),
		WITH_IB(test_fixed_route_is_used),
		WITH_IB(test_multicast_is_broadcast_and_not_counted_as_flooding),
		WITH_IB(test_mac_of_the_path_is_final),
		WITH_IB(test_own_lids_reach_the_port_itself),
		WITH_IB(test_permissive_lid_goes_to_the_sender_of_the_last_smp),
		cmocka_unit_test(test_configured_peer_is_not_replaced),
		WITH_IB(test_only_smps_leave_a_port_that_is_not_active),
		WITH_IB(test_data_does_not_leave_on_vl_15),
		WITH_IB(test_disabled_port_is_silent),
		cmocka_unit_test(test_vl15_has_its_own_transmit_buffer),
		WITH_IB(test_vl15_has_packets_of_its_own),
		cmocka_unit_test(test_packet_not_committed_is_taken_back),
		cmocka_unit_test(test_only_worker_0_sends_smps),
		WITH_IB(test_neighbours_are_refused),
		WITH_IB(test_native_port_announces_nothing),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
