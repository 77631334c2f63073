/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

/**
 * @file The engine. Workers, one lcore each, poll lib/link and run lib/rc, the connection manager
 * and the management agents. The control thread reaches them by commands: its verbs (verbs_*.h),
 * services and events are here, too. A third thread writes the SA's database. Called by app/polca,
 * lib/ctl and polca-bench.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "cm/cm.h"
#include "link/link.h"
#include "live/live.h"
#include "mad/mad.h"
#include "mem/mem.h"
#include "pma/pma.h"
#include "rc/rc.h"
#include "sa/sa.h"
#include "sma/sma.h"
#include "store/fleet.h"
#include "svc/svc.h"

struct engine;
struct worker;

enum idle_mode {
	IDLE_POLL, /**< never sleep */
	IDLE_BACKOFF, /**< spin for a while, then sleep in growing steps up to .idle_sleep_us */
};

/** Subnet administration of this appliance. */
struct engine_sa_config {
	bool enabled; /**< serve an SA; queries to other SAs work without */
	char path[256]; /**< directory of the database; "": memory only */
	uint32_t map_mb; /**< largest size of the database */
	uint32_t max_import_mb; /**< largest file that is imported */
	uint32_t max_versions; /**< versions of the database that transfers may hold at one time */
	uint32_t old_mb; /**< memory that old versions may occupy */
	/**
	 * .max_queries 0: sa_config_default. The engine fills in .store, .hz, .alloc, .rng,
	 * .workers, .own_key and .resp_time, and rounds .path_ports up to a power of two.
	 */
	struct sa_config server;
	uint32_t max_result_mb; /**< .server.max_result_bytes, in MiB */
	/** .num_endpoints 0: the database is this appliance's alone; otherwise .path has a copy */
	struct fleet_config fleet;
	/* as a client */
	uint32_t query_mb; /**< memory for the records of one query of ours */
};

/** The channel adapter as subnet management sees it. */
struct engine_sma_config {
	char node_desc[SMA_NODE_DESC_LEN + 1]; /**< "": "polca HOST" */
	uint64_t node_guid; /**< 0: the EUI-64 of the first port's MAC */
	uint64_t system_image_guid; /**< 0: the node's */
	uint32_t vendor_id;
	uint16_t device_id;
	uint32_t revision;
	uint32_t vl15_buffer; /**< SMPs that a port's VL15 buffer holds, 1..ENGINE_VL15_MAX */
	struct sma_limits limits;
	/**
	 * Indexed by port; native IB ports only. The engine fills in .port, .guid, .mtu and the
	 * speeds.
	 */
	struct sma_port_config port[LINK_PORTS_MAX];
};
#define ENGINE_VL15_MAX 256

#define ENGINE_SERVICES_MAX 64 /* services of the configuration, which listen from the start */

struct engine_config {
	struct link_config link; /**< .workers and .hz are filled in by the engine */
	struct rc_limits limits; /**< .max_qp 0: rc_limits_default */
	uint32_t max_pd;
	uint32_t max_mr;
	uint32_t max_mw;
	enum idle_mode idle;
	uint32_t idle_spin_us;
	uint32_t idle_sleep_us;
	uint32_t handoff_ring; /**< entries per ordered pair of workers, a power of two */
	bool rehome; /**< QPs move automatically to the worker where their packets arrive */
	uint32_t stall_ms; /**< heartbeat older than this raises EVENT_WORKER_STALL */
	/**
	 * resolved neighbours that nobody uses are forgotten when the link has more than so many,
	 * and when they have been idle for so long
	 */
	uint32_t neighbours_kept;
	uint32_t neighbours_idle_s;
	bool icrc_unchecked;
	/** wrong keys of one address within a minute before it gets no new connections; 0: any */
	uint32_t key_errors;
	uint32_t key_error_pause_s; /**< for so long */
	struct mad_limits mad; /**< .max_sessions 0: mad_limits_default */
	struct engine_sa_config sa;
	struct engine_sma_config sma;
	struct live_limits live;
	struct cm_limits cm; /**< .max_connections 0: cm_limits_default */
	struct svc_config service[ENGINE_SERVICES_MAX]; /**< services that listen from the start */
	unsigned int num_services;
	/** EAL worker lcores to skip before the first one used */
	unsigned int first_worker;
	unsigned int workers; /**< number of lcores used; 0: all */
	/** Clock that a worker reads within its turn; NULL: the TSC */
	uint64_t (*clock)(void);
};

extern const struct engine_config engine_config_default;

