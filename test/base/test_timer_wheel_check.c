/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Builds with checks end when an invariant of a timer wheel fails; other builds contain no checks.
 * Damage is done in a process of its own.
 */

#include "../checked.h"
#include "base/timer_wheel_private.h"

#define TICK 1024
#define NEAR (3 * TICK) /* the deadline of one timer, a few slots on */
#define FAR  (5000 * (uint64_t)TICK) /* of another, which no walk from the present slot reaches */

static struct timer near, far, waiting, unarmed;

static void
wheel_fires(struct timer *t, uint64_t now)
{
	(void)t;
	(void)now;
}

static void
damage_time_to_look(struct timer_wheel *w)
{
	(void)w;
	near.slot_time += TICK;
	near.deadline += TICK;
}

static void
damage_deadline(struct timer_wheel *w)
{
	(void)w;
	near.deadline = near.slot_time - 1;
}

static void
damage_link(struct timer_wheel *w)
{
	near.prev = &w->due;
}

static void
damage_bound(struct timer_wheel *w)
{
	w->bound = NEAR + 1;
}

static void
damage_used(struct timer_wheel *w)
{
	w->used[0] = 0;
}

static void
damage_words_used(struct timer_wheel *w)
{
	w->words_used[0] = 0;
}

static void
damage_wait(struct timer_wheel *w)
{
	(void)w;
	waiting.slot_time = 0;
}

static void
damage_function(struct timer_wheel *w)
{
	(void)w;
	waiting.fn = NULL;
}

static void
damage_tick(struct timer_wheel *w)
{
	w->tick = 4; /* the slot of NEAR is skipped */
	near.slot_time = 0;
}

static void
damage_wheel_and_check(void *w, void *damage)
{
	(*(void (**)(struct timer_wheel *))damage)(w);
	timer_wheel_check((struct timer_wheel *)w, &near);
}

static struct timer_wheel *
wheel_of_timers(void)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);

	assert_non_null(w);
	timer_init(&near, wheel_fires);
	timer_init(&far, wheel_fires);
	timer_init(&waiting, wheel_fires);
	timer_init(&unarmed, wheel_fires);
	timer_arm(w, &near, NEAR);
	timer_arm(w, &far, FAR);
	timer_start(w, &waiting, TICK);
	return w;
}

static void
test_damage_to_a_wheel_is_found(void **state)
{
	static void (*damages[])(struct timer_wheel *) = { damage_time_to_look, damage_deadline,
		damage_link, damage_bound, damage_used, damage_words_used, damage_wait,
		damage_function, damage_tick };
	struct timer_wheel *w = wheel_of_timers();
	unsigned int i;

	(void)state;
	timer_wheel_check(w, &near);
	timer_wheel_check(w, &far);
	timer_wheel_check(w, &waiting);
	timer_wheel_check(w, &unarmed);
	for (i = 0; i < sizeof(damages) / sizeof(damages[0]); i++)
		assert_int_equal(ends_process(damage_wheel_and_check, w, &damages[i]), CHECKED);
	timer_wheel_destroy(w);
}

static void
arm_another(void *w, void *t)
{
	near.slot_time += TICK;
	timer_arm(w, t, FAR);
}

static void
disarm_another(void *w, void *t)
{
	near.slot_time += TICK;
	timer_disarm(w, t);
}

static void
start_another(void *w, void *t)
{
	near.slot_time += TICK;
	timer_start(w, t, TICK);
}

static void
seal(void *w, void *t)
{
	(void)t;
	near.slot_time += TICK;
	timer_wheel_seal(w);
}

static void
begin_waits(void *w, void *t)
{
	(void)t;
	near.slot_time += TICK;
	timer_wheel_begin(w, TICK);
}

static void
suspend_another(void *w, void *t)
{
	near.slot_time += TICK;
	timer_suspend(w, t);
}

/* bound is not over for a run that has nothing to do, which is one compare */
static void
run_wheel(void *w, void *t)
{
	timer_arm(w, t, TICK);
	near.slot_time += TICK;
	timer_wheel_run(w, TICK);
}

/* Whatever timer an operation is about, it finds the damage to another one that is soon due. */
static void
test_every_operation_checks_the_wheel(void **state)
{
	static void (*const acts[])(void *w, void *t) = { arm_another, disarm_another,
		start_another, seal, begin_waits, suspend_another, run_wheel };
	struct timer_wheel *w = wheel_of_timers();
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		assert_int_equal(ends_process(acts[i], w, &unarmed), CHECKED);
	timer_wheel_destroy(w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damage_to_a_wheel_is_found),
		cmocka_unit_test(test_every_operation_checks_the_wheel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
