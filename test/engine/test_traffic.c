/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * All operations between two QPs by verbs, on one worker and with hand-off; changes while traffic
 * runs.
 */

#include <errno.h>
#include <string.h>

#include <event2/event.h>

#include <rte_ethdev.h>

#include "engine/verbs_trace.h"
#include "node.h"
#include "wire/opcode.h"

static int
traffic_start(void **state)
{
	node_config();
	*state = node_start();
	return 0;
}

static int
traffic_stop(void **state)
{
	node_stop(*state, 0);
	return 0;
}

/* rc-transport 2: every operation from a to b, with one packet and with several. */
static void
move_data(struct engine *e, struct end *a, struct end *b)
{
	static const uint32_t sizes[] = { 1, 1024, 5000, 100000 };
	uint64_t before, value;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		uint32_t len = sizes[i];

		fill(a->mr.base, len, i + 1);
		memset(b->mr.base, 0, BUF_SIZE);
		post_recvs(e, b, 0, len, 1);
		assert_int_equal(post(e, a, WR_SEND, b, 0, 0, len, 1), 1);
		expect_wc(e, a, 1);
		expect_wc(e, b, 1);
		assert_memory_equal(a->mr.base, b->mr.base, len);
		assert_int_equal(b->mr.base[len], 0);

		assert_int_equal(post(e, a, WR_RDMA_WRITE, b, 0, 300000, len, 2), 1);
		expect_wc(e, a, 1);
		assert_memory_equal(a->mr.base, b->mr.base + 300000, len);
		assert_int_equal(b->mr.base[300000 + len], 0);

		fill(b->mr.base + 500000, len, i + 77);
		assert_int_equal(post(e, a, WR_RDMA_READ, b, 600000, 500000, len, 3), 1);
		expect_wc(e, a, 1);
		assert_memory_equal(a->mr.base + 600000, b->mr.base + 500000, len);
	}
	before = 41;
	memcpy(b->mr.base + 8, &before, 8);
	assert_int_equal(post(e, a, WR_ATOMIC_FETCH_AND_ADD, b, 16, 8, 8, 4), 1);
	expect_wc(e, a, 1);
	memcpy(&value, a->mr.base + 16, 8);
	assert_int_equal(value, 41);
	memcpy(&value, b->mr.base + 8, 8);
	assert_int_equal(value, 42);
	before = 1; /* post() compares with 1 and swaps with 2 */
	memcpy(b->mr.base + 8, &before, 8);
	assert_int_equal(post(e, a, WR_ATOMIC_CMP_AND_SWP, b, 16, 8, 8, 5), 1);
	expect_wc(e, a, 1);
	memcpy(&value, a->mr.base + 16, 8);
	assert_int_equal(value, 1);
	memcpy(&value, b->mr.base + 8, 8);
	assert_int_equal(value, 2);
}

static void
sum_of_verdicts_is_packets(struct engine *e)
{
	struct link_counters sum;
	unsigned int port, v;
	uint64_t total;

	for (port = 0; port < 2; port++) {
		engine_port_counters(e, port, -1, &sum);
		for (total = 0, v = 0; v < VERDICT_COUNT; v++)
			total += sum.verdict[v];
		assert_int_equal(total, sum.rx_packets);
		assert_true(total > 0);
	}
}

static void
test_operations_on_one_worker(void **state)
{
	struct engine *e = *state;
	struct worker_info w;
	struct pair p;

	pair_create(e, &p, 0, 0);
	move_data(e, &p.a, &p.b);
	move_data(e, &p.b, &p.a);
	engine_worker_info(e, 0, &w);
	assert_int_equal(w.handoff_out, 0);
	assert_int_equal(w.qps, 2);
	pair_destroy(e, &p);
	sum_of_verdicts_is_packets(e);
}

static void
time_is_over(evutil_socket_t fd, short events, void *arg)
{
	(void)fd;
	(void)events;
	*(bool *)arg = true;
}

