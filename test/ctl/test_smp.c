/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* SMPs, traps and LID routes, from the request to the verbs and back. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ask.h"
#include "ctl/smp_attribute.h"

#define assert_says(text, what) assert_non_null(strstr(text, what))

/* the desk's second port is a native IB one: port 2 of the channel adapter */
static int
smp_setup(void **state)
{
	struct desk *d;
	int rc = desk_setup(state);

	d = *state;
	d->e->port[1].ib = true;
	d->e->port[1].gid[0].type = GID_IB;
	return rc;
}

static const uint8_t *
sent(const struct desk *d, unsigned int back)
{
	return d->e->mad.asked[(d->e->mad.asks - 1 - back) % 4].mad;
}

/* --- smp_get --- */

/* smp-sma 2: class 0x81, hop pointer 0, both DR LIDs permissive, InitialPath from entry 1 on */
static void
test_a_path_makes_a_directed_route_smp(void **state)
{
	static const uint8_t head[24] = { 1, 0x81, 1, 0x01, 0, 0, 0, 2, [16] = 0x00, 0x15, 0, 0,
		0x01, 0x02, 0x03, 0x04 };
	static const uint8_t key[8] = { 0, 0, 0, 0, 0, 0, 0x12, 0x34 }, path[4] = { 0, 2, 7, 0 };
	static const uint8_t lids[4] = { 0xff, 0xff, 0xff, 0xff };
	struct desk *d = *state;

	call(d, "smp_get",
		"'attribute': 'PortInfo', 'path': '0,2,7', 'modifier': '0x01020304', 'm_key': '0x1234'");
	assert_memory_equal(sent(d, 0), head, sizeof(head));
	assert_memory_equal(sent(d, 0) + 24, key, sizeof(key));
	assert_memory_equal(sent(d, 0) + 32, lids, sizeof(lids));
	assert_memory_equal(sent(d, 0) + 128, path, sizeof(path));
	assert_int_equal(d->e->mad.asked[0].qpn, 0);
	assert_int_equal(d->e->mad.ah.port, 1); /* the one that port 2 is */
	assert_true(d->e->mad.forgotten);
}

static void
test_a_lid_makes_a_lid_routed_smp(void **state)
{
	struct desk *d = *state;

	call(d, "smp_get",
		"'attribute': '0x11', 'dlid': 300, 'port': 1, 'timeout_ms': 70, 'retries': 0");
	assert_int_equal(sent(d, 0)[1], 0x01);
	assert_int_equal(sent(d, 0)[17], 0x11);
	assert_int_equal(sent(d, 0)[7], 0);
	assert_int_equal(sent(d, 0)[32], 0);
	assert_int_equal(d->e->mad.ah.dlid, 300);
	assert_int_equal(d->e->mad.asked[0].timeout_ms, 70);
	assert_true(d->e->mad.asked[0].no_retry);
	/* silence is told within what a user waits */
	call(d, "smp_get", "'attribute': 'nodeinfo', 'dlid': 300, 'port': 1");
	assert_false(d->e->mad.asked[1].no_retry);
	assert_int_equal(d->e->mad.asked[1].timeout_ms, 1000);
	assert_int_equal(d->e->mad.asked[1].retries, 2);
}

/* smp-sma 3: LID at 16, MasterSMLID at 18, PortState in the low nibble of 32, SMSL of 36 */
static void
test_components_are_told_by_name(void **state)
{
	struct desk *d = *state;
	const json_t *r, *f;

	d->e->mad.attribute[17] = 9;
	d->e->mad.attribute[18] = 1;
	d->e->mad.attribute[32] = 0x14;
	d->e->mad.attribute[36] = 0x43;
	d->e->mad.polls = 3; /* the answer takes its time */
	r = call(d, "smp_get", "'attribute': 'PortInfo', 'path': '0', 'port': 1");
	assert_string_equal(str(r, "status"), "OK");
	assert_string_equal(str(r, "mad_status"), "0x0000");
	assert_string_equal(str(r, "attribute"), "PortInfo");
	assert_int_equal(strlen(str(r, "data")), 128);
	assert_memory_equal(str(r, "data") + 32, "00090100", 8);
	f = json_object_get(r, "fields");
	assert_string_equal(str(f, "base_lid"), "9");
	assert_string_equal(str(f, "sm_lid"), "256");
	assert_string_equal(str(f, "port_state"), "active");
	assert_string_equal(str(f, "neighbor_mtu"), "2048");
	assert_int_equal(num(f, "sm_sl"), 3);
	/* what identifies a record is no part of the attribute */
	assert_null(json_object_get(f, "lid"));
	assert_null(json_object_get(f, "options"));
	assert_true(json_real_value(json_object_get(r, "time_us")) == 41.25);
}

