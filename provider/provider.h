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

/** What an event can name; the program acknowledges the events that it gets. */
struct polca_object {
	struct polca_object *next; /* in the context's table */
	uint64_t cookie; /* never used twice in a context */
	void *ibv;
	int back; /* of a CQ: writing end of its channel's pipe; -1: none */
	uint32_t events; /* completion events that the program got */
	uint32_t async_events;
};
#define POLCA_OBJECT_LISTS 64

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
	/* death: dead.c */
	uint64_t id; /* of all contexts that this process ever had */
	bool dead; /* polca is gone; atomic, and never false again */
	bool buried; /* all that follows from it is done; or the program closes the device */
	/* events: events.c */
	int event_back; /* writing end of the event pipe; -1: nothing follows any more */
	pthread_mutex_t objects_lock;
	struct polca_object *objects[POLCA_OBJECT_LISTS];
	uint64_t last_cookie;
	/* regions: memory.c */
	pthread_mutex_t regions_lock;
	struct polca_mr *regions;
	bool memory_returned; /* all pages are private again */
};

struct polca_pd {
	struct ibv_pd ibv; /* first */
	uint32_t slot;
};

struct polca_mr {
	struct verbs_mr verbs; /* first */
	struct polca_mr *next, **link; /* in the context's list; no link: the pages were returned */
	uint32_t slot;
	uintptr_t addr;
	size_t length;
	bool shared; /* by the program already: not in the mirror */
};

struct polca_mw {
	struct ibv_mw ibv; /* first */
	/* bound since ibv_wr_start(), under that queue pair's lock */
	bool in_batch;
	struct polca_mw *next; /* in the batch */
	uint32_t rkey_before; /* the batch */
};

/** A queue pair in the table of a CQ. */
struct polca_user {
	struct polca_user *next;
	struct polca_qp *qp;
};
#define POLCA_USER_LISTS 64

struct polca_cq {
	union { /* first; the one begins as the other */
		struct ibv_cq ibv;
		struct ibv_cq_ex ibv_ex;
	};
	struct ring_cq *shared;
	struct ring_end ring;
	pthread_spinlock_t lock;
	uint32_t slot;
	struct polca_object object;
	/* under the lock */
	struct polca_qp *last; /* of the newest completion; NULL: look it up */
	struct polca_user *users[POLCA_USER_LISTS]; /* by QPN */
	struct ring_completion current; /* extended: from start_poll or next_poll on */
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
	struct polca_object object;
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
	/* ibv_wr_*, under the lock: since wr_start, the first entry, first error, windows bound */
	uint32_t wr_first;
	int wr_error;
	struct polca_mw *wr_windows;
	struct ibv_qp_init_attr init;
	struct polca_object object;
	/* under the locks of the two CQs: the oldest request that is outstanding */
	uint32_t send_done;
	uint32_t receive_done;
	struct polca_user send_user;
	struct polca_user receive_user;
};

/** Requests that a queue takes until more of its completions are polled. */
static inline uint32_t
requests_room(const struct ring_end *ring, const uint32_t *done, uint32_t max_wr)
{
	uint32_t outstanding = ring->index - __atomic_load_n(done, __ATOMIC_ACQUIRE);

	return outstanding < max_wr ? max_wr - outstanding : 0;
}

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
 * @param fds   RING_CHANNEL_FDS descriptors that come with the reply; NULL: none
 * @return errno value
 */
int polca_call(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, struct ring_reply *reply, int *fds);
/** Likewise, with a descriptor for polca. */
int polca_call_passing(struct polca_context *c, enum ring_request_code code,
	struct ring_request *req, size_t size, int pass, struct ring_reply *reply);
/** True if polca has closed the connection: it has ended. */
bool polca_is_gone(const struct polca_context *c);
/** A request that names a slot and is answered by success only. */
int polca_call_slot(struct polca_context *c, enum ring_request_code code, uint32_t slot);
/** Likewise, of a request that ends an object: without polca there is none, and it succeeds. */
int polca_call_destroy(struct polca_context *c, enum ring_request_code code, uint32_t slot);
#define POLCA_CALL(c, code, req, member, reply)                                                    \
	polca_call(c, code, req, sizeof((req)->member), reply, NULL)

/** A new connection to this socket, if its server may be trusted. @return errno value */
int polca_socket_open(const char *path, int *opened);
/**
 * Tell the server that no request follows, and wait until it has closed its end.
 *
 * @return false: it has not, in this time
 */
bool polca_socket_end(int socket, int wait_ms);
/** One request over a connection that is no device's. @param fds  NULL: none; else one */
int polca_socket_ask(int socket, enum ring_request_code code, struct ring_request *req, size_t size,
	struct ring_reply *reply, int *fd);

