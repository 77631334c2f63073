/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_MAD_H
#define ENGINE_VERBS_MAD_H

/**
 * @file
 * Management datagrams for the control plane: a request to another node and its answer. Like all
 * verbs, these run on the control thread. SMPs, pings and other single exchanges use them; SA
 * queries have verbs_sa.h.
 */

#include "engine/engine.h"
#include "live/live.h"
#include "sma/sma.h"

struct engine_ah;

#define ENGINE_MAD_ASKS 64 /* most requests at one time, finished ones included */

struct engine_mad_ask {
	/** destination; with a directed route only .port counts */
	const struct engine_ah *ah;
	uint32_t qpn; /**< 0: an SMP; 1: any other management class */
	uint16_t pkey_index; /**< qpn 1 */
	uint8_t mad[MAD_LEN]; /**< header and data; the TID is filled in */
	bool many; /**< use RMPP: the request or the answer may have many packets */
	uint8_t data_offset; /**< many: offset of the data in a MAD */
	const uint8_t *data; /**< many: the request's data; copied */
	uint32_t len;
	uint32_t max_answer; /**< many: room for the answer's data, bytes */
	bool no_answer; /**< Send, Trap, TrapRepress: done once it is sent */
	bool keep_tid; /**< no_answer: keep the TID of .mad */
	uint32_t timeout_ms; /**< per try of a request of one packet; 0: the protocol's */
	uint8_t retries; /**< 0: mad.retries */
	bool no_retry; /**< one try */
	uint32_t total_ms; /**< in all; 0: only the protocol's limits */
};

struct engine_mad_answer {
	bool done;
	enum mad_end end;
	bool timed_out; /**< by .total_ms */
	uint16_t status;
	uint8_t rmpp_status;
	int error;
	bool has_mad;
	uint8_t mad[MAD_LEN]; /**< first packet of the answer */
	/** many: data from .data_offset on; valid until the request is forgotten */
	const uint8_t *data;
	uint64_t len;
	uint32_t resent;
	uint64_t elapsed_ns; /**< from call to answer, measured on the worker */
};

int engine_mad_ask(struct engine *e, const struct engine_mad_ask *ask, uint32_t *id,
	struct error *err);
/** Read the state of a request. @retval -ENOENT  no such request, or forgotten */
int engine_mad_look(struct engine *e, uint32_t id, struct engine_mad_answer *a, struct error *err);
/** Cancel a request if it still runs, and forget it. */
void engine_mad_forget(struct engine *e, uint32_t id);
/** Check deadlines, and forget requests that no client reads; engine_watch() calls this. */
void engine_mad_watch(struct engine *e);

/* --- our own ports' subnet management agent, on worker 0 --- */

/** True for a native IB port; other ports have no SMA. */
bool engine_sma_managed(const struct engine *e, unsigned int port);
/**
 * List up to @p n of the kept traps, from *cursor on (0 starts); ages in microseconds.
 *
 * @return number of traps listed
 */
unsigned int engine_trap_list(struct engine *e, uint32_t *cursor, struct sma_trap_info *info,
	unsigned int n);
int engine_trap_send(struct engine *e, unsigned int port, uint16_t number, const uint8_t *notice,
	uint32_t *id, struct error *err);
int engine_trap_repress(struct engine *e, uint32_t id, struct error *err);

/* --- the subnet manager behind a port, outside of this process (seed 004) --- */

#define ENGINE_SM_SMPS 256 /* newest SMPs kept, whether taken or not */

/** An SMP for the SM: Trap(Notice), or a Set(SMInfo) that changes the SM's state. */
struct engine_sm_smp {
	uint32_t number; /**< from 1; the element of EVENT_SM_SMP */
	uint16_t port;
	uint16_t slid;
	uint64_t time; /**< TSC of its arrival */
	uint64_t age_us; /**< age when it was read */
	uint8_t mad[MAD_LEN];
};
/**
 * The SM of a port takes the SMPs for it, oldest first. The call also shows that the SM is alive
 * (sma_sm_alive()).
 *
 * @param lost  total of SMPs of all ports that were lost for want of room
 * @return number of SMPs, or a negative errno: no SM is configured behind the port
 */
int engine_sm_take(struct engine *e, unsigned int port, struct engine_sm_smp *smp, unsigned int n,
	uint64_t *lost, struct error *err);
/** A kept SMP, or NULL. Valid until the next call. */
const struct engine_sm_smp *engine_sm_find(struct engine *e, uint32_t number);
/** The SM reports its state: enum sma_sm_state. */
int engine_sm_set(struct engine *e, unsigned int port, uint8_t state, uint8_t priority,
	struct error *err);
/** Empty the ring of incoming SMPs; engine_watch() calls this. */
void engine_sm_watch(struct engine *e);

/** Counters of a port's SMA; all 0 for a port without SMA. */
void engine_sma_counters(const struct engine *e, unsigned int port, struct sma_counters *c);
/** Sum over the workers, or the counters of one worker (>= 0). */
void engine_live_counters(const struct engine *e, int worker, struct live_counters *sum);
/** What performance management counts at a port since the start; a Set does not clear these. */
void engine_pma_totals(const struct engine *e, unsigned int port, struct pma_totals *t);

#endif
