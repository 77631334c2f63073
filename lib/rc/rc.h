/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RC_H
#define RC_RC_H

/**
 * @file
 * The RC transport: queue pairs, their queues, and the packets they send and answer.
 *
 * A struct rc_dev is the channel adapter: limits, the QP directory, the completion queues. A struct rc_worker is one
 * lcore's share of it: the QPs it owns, their timers, its transmit sink. Except where said otherwise a function may only be called
 * on the worker that owns the object, and objects are named by number. Nothing here reads a clock, allocates on the
 * packet path, logs, or calls EAL: the same code runs under test/sim's virtual clock.
 *
 * Sources: rc-transport (wire and state rules), seed 001 (NAKs), seed 002 (normal operation), rc-cases.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/env.h"
#include "base/error.h"
#include "base/timer_wheel.h"
#include "base/verdict.h"
#include "mem/mem.h"
#include "port/port.h"
#include "rc/verbs_types.h"
#include "wire/packet.h"
#include "wire/tx.h"

struct rc_dev;
struct rc_worker;
struct rc_qp;

#define RC_WORKERS_MAX 128
#define RC_PORTS_MAX   64
#define RC_QPN_MIN     16 /* below: QP0, QP1 and room for fixed numbers */

/** Reaction to congestion notifications, DCQCN (docs/spec/congestion.md, which has mlx5's names of these). */
struct rc_congestion {
	bool dcqcn; /**< off: CNPs have no effect and are not asked for */
	uint32_t g; /**< alpha moves by 1/g of the way, 1 to 65536 */
	uint32_t alpha_timer; /**< microseconds without CNP after which alpha decays */
	uint32_t increase_timer; /**< microseconds after which the rate rises */
	uint32_t byte_counter; /**< bytes sent after which the rate rises */
	uint32_t fast_recovery; /**< rises that only go back to where the rate was (F) */
	uint32_t rate_ai; /**< Mbit/s added by a rise after that */
	uint32_t rate_hai; /**< Mbit/s added by a rise when both timer and counter are beyond F */
	uint32_t min_rate; /**< Mbit/s */
	uint32_t max_rate; /**< Mbit/s of the port: a QP that may send so much is not limited */
	uint32_t cut_interval; /**< microseconds between two reductions at least */
};

struct rc_limits {
	uint32_t max_qp; /**< QP slots, a power of two, <= 2^23 */
	uint32_t max_cq;
	uint32_t max_srq;
	uint32_t max_qp_wr;
	uint32_t max_srq_wr;
	uint32_t max_sge; /**< <= RC_SGE_MAX */
	uint32_t max_inline; /**< <= RC_INLINE_MAX */
	uint32_t max_cqe;
	uint8_t max_rd_atomic;
	uint8_t min_ack_timeout; /**< smaller Local ACK Timeouts (but 0) are raised to it (seed 002) */
	uint32_t window; /**< unacknowledged PSNs a QP may have in flight, <= 2^23 */
	uint32_t ack_interval; /**< AckReq at least every so many request packets */
	uint32_t quarantine; /**< destroyed QP slots rest until so many others were destroyed, where there are enough */
	struct rc_congestion congestion;
};

/** Sensible limits; callers change fields. */
extern const struct rc_limits rc_limits_default;

struct rc_dev_config {
	struct rc_limits limits;
	unsigned int workers; /**< 1..RC_WORKERS_MAX */
	uint64_t hz; /**< time units per second */
	const struct allocator *alloc;
	const struct rng *rng;
	struct mem *mem;
};

struct rc_dev *rc_dev_create(const struct rc_dev_config *config);
void rc_dev_destroy(struct rc_dev *dev);

/** Worker that owns a QP, from any lcore; -1: no such QP. One load, so that any lcore may classify a packet. */
int rc_owner(const struct rc_dev *dev, uint32_t qpn);

/* --- completion queues: created and destroyed on the control thread; polled by one poller --- */
int rc_cq_create(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err);
/** The same with the highest free number: for services, so that callers find theirs from 0 on. */
int rc_cq_create_top(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err);
/** @retval -EBUSY a QP uses it */
int rc_cq_destroy(struct rc_dev *dev, uint32_t cqn, struct error *err);
/** The CQ's one poller. @return completions stored, or -ENOENT; -EIO: the CQ has overrun (EVENT_CQ_ERR told of it) */
int rc_cq_poll(struct rc_dev *dev, uint32_t cqn, struct wc *wc, unsigned int n);
/**
 * Control thread: memory for completions of QPs that are to move to @p worker; they go nowhere
 * where there is none. A worker on which a QP of the CQ is made has it.
 *
 * @retval -ENOENT  no such completion queue
 * @retval -ENOMEM
 */
