/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * ARP, neighbour discovery and echo: requests that a port answers itself. Scapy made the frames of
 * both sides.
 */

#include <errno.h>
#include <stdio.h>
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

#define SOLICITATION_FROM_GROUP                                                                    \
	"3333ff000002 020000000001 86dd 6000000000203aff ff020000000000000000000000000001"         \
	"ff0200000000000000000001ff000002 87007a1500000000 fe800000000000000000000000000002"       \
	"0101020000000001"
#define ECHO6_TO_ALL_NODES                                                                         \
	TO_US "86dd 6000000000123a03 fe800000000000000000000000000001"                             \
	      "ff020000000000000000000000000001 8000533412340001 706f6c63612070696e67"

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

	/* for another address; a reply; hardware type 6 */
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

/* A frame of 42 bytes leaves with 60: the other 18 are padding, and counted as such. */
static void
test_padding_of_answers_is_counted(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);
	uint64_t bytes = c->tx_bytes, pad = c->tx_pad;

	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000002",
		VERDICT_ARP);
	assert_int_equal(c->tx_bytes - bytes, 60);
	assert_int_equal(c->tx_pad - pad, 60 - 42);
	bench_discard(b);
}

static struct link_addr
address(const char *text, uint8_t prefix_len)
{
	struct link_addr a = { .prefix_len = prefix_len };

	assert_true(gid_parse(text, &a.gid));
	return a;
}

/* The port answers for an address that it gets while it runs, announces it, and keeps its GIDs. */
static void
test_added_address_is_answered_for(void **state)
{
	struct bench *b = *state;
	struct link_addr ipv4 = address("10.0.0.3", 24), ipv6 = address("fe80::3", 64);
	char announcement[128];
	const struct port_attr *attr;
	const char *sent;
	struct error err;

	snprintf(announcement, sizeof(announcement), "%s",
		hex_compact("ffffffffffff 020000000002 0806 0001080006040001020000000002 0a000003"
			    "000000000000 0a000003" PAD18));
	assert_int_equal(link_check_address(b->link, 0, &ipv4, &err), 0);
	assert_int_equal(link_port_attr(b->link, 0)->num_gids, 2);
	link_add_address(b->worker[0], 0, &ipv4);
	link_add_address(b->worker[0], 0, &ipv6);
	attr = link_port_attr(b->link, 0);
	assert_int_equal(attr->num_gids, 4);
	assert_true(gid_equal(&attr->gid[2].gid, &ipv4.gid));
	assert_true(gid_equal(&attr->gid[3].gid, &ipv6.gid));
	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000003",
		VERDICT_ARP);
	bench_expect(b,
		TO_PEER "0806 0001080006040002020000000002 0a000003 020000000001 0a000001" PAD18);
	bench_verdict(b,
		"3333ff000003 020000000001 86dd 6000000000203aff"
		"fe800000000000000000000000000001 ff0200000000000000000001ff000003"
		"87007a9500000000 fe800000000000000000000000000003 0101020000000001",
		VERDICT_ND);
	assert_string_not_equal(bench_sent(b), "");
	bench_expect_nothing(b);
	/* to all: who has 10.0.0.3? Tell 10.0.0.3 */
	link_tick(b->worker[0], b->now + BENCH_HZ);
	link_tx_flush(b->worker[0], b->now + BENCH_HZ);
	do
		sent = bench_sent(b);
	while (sent[0] != '\0' && strcmp(sent, announcement) != 0);
	assert_string_equal(sent, announcement);
}

/* Nobody is answered at it any more, its GID is gone, and it can be added again. */
static void
test_removed_address_is_not_answered_for(void **state)
{
	struct bench *b = *state;
	struct link_addr more = address("10.0.0.3", 24);
	const char *who_has = "ffffffffffff 020000000001 0806 0001080006040001"
			      "020000000001 0a000001 000000000000 0a000003";
	unsigned int i;

	for (i = 0; i < 2; i++) {
		link_add_address(b->worker[0], 0, &more);
		assert_int_equal(link_port_attr(b->link, 0)->num_gids, 3);
		bench_verdict(b, who_has, VERDICT_ARP);
		bench_expect(b,
			TO_PEER
			"0806 0001080006040002020000000002 0a000003 020000000001 0a000001" PAD18);
		link_remove_last_address(b->worker[0], 0);
		assert_int_equal(link_port_attr(b->link, 0)->num_gids, 2);
		bench_verdict(b, who_has, VERDICT_ARP);
		bench_expect_nothing(b);
	}
}

