/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Changes one at a time: services, leases and keys; multicast groups created, joined, left
 * (sa-multipacket A6, B7, B8, B10, B11).
 */

#include <errno.h>

#include "bench.h"
#include "sa/lease_clock.h"
#include "sa/server.h"
#include "sa/write.h"

#define JOIN (SA_BIT(MC_BIT_MGID) | SA_BIT(MC_BIT_PORT_GID) | SA_BIT(MC_BIT_STATE))
#define CREATE                                                                                     \
	(JOIN | SA_BIT(MC_BIT_QKEY) | SA_BIT(MC_BIT_TCLASS) | SA_BIT(MC_BIT_PKEY) |                \
		SA_BIT(MC_BIT_FLOW) | SA_BIT(MC_BIT_SL))
#define FULL      1
#define NON       2
#define SEND_ONLY 4

/* --- services --- */

struct service {
	uint8_t method; /* Set if 0 */
	uint64_t id;
	uint64_t gid;
	uint16_t pkey;
	uint32_t lease;
	uint8_t key;
	uint64_t mask; /* as given; 0: ID, GID, P_Key, lease, key */
	uint64_t from;
	bool untrusted;
};

static uint16_t
sa_write_service(struct bench *b, const struct service *s)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = s->method != 0 ? s->method : MAD_SET,
		.attribute = SA_SERVICE,
		.mask = s->mask != 0 ? s->mask : 0x37,
		.data = rec,
		.data_len = 176,
		.from = s->from,
		.untrusted = s->untrusted,
	};

	put_be64(rec, s->id);
	set_gid(rec + 8, s->gid);
	put_be16(rec + 24, s->pkey);
	put_be32(rec + 28, s->lease);
	rec[32] = s->key;
	memcpy(rec + 48, "test", 4);
	return ask(b, &a);
}

static void
test_service_is_registered_replaced_and_deleted(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 7,
					 .gid = GUID_A,
					 .lease = 60,
					 .from = GUID_A,
					 .untrusted = true,
				 }),
		0);
	assert_int_equal(get_be64(b->reply + SA2_OFF_DATA), 7);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	/* the same ServiceID, GID and P_Key: the same record */
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 7,
					 .gid = GUID_A,
					 .lease = 90,
					 .from = GUID_A,
					 .untrusted = true,
				 }),
		0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 7,
					 .gid = GUID_B,
					 .lease = 60,
				 }),
		0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	assert_int_equal(sa_write_service(b,
				 &(struct service){ SA2_DELETE, .id = 7, .gid = GUID_A }),
		0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	assert_int_equal(sa_write_service(b,
				 &(struct service){ SA2_DELETE, .id = 7, .gid = GUID_A }),
		0x0300);
	assert_int_equal(sa_worker_counters(b->w)->writes, 5);
	assert_int_equal(sa_worker_counters(b->w)->write_conflicts, 1);
}

static void
test_service_components_not_given(void **state)
{
	struct bench *b = *state;

	/* no ServiceID */
	assert_int_equal(sa_write_service(b,
				 &(struct service){ .id = 7, .gid = GUID_A, .mask = SA_BIT(1) }),
		0x0600);
	/* no GID, no lease: the requester's, for ever */
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 7,
					 .mask = SA_BIT(0),
					 .from = GUID_B,
				 }),
		0);
	assert_int_equal(get_be64(b->reply + SA2_OFF_DATA + 16), GUID_B);
	assert_int_equal(get_be32(b->reply + SA2_OFF_DATA + 28), 0xFFFFFFFF);
	/* a lease of 0 is over */
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 8,
					 .gid = GUID_A,
					 .lease = 0,
				 }),
		0x0200);
}

static void
test_service_only_for_oneself_and_ones_partition(void **state)
{
	struct service s = {
		.id = 7,
		.gid = GUID_A,
		.lease = 60,
		.from = GUID_B,
		.untrusted = true,
	};
	struct bench *b = *state;

	assert_int_equal(sa_write_service(b, &s), 0x0700);
	s.from = GUID_A;
	s.pkey = 0x8002; /* A is not in it */
	assert_int_equal(sa_write_service(b, &s), 0x0700);
	s.pkey = 0x8001;
	assert_int_equal(sa_write_service(b, &s), 0);
	s.gid = GUID_A1; /* its alias is its own */
	assert_int_equal(sa_write_service(b, &s), 0);
	s.method = SA2_DELETE;
	s.from = GUID_B;
	assert_int_equal(sa_write_service(b, &s), 0x0700);
	assert_int_equal(sa_worker_counters(b->w)->denied, 3);
}

static void
test_service_is_deleted_in_the_partition_named(void **state)
{
	struct service s = { .id = 7, .gid = GUID_A, .lease = 60, .pkey = 0x8001 };
	struct bench *b = *state;

	assert_int_equal(sa_write_service(b, &s), 0);
	s.pkey = 0xFFFF;
	assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	s.method = SA2_DELETE;
	assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(get_be16(b->reply + SA2_OFF_DATA + 24), 0xFFFF);
	assert_int_equal(sa_write_service(b, &s), 0x0300);
	s.mask = SA_BIT(0) | SA_BIT(1); /* whatever its P_Key */
	assert_int_equal(sa_write_service(b, &s), 0);
}

static void
test_services_of_a_port_are_bounded(void **state)
{
	struct service s = { .gid = GUID_A, .lease = 60, .from = GUID_A, .untrusted = true };
	struct bench *b = *state;

	for (s.id = 0; s.id < 1024; s.id++)
		assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(sa_write_service(b, &s), 0x0100);
	s.untrusted = false;
	assert_int_equal(sa_write_service(b, &s), 0);
}

static int
setup_small_store(void **state)
{
	int ret;

	bench_store_bytes = 1 << 20;
	ret = bench_setup(state);
	bench_store_bytes = 0;
	return ret;
}

