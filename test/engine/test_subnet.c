/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Native IB ports on real lcores: a subnet manager's settings take effect in link and rc of all
 * workers; VL 15 has its own buffer; violations cause traps; SA records follow the ports.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../store/fake_etcd.h"
#include "engine/verbs_sa.h"
#include "smp.h"

static int
start_bare(void **state)
{
	node_config_ib(false);
	*state = node_start();
	return 0;
}

static int
start_active(void **state)
{
	node_config_ib(true);
	*state = node_start();
	return 0;
}

static int
subnet_stop(void **state)
{
	if (*state != NULL)
		node_stop(*state, 0);
	return 0;
}

static const struct port_attr *
attr_of(struct engine *e, unsigned int port)
{
	return link_port_attr(engine_link(e), port);
}

/* --- SMPs --- */

/* smp-sma 2: ports without a LID are reached by directed route, here and one hop away */
static void
test_directed_route(void **state)
{
	struct engine *e = *state;
	struct engine_mad_answer a;

	a = smp_directed(e, 0, THERE, SMA_NODE_INFO, 0, NULL);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	assert_int_equal(a.mad[MAD_OFF_METHOD], MAD_GET_RESP);
	assert_int_equal(a.mad[DATA + 2], 1); /* a channel adapter */
	assert_int_equal(a.mad[DATA + 3], 2); /* of two ports */
	assert_true(get_be64(a.mad + DATA + 20) == attr_of(e, 1)->guid);
	assert_int_equal(a.mad[DATA + 36], 2); /* LocalPortNum */
	assert_int_equal(a.mad[SMP_OFF_RETURN_PATH + 1], 2); /* it arrived at port 2 */
	a = smp_directed(e, 0, HERE, SMA_NODE_INFO, 0, NULL);
	assert_int_equal(a.mad[DATA + 36], 1);
	assert_true(get_be64(a.mad + DATA + 20) == attr_of(e, 0)->guid);
	/* NodeGUID is the same on both */
	assert_true(get_be64(a.mad + DATA + 12) == port_eui64(attr_of(e, 0)->mac));
	a = smp_directed(e, 1, THERE, SMA_NODE_DESCRIPTION, 0, NULL);
	assert_memory_equal(a.mad + DATA, "polca ", 6);
	assert_int_equal(verdict_total(e, VERDICT_DATAGRAM), 6);
	assert_int_equal(attr_of(e, 0)->state, PORT_STATE_INIT);
	assert_false(attr_of(e, 0)->up);
}

static unsigned int
events_of(struct engine *e, enum event_type type, uint32_t element)
{
	struct event ev[64];
	unsigned int i, n = engine_events(e, ev, 64, NULL), found = 0;

	for (i = 0; i < n; i++)
		found += ev[i].type == type && ev[i].element == element;
	return found;
}

/* Run on a worker: read the LID that it uses. */
static int
lid_here(struct worker *w, void *arg)
{
	struct engine *e = arg;

	(void)w;
	return attr_of(e, 0)->lid;
}

