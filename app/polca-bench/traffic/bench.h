/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_H
#define BENCH_H

/**
 * @file
 * polca-bench: what the traffic commands share. A benchmark has two ends, each a port of an engine
 * with queue pairs; what joins the ports is the link's business. An end has a load on each worker,
 * that posts and polls there. A runner is a thread that turns workers and their loads.
 */

#include <stdbool.h>
#include <stdint.h>

#include "engine/verbs.h"
#include "histogram.h"
#include "options.h"
#include "peers/bench_link.h"

#define BENCH_WORKERS_MAX 16

/* --- endpoint.c: one end --- */

/** What an end has to know of the other one. */
struct peer {
	union gid gid;
	uint32_t psn; /**< its queue pairs begin with it */
	uint64_t va; /**< of its region */
	uint32_t key;
	uint64_t length; /**< what may be reached there; 0: as much as here */
	uint32_t *qpn; /**< as many as here */
	uint32_t *psns; /**< of each of them; NULL: .psn */
};

struct endpoint {
	struct engine *engine;
	bool shared; /**< another end's engine */
	enum bench_role role;
	uint16_t port;
	unsigned int workers;
	uint32_t pd;
	uint32_t cq[BENCH_WORKERS_MAX]; /**< by worker, polled there */
	struct rc_worker *rc[BENCH_WORKERS_MAX];
	struct mem_mr_info mr;
	uint32_t psn;
	uint32_t qps;
	uint32_t *qpn;
	uint32_t *connection; /**< those of the connection manager, or NULL */
	uint32_t connections;
};

/** Does it post Sends, Writes, Reads or Atomics? Receives? */
bool endpoint_sends(const struct bench_options *o, enum bench_role role);
bool endpoint_receives(const struct bench_options *o, enum bench_role role);

/**
 * An engine with one port on @p device and one worker, on the first of the EAL's worker lcores from
 * @p lcore on.
 */
int endpoint_create(struct endpoint *end, const struct bench_options *o, const char *device,
	enum bench_role role, unsigned int lcore, struct error *err);
/** Both ends in one engine with o->workers workers, their ports back to back. */
int endpoints_create(struct endpoint end[ROLES], const struct bench_options *o, struct error *err);
/** More objects of the same engine and port: own domain, region and queue pairs. */
int endpoint_add(struct endpoint *end, const struct endpoint *of, const struct bench_options *o,
	struct error *err);
void endpoint_destroy(struct endpoint *end);
/** What its queue pairs are made with, but for the completion queues. */
void endpoint_qp_attr(const struct endpoint *end, const struct bench_options *o, struct qp_init_attr *init);

/* --- endpoint_connect.c --- */

/** What @p end is for its peer; .qpn stays the end's. */
void endpoint_describe(struct endpoint *end, struct peer *p);
/** QPs in RTS, each with its peer. */
int endpoint_connect(struct endpoint *end, const struct peer *p, const struct bench_options *o,
	struct error *err);
/** Turn all of them until each knows the way to its peer. */
int endpoints_resolve(struct endpoint *end, unsigned int n, struct error *err);

/* --- peers/service.c --- */

/**
 * Connections to o->connect: their queue pairs are the end's, what a service of kind memory grants
 * is the peer's. @param grant  bytes of it; 0: none
 */
int service_connect(struct endpoint *end, struct peer *p, const struct bench_options *o, uint64_t *grant,
	struct error *err);

/* --- load.c: what an end posts and polls on a worker --- */

struct load {
	const struct bench_options *o;
	struct endpoint *end;
	const struct peer *peer;
	unsigned int worker;
	struct rc_worker *rc;
	unsigned int (*turn)(struct load *l); /**< poll and post. @return completions */
	/** Counts what is done, and posts anew if that is wanted; NULL: as ever */
	void (*sent)(struct load *l, uint32_t qp);
	bool sends, receives;
	bool stopping; /**< nothing new */
	bool ready; /**< receives are posted */
	uint32_t size; /**< of the messages now */
	struct send_wr wr; /**< what all requests of that size have in common */
	struct sge sge;
	struct recv_wr recv_wr; /**< the same of receives */
	struct sge recv_sge;
	uint64_t va, remote_va; /**< of the regions */
	uint32_t signal_every; /**< o's */
	/* message_memory.c: where messages are */
	uint32_t stride;
	uint64_t begin, end_at; /**< this worker's part of the region */
	uint64_t next; /**< place in it */
	uint32_t step;
	uint32_t *slot; /**< with --check: the next one of a queue pair */
	/* these queue pairs: indices into end->qpn */
	uint32_t qps;
	uint32_t *qp;
	uint32_t *qpn; /**< their numbers */
	uint32_t *since_signal;
	/* iterations.c */
	uint64_t count; /**< its part of o->iterations */
	uint64_t *left; /**< what a queue pair may still send */
	uint64_t *undone; /**< and what is not done of it; NULL: of no interest */
	uint64_t goal; /**< .done when all of them are */
	uint64_t ended; /**< TSC, when the last one was done */
	/* single writer, relaxed readers */
	uint64_t posted;
	uint64_t done; /**< messages completed */
	uint64_t received;
	uint64_t failed;
	uint64_t wrong; /**< messages with other bytes than were sent */
	struct wc first_failure;
	/* lat.c */
	uint64_t start;
	uint64_t turns; /**< answers got, or given */
	bool waiting; /**< for an answer */
	uint64_t *pauses; /**< of the threads; NULL: all samples count, else those without any */
	uint64_t pauses_then; /**< when the question was asked */
	uint64_t last_turn; /**< TSC */
	struct histogram *histogram;
	uint8_t apart[64]; /**< another lcore's load stands behind it */
};

