/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_SVC_H
#define SVC_SVC_H

/**
 * @file
 * Services: the users of connections. A service answers when a peer connects (cm_listen), or
 * drives a connection that we open (cm_connect). Each kind of service implements struct svc_ops in
 * a file of its own and has a line in svc.c's list.
 *
 * A configured service is a struct svc. The control thread creates its memory and parameters; all
 * workers share them, and they do not change while it exists. Each worker has a struct svc_worker
 * for its own connections, with a completion queue that only this worker polls. Nothing here reads
 * a clock, logs or calls EAL.
 *
 * A connection takes one of the service's max_connections places, and room in its worker's
 * completion queue for all the work requests its queues can hold. Without a place or room the
 * request is rejected with "no resources", so a completion queue never overruns. An address that
 * holds many places gets no more while few are left (place.c).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "cm/cm.h"
#include "mem/mem.h"
#include "port/allow_list.h"
#include "rc/rc.h"

#define SVC_NAME_MAX    32
#define SVC_PATH_MAX    48
#define SVC_ADDRESS_MAX 46 /* INET6_ADDRSTRLEN */

struct svc;
struct svc_worker;
struct svc_conn;

/** Parameters from cm_listen, cm_connect and the configuration; each kind uses those it needs. */
struct svc_config {
	char name[SVC_NAME_MAX]; /**< chosen by the operator; default: the kind's name */
	char kind[SVC_NAME_MAX]; /**< "memory", "echo", ... */
	uint64_t service_id; /**< listening */
	uint64_t service_mask;
	uint16_t tcp_port; /**< perftest: its exchange over TCP, 0: none */
	char tcp_address[SVC_ADDRESS_MAX]; /**< the exchange listens there; "": on all addresses */
	/** a client may have any LID, and a GID that is not the address of its TCP connection */
	bool tcp_any_gid;
	uint64_t length; /**< of the memory, bytes; 0: the kind's default */
	uint32_t size; /**< of a message, bytes; 0: the kind's default */
	uint32_t depth; /**< receives posted, sends outstanding; 0: the kind's default */
	uint32_t access; /**< memory: MEM_ACCESS_REMOTE_..., 0: all of them */
	/** key of an existing region: memory grants it, rcopy writes the file there; 0: none */
	uint32_t mr_key;
	bool per_connection; /**< memory: each connection has its own part of the memory */
	uint32_t max_connections; /**< on all workers; 0: the kind's default */
	/** of one address; 0: three times as many as are left, so that others find places */
	uint32_t max_connections_per_peer;
	uint64_t count; /**< client: exchanges; 0: the kind's default, mostly unlimited */
	bool verify; /**< rping, echo, rstream as clients: check the data */
	char path[SVC_PATH_MAX]; /**< rcopy as client: the server's file, "": polca.rcopy */
	uint16_t local_port; /**< its memory is on the NUMA node of this port's card */
	struct allow_list allow; /**< who may connect */
	bool active; /**< client; max_connections 0 stands for 1 */
};

/**
 * Counters of a service, by worker; single writer, relaxed readers. The kinds count exchanges,
 * mismatches and violations; the frame counts the others, messages and bytes when it polls their
 * completions.
 */
/* clang-format off */
#define SVC_COUNTERS(X)                                                                            \
	X(connections, "connections now")                                                          \
	X(established, "connections established since the start")                                  \
	X(refused, "requests refused")                                                             \
	X(peer_limit, "connections refused: their address has its share of the places")            \
	X(messages_in, "messages received")                                                        \
	X(messages_out, "messages sent, and RDMA operations begun")                                \
	X(bytes_in, "bytes received")                                                              \
	X(bytes_out, "bytes sent")                                                                 \
	X(errors, "work requests that ended in error, without flushed ones")                       \
	X(exchanges, "exchanges completed")                                                        \
	X(mismatches, "exchanges whose data was wrong")                                            \
	X(violations, "connections ended because the peer broke the kind's rules")                 \
	X(receives_missing, "times a message found no receive posted: the depth is too small")
/* clang-format on */

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

