/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CM_PRIVATE_H
#define CM_PRIVATE_H

/**
 * @file
 * Private to lib/cm: the connection, what it is found by, and the functions of its states.
 *
 * A received message is matched to a connection (agent.c) and given to the function that the table
 * of states and messages names (states.c); time is given to the function of the state (timer.c).
 * A connection keeps the one message that waits for an answer (REQ, REP, DREQ, LAP), to be sent
 * again; all others are built anew when they are needed.
 */

#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#include "cm/cm.h"
#include "cm/message.h"
#include "cm/timing.h"
#include "wire/bytes.h"

#define CM_PORTS_MAX RC_PORTS_MAX
#define CM_MRA_SERVICE_TIMEOUT 24 /* of ours: 65 s, as Linux's rdma_cm (cm.md 5) */

/* What connections are found by, besides our ID. */
enum cm_key {
	CM_KEY_REMOTE_ID, /* remote CA GUID, remote comm ID: duplicates */
	CM_KEY_REMOTE_QPN, /* remote CA GUID, remote QPN: stale ones */
	CM_KEY_QPN, /* 0, our QPN: events */
	CM_KEYS
};

struct cm_conn;
TAILQ_HEAD(cm_conn_list, cm_conn);

/* What is kept of an address while it has connections. */
struct cm_peer {
	union gid addr; /* GID; on a local IB path ::lid */
	struct cm_peer *chain;
	uint32_t connections;
	uint32_t half_open;
	struct cm_conn_list half_open_list; /* oldest first */
};

/* cm_conn.work: for cm_run() */
#define CM_WORK_SEND     0x1 /* .mad found no room */
#define CM_WORK_COMM_EST 0x2
#define CM_WORK_MIGRATED 0x4
#define CM_WORK_QP_ERROR 0x8
#define CM_WORK_RQ_EMPTY 0x20
#define CM_WORK_RELEASE  0x10 /* TIMEWAIT is over: many may be at once, and each takes its time */

struct cm_conn {
	struct cm *cm;
	uint32_t index;
	uint32_t generation;
	cm_id id; /* 0: in the pool */
	uint8_t state; /* enum cm_state */
	bool active;
	bool has_qp;
	bool half_open;
	bool told; /* ended() was called */
	bool lap_waiting; /* .mad is a LAP without APR */
	bool lap_answered; /* the LAP of .lap_tid, with .lap_status */
	uint8_t keyed; /* bit of each enum cm_key it is found by */
	uint8_t work; /* CM_WORK_... */
	struct cm_conn *chain[CM_KEYS];
	struct cm_conn *free;
	TAILQ_ENTRY(cm_conn) work_link;
	TAILQ_ENTRY(cm_conn) half_open_link;
	struct cm_peer *peer;

	struct timer timer;
	uint64_t patience; /* half open: the time by which the peer has answered, or is given up */
	uint64_t interval; /* until .mad is sent again, time units */
	uint64_t dreq_interval;
	uint8_t retries_left;
	uint8_t max_retries; /* MaxCMRetries of the REQ */

	const struct cm_user *ops;
	void *user;
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
	/* before they are agreed: of a passive side the peer's, of an active one ours */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_cnt; /* of the QP */
	uint8_t rnr_retry;
	uint8_t peer_rnr_retry; /* that the peer shall have with us */
	uint8_t min_rnr_timer;
	uint8_t ack_timeout;
	uint8_t failover; /* FailoverAccepted of our REP */
	bool srq;
	bool flow_control;
	struct cm_path path;
	struct cm_path alternate;
	struct cm_path proposed; /* by our LAP */
	uint8_t alternate_timeout; /* LocalAckTimeout on it */
	uint8_t proposed_timeout;
	struct cm_rdma rdma;

	uint64_t lap_tid;
	uint8_t lap_status;

	struct mad_peer to; /* where messages go */
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

/* How an ID is put together before it is scrambled: generation, slot, worker (id.c). */
struct cm_id_format {
	unsigned int worker_bits;
	unsigned int slot_bits;
};

struct cm {
	struct cm_config config;
	struct cm_limits limits; /* config.limits, made sane */
	struct cm_id_format ids;
	uint64_t tick; /* time units in a millisecond, rounded up */
	uint64_t tids;
	uint64_t now; /* of the call under way */

