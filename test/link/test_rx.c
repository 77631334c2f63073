/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Received frames: which are for us, and the one verdict of each frame that is not. */

#include <stdlib.h>
#include <string.h>

#include "base/common_case.h"

#include "bench.h"
#include "link/guard.h"
#include "wire/wire.h"

#define TO_US "020000000002 020000000001 "
#define ARP                                                                                        \
	"ffffffffffff 020000000001 0806 0001080006040001"                                          \
	"020000000001 0a000001 000000000000 0a000002"

static void
test_transport_packet_comes_back_parsed(void **state)
{
	struct bench *b = *state;
	const struct packet *p;
	char text[GID_STRLEN];

	bench_verdict(b, ROCEV2_ACK, VERDICT_COUNT);
	p = b->pkts[0];
	assert_int_equal(p->opcode, RC_ACK);
	assert_int_equal(p->dest_qpn, 0x456);
	assert_int_equal(p->psn, 0x12);
	assert_int_equal(p->msn, 7);
	assert_int_equal(p->udp_sport, 0xC123);
	assert_int_equal(p->encap, ENCAP_ROCEV2_IPV4);
	assert_string_equal(gid_print(&p->sgid, text), "10.0.0.1");
	assert_string_equal(gid_print(&p->dgid, text), "10.0.0.2");
	assert_int_equal(p->port, 0);
	assert_int_equal(p->sl, 0);
	assert_int_equal(p->rx_time, b->now);
	assert_ptr_equal(p, rte_mbuf_to_priv(p->mbuf));
	bench_verdict(b, ROCEV2_IPV6_ACK, VERDICT_COUNT);
	assert_int_equal(b->pkts[0]->encap, ENCAP_ROCEV2_IPV6);
}

