/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The timer wheel: the promises of its header one by one, then random operations compared with a
 * naive model, on a virtual clock.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/timer_wheel.h"

#define TICK 1024
#define TURN (65536 * (uint64_t)TICK) /* more than one turn of a wheel with up to 65536 slots */

struct probe {
	struct timer timer; /* the first member: the callback casts it to struct probe */
	struct timer_wheel *w;
	unsigned int fired;
	uint64_t fired_at;
	uint64_t rearm; /* non-zero: the callback arms the timer again at this deadline */
	struct probe *victim; /* the callback disarms it */
	struct probe *delayed; /* the callback arms it again at delay_to */
	uint64_t delay_to;
};

static void
probe_fire(struct timer *t, uint64_t now)
{
	struct probe *p = (struct probe *)t;

	assert_false(timer_armed(t));
	p->fired++;
	p->fired_at = now;
	if (p->rearm != 0)
		timer_arm(p->w, t, p->rearm);
	if (p->victim != NULL)
		timer_disarm(p->w, &p->victim->timer);
	if (p->delayed != NULL)
		timer_arm(p->w, &p->delayed->timer, p->delay_to);
}

static void
probe_init(struct probe *p, struct timer_wheel *w)
{
	memset(p, 0, sizeof(*p));
	timer_init(&p->timer, probe_fire);
	p->w = w;
}

static void
test_tick_must_be_a_power_of_two(void **state)
{
	(void)state;
	assert_null(timer_wheel_create(&allocator_malloc, 0, 0));
	assert_null(timer_wheel_create(&allocator_malloc, 1000, 0));
}

static void *
no_memory(void *arg, size_t size, size_t align)
{
	(void)arg;
	(void)size;
	(void)align;
	return NULL;
}

static void
test_there_is_no_wheel_without_memory(void **state)
{
	const struct allocator none = { .alloc = no_memory };

	(void)state;
	assert_null(timer_wheel_create(&none, TICK, 0));
}

static void
test_fires_at_deadline_never_before(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 5000);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	assert_false(timer_armed(&p.timer));
	timer_arm(w, &p.timer, 7001);
	assert_true(timer_armed(&p.timer));
	assert_int_equal(timer_wheel_run(w, 7000), 0); /* same tick as the deadline */
	assert_int_equal(p.fired, 0);
	assert_int_equal(timer_wheel_run(w, 7001), 1);
	assert_int_equal(p.fired, 1);
	assert_int_equal(p.fired_at, 7001);
	assert_int_equal(timer_wheel_run(w, 1 << 30), 0); /* once only */
	assert_int_equal(p.fired, 1);
	timer_wheel_destroy(w);
}

static void
test_past_deadline_fires_at_next_run(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 1000000);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	timer_arm(w, &p.timer, 5);
	assert_int_equal(timer_wheel_next(w), 5);
	assert_int_equal(timer_wheel_run(w, 1000000), 1);
	timer_arm(w, &p.timer, 0);
	assert_int_equal(timer_wheel_run(w, 1000000), 1);
	timer_wheel_destroy(w);
}

static void
test_later_deadline_only_stores(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;
	struct timer **prev;

	(void)state;
	probe_init(&p, w);
	timer_arm(w, &p.timer, 10 * TICK);
	prev = p.timer.prev;
	timer_arm(w, &p.timer, 20 * TICK);
	assert_ptr_equal(p.timer.prev, prev);
	assert_int_equal(p.timer.slot_time, 10 * TICK);
	assert_int_equal(timer_wheel_run(w, 20 * TICK - 1),
		0); /* moved to the slot of its deadline */
	assert_int_equal(p.timer.slot_time, 20 * TICK);
	assert_int_equal(timer_wheel_run(w, 20 * TICK), 1);
	timer_wheel_destroy(w);
}

static void
test_earlier_deadline_fires_earlier(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	timer_arm(w, &p.timer, 3 * TURN);
	timer_arm(w, &p.timer, 7);
	assert_int_equal(timer_wheel_next(w), 7);
	assert_int_equal(timer_wheel_run(w, 7), 1);
	assert_int_equal(timer_wheel_run(w, 4 * TURN), 0);
	timer_wheel_destroy(w);
}

