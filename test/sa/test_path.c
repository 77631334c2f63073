/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * PathRecords computed from ports, links and partitions: selectors, NumbPath, LMC, P_Keys,
 * wildcards (sa-multipacket B8, B10, B11). The fabric is in bench.h.
 */

#include "bench.h"

#define MTU  (SA_BIT(PR_BIT_MTU_SEL) | SA_BIT(PR_BIT_MTU))
#define RATE (SA_BIT(PR_BIT_RATE_SEL) | SA_BIT(PR_BIT_RATE))
#define LIFE (SA_BIT(PR_BIT_LIFE_SEL) | SA_BIT(PR_BIT_LIFE))
#define GIDS (SA_BIT(PR_BIT_SGID) | SA_BIT(PR_BIT_DGID))

struct want {
	uint64_t src; /* GUIDs; 0: not asked */
	uint64_t dst;
	uint64_t mask; /* more */
	uint16_t slid;
	uint16_t dlid;
	uint8_t mtu;
	uint8_t rate;
	uint8_t life;
	uint16_t pkey;
	uint8_t numb;
	uint16_t qos_sl;
	uint8_t raw;
	uint64_t from;
	bool untrusted;
	bool table;
	uint32_t flow_hop;
	uint8_t tclass;
};

static uint16_t
sa_path_ask_path(struct bench *b, const struct want *w)
{
	uint8_t rec[PR_LEN] = { 0 };
	struct ask a = {
		.version = 2,
		.method = w->table ? SA_GET_TABLE : MAD_GET,
		.attribute = SA_PATH,
		.mask = w->mask,
		.data = rec,
		.data_len = PR_LEN,
		.from = w->from,
		.untrusted = w->untrusted,
	};

	if (w->src != 0) {
		a.mask |= SA_BIT(PR_BIT_SGID);
		set_gid(rec + PR_OFF_SGID, w->src);
	}
	if (w->dst != 0) {
		a.mask |= SA_BIT(PR_BIT_DGID);
		set_gid(rec + PR_OFF_DGID, w->dst);
	}
	if (w->slid != 0)
		a.mask |= SA_BIT(PR_BIT_SLID);
	if (w->dlid != 0)
		a.mask |= SA_BIT(PR_BIT_DLID);
	put_be16(rec + PR_OFF_SLID, w->slid);
	put_be16(rec + PR_OFF_DLID, w->dlid);
	put_be32(rec + PR_OFF_FLOW_HOP, w->flow_hop | (uint32_t)w->raw << 31);
	rec[PR_OFF_TCLASS] = w->tclass;
	rec[PR_OFF_NUMB_PATH] = w->numb;
	put_be16(rec + PR_OFF_PKEY, w->pkey);
	put_be16(rec + PR_OFF_SL, w->qos_sl);
	rec[PR_OFF_MTU] = w->mtu;
	rec[PR_OFF_RATE] = w->rate;
	rec[PR_OFF_LIFE] = w->life;
	return ask(b, &a);
}

static const uint8_t *
sa_path_path(struct bench *b, unsigned int n)
{
	return record_of(b, SA_PATH, 2, n);
}

#define GREATER(v) (v)
#define LESS(v)    (0x40 | (v))
#define EXACTLY(v) (0x80 | (v))
#define LARGEST    0xC0

static void
test_path_has_the_worst_mtu_and_rate_of_its_links(void **state)
{
	struct bench *b = *state;
	const uint8_t *p;

	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	p = sa_path_path(b, 0);
	assert_int_equal(get_be64(p + PR_OFF_SGID), PREFIX);
	assert_int_equal(get_be64(p + PR_OFF_SGID + 8), GUID_A);
	assert_int_equal(get_be64(p + PR_OFF_DGID + 8), GUID_C);
	assert_int_equal(get_be16(p + PR_OFF_SLID), 4);
	assert_int_equal(get_be16(p + PR_OFF_DLID), 8);
	assert_int_equal(p[PR_OFF_MTU], EXACTLY(4)); /* 2048, between the switches */
	assert_int_equal(p[PR_OFF_RATE], EXACTLY(12)); /* FDR 4x = 56 Gb/s */
	assert_int_equal(p[PR_OFF_LIFE], EXACTLY(18));
	assert_int_equal(get_be16(p + PR_OFF_PKEY), 0xFFFF);
	assert_int_equal(p[PR_OFF_NUMB_PATH], 0x81); /* reversible */
	assert_int_equal(get_be16(p + PR_OFF_SL), 0);
	/* within one switch: the slower port decides */
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_B }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(7)); /* QDR 4x = 40 */
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_A }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(5));
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
}

