/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The SA's client on top of a fake lib/mad: queries on the wire, and decoding of answers split
 * anywhere.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sa/bulk.h"
#include "sa/client.h"
#include "wire/bytes.h"

#define TAKEN_MAX 64

static struct {
	struct mad_call call; /* the last one */
	uint8_t mad[MAD_LEN];
	unsigned int calls;
	int refuse; /* negative errno of the next */
	/* what the client's user received */
	uint8_t rec[TAKEN_MAX][SA_RECORD_MAX];
	uint32_t rid[TAKEN_MAX];
	const struct sa_record_type *type[TAKEN_MAX];
	unsigned int records;
	unsigned int fail_at; /* number of the record that the user refuses, from 1 on */
	unsigned int dones;
	struct mad_result result;
	uint64_t sa_key;
	mad_handle moved;
	struct port_attr port;
} seen;

const struct port_attr *
mad_port(const struct mad_worker *w, uint16_t port)
{
	(void)w, (void)port;
	return &seen.port;
}

int
mad_call(struct mad_worker *w, const struct mad_call *call, uint64_t now, mad_handle *h)
{
	(void)w, (void)now;
	if (seen.refuse != 0)
		return seen.refuse;
	seen.call = *call;
	memcpy(seen.mad, call->mad, MAD_LEN);
	seen.calls++;
	*h = seen.calls;
	return 0;
}

static int
sa_client_take(void *arg, const struct sa_record_type *type, uint32_t rid, const uint8_t *rec)
{
	(void)arg;
	if (++seen.records == seen.fail_at)
		return -ENOBUFS;
	assert_in_range(seen.records, 1, TAKEN_MAX);
	memcpy(seen.rec[seen.records - 1], rec, type->len);
	seen.rid[seen.records - 1] = rid;
	seen.type[seen.records - 1] = type;
	return 0;
}

static void
sa_client_done(void *arg, const struct mad_result *result, uint64_t sa_key)
{
	(void)arg;
	seen.dones++;
	seen.result = *result;
	seen.sa_key = sa_key;
}

static void
moved(void *arg, mad_handle h)
{
	(void)arg;
	seen.moved = h;
}

static int
sa_client_setup(void **state)
{
	memset(&seen, 0, sizeof(seen));
	*state = sa_client_create(NULL, &allocator_malloc, 2);
	return *state == NULL;
}

static int
sa_client_teardown(void **state)
{
	sa_client_destroy(*state);
	return 0;
}

static struct sa_query
sa_client_query(enum sa_op op, enum sa_version v, uint16_t attribute)
{
	return (struct sa_query){
		.op = op,
		.version = v,
		.type = sa_record_type(attribute),
		.sm_key = 0x1122334455667788,
		.sa_key = 0x99,
		.resp_time = 12,
	};
}

static void
sa_client_with(struct sa_query *q, const char *name, uint64_t value)
{
	sa_put_named(q->type, name, q->tmpl, value);
	q->mask |= sa_mask(q->type, sa_field_named(q->type, name), SA_V2);
}

static int
sa_client_try_ask(struct sa_client *c, const struct sa_query *q, struct error *err)
{
	const struct sa_taker taker = { NULL, sa_client_take, sa_client_done, moved };
	mad_handle h = 0;

	return sa_ask(c, q, &taker, 0, &h, err);
}

static void
sa_client_ask(struct sa_client *c, const struct sa_query *q)
{
	struct error err = { "" };

	if (sa_client_try_ask(c, q, &err) != 0)
		fail_msg("%s", err.text);
}

static void
sa_client_refused(struct sa_client *c, const struct sa_query *q, const char *words)
{
	struct error err = { "" };

	assert_int_equal(sa_client_try_ask(c, q, &err), -EINVAL);
	assert_non_null(strstr(err.text, words));
	assert_int_equal(seen.calls, 0);
}

/* Pass the answer's data in pieces of @p piece bytes. @return the client's last result */
static int
sa_client_feed(const uint8_t *data, size_t len, size_t piece)
{
	size_t at, n;
	int ret = 0;

	for (at = 0; at < len && ret == 0; at += n) {
		n = len - at < piece ? len - at : piece;
		ret = seen.call.taker.data(seen.call.taker.arg, at, data + at, (uint32_t)n);
	}
	return ret;
}