/* Strangers may fill a quarter of a small store, known ports half of it, the operator all. */
static void
test_strangers_leave_room_in_a_small_store(void **state)
{
	struct service stranger = { .id = 7, .gid = 0x10000, .lease = 60, .untrusted = true };
	struct service known = { .gid = GUID_A, .lease = 60, .from = GUID_A, .untrusted = true };
	struct service own = { .gid = GUID_A, .lease = 60, .from = GUID_A };
	uint16_t status[3] = { 0 };
	struct bench *b = *state;
	unsigned int n[3];

	for (n[0] = 0; n[0] < 4096 && status[0] == 0; n[0]++) {
		stranger.from = ++stranger.gid;
		status[0] = sa_write_service(b, &stranger);
	}
	for (n[1] = 0; n[1] < 1024 && status[1] == 0; n[1]++) {
		known.id = 0x1000 + n[1];
		status[1] = sa_write_service(b, &known);
	}
	for (n[2] = 0; n[2] < 8192 && status[2] == 0; n[2]++) {
		own.id = 0x2000 + n[2];
		status[2] = sa_write_service(b, &own);
	}
	assert_int_equal(status[0], 0x0100);
	assert_int_equal(status[1], 0x0100);
	assert_int_equal(status[2], 0x0100);
	assert_int_equal(sa_worker_counters(b->w)->share_full, 2);
	assert_in_range(n[0], 100, 1000);
	assert_in_range(n[1], 100, 1000);
	assert_in_range(n[2], n[1], 4000);
}

/* The share of all strangers at one port of ours, whatever addresses they forge. */
static void
fill_share(struct bench *b, const uint8_t *our_gid, uint64_t first)
{
	struct service s = { .id = 7, .lease = SERVICE_FOREVER, .untrusted = true };

	b->our_gid = our_gid;
	for (s.from = first; s.from < first + 4096; s.from++) {
		s.gid = s.from;
		assert_int_equal(sa_write_service(b, &s), 0);
	}
	s.gid = s.from;
	assert_int_equal(sa_write_service(b, &s), 0x0100);
}

/* Anti-exhaustion: strangers, whose addresses may be forged, leave room for everyone else. */
static void
test_strangers_have_a_share_of_all_services(void **state)
{
	static const uint8_t gids[3][16] = { { 1 }, { 2 }, { 3 } };
	struct service known = { .gid = GUID_A, .lease = 60, .from = GUID_A, .untrusted = true };
	struct service s = { .gid = 0xFFFF, .lease = 60, .from = 0xFFFF, .untrusted = true };
	struct bench *b = *state;

	fill_share(b, gids[0], 0x10000);
	fill_share(b, gids[1], 0x20000); /* the second port has a share of its own */
	b->our_gid = gids[2];
	assert_int_equal(sa_write_service(b, &s), 0x0100); /* all strangers have theirs */
	assert_int_equal(sa_worker_counters(b->w)->share_full, 3);
	assert_int_equal(sa_write_service(b, &known), 0);
	s.id = 8;
	s.untrusted = false; /* the operator may put a stranger's record */
	assert_int_equal(sa_write_service(b, &s), 0);
	/* a stranger may replace what it has, and its lease ends */
	s = (struct service){
		.id = 7,
		.gid = 0x10000,
		.lease = SERVICE_FOREVER,
		.from = 0x10000,
		.untrusted = true,
	};
	assert_int_equal(sa_write_service(b, &s), 0);
	b->seconds += 3600;
	assert_int_equal(sa_expire(b->sa, b->seconds), 2 * 4096 + 2);
	s.id = 8;
	assert_int_equal(sa_write_service(b, &s), 0);
}

/* Origins are stored: the next start, which has another secret, must know them. */
static void
test_origin_of_a_stranger_outlives_a_restart(void **state)
{
	struct requester who = { .stranger = true };
	struct mad_peer peer = { .av = { .encap = ENCAP_ROCEV2_IPV6 } };
	uint64_t before;

	(void)state;
	set_gid(peer.av.sgid.raw, 0x5A);
	before = share_origin(&who, &peer);
	sa_index_secret(0x1234);
	assert_int_equal(share_origin(&who, &peer), before);
}

static void
test_lease_of_a_stranger_ends_within_an_hour(void **state)
{
	struct service s = { .id = 7, .gid = 0xFFFF, .from = 0xFFFF, .untrusted = true };
	struct bench *b = *state;

	s.mask = SA_BIT(0); /* no lease asked for: endless for others */
	assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(get_be32(b->reply + SA2_OFF_DATA + 28), 3600);
	s.mask = 0;
	s.lease = 0xFFFFFFFF;
	assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(get_be32(b->reply + SA2_OFF_DATA + 28), 3600);
	s.lease = 60;
	assert_int_equal(sa_write_service(b, &s), 0);
	assert_int_equal(get_be32(b->reply + SA2_OFF_DATA + 28), 60);
}

static void
test_service_key_protects(void **state)
{
	struct service s = {
		.id = 7,
		.gid = GUID_A,
		.lease = 60,
		.from = GUID_A,
		.key = 5,
		.untrusted = true,
	};
	struct bench *b = *state;

	assert_int_equal(sa_write_service(b, &s), 0);
	s.key = 6;
	assert_int_equal(sa_write_service(b, &s), 0x0700);
	s.method = SA2_DELETE;
	assert_int_equal(sa_write_service(b, &s), 0x0700);
	s.key = 5;
	assert_int_equal(sa_write_service(b, &s), 0);
}

static void
test_lease_runs_out(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 1,
					 .gid = GUID_A,
					 .lease = 60,
				 }),
		0);
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 2,
					 .gid = GUID_A,
					 .lease = 90,
				 }),
		0);
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 3,
					 .gid = GUID_A,
					 .lease = 0xFFFFFFFF,
				 }),
		0);
	assert_int_equal(sa_expire(b->sa, 1059), 0);
	assert_int_equal(sa_expire(b->sa, 1060), 1);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
	/* set again, it runs from then on */
	b->seconds = 1080;
	assert_int_equal(sa_write_service(b,
				 &(struct service){
					 .id = 2,
					 .gid = GUID_A,
					 .lease = 90,
				 }),
		0);
	assert_int_equal(sa_expire(b->sa, 1169), 0);
	assert_int_equal(sa_expire(b->sa, 1170), 1);
	assert_int_equal(sa_expire(b->sa, UINT64_C(1) << 40), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
}

