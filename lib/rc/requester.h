/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_REQUESTER_H
#define RC_REQUESTER_H

/**
 * @file Private to lib/rc: the requester's state (rc-transport 4 and 8). A retry rebuilds packets
 * from the WQE; the requester keeps no copies.
 */

#include "base/timer_wheel.h"
#include "rc/rc.h"

/** A WQE with one sge, or with 16 inline bytes, is one cache line. */
struct rc_sq_wqe {
	uint64_t wr_id;
	uint8_t opcode; /**< enum wr_opcode */
	uint8_t flags; /**< SEND_ */
	uint8_t num_sge;
	bool assigned; /**< PSNs are assigned; a local operation: was executed */
	uint8_t status; /**< enum wc_status: local failure, completes when the WQE is the oldest */
	uint8_t only; /**< opcode if send_only() may send it, else 0 */
	uint32_t length; /**< of the message */
	uint32_t psn; /**< first PSN, once assigned */
	uint32_t last_psn;
	/** Read: PSN of the last request; its response has First or Only there */
	uint32_t restart_psn;
	uint32_t imm; /**< immediate or R_Key to invalidate; BIND_MW: new key */
	uint32_t rkey; /**< BIND_MW: key of the window */
	uint64_t remote_addr; /**< BIND_MW: first address */
	struct sge sge[]; /**< or inline bytes */
};

/** Fields of Atomics and local operations only, at the end of the WQE's place in the ring. */
struct rc_sq_more {
	uint64_t compare_add; /**< BIND_MW: length */
	uint64_t swap;
	uint64_t token; /**< grace period a local operation waits for, 0: none */
	uint32_t mr_key; /**< BIND_MW */
	uint32_t access; /**< BIND_MW */
};

_Static_assert(sizeof(struct rc_sq_wqe) + sizeof(struct sge) == 64, "a cache line");

/** A position in a scatter/gather list; continuing from it needs no walk. */
struct rc_cursor {
	uint32_t wqe; /**< SQ index */
	uint32_t at; /**< offset in the message */
	uint32_t sge;
	uint32_t offset; /**< in that sge */
};

/** State after an RNR NAK. */
enum rc_rnr {
	RC_RNR_NONE = 0,
	RC_RNR_WAIT = 1, /**< waiting for the RNR timer */
	RC_RNR_PROBE = 2, /**< only the packet at una is sent until it is acknowledged */
};

/** Packets that can skip an unanswered Read or Atomic. */
enum rc_skip {
	RC_SKIP_ACK, /**< ACK or NAK: has the responder's newest PSN */
	RC_SKIP_RESPONSE, /**< Read or Atomic response: has its request's PSN */
};

/*
 * Four free-running indices into the SQ ring: tail <= ack <= send <= head. The WQEs from tail to
 * ack are done, but their completion waits for a local operation's grace period; usually tail ==
 * ack.
 *
 * Three PSNs: una <= send_psn <= next_psn. send_psn < next_psn during a retransmission.
 */
struct rc_requester {
	/* first line: sending, and processing ACKs */
	uint32_t head; /**< next free WQE */
	uint32_t send; /**< WQE that send_psn belongs to */
	uint32_t ack; /**< oldest WQE that is not done; una belongs to it */
	uint32_t tail; /**< oldest WQE that is not completed */
	uint32_t mask;
	uint32_t stride;
	uint8_t *wqes;

	uint32_t send_psn; /**< PSN of the next packet out (goes back on retry) */
	uint32_t next_psn; /**< nPSN: first PSN never sent */
	uint32_t una; /**< oldest unacknowledged PSN; in a Read: next response */
	uint32_t window;
	uint32_t ssn; /**< SSN of the next message, from 1 (rc-transport 3) */
	/** limit sequence number: messages that need a credit may have SSN <= LSN + 1 */
	uint32_t lsn;
	bool unlimited; /**< the peer sends no credit information */
	bool credit_stalled; /**< this credit stall was counted */
	uint8_t rd_atomic; /**< outstanding Reads and Atomics */
	uint8_t retry_left;
	uint8_t rnr_left;
	uint8_t rnr_wait; /**< enum rc_rnr */
	bool timing; /**< the transport timer runs */
	bool gap; /**< a response skipped una; una was retried and has no response yet */

	/* second line: timer and retries */
	uint64_t ack_timeout; /**< Ttr in time units, 0: off */
	struct timer timer; /**< transport timer or RNR wait */
	uint32_t since_ackreq;
	uint32_t key_hint; /**< for lkeys of WQEs (mem_access_hint()) */
	uint32_t max_wr; /**< as requested; the ring may be larger */
	uint8_t retry_cnt; /**< copies of qp.attr: initial retry_left and rnr_left */
	uint8_t rnr_retry;
	uint8_t max_sge; /**< per work request */
	bool held; /**< the QP is on the worker's grace list */

	/* messages of several packets, Reads */
	struct rc_cursor gather; /**< Send, Write: next byte out */
	struct rc_cursor scatter; /**< Read: next byte in */

