/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Import of ibnetdiscover's output. argv[1] is config/: the example fabric is compared with the
 * report of ports that ibnetdiscover itself wrote for it.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sa/import.h"

static const char *config_dir;

struct taken {
	struct sa_change *changes;
	size_t n;
	size_t room;
	size_t refuse_at; /* 0: never */
};

static int
sa_import_take(void *arg, const struct sa_change *change)
{
	struct taken *t = arg;

	if (t->refuse_at != 0 && t->n + 1 == t->refuse_at)
		return -ENOSPC;
	if (t->n == t->room) {
		t->room = t->room * 2 + 16;
		t->changes = realloc(t->changes, t->room * sizeof(*change));
	}
	t->changes[t->n++] = *change;
	return 0;
}

static int
sa_import_setup(void **state)
{
	*state = calloc(1, sizeof(struct taken));
	return 0;
}

static int
sa_import_teardown(void **state)
{
	struct taken *t = *state;

	free(t->changes);
	free(t);
	return 0;
}

static int
sa_import_import(struct taken *t, const char *text, struct error *err)
{
	struct sa_import_sink sink = { t, sa_import_take };

	err->text[0] = '\0';
	return sa_import_ibnetdiscover(text, strlen(text), &sink, err);
}

/* The n-th record of a type. */
static const uint8_t *
sa_import_record(const struct taken *t, uint16_t attribute, unsigned int n)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->changes[i].type->attribute == attribute && n-- == 0)
			return t->changes[i].rec;
	return NULL;
}

static unsigned int
sa_import_count(const struct taken *t, uint16_t attribute)
{
	unsigned int n = 0;

	while (sa_import_record(t, attribute, n) != NULL)
		n++;
	return n;
}

static void
says(uint16_t attribute, const uint8_t *rec, const char *name, const char *expected)
{
	const struct sa_field *f = sa_field_named(sa_record_type(attribute), name);
	char text[SA_PRINT_MAX];

	assert_non_null(rec);
	assert_non_null(f);
	sa_print(f, rec, text, sizeof(text));
	if (strcmp(text, expected) != 0)
		fail_msg("%s: \"%s\", not \"%s\"", name, text, expected);
}

/* as Debian's ibnetdiscover 44.0 writes it */
static const char two_nodes[] =
	"#\n"
	"# Topology file: generated on Sat Nov 21 13:50:57 2026\n"
	"#\n"
	"# Initiated from node 0002c90300100000 port 0002c90300100001\n"
	"\n"
	"vendid=0x2c9\n"
	"devid=0xb924\n"
	"sysimgguid=0x2c90200200003\n"
	"switchguid=0x2c90200200000(2c90200200002)\n"
	"Switch\t36 \"S-0002c90200200000\"\t\t# \"leaf \"A\" # 1\" enhanced port 0 lid 2 lmc 0\n"
	"[7]\t\"H-0002c90300100000\"[1](2c90300100001) \t\t# \"host 1\" lid 4 4xEDR\n"
	"\n"
	"vendid=0x2c9\n"
	"devid=0x1013\n"
	"sysimgguid=0x2c90300100003\n"
	"caguid=0x2c90300100000\n"
	"Ca\t2 \"H-0002c90300100000\"\t\t# \"host 1\"\n"
	"[1](2c90300100001) \t\"S-0002c90200200000\"[7]\t\t# lid 4 lmc 2 \"leaf \"A\" # "
	"1\" lid 2 4xEDR\n";

