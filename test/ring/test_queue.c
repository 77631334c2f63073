/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Rings of fixed entries: order, bounds, and a partner that writes any index. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../checked.h"
#include "ring/queue.h"

#define ENTRIES 8u

struct fixture {
	uint32_t head, tail; /* shared */
	uint64_t entries[ENTRIES];
	struct ring_end producer, consumer;
};

static int
queue_setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	ring_end_init(&f.producer, f.entries, ENTRIES, sizeof(f.entries[0]), &f.head, &f.tail);
	ring_end_init(&f.consumer, f.entries, ENTRIES, sizeof(f.entries[0]), &f.tail, &f.head);
	*state = &f;
	return 0;
}

static void
entry_put(struct fixture *f, uint64_t value)
{
	*(uint64_t *)ring_next_free(&f->producer) = value;
	f->producer.index++;
	ring_publish(&f->producer);
}

static uint64_t
entry_get(struct fixture *f)
{
	uint64_t value = *(const uint64_t *)ring_oldest(&f->consumer);

	f->consumer.index++;
	ring_publish(&f->consumer);
	return value;
}

/* True if the entry at an index lies inside the ring. */
static bool
entry_inside(const struct fixture *f, const struct ring_end *r, uint32_t index)
{
	const uint8_t *e = ring_entry(r, index), *begin = (const uint8_t *)f->entries;

	return e >= begin && e + sizeof(f->entries[0]) <= begin + sizeof(f->entries);
}

static void
test_entries_come_in_order(void **state)
{
	struct fixture *f = *state;
	uint64_t in = 0, out = 0;

	/* more than once around, and past the end of the index */
	f->producer.index = f->consumer.index = f->head = f->tail = UINT32_MAX - 20;
	f->producer.seen = f->producer.index;
	while (in < 100) {
		while (in - out < 5)
			entry_put(f, in++);
		assert_int_equal(ring_ready(&f->consumer), 5);
		while (out + 2 < in)
			assert_int_equal(entry_get(f), out++);
	}
}

static void
test_full_ring_has_no_room(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ring_room(&f->producer), ENTRIES);
	for (uint32_t i = 0; i < ENTRIES; i++) {
		assert_true(ring_has_room(&f->producer));
		entry_put(f, i);
	}
	assert_false(ring_has_room(&f->producer));
	assert_int_equal(ring_room(&f->producer), 0);
	entry_get(f);
	assert_true(ring_has_room(&f->producer));
	assert_int_equal(ring_room(&f->producer), 1);
}

/* A producer's index that jumps: at most a ring full of entries, all of them inside the ring. */
static void
test_hostile_head_is_bounded(void **state)
{
	static const uint32_t heads[] = { 1, ENTRIES, ENTRIES + 1, 0x7fffffff, 0x80000000,
		UINT32_MAX };
	struct fixture *f = *state;
	uint32_t i, n;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		f->head = heads[i];
		n = ring_ready(&f->consumer);
		assert_true(n >= 1 && n <= ENTRIES);
		for (uint32_t k = 0; k < n; k++)
			assert_true(entry_inside(f, &f->consumer, f->consumer.index + k));
	}
}

/* A consumer's index that jumps, ahead or back, costs the consumer its own entries. */
static void
test_hostile_tail_is_bounded(void **state)
{
	struct fixture *f = *state;

	entry_put(f, 1);
	entry_put(f, 2);
	f->tail = f->producer.index + 1; /* it has read what was not written */
	assert_int_equal(ring_room(&f->producer), 0);
	f->tail = f->producer.index - ENTRIES - 1; /* it gives back what was not read */
	assert_int_equal(ring_room(&f->producer), 0);
	f->tail = UINT32_MAX / 2;
	assert_int_equal(ring_room(&f->producer), 0);
	f->tail = f->producer.index;
	assert_int_equal(ring_room(&f->producer), ENTRIES);
}

/* An own index that was overwritten in shared memory is never read. */
static void
test_own_index_is_private(void **state)
{
	struct fixture *f = *state;

	entry_put(f, 7);
	f->tail = 0;
	f->head = 1;
	entry_get(f);
	f->tail = 12345; /* the producer writes the consumer's word */
	f->head = 1;
	assert_int_equal(ring_ready(&f->consumer), 0);
	entry_put(f, 8);
	assert_int_equal(ring_ready(&f->consumer), 1);
	assert_int_equal(entry_get(f), 8);
	assert_int_equal(f->tail, 2);
}

static void
test_strides(void **state)
{
	(void)state;
	/* a request with one sge, or 16 inline bytes, is one line */
	assert_int_equal(ring_send_stride(1, 0), 64);
	assert_int_equal(ring_send_stride(1, 16), 64);
	assert_int_equal(ring_send_stride(1, 17), 128);
	assert_int_equal(ring_send_stride(2, 0), 128);
	assert_int_equal(ring_send_stride(32, 512), 576);
	assert_int_equal(ring_receive_stride(1), 32);
	assert_int_equal(ring_entries(0), 1);
	assert_int_equal(ring_entries(1), 1);
	assert_int_equal(ring_entries(100), 128);
	assert_int_equal(ring_entries(128), 128);
}

static void
publish_a_ring_of_seven(void *r, void *arg)
{
	(void)arg;
	((struct ring_end *)r)->mask = 6;
	ring_publish(r);
}

/* Builds with checks end; what the partner writes ends no build (test_hostile_head_is_bounded). */
static void
test_damage_to_an_end_is_found(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ends_process(publish_a_ring_of_seven, &f->producer, NULL), CHECKED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_entries_come_in_order, queue_setup),
		cmocka_unit_test_setup(test_full_ring_has_no_room, queue_setup),
		cmocka_unit_test_setup(test_hostile_head_is_bounded, queue_setup),
		cmocka_unit_test_setup(test_hostile_tail_is_bounded, queue_setup),
		cmocka_unit_test_setup(test_own_index_is_private, queue_setup),
		cmocka_unit_test(test_strides),
		cmocka_unit_test_setup(test_damage_to_an_end_is_found, queue_setup),
	};

	return cmocka_run_group_tests_name("ring queue", tests, NULL, NULL);
}
