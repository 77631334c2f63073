/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Settings of a native IB port by subnet management, published as port attributes. */

#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "ib.h"

static const struct port_attr *
attr(struct bench *b)
{
	return link_port_attr(b->link, 0);
}

static void
expect_gid(const struct port_attr *a, unsigned int i, const char *text)
{
	char buf[GID_STRLEN];

	assert_string_equal(gid_print(&a->gid[i].gid, buf), text);
	assert_int_equal(a->gid[i].type, GID_IB);
}

static void
test_attributes_before_any_setting(void **state)
{
	const struct port_attr *a;
	struct bench b;

	(void)state;
	ib_config(&b);
	bench_open(&b);
	a = attr(&b);
	assert_true(a->ib);
	assert_false(a->up);
	assert_int_equal(a->state, PORT_STATE_DOWN);
	assert_int_equal(a->ethertype, 0x88B5);
	assert_int_equal(a->lid, 0);
	assert_int_equal(a->mtu, 1500);
	assert_int_equal(a->active_mtu, 1024);
	assert_int_equal(a->subnet_timeout, 18);
	assert_int_equal(a->num_pkeys, 1);
	assert_int_equal(a->pkey[0], 0xFFFF);
	/* EUI-64 of 02:00:00:00:00:02 */
	assert_true(a->guid == UINT64_C(0x000000fffe000002));
	assert_true(a->gid_prefix == UINT64_C(0xfe80000000000000));
	assert_int_equal(a->num_gids, 1);
	expect_gid(a, 0, "fe80::ff:fe00:2");
	bench_close(&b);
}

static void
test_guid_and_pkeys_of_the_configuration(void **state)
{
	struct bench b;

	(void)state;
	ib_config(&b);
	b.cfg.port[0].guid = UINT64_C(0x0002c90300001234);
	b.cfg.port[0].pkeys[0] = 0x8001;
	b.cfg.port[0].pkeys[1] = 0x7FFF;
	b.cfg.port[0].num_pkeys = 2;
	bench_open(&b);
	assert_true(attr(&b)->guid == UINT64_C(0x0002c90300001234));
	expect_gid(attr(&b), 0, "fe80::2:c903:0:1234");
	assert_int_equal(attr(&b)->num_pkeys, 2);
	assert_int_equal(attr(&b)->pkey[1], 0x7FFF);
	bench_close(&b);
}

static void
test_every_setting_becomes_an_attribute_at_once(void **state)
{
	struct bench *b = *state;
	struct port_settings s = {
		.state = PORT_STATE_ARMED,
		.lid = 0x1234,
		.lmc = 3,
		.sm_lid = 0x4567,
		.sm_sl = 9,
		.subnet_timeout = 20,
		.mtu = 512,
		.gid_prefix = UINT64_C(0xfec0000000000001),
		.guid = { 0x11, 0, 0x33 },
		.num_guids = 4,
		.pkey = { 0x8001, 0, 0x8003 },
		.num_pkeys = 5,
		.sl_to_vl = { 0, 1, 2, [15] = 7 },
	};
	const struct port_attr *before = attr(b), *a;

	link_port_set(b->worker[0], 0, &s);
	a = attr(b);
	assert_ptr_not_equal(a, before);
	assert_int_equal(before->lid, 0x10); /* readers of the old attributes see no change */
	assert_string_equal(a->name, "port0");
	assert_true(a->ib);
	assert_int_equal(a->state, PORT_STATE_ARMED);
	assert_int_equal(a->lid, 0x1234);
	assert_int_equal(a->lmc, 3);
	assert_int_equal(a->sm_lid, 0x4567);
	assert_int_equal(a->sm_sl, 9);
	assert_int_equal(a->subnet_timeout, 20);
	assert_int_equal(a->active_mtu, 512);
	assert_true(a->gid_prefix == UINT64_C(0xfec0000000000001));
	assert_memory_equal(a->sl_to_vl, s.sl_to_vl, sizeof(s.sl_to_vl));
	/* tables keep their indices and end at the last entry in use */
	assert_int_equal(a->num_gids, 3);
	expect_gid(a, 0, "fec0:0:0:1::11");
	expect_gid(a, 1, "::");
	expect_gid(a, 2, "fec0:0:0:1::33");
	assert_int_equal(a->gid[0].prefix_len, 64);
	assert_int_equal(a->num_pkeys, 3);
	assert_int_equal(a->pkey[0], 0x8001);
	assert_int_equal(a->pkey[1], 0);
	assert_int_equal(a->pkey[2], 0x8003);
	assert_int_equal(port_pkey_find(a, 0x8003), 2);
	assert_int_equal(port_pkey_find(a, 0), -1);
}

static void
test_tables_have_one_entry_at_least_and_no_more_than_there_is_room(void **state)
{
	struct bench *b = *state;
	struct port_settings s = ib_settings(PORT_STATE_ACTIVE, 0x10, 0);
	unsigned int i;

	s.num_guids = s.num_pkeys = 0;
	link_port_set(b->worker[0], 0, &s);
	assert_int_equal(attr(b)->num_gids, 1);
	expect_gid(attr(b), 0, "::");
	assert_int_equal(attr(b)->num_pkeys, 1);
	assert_int_equal(attr(b)->pkey[0], 0);
	for (i = 0; i < PORT_GIDS_MAX; i++)
		s.guid[i] = i + 1;
	for (i = 0; i < PORT_PKEYS_MAX; i++)
		s.pkey[i] = i + 1;
	s.num_guids = s.num_pkeys = 1000;
	link_port_set(b->worker[0], 0, &s);
	assert_int_equal(attr(b)->num_gids, PORT_GIDS_MAX);
	assert_int_equal(attr(b)->num_pkeys, PORT_PKEYS_MAX);
	expect_gid(attr(b), PORT_GIDS_MAX - 1, "fe80::20");
}

