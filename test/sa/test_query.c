/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queries of both class versions: Get, GetTable, templates, RIDs and ranges, change tokens, slices,
 * bounds and statuses (sa-multipacket A6 to A8, B7 to B9).
 */

#include <errno.h>

#include "bench.h"

#define NODE_LID SA_BIT(0)

static struct ask
v2(uint8_t method, uint16_t attribute, uint64_t mask, const uint8_t *rec)
{
	return (struct ask){
		.version = 2,
		.method = method,
		.attribute = attribute,
		.mask = mask,
		.data = rec,
		.data_len = rec != NULL ? sa_record_type(attribute)->len : 0,
	};
}

static struct ask
v1(uint8_t method, uint16_t attribute, uint32_t rid, uint32_t end_rid)
{
	return (struct ask){
		.version = 1,
		.method = method,
		.attribute = attribute,
		.modifier = rid,
		.end_rid = end_rid,
	};
}

/* --- class version 2 --- */

static void
test_get_of_one_record(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(MAD_GET, SA_NODE, NODE_LID, rec);

	put_be16(rec, 4);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be16(b->reply + SA2_OFF_DATA), 4);
	assert_int_equal(get_be64(b->reply + SA2_OFF_DATA + 24), GUID_A);
	assert_int_equal(get_be16(b->reply + SA2_OFF_ATTR_OFFSET), 0);
	assert_int_equal(get_be64(b->reply + SA2_OFF_SM_KEY), 0);
	assert_int_equal(sa_worker_counters(b->w)->get, 1);
	assert_int_equal(sa_worker_counters(b->w)->records_sent, 1);
}

static void
test_get_without_a_match_is_no_records(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(MAD_GET, SA_NODE, NODE_LID, rec);

	put_be16(rec, 77);
	assert_int_equal(ask(b, &a), 0x0300);
	assert_int_equal(sa_worker_counters(b->w)->no_records, 1);
}

static void
test_get_with_two_matches_is_too_many(void **state)
{
	struct bench *b = *state;
	struct ask a = v2(MAD_GET, SA_NODE, 0, NULL);

	assert_int_equal(ask(b, &a), 0x0400);
	assert_int_equal(sa_worker_counters(b->w)->too_many, 1);
}

static void
test_get_table_without_a_match_is_success(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, NODE_LID, rec);

	put_be16(rec, 77);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->outcome, MAD_STREAM);
	assert_int_equal(b->len, 0);
	assert_int_equal(get_be16(b->reply + SA2_OFF_ATTR_OFFSET), 0);
}

static void
test_whole_table_in_the_order_of_rids(void **state)
{
	static const uint16_t lids[] = { 1, 2, 4, 5, 8, 12 };
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, 0, NULL);
	unsigned int i;

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 6 * 112);
	assert_int_equal(get_be16(b->reply + SA2_OFF_ATTR_OFFSET), 14);
	for (i = 0; i < 6; i++)
		assert_int_equal(get_be16(b->data + i * 112), lids[i]);
	/* no record is examined and none collected */
	assert_int_equal(sa_worker_counters(b->w)->records_scanned, 0);
}

static void
test_template_by_index(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(8), rec);

	put_be64(rec + 24, GUID_C);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 2), 1);
	assert_int_equal(get_be16(b->data), 8);
	assert_int_equal(sa_worker_counters(b->w)->records_scanned, 1);
	/* the index finds it, another component does not match */
	a.mask |= SA_BIT(4);
	rec[NODE_OFF_TYPE] = NODE_TYPE_SWITCH;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
	a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(7), rec);
	put_be64(rec + 16, GUID_D | 0x1000);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be16(b->data), 12);
	memset(rec, 0, sizeof(rec));
	a = v2(SA_GET_TABLE, SA_GUID_INFO, SA_BIT(5), rec); /* GUID1 */
	put_be64(rec + 16, GUID_A1);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_GUID_INFO, 2), 1);
	a.mask = SA_BIT(4); /* it is not GUID0 */
	put_be64(rec + 8, GUID_A1);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
	a.mask = SA_BIT(11); /* an unused entry */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_GUID_INFO, 2), 1);
}