static json_t *
fields_of(struct desk *d, const char *attribute)
{
	return json_object_get(call(d, "smp_get", "'attribute': '%s', 'path': '0', 'port': 1",
				       attribute),
		"fields");
}

/* one check of the last component of each: wrong offsets do not survive it (smp-sma 3, 5) */
static void
test_every_attribute_has_its_components(void **state)
{
	struct desk *d = *state;
	uint8_t *data = d->e->mad.attribute;

	data[36] = 2, data[39] = 0x49; /* NodeInfo: LocalPortNum, the end of VendorID */
	assert_int_equal(num(fields_of(d, "NodeInfo"), "port_num"), 2);
	assert_string_equal(str(fields_of(d, "NodeInfo"), "vendor_id"), "0x49");
	assert_null(json_object_get(fields_of(d, "NodeInfo"), "node_desc"));
	memset(data, 0, 64);
	strcpy((char *)data, "polca here");
	assert_string_equal(str(fields_of(d, "nodedesc"), "node_desc"), "polca here");
	assert_int_equal(json_object_size(fields_of(d, "NodeDescription")), 1);
	memset(data, 0, 64);
	data[63] = 0x77;
	assert_string_equal(str(fields_of(d, "guids"), "guid7"), "0x0000000000000077");
	assert_string_equal(str(fields_of(d, "portinfo"), "link_speed_ext_enabled"),
		"14+25+50+0x10");
	data[62] = 0x80;
	assert_says(str(fields_of(d, "pkeys"), "pkeys"), ",0x8077");
	assert_says(str(fields_of(d, "vlarb"), "entries"), ",0x8077");
	data[7] = 0x21;
	assert_string_equal(str(fields_of(d, "sl2vl"), "vls"), "0,0,0,0,0,0,0,0,0,0,0,0,0,0,2,1");
	data[20] = 0x53;
	assert_int_equal(num(fields_of(d, "SMInfo"), "priority"), 5);
	assert_string_equal(str(fields_of(d, "SMInfo"), "sm_state"), "master");
	data[11] = 3;
	assert_int_equal(num(fields_of(d, "SwitchInfo"), "life_time_value"), 0);
	data[5] = 144;
	assert_int_equal(num(fields_of(d, "Notice"), "trap_num"), 144);
	data[0] = 0x80;
	assert_int_equal(num(fields_of(d, "LedInfo"), "led"), 1);
	assert_int_equal(num(fields_of(d, "VendorDiag"), "next_index"), 0x8000);
	assert_null(fields_of(d, "0xff10"));
}

static void
test_a_status_is_a_result_with_its_meaning(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->mad.status = 0x000c;
	r = call(d, "smp_get", "'attribute': 'SwitchInfo', 'path': '0', 'port': 1");
	assert_string_equal(str(r, "status"), "BAD_METHOD_ATTRIBUTE");
	assert_string_equal(str(r, "mad_status"), "0x000c");
	assert_says(str(r, "message"), "does not have this attribute");
	assert_null(json_object_get(r, "fields"));
	/* a refused Set shows the state that results */
	d->e->mad.status = 0x001c;
	r = call(d, "smp_set", "'attribute': 'PortInfo', 'path': '0', 'port': 1, 'data': '00'");
	assert_string_equal(str(r, "status"), "INVALID_FIELD");
	assert_non_null(json_object_get(r, "fields"));
}

static void
test_silence_is_an_error_that_says_what_to_look_at(void **state)
{
	struct desk *d = *state;
	const json_t *error;

	d->e->mad.lost = 1;
	error = call_fails(d, "smp_get", "%s", "'attribute': 'PortInfo', 'path': '0,2'");
	assert_int_equal(num(error, "code"), -ETIMEDOUT);
	assert_says(str(error, "message"), "path 0,2: no answer");
	assert_says(str(error, "message"), "m_key");
	assert_true(d->e->mad.forgotten);
	assert_says(fails(d, "smp_get", "'attribute': 'PortInfo', 'dlid': 5, 'port': 1"),
		"LID 5: no answer");
}