int rc_cq_reserve(struct rc_dev *dev, uint32_t cqn, unsigned int worker, struct error *err);
/** Ask for one EVENT_CQ_COMPLETION at the next completion (solicited: or error). Any thread. */
int rc_cq_arm(struct rc_dev *dev, uint32_t cqn, bool solicited_only);
struct rc_cq_info {
	uint32_t cqn;
	uint32_t depth;
	uint32_t pending; /**< completions waiting (approximate while workers run) */
	uint32_t users;
	bool overrun;
};
int rc_cq_query(const struct rc_dev *dev, uint32_t cqn, struct rc_cq_info *info);
bool rc_cq_next(const struct rc_dev *dev, uint32_t *cursor, struct rc_cq_info *info);

/* --- a worker --- */

/** Counters of a QP and, summed, of a worker: names as rdma-tool, mlx5 and rxe have them. Single writer, relaxed readers. */
struct rc_counters {
	/* a cache line: what packets in order count */
	uint64_t sent_pkts;
	uint64_t rcvd_pkts;
	uint64_t sent_bytes; /**< payload */
	uint64_t rcvd_bytes; /**< payload of executed requests and used responses */
	uint64_t ack_deferred; /**< ACKs saved by coalescing */
	uint64_t rx_send_requests;
	uint64_t rx_write_requests;
	uint64_t rx_read_requests;

	uint64_t duplicate_request;
	uint64_t out_of_sequence;
	uint64_t rcvd_rnr_err; /**< RNR NAKs received */
	uint64_t send_rnr_err; /**< RNR NAKs sent */
	uint64_t rcvd_seq_err; /**< PSN sequence NAKs received: packet_seq_err */
	uint64_t send_seq_err;
	uint64_t retry_exceeded_err;
	uint64_t rnr_nak_retry_err; /**< RNR retries exhausted */
	uint64_t local_ack_timeout_err; /**< transport timer expiries */
	uint64_t implied_nak_seq_err;
	uint64_t retransmitted_pkts;
	uint64_t completer_retry_err; /**< rewinds */
	uint64_t resp_remote_access_errors;
	uint64_t resp_invalid_requests;
	uint64_t resp_local_length_error;
	uint64_t req_remote_access_errors;
	uint64_t req_remote_invalid_request;
	uint64_t req_remote_operation_errors;
	uint64_t rx_atomic_requests;
	uint64_t cqe_flush_err;
	uint64_t cqe_err;
	uint64_t tx_stall; /**< times the transmit sink had no packet */
	uint64_t credit_stall; /**< times a Send waited for end-to-end credits */
	uint64_t np_ecn_marked_roce_packets; /**< received with ECN CE */
	uint64_t np_cnp_sent; /**< congestion notifications sent for them */
	uint64_t path_migrations; /**< changes to the alternate path, whoever began */
	uint64_t rp_cnp_handled; /**< CNPs that reduced the rate */
	uint64_t rp_cnp_ignored; /**< CNPs too soon after another, or with dcqcn off */
	uint64_t rp_rate_limited; /**< times the QP waited for its rate */
};

/** Names of the fields above, in order, and how many: one table for stats, telemetry and documents. */
struct rc_counter_info {
	const char *name;
	const char *help;
};
extern const struct rc_counter_info rc_counter_infos[];
#define RC_COUNTER_COUNT (sizeof(struct rc_counters) / sizeof(uint64_t))

struct rc_worker_config {
	unsigned int id; /**< 0..workers-1 */
	struct timer_wheel *wheel;
	struct tx_sink *tx;
	/** Asynchronous events; called on the worker, must not call back into lib/rc. */
	void (*event)(void *arg, const struct event *ev);
	void *event_arg;
	bool icrc_unchecked; /**< trust the link: do not verify ICRCs */
	/**
	 * A packet from @p src_qpn was dropped for its P_Key; may be NULL. As event().
	 */
	void (*violation)(void *arg, const struct packet *pkt, uint32_t src_qpn);
	void *violation_arg;
};