static void
test_switch(void **state)
{
	struct taken *t = *state;
	const uint8_t *r;
	struct error err;

	assert_int_equal(sa_import_import(t, two_nodes, &err), 0);
	r = sa_import_record(t, SA_NODE, 0);
	says(SA_NODE, r, "lid", "2");
	says(SA_NODE, r, "base_version", "1");
	says(SA_NODE, r, "class_version", "1");
	says(SA_NODE, r, "node_type", "switch");
	says(SA_NODE, r, "num_ports", "36");
	says(SA_NODE, r, "sys_guid", "0x0002c90200200003");
	says(SA_NODE, r, "node_guid", "0x0002c90200200000");
	says(SA_NODE, r, "port_guid", "0x0002c90200200002");
	says(SA_NODE, r, "device_id", "0xb924");
	says(SA_NODE, r, "vendor_id", "0x2c9");
	says(SA_NODE, r, "port_num", "0");
	says(SA_NODE, r, "node_desc", "leaf \"A\" # 1");
	assert_int_equal(sa_import_count(t, SA_SWITCH_INFO), 1);
	r = sa_import_record(t, SA_SWITCH_INFO, 0);
	says(SA_SWITCH_INFO, r, "lid", "2");
	says(SA_SWITCH_INFO, r, "enhanced_port0", "1");
	r = sa_import_record(t, SA_PORT_INFO, 0);
	says(SA_PORT_INFO, r, "lid", "2");
	says(SA_PORT_INFO, r, "port_num", "0");
	says(SA_PORT_INFO, r, "base_lid", "2");
	r = sa_import_record(t, SA_PORT_INFO, 1);
	says(SA_PORT_INFO, r, "lid", "2");
	says(SA_PORT_INFO, r, "port_num", "7");
	says(SA_PORT_INFO, r, "base_lid", "0"); /* the LID is port 0's */
	says(SA_PORT_INFO, r, "port_state", "active");
}

static void
test_channel_adapter(void **state)
{
	struct taken *t = *state;
	const uint8_t *r;
	struct error err;

	assert_int_equal(sa_import_import(t, two_nodes, &err), 0);
	r = sa_import_record(t, SA_NODE, 1);
	says(SA_NODE, r, "lid", "4");
	says(SA_NODE, r, "node_type", "ca");
	says(SA_NODE, r, "num_ports", "2");
	says(SA_NODE, r, "sys_guid", "0x0002c90300100003");
	says(SA_NODE, r, "node_guid", "0x0002c90300100000");
	says(SA_NODE, r, "port_guid", "0x0002c90300100001");
	says(SA_NODE, r, "port_num", "1");
	says(SA_NODE, r, "node_desc", "host 1");
	r = sa_import_record(t, SA_PORT_INFO, 2);
	says(SA_PORT_INFO, r, "lid", "4");
	says(SA_PORT_INFO, r, "port_num", "1");
	says(SA_PORT_INFO, r, "base_lid", "4");
	says(SA_PORT_INFO, r, "lmc", "2");
	says(SA_PORT_INFO, r, "port_state", "active");
	says(SA_PORT_INFO, r, "port_phys_state", "link_up");
	says(SA_PORT_INFO, r, "link_width_active", "4x");
	says(SA_PORT_INFO, r, "link_speed_active", "10");
	says(SA_PORT_INFO, r, "link_speed_ext_active", "25");
	says(SA_PORT_INFO, r, "capability_mask", "0x4000"); /* IsExtendedSpeedsSupported */
	r = sa_import_record(t, SA_GUID_INFO, 1);
	says(SA_GUID_INFO, r, "lid", "4");
	says(SA_GUID_INFO, r, "block_num", "0");
	says(SA_GUID_INFO, r, "guid0", "0x0002c90300100001");
	assert_int_equal(sa_import_count(t, SA_SM_INFO), 0);
}

