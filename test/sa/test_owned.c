/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Ports that belong to an appliance of a fleet: sa/owned.h. The fabric: bench.h. */

#include <stdlib.h>

#include "bench.h"

#include "sa/owned.h"
#include "sa/server.h"
#include "sa/tables.h"

/* What an appliance asks for. */
struct owned_request {
	struct sa_change record[16];
	size_t n;
	uint8_t bytes[OWNED_LEN_MAX];
	size_t len;
};

static struct sa_change *
owned_add(struct owned_request *q, uint16_t attribute)
{
	q->record[q->n] = change_of(attribute);
	return &q->record[q->n++];
}

/* A port with all of its records, and a link to port `peer` of the request. */
static void
owned_add_port(struct owned_request *q, uint16_t lid, uint64_t guid, uint16_t peer)
{
	struct sa_change *c = owned_add(q, SA_NODE);

	set_field(c, "lid", lid);
	set_field(c, "port_guid", guid);
	c = owned_add(q, SA_PORT_INFO);
	set_field(c, "lid", lid);
	set_field(c, "port_num", lid);
	set_field(c, "base_lid", lid);
	c = owned_add(q, SA_LINK);
	set_field(c, "from_lid", lid);
	set_field(c, "from_port", lid);
	set_field(c, "to_lid", peer);
	set_field(c, "to_port", peer);
}

static struct owned_request *
two_ports(const char *owner, uint64_t guid)
{
	struct owned_request *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	owned_add_port(q, 1, guid, 2);
	owned_add_port(q, 2, guid + 1, 1);
	q->len = owned_put(owner, q->record, q->n, q->n, q->bytes);
	assert_int_not_equal(q->len, 0);
	return q;
}

static uint16_t
owned_execute(struct bench *b, const uint8_t *bytes, size_t len)
{
	static struct sa_write w;
	struct sa_write *list[] = { &w };

	memset(&w, 0, sizeof(w));
	w.kind = WRITE_OWNED;
	w.type = sa_record_type(SA_NODE);
	w.forwarded = bytes;
	w.data_len = (uint32_t)len;
	sa_write_execute(b->sa, list, 1, 1);
	return w.status;
}

static const struct store_version *
owned_now(const struct bench *b)
{
	return store_current(b->reader);
}

static bool
owned_asks(const struct bench *b, const struct owned_request *q)
{
	uint64_t taken;

	return owned_differs(owned_now(b), q->bytes, q->len, &taken);
}

/* @return 0: the port is not stored */
static uint16_t
lid_of_port(const struct bench *b, uint64_t guid)
{
	const struct store_record *r;
	struct store_cursor c;
	uint64_t key;

	store_seek_index(&c, owned_now(b), SA_INDEX_PORT_GUID, guid);
	r = store_next(&c, &key);
	return r != NULL && key == guid ? (uint16_t)(r->rid >> 16) : 0;
}

static bool
owned_has_records(const struct bench *b, uint16_t attribute, uint16_t lid)
{
	struct store_cursor c;
	const struct store_record *r =
		sa_first_of_lid(owned_now(b), sa_record_type(attribute)->table, lid, &c);

	return r != NULL && r->rid >> 16 == lid;
}

