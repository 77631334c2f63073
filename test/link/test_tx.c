/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The transmit sink: batches, and full queues, missing buffers and unresolved next hops. */

#include <string.h>

#include "bench.h"
#include "../wire/build.h"
#include "link/neigh.h"
#include "link/private.h"
#include "wire/bytes.h"
#include "wire/wire.h"

#define MS (BENCH_HZ / 1000)

/* Use tx_send() instead of tx_reserve() and tx_commit(), to a resolved neighbour. */
static bool in_one_step;

/* Resolve the neighbour, as if it had answered. */
static void
know_neighbour(struct bench *b, struct path *p)
{
	struct error err;

	assert_int_equal(link_neighbour(b->link, 0, &p->av.sgid, &p->av.dgid, &p->neighbour, &err),
		0);
	b->link->neigh->mac[p->neighbour] = mac_word(p->av.dmac) | NEIGH_VALID;
}

static struct path
path_to_peer(struct bench *b, bool mac_known)
{
	struct av av = { .encap = ENCAP_ROCEV2_IPV4, .vlan = b->cfg.port[0].vlan, .sl = 5 };
	struct error err;
	struct path p;

	assert_true(gid_parse("10.0.0.2", &av.sgid));
	assert_true(gid_parse("10.0.0.1", &av.dgid));
	memcpy(av.smac, b->cfg.port[0].mac, 6);
	if (mac_known)
		memcpy(av.dmac, "\x02\0\0\0\0\x01", 6);
	path_init(&p, &av, 0x11, 0x12);
	if (mac_known && in_one_step)
		know_neighbour(b, &p);
	if (!mac_known)
		assert_int_equal(link_neighbour(b->link, 0, &av.sgid, &av.dgid, &p.neighbour, &err),
			0);
	return p;
}

/* Send an ACK for a PSN. @return false: the sink has no room */
static bool
send_ack(struct bench *b, unsigned int worker, const struct path *path, uint32_t psn)
{
	struct wire_headers h = {
		.opcode = RC_ACK,
		.pkey = 0xFFFF,
		.dest_qpn = 0x456,
		.psn = psn,
		.syndrome = 0x1F,
		.msn = 7,
	};
	struct tx_sink *s = link_tx_sink(b->worker[worker]);
	struct tx_headers headers;
	uint8_t *bth;

	if (in_one_step)
		return tx_send(s, path, &headers, wire_build(headers.bytes, &h), NULL, 0);
	bth = tx_reserve(s, path, 16);
	if (bth == NULL)
		return false;
	assert_int_equal(wire_build(bth, &h), 16);
	tx_commit(s);
	return true;
}

/* Expect a correct ICRC. */
static void
expect_icrc(const uint8_t *frame, uint32_t len)
{
	enum verdict why;
	struct packet p;

	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, frame + 14, len - 14, &p, &why));
	assert_true(wire_crc_ok(&p, &why));
}

