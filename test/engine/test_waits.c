/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * No wait is shorter than requested, wherever the worker stalls (rc-transport 8). The test polls
 * the workers and sets their clock: it advances by 20 us per turn, and by stalls that the test
 * inserts. A wait begins when the driver takes or delivers its packet; callbacks there note the
 * time.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ip.h>

#include "engine/verbs_private.h"
#include "node.h"
#include "sa/layout.h"

/* clang-format off */
#define MS(n)     ((uint64_t)(n) * rte_get_tsc_hz() / 1000)
/* clang-format on */
#define ACK_WAIT MS(1073) /* Local ACK Timeout 18 (node.c): 4.096 us * 2^18 */
/* clang-format off */
#define RNR_WAIT  (MS(1) * 64 / 100) /* min_rnr_timer 12 */
/* clang-format on */
#define STALL   MS(2000) /* longer than any of these waits */
#define BACKLOG MS(150) /* the link drops frames only after a longer one */
#define TURN    (MS(1) / 50)
#define TURNS   (10 * TURN)
#define SEEN    96

/* Where the worker of port 0 is stalled, once. */
enum stall {
	STALL_NOWHERE,
	/* in a command or in the driver, after the turn has read the clock first */
	STALL_BEFORE_BURST,
	STALL_BEFORE_DRIVER, /* in the turn's work, after it has read the clock */
	STALL_IN_BACKLOG, /* the driver takes nothing */
};

static struct engine *engine;
static uint64_t now;
static enum stall stall;
static uint64_t blocked_until;
static unsigned int hears; /* port 1 receives this many frames and loses all others */
/* when frames of port 0 left it, and others arrived there */
static uint64_t left[SEEN], arrived[SEEN];
static unsigned int num_left, num_arrived;
static const struct rte_eth_rxtx_callback *callback[3];
static struct rc_congestion congestion; /* used by waits_begin() if .dcqcn */

static uint64_t
clock_of_test(void)
{
	return now;
}

static uint16_t
waits_leave(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(pkts);
	RTE_SET_USED(arg);
	if (stall == STALL_BEFORE_DRIVER) {
		now += STALL;
		stall = STALL_NOWHERE;
	} else if (stall == STALL_IN_BACKLOG) {
		blocked_until = now + BACKLOG;
		stall = STALL_NOWHERE;
	}
	if (now < blocked_until)
		return 0;
	for (i = 0; i < n && num_left < SEEN; i++)
		left[num_left++] = now;
	return n;
}

static uint16_t
waits_arrive(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t most,
	void *arg)
{
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(pkts);
	RTE_SET_USED(most);
	RTE_SET_USED(arg);
	if (n > 0 && stall == STALL_BEFORE_BURST) {
		now += STALL;
		stall = STALL_NOWHERE;
	}
	for (i = 0; i < n && num_arrived < SEEN; i++)
		arrived[num_arrived++] = now;
	return n;
}

static uint16_t
waits_lose(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t most,
	void *arg)
{
	uint16_t taken;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(most);
	RTE_SET_USED(arg);
	taken = RTE_MIN(n, hears);
	hears -= taken;
	rte_pktmbuf_free_bulk(pkts + taken, n - taken);
	return taken;
}

static int
waits_begin(void **state)
{
	struct engine_config *c = node_config();
	uint16_t port[2];

	(void)state; /* the test's stall point */
	c->clock = clock_of_test;
	if (congestion.dcqcn)
		c->limits.congestion = congestion;
	now = rte_get_tsc_cycles();
	engine = node_create();
	assert_int_equal(rte_eth_dev_count_avail(), 2);
	port[0] = 0, port[1] = 1;
	callback[0] = rte_eth_add_tx_callback(port[0], 0, waits_leave, NULL);
	callback[1] = rte_eth_add_rx_callback(port[0], 0, waits_arrive, NULL);
	callback[2] = rte_eth_add_rx_callback(port[1], 0, waits_lose, NULL);
	stall = STALL_NOWHERE;
	blocked_until = 0;
	hears = UINT_MAX;
	return 0;
}

