/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_CM_H
#define ENGINE_VERBS_CM_H

/**
 * @file
 * Connections for the control plane: services that listen, connections of ours, what there is. As
 * all verbs on the control thread.
 */

#include "cm/cm.h"
#include "engine/engine.h"
#include "svc/svc.h"

struct engine_ah;

/* services at one time, those that drive connections of ours too */
#define ENGINE_SERVICE_PLACES 256
#define ENGINE_CM_ATTEMPTS    64 /* connections of ours whose outcome nobody has fetched yet */

/* --- services --- */

/**
 * On all workers; .service_mask 0: all bits count.
 *
 * @param id  names the service from now on, from 1 on
 */
int engine_cm_listen(struct engine *e, const struct svc_config *config, uint32_t *id,
	struct error *err);
/**
 * No more requests; @p disconnect ends its connections too. The service is gone when the last of
 * them is. Of a service that drives a connection of ours: it is gone as soon as that is.
 */
int engine_cm_unlisten(struct engine *e, uint32_t id, bool disconnect, struct error *err);

/**
 * Sockets of services (perftest's exchange): a descriptor that becomes readable when there is
 * something for engine_sockets_run().
 */
int engine_sockets_fd(const struct engine *e);
/** @param engine  the struct engine */
void engine_sockets_run(void *engine);

struct engine_service_info {
	uint32_t id;
	struct svc_config config;
	bool listening; /**< false: its last connections are awaited, or */
	bool client; /**< it drives a connection of ours; it stays a minute after that, to be looked at */
	cm_id connection; /**< of a client */
	uint32_t connections; /**< those in TIMEWAIT included */
	struct svc_counters counters;
};
/** Walk the services: *cursor 0 starts. */
bool engine_service_next(struct engine *e, uint32_t *cursor, struct engine_service_info *info);

/* --- connections of ours --- */

struct engine_cm_connect {
	/**
	 * The peer. Native IB: its LID, GID or both; what of the path is missing (of these, or
	 * .path_mtu, .packet_life) the SA is asked for; a LID goes without if none answers within
	 * half of .timeout_ms. A GRH goes with .hop_limit 2 and more
	 */
	const struct engine_ah *ah;
	uint64_t service_id;
	bool rdma; /**< put RDMA-CM's header in front of the private data */
	uint16_t src_port; /**< RDMA-CM; 0: any */
	union gid src_addr; /**< the same: what the header says; zero: the path's GIDs */
	union gid dst_addr;
	uint16_t pkey_index;
	uint16_t path_mtu; /**< bytes, 0: the port's */
	uint8_t packet_life; /**< 0: cm.packet_life, or what the SA says */
	/** Who drives it. NULL: the caller, through post_send and its like */
	const struct svc_config *service;
	/** With a service .qp, .access and private data are the service's; .qp.srq is RC_NO_SRQ or one */
	struct cm_conn_param param;
	uint32_t timeout_ms; /**< until it stands; 0: the protocol's */
	int worker; /**< -1: the SRQ's, or one after the other */
};
/** Begins; how it goes: engine_cm_outcome(). */
int engine_cm_connect(struct engine *e, const struct engine_cm_connect *c, uint32_t *attempt,
	struct error *err);

struct engine_cm_outcome {
	bool done; /**< established, or never will be */
	bool established;
	bool timed_out; /**< by .timeout_ms */
	/** negative errno: it failed before a REQ was sent (SA, neighbour, resources), .why says it */
	int error;
	struct error why; /**< in words, of all that were not established */
	struct cm_info info; /**< .id names the connection; 0: no REQ was sent (yet) */
	uint8_t private_data[CM_PRIVATE_MAX]; /**< of the REP or REJ */
	uint8_t private_len;
	uint64_t elapsed_us;
};
int engine_cm_outcome(struct engine *e, uint32_t attempt, struct engine_cm_outcome *o,
	struct error *err);
/** The connection stays, and so does a REQ under way; what was not sent yet will not be. */
void engine_cm_forget(struct engine *e, uint32_t attempt);

/* --- all connections; cm_info.age in microseconds --- */

int engine_cm_get(struct engine *e, cm_id id, struct cm_info *info, struct error *err);
bool engine_cm_next(struct engine *e, uint64_t *cursor, struct cm_info *info);
/** Name of the service that has it, "" for a caller's own. */
const char *engine_cm_service_name(struct engine *e, cm_id id);
int engine_cm_disconnect(struct engine *e, cm_id id, struct error *err);
/** LAP: propose an alternate path; native IB: .dlid is needed. */
int engine_cm_load_alternate(struct engine *e, cm_id id, const struct engine_ah *ah,
	struct error *err);

/** Sum of the workers', or of one worker (>= 0). */
void engine_cm_counters(const struct engine *e, int worker, struct cm_counters *sum);

/** Deadlines, services whose last connection is gone: engine_watch() does this. */
void engine_cm_watch(struct engine *e);

#endif