/* A subnet manager sets LIDs and activates the ports: events are raised, SMPs can use LIDs. */
static void
test_subnet_manager_brings_up_the_ports(void **state)
{
	struct engine *e = *state;
	struct engine_mad_answer a;
	struct engine_mad_ask ask = { .ah = &(struct engine_ah){ .dlid = 7 } };
	struct error err = { "" };
	uint32_t id;

	/* without a LID no LID-routed SMP is possible */
	smp_head(ask.mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	assert_int_equal(engine_mad_ask(e, &ask, &id, &err), -EINVAL);
	assert_string_equal(err.text,
		"port0 has no LID yet: only a directed route leads on from it");
	set_port(e, 0, 0x21, 0x21, PORT_STATE_ARMED);
	set_port(e, 1, 0x22, 0x21, PORT_STATE_ARMED);
	assert_int_equal(attr_of(e, 0)->state, PORT_STATE_ARMED);
	assert_int_equal(events_of(e, EVENT_PORT_ACTIVE, 0), 0);
	set_port(e, 0, 0, 0, PORT_STATE_ACTIVE);
	set_port(e, 1, 0, 0, PORT_STATE_ACTIVE);
	assert_int_equal(engine_call(e, 0, lid_here, e), 0x21);
	assert_int_equal(engine_call(e, 1, lid_here, e), 0x21);
	assert_int_equal(attr_of(e, 1)->lid, 0x22);
	assert_int_equal(attr_of(e, 1)->sm_lid, 0x21);
	assert_true(attr_of(e, 0)->up);
	eventually(events_of(e, EVENT_PORT_ACTIVE, 0) == 1);
	a = smp_lid(e, 0, 0x22, SMA_PORT_INFO, 0, NULL);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	assert_int_equal(get_be16(a.mad + DATA + 16), 0x22);
	/* an SMP to our own LID reaches the port itself */
	a = smp_lid(e, 0, 0x21, SMA_PORT_INFO, 0, NULL);
	assert_int_equal(get_be16(a.mad + DATA + 16), 0x21);
	/* local calls see the LID without an SMP */
	{
		uint8_t info[SMA_DATA_LEN];

		read_sma(e, 1, SMA_PORT_INFO, info);
		assert_int_equal(get_be16(info + 16), 0x22);
		assert_int_equal(info[32] & 0xF, PORT_STATE_ACTIVE);
	}
}

/* smp-sma 3: data from an Active port arrive before the SM has activated the receiving port. */
static void
test_data_makes_an_armed_port_active(void **state)
{
	struct engine *e = *state;
	uint8_t mad[MAD_LEN] = { 0 };
	struct raw raw = { .worker = 1, .dest_qpn = 1, .pkey = 0xFFFF, .mad = mad, .n = 1 };

	set_port(e, 0, 0x21, 0x21, PORT_STATE_ARMED);
	set_port(e, 1, 0x22, 0x21, PORT_STATE_ARMED);
	set_port(e, 0, 0, 0, PORT_STATE_ACTIVE);
	raw.av = av_ib(e, 0, 0x21, 0x22);
	assert_int_equal(attr_of(e, 1)->state, PORT_STATE_ARMED);
	send_raw(e, &raw); /* arrives at worker 1; the Q_Key may be wrong */
	eventually(events_of(e, EVENT_PORT_ACTIVE, 1) == 1);
	assert_int_equal(attr_of(e, 1)->state, PORT_STATE_ACTIVE);
	eventually(verdict_total(e, VERDICT_QKEY) == 1); /* counted behind the event */
}

/* Nobody answers: one try, or as many as total_ms allows. */
static void
test_smp_without_answer_times_out(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah = { .dlid = 0x99 };
	struct engine_mad_ask ask = { .ah = &ah, .timeout_ms = 5, .no_retry = true };
	struct engine_mad_answer a;
	struct link_counters c;

	smp_head(ask.mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	a = mad_ask(e, &ask);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_TIMEOUT));
	assert_true(a.elapsed_ns >= 5000000);
	assert_false(a.has_mad);
	assert_int_equal(a.resent, 0);
	engine_port_counters(e, 0, -1, &c);
	assert_int_equal(c.tx_flooded, 1);
	assert_int_equal(verdict_total(e, VERDICT_NOT_OUR_LID), 1);
	ask.no_retry = false;
	ask.retries = 2;
	a = mad_ask(e, &ask);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_TIMEOUT));
	assert_int_equal(a.resent, 2);
	ask.timeout_ms = 600000;
	ask.total_ms = 20;
	a = mad_ask(e, &ask);
	assert_true(a.timed_out);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_CANCELLED));
}

/* --- data --- */

/* RC over native IB, on one worker and across two */
static void
test_rc_over_ib(void **state)
{
	struct engine *e = *state;
	struct pair p;
	int worker;

	for (worker = 0; worker < 2; worker++) {
		pair_create(e, &p, 0, worker);
		fill(p.a.mr.base, BUF_SIZE, 7);
		post_recvs(e, &p.b, 0, 100000, 1);
		assert_int_equal(post(e, &p.a, WR_SEND, &p.b, 0, 0, 100000, 1), 1);
		expect_wc(e, &p.b, 1);
		expect_wc(e, &p.a, 1);
		assert_memory_equal(p.a.mr.base, p.b.mr.base, 100000);
		pair_destroy(e, &p);
	}
	assert_int_equal(verdict_total(e, VERDICT_ADDRESS), 0);
}