static int
waits_end(void **state)
{
	(void)state;
	rte_eth_remove_tx_callback(0, 0, callback[0]);
	rte_eth_remove_rx_callback(0, 0, callback[1]);
	rte_eth_remove_rx_callback(1, 0, callback[2]);
	engine_destroy(engine);
	return 0;
}

static void
waits_turn(void)
{
	engine_turn(engine, 0, now);
	now += TURN;
	engine_turn(engine, 1, now);
	now += TURN;
}

/* Connect two QPs of worker 0, then forget the times of port 0's frames. */
static void
connect_pair(struct pair *p)
{
	unsigned int i;

	pair_create(engine, p, 0, 0);
	for (i = 0; i < 1000; i++)
		waits_turn();
	num_left = num_arrived = 0;
}

/* Poll until n frames have left port 0. */
static void
turn_until_left(unsigned int n)
{
	unsigned int turns;

	for (turns = 0; num_left < n; turns++) {
		assert_true(turns < 10000000);
		waits_turn();
	}
}

static void
assert_waited(uint64_t from, uint64_t to, uint64_t wait)
{
	if (to - from < wait)
		fail_msg("%.2f ms, and %.2f were asked for", (double)(to - from) / (double)MS(1),
			(double)wait / (double)MS(1));
}

/* A lost request is sent again, not earlier than Ttr after the driver has taken it. */
static void
test_transport_timer_is_not_short(void **state)
{
	struct pair p;

	connect_pair(&p);
	hears = 0;
	stall = *(const enum stall *)*state;
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 1);
	turn_until_left(2);
	assert_waited(left[0], left[1], ACK_WAIT);
}

/* An ACK restarts the timer of outstanding requests, not from a time before the ACK arrived. */
static void
test_restarted_timer_is_not_short(void **state)
{
	struct pair p;

	(void)state;
	connect_pair(&p);
	hears = 1;
	stall = STALL_BEFORE_BURST; /* in the turn in which the ACK of the first one arrives */
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 1);
	turn_until_left(1);
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 2);
	turn_until_left(3);
	assert_int_equal(num_arrived, 1);
	assert_waited(left[1], left[2], ACK_WAIT);
	assert_waited(arrived[0], left[2], ACK_WAIT);
}

/* A request is sent again after an RNR NAK, not earlier than the NAK's time. */
static void
test_rnr_wait_is_not_short(void **state)
{
	struct pair p;

	connect_pair(&p);
	post(engine, &p.a, WR_SEND, &p.b, 0, 0, 16, 1);
	turn_until_left(1);
	stall = *(const enum stall *)*state; /* in the turn in which the NAK arrives */
	turn_until_left(2);
	assert_true(num_arrived > 0);
	assert_waited(arrived[0], left[1], RNR_WAIT);
}

/* --- management: port 0 sends requests, port 1 receives nothing --- */

static void
ask_cm(void)
{
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(engine), 1)->gid[0].gid };
	struct engine_cm_connect c = {
		.ah = &ah,
		.service_id = 0x1234,
		.param = {
			.qp = { .qp_type = QPT_RC, .srq = RC_NO_SRQ, .cap = { 1, 1, 1, 1, 0 } },
			.retry_count = 7,
			.rnr_retry_count = 7,
			.min_rnr_timer = 12,
		},
	};
	struct error err = { "" };
	uint32_t attempt;

	assert_ok(engine_pd_alloc(engine, &c.param.qp.pd, &err));
	assert_ok(engine_cq_create(engine, 16, &c.param.qp.send_cq, &err));
	c.param.qp.recv_cq = c.param.qp.send_cq;
	assert_ok(engine_cm_connect(engine, &c, &attempt, &err));
}