static void
test_template_by_lid_and_by_scan(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_PORT_INFO, SA_BIT(0), rec);

	put_be16(rec, 1);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_PORT_INFO, 2), 4); /* S1: ports 0, 1, 2, 10 */
	assert_int_equal(sa_worker_counters(b->w)->records_scanned, 0); /* a range of RIDs */
	a.mask |= SA_BIT(1);
	rec[2] = 10;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_PORT_INFO, 2), 1);
	a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(4), rec);
	rec[NODE_OFF_TYPE] = NODE_TYPE_SWITCH;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 2), 2);
}

static void
test_unknown_attributes_and_methods(void **state)
{
	static const struct {
		uint8_t method;
		uint16_t attribute;
	} cases[] = { { MAD_GET, 0x0099 }, { SA_GET_TABLE, 0x0099 },
		{ SA_GET_TABLE, SA_CLASS_PORT_INFO }, { MAD_GET, SA_INFORM_INFO },
		{ SA_GET_TABLE, SA_NOTICE }, { MAD_SET, SA_NODE }, { SA2_DELETE, SA_PORT_INFO },
		{ MAD_SET, SA_PATH }, { SA2_DELETE, SA_INFORM_INFO }, { SA2_GET_MULTI, SA_PATH },
		{ SA_GET_TABLE, SA_MULTI_PATH }, { MAD_GET, SA_MULTI_PATH },
		{ SA2_GET_TRACE, 0x0039 }, { SA_GET_TABLE, 0x0039 } };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ask a = v2(cases[i].method, cases[i].attribute, 0, NULL);

		assert_int_equal(ask(b, &a), 0x000C);
	}
	assert_int_equal(sa_worker_counters(b->w)->invalid, i);
}

static void
test_class_port_info(void **state)
{
	struct bench *b = *state;
	struct ask a = v2(MAD_GET, SA_CLASS_PORT_INFO, 0, NULL);

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA], 1);
	assert_int_equal(b->reply[SA2_OFF_DATA + 1], 2);
	assert_int_equal(b->reply[SA2_OFF_DATA + 7], 16); /* RespTimeValue */
	/*
	 * multicast and MultiPathRecords; not all optional records, nor traps, nor notices to set
	 */
	assert_int_equal(get_be16(b->reply + SA2_OFF_DATA + 2), 0x0600);
	a = v1(MAD_GET, SA_CLASS_PORT_INFO, 0, 0);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->reply[SA1_OFF_DATA + 1], 1);
	assert_int_equal(b->reply[SA1_OFF_DATA + 7], 16);
	assert_int_equal(get_be16(b->reply + SA1_OFF_DATA + 2), 0x0200);
}

/* --- class version 1 --- */

static void
test_v1_get_by_rid(void **state)
{
	struct bench *b = *state;
	struct ask a = v1(MAD_GET, SA_NODE, 0x00040000, 0);

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be32(b->reply + SA1_OFF_DATA), 0x00040000);
	assert_int_equal(get_be64(b->reply + SA1_OFF_DATA + 4 + 20), GUID_A);
	assert_int_not_equal(get_be64(b->reply + SA1_OFF_SA_KEY), 0);
	a.modifier = 0x00050100;
	a.attribute = SA_PORT_INFO;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be16(b->reply + SA1_OFF_DATA + 4 + 16), 5); /* its LID */
	a.modifier = 0x00770000;
	assert_int_equal(ask(b, &a), 0x0300);
	a.modifier = 0;
	assert_int_equal(ask(b, &a), 0x001C);
	a.modifier = 0x00050100;
	a.edit = 1;
	assert_int_equal(ask(b, &a), 0x001C);
	a = v1(MAD_GET, SA_PATH, 5, 0);
	assert_int_equal(ask(b, &a), 0x0200);
}

