/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* P_Keys, GIDs, path MTU and violation counters of a port. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "../checked.h"
#include "port/allow_list.h"
#include "port/port.h"

static union gid
gid(const char *text)
{
	union gid g = { { 0 } };

	assert_true(gid_parse(text, &g));
	return g;
}

/* rc-transport 5.6 */
static void
test_pkey_matches_with_one_full_member(void **state)
{
	(void)state;
	assert_true(port_pkey_match(0xffff, 0xffff));
	assert_true(port_pkey_match(0xffff, 0x7fff));
	assert_true(port_pkey_match(0x7fff, 0xffff));
	assert_false(port_pkey_match(0x7fff, 0x7fff)); /* two limited members */
	assert_true(port_pkey_match(0x8001, 0x0001));
	assert_false(port_pkey_match(0x0001, 0x0001));
	assert_false(port_pkey_match(0x8001, 0x8002));
	assert_false(port_pkey_match(0xffff, 0xfffe));
	assert_false(port_pkey_match(0x8000, 0x8000)); /* the invalid P_Key */
	assert_false(port_pkey_match(0x8000, 0x0000));
}

static void
test_pkey_table_is_searched_by_match(void **state)
{
	struct port_attr p = { .pkey = { 0x0000, 0x8001, 0x7fff, 0xffff }, .num_pkeys = 4 };

	(void)state;
	assert_int_equal(port_pkey_find(&p, 0x0001), 1);
	assert_int_equal(port_pkey_find(&p, 0xffff), 2); /* the first that matches */
	assert_int_equal(port_pkey_find(&p, 0x7fff), 3); /* limited matches full only */
	assert_int_equal(port_pkey_find(&p, 0x8002), -1);
	assert_int_equal(port_pkey_find(&p, 0x0000), -1);
	p.num_pkeys = 3;
	assert_int_equal(port_pkey_find(&p, 0x7fff), -1);
}

static void
test_gid_is_found_by_address_and_type(void **state)
{
	struct port_attr p = { .num_gids = 3 };
	const union gid a = gid("10.0.0.1"), b = gid("fe80::1"), c = gid("fe80::2");

	(void)state;
	p.gid[0] = (struct port_gid){ .gid = a, .type = GID_ROCEV1 };
	p.gid[1] = (struct port_gid){ .gid = a, .type = GID_ROCEV2 };
	p.gid[2] = (struct port_gid){ .gid = b, .type = GID_ROCEV2 };
	assert_int_equal(port_gid_find(&p, &a, GID_ROCEV1), 0);
	assert_int_equal(port_gid_find(&p, &a, GID_ROCEV2), 1);
	assert_int_equal(port_gid_find(&p, &b, GID_ROCEV2), 2);
	assert_int_equal(port_gid_find(&p, &b, GID_ROCEV1), -1);
	assert_int_equal(port_gid_find(&p, &c, GID_ROCEV2), -1);
	p.num_gids = 2;
	assert_int_equal(port_gid_find(&p, &b, GID_ROCEV2), -1);
}

/* rc-transport 10: largest of 256..4096 in MTU - 80, as rxe */
static void
test_path_mtu_of_a_netdev_mtu(void **state)
{
	(void)state;
	assert_int_equal(port_mtu_to_pmtu(1500), 1024);
	assert_int_equal(port_mtu_to_pmtu(4200), 4096);
	assert_int_equal(port_mtu_to_pmtu(4176), 4096);
	assert_int_equal(port_mtu_to_pmtu(4175), 2048);
	assert_int_equal(port_mtu_to_pmtu(2128), 2048);
	assert_int_equal(port_mtu_to_pmtu(2127), 1024);
	assert_int_equal(port_mtu_to_pmtu(9000), 4096);
	assert_int_equal(port_mtu_to_pmtu(65535), 4096);
	assert_int_equal(port_mtu_to_pmtu(592), 512);
	assert_int_equal(port_mtu_to_pmtu(336), 256);
	assert_int_equal(port_mtu_to_pmtu(335), 0);
	assert_int_equal(port_mtu_to_pmtu(0), 0);
}

