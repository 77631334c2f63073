/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Several workers destroy QPs of one home worker at once: each slot comes home once.
 */

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "base/timer_wheel.h"
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
	struct rc_dev_config dc = {
		.limits = rc_limits_default,
		.workers = WORKERS,
		.hz = 1000000000,
		.alloc = &allocator_malloc,
		.rng = &rng_kernel,
	};
	struct rc_worker_config wc = { .id = 0 };
	struct sender sender[WORKERS];
	pthread_t thread[WORKERS];
	pthread_barrier_t start;
	struct rc_worker *w;
	struct rc_dev *dev;
	unsigned int round, i;

	(void)state;
	dc.limits.max_qp = SLOTS;
	dev = rc_dev_create(&dc);
	assert_non_null(dev);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_slot_comes_home_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