/* values that the text does not give stay 0, and records are not invented */
static void
test_what_is_not_said_is_not_known(void **state)
{
	static const struct {
		uint16_t attribute;
		unsigned int n;
		const char *field;
	} unknown[] = {
		{ SA_NODE, 1, "partition_cap" },
		{ SA_PORT_INFO, 2, "gid_prefix" },
		{ SA_PORT_INFO, 2, "neighbor_mtu" },
		{ SA_PORT_INFO, 2, "mtu_cap" },
		{ SA_PORT_INFO, 2, "vl_cap" },
		{ SA_PORT_INFO, 2, "oper_vls" },
		{ SA_PORT_INFO, 2, "link_width_supported" },
		{ SA_PORT_INFO, 2, "link_width_enabled" },
		{ SA_PORT_INFO, 2, "link_speed_supported" },
		{ SA_PORT_INFO, 2, "link_speed_ext_supported" },
		{ SA_PORT_INFO, 2, "link_down_default" },
		{ SA_PORT_INFO, 2, "subnet_timeout" },
		{ SA_PORT_INFO, 2, "resp_time_value" },
		{ SA_PORT_INFO, 2, "guid_cap" },
		{ SA_PORT_INFO, 2, "sm_lid" },
		{ SA_PORT_INFO, 0, "link_width_active" }, /* the switch's own port */
		{ SA_PORT_INFO, 0, "link_speed_active" },
		{ SA_PORT_INFO, 0, "capability_mask" },
		{ SA_SWITCH_INFO, 0, "lin_cap" },
		{ SA_SWITCH_INFO, 0, "mcast_cap" },
		{ SA_SWITCH_INFO, 0, "lids_per_port" },
		{ SA_SWITCH_INFO, 0, "part_enforce_cap" },
		{ SA_SWITCH_INFO, 0, "life_time_value" },
	};
	struct taken *t = *state;
	struct error err;

	assert_int_equal(sa_import_import(t, two_nodes, &err), 0);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		if (sa_get_named(sa_record_type(unknown[i].attribute), unknown[i].field,
			    sa_import_record(t, unknown[i].attribute, unknown[i].n)) != 0)
			fail_msg("%s", unknown[i].field);
	assert_int_equal(sa_import_count(t, SA_PKEY_TABLE), 0);
}

static void
test_mtu_that_the_operator_vouches_for(void **state)
{
	struct taken *t = *state;
	struct error err;

	assert_int_equal(sa_import_import(t, two_nodes, &err), 0);
	for (size_t i = 0; i < t->n; i++)
		sa_import_mtu(&t->changes[i], 5);
	says(SA_PORT_INFO, sa_import_record(t, SA_PORT_INFO, 2), "neighbor_mtu", "4096");
	says(SA_PORT_INFO, sa_import_record(t, SA_PORT_INFO, 2), "mtu_cap", "4096");
	for (size_t i = 0; i < t->n; i++)
		sa_import_mtu(&t->changes[i], 4); /* known already */
	says(SA_PORT_INFO, sa_import_record(t, SA_PORT_INFO, 2), "mtu_cap", "4096");
}

/* --- forwarding tables --- */

static const char tables[] =
	"Unicast lids [0x0-0x41] of switch DR path slid 0; dlid 0; 0,1 guid "
	"0x0002c90200200000 (leaf guid 0x1):\n"
	"  Lid  Out   Destination\n"
	"       Port     Info \n"
	"0x0002 000 : (Switch portguid 0x0002c90200200002: 'leaf')\n"
	"0x0004 007 : (Channel Adapter portguid 0x0002c90300100001: 'host 1')\n"
	"0x0005 007 : (path #2 out of 4: portguid 0x0002c90300100001)\n"
	"0x0041 036\n"
	"4 valid lids dumped \n"
	"\n"
	"Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x0002c90200200000 (leaf):\n"
	"            0                   1                   2 \n"
	"     Ports: 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 \n"
	" MLid\n"
	"0xc000        x           x                     x     \n"
	"0xc021      x                                         \n"
	"2 valid mlids dumped \n";

static void
check_tables(const struct taken *t)
{
	const uint8_t *r = sa_import_record(t, SA_LFT, 0);

	assert_int_equal(sa_import_count(t, SA_LFT), 2);
	assert_memory_equal(r, "\x00\x02\x00\x00\0\0\0\0\xFF\xFF\x00\xFF\x07\x07\xFF", 15);
	assert_int_equal(r[71], 0xFF);
	assert_memory_equal(sa_import_record(t, SA_LFT, 1), "\x00\x02\x00\x01\0\0\0\0\xFF\x24\xFF",
		11);
	/* ports 1, 7, 18 of C000, port 0 of C021 */
	assert_int_equal(sa_import_count(t, SA_MFT), 3);
	assert_memory_equal(sa_import_record(t, SA_MFT, 0), "\x00\x02\x00\x00\0\0\0\0\x00\x82\x00",
		11);
	assert_memory_equal(sa_import_record(t, SA_MFT, 1),
		"\x00\x02\x00\x01\0\0\0\0\x00\x00\x00\x01", 12);
	assert_memory_equal(sa_import_record(t, SA_MFT, 2), "\x00\x02\x10\x00\0\0\0\0\x00\x04\x00",
		11);
}

