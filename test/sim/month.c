/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Scenario `month`: a connection and an SA with its client run for 30 days of virtual time, with a
 * request now and then. What counts up in a process that runs for months wraps on the way, which
 * month_check() looks for at the end:
 *
 *   TSC          passes 2^63 in the middle, with packets under way, and 2^32 some 600,000 times;
 *                2^64 is 195 years of a 3 GHz clock away
 *   timer wheel  turns once in 67 ms; a timer an hour waits for longer than that
 *   PSN          both directions cross 0xFFFFFF
 *   TID          the client's cross 2^64
 *   generations  one slot of the QP directory has all its QPNs, and begins again; so does one of
 *                the table of regions, whose keys have other low bytes from then on
 *   leases       a service a day, whose lease ends after six hours, also while the wall clock is
 *                ten days behind
 */

#include <errno.h>
#include <string.h>

#include "base/timer_wheel_private.h"
#include "sa/layout.h"
#include "sa/tables.h"
#include "sa_sim.h"
#include "wire/bytes.h"

#define HOUR    (3600 * SIM_SECOND)
#define DAY     (24 * HOUR)
#define DAYS    30
#define MIDDLE  (UINT64_C(1) << 63)
#define BACK    (10 * UINT64_C(86400)) /* seconds that the wall clock is set back */
#define LEASE   (6 * UINT64_C(3600))
#define LOOK    (60 * SIM_SECOND) /* the SA looks for leases that have ended */
#define QPS     64
#define REMAKES 400 /* QPs an hour, more than 2^24 / QPS in all */
#define REGIONS 40000 /* a month, of one slot: more than 2^24 / 512 slots of regions and windows */

struct month {
	uint64_t begin;
	uint64_t tid; /* the client's next one */
	uint64_t first_tid;
	uint32_t idle[QPS]; /* QPs that occupy the other slots of node 0 */
	unsigned int idles;
	struct qp_init_attr init;
	uint32_t qpn; /* of the slot that is used again and again */
	uint32_t first_qpn;
	unsigned int wraps;
	struct mem_mr_attr region;
	uint32_t key; /* of the slot of the table of regions that is used again and again */
	uint32_t first_key;
	bool dying; /* the key is deregistered, and its grace period may still run */
	unsigned int key_wraps;
	struct timer timer;
	uint64_t due; /* the timer */
	unsigned int timeouts;
	unsigned int late; /* of them, or early */
	uint64_t first_turn; /* of the timer wheel */
	unsigned int services; /* added so far; the last one's ServiceID */
	unsigned int ended; /* leases of them */
	unsigned int ended_behind; /* while the wall clock was set back */
	bool sent; /* requests were under way at 2^63 */
};

static struct month month;

/* --- generations --- */

static uint32_t
month_qp_create(struct sim *s)
{
	struct error err = { "" };
	uint32_t qpn;

	return rc_qp_create(s->node[0].worker, &month.init, &qpn, &err) == 0 ? qpn : 0;
}

static void
month_qp_destroy(struct sim *s, uint32_t qpn)
{
	struct error err = { "" };

	if (rc_qp_destroy(s->node[0].worker, qpn, &err) != 0)
		sim_fail(s, "QP 0x%06x: %s", qpn, err.text);
}

