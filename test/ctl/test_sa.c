/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The methods of subnet administration, from the request to the verbs and back. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "ask.h"

#define assert_says(text, what) assert_non_null(strstr(text, what))

/* --- sa_query --- */

/* sa-multipacket B11: Path DGID is bit 2, SGID bit 3, P_Key bit 13 */
static void
test_fields_by_name_become_template_and_mask(void **state)
{
	struct desk *d = *state;
	const struct sa_query *q = &d->e->sa.asked;
	uint8_t dgid[16] = { 0xfe, 0x80, [15] = 2 }, sgid[16] = { 0xfe, 0x80, [15] = 1 };

	assert_int_equal(
		num(call(d, "sa_query",
			    "'record': 'path', 'fields': {'sgid': 'fe80::1', 'dgid': 'fe80::2', 'pkey': '0x8001'}"),
			"query"),
		33);
	assert_int_equal(q->op, SA_OP_TABLE);
	assert_int_equal(q->version, 2);
	assert_int_equal(q->type->attribute, 0x0035);
	assert_int_equal(q->mask, 0x4 | 0x8 | 0x2000);
	/* B10: DGID at 8, SGID at 24, P_Key at 50 */
	assert_memory_equal(q->tmpl + 8, dgid, 16);
	assert_memory_equal(q->tmpl + 24, sgid, 16);
	assert_int_equal(q->tmpl[50], 0x80);
	assert_int_equal(q->tmpl[51], 0x01);
	assert_false(q->by_rid);
}

static void
test_numbers_do_as_well_as_text(void **state)
{
	struct desk *d = *state;
	const struct sa_query *q = &d->e->sa.asked;

	call(d, "sa_query", "'op': 'get', 'record': 'NodeRecord', 'fields': {'lid': 258}");
	assert_int_equal(q->op, SA_OP_GET);
	assert_int_equal(q->type->attribute, 0x0011);
	assert_int_equal(q->mask, 1);
	assert_int_equal(q->tmpl[0], 1);
	assert_int_equal(q->tmpl[1], 2);
}

static void
test_a_raw_mask_stands_for_that_of_the_fields(void **state)
{
	struct desk *d = *state;

	call(d, "sa_query",
		"'record': 'node', 'fields': {'lid': 1}, 'component_mask': '0x8000000000000100'");
	assert_true(d->e->sa.asked.mask == 0x8000000000000100);
	assert_int_equal(d->e->sa.asked.tmpl[1], 1);
}

static void
test_without_address_the_own_sa_is_asked_with_its_key(void **state)
{
	struct desk *d = *state;

	call(d, "sa_query", "'record': 'node', 'port': 1");
	assert_true(d->e->sa.own);
	assert_int_equal(d->e->sa.ah.port, 1);
	assert_int_equal(d->e->sa.asked.sm_key, 0x5151);
	assert_int_equal(d->e->sa.worker, -1);
	call(d, "sa_query", "'record': 'node', 'sm_key': '0xffffffffffffffff'");
	assert_true(d->e->sa.asked.sm_key == UINT64_MAX);
	d->e->sa.disabled = true;
	assert_says(fails(d, "sa_query", "'record': 'node'"), "serves no SA");
}

/* the SM_Key is a secret: strangers do not get ours */
static void
test_another_sa_is_asked_without_our_key(void **state)
{
	struct desk *d = *state;

	call(d, "sa_query",
		"'record': 'node', 'to': '10.0.0.9', 'timeout_ms': 700, 'worker': 1, 'resp_time': 9, 'pkey_index': 3");
	assert_false(d->e->sa.own);
	assert_int_equal(d->e->sa.ah.sgid_index, 1); /* 10.0.0.1 */
	assert_int_equal(d->e->sa.ah.dgid.raw[15], 9);
	assert_int_equal(d->e->sa.asked.sm_key, 0);
	assert_int_equal(d->e->sa.asked.resp_time, 9);
	assert_int_equal(d->e->sa.timeout_ms, 700);
	assert_int_equal(d->e->sa.worker, 1);
	assert_int_equal(d->e->sa.pkey_index, 3);
}

/* a change that is repeated at another SA is one change to a fleet */
static void
test_tid_is_given_or_random(void **state)
{
	struct desk *d = *state;
	const struct sa_query *q = &d->e->sa.asked;

	call(d, "sa_query", "'record': 'node'");
	assert_false(q->keep_tid);
	call(d, "sa_query", "'record': 'node', 'tid': '0xfedcba9876543210'");
	assert_true(q->keep_tid);
	assert_true(q->tid == 0xfedcba9876543210);
	call(d, "sa_query", "'record': 'node', 'tid': 0");
	assert_true(q->keep_tid);
	assert_int_equal(q->tid, 0);
}

