/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The record tables: mask bits of both versions, templates, RIDs, wire forms, printing and parsing
 * (sa-multipacket A6, A7, B10, B11).
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sa/record.h"

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

static const struct sa_field *
sa_record_field(uint16_t attribute, const char *name)
{
	const struct sa_field *f = sa_field_named(sa_record_type(attribute), name);

	if (f == NULL)
		fail_msg("attribute 0x%x has no %s", attribute, name);
	return f;
}

static void
sa_record_fill(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(rand() >> 7);
}

/* --- the tables themselves --- */

static void
test_tables_are_in_order_and_within_their_records(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < sa_num_record_types; i++) {
		const struct sa_record_type *t = &sa_record_types[i];
		unsigned int end = 0;
		int bit = -1;

		assert_true(t->len <= t->stride && t->stride <= SA_RECORD_MAX);
		assert_int_equal(t->stride % 8, 0);
		for (unsigned int k = 0; k < t->num_fields; k++) {
			const struct sa_field *f = &t->fields[k];

			assert_true(f->offset >= end); /* nothing overlaps */
			end = f->offset + f->bits;
			assert_true(f->bits > 0 && end <= t->len * 8u);
			if (f->mask_bit >= 0) {
				assert_int_equal(f->mask_bit, bit + 1); /* no bit is left out */
				bit = f->mask_bit + (f->mask_bits > 0 ? f->mask_bits : 1) - 1;
			}
			assert_true(f->kind == SA_RESERVED || sa_field_named(t, f->name) == f);
		}
	}
}

/* B9; numbers of the store's tables */
static void
test_attribute_ids_and_tables(void **state)
{
	static const struct {
		uint16_t attribute;
		int table;
		const char *alias;
	} types[] = {
		{ 0x0001, -1, "class" },
		{ 0x0002, -1, "notice" },
		{ 0x0003, -1, "informinfo" },
		{ 0x0011, 0, "node" },
		{ 0x0012, 1, "port" },
		{ 0x0018, 2, "sm" },
		{ 0x0020, 3, "link" },
		{ 0x0030, 4, "guid" },
		{ 0x0033, 5, "pkey" },
		{ 0x0013, 6, "sltovl" },
		{ 0x0036, 7, "vlarb" },
		{ 0x0014, 8, "switch" },
		{ 0x0031, 9, "service" },
		{ 0x0038, 10, "mcmember" },
		{ 0x00F3, 11, "inform" },
		{ 0x0015, 12, "lft" },
		{ 0x0016, 13, "rft" },
		{ 0x0017, 14, "mft" },
		{ 0xFF15, 15, "pathsl" },
		{ 0x0035, -1, "path" },
		{ 0x003A, -1, "multipath" },
	};

	(void)state;
	assert_int_equal(sa_num_record_types, NUM(types));
	for (size_t i = 0; i < NUM(types); i++) {
		const struct sa_record_type *t = sa_record_type(types[i].attribute);

		assert_non_null(t);
		assert_int_equal(t->stored ? t->table : -1, types[i].table);
		assert_ptr_equal(sa_record_type_named(types[i].alias), t);
		assert_ptr_equal(sa_record_type_named(t->name), t);
	}
	assert_ptr_equal(sa_record_type_named("noderecord"), sa_record_type(0x11));
	assert_ptr_equal(sa_record_type_named("0x35"), sa_record_type(0x35));
	assert_null(sa_record_type_named("nodes"));
	assert_null(sa_record_type_named("0x35x"));
	assert_null(sa_record_type_named("65589")); /* 0x10035 */
	assert_null(sa_record_type(0x0039));
}

/* --- masks --- */