/* Expect that the next frame of the queue is an ACK for this PSN. */
static void
expect_ack(struct bench *b, unsigned int queue, uint32_t psn)
{
	uint8_t buf[256];
	enum verdict why;
	struct packet p;
	uint32_t len = hex_bytes(bench_sent_on(b, queue), buf, sizeof(buf));

	assert_int_equal(len, 14 + 20 + 8 + 12 + 4 + 4);
	assert_memory_equal(buf, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\x00", 14);
	assert_true(wire_parse(ENCAP_ROCEV2_IPV4, buf + 14, len - 14, &p, &why));
	assert_true(wire_crc_ok(&p, &why));
	assert_int_equal(p.psn, psn);
	assert_int_equal(p.opcode, RC_ACK);
	assert_int_equal(p.udp_sport, 0xC132); /* rc-transport 10 */
}

static void
test_packet_leaves_on_flush_complete(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	struct path path = path_to_peer(b, true);

	assert_true(send_ack(b, 0, &path, 0x12));
	bench_expect_nothing(b);
	link_tx_flush(b->worker[0], b->now);
	expect_ack(b, 0, 0x12);
	bench_expect_nothing(b);
	assert_int_equal(c->tx_packets, 1);
	assert_int_equal(c->tx_bytes, 62);
}

static void
test_full_batch_leaves_by_itself(void **state)
{
	struct bench *b = *state;
	struct path path = path_to_peer(b, true);
	unsigned int i;

	for (i = 0; i < LINK_BURST - 1; i++)
		send_ack(b, 0, &path, i);
	bench_expect_nothing(b);
	send_ack(b, 0, &path, i);
	for (i = 0; i < LINK_BURST; i++)
		expect_ack(b, 0, i);
	bench_expect_nothing(b);
}

static void
test_unresolved_next_hop_is_a_counted_drop(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	struct path path = path_to_peer(b, false);

	assert_true(send_ack(b, 0, &path, 0));
	assert_true(send_ack(b, 0, &path, 1));
	link_tx_flush(b->worker[0], b->now);
	bench_expect_nothing(b);
	assert_int_equal(c->tx_unresolved, 2);
	assert_int_equal(c->tx_packets, 0);
	bench_verdict(b,
		"020000000002 020000000001 0806 0001080006040002"
		"020000000001 0a000001 020000000002 0a000002",
		VERDICT_ARP);
	bench_discard(b); /* the ARP request */
	assert_true(send_ack(b, 0, &path, 2));
	link_tx_flush(b->worker[0], b->now);
	expect_ack(b, 0, 2);
	assert_int_equal(c->tx_unresolved, 2);
}

static void
test_vlan_and_priority_are_sent(void **state)
{
	struct path path;
	struct bench b;
	uint8_t buf[256];

	(void)state;
	bench_config(&b);
	b.cfg.port[0].vlan = 10;
	bench_open(&b);
	path = path_to_peer(&b, true);
	send_ack(&b, 0, &path, 1);
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(hex_bytes(bench_sent(&b), buf, sizeof(buf)), 66);
	assert_memory_equal(buf + 12, "\x81\x00\xA0\x0A\x08\x00", 6); /* PCP 5, VLAN 10 */
	bench_close(&b);
}

static void
open_narrow(struct bench *b, unsigned int depth)
{
	bench_config(b);
	b->out_depth = depth;
	bench_open(b);
}

/*
 * The queue holds 8 frames. When it is full, senders wait and nothing is lost; if it stays full,
 * frames are dropped.
 */
static void
test_full_queue_holds_back_then_drops(void **state)
{
	const struct link_counters *c;
	struct path path;
	struct bench b;
	unsigned int sent = 0;

	(void)state;
	open_narrow(&b, 8);
	bench_poll(&b, 0);
	c = link_worker_counters(b.worker[0], 0);
	path = path_to_peer(&b, true);
	while (send_ack(&b, 0, &path, sent))
		assert_true(++sent < 100);
	assert_int_equal(sent, 8 + LINK_BURST);
	assert_int_equal(c->tx_full, 0);
	/* the device takes frames again: nothing was lost */
	expect_ack(&b, 0, 0);
	assert_true(send_ack(&b, 0, &path, sent));
	assert_int_equal(c->tx_full, 0);
	/* the device takes nothing for a long time */
	link_tx_flush(b.worker[0], b.now);
	link_tx_mark(b.worker[0]);
	b.now += 249 * MS;
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(c->tx_full, 0);
	assert_false(link_tx_left(b.worker[0]));
	b.now += 2 * MS;
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(c->tx_full, LINK_BURST);
	assert_true(link_tx_left(b.worker[0]));
	/* from then on frames are dropped and senders do not wait */
	for (sent = 0; sent < 100; sent++)
		assert_true(send_ack(&b, 0, &path, sent));
	assert_int_equal(c->tx_full, LINK_BURST + 96);
	/* until the device takes frames again */
	bench_discard(&b);
	assert_int_equal(c->tx_wait, 0);
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(c->tx_wait, 251000000); /* ns */
	expect_ack(&b, 0, 96);
	assert_int_equal(c->tx_full, LINK_BURST + 96);
	assert_int_equal(c->tx_packets, 8 + 1 + 4);
	bench_close(&b);
}

static void
test_bytes_are_counted_when_a_burst_leaves_in_parts(void **state)
{
	const struct link_counters *c;
	struct tx_sink *s;
	struct path path;
	struct bench b;
	unsigned int i;

	(void)state;
	open_narrow(&b, 2);
	c = link_worker_counters(b.worker[0], 0);
	s = link_tx_sink(b.worker[0]);
	path = path_to_peer(&b, true);
	for (i = 1; i <= 4; i++) {
		memset(tx_reserve(s, &path, 100 * i), 0, 100 * i);
		tx_commit(s);
	}
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(c->tx_packets, 2);
	assert_int_equal(c->tx_bytes, 2 * 46 + 300); /* Ethernet, IP, UDP and ICRC: 46 each */
	bench_discard(&b);
	link_tx_flush(b.worker[0], b.now);
	assert_int_equal(c->tx_packets, 4);
	assert_int_equal(c->tx_bytes, 4 * 46 + 1000);
	bench_close(&b);
}

static void
test_no_buffer_is_counted_and_nothing_else(void **state)
{
	const struct link_counters *c;
	struct path path;
	struct bench b;
	unsigned int n = 0;

	(void)state;
	bench_config(&b);
	b.cfg.port[0].mbufs = 64;
	bench_open(&b);
	c = link_worker_counters(b.worker[0], 0);
	path = path_to_peer(&b, true);
	while (send_ack(&b, 0, &path, n))
		assert_true(++n <= 64);
	assert_int_equal(n, 64);
	assert_int_equal(c->tx_no_mbuf, 1);
	bench_discard(&b);
	assert_true(send_ack(&b, 0, &path, n));
	bench_close(&b);
}

/* Metadata of a buffer's earlier use does not affect the sent frame. */
static void
test_used_buffer_leaves_as_a_new_one(void **state)
{
	struct bench *b = *state;
	struct rte_mempool *mp = b->link->port[0].pool->mp;
	struct path path = path_to_peer(b, true);
	struct rte_mbuf *used[LINK_BURST], *m = NULL;
	unsigned int i;

	assert_int_equal(rte_pktmbuf_alloc_bulk(mp, used, LINK_BURST), 0);
	for (i = 0; i < LINK_BURST; i++) {
		used[i]->ol_flags =
			RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
		used[i]->data_off = 7;
		used[i]->data_len = used[i]->pkt_len = 99;
		used[i]->port = 3;
	}
	rte_pktmbuf_free_bulk(used, LINK_BURST);
	assert_true(send_ack(b, 0, &path, 1));
	link_tx_flush(b->worker[0], b->now);
	assert_int_equal(rte_ring_dequeue(b->out[0], (void **)&m), 0);
	assert_int_equal(m->ol_flags, 0);
	assert_int_equal(m->data_off, RTE_PKTMBUF_HEADROOM - 12 - 42); /* in front of the BTH */
	assert_int_equal(m->data_len, 62);
	assert_int_equal(m->pkt_len, 62);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->port, RTE_MBUF_PORT_INVALID);
	assert_int_equal(rte_mbuf_refcnt_read(m), 1);
	assert_null(m->next);
	for (i = 0; i < LINK_BURST && m != used[i]; i++)
		;
	assert_true(i < LINK_BURST);
	rte_pktmbuf_free(m);
}

