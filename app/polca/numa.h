/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_NUMA_H
#define POLCA_NUMA_H

/**
 * @file
 * NUMA nodes as they are before the EAL starts: which CPUs workers get when the configuration does
 * not say, and whether the nodes of the network cards have hugepages. Hosts without NUMA, and cards
 * whose firmware does not tell, change nothing. @p sys is where sysfs is mounted.
 */

#include "config.h"

/**
 * Bring CPUs into the order in which workers take them: one of each card's node in turn, then the
 * others, each as they came.
 */
void numa_order_cpus(const struct config *c, const char *sys, unsigned int *cpu, unsigned int n);

/** @param text  what is wrong and what to do about it, one line */
typedef void (*numa_warn_fn)(void *arg, const char *text);
/**
 * Warn of each card on a node without a free hugepage, which some drivers do not start on.
 *
 * @return warnings given
 */
unsigned int numa_check_hugepages(
		const struct config *c, const char *sys, numa_warn_fn warn, void *arg);

#endif
