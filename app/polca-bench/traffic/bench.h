/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * Shared by the traffic commands. A benchmark has two endpoints, the requester's and the
 * responder's: each is a port of an engine with queue pairs. A link joins the ports. On each
 * worker, an endpoint has a load that posts work requests and polls completions. A runner is a
 * thread that runs workers and their loads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine/verbs.h"
#include "histogram.h"
#include "options.h"
#include "peers/bench_link.h"

#define BENCH_WORKERS_MAX 16

/* --- endpoint.c --- */

/** What an endpoint knows of its peer. */
struct peer {
	union gid gid;
	uint32_t psn; /**< the initial PSN of its queue pairs */
	uint64_t va; /**< address of its region */
	uint32_t key;
	uint64_t length; /**< bytes that may be accessed there; 0: as many as in our region */
	uint32_t *qpn; /**< one number for each of our queue pairs */
	uint32_t *psns; /**< the initial PSN of each queue pair; NULL: all use .psn */
};

struct endpoint {
	struct engine *engine;
	bool shared; /**< the engine belongs to another endpoint */
	enum bench_role role;
	uint16_t port;
	unsigned int workers;
	uint32_t pd;
	uint32_t cq[BENCH_WORKERS_MAX]; /**< by worker; the worker polls it */
	struct rc_worker *rc[BENCH_WORKERS_MAX];
	struct mem_mr_info mr;
	uint32_t psn;
	uint32_t qps;
	uint32_t *qpn;
	uint32_t *connection; /**< IDs of CM connections, or NULL */
	uint32_t connections;
};

/** True if the endpoint posts Sends, Writes, Reads or Atomics. */
bool endpoint_sends(const struct bench_options *o, enum bench_role role);
/** True if the endpoint posts receives. */
bool endpoint_receives(const struct bench_options *o, enum bench_role role);

/**
 * Create an engine with one port on @p device and one worker, which runs on the EAL's worker lcore
 * @p lcore, counted from 0.
 */
int endpoint_create(struct endpoint *end, const struct bench_options *o, const char *device,
	enum bench_role role, unsigned int lcore, struct error *err);
/**
 * Create both endpoints in one engine with o->workers workers; their ports are joined back to back.
 */
int endpoints_create(struct endpoint end[ROLES], const struct bench_options *o, struct error *err);
/**
 * Create another endpoint on the same engine and port, with its own protection domain, region and
 * queue pairs.
 */
int endpoint_add(struct endpoint *end, const struct endpoint *of, const struct bench_options *o,
	struct error *err);
void endpoint_destroy(struct endpoint *end);
/** The attributes of its queue pairs, without the completion queues. */
void endpoint_qp_attr(const struct endpoint *end, const struct bench_options *o,
	struct qp_init_attr *init);

/* --- endpoint_connect.c --- */

/** Describe the endpoint to its peer; .qpn still belongs to the endpoint. */
void endpoint_describe(struct endpoint *end, struct peer *p);
/** Connect each queue pair with one of the peer's: state RTS. */
int endpoint_connect(struct endpoint *end, const struct peer *p, const struct bench_options *o,
	struct error *err);
/** Run the workers until each endpoint has resolved its peer's MAC address. */
int endpoints_resolve(struct endpoint *end, unsigned int n, struct error *err);

/* --- peers/service.c --- */

/**
 * Connect to the service o->connect. The endpoint gets the queue pairs of the connections, the peer
 * the memory that a service of kind memory grants.
 *
 * @param grant  set to its size in bytes; 0: none
 */
int service_connect(struct endpoint *end, struct peer *p, const struct bench_options *o,
	uint64_t *grant, struct error *err);

/* --- load.c: what an endpoint posts and polls on one worker --- */

struct load {
	const struct bench_options *o;
	struct endpoint *end;
	const struct peer *peer;
	unsigned int worker;
	struct rc_worker *rc;
	/** poll completions and post requests. @return completions */
	unsigned int (*turn)(struct load *l);
	/**
	 * Called for each completed request instead of posting the next one; NULL: post the next
	 * one.
	 */
	void (*sent)(struct load *l, uint32_t qp);
	bool sends, receives;
	bool stopping; /**< post nothing new */
	bool ready; /**< receives are posted */
	uint32_t size; /**< current message size */
	struct send_wr wr; /**< the fields that all requests of this size share */
	struct sge sge;
	struct recv_wr recv_wr; /**< likewise for receives */
	struct sge recv_sge;
	uint64_t va, remote_va; /**< addresses of the regions */
	uint32_t signal_every; /**< copied from .o */
	/* message_memory.c: where messages are stored */
	uint32_t stride;
	uint64_t begin, end_at; /**< this worker's part of the region */
	uint64_t next; /**< offset of the next message */
	uint32_t step;
	uint32_t *slot; /**< with --check: the next slot of each queue pair */
	/* the endpoint's queue pairs on this worker: indices into end->qpn */
	uint32_t qps;
	uint32_t *qp;
	uint32_t *qpn; /**< their numbers */
	uint32_t *since_signal;
	/* iterations.c */
	uint64_t count; /**< its share of o->iterations */
	uint64_t *left; /**< messages that each queue pair may still send */
	uint64_t *undone; /**< messages that are not completed, or NULL if not counted */
	uint64_t goal; /**< value of .done at which all are completed */
	uint64_t ended; /**< TSC when the last message completed */
	/* written by one thread, read by others with relaxed order */
	uint64_t posted;
	uint64_t done; /**< messages completed */
	uint64_t received;
	uint64_t failed;
	uint64_t wrong; /**< messages whose bytes differ from those sent */
	struct wc first_failure;
	/* lat.c */
	uint64_t start;
	uint64_t turns; /**< answers received, or given */
	bool waiting; /**< an answer is due */
	/** interruptions of all threads; if set, samples with one do not count */
	uint64_t *pauses;
	uint64_t pauses_then; /**< its value when the request was sent */
	uint64_t last_turn; /**< TSC */
	struct histogram *histogram;
	uint8_t apart[64]; /**< keep another lcore's load off this cache line */
};

