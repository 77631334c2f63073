/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Each worker should have a CPU of its own. On a NUMA host a worker's own memory is on the node of
 * its CPU, shared memory is on the first worker's node, and a port's queues and packet buffers are
 * on the card's node, as are the regions and services that use the port. If that is not possible,
 * or the CPUs are on another node than the card, everything works but slower, and a warning says so
 * at start.
 */

#include <stdio.h>
#include <string.h>

#include <rte_eal.h>

#include "base/installed.h"
#include "base/plural.h"
#include "engine/placement.h"
#include "engine/worker.h"

struct report {
	placement_warn_fn warn;
	void *arg;
	unsigned int warnings;
	char text[512];
};

static void __attribute__((format(printf, 2, 3)))
placement_say(struct report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	r->warn(r->arg, r->text);
	r->warnings++;
}

static bool
placement_nodes_differ(int a, int b)
{
	return a >= 0 && b >= 0 && a != b;
}

/*
 * Print the numbers of the workers that poll the port from another node, as "0, 2". @return how
 * many
 */
static unsigned int
placement_remote_pollers(const struct placement *p, const struct placement_port *port, char *text,
	size_t size)
{
	unsigned int i, n = 0;
	size_t len = 0;

	for (i = 0; i < p->num_workers && i < port->pollers; i++) {
		if (!placement_nodes_differ(port->node, p->worker[i].node))
			continue;
		if (len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%u", n > 0 ? ", " : "",
				i);
		n++;
	}
	return n;
}

static void
placement_check_port(const struct placement *p, const struct placement_port *port, struct report *r)
{
	char workers[128] = "";
	unsigned int n;

	if (!port->physical)
		return;
	if (!p->hugepages)
		placement_say(r,
			"%s is a network card, and eal.hugepages is false: every packet pays for it, "
			"and under uio_pci_generic nothing arrives. Reserve some with %s "
			"--hugepages %u and set eal.hugepages",
			port->name, setup_host_script(), SETUP_HOST_MIB);
	if (placement_nodes_differ(port->node, port->memory_node))
		placement_say(r,
			"%s is on NUMA node %d, its packet buffers are on node %d: node %d has too few "
			"free hugepages. Reserve more with %s --node %d --hugepages MIB (--status "
			"shows how many there are), or set ports[].mbufs lower",
			port->name, port->node, port->memory_node, port->node, setup_host_script(),
			port->node);
	n = placement_remote_pollers(p, port, workers, sizeof(workers));
	if (n > 0)
		placement_say(r,
			"%s is on NUMA node %d, but is polled from another node, by worker%s %s. Give "
			"workers CPUs of node %d%s%s%s (eal.lcores), or put the card into a slot of theirs",
			port->name, port->node, plural(n), workers, port->node,
			port->cpus[0] != '\0' ? " (" : "", port->cpus,
			port->cpus[0] != '\0' ? ")" : "");
}

static void
placement_check_cpus(const struct placement *p, struct report *r)
{
	if (p->num_cpus == 0 || p->num_workers <= p->num_cpus)
		return;
	placement_say(r,
		"%u workers run on %u CPU%s: those that share one wait for each other, some "
		"milliseconds at a time, and packets are lost meanwhile. Set workers.count to %u, or "
		"run polca on more CPUs (eal.lcores, taskset, CPUAffinity= of its service)",
		p->num_workers, p->num_cpus, plural(p->num_cpus), p->num_cpus);
}

unsigned int
placement_check(const struct placement *p, placement_warn_fn warn, void *arg)
{
	struct report r = { .warn = warn, .arg = arg };
	const struct placement_worker *w;
	unsigned int i;

	placement_check_cpus(p, &r);
	for (i = 0; i < p->num_ports; i++)
		placement_check_port(p, &p->port[i], &r);
	for (i = 0; i < p->num_workers; i++) {
		w = &p->worker[i];
		if (placement_nodes_differ(w->node, w->memory_node))
			placement_say(&r,
				"worker %u runs on NUMA node %d (CPU %d), its memory is on node %d: node "
				"%d has too few free hugepages. Reserve more with %s --node %d "
				"--hugepages MIB (--status shows how many there are)",
				i, w->node, w->cpu, w->memory_node, w->node, setup_host_script(),
				w->node);
	}
	return r.warnings;
}

/* --- the actual placement --- */

int
placement_node(unsigned int lcore)
{
	unsigned int node = rte_lcore_to_socket_id(lcore);

	return rte_socket_count() < 2 || node == (unsigned int)SOCKET_ID_ANY ? -1 : (int)node;
}

int
placement_port_node(const struct engine *e, unsigned int port)
{
	struct link_state state;

	link_state(e->link, port, &state);
	return rte_socket_count() > 1 && state.physical && state.numa_node >= 0
		? state.numa_node
		: memory_home_node();
}

static void
placement_read_cpus(int node, char cpus[PLACEMENT_CPUS_LEN])
{
	char path[64];
	FILE *f;

	cpus[0] = '\0';
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "r");
	if (f == NULL)
		return;
	if (fgets(cpus, PLACEMENT_CPUS_LEN, f) == NULL)
		cpus[0] = '\0';
	cpus[strcspn(cpus, "\n")] = '\0';
	fclose(f);
}

static void
placement_look_at_port(const struct engine *e, unsigned int i, struct placement_port *port)
{
	struct link_state state;

	link_state(e->link, i, &state);
	port->name = link_port_attr(e->link, i)->name;
	port->physical = state.physical;
	port->pollers = state.rx_queues;
	port->node = rte_socket_count() < 2 ? -1 : state.numa_node;
	port->memory_node = state.memory_node;
	placement_read_cpus(state.numa_node, port->cpus);
}

static void
placement_log_warning(void *arg, const char *text)
{
	RTE_SET_USED(arg);
	ENGINE_LOG(WARNING, "%s", text);
}

void
placement_look(const struct engine *e)
{
	struct placement p = { .hugepages = rte_eal_has_hugepages() };
	rte_cpuset_t cpus, used;
	struct worker_info info;
	unsigned int i;

	CPU_ZERO(&used);
	p.num_ports = link_num_ports(e->link);
	p.num_workers = e->num_workers;
	for (i = 0; i < p.num_ports; i++)
		placement_look_at_port(e, i, &p.port[i]);
	for (i = 0; i < p.num_workers; i++) {
		engine_worker_info(e, i, &info);
		cpus = rte_lcore_cpuset(info.lcore);
		CPU_OR(&used, &used, &cpus);
		p.worker[i] = (struct placement_worker){
			.cpu = info.cpu,
			.node = placement_node(info.lcore),
			.memory_node = info.memory_node,
		};
	}
	p.num_cpus = (unsigned int)CPU_COUNT(&used);
	placement_check(&p, placement_log_warning, NULL);
}

/* --- the node from which the main thread allocates --- */

/*
 * EAL allocates from the node to which the calling thread is bound, and the kernel from the node of
 * the CPU that touches a page first.
 */
static void
placement_move_to(const rte_cpuset_t *cpus)
{
	rte_cpuset_t copy = *cpus;

	if (rte_socket_count() > 1 && rte_thread_set_affinity(&copy) != 0)
		ENGINE_LOG(WARNING,
			"the main thread stays where it is: memory may end up on another "
			"NUMA node than its worker");
}

rte_cpuset_t
placement_enter(unsigned int lcore)
{
	rte_cpuset_t before, there = rte_lcore_cpuset(lcore);

	rte_thread_get_affinity(&before);
	placement_move_to(&there);
	return before;
}

void
placement_leave(const rte_cpuset_t *before)
{
	placement_move_to(before);
}