static void
test_every_other_frame_has_its_verdict(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, "020000000002 0200000000", VERDICT_RUNT);
	bench_verdict(b, TO_US "0800", VERDICT_RUNT);
	bench_verdict(b, TO_US "0800 45000030", VERDICT_RUNT);
	bench_verdict(b, TO_US "86dd 60000000", VERDICT_RUNT);
	bench_verdict(b, TO_US "0806 0001", VERDICT_RUNT);
	bench_verdict(b, "020000000003 020000000001 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_MAC);
	/* LLDP's group MAC */
	bench_verdict(b, "0180c200000e 020000000001 88cc 0207", VERDICT_NOT_OUR_MAC);
	/* from a group */
	bench_verdict(b, "020000000002 030000000001 0800" ROCEV2_ACK_L3, VERDICT_SOURCE);
	/* our address in a broadcast frame: RFC 1122 3.3.6 */
	bench_verdict(b, "ffffffffffff 020000000001 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_MAC);
	/* to 10.0.0.3 and to fe80::3 */
	bench_verdict(b,
		TO_US "0800 4500003000004000401126ba0a0000010a000003"
		      "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_NOT_OUR_IP);
	bench_verdict(b,
		TO_US
		"86dd 60000000001c1140 fe800000000000000000000000000001fe800000000000000000000000000003"
		"c12312b7001c0000 1100ffff0000045600000012 1f000007 9a185e68",
		VERDICT_NOT_OUR_IP);
	bench_verdict(b, TO_US "88f7 0000", VERDICT_ETHERTYPE);
	bench_verdict(b, ROCEV1_ACK, VERDICT_ETHERTYPE); /* RoCEv1 is not configured */
	/* IPv6 behind IPv4's EtherType, and vice versa */
	bench_verdict(b,
		TO_US
		"0800 60000000001c1140 fe800000000000000000000000000001fe800000000000000000000000000002",
		VERDICT_IP_HEADER);
	bench_verdict(b,
		TO_US "86dd 4500003000004000401126bb0a0000010a000002"
		      "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_IP_HEADER);
	/* the TTL is changed, the checksum is not */
	bench_verdict(b,
		TO_US "0800 45000030000040003f1126bb0a0000010a000002"
		      "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_IP_CHECKSUM);
	/* more fragments; TCP; DNS */
	bench_verdict(b, TO_US "0800 4500001d00012000401146cd0a0000010a000002 000112b7000961 2178",
		VERDICT_IP_FRAGMENT);
	bench_verdict(b,
		TO_US
		"0800 4500002800010000400666cd0a0000010a000002001400500000000000000000500220007b7c0000",
		VERDICT_IP_PROTOCOL);
	bench_verdict(b, TO_US "0800 4500001d00010000401166cd0a0000010a000002 00010035000973a378",
		VERDICT_UDP_PORT);
}

/*
 * Frames that differ in one place from an accepted one, with correct checksums: the port's template
 * of common frames must not accept them.
 */
static void
test_frames_wrong_in_one_place_are_dropped(void **state)
{
	struct bench *b = *state;

#define TAIL "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085"
	bench_verdict(b, TO_US "0800" ROCEV2_ACK_L3, VERDICT_COUNT);
	/* the first and the last byte of the MAC; its group bit */
	bench_verdict(b, "420000000002 020000000001 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_MAC);
	bench_verdict(b, "0200000000ff 020000000001 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_MAC);
	bench_verdict(b, "030000000002 020000000001 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_MAC);
	/* each byte of the EtherType */
	bench_verdict(b, TO_US "0801" ROCEV2_ACK_L3, VERDICT_ETHERTYPE);
	bench_verdict(b, TO_US "0900" ROCEV2_ACK_L3, VERDICT_ETHERTYPE);
	/* version 5 */
	bench_verdict(b, TO_US "0800 5500003000004000401116bb0a0000010a000002" TAIL,
		VERDICT_IP_HEADER);
	/* more fragments; the last one, at 8 and at 65528 - 32768 */
	bench_verdict(b, TO_US "0800 4500003000002000401146bb0a0000010a000002" TAIL,
		VERDICT_IP_FRAGMENT);
	bench_verdict(b, TO_US "0800 4500003000000001401166ba0a0000010a000002" TAIL,
		VERDICT_IP_FRAGMENT);
	bench_verdict(b, TO_US "0800 4500003000001000401156bb0a0000010a000002" TAIL,
		VERDICT_IP_FRAGMENT);
	/* no fragment, no DF, but the reserved bit: accepted */
	bench_verdict(b, TO_US "0800 45000030000080004011e6ba0a0000010a000002" TAIL, VERDICT_COUNT);
	/* UDP-Lite */
	bench_verdict(b, TO_US "0800 4500003000004000408826440a0000010a000002" TAIL,
		VERDICT_IP_PROTOCOL);
	/* the first and the last byte of the address: 11.0.0.2, 10.0.0.255; a group, 234.0.0.2 */
	bench_verdict(b, TO_US "0800 4500003000004000401125bb0a0000010b000002" TAIL,
		VERDICT_NOT_OUR_IP);
	bench_verdict(b, TO_US "0800 4500003000004000401125be0a0000010a0000ff" TAIL,
		VERDICT_NOT_OUR_IP);
	bench_verdict(b, TO_US "0800 4500003000004000401146ba0a000001ea000002" TAIL, VERDICT_COUNT);
	/* each byte of the port: 4790, 5047 */
	bench_verdict(b,
		TO_US "0800 4500003000004000401126bb0a0000010a000002"
		      "c12312b6001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_UDP_PORT);
	bench_verdict(b,
		TO_US "0800 4500003000004000401126bb0a0000010a000002"
		      "c12313b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_UDP_PORT);
	/* UDP's length one off; the IP datagram longer than the frame */
	bench_verdict(b,
		TO_US "0800 4500003000004000401126bb0a0000010a000002"
		      "c12312b7001d0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_UDP_LENGTH);
	bench_verdict(b,
		TO_US "0800 4500003100004000401126ba0a0000010a000002"
		      "c12312b7001d0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_IP_HEADER);
	/* a frame of 57 bytes, one less than a BTH and its ICRC have; of 58: an ACK has an AETH */
	bench_verdict(b,
		TO_US "0800 4500002b00004000401126c00a0000010a000002"
		      "c12312b700170000 1100ffff0000045600000012 1f0000",
		VERDICT_LENGTH);
	bench_verdict(b,
		TO_US "0800 4500002c00004000401126bf0a0000010a000002"
		      "c12312b700180000 1100ffff0000045600000012 76f32085",
		VERDICT_LENGTH);
#undef TAIL
}

/* Bytes of an earlier, longer frame in the buffer are not read as part of the frame. */
static void
test_a_short_frame_ends_where_it_ends(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	struct rte_mbuf *m = bench_mbuf(b, ROCEV2_ACK);

	m->data_len = 13;
	m->pkt_len = 13;
	bench_inject_mbuf(b, 0, m);
	assert_int_equal(bench_poll(b, 0), 0);
	assert_int_equal(c->verdict[VERDICT_RUNT], 1);
	m = bench_mbuf(b, ROCEV2_ACK);
	m->data_len = 57;
	m->pkt_len = 57;
	bench_inject_mbuf(b, 0, m);
	assert_int_equal(bench_poll(b, 0), 0);
	assert_int_equal(c->verdict[VERDICT_IP_HEADER], 1);
}

/* Frames with IPv4 options, or to a port's second address, do not match the template. */
static void
test_uncommon_valid_frames_are_accepted(void **state)
{
	struct bench b;

	(void)state;
	bench_config(&b);
	assert_true(gid_parse("10.0.0.7", &b.cfg.port[0].addr[2].gid));
	b.cfg.port[0].addr[2].prefix_len = 24;
	b.cfg.port[0].num_addr = 3;
	bench_open(&b);
	/* to 10.0.0.7 */
	bench_verdict(&b,
		TO_US "0800 4500003000004000401126b60a0000010a000007"
		      "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_COUNT);
	assert_int_equal(b.pkts[0]->dgid.raw[15], 7);
	assert_int_equal(b.pkts[0]->psn, 0x12);
	/* to 10.0.0.2 with four bytes of options */
	bench_verdict(&b,
		TO_US "0800 4600003400004000401123b60a0000010a00000201010100"
		      "c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085",
		VERDICT_COUNT);
	assert_int_equal(b.pkts[0]->psn, 0x12);
	assert_int_equal(b.pkts[0]->icrc_len, 48);
	bench_close(&b);
}

static void
test_ethernet_padding_is_not_payload(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, ROCEV2_ACK "0000000000000000", VERDICT_COUNT);
	assert_int_equal(b->pkts[0]->payload_len, 0);
	assert_int_equal(b->pkts[0]->icrc_len, 44);
}

static void
test_rocev1_where_configured(void **state)
{
	struct bench b;

	(void)state;
	bench_config(&b);
	b.cfg.port[0].rocev1 = true;
	bench_open(&b);
	bench_verdict(&b, ROCEV1_ACK, VERDICT_COUNT);
	assert_int_equal(b.pkts[0]->encap, ENCAP_ROCEV1);
	/* to fe80::3 */
	bench_verdict(&b,
		TO_US
		"8915 6000000000141b40 fe800000000000000000000000000001fe800000000000000000000000000003"
		"1100ffff0000045600000012 1f000007 4bee0997",
		VERDICT_NOT_OUR_IP);
	/* each address has a RoCEv1 GID, too, after the RoCEv2 ones */
	assert_int_equal(link_port_attr(b.link, 0)->num_gids, 4);
	assert_int_equal(link_port_attr(b.link, 0)->gid[1].type, GID_ROCEV2);
	assert_int_equal(link_port_attr(b.link, 0)->gid[2].type, GID_ROCEV1);
	bench_close(&b);
}

static void
test_untagged_port_accepts_priority_tags_only(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, TO_US "8100 a000 0800" ROCEV2_ACK_L3, VERDICT_COUNT);
	assert_int_equal(b->pkts[0]->sl, 5);
	bench_verdict(b, TO_US "8100 a00a 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_VLAN);
	bench_verdict(b, TO_US "8100", VERDICT_NOT_OUR_VLAN);
	/* a tag within a tag */
	bench_verdict(b, TO_US "8100 a000 8100 000a 0800" ROCEV2_ACK_L3, VERDICT_ETHERTYPE);
}

static struct rte_mbuf *
stripped(struct bench *b, uint16_t tci)
{
	struct rte_mbuf *m = bench_mbuf(b, ROCEV2_ACK);

	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = tci;
	return m;
}

/* The same for tags that the PMD has stripped. */
static void
test_untagged_port_checks_stripped_tags(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);

	bench_inject_mbuf(b, 0, stripped(b, 0xA000));
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(b->pkts[0]->sl, 5);
	bench_inject_mbuf(b, 0, stripped(b, 0xA00A));
	assert_int_equal(bench_poll(b, 0), 0);
	assert_int_equal(c->verdict[VERDICT_NOT_OUR_VLAN], 1);
}

static void
test_tagged_port_accepts_its_vlan_only(void **state)
{
	struct rte_mbuf *m;
	struct bench b;

	(void)state;
	bench_config(&b);
	b.cfg.port[0].vlan = 10;
	bench_open(&b);
	assert_int_equal(link_port_attr(b.link, 0)->vlan, 10);
	bench_verdict(&b, TO_US "8100 600a 0800" ROCEV2_ACK_L3, VERDICT_COUNT);
	assert_int_equal(b.pkts[0]->sl, 3);
	bench_verdict(&b, TO_US "8100 600b 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_VLAN);
	bench_verdict(&b, TO_US "8100 6000 0800" ROCEV2_ACK_L3, VERDICT_NOT_OUR_VLAN);
	bench_verdict(&b, ROCEV2_ACK, VERDICT_NOT_OUR_VLAN);
	/* a tag that the PMD has stripped */
	m = bench_mbuf(&b, ROCEV2_ACK);
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 0x800A;
	bench_inject_mbuf(&b, 0, m);
	assert_int_equal(bench_poll(&b, 0), 1);
	assert_int_equal(b.pkts[0]->sl, 4);
	/* answers have the tag again: echo request, reply */
	m = bench_mbuf(&b,
		TO_US
		"0800 45000026000700000301a3ce0a0000010a0000020800c90612340001706f6c63612070696e67");
	m->ol_flags = RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
	m->vlan_tci = 10;
	bench_inject_mbuf(&b, 0, m);
	assert_int_equal(bench_poll(&b, 0), 0);
	bench_expect(&b,
		"020000000001 020000000002 8100000a 0800"
		"4500002600070000400166ce0a0000020a0000010000d10612340001706f6c63612070696e6700000000");
	bench_close(&b);
}

/* A frame in three segments, of which the first ends within the Ethernet header. */
static struct rte_mbuf *
chained(struct bench *b)
{
	struct rte_mbuf *first = bench_mbuf(b, "020000000002 0200");
	struct rte_mbuf *second =
		bench_mbuf(b, "00000001 0800 4500003000004000401126bb0a0000010a00");
	struct rte_mbuf *third =
		bench_mbuf(b, "0002 c12312b7001c0000 1100ffff0000045600000012 1f000007 76f32085");

	assert_int_equal(rte_pktmbuf_chain(first, second), 0);
	assert_int_equal(rte_pktmbuf_chain(first, third), 0);
	return first;
}

static void
test_chained_frame_becomes_linear(void **state)
{
	struct bench *b = *state;
	enum verdict why;

	bench_inject_mbuf(b, 0, chained(b));
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(b->pkts[0]->dest_qpn, 0x456);
	assert_true(wire_crc_ok(b->pkts[0], &why));
	assert_int_equal(((struct rte_mbuf *)b->pkts[0]->mbuf)->nb_segs, 1);
	assert_int_equal(rte_mempool_in_use_count(b->mp), 0);
}

/* Each buffer returns to its pool when its last reference is dropped. */
static void
test_buffers_go_back_to_their_pools(void **state)
{
	struct rte_mempool *other = rte_pktmbuf_pool_create("other", 64, 0, sizeof(struct packet),
		RTE_PKTMBUF_HEADROOM + 2048, SOCKET_ID_ANY);
	struct bench *b = *state;
	struct rte_mbuf *m[4], *pad;
	unsigned int i;

	assert_non_null(other);
	for (i = 0; i < 4; i++)
		m[i] = bench_mbuf(b, ROCEV2_ACK);
	/* of another pool; with a second reference; with padding in a second segment */
	rte_pktmbuf_free(m[1]);
	m[1] = rte_pktmbuf_copy(m[0], other, 0, UINT32_MAX);
	rte_mbuf_refcnt_update(m[2], 1);
	pad = bench_mbuf(b, "0000");
	assert_int_equal(rte_pktmbuf_chain(m[3], pad), 0);
	for (i = 0; i < 4; i++)
		bench_inject_mbuf(b, 0, m[i]);
	assert_int_equal(bench_poll(b, 0), 4);
	/* the general case copies a chained frame even if only its padding is in another buffer */
	assert_int_equal(rte_mempool_in_use_count(b->mp), general_case ? 2 : 4);
	assert_int_equal(rte_mempool_in_use_count(other), 1);
	bench_free(b);
	assert_int_equal(rte_mempool_in_use_count(other), 0);
	assert_int_equal(rte_mempool_in_use_count(b->mp), 1);
	assert_int_equal(rte_mbuf_refcnt_read(m[2]), 1);
	rte_pktmbuf_free(m[2]);
	/* no buffer has a second segment any more */
	for (i = 0; i < rte_mempool_avail_count(b->mp); i++) {
		struct rte_mbuf *n = rte_pktmbuf_alloc(b->mp);

		assert_int_equal(n->nb_segs, 1);
		assert_null(n->next);
		rte_pktmbuf_free(n);
	}
	rte_mempool_free(other);
}

static void
test_chained_frame_without_a_buffer_is_counted(void **state)
{
	const struct link_counters *c;
	struct rte_mbuf *held[64];
	struct rte_mempool *mp;
	struct bench b;
	unsigned int n;

	(void)state;
	bench_config(&b);
	b.cfg.port[0].mbufs = 64;
	bench_open(&b);
	mp = rte_mempool_lookup("polca_mbuf_0");
	for (n = 0; mp == NULL && n < 100; n++) {
		char name[32];

		snprintf(name, sizeof(name), "polca_mbuf_%u", n);
		mp = rte_mempool_lookup(name);
	}
	assert_non_null(mp);
	for (n = 0; n < 64 && (held[n] = rte_pktmbuf_alloc(mp)) != NULL; n++)
		;
	assert_null(rte_pktmbuf_alloc(mp));
	bench_inject_mbuf(&b, 0, chained(&b));
	assert_int_equal(bench_poll(&b, 0), 0);
	c = link_worker_counters(b.worker[0], 0);
	assert_int_equal(c->verdict[VERDICT_NO_MBUF], 1);
	assert_int_equal(c->rx_packets, 1);
	rte_pktmbuf_free_bulk(held, n);
	bench_close(&b);
}

static void
test_counters_sum_to_packets_seen(void **state)
{
	const char *frames[] = { ROCEV2_ACK, ROCEV1_ACK, TO_US "88f7 0000", TO_US "0800",
		"020000000003 020000000001 0800", ROCEV2_IPV6_ACK, ARP };
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	uint64_t sum = 0, bytes = 0;
	uint8_t buf[128];
	unsigned int i;

	for (i = 0; i < RTE_DIM(frames); i++) {
		bench_inject(b, frames[i]);
		bytes += hex_bytes(frames[i], buf, sizeof(buf));
	}
	assert_int_equal(bench_poll(b, 0), 2); /* these are counted by the engine */
	for (i = 0; i < VERDICT_COUNT; i++)
		sum += c->verdict[i];
	assert_int_equal(c->rx_packets, 7);
	assert_int_equal(sum + 2, 7);
	assert_int_equal(c->rx_bytes, bytes);
}

static void
test_queues_beyond_the_workers_are_served(void **state)
{
	struct bench *b = *state; /* two queues, one worker */

	bench_inject_mbuf(b, 0, bench_mbuf(b, ROCEV2_ACK));
	bench_inject_mbuf(b, 1, bench_mbuf(b, ROCEV2_ACK));
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(bench_poll(b, 0), 1);
	assert_int_equal(bench_poll(b, 0), 0);
}

static void
test_each_worker_has_its_queue(void **state)
{
	struct bench b;

	(void)state;
	bench_config(&b);
	b.cfg.workers = 3; /* the third has none */
	bench_open(&b);
	bench_inject_mbuf(&b, 1, bench_mbuf(&b, ROCEV2_ACK));
	assert_int_equal(bench_poll(&b, 0), 0);
	assert_int_equal(bench_poll(&b, 2), 0);
	assert_int_equal(bench_poll(&b, 1), 1);
	assert_int_equal(link_worker_counters(b.worker[1], 0)->rx_packets, 1);
	bench_close(&b);
}

#ifdef LINK_GUARDED
static void
test_bytes_around_a_frame_are_guarded(void **state)
{
	struct bench *b = *state;
	uint8_t *frame, *end;

	bench_verdict(b, ROCEV2_ACK, VERDICT_COUNT);
	frame = rte_pktmbuf_mtod((struct rte_mbuf *)b->pkts[0]->mbuf, uint8_t *);
	end = frame + ((struct rte_mbuf *)b->pkts[0]->mbuf)->data_len;
	assert_true(__asan_address_is_poisoned(frame - 1));
	assert_false(__asan_address_is_poisoned(frame));
	assert_false(__asan_address_is_poisoned(end - 1));
	assert_true(__asan_address_is_poisoned(end));
	bench_free(b);
	assert_false(__asan_address_is_poisoned(frame - 1));
	assert_false(__asan_address_is_poisoned(end));
}
#endif

int
main(void)
{
#define WITH_BENCH(t) cmocka_unit_test_setup_teardown(t, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_BENCH(test_transport_packet_comes_back_parsed),
		WITH_BENCH(test_every_other_frame_has_its_verdict),
		WITH_BENCH(test_frames_wrong_in_one_place_are_dropped),
		WITH_BENCH(test_a_short_frame_ends_where_it_ends),
		cmocka_unit_test(test_uncommon_valid_frames_are_accepted),
		WITH_BENCH(test_ethernet_padding_is_not_payload),
		cmocka_unit_test(test_rocev1_where_configured),
		WITH_BENCH(test_untagged_port_accepts_priority_tags_only),
		WITH_BENCH(test_untagged_port_checks_stripped_tags),
		cmocka_unit_test(test_tagged_port_accepts_its_vlan_only),
		WITH_BENCH(test_chained_frame_becomes_linear),
		WITH_BENCH(test_buffers_go_back_to_their_pools),
		cmocka_unit_test(test_chained_frame_without_a_buffer_is_counted),
		WITH_BENCH(test_counters_sum_to_packets_seen),
		WITH_BENCH(test_queues_beyond_the_workers_are_served),
		cmocka_unit_test(test_each_worker_has_its_queue),
#ifdef LINK_GUARDED
		WITH_BENCH(test_bytes_around_a_frame_are_guarded),
#endif
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