static void
test_address_that_cannot_be_added(void **state)
{
	struct bench *b = *state;
	struct link_addr again = address("10.0.0.2", 24), more = address("10.0.0.99", 24);
	char text[16];
	struct error err;
	unsigned int i;

	assert_int_equal(link_check_address(b->link, 0, &again, &err), -EEXIST);
	assert_string_equal(err.text, "port0: addresses: it has 10.0.0.2 already");
	for (i = 2; i < LINK_ADDRS_MAX; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u", 10 + i);
		again = address(text, 24);
		assert_int_equal(link_check_address(b->link, 0, &again, &err), 0);
		link_add_address(b->worker[0], 0, &again);
	}
	assert_int_equal(link_check_address(b->link, 0, &more, &err), -ENOSPC);
	assert_string_equal(err.text, "port0: addresses: there are 16 already");
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
	/* an option of length zero, which makes the checksum 0x0100 larger */
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

/* An echo request to 10.0.0.2 from this IPv4 address, with its header checksum. */
static void
echo_from(struct bench *b, uint32_t source, enum verdict v)
{
	uint32_t sum = 0x4500 + 0x0026 + 0x0007 + 0x0301 + (source >> 16) + (source & 0xFFFF) +
		0x0A00 + 0x0002;
	char frame[256];

	sum = (sum & 0xFFFF) + (sum >> 16);
	sum = ~((sum & 0xFFFF) + (sum >> 16)) & 0xFFFF;
	snprintf(frame, sizeof(frame),
		TO_US "0800 45000026000700000301%04x%08x0a000002 0800c90612340001 "
		      "706f6c63612070696e67",
		sum, source);
	bench_verdict(b, frame, v);
}

/* Sources that no host can have, and our own address: there is nobody to answer. */
static void
test_echo_from_an_impossible_source_is_not_answered(void **state)
{
	static const uint32_t none[] = { 0x00000000, 0x00000001, 0x7F000001, 0xE0000001, 0xEFFFFFFF,
		0xF0000001, 0xFFFFFFFF, 0x0A0000FF };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < RTE_DIM(none); i++)
		echo_from(b, none[i], VERDICT_SOURCE);
	echo_from(b, 0x0A000002, VERDICT_ICMP);
	bench_expect_nothing(b);
	echo_from(b, 0x0A000001, VERDICT_ICMP);
	bench_expect(b, ECHO4_REPLY);
}

/* Answers go to the source, so a group as the source would have one frame answered to all. */
static void
test_group_source_mac_is_not_answered(void **state)
{
	struct bench *b = *state;

	bench_verdict(b,
		"ffffffffffff ffffffffffff 0806 0001080006040001"
		"020000000001 0a000001 000000000000 0a000002",
		VERDICT_SOURCE);
	bench_verdict(b,
		"ffffffffffff 020000000001 0806 0001080006040001"
		"ffffffffffff 0a000001 000000000000 0a000002",
		VERDICT_SOURCE);
	bench_verdict(b,
		"020000000002 01005e000001 0800 45000026000700000301a3ce0a0000010a000002"
		"0800c90612340001 706f6c63612070696e67",
		VERDICT_SOURCE);
	bench_expect_nothing(b);
}

/* An ARP request from this sender address. */
static void
arp_from(struct bench *b, const char *sender, enum verdict v)
{
	char frame[128];

	snprintf(frame, sizeof(frame),
		"ffffffffffff 020000000001 0806 0001080006040001"
		"020000000001 %s 000000000000 0a000002",
		sender);
	bench_verdict(b, frame, v);
}

/* RFC 5227: the sender address of a probe is zero, and it is answered. */
static void
test_arp_from_an_impossible_source_is_not_answered(void **state)
{
	static const char *const none[] = { "00000001", "7f000001", "e0000001", "ffffffff",
		"0a0000ff" };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < RTE_DIM(none); i++)
		arp_from(b, none[i], VERDICT_SOURCE);
	bench_expect_nothing(b);
	arp_from(b, "00000000", VERDICT_ARP);
	bench_expect(b,
		TO_PEER "0806 0001080006040002020000000002 0a000002 020000000001 00000000" PAD18);
}