static void
ask_sa(void)
{
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(engine), 1)->gid[0].gid };
	struct engine_sa_query ask = { .ah = &ah, .worker = 0,
		.query = { .op = SA_OP_TABLE, .version = SA_V2, .resp_time = 14,
			.type = sa_record_type(0x11), }, };
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_sa_query(engine, &ask, &id, &err));
}

#define RECORDS 40
#define CONFIG_FRAMES                                                                              \
	((RECORDS * sa_wire_len(sa_record_type(SA_NODE), SA_V1) + SA1_AREA - 1) / SA1_AREA)

/* Version 1's protocol: a Config of several packets sends a window and waits for its Ack. */
static void
waits_ask_config(void)
{
	static uint8_t records[RECORDS * SA_RECORD_MAX];
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(engine), 1)->gid[0].gid };
	struct engine_sa_query ask = { .ah = &ah, .worker = 0,
		.query = { .op = SA_OP_CONFIG_ADD, .version = SA_V1, .resp_time = 14,
			.type = sa_record_type(SA_NODE),
			.records = records, .num_records = RECORDS, }, };
	struct error err = { "" };
	uint32_t id;

	assert_ok(engine_sa_query(engine, &ask, &id, &err));
}

/* RMPP: a GetMulti whose GIDs take several packets sends the first one and waits for its ACK. */
static void
waits_ask_multi(void)
{
	static uint8_t gids[40 * sizeof(union gid)];
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(engine), 1)->gid[0].gid };
	struct engine_sa_query ask = { .ah = &ah, .worker = 0,
		.query = { .op = SA_OP_MULTI, .version = SA_V2, .resp_time = 14,
			.type = sa_record_type(SA_MULTI_PATH), .gids = gids, }, };
	struct error err = { "" };
	uint32_t id;

	ask.query.tmpl[MPR_OFF_SGID_COUNT] = 20;
	ask.query.tmpl[MPR_OFF_DGID_COUNT] = 20;
	assert_ok(engine_sa_query(engine, &ask, &id, &err));
}

/*
 * A request that nobody answers is repeated. The waits are equal, but for the agents that try
 * sooner at first; the one that begins with the stall is not shorter than without it.
 *
 * @param frames  of the request: the wait begins behind the last of them
 */
static uint64_t
first_wait(void (*ask)(void), unsigned int frames, enum stall at)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		waits_turn();
	num_left = 0;
	hears = 0;
	stall = at;
	ask();
	turn_until_left(frames + 1);
	return left[frames] - left[frames - 1];
}

static int
begin_again(void)
{
	void *none = NULL;

	waits_end(&none);
	return waits_begin(&none);
}

static void
check_repeats(void (*ask)(void), unsigned int frames, enum stall at)
{
	uint64_t alone = first_wait(ask, frames, STALL_NOWHERE);

	assert_true(alone > 2 * TURNS); /* it waited, rather than only working for some turns */
	begin_again();
	assert_waited(0, first_wait(ask, frames, at), alone - TURNS);
}

static void
test_cm_repeats(void **state)
{
	check_repeats(ask_cm, 1, *(const enum stall *)*state);
}

static void
test_sa_repeats(void **state)
{
	check_repeats(ask_sa, 1, *(const enum stall *)*state);
}

static void
test_config_repeats(void **state)
{
	check_repeats(waits_ask_config, CONFIG_FRAMES, *(const enum stall *)*state);
}

static void
test_rmpp_repeats(void **state)
{
	check_repeats(waits_ask_multi, 1, *(const enum stall *)*state);
}

/* --- congestion control: a CNP halves the rate --- */

#define RATE_MBPS   10
#define WIRE_BYTES  (1024 + 64) /* congestion 4 */
#define BURST_BYTES (16384 + WIRE_BYTES) /* congestion 4: what a late QP may send at once */

