/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_CM_H
#define CM_CM_H

/**
 * @file
 * The communication manager on QP1 (cm.md; class 0x07, version 2): establishes RC connections
 * with any IB CM or rdma_cm peer, moves them to alternate paths, ends them, and answers SIDR.
 *
 * A connection and its QP belong to one worker. The CM creates the QP, moves it through its states
 * and destroys it. The worker of a REQ is a hash of the remote CA GUID and QPN, so that repeated
 * and stale REQs reach the worker of the connection they are about; our communication ID contains
 * the worker of all other messages (cm_owner()). Each worker has one struct cm; no other thread
 * uses it, except to read counters. The CM reads no clock, does not log and does not call EAL.
 * After creation only lib/rc allocates memory, for QPs.
 *
 * A user of connections (lib/svc, and lib/engine for the control socket) implements struct
 * cm_user: functions that the CM calls on the connection's worker. They may call the CM, also for
 * the same connection.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/limit_peer.h"
#include "base/timer_wheel.h"
#include "cm/codes.h"
#include "mad/mad.h"
#include "port/port.h"
#include "rc/rc.h"

#define CM_CLASS         0x07
#define CM_CLASS_VERSION 2

/* room for private data (cm.md 2, 7) */
#define CM_REQ_PRIVATE      92
#define CM_REQ_USER_PRIVATE 56 /* after the RDMA-CM header */
#define CM_REP_PRIVATE      196
#define CM_RTU_PRIVATE      224
#define CM_REJ_PRIVATE      148
#define CM_DREQ_PRIVATE     220
#define CM_PRIVATE_MAX      224

struct cm;

/**
 * Our communication ID of a connection, unique over all workers. 0: none. Stale IDs are detected.
 */
typedef uint32_t cm_id;

/** The path of a connection's packets, or of UD datagrams. */
struct cm_path {
	struct av av; /**< complete, except dmac if .neighbour provides it */
	uint32_t neighbour;
	uint16_t sgid_index;
	uint8_t src_path_bits;
	uint16_t pkey_index;
	uint16_t pkey;
	uint16_t mtu; /**< path MTU, bytes */
	uint8_t rate; /**< PathRecord's code, 0: the port's */
	uint8_t packet_life; /**< PacketLifeTime code */
	bool present; /**< alternate paths only: false if there is none */
};

/** The RDMA-CM header before a REQ's private data (cm.md 7). */
struct cm_rdma {
	bool present;
	uint16_t src_port;
	union gid src; /**< IPv4 as ::ffff:a.b.c.d */
	union gid dst;
};

/* Service IDs of RDMA-CM */
#define CM_PS_IPOIB 0x0002
#define CM_PS_TCP   0x0106
#define CM_PS_UDP   0x0111
#define CM_PS_IB    0x013F
static inline uint64_t
cm_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/** The contents of a received REQ; host order. */
struct cm_request {
	uint64_t service_id;
	cm_id id; /**< of the connection, for cm_accept() */
	uint16_t port; /**< local port of the path */
	uint32_t remote_id;
	uint64_t remote_ca_guid;
	uint32_t remote_qpn;
	uint32_t remote_psn; /**< the first PSN that we send */
	uint32_t local_psn; /**< the first PSN that we expect */
	uint8_t ack_timeout; /**< of a QP that answers this request, a code */
	uint8_t responder_resources; /**< Reads and Atomics that the peer answers at once */
	uint8_t initiator_depth; /**< Reads and Atomics that the peer wants outstanding */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool srq;
	bool flow_control;
	struct cm_path path; /**< to the peer */
	struct cm_path alternate;
	struct cm_rdma rdma;
	const uint8_t *private_data; /**< after the RDMA-CM header if there is one */
	uint8_t private_len;
};

/** Our parameters of a connection, on either side. */
struct cm_conn_param {
	struct qp_init_attr qp; /**< for the QP that the CM creates */
	/**
	 * The user's own QP; 0: the CM creates one. The CM never touches the user's, which may
	 * belong to another worker, and takes only .srq and .flow_control from .qp.
	 */
	uint32_t qpn;
	uint32_t access; /**< MEM_ACCESS_REMOTE_... of the QP */
	uint8_t responder_resources; /**< maximum; the peer's values and our limits lower it */
	uint8_t initiator_depth;
	uint8_t retry_count; /**< active side only: both sides use it */
	uint8_t rnr_retry_count; /**< RNR retries that the peer shall make; 7: for ever */
	uint8_t min_rnr_timer;
	uint8_t private_data[CM_PRIVATE_MAX];
	uint8_t private_len;
};

