/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs move to the worker where their packets arrive (design.md rule 1). The test polls the
 * workers itself, one turn at a time, so that it decides what happens between two turns. The last
 * tests use real lcores, and move QPs back and forth under traffic.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/verbs_private.h"
#include "node.h"
#include "rc/qp_directory.h"

/* after so many chances of one eighth, a QP has moved */
#define TICKS_TO_MOVE 1000

static struct engine *engine; /* of the test, not started */
static struct worker *w[2];

static void
by_hand(bool rehome)
{
	node_config()->rehome = rehome;
	engine = node_create();
	w[0] = engine->worker[0];
	w[1] = engine->worker[1];
}

/* A pair whose QPs do not move by themselves. */
static void
pair_by_hand(struct pair *p, int worker_a, int worker_b)
{
	by_hand(false);
	pair_create(engine, p, worker_a, worker_b);
}

static int
rehome_teardown(void **state)
{
	(void)state;
	engine_destroy(engine);
	engine = NULL;
	return 0;
}

static void
rehome_turn(unsigned int worker)
{
	engine_turn(engine, worker, rte_get_tsc_cycles());
}

static void
turns(unsigned int n)
{
	while (n-- > 0) {
		rehome_turn(0);
		rehome_turn(1);
	}
}

/* Poll both workers until `want` completions have come. */
static void
turn_until(struct end *end, unsigned int want)
{
	unsigned int got = 0;
	struct wc wc[16];
	int n;

	while (got < want) {
		turns(1);
		n = engine_cq_poll(engine, end->cq, wc, RTE_MIN(16u, want - got), NULL);
		assert_true(n >= 0);
		while (n-- > 0) {
			assert_string_equal(wc_status_name(wc[n].status), "SUCCESS");
			got++;
		}
	}
}

static unsigned int
rehome_worker_of(const struct end *end)
{
	return (unsigned int)rc_owner(engine->dev, end->qpn);
}

/* Offer the QP to the other worker, also if no memory was prepared there. */
static int
offer(uint32_t qpn)
{
	unsigned int from = (unsigned int)rc_owner(engine->dev, qpn);
	struct rc_qp_info info;

	assert_int_equal(engine_qp_query(engine, qpn, &info, NULL), 0);
	assert_int_equal(reserve_completions(engine, &info.init, !from, NULL), 0);
	return rehome_offer(engine->worker[from], qpn, !from, NULL);
}

static struct rc_counters
rehome_counters_of(struct end *end)
{
	struct rc_qp_info info;

	assert_int_equal(engine_qp_query(engine, end->qpn, &info, NULL), 0);
	return info.counters;
}

static uint64_t
handed(void)
{
	struct worker_info w0, w1;

	engine_worker_info(engine, 0, &w0);
	engine_worker_info(engine, 1, &w1);
	assert_int_equal(w0.handoff_full + w1.handoff_full, 0);
	return w0.handoff_out + w1.handoff_out;
}

/* --- by themselves --- */

/*
 * All packets arrive at the wrong worker. The target QP moves there, and then none arrives at the
 * wrong one, as frames sent by worker w arrive at worker w. The requester is pinned: if both could
 * move, they might change places. A tick moves the QP with a probability of about one eighth, and a
 * fast machine sends hundreds of messages between two ticks: so the limit counts ticks.
 */
