/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_TRAP_H
#define SMA_TRAP_H

/*
 * Private to lib/sma's trap*.c: trap_raise.c makes a trap of a cause, trap.c sends and repeats it,
 * trap_match.c says what is the same trap and represses, trap_list.c is for the operator and the
 * agent.
 */

#include "sma/notice.h"
#include "sma/private.h"

static inline bool
trap_pending(const struct sma_trap *t)
{
	return t->info.state == SMA_TRAP_HELD || t->info.state == SMA_TRAP_SENT;
}

static inline bool
trap_older(const struct sma_trap *a, const struct sma_trap *b)
{
	return (int32_t)(a->info.id - b->info.id) < 0;
}

/* sma_trap_raise(), told whether the details have our own LID at NOTICE_OFF_LID. */
struct sma_trap *trap_raise(struct sma_port *p, const uint8_t *notice, bool own_lid, uint64_t now);
/* The port's LID may have changed since: IssuerLID, and the LID that the details tell. */
void trap_refresh(struct sma_trap *t);
/* Send, wait for the port, or give up: what a pending trap does when its time has come. */
void trap_proceed(struct sma_trap *t, uint64_t now);
/* Nothing is sent any more, not even what waits for the sink. */
void trap_stop(struct sma_trap *t, uint64_t now);
/* The pending trap of this very cause, or NULL. */
struct sma_trap *trap_find_cause(struct sma_port *p, const uint8_t *notice, bool own_lid);

#endif
