/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BASE_EAL_HOST_H
#define BASE_EAL_HOST_H

/**
 * @file
 * What the EAL needs from the host, and what it leaves there: a runtime directory for each
 * --file-prefix, /run/dpdk/PREFIX.
 */

#include "base/error.h"

/**
 * After a failed rte_eal_init(): check whether the host lacks something that the EAL always needs.
 *
 * @return 0: it lacks nothing; else a negative errno value, and err says what
 */
int eal_explain_host(struct error *err);

/**
 * Remove the runtime directory when this process exits, if it is empty then. Only for a directory
 * that no other process uses: one with the same prefix may be about to use it. Call it before
 * rte_eal_init(), so that it runs after DPDK has removed its own files (such as the telemetry
 * socket).
 */
void runtime_dir_remove_at_exit(void);

/**
 * Remove the empty runtime directories NAME-PID of processes that no longer exist; a process that
 * was killed leaves its directory. Call it after rte_eal_init().
 */
void runtime_dir_remove_stale(const char *name);

/**
 * Stop the EAL's interrupt thread, then call rte_eal_cleanup(). The process must exit afterwards.
 *
 * @return as rte_eal_cleanup()
 */
int eal_cleanup(void);

#endif
