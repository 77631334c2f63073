/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Internal data structures of lib/mem: records, free lists and window counts. */

#include <pthread.h>

#include "fixture.h"
#include "mem/table.h"

#define KEY 0x12345678

static struct mem_view
view_of(uint32_t n)
{
	return (struct mem_view){ n, n, (uint8_t *)(uintptr_t)n, n, n, n, n };
}

static bool
is_whole(const struct mem_view *v)
{
	return v->length == v->va && (uintptr_t)v->base == v->va && v->pd == v->va &&
		v->qpn == v->va && v->rights == v->va && v->mr_key == v->va;
}

static void
test_record_is_read_by_its_key_only(void **state)
{
	struct mem_record r = { 0 };
	struct mem_view v = view_of(7);

	(void)state;
	assert_false(record_read(&r, 0, &v));
	record_publish(&r, KEY, &v);
	v = view_of(0);
	assert_true(record_read(&r, KEY, &v));
	assert_int_equal(v.va, 7);
	assert_true(is_whole(&v));
	assert_false(record_read(&r, KEY + 1, &v));
	assert_false(record_read(&r, 0, &v));
	record_retract(&r);
	assert_false(record_read(&r, KEY, &v));
	assert_false(record_read(&r, 0, &v));
}

struct record_race {
	struct mem_record record;
	bool stop;
	uint64_t whole, torn;
};

static void *
record_reader(void *arg)
{
	struct record_race *race = arg;
	struct mem_view v;

	while (!__atomic_load_n(&race->stop, __ATOMIC_RELAXED)) {
		if (!record_read(&race->record, KEY, &v))
			continue;
		__atomic_fetch_add(is_whole(&v) ? &race->whole : &race->torn, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Worst case: the record always has the same key, so the key does not show a torn read. */
static void
test_record_is_never_read_torn(void **state)
{
	static struct record_race race;
	struct mem_view v;
	pthread_t thread;
	uint32_t n;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, record_reader, &race), 0);
	for (n = 0; n < 20000000 || __atomic_load_n(&race.whole, __ATOMIC_RELAXED) == 0; n++) {
		v = view_of(n);
		record_publish(&race.record, KEY, &v);
	}
	__atomic_store_n(&race.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_true(race.whole > 0);
	assert_int_equal(race.torn, 0);
}

static void
test_oldest_free_index_is_used_first(void **state)
{
	uint32_t ring[3] = { 0, 1, 2 }, index, i;
	struct index_fifo f = { ring, 3, 0, 3 };
	const uint32_t order[] = { 0, 1, 2, 0, 1, 2, 0 };

	(void)state;
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		assert_true(index_get(&f, &index));
		assert_int_equal(index, order[i]);
		index_put(&f, index); /* at the end of the free list */
	}
	for (i = 0; i < 3; i++)
		assert_true(index_get(&f, &index));
	assert_false(index_get(&f, &index));
	index_put(&f, 2);
	assert_true(index_get(&f, &index));
	assert_int_equal(index, 2);
}

/* Clients get the low numbers of domains, services the highest; one is used again late. */
static void
test_domains_are_numbered_from_both_ends(void **state)
{
	struct fixture *f = *state; /* has domain 1 of 4 */
	uint32_t pd;

	assert_int_equal(mem_pd_alloc_top(f->mem, &pd, NULL), 0);
	assert_int_equal(pd, 4);
	assert_int_equal(mem_pd_alloc(f->mem, &pd, NULL), 0);
	assert_int_equal(pd, 2);
	assert_int_equal(mem_pd_free(f->mem, 2, NULL), 0);
	assert_int_equal(mem_pd_alloc(f->mem, &pd, NULL), 0);
	assert_int_equal(pd, 3);
	assert_int_equal(mem_pd_alloc_top(f->mem, &pd, NULL), 0);
	assert_int_equal(pd, 2);
	assert_int_equal(mem_pd_alloc_top(f->mem, &pd, NULL), -ENOMEM);
	for (pd = 2; pd <= 4; pd++)
		assert_int_equal(mem_pd_free(f->mem, pd, NULL), 0);
}

/*
 * A worker may have read the record of a region just before the region was deregistered. The bind
 * then fails, because the region's window count is closed.
 */
static void
test_region_being_deregistered_takes_no_window(void **state)
{
	struct fixture *f = *state;
	uint32_t key = region(f, ALL, 0, 64);
	struct mem_mr *mr = &f->mem->mrs[key_index(&f->mem->keys, key)];

	assert_true(count_up(&mr->windows));
	assert_int_equal(mem_mr_deregister(f->mem, key, NULL), -EBUSY);
	count_down(&mr->windows);
	assert_int_equal(mem_mr_deregister(f->mem, key, NULL), -EAGAIN);
	assert_false(count_up(&mr->windows));
	deregister(f, key);
	assert_false(count_up(&mr->windows));
}

/*
 * The count of bound windows of a QP lets the destruction of a QP without windows skip the search.
 */
static void
test_bound_windows_are_counted_by_qp(void **state)
{
	struct fixture *f = *state;
	uint32_t mr = region(f, ALL, 0, 4096), keys[3], i;
	struct mem_bind b = { .mr_key = mr, .pd = f->pd, .qpn = QPN, .access = RR, .length = 64 };
	uint64_t token;

	for (i = 0; i < 3; i++) {
		b.mw_key = window(f, MEM_MW_TYPE_2);
		b.new_key = b.mw_key;
		assert_int_equal(mem_mw_bind(f->mem, &b, &keys[i], &token), 0);
	}
	assert_int_equal(*qp_bucket(f->mem, QPN), 3);
	assert_int_equal(mem_invalidate(f->mem, keys[0], f->pd, QPN, &token), 0);
	assert_int_equal(*qp_bucket(f->mem, QPN), 2);
	assert_int_equal(mem_mw_free(f->mem, keys[1], NULL), -EAGAIN);
	assert_int_equal(*qp_bucket(f->mem, QPN), 1);
	mem_qp_gone(f->mem, QPN);
	assert_int_equal(*qp_bucket(f->mem, QPN), 0);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_is_read_by_its_key_only),
		cmocka_unit_test(test_record_is_never_read_torn),
		cmocka_unit_test(test_oldest_free_index_is_used_first),
		T(test_domains_are_numbered_from_both_ends),
		T(test_region_being_deregistered_takes_no_window),
		T(test_bound_windows_are_counted_by_qp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
