/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Doorbells: each queue is in the ring once, and a hostile ring costs its worker bounded work. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ring/doorbell.h"

#define PLACES 8u

struct fixture {
	uint32_t entries[PLACES];
	struct ring_queue queues[PLACES];
	uint32_t next;
	struct ring_doorbells worker;
};

static int
doorbell_setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.worker = (struct ring_doorbells){ .entries = f.entries, .mask = PLACES - 1 };
	*state = &f;
	return 0;
}

static bool
bell_ring(struct fixture *f, uint32_t slot)
{
	return ring_doorbell_ring(f->entries, PLACES - 1, &f->next, &f->queues[slot], slot);
}

static bool
bell_take(struct fixture *f, uint32_t *slot)
{
	return ring_doorbell_take(&f->worker, slot);
}

static void
test_zeroed_ring_is_empty(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	assert_false(ring_doorbell_waits(&f->worker));
	assert_false(bell_take(f, &slot));
}

static void
test_a_queue_is_in_the_ring_once(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	assert_true(bell_ring(f, 3));
	assert_false(bell_ring(f, 3));
	assert_true(bell_ring(f, 5));
	assert_true(ring_doorbell_waits(&f->worker));
	assert_true(bell_take(f, &slot));
	assert_int_equal(slot, 3);
	assert_false(bell_ring(f, 3)); /* the worker goes on looking at it */
	ring_doorbell_clear(&f->queues[3]);
	assert_true(bell_ring(f, 3));
	assert_true(bell_take(f, &slot));
	assert_int_equal(slot, 5);
	assert_true(bell_take(f, &slot));
	assert_int_equal(slot, 3);
	assert_false(bell_take(f, &slot));
}

/* All queues at the same time, for many rounds: the phase tells new entries from old ones. */
static void
test_full_ring_in_every_round(void **state)
{
	struct fixture *f = *state;
	uint32_t round, i, slot;

	for (round = 0; round < 5; round++) {
		for (i = 0; i < PLACES; i++)
			assert_true(bell_ring(f, i));
		for (i = 0; i < PLACES; i++) {
			assert_true(bell_take(f, &slot));
			assert_int_equal(slot, i);
			ring_doorbell_clear(&f->queues[slot]);
		}
		assert_false(bell_take(f, &slot));
	}
}

static void
test_hostile_slot_is_masked(void **state)
{
	struct fixture *f = *state;
	uint32_t slot;

	f->entries[0] = UINT32_MAX; /* this round's phase, and no slot */
	assert_true(bell_take(f, &slot));
	assert_true(slot < PLACES);
	assert_false(bell_take(f, &slot));
}

/* A ring filled with this round's phase ends after one round. */
static void
test_hostile_ring_ends(void **state)
{
	struct fixture *f = *state;
	uint32_t slot, n = 0;

	memset(f->entries, 0xff, sizeof(f->entries));
	while (bell_take(f, &slot))
		n++;
	assert_int_equal(n, PLACES);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_zeroed_ring_is_empty, doorbell_setup),
		cmocka_unit_test_setup(test_a_queue_is_in_the_ring_once, doorbell_setup),
		cmocka_unit_test_setup(test_full_ring_in_every_round, doorbell_setup),
		cmocka_unit_test_setup(test_hostile_slot_is_masked, doorbell_setup),
		cmocka_unit_test_setup(test_hostile_ring_ends, doorbell_setup),
	};

	return cmocka_run_group_tests_name("ring doorbells", tests, NULL, NULL);
}