static void
test_forwarding_tables_behind_the_topology(void **state)
{
	struct taken *t = *state;
	char text[8192];
	struct error err;

	snprintf(text, sizeof(text), "%s%s", two_nodes, tables);
	assert_int_equal(sa_import_import(t, text, &err), 0);
	check_tables(t);
	assert_int_equal(sa_import_count(t, SA_NODE), 2);
}

static void
test_forwarding_tables_alone(void **state)
{
	struct taken *t = *state;
	struct error err;

	assert_int_equal(sa_import_import(t, tables, &err), 0);
	check_tables(t);
	assert_int_equal(t->n, 5);
}

static void
test_bad_forwarding_tables(void **state)
{
#define HEAD  "Unicast lids [0x0-0x4] of switch Lid 2 guid 0x5 (s):\n"
#define MHEAD "Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0x5 (s):\n"
#define WHOLE HEAD "0x0002 000\n1 valid lids dumped\n"
	static const struct {
		const char *text;
		const char *says;
	} bad[] = {
		{ "Unicast lids [0x0-0x4] of switch Lid 2:\n", "line 1: got \"Unicast lids" },
		{ HEAD, "the table of switch 0x0000000000000005 has no end" },
		{ HEAD HEAD, "line 2: got \"Unicast lids" },
		{ HEAD "0x0002 000\n2 valid lids dumped\n",
			"line 3: got 1 lines in the table, expected 2" },
		{ HEAD "0x0003 001\n1 valid lids dumped\n", "the switch's own LID, with port 000" },
		{ HEAD "0x0002 256\n", "a port up to 255" },
		{ HEAD "0xc000 001\n", "a LID up to 0xbfff" },
		{ HEAD "2 001\n", "a LID and its port" },
		{ MHEAD, "the switch, or its unicast table, before" },
		{ WHOLE MHEAD "0xc000      0002\n", "dump_fts without -n" },
		{ WHOLE MHEAD "     Ports: 0 1\n0x0001      x\n", "an MLID from 0xc000" },
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct taken t = { 0 };

		assert_int_equal(sa_import_import(&t, bad[i].text, &err), -EINVAL);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("\"%s\" should say \"%s\"", err.text, bad[i].says);
		free(t.changes);
	}
}

/* A refusal shows 48 characters of the line, and three dots if it has more. */
static void
test_refusal_shows_the_beginning_of_a_long_line(void **state)
{
	static const char line[] = "0x0003 no port here, but fifty characters of text.";
	char text[200], says[80];
	struct error err;
	int len;

	(void)state;
	for (len = 47; len <= 50; len++) {
		struct taken t = { 0 };

		snprintf(text, sizeof(text), HEAD "%.*s\n", len, line);
		snprintf(says, sizeof(says), "got \"%.*s%s\", expected", len < 48 ? len : 48, line,
			len > 48 ? "..." : "");
		assert_int_equal(sa_import_import(&t, text, &err), -EINVAL);
		if (strstr(err.text, says) == NULL)
			fail_msg("\"%s\" should say \"%s\"", err.text, says);
		free(t.changes);
	}
}

static void
test_links_both_ways(void **state)
{
	struct taken *t = *state;
	struct error err;

	assert_int_equal(sa_import_import(t, two_nodes, &err), 0);
	assert_int_equal(sa_import_count(t, SA_LINK), 2);
	assert_memory_equal(sa_import_record(t, SA_LINK, 0), "\x00\x02\x07\x01\x00\x04", 6);
	assert_memory_equal(sa_import_record(t, SA_LINK, 1), "\x00\x04\x01\x07\x00\x02", 6);
}