static void
test_what_cannot_be_asked_is_refused_in_words(void **state)
{
	struct desk *d = *state;
	unsigned int i;
	static const struct {
		const char *params, *says;
	} cases[] = {
		{ "'attribute': 'PortInfo'", "dlid, path: got none of them" },
		{ "'attribute': 'PortInfo', 'dlid': 1, 'path': '0'", "got both of them" },
		{ "'attribute': 'PortInfo', 'path': '0'",
			"port: got 0, whose link_layer is Ethernet" },
		{ "'attribute': 'PortInfo', 'dlid': 1, 'port': 2", "port: got 2, there are 2" },
		{ "'attribute': 'PortInfo', 'dlid': 49152, 'port': 1",
			"allowed: integer 1..49151" },
		{ "'attribute': 'PortIno', 'dlid': 1",
			"attribute: got \"PortIno\", allowed: NodeDescription, " },
		{ "'attribute': 'PortIno', 'dlid': 1", ", LedInfo, or a number up to 0xffff" },
		{ "'dlid': 1", "attribute: missing, allowed: one of NodeDescription, " },
		{ "'attribute': '0x10000', 'dlid': 1", "attribute: got" },
		{ "'attribute': 'PortInfo', 'path': '1,2'",
			"path: got \"1,2\", allowed: 0 for this port" },
		{ "'attribute': 'PortInfo', 'path': '0,'", "path: got" },
		{ "'attribute': 'PortInfo', 'path': '0,x'", "path: got" },
		{ "'attribute': 'PortInfo', 'path': '0,256'", "path: got" },
		{ "'attribute': 'PortInfo', 'path': '0,3'", "leaves by port 3, allowed: 1 to 2" },
		{ "'attribute': 'PortInfo', 'path': '0,1', 'port': 1", "with port 1 it must be 2" },
	};

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_says(fails(d, "smp_get", cases[i].params), cases[i].says);
	assert_int_equal(d->e->mad.asks, 0);
}

/* seed 004: hop counts up to 63 */
static void
test_a_path_has_63_hops_at_most(void **state)
{
	struct desk *d = *state;
	char path[300] = "0", line[400];
	int i;

	for (i = 0; i < 63; i++)
		strcat(path, ",2");
	snprintf(line, sizeof(line), "'attribute': 'NodeInfo', 'path': '%s'", path);
	call(d, "smp_get", "%s", line);
	assert_int_equal(sent(d, 0)[7], 63);
	assert_int_equal(sent(d, 0)[191], 2);
	assert_int_equal(sent(d, 0)[192], 0);
	snprintf(line, sizeof(line), "'attribute': 'NodeInfo', 'path': '%s,2'", path);
	assert_says(fails(d, "smp_get", line), "63 at most");
}

/* --- smp_set --- */

static void
test_raw_data_is_set_as_it_is(void **state)
{
	static const uint8_t want[64] = { 0x80, 0x01 };
	struct desk *d = *state;

	memset(d->e->mad.attribute, 0xee, 64);
	call(d, "smp_set", "'attribute': 'LedInfo', 'path': '0', 'port': 1, 'data': '8001'");
	assert_int_equal(d->e->mad.asks, 1);
	assert_int_equal(sent(d, 0)[3], 0x02);
	assert_memory_equal(sent(d, 0) + 64, want, 64);
	/* components given as well go over it */
	call(d, "smp_set",
		"'attribute': 'LedInfo', 'path': '0', 'port': 1, 'data': '8001', 'fields': {'led': 0}");
	assert_int_equal(d->e->mad.asks, 2);
	assert_int_equal(sent(d, 0)[64], 0);
	assert_int_equal(sent(d, 0)[65], 1);
}

static void
test_components_are_set_over_what_is_there(void **state)
{
	struct desk *d = *state;
	const uint8_t *set;
	const json_t *r;

	d->e->mad.attribute[8] = 0xfe; /* GidPrefix */
	d->e->mad.attribute[17] = 4; /* LID */
	d->e->mad.attribute[50] = 32; /* GUIDCap */
	d->e->mad.polls = 2;
	r = call(d, "smp_set",
		"'attribute': 'PortInfo', 'path': '0,2', 'm_key': 5, 'fields': {'base_lid': 300, 'sm_sl': '2'}");
	assert_string_equal(str(r, "method"), "Set");
	assert_string_equal(str(json_object_get(r, "fields"), "base_lid"), "300");
	assert_int_equal(d->e->mad.asks, 2);
	assert_int_equal(sent(d, 1)[3], 0x01);
	assert_int_equal(sent(d, 1)[31], 5);
	set = sent(d, 0);
	assert_int_equal(set[3], 0x02);
	assert_int_equal(set[31], 5);
	assert_int_equal(set[64 + 8], 0xfe);
	assert_int_equal(set[64 + 16], 1);
	assert_int_equal(set[64 + 17], 300 - 256);
	assert_int_equal(set[64 + 36], 2);
	assert_int_equal(set[64 + 50], 32);
}

