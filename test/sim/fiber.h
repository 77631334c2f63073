/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_FIBER_H
#define SIM_FIBER_H

/**
 * @file
 * Fibers: functions that were written for threads of their own, and wait, run in turns on one
 * thread. One gives the turn away only where it waits, so the same seed gives the same order.
 */

#include <stdbool.h>
#include <stdint.h>

struct sim;
struct fiber;

/** @param killed  once it is true, the fiber does not wait any more */
struct fiber *fiber_start(struct sim *s, void (*fn)(void *arg), void *arg, const bool *killed);
/** In a fiber: wait until then, or until it is woken. */
void fiber_wait(uint64_t until);
/** End a fiber's wait at a time, if it would not end earlier. */
void fiber_wake(struct fiber *f, uint64_t at);
/** Let a fiber run at once, outside of fibers. */
void fiber_resume(struct fiber *f);
bool fiber_ended(const struct fiber *f);
/** The fiber that runs, or NULL. */
struct fiber *fiber_now(void);
/** After the simulation's last event: all must have ended. */
void fiber_free_all(void);

#endif