static void
sa_client_end(enum mad_end how, const uint8_t *mad, uint64_t bytes)
{
	const struct mad_result r = { .end = how, .mad = mad, .bytes = bytes };

	seen.call.taker.done(seen.call.taker.arg, &r);
}

#define expect_zero(from, to)                                                                      \
	do {                                                                                       \
		size_t i_;                                                                         \
		for (i_ = (from); i_ < (to); i_++)                                                 \
			assert_int_equal(seen.mad[i_], 0);                                         \
	} while (0)

/* --- requests --- */

/* sa-multipacket B1, B7, B11: Path SGID is component 3, 24 bytes into the record */
static void
test_version_2_query_on_the_wire(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V2, SA_PATH);
	static const uint8_t gid[16] = { 0xfe, 0x80, [15] = 1 };

	memcpy(q.tmpl + 24, gid, 16);
	q.mask = 1 << 3;
	sa_client_ask(*state, &q);
	assert_memory_equal(seen.mad, "\x01\x03\x02\x12\x00\x00\x00\x00", 8);
	assert_int_equal(get_be16(seen.mad + 16), 0x0035);
	expect_zero(18, 36);
	assert_memory_equal(seen.mad + 36, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	expect_zero(44, 48);
	assert_memory_equal(seen.mad + 48, "\0\0\0\0\0\0\0\x08", 8);
	expect_zero(56, 56 + 24);
	assert_memory_equal(seen.mad + 56 + 24, gid, 16);
	expect_zero(56 + 40, 256);
	assert_int_equal(seen.call.protocol, MAD_RMPP);
	assert_int_equal(seen.call.data_offset, 56);
	assert_int_equal(seen.call.resp_time, 12);
	assert_true(seen.call.flags & MAD_METHOD_MULTI_RESPONSE);
}

/* the worked example of A7: SwitchInfo.LIDsPerPort is bit 10 and stands at AdminData offset 12 */
static void
test_version_1_mask_counts_the_bare_attribute(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V1, SA_SWITCH_INFO);

	sa_client_with(&q, "lids_per_port", 0x0203);
	assert_true(q.mask == 1 << 12);
	sa_client_ask(*state, &q);
	assert_memory_equal(seen.mad, "\x01\x03\x01\x12", 4);
	assert_int_equal(get_be32(seen.mad + 20), 0xFFFFFFFF); /* by template */
	assert_int_equal(get_be64(seen.mad + 24), 0x99);
	assert_memory_equal(seen.mad + 32, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	assert_int_equal(seen.mad[49], 0); /* EditModifier */
	assert_int_equal(get_be16(seen.mad + 50), 64); /* Window */
	assert_int_equal(get_be32(seen.mad + 52), 0);
	assert_true(get_be64(seen.mad + 56) == 1 << 10);
	expect_zero(64, 64 + 12);
	assert_int_equal(get_be16(seen.mad + 64 + 12), 0x0203);
	expect_zero(64 + 14, 256);
	assert_int_equal(seen.call.protocol, MAD_SA1);
	assert_int_equal(seen.call.data_offset, 64);
}

static void
test_version_1_cannot_select_the_rid_part(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V1, SA_NODE);

	sa_client_with(&q, "lid", 1);
	sa_client_refused(*state, &q, "lid: cannot be selected in class version 1");
}

/* A6: by RID, a range of RIDs, the whole table */
static void
test_version_1_rids(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_GET, SA_V1, SA_NODE);
	struct sa_client *c = *state;

	q.by_rid = true;
	q.rid = 0x00050000;
	q.end_rid = 0x00070000;
	sa_client_ask(c, &q);
	assert_int_equal(get_be32(seen.mad + 20), 0x00050000);
	assert_int_equal(get_be32(seen.mad + 52), 0);
	sa_client_end(MAD_END_TIMEOUT, NULL, 0);
	q.op = SA_OP_TABLE;
	sa_client_ask(c, &q);
	assert_int_equal(get_be32(seen.mad + 20), 0x00050000);
	assert_int_equal(get_be32(seen.mad + 52), 0x00070000);
	sa_client_end(MAD_END_TIMEOUT, NULL, 0);
	q.by_rid = false;
	sa_client_ask(c, &q);
	assert_int_equal(get_be32(seen.mad + 20), 0);
	assert_int_equal(get_be32(seen.mad + 52), 0xFFFFFFFF);
	expect_zero(56, 256);
}

