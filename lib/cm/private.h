/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_PRIVATE_H
#define CM_PRIVATE_H

/**
 * @file
 * Private to lib/cm: the connection, the keys it is found by, and the functions of its states.
 *
 * agent.c finds the connection of a received message; states.c has the table of the function for
 * each state and message; timer.c has the function of each state when the connection's timer
 * expires. A connection keeps the one message that waits for an answer (REQ, REP, DREQ, LAP), to
 * send it again; all others are built when they are needed.
 */

#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>

#include "base/hash_table.h"
#include "base/share.h"
#include "base/token_bucket.h"
#include "base/unproven.h"
#include "cm/cm.h"
#include "cm/message.h"
#include "cm/timing.h"
#include "wire/bytes.h"

#define CM_PORTS_MAX           RC_PORTS_MAX
#define CM_MRA_SERVICE_TIMEOUT 24 /* in MRAs that we send: 65 s, as Linux's rdma_cm (cm.md 5) */

/* The keys a connection is found by, besides our ID. */
enum cm_key {
	CM_KEY_REMOTE_ID, /* remote CA GUID, remote comm ID: finds repeated REQs, duplicate IDs */
	CM_KEY_REMOTE_QPN, /* remote CA GUID, remote QPN: finds stale connections */
	CM_KEY_QPN, /* 0, our QPN: finds the connection of a QP event */
	CM_KEYS
};

/* Half-open connections are counted by address, by prefix (IPv4 /24, else /64), and together. */
enum cm_level { CM_ADDRESS, CM_PREFIX, CM_EVERYONE, CM_LEVELS };

struct cm_conn;
TAILQ_HEAD(cm_conn_list, cm_conn);

/* The half-open connection of an item at a level. */
#define CM_OF_ITEM(item, level) container_of(item, struct cm_conn, half_open_item[level])

/* An IPv4 /24, else a /64; the limits count by it, too. */
struct cm_prefix {
	struct share_holder half_open;
	uint32_t connections; /* with half-open ones */
};

/* A peer address, kept while it has connections; the limits count by it. */
struct cm_peer {
	union gid addr; /* GID; on our own IB subnet ::lid */
	struct cm_prefix *prefix;
	struct hash_link link; /* by address, or of the free entries */
	uint32_t connections;
	uint32_t probes; /* connections that probe.c checks now */
	struct share_holder half_open;
};

/* cm_conn.work: what cm_run() has to do */
#define CM_WORK_SEND     0x1 /* send .mad: the transmit sink was full */
#define CM_WORK_COMM_EST 0x2
#define CM_WORK_MIGRATED 0x4
#define CM_WORK_QP_ERROR 0x8
#define CM_WORK_RQ_EMPTY 0x20
#define CM_WORK_RELEASE  0x10 /* TIMEWAIT is over; work, since many may end in one timer tick */

struct cm_conn {
	struct cm *cm;
	uint32_t index;
	uint32_t generation;
	cm_id id; /* 0: in the pool */
	uint8_t state; /* enum cm_state */
	bool active;
	bool has_qp; /* that the CM has created */
	bool users_qp; /* .qpn is the user's: the CM never touches it */
	bool half_open;
	bool told; /* the end is recorded and ended() was called */
	bool lap_waiting; /* .mad is a LAP that waits for its APR */
	bool lap_answered; /* the peer's LAP with .lap_tid was answered with .lap_status */
	uint8_t keyed; /* a bit for each enum cm_key the connection is in the hash table of */
	uint8_t work; /* CM_WORK_... */
	struct hash_link key_link[CM_KEYS];
	struct cm_conn *free;
	TAILQ_ENTRY(cm_conn) work_link;
	/* half open: who is charged for it */
	struct share_item half_open_item[CM_LEVELS];
	struct share_holder *origin[CM_LEVELS];
	uint64_t request; /* half open: number of its REQ */
	uint32_t bytes; /* half open: of its QP */
	struct unproven budget; /* half open: what may be sent to the REQ's source */
	struct cm_peer *peer;

	struct timer timer;
	uint64_t patience; /* half open: deadline of the peer, whatever times it asked for */
	uint64_t interval; /* between retries of .mad, time units */
	uint64_t dreq_interval;
	uint8_t retries_left;
	uint8_t max_retries; /* MaxCMRetries of the REQ */

	struct timer probe_timer;
	uint64_t heard; /* packets the QP had received when the probe began */
	uint8_t probes_left;
	bool probing;
	uint16_t probe_port;

