/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Create, start, stop and destroy the engine.
 */

#include <errno.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_malloc.h>

#include "base/plural.h"
#include "base/tsan.h"
#include "engine/clients_private.h"
#include "engine/clients_worker.h"
#include "engine/connections.h"
#include "engine/live_agent.h"
#include "engine/perftest.h"
#include "engine/placement.h"
#include "engine/subnet.h"

RTE_LOG_REGISTER(engine_logtype, polca.engine, INFO);

/*
 * Left zero: .limits, .mad, .sa.server, .sma.limits, .live and .cm; the engine then uses
 * rc_limits_default, mad_limits_default, ...
 */
const struct engine_config engine_config_default = {
	.max_pd = 1024,
	.max_mr = 65536,
	.max_mw = 65536,
	.idle = IDLE_BACKOFF,
	.idle_spin_us = 200,
	.idle_sleep_us = 1000,
	.handoff_ring = 1024,
	.rehome = true,
	.stall_ms = 1000,
	.neighbours_kept = 1024,
	.neighbours_idle_s = 600,
	.key_errors = 64,
	.key_error_pause_s = 60,
	.sa = {
		.enabled = true,
		.map_mb = 4096,
		.max_import_mb = 256,
		.max_versions = 1024,
		.old_mb = 256,
		.max_result_mb = 16,
		.query_mb = 256,
	},
	.sma = {
		.vendor_id = 0x001405, /* OpenIB's OUI, for want of one of our own */
		.device_id = 1,
		.revision = 1,
		.vl15_buffer = 64,
	},
};

#define WHEEL_TICK_HZ                                                                              \
	65536 /* about 15 us a slot: deadlines are exact whatever the slot's width                 \
	       */

/* Objects that all workers share: protection domains, regions, windows and the channel adapter. */
static int
create_device(struct engine *e, struct error *err)
{
	struct mem_config mem = {
		.max_pd = e->config.max_pd,
		.max_mr = e->config.max_mr,
		.max_mw = e->config.max_mw,
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.grace = { engine_grace_start, engine_grace_done, e->rcu },
	};
	struct rc_dev_config dev = {
		.limits = e->config.limits,
		.workers = e->num_workers,
		.hz = e->hz,
		.alloc = e->alloc,
		.rng = &rng_kernel,
	};

	e->mem = mem_create(&mem);
	if (e->mem == NULL)
		return error_set(err, ENOMEM,
			"no memory for %u protection domains, %u regions and %u windows: lower limits.max_pd, "
			"max_mr or max_mw, or raise eal.memory_mb",
			mem.max_pd, mem.max_mr, mem.max_mw);
	dev.mem = e->mem;
	e->dev = rc_dev_create(&dev);
	if (e->dev == NULL)
		return error_set(err, ENOMEM,
			"no channel adapter of %u queue pairs, %u completion queues and %u "
			"shared receive queues: lower limits.max_qp, max_cq or max_srq (max_qp: a power of two), "
			"or raise eal.memory_mb",
			dev.limits.max_qp, dev.limits.max_cq, dev.limits.max_srq);
	return 0;
}

static uint64_t
engine_wheel_tick(uint64_t hz)
{
	uint64_t tick = 1;

	while (tick * 2 <= hz / WHEEL_TICK_HZ)
		tick *= 2;
	return tick;
}

static void
worker_destroy(struct engine *e, struct worker *w)
{
	rc_worker_destroy(w->rc);
	gsi_destroy(w);
	if (w->link != NULL)
		link_worker_destroy(w->link);
	timer_wheel_destroy(w->wheel);
	engine_ring_free(w->commands);
	engine_ring_free(w->events);
	engine_ring_free(w->traces);
	mem_free(e->alloc, w->out);
	mem_free(e->alloc, w->arrived);
	pthread_mutex_destroy(&w->command_lock);
	mem_free(e->alloc, w);
}