static void
test_qp_moves_to_where_its_packets_arrive(void **state)
{
	struct worker_info w0, w1;
	struct pair p;
	uint64_t before;
	unsigned int i;

	(void)state;
	by_hand(true);
	pair_create(engine, &p, 0, 1);
	rc_qp_at(w[0]->rc, p.a.qpn)->init.pinned = true;
	for (i = 0; w[1]->rehome.tick < TICKS_TO_MOVE &&
		rehome_worker_of(&p.a) != rehome_worker_of(&p.b);
		i++) {
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 256 * 1024, i), 1);
		turn_until(&p.a, 1);
	}
	assert_int_equal(rehome_worker_of(&p.a), rehome_worker_of(&p.b));
	turns(4);
	before = handed();
	assert_true(before > 64);
	for (i = 0; i < 20; i++) {
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 256 * 1024, i), 1);
		turn_until(&p.a, 1);
	}
	assert_int_equal(handed(), before); /* 0 % */
	engine_worker_info(engine, 0, &w0);
	engine_worker_info(engine, 1, &w1);
	assert_int_equal(w0.rehomed_in, 1);
	assert_int_equal(w1.rehomed_out, 1);
	assert_int_equal(w0.rehomed_out + w1.rehomed_in, 0);
	assert_int_equal(w0.qps + w1.qps, 2);
	/* the move lost and reordered nothing */
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
}

/* workers.rehome: false */
static void
test_no_move_if_switched_off(void **state)
{
	struct pair p;
	unsigned int i;

	(void)state;
	pair_by_hand(&p, 0, 1);
	for (i = 0; i < 200; i++) {
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 256 * 1024, i), 1);
		turn_until(&p.a, 1);
	}
	assert_int_equal(rehome_worker_of(&p.a), 0);
	assert_int_equal(rehome_worker_of(&p.b), 1);
}

/* A QP that has just moved stays for a number of ticks, wherever its packets arrive. */
static void
test_qp_stays_for_a_while_after_a_move(void **state)
{
	struct packet pkt = { 0 };
	struct pair p;
	unsigned int i, k;

	(void)state;
	by_hand(true);
	pair_create(engine, &p, 0, 0);
	pkt.dest_qpn = p.b.qpn;
	rehome_settle(w[0], p.b.qpn);
	for (k = 0; k < WORKER_TICK_HZ - 1; k++) {
		for (i = 0; i < 64; i++)
			rehome_note(w[0], 1, &pkt);
		rehome_tick(w[0], 0); /* with the random number 0 the QP may move */
		assert_int_equal(w[0]->rehome.num_leaving, 0);
	}
	for (i = 0; i < 64; i++)
		rehome_note(w[0], 1, &pkt);
	rehome_tick(w[0], 0);
	assert_int_equal(w[0]->rehome.num_leaving, 1);
	turns(4);
	assert_int_equal(rehome_worker_of(&p.b), 1);
}

/* A QP moves if at least 7 of 8 of its packets, and at least 64, arrive at the other worker. */
static void
test_nearly_all_packets_must_arrive_elsewhere(void **state)
{
	static const struct {
		unsigned int handed, total;
		bool moves;
	} rows[] = { { 63, 63, false }, { 64, 64, true }, { 64, 73, true }, { 64, 74, false } };
	struct packet pkt = { 0 };
	struct pair p;
	unsigned int i, k;

	(void)state;
	for (k = 0; k < RTE_DIM(rows); k++) {
		by_hand(true);
		pair_create(engine, &p, 0, 0);
		pkt.dest_qpn = p.b.qpn;
		/* counting begins after the first Write */
		for (i = 0; i < rows[k].total + 1; i++) {
			assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 8, i), 1);
			turn_until(&p.a, 1);
			if (i == 1)
				rehome_note(w[0], 1, &pkt);
		}
		/* no turn from here on: its tick would decide already */
		for (i = 1; i < rows[k].handed; i++)
			rehome_note(w[0], 1, &pkt);
		w[0]->rehome.tick += 200; /* new QPs do not wait, and ticks have passed */
		w[0]->rehome.handed[p.b.qpn & w[0]->rehome.handed_mask].tick = w[0]->rehome.tick;
		rehome_tick(w[0], 0);
		assert_int_equal(w[0]->rehome.num_leaving, rows[k].moves);
		if (k + 1 < RTE_DIM(rows))
			rehome_teardown(state);
	}
}

