/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_WORKER_H
#define ENGINE_WORKER_H

/**
 * @file Private to lib/engine: the engine and its workers. The fields that a worker writes, those
 * that the control thread writes and those that both read are on separate cache lines.
 */

#include <pthread.h>

#include <rte_common.h>
#include <rte_debug.h>
#include <rte_log.h>
#include <rte_rcu_qsbr.h>
#include <rte_ring.h>

#include "base/timer_wheel.h"
#include "base/token_bucket.h"
#include "engine/clients_info.h"
#include "engine/clients_turns.h"
#include "engine/engine.h"
#include "engine/requests.h"
#include "engine/neighbours.h"
#include "engine/rehome.h"
#include "engine/verbs_cm.h"
#include "sa/client.h"

extern int engine_logtype;
#define ENGINE_LOG(level, fmt, ...)                                                                \
	rte_log(RTE_LOG_##level, engine_logtype, "engine: " fmt "\n", ##__VA_ARGS__)

/* packets that the CM, the agents and each service may send in a turn */
#define WORKER_BUDGET    64
#define WORKER_TICK_HZ   100
#define WORKER_SA_BUDGET 512 /* records that sa_run() may look at in a turn */
#define COMMAND_RING     64
#define EVENT_RING       1024
#define CONTROL_EVENTS   256
#define TRACE_RING       16 /* steps of failed QPs on their way to the control thread */
#define TRACES_KEPT      64 /* of the QPs that failed last */

/* --- packets for another worker: handoff.c --- */
struct handoff_burst {
	struct packet *pkt[LINK_BURST];
	unsigned int n;
};

/* --- events.c: one record on an event ring --- */
struct event_record {
	struct event event;
	uint64_t time; /* TSC, to merge the workers' rings in order */
};
_Static_assert(sizeof(struct event_record) % 4 == 0, "element of a ring");

/* --- events_trace.c: the steps of a QP that failed, on the ring w->traces --- */
struct trace_record {
	uint64_t number; /* qp_failure.trace of its event, until traces_take() */
	struct trace steps;
};
_Static_assert(sizeof(struct trace_record) % 4 == 0, "element of a ring");

/* --- events_log.c --- */
enum limit {
	LIMIT_HALF_OPEN,
	LIMIT_HALF_OPEN_EVICTED,
	LIMIT_CONNECTIONS,
	LIMIT_SERVICE,
	LIMIT_SERVICE_PEER,
	LIMIT_SESSIONS,
	LIMIT_RECLAIMED,
	LIMIT_HANDOFF,
	LIMIT_EVENTS,
	LIMIT_SA_SHARE,
	LIMIT_SA_STRANGERS,
	LIMIT_SA_GAVE_WAY,
	LIMIT_SA_RESOURCES,
	LIMIT_SA_VERSIONS,
	LIMIT_SA_NOTICES,
	LIMIT_LIVE_RATE,
	LIMIT_VL15,
	LIMIT_NEIGHBOURS,
	LIMIT_COUNT
};

/* Lines that others can cause at will; each thread that logs such lines has its own. */
struct log_lines {
	struct token_bucket bucket;
	uint64_t suppressed; /* lines since the last one that was logged */
};

struct events_log {
	struct log_lines lines;
	uint64_t held; /* events_held of all workers, as last told */
	uint64_t limits_next; /* TSC of the next look at the limits */
	uint64_t limits[LIMIT_COUNT]; /* how often each was reached, as last told */
	uint64_t sa_writes; /* of all workers, as last told */
	uint64_t sa_conflicts;
};

/* --- idle.c --- */
struct idle {
	enum idle_mode mode;
	uint64_t spin; /* cycles without work before the first sleep */
	uint64_t cycles_per_us;
	uint32_t sleep_max_us;
	uint32_t sleep_us; /* the next sleep */
	uint64_t since; /* time of the last work */
};

/* --- key_guessers.c: an address whose requests had wrong keys --- */
#define KEY_GUESSERS 256 /* counted at one time (a choice) */
struct key_guesser {
	union gid addr;
	uint64_t since; /* begin of its minute, ns since 1970 */
	uint32_t errors;
};

/** Written by the worker, read by anyone with relaxed loads. */
struct worker_stats {
	uint64_t heartbeat; /* TSC of the last poll */
	uint64_t started;
	uint64_t polls;
	uint64_t busy_polls;
	uint64_t busy_cycles;
	uint64_t longest_gap; /* cycles */
	uint64_t sleeps;
	uint64_t handoff_out;
	uint64_t handoff_in;
	uint64_t handoff_full;
	uint64_t handoff_again; /* received by hand-off and forwarded, because the QP had moved */
	uint64_t rehomed_out; /* QPs that moved away */
	uint64_t rehomed_in;
	uint64_t load; /* recent share of busy time, in 1/256 (rehome_choose.c) */
	uint64_t events_lost;
	uint64_t events_held; /* changes of connections beyond their rate limit */
};

struct worker {
	/* used by the poll loop only */
	struct engine *engine;
	unsigned int id;
	unsigned int lcore;
	unsigned int workers;
	struct rc_dev *dev;
	struct rc_worker *rc;
	struct link_worker *link;
	struct timer_wheel *wheel;
	struct rte_rcu_qsbr *rcu;
	struct mad_worker *mad;
	struct sa_worker *sa; /* NULL: not enabled */
	struct sa_client *client;
	struct rte_ring *written; /* of struct sa_write *, completed by the store's thread */
	struct live *live;
	struct cm *cm;
	/* indexed by the service's place; NULL: none */
	struct svc_worker *svc[ENGINE_SERVICE_PLACES];
	unsigned int num_svc; /* highest place in use, plus 1 */
	struct vl15 *vl15; /* worker 0 only */
	struct pma *pma; /* worker 0 only */
	struct sma *sma; /* worker 0 only; NULL: no native IB port */
	/* of struct engine_sm_smp, to the control thread; worker 0 only */
	struct rte_ring *sm_smps;
	uint32_t sm_number; /* of the last SMP that was queued */
	uint64_t sm_lost; /* SMPs that found sm_smps full */
	struct rte_ring *bad_keys; /* of struct bad_key, to worker 0 */
	uint64_t mad_hash_key;
	uint64_t cm_hash_key;
	bool icrc_unchecked;
	bool was_busy;
	uint64_t last; /* time of the last poll */
	uint64_t tick; /* when link_tick() is due */
	uint64_t tick_cycles;
	uint64_t (*clock)(void); /* engine_config */
	struct idle idle;
	struct rte_ring *commands; /* of struct command * */
	struct rte_ring *events; /* of struct event_record */
	struct rte_ring *traces; /* of struct trace_record */
	uint32_t trace_number; /* of the last one queued */
	struct token_bucket connection_events;
	struct rte_ring *in[LINK_WORKERS_MAX]; /* hand-off from each worker; NULL for itself */
	/* worker 0: SMPs from each worker; may be NULL */
	struct rte_ring *smps_in[LINK_WORKERS_MAX];
	struct handoff_burst *arrived; /* received by hand-off in this turn, from each worker */
	struct handoff_burst *out; /* batch of packets to hand off, to each worker */
	uint16_t out_dirty[LINK_BURST]; /* indexes of the batches in out[] that are not empty */
	unsigned int num_dirty;
	/* total of packets received by hand-off from each worker */
	uint64_t taken[LINK_WORKERS_MAX];
	struct rehome rehome;
	struct worker_clients clients; /* programs whose doorbells this worker takes */
	struct link_counters *counters[LINK_PORTS_MAX];
	const struct port_attr *port_seen[LINK_PORTS_MAX];

	struct worker_stats stats __rte_cache_aligned;

	/* shared with other threads */
	/* the futex word that a sleeping worker waits on: IDLE_ */
	uint32_t asleep __rte_cache_aligned;
	uint32_t mail; /* 1: rehome.mail may hold messages */
	uint32_t stop;

	/* used by the control thread only */
	pthread_mutex_t command_lock __rte_cache_aligned; /* one producer of commands at a time */
	bool stalled;
	bool wake_open;
	/* end the sleep of a worker that has clients: clients_sleep.c */
	int wake_pipe[2];
	int wake_epoll; /* this pipe, and its clients' */
	bool has_staged;
	struct event_record staged; /* oldest event, dequeued to compare it with other workers' */
} __rte_cache_aligned;

/* An export of the SA's database in progress. */
#define SA_WALKS 4
struct sa_walk {
	const struct store_version *version; /* held; NULL: free */
	struct store_cursor place; /* stands before the record that .next names */
	uint64_t next;
	uint64_t seen; /* TSC */
	uint8_t serial;
};

/* The state of a native IB port from which its records in the SA were last made. */
struct own_seen {
	const struct port_attr *attr;
	uint64_t sets; /* Sets by subnet managers */
	uint64_t sm; /* state changes of the subnet manager behind the port */
};

/* A call on the store's thread that nobody waits for. */
struct store_task {
	int (*fn)(struct engine *e, void *arg);
	void *arg;
	int result;
	bool running; /* the store's thread ends it */
};

/* Records of our own native IB ports on their way into the SA; control thread. */
struct own_following {
	struct store_task task;
	struct own_ports *ports; /* that the task is about; NULL: none */
	uint64_t retry_at; /* TSC, after a failure; 0: the last one succeeded */
};

/* What the records of own ports in a fleet were last made from; control thread. */
struct own_fleet_ports {
	const struct port_attr *seen[LINK_PORTS_MAX];
	struct sa_change *native; /* records of native IB ports */
	size_t num_native;
	bool old; /* the wish could not be made of these */
};

struct store_thread;
struct sm_inbox;
struct sa_import;
struct attempts;
struct perftest_sockets;
struct service;
struct verbs_client;
struct client_cq;
struct client_move;
struct rdmacm;

struct engine {
	struct engine_config config;
	unsigned int num_workers;
	uint64_t hz;
	struct mem *mem;
	struct rc_dev *dev;
	struct link *link;
	struct rte_rcu_qsbr *rcu;
	struct worker *worker[LINK_WORKERS_MAX];
	const struct allocator *alloc;
	struct store *store; /* NULL: no SA */
	struct fleet *fleet; /* NULL: the database is this appliance's alone */
	struct sa *sa;
	uint64_t sa_own_key; /* the SM_Key of this process's own requests to its SA */
	struct store_thread *store_thread;
	struct requests queries; /* our SA queries; control thread only */
	struct sa_known sa_known; /* capabilities that other SAs announced; shared by all workers */
	struct sa_import *import; /* control thread only */
	struct sa_walk walk[SA_WALKS];
	struct own_seen own_seen[LINK_PORTS_MAX];
	struct own_following own_following;
	struct own_fleet_ports own_fleet_ports;
	struct own_wish *own_wish; /* NULL: no fleet */
	struct import_fleet *import_fleet; /* NULL: no fleet */
	bool leader_addresses; /* the ports have them */
	enum event_type fleet_etcd; /* the last event of its connection to etcd; 0: none */
	bool fleet_leads, fleet_full; /* as the last events said */
	struct neighbour_search neighbour_search; /* control thread only */
	uint64_t mad_hash_key;
	uint64_t cm_hash_key;
	/* used by the control thread only */
	struct attempts *attempts; /* our attempts to connect */
	struct service *services; /* [ENGINE_SERVICE_PLACES] */
	unsigned int num_services; /* highest place ever used, plus 1 */
	struct perftest_sockets *perftest;
	unsigned int perftest_turn; /* the worker that gets the next QP, modulo num_workers */
	uint32_t last_service; /* ID of the newest service */
	struct live_cpu *cpu; /* what the liveness agents tell ibsysstat about this host */
	unsigned int num_cpus;
	struct link_drops drops[LINK_PORTS_MAX]; /* the control thread writes, anyone reads */
	struct requests asks; /* our MAD requests */
	struct sm_inbox *sm_inbox;
	struct event_base *base; /* the event loop of the control thread */
	struct verbs_client *verbs_clients; /* all of them */
	struct client_move *client_move; /* NULL: no client moves to another worker */
	uint64_t balance_next; /* TSC: clients_balance() */
	uint8_t busy_looks[LINK_WORKERS_MAX]; /* of it, in a row, that found the worker busy */
	uint64_t last_client_id;
	struct clients_counters clients_ended; /* .posted and .completed: of those that ended */
	struct rdmacm *rdmacm; /* librdmacm's programs */
	/* by number: which domains and CQs belong to clients; workers read the latter */
	bool *client_pds;
	struct client_cq **client_cqs;
	struct event *wakeup; /* libevent's; reads .wakeup_fd */
	int wakeup_fd;
	bool awaited; /* the control thread waits for a change; atomic */
	bool running;
	bool draining; /* posts and new connections are rejected */
	/* events that the control thread raises */
	struct event_record control_event[CONTROL_EVENTS];
	unsigned int control_head;
	unsigned int control_tail;
	uint64_t control_lost;
	struct events_log events_log;
	struct key_guesser key_guessers[KEY_GUESSERS];
	uint32_t traces_taken; /* control thread only: of failed QPs, with their events */
	struct trace failed[TRACES_KEPT]; /* the last of them */
};

/** Count the verdict of a packet at its port. */
static inline void
worker_count(struct worker *w, const struct packet *pkt, enum verdict v)
{
	w->counters[pkt->port]->verdict[v]++;
}

static inline uint64_t
relaxed(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* worker.c */
/** The lcore function of a worker, for rte_eal_remote_launch(). */
int worker_main(void *arg);
/** One turn of the poll loop. @return true if it found work */
bool worker_poll(struct worker *w, uint64_t now);
/**
 * Dispatch a burst: process it, hand it off to the owner, or drop it with a verdict. @param n  <=
 * LINK_BURST
 */
void worker_sort(struct worker *w, struct packet **pkts, unsigned int n, uint64_t now);
/** Apply the changes of port attributes since the last call. */
void worker_look_at_ports(struct worker *w);
/** Callback of the worker's agents: attributes of a port. @return NULL: there is no such port */
const struct port_attr *worker_port(void *worker, uint16_t port);

/* handoff.c */
int handoff_create(struct engine *e, struct error *err);
void handoff_destroy(struct engine *e);
/** Add a packet to the batch for another worker; handoff_flush() sends the batches. */
void handoff_stage(struct worker *w, unsigned int to, struct packet *pkt);
void handoff_flush(struct worker *w);
/** Hand a VL15 packet to worker 0 by the SMP ring, which no other traffic uses. */
void handoff_smp(struct worker *w, struct packet *pkt);
/** Worker 0: @return SMPs taken from another worker's SMP ring, up to LINK_BURST */
unsigned int handoff_take_smps(struct worker *w, unsigned int from, struct packet **pkts);
/** Forward a packet that came by hand-off to another worker. */
void handoff_again(struct worker *w, unsigned int to, struct packet *pkt);
/** Drop packets for which a ring or a parking place had no room, and count them. */
void handoff_drop(struct worker *w, struct packet **pkts, unsigned int n);
/** @return packets taken from one other worker's ring, up to LINK_BURST */
unsigned int handoff_take(struct worker *w, unsigned int from, struct packet **pkts);
/** Packets that wait in all hand-off rings to this worker. */
static inline uint32_t
handoff_depth(const struct worker *w)
{
	uint32_t depth = 0;
	unsigned int from;

	for (from = 0; from < w->workers; from++) {
		if (w->in[from] != NULL)
			depth += rte_ring_count(w->in[from]);
		if (w->smps_in[from] != NULL)
			depth += rte_ring_count(w->smps_in[from]);
	}
	return depth;
}

/* handoff_check.c: builds with RTE_ENABLE_ASSERT end the program if an invariant fails */
#ifdef RTE_ENABLE_ASSERT
/** After each packet that was staged or sent, after a flush, and after packets were taken. */
void handoff_check(const struct worker *w);
#else
#define handoff_check(w) RTE_SET_USED(w)
#endif

struct engine_trace;
/* events_trace.c */
/** Turn the times of copied steps into nanoseconds since the oldest one. */
void trace_times(const struct engine *e, struct engine_trace *t);
/** Worker: queue the steps that come with an event, and number them in it. */
void traces_put(struct worker *w, struct event *ev);
/** Control thread: take the steps that came with a worker's event. */
void traces_take(struct engine *e, struct worker *w, struct event *ev);

/* rehome.h */
static inline bool
rehome_has_mail(const struct worker *w)
{
	return __atomic_load_n(&w->mail, __ATOMIC_RELAXED) != 0;
}

/* command.c */
struct command {
	worker_fn fn;
	void *arg;
	int result;
	uint32_t done;
};
/** Run the commands on the ring. @return commands run */
unsigned int command_run(struct worker *w);

/* gsi.c: datagrams on QP0 and QP1, and the agents and clients that process and send them */
int gsi_create(struct worker *w, struct error *err);
void gsi_destroy(struct worker *w);
/**
 * Process completed changes of the SA, queries, waiting SMPs and sessions' packets. @return work
 * done
 */
unsigned int gsi_run(struct worker *w, uint64_t now);
bool gsi_pending(const struct worker *w);

/* store_thread.c: the one writer of the SA's store, an ordinary thread */
int store_thread_create(struct engine *e, struct error *err);
void store_thread_destroy(struct engine *e);
int store_thread_start(struct engine *e, struct error *err);
/**
 * Call after the workers have stopped. The thread executes all submitted changes before it ends.
 */
void store_thread_stop(struct engine *e);
/** On a worker: struct sa_worker_config.submit. @param worker  the struct worker */
bool store_thread_submit(void *worker, struct sa_write *write);
/**
 * Run fn on the store's thread and wait for it; any thread but a worker. While the engine does not
 * run, fn runs on the calling thread.
 */
int store_thread_call(struct engine *e, int (*fn)(struct engine *e, void *arg), void *arg);
/**
 * On the store's thread, in a fleet: a change of this appliance's own, one at a time, goes the way
 * of a client's.
 *
 * @param answered  called on the store's thread when the change has its status
 */
void store_thread_forward(struct engine *e, struct sa_write *write, void (*answered)(void *arg),
	void *arg);
/**
 * Run a task on the store's thread, before later calls, and do not wait for it; control thread, one
 * task at a time. While the engine does not run, it has ended when this returns.
 */
void store_thread_post(struct engine *e, struct store_task *task);
/** Control thread. @return false: the store's thread has still to run it */
bool store_thread_ended(const struct store_task *task);

/* grace.c */
int grace_create(struct engine *e, struct error *err);
/* grace periods of e->rcu, which is the argument */
uint64_t engine_grace_start(void *rcu);
bool engine_grace_done(void *rcu, uint64_t token);

/* sa_store.c */
/**
 * Open the store, with its database on disk if configured, and the SA; does nothing without
 * sa.enabled.
 */
int sa_store_create(struct engine *e, struct error *err);
void sa_store_destroy(struct engine *e);

/* own_ports.c */
/** Put this appliance's own RoCE ports into the database if it is empty. */
int own_ports_store(struct engine *e, struct error *err);
/**
 * Records of our own RoCE ports and the @p native ones, as a request (sa/owned.h).
 *
 * @param bytes  OWNED_LEN_MAX bytes
 * @return length; 0: there is no memory, or there are too many records
 */
size_t own_ports_request(struct engine *e, const struct sa_change *native, size_t num_native,
	uint8_t *bytes);

/* own_ports_follow.c */
/**
 * Update the SA's records of our native IB ports that subnet management changed since the last
 * call, and those that could not be updated then. Does not wait for the store.
 */
void own_ports_follow(struct engine *e);
void own_ports_end(struct engine *e);

/* fleet_events.c */
/** Control thread: raise an event if the lead, the connection to etcd or its room has changed. */
void fleet_events_follow(struct engine *e);

/* leader_addresses.c */
/** Control thread: give ports their leader's addresses, or take them away. */
void leader_addresses_follow(struct engine *e);

/* reconnect.c: control thread */
void reconnect_watch(struct engine *e);
/* lost_memory.c */
void lost_memory_watch(struct engine *e);

/* counters.c */
/** Add the 64-bit counters of one struct to another's. */
void add_counters(void *sum, const void *from, size_t size);
uint64_t heartbeat_age_us(const struct engine *e, const struct worker *w);

/* verbs_sa_data.c */
/** End exports that no client has continued for some time. */
void sa_walks_watch(struct engine *e);
/** End all exports. */
void sa_walks_end(struct engine *e);

/* verbs_sa_import.c */
/** Wait for the end of a running import. */
void sa_import_finish(struct engine *e);
void sa_import_destroy(struct engine *e);

/* idle.c */
void idle_init(struct idle *idle, const struct engine_config *config, uint64_t hz);
/** The worker found work at @p now: the next sleep is short again. */
void idle_end(struct idle *idle, uint64_t now);
/**
 * The worker found no work: sleep if it has been idle for long enough.
 *
 * @return the time at which the sleep was due to end; 0: did not sleep
 */
uint64_t idle_wait(struct worker *w, uint64_t now);
/** Any thread: end the worker's sleep. */
void idle_wake(struct worker *w);

/* wakeup.c */
int wakeup_create(struct engine *e, struct error *err);
void wakeup_destroy(struct engine *e);
/** Any thread, after a change: wake the control thread if it waits for one. */
void wakeup_send(struct engine *e);

/* events.c */
/** On the worker: struct rc_worker_config.event. */
void events_put(void *worker, const struct event *ev);
/** On the control thread. */
void events_put_control(struct engine *e, const struct event *ev);
/** On the worker: link_tell_fn. */
void events_put_link(void *worker, const struct link_news *news);

/* clients_events.c: control thread; tell the program whose object an event is about */
void clients_event(const struct engine *e, const struct event *ev);
/* clients_balance.c: control thread, now and then: move a client away from a busy worker */
void clients_balance(struct engine *e, uint64_t now);

/* key_guessers.c: control thread; count an event, and pause its peer if there are too many */
void key_guessers_count(struct engine *e, const struct event *ev);

/* events_log.c: control thread, but for log_line() */
/** Log what a peer can cause at will: lines beyond a rate are only counted. */
void log_line(struct log_lines *lines, uint64_t hz, uint32_t level, const char *text);
/** Say how many events the workers did not report one by one. */
void events_log_watch(struct engine *e);
void events_log(struct engine *e, const struct event *ev);
/** log_line() with a rate over all events. */
void events_log_line(struct engine *e, uint32_t level, const char *text);

/* memory.c */
const struct allocator *engine_allocator(void);
/** A ring outside of DPDK's ring list, which needs no memzone. @param esize  a multiple of 4 */
struct rte_ring *engine_ring(const char *name, unsigned int esize, unsigned int count, int socket,
	unsigned int flags);
void engine_ring_free(struct rte_ring *r);

#endif
