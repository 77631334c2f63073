/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_RDMACM_PRIVATE_H
#define ENGINE_RDMACM_PRIVATE_H

/**
 * @file
 * Private to lib/engine's rdmacm_*.c.
 *
 * An ID belongs to the control thread. Its connection (struct rdmacm_conn) is the user of a
 * connection of lib/cm: a worker writes what came into it, sets a note, and puts it on a list that
 * the control thread empties. It lives until the CM has released it, be its ID destroyed or not.
 */

#include <sys/queue.h>

#include <rdma/rdma_user_cm.h>

#include "engine/connections.h"
#include "engine/rdmacm.h"
#include "engine/verbs_private.h"

#define RDMACM_BACKLOG_MAX 128
#define RDMACM_BUCKETS     1024 /* of bound IDs, by port number */

/** As enum rdma_cm_event_type, which only librdmacm's own header has. */
enum rdmacm_event_type {
	RDMACM_EVENT_ADDR_RESOLVED = 0,
	RDMACM_EVENT_ADDR_ERROR = 1,
	RDMACM_EVENT_ROUTE_RESOLVED = 2,
	RDMACM_EVENT_CONNECT_REQUEST = 4,
	RDMACM_EVENT_CONNECT_RESPONSE = 5,
	RDMACM_EVENT_CONNECT_ERROR = 6,
	RDMACM_EVENT_UNREACHABLE = 7,
	RDMACM_EVENT_REJECTED = 8,
	RDMACM_EVENT_ESTABLISHED = 9,
	RDMACM_EVENT_DISCONNECTED = 10,
	RDMACM_EVENT_TIMEWAIT_EXIT = 15,
};

/** What a program binds, or resolves. */
struct rdmacm_address {
	uint16_t family; /* AF_INET, AF_INET6; 0: none */
	uint16_t port; /* of its port space */
	uint32_t scope;
	union gid gid; /* zero, or ::ffff:0.0.0.0: any */
};

/** As the kernel's enum rdma_cm_state. */
enum rdmacm_state {
	RDMACM_IDLE,
	RDMACM_BOUND,
	RDMACM_ADDR_QUERY,
	RDMACM_ADDR_RESOLVED,
	RDMACM_ROUTE_RESOLVED,
	RDMACM_CONNECT, /* a request is sent or has come, or what followed */
	RDMACM_LISTEN,
};

struct rdmacm_channel {
	struct rdmacm_program *program;
	uint32_t slot;
	int end[2]; /* a socket pair: ours, and the program's, of which we keep a descriptor */
	bool readable;
	TAILQ_HEAD(, rdmacm_event) events;
};

/** An event that the program has not fetched. */
struct rdmacm_event {
	TAILQ_ENTRY(rdmacm_event) link;
	struct rdmacm_id *id; /* which counts it */
	struct rdmacm_id *child; /* CONNECT_REQUEST: the new ID, whose .request it is; else NULL */
	struct rdma_ucm_event_resp resp;
};

struct rdmacm_id {
	struct rdmacm_program *program;
	struct rdmacm_channel *channel;
	uint32_t number;
	uint64_t uid; /* by which the library knows it; 0: it has not accepted the connection yet */
	uint16_t ps;
	enum rdmacm_state state;
	struct rdmacm_address src, dst;
	int port; /* of polca; -1: any */
	uint16_t sgid_index;
	/* .src and .port as the program left them: those again after a failed search for the way */
	struct rdmacm_address bound_src;
	int bound_port;
	LIST_ENTRY(rdmacm_id) bound_link;
	bool bound;
	/* ADDR_QUERY: in the list of those that wait for a neighbour */
	LIST_ENTRY(rdmacm_id) waiting_link;
	uint64_t deadline; /* TSC */
	struct cm_path path; /* from ADDR_RESOLVED on */
	struct rdmacm_conn *conn;
	struct rdmacm_listener *listener;
	/*
	 * The CONNECT_REQUEST whose new ID this is, until the program fetches it: to its commands
	 * the ID does not exist before that. Both are on the listening ID's channel.
	 */
	struct rdmacm_event *request;
	uint32_t events_waiting;
	uint32_t events_fetched;
	bool reuse; /* options */
	bool ipv6_only;
	uint8_t tos;
	uint8_t ack_timeout; /* 0: the path's */
};

