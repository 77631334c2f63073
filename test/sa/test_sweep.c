/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A sweep of a small subnet that answers as told:
 *
 *   us (LID 1, port 1) -- [1] switch (LID 2, 3 ports) [2] -- [2] host (LID 3, port 2 of 2)
 *                                                     [3] down
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sa/layout.h"
#include "sa/sweep.h"
#include "wire/bytes.h"

enum { US, SWITCH, HOST, NODES };

struct subnet {
	uint16_t silent; /* attribute that nobody answers */
	uint16_t lid[NODES];
	struct sa_change record[64];
	unsigned int records;
};

/* The node at the end of a route, and the port by which the route enters. @return false: none */
static bool
sa_sweep_arrive(const struct sweep_request *r, unsigned int *node, uint8_t *port)
{
	*node = US;
	*port = 1;
	for (unsigned int i = 1; i <= r->hops; i++) {
		if (*node == US && r->port[i] == 1)
			*node = SWITCH;
		else if (*node == SWITCH && r->port[i] == 2)
			*node = HOST;
		else
			/* nobody is asked for what is down, nor back to where one came from */
			return false;
	}
	*port = *node == HOST ? 2 : 1;
	return true;
}

static void
sa_sweep_node_info(unsigned int node, uint8_t port, uint8_t *data)
{
	static const uint8_t ports[NODES] = { 1, 3, 2 };

	data[2] = node == SWITCH ? 2 : 1;
	data[3] = ports[node];
	put_be64(data + 12, 0x100 + node);
	put_be64(data + 20, 0x200 + node);
	put_be16(data + 28, node == SWITCH ? 0 : 40);
	data[36] = port;
}

static void
switch_info(uint8_t *data)
{
	put_be16(data, 1024); /* linear */
	put_be16(data + 4, 1024); /* multicast */
	put_be16(data + 6, 70); /* top */
	put_be16(data + 18, 0xC021);
}

static bool
sa_sweep_answer(const struct subnet *n, const struct sweep_request *r, uint8_t *data)
{
	unsigned int node;
	uint8_t port;

	memset(data, 0, SWEEP_DATA);
	assert_true(sa_sweep_arrive(r, &node, &port));
	if (r->attribute == n->silent)
		return false;
	switch (r->attribute) {
	case 0x10:
		strcpy((char *)data, node == SWITCH ? "the switch" : "a host");
		return true;
	case 0x11:
		sa_sweep_node_info(node, port, data);
		return true;
	case 0x12:
		assert_int_equal(node, SWITCH);
		switch_info(data);
		return true;
	case 0x14:
		put_be64(data, 0x200 + node);
		return true;
	case 0x15:
		if (node != SWITCH)
			assert_int_equal(r->modifier, port);
		put_be16(data + 16, r->modifier == 0 || node != SWITCH ? n->lid[node] : 0);
		data[32] = node == SWITCH && r->modifier == 3 ? 1 : 4;
		data[50] = node == HOST ? 8 : 0;
		return true;
	case 0x16:
		if (r->modifier == 0)
			put_be16(data, 0xFFFF);
		return true;
	case 0x17:
		memset(data, 0x12, 8);
		return true;
	case 0x19:
		memset(data, 0xFF, SWEEP_DATA);
		data[3] = 2;
		return true;
	case 0x1B:
		if (r->modifier == 1)
			data[3] = 0x06;
		return true;
	default:
		fail_msg("attribute 0x%x", r->attribute);
		return false;
	}
}

static int
sa_sweep_take(void *arg, const struct sa_change *change)
{
	struct subnet *n = arg;

	n->record[n->records++] = *change;
	return 0;
}

static void
sa_sweep_run(struct subnet *n, struct sweep_counts *c)
{
	struct sweep *s = sweep_create(&allocator_malloc);
	const struct sa_import_sink sink = { n, sa_sweep_take };
	struct sweep_request r;
	uint8_t data[SWEEP_DATA];
	unsigned int asked = 0;

	for (; sweep_next(s, &r); asked++)
		sweep_answer(s, &r, sa_sweep_answer(n, &r, data) ? data : NULL);
	assert_int_equal(sweep_error(s), 0);
	assert_int_equal(sweep_records(s, &sink), 0);
	sweep_counts(s, c);
	assert_int_equal(c->asked, asked);
	sweep_destroy(s);
}

static unsigned int
sa_sweep_count(const struct subnet *n, uint16_t attribute)
{
	unsigned int i, found = 0;

	for (i = 0; i < n->records; i++)
		found += n->record[i].type->attribute == attribute;
	return found;
}

/* The record of a RID. */
static const uint8_t *
sa_sweep_record(const struct subnet *n, uint16_t attribute, uint32_t rid)
{
	const struct sa_record_type *t = sa_record_type(attribute);

	for (unsigned int i = 0; i < n->records; i++)
		if (n->record[i].type == t && sa_rid(t, n->record[i].rec) == rid)
			return n->record[i].rec;
	fail_msg("no %s 0x%08x", t->name, rid);
	return NULL;
}

