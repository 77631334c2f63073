/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SVC_PRIVATE_H
#define SVC_PRIVATE_H

/**
 * @file
 * Private to the frame of lib/svc (service, worker, connection). Kinds of services use svc.h only.
 */

#include <sys/queue.h>

#include "svc/svc.h"

#define SVC_CACHE_LINE 64

/*
 * The upper half of a work request's ID: place, generation of the place's connection, queue. The
 * generation is a safeguard: a place is reused only after its last completion was polled.
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
	SVC_CONN_GONE, /* released by the CM, its QP is destroyed */
};

struct svc_conn {
	struct svc *svc;
	struct svc_worker *w;
	uint32_t place;
	uint32_t *held; /* of its peer: svc_places_of() */
	uint32_t generation;
	cm_id id;
	uint32_t qpn;
	uint8_t state; /* enum svc_conn_state */
	bool active;
	bool ending; /* svc_disconnect() was called */
	bool turning; /* on .turning */
	uint32_t max_sends, max_recvs; /* its share of the completion queue */
	uint32_t sends, recvs; /* posted, completion not polled */
	uint64_t last; /* GONE: value of the worker's .polled after its last completion */
	const struct cm_user *watcher;
	void *watcher_user;
	TAILQ_ENTRY(svc_conn) link; /* on .conns; on .gone in state GONE */
	TAILQ_ENTRY(svc_conn) turn; /* on .turning */
	TAILQ_ENTRY(svc_conn) opening; /* on .opening */
	uint64_t request; /* on .opening: number of its REQ */
} __attribute__((aligned(SVC_CACHE_LINE)));
TAILQ_HEAD(svc_conn_list, svc_conn);

struct svc_worker {
	struct svc *svc;
	struct cm *cm;
	struct rc_worker *rc;
	uint32_t cqn;
	bool listening;
	uint32_t room; /* completion queue entries that no connection has reserved */
	uint32_t connections;
	uint64_t now;
	uint64_t polled; /* completions since the start */
	struct svc_counters *counters;
	struct svc_conn asked; /* no place: for the parameters of a REP, until a place is taken */
	uint64_t requests;
	uint32_t num_opening;
	struct svc_conn_list opening; /* passive, with a place, not yet established; oldest first */
	struct svc_conn_list conns;
	struct svc_conn_list gone; /* oldest first */
	struct svc_conn_list turning; /* those that want turns */
	struct svc_conn *ending; /* svc_worker_disconnect(): next of .conns to end */
};

/*
 * Places of connections; free ones form a chain. Any worker takes and gives places. Each address
 * has a share of them.
 */
struct svc_places {
	uint64_t head; /* high half: tag against ABA; low half: index + 1 of the first, 0: none */
	uint32_t *next; /* by index: index + 1 of the next, 0: none */
	uint32_t left;
	uint32_t most; /* of one address; 0: as share_leaves_room() says */
	uint64_t hash_key;
	uint32_t *held; /* by the hash of an address: its places. Rarely two have the same number */
	uint32_t held_mask;
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
	bool pd_adopted; /* the adopted region's: held, not owned */
	uint32_t pd;
	uint32_t keys[SVC_REGIONS_MAX]; /* regions to deregister */
	unsigned int num_keys;
	struct svc_region buffers;
	uint64_t buffer_length; /* of one place */

	bool early; /* a REP tells the place: it is taken at the REQ */
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

/* @param most  places of one address; 0: so many that others find some */
int svc_places_create(struct svc_places *p, const struct svc_env *env, uint32_t n, uint32_t most);
void svc_places_destroy(struct svc_places *p, const struct allocator *alloc);
bool svc_places_left(const struct svc_places *p);
/* The number of places that an address has. */
uint32_t *svc_places_of(const struct svc_places *p, const union gid *addr);
/* True if an address that has so many may have one more. */
bool svc_places_admit(const struct svc_places *p, uint32_t held);
/*
 * @param held  svc_places_of() the peer; NULL: the connection is ours, and has no limit
 * @retval -ENOSPC  none left
 * @retval -EDQUOT  the address has its share
 */
int64_t svc_place_take(struct svc_places *p, uint32_t *held);
void svc_place_give(struct svc_places *p, uint32_t place, uint32_t *held);

/* --- memory of a service: region.c --- */

int svc_pd_need(struct svc *s, struct error *err);
/* @retval -EAGAIN */
int svc_regions_drop(struct svc *s);

/* --- conn.c --- */

extern const struct cm_user svc_cm_user;
/*
 * Take a place and fill in *param.
 * @param peer  whose share it is of; NULL: we connect
 * @retval NULL  no place, or no room for its completions
 */
struct svc_conn *svc_conn_new(struct svc_worker *w, const union gid *peer,
	struct cm_conn_param *param, struct error *err);
/* Note and count that the connection is established. */
void svc_conn_stands(struct svc_conn *c);
/* Free the place; nothing may refer to the connection any more. */
void svc_conn_free(struct svc_conn *c);
/* The QP is destroyed: free the place later, once all completions are polled and it is clean. */
void svc_conn_gone(struct svc_conn *c);
/* Stop calling turn(). */
void svc_conn_stop_turns(struct svc_conn *c);
/* The connection of a completion; NULL: gone. *recv is set if it is of the receive queue. */
struct svc_conn *svc_conn_of_wr(const struct svc_worker *w, uint64_t wr_id, bool *recv);

#endif
