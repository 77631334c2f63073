/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ARP, neighbour discovery and echo: what a port answers by itself. Frames of both sides were
 * written by Scapy.
 */

#include <string.h>

#include <rte_ethdev.h>

#include "bench.h"

#define TO_US   "020000000002 020000000001 "
#define TO_PEER "020000000001 020000000002 "
#define PAD18   "000000000000000000000000000000000000"

#define ECHO4                                                                                      \
	TO_US "0800 45000026000700000301a3ce0a0000010a000002"                                      \
	      "0800c90612340001 706f6c63612070696e67"
#define ECHO4_REPLY                                                                                \
	TO_PEER "0800 4500002600070000400166ce0a0000020a000001"                                    \
		"0000d10612340001 706f6c63612070696e67 00000000 0000 00 00"
#define ECHO6                                                                                      \
	TO_US "86dd 6000000000123a03 fe800000000000000000000000000001"                             \
	      "fe800000000000000000000000000002 800053b512340001 706f6c63612070696e67"
#define ECHO6_REPLY                                                                                \
	TO_PEER "86dd 6000000000123a40 fe800000000000000000000000000002"                           \
		"fe800000000000000000000000000001 810052b512340001 706f6c63612070696e67"

static void
test_arp_request_for_our_address_is_answered(void **state)
{
	struct bench *b = *state;

	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000002",
		VERDICT_ARP);
	bench_expect(b,
		TO_PEER "0806 0001080006040002020000000002 0a000002 020000000001 0a000001" PAD18);
	bench_expect_nothing(b);
}

static void
test_other_arp_is_not_answered(void **state)
{
	struct bench *b = *state;

	/* for somebody else; a reply; hardware type 6 */
	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000003",
		VERDICT_ARP);
	bench_verdict(b, TO_US "0806 0001080006040002020000000001 0a000001 020000000002 0a000002",
		VERDICT_ARP);
	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0006080006040001"
		"020000000001 0a000001 000000000000 0a000002",
		VERDICT_ETHERTYPE);
	bench_expect_nothing(b);
}

static void
test_neighbour_solicitation_is_answered(void **state)
{
	struct bench *b = *state;

	bench_verdict(b,
		"3333ff000002 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000002"
		"87007a9700000000 fe800000000000000000000000000002 0101020000000001",
		VERDICT_ND);
	bench_expect(b,
		TO_PEER
		"86dd 6000000000203afffe800000000000000000000000000002 fe800000000000000000000000000001"
		"8800181a60000000 fe800000000000000000000000000002 0201020000000002");
	bench_expect_nothing(b);
}

/* RFC 4861 7.2.4: to all nodes, not solicited */
static void
test_duplicate_address_detection_is_answered_to_all(void **state)
{
	struct bench *b = *state;

	bench_verdict(b,
		"3333ff000002 020000000001 86dd 6000000000183aff"
		"00000000000000000000000000000000 ff0200000000000000000001ff000002"
		"87007c2300000000 fe800000000000000000000000000002",
		VERDICT_ND);
	bench_expect(b,
		"333300000001 020000000002 86dd 6000000000203aff"
		"fe800000000000000000000000000002 ff020000000000000000000000000001"
		"8800579820000000 fe800000000000000000000000000002 0201020000000002");
}

static void
test_malformed_neighbour_discovery_is_dropped(void **state)
{
	struct bench *b = *state;

	/* hop limit 64: it passed a router (RFC 4861 7.1.1) */
	bench_verdict(b,
		"3333ff000002 020000000001 86dd 6000000000203a40"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000002"
		"87007a9700000000 fe800000000000000000000000000002 0101020000000001",
		VERDICT_IP_HEADER);
	/* checksum */
	bench_verdict(b,
		"3333ff000002 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000002"
		"87007a9600000000 fe800000000000000000000000000002 0101020000000001",
		VERDICT_IP_CHECKSUM);
	/* an option of length zero: the checksum is 0x0100 larger for it */
	bench_verdict(b,
		"3333ff000002 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000002"
		"87007a9800000000 fe800000000000000000000000000002 0100020000000001",
		VERDICT_IP_HEADER);
	/* to a solicited-node group that is not ours */
	bench_verdict(b,
		"3333ff000003 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000003"
		"87007a9600000000 fe800000000000000000000000000003 0101020000000001",
		VERDICT_NOT_OUR_IP);
	bench_expect_nothing(b);
}

