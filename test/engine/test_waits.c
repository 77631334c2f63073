/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * No wait is shorter than asked, whatever stalls where (rc-transport 8). Workers are polled by hand
 * and their time is the test's: it moves on by 20 us a turn, and by a stall where the test
 * puts one. What a wait begins with is seen where the driver takes or gives a packet.
 */

#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include "engine/verbs_private.h"
#include "node.h"

/* clang-format off */
#define MS(n)     ((uint64_t)(n) * rte_get_tsc_hz() / 1000)
/* clang-format on */
#define ACK_WAIT MS(1073) /* Local ACK Timeout 18 (node.c): 4.096 us * 2^18 */
/* clang-format off */
#define RNR_WAIT  (MS(1) * 64 / 100) /* min_rnr_timer 12 */
/* clang-format on */
#define STALL   MS(2000) /* longer than any of these waits */
#define BACKLOG MS(150) /* shorter than what makes the link drop it */
#define TURN    (MS(1) / 50)
#define TURNS   (10 * TURN)
#define SEEN    16

/* Where the worker of port 0 is stalled, once. */
enum stall {
	STALL_NOWHERE,
	/* in a command, or in the driver: the turn's first look at the clock is old */
	STALL_BEFORE_BURST,
	STALL_BEFORE_DRIVER, /* in the turn's work, after it has looked at the clock */
	STALL_IN_BACKLOG, /* the driver takes nothing */
};

static struct engine *engine;
static uint64_t now;
static enum stall stall;
static uint64_t blocked_until;
static unsigned int hears; /* port 1 takes so many frames and loses the others */
/* when frames of port 0 left it, and others arrived there */
static uint64_t left[SEEN], arrived[SEEN];
static unsigned int num_left, num_arrived;
static const struct rte_eth_rxtx_callback *callback[3];

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
	uint16_t port[2];

	(void)state; /* where the stall is: the test's */
	node_config()->clock = clock_of_test;
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

/* Both ends of a connection on worker 0; what port 0 has sent and received is forgotten. */
static void
connect_pair(struct pair *p)
{
	unsigned int i;

	pair_create(engine, p, 0, 0);
	for (i = 0; i < 1000; i++)
		waits_turn();
	num_left = num_arrived = 0;
}

/* Until so many frames have left port 0. */
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

/* A request that is lost is sent again, not before Ttr after the driver has taken it. */
static void
test_transport_timer(void **state)
{
	struct pair p;

	connect_pair(&p);
	hears = 0;
	stall = *(const enum stall *)*state;
	post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 16, 1);
	turn_until_left(2);
	assert_waited(left[0], left[1], ACK_WAIT);
}

/* An ACK restarts the timer for what is outstanding: not from a time before it arrived. */
static void
test_restarted_timer(void **state)
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

/* What found no receive is sent again, not before the wait that its RNR NAK asked for. */
static void
test_rnr_wait(void **state)
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

/* --- management: port 0 asks, and port 1 hears nothing --- */

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

/*
 * A request that nobody answers is repeated. The waits are equal, but for the agents that try
 * sooner at first; the one that begins with the stall is not shorter than without it.
 */
static uint64_t
first_wait(void (*ask)(void), enum stall at)
{
	unsigned int i;

	for (i = 0; i < 1000; i++)
		waits_turn();
	num_left = 0;
	hears = 0;
	stall = at;
	ask();
	turn_until_left(2);
	return left[1] - left[0];
}

static int
begin_again(void)
{
	void *none = NULL;

	waits_end(&none);
	return waits_begin(&none);
}

static void
check_repeats(void (*ask)(void), enum stall at)
{
	uint64_t alone = first_wait(ask, STALL_NOWHERE);

	begin_again();
	assert_waited(0, first_wait(ask, at), alone - TURNS);
}

static void
test_cm_repeats(void **state)
{
	check_repeats(ask_cm, *(const enum stall *)*state);
}

static void
test_sa_repeats(void **state)
{
	check_repeats(ask_sa, *(const enum stall *)*state);
}

/* clang-format off */
#define WITH(test, at)                                                                             \
	{                                                                                          \
#test ", " #at, test, waits_begin, waits_end, &(enum stall)                        \
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
		AT_EACH_POINT(test_transport_timer),
		AT_EACH_POINT(test_rnr_wait),
		AT_EACH_POINT(test_cm_repeats),
		AT_EACH_POINT(test_sa_repeats),
		cmocka_unit_test_setup_teardown(test_restarted_timer, waits_begin, waits_end),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