static uint16_t
slid_of(struct engine *e, uint32_t qpn)
{
	struct rc_qp_info info;
	struct error err = { "" };

	assert_ok(engine_qp_query(e, qpn, &info, &err));
	return info.attr.av.slid;
}

/*
 * With an LMC a QP may have any of the port's LIDs. Its packets have a GRH if the path is global.
 */
static void
test_path_bits_and_grh(void **state)
{
	struct engine *e;
	struct pair p;
	int grh;

	node_config_ib(true)->sma.port[1].lmc = 1;
	*state = e = node_start();
	eventually(attr_of(e, 0)->up && attr_of(e, 1)->up);
	for (grh = 0; grh < 2; grh++) {
		end_create(e, &p.a, 0);
		end_create(e, &p.b, 1);
		p.b.path_bits = 1;
		p.a.grh = p.b.grh = grh;
		end_connect(e, &p.a, 0, &p.b);
		end_connect(e, &p.b, 1, &p.a);
		assert_int_equal(slid_of(e, p.b.qpn), 3);
		assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 20000, 1), 1);
		expect_wc(e, &p.a, 1);
		pair_destroy(e, &p);
	}
	assert_int_equal(verdict_total(e, VERDICT_ADDRESS), 0);
}

/* The LID of connected QPs changes on all workers; when the old LID is back, they go on. */
static void
test_lid_changes_under_qps(void **state)
{
	struct engine *e = *state;
	struct pair p, q;

	pair_create(e, &p, 0, 1);
	pair_create(e, &q, 1, 0);
	set_port(e, 0, 0x31, 0, 0);
	assert_int_equal(attr_of(e, 0)->lid, 0x31);
	eventually(events_of(e, EVENT_LID_CHANGE, 0) == 1);
	eventually(slid_of(e, p.a.qpn) == 0x31);
	eventually(slid_of(e, q.a.qpn) == 0x31);
	assert_int_equal(slid_of(e, p.b.qpn), 2);
	/* the peer has the old LID: it drops packets from the new one, and its answers are lost */
	assert_int_equal(post(e, &q.a, WR_RDMA_WRITE, &q.b, 0, 0, 16, 1), 1);
	eventually(verdict_total(e, VERDICT_ADDRESS) > 0);
	set_port(e, 0, 1, 0, 0);
	eventually(slid_of(e, q.a.qpn) == 1);
	expect_wc(e, &q.a, 1); /* sent again, from LID 1 */
	pair_destroy(e, &p);
	pair_destroy(e, &q);
}

/* --- VL15 --- */

