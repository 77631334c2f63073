/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_SVC_H
#define SVC_SVC_H

/**
 * @file
 * Services behind connections: what answers when somebody connects (cm_listen), or what drives a
 * connection of ours (cm_connect). A kind of service is one row of functions, struct svc_ops, in a file
 * of its own; another kind is another file and one line in svc.c's list.
 *
 * A service as configured is a struct svc: its memory and parameters are made on the control thread,
 * the same for all workers, and do not change while it stands. Its connections live on their
 * workers: a struct svc_worker each, with a completion queue that only that worker polls. Nothing
 * here reads a clock, logs or calls EAL.
 *
 * A connection takes one of the service's max_connections places and some of its worker's completion
 * queue: the work requests that its queues hold. No place or no room there: REJ "no resources". So a
 * completion queue never overruns.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "cm/cm.h"
#include "mem/mem.h"
#include "rc/rc.h"

#define SVC_NAME_MAX 32
#define SVC_PATH_MAX 48

struct svc;
struct svc_worker;
struct svc_conn;

/** What cm_listen, cm_connect and the configuration say; each kind uses what it needs. */
struct svc_config {
	char name[SVC_NAME_MAX]; /**< the operator's; default: the kind's */
	char kind[SVC_NAME_MAX]; /**< "memory", "echo", ... */
	uint64_t service_id; /**< listening */
	uint64_t service_mask;
	uint16_t tcp_port; /**< perftest: its exchange over TCP, 0: none */
	uint64_t length; /**< of the memory, bytes; 0: the kind's default */
	uint32_t size; /**< of a message, bytes; 0: the kind's default */
	uint32_t depth; /**< receives kept posted, sends under way; 0: the kind's default */
	uint32_t access; /**< memory: MEM_ACCESS_REMOTE_..., 0: all of them */
	uint32_t mr_key; /**< memory: a region that is there; rcopy: for the file; 0: none */
	bool per_connection; /**< memory: each connection has its own */
	uint32_t max_connections; /**< on all workers; 0: the kind's default */
	uint64_t count; /**< our side's exchanges, 0: the kind's default, mostly until the end */
	bool verify; /**< rping, echo, rstream as clients: check the data */
	char path[SVC_PATH_MAX]; /**< rcopy as client: the file over there, "": polca.rcopy */
	bool active; /**< for connections of ours: the client's part; max_connections 0 is 1 */
};

/**
 * A service's figures, by worker; single writer, relaxed readers. All but exchanges, mismatches
 * and violations are counted for the kinds: messages and bytes when their completions are polled.
 */
#define SVC_COUNTERS(X)                                                                            \
	X(connections, "connections now")                                                          \
	X(established, "connections established since the start")                                  \
	X(refused, "requests refused")                                                             \
	X(messages_in, "messages received")                                                        \
	X(messages_out, "messages sent, and RDMA operations begun")                                \
	X(bytes_in, "bytes received")                                                              \
	X(bytes_out, "bytes sent")                                                                 \
	X(errors, "work requests that ended in error, flushed ones apart")                         \
	X(exchanges, "exchanges completed")                                                        \
	X(mismatches, "exchanges whose data was wrong")                                            \
	X(violations, "connections ended because the peer broke the kind's rules")                 \
	X(receives_missing, "times a message found no receive posted: the depth is too small")

struct svc_counters {
#define X(name, help) uint64_t name;
	SVC_COUNTERS(X)
#undef X
};
#define SVC_COUNTER_COUNT (sizeof(struct svc_counters) / sizeof(uint64_t))
struct svc_counter_info {
	const char *name;
	const char *help;
};
extern const struct svc_counter_info svc_counter_infos[SVC_COUNTER_COUNT];