	const struct cm_user *ops;
	void *user;
	const struct cm_user *seat_ops; /* half open: gets its user when it is established */
	void *listener; /* for seat_ops->seat() */
	uint8_t end; /* enum cm_end */
	uint16_t reason;

	uint64_t opened;
	uint64_t tid; /* of the REQ */
	uint64_t service_id;
	uint32_t remote_id;
	uint64_t remote_ca_guid;
	uint32_t qpn;
	uint32_t remote_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	/* until agreed: on the passive side the peer's values, on the active side ours */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_cnt; /* of the QP */
	uint8_t rnr_retry;
	uint8_t peer_rnr_retry; /* RNR retry count that the peer shall use */
	uint8_t min_rnr_timer;
	uint8_t ack_timeout;
	uint8_t failover; /* FailoverAccepted in our REP */
	bool srq;
	bool flow_control;
	struct cm_path path;
	struct cm_path alternate;
	struct cm_path proposed; /* in our LAP */
	uint8_t alternate_timeout; /* LocalAckTimeout of .alternate */
	uint8_t proposed_timeout;
	struct cm_rdma rdma;

	uint64_t lap_tid;
	uint8_t lap_status;

	struct trace *trace; /* its last steps; NULL: they are not recorded */
	struct mad_peer to; /* the peer's CM: its address and QPN */
	uint8_t mad[MAD_LEN]; /* the message that waits for an answer */
};

struct cm_listener {
	uint64_t service_id;
	uint64_t mask;
	const struct cm_user *ops;
	void *listener;
	uint32_t qpn_ud;
	uint32_t qkey_ud;
};

/* Bit widths of an ID's parts before the permutation: generation, slot, worker (id.c). */
struct cm_id_format {
	unsigned int worker_bits;
	unsigned int slot_bits;
};

#define CM_PAUSED 1024 /* a choice */

/* An address from which no connection is taken. */
struct cm_pause {
	union gid addr;
	uint64_t until; /* 0: never used */
	struct hash_link link; /* by address */
	TAILQ_ENTRY(cm_pause) age;
};

struct cm {
	struct cm_config config;
	struct cm_limits limits; /* config.limits, clamped to what is possible */
	struct cm_id_format ids;
	uint64_t tick; /* time units in a millisecond, rounded up */
	uint64_t tids;
	uint64_t now; /* of the current call */
	bool trace_all; /* record new connections, too */

	struct cm_conn *conns;
	struct cm_conn *free;
	struct hash_table by_key[CM_KEYS];
	uint32_t slots; /* of .conns: max_connections, and max_half_open for strangers */
	uint32_t used;
	uint64_t requests; /* REQs for which a connection was wanted */
	uint64_t half_open_bytes; /* of their QPs */
	struct share_holder everyone; /* half-open connections of all */
	struct cm_prefix *prefixes; /* by hash, as many as .by_address has buckets */
	struct share_rank rank[CM_LEVELS];
	uint32_t probes[CM_PORTS_MAX]; /* connections that probe.c checks now */
	uint32_t high; /* slots from here on were never used */
	struct cm_conn_list work;
	struct cm_peer *peers;
	struct hash_chain peer_free;
	struct hash_table by_address;

	struct cm_listener *listeners;
	uint32_t num_listeners;
	struct cm_pause *pauses; /* [CM_PAUSED] */
	struct hash_table paused;
	TAILQ_HEAD(, cm_pause) oldest_pause; /* all of them: paused first, or never, first */
	struct token_bucket stranger_events; /* cm_tell_of_stranger() */
	uint32_t unreported; /* what strangers caused since the last event about one */
	struct cm_counters counters;
	struct cm_limited limited;
};

/* A message received. */
struct cm_rx {
	struct cm *cm;
	const struct mad_peer *peer;
	uint64_t now;
	struct cm_msg msg;
	enum verdict verdict;
};

#define cm_count(cm, name)                                                                         \
	__atomic_store_n(&(cm)->counters.name, (cm)->counters.name + 1, __ATOMIC_RELAXED)

static inline void
cm_count_no_resources(struct cm *cm, const union gid *peer)
{
	cm_count(cm, no_resources);
	limit_peer_note(&cm->limited.no_resources, peer->raw);
}

/* --- trace.c: only for connections with c->trace --- */

/* @param value  retries left, or the reason of a REJ */
void cm_trace_put(struct cm_conn *c, enum cm_step_event event, uint8_t what, uint16_t value);
/* A message for the connection. @return the step, to note the state that it leads to */
struct trace_step *cm_trace_received(struct cm_conn *c, const struct cm_msg *m);
/* A new connection: record it if all are to be recorded. */
void cm_trace_create(struct cm_conn *c);
int cm_trace_start(struct cm_conn *c); /* @retval -ENOMEM */
void cm_trace_free(struct cm_conn *c);