/* smp-sma 1, seed 004 step 1: an SMP that finds the buffer full is dropped silently and counted. */
static void
test_vl15_buffer_overflows(void **state)
{
	uint8_t mad[MAD_LEN];
	struct engine *e;
	struct raw raw = { .pkey = 0xFFFF, .mad = mad, .n = 24 };
	struct link_counters c;

	node_config_ib(true)->sma.vl15_buffer = 4;
	*state = e = node_start();
	smp_head(mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	raw.av = av_ib(e, 0, 1, 2);
	raw.vl15 = true;
	send_raw(e, &raw);
	eventually(verdict_total(e, VERDICT_VL15_DROPPED) > 0);
	/* each of the burst has one verdict: served, or dropped */
	eventually(
		verdict_total(e, VERDICT_VL15_DROPPED) + verdict_total(e, VERDICT_DATAGRAM) == 24);
	assert_int_equal(verdict_total(e, VERDICT_DATAGRAM), 4);
	engine_port_counters(e, 1, -1, &c);
	assert_int_equal(c.verdict[VERDICT_VL15_DROPPED], 20);
	/* the answers arrive at QP0 of port 0, which expects none */
	eventually(
		verdict_total(e, VERDICT_MAD_UNMATCHED) + verdict_total(e, VERDICT_SMP_NO_SM) == 4);
}

/* An SMP received by any worker is handled by worker 0, which owns QP0. */
static void
test_worker_0_has_qp0(void **state)
{
	struct engine *e = *state;
	uint8_t mad[MAD_LEN];
	struct raw raw = { .worker = 1, .pkey = 0xFFFF, .mad = mad, .n = 3 };
	struct link_counters c;
	struct sma_counters s;

	smp_head(mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	raw.av = av_ib(e, 0, 1, 2);
	raw.vl15 = true;
	send_raw(e, &raw); /* arrives at worker 1 */
	eventually(verdict_total(e, VERDICT_DATAGRAM) == 3);
	engine_port_counters(e, 1, 0, &c);
	assert_int_equal(c.verdict[VERDICT_DATAGRAM], 3);
	assert_int_equal(c.rx_packets, 0);
	engine_sma_counters(e, 1, &s);
	assert_int_equal(s.smp_get, 3);
}

/* Send bursts of QP1 datagrams for no agent, which all arrive at worker 1. */
static void
subnet_flood(struct engine *e, uint8_t seed)
{
	uint8_t mad[MAD_LEN] = { 1, 0x0A, 1, 1 };
	struct raw raw = {
		.worker = 1,
		.dest_qpn = 1,
		.src_qpn = 1,
		.qkey = MAD_QKEY,
		.pkey = 0xFFFF,
		.mad = mad,
		.n = 30,
	};

	mad[15] = seed; /* part of the TID, which chooses the worker */
	raw.av = av_ib(e, 0, 1, 2);
	send_raw(e, &raw);
}

/* Seed 004: SMPs have a hand-off ring of their own, so other packets cannot delay them. */
static void
test_smps_arrive_under_a_flood(void **state)
{
	uint8_t mad[MAD_LEN];
	struct engine *e;
	struct raw raw = { .worker = 1, .pkey = 0xFFFF, .mad = mad, .n = 24, .vl15 = true };
	struct sma_counters s;
	unsigned int i;

	node_config_ib(true)->handoff_ring = 2; /* room for one */
	*state = e = node_start();
	eventually(attr_of(e, 0)->up && attr_of(e, 1)->up);
	smp_head(mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	raw.av = av_ib(e, 0, 1, 2);
	for (i = 0; i < 40; i++) {
		subnet_flood(e, (uint8_t)i);
		send_raw(e, &raw);
		eventually((engine_sma_counters(e, 1, &s), s.smp_get == 24 * (i + 1)));
	}
	assert_true(verdict_total(e, VERDICT_HANDOFF_FULL) > 0);
	assert_int_equal(verdict_total(e, VERDICT_VL15_DROPPED), 0);
	/* the answers arrive at the other port, which expects none */
	eventually(verdict_total(e, VERDICT_MAD_UNMATCHED) + verdict_total(e, VERDICT_SMP_NO_SM) >=
		24 * 40);
}

/* smp-sma 1: QP0 uses VL 15 only, and VL 15 carries only packets of QP0. */
static void
test_vl15_is_for_qp0(void **state)
{
	struct engine *e = *state;
	uint8_t mad[MAD_LEN];
	struct raw raw = { .pkey = 0xFFFF, .mad = mad, .n = 3 };

	smp_head(mad, MAD_CLASS_SUBN_LID, MAD_GET, SMA_NODE_INFO, 0);
	raw.av = av_ib(e, 0, 1, 2);
	send_raw(e, &raw); /* QP0 on VL 0 */
	eventually(verdict_total(e, VERDICT_SMP) == 3);
	raw.vl15 = true;
	raw.dest_qpn = 1;
	raw.qkey = MAD_QKEY;
	send_raw(e, &raw);
	eventually(verdict_total(e, VERDICT_SMP) == 6);
	raw.dest_qpn = 0x4711;
	send_raw(e, &raw);
	eventually(verdict_total(e, VERDICT_SMP) == 9);
	assert_int_equal(verdict_total(e, VERDICT_DATAGRAM), 0);
}

/* smp-sma 1: a RoCE port has no QP0 */
static void
test_no_qp0_on_roce(void **state)
{
	uint8_t mad[MAD_LEN];
	struct engine *e;
	struct raw raw = { .pkey = 0xFFFF, .mad = mad, .n = 2 };
	struct engine_mad_ask ask = { .ah = &(struct engine_ah){ .dlid = 1 } };
	struct error err = { "" };
	struct sma_counters c;
	uint32_t id, cursor = 0;

	node_config();
	*state = e = node_start();
	smp_head(mad, MAD_CLASS_SUBN_ROUTED, MAD_GET, SMA_NODE_INFO, 0);
	raw.av = (struct av){
		.encap = ENCAP_ROCEV2_IPV4,
		.port = 0,
		.vlan = PATH_NO_VLAN,
		.sgid = attr_of(e, 0)->gid[0].gid,
		.dgid = attr_of(e, 1)->gid[0].gid,
	};
	memcpy(raw.av.smac, attr_of(e, 0)->mac, 6);
	memcpy(raw.av.dmac, attr_of(e, 1)->mac, 6);
	if (!gid_is_ipv4(&raw.av.sgid))
		raw.av.encap = ENCAP_ROCEV2_IPV6;
	send_raw(e, &raw);
	eventually(verdict_total(e, VERDICT_SMP) == 2);
	memcpy(ask.mad, mad, MAD_LEN);
	assert_int_equal(engine_mad_ask(e, &ask, &id, &err), -EINVAL);
	assert_string_equal(err.text, "port: port0 is no native InfiniBand port: it has no QP0");
	assert_int_equal(engine_trap_send(e, 9, 129, NULL, &id, &err), -EINVAL);
	assert_string_equal(err.text, "port: got 9, there are 2 ports from 0 on");
	assert_int_equal(engine_trap_list(e, &cursor, NULL, 0), 0);
	assert_int_equal(engine_trap_repress(e, 1, &err), -ENOENT);
	assert_false(engine_sma_managed(e, 0));
	assert_false(engine_sma_managed(e, 99));
	engine_sma_counters(e, 0, &c);
	assert_int_equal(c.smp_get, 0);
}

/* --- violations --- */

static bool
find_trap(struct engine *e, uint16_t number, struct sma_trap_info *info)
{
	uint32_t cursor = 0;

	while (engine_trap_list(e, &cursor, info, 1) == 1)
		if (info->number == number)
			return true;
	return false;
}

/* smp-sma 5: a P_Key violation on any worker is counted in PortInfo and causes trap 257. */
static void
test_bad_pkey_raises_trap_257(void **state)
{
	uint8_t pkeys[SMP_DATA_LEN] = { 0x80, 0x01 }, info[SMA_DATA_LEN];
	struct engine *e = *state;
	struct sma_trap_info trap;
	struct engine_mad_answer a;
	struct error err = { "" };
	struct pair p;

	pair_create(e, &p, 0, 1);
	a = smp_directed(e, 1, HERE, SMA_PKEY_TABLE, 0, pkeys);
	assert_string_equal(mad_end_name(a.end), mad_end_name(MAD_END_OK));
	pause_ms(50); /* worker 1 must have had a tick */
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 1), 1);
	eventually(find_trap(e, 257, &trap));
	assert_int_equal(trap.port, 1);
	assert_int_equal(get_be16(trap.notice + 12), 1); /* from LID 1 */
	assert_int_equal(get_be16(trap.notice + 14), 2);
	assert_int_equal(get_be32(trap.notice + 16), 0xFFFF);
	assert_int_equal(get_be24(trap.notice + 20), p.a.qpn);
	assert_int_equal(get_be24(trap.notice + 24), p.b.qpn);
	assert_true(verdict_total(e, VERDICT_PKEY) > 0);
	do {
		pause_ms(1);
		read_sma(e, 1, SMA_PORT_INFO, info);
	} while (get_be16(info + 46) == 0);
	assert_int_equal(get_be16(info + 48), 0);
	assert_ok(engine_trap_repress(e, trap.id, &err));
	assert_true(find_trap(e, 257, &trap));
	/* with the P_Key restored the request succeeds */
	put_be16(pkeys, 0xFFFF);
	smp_directed(e, 1, HERE, SMA_PKEY_TABLE, 0, pkeys);
	expect_wc(e, &p.a, 1);
	pair_destroy(e, &p);
}

/* A wrong Q_Key on QP1 causes trap 258. */
static void
test_bad_qkey_raises_trap_258(void **state)
{
	struct engine *e = *state;
	uint8_t mad[MAD_LEN], info[SMA_DATA_LEN];
	struct raw raw = {
		.dest_qpn = 1,
		.src_qpn = 0x55,
		.qkey = 0x1234,
		.pkey = 0xFFFF,
		.mad = mad,
		.n = 3,
	};
	struct sma_trap_info trap;

	smp_head(mad, 0x32, MAD_GET, 0, 0);
	raw.av = av_ib(e, 0, 1, 2);
	send_raw(e, &raw);
	eventually(find_trap(e, 258, &trap));
	assert_int_equal(get_be32(trap.notice + 16), 0x1234);
	assert_int_equal(get_be24(trap.notice + 20), 0x55);
	assert_int_equal(get_be24(trap.notice + 24), 1);
	assert_int_equal(verdict_total(e, VERDICT_QKEY), 3);
	do {
		pause_ms(1);
		read_sma(e, 1, SMA_PORT_INFO, info);
	} while (get_be16(info + 48) != 3);
	assert_int_equal(get_be16(info + 46), 0);
}

/* An operator may send a trap. */
static void
test_operator_may_send_a_trap(void **state)
{
	struct engine *e = *state;
	struct sma_trap_info trap;
	struct sma_counters c;
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_trap_send(e, 0, 144, NULL, &id, &err));
	assert_true(find_trap(e, 144, &trap));
	assert_int_equal(trap.id, id);
	assert_int_equal(trap.port, 0);
	assert_ok(engine_trap_repress(e, id, &err));
	assert_int_equal(engine_trap_repress(e, id + 1000, &err), -ENOENT);
	assert_true(find_trap(e, 144, &trap));
	assert_string_equal(sma_trap_state_name(trap.state),
		sma_trap_state_name(SMA_TRAP_REPRESSED));
	engine_sma_counters(e, 0, &c);
	assert_int_equal(c.traps_raised, 1);
}

