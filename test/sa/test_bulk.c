/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * GetBulk and Config of class version 1 (sa-multipacket A6): the layout of bulk.h, all or nothing,
 * wrong lengths and codes.
 */

#include "bench.h"

#define NODE_WIRE 108

static uint16_t
bulk(struct bench *b, uint64_t sa_key)
{
	return ask(b, &(struct ask){ .version = 1, .method = SA1_GET_BULK, .sa_key = sa_key });
}

static void
test_bulk_is_every_table_with_its_header(void **state)
{
	/* AttributeID, record length in version 1, records: of the fabric in bench.h */
	static const struct {
		uint16_t attribute;
		uint16_t len;
		uint32_t count;
	} tables[] = { { 0x0011, 108, 6 }, { 0x0012, 68, 12 }, { 0x0018, 25, 0 }, { 0x0020, 7, 10 },
		{ 0x0030, 68, 1 }, { 0x0033, 68, 3 }, { 0x0013, 12, 0 }, { 0x0036, 68, 0 },
		{ 0x0014, 24, 2 }, { 0x0031, 180, 0 }, { 0x0038, 56, 0 }, { 0x00F3, 64, 0 },
		{ 0x0015, 68, 0 }, { 0x0016, 68, 0 }, { 0x0017, 68, 0 }, { 0xFF15, 68, 0 } };
	struct bench *b = *state;
	const uint8_t *p;
	unsigned int i;

	assert_int_equal(bulk(b, 0), 0);
	assert_true(b->streamed);
	p = b->data;
	for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		assert_int_equal(get_be16(p), tables[i].attribute);
		assert_int_equal(get_be16(p + 2), tables[i].len);
		assert_int_equal(get_be32(p + 4), tables[i].count);
		if (i == 0) {
			assert_int_equal(get_be32(p + 8), 0x00010000);
			assert_int_equal(get_be32(p + 8 + 5 * 108), 0x000C0000);
			assert_int_equal(get_be64(p + 8 + 5 * 108 + 24), GUID_D);
		}
		p += 8 + tables[i].len * tables[i].count;
	}
	assert_int_equal(p - b->data, b->len);
}

static void
test_bulk_is_read_from_anywhere(void **state)
{
	struct mad_source source;
	struct bench *b = *state;
	uint8_t buf[16];

	b->keep_source = true;
	assert_int_equal(bulk(b, 0), 0);
	source = b->source;
	/* a part of the first node, then of the first port */
	assert_int_equal(source.read(source.arg, 8 + 24, buf, 8), 0);
	assert_int_equal(get_be64(buf), 0x51);
	assert_int_equal(source.read(source.arg, 8 + 6 * 108 + 8 + 4, buf, 8), 0);
	assert_int_equal(get_be64(buf), 0x4D4B4559);
	assert_int_equal(source.read(source.arg, 8 + 6 * 108 + 4, buf, 8), 0);
	assert_int_equal(get_be32(buf), 12); /* the end of a header, the RID behind it */
	assert_int_equal(get_be32(buf + 4), 0x00010000);
	source.release(source.arg);
}

static void
test_bulk_since_a_key_has_the_tables_that_changed(void **state)
{
	struct bench *b = *state;
	uint64_t key;

	assert_int_equal(bulk(b, 0), 0);
	key = get_be64(b->reply + SA1_OFF_SA_KEY);
	assert_int_equal(bulk(b, key), 0);
	assert_int_equal(b->len, 0);
	put_link(b, 4, 2, 5, 2);
	assert_int_equal(bulk(b, key), 0);
	assert_int_equal(b->len, 8 + 12 * 7);
	assert_int_equal(get_be16(b->data), 0x0020);
	assert_int_equal(get_be32(b->data + 4), 12);
	assert_int_equal(bulk(b, 1), 0); /* a key from before a restart: everything */
	assert_int_equal(get_be16(b->data), 0x0011);
}

/* --- Config --- */

static void
wire_node(uint8_t *wire, uint32_t rid, uint64_t guid)
{
	memset(wire, 0, NODE_WIRE);
	put_be32(wire, rid);
	wire[4 + 2] = NODE_TYPE_CA;
	put_be64(wire + 4 + 20, guid);
}