/* A2, A6: Set adds with EditModifier 1 and no RID, deletes with 2 and the RID alone */
static void
test_version_1_set_and_delete(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_SET, SA_V1, SA_NODE);
	struct sa_client *c = *state;

	sa_client_with(&q, "lid", 5);
	sa_client_with(&q, "base_version", 0x42);
	sa_client_ask(c, &q);
	assert_int_equal(seen.mad[3], 0x02);
	assert_int_equal(seen.mad[49], 1);
	assert_int_equal(get_be32(seen.mad + 20), 0);
	expect_zero(56, 64);
	assert_int_equal(seen.mad[64], 0x42);
	q = sa_client_query(SA_OP_DELETE, SA_V1, SA_NODE);
	q.by_rid = true;
	q.rid = 0x00050000;
	sa_client_ask(c, &q);
	assert_int_equal(seen.mad[3], 0x02);
	assert_int_equal(seen.mad[49], 2);
	assert_int_equal(get_be32(seen.mad + 20), 0x00050000);
	expect_zero(56, 256);
}

static void
test_version_2_delete_is_a_method(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_DELETE, SA_V2, SA_SERVICE);

	sa_client_with(&q, "service_id", 7);
	sa_client_ask(*state, &q);
	assert_int_equal(seen.mad[3], 0x15);
	assert_int_equal(get_be64(seen.mad + 48), 1);
	assert_int_equal(get_be64(seen.mad + 56), 7);
}

static void
test_what_makes_no_sense_is_refused(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_BULK, SA_V2, SA_NODE);

	sa_client_refused(*state, &q, "class version 1");
	q = sa_client_query(SA_OP_CONFIG_ADD, SA_V2, SA_NODE);
	sa_client_refused(*state, &q, "class version 1");
	q = sa_client_query(SA_OP_CONFIG_ADD, SA_V1, SA_NODE);
	sa_client_refused(*state, &q, "records");
	q = sa_client_query(SA_OP_GET, SA_V2, SA_NODE);
	q.by_rid = true;
	sa_client_refused(*state, &q, "rid");
	q = sa_client_query(SA_OP_GET, SA_V1, SA_NODE);
	q.by_rid = true;
	sa_client_refused(*state, &q, "rid");
	q = sa_client_query(SA_OP_DELETE, SA_V1, SA_NODE);
	sa_client_refused(*state, &q, "rid");
	q = sa_client_query(SA_OP_GET, 3, SA_NODE);
	sa_client_refused(*state, &q, "class_version");
	q = sa_client_query(SA_OP_GET, SA_V2, 0x7777);
	sa_client_refused(*state, &q, "record");
}