/* --- the SA's records of our own ports --- */

static unsigned int
count_records(struct engine *e, uint16_t attribute, uint16_t lid, uint8_t *rec)
{
	const struct sa_record_type *t, *want = sa_record_type(attribute);
	uint8_t bytes[SA_RECORD_MAX];
	struct error err = { "" };
	uint64_t cursor = 0;
	unsigned int n = 0;
	uint32_t rid;
	int ret;

	while ((ret = engine_sa_export(e, &cursor, &t, &rid, bytes, &err)) == 1) {
		if (t != want || get_be16(bytes) != lid)
			continue;
		n++;
		if (rec != NULL)
			memcpy(rec, bytes, SA_RECORD_MAX);
	}
	assert_ok(ret);
	return n;
}

/* SA records of our ports are the bytes of the agent's attributes, and follow the LID. */
static void
test_sa_records_follow_the_port(void **state)
{
	static const uint16_t types[] = { SA_NODE, SA_PORT_INFO, SA_GUID_INFO, SA_PKEY_TABLE };
	struct engine *e = *state;
	uint8_t rec[SA_RECORD_MAX], info[SMA_DATA_LEN];
	unsigned int i;

	/* no records without a LID */
	engine_watch(e);
	assert_int_equal(count_records(e, SA_NODE, 0, NULL), 0);
	assert_int_equal(count_records(e, SA_NODE, 1, NULL), 0);
	set_port(e, 0, 0x21, 0x22, PORT_STATE_ARMED);
	set_port(e, 1, 0x22, 0x22, PORT_STATE_ARMED);
	eventually(
		(engine_watch(e), count_records(e, SA_LINK, 0x22, NULL) == 1)); /* the last one */
	for (i = 0; i < 4; i++)
		assert_int_equal(count_records(e, types[i], 0x21, rec), 1);
	assert_int_equal(count_records(e, SA_LINK, 0x21, rec), 1);
	assert_int_equal(sa_get_named(sa_record_type(SA_LINK), "to_lid", rec), 0x22);
	assert_int_equal(count_records(e, SA_PORT_INFO, 0x21, rec), 1);
	read_sma(e, 0, SMA_PORT_INFO, info);
	assert_memory_equal(rec + 4, info, SMA_DATA_LEN);
	assert_int_equal(count_records(e, SA_NODE, 0x21, rec), 1);
	read_sma(e, 0, SMA_NODE_INFO, info);
	assert_memory_equal(rec + 4, info, 40);
	assert_memory_equal(rec + 44, "polca ", 6);
	/* another LID, another state */
	set_port(e, 0, 0x30, 0, PORT_STATE_ACTIVE);
	eventually((engine_watch(e),
		count_records(e, SA_LINK, 0x22, rec) == 1 &&
			sa_get_named(sa_record_type(SA_LINK), "to_lid", rec) == 0x30));
	for (i = 0; i < 4; i++) {
		assert_int_equal(count_records(e, types[i], 0x21, NULL), 0);
		assert_int_equal(count_records(e, types[i], 0x30, NULL), 1);
		assert_int_equal(count_records(e, types[i], 0x22, NULL), 1);
	}
	assert_int_equal(count_records(e, SA_LINK, 0x21, NULL), 0);
	assert_int_equal(count_records(e, SA_LINK, 0x22, rec), 1);
	assert_int_equal(sa_get_named(sa_record_type(SA_LINK), "to_lid", rec), 0x30);
	assert_int_equal(count_records(e, SA_PORT_INFO, 0x30, rec), 1);
	assert_int_equal(sa_get_named(sa_record_type(SA_PORT_INFO), "port_state", rec), 4);
}

