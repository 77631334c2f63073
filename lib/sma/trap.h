/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SMA_TRAP_H
#define SMA_TRAP_H

/*
 * Private to trap*.c of lib/sma: trap_raise.c turns a cause into a trap, trap.c sends and repeats
 * it, trap_match.c recognises the same cause and TrapRepress, trap_list.c lists and raises traps
 * for the operator.
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

/* sma_trap_raise(). @param own_lid  the details have our own LID at NOTICE_OFF_LID */
struct sma_trap *trap_raise(struct sma_port *p, const uint8_t *notice, bool own_lid, uint64_t now);
/* Write the port's current LID to IssuerLID, and to the details if they have it. */
void trap_refresh(struct sma_trap *t);
/* A pending trap is due: send it, hold it until the port is ready, or give it up. */
void trap_proceed(struct sma_trap *t, uint64_t now);
/* Stop the timer, and cancel a Trap that waits for the sink. */
void trap_stop(struct sma_trap *t, uint64_t now);
/* The pending trap of the same cause, or NULL. */
struct sma_trap *trap_find_cause(struct sma_port *p, const uint8_t *notice, bool own_lid);

#endif