/* A6 and sa/bulk.h: RID and attribute of each record without gaps, readable at any offset */
static void
test_config_is_a_stream_of_records_with_rids(void **state)
{
	static uint8_t recs[3 * SA_RECORD_MAX];
	static const uint32_t rids[3] = { 0x00010200, 0x00030400, 0x00050600 };
	struct sa_query q = sa_client_query(SA_OP_CONFIG_EDIT, SA_V1, SA_LINK);
	uint8_t all[64], part[64];
	uint32_t len, at, n;
	unsigned int i;

	for (i = 0; i < 3; i++)
		memcpy(recs + i * SA_RECORD_MAX, (uint8_t[6]){ 0, 2 * i + 1, 2 * i + 2, 9, 0, i },
			6);
	q.records = recs;
	q.rids = rids;
	q.num_records = 3;
	sa_client_ask(*state, &q);
	assert_int_equal(seen.mad[3], 0x14);
	assert_int_equal(seen.mad[49], 3);
	assert_int_equal(get_be32(seen.mad + 20), 0);
	assert_true(seen.call.flags & MAD_METHOD_MULTI_REQUEST);
	/* LinkRecord: 4 bytes of RID, then to_port and to_lid */
	len = (uint32_t)seen.call.source.length;
	assert_int_equal(len, 3 * sa_wire_len(q.type, SA_V1));
	assert_int_equal(seen.call.source.read(seen.call.source.arg, 0, all, len), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(get_be32(all + i * len / 3), rids[i]);
	assert_memory_equal(all + 4, "\x09\x00\x00", 3);
	assert_memory_equal(all + len / 3 + 4, "\x09\x00\x01", 3);
	for (at = 0; at < len; at++)
		for (n = 1; at + n <= len; n++) {
			memset(part, 0xEE, sizeof(part));
			assert_int_equal(seen.call.source.read(seen.call.source.arg, at, part, n),
				0);
			assert_memory_equal(part, all + at, n);
			assert_int_equal(part[n], 0xEE);
		}
}

/* --- answers --- */

/* three NodeRecords of LIDs 7, 8, 9 in a version's wire form */
static size_t
nodes(uint8_t *buf, enum sa_version v)
{
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		sa_put_named(t, "lid", rec, 7 + i);
		sa_put_named(t, "port_guid", rec, 0x1000 + i);
		sa_encode(t, v, rec, (7 + i) << 16, buf + i * sa_wire_len(t, v));
	}
	return 3u * sa_wire_len(t, v);
}

static void
expect_nodes(unsigned int from)
{
	unsigned int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(seen.type[from + i]->attribute, SA_NODE);
		assert_int_equal(seen.rid[from + i], (7 + i) << 16);
		assert_int_equal(get_be16(seen.rec[from + i]), 7 + i);
		assert_int_equal(get_be64(seen.rec[from + i] + 24), 0x1000 + i);
	}
}

/* records may be split by segments anywhere: the result is the same */
/* B10: MultiPathRecord, SGIDs, DGIDs; asked with both counts selected, answered by PathRecords */
static void
test_multi_is_a_stream_of_gids(void **state)
{
	static const uint8_t gids[3][16] = { { 0xFE, 0x80, [15] = 1 }, { 0xFE, 0x80, [15] = 2 },
		{ 0xFE, 0x80, [15] = 3 } };
	struct sa_query q = sa_client_query(SA_OP_MULTI, SA_V2, SA_MULTI_PATH);
	uint8_t buf[80] = { 0 }, paths[2 * 64] = { 0 };

	sa_client_refused(*state, &q, "destination");
	sa_client_with(&q, "numb_path", 3);
	sa_put_named(q.type, "sgid_count", q.tmpl, 2);
	sa_put_named(q.type, "dgid_count", q.tmpl, 1);
	q.gids = gids[0];
	sa_client_ask(*state, &q);
	assert_int_equal(seen.mad[3], 0x14);
	assert_int_equal(get_be16(seen.mad + 16), 0x003A);
	assert_int_equal(get_be64(seen.mad + 48), 0x180040);
	assert_int_equal(seen.call.flags & 0x6, 0x6); /* many packets both ways */
	assert_int_equal(seen.call.source.length, 24 + 3 * 16);
	assert_int_equal(seen.call.source.read(seen.call.source.arg, 0, buf, 72), 0);
	assert_int_equal(buf[5], 3);
	assert_int_equal(buf[15], 2);
	assert_int_equal(buf[16], 1);
	assert_memory_equal(buf + 24, gids, 48);
	assert_int_equal(seen.call.source.read(seen.call.source.arg, 20, buf, 8), 0);
	assert_int_equal(buf[4], 0xFE);
	assert_int_equal(seen.call.source.read(seen.call.source.arg, 71, buf, 1), 0);
	assert_int_equal(buf[0], 3);
	put_be16(paths + 64 + 40, 7); /* DLID */
	assert_int_equal(sa_client_feed(paths, sizeof(paths), 50), 0);
	assert_int_equal(seen.records, 2);
	assert_ptr_equal(seen.type[1], sa_record_type(SA_PATH));
	assert_int_equal(get_be16(seen.rec[1] + 40), 7);
}