/* Only services whose lease ends are examined, the first to end first. */
static void
test_leases_end_in_their_order(void **state)
{
	struct service s = { .gid = GUID_A };
	struct bench *b = *state;

	for (s.id = 0; s.id < 100; s.id++) {
		s.lease = 1 + s.id * 37 % 100;
		assert_int_equal(sa_write_service(b, &s), 0);
	}
	for (s.id = 1; s.id <= 100; s.id++)
		assert_int_equal(sa_expire(b->sa, 1000 + s.id), 1);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 0);
}

/* Leases last as long as they say, whatever happens to the wall clock. */
static void
test_lease_clock_never_goes_back(void **state)
{
	struct lease_clock c = { 0 };

	(void)state;
	assert_int_equal(lease_clock_read(&c, 1000000, 50), 1000000);
	assert_int_equal(lease_clock_read(&c, 1000060, 110), 1000060);
	/* set back by 1000 s: it goes on */
	assert_int_equal(lease_clock_read(&c, 999070, 120), 1000070);
	assert_int_equal(lease_clock_read(&c, 999130, 180), 1000130);
	/* set right, then set forward: it follows */
	assert_int_equal(lease_clock_read(&c, 1000190, 240), 1000190);
	assert_int_equal(lease_clock_read(&c, 2000000, 250), 2000000);
	/* the machine's first time was before its epoch: nothing to go on from */
	c = (struct lease_clock){ 0 };
	assert_int_equal(lease_clock_read(&c, 0, 250), 0);
	assert_int_equal(lease_clock_read(&c, 5, 260), 5);
}

static void
test_lease_of_an_imported_service_runs_from_its_import(void **state)
{
	struct sa_change c = change_of(SA_SERVICE);
	struct bench *b = *state;

	set_gid(c.rec + 8, GUID_A);
	put_be32(c.rec + 28, 10);
	bench_put(b, &c); /* before anybody told the time */
	assert_int_equal(sa_expire(b->sa, 5000), 1); /* the lease is given its end */
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	assert_int_equal(sa_expire(b->sa, 5010), 1);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 0);
}

static uint16_t
v1_set(struct bench *b, uint16_t attribute, uint8_t edit, uint32_t rid, const uint8_t *rec,
	bool untrusted, uint64_t from)
{
	struct ask a = {
		.version = 1,
		.method = MAD_SET,
		.attribute = attribute,
		.modifier = rid,
		.edit = edit,
		.data = rec,
		.data_len = sa_record_type(attribute)->len,
		.untrusted = untrusted,
		.from = from,
	};

	return ask(b, &a);
}

static void
test_v1_set_adds_and_deletes_but_does_not_edit(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	uint32_t rid;

	put_be64(rec, 9);
	set_gid(rec + 8, GUID_A);
	put_be32(rec + 28, 60);
	assert_int_equal(v1_set(b, SA_SERVICE, 1, 0, rec, true, GUID_A), 0);
	rid = get_be32(b->reply + SA1_OFF_DATA);
	assert_int_not_equal(rid, 0);
	assert_int_equal(get_be64(b->reply + SA1_OFF_DATA + 4), 9);
	assert_int_equal(get_be64(b->reply + SA1_OFF_SA_KEY), 0); /* A6: Set responses */
	assert_int_equal(v1_set(b, SA_SERVICE, 1, 0, rec, true, GUID_A), 0x0200);
	assert_int_equal(v1_set(b, SA_SERVICE, 3, rid, rec, true, GUID_A), 0x001C);
	assert_int_equal(v1_set(b, SA_SERVICE, 0, 0, rec, true, GUID_A), 0x001C);
	assert_int_equal(v1_set(b, SA_SERVICE, 1, 5, rec, true, GUID_A), 0x001C);
	assert_int_equal(v1_set(b, SA_NODE, 1, 0, rec, false, GUID_A), 0x000C);
	/* version 1 has no "denied" */
	assert_int_equal(v1_set(b, SA_SERVICE, 2, rid, rec, true, GUID_B), 0x0200);
	assert_int_equal(v1_set(b, SA_SERVICE, 2, rid + 1, rec, true, GUID_A), 0x0300);
	assert_int_equal(v1_set(b, SA_SERVICE, 2, rid, rec, true, GUID_A), 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 0);
}

/* --- multicast --- */

struct member {
	uint8_t method; /* Set if 0 */
	uint64_t port;
	uint8_t state;
	uint64_t mask;
	uint64_t from;
	bool untrusted;
	uint32_t mgid; /* last bytes; 0: none given */
	uint32_t qkey;
	uint16_t pkey;
	uint8_t mtu;
	uint8_t rate;
	uint8_t life;
	uint8_t scope;
	uint8_t sl;
};

static uint16_t
sa_write_member(struct bench *b, const struct member *m)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = m->method != 0 ? m->method : MAD_SET,
		.attribute = SA_MCMEMBER,
		.mask = m->mask,
		.data = rec,
		.data_len = 52,
		.from = m->from,
		.untrusted = m->untrusted,
	};

	if (m->mgid != 0) {
		put_be32(rec, 0xFF12401B);
		put_be32(rec + 12, m->mgid);
	}
	set_gid(rec + 16, m->port);
	put_be32(rec + 32, m->qkey != 0 ? m->qkey : 0x0B1B);
	rec[38] = m->mtu;
	put_be16(rec + 40, m->pkey != 0 ? m->pkey : 0xFFFF);
	rec[42] = m->rate;
	rec[43] = m->life;
	rec[44] = m->sl << 4;
	rec[47] = 9; /* a HopLimit, which no mask here selects */
	rec[48] = m->scope << 4 | m->state;
	return ask(b, &a);
}

