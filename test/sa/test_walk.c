/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PathRecords in a fabric with known forwarding tables (sa-multipacket B12). bench.h's fabric has a
 * second, wider link between the switches: S1 port 11 to S2 port 11, EDR 4096.
 */

#include "bench.h"

#define GIDS       (SA_BIT(PR_BIT_SGID) | SA_BIT(PR_BIT_DGID))
#define EXACTLY(v) (0x80 | (v))

struct want {
	uint64_t src;
	uint64_t dst;
	uint16_t slid;
	uint16_t dlid;
	uint64_t mask;
	uint8_t numb;
	uint8_t sl;
	uint8_t life;
	uint16_t pkey; /* 0: any */
	bool table;
};

static uint16_t
sa_walk_ask_path(struct bench *b, const struct want *w)
{
	uint8_t rec[PR_LEN] = { 0 };
	struct ask a = {
		.version = 2,
		.method = w->table ? SA_GET_TABLE : MAD_GET,
		.attribute = SA_PATH,
		.mask = w->mask | GIDS,
		.data = rec,
		.data_len = PR_LEN,
	};

	set_gid(rec + PR_OFF_SGID, w->src);
	set_gid(rec + PR_OFF_DGID, w->dst);
	if (w->slid != 0)
		a.mask |= SA_BIT(PR_BIT_SLID);
	if (w->dlid != 0)
		a.mask |= SA_BIT(PR_BIT_DLID);
	put_be16(rec + PR_OFF_SLID, w->slid);
	put_be16(rec + PR_OFF_DLID, w->dlid);
	rec[PR_OFF_NUMB_PATH] = w->numb;
	put_be16(rec + PR_OFF_SL, w->sl);
	rec[PR_OFF_LIFE] = w->life;
	if (w->pkey != 0)
		a.mask |= SA_BIT(PR_BIT_PKEY);
	put_be16(rec + PR_OFF_PKEY, w->pkey);
	return ask(b, &a);
}

static const uint8_t *
sa_walk_path(struct bench *b, unsigned int n)
{
	return record_of(b, SA_PATH, 2, n);
}

static unsigned int
sl_of(const uint8_t *p)
{
	return get_be16(p + PR_OFF_SL) & 0xF;
}

/* output ports by LID from 0 on; the rest of the block has none */
static void
put_lft(struct bench *b, uint16_t lid, const uint8_t *ports, unsigned int n)
{
	struct sa_change c = change_of(SA_LFT);

	set_field(&c, "lid", lid);
	memset(c.rec + LFT_OFF_PORTS, LFT_NO_PORT, LFT_PORTS);
	memcpy(c.rec + LFT_OFF_PORTS, ports, n);
	bench_put(b, &c);
}

/* LIDs: 1 S1, 2 S2, 4 A, 5 B, 8 and 9 C, 12 D. To C's first LID by the narrow link. */
#define NO LFT_NO_PORT
static const uint8_t s1[] = { NO, 0, 11, NO, 1, 2, NO, NO, 10, 11, NO, NO, 11 };
static const uint8_t s2[] = { NO, 11, 0, NO, 11, 11, NO, NO, 1, 1, NO, NO, 2 };

static void
put_second_link(struct bench *b)
{
	put_port_info(b, 1, 11, 0, 5, 4, 2);
	put_port_info(b, 2, 11, 0, 5, 4, 2);
	put_link(b, 1, 11, 2, 11);
}

static int
setup_with(void **state, void (*change)(struct sa_config *config))
{
	struct bench *b = bench_create(change);

	put_second_link(b);
	put_lft(b, 1, s1, sizeof(s1));
	put_lft(b, 2, s2, sizeof(s2));
	*state = b;
	return 0;
}

static int
sa_walk_setup(void **state)
{
	return setup_with(state, NULL);
}

static void
put_sltovl(struct bench *b, uint16_t lid, uint8_t in, uint8_t out, const char *vls)
{
	struct sa_change c = change_of(SA_SLTOVL);
	struct error err = { "" };

	set_field(&c, "lid", lid);
	set_field(&c, "in_port", in);
	set_field(&c, "out_port", out);
	assert_int_equal(sa_parse(sa_field_named(c.type, "vls"), c.rec, vls, &err), 0);
	bench_put(b, &c);
}