static void
test_reply_is_a_single_mad_with_no_offset_and_no_sm_key(void **state)
{
	struct bench *b = *state;

	sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_B });
	assert_int_equal(b->outcome, MAD_ANSWER);
	assert_int_equal(get_be64(b->reply + SA2_OFF_SM_KEY), 0);
	assert_int_equal(get_be16(b->reply + SA2_OFF_ATTR_OFFSET), 0);
}

static void
test_ends_by_lid_alias_and_link_local_prefix(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &(struct want){ .slid = 4, .dlid = 9 }), 0);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_DLID), 9); /* C's second LID */
	assert_int_equal(get_be64(sa_path_path(b, 0) + PR_OFF_DGID + 8), GUID_C);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A1, .dst = GUID_B }), 0);
	assert_int_equal(get_be64(sa_path_path(b, 0) + PR_OFF_SGID + 8), GUID_A1);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_SLID), 4);
	/* GID and LID of different ports */
	assert_int_equal(sa_path_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .slid = 5,
					 .dst = GUID_B,
				 }),
		0x0300);
}

static void
test_unknown_ends(void **state)
{
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = 0x77 }), 0x0500);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = 0x77, .dst = GUID_B }), 0x0500);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dlid = 77 }), 0x0300);
	assert_int_equal(sa_path_ask_path(b,
				 &(struct want){ .src = GUID_A, .dlid = 77, .table = true }),
		0);
	assert_int_equal(records(b, SA_PATH, 2), 0);
}

static void
test_mtu_selectors(void **state)
{
	static const struct {
		uint8_t ask;
		uint8_t got; /* 0: none. The path has 2048, code 4 */
	} cases[] = { { GREATER(3), EXACTLY(4) }, { GREATER(4), 0 }, { LESS(5), EXACTLY(4) },
		{ LESS(4), EXACTLY(3) }, { LESS(1), 0 }, { EXACTLY(4), EXACTLY(4) },
		{ EXACTLY(2), EXACTLY(2) }, { EXACTLY(5), 0 }, { LARGEST, EXACTLY(4) } };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t status = sa_path_ask_path(b,
			&(struct want){
				.src = GUID_A,
				.dst = GUID_C,
				.mask = MTU,
				.mtu = cases[i].ask,
			});

		assert_int_equal(status, cases[i].got != 0 ? 0 : 0x0300);
		if (cases[i].got != 0)
			assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], cases[i].got);
	}
	/* a value without its selector does not count */
	assert_int_equal(sa_path_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .mask = SA_BIT(PR_BIT_MTU),
					 .mtu = EXACTLY(5),
				 }),
		0);
}

static void
test_rate_selectors_compare_gigabits_not_codes(void **state)
{
	static const struct {
		uint8_t ask;
		uint8_t got; /* the path has 56 Gb/s, code 12 */
	} cases[] = { { GREATER(7), EXACTLY(12) }, { GREATER(12), 0 }, { GREATER(20), EXACTLY(12) },
		{ LESS(16), EXACTLY(12) }, { LESS(8), EXACTLY(12) }, { LESS(12), EXACTLY(20) },
		{ LESS(2), 0 }, { EXACTLY(15), EXACTLY(15) }, { EXACTLY(8), 0 },
		{ LARGEST, EXACTLY(12) }, { EXACTLY(63), 0 } };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t status = sa_path_ask_path(b,
			&(struct want){
				.src = GUID_A,
				.dst = GUID_C,
				.mask = RATE,
				.rate = cases[i].ask,
			});

		assert_int_equal(status, cases[i].got != 0 ? 0 : 0x0300);
		if (cases[i].got != 0)
			assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], cases[i].got);
	}
}