/* smp-sma 3: state, widths, speeds and lanes are left alone by 0, and not moved by what was read */
static void
test_a_set_does_not_write_states_back(void **state)
{
	struct desk *d = *state;
	uint8_t *data = d->e->mad.attribute;
	const uint8_t *set;

	data[29] = 3; /* LinkWidthEnabled */
	data[32] = 0x14; /* LinkSpeedSupported, PortState */
	data[33] = 0x52; /* PortPhysState, DownDefaultState */
	data[35] = 0x11; /* LinkSpeedActive, LinkSpeedEnabled */
	data[43] = 0x4f; /* OperVLs, and filters that stay */
	data[51] = 0x92; /* ClientReregister, SubnetTimeOut */
	call(d, "smp_set",
		"'attribute': 'PortInfo', 'path': '0', 'port': 1, 'fields': {'base_lid': 9}");
	set = sent(d, 0) + 64;
	assert_int_equal(set[29], 0);
	assert_int_equal(set[32], 0x10);
	assert_int_equal(set[33], 0);
	assert_int_equal(set[35], 0x10);
	assert_int_equal(set[43], 0x0f);
	assert_int_equal(set[51], 0x12);
	/* but for those that are asked for */
	call(d, "smp_set",
		"'attribute': 'PortInfo', 'path': '0', 'port': 1, 'fields': {'port_state': 'armed'}");
	assert_int_equal(sent(d, 0)[64 + 32], 0x13);
}

static void
test_a_set_whose_get_is_refused_sets_nothing(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->mad.status = 0x000c;
	r = call(d, "smp_set",
		"'attribute': 'SMInfo', 'path': '0', 'port': 1, 'fields': {'priority': 3}");
	assert_string_equal(str(r, "method"), "Get");
	assert_string_equal(str(r, "status"), "BAD_METHOD_ATTRIBUTE");
	assert_int_equal(d->e->mad.asks, 1);
	d->e->mad.lost = 1;
	assert_says(
		fails(d, "smp_set",
			"'attribute': 'SMInfo', 'path': '0', 'port': 1, 'fields': {'priority': 3}"),
		"no answer");
	assert_int_equal(d->e->mad.asks, 2);
}

static void
test_wrong_components_are_told_before_anything_is_sent(void **state)
{
	struct desk *d = *state;
	const json_t *error;

	error = call_fails(d, "smp_set", "%s",
		"'attribute': 'PortInfo', 'path': '0', 'port': 1, 'fields': {'lid': 3}");
	assert_says(str(error, "message"),
		"fields.lid: PortInfo has no such field; it has m_key, gid_prefix, base_lid,");
	assert_true(
		json_array_size(json_object_get(json_object_get(error, "data"), "fields")) > 40);
	assert_says(
		fails(d, "smp_set",
			"'attribute': 'PortInfo', 'path': '0', 'port': 1, 'fields': {'port_state': 'activ'}"),
		"port_state: got \"activ\", allowed:");
	assert_says(fails(d, "smp_set", "'attribute': 'PortInfo', 'path': '0', 'port': 1"),
		"fields, data: got none of them");
	assert_says(fails(d, "smp_set",
			    "'attribute': '0xff10', 'path': '0', 'port': 1, 'fields': {'x': 1}"),
		"give data");
	assert_int_equal(d->e->mad.asks, 0);
}

/* --- traps --- */