static void
test_echo_is_answered(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, ECHO4, VERDICT_ICMP);
	bench_expect(b, ECHO4_REPLY);
	bench_verdict(b, ECHO6, VERDICT_ICMP);
	bench_expect(b, ECHO6_REPLY);
	bench_expect_nothing(b);
}

static void
test_echo_takes_off_ethernet_padding(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, ECHO4 "aaaaaaaaaaaaaaaaaaaa", VERDICT_ICMP);
	bench_expect(b, ECHO4_REPLY);
}

static void
test_malformed_echo_is_dropped(void **state)
{
	struct bench *b = *state;

	/* ICMP checksum; header checksum; length beyond the frame; fragment */
	bench_verdict(b,
		TO_US
		"0800 45000026000700000301a3ce0a0000010a0000020800c90712340001 706f6c63612070696e67",
		VERDICT_IP_CHECKSUM);
	bench_verdict(b,
		TO_US
		"0800 45000026000700000301a3cf0a0000010a0000020800c90612340001 706f6c63612070696e67",
		VERDICT_IP_CHECKSUM);
	bench_verdict(b,
		TO_US
		"0800 45000126000700000301a2ce0a0000010a0000020800c90612340001 706f6c63612070696e67",
		VERDICT_IP_HEADER);
	bench_verdict(b,
		TO_US
		"0800 4500002600072000030183ce0a0000010a0000020800c90612340001 706f6c63612070696e67",
		VERDICT_IP_FRAGMENT);
	bench_verdict(b,
		TO_US "86dd 6000000000123a03 fe800000000000000000000000000001"
		      "fe800000000000000000000000000002 800053b612340001 706f6c63612070696e67",
		VERDICT_IP_CHECKSUM);
	bench_expect_nothing(b);
}

/* 1000 a second, 128 at once */
static void
test_echo_replies_are_limited(void **state)
{
	struct bench *b = *state;
	unsigned int i, replies = 0;

	for (i = 0; i < 200; i++)
		bench_verdict(b, ECHO4, VERDICT_ICMP);
	while (*bench_sent(b) != '\0')
		replies++;
	assert_int_equal(replies, 128);
	b->now += BENCH_HZ / 1000; /* one more a millisecond later */
	bench_verdict(b, ECHO4, VERDICT_ICMP);
	bench_verdict(b, ECHO4, VERDICT_ICMP);
	bench_expect(b, ECHO4_REPLY);
	bench_expect_nothing(b);
}

static void
test_port_unreachable_for_roce_is_noticed(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);

	/* about our packet to port 53: not ours to say */
	bench_verdict(b,
		TO_US "0800 4500003800010000400166c20a0000010a000002 0303112d00000000"
		      "4500003000010000401166ba0a0000020a000001 c1230035001c2a5b",
		VERDICT_ICMP);
	assert_int_equal(c->port_unreachable, 0);
	bench_verdict(b,
		TO_US "0800 4500003800010000400166c20a0000010a000002 0303112d00000000"
		      "4500003000010000401166ba0a0000020a000001 c12312b7001c17d9",
		VERDICT_ICMP);
	assert_int_equal(c->port_unreachable, 1);
	bench_verdict(b,
		TO_US
		"86dd 60000000004c3a40 fe800000000000000000000000000001"
		"fe800000000000000000000000000002 0104904100000000"
		"60000000001c1140 fe800000000000000000000000000002 fe800000000000000000000000000001"
		"c12312b7001c2ed7 0000000000000000000000000000000000000000",
		VERDICT_ICMP);
	assert_int_equal(c->port_unreachable, 2);
	link_tick(b->worker[0], b->now);
}