/* a request sent before the next hop is known is lost, and costs a Response timeout */
static void
test_a_query_waits_for_the_next_hop(void **state)
{
	struct desk *d = *state;
	uint64_t start = d->now;

	d->e->hop_silent = true;
	call(d, "sa_query", "'record': 'node', 'to': '10.0.0.9'");
	assert_true(d->now - start >= 500 && d->now - start < 600);
	start = d->now;
	call(d, "sa_query", "'record': 'node', 'to': '10.0.0.9', 'dmac': '02:00:00:00:00:09'");
	call(d, "sa_query", "'record': 'node'");
	assert_true(d->now - start < 100);
}

static void
test_bulk_and_config_are_of_version_1_unless_told(void **state)
{
	struct desk *d = *state;
	const struct sa_query *q = &d->e->sa.asked;

	call(d, "sa_query", "'op': 'bulk', 'sa_key': 12");
	assert_int_equal(q->op, SA_OP_BULK);
	assert_int_equal(q->version, 1);
	assert_int_equal(q->sa_key, 12);
	assert_null(q->type);
	call(d, "sa_query",
		"'record': 'node', 'class_version': 1, 'rid': 65536, 'end_rid': '0x20000'");
	assert_int_equal(q->version, 1);
	assert_true(q->by_rid);
	assert_int_equal(q->rid, 0x10000);
	assert_int_equal(q->end_rid, 0x20000);
	call(d, "sa_query", "'op': 'get', 'record': 'node', 'class_version': 1, 'rid': 65536");
	assert_int_equal(q->end_rid, 0x10000);
}

/* sa-multipacket A6: RID = LID | port | enumeration */
static void
test_records_of_a_config_have_rids(void **state)
{
	struct desk *d = *state;
	const struct fake_sa *sa = &d->e->sa;

	call(d, "sa_query",
		"'op': 'config_add', 'record': 'link', 'records': [{'from_lid': 1, 'from_port': 2, 'to_lid': 3, 'to_port': 4}, {'record': 'LinkRecord', 'rid': '0x00050600', 'from_lid': 9}]");
	assert_int_equal(sa->asked.op, SA_OP_CONFIG_ADD);
	assert_int_equal(sa->asked.version, 1);
	assert_int_equal(sa->asked.num_records, 2);
	assert_int_equal(sa->rids[0], 0x00010200);
	assert_int_equal(sa->rids[1], 0x00050600);
	assert_memory_equal(sa->records[0], "\x00\x01\x02\x04\x00\x03", 6);
	call(d, "sa_query", "'op': 'config_delete', 'record': 'link', 'records': {'from_lid': 7}");
	assert_int_equal(sa->asked.num_records, 1);
	assert_int_equal(sa->rids[0], 0x00070000);
}

