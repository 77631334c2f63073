/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

/**
 * @file
 * Connections of an end's by the connection manager, one after the other.
 */

#include "engine/verbs_cm.h"
#include "traffic/bench.h"

struct connector {
	struct endpoint *end;
	const char *option; /**< that named it: "--connect" */
	struct engine_ah ah;
	struct engine_cm_connect connect; /**< .param.qp is as the end's; may be changed */
};

/**
 * To a service on port @p port of @p where, unless that names one (where.h). The end has room for
 * @p most connections from now on.
 */
int connector_init(struct connector *c, struct endpoint *end, const struct bench_options *o,
	const char *option, const char *where, uint16_t port, uint32_t most, struct error *err);
/** One more; the peer's private data are in @p out. On failure, too, where a REJ had any. */
int connector_open(struct connector *c, struct engine_cm_outcome *out, struct error *err);
/** Engine and connection manager go on. */
void connection_turn(struct endpoint *end);
/** The other side is told that it is over, of all connections. */
void connections_close(struct endpoint *end);

#endif
