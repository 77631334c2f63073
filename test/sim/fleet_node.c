/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * An appliance of a fleet: lib/store's fleet and its thread, a store with an SA, and what the
 * store's thread of an engine does. Worker 0 is a few lines here: it reports each event to one
 * subscriber, who answers after a while.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_log.h>

#include "base/siphash.h"
#include "engine/own_wish.h"
#include "engine/store_forward.h"
#include "engine/store_notices.h"
#include "fleet_sim.h"
#include "sa/sa.h"
#include "sa/server.h"

#define SLEEP_MS   100
#define EXPIRE_MS  1000
#define RECLAIM_MS 20
#define EPOCH_S    1000000 /* of leases, when the simulation begins */

int engine_logtype; /* of lib/engine's files that are used here */

static uint64_t
lease_now(const struct fleet_node *n)
{
	return EPOCH_S + n->script->sim->now / SIM_SECOND;
}

static uint64_t
virtual_cycles(void)
{
	return fleet_script_now->sim->now;
}

uint64_t
fleet_random(void)
{
	return sim_rand(fleet_script_now->sim);
}

/* --- worker 0 --- */

static void
report_later(struct fleet_node *n, uint64_t number)
{
	struct sim *s = n->script->sim;
	uint64_t wait = sim_wait(s, (sim_chance(s, 1000) ? 1000 : 10) * SIM_MS);

	if (n->num_told == FLEET_TOLD)
		abort(); /* more than the ring of events has room for */
	n->told[n->num_told++] = (struct fleet_told){ number, s->now + wait };
	fiber_wake(n->writer, s->now + wait);
}

/* Called when the store's thread has posted events, before anything else runs. */
static void
worker_reports(void *arg)
{
	struct fleet_node *n = arg;
	const uint64_t subscription = 1;
	struct sa_event e;

	while (sa_event_take(n->sa, &e)) {
		if (e.number < n->sa->events.forget) {
			sa_event_was_told(n->sa, e.number);
			continue;
		}
		fleet_op_reported(n, &e, siphash_words(e.secret, &subscription, 1));
		report_later(n, e.number);
	}
}

static bool
worker_answers(struct fleet_node *n)
{
	unsigned int i, kept = 0;

	for (i = 0; i < n->num_told; i++) {
		struct fleet_told t = n->told[i];

		if (t.at <= n->script->sim->now || t.number < n->sa->events.forget) {
			sa_event_was_told(n->sa, t.number);
			continue;
		}
		n->told[kept++] = t;
		fiber_wake(n->writer, t.at);
	}
	i = n->num_told - kept;
	n->num_told = kept;
	return i > 0;
}

/* --- the store's thread: as store_main() in lib/engine/store_thread.c --- */

void
fleet_node_wake(void *node)
{
	struct fleet_node *n = node;

	n->news = true;
	fiber_wake(n->writer, n->script->sim->now);
}

static bool
node_follow(struct fleet_node *n)
{
	int got;

	if (!n->news)
		return false;
	n->news = false;
	got = store_follow(n->store, NULL);
	if (got < 0)
		sim_fail(n->script->sim, "%s does not follow", n->fleet->config.name);
	if (got <= 0)
		return false;
	sa_followed(n->sa);
	n->news = true;
	return true;
}

static bool
node_run_batch(struct fleet_node *n)
{
	struct sa_write *batch[FLEET_QUEUE];
	unsigned int num = n->queued;

	if (num == 0)
		return false;
	memcpy(batch, n->queue, num * sizeof(batch[0]));
	n->queued = 0;
	store_forward_batch(n->forward, batch, num, lease_now(n));
	return true;
}

static bool
node_run_import(struct fleet_node *n)
{
	if (n->import == NULL)
		return false;
	fleet_op_import(n);
	n->import = NULL;
	return true;
}

static void
node_timed_work(struct fleet_node *n)
{
	uint64_t now = n->script->sim->now;

	if (now >= n->reclaim_at) {
		store_reclaim(n->store);
		n->reclaim_at = now + RECLAIM_MS * SIM_MS;
	}
	if (now >= n->expire_at && fleet_leads(n->fleet))
		n->expire_at = sa_expire(n->sa, lease_now(n)) > 0 ? now : now + EXPIRE_MS * SIM_MS;
}

static uint64_t
node_sleep_end(const struct fleet_node *n)
{
	uint64_t end = n->script->sim->now + SLEEP_MS * SIM_MS;
	unsigned int i;

	for (i = 0; i < n->num_told; i++)
		if (n->told[i].at < end)
			end = n->told[i].at;
	return end > n->script->sim->now ? end : n->script->sim->now + 1;
}

static void
node_writer(void *arg)
{
	struct fleet_node *n = arg;
	bool work;

	while (!n->stop) {
		work = node_follow(n);
		work |= node_run_batch(n);
		work |= own_wish_run(n->wish, n->forward, lease_now(n));
		work |= fleet_importer_run(n, lease_now(n));
		work |= store_forward_run(n->forward, lease_now(n));
		work |= worker_answers(n);
		work |= store_notices_run(n->notices);
		work |= node_run_import(n);
		node_timed_work(n);
		if (!work && !n->news && n->queued == 0)
			fiber_wait(node_sleep_end(n));
	}
	while (node_run_batch(n))
		;
	store_forward_stop(n->forward);
}

void
fleet_node_submit(struct fleet_node *n, struct sa_write *write)
{
	if (n->queued == FLEET_QUEUE)
		abort();
	n->queue[n->queued++] = write;
	fiber_wake(n->writer, n->script->sim->now);
}

/* --- the fleet's thread --- */

static void
node_etcd(void *arg)
{
	struct fleet_node *n = arg;

	fleet_run(n->fleet);
}

