/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_RESPONDER_H
#define RC_RESPONDER_H

/**
 * @file
 * Private to lib/rc: what a QP remembers as responder (rc-transport 6 and 7).
 */

#include "rc/rc.h"

/** Message in progress: decides which opcodes may come next (rc-transport 2). */
enum resp_message {
	RESP_IDLE,
	RESP_IN_SEND,
	RESP_IN_WRITE,
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
	bool pending; /**< answer not fully sent */
	uint32_t next_psn; /**< Read: PSN of the next response packet */
	uint32_t end_psn; /**< Read: last response packet to send this time */
	/* ACKs of requests that came after it and must follow it: a run of PSNs */
	uint32_t ack_first;
	uint32_t ack_last;
	bool ack_owed;
};

struct rc_responder {
	uint32_t epsn;
	uint32_t msn;
	uint8_t message; /**< enum resp_message */
	bool nak_sent; /**< sequence NAK outstanding until ePSN comes */
	bool rnr_sent; /**< RNR NAK outstanding until ePSN comes */

	/* the Send being received */
	bool wqe_taken;
	uint32_t wqe_offset; /**< bytes placed so far */
	uint32_t sge_index; /**< where the next byte goes */
	uint32_t sge_offset;

	/* the Write being received */
	uint64_t write_va;
	uint32_t write_rkey;
	uint32_t write_dmalen;
	uint32_t write_done;

	/* what is owed after the saved requests that are pending */
	bool ack_owed;
	uint32_t ack_first; /**< ack_per_packet: first PSN still to be acknowledged on its own */
	uint32_t ack_last;
	uint8_t nak; /**< syndrome of the NAK owed, 0: none */
	uint32_t nak_psn;

	/* ring of saved Reads and Atomics, newest max_dest_rd_atomic ones */
	struct rc_saved *saved;
	uint8_t saved_size;
	uint8_t saved_count;
	uint8_t saved_head; /**< index of the oldest */
	uint8_t saved_pending; /**< how many have answers to send */

	struct rc_rq_wqe *srq_wqe; /**< copy of the SRQ's WQE while a message fills it */
};

#endif