struct rc_worker *rc_worker_create(struct rc_dev *dev, const struct rc_worker_config *config);
/** Destroys the QPs it still owns. */
void rc_worker_destroy(struct rc_worker *w);

/**
 * One packet for a QP of this worker. Order of checks: rc-transport 5 from QP lookup on, then 6 to 8. Effects on memory and completions happen
 * before return; answers may be held until rc_run() so that ACKs coalesce over a burst.
 *
 * @return what became of it; the caller counts it
 */
enum verdict rc_receive(struct rc_worker *w, const struct packet *pkt, uint64_t now);

/**
 * How many packets at the head of a burst are of connected services and for QPs of this worker: no
 * management, no CNP, no multicast. Behind the first that is not there may be more.
 */
unsigned int rc_own(const struct rc_worker *w, struct packet *const *pkts, unsigned int n);
/** Has the worker more QPs than are likely to be found in the cache? Prefetches do not pay before. */
bool rc_crowd(const struct rc_worker *w);
/**
 * With many QPs at work each is found in memory. Three steps, each when what the one before has
 * asked for has come: prefetch where the QP is looked up (rc_owner(), too); what will be touched of
 * it; what it leads to. Here the first.
 */
void rc_prefetch_place(const struct rc_worker *w, uint32_t qpn);
/**
 * The others for a burst of packets for QPs of this worker, before rc_receive() of pkts[i], i = 0
 * to n - 1 in turn: prefetch what the packets after it will touch.
 */
void rc_look_ahead(const struct rc_worker *w, struct packet *const *pkts, unsigned int n,
	unsigned int i);
/**
 * The others for who posts: what rc_post_send(), and rc_run() after it, will touch of the QP; and
 * the places of its next n work requests.
 */
void rc_prefetch(const struct rc_worker *w, uint32_t qpn);
void rc_prefetch_send(const struct rc_worker *w, uint32_t qpn, unsigned int n);

/**
 * Send what is due: by turns the QPs with work, each its share of bytes (deficit round robin, schedule.c).
 * Timers are run by the caller (timer_wheel_run) before.
 *
 * @param budget packets of 1.5 KiB; larger ones count for more, smaller ones for one
 * @return packets sent; whether there is more to do at once: rc_pending()
 */
unsigned int rc_run(struct rc_worker *w, uint64_t now, unsigned int budget);
/** Is there work that rc_run() could do at once? */
bool rc_pending(const struct rc_worker *w);

const struct rc_counters *rc_worker_counters(const struct rc_worker *w);
/** Queue pairs it owns. Any lcore. */
uint32_t rc_worker_qps(const struct rc_worker *w);
/** P_Key violations of a port's QPs, as this worker saw them; NULL: no such port. Any lcore. */
const struct port_violations *rc_worker_violations(const struct rc_worker *w, uint16_t port);

/* --- queue pairs --- */
int rc_qp_create(struct rc_worker *w, const struct qp_init_attr *attr, uint32_t *qpn,
	struct error *err);
/** State and attribute checks of ibv_modify_qp (rc-transport 11): what is missing or not allowed is named. */
int rc_qp_modify(struct rc_worker *w, uint32_t qpn, const struct qp_attr *attr, uint32_t mask,
	struct error *err);
/** At any time; outstanding work requests vanish without completion, as ibv_destroy_qp. */
int rc_qp_destroy(struct rc_worker *w, uint32_t qpn, struct error *err);

struct rc_qp_info {
	uint32_t qpn;
	unsigned int worker;
	struct qp_init_attr init;
	struct qp_attr attr; /**< qp_state is the current one; sq_psn, rq_psn the next and the expected PSN */
	struct rc_counters counters;
	uint32_t sq_posted; /**< work requests not yet completed */
	uint32_t rq_posted;
	uint32_t sq_unacked; /**< PSNs in flight */
	uint32_t retry_left;
	uint32_t rnr_left;
	uint16_t udp_sport;
	bool alt_loaded; /**< there is an alternate path: attr.alt_ fields */
	uint32_t rate_limit; /**< kbit/s it is limited to for congestion, 0: it is not */
};
int rc_qp_query(const struct rc_worker *w, uint32_t qpn, struct rc_qp_info *info);
/** Walk this worker's QPs: *cursor 0 starts. @retval false at the end */
bool rc_qp_next(const struct rc_worker *w, uint32_t *cursor, uint32_t *qpn);
/**
 * Any lcore: walk the numbers of all workers' QPs, in an order that moves do not change. What is
 * there from the first call to the last is found once.
 */