static struct engine *
subnet_start_on_disk(const char *dir, uint16_t lid)
{
	struct engine_config *c = node_config_ib(true);

	snprintf(c->sa.path, sizeof(c->sa.path), "%s", dir);
	c->sa.map_mb = 64;
	c->sma.port[0].lid = lid;
	return node_start();
}

static void
subnet_remove_dir(const char *dir)
{
	static const char *const names[] = { "/data.mdb", "/lock.mdb", "/polca.lock", "" };
	char path[128];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s%s", dir, names[i]);
		remove(path);
	}
}

/* After a restart with another LID a port's records are found by GUID; other records stay. */
static void
test_sa_records_follow_the_port_over_a_restart(void **state)
{
	char dir[] = "/tmp/test_engine_subnet_XXXXXX";
	const struct sa_record_type *t = sa_record_type(SA_NODE);
	struct sa_change other = { .type = t };
	struct engine *e;
	uint8_t rec[SA_RECORD_MAX];

	assert_non_null(mkdtemp(dir));
	e = subnet_start_on_disk(dir, 0x51);
	assert_int_equal(count_records(e, SA_NODE, 0x51, rec), 1);
	sa_put_named(t, "lid", other.rec, 0x77);
	sa_put_named(t, "port_guid", other.rec, 0x4711);
	change_records(e, &other, 1);
	node_stop(e, 0);
	e = subnet_start_on_disk(dir, 0x52);
	*state = e;
	subnet_remove_dir(dir);
	assert_int_equal(count_records(e, SA_NODE, 0x51, NULL), 0);
	assert_int_equal(count_records(e, SA_PORT_INFO, 0x51, NULL), 0);
	assert_int_equal(count_records(e, SA_NODE, 0x52, NULL), 1);
	assert_int_equal(count_records(e, SA_NODE, 0x77, NULL), 1);
	assert_true(sa_get_named(t, "port_guid", rec) == attr_of(e, 0)->guid);
}

