/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_CONNECTION_H
#define BENCH_CONNECTION_H

/**
 * @file
 * Connect an endpoint's queue pairs through the connection manager, one after the other.
 */

#include "engine/verbs_cm.h"
#include "traffic/bench.h"

struct connector {
	struct endpoint *end;
	const char *option; /**< the option that named the address: "--connect" */
	struct engine_ah ah;
	/** .param.qp has the endpoint's attributes; the caller may change them */
	struct engine_cm_connect connect;
};

/**
 * Prepare connections to @p where (see host_port.h), at port @p port unless it names one. The
 * endpoint gets room for @p most connections.
 */
int connector_init(struct connector *c, struct endpoint *end, const struct bench_options *o,
	const char *option, const char *where, uint16_t port, uint32_t most, struct error *err);
/**
 * Open one connection. @p out has the peer's private data, and after a REJ with private data, also
 * on failure.
 */
int connector_open(struct connector *c, struct engine_cm_outcome *out, struct error *err);
/** Run the engine and the connection manager once. */
void connection_turn(struct endpoint *end);
/** Disconnect all connections and tell the peer. */
void connections_close(struct endpoint *end);

#endif