bool rc_dev_qp_next(const struct rc_dev *dev, uint32_t *cursor, uint32_t *qpn);

/** What has come in, for a user that looks at each turn: Writes without immediate tell nobody else. */
struct rc_qp_received {
	uint64_t packets; /**< of any kind that got as far as the QP */
	uint64_t writes; /**< complete ones */
	uint64_t requests; /**< Reads and Atomics too */
	uint64_t bytes; /**< payload of all requests */
	bool partial; /**< a message has begun and is not complete */
};
int rc_qp_received(const struct rc_worker *w, uint32_t qpn, struct rc_qp_received *r);

/** Entry @p index of the port's P_Keys; 0, which matches nothing, if it is gone (rc-transport 5.6). */
uint16_t rc_port_pkey(const struct port_attr *port, uint16_t index);
/** On native IB: source LID, VL and source GID of @p av as the port has them now. */
void rc_av_follow(struct av *av, const struct port_attr *port, uint16_t sgid_index,
	uint8_t src_path_bits);

/**
 * Attributes of a port changed: the QPs that use it take the P_Key of their pkey_index, and on
 * native IB their source LID (with their path bits), the GID of their sgid_index and the VL of
 * their SL; their paths are compiled anew. So for their alternate paths.
 */
void rc_path_changed(struct rc_worker *w, uint16_t port, const struct port_attr *attr);

/** The same for one QP: it has come from a worker that may have seen less. */
void rc_qp_path_changed(struct rc_worker *w, uint32_t qpn, uint16_t port,
	const struct port_attr *attr);

/* --- moving a queue pair to another worker --- */

/**
 * May this QP move to worker @p to, now?
 *
 * @retval -EINVAL  no such worker, or it has an SRQ
 * @retval -EBUSY   qp_init_attr.pinned
 * @retval -ENOMEM  no rc_cq_reserve() of a CQ of it for that worker
 */
int rc_qp_movable(const struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err);
/**
 * Old owner, not while it is receiving or sending: give the QP to worker @p to, in whatever state
 * it is. From now on rc_owner() names @p to, but the QP is found nowhere, its packets get
 * VERDICT_QPN_UNKNOWN, its timer does not run, until that worker has called rc_qp_import(). What
 * it has sent should be with the device before (link_tx_flush), or later packets overtake.
 *
 * @retval -EAGAIN  too many completions from before earlier moves wait in a CQ of it: poll that
 */
int rc_qp_export(struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err);
/**
 * New owner, told by a message from @p from, which has called rc_qp_export(). Completions of each
 * of its work queues stay in order for the poller.
 *
 * @retval -ENOENT  there is no QP of this number on its way here
 */
int rc_qp_import(struct rc_worker *w, uint32_t qpn, unsigned int from);

/**
 * @retval -EINVAL  malformed: err says what
 * @retval -ENOMEM  queue full
 */
int rc_post_send(struct rc_worker *w, uint32_t qpn, const struct send_wr *wr, struct error *err);
int rc_post_recv(struct rc_worker *w, uint32_t qpn, const struct recv_wr *wr, struct error *err);

/* --- shared receive queues: live on one worker; QPs attached to them too --- */
int rc_srq_create(struct rc_worker *w, uint32_t pd, uint32_t max_wr, uint32_t max_sge,
	uint32_t *srqn, struct error *err);
/** Limit > 0 arms EVENT_SRQ_LIMIT_REACHED: raised once when fewer are posted. */
int rc_srq_modify(struct rc_worker *w, uint32_t srqn, uint32_t limit, struct error *err);
int rc_srq_destroy(struct rc_worker *w, uint32_t srqn, struct error *err);
int rc_srq_post(struct rc_worker *w, uint32_t srqn, const struct recv_wr *wr, struct error *err);
struct rc_srq_info {
	uint32_t srqn;
	unsigned int worker;
	uint32_t pd;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t posted;
	uint32_t limit;
	uint32_t users;
};
int rc_srq_query(const struct rc_worker *w, uint32_t srqn, struct rc_srq_info *info);
/** Worker that owns an SRQ, from any lcore; -1: none. */
int rc_srq_owner(const struct rc_dev *dev, uint32_t srqn);
bool rc_srq_next(const struct rc_worker *w, uint32_t *cursor, uint32_t *srqn);

#endif
