/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Damage to the batches of packets for other workers is found by the check of the hand-off. */

#include "../checked.h"
#include "engine/worker.h"

#define WORKERS 3

static struct packet packet;

static void
damage_batch_size(struct worker *w)
{
	w->out[1].n = LINK_BURST + 1;
}

static void
damage_list(struct worker *w)
{
	w->num_dirty = 0;
}

static void
damage_twice(struct worker *w)
{
	w->out_dirty[w->num_dirty++] = 1;
}

static void
damage_own(struct worker *w)
{
	w->out[0].n = 1;
	w->out_dirty[w->num_dirty++] = 0;
}

static void
damage_arrived(struct worker *w)
{
	w->arrived[2].n = LINK_BURST + 1;
}

static void
damage_handoff_and_check(void *w, void *damage)
{
	(*(void (**)(struct worker *))damage)(w);
	handoff_check((struct worker *)w);
}

static void
test_damage_to_batches_is_found(void **state)
{
	static void (*damages[])(struct worker *) = { damage_batch_size, damage_list, damage_twice,
		damage_own, damage_arrived };
	static struct handoff_burst out[WORKERS], arrived[WORKERS];
	static struct worker w = { .workers = WORKERS, .out = out, .arrived = arrived };
	unsigned int i;

	(void)state;
	handoff_stage(&w, 1, &packet);
	handoff_check(&w);
	for (i = 0; i < RTE_DIM(damages); i++)
		assert_int_equal(ends_process(damage_handoff_and_check, &w, &damages[i]), CHECKED);
}

/* Two workers without EAL: their rings are in this memory. */
#define RING 64

static struct rte_ring *
small_ring(uint8_t *memory)
{
	struct rte_ring *r = (struct rte_ring *)memory;

	assert_int_equal(rte_ring_init(r, "", RING, RING_F_SP_ENQ | RING_F_SC_DEQ), 0);
	return r;
}

static void
take_damaged(void *worker, void *unused)
{
	struct packet *pkts[LINK_BURST];
	struct worker *w = worker;

	(void)unused;
	damage_batch_size(w);
	handoff_take(w, 1, pkts);
}

static void
take_smps_damaged(void *worker, void *unused)
{
	struct packet *pkts[LINK_BURST];
	struct worker *w = worker;

	(void)unused;
	damage_batch_size(w);
	handoff_take_smps(w, 1, pkts);
}

static void
send_again_damaged(void *worker, void *unused)
{
	struct worker *w = worker;

	(void)unused;
	damage_batch_size(w);
	handoff_again(w, 1, &packet);
}

static void
send_smp_damaged(void *worker, void *unused)
{
	struct worker *w = ((struct worker *)worker)->engine->worker[1];

	(void)unused;
	damage_arrived(w);
	handoff_smp(w, &packet);
}

/* Every function that moves packets between workers looks for damage. */
static void
test_every_hand_off_looks_for_damage(void **state)
{
	static void (*const acts[])(void *worker, void *unused) = { take_damaged, take_smps_damaged,
		send_again_damaged, send_smp_damaged };
	static uint8_t memory[3][8192] __attribute__((aligned(RTE_CACHE_LINE_SIZE)));
	static struct handoff_burst out[2][WORKERS], arrived[2][WORKERS];
	static struct engine e = { .num_workers = 2 };
	static struct worker w[2];
	unsigned int i;

	(void)state;
	assert_true(rte_ring_get_memsize(RING) <= (ssize_t)sizeof(memory[0]));
	for (i = 0; i < 2; i++) {
		w[i].id = i;
		w[i].workers = WORKERS;
		w[i].engine = &e;
		w[i].out = out[i];
		w[i].arrived = arrived[i];
		w[i].in[1 - i] = small_ring(memory[i]);
		e.worker[i] = &w[i];
	}
	w[0].smps_in[1] = small_ring(memory[2]);
	for (i = 0; i < RTE_DIM(acts); i++)
		assert_int_equal(ends_process(acts[i], &w[0], NULL), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_to_batches_is_found),
		cmocka_unit_test(test_every_hand_off_looks_for_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
