/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_PRIVATE_H
#define ENGINE_CLIENTS_PRIVATE_H

/**
 * @file
 * Private to lib/engine's clients_*.c. What a worker reads of a client is changed by commands to
 * that worker only, so nothing here needs a lock.
 */

#include <sys/queue.h>
#include <sys/stat.h>

#include "engine/clients.h"
#include "engine/verbs_private.h"
#include "ring/doorbell.h"
#include "ring/queue.h"

/* --- clients_segment.c --- */

/** A client's segment, and which pages of its storage are in use. */
struct client_segment {
	int fd;
	uint8_t *base;
	struct ring_geometry geometry;
	uint64_t storage; /* offset */
	uint32_t num_pages;
	uint64_t *pages; /* a bit each: in use */
	uint64_t *stale; /* a bit each: has been in use, and is not zero */
};

int client_segment_create(struct client_segment *s, uint32_t queues, uint32_t cqs, uint64_t storage,
	struct error *err);
void client_segment_destroy(struct client_segment *s);
/** Storage for the entries of a ring, zeroed. @param offset  in the segment */
int client_segment_alloc(struct client_segment *s, uint64_t bytes, uint64_t *offset,
	struct error *err);
/** Offset 0 is none. */
void client_segment_free(struct client_segment *s, uint64_t offset, uint64_t bytes);

static inline void *
client_segment_at(const struct client_segment *s, uint64_t offset)
{
	return s->base + offset;
}

/* --- objects --- */

/** A queue pair's queues, or a shared receive queue. */
struct client_queue {
	/* read by the worker */
	struct ring_end send;
	struct ring_end receive;
	struct ring_queue *shared;
	uint32_t number; /* QPN or SRQ number */
	uint8_t max_send_sge;
	uint8_t max_recv_sge;
	uint16_t max_inline;
	bool is_srq;
	bool waits; /* in the client's list .waiting */
	bool lingers; /* in the client's table .lingering */
	uint8_t quiet; /* turns in which no request was taken */
	uint32_t taken; /* requests, when the worker last looked */
	TAILQ_ENTRY(client_queue) waiting_link;
	struct client_queue *srq; /* of a QP; NULL: none */
	/* control thread */
	uint64_t send_offset;
	uint64_t receive_offset;
	uint64_t cookie;
	struct ring_caps caps;
	uint32_t users; /* of an SRQ */
};

struct client_cq {
	struct verbs_client *client;
	struct ring_end ring;
	struct ring_cq *shared;
	uint32_t cqn;
	bool listed; /* in the client's list .due */
	bool solicited; /* a solicited or failed completion came since the last event */
	bool has_moved; /* several workers have written to it: see client_cq_copy() */
	TAILQ_ENTRY(client_cq) due_link;
	int event_fd; /* writing end of the completion channel's pipe; -1: none */
	uint64_t cookie;
	/* control thread */
	uint64_t offset;
	uint32_t channel;
};

struct client_mr {
	uint32_t key; /* 0: free */
	uint64_t bytes; /* of whole pages */
};

struct client_channel {
	int fd; /* writing end; -1: free */
	uint32_t users;
};

#define CLIENT_FREE UINT32_MAX

#define CLIENT_LINGERING 16 /* a turn looks at so many queues of a client without doorbells */

/** Ends of a pipe of events: the program's two, which it gets, and polca's own. */
enum client_pipe_end {
	CLIENT_PIPE_READ,
	CLIENT_PIPE_PROGRAM, /* the program's writing end, with flags of its own */
	CLIENT_PIPE_POLCA, /* a write never waits */
	CLIENT_PIPE_ENDS
};

/** The process that has the device open. */
struct client_owner {
	uint32_t pid;
	uint32_t uid;
	char command[16];
};

struct verbs_client {
	/* read by the worker */
	uint32_t look; /* its place in worker_clients.looks */
	bool takes_turns; /* it is in worker_clients.turns */
	uint32_t quiet; /* turns without work */
	int32_t credit; /* of requests; below 0: its last turn was longer than its share */
	TAILQ_ENTRY(verbs_client) turn_link;
	struct rc_share share; /* of all its QPs */
	struct ring_doorbells doorbells;
	struct ring_queue *shared_queues;
	struct ring_segment *shared;
	struct client_queue **queue; /* by slot; NULL: free */
	/* queues with entries that lib/rc had no room for, or a turn no time; the next one first */
	TAILQ_HEAD(client_waiting, client_queue) waiting;
	TAILQ_HEAD(client_due, client_cq) due; /* with completions to copy, the next one first */
	TAILQ_ENTRY(verbs_client) completing_link; /* while .due is not empty */
	/* queues that had requests of late: their .rung stays set, so the program rings for none */
	struct client_queue *lingering[CLIENT_LINGERING];
	uint32_t num_lingering;
	/* written by the worker alone */
	uint64_t posted;
	uint64_t completed;
	/* control thread */
	struct verbs_client *next_client; /* of all workers */
	uint64_t id;
	struct client_owner owner;
	uint64_t refused; /* requests, by a limit */
	uint64_t active_before; /* .posted and .completed at the last look of clients_balance() */
	uint64_t rests_until; /* TSC: it does not move by itself before */
	unsigned int rest; /* seconds, after its last move by itself; 0: it never did */
	unsigned int moved_from; /* by that move: the worker, and the load that it had */
	uint64_t load_before;
	bool move_unjudged; /* whether it was of use is not known yet */
	bool stay_logged; /* that it could not move */
	struct engine *engine;
	unsigned int worker;
	uint16_t port;
	struct verbs_client_limits limits;
	struct client_segment segment;
	int mirror_fd;
	struct stat mirror; /* of that file: it never changes */
	int wake[2]; /* a pipe: the program writes to end the sleep of its worker */
	int event_pipe[CLIENT_PIPE_ENDS]; /* asynchronous events */
	struct engine_client_use use;
	uint32_t *pd; /* by slot; CLIENT_FREE */
	struct client_mr *mr;
	uint32_t *mw; /* a key that the window has had; 0: free */
	struct client_cq **cq;
	struct client_channel *channel;
};

