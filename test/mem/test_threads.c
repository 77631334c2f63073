/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker accesses memory while the control thread registers, deregisters, binds and frees, with
 * DPDK's QSBR as the grace period. The bytes of an allowed access must stay mapped until the
 * worker's next quiescent state, and must belong to the requested key.
 */

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <rte_rcu_qsbr.h>

#include "fixture.h"

#define ROUNDS 1000
#define SLOTS  4
#define LEN    4096

struct shared {
	struct mem *mem;
	struct rte_rcu_qsbr *rcu;
	uint32_t pd;
	uint64_t keys[SLOTS]; /* stamp << 32 | key, 0: none; each byte of the region is the stamp */
	bool stop;
	struct timespec since; /* the start */
	uint64_t hits, misses;
	const char *broken;
};

/* Count in one thread what another one reads. */
static void
count_one(uint64_t *n)
{
	__atomic_store_n(n, *n + 1, __ATOMIC_RELAXED);
}

/* The test ends after a fixed time; a busy machine runs fewer rounds. */
static bool
in_time(const struct timespec *since)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - since->tv_sec < 2;
}

static uint64_t
rcu_start(void *arg)
{
	return rte_rcu_qsbr_start(arg);
}

static bool
rcu_done(void *arg, uint64_t token)
{
	return rte_rcu_qsbr_check(arg, token, false) == 1;
}

static struct rte_rcu_qsbr *
rcu_create(void)
{
	size_t size = rte_rcu_qsbr_get_memsize(1);
	struct rte_rcu_qsbr *rcu = mem_zalloc(&allocator_malloc, size, 64);

	assert_non_null(rcu);
	assert_int_equal(rte_rcu_qsbr_init(rcu, 1), 0);
	return rcu;
}

/* Make one access as a worker does. Reading bytes of another key's region fails the test. */
static void
read_one(struct shared *s, unsigned int slot, uint64_t va)
{
	uint64_t word = __atomic_load_n(&s->keys[slot], __ATOMIC_ACQUIRE);
	uint8_t stamp = (uint8_t)(word >> 32), *host;
	unsigned int i;

	if (word == 0)
		return;
	if (mem_access(s->mem, (uint32_t)word, s->pd, QPN, va, LEN, RR, &host) != MEM_OK) {
		s->misses++;
		return;
	}
	count_one(&s->hits);
	for (i = 0; i < LEN; i += 64) {
		if (__atomic_load_n(&host[i], __ATOMIC_RELAXED) != stamp)
			s->broken = "an access got another key's bytes";
	}
}

static void *
worker(void *arg)
{
	struct shared *s = arg;
	unsigned int i;

	rte_rcu_qsbr_thread_register(s->rcu, 0);
	rte_rcu_qsbr_thread_online(s->rcu, 0);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < SLOTS; i++)
			read_one(s, i, 0);
		rte_rcu_qsbr_quiescent(s->rcu, 0);
	}
	rte_rcu_qsbr_thread_offline(s->rcu, 0);
	rte_rcu_qsbr_thread_unregister(s->rcu, 0);
	return NULL;
}

static void
shared_create(struct shared *s)
{
	struct mem_config c = { 1, SLOTS + 1, SLOTS, &allocator_malloc, &rng_kernel,
		{ rcu_start, rcu_done, NULL } };

	memset(s, 0, sizeof(*s));
	clock_gettime(CLOCK_MONOTONIC, &s->since);
	s->rcu = rcu_create();
	c.grace.arg = s->rcu;
	s->mem = mem_create(&c);
	assert_non_null(s->mem);
	assert_int_equal(mem_pd_alloc(s->mem, &s->pd, NULL), 0);
}

static void
shared_destroy(struct shared *s)
{
	assert_null(s->broken);
	assert_true(s->hits > 0);
	mem_destroy(s->mem);
	mem_free(&allocator_malloc, s->rcu);
}

static void
wait_for(pthread_t thread, struct shared *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
}