/* A6: the codes are our choice, and configurable */
static void
test_edit_codes_are_configured(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_DELETE, SA_V1, SA_SERVICE);

	q.by_rid = true;
	q.rid = 5;
	sa_client_ask(*state, &q);
	assert_int_equal(seen.mad[49], 2);
	sa_client_edit_codes(*state, (const uint8_t[]){ 3, 7, 2 });
	sa_client_ask(*state, &q);
	assert_int_equal(seen.mad[49], 7);
}

static void
test_multi_is_of_version_2(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_MULTI, SA_V1, SA_MULTI_PATH);

	sa_client_refused(*state, &q, "GetMulti is of class version 2");
	q = sa_client_query(SA_OP_MULTI, SA_V2, SA_PATH);
	sa_client_refused(*state, &q, "MultiPathRecord");
}

static void
test_records_are_whole_wherever_they_are_cut(void **state)
{
	uint8_t data[512], mad[MAD_LEN] = { 0 };
	struct sa_query q;
	size_t len, piece;
	int v;

	for (v = SA_V1; v <= SA_V2; v++) {
		q = sa_client_query(SA_OP_TABLE, v, SA_NODE);
		len = nodes(data, v);
		assert_int_equal(len, v == SA_V1 ? 3 * 108 : 3 * 112);
		for (piece = 1; piece <= len; piece++) {
			memset(&seen, 0, sizeof(seen));
			sa_client_ask(*state, &q);
			put_be64(mad + 24, 0xABCD); /* v1: SA_Key */
			put_be16(mad + 44, v == SA_V2 ? 14 : 0);
			assert_int_equal(sa_client_feed(data, len, piece), 0);
			assert_int_equal(seen.records, 3);
			expect_nodes(0);
			sa_client_end(MAD_END_OK, mad, len);
			assert_int_equal(seen.dones, 1);
			assert_int_equal(seen.result.end, MAD_END_OK);
			assert_true(seen.sa_key == (v == SA_V1 ? 0xABCD : 0));
		}
	}
}

static void
test_a_rest_is_no_record(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V2, SA_NODE);
	uint8_t data[512], mad[MAD_LEN] = { 0 };
	size_t len = nodes(data, SA_V2);

	sa_client_ask(*state, &q);
	assert_int_equal(sa_client_feed(data, len - 1, 200), 0);
	sa_client_end(MAD_END_OK, mad, len - 1);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.result.end, MAD_END_PROTOCOL);
	assert_int_equal(seen.result.error, -EPROTO);
}

/* B1: AttributeOffset is the stride of the records; ours would be 14 */
static void
test_records_of_another_size_are_no_table_of_ours(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V2, SA_NODE);
	uint8_t data[512], mad[MAD_LEN] = { 0 };
	size_t len = nodes(data, SA_V2);

	put_be16(mad + 44, 15);
	sa_client_ask(*state, &q);
	sa_client_feed(data, len, 200);
	sa_client_end(MAD_END_OK, mad, len);
	assert_int_equal(seen.result.end, MAD_END_PROTOCOL);
}

static void
test_a_record_not_taken_ends_the_query(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V2, SA_NODE);
	uint8_t data[512];
	size_t len = nodes(data, SA_V2);

	seen.fail_at = 2;
	sa_client_ask(*state, &q);
	assert_int_equal(sa_client_feed(data, len, len), -ENOBUFS);
	assert_int_equal(seen.records, 2); /* the third record was not delivered */
}

static void
sa_client_header(uint8_t *p, uint16_t attribute, uint16_t len, uint32_t n)
{
	put_be16(p, attribute);
	put_be16(p + 2, len);
	put_be32(p + 4, n);
}