static void
test_packet_above_the_mtu_is_refused(void **state)
{
	struct bench *b = *state;
	struct path path = path_to_peer(b, true);

	assert_null(tx_reserve(link_tx_sink(b->worker[0]), &path, 4096));
	assert_int_equal(link_worker_counters(b->worker[0], 0)->tx_no_mbuf, 1);
}

static void
test_no_packet_has_an_icrc_that_is_off(void **state)
{
	struct bench *b = *state;
	struct path path = path_to_peer(b, true);
	uint8_t frame[256];
	uint32_t i, len;

	b->link->cfg.icrc_off = true;
	for (i = 0; i < 2; i++) /* the first one finds no mbuf at hand */
		assert_true(send_ack(b, 0, &path, i));
	link_tx_flush(b->worker[0], b->now);
	for (i = 0; i < 2; i++) {
		len = hex_bytes(bench_sent(b), frame, sizeof(frame));
		assert_int_equal(len, 14 + 20 + 8 + 12 + 4 + 4);
		assert_memory_equal(frame + len - 4, "\0\0\0\0", 4);
	}
}

/* tx_send() sends the same bytes as tx_reserve() and tx_commit(). */
static void
test_sending_in_one_step_gives_the_same_bytes(void **state)
{
	static const uint8_t opcodes_sent[] = { RC_SEND_ONLY, RC_SEND_MIDDLE, RC_SEND_ONLY_IMM,
		RC_WRITE_ONLY, RC_WRITE_ONLY_IMM, RC_READ_RESP_ONLY, RC_ATOMIC_ACK };
	struct wire_headers h = {
		.pkey = 0xFFFF,
		.dest_qpn = 0x456,
		.psn = 9,
		.va = 0x1122334455667788,
		.rkey = 0x99AABBCC,
		.dmalen = 77,
		.imm = 0xDDEEFF01,
		.syndrome = 0x1F,
		.msn = 3,
	};
	static const uint32_t lengths[] = { 0, 1, 3, 4, 16, 63, 64, 65, 256, 1000, 1024 };
	uint8_t payload[1024], one[1200], two[1200];
	struct bench *b = *state;
	struct tx_sink *s = link_tx_sink(b->worker[0]);
	struct path path = path_to_peer(b, true);
	struct tx_headers headers;
	uint32_t i, k, n, len;
	uint8_t *bth;

	if (!in_one_step)
		know_neighbour(b, &path);
	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + 1);
	for (i = 0; i < sizeof(opcodes_sent); i++) {
		for (k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			len = lengths[k];
			h.opcode = opcodes_sent[i];
			h.pad = -len & 3;
			n = wire_build(headers.bytes, &h);
			assert_true(tx_send(s, &path, &headers, n, len ? payload : NULL, len));
			bth = tx_reserve(s, &path, n + len + h.pad);
			memcpy(bth, headers.bytes, n);
			memcpy(bth + n, payload, len);
			memset(bth + n + len, 0, h.pad);
			tx_commit(s);
			link_tx_flush(b->worker[0], b->now);
			n += 14 + 20 + 8 + len + h.pad + 4;
			assert_int_equal(hex_bytes(bench_sent(b), one, sizeof(one)), n);
			assert_int_equal(hex_bytes(bench_sent(b), two, sizeof(two)), n);
			expect_icrc(one, n);
			expect_icrc(two, n);
			/* the IPv4 ID has advanced, which changes header checksum and ICRC */
			one[19]++;
			memcpy(one + 24, two + 24, 2);
			assert_memory_equal(one, two, n - 4);
		}
	}
}

