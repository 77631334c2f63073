/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef RC_CHECK_H
#define RC_CHECK_H

/**
 * @file
 * Private to lib/rc: invariants of a queue pair. Builds with RTE_ENABLE_ASSERT (-Dchecks=true,
 * debug and sanitized builds) check them after each event; others contain none of it.
 */

#include "rc/qp_directory.h"

#ifdef RTE_ENABLE_ASSERT
/** For the end of an event: a packet, a turn, a timer, a verb. Ends the program if one fails. */
void rc_qp_check(const struct rc_qp *qp);
#else
#define rc_qp_check(qp) RTE_SET_USED(qp)
#endif

#endif