/* sa/bulk.h: {AttributeID, length, number} and the records of each table */
static void
test_bulk_is_taken_apart_by_its_headers(void **state)
{
	struct sa_query q = { .op = SA_OP_BULK, .version = SA_V1 };
	uint8_t data[600], mad[MAD_LEN] = { 0 };
	size_t len, piece;

	sa_client_header(data, SA_NODE, 108, 3);
	len = 8 + nodes(data + 8, SA_V1);
	sa_client_header(data + len, SA_PORT_INFO, 68, 0); /* an empty table */
	sa_client_header(data + len + 8, SA_LINK, 7, 1);
	memcpy(data + len + 16, "\x00\x01\x02\x00\x04\x00\x03", 7);
	len += 23;
	for (piece = 1; piece <= len; piece++) {
		memset(&seen, 0, sizeof(seen));
		sa_client_ask(*state, &q);
		assert_int_equal(seen.mad[3], 0x13);
		assert_int_equal(sa_client_feed(data, len, piece), 0);
		sa_client_end(MAD_END_OK, mad, len);
		assert_int_equal(seen.result.end, MAD_END_OK);
		assert_int_equal(seen.records, 4);
		expect_nodes(0);
		assert_int_equal(seen.type[3]->attribute, SA_LINK);
		assert_memory_equal(seen.rec[3], "\x00\x01\x02\x04\x00\x03", 6);
	}
	/* it ends within a table */
	memset(&seen, 0, sizeof(seen));
	sa_client_ask(*state, &q);
	assert_int_equal(sa_client_feed(data, 8 + 108, 192), 0);
	sa_client_end(MAD_END_OK, mad, 8 + 108);
	assert_int_equal(seen.result.end, MAD_END_PROTOCOL);
	/* a table that we do not know, or whose records have another length */
	sa_client_ask(*state, &q);
	sa_client_header(data, 0x7777, 108, 3);
	assert_int_equal(sa_client_feed(data, len, 192), -EPROTO);
	sa_client_end(MAD_END_REFUSED, NULL, 0);
	sa_client_ask(*state, &q);
	sa_client_header(data, SA_NODE, 107, 3);
	assert_int_equal(sa_client_feed(data, len, 192), -EPROTO);
}

/* GetResp, SetResp and DeleteResp have the record; a version 1 deletion has none */
static void
test_single_answers(void **state)
{
	uint8_t mad[MAD_LEN] = { 0 };
	struct sa_query q;

	q = sa_client_query(SA_OP_GET, SA_V2, SA_NODE);
	sa_client_ask(*state, &q);
	assert_null(seen.call.taker.data);
	put_be16(mad + 56, 0x0102);
	sa_client_end(MAD_END_OK, mad, 0);
	assert_int_equal(seen.records, 1);
	assert_int_equal(get_be16(seen.rec[0]), 0x0102);
	q = sa_client_query(SA_OP_GET, SA_V1, SA_NODE);
	sa_client_ask(*state, &q);
	put_be32(mad + 64, 0x03040000);
	mad[68] = 0x55;
	sa_client_end(MAD_END_OK, mad, 0);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.rid[1], 0x03040000);
	assert_int_equal(get_be16(seen.rec[1]), 0x0304);
	assert_int_equal(seen.rec[1][4], 0x55); /* base_version */
	q = sa_client_query(SA_OP_DELETE, SA_V1, SA_NODE);
	q.by_rid = true;
	q.rid = 0x03040000;
	sa_client_ask(*state, &q);
	sa_client_end(MAD_END_OK, mad, 0);
	assert_int_equal(seen.records, 2);
	/* with a status there is no record */
	q = sa_client_query(SA_OP_GET, SA_V2, SA_NODE);
	sa_client_ask(*state, &q);
	sa_client_end(MAD_END_STATUS, mad, 0);
	assert_int_equal(seen.records, 2);
	assert_int_equal(seen.dones, 4);
	assert_int_equal(seen.result.end, MAD_END_STATUS);
	/* nor if the user refuses it */
	seen.fail_at = 3;
	sa_client_ask(*state, &q);
	sa_client_end(MAD_END_OK, mad, 0);
	assert_int_equal(seen.result.end, MAD_END_REFUSED);
	assert_int_equal(seen.result.error, -ENOBUFS);
}

/* --- bounds --- */