/** A kind of service. Unless stated otherwise, functions run on the connection's worker. */
struct svc_ops {
	const char *name;
	const char *help; /**< one line, for --help and the documents */
	bool client; /**< can drive a connection that we open */
	bool server;
	struct svc_config defaults; /**< of length, size, depth, access, max_connections, count */
	uint32_t conn_size; /**< bytes of a connection's private state, svc_conn_priv() */
	/** Defaults that depend on other parameters; .defaults come after. May be NULL. */
	void (*adjust)(struct svc_config *config);
	/**
	 * Control thread: check the parameters, call svc_queues(), create memory.
	 * @retval negative errno, and err says why
	 */
	int (*open)(struct svc *s, struct error *err);
	/**
	 * Control thread, after the last connection is gone and before the memory is freed; also
	 * after an open() that failed. May be NULL. @retval -EAGAIN  workers may still use it: call
	 * again
	 */
	int (*close)(struct svc *s);
	/**
	 * Change the parameters of a connection of either side: access, resources, private data.
	 * They are preset to an RC QP with the queues of svc_queues(), one SGE, SVC_INLINE bytes
	 * inline, all work requests signaled, no access, resources and depth 16, retry counts 7.
	 * May be NULL.
	 */
	void (*shape)(struct svc_conn *c, struct cm_conn_param *param);
	/** A REQ. @return 0 or a REJ reason; may be NULL */
	uint16_t (*request)(struct svc_conn *c, const struct cm_request *req,
		struct cm_conn_param *param);
	/**
	 * The QP is in INIT, or established: post receives. May be NULL.
	 *
	 * @retval negative errno  refuse it
	 */
	int (*prepare)(struct svc_conn *c);
	/** Completions may come before this call (a lost RTU). May be NULL. */
	void (*established)(struct svc_conn *c, const uint8_t *private_data, uint8_t len);
	/**
	 * A work request of this connection succeeded; .wr_id has the low 32 bits of the wr_id
	 * given to svc_post_*(). Also called after ended(), when posting fails. A work request that
	 * fails ends the connection, and ended() is called. May be NULL if the kind posts nothing.
	 */
	void (*completion)(struct svc_conn *c, const struct wc *wc);
	/**
	 * Called in each svc_worker_run() from the connection's start (data may flow before
	 * established()) until it returns false or the connection ends. svc_want_turn() starts the
	 * calls again. May be NULL.
	 */
	bool (*turn)(struct svc_conn *c);
	/** The connection has ended. May be NULL. */
	void (*ended)(struct svc_conn *c, const struct cm_info *info);
	/**
	 * The connection and its QP are gone: clear the data that the next connection in this place
	 * must not see, a slice in each call. @return true: done. May be NULL.
	 */
	bool (*clean)(struct svc_conn *c);
};

extern const struct svc_ops *const svc_kinds[]; /**< ends with NULL */
const struct svc_ops *svc_kind(const char *name);
/** Append the names of the kinds that listen, or that connect: "memory, echo". */
void svc_kinds_that_listen(char *buf, size_t size);
void svc_kinds_that_connect(char *buf, size_t size);

/** The environment of a service; must exist as long as the service. */
struct svc_env {
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem *mem;
	struct rc_dev *dev;
	unsigned int workers;
	uint64_t hz;
	uint32_t max_cqe; /**< rc_limits.max_cqe of .dev */
	uint32_t max_qp_wr; /**< rc_limits.max_qp_wr */
	int numa_node; /**< of the service's memory; -1: any */
	bool hugepages;
};

/* --- control thread --- */

/** Create memory, protection domain and completion queues. Peers cannot connect yet. */
struct svc *svc_create(const struct svc_env *env, const struct svc_config *config,
	struct error *err);
/**
 * Destroy a service, after svc_worker_destroy() on all workers.
 * @retval -EAGAIN  workers may still use its memory: call again
 */
int svc_destroy(struct svc *s);
const struct svc_config *svc_config(const struct svc *s);
/**
 * True if the service owns this protection domain (not an adopted region's) or completion queue.
 */
bool svc_has_pd(const struct svc *s, uint32_t pd);
bool svc_has_cq(const struct svc *s, uint32_t cqn);
void svc_counters_add(const struct svc *s, int worker, struct svc_counters *sum);

/* --- on each worker --- */

struct svc_worker *svc_worker_create(struct svc *s, struct cm *cm, struct rc_worker *rc,
	unsigned int worker, struct error *err);
/** Call it when svc_worker_connections() is 0 or after cm_destroy(). */
void svc_worker_destroy(struct svc_worker *w);
/** Listen for the service's ID. */
int svc_worker_listen(struct svc_worker *w);
/** Stop listening; connections stay. */
void svc_worker_unlisten(struct svc_worker *w);
/** svc_disconnect() all connections, some now and some in each svc_worker_run(). */
void svc_worker_disconnect(struct svc_worker *w, uint64_t now);
/** Number of connections, including those in TIMEWAIT and those whose place is not clean yet. */
uint32_t svc_worker_connections(const struct svc_worker *w);
/** True if the connection belongs to this service. */
bool svc_worker_has(const struct svc_worker *w, cm_id id);
/**
 * Open a connection: fills .param of @p c, then calls cm_connect(). .ops, if set, is a watcher: its
 * established(), ended() and released() are called with .user after the kind's functions.
 */