/* Group 1, made by A for itself. */
static void
make_group(struct bench *b)
{
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mask = CREATE,
					 .from = GUID_A,
					 .untrusted = true,
					 .mgid = 1,
				 }),
		0);
}

static const uint8_t *
sa_write_answer(struct bench *b)
{
	return b->reply + SA2_OFF_DATA;
}

static void
test_first_full_member_creates_the_group(void **state)
{
	struct bench *b = *state;

	make_group(b);
	assert_int_equal(get_be16(sa_write_answer(b) + 36), 0xC000); /* MLID */
	assert_int_equal(sa_write_answer(b)[38], 0x80 | 5); /* what the port can do */
	assert_int_equal(sa_write_answer(b)[42], 0x80 | 16);
	assert_int_equal(sa_write_answer(b)[43], 0x80 | 18);
	assert_int_equal(sa_write_answer(b)[47], 0);
	assert_int_equal(sa_write_answer(b)[48], 0x21); /* scope of the MGID, full member */
	assert_int_equal(sa_write_answer(b)[49], 0);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 1);
}

static void
test_group_needs_its_components(void **state)
{
	static const unsigned int needed[] = { 0, 1, 16, 2, 6, 7, 13, 12 };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		assert_int_equal(sa_write_member(b,
					 &(struct member){
						 .port = GUID_A,
						 .state = FULL,
						 .mask = CREATE & ~SA_BIT(needed[i]),
						 .mgid = 1,
					 }),
			0x0600);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 0);
}

static void
partition_has_an_sl(struct sa_config *config)
{
	config->partition[0] = (struct sa_partition){ .pkey = 0x8001, .sl = 5 };
	config->num_partitions = 1;
}

/*
 * Where the operator has given a partition an SL, its groups have it unless their creator says
 * another
 */
static void
test_group_of_a_partition_with_an_sl(void **state)
{
	struct member m = {
		.port = GUID_A,
		.state = FULL,
		.mgid = 1,
		.pkey = 0x8001,
		.mask = CREATE & ~SA_BIT(MC_BIT_SL),
	};
	struct bench *b = bench_create(partition_has_an_sl);

	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + MC_OFF_SL_FLOW_HOP] >> 4, 5);
	m.mgid = 2;
	m.mask = CREATE;
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + MC_OFF_SL_FLOW_HOP] >> 4, 0);
	m.mgid = 3;
	m.pkey = 0xFFFF;
	m.mask = CREATE & ~SA_BIT(MC_BIT_SL);
	assert_int_equal(sa_write_member(b, &m), 0x0600);
	*state = b;
	bench_teardown(state);
}

static void
test_group_is_not_created(void **state)
{
	static const struct {
		struct member m;
		uint16_t status;
	} cases[] = {
		{ { .state = NON, .mgid = 1 }, 0x0200 }, /* only a full member creates */
		{ { .state = SEND_ONLY, .mgid = 1 }, 0x0200 },
		{ { .state = 0, .mgid = 1 }, 0x0200 },
		{ { .state = FULL, .mgid = 1, .pkey = 0x8002 }, 0x0700 }, /* not its partition */
		{ { .state = FULL, .mgid = 1, .pkey = 0x8000 }, 0x0200 }, /* no P_Key */
		{ { .state = FULL, .mgid = 1, .scope = 5, .mask = SA_BIT(15) }, 0x0200 },
		{ { .state = FULL, .mgid = 1, .mtu = 0x80 | 6, .mask = SA_BIT(4) | SA_BIT(5) },
			0x0200 },
		{ { .state = FULL, .mgid = 1, .rate = 0x80 | 17, .mask = SA_BIT(8) | SA_BIT(9) },
			0x0200 }, /* 200 Gb/s */
		{ { .state = FULL, .mgid = 1, .life = 0x80 | 1, .mask = SA_BIT(10) | SA_BIT(11) },
			0x0200 },
	};
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct member m = cases[i].m;

		m.port = GUID_A;
		m.mask |= CREATE;
		assert_int_equal(sa_write_member(b, &m), cases[i].status);
	}
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 0);
	assert_int_equal(sa_worker_counters(b->w)->write_conflicts, i);
}

static void
test_group_takes_the_mtu_and_rate_asked_for(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mgid = 1,
					 .mask = CREATE | SA_BIT(4) | SA_BIT(5) | SA_BIT(8) |
						 SA_BIT(9),
					 .mtu = 0x80 | 4,
					 .rate = 0x40 | 8,
				 }),
		0); /* 2048; less than 60 Gb/s */
	assert_int_equal(sa_write_answer(b)[38], 0x80 | 4);
	assert_int_equal(sa_write_answer(b)[42], 0x80 | 12);
}

/* Anti-exhaustion: MLIDs are few, so an untrusted port cannot take them all. */
static void
test_groups_of_a_port_are_bounded(void **state)
{
	struct member m = {
		.port = GUID_A,
		.state = FULL,
		.mask = CREATE,
		.from = GUID_A,
		.untrusted = true,
	};
	struct bench *b = *state;

	make_group(b);
	for (m.mgid = 2; m.mgid <= 1024; m.mgid++)
		assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(sa_write_member(b, &m), 0x0100);
	m.port = m.from = GUID_B; /* another one may */
	assert_int_equal(sa_write_member(b, &m), 0);
	m.port = m.from = GUID_A; /* nor join one that there is; but change what it has */
	assert_int_equal(sa_write_member(b, &m), 0x0100);
	m.mgid = 1;
	m.state = SEND_ONLY;
	assert_int_equal(sa_write_member(b, &m), 0);
	m.mgid = 1025;
	m.untrusted = false;
	assert_int_equal(sa_write_member(b, &m), 0);
}

