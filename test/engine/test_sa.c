/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Subnet administration on real lcores: an engine queries its own SA by loopback and over the wire
 * between its ports; acknowledged changes survive a restart.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node.h"

#define LIDS 10000

static char dir[64];

static int
sa_start(void **state)
{
	node_config()->sa.max_import_mb = 2;
	*state = node_start();
	return 0;
}

static int
engine_sa_stop(void **state)
{
	if (*state != NULL)
		node_stop(*state, 0);
	return 0;
}

/* --- asking --- */

/* Query port 0's SA: from port 0 by loopback (own), or from port 1 over the wire. */
static int
sa_try_ask(struct engine *e, struct sa_query *q, bool own, int worker, uint32_t *id,
	struct error *err)
{
	struct engine_ah ah = {
		.port = own ? 0 : 1,
		.dgid = link_port_attr(engine_link(e), 0)->gid[0].gid,
	};
	struct engine_sa_query ask = { .query = *q, .own = own, .ah = &ah, .worker = worker };

	ask.query.sm_key = engine_sa_key(e);
	ask.query.resp_time = 14;
	return engine_sa_query(e, &ask, id, err);
}

static struct engine_sa_progress
wait_end(struct engine *e, uint32_t id)
{
	struct engine_sa_progress p;
	struct error err = { "" };

	do {
		pause_ms(1);
		assert_ok(engine_sa_progress(e, id, &p, &err));
	} while (!p.done);
	return p;
}

/* Query and expect n records. The finished query stays, so that the test can read its records. */
static uint32_t
expect_records(struct engine *e, struct sa_query q, bool own, int worker, uint64_t n)
{
	struct engine_sa_progress p;
	struct error err = { "" };
	uint32_t id;

	assert_ok(sa_try_ask(e, &q, own, worker, &id, &err));
	p = wait_end(e, id);
	if (p.end != MAD_END_OK)
		fail_msg("%s, status %s, error %d", mad_end_name(p.end), mad_status_name(p.status),
			p.error);
	assert_int_equal(p.records, n);
	return id;
}

static struct sa_query
query(enum sa_op op, enum sa_version v, uint16_t attribute)
{
	return (struct sa_query){ .op = op, .version = v, .type = sa_record_type(attribute) };
}

static void
sa_with(struct sa_query *q, const char *field, const char *text)
{
	const struct sa_field *f = sa_field_named(q->type, field);
	struct error err = { "" };

	assert_non_null(f);
	assert_ok(sa_parse(f, q->tmpl, text, &err));
	q->mask |= sa_mask(q->type, f, SA_V2);
}

static uint64_t
engine_sa_field(const struct engine_sa_record *r, const char *name)
{
	return sa_get_named(r->type, name, r->bytes);
}

static uint64_t
records_in(struct engine *e)
{
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	uint64_t cursor = 0, n = 0;
	struct error err = { "" };
	uint32_t rid;
	int ret;

	do {
		ret = engine_sa_export(e, &cursor, &t, &rid, rec, &err);
		assert_ok(ret);
		n += (uint64_t)ret;
	} while (ret == 1);
	return n;
}

/* NodeRecords of LIDs 100, 101, ... */
static void
put_nodes(struct engine *e, unsigned int n)
{
	struct sa_change *c = calloc(n, sizeof(*c));
	unsigned int i;

	assert_non_null(c);
	for (i = 0; i < n; i++) {
		c[i].type = sa_record_type(SA_NODE);
		sa_put_named(c[i].type, "lid", c[i].rec, 100 + i);
		sa_put_named(c[i].type, "port_guid", c[i].rec, 0xABC0000 + i);
		sa_put_named(c[i].type, "node_type", c[i].rec, 1);
	}
	change_records(e, c, n);
	free(c);
}

/* --- a new appliance --- */