/* The event loop sleeps until the completion comes. */
static void
test_a_completion_ends_the_wait_for_it(void **state)
{
	const struct timeval limit = { .tv_sec = 10 };
	struct engine *e = *state;
	struct event *timer;
	bool over = false;
	struct error err;
	struct pair p;
	struct wc wc;
	int i, n;

	pair_create(e, &p, 0, 1);
	timer = evtimer_new(engine_event_base(e), time_is_over, &over);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 64, 1), 1);
		for (n = 0; n == 0;) {
			assert_ok(engine_cq_await(e, p.a.cq, &err));
			engine_await(e);
			n = engine_cq_poll(e, p.a.cq, &wc, 1, &err);
			if (n != 0)
				continue;
			evtimer_add(timer, &limit);
			event_base_loop(engine_event_base(e), EVLOOP_ONCE);
			assert_false(over);
		}
		assert_int_equal(n, 1);
	}
	event_free(timer);
	pair_destroy(e, &p);
}

/* design.md rule 1: packets arrive at another worker than the QP's. */
static void
test_packets_on_the_wrong_lcore_reach_their_owner(void **state)
{
	struct engine *e = *state;
	struct worker_info w0, w1;
	struct pair p;

	pair_create(e, &p, 0, 1);
	move_data(e, &p.a, &p.b);
	move_data(e, &p.b, &p.a);
	engine_worker_info(e, 0, &w0);
	engine_worker_info(e, 1, &w1);
	assert_true(w0.handoff_out > 0);
	assert_true(w1.handoff_out > 0);
	assert_int_equal(w1.handoff_in, w0.handoff_out);
	assert_int_equal(w0.handoff_in, w1.handoff_out);
	assert_int_equal(w0.handoff_full + w1.handoff_full, 0);
	pair_destroy(e, &p);
	sum_of_verdicts_is_packets(e);
}

/*
 * Send from a with CE marks (traffic class): b answers with CNPs, which reach a's QP although they
 * arrive at another worker.
 */
static struct rc_counters
marked_traffic(struct engine *e)
{
	struct pair p;
	struct error err = { "" };
	struct rc_qp_info info;

	end_create(e, &p.a, 0);
	end_create(e, &p.b, 1);
	p.a.traffic_class = 3;
	end_connect(e, &p.a, 0, &p.b);
	end_connect(e, &p.b, 1, &p.a);
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 100000, 1), 1);
	expect_wc(e, &p.a, 1);
	eventually(verdict_total(e, VERDICT_CNP) > 0);
	assert_ok(engine_qp_query(e, p.a.qpn, &info, &err));
	pair_destroy(e, &p);
	return info.counters;
}

static void
test_cnps_reach_the_qp_with_dcqcn(void **state)
{
	struct rc_counters c;
	struct engine *e;

	(void)state;
	node_config()->limits.congestion.dcqcn = true;
	e = node_start();
	c = marked_traffic(e);
	assert_true(c.rp_cnp_handled > 0);
	node_stop(e, 0);
}

/* Without DCQCN, CNPs are counted and dropped. */
static void
test_cnps_are_dropped_without_dcqcn(void **state)
{
	struct engine *e;
	struct rc_counters c;

	(void)state;
	node_config();
	e = node_start();
	c = marked_traffic(e);
	assert_int_equal(c.rp_cnp_handled + c.rp_cnp_ignored, 0);
	node_stop(e, 0);
}

static void
test_qps_go_to_the_least_loaded_worker(void **state)
{
	struct engine *e = *state;
	struct rc_qp_info info;
	struct error err = { "" };
	struct end end[4];
	int i;

	for (i = 0; i < 4; i++) {
		end_create(e, &end[i], -1);
		assert_ok(engine_qp_query(e, end[i].qpn, &info, &err));
		assert_int_equal(info.worker, i % 2);
	}
	for (i = 0; i < 4; i++)
		end_destroy(e, &end[i]);
}