static void
test_ports_get_lids_from_the_end(void **state)
{
	struct bench *b = *state;
	struct owned_request *one = two_ports("one", 0x100), *other = two_ports("other", 0x200);
	const struct sa_record_type *link = sa_record_type(SA_LINK);
	const struct store_record *r;
	struct store_cursor c;
	char name[OWNED_NAME_MAX];

	put_port(b, OWNED_LID_LAST - 1, 0x99, 1, 0); /* an operator's */
	assert_true(owned_asks(b, one));
	assert_int_equal(owned_execute(b, one->bytes, one->len), 0);
	assert_false(owned_asks(b, one));
	assert_int_equal(owned_execute(b, other->bytes, other->len), 0);
	assert_int_equal(lid_of_port(b, 0x100), OWNED_LID_LAST);
	assert_int_equal(lid_of_port(b, 0x101), OWNED_LID_LAST - 2);
	assert_int_equal(lid_of_port(b, 0x200), OWNED_LID_LAST - 3);
	assert_int_equal(lid_of_port(b, 0x201), OWNED_LID_LAST - 4);
	/* links lead to ports of the same appliance */
	r = sa_first_of_lid(owned_now(b), link->table, OWNED_LID_LAST - 3, &c);
	assert_int_equal(sa_get_named(link, "to_lid", r->bytes), OWNED_LID_LAST - 4);
	r = sa_first_of_lid(owned_now(b), SA_TABLE_NODE, OWNED_LID_LAST - 2, &c);
	assert_true(owner_of(r, name));
	assert_string_equal(name, "one");
	r = sa_first_of_lid(owned_now(b), SA_TABLE_NODE, OWNED_LID_LAST - 1, &c);
	assert_false(owner_of(r, name));
	free(one);
	free(other);
}

static void
test_what_is_not_asked_for_any_more_goes(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = two_ports("one", 0x100), *other = two_ports("other", 0x200);
	uint64_t nodes = store_count(owned_now(b), SA_TABLE_NODE);

	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(owned_execute(b, other->bytes, other->len), 0);
	/* only the first port, and without its link */
	q->len = owned_put("one", q->record, 2, 2, q->bytes);
	assert_true(owned_asks(b, q));
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(lid_of_port(b, 0x100), OWNED_LID_LAST);
	assert_int_equal(lid_of_port(b, 0x101), 0);
	assert_false(owned_has_records(b, SA_LINK, OWNED_LID_LAST));
	assert_false(owned_has_records(b, SA_PORT_INFO, OWNED_LID_LAST - 1));
	/* no port at all */
	q->len = owned_put("one", NULL, 0, 0, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_false(owned_has_records(b, SA_PORT_INFO, OWNED_LID_LAST));
	assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes + 2);
	assert_int_equal(lid_of_port(b, 0x200), OWNED_LID_LAST - 2);
	free(q);
	free(other);
}

/* An operator's port, and another appliance's, are left alone, and said to be taken. */
static void
test_ports_of_others_are_left_alone(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = two_ports("one", 0x100), *other = two_ports("other", 0x101);
	uint64_t taken;

	put_port(b, 33, 0x100, 1, 0);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(lid_of_port(b, 0x100), 33);
	assert_int_equal(lid_of_port(b, 0x101), OWNED_LID_LAST);
	assert_false(owned_differs(owned_now(b), q->bytes, q->len, &taken));
	assert_int_equal(taken, 0x100);
	assert_int_equal(owned_execute(b, other->bytes, other->len), 0);
	assert_int_equal(lid_of_port(b, 0x101), OWNED_LID_LAST);
	assert_int_equal(lid_of_port(b, 0x102), OWNED_LID_LAST - 1);
	/* a link to a port that is not stored is not stored either */
	assert_false(owned_has_records(b, SA_LINK, OWNED_LID_LAST));
	free(q);
	free(other);
}