/* Four addresses of 1,024 groups each, behind one unknown LID: MLIDs remain for others. */
static void
test_strangers_have_a_share_of_all_groups(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 }, gid[16] = { 0xFE, 0x80 };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_MCMEMBER,
		.mask = CREATE,
		.data = rec,
		.data_len = 52,
		.untrusted = true,
		.slid = 77,
		.sgid = gid,
	};
	struct bench *b = *state;
	unsigned int i;

	put_be16(rec + 40, 0xFFFF);
	rec[48] = FULL;
	for (i = 0; i <= 4096; i++) {
		put_be64(gid + 8, 0x10000 + i / 1024);
		memcpy(rec + 16, gid, 16);
		memset(rec, 0, 16);
		assert_int_equal(ask(b, &a), i < 4096 ? 0 : 0x0100);
	}
	assert_int_equal(sa_worker_counters(b->w)->share_full, 1);
	a.slid = 78;
	assert_int_equal(ask(b, &a), 0);
	make_group(b); /* by a known port */
}

static uint32_t
num_members(const struct bench *b)
{
	return store_count(store_current(b->reader), SA_TABLE_MCMEMBER);
}

/* Nobody else would ever remove the membership of a forged address. */
static void
test_membership_of_a_stranger_ends_after_an_hour(void **state)
{
	struct member stranger = {
		.port = 0xFFFF,
		.from = 0xFFFF,
		.state = FULL,
		.mask = CREATE,
		.untrusted = true,
		.mgid = 2,
	};
	struct bench *b = *state;

	make_group(b); /* by a known port */
	assert_int_equal(sa_write_member(b, &stranger), 0);
	stranger.port = stranger.from = 0xFFFE;
	assert_int_equal(sa_write_member(b, &stranger), 0);
	b->seconds += 3599;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	assert_int_equal(sa_write_member(b, &stranger), 0); /* renews it */
	b->seconds += 1;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	assert_int_equal(num_members(b), 2);
	b->seconds += 3598;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	/* the stranger's port becomes known, so it stays */
	put_port(b, 20, 0xFFFE, NODE_TYPE_CA, 0);
	put_port_info(b, 20, 1, 0, 4, 4, 0);
	b->seconds += 1;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	b->seconds += 100000;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	assert_int_equal(num_members(b), 2);
}

/* The group of a stranger that is gone ends with its last full member. */
static void
test_group_of_a_stranger_ends_with_its_membership(void **state)
{
	struct member stranger = {
		.port = 0xFFFF,
		.from = 0xFFFF,
		.state = FULL,
		.mask = CREATE,
		.untrusted = true,
		.mgid = 2,
	};
	struct member known = {
		.port = GUID_A,
		.from = GUID_A,
		.state = SEND_ONLY,
		.mask = JOIN,
		.mgid = 2,
	};
	struct bench *b = *state;

	assert_int_equal(sa_write_member(b, &stranger), 0);
	assert_int_equal(sa_write_member(b, &known), 0);
	b->seconds += 3600;
	assert_true(sa_expire(b->sa, b->seconds) > 0);
	assert_int_equal(num_members(b), 0);
}

/* In a fleet: etcd takes 8 changes at a time. */
static int
setup_small_transactions(void **state)
{
	bench_store_max_ops = 8;
	return bench_setup(state);
}

static int
teardown_small_transactions(void **state)
{
	int rc = bench_teardown(state);

	bench_store_max_ops = 0;
	return rc;
}

/* Group 2 of one stranger, with more members than a transaction can remove. */
static struct member
make_large_group(struct bench *b)
{
	struct member m = { .mask = JOIN, .mgid = 2, .state = FULL, .untrusted = true };
	unsigned int i;

	for (i = 0; i < 21; i++) {
		m.port = m.from = 0xFFFF - i;
		m.mask = i == 0 ? CREATE : JOIN;
		m.state = i == 0 ? FULL : SEND_ONLY;
		assert_int_equal(sa_write_member(b, &m), 0);
	}
	m.port = m.from = 0xFFFF;
	m.state = FULL;
	m.method = SA2_DELETE;
	return m;
}

static void
test_last_full_member_leaves_a_large_group(void **state)
{
	struct bench *b = *state;
	struct member m = make_large_group(b);
	uint32_t events = b->sa->events.head;

	b->commits = 0;
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(sa_write_answer(b)[48] & 0xF, 0);
	assert_int_equal(num_members(b), 0);
	assert_int_equal(b->commits, 6); /* 5 parts of 4 members, and the last full member */
	assert_int_equal(b->sa->events.head, events + 1); /* the group is deleted once */
}

/* What ends in between has not removed the full member: the group exists until all of it goes. */
static void
test_large_group_keeps_its_full_member_to_the_end(void **state)
{
	struct bench *b = *state;
	struct member m = make_large_group(b), again = m;
	uint32_t events = b->sa->events.head;

	b->commits = 0;
	b->fail_commit = 3;
	assert_int_equal(sa_write_member(b, &m), 0x0100);
	assert_int_equal(num_members(b), 21 - 2 * 4);
	again.method = 0; /* the full member is a member still */
	assert_int_equal(sa_write_member(b, &again), 0);
	assert_int_equal(num_members(b), 21 - 2 * 4);
	assert_int_equal(b->sa->events.head, events);
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(num_members(b), 0);
}

static void
test_leases_of_a_large_group_end(void **state)
{
	struct bench *b = *state;
	uint32_t events;

	make_large_group(b);
	b->seconds += 3600;
	events = b->sa->events.head;
	while (sa_expire(b->sa, b->seconds) > 0)
		;
	assert_int_equal(num_members(b), 0);
	assert_int_equal(b->sa->events.head, events + 1);
}

/* The memory is used up in the middle of a group's end: nothing of that end is committed. */
static void
test_end_of_a_lease_is_whole(void **state)
{
	struct bench *b = *state;
	unsigned int left;

	b->seconds = 1000;
	make_large_group(b);
	b->seconds += 3600;
	for (left = 0; num_members(b) > 0; left++) {
		b->store_memory.left = left;
		sa_expire(b->sa, b->seconds);
		b->store_memory.left = UINT_MAX;
		assert_true(num_members(b) == 21 || num_members(b) == 0);
		store_reclaim(b->store);
	}
	assert_true(left > 1);
}