/* A busy worker gets no QP from one with more idle time. */
static void
test_no_move_to_a_busier_worker(void **state)
{
	static const struct {
		uint64_t mine, theirs;
		bool moves;
	} rows[] = { { 256, 256, true }, { 130, 256, true }, { 100, 256, false }, { 0, 200, true },
		{ 0, 256, false } };
	struct packet pkt = { 0 };
	struct pair p;
	unsigned int i, k;

	(void)state;
	by_hand(true);
	pair_create(engine, &p, 0, 0);
	pkt.dest_qpn = p.b.qpn;
	for (k = 0; k < RTE_DIM(rows); k++) {
		for (i = 0; i < 64; i++)
			rehome_note(w[0], 1, &pkt);
		w[0]->rehome.tick_time = 0;
		w[0]->rehome.tick_busy = w[0]->stats.busy_cycles;
		/* a tick computes 7/8 of the old load plus 1/8 of the new one */
		w[0]->stats.load = rows[k].mine * 8 / 7;
		w[1]->stats.load = rows[k].theirs;
		rehome_tick(w[0], 0);
		assert_int_equal(w[0]->rehome.num_leaving, rows[k].moves);
		if (!rows[k].moves)
			continue;
		turns(4);
		assert_int_equal(rehome_worker_of(&p.b), 1);
		assert_int_equal(engine_qp_rehome(engine, p.b.qpn, 0, NULL), 0);
		turns(1);
		w[0]->rehome.tick += 200;
	}
}

/* --- the steps of a move --- */

/* While the QP moves, no packet is lost or overtaken, wherever it is. */
static void
test_packets_keep_their_order_during_a_move(void **state)
{
	struct pair p;
	unsigned int i;

	(void)state;
	pair_by_hand(&p, 0, 1); /* b's packets arrive at worker 0 */
	for (i = 0; i < 40; i++)
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 32 * 1024, i), 1);
	rehome_turn(0); /* sent */
	rehome_turn(0); /* received, and handed over */
	assert_true(handoff_depth(w[1]) > 0);
	assert_int_equal(offer(p.b.qpn), 0);
	assert_int_equal(offer(p.b.qpn), -EBUSY);
	rehome_turn(0); /* offered: packets that arrive now are kept */
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.num_arriving, 1);
	assert_true(w[0]->rehome.arriving[0].parked > 0);
	assert_int_equal(rehome_worker_of(&p.b), 1);
	while (handoff_depth(w[1]) > 0) {
		assert_int_equal(rehome_worker_of(&p.b),
			1); /* not before all earlier packets are received */
		rehome_turn(1);
	}
	rehome_turn(1);
	assert_int_equal(rehome_worker_of(&p.b), 0); /* exported, not imported yet */
	assert_int_equal(w[0]->rehome.num_arriving, 1);
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.num_arriving, 0);
	assert_int_equal(w[0]->rehome.arriving[0].parked,
		0); /* passed on, so they must not be freed here */
	turn_until(&p.a, 40);
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
	assert_int_equal(rehome_counters_of(&p.b).rx_write_requests, 40);
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 0);
	assert_int_equal(w[1]->stats.rehomed_out, 1);
	assert_int_equal(w[0]->stats.rehomed_in, 1);
}

/* The reverse: packets arrive at the former worker, which hands them over. */
static void
test_packets_follow_a_moved_qp(void **state)
{
	struct pair p;
	unsigned int i;

	(void)state;
	pair_by_hand(&p, 0, 0);
	for (i = 0; i < 40; i++)
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 32 * 1024, i), 1);
	rehome_turn(0);
	assert_int_equal(offer(p.b.qpn), 0);
	rehome_turn(1);
	rehome_turn(0);
	assert_int_equal(rehome_worker_of(&p.b), 1);
	for (i = 0; i < 10; i++)
		rehome_turn(0); /* its packets wait there before the QP arrives */
	assert_true(handoff_depth(w[1]) > 0);
	turn_until(&p.a, 40);
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 0);
}