/** Why a connection ended or was not established. */
enum cm_end {
	CM_END_DISCONNECTED, /**< DREQ from either side, answered by a DREP or not */
	CM_END_REJECTED, /**< the peer's REJ: .reason */
	CM_END_REFUSED, /**< our REJ: .reason */
	CM_END_TIMEOUT, /**< the peer did not answer, or our user did not decide */
	CM_END_STALE, /**< the peer uses its QPN for a new connection */
	CM_END_QP_ERROR, /**< an error moved the QP to ERR */
	CM_END_CANCELLED, /**< by us, before it was established */
	CM_END_COUNT
};

struct cm_info {
	cm_id id;
	uint32_t remote_id;
	uint64_t tid;
	uint64_t service_id;
	bool active; /**< started by our cm_connect() */
	uint8_t state; /**< enum cm_state (codes.h) */
	uint32_t qpn;
	uint32_t remote_qpn;
	uint64_t remote_ca_guid;
	struct cm_path path;
	struct cm_path alternate;
	struct cm_path proposed; /**< present while our LAP waits for its APR */
	struct cm_rdma rdma;
	uint8_t responder_resources; /**< as agreed */
	uint8_t initiator_depth;
	/* for a QP of the user's own */
	uint32_t rq_psn; /**< the first PSN that we expect */
	uint32_t sq_psn; /**< the first PSN that we send */
	uint8_t ack_timeout; /**< a code */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	enum cm_end end; /**< valid from TIMEWAIT on */
	uint16_t reason; /**< REJ reason if REJECTED or REFUSED */
	uint64_t age; /**< time units since the connection was created */
};

#define CM_LATER 0xFFFF /**< returned by struct cm_user.request(): the user decides later */

/**
 * The user of a connection. The CM calls these functions on the connection's worker. @p user is the
 * pointer that request() returned or cm_connect() was given; it must stay valid until released().
 */
struct cm_user {
	const char *name;
	/**
	 * Passive side: a REQ for this listener came. Fill *param and *user. Unless this function
	 * refuses it or leaves *user NULL for seat(), the CM will call ended() and released().
	 * @return 0: accept; CM_LATER: the user will call cm_accept() or cm_refuse(); else a REJ
	 *         reason (codes.h), the REJ's private data being those in param
	 */
	uint16_t (*request)(void *listener, const struct cm_request *req,
		struct cm_conn_param *param, void **user);
	/**
	 * Passive side, if request() accepted and left *user NULL because it takes nothing for a
	 * peer that may be forged: the connection is established, set *user. prepare() and
	 * established() follow. The request is without private data.
	 * @retval negative errno: no place; the CM sends a DREQ
	 */
	int (*seat)(void *listener, const struct cm_request *req, void **user);
	/**
	 * The QP is created and in INIT, or after seat() in RTS: post receives. On the active side
	 * called inside cm_connect(). @retval negative errno: the CM sends REJ no resources or
	 * cm_connect() fails
	 */
	int (*prepare)(void *user, cm_id id, uint32_t qpn);
	/**
	 * Both sides may send. @p private_data is that of the REP (active side) or RTU (passive).
	 */
	void (*established)(void *user, const struct cm_info *info, const uint8_t *private_data,
		uint8_t len);
	/**
	 * The connection ended or will not be established. Its QP, if created, is in ERR and
	 * flushes its completions. Called once; the user must not post any more.
	 * @p private_data is that of the received REJ or DREQ, else NULL.
	 */
	void (*ended)(void *user, const struct cm_info *info, const uint8_t *private_data,
		uint8_t len);
	/** The QP is destroyed, after TIMEWAIT if there was one. The CM no longer uses @p user. */
	void (*released)(void *user);
	/**
	 * A message came, no receive was posted, and the QP sent an RNR NAK: post some. Not called
	 * again before the next post. May be NULL.
	 */
	void (*receives_wanted)(void *user);
	/**
	 * Passive side: may this peer connect at all? Asked before the REQ takes anything; false:
	 * REJ 8, invalid service ID. NULL: everybody may.
	 */
	bool (*admits)(void *listener, const struct cm_request *req);
	/**
	 * Active side, with a QP of the user's own: the REP came. The user moves its QP to RTS and
	 * calls cm_ready(), or cm_disconnect() to send a REJ. May be NULL if it has no such QP.
	 */
	void (*responded)(void *user, const struct cm_info *info, const uint8_t *private_data,
		uint8_t len);
};