static void
test_life_selectors(void **state)
{
	static const struct {
		uint8_t ask;
		uint8_t got; /* configured: 18 */
	} cases[] = { { GREATER(17), EXACTLY(18) }, { GREATER(18), 0 }, { LESS(19), EXACTLY(18) },
		{ LESS(18), 0 }, { EXACTLY(18), EXACTLY(18) }, { EXACTLY(20), EXACTLY(20) },
		{ EXACTLY(17), 0 }, { LARGEST, EXACTLY(18) } };
	struct bench *b = *state;
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint16_t status = sa_path_ask_path(b,
			&(struct want){
				.src = GUID_A,
				.dst = GUID_C,
				.mask = LIFE,
				.life = cases[i].ask,
			});

		assert_int_equal(status, cases[i].got != 0 ? 0 : 0x0300);
		if (cases[i].got != 0)
			assert_int_equal(sa_path_path(b, 0)[PR_OFF_LIFE], cases[i].got);
	}
}

static void
test_partitions(void **state)
{
	struct bench *b = *state;
	uint64_t pkey = SA_BIT(PR_BIT_PKEY);

	/* D is a limited member of the default partition, A a full one */
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_D }), 0);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_PKEY), 0xFFFF);
	assert_int_equal(sa_path_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_D,
					 .mask = pkey,
					 .pkey = 0x0001,
				 }),
		0);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_PKEY), 0x8001);
	/* two limited members have no path */
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_C, .dst = GUID_D }),
		0x0300);
	assert_int_equal(sa_path_ask_path(b,
				 &(struct want){
					 .src = GUID_A,
					 .dst = GUID_C,
					 .mask = pkey,
					 .pkey = 0x8002,
				 }),
		0x0300);
}

static void
test_numb_path_and_lmc(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_C, .table = true };
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 2);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_DLID), 8);
	assert_int_equal(get_be16(sa_path_path(b, 1) + PR_OFF_DLID), 9);
	assert_int_equal(get_be16(b->reply + SA2_OFF_ATTR_OFFSET), 8);
	w.mask = SA_BIT(PR_BIT_NUMB_PATH);
	w.numb = 0x80 | 1;
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 1);
	w = (struct want){ .src = GUID_C, .dst = GUID_A, .table = true };
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 2);
	assert_int_equal(get_be16(sa_path_path(b, 1) + PR_OFF_SLID), 9);
	assert_int_equal(get_be16(sa_path_path(b, 1) + PR_OFF_DLID), 4);
	w = (struct want){ .src = GUID_A, .dlid = 9, .table = true };
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 1);
}

static void
test_wildcard_destination_and_all_pairs(void **state)
{
	struct want w = { .src = GUID_A, .table = true };
	struct bench *b = *state;

	/* S1, S2, A, B, C twice, D */
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 7);
	w = (struct want){ .dst = GUID_A, .table = true };
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(records(b, SA_PATH, 2), 7);
	w = (struct want){ .table = true };
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	/*
	 * sources S1 S2 A B: 7 each; C: S1 S2 A B, two LIDs each, and itself: 12; D: S1 S2 A B D: 5
	 */
	assert_int_equal(records(b, SA_PATH, 2), 4 * 7 + 12 + 5);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A }), 0x0400);
}

static void
test_demands_that_no_path_meets(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_B, .mask = SA_BIT(PR_BIT_SL), .qos_sl = 3 };
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	w.qos_sl = 0;
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	w.mask = SA_BIT(PR_BIT_RAW);
	w.raw = 1;
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	w = (struct want){
		.src = GUID_A,
		.dst = GUID_B,
		.mask = SA_BIT(PR_BIT_QOS_CLASS),
		.qos_sl = 0x10,
	};
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
}

static void
test_flow_label_class_and_hop_limit_are_the_senders(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_B, .flow_hop = 0x0ABCDE40, .tclass = 0x20 };
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(get_be32(sa_path_path(b, 0) + PR_OFF_FLOW_HOP), 0);
	w.mask = SA_BIT(PR_BIT_FLOW) | SA_BIT(PR_BIT_HOP) | SA_BIT(PR_BIT_TCLASS);
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(get_be32(sa_path_path(b, 0) + PR_OFF_FLOW_HOP), 0x0ABCDE40);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_TCLASS], 0x20);
}

static void
test_topology_changes_are_seen(void **state)
{
	struct bench *b = *state;
	struct sa_change c = change_of(SA_LINK);

	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	put_port_info(b, 1, 10, 0, 3, 4, 2);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(3));
	c.remove = true;
	c.rid = 0x00010A00;
	bench_put(b, &c);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }),
		0x0300);
	put_link(b, 1, 10, 2, 10);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
}