/* A6: the port of a RID is a switch's; of a CA it is 0 */
static void
test_v1_rid_of_a_ca_needs_no_port(void **state)
{
	struct bench *b = *state;
	struct ask a = v1(MAD_GET, SA_PORT_INFO, 0x00050000, 0);
	static const uint16_t pkeys[] = { 0xFFFF };

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be16(b->reply + SA1_OFF_DATA + 4 + 16), 5); /* its LID */
	a.modifier = 0x00770000;
	assert_int_equal(ask(b, &a), 0x0300);
	put_port(b, 0x66, 0x6666, NODE_TYPE_SWITCH, 0);
	put_pkeys(b, 0x66, 1, pkeys, 1);
	a.attribute = SA_PKEY_TABLE;
	a.modifier = 0x00660000;
	assert_int_equal(ask(b, &a), 0x0300);
}

static void
test_v1_template_and_mask_do_not_count_the_rid(void **state)
{
	uint8_t attr[40] = { 0 };
	struct bench *b = *state;
	struct ask a = v1(SA_GET_TABLE, SA_NODE, 0xFFFFFFFF, 0);

	put_be64(attr + 20, GUID_D); /* NodeInfo.PortGUID */
	a.data = attr;
	a.data_len = sizeof(attr);
	a.mask = SA_BIT(6); /* version 2: 8 */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 4 + 104);
	assert_int_equal(get_be32(b->data), 0x000C0000);
	assert_int_equal(get_be64(b->data + 24), GUID_D);
	a.method = MAD_GET;
	assert_int_equal(ask(b, &a), 0);
	a.mask = 0;
	assert_int_equal(ask(b, &a), 0x0400);
}

static void
test_v1_rid_range(void **state)
{
	struct bench *b = *state;
	struct ask a = v1(SA_GET_TABLE, SA_NODE, 0x00040000, 0x0008FFFF);

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 3);
	assert_int_equal(get_be32(b->data), 0x00040000);
	assert_int_equal(get_be32(b->data + 2 * 108), 0x00080000);
	a.modifier = 0x00040001;
	a.end_rid = 0x00080000;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 2);
	a.end_rid = 0x00040000;
	assert_int_equal(ask(b, &a), 0x001C);
	a.end_rid = 0x00080000;
	a.edit = 2;
	assert_int_equal(ask(b, &a), 0x001C);
	assert_int_equal(sa_worker_counters(b->w)->get_table, 4);
}

static void
test_v1_changes_only(void **state)
{
	struct bench *b = *state;
	struct ask a = v1(SA_GET_TABLE, SA_NODE, 0, 0xFFFFFFFF);
	uint64_t token;

	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 6);
	token = get_be64(b->reply + SA1_OFF_SA_KEY);
	a.sa_key = token;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0); /* unchanged */
	assert_int_equal(get_be64(b->reply + SA1_OFF_SA_KEY), token);
	put_link(b, 4, 2, 5, 2); /* another table */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
	put_port(b, 30, 0x30, NODE_TYPE_CA, 0);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 7);
	assert_int_not_equal(get_be64(b->reply + SA1_OFF_SA_KEY), token);
	a.sa_key = 1; /* of another life */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 7);
}

/*
 * What untrusted requesters see of a table changes with the partitions, though the table does not;
 * a token stays valid while nothing has changed, whichever answer it came from.
 */
static void
test_v1_change_token_of_the_untrusted(void **state)
{
	static const uint16_t c_pkeys[] = { 0x7FFF, 0x8002 }, none[] = { 0x8009 };
	struct bench *b = *state;
	struct ask a = v1(SA_GET_TABLE, SA_NODE, 0, 0xFFFFFFFF);
	uint64_t token;

	a.untrusted = true;
	a.from = GUID_C;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 5);
	a.sa_key = get_be64(b->reply + SA1_OFF_SA_KEY);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
	put_pkeys(b, 8, 1, none, 1); /* C now sees itself alone */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 1), 1);
	put_pkeys(b, 8, 1, c_pkeys, 2);
	/* GetBulk's token is newer than any table's: it comes back where nothing has changed */
	assert_int_equal(ask(b, &(struct ask){ .version = 1, .method = SA1_GET_BULK }), 0);
	token = get_be64(b->reply + SA1_OFF_SA_KEY);
	a = v1(SA_GET_TABLE, SA_NODE, 0, 0xFFFFFFFF);
	a.sa_key = token;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
	assert_int_equal(get_be64(b->reply + SA1_OFF_SA_KEY), token);
}

