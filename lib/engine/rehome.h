/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_REHOME_H
#define ENGINE_REHOME_H

/**
 * @file
 * Private to lib/engine: queue pairs move to the worker at whose queues their packets arrive
 * (design.md rule 1). Worker A has a QP, worker B gets it:
 *
 *     A -> B  OFFER   from now on B keeps packets of the QP that arrive at its queues
 *     B -> A  READY   what B had handed over before is on A's ring; or REFUSED
 *     A -> B  TAKE    A has taken all of that in and given the QP away; or CANCEL
 *     B               puts the QP in, then takes in what it has kept
 *
 * So the packets of B's queues, which are those the move is made for, stay in order and none is
 * lost. Others sent to the old owner meanwhile are sent on to the new one.
 *
 * Messages carry the QPN with its generation, and are never dropped: a ring for each ordered pair
 * of workers has room for all that there can be at a time.
 */

#include "engine/engine.h"

#define REHOME_OUT  16 /* moves that a worker has begun, at a time */
#define REHOME_IN   16 /* moves to a worker, at a time */
/* packets kept for each of these, and for all of a worker: more are dropped, and counted */
#define REHOME_PARK     256
#define REHOME_PARK_ALL 512

enum leaving_step {
	LEAVING_FREE,
	LEAVING_OFFERED,
	LEAVING_READY,
};

struct leaving {
	uint32_t qpn;
	uint8_t step; /* enum leaving_step */
	uint16_t to;
	uint64_t target; /* packets to be taken over from .to before it goes */
};

struct arriving {
	uint32_t qpn; /* 0: free */
	uint16_t from;
	uint16_t parked;
	struct packet *pkt[REHOME_PARK];
};

/** Packets of one QP that one other worker has handed over lately. */
struct handed {
	uint32_t qpn;
	uint16_t from;
	uint16_t count;
	uint32_t base; /* packets the QP had received when counting began */
	uint32_t rest; /* tick before which it does not move (again), */
	uint32_t tick; /* and at which counting began */
};

#define REHOME_TABLE 16384 /* entries of handed[] at the most: 1 for each QP up to there */
#define REHOME_DUE   64

struct rte_ring;

struct rehome {
	bool enabled; /* by itself; a verb may always */
	bool steered[LINK_PORTS_MAX]; /* each worker has a queue of the port */
	unsigned int num_leaving;
	unsigned int num_arriving;
	unsigned int parked; /* for all of them */
	struct rte_ring *mail[LINK_WORKERS_MAX]; /* from each worker; NULL for itself */
	struct leaving leaving[REHOME_OUT];
	struct arriving *arriving; /* [REHOME_IN] */
	/* rehome_choose.c */
	struct handed *handed; /* by QP slot */
	uint32_t handed_mask;
	uint32_t due[REHOME_DUE]; /* QPs whose count is to be looked at */
	unsigned int num_due;
	uint32_t tick;
	uint64_t tick_time;
	uint64_t tick_busy;
};

/* --- rehome.c --- */
int rehome_create(struct engine *e, struct error *err);
/** What is on its way arrives, for the workers to destroy. */
void rehome_destroy(struct engine *e);

/**
 * Give a QP of this worker's to another. Whether it has gone: rehome_is_leaving(), rc_owner().
 *
 * @retval -EBUSY  it is about to move, or as many as can be; or see rc_qp_movable()
 */
int rehome_offer(struct worker *w, uint32_t qpn, unsigned int to, struct error *err);
bool rehome_is_leaving(const struct worker *w, uint32_t qpn);
/** Is it given to this worker, but not here yet? Looks for it in the mail. */
bool rehome_is_arriving(struct worker *w, uint32_t qpn);

/** Messages of other workers; before packets are taken in. @return messages */
unsigned int rehome_take(struct worker *w, uint64_t now);
/** QPs that are ready to go; after all that was sent in this turn is with the device. */
void rehome_give(struct worker *w);
/** A packet to be handed over: is it kept here, since its QP is on its way? */
bool rehome_park(struct worker *w, struct packet *pkt);
/**
 * A packet whose QP is not here (VERDICT_QPN_UNKNOWN).
 *
 * @retval true   it has been sent on, kept, or dropped and counted
 * @retval false  *v says what has become of it
 */
bool rehome_stray(struct worker *w, struct packet *pkt, uint64_t now, enum verdict *v);

/* --- rehome_choose.c --- */
/** Another worker has handed this packet over, and its QP has received it. */
void rehome_note(struct worker *w, unsigned int from, const struct packet *pkt);
/** A QP has come: it stays for a while. */
void rehome_settle(struct worker *w, uint32_t qpn);
void rehome_tick(struct worker *w, uint64_t now);

#endif