static inline void
cm_trace_sent(struct cm_conn *c, enum cm_message type, uint16_t reason)
{
	if (unlikely(c->trace != NULL))
		cm_trace_put(c, CM_STEP_SENT, (uint8_t)type, reason);
}

/* --- id.c --- */

uint32_t cm_scramble(uint64_t hash_key, uint32_t plain);
uint32_t cm_unscramble(uint64_t hash_key, uint32_t id);
void cm_id_format(struct cm_id_format *f, unsigned int workers, uint32_t max_connections);
/*
 * A new ID, with the next generation of the connection's slot. Never 0: that generation is skipped.
 */
cm_id cm_id_make(struct cm_conn *c);

/* --- table.c --- */

/* What happens when a connection's timers expire. */
struct cm_timers {
	void (*expired)(struct timer *timer, uint64_t now);
	void (*probe_expired)(struct timer *timer, uint64_t now);
};
int cm_table_create(struct cm *cm, const struct cm_timers *timers);
void cm_table_destroy(struct cm *cm);
/*
 * Take a connection from the pool and give it an ID. NULL: pool empty, or the peer's limit reached.
 */
struct cm_conn *cm_conn_new(struct cm *cm, const struct mad_peer *to, uint64_t now);
/* True if all of max_connections are in use; half-open ones have their own share. */
bool cm_full(const struct cm *cm);
/* Return a connection to the pool. The user is not called. */
void cm_conn_free(struct cm_conn *c);
/* The connection with this ID of ours, or NULL. */
struct cm_conn *cm_conn_of(const struct cm *cm, cm_id id);
/*
 * The connection with this key, or NULL. With @p from, only one whose peer has that address:
 * another host that names the same GUID is another peer.
 */
struct cm_conn *cm_find(const struct cm *cm, enum cm_key key, uint64_t guid, uint32_t number,
	const struct mad_peer *from);
/*
 * Add to the hash table of @p key. The key's fields are set; no other connection of the peer has
 * them.
 */
void cm_key_add(struct cm_conn *c, enum cm_key key);
void cm_key_remove(struct cm_conn *c, enum cm_key key);
/* Set or clear CM_WORK_... bits for cm_run(). */
void cm_want(struct cm_conn *c, uint8_t work);
void cm_unwant(struct cm_conn *c, uint8_t work);
/* Stop probing (probe.c), whatever the result. */
void cm_probe_end(struct cm_conn *c);

/*
 * True if the connection was not released since @p id was read from it; a user's function may
 * release it. Safe to call then: the pool's memory stays.
 */
static inline bool
cm_lives(const struct cm_conn *c, cm_id id)
{
	return c->id == id;
}

/* --- limits.c --- */

/*
 * True if @p from is an address of the connection's peer: of its CM, of either path, or its first.
 */
bool cm_is_peer(const struct cm_conn *c, const struct mad_peer *from);

/* The peer of an address, or NULL. */
struct cm_peer *cm_peer_find(const struct cm *cm, const union gid *addr);
/* Find or add the peer of an address; NULL: the pool is empty. cm_peer_put() frees it if unused. */
struct cm_peer *cm_peer_get(struct cm *cm, const struct mad_peer *to);
void cm_peer_put(struct cm *cm, struct cm_peer *p);
/* Established connections and those in TIMEWAIT, which do not give way to others. */
uint32_t cm_standing(const struct cm *cm);
/* True if the prefix of this peer leaves connections for others; counted if not. */
bool cm_prefix_room(struct cm *cm, const struct mad_peer *from);
/* The same for a passive connection that is no longer half open. */
bool cm_prefix_room_for(const struct cm_conn *c);
void cm_half_open_add(struct cm_conn *c);
void cm_half_open_remove(struct cm_conn *c);

/* --- give_way.c --- */

/*
 * True if this peer may have one more half-open connection. If it has its share, its own oldest
 * one ends; if the pool is full, one of those who have most.
 */
bool cm_half_open_room(struct cm *cm, const struct mad_peer *from, uint64_t now);
/* End a half-open connection, but not @p keep, to free its QP. @return false: there is none */
bool cm_half_open_evict(struct cm *cm, const struct cm_conn *keep, uint64_t now);
/* The connection's QP takes so many bytes; others give way if that is too much in all. */
void cm_half_open_weigh(struct cm_conn *c, size_t bytes, uint64_t now);
/*
 * A message for a half-open connection came: more may be sent to its source. Our ID in it proves
 * the source: it has received our answer.
 */