static void
test_deadline_many_turns_ahead(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	const uint64_t deadline = 10 * TURN + 3;
	struct probe p;
	uint64_t now;

	(void)state;
	probe_init(&p, w);
	timer_arm(w, &p.timer, deadline);
	for (now = 0; now < deadline; now += TICK / 2 + 1)
		assert_int_equal(timer_wheel_run(w, now), 0);
	assert_int_equal(timer_wheel_run(w, deadline), 1);
	timer_wheel_destroy(w);
}

static void
test_long_pause_fires_everything_due(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p[300];
	unsigned int i;

	(void)state;
	for (i = 0; i < 300; i++) {
		probe_init(&p[i], w);
		timer_arm(w, &p[i].timer, i * (TURN / 50));
	}
	assert_int_equal(timer_wheel_run(w, 150 * (TURN / 50)), 151);
	for (i = 0; i < 300; i++)
		assert_int_equal(p[i].fired, i <= 150);
	assert_int_equal(timer_wheel_run(w, UINT64_MAX / 4), 149);
	timer_wheel_destroy(w);
}

static void
test_disarm_forgets(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	timer_disarm(w, &p.timer); /* not armed: nothing happens */
	timer_arm(w, &p.timer, 100);
	timer_disarm(w, &p.timer);
	assert_false(timer_armed(&p.timer));
	memset(&p.timer, 0xa5, sizeof(p.timer)); /* the wheel must not access it any more */
	assert_int_equal(timer_wheel_run(w, TURN), 0);
	timer_wheel_destroy(w);
}

static void
test_arm_at_infinity_disarms(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	timer_arm(w, &p.timer, 100);
	timer_arm(w, &p.timer, UINT64_MAX);
	assert_false(timer_armed(&p.timer));
	assert_int_equal(timer_wheel_run(w, TURN), 0);
	timer_wheel_destroy(w);
}

static void
test_callback_may_arm_its_timer_again(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	p.rearm = 5 * TICK;
	timer_arm(w, &p.timer, TICK);
	assert_int_equal(timer_wheel_run(w, TICK), 1);
	assert_int_equal(timer_wheel_run(w, 5 * TICK - 1), 0);
	assert_int_equal(timer_wheel_run(w, 5 * TICK), 1);
	assert_int_equal(p.fired, 2);
	timer_wheel_destroy(w);
}

/* Otherwise a timer that always arms itself in the past would block the worker for ever. */
static void
test_rearm_in_the_past_waits_for_next_run(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p;

	(void)state;
	probe_init(&p, w);
	p.rearm = 1;
	timer_arm(w, &p.timer, TICK);
	assert_int_equal(timer_wheel_run(w, 9 * TICK), 1);
	assert_int_equal(timer_wheel_run(w, 9 * TICK), 1);
	assert_int_equal(p.fired, 2);
	timer_wheel_destroy(w);
}

static void
test_callback_disarms_another_that_is_due(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe a, b;

	(void)state;
	probe_init(&a, w);
	probe_init(&b, w);
	a.victim = &b;
	b.victim = &a;
	timer_arm(w, &a.timer, 10);
	timer_arm(w, &b.timer, 10);
	assert_int_equal(timer_wheel_run(w, 10), 1); /* the first to fire disarmed the other */
	assert_int_equal(a.fired + b.fired, 1);
	assert_int_equal(timer_wheel_run(w, TURN), 0);
	timer_wheel_destroy(w);
}

static void
test_callback_delays_another_that_is_due(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe a, b;

	(void)state;
	probe_init(&a, w);
	probe_init(&b, w);
	a.delayed = &b;
	a.delay_to = 3 * TICK;
	timer_arm(w, &a.timer, 1 * TICK);
	timer_arm(w, &b.timer, 2 * TICK); /* later tick: fires after a */
	assert_int_equal(timer_wheel_run(w, 2 * TICK), 1);
	assert_int_equal(b.fired, 0);
	assert_int_equal(timer_wheel_run(w, 3 * TICK), 1);
	assert_int_equal(b.fired, 1);
	timer_wheel_destroy(w);
}