/** A kind of service. Functions without a word on where run on the connection's worker. */
struct svc_ops {
	const char *name;
	const char *help; /**< one line, for --help and the documents */
	bool client; /**< can drive a connection of ours */
	bool server;
	struct svc_config defaults; /**< of length, size, depth, access, max_connections, count */
	uint32_t conn_size; /**< bytes of a connection's private state, svc_conn_priv() */
	/** Defaults that depend on other parameters; .defaults come after. May be NULL. */
	void (*adjust)(struct svc_config *config);
	/**
	 * Control thread: check the parameters, say svc_queues(), make memory.
	 * @retval negative errno with words
	 */
	int (*open)(struct svc *s, struct error *err);
	/**
	 * Control thread, after the last connection is gone, before the memory goes; after an open()
	 * that failed too. May be NULL. @retval -EAGAIN  workers may still see something: call again
	 */
	int (*close)(struct svc *s);
	/**
	 * Access, resources and private data of a connection of either side. Filled in before: an RC
	 * QP of svc_queues(), one SGE, SVC_INLINE bytes inline, all work requests signaled, no access,
	 * resources and depth 16, retry counts 7. May be NULL.
	 */
	void (*shape)(struct svc_conn *c, struct cm_conn_param *param);
	/** A REQ. @return 0 or a REJ reason; may be NULL */
	uint16_t (*request)(struct svc_conn *c, const struct cm_request *req,
		struct cm_conn_param *param);
	/** The QP is in INIT: post receives. @retval negative errno: no connection. May be NULL. */
	int (*prepare)(struct svc_conn *c);
	/** May come after the first completions (a lost RTU). May be NULL. */
	void (*established)(struct svc_conn *c, const uint8_t *private_data, uint8_t len);
	/**
	 * A work request of this connection's has succeeded; .wr_id is the low 32 bits of what
	 * svc_post_*() was given. After ended() too: posting fails then. One that fails ends the
	 * connection, of which ended() tells. May be NULL if the kind posts nothing.
	 */
	void (*completion)(struct svc_conn *c, const struct wc *wc);
	/**
	 * In each svc_worker_run() from the begin on, data may flow before established(), until it
	 * returns false: then not before svc_want_turn(), nor after the end. May be NULL.
	 */
	bool (*turn)(struct svc_conn *c);
	/** It has ended. May be NULL. */
	void (*ended)(struct svc_conn *c, const struct cm_info *info);
	/**
	 * It is gone, QP and all: clear what the next one in this place must not see, a slice each
	 * call. @return true: done. May be NULL.
	 */
	bool (*clean)(struct svc_conn *c);
};

extern const struct svc_ops *const svc_kinds[]; /**< ends with NULL */
const struct svc_ops *svc_kind(const char *name);

/** What a service is made of; stays as long as the service. */
struct svc_env {
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem *mem;
	struct rc_dev *dev;
	unsigned int workers;
	uint64_t hz;
	uint32_t max_cqe; /**< rc_limits.max_cqe of .dev */
	uint32_t max_qp_wr; /**< rc_limits.max_qp_wr */
	int numa_node; /**< of its memory; -1: any */
	bool hugepages;
};

/* --- control thread --- */

/** Memory, protection domain, completion queues. Nobody can connect yet. */
struct svc *svc_create(const struct svc_env *env, const struct svc_config *config,
	struct error *err);
/**
 * After svc_worker_destroy() on all workers.
 * @retval -EAGAIN  workers may still see its memory: call again, it is closed already
 */
int svc_destroy(struct svc *s);
const struct svc_config *svc_config(const struct svc *s);
const struct svc_ops *svc_ops_of(const struct svc *s);
/** Is this number of a protection domain or completion queue its own? An adopted region's is not. */
bool svc_has_pd(const struct svc *s, uint32_t pd);
bool svc_has_cq(const struct svc *s, uint32_t cqn);
void svc_counters_add(const struct svc *s, int worker, struct svc_counters *sum);

/* --- on each worker --- */

struct svc_worker *svc_worker_create(struct svc *s, struct cm *cm, struct rc_worker *rc,
	unsigned int worker, struct error *err);
/** It has no connections any more: svc_worker_connections(), or cm_destroy() was before. */
void svc_worker_destroy(struct svc_worker *w);
/** Take requests for the service's ID. */
int svc_worker_listen(struct svc_worker *w);
/** No more of them; connections stay. */
void svc_worker_unlisten(struct svc_worker *w);
/** svc_disconnect() for all, some now and some in each svc_worker_run(). */
void svc_worker_disconnect(struct svc_worker *w, uint64_t now);
/** Connections, those in TIMEWAIT and those whose place is not clean yet included. */
uint32_t svc_worker_connections(const struct svc_worker *w);
/** Is the connection this service's? */
bool svc_worker_has(const struct svc_worker *w, cm_id id);
/**
 * Drive a connection of ours: fills .param of @p c, then cm_connect(). If .ops is set, its established(),
 * ended() and released() are called with .user too, after the kind's: a watcher.
 */