void cm_half_open_heard(struct cm_conn *c, bool has_our_id);

/* --- listen.c --- */

struct cm_listener *cm_listener_find(struct cm *cm, uint64_t service_id);

/* --- send.c --- */

/* Send a message once; it is not kept. */
void cm_send(struct cm *cm, const struct mad_peer *to, const struct cm_msg *m);
/* Send a message of the connection once. Fills in both IDs, and the TID if it is 0. */
void cm_say(struct cm_conn *c, struct cm_msg *m);
/* Send a message that waits for an answer: it is kept and sent again every @p interval. */
void cm_ask(struct cm_conn *c, struct cm_msg *m, uint64_t interval, uint64_t now);
/* Send the kept message again. */
void cm_repeat(struct cm_conn *c);
/* Try to send the kept message. @return false: the sink is full */
bool cm_send_waiting(struct cm_conn *c);
uint64_t cm_new_tid(struct cm_conn *c);

struct cm_refusal {
	uint8_t answers; /* enum cm_answered */
	uint16_t reason;
	uint8_t ari_len;
	uint8_t ari[8];
	const uint8_t *private_data;
	uint8_t private_len;
};
/* Send a REJ for a message without a connection. */
void cm_reject_message(const struct cm_rx *rx, const struct cm_refusal *r);
/* Send a REJ to a connection's peer. */
void cm_reject(struct cm_conn *c, const struct cm_refusal *r);
/* Send a REJ with reason 4 (timeout) and our GUID as ARI (cm.md 3). */
void cm_reject_timeout(struct cm_conn *c);

/* --- qp.c --- */

/*
 * Create the QP, move it to INIT, let the user post receives.
 * @retval -ECANCELED  the user ended the connection in prepare(): @p c is released
 */
int cm_qp_create(struct cm_conn *c, const struct cm_conn_param *param, struct error *err);
/* Use the user's own QP, which the user moves through its states. */
void cm_qp_take(struct cm_conn *c, const struct cm_conn_param *param);
/* Let the user prepare for data: post receives. As cm_qp_create(), may release @p c. */
int cm_qp_prepare(struct cm_conn *c, struct error *err);
/* Move the QP to RTR and RTS. */
int cm_qp_connect(struct cm_conn *c, struct error *err);
void cm_qp_error(struct cm_conn *c);
void cm_qp_destroy(struct cm_conn *c);
/* Arm the alternate path. @return enum cm_apr_status */
uint8_t cm_qp_arm(struct cm_conn *c, const struct cm_path *path, uint8_t ack_timeout);

/* --- path.c: convert between struct cm_path and the paths in messages --- */

const struct port_attr *cm_port(const struct cm *cm, uint16_t port);
/* PacketLifeTime code of a path. RoCE has none: the configured limits.packet_life is used. */
uint8_t cm_packet_life(const struct cm *cm, const struct cm_path *path);
/* Use a P_Key on a path: index and value of the port's table. @return false: not in the table */
bool cm_path_take_pkey(const struct cm *cm, struct cm_path *path, uint16_t pkey);
/* Encode a path of ours for a REQ or LAP. */
void cm_path_say(const struct cm *cm, const struct cm_path *path, uint8_t ack_timeout,
	struct cm_msg_path *m);
/*
 * Our path back along the path in a peer's REQ (@p c is NULL) or LAP for connection @p c.
 * @return 0 or a REJ reason for a primary path
 */
uint16_t cm_path_back(const struct cm_rx *rx, const struct cm_conn *c, const struct cm_msg_path *m,
	struct cm_path *path);
/* The REJ reason for an alternate path, or the APR status, that corresponds to a primary path's. */
uint16_t cm_reason_alternate(uint16_t reason);
uint8_t cm_reason_apr(uint16_t reason);

/* --- request.c --- */

/* Check a REQ and fill *req. @return 0 or the REJ reason, with *r filled */
uint16_t cm_request_check(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r);

/* --- conn.c: end, release --- */

void cm_fill_info(const struct cm_conn *c, uint64_t now, struct cm_info *info);
/** Raise an event of a connection with the peer at the far end of @p av. */
void cm_tell(struct cm *cm, enum event_type type, uint32_t qpn, struct connection_change change,
	const struct av *av);
/*
 * The same about somebody who has not proven its address: a few a second, so that strangers do not
 * push other events out. The next one says how many were left out.
 */
void cm_tell_of_stranger(struct cm *cm, enum event_type type, uint32_t qpn,
	struct connection_change change, const struct av *av, uint64_t now);