/*
 * Our own host's kernel, in our name, to our peer: seen where a device shows what the host sends.
 */
static void
test_own_kernel_refusing_in_our_name_is_noticed(void **state)
{
	struct bench *b = *state;

	bench_verdict(b,
		TO_PEER "0800 4500003800010000400166c20a0000020a000001 0303112d00000000"
			"4500003000010000401166ba0a0000010a000002 c12312b7001c17d9",
		VERDICT_NOT_OUR_MAC);
	assert_int_equal(link_worker_counters(b->worker[0], 0)->port_unreachable, 1);
}

static void
test_addresses_are_announced_at_the_start(void **state)
{
	struct bench *b = *state;

	link_tick(b->worker[0], b->now);
	link_tx_flush(b->worker[0], b->now);
	bench_expect(b,
		"ffffffffffff 020000000002 0806 0001080006040001"
		"020000000002 0a000002 000000000000 0a000002" PAD18);
	bench_expect(b,
		"333300000001 020000000002 86dd 6000000000203aff"
		"fe800000000000000000000000000002 ff020000000000000000000000000001"
		"8800579820000000 fe800000000000000000000000000002 0201020000000002");
	bench_expect_nothing(b);
}

static void
test_link_state_is_published_anew(void **state)
{
	struct bench *b = *state;
	const struct port_attr *before = link_port_attr(b->link, 0);
	struct link_state s;
	unsigned int i;

	for (i = 0; i < 5; i++) { /* the announcements of the start */
		link_tick(b->worker[0], b->now);
		bench_poll(b, 0);
		bench_discard(b);
		b->now += BENCH_HZ;
	}
	link_tick(b->worker[0], b->now);
	link_tx_flush(b->worker[0], b->now);
	bench_expect_nothing(b);
	assert_ptr_equal(link_port_attr(b->link, 0), before); /* nothing changed */
	assert_true(before->up);
	assert_int_equal(rte_eth_dev_set_link_down(link_ethdev(b->link, 0)), 0);
	b->now += BENCH_HZ;
	link_tick(b->worker[0], b->now);
	assert_ptr_not_equal(link_port_attr(b->link, 0), before);
	assert_false(link_port_attr(b->link, 0)->up);
	assert_true(before->up); /* who still holds it sees what it was */
	link_state(b->link, 0, &s);
	assert_false(s.up);
	assert_int_equal(s.rx_queues, 2);
	assert_string_equal(s.driver, "net_ring");
	assert_int_equal(rte_eth_dev_set_link_up(link_ethdev(b->link, 0)), 0);
	b->now += BENCH_HZ;
	link_tick(b->worker[0], b->now);
	assert_true(link_port_attr(b->link, 0)->up);
	/* and tells the segment again where our addresses are */
	link_tx_flush(b->worker[0], b->now);
	bench_expect(b,
		"ffffffffffff 020000000002 0806 0001080006040001"
		"020000000002 0a000002 000000000000 0a000002" PAD18);
}

int
main(void)
{
#define WITH_BENCH(t) cmocka_unit_test_setup_teardown(t, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_BENCH(test_arp_request_for_our_address_is_answered),
		WITH_BENCH(test_other_arp_is_not_answered),
		WITH_BENCH(test_neighbour_solicitation_is_answered),
		WITH_BENCH(test_duplicate_address_detection_is_answered_to_all),
		WITH_BENCH(test_malformed_neighbour_discovery_is_dropped),
		WITH_BENCH(test_echo_is_answered),
		WITH_BENCH(test_echo_takes_off_ethernet_padding),
		WITH_BENCH(test_malformed_echo_is_dropped),
		WITH_BENCH(test_echo_replies_are_limited),
		WITH_BENCH(test_port_unreachable_for_roce_is_noticed),
		WITH_BENCH(test_own_kernel_refusing_in_our_name_is_noticed),
		WITH_BENCH(test_addresses_are_announced_at_the_start),
		WITH_BENCH(test_link_state_is_published_anew),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
