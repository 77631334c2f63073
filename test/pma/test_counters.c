/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Class 0x04's ClassPortInfo, PortCounters and PortCountersExtended (pma.md 2, 3). */

#include <string.h>

/* opensm has words of its own for work requests */
#define WR_SEND       OSM_WR_SEND
#define WR_RDMA_WRITE OSM_WR_RDMA_WRITE
#define WR_RDMA_READ  OSM_WR_RDMA_READ
#include <iba/ib_types.h>
#undef WR_SEND
#undef WR_RDMA_WRITE
#undef WR_RDMA_READ

#include "bench.h"

#define DATA_LEN (MAD_LEN - 64)

/* Set total c of a port; each total is different. */
static uint64_t
total(unsigned int port, unsigned int c)
{
	return 1 + c + 100 * (uint64_t)port;
}

static void
fill_totals(struct bench *b)
{
	unsigned int port, c;

	for (port = 0; port < BENCH_PORTS; port++)
		for (c = 0; c < PMA_COUNTERS; c++)
			b->totals[port].value[c] = total(port, c);
}

/* --- ClassPortInfo --- */

static void
test_class_port_info(void **state)
{
	const uint8_t *d = ask(*state, MAD_GET, CLASS_PORT_INFO, NULL, 0);
	uint8_t want[DATA_LEN] = { 1, 1, 0x93,
		0x00, /* AllPortSelect, ExtendedWidth, PortXmitWait, QP1Dropped */
		0, 0, 0, 2 << 5 | 13 }; /* error counters in PortCountersExtended; RespTimeValue */

	assert_memory_equal(d, want, DATA_LEN);
}

static void
test_what_is_not_there(void **state)
{
	uint8_t mad[MAD_LEN] = { 1, 0x04, 1, 0x12 };
	struct bench *b = *state;

	ask(b, MAD_GET, 0x15, NULL, 0x000C);
	ask(b, MAD_GET, 0x02, NULL, 0x000C);
	ask(b, MAD_SET, CLASS_PORT_INFO, NULL, 0x000C);
	ask(b, MAD_SET, SAMPLES_RESULT, NULL, 0x000C);
	put_be16(mad + MAD_OFF_ATTRIBUTE, PORT_COUNTERS);
	say(b->h, mad);
	assert_int_equal(get_be16(next_sent(&b->h->a) + MAD_OFF_STATUS), 0x0008);
	mad[3] = MAD_GET;
	put_be32(mad + MAD_OFF_MODIFIER, 1);
	mad[65] = 1;
	say(b->h, mad);
	assert_int_equal(get_be16(next_sent(&b->h->a) + MAD_OFF_STATUS), 0x001C);
	mad[2] = 2;
	say(b->h, mad);
	assert_int_equal(get_be16(next_sent(&b->h->a) + MAD_OFF_STATUS), 0x0004);
}

/* --- positions of the counters, from opensm's header --- */

static void
test_port_counters_fields(void **state)
{
	struct bench *b = *state;
	const uint8_t *d;
	ib_port_counters_t pc;

	fill_totals(b);
	b->totals[0].value[PMA_LOCAL_INTEGRITY] = 7;
	b->totals[0].value[PMA_EXCESSIVE_OVERRUN] = 9;
	d = get_port(b, PORT_COUNTERS, 1, 0);
	memcpy(&pc, d, sizeof(pc));
	assert_int_equal(pc.port_select, 1);
	assert_int_equal(cl_ntoh16(pc.symbol_err_cnt), total(0, PMA_SYMBOL_ERROR));
	assert_int_equal(pc.link_err_recover, total(0, PMA_LINK_RECOVERY));
	assert_int_equal(pc.link_downed, 0); /* counted by the agent itself */
	assert_int_equal(cl_ntoh16(pc.rcv_err), total(0, PMA_RCV_ERRORS));
	assert_int_equal(cl_ntoh16(pc.rcv_rem_phys_err), total(0, PMA_RCV_REMOTE_PHYSICAL));
	assert_int_equal(cl_ntoh16(pc.rcv_switch_relay_err), total(0, PMA_RCV_SWITCH_RELAY));
	assert_int_equal(cl_ntoh16(pc.xmit_discards), total(0, PMA_XMIT_DISCARDS));
	assert_int_equal(pc.xmit_constraint_err, total(0, PMA_XMIT_CONSTRAINT));
	assert_int_equal(pc.rcv_constraint_err, total(0, PMA_RCV_CONSTRAINT));
	assert_int_equal(PC_LINK_INT(pc.link_int_buffer_overrun), 7);
	assert_int_equal(PC_BUF_OVERRUN(pc.link_int_buffer_overrun), 9);
	assert_int_equal(cl_ntoh16(pc.qp1_dropped), total(0, PMA_QP1_DROPPED));
	assert_int_equal(cl_ntoh16(pc.vl15_dropped), total(0, PMA_VL15_DROPPED));
	assert_int_equal(cl_ntoh32(pc.xmit_data), total(0, PMA_XMIT_DATA));
	assert_int_equal(cl_ntoh32(pc.rcv_data), total(0, PMA_RCV_DATA));
	assert_int_equal(cl_ntoh32(pc.xmit_pkts), total(0, PMA_XMIT_PKTS));
	assert_int_equal(cl_ntoh32(pc.rcv_pkts), total(0, PMA_RCV_PKTS));
	assert_int_equal(cl_ntoh32(pc.xmit_wait), total(0, PMA_XMIT_WAIT));
}