static void
test_packet_not_committed_is_not_sent(void **state)
{
	struct bench *b = *state;
	struct path path = path_to_peer(b, true);

	assert_non_null(tx_reserve(link_tx_sink(b->worker[0]), &path, 16));
	assert_true(send_ack(b, 0, &path, 5));
	link_tx_flush(b->worker[0], b->now);
	expect_ack(b, 0, 5);
	bench_expect_nothing(b);
	assert_non_null(tx_reserve(link_tx_sink(b->worker[0]), &path,
		16)); /* reserved but never committed */
}

/* Two queues, three workers: worker 2's frames leave through worker 0. */
static void
test_worker_without_a_queue_hands_over(void **state)
{
	const struct link_counters *c0, *c2;
	struct path path;
	struct bench b;
	unsigned int i;

	(void)state;
	bench_config(&b);
	b.cfg.workers = 3;
	bench_open(&b);
	c0 = link_worker_counters(b.worker[0], 0);
	c2 = link_worker_counters(b.worker[2], 0);
	path = path_to_peer(&b, true);
	send_ack(&b, 1, &path, 1);
	link_tx_flush(b.worker[1], b.now);
	expect_ack(&b, 1, 1);
	for (i = 0; i < 40; i++)
		send_ack(&b, 2, &path, i);
	assert_true(link_tx_left(b.worker[2]));
	link_tx_flush(b.worker[2], b.now);
	link_tx_mark(b.worker[2]);
	bench_expect_nothing(&b);
	assert_false(link_tx_left(b.worker[2]));
	link_tx_flush(b.worker[0], b.now);
	assert_false(link_tx_left(b.worker[2])); /* 32 of 40 are sent */
	link_tx_flush(b.worker[0], b.now);
	assert_true(link_tx_left(b.worker[2]));
	for (i = 0; i < 40; i++)
		expect_ack(&b, 0, i);
	/* the worker that sends counts the packets */
	assert_int_equal(c2->tx_packets, 0);
	assert_int_equal(c0->tx_packets, 40);
	/* worker 0 stops: the ring fills up, worker 2 waits, then drops */
	link_tx_flush(b.worker[2], b.now);
	for (i = 0; i < 1000 && send_ack(&b, 2, &path, i); i++)
		;
	assert_in_range(i, 512, 512 + LINK_BURST);
	b.now += 260 * MS;
	link_tx_flush(b.worker[2], b.now);
	assert_int_equal(c2->tx_full, LINK_BURST);
	bench_close(&b);
}