/* A worker reads the move's message before packets, also if it comes between two reads. */
static void
test_packet_before_the_message_is_read(void **state)
{
	struct packet *none[1] = { NULL };
	struct pair p;

	(void)state;
	pair_by_hand(&p, 0, 0);
	assert_int_equal(offer(p.b.qpn), 0);
	rehome_turn(1);
	rehome_turn(0);
	assert_int_equal(rehome_worker_of(&p.b), 1);
	assert_true(rehome_has_mail(w[1]));
	/* verbs find the QP at once */
	assert_true(rehome_counters_of(&p.b).rcvd_pkts == 0);
	assert_false(rehome_has_mail(w[1]));
	worker_sort(w[1], none, 0, 0);
	assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 8, 1), 1);
	turn_until(&p.a, 1);
}

/* Packets for QP0, which worker 0 owns, are not kept with those of a QP that moves. */
static void
test_qp0_is_not_kept(void **state)
{
	struct packet pkt = { .dest_qpn = 0 };
	struct pair p;

	(void)state;
	pair_by_hand(&p, 0, 1);
	assert_int_equal(offer(p.a.qpn), 0);
	rehome_turn(1);
	assert_int_equal(w[1]->rehome.num_arriving, 1);
	assert_false(rehome_park(w[1], &pkt));
	pkt.dest_qpn = p.b.qpn;
	assert_false(rehome_park(w[1], &pkt));
	assert_int_equal(w[1]->rehome.arriving[0].parked + w[1]->rehome.arriving[1].parked, 0);
	turns(2);
	assert_int_equal(rehome_worker_of(&p.a), 1);
}

/*
 * If the QP is destroyed between offer and export, the other worker ends the move and drops the
 * packets that it kept.
 */
static void
test_destroyed_while_it_moves(void **state)
{
	struct error err = { "" };
	struct pair p;

	(void)state;
	pair_by_hand(&p, 0, 1);
	assert_int_equal(offer(p.b.qpn), 0);
	rehome_turn(0);
	assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 4096, 1), 1);
	rehome_turn(0);
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.arriving[0].parked, 4);
	assert_int_equal(engine_qp_destroy(engine, p.b.qpn, &err), 0);
	rehome_turn(1);
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.num_arriving, 0);
	assert_int_equal(w[1]->rehome.num_leaving, 0);
	assert_int_equal(w[1]->stats.rehomed_out, 0);
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 4);
}

/* Packets beyond the limit are dropped and counted; the transport sends them again. */
static void
test_kept_packets_are_limited(void **state)
{
	struct pair p;
	unsigned int i;

	(void)state;
	pair_by_hand(&p, 0, 1);
	assert_int_equal(offer(p.b.qpn), 0);
	rehome_turn(0);
	assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, BUF_SIZE, 1), 1);
	for (i = 0; i < 100; i++)
		rehome_turn(0);
	assert_int_equal(w[0]->rehome.arriving[0].parked, REHOME_PARK);
	assert_true(w[0]->stats.handoff_full > 0);
	assert_int_equal(verdict_total(engine, VERDICT_HANDOFF_FULL), w[0]->stats.handoff_full);
	rehome_turn(1);
	turn_until(&p.a, 1);
	assert_int_equal(rehome_worker_of(&p.b), 0);
}