static void
test_the_tables_decide_not_the_widest_link(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_MTU], EXACTLY(4));
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(12)); /* FDR 4x, by port 10 */
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_NUMB_PATH], 0x81);
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 9,
				 }),
		0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_MTU], EXACTLY(5));
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(16)); /* EDR 4x, by port 11 */
	sa_run(b->w, 0, 1);
	/* there and back, for each of the two */
	assert_int_equal(sa_worker_counters(b->w)->routes_walked, 4);
	assert_int_equal(sa_worker_counters(b->w)->routes_searched, 0);
}

static void
test_without_tables_the_search_says_so(void **state)
{
	struct bench *b = *state;
	struct sa_change c = change_of(SA_LFT);

	c.remove = true;
	c.rid = 0x00010000;
	bench_put(b, &c); /* of S1 nothing is known: not a black hole */
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
	sa_run(b->w, 0, 1);
	assert_int_equal(sa_worker_counters(b->w)->routes_searched, 2);
}

static void
test_black_holes_and_loops_give_no_path(void **state)
{
	uint8_t hole[sizeof(s1)], loop[sizeof(s2)];
	struct bench *b = *state;

	memcpy(hole, s1, sizeof(s1));
	hole[8] = NO;
	put_lft(b, 1, hole, sizeof(hole));
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0x0300);
	hole[8] = 7; /* no cable there */
	put_lft(b, 1, hole, sizeof(hole));
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0x0300);
	hole[8] = 2; /* to B's host, which forwards nothing */
	put_lft(b, 1, hole, sizeof(hole));
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0x0300);
	hole[8] = 0; /* to S1 itself */
	put_lft(b, 1, hole, sizeof(hole));
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0x0300);
	put_lft(b, 1, s1, sizeof(s1));
	memcpy(loop, s2, sizeof(s2));
	loop[8] = 10;
	put_lft(b, 2, loop, sizeof(loop));
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0x0300);
	/* its other LID has a route: a Get finds that one only if it asks for it, a table does */
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .table = true,
				 }),
		0);
	assert_int_equal(records(b, SA_PATH, 2), 1);
	assert_int_equal(get_be16(sa_walk_path(b, 0) + PR_OFF_DLID), 9);
}

static void
test_a_way_without_a_way_back_is_not_reversible(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_C };
	uint8_t hole[sizeof(s2)];
	struct bench *b = *state;

	memcpy(hole, s2, sizeof(s2));
	hole[4] = NO;
	put_lft(b, 2, hole, sizeof(hole));
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_NUMB_PATH], 0x01);
	w.mask = SA_BIT(PR_BIT_REVERSIBLE);
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	w.numb = 0x80;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
}

static void
test_switches_are_ends_too(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = 0x51,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_MTU], EXACTLY(4));
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = 0x52 }), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_MTU], EXACTLY(5));
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = 0x51, .dst = 0x52 }), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
}

static void
test_random_tables(void **state)
{
	struct sa_change c = change_of(SA_LFT), sw = change_of(SA_SWITCH_INFO);
	struct bench *b = *state;

	c.remove = true;
	c.rid = 0x00010000;
	bench_put(b, &c);
	c = change_of(SA_RFT);
	set_field(&c, "lid", 1);
	put_be32(c.rec + RFT_OFF_ENTRIES, 0x0008000A); /* not valid */
	put_be32(c.rec + RFT_OFF_ENTRIES + 4, 0x0008900B); /* LIDs 8 and 9, LMC 1: port 11 */
	put_be32(c.rec + RFT_OFF_ENTRIES + 8, 0x00048001);
	bench_put(b, &c);
	assert_int_equal(sa_walk_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .dlid = 8,
				 }),
		0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
	/* D has no entry: by the default port */
	set_field(&sw, "lid", 1);
	set_field(&sw, "def_port", 255);
	bench_put(b, &sw);
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_D }),
		0x0300);
	set_field(&sw, "def_port", 10);
	bench_put(b, &sw);
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_D }), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_RATE], EXACTLY(12));
}

