/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Received native InfiniBand frames: EtherType, LIDs, port states; learning of LID routes. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ib.h"

#define ACCEPTED VERDICT_COUNT

/* Expect these LID routes: "0x2=02000000000a 0x3=02000000000b!", where ! marks a fixed one. */
static void
expect_routes(struct bench *b, const char *want)
{
	char text[256] = "", *end = text;
	struct link_lid_info i;
	uint64_t cursor = 0;

	while (link_lid_next(b->link, 0, &cursor, &i))
		end += sprintf(end, "%s0x%x=%02x%02x%02x%02x%02x%02x%s", end == text ? "" : " ",
			i.lid, i.mac[0], i.mac[1], i.mac[2], i.mac[3], i.mac[4], i.mac[5],
			i.fixed ? "!" : "");
	assert_string_equal(text, want);
}

static void
test_native_packet_comes_back_parsed(void **state)
{
	struct bench *b = *state;
	const struct packet *p;
	char padded[512];

	bench_verdict(b, ib_frame(US A, 3, 0x10, 0x22, 1), ACCEPTED);
	p = b->pkts[0];
	assert_int_equal(p->encap, ENCAP_IB);
	assert_int_equal(p->vl, 3);
	assert_int_equal(p->slid, 0x22);
	assert_int_equal(p->dlid, 0x10);
	assert_int_equal(p->dest_qpn, 1);
	assert_int_equal(p->qkey, 0x80010000);
	assert_int_equal(p->payload_len, 8);
	assert_false(p->has_grh);
	assert_int_equal(p->port, 0);
	assert_memory_equal(p->smac, "\2\0\0\0\0\xA", 6);
	/* padding has its own counter */
	assert_int_equal(link_worker_counters(b->worker[0], 0)->rx_pad, 0);
	snprintf(padded, sizeof(padded), "%s 00000000", ib_frame(US A, 3, 0x10, 0x22, 1));
	bench_verdict(b, padded, ACCEPTED);
	assert_int_equal(link_worker_counters(b->worker[0], 0)->rx_pad, 4);
	/* broadcast by a sender that knows no route */
	bench_verdict(b, DATA(ALL A, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, DATA(B A, 0x10, 0x22), VERDICT_NOT_OUR_MAC);
}

static void
test_service_level_is_that_of_the_lrh(void **state)
{
	struct bench *b = *state;

	/* SL 9 in the LRH, priority 5 in the tag */
	bench_verdict(b,
		US A "8100 a000 88b5 0092 0010 000a 0022 6400ffff 00000001 00000000"
		     "80010000 00000001 0102030405060708 11223344 5566",
		ACCEPTED);
	assert_int_equal(b->pkts[0]->sl, 9);
}

static void
test_native_port_accepts_its_ethertype_only(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, ROCEV2_ACK, VERDICT_ETHERTYPE);
	bench_verdict(b, ROCEV2_IPV6_ACK, VERDICT_ETHERTYPE);
	bench_verdict(b, ROCEV1_ACK, VERDICT_ETHERTYPE);
	bench_verdict(b,
		ALL "020000000001 0806 0001080006040001020000000001 0a000001 000000000000 0a000002",
		VERDICT_ETHERTYPE);
	bench_verdict(b, US A "88b6 0002", VERDICT_ETHERTYPE);
	bench_expect_nothing(b);
}

static void
test_roce_port_drops_native_frames(void **state)
{
	struct bench *b = *state; /* a RoCE port */

	bench_verdict(b, DATA(US A, 0x10, 0x22), VERDICT_ETHERTYPE);
	bench_verdict(b, SMP(US A, 0xFFFF, 0xFFFF), VERDICT_ETHERTYPE);
}

static void
test_ethertype_as_configured(void **state)
{
	struct bench b;
	char text[512];

	(void)state;
	ib_config(&b);
	b.cfg.port[0].ethertype = 0x88B6;
	bench_open(&b);
	assert_int_equal(link_port_attr(b.link, 0)->ethertype, 0x88B6);
	bench_verdict(&b, SMP(US A, 0xFFFF, 0xFFFF), VERDICT_ETHERTYPE);
	strcpy(text, SMP(US A, 0xFFFF, 0xFFFF));
	memcpy(strstr(text, "88b5"), "88b6", 4);
	bench_verdict(&b, text, ACCEPTED);
	bench_close(&b);
}

