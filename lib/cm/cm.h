/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_CM_H
#define CM_CM_H

/**
 * @file
 * The communication manager on QP1 (cm.md; class 0x07, version 2): makes and ends RC connections
 * with any IB CM or rdma_cm peer.
 *
 * A connection belongs to one worker, and so does its QP, which the CM makes, moves through its
 * states and destroys. Which worker: of a REQ the hash of the remote CA GUID and QPN, so that
 * duplicates and stale requests meet; of all else our communication ID says so (cm_owner()). One
 * struct cm per worker, used there only, counters apart. Nothing reads a clock, logs or calls EAL;
 * nothing is allocated after creation but what lib/rc takes for a QP.
 *
 * Who uses connections (lib/svc, the control plane) is a struct cm_user: functions the CM calls on
 * the connection's worker. They may call back into the CM, for their own connection too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/timer_wheel.h"
#include "cm/codes.h"
#include "mad/mad.h"
#include "port/port.h"
#include "rc/rc.h"

#define CM_CLASS         0x07
#define CM_CLASS_VERSION 2

/* room for private data (cm.md 2, 7) */
#define CM_REQ_PRIVATE      92
#define CM_REQ_USER_PRIVATE 56 /* behind the RDMA-CM header */
#define CM_REP_PRIVATE      196
#define CM_RTU_PRIVATE      224
#define CM_REJ_PRIVATE      148
#define CM_DREQ_PRIVATE     220
#define CM_PRIVATE_MAX      224

struct cm;

/** Names a connection, appliance-wide: our communication ID. 0 names none; stale ones are noticed. */
typedef uint32_t cm_id;

/** Where the packets of a connection go; of a datagram (UD) too. */
struct cm_path {
	struct av av; /**< complete but for dmac, which .neighbour may stand for */
	uint32_t neighbour;
	uint16_t sgid_index;
	uint8_t src_path_bits;
	uint16_t pkey_index;
	uint16_t pkey;
	uint16_t mtu; /**< path MTU, bytes */
	uint8_t rate; /**< PathRecord's code, 0: the port's */
	uint8_t packet_life; /**< PacketLifeTime code */
	bool present; /**< of an alternate path: there is one */
};

/** Of an RDMA-CM connection: what stands in front of a REQ's private data (cm.md 7). */
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

/** A request to connect, as its REQ says it; host order. */
struct cm_request {
	uint64_t service_id;
	cm_id id; /**< the connection's, for cm_accept() */
	uint16_t port; /**< local port it came in on */
	uint32_t remote_id;
	uint64_t remote_ca_guid;
	uint32_t remote_qpn;
	uint32_t remote_psn; /**< where our sending starts */
	uint8_t responder_resources; /**< that the peer has */
	uint8_t initiator_depth; /**< that the peer wants of us */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool srq;
	bool flow_control;
	struct cm_path path; /**< back to the peer */
	struct cm_path alternate;
	struct cm_rdma rdma;
	const uint8_t *private_data; /**< behind the RDMA-CM header if there is one */
	uint8_t private_len;
};

/** How we take part in a connection; of either side. */
struct cm_conn_param {
	struct qp_init_attr qp; /**< of the QP to be made */
	uint32_t access; /**< MEM_ACCESS_REMOTE_... of the QP */
	uint8_t responder_resources; /**< the most; clipped by the peer's wish and our limits */
	uint8_t initiator_depth;
	uint8_t retry_count; /**< active side: for both */
	uint8_t rnr_retry_count; /**< that the peer shall have with us; 7: for ever */
	uint8_t min_rnr_timer;
	uint8_t private_data[CM_PRIVATE_MAX];
	uint8_t private_len;
};

/** How a connection ended, or why there was none. */
enum cm_end {
	CM_END_DISCONNECTED, /**< DREQ and DREP, or either side's DREQ at last unanswered */
	CM_END_REJECTED, /**< the peer's REJ: .reason */
	CM_END_REFUSED, /**< our REJ: .reason */
	CM_END_TIMEOUT, /**< silence */
	CM_END_STALE, /**< the peer has begun a new life */
	CM_END_QP_ERROR, /**< the QP went to ERR by itself */
	CM_END_CANCELLED, /**< by us, before it stood */
	CM_END_COUNT
};