/* Port 1 marks what it receives with CE, so that its QP answers by CNPs (RoCEv2 over IPv4). */
static uint16_t
waits_mark(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t most,
	void *arg)
{
	uint16_t i;

	RTE_SET_USED(port);
	RTE_SET_USED(queue);
	RTE_SET_USED(most);
	RTE_SET_USED(arg);
	for (i = 0; i < n; i++) {
		struct rte_ipv4_hdr *ip =
			rte_pktmbuf_mtod_offset(pkts[i], struct rte_ipv4_hdr *, RTE_ETHER_HDR_LEN);

		ip->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	}
	return n;
}

static int
congested_begin(void **state)
{
	congestion = rc_limits_default.congestion;
	congestion.dcqcn = true;
	congestion.max_rate = RATE_MBPS;
	congestion.min_rate = 1;
	congestion.increase_timer = 60000000; /* the rate does not rise during the test */
	congestion.byte_counter = UINT32_MAX;
	congestion.cut_interval = 60000000;
	return waits_begin(state);
}

static int
congested_end(void **state)
{
	congestion.dcqcn = false;
	return waits_end(state);
}

/*
 * After a stall, a limited QP catches up by one burst at most, not by all that it could have sent.
 */
static void
test_limited_qp_catches_up_by_one_burst(void **state)
{
	const struct rte_eth_rxtx_callback *mark;
	unsigned int from, to;
	uint64_t allowed;
	struct pair p;

	connect_pair(&p);
	mark = rte_eth_add_rx_callback(1, 0, waits_mark, NULL);
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 1);
	turn_until_left(1);
	while (num_arrived < 2) /* the ACK and the CNP */
		waits_turn();
	rte_eth_remove_rx_callback(1, 0, mark);
	num_left = 0;
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 65536, 2);
	turn_until_left(20);
	stall = *(const enum stall *)*state;
	turn_until_left(64);
	for (from = 0; from < num_left; from++)
		for (to = from; to < num_left; to++) {
			allowed = BURST_BYTES +
				(left[to] - left[from]) * (RATE_MBPS / 2 * 1000000 / 8) /
					rte_get_tsc_hz();
			if ((uint64_t)(to - from) * WIRE_BYTES > allowed)
				fail_msg("frames %u to %u left too fast", from, to);
		}
}

/* clang-format off */
#define WITH(test, at)                                                                             \
	{                                                                                          \
#test ", " #at, test, waits_begin, waits_end, &(enum stall)                        \
		{                                                                                  \
			at                                                                         \
		}                                                                                  \
	}

#define CONGESTED(test, at)                                                                        \
	{                                                                                          \
#test ", " #at, test, congested_begin, congested_end, &(enum stall)                \
		{                                                                                  \
			at                                                                         \
		}                                                                                  \
	}

#define AT_EACH_POINT(test)                                                                        \
	WITH(test, STALL_NOWHERE), WITH(test, STALL_BEFORE_BURST), WITH(test, STALL_BEFORE_DRIVER), \
		WITH(test, STALL_IN_BACKLOG)
/* clang-format on */

int
main(void)
{
	const struct CMUnitTest tests[] = {
		AT_EACH_POINT(test_transport_timer_is_not_short),
		AT_EACH_POINT(test_rnr_wait_is_not_short),
		AT_EACH_POINT(test_cm_repeats),
		AT_EACH_POINT(test_sa_repeats),
		AT_EACH_POINT(test_config_repeats),
		AT_EACH_POINT(test_rmpp_repeats),
		CONGESTED(test_limited_qp_catches_up_by_one_burst, STALL_NOWHERE),
		CONGESTED(test_limited_qp_catches_up_by_one_burst, STALL_BEFORE_BURST),
		CONGESTED(test_limited_qp_catches_up_by_one_burst, STALL_BEFORE_DRIVER),
		CONGESTED(test_limited_qp_catches_up_by_one_burst, STALL_IN_BACKLOG),
		cmocka_unit_test_setup_teardown(test_restarted_timer_is_not_short, waits_begin,
			waits_end),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
