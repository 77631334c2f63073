/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Changes as bytes, on their way from one appliance of a fleet to another one. */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fnv.h"
#include "sa/forward.h"
#include "sa/layout.h"
#include "sa/server.h"
#include "wire/bytes.h"

static uint8_t bytes[FORWARD_REQUEST_MAX];
static char id[FORWARD_ID_LEN + 1];

/* A change in which every byte that is passed on has another value. */
static struct sa_write
change(enum write_kind kind, uint16_t attribute)
{
	struct sa_write w;

	memset(&w, 0x5A, sizeof(w));
	w.kind = kind;
	w.version = SA_V1;
	w.type = sa_record_type(attribute);
	w.mask = UINT64_C(0x0102030405060708);
	w.rid = 0x11121314;
	w.edit = SA_EDIT_ADD;
	w.who.sight = SA_SEES_KEYS;
	w.who.trusted = w.who.manager = true;
	w.who.stranger = false;
	w.who.lid = 7;
	w.who.port.num_pkeys = 3;
	w.peer.av.encap = ENCAP_IB;
	w.peer.av.grh = true;
	w.peer.qpn = 0x123456;
	w.forwarded = NULL;
	w.body = NULL;
	w.data_len = 0;
	return w;
}

static void
assert_same_request(const struct sa_write *a, const struct sa_write *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->version, b->version);
	assert_ptr_equal(a->type, b->type);
	assert_int_equal(a->mask, b->mask);
	assert_int_equal(a->rid, b->rid);
	assert_int_equal(a->edit, b->edit);
	assert_int_equal(a->who.sight, b->who.sight);
	assert_int_equal(a->who.trusted, b->who.trusted);
	assert_int_equal(a->who.manager, b->who.manager);
	assert_int_equal(a->who.stranger, b->who.stranger);
	assert_memory_equal(a->who.gid.raw, b->who.gid.raw, 16);
	assert_int_equal(a->who.lid, b->who.lid);
	assert_int_equal(a->who.port.guid, b->who.port.guid);
	assert_memory_equal(a->who.port.pkey, b->who.port.pkey, sizeof(a->who.port.pkey));
	assert_int_equal(a->peer.av.encap, b->peer.av.encap);
	assert_memory_equal(a->peer.av.sgid.raw, b->peer.av.sgid.raw, 16);
	assert_memory_equal(a->peer.av.dgid.raw, b->peer.av.dgid.raw, 16);
	assert_memory_equal(a->peer.av.dmac, b->peer.av.dmac, 6);
	assert_int_equal(a->peer.av.dlid, b->peer.av.dlid);
	assert_int_equal(a->peer.av.ethertype, b->peer.av.ethertype);
	assert_int_equal(a->peer.qpn, b->peer.qpn);
	assert_int_equal(a->peer.qkey, b->peer.qkey);
	assert_int_equal(a->peer.pkey, b->peer.pkey);
	assert_memory_equal(a->rec, b->rec, sizeof(a->rec));
	assert_int_equal(a->data_len, b->data_len);
}

static const struct {
	enum write_kind kind;
	uint16_t attribute;
} kinds_of_change[] = {
	{ WRITE_SERVICE_SET, SA_SERVICE },
	{ WRITE_SERVICE_DELETE, SA_SERVICE },
	{ WRITE_MC_JOIN, SA_MCMEMBER },
	{ WRITE_MC_LEAVE, SA_MCMEMBER },
	{ WRITE_SUBSCRIBE, SA_INFORM_INFO },
	{ WRITE_RID_DELETE, SA_SERVICE },
	{ WRITE_RID_DELETE, SA_MCMEMBER },
	{ WRITE_CONFIG, SA_NODE },
	{ WRITE_NOTICE, SA_NOTICE },
};

static void
test_every_kind_arrives_as_it_was(void **state)
{
	struct sa_write w, got;
	unsigned int i;
	size_t len;

	(void)state;
	for (i = 0; i < sizeof(kinds_of_change) / sizeof(kinds_of_change[0]); i++) {
		w = change(kinds_of_change[i].kind, kinds_of_change[i].attribute);
		len = forward_put_request(&w, NULL, bytes, id);
		assert_true(len > 0);
		assert_int_equal(strlen(id), FORWARD_ID_LEN);
		assert_int_equal(forward_get_request(&got, bytes, len), 0);
		assert_same_request(&got, &w);
		/* what only the appliance that asked can know */
		assert_int_equal(got.peer.neighbour, PATH_NO_NEIGHBOUR);
		assert_null(got.w);
		assert_null(got.body);
	}
}

static void
test_records_of_a_config_follow(void **state)
{
	static uint8_t records[FORWARD_CONFIG_MAX + 256];
	struct sa_write w = change(WRITE_CONFIG, SA_NODE), got;
	uint16_t size = sa_wire_len(w.type, SA_V1);
	size_t len, i;

	(void)state;
	for (i = 0; i < sizeof(records); i++)
		records[i] = (uint8_t)(i * 7);
	w.forwarded = records;
	w.data_len = 100u * size;
	len = forward_put_request(&w, NULL, bytes, id);
	assert_int_equal(forward_get_request(&got, bytes, len), 0);
	assert_memory_equal(got.forwarded, records, w.data_len);
	w.data_len = FORWARD_CONFIG_MAX / size * size;
	assert_true(forward_put_request(&w, NULL, bytes, id) > 0);
	w.data_len += size;
	assert_int_equal(forward_put_request(&w, NULL, bytes, id), 0);
}