struct cm_info {
	cm_id id;
	uint32_t remote_id;
	uint64_t tid;
	uint64_t service_id;
	bool active; /**< our cm_connect() */
	uint8_t state; /**< enum cm_state (codes.h) */
	uint32_t qpn;
	uint32_t remote_qpn;
	uint64_t remote_ca_guid;
	struct cm_path path;
	struct cm_path alternate;
	struct cm_rdma rdma;
	uint8_t responder_resources; /**< as agreed */
	uint8_t initiator_depth;
	enum cm_end end; /**< from TIMEWAIT on */
	uint16_t reason; /**< REJ reason, with REJECTED and REFUSED */
	uint64_t age; /**< time units since the first message */
};

#define CM_LATER 0xFFFF /**< struct cm_user.request(): the answer comes later */

/**
 * The user of a connection. All are called on its worker. @p user is what request() or cm_connect()
 * gave; it stays the user's until released().
 */
struct cm_user {
	const char *name;
	/**
	 * Passive: a REQ for this listener. Fill *param and *user. Once it is not refused, ended()
	 * and released() will be called.
	 * @return 0: accept; CM_LATER: cm_accept() or cm_refuse() will follow; else a REJ reason
	 *         (codes.h), with private data in param if it has any
	 */
	uint16_t (*request)(void *listener, const struct cm_request *req,
		struct cm_conn_param *param, void **user);
	/**
	 * The QP is made and in INIT: post receives. Of the active side called from inside
	 * cm_connect(). @retval negative errno: REJ no resources, cm_connect() fails
	 */
	int (*prepare)(void *user, cm_id id, uint32_t qpn);
	/** Both sides may send. @p private_data of the REP (active side) or RTU. */
	void (*established)(void *user, const struct cm_info *info, const uint8_t *private_data,
		uint8_t len);
	/**
	 * It has ended, or will not be; the QP, if it was made, is in ERR, its completions flush.
	 * Not called again. Nothing may be posted any more.
	 * @p private_data of the REJ or DREQ, if there was one.
	 */
	void (*ended)(void *user, const struct cm_info *info, const uint8_t *private_data,
		uint8_t len);
	/** TIMEWAIT is over (or never was) and the QP destroyed: forget it. */
	void (*released)(void *user);
	/**
	 * A message came for which no receive was posted, and an RNR NAK went: post some. Once until
	 * the next post. May be NULL.
	 */
	void (*receives_wanted)(void *user);
};

struct cm_limits {
	uint32_t max_connections; /**< per worker, those in TIMEWAIT included */
	uint32_t max_half_open; /**< not yet established passive ones, per worker */
	uint32_t max_half_open_per_peer; /**< peer: a GID or LID */
	uint32_t max_connections_per_peer;
	uint32_t max_listeners;
	uint8_t response_timeout; /**< CM response timeouts that we announce, a code */
	uint8_t max_retries; /**< MaxCMRetries of our REQs, 0..15 */
	uint8_t ack_delay; /**< local CA ack delay, a code */
	uint8_t packet_life; /**< of RoCE paths, a code */
	uint8_t max_rd_atomic; /**< Reads and Atomics of a QP, either way; lib/rc's limit */
	bool send_mra; /**< answer a repeated REQ that waits for its user by MRA */
};
extern const struct cm_limits cm_limits_default;

struct cm_config {
	unsigned int id;
	unsigned int workers;
	uint64_t hz;
	uint64_t hash_key; /**< secret, the same on all workers */
	const struct allocator *alloc;
	const struct rng *rng;
	struct timer_wheel *wheel;
	struct mad_worker *mad;
	struct rc_worker *rc;
	uint64_t ca_guid;
	/** Attributes of a port, or NULL. */
	const struct port_attr *(*port)(void *arg, uint16_t port);
	void *port_arg;
	struct cm_limits limits;
};

/** Registers the agent of class 0x07. */
struct cm *cm_create(const struct cm_config *config);
/** Its connections end without a word; users are told released(). Before rc and mad workers go. */
void cm_destroy(struct cm *cm);

/**
 * Worker whose connection a CM message on QP1 belongs to; any lcore, before the ICRC check. Only the
 * REJ of a REQ that its sender gave up before it had our ID says too little (no QPN): with several
 * workers it may get to another than its connection's, which then ends by its own timer.
 *
 * @param mad  MAD_LEN bytes
 */
unsigned int cm_owner(uint64_t hash_key, unsigned int workers, const uint8_t *mad);
/** Worker of a connection; any lcore. */
unsigned int cm_worker_of(uint64_t hash_key, unsigned int workers, cm_id id);

/* --- listening: on every worker alike --- */

/**
 * REQs for service IDs id & mask are @p user's; the more exact mask wins.
 * @retval -EEXIST, -ENOSPC
 */
int cm_listen(struct cm *cm, uint64_t service_id, uint64_t mask, const struct cm_user *user,
	void *listener);
