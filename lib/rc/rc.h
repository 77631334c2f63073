/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RC_H
#define RC_RC_H

/**
 * @file
 * The RC transport: queue pairs, their queues, and the packets they send and answer.
 *
 * A struct rc_dev is the channel adapter: limits, the QP directory, the completion queues. A struct
 * rc_worker is one lcore's share of it: the QPs it owns, their timers, its transmit sink. Unless
 * stated otherwise, a function may be called only on the worker that owns the object, and objects
 * are named by number. Nothing here reads a clock, allocates on the packet path, logs, or calls
 * EAL: the same code runs under test/sim's virtual clock.
 *
 * lib/engine's workers call receive and run, and its verbs all else; lib/cm and lib/svc make and
 * use QPs on their worker.
 *
 * Sources: rc-transport (wire and state rules), seed 001 (NAKs), seed 002 (normal operation),
 * rc-cases.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
#define RC_QPN_MIN     16 /* lower QPNs are QP0, QP1 and fixed numbers */

/** Reaction to CNPs, DCQCN (docs/spec/congestion.md, which also lists mlx5's names of these). */
struct rc_congestion {
	bool dcqcn; /**< off: CNPs have no effect, and packets are not marked as ECN capable */
	uint32_t g; /**< alpha changes by 1/g of the difference, 1 to 65536 */
	uint32_t alpha_timer; /**< microseconds without CNP after which alpha decays */
	uint32_t increase_timer; /**< microseconds after which the rate rises */
	uint32_t byte_counter; /**< bytes sent after which the rate rises */
	/** F: number of rises that only return towards the rate before the cut */
	uint32_t fast_recovery;
	uint32_t rate_ai; /**< Mbit/s added by each rise after F */
	uint32_t rate_hai; /**< Mbit/s added when both timer and byte counter are beyond F */
	uint32_t min_rate; /**< Mbit/s */
	uint32_t max_rate; /**< Mbit/s of the port: a QP that reaches it is no longer limited */
	uint32_t cut_interval; /**< least microseconds between two reductions */
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
	/** smaller Local ACK Timeouts, except 0, are raised to it (seed 002) */
	uint8_t min_ack_timeout;
	uint32_t window; /**< unacknowledged PSNs a QP may have in flight, <= PSN_WINDOW */
	uint32_t ack_interval; /**< AckReq at least once in this many request packets */
	/** a freed QP slot is reused after this many others were freed, unless slots run out */
	uint32_t quarantine;
	struct rc_congestion congestion;
};

/** Sensible limits; callers change fields. */
extern const struct rc_limits rc_limits_default;

/**
 * Copy the limits that size no memory of a device and may change while it is used: those of work
 * requests and completions, .min_ack_timeout, .window, .ack_interval and .quarantine.
 */
void rc_limits_reload(struct rc_limits *to, const struct rc_limits *from);

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
/**
 * Control thread: rc_limits_reload() for a device. Objects that exist keep what they were made
 * with; workers see the values when they next look.
 */
void rc_dev_reload_limits(struct rc_dev *dev, const struct rc_limits *limits);

/**
 * Worker that owns a QP, from any lcore; -1: no such QP. One load, so that any lcore may classify a
 * packet.
 */
int rc_owner(const struct rc_dev *dev, uint32_t qpn);

/* --- completion queues: created and destroyed on the control thread; polled by one poller --- */
int rc_cq_create(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err);
/**
 * As rc_cq_create(), with the highest free number: for services, so that clients get the low
 * numbers.
 */
int rc_cq_create_top(struct rc_dev *dev, uint32_t depth, uint32_t *cqn, struct error *err);
/** @retval -EBUSY a QP uses it */
int rc_cq_destroy(struct rc_dev *dev, uint32_t cqn, struct error *err);
/**
 * The CQ's one poller. @return completions stored, or -ENOENT; -EIO: the CQ has overrun (after
 * EVENT_CQ_ERR)
 */
int rc_cq_poll(struct rc_dev *dev, uint32_t cqn, struct wc *wc, unsigned int n);
/**
 * Control thread: allocate the CQ's ring for @p worker. QPs of the CQ can move only to workers that
 * have a ring. rc_qp_create() allocates the ring of its own worker.
 *
 * @retval -ENOENT  no such completion queue
 * @retval -ENOMEM
 */
int rc_cq_reserve(struct rc_dev *dev, uint32_t cqn, unsigned int worker, struct error *err);
/**
 * As rc_cq_reserve() for worker @p to, before all QPs of the CQ move there from worker @p from. A
 * CQ that has no ring for that worker has no QP there, and needs none.
 *
 * @return 1: the ring was made; 0: it is there, or not needed
 */
