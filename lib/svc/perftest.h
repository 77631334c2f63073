/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_H
#define SVC_PERFTEST_H

/**
 * @file
 * The service kind "perftest" for the exchange over TCP (lib/engine/perftest_tcp.c), which connects
 * QPs by address. The functions run on the connection's worker.
 */

#include "svc/perftest_text.h"
#include "svc/svc.h"

/** After svc_direct_open(): note the peer's QP @p theirs and describe ours. */
void perftest_direct(struct svc_conn *c, const struct perftest_dest *theirs,
	struct perftest_dest *ours);
/** The peer has described the same QP again. */
void perftest_direct_again(struct svc_conn *c);

#endif
