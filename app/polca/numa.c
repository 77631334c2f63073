/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The EAL does not run yet, so the nodes of cards and CPUs are read from sysfs, as the EAL does. */

#include <dirent.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_pci.h>

#include "base/pci_address.h"
#include "numa.h"

/* @return the NUMA node of a PCI device; -1: unknown, or not a PCI device */
static int
node_of_card(const char *sys, const char *device)
{
	char path[512], name[PCI_PRI_STR_SIZE];
	struct rte_pci_addr addr;
	int node = -1;
	FILE *f;

	if (!pci_address_parse(device, &addr))
		return -1;
	rte_pci_device_name(&addr, name, sizeof(name));
	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s/numa_node", sys, name);
	f = fopen(path, "r");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}

/* Parse a list such as "0-3,8-11". */
static void
cpus_of_node(const char *sys, int node, cpu_set_t *set)
{
	unsigned int from, to;
	char path[512], sep;
	FILE *f;

	CPU_ZERO(set);
	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sys, node);
	f = fopen(path, "r");
	if (f == NULL)
		return;
	while (fscanf(f, "%u", &from) == 1) {
		to = from;
		if (fscanf(f, "-%u", &to) != 1)
			to = from;
		for (; from <= to && from < CPU_SETSIZE; from++)
			CPU_SET(from, set);
		if (fscanf(f, "%c", &sep) != 1 || sep != ',')
			break;
	}
	fclose(f);
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
		cpus_of_node(sys, node, &set[n++]);
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

/* Free bytes in hugepages of all sizes on a node; -1: unknown. */
static int64_t
free_hugepages(const char *sys, int node)
{
	char path[512], file[1024];
	uint64_t kib, pages;
	struct dirent *size;
	int64_t total = 0;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/hugepages", sys, node);
	dir = opendir(path);
	if (dir == NULL)
		return -1;
	while ((size = readdir(dir)) != NULL) {
		if (sscanf(size->d_name, "hugepages-%" SCNu64 "kB", &kib) != 1)
			continue;
		snprintf(file, sizeof(file), "%s/%s/free_hugepages", path, size->d_name);
		f = fopen(file, "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%" SCNu64, &pages) == 1)
			total += (int64_t)(pages * kib * 1024);
		fclose(f);
	}
	closedir(dir);
	return total;
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
		if (node < 0 || free_hugepages(sys, node) != 0)
			continue;
		snprintf(text, sizeof(text),
			"%s is on NUMA node %d, which has no free hugepages: some drivers do not "
			"start so. Reserve some there with config/setup-host.sh --node %d --hugepages MIB",
			port->name, node, node);
		warn(arg, text);
		warnings++;
	}
	return warnings;
}