/* All moves together share one limit. */
static void
test_kept_packets_of_all_moves_are_limited(void **state)
{
	enum { PAIRS = REHOME_PARK_ALL / REHOME_PARK + 1 };
	struct pair p[PAIRS];
	unsigned int i, k;

	(void)state;
	by_hand(false);
	for (i = 0; i < PAIRS; i++) {
		pair_create(engine, &p[i], 0, 1);
		assert_int_equal(offer(p[i].b.qpn), 0);
		assert_int_equal(post(engine, &p[i].a, WR_RDMA_WRITE, &p[i].b, 0, 0, BUF_SIZE, 1),
			1);
	}
	for (i = 0; i < 100 * PAIRS; i++)
		rehome_turn(0);
	for (i = 0, k = 0; i < REHOME_IN; i++)
		k += w[0]->rehome.arriving[i].parked;
	assert_int_equal(k, REHOME_PARK_ALL);
	assert_int_equal(verdict_total(engine, VERDICT_HANDOFF_FULL), w[0]->stats.handoff_full);
	assert_true(w[0]->stats.handoff_full > 0);
	rehome_turn(1);
	for (i = 0; i < PAIRS; i++) {
		turn_until(&p[i].a, 1);
		assert_int_equal(rehome_worker_of(&p[i].b), 0);
	}
	assert_int_equal(w[0]->rehome.parked, 0);
}

/*
 * design.md rule 8: the first worker that hands a packet over counts it as handed over; a worker
 * that hands it over again counts it in another counter, so that packets handed over equal packets
 * taken over.
 */
static void
test_packet_handed_over_twice_has_its_own_counter(void **state)
{
	struct worker_info info[2];
	struct pair p;

	(void)state;
	pair_by_hand(&p, 1, 0); /* b's packets arrive at worker 1 */
	assert_int_equal(engine_qp_rehome(engine, p.b.qpn, 1, NULL), 0);
	assert_int_equal(engine_qp_rehome(engine, p.b.qpn, 0, NULL), 0);
	turns(1);
	assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 4096, 1), 1);
	rehome_turn(1);
	rehome_turn(1);
	assert_int_equal(handoff_depth(w[0]), 4);
	/* as if they came from a third worker, which takes no part in the move */
	assert_int_equal(rc_qp_export(w[0]->rc, p.b.qpn, 1, NULL), 0);
	assert_int_equal(rc_qp_import(w[1]->rc, p.b.qpn, 0), 0);
	turn_until(&p.a, 1);
	engine_worker_info(engine, 0, &info[0]);
	engine_worker_info(engine, 1, &info[1]);
	assert_int_equal(info[1].handoff_out, 4);
	assert_int_equal(info[1].handoff_again, 0);
	assert_int_equal(info[0].handoff_in, 4);
	assert_int_equal(info[0].handoff_out, 0);
	assert_int_equal(info[0].handoff_again, 4);
	assert_int_equal(info[1].handoff_in, 4);
	assert_int_equal(rehome_counters_of(&p.b).rx_write_requests, 1);
}

/* A limited number of moves at a time; more are refused, and all moves end. */
static void
test_number_of_moves_at_a_time_is_limited(void **state)
{
	enum { MANY = REHOME_OUT + 4 };
	struct end end[MANY];
	unsigned int i, moved = 0, round;

	(void)state;
	by_hand(false);
	for (i = 0; i < MANY; i++)
		end_create(engine, &end[i], 0);
	for (i = 0; i < MANY; i++)
		assert_int_equal(offer(end[i].qpn), i < REHOME_OUT ? 0 : -EBUSY);
	/* QPs of the other worker move at the same time */
	for (round = 0; round < 3; round++) {
		turns(1);
		for (i = 0; i < MANY; i++)
			offer(end[i].qpn);
	}
	turns(4);
	for (i = 0; i < 2; i++) {
		assert_int_equal(w[i]->rehome.num_leaving, 0);
		assert_int_equal(w[i]->rehome.num_arriving, 0);
		moved += (unsigned int)w[i]->stats.rehomed_in;
	}
	assert_true(moved > MANY);
}

/* --- the verb --- */

static void
test_rehome_verb_refuses_with_a_reason(void **state)
{
	struct error err = { "" };
	struct end end;

	(void)state;
	by_hand(false);
	end_create(engine, &end, 0);
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 2, &err), -EINVAL);
	assert_string_equal(err.text, "worker: got 2, there are 0..1");
	assert_int_equal(engine_qp_rehome(engine, 99, 1, &err), -ENOENT);
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 0, &err), 0); /* it is on 0 already */
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 1, &err), 0);
	assert_int_equal(rehome_worker_of(&end), 1);
}