static void
test_traps_are_listed_page_by_page(void **state)
{
	struct desk *d = *state;
	const json_t *r, *row;

	d->e->sma.traps = 3;
	r = call(d, "trap_list", "'max': 2");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 2);
	assert_int_equal(num(r, "cursor"), 2);
	r = call(d, "trap_list", "'max': 2, 'cursor': 2, 'notice': true");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 1);
	assert_true(json_is_null(json_object_get(r, "cursor")));
	row = json_array_get(json_object_get(r, "traps"), 0);
	assert_int_equal(num(row, "trap"), 3);
	assert_int_equal(num(row, "number"), 144);
	assert_string_equal(str(row, "type"), "info");
	assert_string_equal(str(row, "state"), "SENT");
	assert_int_equal(num(row, "sent"), 3);
	assert_int_equal(num(row, "age_ms"), 2500);
	assert_string_equal(str(json_object_get(row, "notice"), "issuer_lid"), "5");
	r = call(d, "trap_list", "'port': 1");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 2);
	assert_says(fails(d, "trap_list", "'port': 0"), "link_layer is Ethernet");
}

/* The worker is asked for many at a time: a page ends where its last row stands all the same. */
static void
test_a_page_of_one_ports_traps_ends_with_its_last_row(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->sma.traps = 80; /* every other one is port 1's */
	r = call(d, "trap_list", "'max': 70");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 70);
	assert_int_equal(num(r, "cursor"), 70);
	r = call(d, "trap_list", "'port': 1, 'max': 20");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 20);
	assert_int_equal(num(r, "cursor"), 39);
	r = call(d, "trap_list", "'port': 1, 'cursor': 39");
	assert_int_equal(json_array_size(json_object_get(r, "traps")), 20);
	assert_true(json_is_null(json_object_get(r, "cursor")));
}

static void
test_a_trap_is_sent_by_number_or_as_a_notice(void **state)
{
	struct desk *d = *state;

	assert_int_equal(num(call(d, "trap_send", "'port': 1, 'number': 145"), "trap"), 7);
	assert_int_equal(d->e->sma.port, 1);
	assert_int_equal(d->e->sma.number, 145);
	call(d, "trap_send", "'port': 1, 'notice': '8200000100ff'");
	assert_int_equal(d->e->sma.number, 0);
	assert_int_equal(d->e->sma.notice[0], 0x82);
	assert_int_equal(d->e->sma.notice[5], 0xff);
	assert_says(fails(d, "trap_send", "'port': 1"), "number, notice: got none of them");
	assert_says(fails(d, "trap_send", "'port': 1, 'number': 144, 'notice': '82'"), "got both");
	assert_says(fails(d, "trap_send", "'port': 1, 'number': 128"),
		"got 128, allowed: 129, 130, 131, 144, 145");
	assert_says(fails(d, "trap_send", "'number': 144"), "link_layer is Ethernet");
	d->e->sma.traps = 5;
	assert_int_equal(num(call_fails(d, "trap_send", "'port': 1, 'number': 144"), "code"),
		-EBUSY);
}

static void
test_a_trap_is_repressed_by_its_number(void **state)
{
	struct desk *d = *state;

	call(d, "trap_repress", "'trap': 7");
	assert_int_equal(d->e->sma.repressed, 7);
	assert_says(fails(d, "trap_repress", "'trap': 8"), "there is no trap 8");
}

/* --- LID routes --- */

static void
test_lids_are_listed_and_set(void **state)
{
	struct desk *d = *state;
	const json_t *r, *row;

	call(d, "lid_set", "'port': 1, 'lid': 5, 'mac': '02:00:00:00:00:05'");
	r = call(d, "lid_list", "'port': 1");
	row = json_array_get(json_object_get(r, "lids"), 0);
	assert_int_equal(num(row, "lid"), 5);
	assert_string_equal(str(row, "mac"), "02:00:00:00:00:05");
	assert_string_equal(str(row, "origin"), "FIXED");
	call(d, "lid_set", "'port': 1, 'lid': 5, 'forget': true");
	assert_true(d->e->sma.forgot);
	assert_says(fails(d, "lid_set", "'port': 1, 'lid': 5"), "mac, forget: got none of them");
	assert_says(fails(d, "lid_set", "'port': 1, 'lid': 49152, 'forget': true"),
		"allowed: integer 1..49151");
	assert_says(fails(d, "lid_list", ""), "link_layer is Ethernet");
	d->e->sma.lids = 3;
	r = call(d, "lid_list", "'port': 1, 'max': 2");
	assert_int_equal(num(r, "cursor"), 2);
}

/* --- what is shown of native IB ports --- */

