/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Commands: a worker runs a function for the control thread between two bursts. The caller waits
 * for the result, so the command can be on its stack, and it need not touch the worker's memory
 * itself. A command is never dropped: if the ring is full, the caller waits.
 */

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "engine/worker.h"

#define SPINS      32
#define NAP_MIN_NS 10000
#define NAP_MAX_NS 500000

/*
 * Yield a few times, then sleep in growing steps: on a small machine the worker may need this CPU
 * to answer.
 */
struct patience {
	unsigned int spins;
	long ns;
};

static void
command_pause(struct patience *p)
{
	struct timespec ts = { 0, p->ns };

	if (p->spins < SPINS) {
		p->spins++;
		sched_yield();
		return;
	}
	nanosleep(&ts, NULL);
	if (p->ns < NAP_MAX_NS)
		p->ns += p->ns / 2;
}

int
engine_call(struct engine *e, unsigned int worker, worker_fn fn, void *arg)
{
	struct command cmd = { .fn = fn, .arg = arg };
	struct patience p = { 0, NAP_MIN_NS };
	struct worker *w;
	int queued;

	RTE_ASSERT(fn != NULL);
	if (worker >= e->num_workers)
		return -EINVAL;
	w = e->worker[worker];
	if (!e->running)
		return fn(w, arg); /* no worker thread runs */
	RTE_ASSERT(rte_lcore_id() != w->lcore); /* it would wait for itself */
	do {
		pthread_mutex_lock(&w->command_lock);
		queued = rte_ring_sp_enqueue(w->commands, &cmd);
		pthread_mutex_unlock(&w->command_lock);
		if (queued != 0)
			command_pause(&p);
	} while (queued != 0);
	idle_wake(w);
	p = (struct patience){ 0, NAP_MIN_NS };
	while (__atomic_load_n(&cmd.done, __ATOMIC_ACQUIRE) == 0)
		command_pause(&p);
	return cmd.result;
}

unsigned int
command_run(struct worker *w)
{
	unsigned int n = 0;
	void *obj;

	while (n < COMMAND_RING && rte_ring_sc_dequeue(w->commands, &obj) == 0) {
		struct command *cmd = obj;

		cmd->result = cmd->fn(w, cmd->arg);
		/* after this store the caller may return, which ends the life of *cmd */
		__atomic_store_n(&cmd->done, 1, __ATOMIC_RELEASE);
		n++;
	}
	return n;
}
