/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PERFTEST_H
#define SVC_PERFTEST_H

/**
 * @file
 * The kind "perftest" for who speaks its exchange over TCP (lib/engine): queue pairs connected by
 * address. On the connection's worker.
 */

#include "svc/perftest_text.h"
#include "svc/svc.h"

/** Connected by svc_direct_open(): what the peer has told, and what to tell it. */
void perftest_direct(struct svc_conn *c, const struct perftest_dest *theirs,
	struct perftest_dest *ours);
/** The peer has told the same again. */
void perftest_direct_again(struct svc_conn *c);

#endif