static void
test_qp_list_walks_all_workers(void **state)
{
	struct engine *e = *state;
	unsigned int found = 0, i;
	struct rc_qp_info info;
	uint64_t cursor = 0;
	struct end end[5];

	for (i = 0; i < 5; i++)
		end_create(e, &end[i], (int)(i % 2));
	while (engine_qp_next(e, &cursor, &info))
		for (i = 0; i < 5; i++)
			if (info.qpn == end[i].qpn)
				found |= 1u << i;
	assert_int_equal(found, 0x1F);
	for (i = 0; i < 5; i++)
		end_destroy(e, &end[i]);
	cursor = 0;
	assert_false(engine_qp_next(e, &cursor, &info));
}

/* design.md: QPs attached to an SRQ live on its worker, else an error naming both */
static void
test_srq_and_its_qps_share_a_worker(void **state)
{
	struct qp_init_attr init = { .qp_type = QPT_RC, .cap = { 8, 0, 1, 0, 0 } };
	struct engine *e = *state;
	struct rc_qp_info info;
	struct error err = { "" };
	uint32_t qpn;

	assert_ok(engine_pd_alloc(e, &init.pd, &err));
	assert_ok(engine_cq_create(e, 16, &init.send_cq, &err));
	init.recv_cq = init.send_cq;
	assert_ok(engine_srq_create(e, 1, init.pd, 8, 1, &init.srq, &err));
	assert_int_equal(engine_qp_create(e, 0, &init, &qpn, &err), -EINVAL);
	assert_string_equal(err.text,
		"worker: got 0, but shared receive queue 0 lives on worker 1, and its queue pairs with it");
	assert_ok(engine_qp_create(e, -1, &init, &qpn, &err));
	assert_ok(engine_qp_query(e, qpn, &info, &err));
	assert_int_equal(info.worker, 1);
	assert_ok(engine_qp_destroy(e, qpn, &err));
	assert_ok(engine_srq_destroy(e, init.srq, &err));
	assert_ok(engine_cq_destroy(e, init.send_cq, &err));
	assert_ok(engine_pd_free(e, init.pd, &err));
}

static struct rc_srq_info
srq_of(struct engine *e, uint32_t srqn)
{
	struct rc_srq_info info = { 0 };
	uint64_t cursor = 0;

	while (engine_srq_next(e, &cursor, &info))
		if (info.srqn == srqn)
			return info;
	fail_msg("no SRQ %u", srqn);
	return info;
}

static unsigned int
limit_events(struct engine *e, uint32_t srqn)
{
	struct event ev[64];
	unsigned int i, n = engine_events(e, ev, 64, NULL), found = 0;

	for (i = 0; i < n; i++)
		found += ev[i].type == EVENT_SRQ_LIMIT_REACHED && ev[i].element == srqn;
	return found;
}