static void
test_widths_and_speeds(void **state)
{
	static const struct {
		const char *text;
		const char *width;
		const char *speed;
		const char *ext;
	} links[] = {
		{ "1xSDR", "1x", "2.5", "0x0" },
		{ "4xDDR", "4x", "5", "0x0" },
		{ "12xQDR", "12x", "10", "0x0" },
		{ "4xFDR10", "4x", "10", "0x0" },
		{ "8xFDR", "8x", "10", "14" },
		{ "4xEDR", "4x", "10", "25" },
		{ "2xHDR", "2x", "10", "50" },
		{ "4xNDR", "4x", "10", "100" },
		{ "?????", "0x0", "0x0", "0x0" },
		{ "4xQDR s=4 w=2 v=4", "4x", "10", "0x0" },
	};
	struct error err;
	char text[1024];

	(void)state;
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		struct taken t = { 0 };
		const uint8_t *r;

		snprintf(text, sizeof(text),
			"caguid=0x1\nCa\t1 \"H-1\"\t# \"a\"\n[1](2) \t\"H-3\"[1] (4) \t\t# "
			"lid 1 lmc 0 \"b\" lid 2 %s\n"
			"\ncaguid=0x3\nCa\t1 \"H-3\"\t# \"b\"\n[1](4) \t\"H-1\"[1] (2) "
			"\t\t# lid 2 lmc 0 \"a\" lid 1 %s\n",
			links[i].text, links[i].text);
		assert_int_equal(sa_import_import(&t, text, &err), 0);
		r = sa_import_record(&t, SA_PORT_INFO, 0);
		says(SA_PORT_INFO, r, "link_width_active", links[i].width);
		says(SA_PORT_INFO, r, "link_speed_active", links[i].speed);
		says(SA_PORT_INFO, r, "link_speed_ext_active", links[i].ext);
		says(SA_PORT_INFO, r, "vl_cap", strstr(links[i].text, "v=4") ? "vl0-7" : "0");
		free(t.changes);
	}
}

/* --grouping: headings, ports numbered on the chassis; routers; CR LF */
static void
test_grouping_routers_and_line_ends(void **state)
{
	static const char text[] =
		"# Initiated from node 1 port 2\r\n\r\nChassis 1 (guid 0x5)\r\nHostname: "
		"x\r\n\n# Spine Nodes\n"
		"vendid=0x2c9\ndevid=0x1\nsysimgguid=0x5\t\t# Chassis 1 slot "
		"2\nswitchguid=0x5(5)\t# ISR9024 spine 1\n"
		"Switch\t24 \"S-0000000000000005\"\t\t# \"s\" base port 0 lid 3 lmc 0\n"
		"[1][ext 11]\t\"R-0000000000000007\"[2](9) \t\t# \"r\" lid 5 4xHDR\n"
		"\nNon-Chassis Nodes\n\nvendid=0x2c9\ndevid=0x1\nrtguid=0x7\n"
		"Rt\t2 \"R-0000000000000007\"\t\t# \"r\"\n"
		/* no end */
		"[2](9) \t\"S-0000000000000005\"[1][ext 11]\t\t# lid 5 lmc 0 \"s\" lid 3 4xHDR";
	struct taken *t = *state;
	struct error err;

	assert_int_equal(sa_import_import(t, text, &err), 0);
	assert_int_equal(sa_import_count(t, SA_NODE), 2);
	says(SA_NODE, sa_import_record(t, SA_NODE, 1), "node_type", "router");
	says(SA_NODE, sa_import_record(t, SA_NODE, 1), "port_guid", "0x0000000000000009");
	assert_memory_equal(sa_import_record(t, SA_LINK, 0), "\x00\x03\x01\x02\x00\x05", 6);
	assert_memory_equal(sa_import_record(t, SA_LINK, 1), "\x00\x05\x02\x01\x00\x03", 6);
}