int load_create(struct load *l, const struct bench_options *o, struct endpoint *end,
	const struct peer *peer, unsigned int worker, struct error *err);
void load_destroy(struct load *l);
/** Prepare for messages of @p size, and reset the counters. The first call posts the receives. */
int load_receive(struct load *l, uint32_t size, struct error *err);
/** Fill the send queues. */
int load_send(struct load *l, struct error *err);
/** True if everything posted is completed. */
bool load_idle(const struct load *l);
int load_post_send(struct load *l, uint32_t qp, struct error *err);
/** Return the first failure in err, or 0. */
int load_failure(const struct load *l, struct error *err);

/** Poll completions and post new requests. @return completions */
unsigned int load_turn(struct load *l);

/* --- iterations.c: a fixed number of messages (--iterations) --- */
/** Give each of @p n loads that sends its share of o->iterations. */
void iterations_share(struct load *const load[], unsigned int n, const struct bench_options *o);
/**
 * Send this many messages from now on, or UINT64_MAX: without end. All earlier ones are completed.
 */
void iterations_begin(struct load *l, uint64_t messages);
/** Mark the queue pair's oldest group of requests as completed. @return its number of messages */
uint32_t iterations_group(struct load *l, uint32_t qp);
/** True if the load has completed its share, or has none. */
bool iterations_done(const struct load *l);

/* --- lat.c: ping-pong --- */
int lat_create(struct load *l, struct error *err);
void lat_begin(struct load *l);
int lat_send(struct load *l, struct error *err);

/* --- message_memory.c: where messages are, and what they contain --- */

/** The size of an endpoint's region. */
uint64_t memory_bytes(const struct bench_options *o);
/** The offset at which a ping-pong's Writes arrive; 0 for other modes. */
uint64_t memory_arrivals(const struct bench_options *o);
void memory_fill(struct endpoint *end, const struct bench_options *o);
/** Assign the worker's part of the region. */
void memory_share(struct load *l);
/** --check: the queue pair's next slot. */
uint64_t memory_slot(struct load *l, uint32_t qp);

/** The offset of the queue pair's next message, at its source or target. */
static inline uint64_t
memory_next(struct load *l, uint32_t qp)
{
	uint64_t at = l->next;

	if (l->slot != NULL)
		return memory_slot(l, qp);
	l->next += l->step;
	if (l->next + l->stride > l->end_at)
		l->next = l->begin;
	return at;
}
/** --check: compare the message at offset @p at with what was sent, and clear it. */
void memory_check(struct load *l, uint64_t at);
/**
 * --check, after the last completion: compare what Writes and Atomics left at the responder.
 * @return wrong messages
 */
uint64_t memory_check_left(const struct endpoint *end, const struct bench_options *o, uint32_t size,
	uint64_t messages);

/* --- runner.c --- */

/** A worker and its loads. */
struct place {
	struct engine *engine;
	unsigned int worker;
	enum bench_role role; /**< the role to which its busy time is charged */
	struct load *load[ROLES];
	unsigned int loads;
	uint64_t busy; /**< TSC cycles of iterations that found work */
};

#define BENCH_SLICES 400

/** Measurements of a few milliseconds. */
struct slice {
	double rate; /**< messages/s */
	double ns[ROLES]; /**< busy time per message, by index of .place */
};

struct run;

struct runner {
	struct run *run;
	struct place place[ROLES];
	unsigned int places;
	struct slice slice[2][BENCH_SLICES]; /**< [1]: not interrupted */
	unsigned int slices, clean, unclean;
	double best; /**< highest message rate of a slice */
};

struct run_mark {
	uint64_t time; /**< TSC */
	uint64_t done;
	uint64_t busy[ROLES];
};

struct run {
	const struct bench_options *o;
	struct runner *runner;
	unsigned int runners;
	/** runners execute on worker lcores; else the only one runs on the calling thread */
	bool launched;
	bool count; /**< with o->iterations, count messages instead of slices; see run_counts() */
	bool stop; /**< tells launched runners to drain */
	unsigned int draining; /**< runners that still have requests under way */
	struct run_mark from, to; /**< the measured interval, without the warm-up */
	/** Called every few milliseconds on the main thread. @return nonzero: end the run */
	int (*look)(struct run *r, uint64_t now);
	/**
	 * Called while the run drains, if not NULL: ask the other process. @return 1: it has
	 * drained, -1: it is gone
	 */
	int (*others)(struct run *r);
	void *arg;
};

/**
 * Run until the time is over or all messages are completed, the user or look() ends the run, or a
 * request fails; then drain.
 */
void run_for(struct run *r);
/** Run for a few milliseconds, outside of run_for(). */
void runner_slice(struct runner *r);
/** True if count_messages() executes the run; it also sends the first requests. */
bool run_counts(const struct run *r);
uint64_t run_done(const struct run *r);
void run_mark(const struct run *r, struct run_mark *m);
/** Medians over the slices. @retval false  all were interrupted, and all of them count */
bool runner_median(const struct runner *r, struct slice *median);

/* --- count_instructions.c: a fixed number of messages on this thread --- */

struct clock;

void count_messages(struct run *r);
/** Messages sent before the counted ones. */
uint64_t count_warm_up(const struct run *r);
/** The function whose instructions are counted. */
void roles_count(struct run *run, struct clock *c, uint64_t n);

#endif