static void
test_malformed_frames_have_their_verdict(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, US A "88b5 0002 0010 0002", VERDICT_RUNT);
	/* LVer 1; LNH 0 and 1: raw; PktLen beyond the frame's end */
	bench_verdict(b,
		US A "88b5 0102 0010 0007 0022 1100ffff0000045600000012 1f00000700000000 0000",
		VERDICT_GRH);
	bench_verdict(b,
		US A "88b5 0000 0010 0007 0022 1100ffff0000045600000012 1f00000700000000 0000",
		VERDICT_GRH);
	bench_verdict(b,
		US A "88b5 0001 0010 0007 0022 1100ffff0000045600000012 1f00000700000000 0000",
		VERDICT_GRH);
	bench_verdict(b,
		US A "88b5 0002 0010 0008 0022 1100ffff0000045600000012 1f00000700000000 0000",
		VERDICT_GRH);
	expect_routes(b, ""); /* nothing is learned from them */
}

/* smp-sma 1: own LID, any of the 2^LMC */
static void
test_own_lids_are_all_of_the_lmc(void **state)
{
	struct bench *b = *state;

	ib_set(b, PORT_STATE_ACTIVE, 0x10, 0);
	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x11, 0x22), VERDICT_NOT_OUR_LID);
	bench_verdict(b, DATA(US A, 0x0F, 0x22), VERDICT_NOT_OUR_LID);
	ib_set(b, PORT_STATE_ACTIVE, 0x10, 2);
	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x13, 0x22), ACCEPTED);
	bench_verdict(b, SMP(US A, 0x13, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x14, 0x22), VERDICT_NOT_OUR_LID);
	bench_verdict(b, DATA(US A, 0x0F, 0x22), VERDICT_NOT_OUR_LID);
	bench_verdict(b, SMP(US A, 0x14, 0x22), VERDICT_NOT_OUR_LID);
	/* no LID yet */
	ib_set(b, PORT_STATE_ACTIVE, 0, 7);
	bench_verdict(b, DATA(US A, 0, 0x22), VERDICT_NOT_OUR_LID);
	bench_verdict(b, DATA(US A, 0x10, 0x22), VERDICT_NOT_OUR_LID);
}

/* A base LID below 2^LMC: our LIDs would include LID 0, which no port may have. */
static void
test_lid_0_is_never_ours(void **state)
{
	struct bench *b = *state;

	ib_set(b, PORT_STATE_ACTIVE, 1, 2);
	bench_verdict(b, DATA(US A, 1, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 3, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 0, 0x22), VERDICT_NOT_OUR_LID);
}

/* DATA(), or an SMP, with a GRH from fe80::1, as from a router. */
static const char *
global(const char *dgid, bool smp)
{
	static char text[512];

	snprintf(text, sizeof(text),
		US A
		"88b5 %c003 0010 0014 0022 60000000 0020 1b 01"
		"fe800000000000000000000000000001 %s 6400ffff 0000000%c 00000000 80010000 00000001"
		"0102030405060708 11223344 5566",
		smp ? 'f' : '0', dgid, smp ? '0' : '1');
	return text;
}

static void
test_global_packets_are_for_our_gids(void **state)
{
	struct bench *b = *state;
	struct port_settings s = ib_settings(PORT_STATE_ACTIVE, 0x10, 0);

	s.gid_prefix = UINT64_C(0xfec0000000000001);
	s.guid[2] = 0xABCD;
	s.num_guids = 3;
	link_port_set(b->worker[0], 0, &s);
	bench_verdict(b, global("fec0000000000001 000000fffe000002", false), ACCEPTED);
	assert_true(b->pkts[0]->has_grh);
	bench_verdict(b, global("fec0000000000001 000000000000abcd", false), ACCEPTED);
	/* the GID with the default prefix */
	bench_verdict(b, global("fe80000000000000 000000fffe000002", false), ACCEPTED);
	/* a multicast GID */
	bench_verdict(b, global("ff12401bffff0000 0000000000000001", false), ACCEPTED);
	/* another port's GID, another subnet's, an unused table entry */
	bench_verdict(b, global("fec0000000000001 000000fffe000003", false), VERDICT_NOT_OUR_IP);
	bench_verdict(b, global("fec0000000000002 000000fffe000002", false), VERDICT_NOT_OUR_IP);
	bench_verdict(b, global("fe80000000000000 0000000000000000", false), VERDICT_NOT_OUR_IP);
	bench_verdict(b, global("0000000000000000 0000000000000000", false), VERDICT_NOT_OUR_IP);
	/* an SMP must have no GRH (smp-sma 1), but lib/mad checks this */
	bench_verdict(b, global("fec0000000000001 000000fffe000003", true), ACCEPTED);
}