/* IBA 14.2.5.6, PortInfo.MTUCap: 1 to 5 are 256 to 4096 */
static void
test_codes_of_path_mtus(void **state)
{
	static const uint16_t bytes[] = { 0, 256, 512, 1024, 2048, 4096, 0, 0 };
	uint8_t code;

	(void)state;
	for (code = 0; code < 8; code++)
		assert_int_equal(port_mtu_bytes(code), bytes[code]);
	for (code = 1; code < 6; code++) {
		assert_int_equal(port_mtu_code(bytes[code]), code);
		assert_int_equal(port_mtu_code(bytes[code] - 1), code - 1);
	}
	assert_int_equal(port_mtu_code(65535), 5);
	assert_int_equal(port_mtu_bytes(255), 0);
}

static void
test_ipv4_is_mapped_into_a_gid(void **state)
{
	const uint8_t addr[4] = { 192, 168, 1, 2 };
	const uint8_t want[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 168, 1, 2 };
	union gid g = gid_from_ipv4(addr);

	(void)state;
	assert_memory_equal(g.raw, want, 16);
	assert_true(gid_is_ipv4(&g));
	g = gid("192.168.1.2");
	assert_memory_equal(g.raw, want, 16);
	g = gid("::ffff:192.168.1.2");
	assert_memory_equal(g.raw, want, 16);
	g = gid("::192.168.1.2");
	assert_false(gid_is_ipv4(&g));
}

static void
test_gid_of_a_host(void **state)
{
	static const struct {
		const char *gid;
		bool host;
	} cases[] = {
		{ "10.0.0.1", true },
		{ "223.255.255.255", true },
		{ "fe80::1", true },
		{ "2001:db8::1", true },
		{ "0.0.0.0", false },
		{ "0.1.2.3", false },
		{ "127.0.0.1", false },
		{ "224.0.0.1", false },
		{ "240.0.0.1", false },
		{ "255.255.255.255", false },
		{ "::", false },
		{ "::1", false },
		{ "ff02::1", false },
	};
	union gid gid;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(gid_parse(cases[i].gid, &gid));
		if (gid_is_host(&gid) != cases[i].host)
			fail_msg("%s", cases[i].gid);
	}
}

/* RFC 1122 3.2.1.3 */
static void
test_broadcast_address_is_no_source(void **state)
{
	static const struct {
		const char *source;
		bool host;
	} cases[] = {
		{ "10.0.1.255", false },
		{ "10.0.0.255", true }, /* of 10.0.0.0/23 it is a host */
		{ "10.1.0.63", false },
		{ "10.1.0.127", true }, /* of another subnet */
		{ "10.2.0.1", true }, /* RFC 3021: both addresses of a /31 are hosts */
		{ "10.3.0.1", true },
		{ "fd00::ff", true },
		{ "fd00::ffff:ffff:ffff:ffff", true },
		{ "127.0.0.1", false },
	};
	struct port_attr port = {
		.num_gids = 5,
		.gid = { { .prefix_len = 23 }, { .prefix_len = 26 }, { .prefix_len = 31 },
			{ .prefix_len = 32 }, { .prefix_len = 64 } },
	};
	static const char *const ours[] = { "10.0.0.1", "10.1.0.1", "10.2.0.0", "10.3.0.1",
		"fd00::1" };
	union gid gid;
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(ours); i++)
		assert_true(gid_parse(ours[i], &port.gid[i].gid));
	for (i = 0; i < RTE_DIM(cases); i++) {
		assert_true(gid_parse(cases[i].source, &gid));
		if (port_source_is_host(&port, &gid) != cases[i].host)
			fail_msg("%s", cases[i].source);
	}
}

static void
test_gid_prints_as_it_is_written(void **state)
{
	const char *const texts[] = { "10.0.0.1", "255.255.255.255", "fe80::1", "2001:db8::a:b",
		"::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" };
	char buf[GID_STRLEN];
	union gid g;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		g = gid(texts[i]);
		assert_string_equal(gid_print(&g, buf), texts[i]);
	}
	/* as the tools print a raw GID */
	g = gid("fe80:0000:0000:0000:0202:00ff:fe00:0001");
	assert_string_equal(gid_print(&g, buf), "fe80::202:ff:fe00:1");
}

