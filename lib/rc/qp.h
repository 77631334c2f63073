/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_QP_H
#define RC_QP_H

/**
 * @file
 * Private to lib/rc: the queue pair and its worker. Requester and responder have their own structs
 * (requester.h, responder.h).
 */

/* the system's headers for the whole folder */
#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include <rte_bitops.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_debug.h>
#include <rte_prefetch.h>

#include "base/slab.h"
#include "rc/rc.h"
#include "rc/requester.h"
#include "rc/responder.h"
#include "rc/rq.h"
#include "rc/trace.h"
#include "wire/wire.h"

/* qp.work: which half of the QP has packets to send in rc_run() */
#define WORK_RESPOND 0x1 /* responses, ACK or NAK to send */
#define WORK_REQUEST 0x2 /* requests to send */

/* qp.apart: why rc_run() serves the QP by serve_apart() */
#define RC_APART_LIMITED 0x1 /* rp limits the rate (dcqcn.h) */
#define RC_APART_TRACED  0x2 /* its steps are recorded (trace.h) */

/* Credit that a packet costs besides its payload (schedule.c) */
#define RC_PACKET_COST 512
/* Credit a QP gets per turn: two packets of the largest PMTU, or 16 of 64 bytes */
#define RC_QUANTUM (2 * (MTU_MAX + RC_PACKET_COST))

/* What a check of a packet returns if it passes; a verdict ends the packet's way */
#define RC_PASSED VERDICT_COUNT

#define RC_KNOWN_NONE UINT64_MAX /* no packet has this encapsulation */

/*
 * Fields used together share a cache line of 64 bytes; a WQE is one line more (rq.h, requester.h):
 *
 *   every packet                    first line
 *   received, address check         path.av
 *   received request                resp, and own_rq for a Send
 *   sent request, received response req: two lines
 *   sent packet                     path: three lines
 *   all of them                     the first line of counters
 *
 * The QP's rings follow it in memory: first the RQ's, then the SQ's.
 */
struct rc_qp {
	/* every packet */
	uint32_t qpn;
	uint32_t dest_qpn;
	/** packet_word() of the last packet admitted, or RC_KNOWN_NONE (worker.c) */
	uint64_t known;
	uint8_t state; /**< enum qp_state */
	uint8_t work; /**< WORK_ bits; non-zero: on the worker's run queue */
	bool on_run_queue; /**< or in share->waiting */
	uint16_t pmtu;
	uint8_t pmtu_shift; /**< log2(pmtu) */
	uint8_t mig_state; /**< enum mig_state */
	bool migreq; /**< BTH M of sent packets */
	bool comm_est; /**< EVENT_COMM_EST was raised */
	uint8_t apart; /**< RC_APART_ bits: not served in the common way */
	bool requests_first; /**< send requests before Read responses this turn (schedule.c) */
	/* copies from init */
	bool ack_per_packet;
	bool flow_control;
	bool sig_all; /**< sq_sig_all */
	uint8_t access; /**< qp_access_flags */
	int32_t credit; /**< bytes it may still send in this turn (schedule.c) */
	uint32_t pd;
	struct rc_worker *worker;
	struct rc_counters *totals; /**< its worker's, of its port */
	struct rc_rq *rq; /**< own_rq, or its SRQ's */

	/* received Send */
	struct rc_rq own_rq __attribute__((aligned(CACHE_LINE)));
	struct rc_cq *send_cq;
	LIST_ENTRY(rc_qp) link; /* the worker's QPs */

	/* received request; the second line is for Writes */
	struct rc_cq *recv_cq __attribute__((aligned(CACHE_LINE)));
	struct rc_srq *srq; /**< or NULL */
	struct rc_responder resp;

	/* received packet (address check), sent packet */
	struct path path __attribute__((aligned(CACHE_LINE)));
	uint64_t bth; /**< BTH fields common to all sent packets (put_bth_of()) */
	STAILQ_ENTRY(rc_qp) run_link;
	struct rc_share *share; /**< with whom it has turns; NULL: it has its own */

