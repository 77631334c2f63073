/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_PLACEMENT_H
#define ENGINE_PLACEMENT_H

/**
 * @file
 * Private to lib/engine: on which CPU and NUMA node things are made, and what is said at start when
 * they are not where they should be. A node of -1: unknown, or this host has only one.
 */

#include <stdbool.h>

#include <rte_lcore.h>

#include "link/link.h"

struct engine;

#define PLACEMENT_CPUS_LEN 64

struct placement_port {
	const char *name;
	bool physical; /* a card, not a device made of software */
	int node;
	int memory_node; /* of its packet buffers */
	unsigned int pollers; /* workers 0 to this one, excluded, poll it */
	char cpus[PLACEMENT_CPUS_LEN]; /* of its node, as "2-3"; "": not known */
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
	unsigned int num_cpus; /* that the workers run on together */
	struct placement_port port[LINK_PORTS_MAX];
	struct placement_worker worker[LINK_WORKERS_MAX];
};

/** @param text  what is wrong and what to do about it, one line */
typedef void (*placement_warn_fn)(void *arg, const char *text);
/** Pure. @return warnings given */
unsigned int placement_check(
		const struct placement *p, placement_warn_fn warn, void *arg);

/** After all has been made: check, and warn in the log. */
void placement_look(const struct engine *e);

/**
 * Main thread: memory that it takes from now on comes from the node of this lcore, as far as there
 * is any. @return what placement_leave() wants
 */
rte_cpuset_t placement_enter(unsigned int lcore);
void placement_leave(const rte_cpuset_t *before);

/* memory.c */
/** The node on which threads that are bound to none allocate; -1: any. */
void memory_home(int numa_node);
int memory_home_node(void);

/** Which node an lcore is on; -1: this host has only one. */
int placement_node(unsigned int lcore);

#endif
