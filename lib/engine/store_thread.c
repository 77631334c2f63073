/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The store's thread: the only writer of the SA's database. It is an ordinary thread, no lcore. It
 * receives changes by one SPSC ring per worker and executes all waiting changes as one durable
 * batch, so that many changes share a commit and a worker never waits for the disk. Between batches
 * it runs calls of the control thread, expires leases and frees memory that no reader uses.
 */

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "engine/worker.h"
#include "sa/lease_clock.h"

#define BATCH_MAX  4096 /* changes in one commit */
#define EXPIRE_MS  1000
#define RECLAIM_MS 20
#define SLEEP_MS   100

struct store_job {
	int (*fn)(struct engine *e, void *arg);
	void *arg;
	int result;
	bool done;
};

struct store_thread {
	struct engine *engine;
	pthread_t thread;
	bool started;
	uint32_t stop;
	uint32_t asleep; /* the futex word, as in idle.c */
	struct rte_ring *in[LINK_WORKERS_MAX];
	struct sa_write *batch[BATCH_MAX];
	uint64_t expire; /* TSC, when due */
	uint64_t reclaim;
	struct lease_clock leases;
	pthread_mutex_t lock; /* protects .job */
	pthread_cond_t job_done;
	struct store_job *job;
};

static uint64_t
lease_seconds(struct store_thread *t)
{
	struct timespec steady;

	clock_gettime(CLOCK_BOOTTIME, &steady);
	return lease_clock_read(&t->leases, (uint64_t)time(NULL), (uint64_t)steady.tv_sec);
}

/* --- sleeping --- */

static void
store_thread_wake(struct store_thread *t)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* store, then load: see idle.c */
	if (__atomic_load_n(&t->asleep, __ATOMIC_RELAXED) == 0)
		return;
	__atomic_store_n(&t->asleep, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &t->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool
store_thread_has_work(struct store_thread *t)
{
	unsigned int i;

	if (__atomic_load_n(&t->job, __ATOMIC_RELAXED) != NULL ||
		__atomic_load_n(&t->stop, __ATOMIC_RELAXED) != 0)
		return true;
	for (i = 0; i < t->engine->num_workers; i++)
		if (!rte_ring_empty(t->in[i]))
			return true;
	return false;
}

static void
store_thread_sleep(struct store_thread *t)
{
	struct timespec ts = { 0, SLEEP_MS * 1000000l };
	uint64_t now = rte_get_tsc_cycles();

	if (t->reclaim > now)
		ts.tv_nsec = RTE_MIN(ts.tv_nsec,
			(long)((t->reclaim - now) * 1000 / (t->engine->hz / 1000000 + 1)));
	__atomic_store_n(&t->asleep, 1, __ATOMIC_RELAXED);
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* store, then load: see idle.c */
	if (!store_thread_has_work(t))
		syscall(SYS_futex, &t->asleep, FUTEX_WAIT_PRIVATE, 1, &ts, NULL, 0);
	__atomic_store_n(&t->asleep, 0, __ATOMIC_RELAXED);
}

/* --- changes --- */

bool
store_thread_submit(void *arg, struct sa_write *write)
{
	struct worker *w = arg;
	struct store_thread *t = w->engine->store_thread;

	if (rte_ring_sp_enqueue(t->in[w->id], write) != 0)
		return false;
	store_thread_wake(t);
	return true;
}

/*
 * Each worker gets an equal share of the batch, so that a flood from one does not delay the others.
 */
static unsigned int
store_thread_gather(struct store_thread *t)
{
	unsigned int i, n = 0, share = BATCH_MAX / t->engine->num_workers;

	for (i = 0; i < t->engine->num_workers; i++)
		n += rte_ring_sc_dequeue_burst(t->in[i], (void **)&t->batch[n], share, NULL);
	return n;
}

static void
store_thread_hand_back(struct store_thread *t, unsigned int n)
{
	struct engine *e = t->engine;
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct worker *w = e->worker[sa_write_worker(t->batch[i])];

		/*
		 * full only for a moment: the ring is as large as the number of outstanding changes
		 */
		while (rte_ring_sp_enqueue(w->written, t->batch[i]) != 0)
			sched_yield();
	}
	for (i = 0; i < e->num_workers; i++)
		if (!rte_ring_empty(e->worker[i]->written))
			idle_wake(e->worker[i]);
}

static bool
store_thread_run_batch(struct store_thread *t)
{
	unsigned int n = store_thread_gather(t);

	if (n == 0)
		return false;
	sa_write_execute(t->engine->sa, t->batch, n, lease_seconds(t));
	store_thread_hand_back(t, n);
	return true;
}

/* --- calls of the control thread --- */