/* B11, and the worked example of A7: SwitchInfo.LIDsPerPort */
static void
test_mask_bits(void **state)
{
	static const struct {
		uint16_t attribute;
		const char *name;
		int v2;
		int v1; /* -1: cannot be selected */
	} bits[] = {
		{ SA_SWITCH_INFO, "lids_per_port", 12, 10 },
		{ SA_SWITCH_INFO, "lid", 0, -1 },
		{ SA_SWITCH_INFO, "lin_cap", 2, 0 },
		{ SA_SWITCH_INFO, "port_state_change", 10, 8 },
		{ SA_SWITCH_INFO, "enhanced_port0", 18, 16 },
		{ SA_NODE, "node_type", 4, 2 },
		{ SA_NODE, "node_desc", 14, 12 },
		{ SA_PORT_INFO, "port_num", 1, -1 },
		{ SA_PORT_INFO, "m_key", 3, 0 },
		{ SA_PORT_INFO, "lmc", 20, 17 },
		{ SA_PORT_INFO, "guid_cap", 42, 39 },
		/* IBA 1.1 had no ClientReregister: v2 numbers of then 44, 46, 47, 48 */
		{ SA_PORT_INFO, "client_reregister", 43, -1 },
		{ SA_PORT_INFO, "subnet_timeout", 45, 41 },
		{ SA_PORT_INFO, "resp_time_value", 47, 43 },
		{ SA_PORT_INFO, "local_phy_errors", 48, 44 },
		{ SA_PORT_INFO, "overrun_errors", 49, 45 },
		{ SA_PORT_INFO, "max_credit_hint", 50, -1 },
		{ SA_PORT_INFO, "link_speed_ext_enabled", 57, -1 },
		{ SA_SM_INFO, "guid", 2, 0 },
		{ SA_SM_INFO, "sm_state", 6, 4 },
		{ SA_LINK, "from_port", 1, -1 },
		{ SA_LINK, "to_port", 2, 0 },
		{ SA_LINK, "to_lid", 3, 1 },
		{ SA_GUID_INFO, "block_num", 1, -1 },
		{ SA_GUID_INFO, "guid0", 4, 0 },
		{ SA_GUID_INFO, "guid7", 11, 7 },
		{ SA_PKEY_TABLE, "port_num", 2, -1 },
		{ SA_PKEY_TABLE, "pkeys", 4, 0 },
		{ SA_VLARB, "entries", 4, 0 },
		{ SA_LFT, "block_num", 1, -1 },
		{ SA_LFT, "ports", 3, 0 },
		{ SA_RFT, "entries", 3, 0 },
		{ SA_MFT, "position", 1, -1 },
		{ SA_MFT, "block_num", 3, -1 },
		{ SA_MFT, "masks", 5, 0 },
		{ SA_SERVICE, "service_id", 0, 0 },
		{ SA_SERVICE, "service_name", 6, 6 },
		{ SA_PATH, "dgid", 2, 2 },
		{ SA_PATH, "pkey", 13, 13 },
		{ SA_PATH, "preference", 22, 22 },
		{ SA_MCMEMBER, "mgid", 0, 0 },
		{ SA_MCMEMBER, "join_state", 16, 16 },
		{ SA_INFORM_INFO, "subscribe", 5, 5 },
		{ SA_INFORM_INFO, "producer_type", 12, 12 },
		{ SA_INFORM_INFO_RECORD, "producer_type", 15, 15 },
	};

	(void)state;
	for (size_t i = 0; i < NUM(bits); i++) {
		const struct sa_record_type *t = sa_record_type(bits[i].attribute);
		const struct sa_field *f = sa_record_field(bits[i].attribute, bits[i].name);
		uint64_t v2 = 1ull << bits[i].v2, v1 = bits[i].v1 < 0 ? 0 : 1ull << bits[i].v1;

		if (sa_mask(t, f, SA_V2) != v2 || sa_mask(t, f, SA_V1) != v1)
			fail_msg("%s.%s", t->name, f->name);
		assert_int_equal(sa_mask_v2(t, v2, SA_V2), v2);
		if (v1 != 0)
			assert_int_equal(sa_mask_v2(t, v1, SA_V1), v2);
	}
	assert_int_equal(sa_record_field(SA_SWITCH_INFO, "lids_per_port")->offset, (4 + 12) * 8);
}