static void
test_port_counters_ext_fields(void **state)
{
	ib_port_counters_ext_t pc;
	struct bench *b = *state;
	unsigned int i;
	/* in the order of opensm's header, from xmit_data on */
	static const uint8_t order[] = { PMA_XMIT_DATA, PMA_RCV_DATA, PMA_XMIT_PKTS, PMA_RCV_PKTS,
		PMA_UNICAST_XMIT, PMA_UNICAST_RCV, PMA_MULTICAST_XMIT, PMA_MULTICAST_RCV,
		PMA_SYMBOL_ERROR, PMA_LINK_RECOVERY, PMA_LINK_DOWNED, PMA_RCV_ERRORS,
		PMA_RCV_REMOTE_PHYSICAL, PMA_RCV_SWITCH_RELAY, PMA_XMIT_DISCARDS,
		PMA_XMIT_CONSTRAINT, PMA_RCV_CONSTRAINT, PMA_LOCAL_INTEGRITY, PMA_EXCESSIVE_OVERRUN,
		PMA_VL15_DROPPED, PMA_XMIT_WAIT, PMA_QP1_DROPPED };
	const uint8_t *d;

	fill_totals(b);
	b->totals[0].value[PMA_XMIT_DATA] = UINT64_C(0x123456789ABCDEF0);
	d = get_port(b, PORT_COUNTERS_EXT, 1, 0);
	memcpy(&pc, d, sizeof(pc));
	assert_int_equal(pc.port_select, 1);
	assert_true(cl_ntoh64(pc.xmit_data) == UINT64_C(0x123456789ABCDEF0));
	assert_int_equal(cl_ntoh64(pc.multicast_rcv_pkts), total(0, PMA_MULTICAST_RCV));
	assert_int_equal(cl_ntoh64(pc.symbol_err_cnt), total(0, PMA_SYMBOL_ERROR));
	assert_int_equal(cl_ntoh64(pc.qp1_dropped), total(0, PMA_QP1_DROPPED));
	for (i = 1; i < sizeof(order); i++)
		if (order[i] != PMA_LINK_DOWNED)
			assert_int_equal(get_be64(d + offsetof(ib_port_counters_ext_t, xmit_data) +
						 8 * i),
				total(0, order[i]));
}

/* --- saturation --- */

static void
test_counters_stop_at_their_largest_value(void **state)
{
	struct bench *b = *state;
	uint8_t want[DATA_LEN] = { 0, 1 };
	unsigned int c;

	for (c = 0; c < PMA_COUNTERS; c++)
		b->totals[0].value[c] = UINT64_C(1) << 40;
	for (c = 0; c < 300; c++) {
		pma_link(b->pma, 0, true);
		pma_link(b->pma, 0, false);
	}
	memset(want + 4, 0xFF, 40);
	want[18] = 0; /* CounterSelect2 */
	assert_memory_equal(get_port(b, PORT_COUNTERS, 1, 0), want, DATA_LEN);
	b->totals[1].value[PMA_LOCAL_INTEGRITY] = 14;
	b->totals[1].value[PMA_EXCESSIVE_OVERRUN] = 15;
	assert_int_equal(get_port(b, PORT_COUNTERS, 2, 0)[19], 0xEF);
	b->totals[1].value[PMA_LOCAL_INTEGRITY] = 16;
	assert_int_equal(get_port(b, PORT_COUNTERS, 2, 0)[19], 0xFF);
}