static bool
store_thread_run_job(struct store_thread *t)
{
	struct store_job *job;

	pthread_mutex_lock(&t->lock);
	job = t->job;
	pthread_mutex_unlock(&t->lock);
	if (job == NULL)
		return false;
	job->result = job->fn(t->engine, job->arg);
	pthread_mutex_lock(&t->lock);
	__atomic_store_n(&t->job, NULL, __ATOMIC_RELAXED);
	job->done = true;
	pthread_cond_broadcast(&t->job_done);
	pthread_mutex_unlock(&t->lock);
	return true;
}

int
store_thread_call(struct engine *e, int (*fn)(struct engine *e, void *arg), void *arg)
{
	struct store_thread *t = e->store_thread;
	struct store_job job = { .fn = fn, .arg = arg };

	if (!t->started)
		return fn(e, arg); /* the store's thread does not run */
	pthread_mutex_lock(&t->lock);
	while (t->job != NULL)
		pthread_cond_wait(&t->job_done, &t->lock);
	__atomic_store_n(&t->job, &job, __ATOMIC_RELAXED);
	store_thread_wake(t);
	while (!job.done)
		pthread_cond_wait(&t->job_done, &t->lock);
	pthread_mutex_unlock(&t->lock);
	return job.result;
}

bool
store_thread_busy(struct engine *e)
{
	struct store_thread *t = e->store_thread;
	bool busy;

	pthread_mutex_lock(&t->lock);
	busy = t->job != NULL;
	pthread_mutex_unlock(&t->lock);
	return busy;
}

/* --- the thread --- */

static void
store_thread_timed_work(struct store_thread *t)
{
	uint64_t now = rte_get_tsc_cycles(), ms = t->engine->hz / 1000;

	if (now >= t->reclaim) {
		store_reclaim(t->engine->store);
		t->reclaim = now + RECLAIM_MS * ms;
	}
	if (now >= t->expire) {
		sa_expire(t->engine->sa, lease_seconds(t));
		t->expire = now + EXPIRE_MS * ms;
	}
}

static void *
store_main(void *arg)
{
	struct store_thread *t = arg;
	sigset_t all;
	bool work;

	prctl(PR_SET_NAME, "polca-store");
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (__atomic_load_n(&t->stop, __ATOMIC_RELAXED) == 0) {
		work = store_thread_run_batch(t);
		work |= store_thread_run_job(t);
		store_thread_timed_work(t);
		if (!work)
			store_thread_sleep(t);
	}
	/* the workers have stopped: execute what they submitted before */
	while (store_thread_run_batch(t) || store_thread_run_job(t))
		;
	return NULL;
}

int
store_thread_create(struct engine *e, struct error *err)
{
	struct store_thread *t;
	unsigned int i;

	if (e->sa == NULL)
		return 0;
	t = mem_zalloc(e->alloc, sizeof(*t), RTE_CACHE_LINE_SIZE);
	if (t == NULL)
		return error_set(err, ENOMEM, "no memory for the store's thread");
	e->store_thread = t;
	t->engine = e;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->job_done, NULL);
	for (i = 0; i < e->num_workers; i++) {
		t->in[i] = engine_ring("writes", sizeof(void *),
			rte_align32pow2(e->config.sa.server.max_writes + 1), SOCKET_ID_ANY,
			RING_F_SP_ENQ | RING_F_SC_DEQ);
		if (t->in[i] == NULL)
			return error_set(err, ENOMEM,
				"no memory for rings of %u changes: lower sa.max_writes or raise eal.memory_mb",
				e->config.sa.server.max_writes);
	}
	return 0;
}

int
store_thread_start(struct engine *e, struct error *err)
{
	struct store_thread *t = e->store_thread;
	int ret;

	if (t == NULL)
		return 0;
	t->stop = 0;
	ret = pthread_create(&t->thread, NULL, store_main, t);
	if (ret != 0)
		return error_set(err, ret, "the store's thread does not start");
	t->started = true;
	return 0;
}

void
store_thread_stop(struct engine *e)
{
	struct store_thread *t = e->store_thread;

	if (t == NULL || !t->started)
		return;
	__atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
	store_thread_wake(t);
	pthread_join(t->thread, NULL);
	t->started = false;
}

void
store_thread_destroy(struct engine *e)
{
	struct store_thread *t = e->store_thread;
	unsigned int i;

	if (t == NULL)
		return;
	store_thread_stop(e);
	for (i = 0; i < e->num_workers; i++)
		engine_ring_free(t->in[i]);
	pthread_cond_destroy(&t->job_done);
	pthread_mutex_destroy(&t->lock);
	mem_free(e->alloc, t);
	e->store_thread = NULL;
}