/* B11: components of several bits, and the known mask bits of a type */
static void
test_masks_of_several_bits(void **state)
{
	const struct sa_record_type *service = sa_record_type(SA_SERVICE);
	const struct sa_record_type *sltovl = sa_record_type(SA_SLTOVL);
	const struct sa_record_type *path = sa_record_type(SA_PATH);

	(void)state;
	assert_int_equal(sa_mask(path, sa_record_field(SA_PATH, "service_id"), SA_V2), 0x3);
	assert_int_equal(sa_mask(service, sa_record_field(SA_SERVICE, "service_data8"), SA_V2),
		0x7FFF80);
	assert_int_equal(sa_mask(service, sa_record_field(SA_SERVICE, "service_data16"), SA_V2),
		0x7F800000);
	assert_int_equal(sa_mask(service, sa_record_field(SA_SERVICE, "service_data32"), SA_V2),
		0x780000000);
	assert_int_equal(sa_mask(service, sa_record_field(SA_SERVICE, "service_data64"), SA_V2),
		0x1800000000);
	assert_int_equal(sa_mask_known(service), 0x1FFFFFFFFF);
	assert_int_equal(sa_mask(sltovl, sa_record_field(SA_SLTOVL, "vls"), SA_V1), 0xFFFF);
	assert_int_equal(sa_mask_v2(sltovl, 0x8001, SA_V1), 0x80010);
	assert_int_equal(sa_mask_v2(service, UINT64_MAX, SA_V1), 0x1FFFFFFFFF);
	assert_int_equal(sa_mask_known(path), 0x7FFFFF);
	assert_int_equal(sa_mask_known(sa_record_type(SA_PORT_INFO)), 0x3FFFFFFFFFFFFFF);
	assert_int_equal(sa_mask_known(sa_record_type(SA_CLASS_PORT_INFO)), 0);
}

/* --- templates --- */

/* every component of every type: its mask notices a change of each of its bits, and of no other */
static void
test_template_compares_what_the_mask_selects(void **state)
{
	uint8_t tmpl[SA_RECORD_MAX], rec[SA_RECORD_MAX];
	struct sa_match m;

	(void)state;
	for (unsigned int i = 0; i < sa_num_record_types; i++) {
		const struct sa_record_type *t = &sa_record_types[i];

		for (unsigned int k = 0; k < t->num_fields; k++) {
			const struct sa_field *f = &t->fields[k];
			uint64_t mask = sa_mask(t, f, SA_V2);
			bool sees = mask != 0 && f->kind != SA_RESERVED;

			sa_record_fill(tmpl, sizeof(tmpl));
			memcpy(rec, tmpl, sizeof(rec));
			sa_match_compile(&m, t, tmpl, mask, 0);
			assert_true(sa_match(&m, rec));
			for (unsigned int b = 0; b < t->len * 8u; b++) {
				bool inside = b >= f->offset && b < f->offset + f->bits;

				rec[b / 8] ^= 0x80 >> b % 8;
				assert_int_equal(sa_match(&m, rec), !(sees && inside));
				rec[b / 8] ^= 0x80 >> b % 8;
			}
		}
	}
}

static void
test_template_reads_nothing_behind_the_record(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_SM_INFO);
	uint8_t tmpl[SA_RECORD_MAX] = { 0 };
	uint8_t *rec = calloc(1, 25); /* a sanitizer sees a read of the 26th byte */
	struct sa_match m;

	(void)state;
	sa_match_compile(&m, t, tmpl, UINT64_MAX, 0);
	assert_int_equal(m.end, 25);
	assert_true(sa_match(&m, rec));
	rec[24] = 1;
	assert_false(sa_match(&m, rec));
	free(rec);
}

static void
test_template_of_one_element_and_of_none(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_SERVICE);
	uint8_t tmpl[SA_RECORD_MAX] = { 0 }, rec[SA_RECORD_MAX];
	struct sa_match m;

	(void)state;
	memset(rec, 0xFF, sizeof(rec));
	rec[128 + 2] = rec[128 + 3] = 0; /* the second of service_data16 */
	sa_match_compile(&m, t, tmpl, 1ull << 24, 0);
	assert_true(sa_match(&m, rec));
	rec[128 + 3] = 1;
	assert_false(sa_match(&m, rec));
	sa_match_compile(&m, t, tmpl, 1ull << 24, 1ull << 24); /* skipped */
	assert_int_equal(m.first, m.end);
	assert_true(sa_match(&m, rec));
	sa_match_compile(&m, t, tmpl, 0xFFFFFFE000000000, 0); /* no component has these */
	assert_true(sa_match(&m, rec));
}

/* --- RIDs and wire forms --- */