/* An operator who replaces such a record takes it over. */
static void
test_operator_takes_a_port_over(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = two_ports("one", 0x100);
	char name[OWNED_NAME_MAX];
	struct store_cursor c;

	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	put_port(b, OWNED_LID_LAST, 0x100, 1, 0);
	assert_false(
		owner_of(sa_first_of_lid(owned_now(b), SA_TABLE_NODE, OWNED_LID_LAST, &c), name));
	q->len = owned_put("one", NULL, 0, 0, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(lid_of_port(b, 0x100), OWNED_LID_LAST);
	assert_int_equal(lid_of_port(b, 0x101), 0);
	free(q);
}

/* A RoCE port, and a native one with a LID from subnet management. */
static struct owned_request *
with_native_port(const char *owner, uint64_t guid, uint16_t lid, uint64_t native_guid)
{
	struct owned_request *q = calloc(1, sizeof(*q));
	struct sa_change *c;

	assert_non_null(q);
	owned_add_port(q, 1, guid, 1);
	c = owned_add(q, SA_NODE);
	set_field(c, "lid", lid);
	set_field(c, "port_guid", native_guid);
	c = owned_add(q, SA_SLTOVL);
	set_field(c, "lid", lid);
	q->len = owned_put(owner, q->record, q->n, 3, q->bytes);
	assert_int_not_equal(q->len, 0);
	return q;
}

/* Also a LID that the request's RoCE ports are numbered by. When it moves, nothing stays behind. */
static void
test_native_ports_keep_their_lids(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = with_native_port("one", 0x100, 62, 0x300);
	uint64_t nodes = store_count(owned_now(b), SA_TABLE_NODE);

	assert_true(owned_asks(b, q));
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_false(owned_asks(b, q));
	assert_int_equal(lid_of_port(b, 0x100), OWNED_LID_LAST);
	assert_int_equal(lid_of_port(b, 0x300), 62);
	assert_true(owned_has_records(b, SA_SLTOVL, 62));
	free(q);
	q = with_native_port("one", 0x100, 60, 0x300);
	assert_true(owned_asks(b, q));
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(lid_of_port(b, 0x300), 60);
	assert_false(owned_has_records(b, SA_SLTOVL, 62));
	assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes + 2);
	/* it goes with its owner */
	q->len = owned_put("one", NULL, 0, 0, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(lid_of_port(b, 0x300), 0);
	assert_false(owned_has_records(b, SA_SLTOVL, 60));
	assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes);
	free(q);
}

/* An operator has imported the port: it becomes the owner's, and its cable stays. */
static void
test_imported_native_port_is_taken_over(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = with_native_port("one", 0x100, 60, 0x300);
	struct store_cursor c;
	char name[OWNED_NAME_MAX];

	put_port(b, 59, 0x300, 1, 0); /* the LID that it had then */
	put_link(b, 60, 1, 61, 1);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_false(owned_asks(b, q));
	assert_false(owned_has_records(b, SA_NODE, 59));
	assert_true(owner_of(sa_first_of_lid(owned_now(b), SA_TABLE_NODE, 60, &c), name));
	put_port(b, 60, 0x300, 1, 0);
	assert_true(owned_asks(b, q));
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_true(owner_of(sa_first_of_lid(owned_now(b), SA_TABLE_NODE, 60, &c), name));
	q->len = owned_put("one", NULL, 0, 0, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_false(owned_has_records(b, SA_NODE, 60));
	assert_true(owned_has_records(b, SA_LINK, 60));
	free(q);
}

/* An import has it under other LIDs, below and above its own: both go. */
static void
test_native_port_leaves_no_strays(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = with_native_port("one", 0x100, 60, 0x300),
			     *other = with_native_port("other", 0x200, 70, 0x300);
	uint64_t taken;

	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	put_port(b, 59, 0x300, 1, 0);
	put_port(b, 62, 0x300, 1, 0);
	/* the owner is found behind the first of them */
	owned_differs(owned_now(b), other->bytes, other->len, &taken);
	assert_int_equal(taken, 0x300);
	assert_true(owned_asks(b, q));
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_false(owned_has_records(b, SA_NODE, 59));
	assert_false(owned_has_records(b, SA_NODE, 62));
	assert_int_equal(lid_of_port(b, 0x300), 60);
	assert_false(owned_asks(b, q));
	free(q);
	free(other);
}

/* An operator has imported it as well, under a LID below or above the one that it has. */
static void
test_imported_port_is_the_operators(void **state)
{
	static const uint16_t lids[] = { 33, OWNED_LID_LAST };
	struct bench *b = *state;
	struct owned_request *q = two_ports("one", 0x100);
	unsigned int i;
	uint64_t taken, nodes;

	put_port(b, OWNED_LID_LAST, 0x98, 1, 0); /* of others */
	put_port(b, 33, 0x99, 1, 0);
	nodes = store_count(owned_now(b), SA_TABLE_NODE) + 1; /* with port 0x101 */
	for (i = 0; i < 2; i++) {
		assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
		assert_int_equal(lid_of_port(b, 0x100), OWNED_LID_LAST - 1);
		put_port(b, lids[i], 0x100, 1, 0);
		owned_differs(owned_now(b), q->bytes, q->len, &taken);
		assert_int_equal(taken, 0x100);
		assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
		assert_int_equal(lid_of_port(b, 0x100), lids[i]);
		assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes);
		put_port(b, lids[i], 0x99, 1, 0);
	}
	free(q);
}