/* --- start, kill, stop --- */

static uint64_t
nobody_reads(void *arg)
{
	(void)arg;
	return 1;
}

static bool
nobody_has_read(void *arg, uint64_t token)
{
	(void)arg, (void)token;
	return true;
}

static void
random_fill(void *arg, void *buf, size_t len)
{
	uint8_t *to = buf;
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = (uint8_t)sim_rand(arg);
}

static struct rng virtual_rng = { random_fill, NULL };

static void
fleet_node_config(const struct fleet_script *fs, unsigned int app, struct fleet_config *c)
{
	unsigned int i;

	*c = (struct fleet_config){ .num_endpoints = FLEET_ETCD,
		.lease_s = fs->lease_s,
		.max_txn_ops = fs->max_txn_ops };
	snprintf(c->prefix, sizeof(c->prefix), "/p");
	snprintf(c->name, sizeof(c->name), "a%u", app);
	for (i = 0; i < FLEET_ETCD; i++)
		snprintf(c->endpoint[i].url, sizeof(c->endpoint[i].url), "%u",
			(app + i) % FLEET_ETCD);
}

static void
fleet_node_open(struct fleet_node *n, unsigned int app)
{
	struct store_config sc = {
		.tables = sa_num_tables,
		.indexes = sa_indexes,
		.num_indexes = sa_num_indexes,
		.readers = 1,
		.alloc = &allocator_malloc,
		.max_old_bytes = 1 << 20,
		.max_versions = 4,
		.grace = { nobody_reads, nobody_has_read, NULL },
	};
	struct sa_config sac = sa_config_default;
	struct fleet_config config;
	struct error err = { "" };

	fleet_node_config(n->script, app, &config);
	fleet_opening = n;
	if (fleet_open(&config, "", 1 << 22, &n->fleet, &sc.backend, &err) != 0)
		abort();
	n->store = store_create(&sc, &err);
	sac.store = n->store;
	sac.hz = SIM_SECOND;
	sac.alloc = &allocator_malloc;
	sac.rng = &virtual_rng;
	sac.workers = 1;
	n->sa = n->store != NULL ? sa_create(&sac, &err) : NULL;
	if (n->sa == NULL)
		abort();
}

void
fleet_node_start(struct fleet_script *fs, unsigned int app)
{
	struct fleet_node *n = calloc(1, sizeof(*n));
	struct store_fleet side;

	virtual_rng.arg = fs->sim;
	if (n == NULL)
		abort();
	n->script = fs;
	n->app = &fs->app[app];
	fleet_node_open(n, app);
	side = (struct store_fleet){ .fleet = n->fleet,
		.sa = n->sa,
		.store = n->store,
		.max_import = 1 << 20,
		.hz = SIM_SECOND,
		.cycles = virtual_cycles,
		.random = fleet_random,
		.wake_reporter = worker_reports,
		.arg = n };
	n->forward = store_forward_create(&side, fleet_op_handed_back, n);
	n->notices = store_notices_create(&side);
	n->wish = own_wish_create(&side);
	if (n->forward == NULL || n->notices == NULL || n->wish == NULL)
		abort();
	n->fleet->wake = fleet_node_wake;
	n->fleet->wake_arg = n;
	n->app->node = n;
	if (fs->own_ports)
		fleet_owned_renew(n);
	n->writer = fiber_start(fs->sim, node_writer, n, &n->dead);
	n->etcd = fiber_start(fs->sim, node_etcd, n, &n->dead);
}

static void
node_destroy(struct fleet_node *n)
{
	store_forward_destroy(n->forward);
	store_notices_destroy(n->notices);
	own_wish_destroy(n->wish);
	free(n->importer);
	sa_destroy(n->sa);
	n->app->node = NULL;
	store_destroy(n->store); /* and the fleet */
	free(n);
}

static void
node_end(struct fleet_node *n)
{
	n->stop = true;
	n->fleet->stop = true;
}

void
fleet_node_kill(struct fleet_script *fs, unsigned int app)
{
	struct fleet_node *n = fs->app[app].node;

	if (n == NULL)
		return;
	sim_trace(fs->sim, "a%u is killed", app);
	fs->app[app].stopping = false;
	n->dead = true;
	node_end(n);
	while (!fiber_ended(n->writer))
		fiber_resume(n->writer);
	while (!fiber_ended(n->etcd))
		fiber_resume(n->etcd);
	fleet_importer_kill(n);
	node_destroy(n);
}

static void
node_look_for_end(struct sim *s, void *arg)
{
	struct fleet_app *app = arg;
	struct fleet_node *n = app->node;

	if (!app->stopping)
		return; /* it was killed meanwhile */
	if (!n->stop && !fleet_importer_works(n)) {
		n->stop = true;
		fiber_wake(n->writer, s->now);
	}
	if (fiber_ended(n->writer) && fiber_ended(n->etcd)) {
		app->stopping = false;
		node_destroy(n);
		return;
	}
	if (fiber_ended(n->writer) && !n->fleet->stop) {
		n->fleet->stop = true;
		etcd_client_wake(n->fleet->session);
	}
	sim_at(s, s->now + 10 * SIM_MS, node_look_for_end, app);
}

void
fleet_node_stop(struct fleet_script *fs, unsigned int app)
{
	struct fleet_app *a = &fs->app[app];

	if (a->node == NULL || a->stopping)
		return;
	sim_trace(fs->sim, "a%u stops", app);
	a->stopping = true;
	fleet_importer_stop(a->node);
	sim_at(fs->sim, fs->sim->now + 10 * SIM_MS, node_look_for_end, a);
}

const struct store_version *
fleet_node_view(struct fleet_node *n)
{
	return store_current(store_reader(n->store, 0));
}