/* A6: LID(16) | PortNumber(8) | Enumeration(8) */
static void
test_rids(void **state)
{
	static const struct {
		uint16_t attribute;
		uint32_t rid;
		const char *bytes;
		size_t len;
	} rids[] = {
		{ SA_NODE, 0x12340000, "\x12\x34\x00\x00", 4 },
		{ SA_PORT_INFO, 0x12340500, "\x12\x34\x05\x00", 4 },
		{ SA_SM_INFO, 0x12340000, "\x12\x34\x00\x00", 4 },
		{ SA_LINK, 0x12340500, "\x12\x34\x05", 3 },
		{ SA_GUID_INFO, 0x12340007, "\x12\x34\x07\x00\x00\x00\x00\x00", 8 },
		{ SA_PKEY_TABLE, 0x12340507, "\x12\x34\x00\x07\x05\x00\x00\x00", 8 },
		{ SA_SLTOVL, 0x12340507, "\x12\x34\x05\x07\x00\x00\x00\x00", 8 },
		{ SA_VLARB, 0x12340503, "\x12\x34\x05\x03\x00\x00\x00\x00", 8 },
		{ SA_SWITCH_INFO, 0x12340000, "\x12\x34\x00\x00", 4 },
		{ SA_LFT, 0x123402FF, "\x12\x34\x02\xFF\x00\x00\x00\x00", 8 },
		{ SA_RFT, 0x12340BFF, "\x12\x34\x0B\xFF\x00\x00\x00\x00", 8 },
		/* position 2, block 0x1A3 */
		{ SA_MFT, 0x1234268C, "\x12\x34\x21\xA3\x00\x00\x00\x00", 8 },
		{ SA_PATH_SL, 0x12340007, "\x12\x34\x00\x07\x00\x00\x00\x00", 8 },
		{ SA_SERVICE, 0, "", 0 },
		{ SA_PATH, 0, "", 0 },
		{ SA_MCMEMBER, 0, "", 0 },
		{ SA_INFORM_INFO_RECORD, 0, "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < NUM(rids); i++) {
		const struct sa_record_type *t = sa_record_type(rids[i].attribute);
		uint8_t rec[SA_RECORD_MAX];

		memset(rec, 0xEE, sizeof(rec));
		sa_rid_put(t, rec, rids[i].rid);
		assert_int_equal(t->rid_len, rids[i].len);
		assert_memory_equal(rec, rids[i].bytes, rids[i].len);
		assert_int_equal(rec[rids[i].len], 0xEE);
		assert_int_equal(sa_rid(t, rec), rids[i].rid);
	}
}

/* A6: RID and bare attribute; B10: stride. LIDsPerPort is at AdminData offset 12 (A7) */
static void
test_wire_forms(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_SWITCH_INFO);
	uint8_t rec[SA_RECORD_MAX] = { 0 }, wire[SA_RECORD_MAX], back[SA_RECORD_MAX];
	uint32_t rid;

	(void)state;
	sa_rid_put(t, rec, 0x00070000);
	sa_put_named(t, "lids_per_port", rec, 0xABCD);
	assert_int_equal(sa_wire_len(t, SA_V2), 24);
	assert_int_equal(sa_wire_len(t, SA_V1), 24); /* 4 + 20 */
	memset(wire, 0xEE, sizeof(wire));
	sa_encode(t, SA_V1, rec, 0x00070000, wire);
	assert_memory_equal(wire, "\x00\x07\x00\x00", 4);
	assert_memory_equal(wire + 4 + 12, "\xAB\xCD", 2);
	assert_int_equal(wire[24], 0xEE);
	sa_decode(t, SA_V1, wire, back, &rid);
	assert_int_equal(rid, 0x00070000);
	assert_memory_equal(back, rec, t->len);
}

/* A6: a RID stands before a record; ClassPortInfo, Notice and InformInfo are none */
static void
test_attributes_of_the_class_have_no_rid(void **state)
{
	const struct sa_record_type *t = sa_record_type(SA_CLASS_PORT_INFO);
	uint8_t wire[SA_RECORD_MAX] = { 1, 2 }, rec[SA_RECORD_MAX] = { 0 };
	uint32_t rid = 7;

	(void)state;
	assert_int_equal(sa_wire_len(t, SA_V1), 72);
	sa_decode(t, SA_V1, wire, rec, &rid);
	assert_int_equal(rid, 0);
	assert_int_equal(sa_get_named(t, "base_version", rec), 1);
	assert_int_equal(sa_get_named(t, "class_version", rec), 2);
	memset(wire, 0, sizeof(wire));
	sa_encode(t, SA_V1, rec, 7, wire);
	assert_memory_equal(wire, rec, 72);
	assert_int_equal(sa_wire_len(sa_record_type(SA_INFORM_INFO), SA_V1), 36);
	assert_int_equal(sa_wire_len(sa_record_type(SA_NODE), SA_V1), 4 + 104);
}

