/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Imports at an appliance of a fleet that does not lead: the threads. The import's thread takes the
 * steps of sa_import_stage.c; what concerns etcd is done by the store's thread, which serves others
 * in between.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_random.h>

#include "engine/sa_import_fleet.h"
#include "engine/sa_import_stage.h"
#include "engine/worker.h"
#include "store/fleet.h"

#define PAUSE_MS 500 /* before a part is put again */

struct import_fleet {
	pthread_mutex_t lock; /* protects .waits and .stop */
	pthread_cond_t changed;
	bool waits; /* the request has no answer */
	bool stop;
	struct import_request request;
};

/* --- on the store's thread, for the import's --- */

struct fleet_call {
	int (*fn)(struct fleet *f, void *arg);
	void *arg;
};

static int
import_call_fleet(struct engine *e, void *arg)
{
	struct fleet_call *c = arg;

	return c->fn(e->fleet, c->arg);
}

static void
import_answered(void *arg)
{
	struct import_fleet *i = arg;

	pthread_mutex_lock(&i->lock);
	i->waits = false;
	pthread_cond_broadcast(&i->changed);
	pthread_mutex_unlock(&i->lock);
}

static int
import_forward(struct engine *e, void *arg)
{
	struct import_fleet *i = arg;

	store_thread_forward(e, &i->request.write, import_answered, i);
	return 0;
}

/* --- on the import's thread --- */

static int
import_call(void *arg, int (*fn)(struct fleet *f, void *arg), void *fn_arg)
{
	struct fleet_call c = { fn, fn_arg };

	return store_thread_call(arg, import_call_fleet, &c);
}

static bool
import_pause(void *arg)
{
	struct import_fleet *i = ((struct engine *)arg)->import_fleet;
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until); /* the wall clock may be set back */
	until.tv_nsec += PAUSE_MS * 1000000l;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&i->lock);
	while (!i->stop &&
		pthread_cond_clockwait(&i->changed, &i->lock, CLOCK_MONOTONIC, &until) == 0)
		;
	stop = i->stop;
	pthread_mutex_unlock(&i->lock);
	return !stop;
}

static bool
import_stops(void *arg)
{
	struct import_fleet *i = ((struct engine *)arg)->import_fleet;
	bool stop;

	pthread_mutex_lock(&i->lock);
	stop = i->stop;
	pthread_mutex_unlock(&i->lock);
	return stop;
}

static bool
import_ask(void *arg)
{
	struct engine *e = arg;
	struct import_fleet *i = e->import_fleet;
	bool answered;

	pthread_mutex_lock(&i->lock);
	i->waits = true;
	pthread_mutex_unlock(&i->lock);
	store_thread_call(e, import_forward, i);
	pthread_mutex_lock(&i->lock);
	while (i->waits && !i->stop)
		pthread_cond_wait(&i->changed, &i->lock);
	answered = !i->waits;
	pthread_mutex_unlock(&i->lock);
	return answered;
}

int
import_at_leader(struct engine *e, enum sa_replaced replace, const struct sa_change *records,
	size_t n, struct error *err)
{
	const struct import_thread thread = {
		.owner = fleet_name(e->fleet),
		.part_max = STAGED_PART_MAX,
		.random = rte_rand,
		.call = import_call,
		.pause = import_pause,
		.stops = import_stops,
		.ask = import_ask,
		.arg = e,
	};

	return import_staged(&thread, &e->import_fleet->request, replace, records, n, err);
}

/* --- on the control thread --- */

static void
import_fleet_set_stop(struct engine *e, bool stop)
{
	struct import_fleet *i = e->import_fleet;

	if (i == NULL)
		return;
	pthread_mutex_lock(&i->lock);
	i->stop = stop;
	pthread_cond_broadcast(&i->changed);
	pthread_mutex_unlock(&i->lock);
}

void
import_fleet_stop(struct engine *e)
{
	import_fleet_set_stop(e, true);
}

void
import_fleet_stopped(struct engine *e)
{
	import_fleet_set_stop(e, false);
}

int
import_fleet_create(struct engine *e)
{
	struct import_fleet *i;

	if (e->fleet == NULL || e->import_fleet != NULL)
		return 0;
	i = calloc(1, sizeof(*i));
	if (i == NULL)
		return -ENOMEM;
	pthread_mutex_init(&i->lock, NULL);
	pthread_cond_init(&i->changed, NULL);
	e->import_fleet = i;
	return 0;
}

void
import_fleet_destroy(struct engine *e)
{
	if (e->import_fleet == NULL)
		return;
	pthread_cond_destroy(&e->import_fleet->changed);
	pthread_mutex_destroy(&e->import_fleet->lock);
	free(e->import_fleet);
	e->import_fleet = NULL;
}