static void
test_v1_path_by_template(void **state)
{
	uint8_t attr[PR_LEN] = { 0 };
	struct bench *b = *state;
	struct ask a = v1(MAD_GET, SA_PATH, 0xFFFFFFFF, 0);

	set_gid(attr + PR_OFF_SGID, GUID_A);
	set_gid(attr + PR_OFF_DGID, GUID_B);
	a.data = attr;
	a.data_len = PR_LEN;
	a.mask = SA_BIT(PR_BIT_SGID) | SA_BIT(PR_BIT_DGID); /* a path has no RID part */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(get_be16(b->reply + SA1_OFF_DATA + 4 + PR_OFF_DLID), 5);
}

/* --- slices and bounds --- */

static void
many_nodes(struct bench *b, unsigned int n)
{
	struct sa_change *c = test_malloc(n * sizeof(*c));
	unsigned int i;

	for (i = 0; i < n; i++) {
		c[i] = change_of(SA_NODE);
		set_field(&c[i], "lid", 0x1000 + i);
		set_field(&c[i], "node_type", NODE_TYPE_CA);
		set_field(&c[i], "port_guid", 0x10000 + i);
		set_field(&c[i], "device_id", i % 2);
	}
	assert_int_equal(sa_change(b->sa, c, n, NULL), 0);
	test_free(c);
}

static void
test_long_query_goes_on_in_slices_and_keeps_its_version(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(10), rec); /* DeviceID */

	many_nodes(b, 3000);
	put_be16(rec + 34, 1);
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	assert_true(sa_pending(b->w));
	/* what comes now is not in the answer */
	put_port(b, 0x7000, 0x7000, NODE_TYPE_CA, 0);
	while (!b->answered)
		assert_in_range(sa_run(b->w, 0, 100), 1, 100);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0);
	assert_int_equal(records(b, SA_NODE, 2), 1500);
	assert_int_equal(get_be16(b->data), 0x1001);
	assert_int_equal(get_be16(b->data + 1499 * 112), 0x1000 + 2999);
	assert_false(sa_pending(b->w));
	a.method = MAD_GET;
	put_be16(rec + 34, 9);
	assert_int_equal(ask(b, &a), 0x0300);
	assert_int_equal(b->outcome, MAD_LATER);
}

static void
few_results(struct sa_config *config)
{
	config->max_results = 100;
}

static void
few_bytes(struct sa_config *config)
{
	config->max_result_bytes = 1024;
}

static void
refuse_large_result(void (*change)(struct sa_config *config))
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = bench_create(change);
	struct ask a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(10), rec);

	many_nodes(b, 400);
	put_be16(rec + 34, 1);
	assert_int_equal(ask(b, &a), 0x0100);
	assert_int_equal(sa_worker_counters(b->w)->no_resources, 1);
	/* all memory is free again, and a whole table needs none */
	a.mask = 0;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_NODE, 2), 406);
	bench_destroy(b);
}

static void
test_too_large_a_result_is_no_resources(void **state)
{
	(void)state;
	refuse_large_result(few_results);
	refuse_large_result(few_bytes);
}

static void
test_transfers_and_queries_are_bounded(void **state)
{
	struct mad_source source[8];
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, 0, NULL);
	unsigned int i;

	b->keep_source = true;
	for (i = 0; i < 8; i++) {
		assert_int_equal(ask(b, &a), 0);
		source[i] = b->source;
	}
	assert_int_equal(ask(b, &a), 0x0100);
	source[0].release(source[0].arg);
	assert_int_equal(ask(b, &a), 0);
	b->source.release(b->source.arg);
	for (i = 1; i < 8; i++)
		source[i].release(source[i].arg);
}