static void
test_counters_of_the_agents_are_shown(void **state)
{
	struct desk *d = *state;
	const json_t *r, *ports;

	r = call(d, "stats_get", "%s", "");
	ports = json_object_get(r, "ports");
	assert_null(json_object_get(json_array_get(ports, 0), "sma"));
	assert_int_equal(num(json_object_get(json_array_get(ports, 1), "sma"), "smp_get"), 12);
	assert_int_equal(num(json_array_get(ports, 1), "tx_flooded"), 0);
	assert_int_equal(num(json_object_get(r, "live"), "echo"), 30);
	r = call(d, "stats_get", "'worker': 1");
	assert_int_equal(num(json_object_get(r, "live"), "echo"), 15);
	/* subnet management is worker 0's */
	assert_null(json_object_get(json_array_get(json_object_get(r, "ports"), 1), "sma"));
	r = call(d, "stats_describe", "%s", "");
	assert_int_equal(json_array_size(json_object_get(r, "sma")), SMA_COUNTER_COUNT);
	assert_int_equal(json_array_size(json_object_get(r, "live")), LIVE_COUNTER_COUNT);
}

static void
test_a_native_ib_port_shows_what_subnet_management_made_of_it(void **state)
{
	struct desk *d = *state;
	const json_t *p;

	d->e->port[1].state = PORT_STATE_ARMED;
	d->e->port[1].lid = 5;
	d->e->port[1].sm_lid = 1;
	d->e->port[1].guid = 0x0002c90300000005;
	d->e->port[1].num_gids = 2;
	memset(&d->e->port[1].gid[1], 0, sizeof(d->e->port[1].gid[1]));
	p = json_array_get(json_object_get(call(d, "port_list", "%s", ""), "ports"), 1);
	assert_string_equal(str(p, "state"), "ARMED");
	assert_string_equal(str(p, "encapsulation"), "ib");
	assert_int_equal(num(p, "lid"), 5);
	assert_int_equal(num(p, "sm_lid"), 1);
	assert_string_equal(str(p, "guid"), "0x0002c90300000005");
	assert_int_equal(json_array_size(json_object_get(p, "gids")), 1);
	p = json_array_get(json_object_get(json_object_get(d->json, "result"), "ports"), 0);
	assert_string_equal(str(p, "state"), "ACTIVE");
	assert_string_equal(str(p, "encapsulation"), "roce");
}

static void
test_events_of_subnet_management_name_their_port(void **state)
{
	static const enum event_type types[] = { EVENT_LID_CHANGE, EVENT_PKEY_CHANGE,
		EVENT_SM_CHANGE, EVENT_CLIENT_REREGISTER, EVENT_GID_CHANGE };
	static const char *const names[] = { "LID_CHANGE", "PKEY_CHANGE", "SM_CHANGE",
		"CLIENT_REREGISTER", "GID_CHANGE" };
	struct desk *d = *state;
	const json_t *rows;
	size_t i;

	for (i = 0; i < 5; i++)
		fake_event(d->e, types[i], 1);
	rows = json_object_get(call(d, "events", "%s", ""), "events");
	for (i = 0; i < 5; i++) {
		assert_string_equal(str(json_array_get(rows, i), "event"), names[i]);
		assert_int_equal(num(json_array_get(rows, i), "port"), 1);
	}
}

/* --- the subnet manager behind a port --- */

/* Trap 144 of LID 5, as number 9 on port 1. */
static void
bring_trap(struct desk *d)
{
	struct engine_sm_smp *s = &d->e->sma.smp;

	*s = (struct engine_sm_smp){ .number = 9, .port = 1, .slid = 5, .age_us = 12345 };
	memcpy(s->mad, "\1\1\1\5\0\0\0\0\0\0\0\0\0\0\xA\xBC\0\2", 18);
	memcpy(s->mad + 64, "\x84\0\0\1\0\x90\0\5", 8);
}

static void
test_the_manager_takes_what_has_come_in(void **state)
{
	struct desk *d = *state;
	const json_t *r, *s;

	r = call(d, "sm_take", "'port': 1");
	assert_int_equal(json_array_size(json_object_get(r, "smps")), 0);
	assert_int_equal(num(r, "lost"), 4);
	bring_trap(d);
	r = call(d, "sm_take", "'port': 1, 'timeout_ms': 60000");
	s = json_array_get(json_object_get(r, "smps"), 0);
	assert_int_equal(num(s, "smp"), 9);
	assert_int_equal(num(s, "port"), 1);
	assert_string_equal(str(s, "method"), "Trap");
	assert_string_equal(str(s, "attribute"), "Notice");
	assert_int_equal(num(s, "slid"), 5);
	assert_string_equal(str(s, "tid"), "0x0000000000000abc");
	assert_int_equal(num(s, "age_ms"), 12);
	assert_int_equal(num(json_object_get(s, "notice"), "trap_num"), 144);
	assert_says(fails(d, "sm_take", "'port': 0"), "no manager");
}

