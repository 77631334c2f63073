/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * GetMulti(MultiPathRecord): paths from any of some GIDs to any of others (sa-multipacket B7, B10).
 * The fabric: bench.h.
 */

#include "bench.h"

#define COUNTS    (SA_BIT(19) | SA_BIT(20))
#define NUMB_PATH SA_BIT(6)
#define MTU       (SA_BIT(10) | SA_BIT(11))

struct multi {
	uint64_t sgid[4];
	uint64_t dgid[4];
	uint8_t sgids;
	uint8_t dgids;
	uint64_t mask;
	uint8_t numb_path;
	uint8_t mtu;
	uint64_t from;
	bool untrusted;
	bool one_packet;
	unsigned int cut; /* bytes missing at the end */
};

/* B10: 24 bytes, then 16 for each GID */
static uint64_t
build(uint8_t *bytes, const struct multi *m)
{
	unsigned int i;

	bytes[5] = m->numb_path;
	bytes[10] = m->mtu;
	bytes[15] = m->sgids;
	bytes[16] = m->dgids;
	for (i = 0; i < m->sgids; i++)
		set_gid(bytes + 24 + 16 * i, m->sgid[i]);
	for (i = 0; i < m->dgids; i++)
		set_gid(bytes + 24 + 16 * (m->sgids + i), m->dgid[i]);
	return 24 + 16 * (m->sgids + m->dgids) - m->cut;
}

static uint16_t
ask_multi(struct bench *b, const struct multi *m)
{
	struct mad_body body = { .len = 0 };
	struct ask a = {
		.version = 2,
		.method = SA2_GET_MULTI,
		.attribute = 0x003A,
		.mask = COUNTS | m->mask,
		.from = m->from,
		.untrusted = m->untrusted,
	};
	uint16_t status;

	body.len = build(body.bytes, m);
	if (m->one_packet) {
		a.data = body.bytes;
		a.data_len = body.len;
	} else {
		a.body = &body;
	}
	status = ask(b, &a);
	/* a request queued for later was kept, and released at the end */
	assert_int_equal(body.taken, !m->one_packet && b->outcome == MAD_LATER);
	assert_int_equal(body.freed, !m->one_packet);
	return status;
}

static const uint8_t *
sa_multi_path(struct bench *b, unsigned int n)
{
	return record_of(b, SA_PATH, 2, n);
}

static void
expect_path(struct bench *b, unsigned int n, uint64_t sgid, uint64_t dgid)
{
	assert_int_equal(get_be64(sa_multi_path(b, n) + 32), sgid);
	assert_int_equal(get_be64(sa_multi_path(b, n) + 16), dgid);
	assert_int_equal(get_be64(sa_multi_path(b, n) + 24), PREFIX);
	assert_int_equal(get_be64(sa_multi_path(b, n) + 8), PREFIX);
}

static void
test_paths_of_every_pair(void **state)
{
	struct bench *b = *state;
	struct multi m = { { GUID_A, GUID_B }, { GUID_C, GUID_D }, 2, 2, .one_packet = true };
	unsigned int i;

	for (i = 0; i < 2; i++, m.one_packet = false) {
		assert_int_equal(ask_multi(b, &m), 0);
		/* answered as PathRecords; C has two LIDs */
		assert_int_equal(b->reply[3], 0x94);
		assert_int_equal(get_be16(b->reply + 16), 0x0035);
		assert_int_equal(get_be16(b->reply + 44), 8);
		assert_int_equal(records(b, SA_PATH, 2), 6);
		expect_path(b, 0, GUID_A, GUID_C);
		expect_path(b, 1, GUID_A, GUID_C);
		expect_path(b, 2, GUID_B, GUID_D);
		expect_path(b, 3, GUID_A, GUID_D);
		expect_path(b, 4, GUID_B, GUID_C);
		assert_int_equal(get_be16(sa_multi_path(b, 0) + 42), 4); /* SLID */
		assert_int_equal(get_be16(sa_multi_path(b, 0) + 40), 8); /* DLID */
		assert_int_equal(get_be16(sa_multi_path(b, 1) + 40), 9);
	}
	assert_int_equal(sa_worker_counters(b->w)->records_sent, 12);
}

/* NumbPath limits all pairs together; two paths between two and two ports share no end */
static void
test_numb_path_bounds_all_paths(void **state)
{
	struct bench *b = *state;
	struct multi m = { { GUID_A, GUID_B }, { GUID_C, GUID_D }, 2, 2, .mask = NUMB_PATH,
		.numb_path = 0x80 | 2 };

	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 2);
	expect_path(b, 0, GUID_A, GUID_C);
	expect_path(b, 1, GUID_B, GUID_D);
	m.numb_path = 5;
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 5);
	m.numb_path = 0;
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 0);
	m.mask = 0; /* not selected: NumbPath is ignored */
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 6);
}