/* Long queries take all places of queued queries; short ones are still answered. */
static void
test_short_queries_do_not_wait_for_long_ones(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 }, lid[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct ask slow = v2(SA_GET_TABLE, SA_NODE, SA_BIT(10), rec);
	struct ask quick = v2(MAD_GET, SA_NODE, NODE_LID, lid);
	unsigned int i;

	many_nodes(b, 3000);
	put_be16(rec + 34, 1);
	put_be16(lid, 4);
	for (i = 0; i < 4; i++) {
		ask_only(b, &slow);
		assert_int_equal(b->outcome, MAD_LATER);
	}
	assert_int_equal(ask(b, &slow), 0x0100);
	assert_int_equal(ask(b, &quick), 0);
	assert_int_equal(b->outcome, MAD_ANSWER);
	assert_int_equal(get_be16(b->reply + SA2_OFF_DATA), 4);
}

/* --- strangers hold nothing against others --- */

#define ANOTHER_PREFIX 0 /* struct ask.from: 10.0.0.9, while all others are in one /64 */

/* A stranger's GetTable that leaves its answer unread. @return its status; 0 too if it is queued */
static uint16_t
ask_silently(struct bench *b, uint64_t from, uint8_t node_type)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(4), rec);

	rec[NODE_OFF_TYPE] = node_type;
	a.from = from;
	a.sm_key = SA_SM_KEY_WELL_KNOWN; /* shows all nodes */
	b->keep_source = true;
	ask_only(b, &a);
	return b->answered ? get_be16(b->reply + MAD_OFF_STATUS) : 0;
}

static bool
is_silent(const struct bench *b, unsigned int handle)
{
	return b->silent[handle].source.release != NULL;
}

static void
end_all(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < 64; i++)
		if (is_silent(b, i))
			b->silent[i].source.release(b->silent[i].source.arg);
	bench_destroy(b);
}

static void
key_of_all(struct sa_config *config)
{
	config->sm_key = SA_SM_KEY_WELL_KNOWN;
}

/* All results are in use: lib/mad ends a session of the address with most, whose result is free */
static void
test_silent_strangers_give_way(void **state)
{
	struct bench *b = bench_create(key_of_all);
	unsigned int i;

	(void)state;
	for (i = 1; i <= 8; i++)
		assert_int_equal(ask_silently(b, 0x10000, NODE_TYPE_CA), 0);
	assert_int_equal(ask_silently(b, 0x10000, NODE_TYPE_CA), 0x0100);
	b->makes_room = true;
	assert_int_equal(ask_silently(b, 0x20000, NODE_TYPE_CA), 0);
	assert_false(is_silent(b, 1));
	assert_true(is_silent(b, 2));
	assert_int_equal(b->gave_way, 1);
	end_all(b);
}

static void
eight_chunks(struct sa_config *config)
{
	config->sm_key = SA_SM_KEY_WELL_KNOWN;
	config->max_result_bytes = 8 * 512;
	config->max_transfers = 64;
	config->max_queries = 8;
}

/* Memory for lists is used up: the oldest list of the address with most gives way */
static void
test_silent_lists_give_way(void **state)
{
	struct bench *b = bench_create(eight_chunks);
	unsigned int i;

	(void)state;
	many_nodes(b, 100);
	for (i = 1; i <= 2; i++) /* a list of three chunks each: more than 63 nodes */
		assert_int_equal(ask_silently(b, 0x10000 + i, NODE_TYPE_CA), 0);
	for (i = 3; i <= 4; i++) /* and of one each: two switches */
		assert_int_equal(ask_silently(b, 0x10000 + i, NODE_TYPE_SWITCH), 0);
	assert_int_equal(ask_silently(b, 0x20000, NODE_TYPE_SWITCH), 0);
	assert_int_equal(b->gave_way, 1);
	assert_false(is_silent(b, 1));
	for (i = 2; i <= 5; i++)
		assert_true(is_silent(b, i));
	assert_int_equal(sa_worker_counters(b->w)->gave_way, 1);
	end_all(b);
}