struct rdmacm_program {
	LIST_ENTRY(rdmacm_program) link;
	struct engine *engine;
	struct rdmacm_limits limits;
	uid_t uid;
	pid_t pid;
	struct rdmacm_channel **channel; /* by slot; NULL: free */
	struct rdmacm_id **id; /* by number; NULL: free */
	uint32_t next_id; /* where to look for a free number first */
};

/* Notes of a worker about a connection, in the order in which they can come. */
#define RDMACM_REQUESTED   0x01
#define RDMACM_RESPONDED   0x02
#define RDMACM_ESTABLISHED 0x04
#define RDMACM_ENDED       0x08
#define RDMACM_RELEASED    0x10

/** A message of the peer. */
struct rdmacm_message {
	struct cm_info info;
	uint8_t private_data[CM_PRIVATE_MAX];
	uint8_t private_len;
};

struct rdmacm_conn {
	struct rdmacm *rdmacm;
	/* written by the worker before its note */
	cm_id cm_id;
	struct cm_request request; /* passive side; its private data are below */
	uint8_t request_data[CM_REQ_PRIVATE];
	struct rdmacm_message answer; /* REP, or passive side: RTU */
	struct rdmacm_message end;
	uint32_t notes; /* atomic */
	struct rdmacm_conn *next; /* in the list of those with notes; passed on by .notes */
	/* control thread */
	unsigned int worker;
	struct rdmacm_id *id; /* NULL: destroyed, or no ID yet */
	struct rdmacm_listener *listener; /* a request that waits for its ID */
	struct cm_info peer; /* of the REQ, or the REP; .id 0: has not come */
	bool active;
	bool established;
	bool ended;
	uint8_t responder_resources; /* of our CONNECT or ACCEPT */
	uint8_t initiator_depth;
};

/** The listener of one ID; workers take connections from .spare. */
struct rdmacm_listener {
	struct rdmacm_id *id;
	struct rdmacm_address address;
	int port; /* of polca; -1: any */
	bool ipv6_only;
	uint32_t backlog;
	uint32_t waiting; /* requests that the program has not fetched */
	struct rdmacm_conn *spare[RDMACM_BACKLOG_MAX]; /* atomic: a worker takes, we fill */
};

/** The listeners of a service ID, as workers see them: a list that gets longer is replaced. */
struct rdmacm_listeners {
	uint32_t num; /* atomic */
	struct rdmacm_listener *listener[]; /* atomic */
};

struct rdmacm_service {
	LIST_ENTRY(rdmacm_service) link;
	struct rdmacm *rdmacm;
	uint64_t service_id;
	struct rdmacm_listeners *listeners; /* atomic */
};

/** All programs. */
struct rdmacm {
	struct engine *engine;
	LIST_HEAD(, rdmacm_program) programs;
	LIST_HEAD(, rdmacm_id) bound[RDMACM_BUCKETS];
	LIST_HEAD(, rdmacm_id) waiting;
	LIST_HEAD(, rdmacm_service) services;
	struct event *timer; /* runs while IDs wait for neighbours */
	struct event *wakeup;
	int wakeup_fd;
	unsigned int turn; /* the worker of the next connection, modulo num_workers */
	struct rdmacm_conn *noted; /* atomic: a stack */
	uint32_t num_conns;
};

/** A command as it is executed. */
struct rdmacm_call {
	struct rdmacm_program *program;
	struct rdmacm_channel *channel;
	struct rdmacm_channel *from; /* MIGRATE_ID */
	struct rdmacm_id *id;
	const void *body;
	size_t size; /* of the body: the structure's, and what follows it */
	struct ring_cm_reply *reply;
	uint16_t out; /* room that the program has for the response */
	struct error *err;
};

/* --- rdmacm_id.c --- */
struct rdmacm_id *rdmacm_id_new(struct rdmacm_program *p, struct rdmacm_channel *ch,
	struct error *err);
/** An ID that has nothing yet, or nothing any more. */
void rdmacm_id_free(struct rdmacm_id *id);

/* --- rdmacm_events.c --- */
int rdmacm_events_open(struct rdmacm_channel *ch, struct error *err);
void rdmacm_events_close(struct rdmacm_channel *ch);
/** An event for the program, unless it does not know the ID yet, or there is no memory. */
struct rdmacm_event *rdmacm_event_put(struct rdmacm_id *id, enum rdmacm_event_type type,
	int status);
/** Parameters of a message from the peer. */
void rdmacm_event_param(struct rdmacm_event *ev, const struct cm_info *info,
	const uint8_t *private_data, uint8_t len);
