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
#include <rte_random.h>

#include "base/capability.h"
#include "engine/own_ports_fleet.h"
#include "engine/own_wish.h"
#include "engine/store_fleet.h"
#include "engine/store_forward.h"
#include "engine/store_notices.h"
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
	uint32_t news; /* the fleet has changes of others */
	uint32_t asleep; /* the futex word, as in idle.c */
	struct rte_ring *in[LINK_WORKERS_MAX];
	struct sa_write *batch[BATCH_MAX];
	struct store_forward *forward; /* NULL: no fleet */
	struct store_notices *notices; /* NULL: no fleet */
	struct sa_write *forwarded; /* a change of this appliance's own; NULL: none */
	void (*answered)(void *arg);
	void *answered_arg;
	bool follow_failed; /* and this was logged */
	uint64_t expire; /* TSC, when due */
	uint64_t reclaim;
	struct lease_clock leases;
	pthread_mutex_t lock; /* protects .job */
	pthread_cond_t job_done;
	struct store_job *job;
	struct store_task *task; /* atomic */
};

static uint64_t
lease_seconds(struct store_thread *t)
{
	struct timespec steady;

	clock_gettime(CLOCK_BOOTTIME, &steady);
	return lease_clock_read(&t->leases, (uint64_t)time(NULL), (uint64_t)steady.tv_sec);
}

/* --- sleeping --- */

/*
 * As in idle.c: a waker stores work (.job, .task, .stop, .news or a ring's tail), then loads
 * .asleep; the thread stores .asleep, then loads these. The two fences guarantee that one of
 * them sees what the other did; acquire and release cannot order a store before a later load.
 */
static void
store_thread_wake(struct store_thread *t)
{
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* stored work, then load .asleep */
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
		__atomic_load_n(&t->task, __ATOMIC_RELAXED) != NULL ||
		__atomic_load_n(&t->stop, __ATOMIC_RELAXED) != 0 ||
		__atomic_load_n(&t->news, __ATOMIC_RELAXED) != 0)
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
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* stored .asleep, then load work */
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

/* What one transaction of the store can take if each change has one record. */
static unsigned int
store_thread_batch_max(const struct store_thread *t)
{
	size_t max = store_max_ops(t->engine->store);

	return max != 0 && max < BATCH_MAX ? (unsigned int)max : BATCH_MAX;
}

/*
 * Each worker gets an equal share of the batch, so that a flood from one does not delay the others.
 */
static unsigned int
store_thread_gather(struct store_thread *t)
{
	unsigned int i, n = 0, workers = t->engine->num_workers;
	unsigned int share = RTE_MAX(store_thread_batch_max(t) / workers, 1u);

	for (i = 0; i < t->engine->num_workers; i++)
		n += rte_ring_sc_dequeue_burst(t->in[i], (void **)&t->batch[n], share, NULL);
	return n;
}

static void
store_thread_hand_back(void *arg, struct sa_write *write)
{
	struct store_thread *t = arg;
	struct worker *w;

	if (own_wish_handed_back(t->engine->own_wish, write))
		return;
	if (write == t->forwarded) {
		t->forwarded = NULL;
		t->answered(t->answered_arg);
		return;
	}
	w = t->engine->worker[sa_write_worker(write)];
	/* full only for a moment: the ring is as large as the number of outstanding changes */
	while (rte_ring_sp_enqueue(w->written, write) != 0)
		sched_yield();
}

static void
store_thread_wake_workers(struct store_thread *t)
{
	struct engine *e = t->engine;
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		if (!rte_ring_empty(e->worker[i]->written))
			idle_wake(e->worker[i]);
}

static bool
store_thread_run_batch(struct store_thread *t)
{
	unsigned int i, n = store_thread_gather(t);

	if (n == 0)
		return false;
	if (t->forward != NULL) {
		store_forward_batch(t->forward, t->batch, n, lease_seconds(t));
	} else {
		sa_write_execute(t->engine->sa, t->batch, n, lease_seconds(t));
		for (i = 0; i < n; i++)
			store_thread_hand_back(t, t->batch[i]);
	}
	store_thread_wake_workers(t);
	return true;
}

/* --- changes of a fleet's other appliances --- */

static void
store_thread_wake_for_news(void *arg)
{
	struct store_thread *t = arg;

	__atomic_store_n(&t->news, 1, __ATOMIC_RELAXED);
	store_thread_wake(t);
}

/* Publish what the fleet's thread has handed over. */
static bool
store_thread_follow(struct store_thread *t)
{
	struct engine *e = t->engine;
	struct error err = { "" };
	int got;

	if (__atomic_exchange_n(&t->news, 0, __ATOMIC_ACQUIRE) == 0 && !t->follow_failed)
		return false;
	got = store_follow(e->store, &err);
	if (got < 0 && !t->follow_failed)
		ENGINE_LOG(ERR, "the SA's records stay at an older revision: %s", err.text);
	t->follow_failed = got < 0; /* then it is tried again after a sleep */
	if (got <= 0)
		return false;
	sa_followed(e->sa);
	__atomic_store_n(&t->news, 1, __ATOMIC_RELAXED); /* there may be more */
	return true;
}

/* What etcd has brought about changes that went to the leader, or come to it from others. */
static bool
store_thread_run_forward(struct store_thread *t)
{
	bool work;

	if (t->forward == NULL)
		return false;
	work = own_wish_run(t->engine->own_wish, t->forward, lease_seconds(t));
	work |= store_forward_run(t->forward, lease_seconds(t));
	if (work)
		store_thread_wake_workers(t);
	return store_notices_run(t->notices) || work;
}