/** The object in a slot that the client named, or NULL and an error. */
struct client_queue *client_qp_at(const struct verbs_client *c, uint32_t slot, struct error *err);
struct client_queue *client_srq_at(const struct verbs_client *c, uint32_t slot, struct error *err);
struct client_cq *client_cq_at(const struct verbs_client *c, const char *what, uint32_t slot,
	struct error *err);
/** The domain's number. */
int client_pd_at(const struct verbs_client *c, uint32_t slot, uint32_t *pd, struct error *err);

/* --- clients_queue.c --- */

/** Arguments of a command to the client's worker. */
struct client_queue_call {
	struct verbs_client *client;
	struct client_queue *queue;
	uint32_t slot;
	const struct qp_init_attr *init; /* of a QP */
	const struct ring_srq_create *srq; /* of an SRQ */
	uint32_t pd;
	uint32_t limit;
	struct error *err;
};

/** That its rings have room for. */
static inline uint32_t
client_queue_requests(const struct client_queue *q)
{
	return q->caps.max_send_wr + q->caps.max_recv_wr;
}

/** A free slot of the table, which has a place for each queue that the limits allow. */
uint32_t client_free_slot(const struct verbs_client *c);
/** Rings of q->caps for a queue in this slot; client_rings_free() also after a failure. */
int client_rings_make(struct verbs_client *c, struct client_queue *q, uint32_t slot, bool send,
	bool receive, struct error *err);
void client_rings_free(struct verbs_client *c, const struct client_queue *q);
void client_queue_reply(const struct client_queue *q, uint32_t slot,
	struct ring_queue_reply *reply);
int client_queue_destroy(struct verbs_client *c, struct client_queue *q, uint32_t slot,
	struct error *err);

/* clients_post.c: on the worker: the queue ends */
void client_queue_forget(struct verbs_client *c, struct client_queue *q);
/* clients_cq.c: control thread; all objects of a kind */
void client_cqs_destroy(struct verbs_client *c);
/* clients_mem.c */
void client_mrs_destroy(struct verbs_client *c);
void client_mws_destroy(struct verbs_client *c);
void client_pds_destroy(struct verbs_client *c);
/* clients_queue.c */
void client_queues_destroy(struct verbs_client *c);

/** Add to a counter that the worker writes and the control thread reads. */
static inline void
client_count(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* --- clients_limits.c: is there room for one more, of the client and of its user? --- */

/** What all clients of the user of @p of have. */
void client_use_of_user(const struct verbs_client *of, struct engine_client_use *use);
/** What is limited: a row of the table each. */
enum client_limit {
	CLIENT_LIMIT_QP,
	CLIENT_LIMIT_CQ,
	CLIENT_LIMIT_SRQ,
	CLIENT_LIMIT_PD,
	CLIENT_LIMIT_MR,
	CLIENT_LIMIT_MW,
	CLIENT_LIMIT_REQUESTS, /* that the queues have room for */
	CLIENT_LIMIT_BYTES, /* of regions */
	CLIENT_LIMITS
};
/** @param more  of them; 1 for an object. @retval -ENOMEM  client or user may not have so many */
int client_allow(const struct verbs_client *c, enum client_limit what, uint64_t more,
	struct error *err);
/** A region. @param max_bytes  out: the most that its whole pages may take */
int client_allow_mr(const struct verbs_client *c, uint64_t bytes, uint64_t *max_bytes,
	struct error *err);

/* --- clients_complete.c --- */
/** On its worker, at once: copy as many completions as the program's ring has room for. */
void client_cq_empty(struct worker *w, struct client_cq *cq);

/* --- clients_info.c --- */
/** The client goes: keep what it has counted. */
void client_count_end(const struct verbs_client *c);

/* --- clients_events.c --- */
/**
 * A writing end of the same pipe with flags of its own: those of a descriptor that is passed are
 * shared with it, and the program could make polca wait.
 */
int client_open_again(int fd, struct error *err);
int client_pipe(int ends[CLIENT_PIPE_ENDS], struct error *err);

/* --- clients_sleep.c: the client's wake pipe ends its worker's sleep --- */
/** Control thread. */
int client_wake_join(struct worker *w, struct verbs_client *c, struct error *err);
/**
 * From now on it does not. Worker @p w, which then reads it no more; or the control thread, after
 * whose call the worker may still read it, until it has run a command.
 */
void client_wake_leave(struct worker *w, struct verbs_client *c);
/** Control thread, before a move to worker @p w: take what could be refused later. */
int client_wake_prepare(struct worker *w, struct verbs_client *c, struct error *err);
/** Worker @p w, after client_wake_prepare(): now the pipe ends its sleep. */
void client_wake_accept(struct worker *w, struct verbs_client *c);

/* --- clients.c --- */
/** True if the QP is of a device that this program has opened. */
bool clients_own_qp(const struct engine *e, uid_t uid, pid_t pid, uint32_t qpn);
/**
 * The user to whose account next hops go that nobody answers for (struct engine_ah): all programs
 * of a user share it.
 */
union gid clients_account(uid_t uid);
int clients_create(struct engine *e, struct error *err);
void clients_destroy(struct engine *e);

#endif
