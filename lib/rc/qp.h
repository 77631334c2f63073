/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_QP_H
#define RC_QP_H

/**
 * @file
 * Private to lib/rc: the queue pair and its queues. Requester and responder keep their own state
 * in structs of their own (requester.h, responder.h); what both share stands here.
 */

#include <sys/queue.h>

#include <rte_prefetch.h>

#include "base/slab.h"
#include "rc/rc.h"
#include "rc/requester.h"
#include "rc/responder.h"
#include "rc/rq.h"
#include "wire/wire.h"

/* qp.work: which of the QP's halves want rc_run()'s attention */
#define WORK_RESPOND 0x1 /* responses, ACK or NAK to send */
#define WORK_REQUEST 0x2 /* requests to send */

/* What a packet costs of a QP's credit beside its payload (run.c) */
#define RC_PACKET_COST 512
/* What it gets each turn: two packets of the largest PMTU, 16 of 64 bytes */
#define RC_QUANTUM (2 * (MTU_MAX + RC_PACKET_COST))

#define PKEY_FULL 0x8000 /* the membership bit of a P_Key */

/*
 * What a packet touches stands together, a line of 64 bytes for each purpose; a row of the queues
 * is one line more (rq.h, requester.h):
 *
 *   every packet                    first line
 *   received: is it the peer's?     path.av
 *   received request                resp, and own_rq for a Send
 *   sent request, received answer   req: two lines
 *   sent packet                     path: three lines
 *   all of them                     the first line of counters
 *
 * The QP's rings follow it in memory: first the RQ's, then the SQ's.
 */
struct rc_qp {
	/* every packet */
	uint32_t qpn;
	uint32_t dest_qpn;
	union {
		struct { /* in the order of struct packet */
			uint16_t pkey;
			uint16_t port;
			uint32_t encap;
		};
		uint64_t known; /**< a packet with these is taken, no more is asked (worker.c) */
	};
	uint8_t state; /**< enum qp_state */
	uint8_t type; /**< enum qp_type */
	uint8_t work; /**< WORK_ bits; non-zero: on the worker's run queue */
	bool on_run_queue;
	uint16_t pmtu;
	uint8_t pmtu_shift; /**< log2(pmtu) */
	uint8_t mig_state; /**< enum mig_state */
	bool migreq; /**< BTH M of what it sends */
	bool comm_est; /**< EVENT_COMM_EST told */
	bool limited; /**< by its rate: rp says when it may send (dcqcn.h) */
	bool requests_first; /**< its requests go before its Read responses this turn (run.c) */
	/* of init */
	bool ack_per_packet;
	bool flow_control;
	bool sig_all; /**< sq_sig_all */
	uint8_t access; /**< qp_access_flags */
	int32_t credit; /**< bytes it may send before others have their turn (run.c) */
	uint32_t pd;
	struct rc_worker *worker;
	STAILQ_ENTRY(rc_qp) run_link;
	struct rc_rq *rq; /**< own_rq, or its SRQ's */

	/* a Send received */
	struct rc_rq own_rq __attribute__((aligned(CACHE_LINE)));
	struct rc_cq *send_cq;
	LIST_ENTRY(rc_qp) link; /* the worker's QPs */

	/* a request received; the second line is a Write's */
	struct rc_cq *recv_cq __attribute__((aligned(CACHE_LINE)));
	struct rc_srq *srq; /**< or NULL */
	struct rc_responder resp;

	/* a packet received, and all that are sent */
	struct path path __attribute__((aligned(CACHE_LINE)));
	uint64_t bth; /**< what its first words in all its packets have in common (put_bth_of()) */

	/* a request sent, an answer received */
	struct rc_requester req __attribute__((aligned(CACHE_LINE)));
	LIST_ENTRY(rc_qp) grace_link; /* req.held: a local operation waits for its grace period */

	struct rc_counters counters __attribute__((aligned(CACHE_LINE))); /* hot ones first */