/* --- rdmacm.c --- */
/** Redirect librdmacm's own calls, loaded now or later; its device is this socket's polca. */
void rdmacm_redirect(const char *socket);

/* --- channel.c --- */
void contexts_add(struct polca_context *c);
/** The mirror of a device that this process has open over the same socket; -1: none. */
int contexts_mirror(const struct polca_device *device);
/** Also close what it has open. */
void contexts_remove(struct polca_context *c);
/** Redirect libibverbs's own system calls; before the first device is opened. */
void channel_redirect(void);
/** Call for each open context, with a lock on the list. @return what a call returned, if not 0 */
int contexts_each(int (*call)(struct polca_context *c, void *arg), void *arg);

/* --- dead.c --- */
/** Have a thread wait for polca's end. @return errno value */
int death_watch(struct polca_context *c);
/** The program ends the device: that polca closes the connection is no death. */
void death_ignore(struct polca_context *c);
/** Take the context off the list, and close what it has open. */
void death_forget(struct polca_context *c);
/** If polca is gone: do all that follows from it, or wait until that is done. */
void death_notice(struct polca_context *c);
/** Likewise for all contexts of this process. */
void death_notice_all(void);
static inline bool
polca_is_dead(const struct polca_context *c)
{
	return __atomic_load_n(&c->dead, __ATOMIC_SEQ_CST);
}

/* --- events.c --- */
/** Give the object a cookie, before polca is asked for it. */
void object_begin(struct polca_context *c, struct polca_object *o, void *ibv, int back);
/** Polca has made it. */
void object_add(struct polca_context *c, struct polca_object *o);
/** Polca has destroyed it: no event names it any more, also none that is in a pipe. */
void object_remove(struct polca_context *c, const struct polca_object *gone, int channel_fd);
/** Wait until the program has acknowledged all events that it got. */
void events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
	uint32_t got);
/** Tell who sleeps on the CQ's channel. */
void event_wake(const struct polca_object *cq);
void event_wake_all(struct polca_context *c);
/** The last event: IBV_EVENT_DEVICE_FATAL. */
void event_fatal(struct polca_context *c);
/** In the place of read(2), for libibverbs. */
ssize_t event_read(int fd, void *buf, size_t count);

/* --- retire.c --- */
/** Enter a new queue pair in the tables of its CQs, and take it out again. */
void users_add(struct polca_qp *qp);
void users_remove(struct polca_qp *qp);
/** After RESET nothing is outstanding, and what was completed before is no longer in the CQs. */
void users_reset(struct polca_qp *qp);
/** A completion is polled: its request is no longer outstanding. The caller holds the CQ's lock. */
void retire(struct polca_cq *cq, const struct ring_completion *completion);
/** Completions of what polca's end left outstanding, flushed. The caller holds the CQ's lock. */
int retire_flushed(struct polca_cq *cq, int num, struct ibv_wc *wc);

/* --- device.c --- */
/** How long ibv_close_device() waits for polca; tests wait for less. */
extern int polca_close_wait_ms;

/* --- memory.c --- */
struct ibv_mr *polca_reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
	int access);
int polca_dereg_mr(struct verbs_mr *verbs);
struct ibv_mw *polca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int polca_dealloc_mw(struct ibv_mw *mw);
/** Make all registered pages private again. */
void regions_return(struct polca_context *c);

/* --- cq.c --- */
struct ibv_cq *polca_create_cq(struct ibv_context *context, int cqe,
	struct ibv_comp_channel *channel, int vector);
int polca_destroy_cq(struct ibv_cq *ibv);
int polca_poll_cq(struct ibv_cq *ibv, int num, struct ibv_wc *wc);
int polca_req_notify_cq(struct ibv_cq *ibv, int solicited_only);

/* --- cq_ex.c --- */
struct ibv_cq_ex *polca_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

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
int polca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int polca_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** The queue's head is published: tell the worker, and end its sleep. */
void polca_ring_bell(const struct polca_queue *q);
/**
 * Fill a receive queue, and ring once. The caller holds the queue's lock.
 *
 * @param most  requests that the queue takes
 */
int polca_post_receives(struct polca_queue *q, struct ring_end *ring, uint32_t max_sge,
	uint32_t most, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* --- wr.c --- */
/** ibv_qp_create_send_ops_flags that ibv_wr_* can do. */
bool wr_operations_allowed(uint64_t operations);
/** Give the queue pair ibv_wr_*. */
void wr_set_operations(struct polca_qp *qp);

#endif