/* smp-sma 1: the permissive LID is for SMPs */
static void
test_permissive_lid_is_for_smps(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, SMP(US A, 0xFFFF, 0xFFFF), ACCEPTED);
	bench_verdict(b, SMP(US A, 0xFFFF, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US A, 0xFFFF, 0x22), VERDICT_NOT_OUR_LID);
	ib_set(b, PORT_STATE_INIT, 0, 0);
	bench_verdict(b, SMP(ALL A, 0xFFFF, 0xFFFF), ACCEPTED);
}

static void
test_group_lids_are_for_the_group_s_queue_pair(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, ib_frame(ALL A, 0, 0xC000, 0x22, 0xFFFFFF), ACCEPTED);
	bench_verdict(b, ib_frame(ALL A, 0, 0xFFFE, 0x22, 0xFFFFFF), ACCEPTED);
	bench_verdict(b, ib_frame(ALL A, 0, 0xC000, 0x22, 1), VERDICT_NOT_OUR_LID);
	bench_verdict(b, ib_frame(ALL A, 0, 0xBFFF, 0x22, 0xFFFFFF), VERDICT_NOT_OUR_LID);
	bench_verdict(b, ib_frame(ALL A, 15, 0xC000, 0x22, 0xFFFFFF), VERDICT_NOT_OUR_LID);
}

/*
 * Valid data for our LID 0x22. Its CRCs, as those in test_ib_tx.c, were not computed by our code.
 */
#define VALID_DATA(icrc, vcrc)                                                                     \
	US A "88b5 0002 0022 000a 0010 6400ffff 00000001 00000000"                                 \
	     "80010000 00000001 0102030405060708" icrc vcrc

/* smp-sma 3: valid data makes an armed port active. All these frames are accepted. */
static void
test_valid_data_is_reported_to_an_armed_port(void **state)
{
	struct bench *b = *state;

	ib_set(b, PORT_STATE_ARMED, 0x22, 0);
	assert_false(link_port_heard_data(b->link, 0));
	bench_verdict(b, VALID_DATA("6352d92b", "57c8"), ACCEPTED);
	bench_verdict(b, VALID_DATA("6352d92a", "57c9"), ACCEPTED);
	bench_verdict(b, SMP(US A, 0x22, 0x10), ACCEPTED);
	bench_verdict(b, ib_frame(ALL A, 0, 0xC000, 0x10, 0xFFFFFF), ACCEPTED);
	assert_false(link_port_heard_data(b->link, 0));
	bench_verdict(b, VALID_DATA("6352d92a", "57c8"), ACCEPTED);
	assert_true(link_port_heard_data(b->link, 0));
	/* armed again, the port waits again; in other states it does not */
	ib_set(b, PORT_STATE_INIT, 0x22, 0);
	assert_false(link_port_heard_data(b->link, 0));
	bench_verdict(b, VALID_DATA("6352d92a", "57c8"), VERDICT_PORT_STATE);
	assert_false(link_port_heard_data(b->link, 0));
	ib_set(b, PORT_STATE_ACTIVE, 0x22, 0);
	bench_verdict(b, VALID_DATA("6352d92a", "57c8"), ACCEPTED);
	assert_false(link_port_heard_data(b->link, 0));
}

static void
test_data_needs_an_armed_or_active_port_and_smps_none(void **state)
{
	struct bench *b = *state;

	ib_set(b, PORT_STATE_DOWN, 0x10, 0);
	bench_verdict(b, DATA(US A, 0x10, 0x22), VERDICT_PORT_STATE);
	bench_verdict(b, SMP(US A, 0x10, 0x22), ACCEPTED);
	ib_set(b, PORT_STATE_INIT, 0x10, 0);
	bench_verdict(b, DATA(US A, 0x10, 0x22), VERDICT_PORT_STATE);
	bench_verdict(b, ib_frame(US A, 14, 0x10, 0x22, 0), VERDICT_PORT_STATE);
	bench_verdict(b, ib_frame(ALL A, 0, 0xC000, 0x22, 0xFFFFFF), VERDICT_PORT_STATE);
	bench_verdict(b, SMP(US A, 0x10, 0x22), ACCEPTED);
	ib_set(b, PORT_STATE_ARMED, 0x10, 0);
	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
	ib_set(b, PORT_STATE_ACTIVE, 0x10, 0);
	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
}