	/* sent request, received response */
	struct rc_requester req __attribute__((aligned(CACHE_LINE)));
	LIST_ENTRY(rc_qp) grace_link; /* req.held: a local operation waits for its grace period */

	struct rc_counters counters __attribute__((aligned(CACHE_LINE))); /* hot ones first */

	/* rarely used */
	struct qp_failure failure; /**< why it fails, or failed last (failure.h) */
	uint16_t pkey;
	bool alt_loaded; /**< attr.alt holds an alternate path */
	bool mig_err; /**< EVENT_PATH_MIG_ERR was raised since the last REARM */
	uint64_t next_cnp; /* earliest time of the next CNP */
	struct rc_rp *rp; /* NULL: no limiter */
	struct trace *trace; /**< its last steps; NULL: they are not recorded */
	struct qp_attr attr;
	struct qp_init_attr init;
};

#define RC_QP_LINE(field) (offsetof(struct rc_qp, field) / CACHE_LINE)
_Static_assert(RC_QP_LINE(rq) == 0, "every packet");
_Static_assert(RC_QP_LINE(recv_cq) == RC_QP_LINE(resp.ack.owed), "a request received");
_Static_assert(RC_QP_LINE(bth) == RC_QP_LINE(path.neighbour), "sent packet");
_Static_assert(RC_QP_LINE(bth) == RC_QP_LINE(run_link), "sent packet");
_Static_assert(offsetof(struct path, av.dgid) + sizeof(union gid) <= CACHE_LINE, "addresses");
_Static_assert(offsetof(struct rc_counters, rx_read_requests) < CACHE_LINE, "the hot ones");

struct rc_worker {
	struct rc_dev *dev;
	struct mem *mem;
	struct tx_sink *tx;
	struct timer_wheel *wheel;
	uint64_t now; /**< time of the burst being worked on */
	STAILQ_HEAD(, rc_qp) run_queue;
	LIST_HEAD(, rc_qp) qps;
	uint32_t num_qps; /**< atomic: other lcores read it */
	uint32_t little; /**< turns left for which turns stay short (schedule.c) */
	LIST_HEAD(, rc_qp) grace;
	struct rc_cq_ring *notify; /**< CQ rings that got completions since the last rc_run() */
	struct rc_slots *slots; /**< free QP slots (qp_directory.h) */
	struct slab *slab; /**< memory of the QPs created on this worker */
	unsigned int id;
	uint8_t errors; /**< work for the end of a step: RC_QP_FAILED, ... (failure.h) */
#ifdef RTE_ENABLE_ASSERT
	const struct rc_qp *failed; /**< the QP that RC_QP_FAILED is about */
#endif
	struct rc_worker_config config; /**< of .tx, .wheel and .id there are copies above */
	bool trace_all; /**< record new QPs, too */
	struct rc_trace_sink recorder;
	struct rc_counters counters[RC_PORTS_MAX];
	struct port_violations violations[RC_PORTS_MAX];
};

/** Add to a counter of the QP, and of its worker and port. */
#define rc_add(qp, field, n)                                                                       \
	do {                                                                                       \
		(qp)->counters.field += (n);                                                       \
		(qp)->totals->field += (n);                                                        \
	} while (0)
#define rc_count(qp, field) rc_add(qp, field, 1)

/** Bytes of a message before the packet with a PSN. @param first  PSN of its first packet */
static inline uint32_t
rc_offset(const struct rc_qp *qp, uint32_t psn, uint32_t first)
{
	return psn_sub(psn, first) << qp->pmtu_shift;
}

/** Packets of so many bytes: at least one (rc-transport 4). */
static inline uint32_t
rc_message_packets(const struct rc_qp *qp, uint32_t bytes)
{
	return bytes == 0 ? 1 : ((bytes - 1) >> qp->pmtu_shift) + 1;
}

/** True if congestion control limits the QP's rate. */
static inline bool
rc_limited(const struct rc_qp *qp)
{
	return qp->apart & RC_APART_LIMITED;
}

/* share.c: a QP with a share */
/** Put it on the run queue, or after the others of its share. */
void rc_share_want(struct rc_qp *qp);
/**
 * It left the run queue: the next one of its share takes its place there.
 *
 * @param full  the sink is full: the next one waits for its turn, whatever credit is left
 */
