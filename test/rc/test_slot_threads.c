/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Several workers destroy QPs of one home worker at once: each slot comes home once. A worker that
 * is not full can create a QP.
 */

#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/timer_wheel.h"
#include "rc/qp.h"
#include "rc/qp_directory.h"

#define WORKERS 4
#define SLOTS   (1u << 20) /* a fourth of them have worker 0 as home */
#define ROUNDS  10

struct sender {
	struct rc_dev *dev;
	struct rc_slots *home; /* of worker 0 */
	unsigned int id; /* 1 to WORKERS - 1 */
	pthread_barrier_t *start;
};

static struct rc_dev *
slots_create(unsigned int workers, uint32_t max_qp)
{
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = workers,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_dev *dev;

	dc.limits.max_qp = max_qp;
	dev = rc_dev_create(&dc);
	assert_non_null(dev);
	return dev;
}

/* Return this sender's share of worker 0's slots. */
static void *
send_home(void *arg)
{
	const struct sender *s = arg;
	uint32_t i;

	pthread_barrier_wait(s->start);
	for (i = s->id - 1; i < SLOTS / WORKERS; i += WORKERS - 1)
		rc_slot_send_home(s->dev, s->home, i * WORKERS);
	return NULL;
}

static void
expect_all_home(struct rc_dev *dev, struct rc_slots *home)
{
	static bool came[SLOTS];
	uint32_t slot, n = 0;

	memset(came, 0, sizeof(came));
	for (slot = rc_slots_returned(home); slot != RC_NO_SLOT; slot = dev->slot_links[slot]) {
		assert_true(slot < SLOTS);
		assert_int_equal(rc_slot_home(dev, slot), 0);
		assert_false(came[slot]);
		came[slot] = true;
		n++;
	}
	assert_int_equal(n, SLOTS / WORKERS);
}

static void
test_each_slot_comes_home_once(void **state)
{
	struct rc_worker_config wc = { .id = 0 };
	struct sender sender[WORKERS];
	pthread_t thread[WORKERS];
	pthread_barrier_t start;
	struct rc_worker *w;
	struct rc_dev *dev;
	unsigned int round, i;

	(void)state;
	dev = slots_create(WORKERS, SLOTS);
	wc.wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
	w = rc_worker_create(dev, &wc);
	assert_non_null(w);
	assert_int_equal(pthread_barrier_init(&start, NULL, WORKERS - 1), 0);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 1; i < WORKERS; i++) {
			sender[i] = (struct sender){ .dev = dev,
				.home = w->slots,
				.id = i,
				.start = &start };
			assert_int_equal(pthread_create(&thread[i], NULL, send_home, &sender[i]),
				0);
		}
		for (i = 1; i < WORKERS; i++)
			pthread_join(thread[i], NULL);
		expect_all_home(dev, w->slots);
	}
	pthread_barrier_destroy(&start);
	rc_worker_destroy(w);
	timer_wheel_destroy(wc.wheel);
	rc_dev_destroy(dev);
}

#define LIVES 20000

/* The only slot of worker 0, whose QP lives on worker 1. */
struct only_slot {
	struct rc_worker *home, *away;
	struct rc_qp qp;
	bool taken; /* atomic: passes .qp between the threads */
};

static void *
destroy_away(void *arg)
{
	struct only_slot *o = arg;
	unsigned int i;

	for (i = 0; i < LIVES; i++) {
		while (!__atomic_load_n(&o->taken, __ATOMIC_ACQUIRE))
			sched_yield();
		o->qp.worker = o->away;
		__atomic_store_n(&o->taken, false, __ATOMIC_RELAXED);
		rc_slot_release(&o->qp);
	}
	return NULL;
}

static void
test_worker_with_room_has_a_slot(void **state)
{
	struct rc_worker_config wc[2] = { { .id = 0 }, { .id = 1 } };
	struct only_slot o = { 0 };
	struct rc_worker *w[2];
	unsigned int i, refused = 0;
	struct rc_dev *dev;
	pthread_t thread;

	(void)state;
	dev = slots_create(2, 2);
	for (i = 0; i < 2; i++) {
		wc[i].wheel = timer_wheel_create(&allocator_malloc, 1024, 0);
		w[i] = rc_worker_create(dev, &wc[i]);
		assert_non_null(w[i]);
	}
	o.home = w[0];
	o.away = w[1];
	assert_int_equal(pthread_create(&thread, NULL, destroy_away, &o), 0);
	for (i = 0; i < LIVES; i++) {
		while (rc_worker_full(o.home))
			sched_yield();
		o.qp.worker = o.home;
		while (rc_slot_take(&o.qp) != 0)
			refused++;
		__atomic_store_n(&o.taken, true, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
	assert_int_equal(refused, 0);
	assert_false(rc_worker_full(o.home));
	for (i = 0; i < 2; i++) {
		rc_worker_destroy(w[i]);
		timer_wheel_destroy(wc[i].wheel);
	}
	rc_dev_destroy(dev);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_slot_comes_home_once),
		cmocka_unit_test(test_worker_with_room_has_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