static void
test_next_is_a_lower_bound_that_converges(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 77);
	const uint64_t deadline = 5 * TURN + 12345;
	uint64_t next, looks = 0;
	struct probe p;

	(void)state;
	probe_init(&p, w);
	assert_true(timer_wheel_next(w) == UINT64_MAX);
	timer_arm(w, &p.timer, deadline);
	while (p.fired == 0) { /* as a worker that sleeps until the reported time */
		next = timer_wheel_next(w);
		assert_true(next <= deadline);
		timer_wheel_run(w, next);
		looks++;
	}
	assert_int_equal(p.fired_at, deadline);
	assert_true(looks <= 8);
	assert_true(timer_wheel_next(w) == UINT64_MAX);
	timer_wheel_destroy(w);
}

static void
test_clock_that_went_back_fires_what_is_past(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 100 * TICK);
	struct probe past, later;

	(void)state;
	probe_init(&past, w);
	probe_init(&later, w);
	timer_arm(w, &past.timer, 5);
	timer_arm(w, &later.timer, 101 * TICK);
	assert_int_equal(timer_wheel_run(w, 10 * TICK), 1);
	assert_int_equal(past.fired, 1);
	assert_int_equal(timer_wheel_run(w, 101 * TICK - 1), 0);
	assert_int_equal(timer_wheel_run(w, 101 * TICK), 1);
	timer_wheel_destroy(w);
}

/* --- random arm, disarm and run against a list of deadlines --- */

#define PROBES 200

static uint64_t
rnd(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

static uint64_t
rnd_span(uint64_t *s)
{
	switch (rnd(s) % 4) {
	case 0:
		return rnd(s) % TICK;
	case 1:
		return rnd(s) % (64 * TICK);
	case 2:
		return rnd(s) % TURN;
	default:
		return rnd(s) % (5 * TURN);
	}
}

static void
run_model(uint64_t seed)
{
	static struct probe p[PROBES];
	static uint64_t want[PROBES];
	uint64_t now = rnd(&seed) % (100 * TURN), earliest;
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, now);
	unsigned int step, i, due, before[PROBES];

	for (i = 0; i < PROBES; i++) {
		probe_init(&p[i], w);
		want[i] = UINT64_MAX;
	}
	for (step = 0; step < 20000; step++) {
		i = rnd(&seed) % PROBES;
		switch (rnd(&seed) % 8) {
		case 0:
			timer_disarm(w, &p[i].timer);
			want[i] = UINT64_MAX;
			break;
		case 1: /* in the past */
			want[i] = now - rnd(&seed) % TURN;
			timer_arm(w, &p[i].timer, want[i]);
			break;
		case 2:
		case 3:
		case 4:
			want[i] = now + rnd_span(&seed);
			timer_arm(w, &p[i].timer, want[i]);
			break;
		default:
			now += rnd(&seed) % 3 == 0 ? rnd_span(&seed) : rnd(&seed) % (TICK / 4);
			due = 0;
			for (i = 0; i < PROBES; i++) {
				before[i] = p[i].fired;
				due += want[i] <= now;
			}
			assert_int_equal(timer_wheel_run(w, now), due);
			for (i = 0; i < PROBES; i++) {
				assert_int_equal(p[i].fired - before[i], want[i] <= now);
				if (want[i] <= now)
					want[i] = UINT64_MAX;
			}
		}
		earliest = UINT64_MAX;
		for (i = 0; i < PROBES; i++) {
			assert_int_equal(timer_armed(&p[i].timer), want[i] != UINT64_MAX);
			if (want[i] < earliest)
				earliest = want[i];
		}
		assert_true(timer_wheel_next(w) <= earliest);
	}
	timer_wheel_destroy(w);
}

static void
test_equals_naive_model(void **state)
{
	uint64_t seed;

	(void)state;
	for (seed = 1; seed <= 10; seed++)
		run_model(seed * UINT64_C(0x9e3779b97f4a7c15));
}

/*
 * A wait for an answer begins when its packet has left (timer_wheel_begin()), not when it was
 * built.
 */