/* A neighbour solicitation from a group, and an echo request to one in a frame to our MAC. */
static void
test_ipv6_to_or_from_a_group_is_not_answered(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, SOLICITATION_FROM_GROUP, VERDICT_SOURCE);
	bench_verdict(b, ECHO6_TO_ALL_NODES, VERDICT_ICMP);
	bench_expect_nothing(b);
}

/* Each asks in the name of the host with this number. */
static void
echo_of(struct bench *b, unsigned int host)
{
	echo_from(b, 0x0A000000 + host, VERDICT_ICMP);
}

static void
arp_of(struct bench *b, unsigned int host)
{
	char sender[16];

	snprintf(sender, sizeof(sender), "0a0000%02x", host);
	arp_from(b, sender, VERDICT_ARP);
}

static void
solicitation_of(struct bench *b, unsigned int host)
{
	char frame[256];

	snprintf(frame, sizeof(frame),
		"3333ff000002 020000000001 86dd 6000000000203aff fe8000000000000000000000000000%02x"
		"ff0200000000000000000001ff000002 8700%04x00000000"
		"fe800000000000000000000000000002 0101020000000001",
		host, 0x7A98 - host);
	bench_verdict(b, frame, VERDICT_ND);
}

/* A host that floods does not use up the answers for others. */
static void
test_answers_are_limited_per_source(void **state)
{
	static void (*const asks[])(struct bench * b, unsigned int host) = { echo_of, arp_of,
		solicitation_of };
	struct bench *b = *state;
	unsigned int i, kind, others;

	for (kind = 0; kind < RTE_DIM(asks); kind++) {
		for (i = 0; i < 200; i++)
			asks[kind](b, 1);
		bench_discard(b);
		asks[kind](b, 1);
		bench_expect_nothing(b);
		for (i = 0, others = 0; i < 16; i++) {
			asks[kind](b, 16 + i);
			others += *bench_sent(b) != '\0';
		}
		assert_true(others >= 14); /* one or two may share the flooder's budget */
	}
}

/* 1000 per second, 128 at once */
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

	/* about a packet to port 53: it was not RoCE */
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
 * The kernel of our host, which has our address, refuses the peer's packets. We see its message if
 * the device shows frames that the host sends.
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
test_new_link_state_is_published(void **state)
{
	struct bench *b = *state;
	const struct port_attr *before = link_port_attr(b->link, 0);
	struct link_state s;
	unsigned int i;

	for (i = 0; i < 5; i++) { /* the announcements after the start */
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
	assert_true(before->up); /* the old attributes do not change */
	link_state(b->link, 0, &s);
	assert_false(s.up);
	assert_int_equal(s.rx_queues, 2);
	assert_string_equal(s.driver, "net_ring");
	assert_int_equal(rte_eth_dev_set_link_up(link_ethdev(b->link, 0)), 0);
	b->now += BENCH_HZ;
	link_tick(b->worker[0], b->now);
	assert_true(link_port_attr(b->link, 0)->up);
	/* the port announces its addresses again */
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
		WITH_BENCH(test_added_address_is_answered_for),
		WITH_BENCH(test_removed_address_is_not_answered_for),
		WITH_BENCH(test_address_that_cannot_be_added),
		WITH_BENCH(test_neighbour_solicitation_is_answered),
		WITH_BENCH(test_duplicate_address_detection_is_answered_to_all),
		WITH_BENCH(test_malformed_neighbour_discovery_is_dropped),
		WITH_BENCH(test_echo_is_answered),
		WITH_BENCH(test_echo_takes_off_ethernet_padding),
		WITH_BENCH(test_malformed_echo_is_dropped),
		WITH_BENCH(test_padding_of_answers_is_counted),
		WITH_BENCH(test_echo_from_an_impossible_source_is_not_answered),
		WITH_BENCH(test_group_source_mac_is_not_answered),
		WITH_BENCH(test_arp_from_an_impossible_source_is_not_answered),
		WITH_BENCH(test_ipv6_to_or_from_a_group_is_not_answered),
		WITH_BENCH(test_answers_are_limited_per_source),
		WITH_BENCH(test_echo_replies_are_limited),
		WITH_BENCH(test_port_unreachable_for_roce_is_noticed),
		WITH_BENCH(test_own_kernel_refusing_in_our_name_is_noticed),
		WITH_BENCH(test_addresses_are_announced_at_the_start),
		WITH_BENCH(test_new_link_state_is_published),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
