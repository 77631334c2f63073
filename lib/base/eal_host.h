/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_EAL_HOST_H
#define BASE_EAL_HOST_H

/**
 * @file
 * What the EAL needs of the host it runs on, and what it leaves there: it makes a runtime directory for
 * each --file-prefix, /run/dpdk/PREFIX.
 */

#include "base/error.h"

/**
 * After a failed rte_eal_init(): is it for something that the EAL always needs?
 *
 * @return 0: no, else a negative errno value
 */
int eal_explain_host(struct error *err);

/**
 * Remove the runtime directory when this process exits, if it is empty then. Only for a directory of this
 * process alone: another process with the same prefix may be about to use it. Call it before
 * rte_eal_init(): what DPDK removes at exit is gone by then, its telemetry socket among it.
 */
void runtime_dir_remove_at_exit(void);

/**
 * Remove the empty runtime directories NAME-PID of processes that are gone: nobody else removes those
 * of a process that was killed. Call it after rte_eal_init().
 */
void runtime_dir_remove_stale(const char *name);

#endif