static uint16_t
sa_bulk_config(struct bench *b, uint8_t edit, uint16_t attribute, struct mad_body *body)
{
	struct ask a = {
		.version = 1,
		.method = SA1_CONFIG,
		.attribute = attribute,
		.edit = edit,
		.body = body,
	};

	body->freed = false;
	return ask(b, &a);
}

static struct mad_body
three_nodes(void)
{
	struct mad_body body = { .len = 3 * NODE_WIRE };
	unsigned int i;

	for (i = 0; i < 3; i++)
		wire_node(body.bytes + i * NODE_WIRE, 0x00100000 + (i << 16), 0x100 + i);
	return body;
}

static void
test_config_adds_edits_and_deletes_many_records(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = *state;
	const struct store_record *r;

	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0);
	assert_int_equal(b->outcome, MAD_LATER);
	assert_true(body.freed);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 9);
	r = store_get(store_current(b->reader), SA_TABLE_NODE, 0x00110000);
	assert_int_equal(get_be16(r->bytes), 0x11); /* the RID part is made from the RID */
	assert_int_equal(get_be64(r->bytes + NODE_OFF_PORT_GUID), 0x101);
	put_be64(body.bytes + NODE_WIRE + 24, 0x999);
	assert_int_equal(sa_bulk_config(b, 3, SA_NODE, &body), 0);
	r = store_get(store_current(b->reader), SA_TABLE_NODE, 0x00110000);
	assert_int_equal(get_be64(r->bytes + NODE_OFF_PORT_GUID), 0x999);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 9);
	assert_int_equal(sa_bulk_config(b, 2, SA_NODE, &body), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
}

static void
test_config_is_all_or_nothing(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = *state;
	uint64_t version = store_version_number(store_current(b->reader));

	/* the last one exists */
	wire_node(body.bytes + 2 * NODE_WIRE, 0x00040000, 0x102);
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0x0200);
	assert_true(body.freed);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	/* of these only the last one exists */
	assert_int_equal(sa_bulk_config(b, 3, SA_NODE, &body), 0x0300);
	assert_int_equal(sa_bulk_config(b, 2, SA_NODE, &body), 0x0300);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	/* LID 0, and a multicast LID */
	wire_node(body.bytes + 2 * NODE_WIRE, 0, 0x102);
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0x001C);
	wire_node(body.bytes + 2 * NODE_WIRE, 0xC0010000, 0x102);
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0x001C);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	/* nothing has changed, so the change tokens of others stay current (A6) */
	assert_int_equal(store_version_number(store_current(b->reader)), version);
	assert_int_equal(sa_worker_counters(b->w)->write_conflicts, 5);
}

static void
test_failed_config_leaves_no_trace_in_its_batch(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = *state;
	uint8_t wire[NODE_WIRE];

	wire_node(body.bytes + 2 * NODE_WIRE, 0x00040000, 0x102); /* exists */
	wire_node(wire, 0x00200000, 0x200);
	b->hold_writes = true;
	ask_only(b,
		&(struct ask){
			.version = 1,
			.method = SA1_CONFIG,
			.attribute = SA_NODE,
			.edit = 1,
			.body = &body,
		});
	ask_only(b,
		&(struct ask){
			.version = 1,
			.method = SA1_CONFIG,
			.attribute = SA_NODE,
			.edit = 1,
			.data = wire,
			.data_len = NODE_WIRE,
			.payload_len = NODE_WIRE,
		});
	sa_write_execute(b->sa, b->writes, 2, 1000);
	b->handles = 1;
	sa_write_done(b->w, b->writes[0], 0);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0x0200);
	b->answered = false;
	b->handles = 2;
	sa_write_done(b->w, b->writes[1], 0);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 7);
}

static void
test_config_that_is_not_durable_has_not_happened(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = *state;

	b->fail_commits = true;
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0x0100);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	b->fail_commits = false;
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 9);
}