/* An SRQ on any worker holds as many receives as its size, and raises its limit event. */
static void
test_srq_holds_its_size_and_raises_its_limit_event(void **state)
{
	struct sge sge = { .length = 0 };
	struct recv_wr wr[40];
	struct engine *e = *state;
	struct rc_srq_info info;
	struct error err = { "" };
	uint64_t cursor = 0;
	uint32_t srqn, pd;
	unsigned int i;

	for (i = 0; i < 40; i++)
		wr[i] = (struct recv_wr){ .wr_id = i, .sg_list = &sge };
	assert_ok(engine_pd_alloc(e, &pd, &err));
	assert_ok(engine_srq_create(e, 1, pd, 32, 2, &srqn, &err));
	assert_int_equal(engine_srq_post(e, srqn, wr, 3, &err), 3);
	info = srq_of(e, srqn);
	assert_int_equal(info.worker, 1);
	assert_int_equal(info.pd, pd);
	assert_int_equal(info.max_wr, 32);
	assert_int_equal(info.max_sge, 2);
	assert_int_equal(info.posted, 3);
	assert_int_equal(info.users, 0);
	assert_true(engine_srq_next(e, &cursor, &info));
	assert_int_equal(info.srqn, srqn);
	assert_false(engine_srq_next(e, &cursor, &info));
	/* the call posts as many as fit and returns their number; then none fits */
	assert_int_equal(engine_srq_post(e, srqn, wr, 40, &err), 29);
	assert_int_equal(engine_srq_post(e, srqn, wr, 1, &err), -ENOMEM);
	assert_int_equal(srq_of(e, srqn).posted, 32);
	assert_ok(engine_srq_modify(e, srqn, 32, &err)); /* as many as are posted: no event */
	assert_int_equal(limit_events(e, srqn), 0);
	assert_int_equal(srq_of(e, srqn).limit, 32);
	assert_int_equal(engine_srq_modify(e, srqn, 33, &err), -EINVAL);
	assert_string_equal(err.text, "limit: got 33, allowed 0..32");
	assert_ok(engine_srq_destroy(e, srqn, &err));
	assert_ok(engine_srq_create(e, 0, pd, 32, 1, &srqn, &err));
	assert_ok(engine_srq_modify(e, srqn, 1, &err)); /* none is posted: one event at once */
	eventually(limit_events(e, srqn) == 1);
	assert_int_equal(srq_of(e, srqn).limit, 0);
	assert_ok(engine_srq_destroy(e, srqn, &err));
	assert_ok(engine_pd_free(e, pd, &err));
}

static void
test_unknown_srq_is_an_error(void **state)
{
	struct recv_wr wr = { 0 };
	struct engine *e = *state;
	struct error err = { "" };
	uint32_t srqn, pd;

	assert_int_equal(engine_srq_post(e, 7, &wr, 1, &err), -ENOENT);
	assert_string_equal(err.text, "srq: no shared receive queue 7");
	assert_int_equal(engine_srq_modify(e, 7, 1, &err), -ENOENT);
	assert_int_equal(engine_srq_destroy(e, 7, &err), -ENOENT);
	assert_int_equal(engine_srq_create(e, 0, 99, 8, 1, &srqn, &err), -ENOENT);
	assert_ok(engine_pd_alloc(e, &pd, &err));
	assert_int_equal(engine_srq_create(e, 9, pd, 8, 1, &srqn, &err), -EINVAL);
	assert_int_equal(engine_srq_create(e, 0, pd, 0, 1, &srqn, &err), -EINVAL);
	assert_ok(engine_pd_free(e, pd, &err));
}

/* Other QPs are created, used and destroyed while one QP moves data undisturbed. */
static void
test_qps_come_and_go_while_traffic_runs(void **state)
{
	struct engine *e = *state;
	struct pair busy, other;
	unsigned int round, i;

	pair_create(e, &busy, 0, 1);
	fill(busy.a.mr.base, 200000, 5);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < 8; i++)
			assert_int_equal(post(e, &busy.a, WR_RDMA_WRITE, &busy.b, 0,
						 200000 * (i % 4), 200000, i),
				1);
		pair_create(e, &other, (int)(round % 2), 1);
		fill(other.a.mr.base, 3000, round);
		assert_int_equal(post(e, &other.a, WR_RDMA_WRITE, &other.b, 0, 0, 3000, 1), 1);
		expect_wc(e, &other.a, 1);
		assert_memory_equal(other.a.mr.base, other.b.mr.base, 3000);
		/* destroyed in the middle of a message */
		assert_int_equal(post(e, &other.a, WR_RDMA_WRITE, &other.b, 0, 0, BUF_SIZE, 2), 1);
		pair_destroy(e, &other);
		expect_wc(e, &busy.a, 8);
	}
	assert_memory_equal(busy.a.mr.base, busy.b.mr.base + 600000, 200000);
	pair_destroy(e, &busy);
	sum_of_verdicts_is_packets(e);
}