/* an error names the line, what was found and what was expected */
#define CA "caguid=0x1\nCa\t2 \"H-1\"\t# \"a\"\n"
static void
test_errors_in_words(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} bad[] = {
		{ "", "0 lines without a node: expected the output of ibnetdiscover" },
		{ "# only\n", "1 lines without a node" },
		{ "Ca\t : 0x0002c90300100bf0 ports 1 devid 0x0 vendid 0x2c9 \"host192\"\n",
			"line 1: got \"Ca\t : 0x0002c90300100bf0 ports 1 devid 0x0 "
			"vendi...\", expected a number of ports" },
		{ "\n\nHca\t1 \"h\"\n",
			"line 3: got \"Hca\t1 \"h\"\", expected a node (Switch, Ca, Rt)" },
		{ "vendid=0x1000000\n",
			"line 1: got \"vendid=0x1000000\", expected a hexadecimal number that fits" },
		{ "vendid=0x\n", "a hexadecimal number" },
		{ "caguid=0x10000000000000000\n", "a hexadecimal number that fits" },
		{ "switchguid=0x1(\n", "the port GUID in hexadecimal" },
		{ "caguid=0x1\nCa\t0 \"H-1\"\t# \"a\"\n", "a number of ports from 1 to 254" },
		{ "caguid=0x1\nCa\t255 \"H-1\"\t# \"a\"\n", "a number of ports from 1 to 254" },
		{ "caguid=0x1\nCa\t1 \"S-1\"\t# \"a\"\n",
			"line 2: got \"Ca\t1 \"S-1\"\t# \"a\"\", expected a node's name" },
		{ "caguid=0x2\nCa\t1 \"H-1\"\t# \"a\"\n", "the GUID of the lines above" },
		{ "Ca\t1 \"H-0\"\t# \"a\"\n", "the GUID of the lines above" },
		{ "caguid=0x1\nCa\t1 \"H-1\"\n", "the node's description" },
		{ "caguid=0x1\nCa\t1 \"H-1\"\t# \"\n", "the node's description" },
		{ CA "Ca\t2 \"H-1\"\t# \"a\"\n",
			"line 3: got \"Ca\t2 \"H-1\"\t# \"a\"\", expected vendid= and" },
		{ "switchguid=0x1(1)\nSwitch\t2 \"S-1\"\t# \"a\" port 0 lid 1 lmc 0\n",
			"base or enhanced" },
		{ "switchguid=0x1(1)\nSwitch\t2 \"S-1\"\t# \"a\" base port 0 lid 1 lmc 8\n",
			"base or enhanced" },
		{ "switchguid=0x1(1)\nSwitch\t2 \"S-1\"\t# \"a\" base port 0 lid 0 lmc 0\n",
			"has a subnet manager been run?" },
		{ "switchguid=0x1(1)\nSwitch\t2 \"S-1\"\t# \"a\" base port 0 lid 49151 lmc 1\n",
			"LIDs up to 49151" },
		{ "[1](2) \t\"H-3\"[1] (4) \t# lid 1 lmc 0 \"b\" lid 2 4xSDR\n",
			"a node before its ports" },
		{ CA "[3](2)\n",
			"line 3: got \"[3](2)\", expected the number of a port that the node has" },
		{ CA "[0](2)\n", "the number of a port" },
		{ CA "[1\n", "the number of a port" },
		{ CA "[1]\t\"H-3\"[1]\t# lid 1\n", "the port GUID in (...)" },
		{ CA "[1](2) H-3\n", "the other end like \"S-" },
		{ CA "[1](2) \"H-3\"[1] # lid 1 lmc 0 \"b\" lid 2 3xSDR\n",
			"# lid N lmc N \"name\" lid N 4xEDR" },
		{ CA "[1](2) \"H-3\"[1] # lid 1 lmc 0 \"b\" lid 2 4xZDR\n", "# lid N lmc N" },
		{ CA "[1](2) \"H-3\"[1] # lid 65536 lmc 0 \"b\" lid 2 4xSDR\n", "# lid N lmc N" },
		{ CA "[1](2) \"H-3\"[1] # lid 1 lmc 0 \"b\" lid 0 4xSDR\n",
			"the other end's LID from 1 to 49151" },
		{ CA "[1](2) \"H-3\"[1] # lid 1 lmc 0 \"b\" lid 2 4xSDR\n[1](2) \n",
			"line 4: got \"[1](2) \", expected each port once" },
		{ CA "[1](2) \"H-3\"[1] # lid 4 lmc 2 \"b\" lid 2 4xSDR\n[2](3) \"H-3\"[1] # lid 7 "
		     "lmc 0 \"b\" lid 2 4xSDR\n",
			"line 4: got \"[2](3) \"H-3\"[1] # lid 7 lmc 0 \"b\" lid 2 "
			"4xSDR\", expected a LID of its own: line 3 has 7 too" },
		{ CA "[1](2) \"H-3\"[1] # lid 1 lmc 0 \"b\" lid 2 4xSDR\n",
			"line 3: its cable ends at LID 2, which no node has: is the file complete?" },
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct taken t = { 0 };

		assert_int_equal(sa_import_import(&t, bad[i].text, &err), -EINVAL);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("\"%s\" should say \"%s\"", err.text, bad[i].says);
		free(t.changes);
	}
}