static void
test_wire_forms_there_and_back(void **state)
{
	uint8_t rec[SA_RECORD_MAX], wire[SA_RECORD_MAX + 4], back[SA_RECORD_MAX];
	uint32_t rid, rid_back;

	(void)state;
	for (unsigned int i = 0; i < sa_num_record_types; i++) {
		const struct sa_record_type *t = &sa_record_types[i];
		bool record = t->attribute > SA_INFORM_INFO;

		assert_int_equal(sa_wire_len(t, SA_V1), (record ? 4 : 0) + t->len - t->rid_len);
		sa_record_fill(rec, sizeof(rec));
		sa_record_fill(wire, sizeof(wire));
		sa_encode(t, SA_V2, rec, 0, wire);
		for (unsigned int b = t->len; b < t->stride; b++)
			assert_int_equal(wire[b], 0);
		sa_decode(t, SA_V2, wire, back, &rid_back);
		assert_memory_equal(back, rec, t->len);
		assert_int_equal(rid_back, sa_rid(t, rec));

		rid = t->rid_len > 0 ? sa_rid(t, rec) : 0x1234;
		sa_rid_put(t, rec, rid);
		sa_encode(t, SA_V1, rec, rid, wire);
		sa_decode(t, SA_V1, wire, back, &rid_back);
		assert_memory_equal(back, rec, t->len);
		assert_int_equal(rid_back, record ? rid : 0);
	}
}

static void
test_put_changes_its_own_bits_only(void **state)
{
	uint8_t rec[SA_RECORD_MAX], before[SA_RECORD_MAX];

	(void)state;
	for (unsigned int i = 0; i < sa_num_record_types; i++)
		for (unsigned int k = 0; k < sa_record_types[i].num_fields; k++) {
			const struct sa_field *f = &sa_record_types[i].fields[k];
			uint64_t was;

			if (f->bits > 64)
				continue;
			sa_record_fill(rec, sizeof(rec));
			memcpy(before, rec, sizeof(rec));
			was = sa_get(f, rec);
			sa_put(f, rec, ~was);
			assert_int_equal(sa_get(f, rec) ^ was,
				f->bits == 64 ? UINT64_MAX : (1ull << f->bits) - 1);
			sa_put(f, rec, was);
			assert_memory_equal(rec, before, sizeof(rec));
		}
}

/* --- text --- */

static void
test_every_component_prints_what_it_parses(void **state)
{
	uint8_t rec[SA_RECORD_MAX], back[SA_RECORD_MAX];
	char text[SA_PRINT_MAX];
	struct error err;

	(void)state;
	for (unsigned int round = 0; round < 50; round++)
		for (unsigned int i = 0; i < sa_num_record_types; i++)
			for (unsigned int k = 0; k < sa_record_types[i].num_fields; k++) {
				const struct sa_field *f = &sa_record_types[i].fields[k];

				if (f->kind == SA_RESERVED)
					continue;
				sa_record_fill(rec, sizeof(rec));
				memcpy(back, rec, sizeof(rec));
				memset(back + f->offset / 8, 0, (f->offset % 8 + f->bits + 7) / 8);
				/* the neighbours in the first and last byte are not ours */
				for (unsigned int b = f->offset / 8 * 8; b < f->offset; b++)
					back[b / 8] |= rec[b / 8] & (0x80 >> b % 8);
				for (unsigned int b = f->offset + f->bits; b % 8 != 0; b++)
					back[b / 8] |= rec[b / 8] & (0x80 >> b % 8);
				sa_print(f, rec, text, sizeof(text));
				assert_true(strlen(text) < sizeof(text) - 1);
				if (sa_parse(f, back, text, &err) != 0)
					fail_msg("%s: %s", text, err.text);
				assert_memory_equal(back, rec, sizeof(rec));
			}
}

