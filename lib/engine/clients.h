/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_H
#define ENGINE_CLIENTS_H

/**
 * @file
 * Verbs for other processes. A client is a device that a program has opened over the verbs socket:
 * its objects, and the segment through which it posts and polls (lib/ring).
 *
 * A client belongs to one worker, which takes its doorbells, posts into lib/rc and writes its
 * completions. All its queue pairs are on that worker, so each ring has one producer and one
 * consumer; it moves to another worker with all of them (clients_move.h).
 *
 * Called by lib/verbs on the control thread. Objects are named by slots of the client's own
 * tables. All functions return 0, or a negative errno with an explanation in @p err.
 */

#include <sys/types.h>

#include "engine/engine.h"
#include "ring/protocol.h"

struct verbs_client;

/** Of all clients of a user. */
struct verbs_user_limits {
	uint32_t max_qp;
	uint32_t max_cq;
	uint32_t max_srq;
	uint32_t max_pd;
	uint32_t max_mr;
	uint32_t max_mw;
	uint32_t max_wr; /**< as of a client */
	uint64_t max_mr_bytes;
};

struct verbs_client_limits {
	struct verbs_user_limits user;
	uint32_t max_qp;
	uint32_t max_cq;
	uint32_t max_srq;
	uint32_t max_pd;
	uint32_t max_mr;
	uint32_t max_mw;
	uint32_t max_channels;
	uint32_t max_wr; /**< requests that all queues together have room for */
	uint64_t max_mr_bytes; /**< of all regions */
	uint64_t ring_bytes; /**< of the entries of all rings */
};

/**
 * @param port    of the device that the client opens
 * @param mirror  a descriptor that the program passed: another client's mirror, to be shared; -1:
 *  make one
 */
int engine_client_create(struct engine *e, unsigned int port,
	const struct verbs_client_limits *limits, int mirror, struct verbs_client **client,
	struct error *err);
/** Whose it is: an operator sees it, and librdmacm connects QPs of the same program alone. */
void engine_client_set_owner(struct verbs_client *client, uint32_t pid, uint32_t uid);
/** Count a request, or a connection (NULL), that a limit refused. */
void engine_client_refused(struct engine *e, struct verbs_client *client);
/** Destroy all of a client's objects, at once: peers of its queue pairs find nobody. */
void engine_client_destroy(struct verbs_client *client);

/** Fill the reply, and the descriptors to pass, which stay the client's. */
void engine_client_hello(const struct verbs_client *client, struct ring_hello_reply *reply,
	int fds[RING_HELLO_FDS]);
void engine_client_port(const struct verbs_client *client, struct ring_port_reply *reply);

int engine_client_pd_alloc(struct verbs_client *client, uint32_t *slot, struct error *err);
int engine_client_pd_free(struct verbs_client *client, uint32_t slot, struct error *err);

/** The region's pages are in the client's mirror. */
int engine_client_mr_register(struct verbs_client *client, const struct ring_mr *mr,
	struct ring_mr_reply *reply, struct error *err);
/** The region is in a file that the client has passed: mr->addr is the offset. */
int engine_client_mr_share(struct verbs_client *client, const struct ring_mr *mr, int fd,
	struct ring_mr_reply *reply, struct error *err);
/** Returns when no worker can access the region any more. */
int engine_client_mr_deregister(struct verbs_client *client, uint32_t slot, struct error *err);

int engine_client_mw_alloc(struct verbs_client *client, const struct ring_mw *mw,
	struct ring_mr_reply *reply, struct error *err);
/** Returns when no worker can access memory through the window any more. */
int engine_client_mw_free(struct verbs_client *client, uint32_t slot, struct error *err);

/** @param fds  to be passed to the program, and then closed: the pipe's ends */
int engine_client_channel_create(struct verbs_client *client, uint32_t *slot,
	int fds[RING_CHANNEL_FDS], struct error *err);
int engine_client_channel_destroy(struct verbs_client *client, uint32_t slot, struct error *err);

int engine_client_cq_create(struct verbs_client *client, const struct ring_cq_create *req,
	struct ring_cq_reply *reply, struct error *err);
int engine_client_cq_destroy(struct verbs_client *client, uint32_t slot, struct error *err);

int engine_client_srq_create(struct verbs_client *client, const struct ring_srq_create *req,
	struct ring_queue_reply *reply, struct error *err);
int engine_client_srq_modify(struct verbs_client *client, const struct ring_srq_modify *modify,
	struct error *err);
int engine_client_srq_query(struct verbs_client *client, uint32_t slot,
	struct ring_srq_reply *reply, struct error *err);
int engine_client_srq_destroy(struct verbs_client *client, uint32_t slot, struct error *err);

int engine_client_qp_create(struct verbs_client *client, const struct ring_qp_create *req,
	struct ring_queue_reply *reply, struct error *err);
int engine_client_qp_modify(struct verbs_client *client, const struct ring_qp_attr *attr,
	struct error *err);
int engine_client_qp_query(struct verbs_client *client, uint32_t slot, struct ring_qp_attr *attr,
	struct error *err);
int engine_client_qp_destroy(struct verbs_client *client, uint32_t slot, struct error *err);

#endif