static void
test_a_longer_way_than_64_switches_is_none(void **state)
{
	struct bench *b = *state;
	uint8_t ports[64];
	unsigned int i;

	/* a chain of switches from S2's port 12 on: LIDs 101 to 162, or one more */
	put_port(b, 40, 0x40, NODE_TYPE_CA, 0);
	put_port_info(b, 40, 1, 0, 5, 4, 2);
	memset(ports, NO, sizeof(ports));
	memcpy(ports, s1, sizeof(s1));
	ports[40] = 11;
	put_lft(b, 1, ports, sizeof(ports));
	memcpy(ports, s2, sizeof(s2));
	ports[40] = 12;
	put_lft(b, 2, ports, sizeof(ports));
	memset(ports, NO, sizeof(ports));
	ports[40] = 2;
	for (i = 101; i <= 163; i++) {
		put_port(b, i, 0x2000 + i, NODE_TYPE_SWITCH, 0);
		put_lft(b, i, ports, sizeof(ports));
		put_link(b, i == 101 ? 2 : i - 1, i == 101 ? 12 : 2, i, 1);
	}
	put_link(b, 162, 2, 40, 1); /* 64 switches */
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = 0x40 }), 0);
	put_link(b, 162, 2, 163, 1);
	put_link(b, 163, 2, 40, 1);
	assert_int_equal(sa_walk_ask_path(b, &(struct want){ .src = GUID_A, .dst = 0x40 }), 0x0300);
}

static void
test_all_lids_of_both_ends_up_to_numb_path(void **state)
{
	static const uint16_t lids[4][3] = { { 8, 20, 0 }, { 9, 21, 0 }, { 8, 21, 2 },
		{ 9, 20, 2 } };
	struct want w = { .src = GUID_C, .dst = 0x20, .table = true };
	uint8_t ports[64];
	struct bench *b = *state;
	unsigned int i;

	put_port(b, 20, 0x20, NODE_TYPE_CA, 1);
	put_port_info(b, 20, 1, 1, 5, 4, 2);
	put_link(b, 20, 1, 2, 3);
	memset(ports, NO, sizeof(ports));
	memcpy(ports, s2, sizeof(s2));
	ports[20] = ports[21] = 3;
	put_lft(b, 2, ports, sizeof(ports));
	put_pkeys(b, 8, 1, (const uint16_t[]){ 0xFFFF }, 1);
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 4);
	for (i = 0; i < 4; i++) {
		assert_int_equal(get_be16(sa_walk_path(b, i) + PR_OFF_SLID), lids[i][0]);
		assert_int_equal(get_be16(sa_walk_path(b, i) + PR_OFF_DLID), lids[i][1]);
		assert_int_equal(sa_walk_path(b, i)[PR_OFF_PREFERENCE], lids[i][2]);
	}
	w.mask = SA_BIT(PR_BIT_NUMB_PATH);
	w.numb = 3;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 3);
	w.mask = 0;
	w.slid = 9;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 2);
}

static void
test_a_port_is_at_no_distance_from_itself(void **state)
{
	uint64_t life = SA_BIT(PR_BIT_LIFE_SEL) | SA_BIT(PR_BIT_LIFE);
	struct want w = { .src = GUID_A, .dst = GUID_A };
	struct bench *b = *state;

	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_LIFE], EXACTLY(0));
	w.mask = life;
	w.life = 17; /* greater than */
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
	w.life = 0x40 | 18; /* less than */
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_LIFE], EXACTLY(0));
	w.dst = GUID_B;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
}

/* --- SLs --- */

static void
test_an_sl_that_was_given_is_the_paths(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_C };
	struct sa_change c = change_of(SA_PATH_SL);
	struct bench *b = *state;

	set_field(&c, "lid", 4);
	memset(c.rec + PATH_SL_OFF_SLS, PATH_SL_UNKNOWN, LFT_PORTS);
	c.rec[PATH_SL_OFF_SLS + 8] = 3;
	bench_put(b, &c);
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 3);
	w.dlid = 9; /* not known */
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 0);
	/* as opensm: another one than the routing's is refused */
	w = (struct want){ .src = GUID_A, .dst = GUID_C, .mask = SA_BIT(PR_BIT_SL), .sl = 2 };
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
	w.sl = 3;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	/* the SLtoVL table of a switch drops it */
	put_sltovl(b, 1, 1, 10, "0,1,2,15,4,5,6,7,0,0,0,0,0,0,0,0");
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
}

