/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CPUS_H
#define POLCA_CPUS_H

/**
 * @file
 * Which CPUs workers get when the configuration does not say: those of the NUMA nodes that the
 * network cards are on come first.
 */

#include "config.h"

/**
 * Bring CPUs into the order in which workers take them: one of each card's node in turn, then the
 * others, each as they came.
 *
 * @param sys  where sysfs is mounted; hosts without NUMA, and cards whose firmware does not tell,
 * change nothing
 */
void cpus_order(const struct config *c, const char *sys, unsigned int *cpu, unsigned int n);

#endif