struct cm_limits {
	uint32_t
		max_connections; /**< per worker, including those in TIMEWAIT, not half-open ones */
	uint32_t max_half_open; /**< per worker; half open: passive, not established yet */
	uint32_t max_half_open_per_peer; /**< a peer is a GID or LID */
	uint32_t max_connections_per_peer;
	uint32_t max_listeners;
	uint8_t response_timeout; /**< CM response timeouts in our REQs and LAPs, a code */
	uint8_t max_retries; /**< MaxCMRetries of our REQs, 0..15 */
	uint8_t ack_delay; /**< local CA ack delay, a code */
	uint8_t packet_life; /**< PacketLifeTime of RoCE paths, a code */
	uint8_t max_rd_atomic; /**< Reads and Atomics of a QP, each direction; lib/rc's limit */
	bool send_mra; /**< answer a repeated REQ by an MRA while our user has not decided */
};
extern const struct cm_limits cm_limits_default;

struct cm_config {
	unsigned int id;
	unsigned int workers;
	uint64_t hz;
	uint64_t hash_key; /**< secret; the same on all workers */
	const struct allocator *alloc;
	const struct rng *rng;
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct rc_worker *rc;
	uint64_t ca_guid;
	/** Attributes of a port, or NULL. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	/** Connections made, refused and ended. May be NULL; must not call back into lib/cm. */
	void (*event)(void *arg, const struct event *ev);
	void *event_arg;
	struct cm_limits limits;
};

/** Create a worker's CM and register its agents of class 0x07 with lib/mad. */
struct cm *cm_create(const struct cm_config *config);
/**
 * Release all connections without sending anything; users get released(), not ended(). Call it
 * before the rc and mad workers are destroyed.
 */
void cm_destroy(struct cm *cm);

/**
 * The worker that owns the connection of a CM message on QP1. Any lcore may call it, before the
 * ICRC check. It can be wrong for one message: the REJ of a peer that gave up its REQ before it got
 * our ID has no QPN to hash. The connection then ends by its own timer.
 *
 * @param mad  MAD_LEN bytes
 */
unsigned int cm_owner(uint64_t hash_key, unsigned int workers, const uint8_t *mad);
/**
 * The address that a peer at the far end of @p av is known by: its GID; on our own IB subnet its
 * LID, as ::lid, since all peers behind a router share the router's LID.
 */
union gid cm_address(const struct av *av);
/** The worker of a connection; any lcore may call it. */
unsigned int cm_worker_of(uint64_t hash_key, unsigned int workers, cm_id id);

/* --- listening: the caller makes the same calls on every worker --- */

/**
 * Give @p user the REQs whose service ID equals @p service_id in the bits of @p mask. If several
 * listeners match, the mask with the most bits wins.
 * @retval -EEXIST, -ENOSPC
 */
int cm_listen(struct cm *cm, uint64_t service_id, uint64_t mask, const struct cm_user *user,
	void *listener);
/** Stop listening; existing connections stay. @retval -ENOENT */
int cm_unlisten(struct cm *cm, uint64_t service_id, uint64_t mask);

/**
 * Set the UD QP that SIDR_REPs give for a listener. If 0, or before this call, the answer is
 * "unsupported". @retval -ENOENT
 */
int cm_listen_ud(struct cm *cm, uint64_t service_id, uint64_t mask, uint32_t qpn, uint32_t qkey);
/**
 * Accept after request() returned CM_LATER.
 * @retval -ENOENT  the connection has ended
 * @retval -EINVAL  it does not wait for its user
 */