static void
test_native_port_of_another_owner_is_left_alone(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = with_native_port("one", 0x100, 60, 0x300),
			     *guid = with_native_port("other", 0x200, 70, 0x300),
			     *lid = with_native_port("other", 0x200, 60, 0x301);
	uint64_t taken;

	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(owned_execute(b, guid->bytes, guid->len), 0);
	assert_int_equal(lid_of_port(b, 0x300), 60);
	assert_int_equal(lid_of_port(b, 0x200), OWNED_LID_LAST - 1);
	assert_false(owned_has_records(b, SA_SLTOVL, 70));
	assert_false(owned_differs(owned_now(b), guid->bytes, guid->len, &taken));
	assert_int_equal(taken, 0x300);
	assert_int_equal(owned_execute(b, lid->bytes, lid->len), 0);
	assert_int_equal(lid_of_port(b, 0x300), 60);
	assert_int_equal(lid_of_port(b, 0x301), 0);
	free(q);
	free(guid);
	free(lid);
}

/* A request that is cut off anywhere, or has types or LIDs that no port has, changes nothing. */
static void
test_bad_requests_change_nothing(void **state)
{
	struct bench *b = *state;
	struct owned_request *q = two_ports("one", 0x100);
	struct sa_change service = change_of(SA_SERVICE), node = change_of(SA_NODE);
	uint64_t nodes = store_count(owned_now(b), SA_TABLE_NODE);
	size_t len, cut;
	uint8_t *copy;

	for (len = 0; len < q->len; len++) {
		copy = malloc(len + 1);
		assert_non_null(copy);
		memcpy(copy, q->bytes, len);
		cut = store_count(owned_now(b), SA_TABLE_NODE);
		if (owned_execute(b, copy, len) != 0)
			assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), cut);
		free(copy);
	}
	q->len = owned_put("one", NULL, 0, 0, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	q->len = owned_put("one", &service, 1, 1, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), SA_STATUS_REQ_INVALID);
	set_field(&node, "lid", OWNED_PORTS + 1);
	set_field(&node, "port_guid", 0x100);
	q->len = owned_put("one", &node, 1, 1, q->bytes);
	owned_execute(b, q->bytes, q->len);
	assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes);
	set_field(&node, "lid", OWNED_PORTS); /* the last one that a port can have */
	q->len = owned_put("one", &node, 1, 1, q->bytes);
	assert_int_equal(owned_execute(b, q->bytes, q->len), 0);
	assert_int_equal(store_count(owned_now(b), SA_TABLE_NODE), nodes + 1);
	free(q);
}

int
main(void)
{
#define WITH_FABRIC(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		WITH_FABRIC(test_ports_get_lids_from_the_end),
		WITH_FABRIC(test_what_is_not_asked_for_any_more_goes),
		WITH_FABRIC(test_ports_of_others_are_left_alone),
		WITH_FABRIC(test_operator_takes_a_port_over),
		WITH_FABRIC(test_native_ports_keep_their_lids),
		WITH_FABRIC(test_imported_native_port_is_taken_over),
		WITH_FABRIC(test_native_port_leaves_no_strays),
		WITH_FABRIC(test_imported_port_is_the_operators),
		WITH_FABRIC(test_native_port_of_another_owner_is_left_alone),
		WITH_FABRIC(test_bad_requests_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
