/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs move to the worker where their packets arrive (design.md rule 1). The workers are
 * polled by hand, a turn of one and a turn of the other, so that what lies between two turns is
 * the test's. At the end real lcores poll, and QPs move to and fro under their traffic.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/verbs_private.h"
#include "node.h"
#include "rc/qp.h"

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

/* And nobody moves by itself. */
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

/* Until so many completions have come; no limit but the test's own. */
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

/* To the worker that it is not on; as by itself, but that nobody may have made ready for it. */
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
 * 100 % of the packets arrive at the wrong worker; the target moves, and then none does: frames of
 * worker w arrive at worker w. The requester is pinned: if both could move they might change
 * places.
 */
static void
test_what_is_handed_over_leads_to_a_move(void **state)
{
	struct worker_info w0, w1;
	struct pair p;
	uint64_t before;
	unsigned int i;

	(void)state;
	by_hand(true);
	pair_create(engine, &p, 0, 1);
	rc_qp_find(w[0]->rc, p.a.qpn)->init.pinned = true;
	for (i = 0; i < 10000 && rehome_worker_of(&p.a) != rehome_worker_of(&p.b); i++) {
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
	/* nothing was lost or out of order for it */
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
}

/* workers.rehome: false */
static void
test_not_when_switched_off(void **state)
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

/* what has just come stays, whatever arrives elsewhere: the tick counts, not the clock */
static void
test_rests_after_a_move(void **state)
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
		rehome_tick(w[0], 0); /* chance says yes at 0 */
		assert_int_equal(w[0]->rehome.num_leaving, 0);
	}
	for (i = 0; i < 64; i++)
		rehome_note(w[0], 1, &pkt);
	rehome_tick(w[0], 0);
	assert_int_equal(w[0]->rehome.num_leaving, 1);
	turns(4);
	assert_int_equal(rehome_worker_of(&p.b), 1);
}

/* 7 of 8 packets at least, and 64; all received ones count, also those that arrive at home */
static void
test_nearly_all_packets(void **state)
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
		/* counting begins with the packet after the first Write */
		for (i = 0; i < rows[k].total + 1; i++) {
			assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 8, i), 1);
			turn_until(&p.a, 1);
			if (i > 0 && i <= rows[k].handed)
				rehome_note(w[0], 1, &pkt);
		}
		w[0]->rehome.tick += 200; /* new QPs do not wait, and ticks have passed */
		w[0]->rehome.handed[p.b.qpn & w[0]->rehome.handed_mask].tick = w[0]->rehome.tick;
		rehome_tick(w[0], 0);
		assert_int_equal(w[0]->rehome.num_leaving, rows[k].moves);
		if (k + 1 < RTE_DIM(rows))
			rehome_teardown(state);
	}
}

/* a worker that is always busy gets nothing from one that is not */
static void
test_not_to_a_worker_without_time(void **state)
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
		/* the tick makes seven eighths of it, and adds what it has seen */
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

/* --- the messages, step by step --- */

/* packets in every place a packet can be while the QP moves: none is lost, none overtakes */
static void
test_packets_on_their_way_keep_their_order(void **state)
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
	rehome_turn(0); /* offered: what arrives now is kept */
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.num_arriving, 1);
	assert_true(w[0]->rehome.arriving[0].parked > 0);
	assert_int_equal(rehome_worker_of(&p.b), 1);
	while (handoff_depth(w[1]) > 0) {
		assert_int_equal(rehome_worker_of(&p.b), 1); /* not before all that is taken in */
		rehome_turn(1);
	}
	rehome_turn(1);
	assert_int_equal(rehome_worker_of(&p.b), 0); /* given away; not yet there */
	assert_int_equal(w[0]->rehome.num_arriving, 1);
	rehome_turn(0);
	assert_int_equal(w[0]->rehome.num_arriving, 0);
	assert_int_equal(w[0]->rehome.arriving[0].parked, 0); /* gone on, not to be freed again */
	turn_until(&p.a, 40);
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
	assert_int_equal(rehome_counters_of(&p.b).rx_write_requests, 40);
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 0);
	assert_int_equal(w[1]->stats.rehomed_out, 1);
	assert_int_equal(w[0]->stats.rehomed_in, 1);
}

/* the other way round: packets arrive where it was, and are sent on */
static void
test_packets_follow_a_qp_that_has_gone(void **state)
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
		rehome_turn(0); /* its packets wait there before it has come */
	assert_true(handoff_depth(w[1]) > 0);
	turn_until(&p.a, 40);
	assert_int_equal(rehome_counters_of(&p.a).retransmitted_pkts, 0);
	assert_int_equal(rehome_counters_of(&p.b).out_of_sequence, 0);
	assert_int_equal(verdict_total(engine, VERDICT_QPN_UNKNOWN), 0);
}