/* An event of this connection; cm_tell_of_stranger() as long as the peer has proven nothing. */
void cm_tell_of_connection(const struct cm_conn *c, enum event_type type, uint64_t now);
/* Set .patience, the deadline while half open, to CM_PEER_MS_MAX from now. */
void cm_be_patient(struct cm_conn *c, uint64_t now);
/* Start the timer, for @p wait after this turn's packets are sent; at most until .patience. */
void cm_set_timer(struct cm_conn *c, uint64_t wait, uint64_t now);
/* Move the QP to ERR and tell the user that the connection ended; only the first call does it. */
void cm_tell_end(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now);
/* End a connection: cm_end_timewait() goes to TIMEWAIT, cm_end_idle() releases @p c at once. */
void cm_end_timewait(struct cm_conn *c, enum cm_end end, uint16_t reason,
	const uint8_t *private_data, uint8_t len, uint64_t now);
void cm_end_idle(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now);
/* Destroy the QP, return the connection to the pool, call released(). */
void cm_release(struct cm_conn *c);
static inline uint64_t
cm_time(const struct cm *cm, uint32_t ms)
{
	return (uint64_t)ms * cm->tick;
}
/*
 * A wait chosen by the peer, limited to about a minute (a choice): the codes go up to hours, and a
 * stranger must not hold a connection that long. Linux gives a minute for all its retries. While a
 * connection is half open, cm_be_patient() limits all retries and MRAs together to the same time.
 * lib/rc delays the reuse of a QPN beyond that.
 */
#define CM_PEER_MS_MAX (1u << 16)
static inline uint64_t
cm_peer_time(const struct cm *cm, uint32_t ms)
{
	return cm_time(cm, RTE_MIN(ms, CM_PEER_MS_MAX));
}

/* --- establish.c --- */

/* Established: the user takes its place now. Without one the connection ends by DREQ. */
void cm_establish(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now);

/* --- probe.c --- */

/*
 * A REQ names the QPN of this connection's peer: find out whether the peer still has the QP. If it
 * has not, the connection ends. A probe that runs already, or no room for one, is no error.
 */
void cm_probe(struct cm_conn *c);
void cm_probe_expired(struct timer *timer, uint64_t now);

/* --- check.c --- */

/* The invariants of a connection, or of a place in the pool, when an event is over. */
#ifdef RTE_ENABLE_ASSERT
void cm_conn_check(const struct cm_conn *c);
#else
#define cm_conn_check(c) RTE_SET_USED(c)
#endif

/* --- states.c --- */

/* Handles a message in a state; c is NULL in IDLE. */
typedef void (*cm_step)(struct cm_conn *c, struct cm_rx *rx);
void cm_dispatch(struct cm_conn *c, struct cm_rx *rx);

/* --- the steps: active.c, passive.c, disconnect.c, migrate.c, sidr.c --- */

void cm_active_rep(struct cm_conn *c, struct cm_rx *rx);
void cm_active_rep_again(struct cm_conn *c, struct cm_rx *rx);
void cm_stray_rep(struct cm_conn *c, struct cm_rx *rx);
void cm_mra(struct cm_conn *c, struct cm_rx *rx);
void cm_rej_idle(struct cm_conn *c, struct cm_rx *rx);
void cm_rej_timewait(struct cm_conn *c, struct cm_rx *rx);

void cm_passive_req(struct cm_conn *c, struct cm_rx *rx);
void cm_passive_req_again(struct cm_conn *c, struct cm_rx *rx);
void cm_passive_rep_again(struct cm_conn *c, struct cm_rx *rx);
void cm_passive_req_stale(struct cm_conn *c, struct cm_rx *rx);
void cm_passive_rtu(struct cm_conn *c, struct cm_rx *rx);

void cm_dreq(struct cm_conn *c, struct cm_rx *rx);
void cm_dreq_again(struct cm_conn *c, struct cm_rx *rx);
void cm_stray_dreq(struct cm_conn *c, struct cm_rx *rx);
void cm_drep(struct cm_conn *c, struct cm_rx *rx);
/* Move the QP to ERR and send a DREQ. */
void cm_send_dreq(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now);

void cm_lap(struct cm_conn *c, struct cm_rx *rx);
void cm_stray_lap(struct cm_conn *c, struct cm_rx *rx);
void cm_apr(struct cm_conn *c, struct cm_rx *rx);
void cm_lap_give_up(struct cm_conn *c);

void cm_sidr_req(struct cm_conn *c, struct cm_rx *rx);

/* --- timer.c --- */

void cm_expired(struct timer *timer, uint64_t now);

/* --- agent.c --- */

int cm_agents_add(struct cm *cm);

#endif