static void
test_a_fresh_sa_knows_its_own_ports(void **state)
{
	struct sa_query q = query(SA_OP_TABLE, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct engine_sa_record r;
	uint64_t cursor = 0;
	uint32_t id;

	id = expect_records(e, q, true, -1, 2);
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(engine_sa_field(&r, "lid"), 1);
	assert_int_equal(engine_sa_field(&r, "port_num"), 1);
	assert_int_equal(engine_sa_field(&r, "port_guid"), 1); /* fe80::1 */
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(engine_sa_field(&r, "lid"), 2);
	assert_false(engine_sa_next(e, id, &cursor, &r));
	/* capabilities without a subnet management agent, as in opensm's ib_types.h */
	id = expect_records(e, query(SA_OP_TABLE, SA_V2, SA_PORT_INFO), true, -1, 2);
	cursor = 0;
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(engine_sa_field(&r, "capability_mask"),
		1 << 5 /* AutomaticMigration */ | 1 << 11 /* SystemImageGUID */ |
			1 << 16 /* CommunicationManagement */ | 1 << 20 /* VendorClass */);
	id = expect_records(e, q, true, -1, 2);
	/* a cursor may point to any record */
	cursor = 1;
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(engine_sa_field(&r, "lid"), 2);
	cursor = 77;
	assert_false(engine_sa_next(e, id, &cursor, &r));
	q = query(SA_OP_TABLE, SA_V2, SA_PATH);
	sa_with(&q, "sgid", "fe80::1");
	sa_with(&q, "dgid", "fe80::2");
	id = expect_records(e, q, true, -1, 1);
	cursor = 0;
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(engine_sa_field(&r, "slid"), 1);
	assert_int_equal(engine_sa_field(&r, "dlid"), 2);
	assert_int_equal(engine_sa_field(&r, "mtu"), 5); /* 4096 */
}

/* Request and answer have many packets: 40 GIDs, 127 paths (sa-multipacket B5, B6, B10). */
static void
test_get_multi_is_double_sided(void **state)
{
	struct sa_query q = query(SA_OP_MULTI, SA_V2, SA_MULTI_PATH);
	static uint8_t gids[40][16];
	struct engine *e = *state;
	struct engine_sa_record r;
	uint64_t cursor = 126;
	unsigned int i;
	uint32_t id;

	for (i = 0; i < 40; i++)
		memcpy(gids[i], (const uint8_t[16]){ 0xFE, 0x80, [15] = i < 20 ? 1 : 2 }, 16);
	sa_with(&q, "sgid_count", "20");
	sa_with(&q, "dgid_count", "20");
	q.gids = gids[0];
	id = expect_records(e, q, false, -1, 127);
	assert_true(engine_sa_next(e, id, &cursor, &r));
	assert_int_equal(r.type->attribute, SA_PATH);
	assert_int_equal(engine_sa_field(&r, "slid"), 1);
	assert_int_equal(engine_sa_field(&r, "dlid"), 2);
}

static void
test_all_workers_send_and_answer_queries(void **state)
{
	struct sa_query q = query(SA_OP_GET, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct mad_counters c;
	struct error err = { "" };
	uint32_t id;
	int i;

	sa_with(&q, "lid", "2");
	for (i = 0; i < 40; i++) {
		id = expect_records(e, q, i % 4 < 2, i % 2, 1);
		assert_ok(engine_sa_cancel(e, id, &err));
	}
	for (i = 0; i < 2; i++) {
		engine_mad_counters(e, i, &c);
		assert_int_equal(c.calls, 20);
		/* TIDs are random and choose the worker: the chance of none of 40 is 2^-40 */
		assert_true(c.requests > 0);
	}
}

static void
test_error_status_ends_the_query(void **state)
{
	struct sa_query q = query(SA_OP_GET, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct engine_sa_progress p;
	struct error err = { "" };
	uint32_t id;

	sa_with(&q, "lid", "77");
	assert_ok(sa_try_ask(e, &q, true, -1, &id, &err));
	p = wait_end(e, id);
	assert_int_equal(p.end, MAD_END_STATUS);
	assert_int_equal(p.status, 0x0300); /* no records (B8) */
	assert_int_equal(p.records, 0);
}

/* --- tables --- */

/* 10,000 records of 112 and of 108 bytes, in both protocols, over loopback and wire */
static void
test_large_tables_arrive_whole_and_in_order(void **state)
{
	struct engine *e = *state;
	struct engine_sa_record r;
	struct error err = { "" };
	uint64_t cursor, lid;
	uint32_t id;
	int v, own;

	put_nodes(e, LIDS);
	for (v = SA_V1; v <= SA_V2; v++)
		for (own = 0; own < 2; own++) {
			id = expect_records(e, query(SA_OP_TABLE, v, SA_NODE), own, v - 1,
				LIDS + 2);
			cursor = 2;
			for (lid = 100; lid < 100 + LIDS; lid++) {
				assert_true(engine_sa_next(e, id, &cursor, &r));
				assert_int_equal(engine_sa_field(&r, "lid"), lid);
				assert_int_equal(engine_sa_field(&r, "port_guid"),
					0xABC0000 + lid - 100);
				assert_int_equal(r.rid, lid << 16);
			}
			assert_ok(engine_sa_cancel(e, id, &err));
		}
}

static void
test_bulk_query_returns_the_whole_database(void **state)
{
	struct sa_query q = { .op = SA_OP_BULK, .version = SA_V1 };
	struct engine *e = *state;
	uint64_t n = records_in(e);

	assert_true(n >= 8);
	expect_records(e, q, true, -1, n);
	put_nodes(e, 1000);
	assert_int_equal(records_in(e), n + 1000);
	expect_records(e, q, false, -1, n + 1000);
}

/* A table larger than the memory for it ends with an error and without records. */
static void
test_table_larger_than_its_memory_is_an_error(void **state)
{
	struct sa_query q = query(SA_OP_TABLE, SA_V2, SA_NODE);
	struct engine_sa_progress p;
	struct error err = { "" };
	struct engine *e;
	uint32_t id;

	node_config()->sa.query_mb = 1;
	e = *state = node_start();
	put_nodes(e, LIDS); /* 10,000 * (112 + 16) bytes */
	assert_ok(sa_try_ask(e, &q, true, -1, &id, &err));
	p = wait_end(e, id);
	assert_int_equal(p.end, MAD_END_REFUSED);
	assert_int_equal(p.error, -ENOBUFS);
	assert_true(p.records > 8000);
	/* the SA still works */
	q.op = SA_OP_GET;
	sa_with(&q, "lid", "1");
	expect_records(e, q, true, -1, 1);
}

/* --- queries as objects --- */

static void
test_queries_are_bounded_and_forgotten(void **state)
{
	struct sa_query q = query(SA_OP_TABLE, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct engine_sa_progress p;
	struct error err = { "" };
	uint32_t id, first = 0;
	int i;

	for (i = 0; i < ENGINE_SA_QUERIES; i++) {
		id = expect_records(e, q, true, -1, 2);
		if (i == 0)
			first = id;
	}
	assert_int_equal(sa_try_ask(e, &q, true, -1, &id, &err), -ENOSPC);
	assert_ok(engine_sa_cancel(e, first, &err));
	assert_int_equal(engine_sa_cancel(e, first, &err), -ENOENT);
	assert_int_equal(engine_sa_progress(e, first, &p, &err), -ENOENT);
	id = expect_records(e, q, true, -1, 2);
	assert_int_not_equal(id, first); /* the number is not used again */
}

/* Clients of the monitoring socket leave places for others, whose results they do not replace. */
static void
test_queries_of_monitoring_have_a_share(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .port = 0 };
	struct engine_sa_query ask = {
		.query = query(SA_OP_GET, SA_V2, SA_NODE),
		.own = true,
		.ah = &ah,
		.worker = -1,
		.monitoring = true,
	};
	struct error err = { "" };
	uint32_t id;
	int i;

	for (i = 0; i < ENGINE_SA_QUERIES / 4; i++)
		assert_ok(engine_sa_query(e, &ask, &id, &err));
	assert_int_equal(engine_sa_query(e, &ask, &id, &err), -ENOSPC);
	assert_string_equal(err.text,
		"there are 8 SA queries already: cancel one (sa_cancel) or wait");
	for (; i < ENGINE_SA_QUERIES; i++)
		expect_records(e, query(SA_OP_TABLE, SA_V2, SA_NODE), true, -1, 2);
	ask.monitoring = false;
	assert_int_equal(engine_sa_query(e, &ask, &id, &err), -ENOSPC);
}

/* If nobody answers, the query ends after its timeout. */
static void
test_a_timeout_ends_a_query(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .port = 0, .has_dmac = true, .dmac = { 2, 0, 0, 0, 0, 9 } };
	struct engine_sa_query ask = {
		.query = query(SA_OP_TABLE, SA_V2, SA_NODE),
		.ah = &ah,
		.worker = -1,
		.timeout_ms = 50,
	};
	struct engine_sa_progress p;
	struct error err = { "" };
	uint32_t id;

	gid_parse("192.0.2.77", &ah.dgid);
	assert_ok(engine_sa_query(e, &ask, &id, &err));
	p = wait_end(e, id);
	assert_true(p.timed_out);
	assert_int_equal(p.end, MAD_END_CANCELLED);
	assert_true(p.elapsed_us >= 50000);
}

/* --- TransactionIDs --- */

/* A TID decides which worker gets the answer: that one asks. */
static void
test_queries_keep_the_tids_given(void **state)
{
	struct sa_query q = query(SA_OP_GET, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct engine_sa_stats s;
	unsigned int i;

	sa_with(&q, "lid", "1");
	q.keep_tid = true;
	for (i = 0; i < 16; i++) {
		q.tid = i * 0x0101010101010101;
		expect_records(e, q, i % 2 == 0, -1, 1);
	}
	for (i = 0; i < 2; i++) {
		engine_sa_stats(e, (int)i, &s);
		assert_in_range(s.mad.calls, 1, 15);
	}
}

/* One TID is one transaction: it can be used again once the first request is over. */
static void
test_tid_of_a_running_query_is_refused(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .port = 0, .has_dmac = true, .dmac = { 2, 0, 0, 0, 0, 9 } };
	struct engine_sa_query ask = { .query = query(SA_OP_GET, SA_V2, SA_NODE),
		.ah = &ah,
		.worker = -1 };
	struct error err = { "" };
	uint32_t id, other;

	gid_parse("192.0.2.77", &ah.dgid);
	ask.query.resp_time = 14;
	ask.query.keep_tid = true;
	ask.query.tid = 0x1234;
	assert_ok(engine_sa_query(e, &ask, &id, &err));
	assert_int_equal(engine_sa_query(e, &ask, &other, &err), -EEXIST);
	assert_non_null(strstr(err.text, "tid: a request to this SA has this TID"));
	ask.query.tid++;
	assert_ok(engine_sa_query(e, &ask, &other, &err));
	assert_ok(engine_sa_cancel(e, id, &err));
	ask.query.tid--;
	assert_ok(engine_sa_query(e, &ask, &id, &err));
}

/* --- sessions and counters --- */

/* A transfer that nobody answers is listed as a session until it is cancelled. */
static void
test_sessions_are_shown(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .port = 0, .has_dmac = true, .dmac = { 2, 0, 0, 0, 0, 9 } };
	struct engine_sa_query ask = { .query = query(SA_OP_TABLE, SA_V2, SA_NODE),
		.ah = &ah,
		.worker = 1 };
	struct engine_sa_session s;
	struct error err = { "" };
	uint64_t cursor = 0;
	uint32_t id;

	assert_false(engine_sa_session_next(e, &cursor, &s));
	gid_parse("192.0.2.77", &ah.dgid);
	assert_ok(engine_sa_query(e, &ask, &id, &err));
	eventually((cursor = 0, engine_sa_session_next(e, &cursor, &s)));
	assert_int_equal(s.worker, 1);
	assert_int_equal(s.info.mgmt_class, 0x03); /* subnet administration */
	assert_int_equal(s.info.class_version, 2);
	assert_int_equal(s.info.method, 0x12); /* GetTable */
	assert_int_equal(s.info.attribute, SA_NODE);
	assert_true(s.info.requester);
	assert_true(s.info.age < 60000000); /* microseconds */
	assert_memory_equal(s.info.gid.raw, ah.dgid.raw, 16);
	assert_false(engine_sa_session_next(e, &cursor, &s));
	assert_ok(engine_sa_cancel(e, id, &err));
	eventually((cursor = 0, !engine_sa_session_next(e, &cursor, &s)));
}

/* The total of a counter is the sum over all workers; store counters exist once. */
static void
test_counters_of_all_and_of_each_worker(void **state)
{
	struct engine_sa_stats sum, one[2];
	struct engine *e = *state;
	uint32_t i;

	for (i = 0; i < 2; i++)
		expect_records(e, query(SA_OP_TABLE, SA_V2, SA_NODE), false, (int)i, 2);
	engine_sa_stats(e, -1, &sum);
	for (i = 0; i < 2; i++) {
		engine_sa_stats(e, (int)i, &one[i]);
		assert_int_equal(one[i].mad.calls, 1);
		assert_true(one[i].memory_total > 0);
	}
	assert_int_equal(sum.mad.calls, 2);
	assert_int_equal(sum.sa.get_table, 2);
	assert_int_equal(sum.sa.get_table, one[0].sa.get_table + one[1].sa.get_table);
	assert_int_equal(sum.memory_total, one[0].memory_total + one[1].memory_total);
	assert_true(sum.store.version > 0);
	assert_int_equal(sum.store.version, one[0].store.version);
	for (i = 0; i < 256; i++)
		assert_int_equal(sum.aborts_sent[i] + sum.aborts_received[i], 0);
}

/* --- changes --- */

static void
link_record(uint8_t *rec, unsigned int from, unsigned int to)
{
	const struct sa_record_type *t = sa_record_type(SA_LINK);

	sa_put_named(t, "from_lid", rec, from);
	sa_put_named(t, "from_port", rec, 1);
	sa_put_named(t, "to_lid", rec, to);
	sa_put_named(t, "to_port", rec, 1);
}

/* A Config of 500 links: 5,000 bytes, 27 segments. */
static void
config_links(struct engine *e, enum sa_op op, bool own)
{
	static uint8_t recs[500 * SA_RECORD_MAX];
	static uint32_t rids[500];
	struct sa_query q = query(op, SA_V1, SA_LINK);
	unsigned int i;

	for (i = 0; i < 500; i++) {
		link_record(recs + i * SA_RECORD_MAX, 1000 + i, 2000 + i);
		rids[i] = sa_rid(q.type, recs + i * SA_RECORD_MAX);
	}
	q.records = recs;
	q.rids = rids;
	q.num_records = 500;
	expect_records(e, q, own, -1, 0);
}

static void
test_config_adds_and_deletes_many_at_once(void **state)
{
	struct engine *e = *state;
	uint64_t n = records_in(e);
	struct sa_query q = query(SA_OP_TABLE, SA_V2, SA_LINK);

	config_links(e, SA_OP_CONFIG_ADD, true);
	assert_int_equal(records_in(e), n + 500);
	sa_with(&q, "from_lid", "1499");
	expect_records(e, q, false, -1, 1);
	config_links(e, SA_OP_CONFIG_DELETE, false);
	assert_int_equal(records_in(e), n);
}

static void
sa_join(struct engine *e, const char *port_gid)
{
	struct sa_query q = query(SA_OP_SET, SA_V2, SA_MCMEMBER);

	sa_with(&q, "mgid", "ff12:401b:ffff::1");
	sa_with(&q, "port_gid", port_gid);
	sa_with(&q, "qkey", "0x1234");
	sa_with(&q, "pkey", "0xffff");
	sa_with(&q, "join_state", "full");
	sa_with(&q, "sl", "0");
	sa_with(&q, "flow_label", "0");
	sa_with(&q, "tclass", "0");
	expect_records(e, q, true, -1, 1);
}

/* --- import --- */

static struct engine_sa_imported
import(struct engine *e, const char *path, const char *text, struct error *why)
{
	struct engine_sa_import what = {
		.text = text,
		.len = text != NULL ? strlen(text) : 0,
		.parser = sa_import_ibnetdiscover,
		.replace = SA_REPLACE_ALL,
	};
	struct engine_sa_imported done;
	struct error err = { "" };

	if (path != NULL)
		what.fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_ok(engine_sa_import_start(e, &what, &err));
	if (path != NULL)
		close(what.fd); /* the import has its own */
	why->text[0] = '\0';
	do {
		pause_ms(1);
		engine_sa_import_poll(e, &done, why);
	} while (!done.done);
	return done;
}

static void
test_a_fabric_is_imported_beside_the_workers(void **state)
{
	struct sa_query q = query(SA_OP_TABLE, SA_V2, SA_NODE);
	struct engine *e = *state;
	struct engine_sa_imported done;
	struct error err = { "" };

	done = import(e, FABRIC, NULL, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(done.result, 0);
	assert_true(done.records > 1000);
	assert_int_equal(records_in(e), done.records);
	/* 200 hosts, 16 leaves, 8 spines */
	expect_records(e, q, true, -1, 224);
	sa_with(&q, "node_type", "switch");
	expect_records(e, q, true, -1, 24);
}

/* An import with an error changes nothing and reports the reason. */
static void
test_a_bad_file_changes_nothing(void **state)
{
	struct engine *e = *state;
	uint64_t n = records_in(e);
	int big = memfd_create("import", MFD_CLOEXEC);
	struct engine_sa_imported done;
	struct error err = { "" };
	char path[64];

	done = import(e, NULL, "Switch\t4 \"S-1\"\n[1]\tnonsense\n", &err);
	assert_true(done.result < 0);
	assert_true(strlen(err.text) > 10);
	done = import(e, "/dev/null", NULL, &err); /* files in /proc are without bytes, too */
	assert_int_equal(done.result, -EINVAL);
	assert_string_equal(err.text, "file: got 0 bytes, allowed: 1..2097152 (sa.max_import_mb)");
	assert_int_equal(ftruncate(big, (2 << 20) + 1), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", big);
	done = import(e, path, NULL, &err);
	assert_int_equal(done.result, -EINVAL);
	assert_string_equal(err.text,
		"file: got 2097153 bytes, allowed: 1..2097152 (sa.max_import_mb)");
	assert_int_equal(ftruncate(big, 2 << 20), 0); /* as large as may be, and no fabric */
	done = import(e, path, NULL, &err);
	assert_null(strstr(err.text, "max_import_mb"));
	close(big);
	assert_int_equal(records_in(e), n);
}

/* --- restart --- */

static struct engine *
sa_start_on_disk(void)
{
	struct engine_config *c = node_config();

	snprintf(c->sa.path, sizeof(c->sa.path), "%s", dir);
	c->sa.map_mb = 64;
	return node_start();
}

static void
sa_remove_dir(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/data.mdb", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/lock.mdb", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/polca.lock", dir);
	unlink(path);
	rmdir(dir);
}

static void
test_acknowledged_changes_survive_a_restart(void **state)
{
	struct engine *e;
	uint64_t n;

	strcpy(dir, "/tmp/test_engine_sa_XXXXXX");
	assert_non_null(mkdtemp(dir));
	e = sa_start_on_disk();
	config_links(e, SA_OP_CONFIG_ADD, true);
	sa_join(e, "fe80::1");
	n = records_in(e);
	node_stop(e, 0);
	e = *state = sa_start_on_disk();
	assert_int_equal(records_in(e), n); /* its own ports are not added again */
	expect_records(e, query(SA_OP_TABLE, SA_V2, SA_MCMEMBER), true, -1, 1);
	sa_remove_dir();
}

static void
test_without_an_sa_queries_are_refused(void **state)
{
	struct sa_query q = query(SA_OP_GET, SA_V2, SA_NODE);
	const struct sa_record_type *t;
	uint8_t rec[SA_RECORD_MAX];
	struct error err = { "" };
	uint64_t cursor = 0;
	struct engine *e;
	uint32_t id;

	node_config()->sa.enabled = false;
	e = *state = node_start();
	assert_false(engine_sa_enabled(e));
	assert_int_equal(sa_try_ask(e, &q, true, -1, &id, &err), -EINVAL);
	assert_int_equal(engine_sa_export(e, &cursor, &t, &id, rec, &err), -EINVAL);
}

#define T(f)    cmocka_unit_test_setup_teardown(f, sa_start, engine_sa_stop)
#define BARE(f) cmocka_unit_test_teardown(f, engine_sa_stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_fresh_sa_knows_its_own_ports),
		T(test_get_multi_is_double_sided),
		T(test_all_workers_send_and_answer_queries),
		T(test_error_status_ends_the_query),
		T(test_large_tables_arrive_whole_and_in_order),
		T(test_bulk_query_returns_the_whole_database),
		T(test_sessions_are_shown),
		T(test_counters_of_all_and_of_each_worker),
		BARE(test_table_larger_than_its_memory_is_an_error),
		T(test_queries_are_bounded_and_forgotten),
		T(test_queries_of_monitoring_have_a_share),
		T(test_a_timeout_ends_a_query),
		T(test_queries_keep_the_tids_given),
		T(test_tid_of_a_running_query_is_refused),
		T(test_config_adds_and_deletes_many_at_once),
		T(test_a_fabric_is_imported_beside_the_workers),
		T(test_a_bad_file_changes_nothing),
		BARE(test_acknowledged_changes_survive_a_restart),
		BARE(test_without_an_sa_queries_are_refused),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