static uint32_t
threads_fill(struct shared *s, uint32_t access, uint8_t stamp)
{
	struct mem_mr_attr a = {
		.pd = s->pd,
		.access = access,
		.length = LEN,
		.backing = MEM_ANONYMOUS,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	assert_int_equal(mem_mr_register(s->mem, &a, &info, NULL), 0);
	memset(info.base, stamp, LEN);
	return info.key;
}

static void
publish(struct shared *s, unsigned int slot, uint8_t stamp, uint32_t key)
{
	__atomic_store_n(&s->keys[slot], (uint64_t)stamp << 32 | key, __ATOMIC_RELEASE);
}

/* The key stays published during the deregistration, so the worker uses it in every stage. */
static void
test_no_access_after_deregister_returned(void **state)
{
	unsigned int i, slot;
	pthread_t thread;
	struct shared s;
	uint32_t keys[SLOTS] = { 0 };
	int rc;

	(void)state;
	shared_create(&s);
	assert_int_equal(pthread_create(&thread, NULL, worker, &s), 0);
	for (i = 0; i < ROUNDS && in_time(&s.since); i++) {
		slot = i % SLOTS;
		if (keys[slot] != 0) {
			/* if it were unmapped too early, the worker would crash */
			while ((rc = mem_mr_deregister(s.mem, keys[slot], NULL)) == -EAGAIN)
				sched_yield();
			assert_int_equal(rc, 0);
		}
		keys[slot] = threads_fill(&s, RR, (uint8_t)(1 + i % 250));
		publish(&s, slot, (uint8_t)(1 + i % 250), keys[slot]);
	}
	while (__atomic_load_n(&s.hits, __ATOMIC_RELAXED) == 0)
		sched_yield();
	wait_for(thread, &s);
	shared_destroy(&s);
}

/*
 * A type 1 window moves between two regions. An access never gets the bytes of one region by the
 * window's key for the other.
 */
static void
test_window_never_mixes_two_regions(void **state)
{
	struct mem_bind b = { .access = RR, .va = 0, .length = LEN };
	uint32_t mr[2], key;
	pthread_t thread;
	struct shared s;
	unsigned int i;
	uint64_t token;

	(void)state;
	shared_create(&s);
	mr[0] = threads_fill(&s, RR | BIND, 11);
	mr[1] = threads_fill(&s, RR | BIND, 22);
	assert_int_equal(mem_mw_alloc(s.mem, s.pd, MEM_MW_TYPE_1, &key, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, worker, &s), 0);
	for (i = 0; i < 300 * ROUNDS && in_time(&s.since); i++) {
		b.mw_key = key;
		b.mr_key = mr[i % 2];
		b.pd = s.pd;
		assert_int_equal(mem_mw_bind(s.mem, &b, &key, &token), 0);
		publish(&s, 0, i % 2 ? 22 : 11, key);
	}
	while (__atomic_load_n(&s.hits, __ATOMIC_RELAXED) == 0)
		sched_yield();
	wait_for(thread, &s);
	shared_destroy(&s);
}

/* --- a worker that binds and invalidates while the control thread takes the region away --- */

struct binder {
	struct shared *s;
	uint32_t mw;
	uint64_t mr; /* key, 0: none yet */
	uint64_t bound, refused;
};

static void *
binding_worker(void *arg)
{
	struct binder *w = arg;
	struct shared *s = w->s;
	struct mem_bind b = { .pd = s->pd, .qpn = QPN, .access = RR, .length = LEN };
	uint64_t token;
	uint8_t *host;

	rte_rcu_qsbr_thread_register(s->rcu, 0);
	rte_rcu_qsbr_thread_online(s->rcu, 0);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		b.mw_key = w->mw;
		b.new_key = w->mw;
		b.mr_key = (uint32_t)__atomic_load_n(&w->mr, __ATOMIC_ACQUIRE);
		if (mem_mw_bind(s->mem, &b, &w->mw, &token) == 0) {
			count_one(&w->bound);
			if (mem_access(s->mem, w->mw, s->pd, QPN, 0, LEN, RR, &host) != MEM_OK ||
				*host != 33)
				s->broken = "a window just bound does not work";
			if (mem_invalidate(s->mem, w->mw, s->pd, QPN, &token) != 0)
				s->broken = "a window just bound cannot be invalidated";
		} else {
			w->refused++;
		}
		rte_rcu_qsbr_quiescent(s->rcu, 0);
	}
	rte_rcu_qsbr_thread_offline(s->rcu, 0);
	rte_rcu_qsbr_thread_unregister(s->rcu, 0);
	return NULL;
}

