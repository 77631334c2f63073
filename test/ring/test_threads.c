/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker and a client's threads: no posted entry is forgotten, whoever is preempted where; and a
 * partner that writes anything at any time leads nobody out of the ring's memory.
 */

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ring/doorbell.h"
#include "ring/queue.h"

#define QUEUES  4u
#define ENTRIES 16u
#define POSTS   20000u
#define LOOKS   3u /* at a queue, after its doorbell */

struct shared {
	uint32_t doorbells[QUEUES];
	struct ring_queue queues[QUEUES];
	uint64_t entries[QUEUES][ENTRIES];
	uint32_t next; /* the client's */
	bool stop;
};

struct poster {
	struct shared *s;
	uint32_t slot;
};

/* One thread for each queue: 1, 2, 3, ... */
static void *
poster_run(void *arg)
{
	const struct poster *p = arg;
	struct ring_queue *q = &p->s->queues[p->slot];
	struct ring_end ring;
	uint64_t value = 1;

	ring_end_init(&ring, p->s->entries[p->slot], ENTRIES, sizeof(uint64_t), &q->send_head,
		&q->send_tail);
	while (value <= POSTS) {
		if (!ring_has_room(&ring)) {
			sched_yield();
			continue;
		}
		__atomic_store_n((uint64_t *)ring_next_free(&ring), value++, __ATOMIC_RELAXED);
		ring.index++;
		ring_publish(&ring);
		ring_doorbell_ring(p->s->doorbells, QUEUES - 1, &p->s->next, q, p->slot);
	}
	return NULL;
}

/* @return true if this was the last of them */
static bool
consume(struct ring_end *ring, uint64_t *expected)
{
	uint64_t value = 0;
	uint32_t n;

	for (n = ring_ready(ring); n > 0; n--) {
		ring_copy_once(&value, ring_oldest(ring), 1);
		assert_int_equal(value, (*expected)++);
		ring->index++;
	}
	ring_publish(ring);
	return value == POSTS;
}

static void
test_no_post_is_forgotten(void **state)
{
	struct ring_doorbells bells;
	struct ring_end ring[QUEUES];
	uint64_t expected[QUEUES];
	struct poster poster[QUEUES];
	pthread_t thread[QUEUES];
	static struct shared s;
	uint32_t looks[QUEUES] = { 0 }, slot, done = 0;

	(void)state;
	memset(&s, 0, sizeof(s));
	bells = (struct ring_doorbells){ .entries = s.doorbells, .mask = QUEUES - 1 };
	for (slot = 0; slot < QUEUES; slot++) {
		ring_end_init(&ring[slot], s.entries[slot], ENTRIES, sizeof(uint64_t),
			&s.queues[slot].send_tail, &s.queues[slot].send_head);
		expected[slot] = 1;
		poster[slot] = (struct poster){ &s, slot };
		pthread_create(&thread[slot], NULL, poster_run, &poster[slot]);
	}
	while (done < QUEUES) {
		if (ring_doorbell_take(&bells, &slot))
			looks[slot] = LOOKS;
		for (slot = 0; slot < QUEUES; slot++) {
			if (looks[slot] == 0)
				continue;
			if (--looks[slot] == 0) /* the last one is after the flag is cleared */
				ring_doorbell_clear(&s.queues[slot]);
			done += consume(&ring[slot], &expected[slot]);
		}
		sched_yield();
	}
	for (slot = 0; slot < QUEUES; slot++)
		pthread_join(thread[slot], NULL);
}

/* Writes anything into all that is shared, until it is told to stop. */
static void *
scribbler_run(void *arg)
{
	struct shared *s = arg;
	uint64_t x = 88172645463325252u;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		uint32_t *words = (uint32_t *)s;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		__atomic_store_n(&words[(x >> 32) % (offsetof(struct shared, next) / 4)],
			(uint32_t)x, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void
test_hostile_client_leads_nowhere(void **state)
{
	struct ring_doorbells bells;
	struct ring_end ring[QUEUES];
	static struct shared s;
	uint64_t entry[1];
	pthread_t thread;
	uint32_t slot, i;

	(void)state;
	memset(&s, 0, sizeof(s));
	bells = (struct ring_doorbells){ .entries = s.doorbells, .mask = QUEUES - 1 };
	for (slot = 0; slot < QUEUES; slot++)
		ring_end_init(&ring[slot], s.entries[slot], ENTRIES, sizeof(uint64_t),
			&s.queues[slot].send_tail, &s.queues[slot].send_head);
	pthread_create(&thread, NULL, scribbler_run, &s);
	for (i = 0; i < POSTS; i++) {
		if (!ring_doorbell_take(&bells, &slot))
			slot = i % QUEUES;
		assert_true(slot < QUEUES);
		for (uint32_t n = ring_ready(&ring[slot]), k = 0; k < n; k++) {
			assert_true(n <= ENTRIES);
			ring_copy_once(entry, ring_oldest(&ring[slot]), 1);
			ring[slot].index++;
		}
		ring_publish(&ring[slot]);
		assert_true(ring_room(&ring[slot]) <= ENTRIES);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_post_is_forgotten),
		cmocka_unit_test(test_hostile_client_leads_nowhere),
	};

	return cmocka_run_group_tests_name("ring threads", tests, NULL, NULL);
}