/* What an address had and has given back does not count: another one has most. */
static void
test_lists_that_ended_do_not_count(void **state)
{
	struct bench *b = bench_create(eight_chunks);
	unsigned int i;

	(void)state;
	many_nodes(b, 100);
	assert_int_equal(ask_silently(b, 0x10001, NODE_TYPE_SWITCH), 0);
	assert_int_equal(ask_silently(b, 0x10001, NODE_TYPE_CA), 0); /* three chunks */
	b->silent[2].source.release(b->silent[2].source.arg);
	b->silent[2].source.release = NULL;
	for (i = 0; i < 2; i++)
		assert_int_equal(ask_silently(b, 0x10002, NODE_TYPE_SWITCH), 0);
	for (i = 3; i <= 7; i++)
		assert_int_equal(ask_silently(b, 0x10000 + i, NODE_TYPE_SWITCH), 0);
	assert_int_equal(ask_silently(b, 0x20000, NODE_TYPE_SWITCH), 0);
	assert_int_equal(b->gave_way, 1);
	assert_true(is_silent(b, 1));
	assert_false(is_silent(b, 3));
	end_all(b);
}

/* Lists of peers that answer give way last, and only if their address has more than its share */
static void
test_proven_lists_give_way_last(void **state)
{
	struct bench *b = bench_create(eight_chunks);
	unsigned int i;

	(void)state;
	many_nodes(b, 100);
	assert_int_equal(ask_silently(b, 0x10001, NODE_TYPE_CA), 0);
	b->silent[1].proven = true;
	for (i = 2; i <= 6; i++)
		assert_int_equal(ask_silently(b, 0x10000 + i, NODE_TYPE_SWITCH), 0);
	assert_int_equal(ask_silently(b, 0x20000, NODE_TYPE_SWITCH), 0);
	assert_true(is_silent(b, 1));
	assert_false(is_silent(b, 2));
	for (i = 3; i <= 7; i++)
		b->silent[i].proven = true;
	assert_int_equal(ask_silently(b, 0x30000, NODE_TYPE_SWITCH), 0);
	assert_false(is_silent(b, 1)); /* three of eight chunks, with seven addresses */
	for (i = 3; i <= 8; i++)
		assert_true(is_silent(b, i));
	assert_int_equal(b->gave_way, 2);
	end_all(b);
}

/* Begin a query of a stranger that takes so long that it is put off. */
static void
long_query(struct bench *b, struct ask *a, uint64_t from)
{
	a->from = from;
	ask_only(b, a);
	assert_int_equal(b->outcome, MAD_LATER);
}

/* A bench for long queries, and the query of a stranger in @p a. @param rec  its record */
static struct bench *
bench_of_long_queries(struct ask *a, uint8_t *rec)
{
	struct bench *b = bench_create(eight_chunks);

	many_nodes(b, 3000);
	put_be16(rec + 34, 1);
	*a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(10), rec);
	a->untrusted = true;
	return b;
}

/* All places of queries put off are taken: the oldest query of the address with most gives way */
static void
test_long_queries_of_strangers_give_way(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a;
	struct bench *b = bench_of_long_queries(&a, rec);
	unsigned int i;

	(void)state;
	for (i = 0; i < 7; i++)
		long_query(b, &a, i < 2 ? 0x10000 : 0x20000 + i);
	/* strangers have seven of eight places: one of the two queries ends */
	long_query(b, &a, 0x30000);
	assert_int_equal(b->gave_way, 1);
	assert_int_equal(sa_worker_counters(b->w)->gave_way, 1);
	a.from = 0x40000; /* nobody has more than one */
	assert_int_equal(ask(b, &a), SA_STATUS_NO_RESOURCES);
	assert_int_equal(sa_worker_counters(b->w)->strangers_busy, 1);
	long_query(b, &a, GUID_A); /* a port of the database */
	assert_int_equal(b->gave_way, 1);
	end_all(b);
}

/* The same, once its list is complete or refused */
static uint16_t
list_silently(struct bench *b, uint64_t from, uint8_t node_type)
{
	ask_silently(b, from, node_type);
	while (!b->answered)
		bench_run(b);
	return get_be16(b->reply + MAD_OFF_STATUS);
}