/* Post Writes as one batch, so that all are outstanding together. */
static int
post_many(struct engine *e, struct end *a, struct end *b, uint32_t len, unsigned int n)
{
	struct sge sge = { a->mr.va, len, a->mr.key };
	struct send_wr wr[256];
	unsigned int i;

	for (i = 0; i < n; i++)
		wr[i] = (struct send_wr){
			.wr_id = i,
			.opcode = WR_RDMA_WRITE,
			.send_flags = SEND_SIGNALED,
			.num_sge = 1,
			.sg_list = &sge,
			.remote_addr = b->mr.va,
			.rkey = b->mr.key,
		};
	return engine_post_send(e, a->qpn, wr, n, NULL);
}

/*
 * A region is deregistered while a peer writes to it: the peer gets NAK 0x62, and after deregister
 * has returned no byte changes.
 */
static void
test_region_is_deregistered_while_traffic_runs(void **state)
{
	struct engine *e = *state;
	struct rc_qp_info info;
	struct error err = { "" };
	struct wc wc[200];
	unsigned int i, n, ok, round;
	struct pair p;

	for (round = 0; round < 10; round++) {
		pair_create(e, &p, 0, (int)(round % 2));
		assert_int_equal(post_many(e, &p.a, &p.b, BUF_SIZE, 200), 200);
		assert_ok(engine_mr_deregister(e, p.b.mr.key, &err));
		p.b.mr.key = 0;
		n = wait_wc(e, p.a.cq, wc, 200, 30000);
		assert_int_equal(n, 200);
		for (ok = 0; ok < n && wc[ok].status == WC_SUCCESS; ok++)
			;
		assert_in_range(ok, 0, 199);
		assert_string_equal(wc_status_name(wc[ok].status), "REM_ACCESS_ERR");
		for (i = ok + 1; i < n; i++)
			assert_string_equal(wc_status_name(wc[i].status), "WR_FLUSH_ERR");
		assert_ok(engine_qp_query(e, p.b.qpn, &info, &err));
		assert_int_equal(info.attr.qp_state, QPS_ERR);
		pair_destroy(e, &p);
	}
}

/* Packets for a destroyed QP are dropped and counted, whichever worker receives them. */
static void
test_packets_for_unknown_qps_are_counted(void **state)
{
	struct engine *e = *state;
	struct pair p;

	pair_create(e, &p, 0, 1);
	end_destroy(e, &p.b);
	assert_int_equal(post(e, &p.a, WR_SEND, &p.b, 0, 0, 64, 1), 1);
	eventually(verdict_total(e, VERDICT_QPN_UNKNOWN) > 0);
	end_destroy(e, &p.a);
}

/* Take the event QP_ERROR of an end, and its line in the log, which is there once. */
static void
expect_qp_error(struct engine *e, const struct end *end, const char *why)
{
	char *text = NULL, head[64], line[EVENT_TEXT_MAX];
	struct event ev = { .element = 0 };
	struct timespec now;
	uint64_t ns;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	rte_openlog_stream(f);
	eventually(engine_events(e, &ev, 1, NULL) == 1);
	rte_openlog_stream(NULL);
	fclose(f);
	clock_gettime(CLOCK_REALTIME, &now);
	assert_string_equal(event_type_name(ev.type), "QP_ERROR");
	assert_int_equal(ev.element, end->qpn);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	assert_true(ev.time < ns && ns - ev.time < UINT64_C(60000000000));
	assert_int_equal(engine_event_text(e, &ev, line, sizeof(line)), RTE_LOG_WARNING);
	snprintf(head, sizeof(head), "QP 0x%x on port%u is in ERR: ", end->qpn, ev.failure.port);
	assert_memory_equal(line, head, strlen(head));
	if (strstr(line, why) == NULL)
		fail_msg("%s", line);
	assert_memory_equal(text, "engine: ", strlen("engine: "));
	assert_memory_equal(text + strlen("engine: "), line, strlen(line));
	assert_string_equal(text + strlen("engine: ") + strlen(line), "\n");
	free(text);
}

