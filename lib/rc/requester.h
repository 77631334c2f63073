/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_REQUESTER_H
#define RC_REQUESTER_H

/**
 * @file
 * Private to lib/rc: what a QP remembers as requester (rc-transport 4 and 8). Packets are rebuilt
 * from the WQE on retry; no copies are kept.
 */

#include "base/timer_wheel.h"
#include "rc/rc.h"

/** A Send, Write or Read of one piece, or with 16 inline bytes, is one cache line. */
struct rc_sq_wqe {
	uint64_t wr_id;
	uint8_t opcode; /**< enum wr_opcode */
	uint8_t flags; /**< SEND_ */
	uint8_t num_sge;
	bool assigned; /**< has its PSNs; a local operation: has been executed */
	uint8_t status; /**< enum wc_status: failed locally, tells so when it is the oldest */
	uint8_t only; /**< not sent yet, one piece, one packet: its opcode; else 0 (send_only()) */
	uint32_t length; /**< of the message */
	uint32_t psn; /**< first PSN, once assigned */
	uint32_t last_psn;
	uint32_t restart_psn; /**< Read: PSN last asked from; First or Only comes there */
	uint32_t imm; /**< immediate or R_Key to invalidate; BIND_MW: new key */
	uint32_t rkey; /**< BIND_MW: key of the window */
	uint64_t remote_addr; /**< BIND_MW: first address */
	struct sge sge[]; /**< or inline bytes */
};

/** What only Atomics and local operations have; it ends the WQE's place in the ring. */
struct rc_sq_more {
	uint64_t compare_add; /**< BIND_MW: length */
	uint64_t swap;
	uint64_t token; /**< grace period a local operation waits for, 0: none */
	uint32_t mr_key; /**< BIND_MW */
	uint32_t access; /**< BIND_MW */
};

_Static_assert(sizeof(struct rc_sq_wqe) + sizeof(struct sge) == 64, "a cache line");

/** A place in a scatter/gather list, so that going on in order costs no walk. */
struct rc_cursor {
	uint32_t wqe; /**< SQ index */
	uint32_t at; /**< bytes before it in the message */
	uint32_t sge;
	uint32_t offset; /**< in that sge */
};

/** After an RNR NAK. */
enum rc_rnr {
	RC_RNR_NONE = 0,
	RC_RNR_WAIT = 1, /**< the timer runs for it */
	RC_RNR_PROBE = 2, /**< una goes alone, until it is answered */
};

/*
 * Four indices into the SQ ring, which count for ever: tail <= ack <= send <= head. Between tail
 * and ack stand WQEs whose work is done but whose completion waits behind a local operation's
 * grace period; mostly tail == ack.
 *
 * Three PSNs: una <= send_psn <= next_psn. send_psn < next_psn while what was sent is sent again.
 */
struct rc_requester {
	/* a line: sending and being acknowledged */
	uint32_t head; /**< next free */
	uint32_t send; /**< being sent; holds send_psn */
	uint32_t ack; /**< oldest whose work is not done; holds una */
	uint32_t tail; /**< oldest not completed */
	uint32_t mask;
	uint32_t stride;
	uint8_t *wqes;

	uint32_t send_psn; /**< PSN of the next packet out (goes back on retry) */
	uint32_t next_psn; /**< nPSN: first PSN never sent */
	uint32_t una; /**< oldest unacknowledged PSN; in a Read: next response */
	uint32_t window;
	uint32_t ssn; /**< of the next message; numbers them from 1 (rc-transport 3) */
	uint32_t lsn; /**< limit sequence number: what needs a credit goes up to SSN LSN + 1 */
	bool unlimited; /**< peer sends no credit information */
	bool credit_stalled; /**< stall already counted */
	uint8_t rd_atomic; /**< outstanding Reads and Atomics */
	uint8_t retry_left;
	uint8_t rnr_left;
	uint8_t rnr_wait; /**< enum rc_rnr */
	bool timing; /**< timer runs for silence of the responder */
	bool gap; /**< a response skipped una, which was requested again and is not answered yet */

	/* a line: the same, as far as time and retries go */
	uint64_t ack_timeout; /**< Ttr in time units, 0: off */
	struct timer timer; /**< transport timer or RNR wait */
	uint32_t since_ackreq;
	uint32_t key_hint; /**< of its WQEs' lkeys (mem_access_hint()) */
	uint32_t max_wr; /**< what was asked for; the ring may be larger */
	uint8_t retry_cnt; /**< where retry_left and rnr_left begin: qp.attr's */
	uint8_t rnr_retry;
	uint8_t max_sge; /**< of a work request */
	bool held; /**< on the worker's grace list */

	/* messages of several packets, Reads */
	struct rc_cursor gather; /**< Send, Write: next byte out */
	struct rc_cursor scatter; /**< Read: next byte in */

