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
	uint32_t access; /**< memory: MEM_ACCESS_..., 0: all of remote */
	uint32_t mr_key; /**< memory: an existing region instead of a new one; 0: none */
	bool per_connection; /**< memory: each connection has its own */
	uint32_t max_connections; /**< 0: as many as there is room for */
	uint64_t count; /**< our side's exchanges, 0: until the end */
	bool verify; /**< rping: check the data */
};

/** One exchange's figures, summed per service and worker. Single writer, relaxed readers. */
#define SVC_COUNTERS(X)                                                                            \
	X(connections, "connections now")                                                          \
	X(accepted, "connections established since the start")                                     \
	X(refused, "requests refused")                                                             \
	X(messages_in, "messages received")                                                        \
	X(messages_out, "messages sent, and RDMA operations begun")                                \
	X(bytes_in, "bytes received")                                                              \
	X(bytes_out, "bytes sent")                                                                 \
	X(exchanges, "exchanges completed (rping)")                                                \
	X(mismatches, "exchanges whose data was wrong")                                            \
	X(errors, "work requests that ended in error, flushed ones apart")

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
	struct svc_config defaults;
	uint32_t conn_size; /**< bytes of a connection's private state, svc_conn_priv() */
	/** Control thread: check the parameters, make memory. @retval negative errno with words */
	int (*open)(struct svc *s, struct error *err);
	/** Control thread, after the last connection is gone. */
	void (*close)(struct svc *s);
	/** QP sizes, access, resources and private data of a connection of either side. */
	void (*shape)(struct svc_conn *c, struct cm_conn_param *param);
	/** A REQ. @return 0 or a REJ reason; may be NULL */
	uint16_t (*request)(struct svc_conn *c, const struct cm_request *req,
		struct cm_conn_param *param);
	/** The QP is in INIT: post receives; may be NULL. */
	int (*prepare)(struct svc_conn *c);
	void (*established)(struct svc_conn *c, const uint8_t *private_data, uint8_t len);
	/** A completion of this connection's QP; .wr_id is what svc_post_*() was given. */
	void (*completion)(struct svc_conn *c, const struct wc *wc);
	/** It has ended; completions of flushed work requests may still come. May be NULL. */
	void (*ended)(struct svc_conn *c, const struct cm_info *info);
};

extern const struct svc_ops *const svc_kinds[]; /**< ends with NULL */
const struct svc_ops *svc_kind(const char *name);

/** What a service is made of. */
struct svc_env {
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem *mem;
	struct rc_dev *dev;
	unsigned int workers;
	uint64_t hz;
};

/* --- control thread --- */

/** Memory, protection domain, completion queues. Nobody can connect yet. */
struct svc *svc_create(const struct svc_env *env, const struct svc_config *config,
	struct error *err);
/** After svc_worker_destroy() on all workers. */
void svc_destroy(struct svc *s);
const struct svc_config *svc_config(const struct svc *s);
const struct svc_ops *svc_ops_of(const struct svc *s);
void svc_counters_add(const struct svc *s, int worker, struct svc_counters *sum);

/* --- on each worker --- */

struct svc_worker *svc_worker_create(struct svc *s, struct cm *cm, struct rc_worker *rc,
	unsigned int worker, struct error *err);
/** Ends its connections without waiting. */
void svc_worker_destroy(struct svc_worker *w);
/** Take requests for the service's ID. */
int svc_worker_listen(struct svc_worker *w);
/** No more of them; connections stay. */
void svc_worker_unlisten(struct svc_worker *w);
/** Connections that stand, those in TIMEWAIT included. */
uint32_t svc_worker_connections(const struct svc_worker *w);
/** Drive a connection of ours: fills .param, .ops and .user of @p c, then cm_connect(). */
int svc_worker_connect(struct svc_worker *w, struct cm_connect *c, uint64_t now, cm_id *id,
	struct error *err);
/** Poll completions, up to @p budget. @return how many */
unsigned int svc_worker_run(struct svc_worker *w, uint64_t now, unsigned int budget);

/* --- for kinds of services: svc.c has them --- */

void *svc_conn_priv(struct svc_conn *c);
struct svc *svc_conn_service(struct svc_conn *c);
/** open()'s memory and state, shared by all connections. */
void *svc_state(const struct svc *s);
void svc_set_state(struct svc *s, void *state);
bool svc_conn_active(const struct svc_conn *c); /**< our cm_connect() */
cm_id svc_conn_id(const struct svc_conn *c);
uint64_t svc_conn_now(const struct svc_conn *c);
/**
 * Post on the connection's QP; the low 32 bits of wr_id are the kind's own.
 * @retval negative errno: queue full, or the connection has ended
 */
int svc_post_send(struct svc_conn *c, const struct send_wr *wr);
int svc_post_recv(struct svc_conn *c, const struct recv_wr *wr);
/** DREQ; ended() follows. */
void svc_disconnect(struct svc_conn *c);
struct svc_counters *svc_conn_counters(struct svc_conn *c);
/** Bytes of the service's memory as a key: made by svc_region() in open(). */
struct svc_region {
	uint32_t lkey;
	uint32_t rkey;
	uint64_t va;
	uint64_t length;
	uint8_t *bytes; /**< the memory itself; workers and peers write it */
};
/** Control thread, in open(): a region of the service's protection domain. */
int svc_region(struct svc *s, uint64_t length, uint32_t access, struct svc_region *r,
	struct error *err);

#endif