static void
test_what_is_wrong_with_a_query_is_said(void **state)
{
	struct desk *d = *state;
	const json_t *error;
	const char *text;

	assert_says(fails(d, "sa_query", "'op': 'table'"), "record: missing");
	error = call_fails(d, "sa_query", "'record': 'nod'");
	assert_says(str(error, "message"), "allowed: node, port, ");
	assert_int_equal(json_array_size(
				 json_object_get(json_object_get(error, "data"), "records")),
		sa_num_record_types);
	/* a wrong field: the right ones, all of them in data */
	error = call_fails(d, "sa_query", "'record': 'link', 'fields': {'lid': 1}");
	text = str(error, "message");
	assert_says(text,
		"fields.lid: LinkRecord has no such field; it has from_lid, from_port, to_port, to_lid");
	assert_int_equal(json_array_size(json_object_get(json_object_get(error, "data"), "fields")),
		4);
	error = call_fails(d, "sa_query", "'record': 'port', 'fields': {'x': 1}");
	assert_says(str(error, "message"), ", ...");
	assert_true(
		json_array_size(json_object_get(json_object_get(error, "data"), "fields")) > 50);
	assert_says(fails(d, "sa_query", "'record': 'node', 'fields': {'lid': 'x'}"), "lid");
	assert_says(fails(d, "sa_query", "'record': 'node', 'fields': {'lid': [1]}"), "lid");
	assert_says(fails(d, "sa_query", "'record': 'node', 'fields': {'reserved': 1}"),
		"reserved");
	assert_says(fails(d, "sa_query", "'record': 'node', 'fields': 1"), "fields: got 1");
	assert_says(fails(d, "sa_query", "'op': 'bulk', 'fields': {'lid': 1}"), "bulk");
	assert_says(fails(d, "sa_query", "'op': 'config_add', 'record': 'node'"),
		"records: missing");
	assert_says(fails(d, "sa_query", "'record': 'node', 'records': [{}]"), "only config_");
	assert_says(fails(d, "sa_query", "'op': 'config_add', 'record': 'node', 'records': []"),
		"records");
	assert_says(fails(d, "sa_query", "'op': 'config_add', 'record': 'node', 'records': [1]"),
		"records");
	assert_says(fails(d, "sa_query",
			    "'op': 'config_add', 'record': 'node', 'records': [{'rid': 'x'}]"),
		"records[0].rid");
	assert_says(fails(d, "sa_query", "'op': 'steal', 'record': 'node'"), "op: got");
	assert_says(fails(d, "sa_query", "'record': 'node', 'class_version': 3"), "class_version");
	assert_says(fails(d, "sa_query", "'record': 'node', 'to': 'nowhere'"), "to: got");
	assert_says(fails(d, "sa_query", "'record': 'node', 'to': '10.0.0.9', 'port': 9"), "port");
	assert_says(fails(d, "sa_query", "'record': 'node', 'resp_time': 32"), "resp_time");
	assert_says(fails(d, "sa_query", "'record': 'node', 'tid': 'x'"), "tid: got \"x\"");
	assert_says(fails(d, "sa_query", "'record': 'node', 'tid': -1"), "tid: got -1");
	assert_says(fails(d, "sa_query", "'record': 'node', 'tid': '0x10000000000000000'"),
		"tid: got");
	assert_says(fails(d, "sa_query", "'record': 'node', 'tid': [1]"), "tid: got");
	assert_says(fails(d, "sa_query", "'record': 'node', 'tid': 1, 'worker': 1"),
		"worker: got 1, not allowed with tid");
	assert_int_equal(d->e->sa.id, 0); /* none was started */
}

/* --- sa_result --- */

static void
test_records_come_by_name_page_by_page(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->sa.num = 5;
	call(d, "sa_query", "'record': 'node'");
	r = call(d, "sa_result", "'query': 33, 'max': 3");
	assert_string_equal(str(r, "state"), "done");
	assert_string_equal(str(r, "status"), "OK");
	assert_int_equal(num(r, "received"), 5);
	assert_int_equal(num(r, "percent"), 100);
	assert_int_equal(num(r, "elapsed_us"), 1234);
	assert_int_equal(num(r, "sa_key"), 7);
	assert_int_equal(json_array_size(json_object_get(r, "records")), 3);
	assert_string_equal(str(row(r, "records", 2), "record"), "NodeRecord");
	assert_string_equal(str(row(r, "records", 2), "node_guid"), "0x0002c90300000003");
	assert_string_equal(str(row(r, "records", 2), "node_desc"), "a node");
	assert_int_equal(num(row(r, "records", 2), "num_ports"), 1);
	assert_null(json_object_get(row(r, "records", 2), "rid"));
	assert_null(json_object_get(row(r, "records", 2), "reserved"));
	assert_int_equal(num(r, "cursor"), 3);
	r = call(d, "sa_result", "'query': 33, 'cursor': 3");
	assert_int_equal(json_array_size(json_object_get(r, "records")), 2);
	assert_true(json_is_null(json_object_get(r, "cursor")));
	r = call(d, "sa_result", "'query': 33, 'max': 0");
	assert_int_equal(json_array_size(json_object_get(r, "records")), 0);
}

static void
test_version_1_records_have_their_rid(void **state)
{
	struct desk *d = *state;

	d->e->sa.num = 1;
	call(d, "sa_query", "'record': 'node', 'class_version': 1");
	assert_string_equal(str(row(call(d, "sa_result", "'query': 33"), "records", 0), "rid"),
		"0x00010000");
}

static void
test_a_running_query_is_waited_for_and_goes_on(void **state)
{
	struct desk *d = *state;
	const json_t *r;
	uint64_t start = d->now;

	d->e->sa.num = 2;
	d->e->sa.running = true;
	call(d, "sa_query", "'record': 'node'");
	r = call(d, "sa_result", "'query': 33, 'timeout_ms': 200");
	assert_true(d->now - start >= 200);
	assert_string_equal(str(r, "state"), "running");
	assert_null(json_object_get(r, "status"));
	assert_int_equal(num(r, "percent"), 75);
	/* all that came has been shown, and there may be more */
	assert_int_equal(json_array_size(json_object_get(r, "records")), 2);
	assert_int_equal(num(r, "cursor"), 2);
	/* a whole page needs no waiting */
	start = d->now;
	call(d, "sa_result", "'query': 33, 'timeout_ms': 200, 'max': 2");
	assert_true(d->now - start < 200);
}

