/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_CM_H
#define ENGINE_VERBS_CM_H

/**
 * @file
 * Connections for the control plane: services that listen, connections that we open, and all
 * connections. Like all verbs, these run on the control thread.
 */

#include "cm/cm.h"
#include "engine/engine.h"
#include "svc/svc.h"

struct engine_ah;

/* most services at one time, including those for connections that we open */
#define ENGINE_SERVICE_PLACES 256
#define ENGINE_CM_ATTEMPTS    64 /* most attempts to connect at one time, finished ones included */

/* --- services --- */

/**
 * Listen on all workers. .service_mask 0: all bits of the service ID count.
 *
 * @param id  number of the new service, from 1 on
 */
int engine_cm_listen(struct engine *e, const struct svc_config *config, uint32_t *id,
	struct error *err);
/**
 * Stop to listen; @p disconnect ends the connections too. The service is removed with its last
 * connection. A service for a connection that we opened is removed as soon as that ends.
 */
int engine_cm_unlisten(struct engine *e, uint32_t id, bool disconnect, struct error *err);

struct engine_service_info {
	uint32_t id;
	struct svc_config config;
	bool listening; /**< false: it ends with its last connection, or it is a client */
	/** for a connection that we opened; it stays a minute after that connection's end */
	bool client;
	cm_id connection; /**< a client's connection */
	uint32_t connections; /**< including those in TIMEWAIT */
	struct svc_counters counters;
};
/** Walk the services: *cursor 0 starts. */
bool engine_service_next(struct engine *e, uint64_t *cursor, struct engine_service_info *info);

/* --- connections that we open --- */

struct engine_cm_connect {
	/**
	 * The peer. Native IB: its LID, GID or both. If one of them, .path_mtu or .packet_life is
	 * missing, the SA is queried for the path; if it does not answer within half of
	 * .timeout_ms, a LID is used without it. Packets carry a GRH if .hop_limit is 2 or more.
	 */
	const struct engine_ah *ah;
	uint64_t service_id;
	bool rdma; /**< put RDMA-CM's header in front of the private data */
	uint16_t src_port; /**< in that header; 0: any */
	union gid src_addr; /**< in that header; zero: the path's source GID */
	union gid dst_addr; /**< in that header; zero: the path's destination GID */
	uint16_t pkey_index;
	uint16_t path_mtu; /**< bytes, 0: the port's */
	uint8_t packet_life; /**< 0: from the PathRecord, or cm.packet_life */
	/** The service that uses the connection. NULL: the client uses it, with post_send etc. */
	const struct svc_config *service;
	/**
	 * A service sets .qp, .access and private data itself; else .qp.srq is RC_NO_SRQ or an SRQ
	 */
	struct cm_conn_param param;
	uint32_t timeout_ms; /**< time to become established; 0: the protocol's */
	int worker; /**< -1: the SRQ's worker, or round robin */
};
/** Begin to connect; engine_cm_outcome() tells the result. */
int engine_cm_connect(struct engine *e, const struct engine_cm_connect *c, uint32_t *attempt,
	struct error *err);

struct engine_cm_outcome {
	bool done; /**< established, or never will be */
	bool established;
	bool timed_out; /**< by .timeout_ms */
	/** negative errno: it failed before a REQ was sent (SA, neighbour, resources) */
	int error;
	struct error why; /**< why it was not established */
	struct cm_info info; /**< .id names the connection; 0: no REQ was sent (yet) */
	uint8_t private_data[CM_PRIVATE_MAX]; /**< of the REP or REJ */
	uint8_t private_len;
	uint64_t elapsed_us;
};
int engine_cm_outcome(struct engine *e, uint32_t attempt, struct engine_cm_outcome *o,
	struct error *err);
/** Forget an attempt. Its connection or sent REQ stays; a REQ that was not sent yet is not sent. */
void engine_cm_forget(struct engine *e, uint32_t attempt);

/* --- all connections; cm_info.age in microseconds --- */

int engine_cm_get(struct engine *e, cm_id id, struct cm_info *info, struct error *err);
bool engine_cm_next(struct engine *e, uint64_t *cursor, struct cm_info *info);
/** Name of the service that uses the connection; "": a client's own. */
const char *engine_cm_service_name(struct engine *e, cm_id id);
int engine_cm_disconnect(struct engine *e, cm_id id, struct error *err);
/** LAP: propose an alternate path; native IB: .dlid is needed. */
int engine_cm_load_alternate(struct engine *e, cm_id id, const struct engine_ah *ah,
	struct error *err);

/** Sum over the workers, or the counters of one worker (>= 0). */
void engine_cm_counters(const struct engine *e, int worker, struct cm_counters *sum);

/**
 * Check deadlines, and remove services whose last connection has ended; engine_watch() calls this.
 */
void engine_cm_watch(struct engine *e);

#endif