static void
test_config_in_one_packet(void **state)
{
	struct bench *b = *state;
	uint8_t wire[NODE_WIRE];
	struct ask a = {
		.version = 1,
		.method = SA1_CONFIG,
		.attribute = SA_NODE,
		.edit = 1,
		.data = wire,
		.data_len = NODE_WIRE,
		.payload_len = NODE_WIRE,
	};

	wire_node(wire, 0x00200000, 0x200);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 7);
	a.payload_len = 193; /* more than a packet holds */
	assert_int_equal(ask(b, &a), 0x001C);
	a.payload_len = 107;
	assert_int_equal(ask(b, &a), 0x001C);
}

static void
test_config_that_is_malformed(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = *state;

	assert_int_equal(sa_bulk_config(b, 0, SA_NODE, &body), 0x001C);
	assert_int_equal(sa_bulk_config(b, 4, SA_NODE, &body), 0x001C);
	assert_false(body.taken);
	body.len--;
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0x001C);
	assert_int_equal(sa_bulk_config(b, 1, SA_PATH, &body), 0x000C);
	assert_int_equal(sa_bulk_config(b, 1, 0x0099, &body), 0x000C);
}

static void
other_codes(struct sa_config *config)
{
	static const uint8_t codes[3] = { 3, 1, 2 };

	memcpy(config->edit_codes, codes, 3);
}

/* A6: the codes are our choice, and configurable */
static void
test_edit_codes_are_configured(void **state)
{
	struct mad_body body = three_nodes();
	struct bench *b = bench_create(other_codes);
	struct sa_config bad = b->config;
	struct error err;

	(void)state;
	assert_int_equal(sa_bulk_config(b, 2, SA_NODE, &body), 0x0300); /* edit */
	assert_int_equal(sa_bulk_config(b, 3, SA_NODE, &body), 0); /* add */
	assert_int_equal(count_of(b, SA_TABLE_NODE), 9);
	assert_int_equal(sa_bulk_config(b, 1, SA_NODE, &body), 0); /* delete */
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	bad.edit_codes[0] = 1; /* twice */
	assert_null(sa_create(&bad, &err));
	bad.edit_codes[0] = 0; /* what stands in queries */
	assert_null(sa_create(&bad, &err));
	bench_destroy(b);
}

static void
test_path_ports_are_a_power_of_two(void **state)
{
	struct bench *b = *state;
	struct sa_config c = b->config;
	struct error err;
	struct sa *sa;

	c.path_ports = 0;
	assert_null(sa_create(&c, &err));
	c.path_ports = 3;
	assert_null(sa_create(&c, &err));
	c.path_ports = 1;
	sa = sa_create(&c, &err);
	assert_non_null(sa);
	sa_destroy(sa);
}

static void
test_config_assigns_rids_where_there_are_no_lids(void **state)
{
	struct mad_body body = { .len = 2 * 180 };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint8_t *wire = body.bytes + i * 180;

		put_be64(wire + 4, 70 + i);
		set_gid(wire + 4 + 8, GUID_A);
		put_be32(wire + 4 + 28, 60);
	}
	put_be32(body.bytes + 180, 0x00ABCDEF); /* the second brings its own */
	assert_int_equal(sa_bulk_config(b, 1, SA_SERVICE, &body), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	assert_non_null(store_get(store_current(b->reader), SA_TABLE_SERVICE, 0x00ABCDEF));
	/* the same service twice */
	put_be32(body.bytes + 180, 0);
	assert_int_equal(sa_bulk_config(b, 1, SA_SERVICE, &body), 0x0200);
	/* nor by an edit */
	put_be32(body.bytes, 0x00ABCDEF);
	body.len = 180;
	assert_int_equal(sa_bulk_config(b, 3, SA_SERVICE, &body), 0x0200);
	assert_int_equal(sa_expire(b->sa, 1060), 2);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_bulk_is_every_table_with_its_header),
		T(test_bulk_is_read_from_anywhere),
		T(test_bulk_since_a_key_has_the_tables_that_changed),
		T(test_config_adds_edits_and_deletes_many_records),
		T(test_config_is_all_or_nothing),
		T(test_failed_config_leaves_no_trace_in_its_batch),
		T(test_config_that_is_not_durable_has_not_happened),
		T(test_config_in_one_packet),
		T(test_config_that_is_malformed),
		cmocka_unit_test(test_edit_codes_are_configured),
		T(test_path_ports_are_a_power_of_two),
		T(test_config_assigns_rids_where_there_are_no_lids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
