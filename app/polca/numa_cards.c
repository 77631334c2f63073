/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The EAL does not run yet, so the nodes of cards and their hugepages are read from sysfs, as the
 * EAL does. The CPUs of a node come from libnuma.
 */

#include <glob.h>
#include <numa.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_pci.h>

#include "base/installed.h"
#include "base/pci_address.h"
#include "numa_cards.h"

/* @return the number that the file begins with; -1: there is none */
static int
sysfs_number(const char *path)
{
	FILE *f = fopen(path, "r");
	int v = -1;

	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &v) != 1)
		v = -1;
	fclose(f);
	return v;
}

/* @return the NUMA node of a PCI device; -1: unknown, or not a PCI device */
static int
node_of_card(const char *sys, const char *device)
{
	char path[512], name[PCI_PRI_STR_SIZE];
	struct rte_pci_addr addr;

	if (!pci_address_parse(device, &addr))
		return -1;
	rte_pci_device_name(&addr, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sys, name);
	return sysfs_number(path);
}

static void
cpus_of_node(int node, cpu_set_t *set)
{
	struct bitmask *mask = numa_allocate_cpumask();
	unsigned int i;

	CPU_ZERO(set);
	if (numa_node_to_cpus(node, mask) == 0)
		for (i = 0; i < CPU_SETSIZE; i++)
			if (numa_bitmask_isbitset(mask, i))
				CPU_SET(i, set);
	numa_free_cpumask(mask);
}

/*
 * The CPUs of the cards' nodes, each node once, in the order of the ports. @return number of nodes
 */
static unsigned int
wanted_nodes(const struct config *c, const char *sys, cpu_set_t set[LINK_PORTS_MAX])
{
	int node, seen[LINK_PORTS_MAX];
	unsigned int i, k, n = 0;
	const char *device;

	for (i = 0; i < c->num_ports; i++) {
		device = c->engine.link.port[i].device;
		node = node_of_card(sys, device);
		for (k = 0; k < n && seen[k] != node; k++)
			;
		if (node < 0 || k < n)
			continue;
		seen[n] = node;
		cpus_of_node(node, &set[n++]);
	}
	return n;
}

/* Take the next free CPU of a set, or of all CPUs if set is NULL. */
static bool
take_cpu(const unsigned int *cpu, unsigned int n, const cpu_set_t *set, cpu_set_t *taken,
	unsigned int *out)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (CPU_ISSET(cpu[i], taken) || (set != NULL && !CPU_ISSET(cpu[i], set)))
			continue;
		CPU_SET(cpu[i], taken);
		*out = cpu[i];
		return true;
	}
	return false;
}

void
numa_order_cpus(const struct config *c, const char *sys, unsigned int *cpu, unsigned int n)
{
	cpu_set_t set[LINK_PORTS_MAX], taken;
	unsigned int order[CPU_SETSIZE];
	unsigned int nodes = wanted_nodes(c, sys, set), done = 0, before, i;

	CPU_ZERO(&taken);
	do {
		before = done;
		for (i = 0; i < nodes && done < n; i++)
			done += take_cpu(cpu, n, &set[i], &taken, &order[done]);
	} while (done > before);
	while (done < n && take_cpu(cpu, n, NULL, &taken, &order[done]))
		done++;
	memcpy(cpu, order, done * sizeof(*cpu));
}

/* True if the node has hugepages of some size, and none of them is free. */
static bool
lacks_hugepages(const char *sys, int node)
{
	char pattern[512];
	glob_t found;
	bool lacks;
	size_t i;

	snprintf(pattern, sizeof(pattern),
		"%s/devices/system/node/node%d/hugepages/*/free_hugepages", sys, node);
	lacks = glob(pattern, 0, NULL, &found) == 0;
	for (i = 0; i < found.gl_pathc; i++)
		lacks = lacks && sysfs_number(found.gl_pathv[i]) <= 0;
	globfree(&found);
	return lacks;
}

unsigned int
numa_check_hugepages(const struct config *c, const char *sys, numa_warn_fn warn, void *arg)
{
	const struct link_port_config *port;
	unsigned int i, warnings = 0;
	char text[512];
	int node;

	for (i = 0; c->hugepages && i < c->num_ports; i++) {
		port = &c->engine.link.port[i];
		node = node_of_card(sys, port->device);
		if (node < 0 || !lacks_hugepages(sys, node))
			continue;
		snprintf(text, sizeof(text),
			"%s is on NUMA node %d, which has no free hugepages: some drivers do not "
			"start so. Reserve some there with %s --node %d --hugepages %u",
			port->name, node, setup_host_script(), node, SETUP_HOST_MIB);
		warn(arg, text);
		warnings++;
	}
	return warnings;
}