int rc_cq_reserve_move(struct rc_dev *dev, uint32_t cqn, unsigned int from, unsigned int to,
	struct error *err);
/** The CQ's poller: free that ring again, to which no QP has moved. */
void rc_cq_unreserve(struct rc_dev *dev, uint32_t cqn, unsigned int worker);
/**
 * Request one EVENT_CQ_COMPLETION at the next completion, or the next solicited or failed one. Any
 * thread.
 */
int rc_cq_arm(struct rc_dev *dev, uint32_t cqn, bool solicited_only);
/**
 * Poller: call rc_worker_config.awaited once when the next completion comes. Poll after this call:
 * one that came before does not count. @retval -ENOENT no such CQ
 */
int rc_cq_await(struct rc_dev *dev, uint32_t cqn);
/**
 * Control thread, before a QP uses the CQ: from now on workers call rc_worker_config.completed
 * after each run that has put completions there. For a poller that is such a worker. @retval
 * -ENOENT no such CQ
 */
int rc_cq_follow(struct rc_dev *dev, uint32_t cqn);
struct rc_cq_info {
	uint32_t cqn;
	uint32_t depth;
	uint32_t pending; /**< completions waiting (approximate while workers run) */
	uint32_t users;
	bool overrun;
};
int rc_cq_query(const struct rc_dev *dev, uint32_t cqn, struct rc_cq_info *info);
bool rc_cq_next(const struct rc_dev *dev, uint64_t *cursor, struct rc_cq_info *info);

/* --- a worker --- */

/*
 * X(name, help): counters of a QP and, summed, of a worker's QPs on a port; named as in rdma-tool,
 * mlx5 and rxe. One writer, relaxed readers. The first eight, which packets in order change, share
 * a cache line (qp.h). Migrations are started by either side; CNPs are ignored with dcqcn off, too.
 */
/* clang-format off */
#define RC_COUNTERS(X)                                                                             \
	X(sent_pkts, "packets sent")                                                               \
	X(rcvd_pkts, "packets received that passed the checks before the queue pair")              \
	X(sent_bytes, "payload bytes sent")                                                        \
	X(rcvd_bytes, "payload bytes of executed requests and used responses")                     \
	X(ack_deferred, "ACKs saved by coalescing")                                                \
	X(rx_send_requests, "Sends executed")                                                      \
	X(rx_write_requests, "Writes executed")                                                    \
	X(rx_read_requests, "Read requests executed")                                              \
	X(duplicate_request, "request packets received again")                                     \
	X(out_of_sequence, "request packets ahead of the expected PSN")                            \
	X(rcvd_rnr_err, "RNR NAKs received")                                                       \
	X(send_rnr_err, "RNR NAKs sent")                                                           \
	X(rcvd_seq_err, "PSN sequence NAKs received")                                              \
	X(send_seq_err, "PSN sequence NAKs sent")                                                  \
	X(retry_exceeded_err, "work requests failed because the transport retries ran out")        \
	X(rnr_nak_retry_err, "work requests failed because the RNR retries ran out")               \
	X(local_ack_timeout_err, "times the transport timer expired")                              \
	X(implied_nak_seq_err, "ACKs, NAKs and responses past a missing response to a Read or Atomic (implied NAKs)") \
	X(retransmitted_pkts, "request packets sent again")                                        \
	X(completer_retry_err, "times sending went back to an earlier PSN")                        \
	X(resp_remote_access_errors, "requests refused for their R_Key, range or rights")          \
	X(resp_invalid_requests, "requests refused as invalid")                                    \
	X(resp_local_length_error, "Sends longer than the buffers posted for them")                \
	X(req_remote_access_errors, "work requests the peer refused for key, range or rights")     \
	X(req_remote_invalid_request, "work requests the peer refused as invalid")                 \
	X(req_remote_operation_errors, "work requests the peer failed to execute")                 \
	X(rx_atomic_requests, "Atomics executed")                                                  \
	X(req_cqe_flush_error, "send completions flushed in error")                                \
	X(req_cqe_error, "send completions with another error")                                    \
	X(resp_cqe_flush_error, "receive completions flushed in error")                            \
	X(resp_cqe_error, "receive completions with another error")                                \
	X(cq_overrun, "queue pairs in error because their completion queue has overrun")           \
	X(tx_stall, "times the transmit sink had no packet")                                       \
	X(credit_stall, "times a Send waited for end-to-end credits")                              \
	X(np_ecn_marked_roce_packets, "packets received with ECN CE (congestion experienced)")     \
	X(np_cnp_sent, "congestion notification packets sent for them")                            \
	X(path_migrations, "times a queue pair went over to its alternate path")                   \
	X(rp_cnp_handled, "congestion notification packets that reduced a queue pair's rate")      \
	X(rp_cnp_ignored, "congestion notification packets too soon after another")                \
	X(rp_rate_limited, "times a queue pair waited for its rate")