static void
forty_chunks(struct sa_config *config)
{
	eight_chunks(config);
	config->max_result_bytes = 40 * 512;
}

/*
 * A /64 of addresses fills the memory with a list of one chunk each; then a longer list of another
 * prefix, of 19 chunks, finds room. @param proven  their peers answer
 */
static struct bench *
longer_list_of_another_prefix(bool proven)
{
	struct bench *b = bench_create(forty_chunks);
	unsigned int i;

	many_nodes(b, 1100);
	for (i = 1; i <= 40; i++) {
		assert_int_equal(list_silently(b, 0x10000 + i, NODE_TYPE_SWITCH), 0);
		b->silent[i].proven = proven;
	}
	assert_int_equal(list_silently(b, ANOTHER_PREFIX, NODE_TYPE_CA), 0);
	assert_int_equal(b->gave_way, 19);
	assert_true(is_silent(b, 41));
	return b;
}

static void
test_lists_of_one_prefix_give_way(void **state)
{
	struct bench *b = longer_list_of_another_prefix(false);
	unsigned int i;

	(void)state;
	for (i = 1; i <= 40; i++)
		assert_int_equal(is_silent(b, i), i > 19);
	/* more than half is the prefix's again, so it takes nothing from the other host */
	for (i = 42; i <= 44; i++)
		assert_int_equal(list_silently(b, 0x10000 + i, NODE_TYPE_SWITCH), 0);
	assert_true(is_silent(b, 41));
	assert_int_equal(b->gave_way, 22);
	end_all(b);
}

/* The same of lists whose peers answer */
static void
test_proven_lists_of_one_prefix_give_way(void **state)
{
	struct bench *b = longer_list_of_another_prefix(true);

	(void)state;
	end_all(b);
}

/* A /64 of addresses with a query each holds the places of strangers */
static void
test_queries_of_one_prefix_give_way(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a;
	struct bench *b = bench_of_long_queries(&a, rec);
	unsigned int i;

	(void)state;
	for (i = 0; i < 7; i++)
		long_query(b, &a, 0x20000 + i);
	for (i = 1; i <= 3; i++) {
		long_query(b, &a, ANOTHER_PREFIX);
		assert_int_equal(b->gave_way, i);
	}
	assert_int_equal(ask(b, &a), SA_STATUS_NO_RESOURCES); /* three of seven */
	long_query(b, &a, 0x30000); /* the prefix has four, and loses one of these */
	a.from = ANOTHER_PREFIX;
	assert_int_equal(ask(b, &a), SA_STATUS_NO_RESOURCES);
	end_all(b);
}

/* A list of three levels: 63 pointers in a chunk. */
static void
test_a_long_list_is_read_from_anywhere(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 }, buf[112];
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, SA_BIT(10), rec);
	static const unsigned int places[] = { 4499, 0, 62, 63, 3968, 3969, 1, 4031, 4032, 64 };
	struct mad_source source;
	unsigned int i;

	many_nodes(b, 9000);
	put_be16(rec + 34, 1);
	b->keep_source = true;
	assert_int_equal(ask(b, &a), 0);
	source = b->source;
	assert_int_equal(source.length, 4500 * 112);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		assert_int_equal(source.read(source.arg, places[i] * 112, buf, 112), 0);
		assert_int_equal(get_be16(buf), 0x1001 + 2 * places[i]);
	}
	source.release(source.arg);
	/* all of it has been given back: there is room for one only */
	for (i = 0; i < 4; i++) {
		assert_int_equal(ask(b, &a), 0);
		b->source.release(b->source.arg);
	}
}

