/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RESPONDER_H
#define RC_RESPONDER_H

/**
 * @file
 * Private to lib/rc: the responder's state (rc-transport 6 and 7).
 *
 * The responder answers requests in order. The ring of saved Reads and Atomics keeps that order:
 * each entry holds the ACKs to send before its response. struct rc_responder holds the ACKs to send
 * after the last entry, and the NAK, which is always sent last.
 */

#include <rte_byteorder.h>

#include "rc/rc.h"

/** Message in progress: determines which opcodes may follow (rc-transport 2). */
enum resp_message {
	RESP_IDLE,
	RESP_IN_SEND,
	RESP_IN_WRITE,
};

/** ACKs owed for a range of PSNs: one for the last, or with ack_per_packet one for each. */
struct rc_ack_run {
	uint32_t first;
	uint32_t last;
	uint32_t msn; /**< MSN after the request at .last */
	bool owed;
};

/** A saved Read or Atomic request: enough to answer it, and to answer it again (rc-transport 7). */
struct rc_saved {
	uint32_t psn; /**< first PSN */
	uint32_t last_psn;
	uint32_t rkey;
	uint32_t length; /**< Read: DMALen */
	uint64_t va;
	uint64_t result; /**< Atomic: original value */
	uint32_t msn; /**< MSN after this request */
	bool atomic;
	/* progress of the response */
	bool answered; /**< sent in full once: further responses are replays */
	bool pending; /**< the response is not fully sent */
	uint32_t fresh_psn; /**< Read: first response packet never sent yet */
	uint32_t start_psn; /**< Read: first packet of this response */
	uint32_t next_psn; /**< Read: PSN of the next response packet */
	uint32_t end_psn; /**< Read: last response packet to send this time */
	uint32_t end; /**< Read: end of this response, as offset from va */
	struct rc_ack_run ack; /**< sent before the response */
};

/** rc_responder.turn while the message is in progress and no NAK is outstanding or owed */
#define RESP_TURN(message) RTE_LE32(message)

struct rc_responder {
	/* used by every request: the end of the line that begins with qp.recv_cq (qp.h) */
	uint32_t epsn;
	uint32_t msn;
	union {
		struct {
			uint8_t message; /**< enum resp_message */
			bool nak_sent; /**< sequence NAK outstanding until ePSN arrives */
			bool rnr_sent; /**< RNR NAK outstanding until ePSN arrives */
			uint8_t nak; /**< syndrome of the NAK owed, 0: none */
		};
		/** the four in one word: RESP_TURN(message) while there is no NAK */
		uint32_t turn;
	};
	bool saved_due; /**< a saved request has a response or an ACK to send */
	uint8_t saved_count;
	uint8_t saved_head; /**< index of the oldest */
	/* the Send being received, or the Write whose immediate takes a WQE */
	bool wqe_taken;
	uint32_t wqe_offset; /**< bytes placed so far */
	uint32_t sge_index; /**< where the next byte goes */
	uint32_t sge_offset;
	struct rc_ack_run ack; /**< owed after the saved requests that are pending */

	/* the Write being received */
	uint64_t write_va; /**< destination of the next packet */
	uint32_t write_rkey;
	uint32_t write_dmalen;
	uint32_t write_done;
	uint32_t key_hint; /**< for R_Keys of requests (mem_access_hint()) */

	uint32_t nak_psn;
	uint32_t dropped_psn; /**< newest PSN dropped since the NAK was owed */

	/* ring of the newest max_dest_rd_atomic saved Reads and Atomics */
	uint8_t saved_size; /**< entries of the ring */
	uint8_t saved_limit; /**< entries in use at most: max_dest_rd_atomic */
	uint8_t saved_done; /**< number of oldest entries with nothing to send */
	struct rc_saved *saved;

	struct rc_rq_wqe *srq_wqe; /**< copy of the SRQ's WQE while a message fills it */
};

/** True if first <= psn <= last, on the circle of PSNs. */
static inline bool
rc_psn_between(uint32_t psn, uint32_t first, uint32_t last)
{
	return psn_sub(psn, first) <= psn_sub(last, first);
}

/** The i-th oldest saved request. */
static inline struct rc_saved *
rc_saved_at(const struct rc_responder *r, unsigned int i)
{
	unsigned int at = r->saved_head + i;

	return &r->saved[at < r->saved_size ? at : at - r->saved_size];
}

/**
 * True if one more Read or Atomic can be saved (row 4b): the ring has a free entry, or the oldest
 * entries in excess of the limit have been answered. A requester that keeps to its limit has
 * received their responses. There is more than one in excess only if the limit was lowered in SQD.
 */
static inline bool
rc_saved_room(const struct rc_responder *r)
{
	return r->saved_count < r->saved_limit ||
		(r->saved_limit > 0 && rc_saved_at(r, r->saved_count - r->saved_limit)->answered);
}