/* The control thread does not wait for etcd, and a failed update is tried again. */
static void
test_sa_records_in_a_fleet_are_tried_again(void **state)
{
	char dir[] = "/tmp/test_engine_subnet_XXXXXX";
	struct fake_etcd *etcd = fake_etcd_start();
	struct engine_config *c = node_config_ib(true);
	struct fleet_config *f = &c->sa.fleet;
	struct fleet_status before, after;
	struct engine *e;

	assert_non_null(mkdtemp(dir));
	snprintf(c->sa.path, sizeof(c->sa.path), "%s", dir);
	c->sa.map_mb = 64;
	*f = (struct fleet_config){ .num_endpoints = 1, .lease_s = 2, .max_txn_ops = 128 };
	snprintf(f->endpoint[0].url, sizeof(f->endpoint[0].url), "%s", fake_etcd_url(etcd));
	strcpy(f->prefix, "/p");
	strcpy(f->name, "a");
	e = node_start(); /* nobody leads yet */
	*state = e;
	eventually((engine_watch(e), count_records(e, SA_NODE, 1, NULL) == 1));
	fake_etcd_next(etcd, "/v3/kv/txn", "/p/c/change", FAKE_LOSE_REQUEST, 1);
	engine_fleet_status(e, &before);
	set_port(e, 0, 0x30, 0, PORT_STATE_ACTIVE);
	engine_watch(e); /* etcd's answer never comes, which takes a second to learn */
	engine_fleet_status(e, &after);
	assert_int_equal(after.changes_failed, before.changes_failed);
	eventually((engine_watch(e), count_records(e, SA_NODE, 0x30, NULL) == 1));
	engine_fleet_status(e, &after);
	assert_int_equal(after.changes_failed, before.changes_failed + 1);
	node_stop(e, 0);
	*state = NULL;
	fake_etcd_stop(etcd);
	subnet_remove_dir(dir);
}