static void
test_every_record_of_a_small_subnet(void **state)
{
	struct subnet n = { .lid = { 1, 2, 3 } };
	struct sweep_counts c;

	(void)state;
	sa_sweep_run(&n, &c);
	assert_int_equal(c.nodes, 3);
	assert_int_equal(c.switches, 1);
	assert_int_equal(c.links, 4);
	assert_int_equal(c.unanswered + c.without_lid, 0);
	assert_int_equal(sa_sweep_count(&n, SA_NODE), 3);
	assert_int_equal(get_be64(sa_sweep_record(&n, SA_NODE, 0x00030000) + NODE_OFF_PORT_GUID),
		0x202);
	assert_string_equal((const char *)sa_sweep_record(&n, SA_NODE, 0x00020000) + 44,
		"the switch");
	assert_int_equal(sa_sweep_count(&n, SA_PORT_INFO), 2 + 4);
	assert_int_equal(sa_sweep_record(&n, SA_PORT_INFO, 0x00020300)[PORT_OFF_STATE] & 0xF, 1);
	sa_sweep_record(&n, SA_PORT_INFO, 0x00030200);
	assert_int_equal(sa_sweep_count(&n, SA_LINK), 4);
	assert_memory_equal(sa_sweep_record(&n, SA_LINK, 0x00010100), "\0\1\1\1\0\2", 6);
	assert_memory_equal(sa_sweep_record(&n, SA_LINK, 0x00020200), "\0\2\2\2\0\3", 6);
	assert_memory_equal(sa_sweep_record(&n, SA_LINK, 0x00030200), "\0\3\2\2\0\2", 6);
	assert_int_equal(sa_sweep_count(&n, SA_SWITCH_INFO), 1);
	assert_int_equal(sa_sweep_count(&n, SA_GUID_INFO), 1);
	assert_int_equal(sa_sweep_count(&n, SA_PKEY_TABLE), 2); /* second blocks are empty */
	assert_int_equal(get_be16(sa_sweep_record(&n, SA_PKEY_TABLE, 0x00030200) + PKEY_OFF_KEYS),
		0xFFFF);
	assert_int_equal(sa_sweep_count(&n, SA_LFT), 2); /* up to LID 70 */
	assert_int_equal(sa_sweep_record(&n, SA_LFT, 0x00020001)[LFT_OFF_PORTS + 3], 2);
	assert_int_equal(sa_sweep_count(&n, SA_MFT), 1); /* C021; block 0 is empty */
	sa_sweep_record(&n, SA_MFT, 0x00020004);
	/* by ports that are up: in 0, 1, 2 and out 1, 2; of hosts the port */
	assert_int_equal(sa_sweep_count(&n, SA_SLTOVL), 6 + 2);
	sa_sweep_record(&n, SA_SLTOVL, 0x00020102);
	sa_sweep_record(&n, SA_SLTOVL, 0x00030002);
}

static void
test_a_table_without_all_its_blocks_is_none(void **state)
{
	struct subnet n = { .lid = { 1, 2, 3 }, .silent = 0x19 };
	struct sweep_counts c;

	(void)state;
	sa_sweep_run(&n, &c);
	assert_int_equal(c.unanswered, 2);
	assert_int_equal(sa_sweep_count(&n, SA_LFT), 0);
	assert_int_equal(sa_sweep_count(&n, SA_SWITCH_INFO), 1);
}

static void
test_nodes_without_a_lid_give_no_records(void **state)
{
	struct subnet n = { .lid = { 1, 2, 0 } };
	struct sweep_counts c;

	(void)state;
	sa_sweep_run(&n, &c);
	assert_int_equal(c.without_lid, 1);
	assert_int_equal(sa_sweep_count(&n, SA_NODE), 2);
	assert_int_equal(sa_sweep_count(&n, SA_LINK), 2);
}

static void
test_a_port_that_does_not_answer_leads_nowhere(void **state)
{
	struct subnet n = { .lid = { 1, 2, 3 }, .silent = 0x15 };
	struct sweep_counts c;

	(void)state;
	sa_sweep_run(&n, &c);
	assert_int_equal(c.nodes, 1);
	assert_int_equal(n.records, 0);
}

static int
drop(void *arg, const struct sa_change *change)
{
	(void)arg;
	assert_true(get_be16(change->rec) != 0);
	return 0;
}

/* answers of random bytes: nothing breaks */
static void
test_answers_are_not_believed(void **state)
{
	const struct sa_import_sink sink = { NULL, drop };

	(void)state;
	srand(1);
	for (unsigned int round = 0; round < 300; round++) {
		struct sweep *s = sweep_create(&allocator_malloc);
		struct sweep_request r;
		uint8_t data[SWEEP_DATA];

		for (unsigned int i = 0; i < 300 && sweep_next(s, &r); i++) {
			for (unsigned int b = 0; b < SWEEP_DATA; b++)
				data[b] = (uint8_t)(rand() >> 7);
			if (r.attribute == 0x11)
				data[36] %= (data[3] | 1);
			assert_true(r.hops <= SWEEP_HOPS_MAX);
			sweep_answer(s, &r, rand() % 8 == 0 ? NULL : data);
		}
		assert_int_equal(sweep_records(s, &sink), 0);
		sweep_destroy(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_record_of_a_small_subnet),
		cmocka_unit_test(test_a_table_without_all_its_blocks_is_none),
		cmocka_unit_test(test_nodes_without_a_lid_give_no_records),
		cmocka_unit_test(test_a_port_that_does_not_answer_leads_nowhere),
		cmocka_unit_test(test_answers_are_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