/** Call after rte_eal_init(), on the main lcore. The workers are EAL's worker lcores. */
struct engine *engine_create(const struct engine_config *config, struct error *err);
int engine_start(struct engine *e, struct error *err);
/** Accept no new work, let pending work finish for up to @p drain_ms, then stop the workers. */
void engine_stop(struct engine *e, unsigned int drain_ms);
void engine_destroy(struct engine *e);

/**
 * For programs that run the workers themselves instead of engine_start(): one turn of a worker's
 * poll loop, always on the same thread; @p now is the TSC. Call the engine's verbs only between
 * turns.
 *
 * @return true if the turn found work
 */
bool engine_turn(struct engine *e, unsigned int worker, uint64_t now);

unsigned int engine_workers(const struct engine *e);
struct link *engine_link(struct engine *e);

/** A command: runs on the worker; engine_call() returns its result. */
typedef int (*worker_fn)(struct worker *w, void *arg);
/**
 * Control thread: run fn on a worker, between two bursts, and wait for its result. There is no time
 * limit: a stalled worker raises EVENT_WORKER_STALL, and the call waits for it.
 */
int engine_call(struct engine *e, unsigned int worker, worker_fn fn, void *arg);
struct rc_worker *worker_rc(struct worker *w);

struct worker_info {
	unsigned int lcore;
	int cpu;
	int numa_node;
	/** NUMA node of the worker's own memory; -1: not known, without hugepages */
	int memory_node;
	uint64_t polls;
	uint64_t busy_polls;
	uint64_t busy_us; /**< time in which it had work, since start */
	double busy_share; /**< of time since start, 0..1 */
	double longest_gap_us; /**< longest time between two polls since start */
	uint64_t heartbeat_age_us;
	bool stalled;
	uint64_t sleeps;
	uint64_t handoff_out;
	uint64_t handoff_in;
	uint64_t handoff_full;
	uint64_t handoff_again; /**< received by hand-off and forwarded, because the QP had moved */
	double handoff_percent; /**< share of the packets from its own queues that it handed off */
	uint64_t rehomed_out; /**< QPs that moved to other workers */
	uint64_t rehomed_in;
	uint32_t handoff_depth; /**< packets that wait now in all hand-off rings to this worker */
	uint32_t commands; /**< commands that wait now */
	uint32_t qps;
};
void engine_worker_info(const struct engine *e, unsigned int worker, struct worker_info *info);

/**
 * The event loop of the control thread, for as long as the engine lives. Sockets and timers of that
 * thread are its events; ctl_run_once() runs it.
 */
struct event_base *engine_event_base(const struct engine *e);

/**
 * Control thread: from now on, the next change that a call may wait for ends a wait of the event
 * loop, once. A completion does so if engine_cq_await() was called for its queue.
 *
 * @return true: it was not so before. Look at the state again before the wait: it may have changed
 */
bool engine_await(struct engine *e);

/**
 * Control thread, a few times a second: raise EVENT_WORKER_STALL for a worker whose heartbeat has
 * stopped, and do the timed work of requests, connections, ports and the SA.
 */
void engine_watch(struct engine *e);
/** Control thread: a worker that does not poll for so long is stalled. */
void engine_set_stall_ms(struct engine *e, uint32_t ms);
/**
 * Control thread: whether engine_add_address() can give the port this address, which no other port
 * has.
 */
int engine_check_address(const struct engine *e, unsigned int port, const struct link_addr *addr,
	struct error *err);
/** Control thread: the port gets one more address. Raises EVENT_GID_CHANGE. */
void engine_add_address(struct engine *e, unsigned int port, const struct link_addr *addr);
/** Control thread: take over the limits that may change, for what is made from now on. */
void engine_reload_limits(struct engine *e, const struct rc_limits *limits);
/** Control thread: the number of workers that engine_watch() found stalled. */
unsigned int engine_stalled(const struct engine *e);

/**
 * Sum of a port's counters over the workers, or of one worker (>= 0). Verdicts include those given
 * after hand-off. The device's drops are of no worker: only the sum has them.
 */
void engine_port_counters(const struct engine *e, unsigned int port, int worker,
	struct link_counters *sum);
/** Sum of the rc counters over ports and workers, or of one port or worker (>= 0). */
void engine_rc_counters(const struct engine *e, int port, int worker, struct rc_counters *sum);
/** Likewise the counters of management datagrams, and of the SA (all 0 if it is not enabled). */
void engine_mad_counters(const struct engine *e, int worker, struct mad_counters *sum);
void engine_sa_counters(const struct engine *e, int worker, struct sa_counters *sum);

#endif
