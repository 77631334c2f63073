/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_CHECK_H
#define RC_CHECK_H

/**
 * @file
 * Private to lib/rc: invariants of a queue pair, of a shared receive queue and of a completion
 * queue. Builds with RTE_ENABLE_ASSERT (-Dchecks=true, debug and sanitized builds) check them after
 * each event; others contain none of it.
 */

#include "rc/qp_directory.h"

#ifdef RTE_ENABLE_ASSERT
/** For the end of an event: a packet, a turn, a timer, a verb. Ends the program if one fails. */
void rc_qp_check(const struct rc_qp *qp);
/** The same for a shared receive queue; rc_qp_check() checks its QP's. */
void rc_srq_check(const struct rc_srq *srq);
/** For the poller, after a poll: the rings of a completion queue. */
void rc_cq_check(const struct rc_cq *cq);
#else
#define rc_qp_check(qp)   RTE_SET_USED(qp)
#define rc_srq_check(srq) RTE_SET_USED(srq)
#define rc_cq_check(cq)   RTE_SET_USED(cq)
#endif

#endif