static void
test_highest_lid(void **state)
{
	static const char text[] =
		"switchguid=0x1(1)\nSwitch\t2 \"S-1\"\t# \"a\" base port 0 lid 49151 lmc 0\n";
	struct taken t = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(sa_import_import(&t, text, &err), 0);
	free(t.changes);
}

static void
test_long_lines_and_nul_bytes(void **state)
{
	struct sa_import_sink sink = { *state, sa_import_take };
	struct error err;
	char text[2000];

	memset(text, '#', sizeof(text));
	text[1024] = '\n';
	assert_int_equal(sa_import_ibnetdiscover(text, 1025, &sink, &err), -EINVAL);
	assert_string_equal(err.text, "line 1: expected at most 1023 bytes");
	text[1023] = '\n';
	assert_int_equal(sa_import_ibnetdiscover(text, 1024, &sink, &err), -EINVAL);
	assert_non_null(strstr(err.text, "1 lines without a node"));
	assert_int_equal(sa_import_ibnetdiscover("#\n#\0\n", 5, &sink, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 2: got \"#\", expected text, no NUL byte"));
}

static void
test_sink_that_refuses(void **state)
{
	struct taken *t = *state;
	struct error err;

	t->refuse_at = 6;
	assert_int_equal(sa_import_import(t, two_nodes, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "line 11: its records could not be stored"));
	assert_int_equal(t->n, 5);
}

static char *
slurp(const char *name, size_t *len)
{
	char path[512], *text = malloc(1 << 20);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", config_dir, name);
	f = fopen(path, "r");
	if (f == NULL || text == NULL)
		fail_msg("%s", path);
	*len = fread(text, 1, (1 << 20) - 1, f);
	text[*len] = '\0';
	fclose(f);
	return text;
}

/* "CA 224 1 0x0002c90300100bf1 4x EDR - SW 212 12 0x0002c902002000f0 ( 'host192' - 'leaf16' )" */
struct reported {
	char type[4];
	unsigned int lid;
	unsigned int port;
	unsigned long long guid;
	char width[8];
	char speed[8];
	unsigned int to_lid;
	unsigned int to_port;
};

static const uint8_t *
port_record(const struct taken *t, const struct reported *p)
{
	const struct sa_record_type *type = sa_record_type(SA_PORT_INFO);
	const uint8_t *r;

	for (unsigned int i = 0; (r = sa_import_record(t, SA_PORT_INFO, i)) != NULL; i++)
		if (sa_get_named(type, "lid", r) == p->lid &&
			sa_get_named(type, "port_num", r) == p->port)
			return r;
	return NULL;
}