static void
test_what_is_no_address_is_refused(void **state)
{
	const char *const texts[] = { "", "10.0.0", "10.0.0.256", "10.0.0.1/24", " 10.0.0.1",
		"fe80::1%eth0", "fe80:::1", "1:2:3:4:5:6:7:8:9", "polca", "10.0.0.1x" };
	union gid g;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(gid_parse(texts[i], &g));
	assert_false(gid_parse(NULL, &g));
}

static void
test_link_local_and_zero(void **state)
{
	union gid g = gid("fe80::1");

	(void)state;
	assert_true(gid_is_link_local(&g));
	g = gid("febf::1"); /* fe80::/10 ends here */
	assert_true(gid_is_link_local(&g));
	g = gid("fec0::1");
	assert_false(gid_is_link_local(&g));
	g = gid("2001:db8::1");
	assert_false(gid_is_link_local(&g));
	g = gid("169.254.1.1");
	assert_true(gid_is_link_local(&g));
	g = gid("169.253.1.1");
	assert_false(gid_is_link_local(&g));
	assert_false(gid_is_zero(&g));
	g = gid("::1");
	assert_false(gid_is_zero(&g));
	g = gid("1::");
	assert_false(gid_is_zero(&g));
	g = gid("::");
	assert_true(gid_is_zero(&g));
}

static void
test_prefix_counts_in_its_own_family(void **state)
{
	const struct {
		const char *a, *b;
		uint8_t prefix;
		bool same;
	} rows[] = {
		{ "10.0.0.1", "10.0.0.200", 24, true },
		{ "10.0.0.1", "10.0.1.1", 24, false },
		{ "10.0.0.1", "10.0.1.1", 23, true },
		{ "10.0.2.1", "10.0.1.1", 23, false },
		{ "10.0.0.1", "10.0.0.1", 32, true },
		{ "10.0.0.1", "10.0.0.0", 32, false },
		{ "10.0.0.1", "10.0.0.0", 31, true },
		{ "10.0.0.1", "192.168.0.1", 0, true },
		{ "10.0.0.1", "10.0.0.2", 64, false }, /* too long counts as 32 */
		{ "2001:db8::1", "2001:db8::ffff", 64, true },
		{ "2001:db8::1", "2001:db8:0:1::1", 64, false },
		{ "2001:db8::1", "2001:db8::2", 127, false },
		{ "2001:db8::1", "2001:db8::2", 126, true },
		{ "2001:db8::1", "2001:db8::1", 128, true },
		{ "2001:db8::1", "2001:db8::2", 255, false },
		{ "10.0.0.1", "fe80::1", 0, false }, /* two families */
		{ "fe80::1", "10.0.0.1", 0, false },
	};
	union gid a, b;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a = gid(rows[i].a);
		b = gid(rows[i].b);
		if (gid_same_subnet(&a, &b, rows[i].prefix) != rows[i].same)
			fail_msg("%s %s /%u", rows[i].a, rows[i].b, rows[i].prefix);
	}
}

/* RFC 4291, appendix A: the universal/local bit is inverted, FF FE in the middle */
static void
test_guid_of_a_mac(void **state)
{
	static const uint8_t universal[6] = { 0x34, 0x56, 0x78, 0x9A, 0xBC, 0xDE };
	static const uint8_t local[6] = { 0x02, 0, 0, 0, 0, 0x01 };

	(void)state;
	assert_true(port_eui64(universal) == UINT64_C(0x365678FFFE9ABCDE));
	assert_true(port_eui64(local) == UINT64_C(0x000000FFFE000001));
}

/* native IB tables keep unused entries in their places */
static void
test_unused_gid_is_not_found(void **state)
{
	struct port_attr p = { .num_gids = 2 };
	union gid zero = { .word = { 0, 0 } };

	(void)state;
	p.gid[0].type = p.gid[1].type = GID_IB;
	p.gid[1].gid = gid("fe80::1");
	assert_int_equal(port_gid_find(&p, &zero, GID_IB), -1);
	assert_int_equal(port_gid_find(&p, &p.gid[1].gid, GID_IB), 1);
}