static void
test_each_end_has_its_name(void **state)
{
	static const struct {
		enum mad_end end;
		uint16_t status;
		uint8_t rmpp_status;
		int error;
		const char *name;
	} ends[] = {
		{ MAD_END_STATUS, SA_STATUS_NO_RECORDS, 0, 0, NULL },
		{ MAD_END_STATUS, SA_STATUS_DENIED, 0, 0, NULL },
		{ MAD_END_ABORTED, 0, RMPP_STATUS_T2L, 0, NULL },
		{ MAD_END_REFUSED, 0, 0, -ENOBUFS, "RESULT_TOO_LARGE" },
		{ MAD_END_REFUSED, 0, 0, -EPROTO, "REFUSED" },
		{ MAD_END_TIMEOUT, 0, 0, 0, NULL },
	};
	struct desk *d = *state;
	const json_t *r;
	size_t i;

	call(d, "sa_query", "'record': 'node'");
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		d->e->sa.end = ends[i].end;
		d->e->sa.status = ends[i].status;
		d->e->sa.rmpp_status = ends[i].rmpp_status;
		d->e->sa.error = ends[i].error;
		r = call(d, "sa_result", "'query': 33");
		assert_string_not_equal(str(r, "status"), "OK");
		assert_string_equal(str(r, "status"),
			ends[i].name != NULL                    ? ends[i].name
				: ends[i].end == MAD_END_STATUS ? mad_status_name(ends[i].status)
				: ends[i].end == MAD_END_ABORTED
				? rmpp_status_name(ends[i].rmpp_status)
				: mad_end_name(ends[i].end));
		assert_true(strlen(str(r, "message")) > 10);
		assert_null(json_object_get(r, "sa_key"));
	}
	d->e->sa.end = MAD_END_REFUSED;
	d->e->sa.error = -EEXIST;
	assert_says(str(call(d, "sa_result", "'query': 33"), "message"),
		"tid: a request to this SA has this TID");
	d->e->sa.end = MAD_END_STATUS;
	d->e->sa.status = SA_STATUS_NO_RECORDS;
	assert_string_equal(str(call(d, "sa_result", "'query': 33"), "mad_status"), "0x0300");
}

static void
test_a_cancelled_query_is_gone(void **state)
{
	struct desk *d = *state;

	call(d, "sa_query", "'record': 'node'");
	call(d, "sa_cancel", "'query': 33");
	assert_says(fails(d, "sa_result", "'query': 33"), "no query 33");
	assert_says(fails(d, "sa_cancel", "'query': 33"), "no query 33");
	assert_says(fails(d, "sa_cancel", ""), "query: missing");
	assert_says(fails(d, "sa_result", "'query': 33, 'max': 1001"), "max");
}

/* --- sessions and figures --- */

static void
test_sessions_are_listed(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->sa.sessions = 3;
	r = call(d, "sa_sessions", "'max': 2");
	assert_int_equal(json_array_size(json_object_get(r, "sessions")), 2);
	assert_int_equal(num(r, "cursor"), 2);
	r = row(call(d, "sa_sessions", "'cursor': 2"), "sessions", 0);
	assert_string_equal(str(r, "peer"), "fe80::9");
	assert_string_equal(str(r, "tid"), "0x000000000000abc2");
	assert_string_equal(str(r, "method"), "GetTable");
	assert_string_equal(str(r, "attribute"), "node");
	assert_string_equal(str(r, "role"), "requester");
	assert_string_equal(str(r, "state"), "RECV");
	assert_int_equal(num(r, "worker"), 1);
	assert_int_equal(num(r, "segments"), 9);
	assert_int_equal(num(r, "age_ms"), 2500);
}