static void
test_of_shortest_routes_the_widest_is_taken(void **state)
{
	struct bench *b = *state;

	/* a second link between the switches, and a longer way round that is wider still */
	put_port_info(b, 1, 11, 0, 5, 4, 2);
	put_port_info(b, 2, 11, 0, 5, 4, 2);
	put_link(b, 1, 11, 2, 11);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(5));
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
	/* a link that is down carries nothing */
	struct sa_change c = change_of(SA_PORT_INFO);

	set_field(&c, "lid", 2);
	set_field(&c, "port_num", 11);
	set_field(&c, "port_state", 1);
	bench_put(b, &c);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(4));
}

static void
test_a_longer_route_is_not_taken_however_wide(void **state)
{
	struct bench *b = *state;

	put_port(b, 3, 0x53, NODE_TYPE_SWITCH, 0);
	put_port_info(b, 1, 12, 0, 5, 4, 2);
	put_port_info(b, 2, 12, 0, 5, 4, 2);
	put_port_info(b, 3, 1, 0, 5, 4, 2);
	put_port_info(b, 3, 2, 0, 5, 4, 2);
	put_link(b, 1, 12, 3, 1);
	put_link(b, 2, 12, 3, 2);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(4));
	/* routes of three switches, of which two are kept at one time */
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(sa_path_ask_path(b, &(struct want){ .slid = 3, .dst = GUID_C }),
			0);
		assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(16));
		assert_int_equal(sa_path_ask_path(b,
					 &(struct want){
						 .src = GUID_C,
						 .dst = GUID_A,
					 }),
			0);
		assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(12));
		assert_int_equal(sa_path_ask_path(b,
					 &(struct want){
						 .src = GUID_A,
						 .dst = GUID_D,
					 }),
			0);
		assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(12));
	}
}

static void
test_both_ends_of_a_link_count(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_C };
	struct sa_change c = change_of(SA_PORT_INFO);
	struct bench *b = *state;

	put_port_info(b, 1, 1, 0, 2, 4, 0); /* the switch's end of A's link */
	assert_int_equal(sa_path_ask_path(b, &w), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(2));
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(7));
	set_field(&c, "lid", 1);
	set_field(&c, "port_num", 1);
	set_field(&c, "port_state", 1);
	bench_put(b, &c);
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	set_field(&c, "lid", 8);
	set_field(&c, "lmc", 1);
	bench_put(b, &c); /* C itself is down: it is no endport any more */
	assert_int_equal(sa_path_ask_path(b, &w), 0x0500);
}

static void
test_changes_of_partitions_and_guids_are_seen(void **state)
{
	static const uint16_t none[] = { 0x8000, 0x0000, 0x8005 }, other[] = { 0x8000, 0x8006 };
	struct want w = { .src = GUID_A, .dst = GUID_C };
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &w), 0);
	put_pkeys(b, 4, 1, none, 3);
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	put_pkeys(b, 8, 1, other, 2); /* 0x8000 is no P_Key that two ports could share */
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	put_port(b, 8, 0xCC, NODE_TYPE_CA, 1);
	assert_int_equal(sa_path_ask_path(b, &w), 0x0500);
}

static void
test_back_to_back_ports_need_no_switch(void **state)
{
	struct bench *b = *state;

	put_port(b, 20, 0x20, NODE_TYPE_CA, 0);
	put_port_info(b, 20, 1, 0, 5, 4, 2);
	put_port(b, 21, 0x21, NODE_TYPE_CA, 0);
	put_port_info(b, 21, 1, 0, 3, 4, 2);
	put_link(b, 20, 1, 21, 1);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = 0x20, .dst = 0x21 }), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(3));
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = 0x20, .dst = GUID_A }), 0x0300);
}

static void
test_untrusted_requester_sees_paths_of_its_partitions_only(void **state)
{
	struct want w = { .src = GUID_A, .dst = GUID_D, .from = GUID_B, .untrusted = true };
	struct bench *b = *state;

	assert_int_equal(sa_path_ask_path(b, &w), 0);
	w.from = GUID_C; /* shares nothing with D */
	assert_int_equal(sa_path_ask_path(b, &w), 0x0300);
	w.from = 0; /* not a port of the database: a full member of the default partition */
	assert_int_equal(sa_path_ask_path(b, &w), 0);
}