/* Whoever has staged the same records, wherever, the identity is the same. */
static void
test_large_config_names_its_parts(void **state)
{
	const uint16_t size = sa_wire_len(sa_record_type(SA_NODE), SA_V1);
	struct staged_head staged = { .owner = "a", .id = 1 }, read;
	struct sa_write w = change(WRITE_CONFIG, SA_NODE), got;
	uint8_t *records, *part = malloc(STAGED_PART_MAX);
	char first[FORWARD_ID_LEN + 1];
	size_t len, i;

	(void)state;
	w.staged = NULL;
	w.data_len = (STAGED_PART_MAX / size + 1) * size;
	records = malloc(w.data_len);
	for (i = 0; i < w.data_len; i++)
		records[i] = (uint8_t)(i * 7);
	w.forwarded = records;
	staged_count_config(&w, &staged);
	assert_int_equal(staged.parts, 2);
	assert_int_equal(staged.len, w.data_len);
	assert_int_equal(staged.sum, fnv_add(FNV_START, records, w.data_len));
	assert_int_equal(staged_config_part(&w, 0, part), STAGED_PART_MAX);
	assert_memory_equal(part, records, STAGED_PART_MAX);
	len = w.data_len - STAGED_PART_MAX;
	assert_int_equal(staged_config_part(&w, 1, part), len);
	assert_memory_equal(part, records + STAGED_PART_MAX, len);

	len = forward_put_request(&w, &staged, bytes, first);
	assert_true(len > 0);
	assert_int_equal(forward_get_request(&got, bytes, len), 0);
	assert_int_equal(got.kind, WRITE_CONFIG_STAGED);
	assert_int_equal(got.edit, w.edit);
	assert_int_equal(staged_get_head(&read, got.forwarded, got.data_len), 0);
	assert_string_equal(read.owner, "a");
	assert_int_equal(read.id, 1);
	assert_int_equal(read.sum, staged.sum);
	strcpy(staged.owner, "another one");
	staged.id = 2;
	assert_true(forward_put_request(&w, &staged, bytes, id) > 0);
	assert_string_equal(id, first);
	records[9]++;
	staged_count_config(&w, &staged);
	assert_true(forward_put_request(&w, &staged, bytes, id) > 0);
	assert_string_not_equal(id, first);
	free(records);
	free(part);
}

/* Every shorter length, in memory of just that length: tools see a read behind the end. */
static void
test_short_request_is_refused(void **state)
{
	struct sa_write w = change(WRITE_CONFIG, SA_NODE), got;
	static uint8_t records[256];
	size_t len, n;

	(void)state;
	w.forwarded = records;
	w.data_len = 2u * sa_wire_len(w.type, SA_V1);
	len = forward_put_request(&w, NULL, bytes, id);
	for (n = 0; n < len; n++) {
		uint8_t *part = malloc(n > 0 ? n : 1);

		memcpy(part, bytes, n);
		assert_int_equal(forward_get_request(&got, part, n), -EBADMSG);
		free(part);
	}
	assert_int_equal(forward_get_request(&got, bytes, len + 1), -EBADMSG);
}

static void
test_foreign_version_and_nonsense_are_refused(void **state)
{
	struct sa_write w = change(WRITE_SERVICE_SET, SA_SERVICE), got;
	size_t len = forward_put_request(&w, NULL, bytes, id), i;
	uint8_t copy[1024];
	unsigned int v;

	(void)state;
	for (v = 0; v < 256; v++) {
		bytes[0] = (uint8_t)v;
		assert_int_equal(forward_get_request(&got, bytes, len),
			v == FORWARD_VERSION ? 0 : -EPROTONOSUPPORT);
	}
	bytes[0] = FORWARD_VERSION;
	/* a kind with the record of another one, or a type that does not exist */
	w.type = sa_record_type(SA_NODE);
	len = forward_put_request(&w, NULL, bytes, id);
	assert_int_equal(forward_get_request(&got, bytes, len), -EBADMSG);
	put_be16(bytes + 3, 0xFFFF);
	assert_int_equal(forward_get_request(&got, bytes, len), -EBADMSG);
	/* any byte may be anything: what is accepted has values that its fields can have */
	w = change(WRITE_SERVICE_SET, SA_SERVICE);
	len = forward_put_request(&w, NULL, bytes, id);
	for (i = 1; i < len; i++)
		for (v = 0; v < 256; v++) {
			memcpy(copy, bytes, len);
			copy[i] = (uint8_t)v;
			if (forward_get_request(&got, copy, len) != 0)
				continue;
			assert_true(got.kind <= WRITE_NOTICE && got.edit <= SA_EDIT_UNKNOWN);
			assert_true(got.version == SA_V1 || got.version == SA_V2);
			assert_true(got.who.sight <= SA_SEES_KEYS);
			assert_true(got.peer.av.encap <= ENCAP_IB);
			assert_true(got.who.port.num_pkeys <= PORT_VIEW_PKEYS ||
				got.who.port.num_pkeys == PORT_VIEW_MANY);
		}
}