static void
test_figures_as_a_sum_and_per_worker(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	r = call(d, "sa_stats", "'nonzero': true, 'per_worker': true");
	assert_int_equal(num(r, "sessions"), 20 - 12 - 2);
	assert_int_equal(num(json_object_get(r, "mad"), "sessions_opened"), 20);
	assert_null(json_object_get(json_object_get(r, "mad"), "timeouts"));
	assert_int_equal(num(json_object_get(r, "sa"), "get_table"), 4);
	assert_int_equal(num(json_object_get(r, "store"), "version"), 5);
	assert_int_equal(num(json_object_get(r, "aborts_sent"), rmpp_status_name(RMPP_STATUS_T2L)),
		3);
	assert_int_equal(num(json_object_get(row(r, "workers", 0), "mad"), "sessions_opened"), 10);
	r = call(d, "sa_stats", "'worker': 0");
	assert_int_equal(num(json_object_get(r, "mad"), "sessions_opened"), 10);
	assert_int_equal(num(json_object_get(r, "mad"), "timeouts"), 0);
	assert_says(fails(d, "sa_stats", "'worker': 99"), "worker");
	d->e->sa.disabled = true;
	r = call(d, "sa_stats", "%s", "");
	assert_true(json_is_false(json_object_get(r, "enabled")));
	assert_null(json_object_get(r, "store"));
}

/* --- the database --- */

static void
test_an_import_is_waited_for(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	r = call(d, "sa_import", "'text': 'Switch 4', 'format': 'ibnetdiscover', 'replace': true");
	assert_int_equal(num(r, "records"), 42);
	assert_int_equal(num(r, "elapsed_us"), 1500);
	assert_string_equal(d->e->sa.import_text, "Switch 4");
	assert_true(d->e->sa.import.parser == sa_import_ibnetdiscover);
	assert_int_equal(d->e->sa.import.len, 8);
	assert_int_equal(d->e->sa.import.replace, SA_REPLACE_ALL);
	d->fd = memfd_create("x.json", MFD_CLOEXEC);
	assert_int_equal(write(d->fd, "{\"records\": []}", 15), 15);
	call(d, "sa_import", "'file': 'x.json'");
	assert_int_equal(d->fd, -1); /* the call took it, and closed it */
	assert_string_equal(d->e->sa.import_text, "{\"records\": []}");
	assert_true(d->e->sa.import.parser == sa_import_json);
	assert_int_equal(d->e->sa.import.replace, SA_REPLACE_NOTHING);
}

static void
test_a_failed_import_says_why(void **state)
{
	struct desk *d = *state;

	assert_says(fails(d, "sa_import", ""), "give one of them");
	assert_says(fails(d, "sa_import", "'file': 'x', 'text': 'y'"), "file: got no descriptor");
	assert_says(fails(d, "sa_import", "'text': 'x', 'format': 'xml'"), "json, ibnetdiscover");
	d->e->sa.import_result = -EINVAL;
	assert_says(fails(d, "sa_import", "'text': 'x'"), "line 3: lid: out of range");
	d->e->sa.import_polls = 5;
	assert_says(fails(d, "sa_import", "'text': 'x'"), "another import");
}

static void
test_an_export_is_paged(void **state)
{
	struct desk *d = *state;
	const json_t *r;

	d->e->sa.exported = 3;
	r = call(d, "sa_export", "'max': 2");
	assert_int_equal(json_array_size(json_object_get(r, "records")), 2);
	assert_string_equal(str(row(r, "records", 0), "rid"), "0x00010000");
	assert_int_equal(num(r, "cursor"), 2);
	r = call(d, "sa_export", "'cursor': 2");
	assert_int_equal(json_array_size(json_object_get(r, "records")), 1);
	assert_true(json_is_null(json_object_get(r, "cursor")));
	assert_string_equal(str(json_object_get(call_fails(d, "sa_export", "'cursor': 9"), "data"),
				    "errno"),
		"ESTALE");
}

#define T(f) cmocka_unit_test_setup_teardown(f, desk_setup, desk_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_fields_by_name_become_template_and_mask),
		T(test_numbers_do_as_well_as_text),
		T(test_a_raw_mask_stands_for_that_of_the_fields),
		T(test_without_address_the_own_sa_is_asked_with_its_key),
		T(test_another_sa_is_asked_without_our_key),
		T(test_tid_is_given_or_random),
		T(test_a_query_waits_for_the_next_hop),
		T(test_bulk_and_config_are_of_version_1_unless_told),
		T(test_records_of_a_config_have_rids),
		T(test_what_is_wrong_with_a_query_is_said),
		T(test_records_come_by_name_page_by_page),
		T(test_version_1_records_have_their_rid),
		T(test_a_running_query_is_waited_for_and_goes_on),
		T(test_each_end_has_its_name),
		T(test_a_cancelled_query_is_gone),
		T(test_sessions_are_listed),
		T(test_figures_as_a_sum_and_per_worker),
		T(test_an_import_is_waited_for),
		T(test_a_failed_import_says_why),
		T(test_an_export_is_paged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
