/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

/**
 * @file
 * The provider: polca's ports as verbs devices of the distribution's unmodified libibverbs. Objects
 * are made over the verbs socket (ring/protocol.h); work requests and completions go through the
 * segment that is shared with a worker of polca (ring/layout.h).
 *
 * Depends on lib/ring, libibverbs and the C library only.
 */

#include <pthread.h>

#include "abi34.h"
#include "ring/doorbell.h"
#include "ring/protocol.h"
#include "ring/queue.h"

struct polca_device {
	struct verbs_device verbs; /* first */
	char socket[108];
	uint32_t port; /* of polca */
};

struct polca_context {
	struct verbs_context verbs; /* first */
	struct polca_context *next; /* all of this process: contexts.c */
	int cmd_fd; /* libibverbs's, a stand-in */
	int socket;
	pthread_mutex_t socket_lock; /* one request at a time */
	int mirror_fd;
	int wake_fd; /* wakes the worker */
	uint8_t *segment;
	struct ring_segment *shared;
	uint32_t *doorbells;
	struct ring_queue *queues;
	struct ring_cq *cqs;
	uint32_t next_doorbell; /* of all threads; atomic */
	struct ring_hello_reply hello;
};

struct polca_pd {
	struct ibv_pd ibv; /* first */
	uint32_t slot;
};

struct polca_mr {
	struct verbs_mr verbs; /* first */
	uint32_t slot;
	uintptr_t addr;
	size_t length;
};

struct polca_cq {
	struct ibv_cq ibv; /* first */
	struct ring_cq *shared;
	struct ring_end ring;
	pthread_spinlock_t lock;
	uint32_t slot;
	uint32_t empty_polls; /* any thread; roughly */
};

/** A queue that a worker is told of by a doorbell. */
struct polca_queue {
	struct polca_context *context;
	struct ring_queue *shared;
	uint32_t slot;
};

struct polca_srq {
	struct ibv_srq ibv; /* first */
	struct polca_queue queue;
	struct ring_end receive;
	pthread_spinlock_t lock;
	struct ibv_srq_attr attr;
};

struct polca_qp {
	struct verbs_qp verbs; /* first */
	struct polca_queue queue;
	struct ring_end send;
	struct ring_end receive;
	pthread_spinlock_t send_lock;
	pthread_spinlock_t receive_lock;
	bool sq_sig_all;
	struct ring_caps caps;
	struct ibv_qp_init_attr init;
};

static inline struct polca_context *
context_of(struct ibv_context *context)
{
	return (struct polca_context *)(void *)((char *)context -
		offsetof(struct polca_context, verbs.context));
}

/* --- socket.c --- */

/** Connect, and take what HELLO passes. @return errno value */
int polca_connect(struct polca_context *c, const struct polca_device *device);
/**
 * One request.
 *
 * @param size  bytes of the request's member
 * @param fd    a descriptor that comes with the reply; NULL: none
 * @return errno value
 */
int polca_call(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, struct ring_reply *reply, int *fd);
/** True if polca has closed the connection: it has ended. */
bool polca_is_gone(const struct polca_context *c);
/** A request that names a slot and is answered by success only. */
int polca_call_slot(struct polca_context *c, enum ring_request_code code, uint32_t slot);
#define POLCA_CALL(c, code, req, member, reply)                                                    \
	polca_call(c, code, req, sizeof((req)->member), reply, NULL)

/** A new connection to this socket. @return errno value */
int polca_socket_open(const char *path, int *socket);
/** One request over a connection that is no device's. @param fds  NULL: none; else one */
int polca_socket_ask(int socket, enum ring_request_code code, struct ring_request *req, size_t size,
	struct ring_reply *reply, int *fd);

/* --- rdmacm.c --- */
/** Redirect librdmacm's own system calls, once it is loaded; its device is this socket's polca. */
void rdmacm_redirect(const char *socket);

/* --- channel.c --- */
void contexts_add(struct polca_context *c);
/** The mirror of a device that this process has open over the same socket; -1: none. */
int contexts_mirror(const struct polca_device *device);
void contexts_remove(struct polca_context *c);
/** Redirect libibverbs's own system calls, once it is loaded. */
void channel_redirect(void);

/* --- memory.c --- */
struct ibv_mr *polca_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
	int access);
int polca_dereg_mr(struct verbs_mr *verbs);

/* --- cq.c --- */
struct ibv_cq *polca_create_cq(struct ibv_context *context, int cqe,
	struct ibv_comp_channel *channel, int vector);
int polca_destroy_cq(struct ibv_cq *ibv);
int polca_poll_cq(struct ibv_cq *ibv, int num, struct ibv_wc *wc);
int polca_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* --- qp.c --- */
struct ibv_qp *polca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a);
struct ibv_qp *polca_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex);
int polca_destroy_qp(struct ibv_qp *ibv);
int polca_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask);
int polca_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask,
	struct ibv_qp_init_attr *init);

/* --- srq.c --- */
struct ibv_srq *polca_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init);
int polca_destroy_srq(struct ibv_srq *ibv);
int polca_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask);
int polca_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr);
int polca_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* --- post.c --- */
int polca_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int polca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** Fill a receive queue, and ring once. The caller holds the queue's lock. */
int polca_post_receives(struct polca_queue *q, struct ring_end *ring, uint32_t max_sge,
	struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