/* Queries to our own SA use our own LID. */
static void
test_sa_over_ib(void **state)
{
	struct engine *e = *state;
	struct engine_ah ah[2] = { { .port = 0 }, { .port = 1, .dlid = 1 } };
	struct error err = { "" };
	int i;

	for (i = 0; i < 2; i++) {
		struct engine_sa_query ask = { .own = i == 0, .ah = &ah[i], .worker = -1 };
		struct engine_sa_progress p;
		uint32_t id;

		ask.query = (struct sa_query){
			.op = SA_OP_TABLE,
			.version = SA_V2,
			.type = sa_record_type(SA_NODE),
			.resp_time = 14,
			.sm_key = engine_sa_key(e),
		};
		assert_ok(engine_sa_query(e, &ask, &id, &err));
		do {
			pause_ms(1);
			assert_ok(engine_sa_progress(e, id, &p, &err));
		} while (!p.done);
		assert_string_equal(mad_end_name(p.end), mad_end_name(MAD_END_OK));
		assert_int_equal(p.records, 2);
	}
}

/* smp-sma 1: the VL 15 buffer holds at least one packet. */
static void
test_bad_vl15_buffer(void **state)
{
	struct engine_config *c = node_config_ib(true);
	struct error err = { "" };

	*state = NULL;
	c->sma.vl15_buffer = 0;
	assert_null(engine_create(c, &err));
	assert_string_equal(err.text, "sma.vl15_buffer: got 0, expected 1 to 256");
}

#define BARE(t)   cmocka_unit_test_setup_teardown(t, start_bare, subnet_stop)
#define ACTIVE(t) cmocka_unit_test_setup_teardown(t, start_active, subnet_stop)
#define OWN(t)    cmocka_unit_test_teardown(t, subnet_stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BARE(test_directed_route),
		BARE(test_subnet_manager_brings_up_the_ports),
		BARE(test_data_makes_an_armed_port_active),
		ACTIVE(test_smp_without_answer_times_out),
		ACTIVE(test_rc_over_ib),
		OWN(test_path_bits_and_grh),
		ACTIVE(test_lid_changes_under_qps),
		OWN(test_vl15_buffer_overflows),
		OWN(test_smps_arrive_under_a_flood),
		ACTIVE(test_worker_0_has_qp0),
		ACTIVE(test_vl15_is_for_qp0),
		OWN(test_no_qp0_on_roce),
		ACTIVE(test_bad_pkey_raises_trap_257),
		ACTIVE(test_bad_qkey_raises_trap_258),
		ACTIVE(test_operator_may_send_a_trap),
		BARE(test_sa_records_follow_the_port),
		OWN(test_sa_records_follow_the_port_over_a_restart),
		OWN(test_sa_records_in_a_fleet_are_tried_again),
		ACTIVE(test_sa_over_ib),
		OWN(test_bad_vl15_buffer),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