/* A worker's rings, timer wheel and share of the ports. */
static int
worker_fill(struct engine *e, struct worker *w, struct error *err)
{
	int socket = (int)rte_lcore_to_socket_id(w->lcore);
	unsigned int port;

	w->out = mem_zalloc(e->alloc, e->num_workers * sizeof(w->out[0]), RTE_CACHE_LINE_SIZE);
	w->arrived =
		mem_zalloc(e->alloc, e->num_workers * sizeof(w->arrived[0]), RTE_CACHE_LINE_SIZE);
	w->commands = engine_ring("commands", sizeof(void *), COMMAND_RING, socket,
		RING_F_SP_ENQ | RING_F_SC_DEQ);
	w->events = engine_ring("events", sizeof(struct event_record), EVENT_RING, socket,
		RING_F_SP_ENQ | RING_F_SC_DEQ);
	w->traces = engine_ring("traces", sizeof(struct trace_record), TRACE_RING, socket,
		RING_F_SP_ENQ | RING_F_SC_DEQ);
	w->wheel = timer_wheel_create(e->alloc, engine_wheel_tick(e->hz), rte_get_tsc_cycles());
	if (w->out == NULL || w->arrived == NULL || w->commands == NULL || w->events == NULL ||
		w->traces == NULL || w->wheel == NULL)
		return error_set(err, ENOMEM, "no memory for worker %u: raise eal.memory_mb",
			w->id);
	w->link = link_worker_create(e->link, w->id, err);
	if (w->link == NULL)
		return -ENODEV;
	link_worker_tell(w->link, events_put_link, w);
	for (port = 0; port < link_num_ports(e->link); port++) {
		w->counters[port] = link_worker_counters(w->link, port);
		w->port_seen[port] = link_port_attr(e->link, port);
	}
	return 0;
}

static void
worker_wake_control(void *worker)
{
	wakeup_send(((struct worker *)worker)->engine);
}

static uint64_t
engine_read_tsc(void)
{
	return rte_get_tsc_cycles();
}

static int
worker_create(struct engine *e, unsigned int id, unsigned int lcore, struct error *err)
{
	struct rc_worker_config rc = { .id = id,
		.event = connections_event,
		.awaited = worker_wake_control,
		.completed = client_cq_completed,
		.violation = bad_key_rc };
	struct worker *w;
	int ret;

	w = mem_zalloc(e->alloc, sizeof(*w), RTE_CACHE_LINE_SIZE);
	if (w == NULL)
		return error_set(err, ENOMEM, "no memory for worker %u", id);
	e->worker[id] = w;
	pthread_mutex_init(&w->command_lock, NULL);
	client_turns_init(w);
	w->engine = e;
	w->id = id;
	w->lcore = lcore;
	w->workers = e->num_workers;
	w->dev = e->dev;
	w->rcu = e->rcu;
	w->icrc_unchecked = e->config.icrc_unchecked;
	w->tick_cycles = e->hz / WORKER_TICK_HZ;
	w->clock = e->config.clock != NULL ? e->config.clock : engine_read_tsc;
	idle_init(&w->idle, &e->config, e->hz);
	ret = worker_fill(e, w, err);
	if (ret != 0)
		return ret;
	rc.wheel = w->wheel;
	rc.tx = link_tx_sink(w->link);
	rc.event_arg = w;
	rc.violation_arg = w;
	rc.icrc_unchecked = e->config.icrc_unchecked;
	w->rc = rc_worker_create(e->dev, &rc);
	if (w->rc == NULL)
		return error_set(err, ENOMEM, "no memory for worker %u's queue pairs", id);
	ret = gsi_create(w, err);
	return ret != 0 ? ret : connections_create(w, err);
}

static int
create_workers(struct engine *e, struct error *err)
{
	unsigned int lcore, skip = e->config.first_worker, id = 0;
	rte_cpuset_t before;
	int ret;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (skip > 0) {
			skip--;
			continue;
		}
		if (id == e->num_workers)
			break;
		before = placement_enter(lcore);
		ret = worker_create(e, id++, lcore, err);
		placement_leave(&before);
		if (ret != 0)
			return ret;
	}
	ret = handoff_create(e, err);
	return ret != 0 ? ret : rehome_create(e, err);
}

/* Objects that all workers share are allocated on the first worker's NUMA node. */
static int
create_shared(struct engine *e, struct error *err)
{
	unsigned int i, lcore = rte_get_next_lcore(-1, 1, 0);
	rte_cpuset_t before;
	int ret;

	for (i = 0; i < e->config.first_worker; i++)
		lcore = rte_get_next_lcore(lcore, 1, 0);
	before = placement_enter(lcore);
	memory_home(placement_node(lcore));
	ret = grace_create(e, err);
	if (ret == 0)
		ret = create_device(e, err);
	if (ret == 0) {
		e->config.link.rcu = e->rcu;
		e->link = link_open(&e->config.link, err);
		ret = e->link != NULL ? 0 : -ENODEV;
	}
	placement_leave(&before);
	return ret;
}

