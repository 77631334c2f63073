/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Who has most of a pool, against counting all holders. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/share.h"

#define HOLDERS 16
#define MOST    8

struct thing {
	struct share_item item;
	struct share_holder *holder; /* NULL: the pool has it */
	uint64_t taken;
};

struct pool {
	struct share_rank rank;
	struct share_holder holder[HOLDERS];
	struct thing thing[HOLDERS * MOST];
	uint64_t clock;
};

static struct pool p;

static int
share_setup(void **state)
{
	unsigned int i;

	(void)state;
	p = (struct pool){ .clock = 0 };
	for (i = 0; i < HOLDERS; i++)
		share_holder_init(&p.holder[i]);
	return share_rank_create(&p.rank, &allocator_malloc, MOST);
}

static int
share_teardown(void **state)
{
	(void)state;
	share_rank_destroy(&p.rank, &allocator_malloc);
	return 0;
}

static void
share_take(unsigned int thing, unsigned int holder)
{
	p.thing[thing].holder = &p.holder[holder];
	p.thing[thing].taken = ++p.clock;
	share_add(&p.rank, &p.holder[holder], &p.thing[thing].item);
}

static void
share_return(unsigned int thing)
{
	share_remove(&p.rank, p.thing[thing].holder, &p.thing[thing].item);
	p.thing[thing].holder = NULL;
}

static void
test_nobody_has_most_of_an_unused_pool(void **state)
{
	(void)state;
	assert_null(share_most(&p.rank));
	share_take(0, 3);
	share_return(0);
	assert_null(share_most(&p.rank));
}

static void
test_of_several_the_first_has_most(void **state)
{
	(void)state;
	share_take(0, 3);
	share_take(1, 5);
	assert_ptr_equal(share_most(&p.rank), &p.holder[3]);
	share_take(2, 5);
	assert_ptr_equal(share_most(&p.rank), &p.holder[5]);
	assert_ptr_equal(TAILQ_FIRST(&p.holder[5].items), &p.thing[1].item);
	share_return(1);
	assert_ptr_equal(TAILQ_FIRST(&p.holder[5].items), &p.thing[2].item);
	/* 5 has one again, but 3 has had one for longer */
	assert_ptr_equal(share_most(&p.rank), &p.holder[3]);
}

static void
share_check(void)
{
	uint32_t count[HOLDERS] = { 0 }, most = 0;
	uint64_t oldest[HOLDERS] = { 0 };
	const struct share_holder *h;
	const struct thing *t;
	unsigned int i;

	for (i = 0; i < HOLDERS * MOST; i++) {
		t = &p.thing[i];
		if (t->holder == NULL)
			continue;
		h = t->holder;
		count[h - p.holder]++;
		if (oldest[h - p.holder] == 0 || t->taken < oldest[h - p.holder])
			oldest[h - p.holder] = t->taken;
	}
	for (i = 0; i < HOLDERS; i++) {
		assert_int_equal(p.holder[i].count, count[i]);
		most = count[i] > most ? count[i] : most;
		if (count[i] != 0)
			assert_int_equal(
				((const struct thing *)TAILQ_FIRST(&p.holder[i].items))->taken,
				oldest[i]);
	}
	h = share_most(&p.rank);
	assert_int_equal(h != NULL ? h->count : 0, most);
}

static void
test_random_takes_and_returns(void **state)
{
	uint32_t seed = 1, n;
	unsigned int thing, holder;

	(void)state;
	for (n = 0; n < 20000; n++) {
		seed = seed * 1664525u + 1013904223u;
		thing = (seed >> 8) % (HOLDERS * MOST);
		holder = (seed >> 20) % HOLDERS;
		if (p.thing[thing].holder != NULL)
			share_return(thing);
		else if (p.holder[holder].count < MOST)
			share_take(thing, holder);
		share_check();
	}
}

int
main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, share_setup, share_teardown)
	const struct CMUnitTest tests[] = {
		T(test_nobody_has_most_of_an_unused_pool),
		T(test_of_several_the_first_has_most),
		T(test_random_takes_and_returns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
