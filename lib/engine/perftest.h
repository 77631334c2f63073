/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PERFTEST_H
#define ENGINE_PERFTEST_H

/**
 * @file
 * Private to lib/engine: perftest's exchange over TCP, of services of that kind with a tcp_port.
 * All on the control thread, which waits for the sockets with others of its own
 * (engine_sockets_fd()). A client is a session: its socket and the queue pairs that were made for
 * it.
 */

#include "engine/worker.h"
#include "svc/perftest_exchange.h"

#define PERFTEST_QPS 64 /* of a session: -q */

struct perftest_qp {
	unsigned int worker;
	struct svc_conn *conn;
	uint32_t remote_qpn;
	struct perftest_dest ours;
};

struct perftest_session {
	bool used;
	int fd;
	struct engine *engine;
	unsigned int place; /* of its service */
	uint64_t started; /* TSC */
	struct perftest_exchange exchange;
	uint8_t in[PERFTEST_MESSAGE_MAX];
	size_t len;
	struct perftest_qp qp[PERFTEST_QPS];
	unsigned int num_qps;
};

/* --- perftest_tcp.c --- */

int perftest_create(struct engine *e, struct error *err);
void perftest_destroy(struct engine *e);
/** A service, if it is one with a tcp_port. Called once for each that listens. */
int perftest_listen(struct engine *e, unsigned int place, const struct svc_config *config,
	struct error *err);
/** @param sessions  end them too */
void perftest_unlisten(struct engine *e, unsigned int place, bool sessions);
/** Sockets that say nothing. */
void perftest_watch(struct engine *e, uint64_t now);

/* --- perftest_qp.c --- */

/** struct perftest_exchange.dest of a session. */
bool perftest_dest(void *session, const struct perftest_dest *theirs, struct perftest_dest *ours);
void perftest_close_qps(struct perftest_session *s);
/** What every port can carry, bytes. */
uint16_t perftest_mtu(const struct engine *e);

#endif