/* the message is read before the packets, though it came between the two looks */
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
	/* a verb finds it at once */
	assert_true(rehome_counters_of(&p.b).rcvd_pkts == 0);
	assert_false(rehome_has_mail(w[1]));
	worker_sort(w[1], none, 0, 0);
	assert_int_equal(post(engine, &p.a, WR_RDMA_WRITE, &p.b, 0, 0, 8, 1), 1);
	turn_until(&p.a, 1);
}

/* what is for QP0, which worker 0 has, is not kept with those of a QP on its way */
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
 * destroyed between the offer and the gift: the other worker lets go, and what it kept is nobody's
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

/* more packets than are kept: a counted drop, which the transport repairs */
static void
test_kept_packets_have_an_end(void **state)
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

/* all of them together: not sixteen times that */
static void
test_all_kept_packets_have_an_end(void **state)
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
 * design.md rule 8: what is handed over is counted once by who sends it on, whose own packet it
 * was, and apart by who has to send it on again: all that was sent is taken over
 */
static void
test_sent_on_twice_is_counted_apart(void **state)
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
	/* as if they came from a third worker, with which this move has nothing to do */
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

/* as many moves at a time as there is room for; those beyond are refused, and nothing is stuck */
static void
test_many_at_a_time(void **state)
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
	/* those of the other worker's at the same time */
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
test_verb_refuses_in_words(void **state)
{
	struct error err = { "" };
	struct end end;

	(void)state;
	by_hand(false);
	end_create(engine, &end, 0);
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 2, &err), -EINVAL);
	assert_string_equal(err.text, "worker: got 2, there are 0..1");
	assert_int_equal(engine_qp_rehome(engine, 99, 1, &err), -ENOENT);
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 0, &err), 0); /* it is there */
	assert_int_equal(engine_qp_rehome(engine, end.qpn, 1, &err), 0);
	assert_int_equal(rehome_worker_of(&end), 1);
}

/* each once, though QPs move to and fro between two looks, and whether or not they have arrived */
static void
test_list_has_each_once(void **state)
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

/* the control thread makes what a move needs; the workers find it there, or stay */
static void
test_ready_to_move_from_the_start(void **state)
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
		/* not by itself, but by a verb */
		assert_int_equal(engine_qp_rehome(engine, end.qpn, 1, &err), 0);
		assert_int_equal(rehome_worker_of(&end), 1);
		if (rehome[i])
			rehome_teardown(state);
	}
}

/* an engine that goes away in the middle of a move leaves nothing behind (under ASan: no leak) */
static void
test_destroyed_in_the_middle(void **state)
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
			rehome_turn(1); /* given away, on its way */
		if (step < 3)
			rehome_teardown(state);
	}
}

/* --- real lcores --- */

/* to and fro under traffic in both directions, a thousand times: no error, every byte right */
static void
test_to_and_fro_under_traffic(void **state)
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
			assert_int_equal(wc[k].wr_id, done++); /* in order, whatever ring */
		}
	}
	assert_memory_equal(p.a.mr.base, p.b.mr.base, 20000);
	engine_worker_info(engine, 0, &w0);
	engine_worker_info(engine, 1, &w1);
	assert_true(w0.rehomed_out + w1.rehomed_out >= MOVES / 2);
	assert_int_equal(w0.rehomed_in + w1.rehomed_in, w0.rehomed_out + w1.rehomed_out);
	pair_destroy(engine, &p);
}

/* by themselves, all there is in one go: what is handed over falls to nothing */
static void
test_many_settle(void **state)
{
	enum { PAIRS = 24 };
	static struct pair p[PAIRS];
	unsigned int i, apart = PAIRS, round;
	uint64_t before, total, was = 0;
	struct link_counters c;

	(void)state;
	node_config()->rehome = true;
	engine = node_start();
	for (i = 0; i < PAIRS; i++)
		pair_create(engine, &p[i], (int)(i % 2), (int)(i + 1) % 2);
	for (round = 0; round < 3000 && apart > 0; round++) {
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
		TEST(test_what_is_handed_over_leads_to_a_move),
		TEST(test_not_when_switched_off),
		TEST(test_rests_after_a_move),
		TEST(test_nearly_all_packets),
		TEST(test_not_to_a_worker_without_time),
		TEST(test_packets_on_their_way_keep_their_order),
		TEST(test_packets_follow_a_qp_that_has_gone),
		TEST(test_packet_before_the_message_is_read),
		TEST(test_qp0_is_not_kept),
		TEST(test_destroyed_while_it_moves),
		TEST(test_kept_packets_have_an_end),
		TEST(test_all_kept_packets_have_an_end),
		TEST(test_sent_on_twice_is_counted_apart),
		TEST(test_many_at_a_time),
		TEST(test_verb_refuses_in_words),
		TEST(test_list_has_each_once),
		TEST(test_ready_to_move_from_the_start),
		TEST(test_destroyed_in_the_middle),
		TEST(test_to_and_fro_under_traffic),
		TEST(test_many_settle),
	};

	return cmocka_run_group_tests(tests, eal_setup, eal_teardown);
}