int svc_worker_connect(struct svc_worker *w, struct cm_connect *request, uint64_t now, cm_id *id,
	struct error *err);
/** Poll at most @p budget completions and clean up; call it every turn. @return completions */
unsigned int svc_worker_run(struct svc_worker *w, uint64_t now, unsigned int budget);

/**
 * Open a connection without the CM, after both sides have exchanged their queue pairs by other
 * means: posts receives and moves the QP to RTS. The caller closes it; ended() is not called.
 *
 * @param peer  the address whose share of the places it is of
 * @param attr  path, PSNs and the rest, in host order; the kind sets access and retry counts
 */
struct svc_conn *svc_direct_open(struct svc_worker *w, const union gid *peer,
	const struct qp_attr *attr, struct error *err);
/** Close a connection of svc_direct_open(); its QP is destroyed at once. */
void svc_direct_close(struct svc_conn *c);

/* --- for kinds of services --- */

#define SVC_INLINE 64

/**
 * Control thread, in open(): shape() or request() tells the peer of the connection's place, which
 * is therefore taken at the REQ. Otherwise the place is taken when the connection is established,
 * and both functions may be called without a place before that.
 */
void svc_place_early(struct svc *s);
/** Control thread, in open(): sizes of each QP's send and receive queue. Default: 1 and 1. */
void svc_queues(struct svc *s, uint32_t sends, uint32_t recvs);
/** The state of svc_make_state(), shared by all connections; NULL: none. */
void *svc_state(const struct svc *s);
/** Control thread, in open(): zeroed memory, freed with the service. @retval NULL  err says why */
void *svc_make_state(struct svc *s, size_t size, struct error *err);
const struct svc_env *svc_env(const struct svc *s);
uint32_t svc_pd(const struct svc *s); /**< valid once a region was created or adopted */

/** A part of the service's memory. */
struct svc_region {
	uint32_t lkey;
	uint32_t rkey;
	uint64_t va;
	uint64_t length;
	uint8_t *bytes; /**< the memory itself; workers and peers write it */
};
#define SVC_VA          0x100000000 /* address of a region's first byte, as peers use it */
#define SVC_REGIONS_MAX 4

/** Control thread, in open(): register a region in the service's protection domain. */
int svc_region(struct svc *s, uint64_t length, uint32_t access, struct svc_region *r,
	struct error *err);
/** Use an existing region and its protection domain; before any other region is created. */
int svc_adopt_region(struct svc *s, uint32_t key, struct svc_region *r, struct error *err);
/** Register one region with @p length bytes for each place, svc_conn_buffer(). At most once. */
int svc_buffers(struct svc *s, uint64_t length, uint32_t access, struct error *err);

void *svc_conn_priv(struct svc_conn *c);
struct svc *svc_conn_service(const struct svc_conn *c);
/** This connection's part of svc_buffers(). */
struct svc_region svc_conn_buffer(const struct svc_conn *c);
uint32_t svc_conn_place(const struct svc_conn *c); /**< 0 to max_connections - 1 */
bool svc_conn_active(const struct svc_conn *c); /**< opened by us */
uint32_t svc_conn_qpn(const struct svc_conn *c);
/** What the connection's QP has received so far, including RDMA Writes. */
int svc_conn_received(const struct svc_conn *c, struct rc_qp_received *r);
uint64_t svc_conn_now(const struct svc_conn *c); /**< of the last svc_worker_run() */
/**
 * Post on the connection's QP; the kind uses only the low 32 bits of wr_id.
 * @retval -ENOBUFS   the queue is full
 * @retval -ENOTCONN  the connection has ended, or is about to
 * @retval -EINVAL    malformed
 */
int svc_post_send(struct svc_conn *c, const struct send_wr *wr);
int svc_post_recv(struct svc_conn *c, const struct recv_wr *wr);
/** Call turn() from now on; for kinds that have one. */
void svc_want_turn(struct svc_conn *c);
/** End the connection; ended() follows. A second call does nothing. */
void svc_disconnect(struct svc_conn *c);
/** svc_disconnect() because the peer broke the kind's rules; counted. */
void svc_violation(struct svc_conn *c);
struct svc_counters *svc_conn_counters(struct svc_conn *c);
#define svc_count(counters, name, n)                                                               \
	__atomic_store_n(&(counters)->name, (counters)->name + (n), __ATOMIC_RELAXED)

/** Post a Send or receive of one buffer. @p length 0: without data */
int svc_send(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length);
int svc_recv(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length);

#endif