static void
test_violation_counters_of_workers_add_up(void **state)
{
	struct port_violations a = { 0 }, b = { .pkey = 5, .qkey = 0x1fffe }, sum = { 0 };

	(void)state;
	port_violation(&a.pkey);
	port_violation(&a.pkey);
	port_violation(&a.qkey);
	port_violations_add(&sum, &a);
	port_violations_add(&sum, &b);
	assert_int_equal(sum.pkey, 7);
	assert_int_equal(sum.qkey, 0x1ffff);
}

static struct allow_prefix
prefix(const char *address, uint8_t len)
{
	struct allow_prefix p = { .prefix_len = len };

	p.gid = gid(address);
	return p;
}

static void
test_allow_list(void **state)
{
	const struct allow_list anybody = { .num_peers = 0 };
	struct allow_list some = { .num_peers = 2, .num_pkeys = 1, .pkey = { 0x8005 } };
	union gid near = gid("10.1.2.3"), far = gid("10.1.3.3"), six = gid("2001:db8::9"),
		  other = gid("2001:db9::9");

	(void)state;
	some.peer[0] = prefix("10.1.2.0", 24);
	some.peer[1] = prefix("2001:db8::", 32);
	assert_true(allow_list_admits(&anybody, &far, 0x7fff));
	assert_true(allow_list_admits(&anybody, NULL, 0x7fff));
	assert_true(allow_list_admits(&some, &near, 0x8005));
	assert_true(allow_list_admits(&some, &six, 0x0005)); /* a limited member */
	assert_false(allow_list_admits(&some, &near, 0x8006));
	assert_false(allow_list_admits(&some, &far, 0x8005));
	assert_false(allow_list_admits(&some, &other, 0x8005));
	assert_false(allow_list_admits(&some, NULL, 0x8005));
	assert_true(allow_list_admits_address(&some, &near));
	assert_false(allow_list_admits_address(&some, &far));
}

static void
admit_address(void *list, void *address)
{
	allow_list_admits_address(list, address);
}

static void
find_pkey(void *port, void *pkey)
{
	port_pkey_find(port, *(const uint16_t *)pkey);
}

/* A caller's mistake ends builds with checks: more entries than a table has. */
static void
test_tables_beyond_their_size_are_found(void **state)
{
	struct port_attr p = { .pkey = { 0xffff }, .num_pkeys = PORT_PKEYS_MAX };
	struct allow_list list = { .num_peers = ALLOW_PEERS_MAX };
	union gid address = gid("10.0.0.1");
	uint16_t pkey = 0xffff; /* found at once: nothing is read behind the table */

	(void)state;
	list.peer[0] = prefix("10.0.0.0", 24);
	assert_false(ends_process(find_pkey, &p, &pkey));
	assert_false(ends_process(admit_address, &list, &address));
	p.num_pkeys++;
	list.num_peers++;
	assert_int_equal(ends_process(find_pkey, &p, &pkey), CHECKED);
	assert_int_equal(ends_process(admit_address, &list, &address), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pkey_matches_with_one_full_member),
		cmocka_unit_test(test_pkey_table_is_searched_by_match),
		cmocka_unit_test(test_gid_is_found_by_address_and_type),
		cmocka_unit_test(test_path_mtu_of_a_netdev_mtu),
		cmocka_unit_test(test_codes_of_path_mtus),
		cmocka_unit_test(test_ipv4_is_mapped_into_a_gid),
		cmocka_unit_test(test_gid_of_a_host),
		cmocka_unit_test(test_broadcast_address_is_no_source),
		cmocka_unit_test(test_gid_prints_as_it_is_written),
		cmocka_unit_test(test_what_is_no_address_is_refused),
		cmocka_unit_test(test_link_local_and_zero),
		cmocka_unit_test(test_prefix_counts_in_its_own_family),
		cmocka_unit_test(test_guid_of_a_mac),
		cmocka_unit_test(test_unused_gid_is_not_found),
		cmocka_unit_test(test_violation_counters_of_workers_add_up),
		cmocka_unit_test(test_allow_list),
		cmocka_unit_test(test_tables_beyond_their_size_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