static void
test_components_count_as_in_path_record(void **state)
{
	struct bench *b = *state;
	struct multi m = { { GUID_A }, { GUID_B, GUID_C, GUID_D }, 1, 3, .mask = MTU, .mtu = 3 };

	m.mtu = 4; /* greater than 2048: none is, all end at QDR's or cross the 2048 link */
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 0);
	assert_int_equal(get_be16(b->reply + 44), 0);
	m.mtu = 0x80 | 2; /* exactly 512 */
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 4);
	assert_int_equal(sa_multi_path(b, 0)[54], 0x80 | 2);
}

static void
test_malformed_requests(void **state)
{
	struct bench *b = *state;
	struct multi m = { { GUID_A }, { GUID_B }, 1, 1 };

	m.cut = 1; /* the last GID is not whole */
	assert_int_equal(ask_multi(b, &m), 0x001C);
	m.cut = 24 + 16 + 16 - 23; /* nor is the record */
	assert_int_equal(ask_multi(b, &m), 0x001C);
	m.cut = 0;
	m.dgid[0] = 0x77; /* no port */
	assert_int_equal(ask_multi(b, &m), 0x0500);
	m.dgids = 0;
	assert_int_equal(ask_multi(b, &m), 0x0200);
	m.sgids = 0;
	m.dgids = 1;
	assert_int_equal(ask_multi(b, &m), 0x0200);
}

/* More GIDs than a packet has room for, in a request of one packet */
static void
test_counts_are_not_believed(void **state)
{
	uint8_t rec[200] = { 0 };
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = SA2_GET_MULTI,
		.attribute = 0x003A,
		.mask = COUNTS,
		.data = rec,
		.data_len = 200,
	};
	unsigned int i;

	for (i = 0; i < 11; i++)
		set_gid(rec + 24 + 16 * i, GUID_A);
	rec[15] = 6;
	rec[16] = 5;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(records(b, SA_PATH, 2), 30);
	rec[16] = 6;
	assert_int_equal(ask(b, &a), 0x001C);
	rec[15] = rec[16] = 255;
	assert_int_equal(ask(b, &a), 0x001C);
	rec[15] = rec[16] = 1;
	memset(rec + 40, 0xFF, 16); /* a multicast destination */
	assert_int_equal(ask(b, &a), 0x0500);
	a.mask = SA_BIT(19); /* a count that is not selected is no count */
	assert_int_equal(ask(b, &a), 0x0200);
}

static void
test_only_what_the_requester_may_see(void **state)
{
	struct bench *b = *state;
	struct multi m = { { GUID_C }, { GUID_A, GUID_D }, 1, 2, .from = GUID_C,
		.untrusted = true };

	/* C and D are both limited members of the default partition */
	assert_int_equal(ask_multi(b, &m), 0);
	assert_int_equal(records(b, SA_PATH, 2), 2);
	expect_path(b, 0, GUID_C, GUID_A);
	expect_path(b, 1, GUID_C, GUID_A);
}

/* Many pairs take several slices; the query starts again when the fabric changes */
static void
test_many_pairs_in_slices(void **state)
{
	struct mad_body body = { .len = 24 + 16 * 200 };
	struct bench *b = *state;
	struct ask a = {
		.version = 2,
		.method = SA2_GET_MULTI,
		.attribute = 0x003A,
		.mask = COUNTS | MTU,
		.body = &body,
	};
	unsigned int i, turns;

	body.bytes[10] = 4; /* a larger MTU than B has: every pair is examined */
	body.bytes[15] = body.bytes[16] = 100;
	for (i = 0; i < 200; i++)
		set_gid(body.bytes + 24 + 16 * i, GUID_B);
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	for (turns = 0; !b->answered; turns++) {
		assert_false(body.freed);
		assert_in_range(sa_run(b->w, 0, 1000), 1, 1000);
		if (turns == 3) { /* B's link is better now, at both ends */
			put_port_info(b, 5, 1, 0, 5, 4, 0);
			put_port_info(b, 1, 2, 0, 5, 4, 0);
		}
	}
	assert_true(body.freed);
	assert_true(turns > 3);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0);
	assert_int_equal(records(b, SA_PATH, 2), 127);
	assert_int_equal(sa_multi_path(b, 0)[54], 0x80 | 5);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_paths_of_every_pair),
		T(test_numb_path_bounds_all_paths),
		T(test_components_count_as_in_path_record),
		T(test_malformed_requests),
		T(test_counts_are_not_believed),
		T(test_only_what_the_requester_may_see),
		T(test_many_pairs_in_slices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