/** Connections that stand stay. @retval -ENOENT */
int cm_unlisten(struct cm *cm, uint64_t service_id, uint64_t mask);

/**
 * SIDR: the UD QP that answers for a listener; 0, and without this call: SIDR_REQs are answered
 * "unsupported". @retval -ENOENT
 */
int cm_listen_ud(struct cm *cm, uint64_t service_id, uint64_t mask, uint32_t qpn, uint32_t qkey);
/** After request() said CM_LATER. @retval -ENOENT it has ended meanwhile; -EINVAL not waiting */
int cm_accept(struct cm *cm, cm_id id, const struct cm_conn_param *param, uint64_t now);
/** The same, with a REJ. ended() is called from inside. */
int cm_refuse(struct cm *cm, cm_id id, uint16_t reason, const uint8_t *private_data, uint8_t len,
	uint64_t now);

/* --- connecting --- */

struct cm_connect {
	uint64_t service_id;
	struct cm_path path; /**< from the caller: its SA asked, its neighbour resolved */
	struct cm_path alternate;
	struct cm_rdma rdma; /**< .present: RDMA-CM's header is put in front of private_data */
	struct cm_conn_param param;
	const struct cm_user *ops;
	void *user;
	uint32_t remote_cm_qpn; /**< 0: 1 */
};
/**
 * Make a QP on this worker and send the REQ. What becomes of it: the user's functions.
 * @retval -ENOSPC, -ENOMEM, ... err says what; the user's functions are not called
 */
int cm_connect(struct cm *cm, const struct cm_connect *c, uint64_t now, cm_id *id,
	struct error *err);
/**
 * DREQ, if it stands: the QP goes to ERR now, ended() follows with the answer; else it is abandoned
 * (REJ timeout, or consumer), ended() is called from inside.
 * @retval -ENOENT  no such connection; -EALREADY  it is ending
 */
int cm_disconnect(struct cm *cm, cm_id id, const uint8_t *private_data, uint8_t len, uint64_t now);
/** LAP: propose an alternate path; its APR arms it on both sides. */
int cm_load_alternate(struct cm *cm, cm_id id, const struct cm_path *path, uint64_t now,
	struct error *err);
/**
 * What lib/rc says of a QP: COMM_EST stands for a lost RTU; PATH_MIG swaps the paths, PATH_MIG_ERR
 * takes the alternate one; QP_FATAL, QP_REQ_ERR and QP_ACCESS_ERR end the connection. On the QP's
 * worker, from inside lib/rc's event() too: it is noted here, what follows is cm_run()'s. QPs that
 * are not the CM's are ignored.
 */
void cm_qp_event(struct cm *cm, const struct event *ev);

/** Send what waits for the sink, act on QP events, forget what is over. @return how many of all */
unsigned int cm_run(struct cm *cm, uint64_t now, unsigned int budget);
bool cm_pending(const struct cm *cm);

/* --- what happens, to be seen --- */

bool cm_get(const struct cm *cm, cm_id id, uint64_t now, struct cm_info *info);
/** Whose connection it is, if it is one of @p ops; else NULL. */
void *cm_user_of(const struct cm *cm, cm_id id, const struct cm_user *ops);
/** The connection that a QP of this worker belongs to; 0: none. */
cm_id cm_of_qp(const struct cm *cm, uint32_t qpn);
/** Walk the connections: *cursor 0 starts. */
bool cm_next(const struct cm *cm, uint32_t *cursor, uint64_t now, struct cm_info *info);

/* X(name, help): single writer, relaxed readers */
#define CM_COUNTERS(X)                                                                             \
	X(connections, "connections established")                                                  \
	X(disconnects, "connections ended by DREQ, either side's")                                 \
	X(refused, "requests that we rejected")                                                    \
	X(rejected, "requests of ours that were rejected")                                         \
	X(timeouts, "connections given up for silence")                                            \
	X(stale, "connections ended because the peer began a new life")                            \
	X(duplicates, "messages received again")                                                   \
	X(retries, "messages sent again")                                                          \
	X(malformed, "messages dropped: impossible values")                                        \
	X(unmatched, "messages of no connection")                                                  \
	X(wrong_peer, "messages about a connection from an address that is not its peer's")        \
	X(half_open_limit, "requests dropped: too many are half open")                             \
	X(half_open_evicted, "half-open connections ended for newer ones of the same peer")        \
	X(no_resources, "requests rejected or not made for want of a QP or place")                 \
	X(tx_stall, "times a message had to wait for the sink")

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

#endif