/* A QP sends to its own port. No switch would send such a frame back. */
static void
test_port_reaches_itself(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	struct path path = path_to_peer(b, true);
	struct av av = path.av;
	struct error err;
	unsigned int i;

	av.dgid = av.sgid;
	path_init(&path, &av, 0x11, 0x12);
	assert_int_equal(link_neighbour(b->link, 0, &av.sgid, &av.dgid, &path.neighbour, &err), 0);
	for (i = 0; i < 40; i++)
		assert_true(send_ack(b, 0, &path, i));
	link_tx_flush(b->worker[0], b->now);
	bench_expect_nothing(b);
	assert_int_equal(bench_poll(b, 0), 32);
	assert_int_equal(b->pkts[31]->psn, 31);
	/* such frames and received ones take turns */
	bench_inject(b, ROCEV2_ACK);
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(b->pkts[0]->psn, 0x12);
	assert_int_equal(bench_poll(b, 0), 8);
	assert_int_equal(b->pkts[7]->psn, 39);
	assert_int_equal(bench_poll(b, 0), 0);
	assert_int_equal(c->tx_packets, 40);
	assert_int_equal(c->rx_packets, 41);
	/* the queue of such frames is bounded, too */
	for (i = 0; send_ack(b, 0, &path, i); i++)
		assert_true(i < 1000);
	assert_int_equal(i, 512);
	assert_int_equal(c->tx_full, 0);
}

/* The path of the answer to a datagram from our own port has only the MAC of the datagram. */
static void
test_answer_to_itself_needs_no_neighbour(void **state)
{
	struct bench *b = *state;
	struct path path = path_to_peer(b, true);
	struct av av = path.av;

	av.dgid = av.sgid;
	memcpy(av.dmac, av.smac, sizeof(av.dmac));
	path_init(&path, &av, 1, 1);
	path.neighbour = PATH_NO_NEIGHBOUR;
	assert_true(send_ack(b, 0, &path, 7));
	link_tx_flush(b->worker[0], b->now);
	bench_expect_nothing(b);
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(b->pkts[0]->psn, 7);
}

int
main(void)
{
#define WITH_BENCH(t) cmocka_unit_test_setup_teardown(t, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_BENCH(test_packet_leaves_on_flush_complete),
		WITH_BENCH(test_full_batch_leaves_by_itself),
		WITH_BENCH(test_unresolved_next_hop_is_a_counted_drop),
		cmocka_unit_test(test_vlan_and_priority_are_sent),
		cmocka_unit_test(test_full_queue_holds_back_then_drops),
		cmocka_unit_test(test_bytes_are_counted_when_a_burst_leaves_in_parts),
		cmocka_unit_test(test_no_buffer_is_counted_and_nothing_else),
		WITH_BENCH(test_used_buffer_leaves_as_a_new_one),
		WITH_BENCH(test_packet_above_the_mtu_is_refused),
		WITH_BENCH(test_sending_in_one_step_gives_the_same_bytes),
		WITH_BENCH(test_no_packet_has_an_icrc_that_is_off),
		WITH_BENCH(test_packet_not_committed_is_not_sent),
		cmocka_unit_test(test_worker_without_a_queue_hands_over),
		WITH_BENCH(test_port_reaches_itself),
		WITH_BENCH(test_answer_to_itself_needs_no_neighbour),
	};

	int failed = cmocka_run_group_tests(tests, bench_eal, NULL);

	/* all tests hold for tx_send(), too */
	in_one_step = true;
	return failed + cmocka_run_group_tests(tests, NULL, bench_eal_cleanup);
}