static void
test_sls_that_sltovl_drops_are_not_used(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_C, .dlid = 8 };
	struct bench *b = *state;

	put_sltovl(b, 1, 1, 10, "15,15,2,3,4,5,6,7,0,0,0,0,0,0,0,0");
	put_sltovl(b, 1, 2, 10, "15,15,15,15,4,5,6,7,0,0,0,0,0,0,0,0"); /* from B: not our way */
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 2);
	/* SL 4 may be dropped where no table is known */
	w.mask = SA_BIT(PR_BIT_SL);
	w.sl = 4;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
	put_sltovl(b, 2, 10, 1, "0,1,2,3,4,5,6,7,0,0,0,0,0,0,0,0");
	put_sltovl(b, 4, 0, 1, "0,1,2,3,4,15,6,7,0,0,0,0,0,0,0,0");
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 4);
	w.sl = 5;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
	w.sl = 1;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
}

static void
partitions_have_sls(struct sa_config *config)
{
	config->partition[0] = (struct sa_partition){ .pkey = 0x7FFF, .sl = 3 };
	config->partition[1] = (struct sa_partition){ .pkey = 0x8001, .sl = 5 };
	config->num_partitions = 2;
}

/* as opensm's partitions.conf: whatever the membership that the P_Key tells */
static void
test_sl_of_the_partition(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_D };
	struct bench *b;

	assert_int_equal(setup_with(state, partitions_have_sls), 0);
	b = *state;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(get_be16(sa_walk_path(b, 0) + PR_OFF_PKEY), 0xFFFF);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 3);
	assert_int_equal(sa_walk_path(b, 0)[PR_OFF_NUMB_PATH], 0x81);
	w.pkey = 1;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 5);
	/* another is granted only where all SLtoVL tables are known, as without partitions */
	w.mask = SA_BIT(PR_BIT_SL);
	w.sl = 5;
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	w.sl = 0;
	assert_int_equal(sa_walk_ask_path(b, &w), 0x0300);
	bench_teardown(state);
}

static void
test_sl_of_the_partition_that_does_not_arrive(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_D };
	struct sa_change c = change_of(SA_PATH_SL);
	struct bench *b;

	assert_int_equal(setup_with(state, partitions_have_sls), 0);
	b = *state;
	put_sltovl(b, 1, 1, 11, "15,1,2,15,4,5,6,7,0,0,0,0,0,0,0,0");
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 1);
	/* the routing engine's is before the partition's */
	set_field(&c, "lid", 4);
	memset(c.rec + PATH_SL_OFF_SLS, PATH_SL_UNKNOWN, LFT_PORTS);
	c.rec[PATH_SL_OFF_SLS + 12] = 2;
	bench_put(b, &c);
	assert_int_equal(sa_walk_ask_path(b, &w), 0);
	assert_int_equal(sl_of(sa_walk_path(b, 0)), 2);
	bench_teardown(state);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, sa_walk_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_tables_decide_not_the_widest_link),
		T(test_without_tables_the_search_says_so),
		T(test_black_holes_and_loops_give_no_path),
		T(test_a_way_without_a_way_back_is_not_reversible),
		T(test_switches_are_ends_too),
		T(test_random_tables),
		T(test_a_longer_way_than_64_switches_is_none),
		T(test_all_lids_of_both_ends_up_to_numb_path),
		T(test_a_port_is_at_no_distance_from_itself),
		T(test_an_sl_that_was_given_is_the_paths),
		T(test_sls_that_sltovl_drops_are_not_used),
		cmocka_unit_test(test_sl_of_the_partition),
		cmocka_unit_test(test_sl_of_the_partition_that_does_not_arrive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
