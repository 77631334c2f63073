/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * SMPs for a subnet manager that runs outside this process and uses one of our ports: each trap,
 * and each accepted Set(SMInfo) that changes the state of the SM. The agent on worker 0 receives
 * them and passes them to the control thread, where the SM takes them; traps also go to the SA's
 * subscribers. The newest SMPs are kept even after the SM has taken them, so that a client can
 * find the notice that belongs to an event.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ring_elem.h>

#include "engine/subnet.h"
#include "engine/verbs_mad.h"
#include "engine/verbs_private.h"

#define SM_RING 256

struct sm_inbox {
	struct engine_sm_smp smp[ENGINE_SM_SMPS]; /* indexed by number modulo ENGINE_SM_SMPS */
	bool taken[ENGINE_SM_SMPS];
	uint32_t next; /* the number after the newest */
	uint64_t lost; /* SMPs that newer ones replaced before the SM took them */
};

/* --- worker 0 --- */

int
sm_smps_create(struct worker *w, struct error *err)
{
	w->sm_smps = engine_ring("sm_smps", sizeof(struct engine_sm_smp), SM_RING,
		(int)rte_lcore_to_socket_id(w->lcore), RING_F_SP_ENQ | RING_F_SC_DEQ);
	return w->sm_smps != NULL ? 0 : error_set(err, ENOMEM, "no memory for a queue to the SM");
}

void
sm_smps_destroy(struct worker *w)
{
	engine_ring_free(w->sm_smps);
	w->sm_smps = NULL;
}

void
sm_smp_put(void *worker, uint16_t port, uint16_t slid, const uint8_t mad[MAD_LEN])
{
	struct worker *w = worker;
	struct engine_sm_smp smp = { .port = port, .slid = slid, .time = rte_get_tsc_cycles() };
	struct event ev = { .type = EVENT_SM_SMP };

	if (mad[MAD_OFF_METHOD] == MAD_TRAP && w->sa != NULL)
		sa_trap(w->sa, mad + SMP_OFF_DATA);
	memcpy(smp.mad, mad, MAD_LEN);
	smp.number = w->sm_number + 1;
	if (rte_ring_sp_enqueue_elem(w->sm_smps, &smp, sizeof(smp)) != 0) {
		__atomic_store_n(&w->sm_lost, w->sm_lost + 1, __ATOMIC_RELAXED);
		return;
	}
	ev.element = w->sm_number = smp.number;
	events_put(w, &ev);
}

/* --- the control thread --- */

static void
sm_inbox_keep(struct sm_inbox *in, const struct engine_sm_smp *smp)
{
	unsigned int place = smp->number % ENGINE_SM_SMPS;

	if (in->smp[place].number != 0 && !in->taken[place])
		in->lost++;
	in->smp[place] = *smp;
	in->taken[place] = false;
	in->next = smp->number + 1;
}

void
engine_sm_watch(struct engine *e)
{
	struct worker *w = e->worker[0];
	struct engine_sm_smp smp;

	if (w->sm_smps == NULL || rte_ring_empty(w->sm_smps))
		return;
	if (e->sm_inbox == NULL)
		e->sm_inbox = mem_zalloc(&allocator_malloc, sizeof(*e->sm_inbox), 0);
	if (e->sm_inbox == NULL)
		return;
	while (rte_ring_sc_dequeue_elem(w->sm_smps, &smp, sizeof(smp)) == 0)
		sm_inbox_keep(e->sm_inbox, &smp);
}

void
sm_inbox_destroy(struct engine *e)
{
	mem_free(&allocator_malloc, e->sm_inbox);
	e->sm_inbox = NULL;
}

static void
sm_smp_set_age(const struct engine *e, struct engine_sm_smp *smp)
{
	smp->age_us = (rte_get_tsc_cycles() - smp->time) / RTE_MAX(e->hz / 1000000, 1u);
}

const struct engine_sm_smp *
engine_sm_find(struct engine *e, uint32_t number)
{
	struct engine_sm_smp *smp;

	engine_sm_watch(e);
	smp = e->sm_inbox != NULL ? &e->sm_inbox->smp[number % ENGINE_SM_SMPS] : NULL;
	if (smp == NULL || number == 0 || smp->number != number)
		return NULL;
	sm_smp_set_age(e, smp);
	return smp;
}

struct sm_args {
	uint16_t port;
	bool set;
	uint8_t state;
	uint8_t priority;
};

static int
sm_call_here(struct worker *w, void *arg)
{
	const struct sm_args *a = arg;
	uint64_t now = rte_get_tsc_cycles();

	return a->set ? sma_sm_set(w->sma, a->port, a->state, a->priority, now)
		      : sma_sm_alive(w->sma, a->port, now);
}

/* The SM makes a call, which also shows that it is alive. */
static int
sm_call(struct engine *e, unsigned int port, struct sm_args *a, struct error *err)
{
	if (known_port(e, port, err) == NULL)
		return -EINVAL;
	a->port = (uint16_t)port;
	if (engine_sma_managed(e, port) && engine_call(e, 0, sm_call_here, a) == 0)
		return 0;
	return error_set(err, EINVAL,
		"port: got %u, behind which no subnet manager is configured (ib.sm)", port);
}

int
engine_sm_set(struct engine *e, unsigned int port, uint8_t state, uint8_t priority,
	struct error *err)
{
	struct sm_args a = { .set = true, .state = state, .priority = priority };

	return sm_call(e, port, &a, err);
}

/* Oldest first; the inbox keeps the last ENGINE_SM_SMPS numbers. */
static unsigned int
sm_inbox_take(const struct engine *e, unsigned int port, struct engine_sm_smp *smp, unsigned int n)
{
	struct sm_inbox *in = e->sm_inbox;
	unsigned int got = 0, i, place;

	for (i = 0; i < ENGINE_SM_SMPS && got < n; i++) {
		place = (in->next + i) % ENGINE_SM_SMPS;
		if (in->smp[place].number == 0 || in->taken[place] || in->smp[place].port != port)
			continue;
		in->taken[place] = true;
		sm_smp_set_age(e, &in->smp[place]);
		smp[got++] = in->smp[place];
	}
	return got;
}

int
engine_sm_take(struct engine *e, unsigned int port, struct engine_sm_smp *smp, unsigned int n,
	uint64_t *lost, struct error *err)
{
	struct sm_args a = { .set = false };
	int ret = sm_call(e, port, &a, err);

	if (ret != 0)
		return ret;
	engine_sm_watch(e);
	*lost = relaxed(&e->worker[0]->sm_lost) + (e->sm_inbox != NULL ? e->sm_inbox->lost : 0);
	return e->sm_inbox != NULL ? (int)sm_inbox_take(e, port, smp, n) : 0;
}