/* clang-format on */

struct rc_counters {
#define X(name, help) uint64_t name;
	RC_COUNTERS(X)
#undef X
};
struct rc_counter_info {
	const char *name;
	const char *help;
};
#define RC_COUNTER_COUNT (sizeof(struct rc_counters) / sizeof(uint64_t))
extern const struct rc_counter_info rc_counter_infos[RC_COUNTER_COUNT];

struct rc_worker_config {
	unsigned int id; /**< 0..workers-1 */
	struct timer_wheel *wheel;
	struct tx_sink *tx;
	/** Asynchronous events; called on the worker, must not call back into lib/rc. */
	void (*event)(void *arg, const struct event *ev);
	/** A CQ of rc_cq_await() has new completions; same rules, same argument. */
	void (*awaited)(void *arg);
	/**
	 * A CQ of rc_cq_follow() has new completions; same rules, same argument.
	 *
	 * @param solicited  one of them is solicited, or has failed
	 */
	void (*completed)(void *arg, uint32_t cqn, bool solicited);
	void *event_arg;
	bool icrc_unchecked; /**< trust the link: do not verify ICRCs */
	/**
	 * A packet from @p src_qpn was dropped for its P_Key. May be NULL; same rules as event().
	 */
	void (*violation)(void *arg, const struct packet *pkt, uint32_t src_qpn);
	void *violation_arg;
};

struct rc_worker *rc_worker_create(struct rc_dev *dev, const struct rc_worker_config *config);
/** Destroys the QPs it still owns. */
void rc_worker_destroy(struct rc_worker *w);

/**
 * Process one packet for a QP of this worker. Order of checks: rc-transport 5 from QP lookup on,
 * then 6 to 8. Memory and completions are written before return; responses may wait for rc_run(),
 * so that ACKs coalesce over a burst.
 *
 * @return the verdict, which the caller counts
 */
enum verdict rc_receive(struct rc_worker *w, const struct packet *pkt, uint64_t now);

/** Number of leading packets of a burst that are for QPs of this worker (owner.h). */
unsigned int rc_own(const struct rc_worker *w, struct packet *const *pkts, unsigned int n);
/** True if the worker has more QPs than fit its cache; prefetching does not pay with fewer. */
bool rc_crowd(const struct rc_worker *w);
/**
 * Prefetch in three steps, each of which needs the data of the step before: the directory entry,
 * the QP, the queues that the QP points to. This is the first step; it also serves rc_owner().
 */
void rc_prefetch_place(const struct rc_worker *w, uint32_t qpn);
/**
 * Second and third step, for a burst of packets for QPs of this worker: call before rc_receive() of
 * each pkts[i]. Prefetches what the packets after pkts[i] will use.
 */
void rc_look_ahead(const struct rc_worker *w, struct packet *const *pkts, unsigned int n,
	unsigned int i);

/**
 * Send packets of the QPs with work, by deficit round robin in bytes (schedule.c). The caller runs
 * the timers (timer_wheel_run) first.
 *
 * @param budget  packets to send at most; a run also ends after a cost of budget * 4096 bytes
 * @return packets sent; rc_pending() tells whether more can be sent at once
 */
unsigned int rc_run(struct rc_worker *w, uint64_t now, unsigned int budget);
/** Is there work that rc_run() could do at once? */
bool rc_pending(const struct rc_worker *w);

/**
 * Queue pairs of one owner, all on one worker: together they get the turns that one queue pair gets
 * of rc_run(). The owner's memory, which outlives the queue pairs.
 */
struct rc_share {
	struct rc_qp *turn; /**< the one on the worker's run queue; NULL: none has work */
	STAILQ_HEAD(, rc_qp) waiting; /**< others with work */
	int32_t credit; /**< of none but the next that has a turn */
};
void rc_share_init(struct rc_share *share);
/** A queue pair without work joins a share, for its life. @retval -ENOENT */
int rc_qp_join(struct rc_worker *w, uint32_t qpn, struct rc_share *share);

/** Add what the worker counted for the QPs of a port (>= 0), or of all. Any lcore. */
void rc_worker_counters(const struct rc_worker *w, int port, struct rc_counters *sum);
/** Number of QPs the worker owns. Any lcore. */
uint32_t rc_worker_qps(const struct rc_worker *w);
/**
 * True if QPs have all QPNs that the worker can give; they may have moved to other workers. Any
 * lcore.
 */