/** Drop an ID's events. @return an ID whose request was among them: destroy it, and go on */
struct rdmacm_id *rdmacm_events_drop(struct rdmacm_id *id);
void rdmacm_events_move(struct rdmacm_id *id, struct rdmacm_channel *to);
int rdmacm_get_event(struct rdmacm_call *c);

/* --- rdmacm_address.c --- */
bool rdmacm_address_is_any(const struct rdmacm_address *a);
bool rdmacm_address_equal(const struct rdmacm_address *a, const struct rdmacm_address *b);
/** @param size  what the program says; -EINVAL, -EAFNOSUPPORT */
int rdmacm_address_read(const void *sockaddr, size_t size, struct rdmacm_address *a,
	struct error *err);
/** @return bytes written to @p sockaddr, which has room for a struct sockaddr_in6 */
uint16_t rdmacm_address_write(const struct rdmacm_address *a, void *sockaddr);
int rdmacm_bind(struct rdmacm_id *id, const struct rdmacm_address *a, struct error *err);
/** Before the ID listens: no other ID may have its address, not even by REUSEADDR. */
int rdmacm_port_own(struct rdmacm_id *id, struct error *err);
void rdmacm_unbind(struct rdmacm_id *id);
int rdmacm_bind_ip(struct rdmacm_call *c);
int rdmacm_bind_any(struct rdmacm_call *c);

/* --- rdmacm_resolve.c --- */
void rdmacm_resolve_watch(struct rdmacm *r);
int rdmacm_resolve_ip(struct rdmacm_call *c);
int rdmacm_resolve_addr(struct rdmacm_call *c);
int rdmacm_resolve_route(struct rdmacm_call *c);

/* --- rdmacm_query.c --- */
int rdmacm_query_route(struct rdmacm_call *c);
int rdmacm_query(struct rdmacm_call *c);
int rdmacm_init_qp_attr(struct rdmacm_call *c);
int rdmacm_set_option(struct rdmacm_call *c);

/* --- rdmacm_listen.c --- */
int rdmacm_listen(struct rdmacm_call *c);
void rdmacm_unlisten(struct rdmacm_listener *l);

/* --- rdmacm_conn.c --- */
/** Counts the new connection; rdmacm_conn_free() its end. NULL: no memory */
struct rdmacm_conn *rdmacm_conn_new(struct rdmacm *r);
void rdmacm_conn_free(struct rdmacm_conn *conn);
/** The program has fetched a request, or it is gone. */
void rdmacm_listener_refill(struct rdmacm_listener *l);
/** Worker. */
void rdmacm_note(struct rdmacm_conn *conn, uint32_t note);
void rdmacm_established(void *user, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len);
void rdmacm_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len);
void rdmacm_released(void *user);
extern const struct cm_user rdmacm_active_user;

/** Arguments of a call to the connection's worker. */
struct rdmacm_conn_call {
	struct rdmacm_conn *conn;
	const struct cm_connect *connect;
	const struct cm_conn_param *param;
	uint16_t reason;
	const uint8_t *private_data;
	uint8_t private_len;
	struct error *err;
};
int rdmacm_conn_call(struct rdmacm_conn *conn, worker_fn fn, struct rdmacm_conn_call *call);
/** These are cm_connect(), cm_accept(), ... */
int rdmacm_connect_here(struct worker *w, void *arg);
int rdmacm_accept_here(struct worker *w, void *arg);
int rdmacm_ready_here(struct worker *w, void *arg);
int rdmacm_heard_here(struct worker *w, void *arg);
int rdmacm_refuse_here(struct worker *w, void *arg);
int rdmacm_disconnect_here(struct worker *w, void *arg);
void rdmacm_refuse(struct rdmacm_conn *conn, uint16_t reason);
/** End a connection whose ID is destroyed. */
void rdmacm_abandon(struct rdmacm_conn *conn);

/* --- rdmacm_notes.c --- */
/** Control thread: process the notes of all workers. */
void rdmacm_run(struct rdmacm *r);

/* --- rdmacm_connect.c --- */
int rdmacm_connect(struct rdmacm_call *c);
int rdmacm_accept(struct rdmacm_call *c);
int rdmacm_reject(struct rdmacm_call *c);
int rdmacm_disconnect(struct rdmacm_call *c);
int rdmacm_notify(struct rdmacm_call *c);

#endif