/** An old entry has something to send again: have send_all_saved() scan all entries. */
static inline void
rc_saved_again(struct rc_responder *r)
{
	r->saved_done = 0;
	r->saved_due = true;
}

/*
 * What a check found: RESP_OK, or the enum qp_failure_reason for which the request is refused and
 * the QP fails (refusals[]), or another answer.
 */
enum resp_outcome {
	RESP_OK = QP_FAILURE_NONE,
	RESP_UNCOMMON = QP_FAILURE_REASONS, /* not of the shape: run as any request */
	RESP_NOT_EXPECTED, /* rows 1 and 1b: the PSN is not ePSN */
	RESP_NOT_READY, /* row 4: no receive WQE */
};

/* refusals.c */

/** Answer a request whose check failed. @param failed  enum resp_outcome, or a reason */
enum verdict rc_request_failed(struct rc_qp *qp, const struct packet *pkt, int failed);

/* responder.c */

/*
 * The common requests: request_run() is compiled once more for each of them. Opcode, flags and
 * headers as in the opcode table; the payload rule, too, but an Only without payload is not common.
 */
#define RC_COMMON_SEND(X)                                                                          \
	X(RC_SEND_ONLY, OP_REQUEST | OP_SEND | OP_ONLY | OP_RQ_WQE, 0, PAYLOAD_SOME)
#define RC_COMMON_REQUESTS(X)                                                                      \
	X(RC_WRITE_ONLY, OP_REQUEST | OP_WRITE | OP_ONLY, HDR_RETH, PAYLOAD_SOME)                  \
	X(RC_WRITE_FIRST, OP_REQUEST | OP_WRITE | OP_FIRST, HDR_RETH, PAYLOAD_PMTU)                \
	X(RC_WRITE_MIDDLE, OP_REQUEST | OP_WRITE | OP_MIDDLE, 0, PAYLOAD_PMTU)                     \
	X(RC_WRITE_LAST, OP_REQUEST | OP_WRITE | OP_LAST, 0, PAYLOAD_SOME)                         \
	X(RC_READ_REQUEST, OP_REQUEST | OP_READ | OP_ONLY, HDR_RETH, PAYLOAD_NONE)                 \
	X(RC_CMP_SWAP, OP_REQUEST | OP_ATOMIC | OP_ONLY, HDR_ATOMICETH, PAYLOAD_NONE)              \
	X(RC_FETCH_ADD, OP_REQUEST | OP_ATOMIC | OP_ONLY, HDR_ATOMICETH, PAYLOAD_NONE)

/** Take the next receive WQE for a message. @retval false  none is posted */
bool rc_take_wqe(struct rc_qp *qp);
/** Complete the receive WQE that was taken, or else the next one of the RQ, as @p wc says. */
void rc_retire_wqe(struct rc_qp *qp, struct wc wc, bool solicited);

/* responder_life.c */
/** To RESET: drop responses, saved requests and the QP's own RQ without completions. */
void rc_responder_reset(struct rc_qp *qp);

/* responses.c */
/**
 * Save a Read or Atomic that passed all checks, and owe its response. ePSN and MSN count the
 * request already. rc_atomic_accepted() executes the Atomic.
 */
void rc_read_accepted(struct rc_qp *qp, const struct packet *pkt, uint32_t packets);
void rc_atomic_accepted(struct rc_qp *qp, const struct packet *pkt, uint8_t *host);
/** Drop saved requests more than 2^23 PSNs before ePSN: such PSNs would look newer than ePSN. */
void rc_saved_expire(struct rc_responder *r);
/** Send the ACKs owed, if nothing is to be sent before them. @retval false  not now, or not all */
bool rc_ack_now(struct rc_qp *qp);
/** Owe a NAK; it is sent after all responses owed already. */
void rc_owe_nak(struct rc_qp *qp, uint8_t syndrome, uint32_t psn);
/** ePSN has advanced while a NAK waited to be sent: drop the NAK, or let it name the new ePSN. */
void rc_renew_nak(struct rc_responder *r);
/**
 * Drop the responses owed. Kept are an ACK that waits for no response and, if a fatal NAK is owed,
 * the NAK and everything before it.
 */
void rc_forget_answers(struct rc_responder *r);

/* duplicates.c */
/** Handle a request with a PSN before ePSN (rc-transport 7). */
enum verdict rc_duplicate(struct rc_qp *qp, const struct packet *pkt);

/* atomic.c: RC_CMP_SWAP or RC_FETCH_ADD on aligned host memory. @return the value before */
uint64_t rc_atomic(uint8_t *host, uint8_t opcode, uint64_t compare, uint64_t swap_add);

#endif