static bool
sa_import_has(const struct taken *t, uint16_t attribute, const uint8_t *begin, size_t len)
{
	const uint8_t *r;

	for (unsigned int i = 0; (r = sa_import_record(t, attribute, i)) != NULL; i++)
		if (memcmp(r, begin, len) == 0)
			return true;
	return false;
}

static void
compare_port(const struct taken *t, const struct reported *p)
{
	const uint8_t link[6] = { (uint8_t)(p->lid >> 8), (uint8_t)p->lid, (uint8_t)p->port,
		(uint8_t)p->to_port, (uint8_t)(p->to_lid >> 8), (uint8_t)p->to_lid };
	const struct sa_record_type *nodes = sa_record_type(SA_NODE);
	const uint8_t *r = port_record(t, p), *node;
	bool seen = false;

	says(SA_PORT_INFO, r, "link_width_active", p->width);
	says(SA_PORT_INFO, r, "link_speed_ext_active", strcmp(p->speed, "EDR") == 0 ? "25" : "50");
	assert_true(sa_import_has(t, SA_LINK, link, sizeof(link)));
	for (unsigned int i = 0; (node = sa_import_record(t, SA_NODE, i)) != NULL; i++)
		seen |= sa_get_named(nodes, "lid", node) == p->lid &&
			sa_get_named(nodes, "port_guid", node) == p->guid &&
			sa_get_named(nodes, "node_type", node) == (p->type[0] == 'S' ? 2 : 1);
	assert_true(seen);
}

static void
test_example_fabric_is_what_ibnetdiscover_saw(void **state)
{
	struct taken *t = *state;
	unsigned int cabled = 0, lines = 0;
	struct reported p;
	struct error err;
	size_t len;
	char *text = slurp("fabric-example.ibnetdiscover", &len), *report, *at;

	assert_int_equal(sa_import_import(t, text, &err), 0);
	free(text);
	assert_int_equal(sa_import_count(t, SA_NODE), 224); /* 200 hosts, 16 leaves, 8 spines */
	assert_int_equal(sa_import_count(t, SA_SWITCH_INFO), 24);
	assert_int_equal(sa_import_count(t, SA_GUID_INFO), 224);
	assert_int_equal(sa_import_count(t, SA_LINK), 2 * (200 + 16 * 8));
	assert_int_equal(sa_import_count(t, SA_PORT_INFO), 2 * (200 + 16 * 8) + 24);

	report = slurp("fabric-example.ports", &len);
	for (at = strtok(report, "\n"); at != NULL; at = strtok(NULL, "\n"), lines++) {
		if (sscanf(at, "%3s %u %u 0x%llx %7s %7s - %*s %u %u", p.type, &p.lid, &p.port,
			    &p.guid, p.width, p.speed, &p.to_lid, &p.to_port) != 8)
			continue; /* no cable there */
		compare_port(t, &p);
		cabled++;
	}
	free(report);
	assert_int_equal(lines, 200 + 24 * 36);
	assert_int_equal(cabled, 2 * (200 + 16 * 8));
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_switch, sa_import_setup, sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_channel_adapter, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_said_is_not_known, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_mtu_that_the_operator_vouches_for,
			sa_import_setup, sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_forwarding_tables_behind_the_topology,
			sa_import_setup, sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_forwarding_tables_alone, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test(test_bad_forwarding_tables),
		cmocka_unit_test(test_refusal_shows_the_beginning_of_a_long_line),
		cmocka_unit_test_setup_teardown(test_links_both_ways, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test(test_widths_and_speeds),
		cmocka_unit_test_setup_teardown(test_grouping_routers_and_line_ends,
			sa_import_setup, sa_import_teardown),
		cmocka_unit_test(test_errors_in_words),
		cmocka_unit_test(test_highest_lid),
		cmocka_unit_test_setup_teardown(test_long_lines_and_nul_bytes, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_sink_that_refuses, sa_import_setup,
			sa_import_teardown),
		cmocka_unit_test_setup_teardown(test_example_fabric_is_what_ibnetdiscover_saw,
			sa_import_setup, sa_import_teardown),
	};

	if (argc != 2)
		return 2;
	config_dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
