/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RESPONDER_H
#define RC_RESPONDER_H

/**
 * @file
 * Private to lib/rc: what a QP remembers as responder (rc-transport 6 and 7).
 *
 * Answers are owed in the order of their requests. The ring of saved Reads and Atomics is the
 * spine of that order: each entry carries the ACKs that go out before it, the responder the ACKs
 * that go out after the last entry, and the NAK, which is always last.
 */

#include <rte_byteorder.h>

#include "rc/rc.h"

/** Message in progress: decides which opcodes may come next (rc-transport 2). */
enum resp_message {
	RESP_IDLE,
	RESP_IN_SEND,
	RESP_IN_WRITE,
};

/** ACKs owed for a run of PSNs: one of the last, or with ack_per_packet one of each. */
struct rc_ack_run {
	uint32_t first;
	uint32_t last;
	uint32_t msn; /**< after the last */
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
	uint32_t msn; /**< after its acceptance */
	bool atomic;
	/* answering */
	bool answered; /**< sent in full once: what is sent now is a replay */
	bool pending; /**< answer not fully sent */
	uint32_t fresh_psn; /**< Read: first response packet never sent yet */
	uint32_t start_psn; /**< Read: first response packet of this answer */
	uint32_t next_psn; /**< Read: PSN of the next response packet */
	uint32_t end_psn; /**< Read: last response packet to send this time */
	uint32_t end; /**< Read: bytes from va where this answer ends */
	struct rc_ack_run ack; /**< goes out before the answer */
};

/** rc_responder.turn, of which the message is the first byte. */
#define RESP_TURN(message) RTE_LE32(message)

struct rc_responder {
	/* what any request touches: ends the line that begins with qp.recv_cq (qp.h) */
	uint32_t epsn;
	uint32_t msn;
	union {
		struct {
			uint8_t message; /**< enum resp_message */
			bool nak_sent; /**< sequence NAK outstanding until ePSN comes */
			bool rnr_sent; /**< RNR NAK outstanding until ePSN comes */
			uint8_t nak; /**< syndrome of the NAK owed, 0: none */
		};
		uint32_t turn; /**< all of it: RESP_TURN() while there is no NAK */
	};
	bool saved_due; /**< a saved request has an answer or an ACK to send */
	uint8_t saved_count;
	uint8_t saved_head; /**< index of the oldest */
	/* the Send being received, or the Write whose immediate takes a WQE */
	bool wqe_taken;
	uint32_t wqe_offset; /**< bytes placed so far */
	uint32_t sge_index; /**< where the next byte goes */
	uint32_t sge_offset;
	struct rc_ack_run ack; /**< owed after the saved requests that are pending */

	/* the Write being received */
	uint64_t write_va; /**< of the next packet */
	uint32_t write_rkey;
	uint32_t write_dmalen;
	uint32_t write_done;
	uint32_t key_hint; /**< of requests' R_Keys (mem_access_hint()) */

	uint32_t nak_psn;
	uint32_t dropped_psn; /**< newest request dropped since that NAK was decided */

	/* ring of saved Reads and Atomics, newest max_dest_rd_atomic ones */
	uint8_t saved_size; /**< room in the ring */
	uint8_t saved_limit; /**< so much of it is used: max_dest_rd_atomic */
	uint8_t saved_done; /**< so many of the oldest have nothing to send */
	struct rc_saved *saved;

	struct rc_rq_wqe *srq_wqe; /**< copy of the SRQ's WQE while a message fills it */
};

/** The i-th oldest saved request. */
static inline struct rc_saved *
rc_saved_at(const struct rc_responder *r, unsigned int i)
{
	unsigned int at = r->saved_head + i;

	return &r->saved[at < r->saved_size ? at : at - r->saved_size];
}

/**
 * Is there room to save one more (row 4b)? A requester that keeps to its limit has no use for the
 * oldest any more once they were answered, which happens in order. More than one of them: the
 * limit was lowered in SQD.
 */
static inline bool
rc_saved_room(const struct rc_responder *r)
{
	return r->saved_count < r->saved_limit || (r->saved_limit > 0 &&
		rc_saved_at(r, r->saved_count - r->saved_limit)->answered);
}

/** An old one has something to send again: look at all of them. */
static inline void
rc_saved_again(struct rc_responder *r)
{
	r->saved_done = 0;
	r->saved_due = true;
}

/* responder.c */
/** Complete the receive WQE that was taken, or the next one; wc says how. */
void rc_retire_wqe(struct rc_qp *qp, struct wc *wc, bool solicited);

/* responder_life.c */
/** To RESET: answers, saved requests and the QP's own RQ are forgotten without completions. */
void rc_responder_reset(struct rc_qp *qp);

/* responses.c */
/** Response packets of a Read: at least one (rc-transport 4). */
uint32_t rc_read_packets(const struct rc_qp *qp, uint32_t bytes);
/**
 * The Read at hand has been accepted (ePSN is behind its packets, MSN counts it), or the Atomic,
 * which is executed now: it is saved, and its answer owed.
 */
void rc_read_accepted(struct rc_qp *qp, const struct packet *pkt, uint32_t packets);
void rc_atomic_accepted(struct rc_qp *qp, const struct packet *pkt, uint8_t *host);
/** Forget what lies too far behind ePSN to be told from what lies ahead. */
void rc_saved_expire(struct rc_responder *r);
/** Owe an ACK for a request just executed: the first one, or one more. */
void rc_owe_ack(struct rc_qp *qp, uint32_t psn);
/** Owe a NAK; it goes out after all that is owed already. */
void rc_owe_nak(struct rc_qp *qp, uint8_t syndrome, uint32_t psn);
/** ePSN has moved while a NAK was waiting its turn: it is void, or now asks for the new ePSN. */
void rc_renew_nak(struct rc_responder *r);
/**
 * Drop what is owed, except a NAK that ends the QP and what goes before it, and an ACK that could
 * go at once.
 */
void rc_forget_answers(struct rc_responder *r);

/* in_order.c */
/**
 * A Send in one packet, a packet of a Write without immediate, a Read of some bytes or an Atomic,
 * with which nothing is wrong.
 *
 * @retval false  it is something else; nothing has been done
 */
bool rc_respond_in_order(struct rc_qp *qp, const struct packet *pkt);

/* duplicates.c */
/** A request behind ePSN (rc-transport 7). */
enum verdict rc_duplicate(struct rc_qp *qp, const struct packet *pkt);

/* atomic.c: on naturally aligned host memory; the value before */
uint64_t rc_atomic_cmp_swap(uint8_t *host, uint64_t compare, uint64_t swap);
uint64_t rc_atomic_fetch_add(uint8_t *host, uint64_t add);

#endif