	/* seldom */
	uint32_t gap_psn; /**< newest response that skipped una, see skipped() */
	uint32_t round_psn; /**< where the last rewind went */
	bool drain_notify; /**< EVENT_SQ_DRAINED wanted */
};

_Static_assert(offsetof(struct rc_requester, ack_timeout) == 64, "first line");
_Static_assert(offsetof(struct rc_requester, gather) <= 128, "second line");

static inline struct rc_sq_wqe *
rc_sq_at(const struct rc_requester *req, uint32_t index)
{
	return (struct rc_sq_wqe *)(req->wqes + (size_t)(index & req->mask) * req->stride);
}

static inline struct rc_sq_more *
rc_sq_more(const struct rc_requester *req, struct rc_sq_wqe *wqe)
{
	return (struct rc_sq_more *)((uint8_t *)wqe + req->stride) - 1;
}

/** 24-bit distance from una; PSNs in flight have one below rc_in_flight(). */
static inline uint32_t
rc_from_una(const struct rc_requester *req, uint32_t psn)
{
	return (psn - req->una) & PSN_MASK;
}

static inline uint32_t
rc_in_flight(const struct rc_requester *req)
{
	return rc_from_una(req, req->next_psn);
}

/** Is what was sent before being sent again? */
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

/** Reads and Atomics need an answer of their own: no ACK completes them (rc-transport 4). */
static inline bool
rc_wqe_answered(const struct rc_sq_wqe *wqe)
{
	return wqe->opcode == WR_RDMA_READ || rc_wqe_atomic(wqe);
}

/** Sends and Writes: the others stand between them in enum wr_opcode. */
static inline bool
rc_wqe_stream(const struct rc_sq_wqe *wqe)
{
	_Static_assert(WR_RDMA_READ == 4 && WR_BIND_MW == 8 && WR_SEND_WITH_INV == 9, "no others");
	return wqe->opcode < WR_RDMA_READ || wqe->opcode > WR_BIND_MW;
}

/** A piece of a message in memory. */
struct rc_chunk {
	uint8_t *host;
	uint32_t len;
};

/* sg.c */

/** Go to byte `at` of a WQE's message. */
void rc_cursor_seek(struct rc_cursor *c, const struct rc_sq_wqe *wqe, uint32_t index, uint32_t at);
/**
 * Where the next len bytes stand, for local read (access 0) or MEM_ACCESS_LOCAL_WRITE; moves the
 * cursor past them.
 *
 * @param chunks  room for RC_SGE_MAX
 * @return number of chunks, or -1: a local key does not allow it
 */
int rc_cursor_take(struct rc_qp *qp, struct rc_cursor *c, struct rc_sq_wqe *wqe, uint32_t len,
	uint32_t access, struct rc_chunk *chunks);

/* sq.c: used by requester and completer */

#define RC_WR_FIRST 0x1
#define RC_WR_LAST  0x2
#define RC_WR_ONLY  (RC_WR_FIRST | RC_WR_LAST)

/** A kind of work request. */
struct rc_wr_info {
	uint8_t flags; /**< sq.c's own */
	uint8_t wc_opcode;
	uint8_t packet[4]; /**< a Send's or Write's opcodes, by RC_WR_FIRST and RC_WR_LAST */
} __attribute__((aligned(8))); /* addresses scale by 8, not by 6 */

extern const struct rc_wr_info rc_wr_infos[]; /**< by enum wr_opcode */

/**
 * Complete what is done, in order, up to the first that waits; fail the oldest if it has a status;
 * tell of a drained SQ.
 */
void rc_sq_settle(struct rc_qp *qp);
/** The oldest unfinished WQE completes so, QP to ERR, the rest flushed (rc-transport 8). */
void rc_sq_fail(struct rc_qp *qp, enum wc_status status);

/* requester_life.c: used by completer and sq.c */

/** The transport timer, or the end of an RNR wait. */
void rc_requester_timer(struct timer *t, uint64_t now);

/** Send again from una. */
void rc_rewind(struct rc_qp *qp);
/**
 * The same, if the retry counter allows; else the oldest WQE fails with RETRY_EXC_ERR.
 *
 * @retval false it failed
 */
bool rc_retry(struct rc_qp *qp);

/* acknowledge.c: used by completer */

/** una has moved: counters reload, the timer starts anew, requests that waited may go. */
void rc_progress(struct rc_qp *qp);
/**
 * An ACK of @p psn, if it is as most are: of Sends and Writes in flight, none of which is sent
 * again, and no credits are counted. They complete.
 *
 * @retval false  not so: nothing was done
 */
bool rc_acknowledge(struct rc_qp *qp, uint32_t psn);

#endif
