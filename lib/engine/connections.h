/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CONNECTIONS_H
#define ENGINE_CONNECTIONS_H

/**
 * @file
 * Private to lib/engine: connections and the services behind them. Each worker has a communication
 * manager and its part of every service; the control thread has the tables of services and of
 * attempts to connect.
 */

#include "engine/verbs.h"
#include "engine/worker.h"

/* --- connections.c: on each worker --- */

/** After its mad_worker and rc_worker. */
int connections_create(struct worker *w, struct error *err);
/** Services take no requests any more and their connections end without a word. Before rc goes. */
void connections_destroy(struct worker *w);
/** struct rc_worker_config.event */
void connections_event(void *worker, const struct event *ev);
/** Completions of services' connections: what they post in answer leaves in the same turn. */
unsigned int connections_serve(struct worker *w, uint64_t now);
/** A message of the communication manager, which knows better whose it is than its addresses do? */
static inline bool
connections_message(const struct packet *pkt)
{
	return pkt->payload_len == MAD_LEN && pkt->payload[MAD_OFF_CLASS] == CM_CLASS &&
		pkt->payload[MAD_OFF_METHOD] == MAD_SEND;
}
/** worker_fn: may it stop as far as connections are concerned? @return 1: one is not over yet */
int connections_busy(struct worker *w, void *arg);
/** worker_fn: end all connections that are not ending yet. */
int connections_end(struct worker *w, void *arg);

/* --- services.c --- */

int services_create(struct engine *e, struct error *err);
/** After connections_destroy() on all workers, whose QPs have gone too: callers' may hold what is a service's. */
void services_destroy(struct engine *e);
/** The control thread, before the workers stop: nobody connects any more. */
void services_unlisten(struct engine *e);
/** Services whose last connection is gone. */
void services_watch(struct engine *e, uint64_t now);

/** A service for one connection of ours, on @p worker; it stays until service_done(). */
int service_client(struct engine *e, const struct svc_config *config, unsigned int worker,
	unsigned int *place, struct error *err);
/** The service that has this number, as @p has says (svc_has_pd(), svc_has_cq()), or NULL. */
const struct svc *service_owning(const struct engine *e, bool (*has)(const struct svc *, uint32_t),
	uint32_t number);
/** On its worker: struct svc_worker of a place. */
struct svc_worker *service_here(const struct worker *w, unsigned int place);
/** Its connection, 0: there is none and will be none. It goes when that has gone. */
void service_connected(struct engine *e, unsigned int place, cm_id id);

/* --- verbs_cm_path.c --- */

/** What a path still needs. */
enum conn_path_step {
	CONN_PATH_READY,
	CONN_PATH_ASK, /* the SA: conn_path_ask() */
	CONN_PATH_NEXT_HOP, /* its neighbour's MAC: conn_path_hop() */
};

/** Of a connection of ours, or of an alternate path. */
struct conn_path_args {
	struct engine_ah ah;
	uint16_t pkey_index;
	uint16_t path_mtu;
	uint8_t packet_life; /* 0: the SA's, or cm.packet_life */
};
/** As far as it can be said without asking anybody. @return enum conn_path_step, or negative */
int conn_path_begin(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err);
int conn_path_ask(struct engine *e, const struct conn_path_args *a, uint32_t timeout_ms,
	uint32_t *query, struct error *err);
/** What the SA said. @return 0, -EAGAIN: it has not answered yet; else the query is forgotten */
int conn_path_answer(struct engine *e, uint32_t query, struct conn_path_args *a,
	struct cm_path *path, struct error *err);
/** @return 0, -EAGAIN: the next hop's MAC is not known yet */
int conn_path_hop(struct engine *e, const struct cm_path *path, struct error *err);
/** Without the SA: of alternate paths. */
int conn_path_plain(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err);

/* --- verbs_cm.c --- */
int attempts_create(struct engine *e, struct error *err);
/** After connections_destroy() on all workers. */
void attempts_destroy(struct engine *e);

#endif