static void
test_queries_are_bounded_and_come_back(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_GET, SA_V2, SA_NODE);
	struct error err = { "" };
	struct mad_call first;
	struct mad_result r = { .end = MAD_END_CANCELLED };

	sa_client_ask(*state, &q);
	first = seen.call;
	seen.refuse = -ENOSPC;
	assert_int_equal(sa_client_try_ask(*state, &q, &err), -ENOSPC);
	seen.refuse = 0;
	sa_client_ask(*state, &q);
	assert_int_equal(sa_client_try_ask(*state, &q, &err), -ENOSPC);
	first.taker.done(first.taker.arg, &r);
	sa_client_ask(*state, &q);
	assert_int_equal(seen.calls, 3);
	assert_int_equal(seen.dones, 1);
}

/* --- TransactionIDs --- */

static void
test_given_tid_is_kept(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_SET, SA_V2, SA_SERVICE);
	enum sa_version v;

	sa_client_ask(*state, &q);
	assert_false(seen.call.keep_tid);
	sa_client_end(MAD_END_STATUS, NULL, 0);
	q.keep_tid = true;
	q.tid = 0xFEDCBA9876543210;
	for (v = SA_V1; v <= SA_V2; v++) {
		q.version = v;
		sa_client_ask(*state, &q);
		assert_true(seen.call.keep_tid);
		assert_memory_equal(seen.mad + MAD_OFF_TID, "\xFE\xDC\xBA\x98\x76\x54\x32\x10", 8);
		sa_client_end(MAD_END_STATUS, NULL, 0);
	}
}

static void
test_tid_of_an_open_request_is_refused(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_SET, SA_V2, SA_SERVICE);
	struct error err = { "" };

	q.keep_tid = true;
	seen.refuse = -EEXIST;
	assert_int_equal(sa_client_try_ask(*state, &q, &err), -EEXIST);
	assert_non_null(strstr(err.text, "tid: a request to this SA has this TID"));
	assert_int_equal(seen.dones, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, sa_client_setup, sa_client_teardown)

/* --- RespTimeValue (seed 000) --- */

/* Check that the last call was a Get(ClassPortInfo), and answer it with this RespTimeValue. */
static void
tell_class(enum sa_version v, uint8_t resp_time)
{
	unsigned int data = v == SA_V1 ? SA1_OFF_DATA : SA2_OFF_DATA;
	uint8_t mad[MAD_LEN] = { 0 };

	assert_int_equal(seen.mad[1], 3);
	assert_int_equal(seen.mad[2], v);
	assert_int_equal(seen.mad[3], MAD_GET);
	assert_int_equal(get_be16(seen.mad + MAD_OFF_ATTRIBUTE), 1);
	mad[data + 7] = 0xE0 | resp_time; /* with CapabilityMask2's last bits */
	sa_client_end(MAD_END_OK, mad, 0);
}

/* Asked once and remembered for that SA and class version; a given value needs no question. */
static void
test_resp_time_is_the_sas(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V2, SA_NODE);
	struct sa_known known = { { 0 } };
	enum sa_version v;

	q.resp_time = SA_RESP_TIME_ASK;
	q.to.av.dgid.raw[15] = 7;
	sa_client_share(*state, &known);
	for (v = SA_V1; v <= SA_V2; v++) {
		q.version = v;
		seen.moved = 0;
		sa_client_ask(*state, &q);
		tell_class(v, 9 + v);
		assert_int_equal(seen.dones, v - 1);
		assert_int_equal(seen.mad[3], SA_GET_TABLE);
		assert_int_equal(seen.call.resp_time, 9 + v);
		assert_int_equal(seen.moved, seen.calls);
		sa_client_end(MAD_END_OK, NULL, 0);
	}
	assert_int_equal(seen.calls, 4);
	sa_client_ask(*state, &q);
	assert_int_equal(seen.calls, 5);
	assert_int_equal(seen.call.resp_time, 11);
	sa_client_end(MAD_END_OK, NULL, 0);
	/* another SA */
	q.to.av.dgid.raw[15] = 8;
	sa_client_ask(*state, &q);
	tell_class(SA_V2, 20);
	assert_int_equal(seen.call.resp_time, 20);
	sa_client_end(MAD_END_OK, NULL, 0);
	q.resp_time = 3;
	sa_client_ask(*state, &q);
	assert_int_equal(seen.calls, 8);
	assert_int_equal(seen.call.resp_time, 3);
}

