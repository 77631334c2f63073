/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_MAD_H
#define ENGINE_VERBS_MAD_H

/**
 * @file
 * Management datagrams for the control plane: one request to another manager and what it answers.
 * As all verbs on the control thread. SMPs, pings and whatever else is one exchange go this way; SA
 * queries have verbs_sa.h.
 */

#include "engine/engine.h"
#include "live/live.h"
#include "sma/sma.h"

struct engine_ah;

#define ENGINE_MAD_ASKS 64 /* at one time, finished ones included */

struct engine_mad_ask {
	/** of whom; of a directed route .port alone counts */
	const struct engine_ah *ah;
	uint32_t qpn; /**< 0: an SMP, 1: a general service */
	uint16_t pkey_index; /**< qpn 1 */
	uint8_t mad[MAD_LEN]; /**< header and data; the TID is put in */
	bool many; /**< by RMPP, when it or its answer may have many packets */
	uint8_t data_offset; /**< many: where data begins in a MAD */
	const uint8_t *data; /**< many: the request's data; copied */
	uint32_t len;
	uint32_t max_answer; /**< many: bytes of the answer's data that are kept */
	bool no_answer; /**< Send, Trap, TrapRepress: done once it is sent */
	bool keep_tid; /**< no_answer: the MAD's own */
	uint32_t timeout_ms; /**< of each try of a request of one packet; 0: as the protocol has it */
	uint8_t retries; /**< 0: mad.retries */
	bool no_retry; /**< one try */
	uint32_t total_ms; /**< in all; 0: no bound but the protocol's */
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
	const uint8_t *data; /**< many: from .data_offset on; stays until it is forgotten */
	uint64_t len;
	uint32_t resent;
	uint64_t elapsed_ns; /**< from call to answer, on the worker */
};

int engine_mad_ask(struct engine *e, const struct engine_mad_ask *ask, uint32_t *id,
	struct error *err);
/** How it goes. @retval -ENOENT  forgotten */
int engine_mad_look(struct engine *e, uint32_t id, struct engine_mad_answer *a, struct error *err);
/** End it, if it still runs, and forget it. */
void engine_mad_forget(struct engine *e, uint32_t id);
/** Deadlines, and what nobody fetches: engine_watch() does this. */
void engine_mad_watch(struct engine *e);

/* --- our own ports' subnet management agent, on worker 0 --- */

/** Is it a native IB port? The others have no SMA. */
bool engine_sma_managed(const struct engine *e, unsigned int port);
/** sma_read() of a port. @return MAD status, or a negative errno with words */
int engine_sma_read(struct engine *e, unsigned int port, uint16_t attribute, uint32_t modifier,
	uint8_t data[SMA_DATA_LEN], struct error *err);
/**
 * Up to @p n traps that are kept, from *cursor on (0 starts); ages in microseconds.
 *
 * @return how many
 */
unsigned int engine_trap_list(struct engine *e, uint32_t *cursor, struct sma_trap_info *info,
	unsigned int n);
int engine_trap_send(struct engine *e, unsigned int port, uint16_t number, const uint8_t *notice,
	uint32_t *id, struct error *err);
int engine_trap_repress(struct engine *e, uint32_t id, struct error *err);

/* --- the subnet manager behind a port, outside of this process (seed 004) --- */

#define ENGINE_SM_SMPS 256 /* kept, whether taken or not */

/** What has come in for it: Trap(Notice), or a Set(SMInfo) that changes what it is. */
struct engine_sm_smp {
	uint32_t number; /**< from 1; EVENT_SM_SMP tells it */
	uint16_t port;
	uint16_t slid;
	uint64_t time; /**< TSC, when it came in */
	uint64_t age_us; /**< when it was asked for */
	uint8_t mad[MAD_LEN];
};
/**
 * The SM of a port takes what has come in for it, oldest first; it shows by this that it is there
 * (sma_sm_alive()).
 *
 * @param lost  in all, of all ports: not taken before there was no room for them
 * @return how many, or a negative errno with words: no SM is configured behind the port
 */
int engine_sm_take(struct engine *e, unsigned int port, struct engine_sm_smp *smp, unsigned int n,
	uint64_t *lost, struct error *err);
/** One that is kept, or NULL. Good until the next call. */
const struct engine_sm_smp *engine_sm_find(struct engine *e, uint32_t number);
/** It says what it is: enum sma_sm_state. */
int engine_sm_set(struct engine *e, unsigned int port, uint8_t state, uint8_t priority,
	struct error *err);
/** Make room where SMPs come in: engine_watch() does this. */
void engine_sm_watch(struct engine *e);

/** All 0 for a port that is not managed. */
void engine_sma_counters(const struct engine *e, unsigned int port, struct sma_counters *c);
/** Sum of the workers', or of one worker (>= 0). */
void engine_live_counters(const struct engine *e, int worker, struct live_counters *sum);

#endif