static void
test_source_lids_are_learned(void **state)
{
	struct bench *b = *state;

	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, SMP(US B, 0x10, 0xBFFF), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 1), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 1), ACCEPTED);
	expect_routes(b, "0x1=02000000000a 0x22=02000000000a 0xbfff=02000000000b");
	assert_int_equal(link_worker_counters(b->worker[0], 0)->lid_moved, 0);
}

static void
test_only_unicast_lids_of_others_are_learned(void **state)
{
	struct bench *b = *state;

	ib_set(b, PORT_STATE_ACTIVE, 0x10, 1);
	/* LID 0, the permissive LID, multicast LIDs */
	bench_verdict(b, DATA(US A, 0x10, 0), ACCEPTED);
	bench_verdict(b, SMP(US A, 0xFFFF, 0xFFFF), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 0xC000), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 0xFFFE), ACCEPTED);
	/* our own LID from another MAC */
	bench_verdict(b, DATA(US A, 0x10, 0x10), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 0x11), ACCEPTED);
	/* from our own MAC, and from a group MAC */
	bench_verdict(b, DATA(US US, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US "010000000001 ", 0x10, 0x23), VERDICT_SOURCE);
	/* not for us */
	bench_verdict(b, DATA(US A, 0x30, 0x24), VERDICT_NOT_OUR_LID);
	bench_verdict(b, DATA(B A, 0x10, 0x25), VERDICT_NOT_OUR_MAC);
	expect_routes(b, "");
}

static void
test_learned_lid_that_moves_is_counted(void **state)
{
	struct bench *b = *state;
	const struct link_counters *c = link_worker_counters(b->worker[0], 0);

	bench_verdict(b, DATA(US A, 0x10, 0x22), ACCEPTED);
	bench_verdict(b, DATA(US B, 0x10, 0x22), ACCEPTED);
	expect_routes(b, "0x22=02000000000b");
	assert_int_equal(c->lid_moved, 1);
	bench_verdict(b, DATA(US B, 0x10, 0x22), ACCEPTED);
	assert_int_equal(c->lid_moved, 1);
}

static void
test_fixed_lid_stays(void **state)
{
	struct bench *b = *state;
	struct error err = { 0 };

	/* a fixed route replaces a learned one */
	bench_verdict(b, DATA(US B, 0x10, 0x22), ACCEPTED);
	assert_int_equal(link_lid_set(b->link, 0, 0x22, (const uint8_t *)"\2\0\0\0\0\xA", &err), 0);
	expect_routes(b, "0x22=02000000000a!");
	bench_verdict(b, DATA(US B, 0x10, 0x22), ACCEPTED);
	expect_routes(b, "0x22=02000000000a!");
	assert_int_equal(link_worker_counters(b->worker[0], 0)->lid_moved, 0);
	/* after the fixed route is removed, the LID is learned again */
	assert_int_equal(link_lid_set(b->link, 0, 0x22, NULL, &err), 0);
	expect_routes(b, "");
	bench_verdict(b, DATA(US B, 0x10, 0x22), ACCEPTED);
	expect_routes(b, "0x22=02000000000b");
}

/*
 * Advance the clock. Each LID is checked every 30 s, and forgotten if silent since the last check.
 */
static void
ib_rx_pass(struct bench *b, unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < seconds * 4; i++) {
		b->now += 250 * MS;
		link_tick(b->worker[0], b->now);
	}
}

