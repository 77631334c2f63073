/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Damage to a port of the agent ends a build with checks at the port's next event. */

#include "../checked.h"
#include "bench.h"
#include "pma/private.h"

static void
damage_status(struct pma_port *p)
{
	p->sample.status = PMA_SAMPLE_RUNNING;
}

static void
damage_link_downed(struct pma_port *p)
{
	p->seen.value[PMA_LINK_DOWNED] = 7;
}

static void
damage_nothing(struct pma_port *p)
{
	(void)p;
}

struct damage {
	void (*damage)(struct pma_port *p);
};

static void
damage_then_link(void *pma, void *arg)
{
	const struct damage *d = arg;

	d->damage(&((struct pma *)pma)->port[0]);
	pma_link(pma, 0, true);
}

static void
test_damage_to_a_port_is_found(void **state)
{
	struct damage nothing = { damage_nothing };
	struct damage damages[] = { { damage_status }, { damage_link_downed } };
	struct bench *b = *state;
	unsigned int i;

	assert_false(ends_process(damage_then_link, b->pma, &nothing));
	for (i = 0; i < RTE_DIM(damages); i++)
		assert_int_equal(ends_process(damage_then_link, b->pma, &damages[i]), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_damage_to_a_port_is_found, bench_setup,
			bench_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
