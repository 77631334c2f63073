/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_REHOME_H
#define ENGINE_REHOME_H

/**
 * @file
 * Private to lib/engine: a QP moves to the worker whose queues receive its packets (design.md rule
 * 1). To move a QP from worker A to worker B:
 *
 *     A -> B  OFFER   B now parks packets of the QP that arrive at its queues
 *     B -> A  READY   all packets that B handed off before are on A's ring; or REFUSED
 *     A -> B  TAKE    A has processed those packets and exported the QP; or CANCEL
 *     B               imports the QP, then processes the parked packets
 *
 * So packets from B's queues, because of which the QP moves, keep their order and none is lost.
 * Packets that other workers hand to A in the meantime are forwarded to B.
 *
 * A client of the verbs socket moves with all its QPs by the same messages, with QPN 0
 * (clients_move.h).
 *
 * Messages carry the QPN with its generation. They are never dropped: the ring of each ordered pair
 * of workers has room for the most messages that can be outstanding.
 */

#include "engine/engine.h"

#define REHOME_OUT 16 /* simultaneous moves away from a worker */
#define REHOME_IN  16 /* simultaneous moves to a worker */
/* most packets parked for one move, and for all moves to a worker: more are dropped and counted */
#define REHOME_PARK     256
#define REHOME_PARK_ALL 512

enum leaving_step {
	LEAVING_FREE,
	LEAVING_OFFERED,
	LEAVING_READY,
};

struct leaving {
	uint32_t qpn; /* 0: a client moves */
	uint8_t step; /* enum leaving_step */
	uint16_t to;
	uint64_t target; /* value of worker.taken[to] from which the QP may leave */
};

struct arriving {
	uint32_t qpn; /* 0: free */
	uint16_t from;
	uint16_t parked;
	struct packet *pkt[REHOME_PARK];
};

/** Recent count of packets of one QP that one other worker handed off. */
struct handed {
	uint32_t qpn;
	uint16_t from;
	uint16_t count;
	uint32_t base; /* packets the QP had received when counting began */
	uint32_t rest; /* the QP does not move before this tick */
	uint32_t tick; /* when counting began */
};

#define REHOME_TABLE      16384 /* most entries of handed[]; with fewer QP slots, one per slot */
#define REHOME_DUE        64
#define REHOME_REST_TICKS WORKER_TICK_HZ /* least time between two moves of a QP */

struct rte_ring;
struct client_move;

struct rehome {
	bool enabled; /* QPs move automatically; engine_qp_rehome() works without */
	bool steered[LINK_PORTS_MAX]; /* each worker has a receive queue of the port */
	unsigned int num_leaving;
	unsigned int num_arriving;
	unsigned int parked; /* packets, for all arriving QPs */
	struct rte_ring *mail[LINK_WORKERS_MAX]; /* from each worker; NULL for itself */
	struct leaving leaving[REHOME_OUT];
	struct arriving *arriving; /* [REHOME_IN] */
	struct client_move *client; /* that moves to this worker; NULL: none */
	/* rehome_choose.c */
	struct handed *handed; /* by QP slot */
	uint32_t handed_mask;
	uint32_t due[REHOME_DUE]; /* QPs that the next tick considers */
	unsigned int num_due;
	uint32_t tick;
	uint64_t tick_time;
	uint64_t tick_busy;
};

/* clang-format off */
#define REHOME_SHARE(n) ((n) - (n) / 8) /* seven eighths: "nearly all" of n */
/* clang-format on */
#define REHOME_LOAD_ONE 256 /* worker_stats.load of a worker that is always busy */

/** Moving average of the load, with that of another tick: worker_stats.load. */
static inline uint64_t
rehome_mean_load(uint64_t mean, uint64_t load)
{
	return (mean * 7 + load + 4) / 8;
}

static inline bool
rehome_is_busy(uint64_t load)
{
	return load >= REHOME_SHARE(REHOME_LOAD_ONE);
}

static inline struct handed *
rehome_entry(const struct rehome *r, uint32_t qpn)
{
	return &r->handed[qpn & r->handed_mask];
}

/* --- rehome.c --- */
int rehome_create(struct engine *e, struct error *err);
/** Import QPs that are between two workers, so that their new owners destroy them. */
void rehome_destroy(struct engine *e);

/**
 * Start to move a QP of this worker to another. rehome_is_leaving() and rc_owner() tell when and
 * whether it has moved.
 *
 * @retval -EBUSY  the QP is moving already, REHOME_OUT others are, or see rc_qp_movable()
 */
int rehome_offer(struct worker *w, uint32_t qpn, unsigned int to, struct error *err);
/** Start the move of a client of this worker, engine.client_move. @retval -EBUSY */
int rehome_offer_client(struct worker *w, unsigned int to, struct error *err);
bool rehome_is_leaving(const struct worker *w, uint32_t qpn);
/** True if this worker owns the QP but has not imported it yet. Reads waiting messages first. */
bool rehome_is_arriving(struct worker *w, uint32_t qpn);

/** Process messages of other workers, before the turn's packets. @return messages */
unsigned int rehome_take(struct worker *w, uint64_t now);
/** Export the QPs that are ready to leave, after this turn's packets were flushed to the device. */
void rehome_give(struct worker *w);
/** Before a packet is handed off: park it if its QP is moving to this worker. @return parked */
bool rehome_park(struct worker *w, struct packet *pkt);
/**
 * Process a packet whose QP this worker does not have (VERDICT_QPN_UNKNOWN).
 *
 * @retval true   it was forwarded, parked, or dropped and counted
 * @retval false  *v is its verdict; the caller still owns it
 */
bool rehome_stray(struct worker *w, struct packet *pkt, uint64_t now, enum verdict *v);

/** A QP was imported: do not move it again for a while. */
void rehome_settle(struct worker *w, uint32_t qpn);

/* --- rehome_choose.c --- */
/** Count a packet that worker @p from handed off and whose QP has received it. */
void rehome_note(struct worker *w, unsigned int from, const struct packet *pkt);
void rehome_tick(struct worker *w, uint64_t now);

#endif