int svc_worker_connect(struct svc_worker *w, struct cm_connect *c, uint64_t now, cm_id *id,
	struct error *err);
/** Poll completions, up to @p budget, and tidy up; every turn. @return how many */
unsigned int svc_worker_run(struct svc_worker *w, uint64_t now, unsigned int budget);

/**
 * A connection without the CM, both sides having told each other their queue pairs: receives posted,
 * QP in RTS. It is the caller's, who closes it; ended() is not said. @p attr  from the path to the
 * PSNs, in host order; access and retries are the kind's
 */
struct svc_conn *svc_direct_open(struct svc_worker *w, const struct qp_attr *attr,
	struct error *err);
/** Its QP is destroyed at once. */
void svc_direct_close(struct svc_conn *c);

/* --- for kinds of services --- */

#define SVC_INLINE 64

/** Control thread, in open(): send and receive queues of each connection's QP. Default: 1 and 1. */
void svc_queues(struct svc *s, uint32_t sends, uint32_t recvs);
/** open()'s state, shared by all connections; NULL: none was made. */
void *svc_state(const struct svc *s);
/** Control thread, in open(): zeroes, freed with the service. NULL with words: no memory */
void *svc_make_state(struct svc *s, size_t size, struct error *err);
const struct svc_env *svc_env(const struct svc *s);
uint32_t svc_pd(const struct svc *s); /**< from the first region on */

/** Bytes of the service's memory. */
struct svc_region {
	uint32_t lkey;
	uint32_t rkey;
	uint64_t va;
	uint64_t length;
	uint8_t *bytes; /**< the memory itself; workers and peers write it */
};
#define SVC_VA 0x100000000 /* what peers call the first byte of a region */
#define SVC_REGIONS_MAX 4

/** Control thread, in open(): a region of the service's protection domain. */
int svc_region(struct svc *s, uint64_t length, uint32_t access, struct svc_region *r,
	struct error *err);
/** The same, of a region that is there; the service's domain is the region's. The first one only. */
int svc_adopt_region(struct svc *s, uint32_t key, struct svc_region *r, struct error *err);
/** The same, with @p length bytes for each place: svc_conn_buffer(). Once. */
int svc_buffers(struct svc *s, uint64_t length, uint32_t access, struct error *err);

void *svc_conn_priv(struct svc_conn *c);
struct svc *svc_conn_service(const struct svc_conn *c);
/** This connection's share of svc_buffers(). */
struct svc_region svc_conn_buffer(const struct svc_conn *c);
uint32_t svc_conn_place(const struct svc_conn *c); /**< 0 to max_connections - 1 */
bool svc_conn_active(const struct svc_conn *c); /**< our cm_connect() */
cm_id svc_conn_id(const struct svc_conn *c);
uint32_t svc_conn_qpn(const struct svc_conn *c);
/** What its QP has received so far, Writes too. */
int svc_conn_received(const struct svc_conn *c, struct rc_qp_received *r);
uint64_t svc_conn_now(const struct svc_conn *c); /**< of the last svc_worker_run() */
/**
 * Post on the connection's QP; the low 32 bits of wr_id are the kind's own.
 * @retval -ENOBUFS   as many have not been completed as the queue takes
 * @retval -ENOTCONN  the connection has ended, or is about to
 * @retval -EINVAL    malformed
 */
int svc_post_send(struct svc_conn *c, const struct send_wr *wr);
int svc_post_recv(struct svc_conn *c, const struct recv_wr *wr);
/** turn() from now on; of a kind that has one. */
void svc_want_turn(struct svc_conn *c);
/** DREQ; ended() follows. Again: nothing. */
void svc_disconnect(struct svc_conn *c);
/** The same, because of what the peer did: counted. */
void svc_violation(struct svc_conn *c);
struct svc_counters *svc_conn_counters(struct svc_conn *c);
#define svc_count(counters, name, n)                                                               \
	__atomic_store_n(&(counters)->name, (counters)->name + (n), __ATOMIC_RELAXED)

/** One buffer, one message: for most kinds. @p length 0: without data */
int svc_send(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length);
int svc_recv(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length);

#endif
