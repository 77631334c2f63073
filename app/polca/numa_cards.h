/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_NUMA_CARDS_H
#define POLCA_NUMA_CARDS_H

/**
 * @file
 * NUMA nodes before the EAL starts: the default choice of CPUs for the workers, and a check for
 * hugepages on the nodes of the network cards. Hosts without NUMA, and cards without a known node,
 * change nothing. @p sys is the mount point of sysfs.
 */

#include "config.h"

/**
 * Sort CPUs into the order in which workers take them: one of each card's node in turn, then the
 * others. The order is otherwise kept.
 */
void numa_order_cpus(const struct config *c, const char *sys, unsigned int *cpu, unsigned int n);

/** @param text  the problem and its remedy, one line */
typedef void (*numa_warn_fn)(void *arg, const char *text);
/**
 * Warn about each card on a node without a free hugepage: some drivers do not start there.
 *
 * @return number of warnings
 */
unsigned int numa_check_hugepages(const struct config *c, const char *sys, numa_warn_fn warn,
	void *arg);

#endif