/* --- reset and set --- */

static void
counters_set(struct bench *b, uint16_t attribute, uint8_t port, uint16_t select, uint32_t select2)
{
	uint8_t data[DATA_LEN] = { 0, port };

	put_be16(data + 2, select);
	if (attribute == PORT_COUNTERS)
		data[18] = (uint8_t)select2;
	else
		put_be32(data + 4, select2);
	ask(b, MAD_SET, attribute, data, 0);
}

/* Each bit resets one counter only; a Set is answered like the next Get. */
static void
test_each_select_bit_resets_one_counter(void **state)
{
	static const uint8_t by_bit[] = { PMA_SYMBOL_ERROR, PMA_LINK_RECOVERY, PMA_LINK_DOWNED,
		PMA_RCV_ERRORS, PMA_RCV_REMOTE_PHYSICAL, PMA_RCV_SWITCH_RELAY, PMA_XMIT_DISCARDS,
		PMA_XMIT_CONSTRAINT, PMA_RCV_CONSTRAINT, PMA_LOCAL_INTEGRITY, PMA_EXCESSIVE_OVERRUN,
		PMA_VL15_DROPPED, PMA_XMIT_DATA, PMA_RCV_DATA, PMA_XMIT_PKTS, PMA_RCV_PKTS,
		PMA_XMIT_WAIT, PMA_QP1_DROPPED };
	struct bench *b = *state;
	uint8_t before[DATA_LEN], after[DATA_LEN];
	unsigned int bit, i, changed;

	pma_link(b->pma, 0, true);
	for (bit = 0; bit < sizeof(by_bit); bit++) {
		fill_totals(b);
		b->totals[0].value[PMA_LOCAL_INTEGRITY] =
			b->totals[0].value[PMA_EXCESSIVE_OVERRUN] = 5;
		pma_link(b->pma, 0, false);
		pma_link(b->pma, 0, true);
		memcpy(before, get_port(b, PORT_COUNTERS, 1, 0), DATA_LEN);
		counters_set(b, PORT_COUNTERS, 1, (uint16_t)(1u << bit), 1u << bit >> 16);
		memcpy(after, get_port(b, PORT_COUNTERS, 1, 0), DATA_LEN);
		for (i = changed = 0; i < DATA_LEN; i++)
			if (before[i] != after[i])
				changed++;
		assert_int_equal(changed, 1); /* one byte: totals are small */
		b->totals[0].value[by_bit[bit]]++;
		if (by_bit[bit] == PMA_LINK_DOWNED) {
			pma_link(b->pma, 0, false);
			pma_link(b->pma, 0, true);
		}
		for (i = changed = 0; i < DATA_LEN; i++) {
			uint8_t now = get_port(b, PORT_COUNTERS, 1, 0)[i];

			changed += now != after[i];
			assert_true(now == after[i] || now == after[i] + 1 || now == after[i] + 16);
		}
		assert_int_equal(changed, 1);
	}
}

/* A reset does not change the totals, and shows in both attributes. */
static void
test_reset_moves_the_agents_offset_only(void **state)
{
	struct bench *b = *state;
	struct pma_totals before;

	fill_totals(b);
	before = b->totals[0];
	counters_set(b, PORT_COUNTERS, 1, 0xFFFF, 0x3);
	assert_memory_equal(&b->totals[0], &before, sizeof(before));
	assert_int_equal(get_be64(get_port(b, PORT_COUNTERS_EXT, 1, 0) + 8), 0);
	assert_int_equal(get_be64(get_port(b, PORT_COUNTERS_EXT, 1, 0) + 40),
		total(0, PMA_UNICAST_XMIT));
	b->totals[0].value[PMA_XMIT_DATA] += 5;
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 1, 0) + 24), 5);
	counters_set(b, PORT_COUNTERS_EXT, 1, 0xFF, 0x3FFF);
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 1, 0) + 24), 0);
	assert_int_equal(get_be64(get_port(b, PORT_COUNTERS_EXT, 1, 0) + 40), 0);
	/* the other ports' are as they were */
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 2, 0) + 24), total(1, PMA_XMIT_DATA));
}

/*
 * Totals are read while workers count: one summed from several may seem to fall back for a moment.
 */
