/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/**
 * @file
 * fork() returns in the parent when the child has copies of the pages that both still share: what
 * the parent writes next, also beside its regions, the child must not see. Signal handlers and
 * cancellation of the thread that forks wait meanwhile. Other threads go on, until they want a lock
 * of the provider's.
 *
 * One fork() at a time: the caller holds a lock from fork_wait_begin() on, in both processes.
 */

#ifndef POLCA_PROVIDER_FORK_WAIT_H
#define POLCA_PROVIDER_FORK_WAIT_H

#include <stdbool.h>

/**
 * Before fork(). Without a descriptor for it, nobody waits.
 *
 * @param shares  false: there is nothing to wait for
 */
void fork_wait_begin(bool shares);
/** In the parent: until the child has its copies, or has ended; also after a fork() that failed. */
void fork_wait_for_child(void);
/** In the child, which has its copies. */
void fork_wait_end(void);

#endif