/* A list of all QPs has each QP once, although QPs move between two calls. */
static void
test_list_has_each_qp_once(void **state)
{
	enum { MANY = 12 };
	unsigned int i, k, seen[MANY] = { 0 }, found = 0;
	struct rc_qp_info info;
	uint64_t cursor = 0;
	struct end end[MANY];

	(void)state;
	by_hand(false);
	for (i = 0; i < MANY; i++)
		end_create(engine, &end[i], (int)(i % 2));
	while (engine_qp_next(engine, &cursor, &info)) {
		for (i = 0; i < MANY; i++)
			seen[i] += info.qpn == end[i].qpn;
		found++;
		for (k = 0; k < MANY; k++)
			offer(end[k].qpn);
		rehome_turn(found % 2);
		rehome_turn(!(found % 2));
	}
	assert_int_equal(found, MANY);
	for (i = 0; i < MANY; i++)
		assert_int_equal(seen[i], 1);
	assert_true(w[0]->stats.rehomed_in > 0);
}

/* The control thread prepares the memory of moves when a QP is created. */
static void
test_memory_for_moves_is_prepared(void **state)
{
	static const bool rehome[] = { true, false };
	struct error err = { "" };
	struct end end;
	unsigned int i;

	(void)state;
	for (i = 0; i < RTE_DIM(rehome); i++) {
		by_hand(rehome[i]);
		end_create(engine, &end, 0);
		assert_int_equal(rc_qp_movable(w[0]->rc, end.qpn, 1, &err),
			rehome[i] ? 0 : -ENOMEM);
		/* by a verb, not automatically */
		assert_int_equal(engine_qp_rehome(engine, end.qpn, 1, &err), 0);
		assert_int_equal(rehome_worker_of(&end), 1);
		if (rehome[i])
			rehome_teardown(state);
	}
}

/* An engine destroyed during a move frees everything (ASan finds leaks). */
static void
test_engine_destroyed_during_a_move(void **state)
{
	struct pair p;
	unsigned int step;

	for (step = 0; step < 4; step++) {
		pair_by_hand(&p, 0, 1);
		assert_int_equal(offer(p.b.qpn), 0);
		if (step > 0)
			rehome_turn(0);
		assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 8192, 1), 1);
		if (step > 1) {
			rehome_turn(0);
			rehome_turn(0);
		}
		if (step > 2)
			rehome_turn(1); /* exported, not imported yet */
		if (step < 3)
			rehome_teardown(state);
	}
}

/* --- real lcores --- */

/* A QP moves a thousand times under traffic in both directions: no error, every byte is right. */
static void
test_moves_under_traffic(void **state)
{
	enum { MOVES = 1000 };
	struct error err = { "" };
	unsigned int i, posted = 0, done = 0;
	struct worker_info w0, w1;
	struct wc wc[64];
	struct pair p;
	int n, k, ret;

	(void)state;
	node_config();
	engine = node_start();
	pair_create(engine, &p, 0, 1);
	fill(p.a.mr.base, BUF_SIZE, 7);
	for (i = 0; i < MOVES || done < posted;) {
		while (i < MOVES && posted - done < 16) {
			ret = post(engine, &p.a, posted % 3 ? WR_RDMA_WRITE : WR_RDMA_READ, &p.b,
				posted % 3 ? 0 : BUF_SIZE / 2, posted % 3 ? 0 : BUF_SIZE / 2, 20000,
				posted);
			assert_int_equal(ret, 1);
			posted++;
		}
		if (i < MOVES) {
			ret = engine_qp_rehome(engine, i % 2 ? p.a.qpn : p.b.qpn, i / 2 % 2, &err);
			if (ret == 0)
				i++;
			else
				assert_int_equal(ret, -EAGAIN);
		}
		n = engine_cq_poll(engine, p.a.cq, wc, 64, &err);
		assert_true(n >= 0);
		for (k = 0; k < n; k++) {
			assert_string_equal(wc_status_name(wc[k].status), "SUCCESS");
			assert_int_equal(wc[k].wr_id, done++); /* in order, although in two rings */
		}
	}
	assert_memory_equal(p.a.mr.base, p.b.mr.base, 20000);
	engine_worker_info(engine, 0, &w0);
	engine_worker_info(engine, 1, &w1);
	assert_true(w0.rehomed_out + w1.rehomed_out >= MOVES / 2);
	assert_int_equal(w0.rehomed_in + w1.rehomed_in, w0.rehomed_out + w1.rehomed_out);
	pair_destroy(engine, &p);
}