int cm_accept(struct cm *cm, cm_id id, const struct cm_conn_param *param, uint64_t now);
/** End a half-open connection at once, because others want its place. @retval -ENOENT */
int cm_give_way(struct cm *cm, cm_id id, uint64_t now);
/** Refuse after request() returned CM_LATER: send a REJ. Calls ended(). */
int cm_refuse(struct cm *cm, cm_id id, uint16_t reason, const uint8_t *private_data, uint8_t len,
	uint64_t now);

/* --- connecting --- */

struct cm_connect {
	uint64_t service_id;
	struct cm_path path; /**< the caller has asked the SA and resolved the neighbour */
	struct cm_path alternate;
	struct cm_rdma rdma; /**< if .present, the RDMA-CM header precedes the private data */
	struct cm_conn_param param;
	const struct cm_user *ops;
	void *user;
	uint32_t remote_cm_qpn; /**< 0 stands for QP1 */
};
/**
 * Create a QP on this worker and send the REQ. The user's functions report the result.
 * @retval -ENOSPC, -ENOMEM, ... @p err says why; ended() and released() are not called
 */
int cm_connect(struct cm *cm, const struct cm_connect *what, uint64_t now, cm_id *id,
	struct error *err);
/**
 * Send the RTU after responded(): the connection is established.
 * @retval -ENOENT  the connection has ended
 * @retval -EINVAL  it does not wait for its user
 */
int cm_ready(struct cm *cm, cm_id id, uint64_t now);
/**
 * Data came to the QP of a user's own: they stand for a lost RTU.
 * @retval -ENOENT  the connection has ended
 * @retval -EINVAL  it does not wait for an RTU
 */
int cm_heard(struct cm *cm, cm_id id, uint64_t now);
/**
 * End a connection. If it is established, move its QP to ERR and send a DREQ; ended() is called
 * when the answer comes. Otherwise send a REJ (active side: timeout; passive side: consumer) and
 * call ended() at once.
 * @retval -ENOENT    no such connection
 * @retval -EALREADY  it is ending
 */
int cm_disconnect(struct cm *cm, cm_id id, const uint8_t *private_data, uint8_t len, uint64_t now);
/** Send a LAP that proposes an alternate path. The peer arms it and answers by APR; then we do. */
int cm_load_alternate(struct cm *cm, cm_id id, const struct cm_path *path, uint64_t now,
	struct error *err);
/**
 * An event of a QP. COMM_EST stands for a lost RTU; PATH_MIG makes the alternate path the primary
 * one; PATH_MIG_ERR removes the alternate path; QP_FATAL, QP_REQ_ERR and QP_ACCESS_ERR end the
 * connection; RQ_EMPTY calls receives_wanted(). Call it on the QP's worker, also inside lib/rc's
 * event(): it only notes the event for cm_run(). Events of other QPs are ignored.
 */
void cm_qp_event(struct cm *cm, const struct event *ev);

/**
 * Send messages that waited for the sink, act on QP events, release connections after TIMEWAIT.
 * @return pieces of work done, at most @p budget
 */
unsigned int cm_run(struct cm *cm, uint64_t now, unsigned int budget);
/** True if cm_run() has work. */
bool cm_pending(const struct cm *cm);

/**
 * Refuse new connections from an address (a LID is ::lid) until @p until, with REJ 3. At most
 * 1,024 addresses: the one that was paused first gives way.
 */
void cm_pause_peer(struct cm *cm, const union gid *addr, uint64_t until);
/** True if the address is paused now; for connections that are made without the CM. */
bool cm_is_paused(const struct cm *cm, const union gid *addr, uint64_t now);

/* --- queries and counters --- */

bool cm_get(const struct cm *cm, cm_id id, uint64_t now, struct cm_info *info);
/** The user pointer of a connection whose user is @p ops; else NULL. */
void *cm_user_of(const struct cm *cm, cm_id id, const struct cm_user *ops);
/** The connection of a QP of this worker; 0: none. */
cm_id cm_of_qp(const struct cm *cm, uint32_t qpn);
/** The next connection after *cursor, which starts at 0. @return false: no more */
bool cm_next(const struct cm *cm, uint32_t *cursor, uint64_t now, struct cm_info *info);