/* Leave one free slot. */
static void
month_fill_slots(struct sim *s, const struct conn *c)
{
	uint32_t qpn;

	month.init = (struct qp_init_attr){
		.qp_type = QPT_RC,
		.pd = s->node[0].pd,
		.send_cq = c->send_cq[0],
		.recv_cq = c->recv_cq[0],
		.srq = RC_NO_SRQ,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	while (month.idles < QPS && (qpn = month_qp_create(s)) != 0)
		month.idle[month.idles++] = qpn;
	if (month.idles == 0)
		sim_fail(s, "no idle QP");
	else
		month.first_qpn = month.qpn = month.idle[--month.idles];
}

static void
month_remake_qps(struct sim *s, void *arg)
{
	struct rc_qp_info info;
	unsigned int i;

	(void)arg;
	for (i = 0; i < REMAKES && !s->failed; i++) {
		uint32_t old = month.qpn;

		month_qp_destroy(s, old);
		month.qpn = month_qp_create(s);
		if (month.qpn == 0 || month.qpn == old || (month.qpn ^ old) % QPS != 0)
			sim_fail(s, "QP 0x%06x follows 0x%06x", month.qpn, old);
		if (rc_qp_query(s->node[0].worker, old, &info) != -ENOENT)
			sim_fail(s, "QP 0x%06x is still there", old);
		month.wraps += month.qpn == month.first_qpn;
	}
	if (s->now + HOUR < month.begin + DAYS * DAY)
		sim_at(s, s->now + HOUR, month_remake_qps, NULL);
}

static void
month_drop_region(struct sim_node *n)
{
	month.dying = mem_mr_deregister(n->mem, month.key, NULL) == -EAGAIN;
}

/* Leave one free slot. */
static void
month_fill_regions(struct sim *s)
{
	struct sim_node *n = &s->node[0];
	struct mem_mr_info info;

	month.region = (struct mem_mr_attr){
		.pd = n->pd,
		.length = 64,
		.va = SIM_VA,
		.backing = MEM_EXTERNAL,
		.base = n->arena + sim_arena(n, 64),
		.numa_node = -1,
	};
	while (mem_mr_register(n->mem, &month.region, &info, NULL) == 0)
		month.key = month.first_key = info.key;
	month_drop_region(n);
}

static void
month_remake_region(struct sim *s, void *arg)
{
	struct sim_node *n = &s->node[0];
	struct mem_mr_info info = { 0 };
	struct error err = { "" };
	uint32_t old = month.key;

	(void)arg;
	if (month.dying && mem_mr_deregister(n->mem, old, &err) != 0)
		sim_fail(s, "region 0x%08x: %s", old, err.text);
	if (mem_mr_register(n->mem, &month.region, &info, &err) != 0)
		sim_fail(s, "region after 0x%08x: %s", old, err.text);
	month.key = info.key;
	if (month.key == old || mem_mr_query(n->mem, old, &info) != -ENOENT)
		sim_fail(s, "region 0x%08x is still there", old);
	if (month.key >> 8 == month.first_key >> 8) {
		month.key_wraps++;
		if (month.key == month.first_key)
			sim_fail(s, "key 0x%08x was issued twice", month.key);
	}
	month_drop_region(n);
	if (s->now + DAYS * DAY / REGIONS < month.begin + DAYS * DAY)
		sim_at(s, s->now + DAYS * DAY / REGIONS, month_remake_region, NULL);
}

/* --- timer wheel --- */

static uint64_t
month_turn(const struct sim *s)
{
	return s->node[0].wheel->tick / SLOTS;
}

static void
month_timeout(struct timer *t, uint64_t now)
{
	(void)t;
	month.timeouts++;
	month.late += now != month.due;
}

static void
month_arm(struct sim *s, void *arg)
{
	struct timer_wheel *w = s->node[0].wheel;
	uint64_t turn = (uint64_t)SLOTS << w->shift;

	(void)arg;
	month.due = s->now + turn + 1 + sim_below(s, (uint32_t)turn);
	timer_arm(w, &month.timer, month.due);
	if (s->now + HOUR < month.begin + DAYS * DAY)
		sim_at(s, s->now + HOUR, month_arm, NULL);
}

/* --- leases --- */

static bool
month_has_service(const struct sim *s, uint64_t id)
{
	const struct sa_model *m = s->sa->model;
	uint32_t i;

	for (i = 0; i < m->records; i++)
		if (m->rec[i].live && m->rec[i].table == SA_TABLE_SERVICE &&
			get_be64(m->rec[i].bytes + SERVICE_OFF_ID) == id)
			return true;
	return false;
}

static void
month_before_end(struct sim *s, void *arg)
{
	(void)arg;
	if (!month_has_service(s, month.services))
		sim_fail(s, "service %u is gone before its lease ended", month.services);
}

static void
month_after_end(struct sim *s, void *arg)
{
	(void)arg;
	if (month_has_service(s, month.services))
		sim_fail(s, "the lease of service %u has ended, but it is still there",
			month.services);
	month.ended++;
	month.ended_behind += s->sa->side[SA_SERVER].set_back != 0;
}

static void
month_add_service(struct sim *s, void *arg)
{
	struct sa_change c = { .type = sa_type_of(SA_TABLE_SERVICE) };
	struct error err = { "" };

	(void)arg;
	put_be64(c.rec + SERVICE_OFF_ID, ++month.services);
	put_be32(c.rec + SERVICE_OFF_LEASE, (uint32_t)LEASE);
	if (sa_change(s->sa->side[SA_SERVER].sa, &c, 1, &err) < 0)
		sim_fail(s, "sa_change: %s", err.text);
	/* the SA's clock is as old as its last look */
	sim_at(s, s->now + LEASE * SIM_SECOND - 2 * LOOK, month_before_end, NULL);
	sim_at(s, s->now + LEASE * SIM_SECOND + 2 * LOOK, month_after_end, NULL);
	sim_at(s, s->now + DAY, month_add_service, NULL);
}

static void
month_set_back(struct sim *s, void *arg)
{
	(void)arg;
	s->sa->side[SA_SERVER].set_back = BACK;
}

static void
month_set_right(struct sim *s, void *arg)
{
	(void)arg;
	s->sa->side[SA_SERVER].set_back = 0;
}

/* --- TIDs --- */

static void
month_count_tids(void *arg, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t i;

	(void)arg;
	for (i = 0; i < len; i++)
		to[i] = (uint8_t)(month.tid >> 8 * (i % sizeof(month.tid)));
	month.tid++;
}

/* --- PSNs and the clock --- */

static uint32_t
month_sq_psn(struct sim *s, unsigned int node, bool *unacked)
{
	struct rc_qp_info info = { 0 };

	if (rc_qp_query(s->node[node].worker, s->script->conn[0]->qpn[node], &info) != 0)
		sim_fail(s, "the connection of node %u is gone", node);
	*unacked = info.sq_unacked > 0;
	return info.attr.sq_psn;
}

/* Packets, and timers that are armed, are under way when the clock passes 2^63. */
static void
month_post_now(struct sim *s, void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < s->num_flows; i++)
		flow_post(s->flows[i], 8);
}