static void
test_race_of_bind_and_deregister_has_one_winner(void **state)
{
	struct binder w = { 0 };
	unsigned int i;
	pthread_t thread;
	struct shared s;
	uint64_t bound;
	uint32_t key;
	int rc;

	(void)state;
	shared_create(&s);
	w.s = &s;
	assert_int_equal(mem_mw_alloc(s.mem, s.pd, MEM_MW_TYPE_2, &w.mw, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, binding_worker, &w), 0);
	for (i = 0; i < ROUNDS && in_time(&s.since); i++) {
		key = threads_fill(&s, RR | BIND, 33);
		bound = __atomic_load_n(&w.bound, __ATOMIC_RELAXED);
		__atomic_store_n(&w.mr, key, __ATOMIC_RELEASE);
		/* in every second round wait until the worker has bound at least once */
		while (i % 2 == 0 && __atomic_load_n(&w.bound, __ATOMIC_RELAXED) == bound)
			sched_yield();
		while ((rc = mem_mr_deregister(s.mem, key, NULL)) != 0) {
			assert_true(rc == -EAGAIN || rc == -EBUSY);
			sched_yield();
		}
	}
	wait_for(thread, &s);
	s.hits = w.bound;
	/* every bind was undone, so window and domain can be freed */
	assert_int_equal(mem_mw_free(s.mem, w.mw, NULL), 0);
	assert_int_equal(mem_pd_free(s.mem, s.pd, NULL), 0);
	shared_destroy(&s);
}

/* --- two workers bind the same type 1 window --- */

#define BINDS 400000

struct rival {
	struct shared *s;
	uint64_t *key; /* the window's current key, which both workers read */
	uint32_t mr;
	uint32_t spent[BINDS]; /* keys whose bind succeeded */
	uint32_t n;
};

static void *
rival_worker(void *arg)
{
	struct rival *r = arg;
	struct mem_bind b = { .pd = r->s->pd, .mr_key = r->mr, .access = RR, .length = LEN };
	unsigned int refused = 0;
	uint64_t token;
	uint32_t key;

	while (r->n < BINDS && !__atomic_load_n(&r->s->stop, __ATOMIC_RELAXED) &&
		in_time(&r->s->since)) {
		b.mw_key = (uint32_t)__atomic_load_n(r->key, __ATOMIC_ACQUIRE);
		if (mem_mw_bind(r->s->mem, &b, &key, &token) != 0) {
			if (++refused % 4096 == 0)
				sched_yield();
			continue;
		}
		r->spent[r->n++] = b.mw_key;
		__atomic_store_n(r->key, key, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&r->s->stop, true, __ATOMIC_RELAXED);
	return NULL;
}

static int
compare_keys(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
test_each_window_key_allows_one_rebind(void **state)
{
	struct rival *r = calloc(2, sizeof(*r));
	static uint32_t spent[2 * BINDS];
	pthread_t thread[2];
	struct shared s;
	uint64_t shared_key;
	uint32_t key, mr, i, n;

	(void)state;
	assert_non_null(r);
	shared_create(&s);
	mr = threads_fill(&s, RR | BIND, 1);
	assert_int_equal(mem_mw_alloc(s.mem, s.pd, MEM_MW_TYPE_1, &key, NULL), 0);
	shared_key = key;
	for (i = 0; i < 2; i++) {
		r[i].s = &s;
		r[i].key = &shared_key;
		r[i].mr = mr;
		assert_int_equal(pthread_create(&thread[i], NULL, rival_worker, &r[i]), 0);
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	n = r[0].n + r[1].n;
	memcpy(spent, r[0].spent, r[0].n * sizeof(*spent));
	memcpy(spent + r[0].n, r[1].spent, r[1].n * sizeof(*spent));
	qsort(spent, n, sizeof(*spent), compare_keys);
	for (i = 1; i < n; i++)
		assert_true(spent[i - 1] != spent[i]);
	/* the region counts one bound window, whichever worker bound it last */
	assert_int_equal(mem_mw_free(s.mem, (uint32_t)shared_key, NULL), 0);
	assert_int_equal(mem_mr_deregister(s.mem, mr, NULL), 0);
	s.hits = n;
	shared_destroy(&s);
	free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_access_after_deregister_returned),
		cmocka_unit_test(test_window_never_mixes_two_regions),
		cmocka_unit_test(test_race_of_bind_and_deregister_has_one_winner),
		cmocka_unit_test(test_each_window_key_allows_one_rebind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