static void
test_started_timer_waits_from_when_the_packet_left(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p, q, r;

	(void)state;
	probe_init(&p, w);
	probe_init(&q, w);
	probe_init(&r, w);
	timer_arm(w, &p.timer, 50); /* timer_start() moves it */
	timer_start(w, &p.timer, 1000);
	timer_start(w, &q.timer, 2000);
	assert_true(timer_armed(&p.timer));
	assert_int_equal(timer_wheel_next(w), 0); /* the worker must not sleep yet */
	assert_int_equal(timer_wheel_run(w, 5000), 0);
	assert_true(timer_wheel_seal(w));
	assert_true(timer_wheel_sealed(w));
	timer_start(w, &r.timer, 10); /* started by a later packet */
	assert_false(timer_wheel_seal(w));
	assert_int_equal(timer_wheel_run(w, 10000), 0);
	timer_wheel_begin(w, 10000);
	assert_false(timer_wheel_sealed(w));
	assert_int_equal(timer_wheel_run(w, 10999), 0);
	assert_int_equal(timer_wheel_run(w, 11000), 1);
	assert_int_equal(p.fired, 1);
	timer_wheel_sent(w, 11500);
	assert_int_equal(timer_wheel_run(w, 12000), 2);
	assert_int_equal(q.fired + r.fired, 2);
	assert_int_equal(timer_wheel_next(w), UINT64_MAX);
	timer_wheel_destroy(w);
}

static void
test_started_timer_may_be_moved_or_disarmed(void **state)
{
	struct timer_wheel *w = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p, q, r;

	(void)state;
	probe_init(&p, w);
	probe_init(&q, w);
	probe_init(&r, w);
	timer_start(w, &p.timer, 1000);
	timer_start(w, &q.timer, 1000);
	timer_start(w, &r.timer, 1000);
	timer_disarm(w, &p.timer);
	timer_arm(w, &q.timer, 300);
	timer_move(w, &r.timer, 400);
	assert_false(timer_wheel_seal(w)); /* no started timer is left */
	assert_int_equal(timer_wheel_run(w, 300), 1);
	assert_int_equal(timer_wheel_run(w, 400), 1);
	assert_int_equal(p.fired, 0);
	timer_wheel_destroy(w);
}

/* A timer moves to another wheel, with its deadline or before its wait has begun. */
static void
test_suspended_timer_goes_on_in_another_wheel(void **state)
{
	struct timer_wheel *from = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct timer_wheel *to = timer_wheel_create(&allocator_malloc, TICK, 0);
	struct probe p, q, r;

	(void)state;
	probe_init(&p, to);
	probe_init(&q, to);
	probe_init(&r, to);
	timer_arm(from, &p.timer, 700);
	timer_start(from, &q.timer, 1000);
	timer_suspend(from, &p.timer);
	timer_suspend(from, &q.timer);
	timer_suspend(from, &r.timer);
	assert_int_equal(timer_wheel_run(from, 10000), 0);
	timer_resume(to, &p.timer);
	timer_resume(to, &q.timer);
	timer_resume(to, &r.timer);
	timer_wheel_sent(to, 5000);
	assert_int_equal(timer_wheel_run(to, 5999), 1);
	assert_int_equal(timer_wheel_run(to, 6000), 1);
	assert_int_equal(q.fired_at, 6000);
	assert_false(timer_armed(&r.timer));
	timer_wheel_destroy(from);
	timer_wheel_destroy(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tick_must_be_a_power_of_two),
		cmocka_unit_test(test_there_is_no_wheel_without_memory),
		cmocka_unit_test(test_fires_at_deadline_never_before),
		cmocka_unit_test(test_past_deadline_fires_at_next_run),
		cmocka_unit_test(test_later_deadline_only_stores),
		cmocka_unit_test(test_earlier_deadline_fires_earlier),
		cmocka_unit_test(test_deadline_many_turns_ahead),
		cmocka_unit_test(test_long_pause_fires_everything_due),
		cmocka_unit_test(test_disarm_forgets),
		cmocka_unit_test(test_arm_at_infinity_disarms),
		cmocka_unit_test(test_callback_may_arm_its_timer_again),
		cmocka_unit_test(test_rearm_in_the_past_waits_for_next_run),
		cmocka_unit_test(test_callback_disarms_another_that_is_due),
		cmocka_unit_test(test_callback_delays_another_that_is_due),
		cmocka_unit_test(test_next_is_a_lower_bound_that_converges),
		cmocka_unit_test(test_started_timer_waits_from_when_the_packet_left),
		cmocka_unit_test(test_started_timer_may_be_moved_or_disarmed),
		cmocka_unit_test(test_suspended_timer_goes_on_in_another_wheel),
		cmocka_unit_test(test_clock_that_went_back_fires_what_is_past),
		cmocka_unit_test(test_equals_naive_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