bool rc_worker_full(const struct rc_worker *w);
/** Memory that a QP takes. */
size_t rc_qp_bytes(const struct qp_init_attr *attr);
/** P_Key violations that this worker counted for a port; NULL: no such port. Any lcore. */
const struct port_violations *rc_worker_violations(const struct rc_worker *w, uint16_t port);

/* --- queue pairs --- */
int rc_qp_create(struct rc_worker *w, const struct qp_init_attr *attr, uint32_t *qpn,
	struct error *err);
/** ibv_modify_qp (rc-transport 11); err names attributes that are missing or not allowed. */
int rc_qp_modify(struct rc_worker *w, uint32_t qpn, const struct qp_attr *attr, uint32_t mask,
	struct error *err);
/** In any state; as ibv_destroy_qp, outstanding work requests are dropped without completion. */
int rc_qp_destroy(struct rc_worker *w, uint32_t qpn, struct error *err);

struct rc_qp_info {
	uint32_t qpn;
	unsigned int worker;
	struct qp_init_attr init;
	/** qp_state is the current one; sq_psn, rq_psn the next and the expected PSN */
	struct qp_attr attr;
	struct rc_counters counters;
	uint32_t sq_posted; /**< work requests not yet completed */
	uint32_t rq_posted;
	uint32_t sq_unacked; /**< PSNs in flight */
	uint32_t retry_left;
	uint32_t rnr_left;
	uint16_t udp_sport;
	bool alt_loaded; /**< attr.alt holds an alternate path */
	uint32_t rate_limit; /**< kbit/s, by congestion control; 0: not limited */
	bool traced; /**< its last steps are recorded */
	struct qp_failure
		failure; /**< why it failed; reason NONE: it did not since its last RESET */
};
int rc_qp_query(const struct rc_worker *w, uint32_t qpn, struct rc_qp_info *info);
/** Walk this worker's QPs: *cursor 0 starts. @retval false at the end */
bool rc_qp_next(const struct rc_worker *w, uint32_t *cursor, uint32_t *qpn);
/**
 * Any lcore: walk the QPNs of all workers, in slot order, which moves do not change. A QP that
 * exists during the whole walk is found exactly once.
 */
bool rc_dev_qp_next(const struct rc_dev *dev, uint32_t *cursor, uint32_t *qpn);

/* --- flight recorder: the last TRACE_STEPS steps of a QP, off unless it is switched on --- */

enum rc_step { /* trace_step.event; what, outcome, detail */
	RC_STEP_RECEIVED, /**< a packet: enum opcode, enum verdict, AETH syndrome; value: payload */
	RC_STEP_SENT, /**< a packet: enum opcode, 0, AETH syndrome; value: payload */
	RC_STEP_TIMEOUT, /**< no answer to the oldest request in time; value: retries left */
	RC_STEP_RNR_OVER, /**< the wait after an RNR NAK is over; value: retries left */
	RC_STEP_MODIFIED, /**< by the consumer: enum qp_state before, and after */
	RC_STEP_FAILED, /**< to ERR: enum qp_failure_reason, enum wc_status, syndrome of the NAK */
	RC_STEP_COUNT
};

/** Start or stop recording. @retval -ENOENT no such QP here @retval -ENOMEM */
int rc_qp_trace_switch(struct rc_worker *w, uint32_t qpn, bool on);
/** All QPs of this worker, and new ones. @return QPs that were switched */
unsigned int rc_trace_switch_all(struct rc_worker *w, bool on);
/** @retval -ENOENT no such QP here @retval -ENODATA its steps are not recorded */
int rc_qp_trace(const struct rc_worker *w, uint32_t qpn, struct trace *copy);

#define RC_STEP_TEXT_MAX 64
const char *rc_step_name(uint8_t event); /* "received" */
bool rc_step_has_psn(const struct trace_step *s);
bool rc_step_has_expected(const struct trace_step *s);
/** The packet, or what happened. @return buf */
const char *rc_step_what(const struct trace_step *s, char buf[RC_STEP_TEXT_MAX]);
/** What became of it; may be empty. @return buf */
const char *rc_step_outcome(const struct trace_step *s, char buf[RC_STEP_TEXT_MAX]);
/** Print the steps of all recorded QPs of a worker: for a failed simulation or assertion. */
void rc_trace_print_all(FILE *f, const struct rc_worker *w);

/**
 * Progress of received requests, for a consumer that polls it: a Write without immediate has no
 * completion.
 */