	/* seldom */
	bool alt_loaded; /**< attr.alt_ fields hold an alternate path */
	bool mig_err; /**< EVENT_PATH_MIG_ERR told since it was asked to arm */
	uint64_t next_cnp; /* earliest time of the next CNP */
	struct rc_rp *rp; /* NULL: no limiter */
	struct qp_attr attr;
	struct qp_init_attr init;
};

#define RC_QP_LINE(field) (offsetof(struct rc_qp, field) / CACHE_LINE)
_Static_assert(RC_QP_LINE(rq) == 0, "every packet");
_Static_assert(RC_QP_LINE(recv_cq) == RC_QP_LINE(resp.ack.owed), "a request received");
_Static_assert(RC_QP_LINE(bth) == RC_QP_LINE(path.neighbour), "sent packet");
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
	uint32_t num_qps; /**< read by others, relaxed */
	uint32_t little; /**< turns for which a QP that sends little is remembered (run.c) */
	LIST_HEAD(, rc_qp) grace;
	struct rc_cq_ring *notify; /**< CQ rings that got completions since the last rc_run() */
	struct rc_slots *slots; /**< free QP slots (dev.h) */
	struct slab *slab; /**< for QPs made here */
	unsigned int id;
	bool cq_overrun; /**< a CQ has overrun: its QPs go to ERR (worker.c) */
	bool icrc_unchecked;
	void (*event)(void *arg, const struct event *ev);
	void *event_arg;
	void (*violation)(void *arg, const struct packet *pkt, uint32_t src_qpn);
	void *violation_arg;
	struct rc_counters counters;
	struct port_violations violations[RC_PORTS_MAX];
};

/** Count in the QP and in its worker. */
#define rc_count(qp, field, n)                                                                     \
	do {                                                                                       \
		(qp)->counters.field += (n);                                                       \
		(qp)->worker->counters.field += (n);                                               \
	} while (0)

/** Put the QP on its worker's run queue for the given half. */
static inline void
rc_want(struct rc_qp *qp, uint8_t work)
{
	qp->work |= work;
	if (!qp->on_run_queue) {
		qp->on_run_queue = true;
		STAILQ_INSERT_TAIL(&qp->worker->run_queue, qp, run_link);
	}
}

/** What a packet to be sent has in front of it. */
static inline void
rc_prefetch_header(const struct rc_qp *qp)
{
	rte_prefetch0(qp->path.header);
	rte_prefetch0(qp->path.header + CACHE_LINE);
}

/** What its turn to send will touch, if there are requests to send. */
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
 * While a QP of the run queue is served: what the next one but one will touch, and of the next one,
 * whose lines have come meanwhile, the work request it will send.
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
 * A duplicate, or a request too early: work without use. Less than a turn's worth is held against
 * the QP.
 */
static inline void
rc_charge(struct rc_qp *qp, const struct packet *pkt)
{
	int32_t credit = qp->credit - (int32_t)(RC_PACKET_COST + pkt->payload_len);

	qp->credit = credit > 1 - RC_QUANTUM ? credit : 1 - RC_QUANTUM;
}

/* qp.c */
struct rc_qp *rc_qp_find(const struct rc_worker *w, uint32_t qpn);
/**
 * To ERR: flush both queues (WR_FLUSH_ERR), disarm timers; the responder keeps the answers already
 * due. With an SRQ: EVENT_QP_LAST_WQE_REACHED.
 */
void rc_qp_error(struct rc_qp *qp);
void rc_qp_free(struct rc_qp *qp);

/* qp_modify.c */
void rc_qp_path(struct rc_qp *qp); /* compile the address vector */
/* State, path, P_Key, peer's QPN or migration has changed: what is known of its packets by now. */
void rc_qp_known(struct rc_qp *qp);

/* migrate.c */
void rc_migration_reset(struct rc_qp *qp);
void rc_migration_start(struct rc_qp *qp); /* its path is known */
/** May ALT_PATH and PATH_MIG_STATE be set so, now? */
int rc_migration_check(const struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask,
	struct error *err);
