/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_REQUESTER_H
#define RC_REQUESTER_H

/**
 * @file
 * Private to lib/rc: what a QP remembers as requester (rc-transport 4 and 8). Packets are rebuilt from the WQE on
 * retry; no copies are kept.
 */

#include "base/timer_wheel.h"
#include "rc/rc.h"

struct rc_sq_wqe {
	uint64_t wr_id;
	uint8_t opcode; /**< enum wr_opcode */
	uint8_t flags; /**< SEND_ */
	uint8_t num_sge;
	bool assigned; /**< has its PSNs */
	uint32_t length; /**< of the message */
	uint32_t psn; /**< first PSN, once assigned */
	uint32_t last_psn;
	uint32_t ssn; /**< numbers SQ WQEs from 1 (rc-transport 3) */
	uint32_t imm; /**< immediate or R_Key to invalidate */
	uint32_t rkey;
	uint64_t remote_addr;
	uint64_t compare_add;
	uint64_t swap;
	uint64_t token; /**< grace period a local operation waits for */
	struct sge sge[]; /**< or inline bytes */
};

struct rc_requester {
	/* SQ ring: head = next free, tail = oldest not retired, send = being sent; they count for ever */
	uint32_t head;
	uint32_t tail;
	uint32_t send;
	uint32_t mask;
	uint32_t stride;
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t max_inline;
	uint8_t *wqes;

	uint32_t send_psn; /**< PSN of the next packet out (goes back on retry) */
	uint32_t next_psn; /**< nPSN: first PSN never sent */
	uint32_t una; /**< oldest unacknowledged PSN */
	uint32_t ssn; /**< of the next WQE */
	uint32_t lsn; /**< limit sequence number; credits */
	bool unlimited; /**< peer sends no credit information */
	uint8_t rd_atomic; /**< outstanding Reads and Atomics */
	uint8_t retry_left;
	uint8_t rnr_left;
	bool rnr_wait; /**< timer runs for an RNR NAK */
	bool retrying; /**< send_psn is behind next_psn */
	uint32_t since_ackreq;
	uint64_t ack_timeout; /**< Ttr in time units, 0: off */
	struct timer timer; /**< transport timer or RNR wait */
};

#endif