static void
test_errors_arrive_as_events(void **state)
{
	struct event ev = { .element = 0 };
	struct engine *e = *state;
	struct error err = { "" };
	uint64_t lost;
	struct pair p;

	pair_create(e, &p, 0, 1);
	assert_int_equal(engine_events(e, &ev, 1, &lost), 0);
	assert_ok(engine_mr_deregister(e, p.b.mr.key, &err));
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 64, 1), 1);
	p.b.mr.key = 0;
	eventually(engine_events(e, &ev, 1, &lost) == 1);
	/* seed 001: NAK 0x62 without a receive WQE is an affiliated asynchronous error */
	assert_string_equal(event_type_name(ev.type), "QP_ACCESS_ERR");
	assert_int_equal(ev.element, p.b.qpn);
	assert_int_equal(lost, 0);
	/* the alert names the QP, its peer and the reason */
	expect_qp_error(e, &p.b, "it refused a request: sent NAK 0x62 (remote access error); PSN ");
	expect_qp_error(e, &p.a,
		"the peer refused its request: received NAK 0x62 (remote access error); PSN ");
	pair_destroy(e, &p);
}

/* A recorded QP that fails: the event has its steps, which outlive the QP. */
static void
test_a_failed_qp_sends_its_steps(void **state)
{
	struct event ev = { .element = 0 };
	struct engine *e = *state;
	struct engine_trace t;
	struct error err = { "" };
	const struct trace_step *s;
	struct pair p;

	pair_create(e, &p, 0, 1);
	assert_ok(engine_trace_switch(e, ENGINE_TRACED_QP, p.b.qpn, true, &err));
	assert_ok(engine_mr_deregister(e, p.b.mr.key, &err));
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 64, 1), 1);
	p.b.mr.key = 0;
	do
		eventually(engine_events(e, &ev, 1, NULL) == 1);
	while (ev.type != EVENT_QP_ERROR || ev.element != p.b.qpn);
	assert_int_equal(ev.failure.reason, QP_FAILURE_RKEY);
	assert_null(ev.steps);
	do
		eventually(engine_events(e, &ev, 1, NULL) == 1);
	while (ev.type != EVENT_QP_ERROR);
	assert_int_equal(ev.failure.trace, 0); /* the other end is not recorded */
	assert_true(engine_event_trace(e, 1, &t));
	assert_int_equal(trace_length(&t.steps), 2);
	s = trace_at(&t.steps, 0);
	assert_int_equal(s->event, RC_STEP_RECEIVED);
	assert_int_equal(s->what, RC_WRITE_ONLY);
	assert_int_equal(s->outcome, VERDICT_NAK_SENT);
	assert_int_equal(s->time, 0);
	assert_int_equal(trace_at(&t.steps, 1)->event, RC_STEP_FAILED);
	assert_false(engine_event_trace(e, 2, &t));
	/* the QP itself has the NAK, too */
	eventually(engine_trace_get(e, ENGINE_TRACED_QP, p.b.qpn, &t, NULL) == 0 &&
		trace_length(&t.steps) == 3);
	assert_int_equal(trace_at(&t.steps, 2)->event, RC_STEP_SENT);
	pair_destroy(e, &p);
}

static void
next_port_event(struct engine *e, enum event_type type, uint32_t port, const char *text)
{
	struct event ev = { .element = 99 };
	char line[EVENT_TEXT_MAX];

	eventually(engine_events(e, &ev, 1, NULL) == 1);
	assert_string_equal(event_type_name(ev.type), event_type_name(type));
	assert_int_equal(ev.element, port);
	engine_event_text(e, &ev, line, sizeof(line));
	assert_string_equal(line, text);
}

/* The link goes down and up: two events; QPs on the port go on. */
static void
test_port_changes_raise_events_and_qps_go_on(void **state)
{
	struct engine *e = *state;
	uint16_t ethdev = link_ethdev(engine_link(e), 1);
	struct pair p;

	pair_create(e, &p, 0, 1);
	fill(p.a.mr.base, 5000, 1);
	assert_int_equal(rte_eth_dev_set_link_down(ethdev), 0);
	next_port_event(e, EVENT_PORT_ERR, 1, "port1: link is down");
	assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 5000, 1), 1);
	assert_int_equal(rte_eth_dev_set_link_up(ethdev), 0);
	next_port_event(e, EVENT_PORT_ACTIVE, 1, "port1: link is up");
	expect_wc(e, &p.a, 1);
	assert_memory_equal(p.a.mr.base, p.b.mr.base, 5000);
	pair_destroy(e, &p);
}