static void
test_text_of_components(void **state)
{
	static const struct {
		uint16_t attribute;
		const char *name;
		const char *text; /* as people may write it */
		const char *printed;
	} texts[] = {
		{ SA_PATH, "mtu", "4096", "4096" },
		{ SA_PATH, "mtu", "0x3", "1024" },
		{ SA_PATH, "mtu", "0x3f", "0x3f" },
		{ SA_PATH, "rate", "10", "10" }, /* Gb/s, not code 10 */
		{ SA_PATH, "rate", "0xa", "120" },
		{ SA_PATH, "rate", "2.5", "2.5" },
		{ SA_PATH, "mtu_selector", "LT", "lt" },
		{ SA_PATH, "mtu_selector", "3", "max" },
		{ SA_PATH, "dlid", "0xC000", "0xc000" },
		{ SA_PATH, "dlid", "0xBFFF", "49151" },
		{ SA_PATH, "dgid", "FE80::2:C903:0:1", "fe80::2:c903:0:1" },
		{ SA_PATH, "pkey", "65535", "0xffff" },
		{ SA_PATH, "packet_life", "18", "18" },
		{ SA_NODE, "node_guid", "0x2c9030000beef", "0x0002c9030000beef" },
		{ SA_NODE, "node_type", "Switch", "switch" },
		{ SA_NODE, "node_type", "9", "9" },
		{ SA_NODE, "node_desc", "h\xc3\xb6st 1", "h\xc3\xb6st 1" },
		{ SA_NODE, "node_desc", "a\\x00\\xffb\\\\", "a\\x00\\xffb\\\\" },
		{ SA_NODE, "node_desc", "\xff", "\\xff" },
		{ SA_NODE, "node_desc", "a\\x1b[2J\\x7f", "a\\x1b[2J\\x7f" },
		/* U+009B begins a command of a terminal, too */
		{ SA_NODE, "node_desc", "\\xc2\\x9b2J\\xc2\\xa0", "\\xc2\\x9b2J\xc2\xa0" },
		{ SA_NODE, "node_desc", "", "" },
		{ SA_PORT_INFO, "link_width_supported", "4x+1x", "1x+4x" },
		{ SA_PORT_INFO, "link_width_supported", "0x0", "0x0" },
		{ SA_PORT_INFO, "link_width_supported", "1x+0x40", "1x+0x40" },
		{ SA_PORT_INFO, "port_state", "active", "active" },
		{ SA_PORT_INFO, "m_key", "0xFFFFFFFFFFFFFFFF", "0xffffffffffffffff" },
		{ SA_PORT_INFO, "m_key", "18446744073709551615", "0xffffffffffffffff" },
		{ SA_SERVICE, "service_key", "0x00ff", "00ff0000000000000000000000000000" },
		{ SA_SERVICE, "service_lease", "forever", "forever" },
		{ SA_SERVICE, "service_data32", "1,0x2",
			"0x00000001,0x00000002,0x00000000,0x00000000" },
		{ SA_SLTOVL, "vls", "0,1,2,15", "0,1,2,15,0,0,0,0,0,0,0,0,0,0,0,0" },
		{ SA_MCMEMBER, "join_state", "full+send_only_full", "full+send_only_full" },
	};
	uint8_t rec[SA_RECORD_MAX];
	char text[SA_PRINT_MAX];
	struct error err;

	(void)state;
	for (size_t i = 0; i < NUM(texts); i++) {
		const struct sa_field *f = sa_record_field(texts[i].attribute, texts[i].name);

		sa_record_fill(rec, sizeof(rec));
		assert_int_equal(sa_parse(f, rec, texts[i].text, &err), 0);
		assert_string_equal(sa_print(f, rec, text, sizeof(text)), texts[i].printed);
	}
}