static void
few_switches(struct sa_config *config)
{
	config->path_switches = 1;
}

static void
test_fabric_beyond_the_limits_is_refused(void **state)
{
	struct bench *b = bench_create(few_switches);

	(void)state;
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_C }),
		0x0100);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_B }), 0);
	bench_destroy(b);
}

static void
many_links(struct bench *b, unsigned int n)
{
	struct sa_change *c = test_calloc(n, sizeof(*c));
	unsigned int i;

	for (i = 0; i < n; i++) {
		c[i] = change_of(SA_LINK);
		set_field(&c[i], "from_lid", 0x2000 + i);
		set_field(&c[i], "from_port", 1);
		set_field(&c[i], "to_lid", 1);
		set_field(&c[i], "to_port", 20);
	}
	assert_int_equal(sa_change(b->sa, c, n, NULL), 0);
	test_free(c);
}

static void
test_large_fabric_is_read_in_slices(void **state)
{
	uint8_t rec[PR_LEN] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_GET,
		.attribute = SA_PATH,
		.mask = GIDS,
		.data = rec,
		.data_len = PR_LEN,
	};
	struct bench *b = *state;
	unsigned int i;

	set_gid(rec + PR_OFF_SGID, GUID_A);
	set_gid(rec + PR_OFF_DGID, GUID_C);
	many_links(b, 3000);
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_LATER);
	sa_run(b->w, 0, 100);
	assert_false(b->answered);
	/* the fabric changes meanwhile: the answer has the new one */
	put_port_info(b, 1, 10, 0, 3, 4, 1);
	for (i = 0; !b->answered && i < 200; i++)
		sa_run(b->w, 0, 100);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(3));
	/* the graph is kept when a record changes nothing in it */
	struct sa_change c = change_of(SA_SERVICE);

	bench_put(b, &c);
	ask_only(b, &a);
	assert_int_equal(b->outcome, MAD_ANSWER);
}

static void
test_fabric_that_never_rests_is_read_in_slices_all_the_same(void **state)
{
	uint8_t rec[PR_LEN] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_GET,
		.attribute = SA_PATH,
		.mask = GIDS,
		.data = rec,
		.data_len = PR_LEN,
	};
	struct bench *b = *state;
	unsigned int i;

	set_gid(rec + PR_OFF_SGID, GUID_A);
	set_gid(rec + PR_OFF_DGID, GUID_C);
	many_links(b, 3000);
	ask_only(b, &a);
	for (i = 0; !b->answered && i < 100; i++) {
		put_port_info(b, 1, 10, 0, 3 + i % 2, 4, 1);
		sa_run(b->w, 0, 100);
	}
	assert_true(b->answered);
	assert_int_equal(get_be16(b->reply + MAD_OFF_STATUS), 0);
	assert_true(i > 3000 / 100); /* no slice was longer than the others */
	/* a graph that is a few changes old is not used for the next query */
	put_port_info(b, 1, 10, 0, 1, 4, 1);
	assert_int_equal(ask(b, &a), 0);
	assert_int_equal(b->reply[SA2_OFF_DATA + PR_OFF_MTU], EXACTLY(1));
}