static void
test_identity_is_that_of_the_transaction(void **state)
{
	struct sa_write w = change(WRITE_SERVICE_SET, SA_SERVICE);
	char first[FORWARD_ID_LEN + 1];

	(void)state;
	forward_put_request(&w, NULL, bytes, first);
	/* it reaches another appliance, by another port and router */
	memset(w.peer.av.sgid.raw, 1, 16);
	memset(w.peer.av.smac, 2, 6);
	memset(w.peer.av.dmac, 3, 6);
	w.peer.av.slid = 9;
	w.peer.av.port = 1;
	w.handle++;
	forward_put_request(&w, NULL, bytes, id);
	assert_string_equal(id, first);
	/* another TID, requester or wish */
	w.reply[MAD_OFF_TID + 7]++;
	forward_put_request(&w, NULL, bytes, id);
	assert_string_not_equal(id, first);
	w.reply[MAD_OFF_TID + 7]--;
	w.peer.qpn++;
	forward_put_request(&w, NULL, bytes, id);
	assert_string_not_equal(id, first);
	w.peer.qpn--;
	w.rec[40]++;
	forward_put_request(&w, NULL, bytes, id);
	assert_string_not_equal(id, first);
	w.rec[40]--;
	forward_put_request(&w, NULL, bytes, id);
	assert_string_equal(id, first);
}

static void
test_answer_arrives_and_a_short_one_is_refused(void **state)
{
	struct sa_write w = change(WRITE_SERVICE_SET, SA_SERVICE), got = w;
	uint8_t answer[FORWARD_ANSWER_MAX];
	size_t len, n;

	(void)state;
	w.status = MAD_STATUS_OK;
	w.share_full = false;
	w.rid = 77;
	memset(w.rec, 0x33, sizeof(w.rec));
	len = forward_put_answer(&w, answer);
	for (n = 0; n < len; n++)
		assert_int_equal(forward_get_answer(&got, answer, n), -EBADMSG);
	assert_int_equal(got.rid, 0x11121314); /* as it was */
	assert_int_equal(forward_get_answer(&got, answer, len), 0);
	assert_int_equal(got.status, MAD_STATUS_OK);
	assert_int_equal(got.rid, 77);
	assert_memory_equal(got.rec, w.rec, w.type->len);
	answer[0]++;
	assert_int_equal(forward_get_answer(&got, answer, len), -EPROTONOSUPPORT);
	/* a refusal of what could not be read has no record */
	w = (struct sa_write){ .status = SA_STATUS_NO_RESOURCES };
	len = forward_put_answer(&w, answer);
	assert_int_equal(forward_get_answer(&got, answer, len), 0);
	assert_int_equal(got.status, SA_STATUS_NO_RESOURCES);
}

static void
test_events_arrive_and_short_ones_are_refused(void **state)
{
	static struct sa_event got[WRITE_EVENTS];
	static uint8_t kept[FORWARD_EVENTS_MAX];
	struct sa_event e[2];
	size_t len, n;

	(void)state;
	memset(e, 0x5A, sizeof(e));
	e[0].is_trap = false;
	e[1].is_trap = true;
	len = forward_put_events(e, 2, kept);
	for (n = 0; n < len; n++) {
		uint8_t *part = malloc(n > 0 ? n : 1);

		memcpy(part, kept, n);
		assert_int_equal(forward_get_events(got, part, n), -EBADMSG);
		free(part);
	}
	assert_int_equal(forward_get_events(got, kept, len + 1), -EBADMSG);
	assert_int_equal(forward_get_events(got, kept, len), 2);
	assert_int_equal(got[0].trap, 0x5A5A);
	assert_int_equal(got[0].pkey, 0x5A5A);
	assert_memory_equal(got[0].gid.raw, e[0].gid.raw, 16);
	assert_int_equal(got[0].number, 0);
	assert_true(got[1].is_trap);
	assert_memory_equal(got[1].notice, e[1].notice, SA_TRAP_LEN);
	kept[1] = 0xFF; /* more than there can be */
	assert_int_equal(forward_get_events(got, kept, len), -EBADMSG);
	kept[0]++;
	assert_int_equal(forward_get_events(got, kept, len), -EPROTONOSUPPORT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_arrives_as_it_was),
		cmocka_unit_test(test_records_of_a_config_follow),
		cmocka_unit_test(test_large_config_names_its_parts),
		cmocka_unit_test(test_short_request_is_refused),
		cmocka_unit_test(test_foreign_version_and_nonsense_are_refused),
		cmocka_unit_test(test_identity_is_that_of_the_transaction),
		cmocka_unit_test(test_answer_arrives_and_a_short_one_is_refused),
		cmocka_unit_test(test_events_arrive_and_short_ones_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