/* an error says which component, what was got and what is allowed, and changes nothing */
static void
test_bad_text_is_refused_in_words(void **state)
{
	static const struct {
		uint16_t attribute;
		const char *name;
		const char *text;
		const char *says;
	} bad[] = {
		{ SA_PATH, "sl", "16", "sl: got \"16\", allowed: 0 to 15, or 0x0 to 0xf" },
		{ SA_PATH, "sl", "-1", "sl: got \"-1\", allowed: 0 to 15" },
		{ SA_PATH, "sl", "", "sl: got \"\", allowed: 0 to 15" },
		{ SA_PATH, "sl", " 1", "sl: got \" 1\"" },
		{ SA_PATH, "sl", "1x", "sl: got \"1x\"" },
		{ SA_PATH, "sl", "0x", "sl: got \"0x\"" },
		{ SA_PATH, "dlid", "65536",
			"dlid: got \"65536\", allowed: 0 to 65535, or 0x0 to 0xffff" },
		{ SA_PORT_INFO, "m_key", "18446744073709551616",
			"allowed: 0 to 18446744073709551615" },
		{ SA_PATH, "mtu", "5",
			"mtu: got \"5\", allowed: 256, 512, 1024, 2048, 4096, or a code as 0x0 up to 0x3f" },
		{ SA_PATH, "mtu", "0x40", "allowed: 256, 512, 1024, 2048, 4096" },
		{ SA_PATH, "rate", "fast", "rate: got \"fast\", allowed: 2.5, 10, 30, 5," },
		{ SA_NODE, "node_type", "host",
			"node_type: got \"host\", allowed: ca, switch, router, or a number up to 0xff" },
		{ SA_PORT_INFO, "link_width_active", "4x+",
			"allowed: 1x, 4x, 8x, 12x, 2x joined by +" },
		{ SA_PORT_INFO, "link_width_active", "3x", "link_width_active: got \"3x\"" },
		{ SA_PATH, "dgid", "fe80::g",
			"dgid: got \"fe80::g\", allowed: a GID in IPv6 notation" },
		{ SA_PATH, "dgid", "", "allowed: a GID" },
		{ SA_NODE, "node_desc", "\\",
			"node_desc: got \"\\\", allowed: up to 64 bytes of text" },
		{ SA_NODE, "node_desc", "\\x4", "allowed: up to 64 bytes" },
		{ SA_NODE, "node_desc",
			"01234567890123456789012345678901234567890123456789012345678901234",
			"node_desc: got \"0123456789012345678901234567890123456789...\", allowed: up to 64" },
		{ SA_SERVICE, "service_key", "0", "allowed: up to 16 bytes, two hex digits each" },
		{ SA_SERVICE, "service_key", "0g", "service_key: got \"0g\"" },
		{ SA_SERVICE, "service_key", "000102030405060708090a0b0c0d0e0f10",
			"up to 16 bytes" },
		{ SA_SLTOVL, "vls", "0,16",
			"vls: got \"0,16\", allowed: up to 16 numbers from 0 to 0xf with commas between" },
		{ SA_SLTOVL, "vls", "0,,1", "vls: got \"0,,1\"" },
		{ SA_SLTOVL, "vls", "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,0", "up to 16 numbers" },
	};
	uint8_t rec[SA_RECORD_MAX], before[SA_RECORD_MAX];

	(void)state;
	for (size_t i = 0; i < NUM(bad); i++) {
		struct error err = { "" };

		sa_record_fill(rec, sizeof(rec));
		memcpy(before, rec, sizeof(rec));
		assert_int_equal(sa_parse(sa_record_field(bad[i].attribute, bad[i].name), rec,
					 bad[i].text, &err),
			-22);
		if (strstr(err.text, bad[i].says) == NULL)
			fail_msg("\"%s\" should say \"%s\"", err.text, bad[i].says);
		assert_memory_equal(rec, before, sizeof(rec));
	}
	/* a reserved component has neither a name nor a value */
	assert_null(sa_field_named(sa_record_type(SA_NODE), "reserved"));
	assert_int_equal(sa_parse(&sa_record_type(SA_NODE)->fields[1], rec, "0", NULL), -22);
}

static void
test_print_keeps_within_the_buffer(void **state)
{
	uint8_t rec[SA_RECORD_MAX];
	char text[16];

	(void)state;
	memset(rec, 0xFF, sizeof(rec));
	for (size_t size = 1; size <= 8; size++) {
		memset(text, '#', sizeof(text));
		sa_print(sa_record_field(SA_VLARB, "entries"), rec, text, size);
		assert_true(strlen(text) < size);
		assert_int_equal(text[size], '#');
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables_are_in_order_and_within_their_records),
		cmocka_unit_test(test_attribute_ids_and_tables),
		cmocka_unit_test(test_mask_bits),
		cmocka_unit_test(test_masks_of_several_bits),
		cmocka_unit_test(test_template_compares_what_the_mask_selects),
		cmocka_unit_test(test_template_reads_nothing_behind_the_record),
		cmocka_unit_test(test_template_of_one_element_and_of_none),
		cmocka_unit_test(test_rids),
		cmocka_unit_test(test_wire_forms),
		cmocka_unit_test(test_attributes_of_the_class_have_no_rid),
		cmocka_unit_test(test_wire_forms_there_and_back),
		cmocka_unit_test(test_put_changes_its_own_bits_only),
		cmocka_unit_test(test_every_component_prints_what_it_parses),
		cmocka_unit_test(test_text_of_components),
		cmocka_unit_test(test_bad_text_is_refused_in_words),
		cmocka_unit_test(test_print_keeps_within_the_buffer),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
