/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CONNECTIONS_H
#define ENGINE_CONNECTIONS_H

/**
 * @file Private to lib/engine: connections and the services that use them. Each worker has a
 * communication manager and its part of every service. The control thread has the tables of
 * services and of attempts to connect.
 */

#include "engine/verbs.h"
#include "engine/worker.h"

/* --- connections.c: on each worker --- */

/** Call after the worker's mad_worker and rc_worker were created. */
int connections_create(struct worker *w, struct error *err);
/**
 * Services stop to listen and their connections end without a DREQ. Call before
 * rc_worker_destroy().
 */
void connections_destroy(struct worker *w);
/** struct rc_worker_config.event */
void connections_event(void *worker, const struct event *ev);
/**
 * Run the services on their completions, before rc_run(), so that what they post leaves in the same
 * turn.
 */
unsigned int connections_serve(struct worker *w, uint64_t now);
/** True for a CM message: its communication ID names the owner, not a hash of its addresses. */
static inline bool
connections_message(const struct packet *pkt)
{
	return pkt->payload_len == MAD_LEN && pkt->payload[MAD_OFF_CLASS] == CM_CLASS &&
		pkt->payload[MAD_OFF_METHOD] == MAD_SEND;
}
/** worker_fn. @return 1 if a connection of the worker has not ended yet, else 0 */
int connections_busy(struct worker *w, void *arg);
/** worker_fn: disconnect all connections that are not ending yet. */
int connections_end(struct worker *w, void *arg);

/* --- services.c --- */

int services_create(struct engine *e, struct error *err);
/**
 * Call after connections_destroy() on all workers and after all QPs, which may use objects of
 * services.
 */
void services_destroy(struct engine *e);
/** Control thread, before the workers stop: no service accepts connections any more. */
void services_unlisten(struct engine *e);
/** Remove services whose last connection has ended. */
void services_watch(struct engine *e, uint64_t now);

/**
 * Connections that the present services refused because their address has its share; those of a
 * service that has ended are forgotten.
 */
uint64_t services_peer_limit(const struct engine *e);
/** Create a service on @p worker for one connection that we open; then call service_connected(). */
int service_client(struct engine *e, const struct svc_config *config, unsigned int worker,
	unsigned int *place, struct error *err);
/** The service that owns an object, or NULL. @param has  svc_has_pd() or svc_has_cq() */
const struct svc *service_owning(const struct engine *e, bool (*has)(const struct svc *, uint32_t),
	uint32_t number);
/** On a worker: its part of the service at a place, or NULL. */
struct svc_worker *service_here(const struct worker *w, unsigned int place);
/** Report the connection of a service from service_client(); 0: it will not have one. */
void service_connected(struct engine *e, unsigned int place, cm_id id);

/* --- rdmacm.c: librdmacm's programs --- */

int rdmacm_create(struct engine *e, struct error *err);
/** Control thread: add the next hops of IDs that wait for them, or have resolved them. */
void rdmacm_use_neighbours(const struct engine *e, struct link_neighbours_used *used);
/** Call before the event loop is destroyed. */
void rdmacm_quiet(struct engine *e);
/** Call after connections_destroy() on all workers. */
void rdmacm_destroy(struct engine *e);

/* --- verbs_cm.c --- */

/** Control thread: add the next hops that attempts to connect wait for. */
void attempts_use_neighbours(const struct engine *e, struct link_neighbours_used *used);

/* --- verbs_cm_path.c --- */

/** What is still missing to use a path. */
enum conn_path_step {
	CONN_PATH_READY,
	CONN_PATH_ASK, /* a PathRecord of the SA: conn_path_ask() */
	CONN_PATH_NEXT_HOP, /* the next hop's MAC: conn_path_hop() */
};

/** The caller's attributes of a connection's path or alternate path. */
struct conn_path_args {
	struct engine_ah ah;
	uint16_t pkey_index;
	uint16_t path_mtu;
	uint8_t packet_life; /* 0: from the PathRecord, or cm.packet_life */
};
/**
 * Build the path as far as possible without the SA. @return enum conn_path_step, or a negative
 * errno
 */
int conn_path_begin(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err);
/** Query the SA for a PathRecord. */
int conn_path_ask(struct engine *e, const struct conn_path_args *a, uint32_t timeout_ms,
	uint32_t *query, struct error *err);
/**
 * Build the path from the SA's answer. @retval -EAGAIN no answer yet; otherwise the query has been
 * cancelled
 */
int conn_path_answer(struct engine *e, uint32_t query, struct conn_path_args *a,
	struct cm_path *path, struct error *err);
/** @retval -EAGAIN  the next hop's MAC is not resolved yet */
int conn_path_hop(struct engine *e, const struct cm_path *path, struct error *err);
/** Build the whole path without the SA. */
int conn_path_plain(struct engine *e, const struct conn_path_args *a, struct cm_path *path,
	struct error *err);

/* --- verbs_cm.c --- */
int attempts_create(struct engine *e, struct error *err);
/** Call after connections_destroy() on all workers. */
void attempts_destroy(struct engine *e);

#endif