void
store_thread_forward(struct engine *e, struct sa_write *write, void (*answered)(void *arg),
	void *arg)
{
	struct store_thread *t = e->store_thread;

	t->forwarded = write;
	t->answered = answered;
	t->answered_arg = arg;
	store_forward_batch(t->forward, &write, 1, lease_seconds(t));
}

/* --- calls of the control thread --- */

static bool
store_thread_run_task(struct store_thread *t)
{
	struct store_task *task = __atomic_exchange_n(&t->task, NULL, __ATOMIC_ACQUIRE);

	if (task == NULL)
		return false;
	task->result = task->fn(t->engine, task->arg);
	__atomic_store_n(&task->running, false, __ATOMIC_RELEASE);
	return true;
}

static bool
store_thread_run_job(struct store_thread *t)
{
	struct store_job *job;

	pthread_mutex_lock(&t->lock);
	job = t->job;
	pthread_mutex_unlock(&t->lock);
	if (job == NULL)
		return false;
	store_thread_run_task(t); /* it was posted before */
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

void
store_thread_post(struct engine *e, struct store_task *task)
{
	struct store_thread *t = e->store_thread;

	if (!t->started) {
		task->result = task->fn(e, task->arg);
		return;
	}
	task->running = true;
	__atomic_store_n(&t->task, task, __ATOMIC_RELEASE);
	store_thread_wake(t);
}

bool
store_thread_ended(const struct store_task *task)
{
	return !__atomic_load_n(&task->running, __ATOMIC_ACQUIRE);
}

/* --- the thread --- */

static bool
store_thread_may_change(const struct store_thread *t)
{
	return t->engine->fleet == NULL || fleet_leads(t->engine->fleet);
}

static void
store_thread_timed_work(struct store_thread *t)
{
	uint64_t now = rte_get_tsc_cycles(), ms = t->engine->hz / 1000;
	bool more; /* leases than one transaction takes may have ended */

	if (now >= t->reclaim) {
		store_reclaim(t->engine->store);
		t->reclaim = now + RECLAIM_MS * ms;
	}
	if (now >= t->expire && store_thread_may_change(t)) {
		more = sa_expire(t->engine->sa, lease_seconds(t)) > 0;
		t->expire = more ? now : now + EXPIRE_MS * ms;
	}
}

static void *
store_main(void *arg)
{
	struct store_thread *t = arg;
	sigset_t all;
	bool work;

	prctl(PR_SET_NAME, "polca-store");
	if (geteuid() != 0) /* of the database's files, root may be no owner */
		capabilities_drop();
	sigfillset(&all); /* signals are the control thread's */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	while (__atomic_load_n(&t->stop, __ATOMIC_RELAXED) == 0) {
		work = store_thread_follow(t);
		work |= store_thread_run_batch(t);
		work |= store_thread_run_forward(t);
		work |= store_thread_run_job(t);
		work |= store_thread_run_task(t);
		store_thread_timed_work(t);
		if (!work)
			store_thread_sleep(t);
	}
	/* the workers have stopped: execute what they submitted before */
	while (store_thread_run_batch(t) || store_thread_run_job(t) || store_thread_run_task(t))
		;
	if (t->forward != NULL)
		store_forward_stop(t->forward);
	return NULL;
}

static uint64_t
store_thread_cycles(void)
{
	return rte_get_tsc_cycles();
}

static void
store_thread_wake_reporter(void *arg)
{
	struct engine *e = arg;

	idle_wake(e->worker[0]);
}

static int
store_thread_join_fleet(struct store_thread *t)
{
	struct engine *e = t->engine;
	const struct store_fleet side = {
		.fleet = e->fleet,
		.sa = e->sa,
		.store = e->store,
		.max_import = (uint64_t)e->config.sa.max_import_mb << 20,
		.hz = e->hz,
		.cycles = store_thread_cycles,
		.random = rte_rand,
		.reader = e->num_workers,
		.wake_reporter = store_thread_wake_reporter,
		.arg = e,
	};

	t->forward = store_forward_create(&side, store_thread_hand_back, t);
	t->notices = store_notices_create(&side);
	e->own_wish = own_wish_create(&side);
	if (t->forward == NULL || t->notices == NULL || e->own_wish == NULL)
		return -ENOMEM;
	return 0;
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
	if (e->fleet != NULL && store_thread_join_fleet(t) != 0)
		return error_set(err, ENOMEM, "no memory for changes in the fleet");
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
	if (e->fleet == NULL)
		return 0;
	ret = fleet_start(e->fleet, store_thread_wake_for_news, t, err);
	if (ret != 0)
		store_thread_stop(e);
	return ret;
}

void
store_thread_stop(struct engine *e)
{
	struct store_thread *t = e->store_thread;

	if (t == NULL || !t->started)
		return;
	__atomic_store_n(&t->stop, 1, __ATOMIC_SEQ_CST);
	if (e->fleet != NULL)
		fleet_end_long_work(e->fleet);
	store_thread_wake(t);
	pthread_join(t->thread, NULL);
	t->started = false;
	if (e->fleet != NULL)
		fleet_stop(e->fleet);
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
	store_forward_destroy(t->forward);
	store_notices_destroy(t->notices);
	own_ports_fleet_destroy(e);
	pthread_cond_destroy(&t->job_done);
	pthread_mutex_destroy(&t->lock);
	mem_free(e->alloc, t);
	e->store_thread = NULL;
}