static void
test_path_to_a_multicast_group(void **state)
{
	static const uint8_t mgid[16] = { 0xFF, 0x12, 0x40, 0x1B, [15] = 7 };
	uint8_t rec[PR_LEN] = { 0 };
	struct ask a = {
		.version = 2,
		.method = MAD_GET,
		.attribute = SA_PATH,
		.mask = GIDS,
		.data = rec,
		.data_len = PR_LEN,
	};
	struct sa_change c = change_of(SA_MCMEMBER);
	struct bench *b = *state;

	set_gid(rec + PR_OFF_SGID, GUID_A);
	memcpy(rec + PR_OFF_DGID, mgid, 16);
	assert_int_equal(ask(b, &a), 0x0500);
	memcpy(c.rec, mgid, 16);
	set_gid(c.rec + MC_OFF_PORT_GID, GUID_A);
	put_be16(c.rec + MC_OFF_MLID, 0xC007);
	put_be32(c.rec + MC_OFF_SL_FLOW_HOP, 0x5ABCDE07);
	c.rec[MC_OFF_TCLASS] = 0x2C;
	put_be16(c.rec + MC_OFF_PKEY, 0x8001);
	c.rec[MC_OFF_MTU] = 0x84;
	c.rec[MC_OFF_RATE] = 0x83;
	c.rec[MC_OFF_LIFE] = 0x90;
	bench_put(b, &c);
	assert_int_equal(ask(b, &a), 0);
	assert_memory_equal(sa_path_path(b, 0) + PR_OFF_DGID, mgid, 16);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_DLID), 0xC007);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_PKEY), 0x8001);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_MTU], EXACTLY(4));
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_RATE], EXACTLY(3));
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_LIFE], EXACTLY(16));
	/* a sender cannot choose the group's values (opensm) */
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_SL), 5);
	assert_int_equal(get_be32(sa_path_path(b, 0) + PR_OFF_FLOW_HOP), 0x0ABCDE07);
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_TCLASS], 0x2C);
	/* a group has no way back: not reversible */
	assert_int_equal(sa_path_path(b, 0)[PR_OFF_NUMB_PATH], 1);
	a.mask |= SA_BIT(PR_BIT_SL);
	assert_int_equal(ask(b, &a), 0x0300);
	put_be16(rec + PR_OFF_SL, 5);
	assert_int_equal(ask(b, &a), 0);
	a.mask |= SA_BIT(PR_BIT_FLOW) | SA_BIT(PR_BIT_TCLASS) | SA_BIT(PR_BIT_HOP);
	assert_int_equal(ask(b, &a), 0x0300);
	put_be32(rec + PR_OFF_FLOW_HOP, 0x0ABCDE07);
	rec[PR_OFF_TCLASS] = 0x2C;
	assert_int_equal(ask(b, &a), 0);
	/* D is in the group's partition, but no member; B is a member, but not in the partition */
	set_gid(rec + PR_OFF_SGID, GUID_D);
	assert_int_equal(ask(b, &a), 0x0300);
	set_gid(c.rec + MC_OFF_PORT_GID, GUID_B);
	bench_put(b, &c);
	set_gid(rec + PR_OFF_SGID, GUID_B);
	assert_int_equal(ask(b, &a), 0x0300);
}

static void
test_many_pkeys_are_read_from_the_store(void **state)
{
	struct bench *b = *state;
	uint16_t pkeys[32];
	unsigned int i;

	for (i = 0; i < 32; i++)
		pkeys[i] = 0x8100 + i;
	put_pkeys(b, 5, 1, pkeys, 32);
	put_pkeys(b, 4, 1, pkeys + 31, 1);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_A, .dst = GUID_B }), 0);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_PKEY), 0x811F);
	assert_int_equal(sa_path_ask_path(b, &(struct want){ .src = GUID_B, .dst = GUID_A }), 0);
	assert_int_equal(get_be16(sa_path_path(b, 0) + PR_OFF_PKEY), 0x811F);
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)
	const struct CMUnitTest tests[] = {
		T(test_path_has_the_worst_mtu_and_rate_of_its_links),
		T(test_reply_is_a_single_mad_with_no_offset_and_no_sm_key),
		T(test_ends_by_lid_alias_and_link_local_prefix),
		T(test_unknown_ends),
		T(test_mtu_selectors),
		T(test_rate_selectors_compare_gigabits_not_codes),
		T(test_life_selectors),
		T(test_partitions),
		T(test_numb_path_and_lmc),
		T(test_wildcard_destination_and_all_pairs),
		T(test_demands_that_no_path_meets),
		T(test_flow_label_class_and_hop_limit_are_the_senders),
		T(test_topology_changes_are_seen),
		T(test_of_shortest_routes_the_widest_is_taken),
		T(test_a_longer_route_is_not_taken_however_wide),
		T(test_both_ends_of_a_link_count),
		T(test_changes_of_partitions_and_guids_are_seen),
		T(test_back_to_back_ports_need_no_switch),
		T(test_untrusted_requester_sees_paths_of_its_partitions_only),
		cmocka_unit_test(test_fabric_beyond_the_limits_is_refused),
		T(test_large_fabric_is_read_in_slices),
		T(test_fabric_that_never_rests_is_read_in_slices_all_the_same),
		T(test_path_to_a_multicast_group),
		T(test_many_pkeys_are_read_from_the_store),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