/* A database of a version without such leases: they start when it is read. */
static void
test_membership_without_a_lease_gets_one(void **state)
{
	struct member stranger = {
		.port = 0xFFFF,
		.from = 0xFFFF,
		.state = FULL,
		.mask = CREATE,
		.untrusted = true,
		.mgid = 2,
	};
	uint8_t bytes[MC_LEN + sizeof(uint64_t)];
	struct bench *b = *state;
	const struct store_record *r;
	struct store_cursor c;
	struct store_txn *t;

	assert_int_equal(sa_write_member(b, &stranger), 0);
	store_seek(&c, store_current(b->reader), SA_TABLE_MCMEMBER, 0);
	r = store_next(&c, NULL);
	memcpy(bytes, r->bytes, sizeof(bytes));
	t = store_begin(b->store);
	assert_int_equal(store_put(t, SA_TABLE_MCMEMBER, r->rid, bytes, sizeof(bytes)), 0);
	assert_int_equal(store_commit(t, NULL), 0);
	b->seconds += 5000;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	b->seconds += 3599;
	assert_int_equal(sa_expire(b->sa, b->seconds), 0);
	b->seconds += 1;
	assert_int_equal(sa_expire(b->sa, b->seconds), 1);
	assert_int_equal(num_members(b), 0);
}

static void
test_mgid_of_zero_is_made_up(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mask = CREATE,
				 }),
		0);
	assert_int_equal(get_be64(sa_write_answer(b)), UINT64_C(0xFF12A01CFE800000));
	assert_int_equal(get_be64(sa_write_answer(b) + 8), 0x000000000000C000);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mask = CREATE,
				 }),
		0);
	assert_int_equal(get_be16(sa_write_answer(b) + 36), 0xC001);
	assert_int_equal(get_be64(sa_write_answer(b) + 8), 0x000000000000C001);
}

static void
test_join_takes_the_groups_values(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mgid = 1,
					 .mask = CREATE | SA_BIT(4) | SA_BIT(5) | SA_BIT(8) |
						 SA_BIT(9),
					 .mtu = 0x80 | 3,
					 .rate = 0x80 | 3,
					 .qkey = 0x77,
				 }),
		0);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_B,
					 .state = NON,
					 .mask = JOIN,
					 .from = GUID_B,
					 .untrusted = true,
					 .mgid = 1,
				 }),
		0);
	assert_int_equal(get_be32(sa_write_answer(b) + 32), 0x77);
	assert_int_equal(get_be16(sa_write_answer(b) + 36), 0xC000);
	assert_int_equal(sa_write_answer(b)[38], 0x80 | 3);
	assert_int_equal(sa_write_answer(b)[48], 0x20 | NON);
	assert_int_equal(get_be64(sa_write_answer(b) + 24), GUID_B);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 2);
}

static void
test_join_is_refused(void **state)
{
	static const struct {
		struct member m;
		uint16_t status;
	} cases[] = {
		{ { .port = GUID_A, .mask = SA_BIT(2), .qkey = 9 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(7), .pkey = 0x8001 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(12), .sl = 1 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(15), .scope = 3 }, 0x0200 },
		/* the group has 4096 bytes and 100 Gb/s */
		{ { .port = GUID_A, .mask = SA_BIT(4) | SA_BIT(5), .mtu = 0x80 | 4 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(4) | SA_BIT(5), .mtu = 5 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(8) | SA_BIT(9), .rate = 0x40 | 16 }, 0x0200 },
		{ { .port = GUID_A, .mask = SA_BIT(10) | SA_BIT(11), .life = 0x80 | 9 }, 0x0200 },
		{ { .port = GUID_B }, 0x0200 }, /* 2048 bytes at most */
		{ { .port = 0x77 }, 0x0200 }, /* no such port */
		{ { .port = GUID_A, .from = GUID_B, .untrusted = true }, 0x0700 },
	};
	struct bench *b = *state;
	unsigned int i;

	make_group(b);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct member m = cases[i].m;

		m.mask |= JOIN;
		m.mgid = 1;
		m.state = FULL;
		assert_int_equal(sa_write_member(b, &m), cases[i].status);
	}
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 1);
}

static void
test_port_outside_the_groups_partition_is_denied(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_A,
					 .state = FULL,
					 .mgid = 2,
					 .mask = CREATE,
					 .pkey = 0x8001,
				 }),
		0);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_C,
					 .state = FULL,
					 .mgid = 2,
					 .mask = JOIN,
				 }),
		0x0700);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_D,
					 .state = FULL,
					 .mgid = 2,
					 .mask = JOIN,
				 }),
		0);
}

static void
test_join_states_merge_and_leave_one_by_one(void **state)
{
	struct member m = { .port = GUID_A, .state = SEND_ONLY, .mask = JOIN, .mgid = 1 };
	struct bench *b = *state;

	make_group(b);
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(sa_write_answer(b)[48], 0x20 | FULL | SEND_ONLY);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 1);
	m.method = SA2_DELETE;
	m.state = NON; /* which it is not */
	assert_int_equal(sa_write_member(b, &m), 0x0200);
	m.state = SEND_ONLY;
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(sa_write_answer(b)[48], 0x20 | FULL);
	assert_int_equal(sa_write_member(b, &m), 0x0200);
	m.state = FULL;
	assert_int_equal(sa_write_member(b, &m), 0);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 0);
}

static void
test_group_goes_with_its_last_full_member(void **state)
{
	struct bench *b = *state;

	make_group(b);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_D,
					 .state = FULL,
					 .mgid = 1,
					 .mask = JOIN,
				 }),
		0);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_C,
					 .state = NON,
					 .mgid = 1,
					 .mask = JOIN,
				 }),
		0);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .method = SA2_DELETE,
					 .port = GUID_A,
					 .state = FULL,
					 .mgid = 1,
					 .mask = JOIN,
				 }),
		0);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 2);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .method = SA2_DELETE,
					 .port = GUID_D,
					 .state = FULL,
					 .mgid = 1,
					 .mask = JOIN,
				 }),
		0);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 0);
	/* an MLID is not reused for long */
	make_group(b);
	assert_int_equal(get_be16(sa_write_answer(b) + 36), 0xC001);
}

