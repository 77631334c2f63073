/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_DCQCN_H
#define RC_DCQCN_H

/**
 * @file
 * Private to lib/rc: the reaction point of RoCEv2 congestion management (docs/spec/congestion.md).
 *
 * One rate limiter for each QP, made with it where limits.congestion.dcqcn is on. A QP that was
 * told of no congestion lately, or has recovered from it, is not limited: qp->limited is false and
 * nothing here is looked at.
 */

#include "rc/rc.h"

#define RC_RP_ONE (1u << 24) /* alpha = 1 */

struct rc_rp {
	uint64_t rate; /**< R_C, bit/s */
	uint64_t target; /**< R_T, bit/s */
	uint64_t next_send; /**< earliest time of the next packet */
	uint64_t byte_time; /**< time units a byte takes at this rate, in 2^-20 */
	uint64_t patience; /**< lateness that is made up for, time units */
	int64_t byte_left; /**< until the byte counter expires */
	uint64_t alpha_at; /**< when alpha decays next */
	uint64_t raise_at; /**< when the rate increase timer expires next */
	uint64_t cut_at; /**< CNPs before are for congestion reacted to already */
	uint32_t alpha; /**< of RC_RP_ONE */
	uint32_t timer_stage; /**< T: expiries of the timer since the last cut */
	uint32_t byte_stage; /**< BC: of the byte counter */
	struct timer timer; /**< brings a waiting QP back to its run queue */
	struct rc_qp *qp;
};

/** The parameters that are times, in time units. */
struct rc_rp_times {
	uint64_t alpha;
	uint64_t raise;
	uint64_t cut;
};

struct rc_rp_times rc_rp_times(const struct rc_dev *dev);
bool rc_rp_params_ok(const struct rc_congestion *c);
/** @retval -ENOMEM; 0 also where the limiter is off, qp->rp is NULL then */
int rc_rp_create(struct rc_qp *qp);
void rc_rp_destroy(struct rc_qp *qp);
/** A CNP for the QP. */
void rc_rp_notified(struct rc_qp *qp);
/** May a limited QP send now? If not a timer brings it back. It may have ceased to be limited. */
bool rc_rp_may_send(struct rc_qp *qp);
/** A limited QP has sent a packet with so much payload. */
void rc_rp_sent(struct rc_qp *qp, uint32_t payload);
/** No limit any more: another path, or another life. */
void rc_rp_release(struct rc_qp *qp);
/** The QP leaves its worker, and is on another: its timer, if it waits. */
void rc_rp_disarm(struct rc_qp *qp);
void rc_rp_rearm(struct rc_qp *qp);
/** What it is limited to now, kbit/s; 0: not at all. */
uint32_t rc_rp_rate(struct rc_qp *qp);

#endif