void rc_share_pass(struct rc_qp *qp, bool full);
/**
 * None of its QPs has a turn any more, nor waits for one. The caller clears their .on_run_queue,
 * and rc_want() begins again.
 */
void rc_share_stop(struct rc_worker *w, struct rc_share *share);
/** It has work, or not, and will have no turn any more. */
void rc_share_unlink(struct rc_qp *qp);

/** Put the QP on its worker's run queue for the given half. */
static inline void
rc_want(struct rc_qp *qp, uint8_t work)
{
	qp->work |= work;
	if (!qp->on_run_queue) {
		qp->on_run_queue = true;
		if (likely(qp->share == NULL))
			STAILQ_INSERT_TAIL(&qp->worker->run_queue, qp, run_link);
		else
			rc_share_want(qp);
	}
}

/** Prefetch the header template of packets to send. */
static inline void
rc_prefetch_header(const struct rc_qp *qp)
{
	rte_prefetch0(qp->path.header);
	rte_prefetch0(qp->path.header + CACHE_LINE);
}

/** Prefetch what the QP's turn in rc_run() will use to send requests. */
static inline void
rc_prefetch_turn(const struct rc_qp *qp)
{
	rte_prefetch0(qp);
	rte_prefetch0(&qp->req);
	rte_prefetch0(&qp->req.ack_timeout);
	rte_prefetch0(&qp->counters);
	rte_prefetch0(&qp->path);
	rc_prefetch_header(qp);
}

/**
 * While the first QP of the run queue is served, prefetch the WQE of the second, whose own lines
 * have arrived, and the lines of the third.
 */
static inline void
rc_prefetch_turns(const struct rc_qp *qp)
{
	const struct rc_qp *next = STAILQ_NEXT(qp, run_link);

	if (next == NULL)
		return;
	if (next->work & WORK_REQUEST)
		rte_prefetch0(rc_sq_at(&next->req, next->req.send));
	next = STAILQ_NEXT(next, run_link);
	if (next == NULL)
		return;
	rc_prefetch_turn(next);
	rte_prefetch0(&next->resp);
}

/**
 * Charge a QP for a duplicate or out-of-sequence request, which costs the worker time. The debt
 * stays below one quantum.
 */
static inline void
rc_charge(struct rc_qp *qp, const struct packet *pkt)
{
	int32_t credit = qp->credit - (int32_t)(RC_PACKET_COST + pkt->payload_len);

	qp->credit = RTE_MAX(credit, 1 - RC_QUANTUM);
}

/* qp.c */
void rc_qp_free(struct rc_qp *qp);
/** Link the QP into its worker's list of QPs, or unlink it from this list and the run queue. */
void rc_qp_link(struct rc_qp *qp);
void rc_qp_unlink(struct rc_qp *qp);
/** A number that a consumer gives, and the values allowed for it. */
struct rc_range {
	uint32_t given; /**< 0: it is not given */
	const char *name;
	uint32_t got, min, max;
};
/** Check n numbers. @param of  prefix of their names, for errors @retval -EINVAL */
int rc_check_ranges(const struct rc_range *r, unsigned int n, const char *of, struct error *err);

/* qp_path.c */
void rc_qp_path(struct rc_qp *qp); /* build qp.path from the address vector */
/** Send a packet that has a BTH alone, and a payload. @retval false  sink full */
bool rc_send_bare(struct rc_qp *qp, const struct tx_headers *bth, const void *payload,
	uint32_t len);
/**
 * Call after a change of worker, state, path, P_Key, peer's QPN, migration state or recording: no
 * packet is known any more, and the fields that others use for speed are new.
 */
void rc_qp_changed(struct rc_qp *qp);

/* migrate.c */
void rc_migration_reset(struct rc_qp *qp);
void rc_migration_start(struct rc_qp *qp); /* INIT -> RTR: set M by the path's encapsulation */
/** Check PATH_MIG_STATE of a modify. @retval -EINVAL not allowed now */
int rc_migration_check(const struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask,
	struct error *err);