static void
test_trusted_requester_joins_others_by_proxy(void **state)
{
	struct bench *b = *state;

	make_group(b);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .port = GUID_D,
					 .state = FULL,
					 .mgid = 1,
					 .mask = JOIN,
					 .from = GUID_A,
				 }),
		0);
	assert_int_equal(sa_write_answer(b)[49], 0x80);
	assert_int_equal(sa_write_member(b,
				 &(struct member){
					 .method = SA2_DELETE,
					 .port = GUID_D,
					 .state = FULL,
					 .mgid = 1,
					 .mask = JOIN,
					 .from = GUID_B,
					 .untrusted = true,
				 }),
		0x0700);
}

static void
test_requester_without_a_port_joins_itself(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_MCMEMBER,
		.mask = CREATE,
		.data = rec,
		.data_len = 52,
		.untrusted = true,
	};
	struct bench *b = *state;

	memcpy(rec + 16, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x09", 16);
	put_be16(rec + 40, 0xFFFF);
	rec[48] = FULL;
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(sa_write_answer(b)[38], 0x80 | 4); /* unknown limits: 2048 */
	put_be16(rec + 40, 0x8001);
	assert_int_equal(ask(b, &a), 0x0700);
}

static void
test_v1_member_leaves_by_rid(void **state)
{
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct bench *b = *state;
	uint32_t rid;

	put_be32(rec, 0xFF12401B);
	rec[15] = 9;
	set_gid(rec + 16, GUID_A);
	put_be16(rec + 40, 0xFFFF);
	rec[38] = 0x80 | 4; /* without a mask the record is given as a whole */
	rec[42] = 0x80 | 7;
	rec[43] = 0x80 | 20;
	rec[48] = 0x20 | FULL;
	assert_int_equal(v1_set(b, SA_MCMEMBER, 1, 0, rec, true, GUID_A), 0);
	rid = get_be32(b->reply + SA1_OFF_DATA);
	assert_int_equal(b->reply[SA1_OFF_DATA + 4 + 38], 0x80 | 4);
	assert_int_equal(v1_set(b, SA_MCMEMBER, 2, rid, rec, true, GUID_A), 0);
	assert_int_equal(count_of(b, SA_TABLE_MCMEMBER), 0);
}

/* --- batches --- */

static void
test_each_request_of_a_batch_succeeds_or_fails_alone(void **state)
{
	struct bench *b = *state;
	uint8_t rec[2][SA_RECORD_MAX] = { { 0 } };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_SERVICE,
		.mask = 0x37,
		.data_len = 176,
	};
	uint16_t status[3] = { 0 };
	unsigned int i;

	b->hold_writes = true;
	for (i = 0; i < 2; i++) {
		put_be64(rec[i], 100 + i);
		set_gid(rec[i] + 8, GUID_A);
		put_be32(rec[i] + 28, i == 0 ? 60 : 0); /* the second is invalid */
		a.data = rec[i];
		ask_only(b, &a);
		assert_int_equal(b->outcome, MAD_LATER);
	}
	a.data = rec[0];
	rec[0][7] = 102;
	ask_only(b, &a);
	assert_int_equal(b->num_writes, 3);
	assert_int_equal(sa_write_worker(b->writes[0]), 0);
	sa_write_execute(b->sa, b->writes, 3, 1000);
	for (i = 0; i < 3; i++) {
		b->answered = false;
		b->handles = i + 1;
		sa_write_done(b->w, b->writes[i], 0);
		status[i] = get_be16(b->reply + MAD_OFF_STATUS);
	}
	assert_int_equal(status[0], 0);
	assert_int_equal(status[1], 0x0200);
	assert_int_equal(status[2], 0);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
}

static void
test_no_room_for_a_change_is_said(void **state)
{
	struct bench *b = *state;
	struct service s = { .id = 1, .gid = GUID_A, .lease = 60 };
	unsigned int i;

	b->refuse_writes = true;
	assert_int_equal(sa_write_service(b, &s), 0x0001); /* busy */
	b->refuse_writes = false;
	b->hold_writes = true;
	for (i = 0; i < 8; i++)
		ask_only(b,
			&(struct ask){
				.version = 2,
				.method = MAD_SET,
				.attribute = SA_SERVICE,
			});
	assert_int_equal(b->num_writes, 8);
	assert_int_equal(sa_write_service(b, &s), 0x0100);
	assert_int_equal(sa_worker_counters(b->w)->no_resources, 2);
}

static void
sixteen_writes(struct sa_config *config)
{
	config->max_writes = 16;
}

/* Anti-exhaustion: strangers leave an eighth of the changes under way to ports and the operator. */
static void
test_strangers_leave_places_for_changes(void **state)
{
	struct bench *b = bench_create(sixteen_writes);
	uint8_t rec[SA_RECORD_MAX] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_SET,
		.attribute = SA_SERVICE,
		.mask = 0x37,
		.data = rec,
		.data_len = 176,
		.untrusted = true,
	};
	unsigned int i;

	(void)state;
	b->hold_writes = true;
	for (i = 0; i < 14; i++) {
		a.from = 0x10000 + i;
		ask_only(b, &a);
		assert_int_equal(b->outcome, MAD_LATER);
	}
	a.from = 0x20000;
	assert_int_equal(ask(b, &a), MAD_STATUS_BUSY);
	a.from = GUID_A; /* a port of the database */
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	a.from = 0x20000;
	assert_int_equal(ask(b, &a), MAD_STATUS_BUSY);
	a.untrusted = false; /* with the operator's SM_Key */
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	assert_int_equal(b->num_writes, 16);
	assert_int_equal(sa_worker_counters(b->w)->strangers_busy, 2);
	/* the place of a stranger's change that was executed is free again */
	sa_write_execute(b->sa, b->writes, 1, 1000);
	b->handles = 1;
	b->answered = false;
	sa_write_done(b->w, b->writes[0], 0);
	a.untrusted = true;
	b->num_writes = 0;
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	bench_destroy(b);
}

