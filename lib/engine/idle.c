/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What a worker does without work: it spins, and after a while sleeps in growing steps, so that an
 * idle worker does not use a whole core. A sleep ends at the next timer, at the next tick, or when
 * another thread puts something on one of the worker's rings.
 */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include "engine/clients_worker.h"

#define SLEEP_MIN_US 8 /* for shorter waits the worker spins */

void
idle_init(struct idle *idle, const struct engine_config *config, uint64_t hz)
{
	idle->mode = config->idle;
	idle->cycles_per_us = RTE_MAX(hz / 1000000, 1u);
	idle->spin = config->idle_spin_us * idle->cycles_per_us;
	idle->sleep_max_us = config->idle_sleep_us;
	idle_end(idle, 0);
}

void
idle_end(struct idle *idle, uint64_t now)
{
	idle->since = now;
	idle->sleep_us = SLEEP_MIN_US;
}

/* Values of worker.asleep */
#define IDLE_AWAKE 0
#define IDLE_FUTEX 1
#define IDLE_PIPE  2 /* in clients_sleep() */

/*
 * The futex word is not 0 while the worker sleeps or is about to. A thread that has put something
 * on a ring of the worker clears the word and wakes it. The two fences guarantee that either the
 * worker sees the ring entry after it set the word, or the other thread sees the word set. Acquire
 * and release cannot order a store before a later load of another variable.
 */
static void
worker_sleep(struct worker *w, uint32_t us)
{
	struct timespec ts = { us / 1000000, (long)(us % 1000000) * 1000 };
	uint32_t how = w->clients.num > 0 ? IDLE_PIPE : IDLE_FUTEX;

	/* release: who sees IDLE_PIPE also sees the pipe */
	__atomic_store_n(&w->asleep, how, __ATOMIC_RELEASE);
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST); /* stored .asleep, then load the rings */
	if (rte_ring_empty(w->commands) && handoff_depth(w) == 0 && !rehome_has_mail(w) &&
		(w->written == NULL || rte_ring_empty(w->written)) &&
		__atomic_load_n(&w->stop, __ATOMIC_RELAXED) == 0) {
		/* a sleeping worker holds no reference: grace periods need not wait for it */
		rte_rcu_qsbr_thread_offline(w->rcu, w->id);
		if (how == IDLE_PIPE)
			clients_sleep(w, &ts);
		else
			syscall(SYS_futex, &w->asleep, FUTEX_WAIT_PRIVATE, how, &ts, NULL, 0);
		rte_rcu_qsbr_thread_online(w->rcu, w->id);
		w->stats.sleeps++;
	}
	__atomic_store_n(&w->asleep, IDLE_AWAKE, __ATOMIC_RELAXED);
}

void
idle_wake(struct worker *w)
{
	uint32_t how;

	/* stored a ring's tail, then load .asleep: see worker_sleep() */
	rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&w->asleep, __ATOMIC_RELAXED) == IDLE_AWAKE)
		return;
	how = __atomic_exchange_n(&w->asleep, IDLE_AWAKE, __ATOMIC_SEQ_CST);
	if (how == IDLE_FUTEX)
		syscall(SYS_futex, &w->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	else if (how == IDLE_PIPE)
		clients_wake(w);
}

uint64_t
idle_wait(struct worker *w, uint64_t now)
{
	struct idle *idle = &w->idle;
	uint64_t next, us;

	if (idle->mode == IDLE_POLL || now - idle->since < idle->spin || idle->sleep_max_us == 0) {
		rte_pause();
		return 0;
	}
	next = timer_wheel_next(w->wheel);
	if (next > w->tick)
		next = w->tick;
	if (next <= now)
		return 0;
	us = (next - now) / idle->cycles_per_us;
	if (us > idle->sleep_us)
		us = idle->sleep_us;
	if (us < SLEEP_MIN_US) {
		rte_pause();
		return 0;
	}
	worker_sleep(w, (uint32_t)us);
	idle->sleep_us = RTE_MIN(idle->sleep_us * 2, idle->sleep_max_us);
	return now + us * idle->cycles_per_us;
}
