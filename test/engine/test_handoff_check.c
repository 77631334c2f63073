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

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_damage_to_batches_is_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