	struct cm_conn *conns;
	struct cm_conn *free;
	struct cm_conn **buckets[CM_KEYS];
	uint32_t mask;
	uint32_t half_open;
	uint32_t high; /* no place from here on was ever taken */
	struct cm_conn_list work;
	struct cm_peer *peers;
	struct cm_peer *peer_free;
	struct cm_peer **peer_buckets;

	struct cm_listener *listeners;
	uint32_t num_listeners;
	struct cm_counters counters;
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

/* --- id.c --- */

uint32_t cm_scramble(uint64_t hash_key, uint32_t plain);
uint32_t cm_unscramble(uint64_t hash_key, uint32_t id);
void cm_id_format(struct cm_id_format *f, unsigned int workers, uint32_t max_connections);
/* Of the connection's present life. Never 0: a generation that would be is passed over. */
cm_id cm_id_make(struct cm_conn *c);

/* --- table.c --- */

int cm_table_create(struct cm *cm);
void cm_table_destroy(struct cm *cm);
/* A connection of the pool, with its ID; NULL: none left, or the peer has enough. */
struct cm_conn *cm_conn_new(struct cm *cm, const struct mad_peer *to, uint64_t now);
/* Back to the pool; nothing is called. */
void cm_conn_free(struct cm_conn *c);
/* By our ID, or NULL. */
struct cm_conn *cm_conn_of(const struct cm *cm, cm_id id);
/* With this peer, if .from is not NULL: who else names its GUID is another. */
struct cm_conn *cm_find(const struct cm *cm, enum cm_key key, uint64_t guid, uint32_t number,
	const struct mad_peer *from);
/* The fields of the key are set, and no other connection with this peer has them. */
void cm_key_add(struct cm_conn *c, enum cm_key key);
void cm_key_remove(struct cm_conn *c, enum cm_key key);
void cm_want(struct cm_conn *c, uint8_t work);
void cm_unwant(struct cm_conn *c, uint8_t work);

/* Does it still live the life of that ID? Places of the pool stay, so that it can be asked. */
static inline bool
cm_lives(const struct cm_conn *c, cm_id id)
{
	return c->id == id;
}

/* --- limits.c --- */

/* Is it the connection's peer who says so: by an address that messages or packets go to? */
bool cm_is_peer(const struct cm_conn *c, const struct mad_peer *from);

struct cm_peer *cm_peer_get(struct cm *cm, const struct mad_peer *to);
void cm_peer_put(struct cm *cm, struct cm_peer *p);
/* May one more be half open, for this peer? Ends an old one if that helps. */
bool cm_half_open_room(struct cm *cm, const struct mad_peer *from, uint64_t now);
void cm_half_open_add(struct cm_conn *c);
void cm_half_open_remove(struct cm_conn *c);

/* --- listen.c --- */

struct cm_listener *cm_listener_find(struct cm *cm, uint64_t service_id);

/* --- send.c --- */

/* A message that is not kept. */
void cm_send(struct cm *cm, const struct mad_peer *to, const struct cm_msg *m);
/* A message of the connection's IDs, not kept: of .m only type and contents are set. */
void cm_say(struct cm_conn *c, struct cm_msg *m);
/* The message that waits for an answer: kept, sent, and sent again every .interval. */
void cm_ask(struct cm_conn *c, struct cm_msg *m, uint64_t interval, uint64_t now);
/* .mad goes out again. */
void cm_repeat(struct cm_conn *c);
/* cm_run(): .mad. @return false: still no room */
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
/* REJ of a message that has no connection, or will have none. */
void cm_reject_message(const struct cm_rx *rx, const struct cm_refusal *r);
/* REJ of a connection's peer. */
void cm_reject(struct cm_conn *c, const struct cm_refusal *r);
/* Reason 4, with our GUID (cm.md 3). */
void cm_reject_timeout(struct cm_conn *c);

/* --- qp.c --- */

/* Made and in INIT; the user posts receives. @retval -ECANCELED  and ends it meanwhile: c is gone */
int cm_qp_create(struct cm_conn *c, const struct cm_conn_param *param, struct error *err);
/* RTR, RTS. */
int cm_qp_connect(struct cm_conn *c, struct error *err);
void cm_qp_error(struct cm_conn *c);
void cm_qp_destroy(struct cm_conn *c);
/* Arm the alternate path. @return enum cm_apr_status */
uint8_t cm_qp_arm(struct cm_conn *c, const struct cm_path *path, uint8_t ack_timeout);

/* --- path.c: between cm_path and what messages say of paths --- */

const struct port_attr *cm_port(const struct cm *cm, uint16_t port);
/* PacketLifeTime code: RoCE knows none, ours is the convention. */
uint8_t cm_packet_life(const struct cm *cm, const struct cm_path *path);
/* A partition as the path's port has it. @return false: it has not */
bool cm_path_take_pkey(const struct cm *cm, struct cm_path *path, uint16_t pkey);
/* A path of ours, as REQ and LAP carry it. */
void cm_path_say(const struct cm *cm, const struct cm_path *path, uint8_t ack_timeout,
	struct cm_msg_path *m);
/* Back along a path that a message names. @return 0 or a REJ reason, of a primary path */
uint16_t cm_path_back(const struct cm_rx *rx, const struct cm_msg_path *m, struct cm_path *path);
/* The same reason, of an alternate path; as an APR status. */
uint16_t cm_reason_alternate(uint16_t reason);
uint8_t cm_reason_apr(uint16_t reason);

/* --- request.c --- */

/* Is it a REQ that we could accept? Fills *req. @return 0 or a REJ reason in *r */
uint16_t cm_request_check(struct cm_rx *rx, struct cm_request *req, struct cm_refusal *r);

/* --- conn.c: the way of a connection --- */

void cm_fill_info(const struct cm_conn *c, uint64_t now, struct cm_info *info);
/* Half open, and not for us to move: a minute from here. */
void cm_be_patient(struct cm_conn *c, uint64_t now);
/* So long after what is sent in this turn has left. */
void cm_set_timer(struct cm_conn *c, uint64_t wait, uint64_t now);
void cm_establish(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now);
/* The user is told, once. The QP is in ERR by then. */
void cm_tell_end(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now);
/* The end, by way of TIMEWAIT; or at once: c is gone then. */
void cm_end_timewait(struct cm_conn *c, enum cm_end end, uint16_t reason,
	const uint8_t *private_data, uint8_t len, uint64_t now);
void cm_end_idle(struct cm_conn *c, enum cm_end end, uint16_t reason,
	const uint8_t *private_data, uint8_t len, uint64_t now);
/* QP destroyed, user told, back to the pool. */
void cm_release(struct cm_conn *c);
static inline uint64_t
cm_time(const struct cm *cm, uint32_t ms)
{
	return (uint64_t)ms * cm->tick;
}
/*
 * A wait that the peer chose. Codes go up to hours: no stranger gets more than about a minute of a
 * place here (a choice; QPNs rest in lib/rc beyond that), which is what Linux gives for all its
 * retries. That holds for the retries together too, and for MRAs, while a connection is half open.
 */
#define CM_PEER_MS_MAX (1u << 16)
static inline uint64_t
cm_peer_time(const struct cm *cm, uint32_t ms)
{
	return cm_time(cm, RTE_MIN(ms, CM_PEER_MS_MAX));
}

/* --- states.c --- */

/* What a state does about a message; of IDLE there is no connection. */
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
/* The peer has begun a new life: the old connection ends. */
void cm_stale(struct cm_conn *c, uint64_t now);

void cm_dreq(struct cm_conn *c, struct cm_rx *rx);
void cm_dreq_again(struct cm_conn *c, struct cm_rx *rx);
void cm_stray_dreq(struct cm_conn *c, struct cm_rx *rx);
void cm_drep(struct cm_conn *c, struct cm_rx *rx);
/* DREQ goes out: the QP is in ERR from here on. */
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