/** They may: do it. */
void rc_migration_modify(struct rc_qp *qp, const struct qp_attr *attr, uint32_t mask);
/** ARMED -> MIGRATED: the alternate path becomes the only one, EVENT_PATH_MIG. */
void rc_migrate(struct rc_qp *qp);
/** The peer asks to migrate to a path that is not ours: EVENT_PATH_MIG_ERR. */
void rc_migration_refused(struct rc_qp *qp);

/* worker.c */
void rc_event(struct rc_worker *w, enum event_type type, uint32_t element);
void rc_cq_overruns(struct rc_worker *w); /* w->cq_overrun: the QPs of such CQs go to ERR */

/* cq.c */
/**
 * Append a completion, and count it (cqe_err, cqe_flush_err). Of an overrun CQ nothing is
 * overwritten: the completion is lost, EVENT_CQ_ERR is raised once, and the QPs that complete to
 * it go to ERR when the packet or run in hand is done (never inside this call, so that the
 * caller's state holds).
 *
 * @param solicited  a receive whose packet had BTH SE; errors count as solicited by themselves
 */
void rc_cq_push(struct rc_cq *cq, struct rc_qp *qp, const struct wc *wc, bool solicited);

/* requester.c, requester_life.c, sq.c, completer.c */
enum verdict rc_complete(struct rc_qp *qp, const struct packet *pkt);
/**
 * Send requests while there is credit. Clears WORK_REQUEST when nothing more can go now; returning
 * less than budget with it set and credit left means that the sink is full.
 *
 * @return packets sent
 */
unsigned int rc_request(struct rc_qp *qp, unsigned int budget);
size_t rc_sq_bytes(const struct qp_cap *cap); /* of the SQ's ring */
void rc_requester_create(struct rc_qp *qp, uint8_t *wqes); /* the SQ */
void rc_requester_destroy(struct rc_qp *qp);
void rc_requester_start(struct rc_qp *qp); /* RTR -> RTS */
void rc_requester_resume(struct rc_qp *qp); /* SQD -> RTS, SQD -> SQD */
void rc_requester_migrated(struct rc_qp *qp); /* another path: timeout and retries begin anew */
void rc_requester_drain(struct rc_qp *qp); /* RTS -> SQD: EVENT_SQ_DRAINED if asked for */
bool rc_requester_drained(const struct rc_qp *qp); /* no request begun is without its completion */
void rc_requester_flush(struct rc_qp *qp); /* every SQ WQE completes with WR_FLUSH_ERR */
void rc_requester_reset(struct rc_qp *qp); /* forgotten without completion */
void rc_requester_grace(struct rc_qp *qp); /* look whether the grace period waited for is over */

/* congestion.c */
void rc_congestion(struct rc_qp *qp); /* a packet came with ECN CE */

/* responder.c, responses.c */
enum verdict rc_respond(struct rc_qp *qp, const struct packet *pkt);
/**
 * Send what the responder owes: Read response slices, Atomic ACKs, ACK or NAK, in order; also in
 * ERR, while there is credit. Clears WORK_RESPOND when all is sent; returning less than budget with
 * it set and credit left means that the sink is full.
 *
 * @return packets sent
 */
unsigned int rc_answer(struct rc_qp *qp, unsigned int budget);

/* responder_life.c */
int rc_responder_create(struct rc_qp *qp); /* room for max_dest_rd_atomic saved requests */
/** At least so much room; what is saved stays. @retval -ENOMEM */
int rc_responder_resize(struct rc_qp *qp);
void rc_responder_destroy(struct rc_qp *qp);
void rc_responder_start(struct rc_qp *qp); /* INIT -> RTR */
/** Every RQ WQE completes with WR_FLUSH_ERR (not an SRQ's). */
void rc_responder_flush(struct rc_qp *qp);

#endif