/* --- the operator --- */

static void
test_operators_changes_are_all_or_nothing(void **state)
{
	struct bench *b = *state;
	struct sa_change c[2] = { change_of(SA_NODE), change_of(SA_NODE) };
	struct error err;

	set_field(&c[0], "lid", 40);
	c[1].remove = true;
	c[1].rid = 0x00990000;
	assert_int_equal(sa_change(b->sa, c, 2, &err), -ENOENT);
	assert_non_null(strstr(err.text, "0x00990000"));
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	c[1] = change_of(SA_PATH);
	assert_int_equal(sa_change(b->sa, c, 2, &err), -EINVAL);
	c[1] = change_of(SA_NODE); /* LID 0 */
	assert_int_equal(sa_change(b->sa, c, 2, &err), -EINVAL);
	c[1] = change_of(SA_NODE); /* a RID that is not its LID's */
	set_field(&c[1], "lid", 41);
	c[1].rid = 0x002A0000;
	assert_int_equal(sa_change(b->sa, c, 2, &err), -EINVAL);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 6);
	assert_int_equal(sa_change(b->sa, c, 1, &err), 0);
	assert_int_equal(sa_replace(b->sa, SA_REPLACE_ALL, c, 1, &err), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 1);
	assert_int_equal(count_of(b, SA_TABLE_LINK), 0);
}

/* A sweep replaces ports and links; what requesters have told the SA stays */
static void
test_a_sweep_replaces_the_subnet_alone(void **state)
{
	static const struct {
		uint16_t attribute;
		const char *lid;
	} told[] = { { SA_SERVICE, NULL }, { SA_MCMEMBER, NULL }, { SA_INFORM_INFO_RECORD, NULL },
		{ SA_PATH_SL, "lid" } };
	struct bench *b = *state;
	struct sa_change c;
	struct error err;
	unsigned int i;

	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		c = change_of(told[i].attribute);
		if (told[i].lid != NULL)
			set_field(&c, told[i].lid, 4);
		bench_put(b, &c);
	}
	c = change_of(SA_NODE);
	set_field(&c, "lid", 40);
	assert_int_equal(sa_replace(b->sa, SA_REPLACE_SUBNET, &c, 1, &err), 0);
	assert_int_equal(count_of(b, SA_TABLE_NODE), 1);
	assert_int_equal(count_of(b, SA_TABLE_PORT_INFO), 0);
	assert_int_equal(count_of(b, SA_TABLE_LINK), 0);
	for (i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		assert_int_equal(count_of(b, sa_record_type(told[i].attribute)->table), 1);
}

static void
test_operators_member_and_service_keep_their_rid(void **state)
{
	struct bench *b = *state;
	struct sa_change c = change_of(SA_SERVICE);

	set_gid(c.rec + 8, GUID_A);
	put_be32(c.rec + 28, SERVICE_FOREVER);
	bench_put(b, &c);
	bench_put(b, &c);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 1);
	c.rid = 0x500;
	c.rec[7] = 1;
	bench_put(b, &c);
	assert_int_equal(count_of(b, SA_TABLE_SERVICE), 2);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
#define SMALL_TRANSACTIONS(name)                                                                   \
	cmocka_unit_test_setup_teardown(name, setup_small_transactions, teardown_small_transactions)
	const struct CMUnitTest tests[] = {
		T(test_service_is_registered_replaced_and_deleted),
		T(test_service_components_not_given),
		T(test_service_only_for_oneself_and_ones_partition),
		T(test_service_is_deleted_in_the_partition_named),
		T(test_services_of_a_port_are_bounded),
		T(test_strangers_have_a_share_of_all_services),
		cmocka_unit_test_setup_teardown(test_strangers_leave_room_in_a_small_store,
			setup_small_store, bench_teardown),
		cmocka_unit_test(test_origin_of_a_stranger_outlives_a_restart),
		T(test_lease_of_a_stranger_ends_within_an_hour),
		T(test_service_key_protects),
		T(test_lease_runs_out),
		T(test_leases_end_in_their_order),
		cmocka_unit_test(test_lease_clock_never_goes_back),
		T(test_lease_of_an_imported_service_runs_from_its_import),
		T(test_v1_set_adds_and_deletes_but_does_not_edit),
		T(test_first_full_member_creates_the_group),
		T(test_group_needs_its_components),
		cmocka_unit_test(test_group_of_a_partition_with_an_sl),
		T(test_group_is_not_created),
		T(test_group_takes_the_mtu_and_rate_asked_for),
		T(test_groups_of_a_port_are_bounded),
		T(test_strangers_have_a_share_of_all_groups),
		T(test_membership_of_a_stranger_ends_after_an_hour),
		T(test_group_of_a_stranger_ends_with_its_membership),
		SMALL_TRANSACTIONS(test_last_full_member_leaves_a_large_group),
		SMALL_TRANSACTIONS(test_large_group_keeps_its_full_member_to_the_end),
		SMALL_TRANSACTIONS(test_leases_of_a_large_group_end),
		T(test_end_of_a_lease_is_whole),
		T(test_membership_without_a_lease_gets_one),
		T(test_mgid_of_zero_is_made_up),
		T(test_join_takes_the_groups_values),
		T(test_join_is_refused),
		T(test_port_outside_the_groups_partition_is_denied),
		T(test_join_states_merge_and_leave_one_by_one),
		T(test_group_goes_with_its_last_full_member),
		T(test_trusted_requester_joins_others_by_proxy),
		T(test_requester_without_a_port_joins_itself),
		T(test_v1_member_leaves_by_rid),
		T(test_each_request_of_a_batch_succeeds_or_fails_alone),
		T(test_no_room_for_a_change_is_said),
		cmocka_unit_test(test_strangers_leave_places_for_changes),
		T(test_operators_changes_are_all_or_nothing),
		T(test_a_sweep_replaces_the_subnet_alone),
		T(test_operators_member_and_service_keep_their_rid),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