/* The question for it has a TID of its own, and the query behind it the one that was given. */
static void
test_given_tid_is_kept_behind_the_class_port_info(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_SET, SA_V2, SA_SERVICE);

	q.resp_time = SA_RESP_TIME_ASK;
	q.keep_tid = true;
	q.tid = 77;
	sa_client_ask(*state, &q);
	assert_false(seen.call.keep_tid);
	tell_class(SA_V2, 5);
	assert_true(seen.call.keep_tid);
	assert_int_equal(seen.mad[MAD_OFF_METHOD], MAD_SET);
	assert_int_equal(get_be64(seen.mad + MAD_OFF_TID), 77);
}

/* Asked again after a change of SM (SM_CHANGE), and after an SA has timed out */
static void
test_sa_is_asked_anew(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_GET, SA_V2, SA_NODE);

	q.resp_time = SA_RESP_TIME_ASK;
	q.to.av.encap = ENCAP_IB;
	q.to.av.dlid = 3;
	seen.port.sm_lid = 3;
	sa_client_ask(*state, &q);
	tell_class(SA_V2, 5);
	sa_client_end(MAD_END_STATUS, NULL, 0);
	seen.port.sm_lid = 4;
	sa_client_ask(*state, &q);
	tell_class(SA_V2, 6);
	assert_int_equal(seen.call.resp_time, 6);
	sa_client_end(MAD_END_TIMEOUT, NULL, 0);
	assert_int_equal(seen.dones, 2);
	sa_client_ask(*state, &q);
	/* no answer to that either: the query is over */
	assert_int_equal(get_be16(seen.mad + MAD_OFF_ATTRIBUTE), 1);
	sa_client_end(MAD_END_TIMEOUT, NULL, 0);
	assert_int_equal(seen.dones, 3);
	assert_int_equal(seen.result.end, MAD_END_TIMEOUT);
	assert_int_equal(seen.calls, 5);
}

/* An SA without ClassPortInfo: opensm's value 18 is used */
static void
test_sa_without_class_port_info(void **state)
{
	struct sa_query q = sa_client_query(SA_OP_TABLE, SA_V1, SA_NODE);

	q.resp_time = SA_RESP_TIME_ASK;
	sa_client_ask(*state, &q);
	sa_client_end(MAD_END_STATUS, NULL, 0);
	assert_int_equal(seen.call.resp_time, 18);
	sa_client_end(MAD_END_OK, NULL, 0);
	sa_client_ask(*state, &q);
	assert_int_equal(seen.calls, 3);
	/* no session for the query behind it */
	q.version = SA_V2;
	sa_client_ask(*state, &q);
	seen.refuse = -ENOSPC;
	tell_class(SA_V2, 5);
	assert_int_equal(seen.dones, 2);
	assert_int_equal(seen.result.end, MAD_END_REFUSED);
	assert_int_equal(seen.result.error, -ENOSPC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_version_2_query_on_the_wire),
		T(test_version_1_mask_counts_the_bare_attribute),
		T(test_version_1_cannot_select_the_rid_part),
		T(test_version_1_rids),
		T(test_version_1_set_and_delete),
		T(test_version_2_delete_is_a_method),
		T(test_what_makes_no_sense_is_refused),
		T(test_config_is_a_stream_of_records_with_rids),
		T(test_multi_is_a_stream_of_gids),
		T(test_multi_is_of_version_2),
		T(test_edit_codes_are_configured),
		T(test_records_are_whole_wherever_they_are_cut),
		T(test_a_rest_is_no_record),
		T(test_records_of_another_size_are_no_table_of_ours),
		T(test_a_record_not_taken_ends_the_query),
		T(test_bulk_is_taken_apart_by_its_headers),
		T(test_single_answers),
		T(test_queries_are_bounded_and_come_back),
		T(test_given_tid_is_kept),
		T(test_tid_of_an_open_request_is_refused),
		T(test_given_tid_is_kept_behind_the_class_port_info),
		T(test_resp_time_is_the_sas),
		T(test_sa_is_asked_anew),
		T(test_sa_without_class_port_info),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