static void
test_a_transfer_reads_its_own_version(void **state)
{
	struct mad_source source;
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, 0, NULL);
	uint8_t buf[200];

	b->keep_source = true;
	assert_int_equal(ask(b, &a), 0);
	source = b->source;
	put_port(b, 3, 0x33, NODE_TYPE_CA, 0);
	assert_int_equal(source.length, 6 * 112);
	assert_int_equal(source.read(source.arg, 2 * 112, buf, 112), 0);
	assert_int_equal(get_be16(buf), 4); /* LID 3 is not in it */
	/* straddling, backwards */
	assert_int_equal(source.read(source.arg, 112 + 24, buf, 100), 0);
	assert_int_equal(get_be64(buf), 0x52);
	assert_int_equal(source.read(source.arg, 112 + 24, buf, 80), 0);
	source.release(source.arg);
	/* what the next transfer reads is its own, were it in the same place */
	put_port(b, 2, 0x62, NODE_TYPE_SWITCH, 0);
	assert_int_equal(ask(b, &a), 0);
	source = b->source;
	assert_int_equal(source.read(source.arg, 112 + 24, buf, 80), 0);
	assert_int_equal(get_be64(buf), 0x62);
	source.release(source.arg);
}

static void
test_a_version_given_up_ends_the_transfer(void **state)
{
	struct mad_source source;
	struct bench *b = *state;
	struct ask a = v2(SA_GET_TABLE, SA_NODE, 0, NULL);
	uint8_t buf[200];

	b->keep_source = true;
	many_nodes(b, 12000);
	assert_int_equal(ask(b, &a), 0);
	source = b->source;
	assert_int_equal(source.read(source.arg, 0, buf, 112), 0);
	many_nodes(b, 12000); /* now all of them are kept for it alone: more than max_old_bytes */
	assert_int_equal(source.read(source.arg, 0, buf, 112), -ESTALE);
	assert_int_equal(sa_worker_counters(b->w)->stale, 1);
	source.release(source.arg);
}

static void
test_mcmember_selectors_in_queries(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	struct sa_change c = change_of(SA_MCMEMBER);
	struct ask a = v2(SA_GET_TABLE, SA_MCMEMBER, SA_BIT(4) | SA_BIT(5), rec);

	memset(c.rec, 0xFF, 2);
	set_gid(c.rec + MC_OFF_PORT_GID, GUID_A);
	c.rec[MC_OFF_MTU] = 0x80 | 4;
	c.rec[MC_OFF_SCOPE_STATE] = 0x21;
	bench_put(b, &c);
	rec[MC_OFF_MTU] = 3; /* greater than 1024 */
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_MCMEMBER, 2), 1);
	rec[MC_OFF_MTU] = 4;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->len, 0);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_get_of_one_record),
		T(test_get_without_a_match_is_no_records),
		T(test_get_with_two_matches_is_too_many),
		T(test_get_table_without_a_match_is_success),
		T(test_whole_table_in_the_order_of_rids),
		T(test_template_by_index),
		T(test_template_by_lid_and_by_scan),
		T(test_unknown_attributes_and_methods),
		T(test_class_port_info),
		T(test_v1_get_by_rid),
		T(test_v1_rid_of_a_ca_needs_no_port),
		T(test_v1_template_and_mask_do_not_count_the_rid),
		T(test_v1_rid_range),
		T(test_v1_changes_only),
		T(test_v1_change_token_of_the_untrusted),
		T(test_v1_path_by_template),
		T(test_long_query_goes_on_in_slices_and_keeps_its_version),
		cmocka_unit_test(test_too_large_a_result_is_no_resources),
		T(test_transfers_and_queries_are_bounded),
		T(test_short_queries_do_not_wait_for_long_ones),
		cmocka_unit_test(test_silent_strangers_give_way),
		cmocka_unit_test(test_silent_lists_give_way),
		cmocka_unit_test(test_lists_that_ended_do_not_count),
		cmocka_unit_test(test_proven_lists_give_way_last),
		cmocka_unit_test(test_long_queries_of_strangers_give_way),
		cmocka_unit_test(test_lists_of_one_prefix_give_way),
		cmocka_unit_test(test_proven_lists_of_one_prefix_give_way),
		cmocka_unit_test(test_queries_of_one_prefix_give_way),
		T(test_a_long_list_is_read_from_anywhere),
		T(test_a_transfer_reads_its_own_version),
		T(test_a_version_given_up_ends_the_transfer),
		T(test_mcmember_selectors_in_queries),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
