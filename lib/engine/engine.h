/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

/**
 * @file
 * The engine: worker lcores that tie link and rc together, hand-off and commands between them.
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
#include "svc/svc.h"

struct engine;
struct worker;

enum idle_mode {
	IDLE_POLL, /**< never sleep */
	IDLE_BACKOFF, /**< spin a while, then sleep in growing steps up to .idle_sleep_us */
};

/** Subnet administration of this appliance. */
struct engine_sa_config {
	bool enabled; /**< serve; asking others works without */
	char path[256]; /**< directory of the database; "": memory only */
	uint32_t map_mb; /**< the most it may grow to */
	uint32_t max_versions; /**< of the database held by transfers at one time */
	uint32_t old_mb; /**< memory that old versions may keep */
	/**
	 * .max_queries 0: sa_config_default. .store, .hz, .alloc, .rng, .workers, .own_key and
	 * .resp_time are filled in by the engine, .path_ports is rounded up to a power of two
	 */
	struct sa_config server;
	uint32_t max_result_mb; /**< for .server.max_result_bytes */
	/* as a client */
	uint32_t query_mb; /**< memory for the records that one query of ours may bring */
};

/** The channel adapter as subnet management sees it. */
struct engine_sma_config {
	char node_desc[SMA_NODE_DESC_LEN + 1]; /**< "": "polca HOST" */
	uint64_t node_guid; /**< 0: the EUI-64 of the first port's MAC */
	uint64_t system_image_guid; /**< 0: the node's */
	uint32_t vendor_id;
	uint16_t device_id;
	uint32_t revision;
	uint32_t vl15_buffer; /**< SMPs that wait in a port's VL15 buffer, 1..VL15_MAX */
	struct sma_limits limits;
	/** By port; of native IB ports only. .port, .guid, .mtu, speeds: filled in by the engine */
	struct sma_port_config port[LINK_PORTS_MAX];
};
#define ENGINE_VL15_MAX 256

#define ENGINE_SERVICES_MAX 64 /* that listen from the start */

struct engine_config {
	struct link_config link; /**< .workers, .mbuf_priv and .hz are filled in by the engine */
	struct rc_limits limits; /**< .max_qp 0: rc_limits_default */
	uint32_t max_pd;
	uint32_t max_mr;
	uint32_t max_mw;
	enum idle_mode idle;
	uint32_t idle_spin_us;
	uint32_t idle_sleep_us;
	uint32_t handoff_ring; /**< entries per ordered pair of workers, a power of two */
	bool rehome; /**< QPs move by themselves to the worker where their packets arrive */
	uint32_t stall_ms; /**< heartbeat older than this raises EVENT_WORKER_STALL */
	bool icrc_unchecked;
	struct mad_limits mad; /**< .max_sessions 0: mad_limits_default */
	struct engine_sa_config sa;
	struct engine_sma_config sma;
	struct live_limits live;
	struct cm_limits cm; /**< .max_connections 0: cm_limits_default */
	struct svc_config service[ENGINE_SERVICES_MAX]; /**< that listen from the start */
	unsigned int num_services;
	/** Which of the EAL's worker lcores: so many, from this one on; .workers 0: all of them */
	unsigned int first_worker;
	unsigned int workers;
	/** What a worker reads in its turn, besides what engine_turn() is given; NULL: the TSC */
	uint64_t (*clock)(void);
};

extern const struct engine_config engine_config_default;

/** After rte_eal_init(), on the main lcore: workers are the EAL's worker lcores. */
struct engine *engine_create(const struct engine_config *config, struct error *err);
int engine_start(struct engine *e, struct error *err);
/** Stop taking in, let what is under way drain up to @p drain_ms, stop the workers. */
void engine_stop(struct engine *e, unsigned int drain_ms);
void engine_destroy(struct engine *e);

/**
 * For programs that run the workers themselves, instead of engine_start(): one turn of a worker's
 * poll loop, always on the same thread; @p now is the TSC. Calls to the engine's verbs then belong
 * between the turns.
 *
 * @return was there anything to do?
 */
bool engine_turn(struct engine *e, unsigned int worker, uint64_t now);

unsigned int engine_workers(const struct engine *e);
struct link *engine_link(struct engine *e);

/** Runs on the worker; its return value is the call's. */
typedef int (*worker_fn)(struct worker *w, void *arg);
/**
 * Command to a worker from the control thread: run fn there, between bursts, and wait for its
 * result. Commands are never dropped. @retval -ETIMEDOUT never: a stalled worker is waited for, its
 * alarm tells of it
 */
int engine_call(struct engine *e, unsigned int worker, worker_fn fn, void *arg);
struct rc_worker *worker_rc(struct worker *w);
struct link_worker *worker_link(struct worker *w);

struct worker_info {
	unsigned int lcore;
	int cpu;
	int numa_node;
	int memory_node; /**< of what is the worker's own; -1: not known, without hugepages */
	uint64_t polls;
	uint64_t busy_polls;
	double busy_share; /**< of time since start, 0..1 */
	double longest_gap_us; /**< longest time between two polls since start */
	uint64_t heartbeat_age_us;
	bool stalled;
	uint64_t sleeps;
	uint64_t handoff_out;
	uint64_t handoff_in;
	uint64_t handoff_full;
	uint64_t handoff_again; /**< taken over and sent on: their queue pairs had gone */
	double handoff_percent; /**< of the packets of its own queues, those sent on to others */
	uint64_t rehomed_out; /**< queue pairs that moved from it to others */
	uint64_t rehomed_in;
	uint32_t handoff_depth; /**< entries waiting now, all rings to this worker */
	uint32_t commands; /**< waiting now */
	uint32_t qps;
};
void engine_worker_info(const struct engine *e, unsigned int worker, struct worker_info *info);

/**
 * Control thread, a few times a second: raise EVENT_WORKER_STALL for a worker whose heartbeat has
 * stopped.
 */
void engine_watch(struct engine *e);
/** Control thread: the number of workers that engine_watch() found stalled. */
unsigned int engine_stalled(const struct engine *e);

/**
 * Sum of a port's counters over the workers, or of one worker (>= 0). Verdicts include those given
 * after hand-off.
 */
void engine_port_counters(const struct engine *e, unsigned int port, int worker,
	struct link_counters *sum);
/** Sum of the workers' rc counters, or of one worker (>= 0). */
void engine_rc_counters(const struct engine *e, int worker, struct rc_counters *sum);
/** The same of management datagrams, and of the SA (all 0 when it is not enabled). */
void engine_mad_counters(const struct engine *e, int worker, struct mad_counters *sum);
void engine_sa_counters(const struct engine *e, int worker, struct sa_counters *sum);

#endif
