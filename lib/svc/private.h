/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PRIVATE_H
#define SVC_PRIVATE_H

/**
 * @file
 * Private to lib/svc's frame: service, worker, connection. Kinds use svc.h only.
 */

#include <sys/queue.h>

#include "svc/svc.h"

#define SVC_CACHE_LINE 64

/*
 * The upper half of a work request's ID: place, generation of the place's connection, which queue.
 * Generations only guard: a place is not given out again before its last completion was polled.
 */
#define SVC_PLACE_BITS      20
#define SVC_GENERATION_BITS 11
#define SVC_PLACES_MAX      (1u << SVC_PLACE_BITS)
#define SVC_GENERATION_MASK ((1u << SVC_GENERATION_BITS) - 1)

enum svc_conn_state {
	SVC_CONN_FREE,
	SVC_CONN_OPENING, /* not yet established; data may flow */
	SVC_CONN_STANDING,
	SVC_CONN_ENDED,
	SVC_CONN_GONE, /* the CM has forgotten it */
};

struct svc_conn {
	struct svc *svc;
	struct svc_worker *w;
	uint32_t place;
	uint32_t generation;
	cm_id id;
	uint32_t qpn;
	uint8_t state; /* enum svc_conn_state */
	bool active;
	bool ending; /* svc_disconnect() was said */
	bool turning; /* on .turning */
	uint32_t max_sends, max_recvs; /* its share of the completion queue */
	uint32_t sends, recvs; /* posted, completion not polled */
	uint64_t last; /* GONE: the worker's .polled by which its completions are */
	const struct cm_user *watcher;
	void *watcher_user;
	TAILQ_ENTRY(svc_conn) link; /* on .conns, and on .gone from then on */
	TAILQ_ENTRY(svc_conn) turn; /* on .turning */
} __attribute__((aligned(SVC_CACHE_LINE)));
TAILQ_HEAD(svc_conn_list, svc_conn);

struct svc_worker {
	struct svc *svc;
	struct cm *cm;
	struct rc_worker *rc;
	uint32_t cqn;
	bool listening;
	uint32_t room; /* completions that no connection has a share of */
	uint32_t connections;
	uint64_t now;
	uint64_t polled; /* completions since the start */
	struct svc_counters *counters;
	struct svc_conn_list conns;
	struct svc_conn_list gone; /* oldest first */
	struct svc_conn_list turning; /* those that want turns */
	struct svc_conn *ending; /* all from here on are to be ended, some in each turn */
};

/* Places of connections, free ones in a chain; any worker takes and gives back. */
struct svc_places {
	uint64_t head; /* tag against ABA, index + 1 of the first */
	uint32_t *next; /* index + 1 */
};

struct svc_worker_counters {
	struct svc_counters c;
} __attribute__((aligned(SVC_CACHE_LINE)));

struct svc {
	struct svc_env env;
	struct svc_config config;
	const struct svc_ops *ops;
	void *state;
	bool closed;

	bool has_pd;
	bool pd_adopted; /* held, not ours */
	uint32_t pd;
	uint32_t keys[SVC_REGIONS_MAX]; /* regions to deregister */
	unsigned int num_keys;
	struct svc_region buffers;
	uint64_t buffer_length; /* of one place */

	uint32_t sends, recvs; /* of a connection */
	uint32_t cq_depth;
	uint32_t *cqs; /* by worker */
	unsigned int num_cqs;

	struct svc_places places;
	struct svc_conn *conns; /* by place */
	uint8_t *privs;
	size_t priv_size;
	struct svc_worker_counters *counters; /* by worker */
};

/* --- place.c --- */

int svc_places_create(struct svc_places *p, const struct allocator *alloc, uint32_t n);
void svc_places_destroy(struct svc_places *p, const struct allocator *alloc);
/* @retval -1 none left */
int64_t svc_place_take(struct svc_places *p);
void svc_place_give(struct svc_places *p, uint32_t place);

/* --- memory of a service: region.c --- */

int svc_pd_need(struct svc *s, struct error *err);
/* @retval -EAGAIN */
int svc_regions_drop(struct svc *s);

/* --- conn.c --- */

extern const struct cm_user svc_cm_user;
/* A place, with .param as the kind shapes it; NULL: none, or no room for its completions. */
struct svc_conn *svc_conn_new(struct svc_worker *w, bool active, struct cm_conn_param *param,
	struct error *err);
/* It is established, and counted. */
void svc_conn_stands(struct svc_conn *c);
/* Nothing can refer to it any more. */
void svc_conn_free(struct svc_conn *c);
/* QP gone, the CM has forgotten it: free once its completions are polled and it is clean. */
void svc_conn_gone(struct svc_conn *c);
/* No turn() any more. */
void svc_conn_stop_turns(struct svc_conn *c);
/* Which one a completion belongs to, NULL: none any more. *recv: of its receive queue */
struct svc_conn *svc_conn_of_wr(const struct svc_worker *w, uint64_t wr_id, bool *recv);

#endif