/* --- flight recorder: the last TRACE_STEPS steps of a connection --- */

enum cm_step_event { /* trace_step.event; outcome is the enum cm_state after it, number our ID */
	CM_STEP_OPENED,
	CM_STEP_RECEIVED, /**< what: enum cm_message; number: the peer's ID; expected: as known */
	CM_STEP_SENT, /**< what: enum cm_message; value: reason of a REJ */
	CM_STEP_TIMEOUT, /**< value: retries left */
	CM_STEP_ENDED, /**< what: enum cm_end */
	CM_STEP_COUNT
};

/** Start or stop recording. @retval -ENOENT no such connection @retval -ENOMEM */
int cm_trace_switch(struct cm *cm, cm_id id, bool on);
/** All connections of this worker, and new ones. @return how many were switched */
unsigned int cm_trace_switch_all(struct cm *cm, bool on);
/** @retval -ENOENT no such connection @retval -ENODATA its steps are not recorded */
int cm_trace(const struct cm *cm, cm_id id, struct trace *copy);

#define CM_STEP_TEXT_MAX 96
const char *cm_step_name(uint8_t event); /* "received" */
/** The message, or what happened. @return buf */
const char *cm_step_what(const struct trace_step *s, char buf[CM_STEP_TEXT_MAX]);
const char *cm_end_name(uint8_t end); /* why a connection ended, in words */

/* X(name, help): single writer, relaxed readers */
/* clang-format off */
#define CM_COUNTERS(X)                                                                             \
	X(connections, "connections established")                                                  \
	X(disconnects, "connections ended by DREQ, either side's")                                 \
	X(refused, "requests that we rejected")                                                    \
	X(rejected, "requests of ours that were rejected")                                         \
	X(timeouts, "connections given up because nobody answered in time")                        \
	X(stale, "connections ended because the peer uses their QPN again")                        \
	X(probes, "packets sent to ask whether a peer still has its QP, after a stale REQ")        \
	X(probe_limit, "stale REQs that caused no probe: too many probes at once")                 \
	X(duplicates, "messages received again")                                                   \
	X(retries, "messages sent again")                                                          \
	X(malformed, "messages dropped for impossible values")                                     \
	X(unmatched, "messages without a connection, or not valid in its state")                   \
	X(wrong_peer, "messages about a connection from an address that is not its peer's")        \
	X(half_open_limit, "requests dropped: too many of the same peer are half open")                \
	X(half_open_evicted, "half-open connections ended for newer ones")                         \
	X(unproven, "messages not sent: a stranger's address has had three bytes for each of its") \
	X(paused, "requests rejected: their sender has used wrong keys too often")                 \
	X(no_place, "connections ended as they were established: their service was full")          \
	X(prefix_limit, "connections refused: the peer's /24 or /64 has its share of them")        \
	X(no_resources, "requests rejected or not sent for lack of a QP or connection")            \
	X(tx_stall, "times a message had to wait for the sink")
/* clang-format on */

struct cm_counters {
#define X(name, help) uint64_t name;
	CM_COUNTERS(X)
#undef X
	uint64_t received[CM_MESSAGES]; /**< by enum cm_message (codes.h) */
	uint64_t sent[CM_MESSAGES];
	uint64_t rej_received[CM_REASONS]; /**< by REJ reason */
	uint64_t rej_sent[CM_REASONS];
};
struct cm_counter_info {
	const char *name;
	const char *help;
};
#define CM_COUNTER_COUNT (offsetof(struct cm_counters, received) / sizeof(uint64_t))
extern const struct cm_counter_info cm_counter_infos[CM_COUNTER_COUNT];
const struct cm_counters *cm_counters(const struct cm *cm);
/** Whom limits affected: its cm_address(). */
struct cm_limited {
	struct limit_peer half_open; /**< half_open_limit */
	struct limit_peer evicted; /**< half_open_evicted */
	struct limit_peer no_place;
	struct limit_peer no_resources;
};
/** Control thread: for limit_peer_take(). */
struct cm_limited *cm_limited(struct cm *cm);

#endif