static void
test_mtu_is_limited_by_the_netdev(void **state)
{
	struct bench *b = *state;
	struct port_settings s = ib_settings(PORT_STATE_ACTIVE, 0x10, 0);

	s.mtu = 4096;
	link_port_set(b->worker[0], 0, &s);
	assert_int_equal(attr(b)->mtu, 1500);
	assert_int_equal(attr(b)->active_mtu, 1024);
	s.mtu = 256;
	link_port_set(b->worker[0], 0, &s);
	assert_int_equal(attr(b)->active_mtu, 256);
}

static void
test_port_is_up_when_it_is_active(void **state)
{
	struct bench *b = *state;
	uint8_t s;

	for (s = PORT_STATE_DOWN; s <= PORT_STATE_ACTIVE; s++) {
		ib_set(b, s, 0x10, 0);
		assert_int_equal(attr(b)->state, s);
		assert_int_equal(attr(b)->up, s == PORT_STATE_ACTIVE);
	}
}

static void
settings_look(struct bench *b)
{
	b->now += 250 * MS;
	link_tick(b->worker[0], b->now);
}

static void
test_port_is_down_while_its_link_is(void **state)
{
	struct bench *b = *state;

	assert_true(attr(b)->up);
	assert_int_equal(rte_eth_dev_set_link_down(link_ethdev(b->link, 0)), 0);
	settings_look(b);
	assert_int_equal(attr(b)->state, PORT_STATE_DOWN);
	assert_false(attr(b)->up);
	assert_int_equal(attr(b)->lid, 0x10);
	/* settings made while the link is down apply when it comes up */
	ib_set(b, PORT_STATE_ARMED, 0x20, 0);
	assert_int_equal(attr(b)->state, PORT_STATE_DOWN);
	assert_int_equal(attr(b)->lid, 0x20);
	assert_int_equal(rte_eth_dev_set_link_up(link_ethdev(b->link, 0)), 0);
	settings_look(b);
	assert_int_equal(attr(b)->state, PORT_STATE_ARMED);
}

static void
test_roce_port_is_active_or_down(void **state)
{
	struct bench *b = *state;

	settings_look(b);
	assert_false(attr(b)->ib);
	assert_int_equal(attr(b)->state, PORT_STATE_ACTIVE);
	assert_int_equal(attr(b)->subnet_timeout, 18);
	assert_int_equal(rte_eth_dev_set_link_down(link_ethdev(b->link, 0)), 0);
	settings_look(b);
	assert_int_equal(attr(b)->state, PORT_STATE_DOWN);
	assert_false(attr(b)->up);
}

/*
 * There are 64 copies of the attributes, one of them in use. A replaced copy is not written for
 * 500 ms. A change that finds no free copy waits; of several the last one is published.
 */
static void
test_copies_rest_before_they_are_rewritten(void **state)
{
	const struct port_attr *first, *last;
	struct bench b;
	uint16_t lid;

	(void)state;
	ib_config(&b);
	bench_open(&b);
	bench_poll(&b, 0);
	first = attr(&b);
	for (lid = 1; lid <= 63; lid++) {
		ib_set(&b, PORT_STATE_ACTIVE, lid, 0);
		assert_int_equal(attr(&b)->lid, lid);
	}
	last = attr(&b);
	ib_set(&b, PORT_STATE_ACTIVE, 64, 0);
	ib_set(&b, PORT_STATE_ACTIVE, 65, 0);
	assert_ptr_equal(attr(&b), last);
	assert_int_equal(last->lid, 63);
	assert_int_equal(first->lid, 0);
	b.now += 499 * MS;
	link_tick(b.worker[0], b.now);
	assert_ptr_equal(attr(&b), last);
	assert_int_equal(first->lid, 0);
	b.now += 1 * MS;
	link_tick(b.worker[0], b.now);
	assert_ptr_equal(attr(&b), first);
	assert_int_equal(first->lid, 65);
	/* published once: no change waits any more */
	b.now += 1 * MS;
	link_tick(b.worker[0], b.now);
	assert_ptr_equal(attr(&b), first);
	bench_close(&b);
}

int
main(void)
{
#define WITH_IB(t) cmocka_unit_test_setup_teardown(t, ib_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_attributes_before_any_setting),
		cmocka_unit_test(test_guid_and_pkeys_of_the_configuration),
		WITH_IB(test_every_setting_becomes_an_attribute_at_once),
		WITH_IB(test_tables_have_one_entry_at_least_and_no_more_than_there_is_room),
		WITH_IB(test_mtu_is_limited_by_the_netdev),
		WITH_IB(test_port_is_up_when_it_is_active),
		WITH_IB(test_port_is_down_while_its_link_is),
		cmocka_unit_test_setup_teardown(test_roce_port_is_active_or_down, bench_setup,
			bench_teardown),
		cmocka_unit_test(test_copies_rest_before_they_are_rewritten),
	};

	return cmocka_run_group_tests(tests, bench_eal, bench_eal_cleanup);
}