/* Many QPs move by themselves until nearly no packet is handed over. */
static void
test_many_qps_move_to_their_packets(void **state)
{
	enum { PAIRS = 24 };
	static struct pair p[PAIRS];
	unsigned int i, apart = PAIRS, round;
	uint64_t before, total, was = 0, limit;
	struct link_counters c;

	(void)state;
	node_config()->rehome = true;
	engine = node_start();
	limit = rte_get_tsc_cycles() + 120 * rte_get_tsc_hz();
	for (i = 0; i < PAIRS; i++)
		pair_create(engine, &p[i], (int)(i % 2), (int)(i + 1) % 2);
	for (round = 0; apart > 0 && rte_get_tsc_cycles() < limit; round++) {
		for (i = 0; i < PAIRS; i++)
			assert_int_equal(post(engine, &p[i].a, WR_RDMA_WRITE, &p[i].b, 0, 0,
						 128 * 1024, round),
				1);
		for (i = 0, apart = 0; i < PAIRS; i++) {
			expect_wc(engine, &p[i].a, 1);
			apart += rehome_worker_of(&p[i].a) != rehome_worker_of(&p[i].b);
		}
	}
	assert_int_equal(apart, 0);
	before = handed();
	engine_port_counters(engine, 1, -1, &c);
	was = c.rx_packets;
	for (i = 0; i < PAIRS; i++)
		assert_int_equal(post(engine, &p[i].a, WR_RDMA_WRITE, &p[i].b, 0, 0, BUF_SIZE, 1),
			1);
	for (i = 0; i < PAIRS; i++)
		expect_wc(engine, &p[i].a, 1);
	engine_port_counters(engine, 1, -1, &c);
	total = c.rx_packets - was;
	assert_true(total >= PAIRS * 1024);
	assert_true((handed() - before) * 100 <= total); /* 1 % */
	for (i = 0; i < PAIRS; i++)
		pair_destroy(engine, &p[i]);
}

#define TEST(t) cmocka_unit_test_teardown(t, rehome_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_qp_moves_to_where_its_packets_arrive),
		TEST(test_no_move_if_switched_off),
		TEST(test_qp_stays_for_a_while_after_a_move),
		TEST(test_nearly_all_packets_must_arrive_elsewhere),
		TEST(test_no_move_to_a_busier_worker),
		TEST(test_packets_keep_their_order_during_a_move),
		TEST(test_packets_follow_a_moved_qp),
		TEST(test_packet_before_the_message_is_read),
		TEST(test_qp0_is_not_kept),
		TEST(test_destroyed_while_it_moves),
		TEST(test_kept_packets_are_limited),
		TEST(test_kept_packets_of_all_moves_are_limited),
		TEST(test_packet_handed_over_twice_has_its_own_counter),
		TEST(test_number_of_moves_at_a_time_is_limited),
		TEST(test_rehome_verb_refuses_with_a_reason),
		TEST(test_list_has_each_qp_once),
		TEST(test_memory_for_moves_is_prepared),
		TEST(test_engine_destroyed_during_a_move),
		TEST(test_moves_under_traffic),
		TEST(test_many_qps_move_to_their_packets),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
