/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PERFTEST_H
#define ENGINE_PERFTEST_H

/**
 * @file
 * Private to lib/engine: perftest's parameter exchange over TCP, for services of kind "perftest"
 * with a tcp_port. All functions run on the control thread, whose event loop waits for the sockets.
 * A session is a client: its socket and the QPs that were created for it.
 */

#include "engine/worker.h"
#include "svc/perftest_exchange.h"

#define PERFTEST_QPS 64 /* QPs of a session (perftest's option -q) */

struct perftest_qp {
	unsigned int worker;
	struct svc_conn *conn;
	uint32_t remote_qpn;
	struct perftest_dest ours;
};

struct perftest_session {
	bool used;
	struct event *event;
	struct engine *engine;
	unsigned int place; /* place of its service */
	union gid peer; /* address of its TCP connection */
	bool any_gid;
	char client[64]; /* the same with its port, for the log */
	uint64_t started; /* TSC */
	uint64_t heard; /* TSC: when it last sent a message, or packets to its queue pairs */
	uint64_t packets; /* that its queue pairs had received then */
	struct perftest_exchange exchange;
	uint8_t in[PERFTEST_MESSAGE_MAX];
	size_t len;
	struct perftest_qp qp[PERFTEST_QPS];
	unsigned int num_qps;
};

/* --- perftest_tcp.c --- */

int perftest_create(struct engine *e, struct error *err);
void perftest_destroy(struct engine *e);
/** Open the listening socket of a service that has a tcp_port; for others do nothing. */
int perftest_listen(struct engine *e, unsigned int place, const struct svc_config *config,
	struct error *err);
/** Close the listening socket of a service. @param sessions  end its sessions too */
void perftest_unlisten(struct engine *e, unsigned int place, bool sessions);
/** Close sessions that have not announced a queue pair in time, or are quiet. */
void perftest_watch(struct engine *e, uint64_t now);

/* --- perftest_qp.c --- */

/** Callback perftest_exchange.dest: create or reuse a QP for the client's QP @p theirs. */
bool perftest_dest(void *session, const struct perftest_dest *theirs, struct perftest_dest *ours);
void perftest_close_qps(struct perftest_session *s);
/** @return packets that the session's queue pairs have received */
uint64_t perftest_packets(struct perftest_session *s);
/** Largest path MTU that every port supports, in bytes. */
uint16_t perftest_mtu(const struct engine *e);

#endif