static void
test_total_that_falls_behind(void **state)
{
	struct bench *b = *state;

	fill_totals(b);
	counters_set(b, PORT_COUNTERS, 1, 0xFFFF, 0x3);
	b->totals[0].value[PMA_RCV_DATA]--;
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 1, 0) + 28), 0);
	b->totals[0].value[PMA_RCV_DATA] += 3;
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 1, 0) + 28), 2);
}

static void
test_set_writes_the_value(void **state)
{
	uint8_t data[DATA_LEN] = { 0, 1, 0x10, 0x08 }; /* PortXmitData, PortRcvErrors */
	struct bench *b = *state;
	const uint8_t *d;

	fill_totals(b);
	put_be32(data + 24, 0xFFFFFFFE);
	put_be16(data + 8, 77);
	put_be32(data + 28, 99); /* not selected */
	d = ask(b, MAD_SET, PORT_COUNTERS, data, 0);
	assert_int_equal(get_be32(d + 24), 0xFFFFFFFE);
	assert_int_equal(get_be16(d + 8), 77);
	assert_int_equal(get_be32(d + 28), total(0, PMA_RCV_DATA));
	b->totals[0].value[PMA_XMIT_DATA] += 3; /* one up, then it sticks */
	assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, 1, 0) + 24), 0xFFFFFFFF);
	assert_true(get_be64(get_port(b, PORT_COUNTERS_EXT, 1, 0) + 8) == UINT64_C(0x100000001));
}

/* --- PortSelect --- */

static void
test_port_select(void **state)
{
	static const uint8_t none[] = { 0, BENCH_PORTS + 1, 0xFE };
	uint8_t want[DATA_LEN] = { 0 };
	struct bench *b = *state;
	unsigned int i;

	fill_totals(b);
	for (i = 1; i <= BENCH_PORTS; i++)
		assert_int_equal(get_be32(get_port(b, PORT_COUNTERS, (uint8_t)i, 0) + 24),
			total(i - 1, PMA_XMIT_DATA));
	for (i = 0; i < sizeof(none); i++) {
		want[1] = none[i];
		assert_memory_equal(get_port(b, PORT_COUNTERS, none[i], 0x001C), want, DATA_LEN);
		get_port(b, PORT_COUNTERS_EXT, none[i], 0x001C);
	}
}

static void
test_all_ports_are_their_sum(void **state)
{
	struct bench *b = *state;
	const uint8_t *d;

	fill_totals(b);
	b->totals[0].value[PMA_RCV_DATA] = b->totals[1].value[PMA_RCV_DATA] = UINT64_MAX - 1;
	d = get_port(b, PORT_COUNTERS_EXT, 0xFF, 0);
	assert_int_equal(d[1], 0xFF);
	assert_int_equal(get_be64(d + 8),
		total(0, PMA_XMIT_DATA) + total(1, PMA_XMIT_DATA) + total(2, PMA_XMIT_DATA));
	assert_true(get_be64(d + 16) == UINT64_MAX);
	counters_set(b, PORT_COUNTERS, 0xFF, 0xF000, 0);
	assert_int_equal(get_be64(get_port(b, PORT_COUNTERS_EXT, 0xFF, 0) + 8), 0);
	assert_int_equal(get_be64(get_port(b, PORT_COUNTERS_EXT, 3, 0) + 8), 0);
}

/* --- the counter of the agent itself --- */

static void
test_link_downed(void **state)
{
	struct bench *b = *state;

	pma_link(b->pma, 1, false); /* at the start: the link was not up before */
	pma_link(b->pma, 1, true);
	pma_link(b->pma, 1, true);
	assert_int_equal(get_port(b, PORT_COUNTERS, 2, 0)[7], 0);
	pma_link(b->pma, 1, false);
	pma_link(b->pma, 1, false);
	assert_int_equal(get_port(b, PORT_COUNTERS, 2, 0)[7], 1);
	assert_int_equal(get_port(b, PORT_COUNTERS, 1, 0)[7], 0);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, bench_setup, bench_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_class_port_info),
		TEST(test_what_is_not_there),
		TEST(test_port_counters_fields),
		TEST(test_port_counters_ext_fields),
		TEST(test_counters_stop_at_their_largest_value),
		TEST(test_each_select_bit_resets_one_counter),
		TEST(test_reset_moves_the_agents_offset_only),
		TEST(test_total_that_falls_behind),
		TEST(test_set_writes_the_value),
		TEST(test_port_select),
		TEST(test_all_ports_are_their_sum),
		TEST(test_link_downed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