static void
month_middle(struct sim *s, void *arg)
{
	bool unacked[SIM_NODES];

	(void)arg;
	for (unsigned int i = 0; i < SIM_NODES; i++)
		month_sq_psn(s, i, &unacked[i]);
	month.sent = unacked[0] || unacked[1];
}

static void
month_check_connection(struct sim *s)
{
	const struct conn *c = s->script->conn[0];
	bool unacked;

	if (month.begin >= MIDDLE || s->now <= MIDDLE || !month.sent)
		sim_fail(s, "the clock did not pass 2^63 with requests under way");
	for (unsigned int i = 0; i < SIM_NODES; i++)
		if (month_sq_psn(s, i, &unacked) >= c->opt.psn[i])
			sim_fail(s, "the PSNs of node %u did not wrap", i);
}

static void
month_check(struct sim *s)
{
	if (s->now < month.begin + DAYS * DAY)
		sim_fail(s, "it ended after %llu days",
			(unsigned long long)((s->now - month.begin) / DAY));
	month_check_connection(s);
	if (month_turn(s) < month.first_turn + DAYS * 24)
		sim_fail(s, "the timer wheel did not turn");
	if (month.timeouts < DAYS * 24 || month.late > 0)
		sim_fail(s, "of %u timers that wait for more than a turn, %u are late or early",
			month.timeouts, month.late);
	if (month.services < DAYS - 1)
		sim_fail(s, "only %u services", month.services);
	if (month.ended < DAYS - 1 || month.ended_behind < 10)
		sim_fail(s, "only %u leases ended, %u while the wall clock was set back",
			month.ended, month.ended_behind);
	if (month.wraps == 0)
		sim_fail(s, "the QPNs of a slot did not wrap");
	if (month.key_wraps == 0)
		sim_fail(s, "the keys of a region's slot did not wrap");
	if (month.tid >= month.first_tid)
		sim_fail(s, "the TIDs did not wrap");
}

void
scenario_month(struct sim *s)
{
	struct sa_script *sc;
	struct conn_options o;
	struct conn *c;

	month = (struct month){ .begin = MIDDLE - DAYS * DAY / 2 };
	month.first_tid = month.tid = (uint64_t)0 - 20;
	s->now = month.begin;
	sc = sa_script_create(s, SA_ASKS_READ | SA_ASKS(SA_ASK_JOIN) | SA_ASKS(SA_ASK_SUBSCRIBE),
		200);
	sc->planned = 200;
	sc->at_once = 1 + sim_below(s, 3);
	sc->step = DAYS * DAY / 250;
	sc->limit = s->script->limit = month.begin + (DAYS + 1) * DAY;
	sc->side[SA_SERVER].expire_step = LOOK;
	s->script->step = DAYS * DAY / 60;
	s->node[SA_CLIENT].rng = (struct rng){ month_count_tids, NULL };
	s->script->recv_ahead = 24; /* no RNR NAKs for hours */
	script_bad_network(s, 200);

	o = conn_options_random(s);
	o.psn[0] = psn_add(0, (uint32_t)-1 - sim_below(s, 60));
	o.psn[1] = psn_add(0, (uint32_t)-1 - sim_below(s, 60));
	o.rq_depth = 32;
	c = script_connect(s, &o);
	for (unsigned int i = 0; i < SIM_NODES; i++)
		flow_plan(&c->flow[i], 150, KINDS_ALL);
	month_fill_slots(s, c);
	month_fill_regions(s);
	timer_init(&month.timer, month_timeout);
	month.first_turn = month_turn(s);
	sa_script_start(sc);
	sim_at(s, s->now, month_remake_qps, NULL);
	sim_at(s, s->now + HOUR, month_remake_region, NULL);
	sim_at(s, s->now, month_arm, NULL);
	sim_at(s, s->now + HOUR, month_add_service, NULL);
	sim_at(s, month.begin + 10 * DAY + 2 * HOUR, month_set_back, NULL);
	sim_at(s, month.begin + 20 * DAY, month_set_right, NULL);
	sim_at(s, MIDDLE - 1000, month_post_now, NULL);
	sim_at(s, MIDDLE, month_middle, NULL);
	script_run(s);
	if (!s->failed)
		sim_run(s, month.begin + DAYS * DAY, NULL);
	if (!s->failed)
		month_check(s);
	month_qp_destroy(s, month.qpn);
	while (month.idles > 0)
		month_qp_destroy(s, month.idle[--month.idles]);
}