static void
test_silent_lids_are_forgotten(void **state)
{
	struct bench *b = *state;
	struct error err;

	assert_int_equal(link_lid_set(b->link, 0, 1, (const uint8_t *)"\2\0\0\0\0\xA", &err), 0);
	bench_verdict(b, DATA(US A, 0x10, 2), ACCEPTED);
	bench_verdict(b, DATA(US A, 0x10, 0xBFFF), ACCEPTED);
	ib_rx_pass(b, 30);
	expect_routes(b, "0x1=02000000000a! 0x2=02000000000a 0xbfff=02000000000a");
	bench_verdict(b, DATA(US A, 0x10, 0xBFFF), ACCEPTED);
	ib_rx_pass(b, 30);
	expect_routes(b, "0x1=02000000000a! 0xbfff=02000000000a");
	ib_rx_pass(b, 30);
	expect_routes(b, "0x1=02000000000a!");
	/* heard again from the same MAC: not counted as moved */
	assert_int_equal(link_worker_counters(b->worker[0], 0)->lid_moved, 0);
}

static void
test_fixed_lids_of_the_configuration(void **state)
{
	struct bench b;

	(void)state;
	ib_config(&b);
	b.cfg.port[0].lids[0] = (struct link_lid){ 7, { 2, 0, 0, 0, 0, 0xA } };
	b.cfg.port[0].lids[1] = (struct link_lid){ 0xBFFF, { 2, 0, 0, 0, 0, 0xB } };
	b.cfg.port[0].num_lids = 2;
	bench_open(&b);
	expect_routes(&b, "0x7=02000000000a! 0xbfff=02000000000b!");
	bench_close(&b);
}

static void
ib_rx_refused(struct bench *b, unsigned int port, uint16_t lid, const char *mac, const char *text)
{
	struct error err = { 0 };

	assert_int_equal(link_lid_set(b->link, port, lid, (const uint8_t *)mac, &err), -22);
	assert_string_equal(err.text, text);
}

static void
test_bad_routes_are_refused(void **state)
{
	struct bench *b = *state;

	ib_rx_refused(b, 0, 0, "\2\0\0\0\0\xA", "port0: lid: got 0x0, allowed 1..0xbfff");
	ib_rx_refused(b, 0, 0xC000, "\2\0\0\0\0\xA", "port0: lid: got 0xc000, allowed 1..0xbfff");
	ib_rx_refused(b, 0, 0xFFFF, NULL, "port0: lid: got 0xffff, allowed 1..0xbfff");
	ib_rx_refused(b, 0, 5, "\0\0\0\0\0\0",
		"port0: mac of LID 5: neither zero nor a group address is a port's");
	ib_rx_refused(b, 0, 5, "\1\0\0\0\0\1",
		"port0: mac of LID 5: neither zero nor a group address is a port's");
	ib_rx_refused(b, 1, 5, NULL, "port: got 1, allowed 0..0");
	expect_routes(b, "");
}

static void
test_roce_port_has_no_lid_routes(void **state)
{
	struct bench *b = *state;

	ib_rx_refused(b, 0, 5, "\2\0\0\0\0\xA",
		"port0: no native InfiniBand port: it has no LID routes");
	expect_routes(b, "");
}

int
main(void)
{
#define WITH_IB(t)   cmocka_unit_test_setup_teardown(t, ib_setup, bench_teardown)
#define WITH_ROCE(t) cmocka_unit_test_setup_teardown(t, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_IB(test_native_packet_comes_back_parsed),
		WITH_IB(test_service_level_is_that_of_the_lrh),
		WITH_IB(test_native_port_accepts_its_ethertype_only),
		WITH_ROCE(test_roce_port_drops_native_frames),
		cmocka_unit_test(test_ethertype_as_configured),
		WITH_IB(test_malformed_frames_have_their_verdict),
		WITH_IB(test_own_lids_are_all_of_the_lmc),
		WITH_IB(test_lid_0_is_never_ours),
		WITH_IB(test_global_packets_are_for_our_gids),
		WITH_IB(test_permissive_lid_is_for_smps),
		WITH_IB(test_group_lids_are_for_the_group_s_queue_pair),
		WITH_IB(test_valid_data_is_reported_to_an_armed_port),
		WITH_IB(test_data_needs_an_armed_or_active_port_and_smps_none),
		WITH_IB(test_source_lids_are_learned),
		WITH_IB(test_only_unicast_lids_of_others_are_learned),
		WITH_IB(test_learned_lid_that_moves_is_counted),
		WITH_IB(test_fixed_lid_stays),
		WITH_IB(test_silent_lids_are_forgotten),
		cmocka_unit_test(test_fixed_lids_of_the_configuration),
		WITH_IB(test_bad_routes_are_refused),
		WITH_ROCE(test_roce_port_has_no_lid_routes),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