static void
test_an_event_tells_the_notice(void **state)
{
	struct desk *d = *state;
	const json_t *rows;

	bring_trap(d);
	fake_event(d->e, EVENT_SM_SMP, 9);
	fake_event(d->e, EVENT_SM_SMP, 8); /* no longer kept */
	rows = json_object_get(call(d, "events", "%s", ""), "events");
	assert_string_equal(str(json_array_get(rows, 0), "event"), "SM_SMP");
	assert_int_equal(num(json_array_get(rows, 0), "smp"), 9);
	assert_int_equal(num(json_array_get(rows, 0), "port"), 1);
	assert_int_equal(num(json_object_get(json_array_get(rows, 0), "notice"), "trap_num"), 144);
	assert_int_equal(num(json_array_get(rows, 1), "smp"), 8);
	assert_null(json_object_get(json_array_get(rows, 1), "notice"));
}

static void
test_the_manager_represses_a_trap(void **state)
{
	struct desk *d = *state;
	const struct engine_mad_ask *ask;

	bring_trap(d);
	call(d, "sm_repress", "'smp': 9, 'm_key': '0x77'");
	ask = &d->e->mad.asked[(d->e->mad.asks - 1) % 4];
	assert_true(ask->no_answer && ask->keep_tid);
	assert_int_equal(d->e->mad.ah.dlid, 5);
	assert_int_equal(d->e->mad.ah.port, 1);
	assert_int_equal(ask->mad[3], 0x07);
	assert_memory_equal(ask->mad + 8, d->e->sma.smp.mad + 8, 16); /* TID, attribute */
	assert_int_equal(ask->mad[31], 0x77);
	assert_memory_equal(ask->mad + 64, d->e->sma.smp.mad + 64, 64);
	assert_true(d->e->mad.forgotten);
	assert_says(fails(d, "sm_repress", "'smp': 8"), "got 8, which is no Trap");
}

static void
test_the_manager_says_what_it_is(void **state)
{
	struct desk *d = *state;

	call(d, "sm_set", "'port': 1, 'state': 'master', 'priority': 7");
	assert_int_equal(d->e->sma.sm_state, SMA_SM_MASTER);
	assert_int_equal(d->e->sma.sm_priority, 7);
	assert_says(fails(d, "sm_set", "'state': 'slave'"), "slave");
	assert_says(fails(d, "sm_set", "'state': 'master', 'priority': 16"), "16");
	assert_says(fails(d, "sm_set", "'state': 'master'"), "no manager");
}

#define t(test) cmocka_unit_test_setup_teardown(test, smp_setup, desk_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		t(test_a_path_makes_a_directed_route_smp),
		t(test_a_lid_makes_a_lid_routed_smp),
		t(test_components_are_told_by_name),
		t(test_every_attribute_has_its_components),
		t(test_a_status_is_a_result_with_its_meaning),
		t(test_silence_is_an_error_that_says_what_to_look_at),
		t(test_what_cannot_be_asked_is_refused_in_words),
		t(test_a_path_has_63_hops_at_most),
		t(test_raw_data_is_set_as_it_is),
		t(test_components_are_set_over_what_is_there),
		t(test_a_set_does_not_write_states_back),
		t(test_a_set_whose_get_is_refused_sets_nothing),
		t(test_wrong_components_are_told_before_anything_is_sent),
		t(test_traps_are_listed_page_by_page),
		t(test_a_page_of_one_ports_traps_ends_with_its_last_row),
		t(test_a_trap_is_sent_by_number_or_as_a_notice),
		t(test_a_trap_is_repressed_by_its_number),
		t(test_lids_are_listed_and_set),
		t(test_counters_of_the_agents_are_shown),
		t(test_a_native_ib_port_shows_what_subnet_management_made_of_it),
		t(test_events_of_subnet_management_name_their_port),
		t(test_the_manager_takes_what_has_come_in),
		t(test_an_event_tells_the_notice),
		t(test_the_manager_represses_a_trap),
		t(test_the_manager_says_what_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
