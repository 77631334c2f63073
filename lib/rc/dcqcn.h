/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_DCQCN_H
#define RC_DCQCN_H

/**
 * @file
 * Private to lib/rc: the reaction point of RoCEv2 congestion management (docs/spec/congestion.md).
 *
 * One rate limiter per QP, created with it if limits.congestion.dcqcn is on. While rc_limited()
 * is false (no recent CNP, or the rate has recovered) the limiter is not used.
 */

#include "rc/rc.h"

#define RC_RP_ONE (1u << 24) /* alpha = 1 */

struct rc_rp {
	uint64_t rate; /**< R_C, bit/s */
	uint64_t target; /**< R_T, bit/s */
	uint64_t next_send; /**< earliest time of the next packet */
	uint64_t byte_time; /**< time units a byte takes at this rate, in 2^-20 */
	uint64_t patience; /**< most lateness that a burst may make up for, time units */
	int64_t byte_left; /**< until the byte counter expires */
	uint64_t alpha_at; /**< time of the next decay of alpha */
	uint64_t raise_at; /**< next expiry of the rate increase timer */
	uint64_t cut_at; /**< CNPs before this time are ignored: the QP has reacted already */
	uint32_t alpha; /**< in units of 1 / RC_RP_ONE */
	uint32_t timer_stage; /**< T: expiries of the timer since the last cut */
	uint32_t byte_stage; /**< BC: expiries of the byte counter since the last cut */
	struct timer timer; /**< puts a waiting QP back on the run queue */
	struct rc_qp *qp;
};

/** The timer parameters in time units. */
struct rc_rp_times {
	uint64_t alpha;
	uint64_t raise;
	uint64_t cut;
};

struct rc_rp_times rc_rp_times(const struct rc_dev *dev);
bool rc_rp_params_ok(const struct rc_congestion *c);
/** @retval -ENOMEM @retval 0 also if dcqcn is off: qp->rp stays NULL */
int rc_rp_create(struct rc_qp *qp);
void rc_rp_destroy(struct rc_qp *qp);
/** The QP received a CNP. */
void rc_rp_notified(struct rc_qp *qp);
/** True if the QP may send now; the call may end its limit. False: a timer requeues the QP. */
bool rc_rp_may_send(struct rc_qp *qp);
/** The QP has sent a packet with @p payload bytes. */
void rc_rp_sent(struct rc_qp *qp, uint32_t payload);
/** End the limit: the rate has recovered, the path changed, or the QP is reset. */
void rc_rp_release(struct rc_qp *qp);
/** Stop the timer when the QP leaves its worker, and start it on the new worker. */
void rc_rp_disarm(struct rc_qp *qp);
void rc_rp_rearm(struct rc_qp *qp);
/**
 * Bring the rate up to date, which may end the limit and put the QP on the run queue. @return the
 * limit in kbit/s; 0: not limited
 */
uint32_t rc_rp_update_rate(struct rc_qp *qp);

#endif