static int
engine_create_parts(struct engine *e, struct error *err)
{
	unsigned int lcores = rte_lcore_count() - 1;
	int ret;

	e->num_workers = e->config.workers > 0 ? e->config.workers : lcores;
	if (e->num_workers == 0 || e->num_workers > LINK_WORKERS_MAX)
		return error_set(err, EINVAL,
			"got %u worker lcores, expected 1 to %d (the main lcore is none)",
			e->num_workers, LINK_WORKERS_MAX);
	if (e->config.first_worker + e->num_workers > lcores)
		return error_set(err, EINVAL,
			"workers: got %u from worker lcore %u on, there are %u of them",
			e->num_workers, e->config.first_worker, lcores);
	if (!rte_is_power_of_2(e->config.handoff_ring) || e->config.handoff_ring < 2)
		return error_set(err, EINVAL,
			"handoff_ring: got %u, expected a power of two from 2 on",
			e->config.handoff_ring);
	e->hz = rte_get_tsc_hz();
	if (e->config.limits.max_qp == 0)
		e->config.limits = rc_limits_default;
	if (e->config.mad.max_sessions == 0)
		e->config.mad = mad_limits_default;
	if (e->config.sa.server.max_queries == 0)
		e->config.sa.server = sa_config_default;
	if (e->config.sma.limits.trap_rate == 0)
		e->config.sma.limits = sma_limits_default;
	if (e->config.live.sources == 0)
		e->config.live = live_limits_default;
	if (e->config.cm.max_connections == 0)
		e->config.cm = cm_limits_default;
	e->mad_hash_key = rng_u64(&rng_kernel);
	e->cm_hash_key = rng_u64(&rng_kernel);
	e->config.link.workers = e->num_workers;
	e->config.link.hz = e->hz;
	ret = create_shared(e, err);
	if (ret == 0)
		ret = live_agent_host_create(e, err);
	if (ret == 0)
		ret = sa_store_create(e, err);
	if (ret == 0)
		ret = clients_create(e, err);
	if (ret == 0)
		ret = create_workers(e, err);
	if (ret == 0)
		ret = store_thread_create(e, err);
	if (ret != 0)
		return ret;
	subnet_start(e);
	own_ports_follow(e);
	ret = attempts_create(e, err);
	if (ret == 0)
		ret = services_create(e, err);
	if (ret == 0)
		ret = rdmacm_create(e, err);
	if (ret == 0)
		placement_look(e);
	return ret;
}

struct engine *
engine_create(const struct engine_config *config, struct error *err)
{
	const struct allocator *alloc = engine_allocator();
	struct engine *e = mem_zalloc(alloc, sizeof(*e), RTE_CACHE_LINE_SIZE);

	RTE_ASSERT(rte_lcore_id() == rte_get_main_lcore());
	if (e == NULL) {
		error_set(err, ENOMEM, "no memory for the engine");
		return NULL;
	}
	e->alloc = alloc;
	e->config = *config;
	if (engine_create_parts(e, err) != 0) {
		engine_destroy(e);
		return NULL;
	}
	return e;
}

int
engine_start(struct engine *e, struct error *err)
{
	unsigned int i;
	int ret;

	RTE_ASSERT(!e->running);
	ret = store_thread_start(e, err);
	if (ret != 0)
		return ret;
	for (i = 0; i < e->num_workers; i++) {
		ret = rte_eal_remote_launch(worker_main, e->worker[i], e->worker[i]->lcore);
		if (ret != 0) {
			e->running = true;
			engine_stop(e, 0);
			return error_set(err, -ret, "lcore %u does not start worker %u",
				e->worker[i]->lcore, i);
		}
	}
	e->running = true;
	ret = perftest_thread_start(e, err);
	if (ret != 0)
		engine_stop(e, 0);
	return ret;
}

/* True if the worker has pending work. Work requests count only while their QP is in RTS. */
static int
engine_worker_is_busy(struct worker *w, void *arg)
{
	uint32_t cursor = 0, qpn;
	struct rc_qp_info info;

	RTE_SET_USED(arg);
	if (rc_pending(w->rc) || gsi_pending(w) || handoff_depth(w) > 0 ||
		w->rehome.num_leaving > 0 || w->rehome.num_arriving > 0)
		return 1; /* neither worker finds a QP that is moving between them */
	while (rc_qp_next(w->rc, &cursor, &qpn))
		if (rc_qp_query(w->rc, qpn, &info) == 0 && info.sq_posted > 0 &&
			info.attr.qp_state == QPS_RTS)
			return 1;
	return 0;
}