	/* rarely used */
	uint32_t gap_psn
		[2]; /**< enum rc_skip: PSN of the last one that skipped una, see skipped() */
	uint32_t round_psn; /**< una at the last rewind */
	bool drain_notify; /**< EVENT_SQ_DRAINED wanted */
};

_Static_assert(offsetof(struct rc_requester, ack_timeout) == 64, "first line");
_Static_assert(offsetof(struct rc_requester, gather) <= 128, "second line");

static inline struct rc_sq_wqe *
rc_sq_at(const struct rc_requester *req, uint32_t index)
{
	return (struct rc_sq_wqe *)(req->wqes + (size_t)(index & req->mask) * req->stride);
}

/** The oldest WQE that is not done, if there is one. */
static inline struct rc_sq_wqe *
rc_sq_oldest(const struct rc_requester *req)
{
	return rc_sq_at(req, req->ack);
}

static inline struct rc_sq_more *
rc_sq_more(const struct rc_requester *req, struct rc_sq_wqe *wqe)
{
	return (struct rc_sq_more *)((uint8_t *)wqe + req->stride) - 1;
}

/** 24-bit distance from una. A PSN is in flight if this is less than rc_in_flight(). */
static inline uint32_t
rc_from_una(const struct rc_requester *req, uint32_t psn)
{
	return psn_sub(psn, req->una);
}

static inline uint32_t
rc_in_flight(const struct rc_requester *req)
{
	return rc_from_una(req, req->next_psn);
}

/** True during a retransmission. */
static inline bool
rc_retrying(const struct rc_requester *req)
{
	return req->send_psn != req->next_psn;
}

static inline bool
rc_wqe_local(const struct rc_sq_wqe *wqe)
{
	return wqe->opcode == WR_LOCAL_INV || wqe->opcode == WR_BIND_MW;
}

static inline bool
rc_wqe_atomic(const struct rc_sq_wqe *wqe)
{
	return wqe->opcode == WR_ATOMIC_CMP_AND_SWP || wqe->opcode == WR_ATOMIC_FETCH_AND_ADD;
}

/**
 * True for Reads and Atomics: they need their own response, no ACK completes them (rc-transport 4).
 */
static inline bool
rc_wqe_answered(const struct rc_sq_wqe *wqe)
{
	return wqe->opcode == WR_RDMA_READ || rc_wqe_atomic(wqe);
}

/** True for Sends and Writes: the other opcodes are between them in enum wr_opcode. */
static inline bool
rc_wqe_stream(const struct rc_sq_wqe *wqe)
{
	_Static_assert(WR_RDMA_READ == 4 && WR_BIND_MW == 8 && WR_SEND_WITH_INV == 9, "no others");
	return wqe->opcode < WR_RDMA_READ || wqe->opcode > WR_BIND_MW;
}

/** A piece of a message in host memory. */
struct rc_chunk {
	uint8_t *host;
	uint32_t len;
};

/* sg_cursor.c */

/** Set the cursor to byte `at` of a WQE's message. */
void rc_cursor_seek(struct rc_cursor *c, const struct rc_sq_wqe *wqe, uint32_t index, uint32_t at);
/**
 * Translate the next len bytes for local read (access 0) or MEM_ACCESS_LOCAL_WRITE, and move the
 * cursor past them.
 *
 * @param chunks  room for RC_SGE_MAX
 * @return number of chunks, or -1: an lkey does not allow the access
 */
int rc_cursor_take(struct rc_qp *qp, struct rc_cursor *c, struct rc_sq_wqe *wqe, uint32_t len,
	uint32_t access, struct rc_chunk *chunks);

/* sq.c: used by requester and completer */

#define RC_WR_FIRST 0x1
#define RC_WR_LAST  0x2
#define RC_WR_ONLY  (RC_WR_FIRST | RC_WR_LAST)

/** Properties of a work request opcode. */
struct rc_wr_info {
	uint8_t flags; /**< private to sq.c */
	uint8_t wc_opcode;
	/** a Send's or Write's opcodes, by RC_WR_FIRST and RC_WR_LAST; [0] a Read's or Atomic's */
	uint8_t packet[4];
} __attribute__((aligned(8))); /* 8 bytes: cheap to index */

extern const struct rc_wr_info rc_wr_infos[]; /**< by enum wr_opcode */

/**
 * Complete the oldest unfinished WQE with the status. The QP fails, and the caller ends the step;
 * the WQEs after it are flushed when the QP enters ERR (rc-transport 8, failure.h).
 */
void rc_sq_fail(struct rc_qp *qp, enum wc_status status);

/* retry.c: used by completer.c, and by qp.c the timer */

/** Expiry of the transport timer or of an RNR wait. */
void rc_requester_timer(struct timer *t, uint64_t now);

/** Start a retransmission from una. */
void rc_rewind(struct rc_qp *qp);
/**
 * rc_rewind() if retries are left or an armed alternate path takes over; else fail the oldest WQE
 * with RETRY_EXC_ERR.
 *
 * @retval false  the QP failed: the caller ends the step
 */
bool rc_retry(struct rc_qp *qp);

#endif