int load_create(struct load *l, const struct bench_options *o, struct endpoint *end,
	const struct peer *peer, unsigned int worker, struct error *err);
void load_destroy(struct load *l);
/** Messages of @p size from now on; counts are 0. Receives are posted, once. */
int load_receive(struct load *l, uint32_t size, struct error *err);
/** Fill the send queues. */
int load_send(struct load *l, struct error *err);
/** Is all that was posted done? */
bool load_idle(const struct load *l);
int load_post_send(struct load *l, uint32_t qp, struct error *err);
/** Why it failed, if it did. */
int load_failure(const struct load *l, struct error *err);

/** Take completions and post anew. @return completions */
unsigned int load_turn(struct load *l);

/* --- iterations.c: a fixed number of messages (--iterations) --- */
/** Each of @p n loads gets its part of o->iterations; none, if it does not send. */
void iterations_share(struct load *const load[], unsigned int n, const struct bench_options *o);
/** So many messages more from now on, UINT64_MAX: without end; all before are done. */
void iterations_begin(struct load *l, uint64_t messages);
/** How many messages does the completion of a queue pair's oldest group tell of? They are done now. */
uint32_t iterations_group(struct load *l, uint32_t qp);
/** Is its part done? True also of a load that has none. */
bool iterations_done(const struct load *l);

/* --- lat.c: ping-pong instead --- */
int lat_create(struct load *l, struct error *err);
void lat_begin(struct load *l);
int lat_send(struct load *l, struct error *err);

/* --- message_memory.c: where messages are, and what they contain --- */

/** Bytes that an end's region needs. */
uint64_t memory_bytes(const struct bench_options *o);
/** Where in it a ping-pong's Writes arrive; 0: no such. */
uint64_t memory_arrivals(const struct bench_options *o);
void memory_fill(struct endpoint *end, const struct bench_options *o);
/** A worker's part of it. */
void memory_share(struct load *l);
/** --check: the queue pair's next slot. */
uint64_t memory_slot(struct load *l, uint32_t qp);

/** Offset of the queue pair's next message, where it is sent from or to. */
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
/** --check: the message at @p at is what was sent; it is wiped. */
void memory_check(struct load *l, uint64_t at);
/** --check, when all is done: what Writes and Atomics have left at the responder. @return wrong */
uint64_t memory_check_left(const struct endpoint *end, const struct bench_options *o, uint32_t size,
	uint64_t messages);

/* --- runner.c: who turns what --- */

/** A worker and the loads on it. */
struct place {
	struct engine *engine;
	unsigned int worker;
	enum bench_role role; /**< whom the time is booked to */
	struct load *load[ROLES];
	unsigned int loads;
	uint64_t busy; /**< TSC cycles of turns that found work */
};

#define BENCH_SLICES 400

/** A few milliseconds. */
struct slice {
	double rate; /**< messages/s */
	double ns[ROLES]; /**< busy time per message, by place */
};

struct run;

struct runner {
	struct run *run;
	struct place place[ROLES];
	unsigned int places;
	struct slice slice[2][BENCH_SLICES]; /**< [1]: nothing interrupted them */
	unsigned int slices, clean, unclean;
	double best; /**< messages/s of a slice */
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
	bool launched; /**< each on a worker lcore; else the one runs here */
	bool count; /**< with o->iterations: without slices, see run_counts() */
	bool stop; /**< drain */
	unsigned int draining; /**< runners that still have something under way */
	struct run_mark from, to; /**< what is measured, without the warm-up */
	/** Every few milliseconds, on the main thread. @return nonzero: end it now */
	int (*look)(struct run *r, uint64_t now);
	/** While it drains, the same; may be NULL. @return 1: those elsewhere have, -1: are gone */
	int (*others)(struct run *r);
	void *arg;
};

/** Turn until time or messages are over, the user or look() says so, or one fails; then drain. */
void run_for(struct run *r);
/** Turn a few milliseconds, outside of a run. */
void runner_slice(struct runner *r);
/** Does count_messages() run it, which sends by itself? */
bool run_counts(const struct run *r);
uint64_t run_done(const struct run *r);
uint64_t run_received(const struct run *r);
void run_mark(const struct run *r, struct run_mark *m);
/** Medians over the slices. @retval false  none was undisturbed: all of them count */
bool runner_median(const struct runner *r, struct slice *median);

/* --- count_instructions.c: a fixed number of messages on this thread --- */

struct clock;

void count_messages(struct run *r);
/** Messages that are sent before those that count. */
uint64_t count_warm_up(const struct run *r);
/** What is counted. */
void roles_count(struct run *run, struct clock *c, uint64_t n);

#endif