/* Wait while busy_fn is true for any worker, until @p end. @return number of workers still busy */
static unsigned int
engine_wait_while(struct engine *e, worker_fn busy_fn, uint64_t end)
{
	unsigned int i, busy;

	do {
		busy = 0;
		for (i = 0; i < e->num_workers; i++)
			busy += engine_call(e, i, busy_fn, NULL) != 0;
		if (busy > 0)
			usleep(1000);
	} while (busy > 0 && rte_get_tsc_cycles() < end);
	return busy;
}

/*
 * Posted work has half of the time to finish. Then all connections are disconnected by DREQ, so
 * that the peers know.
 */
static void
engine_drain(struct engine *e, unsigned int ms)
{
	uint64_t start = rte_get_tsc_cycles(), time = ms * (e->hz / 1000);
	unsigned int i, busy, standing;

	e->draining = true;
	services_unlisten(e);
	busy = engine_wait_while(e, engine_worker_is_busy, start + time / 2);
	for (i = 0; i < e->num_workers; i++)
		engine_call(e, i, connections_end, NULL);
	standing = engine_wait_while(e, connections_busy, start + time);
	if (busy > 0)
		busy = engine_wait_while(e, engine_worker_is_busy, start + time);
	if (busy > 0)
		ENGINE_LOG(WARNING, "%u worker%s still had work under way after %u ms", busy,
			plural(busy), ms);
	if (standing > 0)
		ENGINE_LOG(WARNING,
			"on %u worker%s peers did not confirm the end of connections within %u ms",
			standing, plural(standing), ms);
}

void
engine_stop(struct engine *e, unsigned int drain_ms)
{
	unsigned int i;

	if (!e->running)
		return;
	sa_import_finish(e);
	if (drain_ms > 0)
		engine_drain(e, drain_ms);
	perftest_thread_stop(e);
	for (i = 0; i < e->num_workers; i++) {
		__atomic_store_n(&e->worker[i]->stop, 1, __ATOMIC_SEQ_CST);
		idle_wake(e->worker[i]);
	}
	for (i = 0; i < e->num_workers; i++) {
		rte_eal_wait_lcore(e->worker[i]->lcore);
		tsan_acquire(e->worker[i]);
	}
	store_thread_stop(e);
	for (i = 0; i < e->num_workers; i++)
		e->worker[i]->stop = 0;
	e->running = false;
	e->draining = false;
}

void
engine_destroy(struct engine *e)
{
	unsigned int i;

	if (e == NULL)
		return;
	engine_stop(e, 0);
	requests_destroy(&e->queries);
	requests_destroy(&e->asks);
	sm_inbox_destroy(e);
	sa_import_destroy(e);
	sa_walks_end(e);
	own_ports_end(e);
	perftest_destroy(e);
	rdmacm_quiet(e);
	wakeup_destroy(e);
	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i] != NULL)
			connections_destroy(e->worker[i]);
	attempts_destroy(e);
	rdmacm_destroy(e);
	handoff_destroy(e);
	rehome_destroy(e);
	store_thread_destroy(e);
	/*
	 * QPs hold references to objects of services and to shared tables, so they are destroyed
	 * first, and the ports last
	 */
	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i] != NULL && e->worker[i]->rc != NULL) {
			rc_worker_destroy(e->worker[i]->rc);
			e->worker[i]->rc = NULL;
		}
	services_destroy(e);
	clients_destroy(e);
	for (i = 0; i < e->num_workers; i++)
		if (e->worker[i] != NULL)
			worker_destroy(e, e->worker[i]);
	/* after the last engine_turn() no grace period may wait for its worker */
	for (i = 0; e->rcu != NULL && i < e->num_workers; i++)
		rte_rcu_qsbr_thread_offline(e->rcu, i);
	sa_store_destroy(e);
	if (e->dev != NULL)
		rc_dev_destroy(e->dev);
	if (e->mem != NULL)
		mem_destroy(e->mem);
	if (e->link != NULL)
		link_close(e->link);
	live_agent_host_destroy(e);
	rte_free(e->rcu);
	mem_free(e->alloc, e);
}

bool
engine_turn(struct engine *e, unsigned int worker, uint64_t now)
{
	RTE_ASSERT(worker < e->num_workers && !e->running);
	return worker_poll(e->worker[worker], now);
}

unsigned int
engine_workers(const struct engine *e)
{
	return e->num_workers;
}

struct link *
engine_link(struct engine *e)
{
	return e->link;
}

struct rc_worker *
worker_rc(struct worker *w)
{
	return w->rc;
}
