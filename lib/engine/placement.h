/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PLACEMENT_H
#define ENGINE_PLACEMENT_H

/**
 * @file
 * Private to lib/engine: placement of workers and memory on CPUs and NUMA nodes, and warnings at
 * start when it is bad for performance. A node of -1: unknown, or this host has only one.
 */

#include <stdbool.h>

#include <rte_lcore.h>

#include "link/link.h"

struct engine;

#define PLACEMENT_CPUS_LEN 64

struct placement_port {
	const char *name;
	bool physical; /* a network card, not a software device */
	int node;
	int memory_node; /* node of its packet buffers */
	unsigned int pollers; /* the first workers, this many, poll it */
	char cpus[PLACEMENT_CPUS_LEN]; /* CPUs of its node, as "2-3"; "": not known */
};

struct placement_worker {
	int cpu;
	int node;
	int memory_node;
};

struct placement {
	bool hugepages;
	unsigned int num_ports;
	unsigned int num_workers;
	unsigned int num_cpus; /* CPUs on which any worker may run */
	struct placement_port port[LINK_PORTS_MAX];
	struct placement_worker worker[LINK_WORKERS_MAX];
};

/** @param text  one line: the problem and its remedy */
typedef void (*placement_warn_fn)(void *arg, const char *text);
/** Check a placement; has no side effects but the warnings. @return number of warnings */
unsigned int placement_check(const struct placement *p, placement_warn_fn warn, void *arg);

/** After engine_create() has created everything: check the placement and log warnings. */
void placement_look(const struct engine *e);

/**
 * Main thread: allocate from the NUMA node of this lcore from now on, as far as that node has free
 * memory. @return the argument for placement_leave()
 */
rte_cpuset_t placement_enter(unsigned int lcore);
void placement_leave(const rte_cpuset_t *before);

/* memory.c */
/** Set the node from which threads that are bound to no node allocate; -1: any. */
void memory_home(int numa_node);
int memory_home_node(void);

/** The NUMA node of an lcore; -1: this host has only one. */
int placement_node(unsigned int lcore);
/** The NUMA node for memory that a port uses: its card's, without a card the first worker's. */
int placement_port_node(const struct engine *e, unsigned int port);

#endif