struct rc_qp_received {
	uint64_t packets; /**< counters.rcvd_pkts */
	uint64_t writes; /**< complete Writes */
	uint64_t requests; /**< Sends, Writes, Reads and Atomics, complete or not */
	uint64_t bytes; /**< counters.rcvd_bytes */
	bool partial; /**< a message is in progress */
};
int rc_qp_received(const struct rc_worker *w, uint32_t qpn, struct rc_qp_received *r);

/**
 * Send a zero-length Send with the PSN before the oldest unacknowledged one and AckReq: a
 * duplicate, which a living responder acknowledges without any other effect. The reply shows in
 * rc_qp_received().packets. Nothing is repeated and no timer starts.
 *
 * @retval -EINVAL  the QP is not in RTS
 * @retval -EAGAIN  the transmit sink is full
 */
int rc_qp_keepalive(struct rc_worker *w, uint32_t qpn);

/**
 * Entry @p index of the port's P_Keys; 0, which matches nothing, if it is gone (rc-transport 5.6).
 */
uint16_t rc_port_pkey(const struct port_attr *port, uint16_t index);
/** On native IB: source LID, VL and source GID of @p av as the port has them now. */
void rc_av_follow(struct av *av, const struct port_attr *port, uint16_t sgid_index,
	uint8_t src_path_bits);

/**
 * Attributes of a port changed. Each QP that uses the port takes the P_Key at its pkey_index, and
 * on native IB its source LID (with its path bits), the GID at its sgid_index and the VL of its SL;
 * its path is built again. Alternate paths likewise.
 */
void rc_path_changed(struct rc_worker *w, uint16_t port, const struct port_attr *attr);

/** As rc_path_changed() for one QP, which moved from a worker that may not have seen the change. */
void rc_qp_path_changed(struct rc_worker *w, uint32_t qpn, uint16_t port,
	const struct port_attr *attr);

/* --- moving a queue pair to another worker --- */

/**
 * Check whether this QP can move to worker @p to now.
 *
 * @retval -EINVAL  no such worker, or the QP has an SRQ
 * @retval -EBUSY   qp_init_attr.pinned
 * @retval -ENOMEM  one of its CQs has no ring for that worker (rc_cq_reserve())
 */
int rc_qp_movable(const struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err);
/**
 * Old owner, outside rc_receive() and rc_run(): give the QP to worker @p to, in any state. From now
 * on rc_owner() names @p to. Until that worker calls rc_qp_import(), no worker finds the QP, its
 * packets get VERDICT_QPN_UNKNOWN and its timer does not run. Flush sent packets to the device
 * before (link_tx_flush), or the new owner's packets may overtake them.
 *
 * @retval -EAGAIN  one of its CQs has no free fence: poll that CQ (qp_move.h)
 */
int rc_qp_export(struct rc_worker *w, uint32_t qpn, unsigned int to, struct error *err);
/**
 * New owner, on a message from worker @p from, which has called rc_qp_export(). The poller still
 * gets the completions of each work queue in order.
 *
 * @retval -ENOENT  no such QP was exported to this worker
 */
int rc_qp_import(struct rc_worker *w, uint32_t qpn, unsigned int from);

/**
 * What one owner has on a worker, and moves together (group_move.c): all queue pairs of a share,
 * pinned or not, the shared receive queues from which they receive, and the CQs to which they
 * complete. No one else uses these.
 */
struct rc_group {
	struct rc_share *share;
	const uint32_t *qpns;
	const uint32_t *srqns;
	const uint32_t *cqns;
	uint32_t num_qps;
	uint32_t num_srqs;
	uint32_t num_cqs;
};
/**
 * As rc_qp_export(), of all or none.
 *
 * @retval -EINVAL  no such worker, or an SRQ is on another one
 * @retval -ENOENT  a queue pair, SRQ or CQ is not there
 * @retval -ENOMEM  a CQ has a ring for this worker and none for worker @p to (rc_cq_reserve_move())
 * @retval -EAGAIN  a CQ has no free fence: poll it
 */
int rc_group_export(struct rc_worker *w, const struct rc_group *g, unsigned int to,
	struct error *err);
/** As rc_qp_import(). */
void rc_group_import(struct rc_worker *w, const struct rc_group *g, unsigned int from);

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
/**
 * For the limit, requests count as posted that wait in a queue of the caller's until it posts them.
 *
 * @param count  says how many wait; called by the SRQ's worker, while a limit is armed and fewer
 *  requests than that are in the SRQ
 * @param arg  must live until rc_srq_destroy()
 */
void rc_srq_count_waiting(struct rc_worker *w, uint32_t srqn, uint32_t (*count)(const void *arg),
	const void *arg);
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