/** Apply ALT_PATH and PATH_MIG_STATE after rc_migration_check(). */
void rc_migration_modify(struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask);
/** ARMED -> MIGRATED: the alternate path becomes the only one, EVENT_PATH_MIG. */
void rc_migrate(struct rc_qp *qp);
/**
 * A packet with M 1 came on another path than the alternate one: EVENT_PATH_MIG_ERR, once per
 * REARM.
 */
void rc_migration_refused(struct rc_qp *qp);

/* event.c */
void rc_event_pass(const struct rc_worker *w, const struct event *ev);
void rc_event(struct rc_worker *w, enum event_type type, uint32_t element);
void rc_qp_event(struct rc_qp *qp, enum event_type type);
/** The SRQ itself has fewer requests than the armed limit: raise its event, unless more wait. */
void rc_srq_below_limit(struct rc_srq *srq);

/** A WQE was taken from the SRQ: raise EVENT_SRQ_LIMIT_REACHED if armed and due. */
static inline void
rc_srq_taken(struct rc_srq *srq)
{
	if (srq->limit > 0 && rc_rq_posted(&srq->rq) < srq->limit)
		rc_srq_below_limit(srq);
}

/* srq.c */
/** The worker's SRQ of that number, or NULL. */
struct rc_srq *rc_srq_find(const struct rc_worker *w, uint32_t srqn);
/** Error text: there is no such SRQ here. @return -ENOENT, or -EINVAL: another worker has it */
int rc_no_srq(const struct rc_worker *w, uint32_t srqn, struct error *err);

/* requester.c, requester_life.c, sq.c, completer.c */
enum verdict rc_complete(struct rc_qp *qp, const struct packet *pkt);
/**
 * Send requests while the QP has credit. Clears WORK_REQUEST when nothing more can be sent now. If
 * it returns less than budget with WORK_REQUEST set and credit left, the sink is full.
 *
 * @return packets sent
 */
unsigned int rc_request(struct rc_qp *qp, unsigned int budget);
size_t rc_sq_bytes(const struct qp_cap *cap); /* of the SQ's ring */
void rc_requester_create(struct rc_qp *qp, uint8_t *wqes); /* the SQ */
void rc_requester_destroy(struct rc_qp *qp);
void rc_requester_start(struct rc_qp *qp); /* RTR -> RTS */
void rc_requester_resume(struct rc_qp *qp); /* SQD -> RTS, SQD -> SQD */
void rc_requester_migrated(struct rc_qp *qp); /* new path: reload timeout and retry counter */
void rc_requester_drain(struct rc_qp *qp); /* RTS -> SQD: EVENT_SQ_DRAINED if asked for */
bool rc_requester_drained(const struct rc_qp *qp); /* every started request has completed */
void rc_requester_flush(struct rc_qp *qp); /* every SQ WQE completes with WR_FLUSH_ERR */
void rc_requester_reset(struct rc_qp *qp); /* drop every SQ WQE without completion */

/* cnp.c */
void rc_congestion(struct rc_qp *qp); /* a packet with ECN CE arrived: send a CNP */

/* responder.c, responses.c */
enum verdict rc_respond(struct rc_qp *qp, const struct packet *pkt);
/**
 * Send the responses owed, in order: Read responses, Atomic ACKs, ACKs, then a NAK; also in ERR,
 * while the QP has credit. Clears WORK_RESPOND when all are sent. If it returns less than budget
 * with WORK_RESPOND set and credit left, the sink is full.
 *
 * @return packets sent
 */
unsigned int rc_answer(struct rc_qp *qp, unsigned int budget);

/* responder_life.c */
int rc_responder_create(struct rc_qp *qp); /* allocate max_dest_rd_atomic saved requests */
/** Adapt to max_dest_rd_atomic; saved requests are kept. @retval -ENOMEM */
int rc_responder_resize(struct rc_qp *qp);
void rc_responder_destroy(struct rc_qp *qp);
/** Every RQ WQE completes with WR_FLUSH_ERR (not an SRQ's). */
void rc_responder_flush(struct rc_qp *qp);

#endif