/* engine_stop() waits for outstanding work. */
static void
test_drain_lets_work_finish(void **state)
{
	struct engine *e;
	struct wc wc[4];
	struct pair p;
	int i;

	(void)state;
	node_config();
	e = node_start();
	pair_create(e, &p, 0, 1);
	fill(p.a.mr.base, BUF_SIZE, 9);
	for (i = 0; i < 4; i++)
		assert_int_equal(post(e, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, BUF_SIZE, 1), 1);
	engine_stop(e, 30000);
	assert_int_equal(wait_wc(e, p.a.cq, wc, 4, 0), 4);
	for (i = 0; i < 4; i++)
		assert_string_equal(wc_status_name(wc[i].status), "SUCCESS");
	assert_memory_equal(p.a.mr.base, p.b.mr.base, BUF_SIZE);
	pair_destroy(e, &p);
	engine_destroy(e);
}

static void
refused_av(struct engine *e, struct end *end, const struct engine_ah *ah, const char *words)
{
	struct qp_attr attr = {
		.qp_state = QPS_RTR,
		.path_mtu = 1024,
		.dest_qp_num = 16,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	struct error err = { "" };

	assert_int_equal(engine_qp_modify(e, end->qpn, &attr, ah,
				 QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
					 QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
					 QP_ATTR_MIN_RNR_TIMER,
				 &err),
		-EINVAL);
	assert_string_equal(err.text, words);
}

static void
test_address_handles_are_checked(void **state)
{
	struct qp_attr init = { .qp_state = QPS_INIT };
	struct engine *e = *state;
	struct engine_ah ah = { .dgid = link_port_attr(engine_link(e), 1)->gid[0].gid };
	struct error err = { "" };
	struct end end;

	end_create(e, &end, 0);
	assert_ok(engine_qp_modify(e, end.qpn, &init, NULL,
		QP_ATTR_STATE | QP_ATTR_PORT | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS, &err));
	refused_av(e, &end, NULL, "ah_attr: missing");
	ah.sgid_index = 3;
	refused_av(e, &end, &ah, "sgid_index: got 3, port0 has 0..2");
	ah.sgid_index = 1;
	refused_av(e, &end, &ah,
		"dgid: got 192.0.2.2, but the source address (sgid_index) is fe80::1: both must be IPv4 "
		"or both IPv6");
	ah.port = 1;
	refused_av(e, &end, &ah, "ah_attr.port: got 1, but the queue pair is on port 0");
	init.pkey_index = 1;
	assert_int_equal(engine_qp_modify(e, end.qpn, &init, NULL,
				 QP_ATTR_STATE | QP_ATTR_PKEY_INDEX, &err),
		-EINVAL);
	assert_string_equal(err.text, "pkey_index: got 1, port0 has 1 P_Keys from 0 on");
	end_destroy(e, &end);
}

static struct engine_ah
traffic_alternate_of(struct engine *e, uint16_t port)
{
	return (struct engine_ah){
		.port = port,
		.sgid_index = 1, /* IPv6 link-local */
		.dgid = link_port_attr(engine_link(e), !port)->gid[1].gid,
	};
}

static void
traffic_rearm(struct engine *e, struct end *end, uint16_t port)
{
	struct qp_attr attr = { .alt.timeout = 18, .path_mig_state = MIG_REARM };
	struct engine_ah alt = traffic_alternate_of(e, port);
	struct error err = { "" };

	assert_ok(engine_qp_modify_paths(e, end->qpn, &attr, NULL, &alt,
		QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE, &err));
}

static void
traffic_expect_migrated(struct engine *e, struct end *end, uint16_t port)
{
	struct engine_ah alt = traffic_alternate_of(e, port);
	struct rc_qp_info info;
	struct error err = { "" };

	assert_ok(engine_qp_query(e, end->qpn, &info, &err));
	assert_int_equal(info.counters.path_migrations, 1);
	assert_int_equal(info.attr.path_mig_state, MIG_MIGRATED);
	assert_int_equal(info.attr.av.encap, ENCAP_ROCEV2_IPV6);
	assert_true(gid_equal(&info.attr.av.dgid, &alt.dgid));
	assert_true(
		gid_equal(&info.attr.av.sgid, &link_port_attr(engine_link(e), port)->gid[1].gid));
	assert_int_equal(info.attr.port, port);
	assert_int_equal(info.counters.retry_exceeded_err, 0);
}

/* An alternate path is resolved like the primary one, and carries the traffic after migration. */
static void
test_traffic_goes_on_by_the_alternate_path(void **state)
{
	struct qp_attr attr = { .path_mig_state = MIG_MIGRATED };
	struct engine *e = *state;
	struct engine_ah alt = traffic_alternate_of(e, 0);
	struct error err = { "" };
	struct pair p;

	pair_create(e, &p, 0, 1);
	assert_int_equal(engine_qp_modify(e, p.a.qpn, &attr, NULL, QP_ATTR_ALT_PATH, &err),
		-EINVAL);
	assert_string_equal(err.text, "alt_ah_attr: missing");
	alt.port = 2;
	assert_int_equal(engine_qp_modify_paths(e, p.a.qpn, &attr, NULL, &alt, QP_ATTR_ALT_PATH,
				 &err),
		-EINVAL);
	assert_string_equal(err.text, "alt_ah_attr.port: got 2, there are 2 ports from 0 on");
	alt.port = 0;
	attr.alt.pkey_index = 1;
	assert_int_equal(engine_qp_modify_paths(e, p.a.qpn, &attr, NULL, &alt, QP_ATTR_ALT_PATH,
				 &err),
		-EINVAL);
	assert_string_equal(err.text, "alt_pkey_index: got 1, port0 has 1 P_Keys from 0 on");
	traffic_rearm(e, &p.a, 0);
	traffic_rearm(e, &p.b, 1);
	move_data(e, &p.a, &p.b);
	assert_ok(engine_qp_modify(e, p.a.qpn, &attr, NULL, QP_ATTR_PATH_MIG_STATE, &err));
	move_data(e, &p.a, &p.b);
	move_data(e, &p.b, &p.a);
	traffic_expect_migrated(e, &p.a, 0);
	traffic_expect_migrated(e, &p.b, 1);
	pair_destroy(e, &p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_operations_on_one_worker, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_a_completion_ends_the_wait_for_it,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_packets_on_the_wrong_lcore_reach_their_owner,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_qps_go_to_the_least_loaded_worker,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_qp_list_walks_all_workers, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_srq_and_its_qps_share_a_worker, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_srq_holds_its_size_and_raises_its_limit_event,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_unknown_srq_is_an_error, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_qps_come_and_go_while_traffic_runs,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_region_is_deregistered_while_traffic_runs,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_packets_for_unknown_qps_are_counted,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_errors_arrive_as_events, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_a_failed_qp_sends_its_steps, traffic_start,
			traffic_stop),
		cmocka_unit_test_setup_teardown(test_port_changes_raise_events_and_qps_go_on,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_traffic_goes_on_by_the_alternate_path,
			traffic_start, traffic_stop),
		cmocka_unit_test_setup_teardown(test_address_handles_are_checked, traffic_start,
			traffic_stop),
		cmocka_unit_test(test_drain_lets_work_finish),
		cmocka_unit_test(test_cnps_reach_the_qp_with_dcqcn),
		cmocka_unit_test(test_cnps_are_dropped_without_dcqcn),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
