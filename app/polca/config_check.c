/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Checks that need more than one value: members that must be given, values that must agree,
 * addresses that must fit together.
 */

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_pci.h>

#include "base/log_level.h"
#include "base/pci_address.h"
#include "base/plural.h"
#include "ctl/metrics_http.h"
#include "config.h"

static int
port_by_name(const struct config *c, const char *name)
{
	unsigned int i;

	for (i = 0; i < c->num_ports; i++)
		if (strcmp(c->port[i].link.name, name) == 0)
			return (int)i;
	return -1;
}

static bool
port_is_wrong(const struct config_errors *errs, unsigned int i)
{
	char path[32];

	snprintf(path, sizeof(path), "ports[%u]", i);
	return config_errors_below(errs, path);
}

/* A port has either a device, or a back-to-back partner that names it in turn. */
static int
check_attachment(const struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_port *p = &c->port[i];
	char full[PCI_PRI_STR_SIZE];
	int peer;

	if (p->device[0] != '\0' && p->link.back_to_back[0] != '\0')
		return config_error(errs,
			"ports[%u]: got both device and back_to_back, allowed: one of them", i);
	if (pci_address_complete(p->device, full, sizeof(full)))
		return config_error(errs,
			"ports[%u].device: got \"%.64s\", allowed: a PCI address with its "
			"function, such as \"%s\"",
			i, p->device, full);
	if (p->device[0] != '\0')
		return 0;
	if (p->link.back_to_back[0] == '\0')
		return config_error(errs,
			"ports[%u]: got neither device nor back_to_back, allowed: one of them", i);
	/* the partner may be a port whose name is wrong: that was reported already */
	peer = port_by_name(c, p->link.back_to_back);
	if (peer < 0 && config_errors_below(errs, "ports"))
		return 0;
	if (peer < 0 || (unsigned int)peer == i)
		return config_error(errs,
			"ports[%u].back_to_back: got \"%s\", allowed: the name of another port", i,
			p->link.back_to_back);
	if (port_is_wrong(errs, (unsigned int)peer))
		return 0;
	if (strcmp(c->port[peer].link.back_to_back, p->link.name) != 0)
		return config_error(errs,
			"ports[%u].back_to_back: got \"%s\", but ports[%d].back_to_back is \"%s\", allowed: "
			"\"%s\"",
			i, p->link.back_to_back, peer, c->port[peer].link.back_to_back,
			p->link.name);
	if ((unsigned int)peer > i && c->port[peer].encapsulation != p->encapsulation)
		return config_error(errs,
			"ports[%u].encapsulation: differs from that of ports[%d], its other "
			"end: expected the same, or they would not understand each other",
			i, peer);
	return 0;
}

/* An address of a port's, of one of its two lists. */
struct listed_address {
	const struct link_addr *addr;
	char path[48];
};

/* @retval false  the port has no more than i addresses */
static bool
listed_address(const struct config *c, unsigned int port, unsigned int i, struct listed_address *l)
{
	const struct link_port_config *p = &c->port[port].link;
	bool leader = i >= p->num_addr;
	unsigned int k = leader ? i - p->num_addr : i;

	if (leader && k >= p->num_leader_addr)
		return false;
	l->addr = leader ? &p->leader_addr[k] : &p->addr[k];
	snprintf(l->path, sizeof(l->path), "ports[%u].%saddresses[%u]", port,
		leader ? "leader_" : "", k);
	return true;
}

static int
check_gateway(const struct listed_address *l, struct config_errors *errs)
{
	const struct link_addr *a = l->addr;
	char gw[GID_STRLEN], addr[GID_STRLEN];

	if (gid_is_zero(&a->gateway))
		return 0;
	gid_print(&a->gateway, gw);
	gid_print(&a->gid, addr);
	if (gid_is_ipv4(&a->gateway) != gid_is_ipv4(&a->gid))
		return config_error(errs, "%s.gateway: got \"%s\", allowed: one of %s's family",
			l->path, gw, addr);
	if (!gid_is_link_local(&a->gateway) &&
		!gid_same_subnet(&a->gateway, &a->gid, a->prefix_len))
		return config_error(errs, "%s.gateway: got \"%s\", allowed: one within %s/%u",
			l->path, gw, addr, a->prefix_len);
	return 0;
}

/* Link-local addresses may repeat on other ports; all others name one port of this machine. */
static int
check_unique(const struct config *c, unsigned int port, unsigned int i, struct config_errors *errs)
{
	struct listed_address l, other;
	char text[GID_STRLEN];
	unsigned int p, k;

	if (!listed_address(c, port, i, &l))
		return 0;
	for (p = 0; p <= port; p++)
		for (k = 0; (p < port || k < i) && listed_address(c, p, k, &other); k++) {
			if (!gid_equal(&other.addr->gid, &l.addr->gid))
				continue;
			if (p != port && gid_is_link_local(&l.addr->gid))
				continue;
			return config_error(errs, "%s: got \"%s\", which %s has already", l.path,
				gid_print(&l.addr->gid, text), other.path);
		}
	return 0;
}

/* A port gets them while it runs, and they go with the fleet's lead. */
static void
check_leader_addresses(const struct config *c, unsigned int port, struct config_errors *errs)
{
	const struct config_port *p = &c->port[port];

	if (p->link.num_leader_addr == 0)
		return;
	if (c->engine.sa.fleet.num_endpoints == 0)
		config_error(errs,
			"ports[%u].leader_addresses: given, but there is no fleet: fleet.endpoints is missing",
			port);
	if (p->encapsulation == CONFIG_IB || p->link.rocev1)
		config_error(errs,
			"ports[%u].leader_addresses: given, but only a port of RoCEv2 alone gets addresses while it runs",
			port);
	if (p->link.num_addr == 0)
		config_error(errs,
			"ports[%u].leader_addresses: given, but ports[%u].addresses has none that the port always has",
			port, port);
	if (p->link.num_addr + p->link.num_leader_addr > LINK_ADDRS_MAX)
		config_error(errs,
			"ports[%u].leader_addresses: got %u besides %u addresses, allowed: together %u",
			port, p->link.num_leader_addr, p->link.num_addr, LINK_ADDRS_MAX);
}

/* A LID is listed once. */
static int
check_lids(const struct link_port_config *p, unsigned int port, struct config_errors *errs)
{
	unsigned int i, k;

	for (i = 1; i < p->num_lids; i++)
		for (k = 0; k < i; k++)
			if (p->lids[k].lid == p->lids[i].lid)
				return config_error(errs,
					"ports[%u].ib.lids[%u].lid: got %u, which ports[%u].ib.lids[%u] has already",
					port, i, p->lids[i].lid, port, k);
	return 0;
}

/* A native IB port has LIDs and no IP addresses; a RoCE port has no "ib". */
static void
check_ib_config(const struct config_port *p, unsigned int i, struct config_errors *errs)
{
	if (p->encapsulation != CONFIG_IB) {
		if (p->has_ib)
			config_error(errs,
				"ports[%u].ib: given, but ports[%u].encapsulation is \"roce\", allowed: \"ib\"",
				i, i);
		return;
	}
	if (p->link.num_addr > 0)
		config_error(errs,
			"ports[%u].addresses: given, but a native InfiniBand port "
			"(encapsulation \"ib\") has LIDs and no IP addresses",
			i);
	if (p->link.rocev1)
		config_error(errs,
			"ports[%u].rocev1: got true, allowed: false with encapsulation \"ib\"", i);
	if (p->sma.lid & ((1u << p->sma.lmc) - 1))
		config_error(errs,
			"ports[%u].ib.lid: got %u, allowed: a multiple of %u with lmc %u", i,
			p->sma.lid, 1u << p->sma.lmc, p->sma.lmc);
	if (p->sma.active && p->sma.lid == 0)
		config_error(errs,
			"ports[%u].ib.active: got true, but ports[%u].ib.lid is missing: "
			"nobody could reach the port",
			i, i);
	if (p->sm_state == SMA_SM_MASTER)
		config_error(errs,
			"ports[%u].ib.sm.state: got \"master\", but no subnet manager serves "
			"the port when it starts",
			i);
	check_lids(&p->link, i, errs);
}

static void
check_port_config(const struct config *c, unsigned int port, struct config_errors *errs)
{
	const struct link_port_config *p = &c->port[port].link;
	struct listed_address l;
	unsigned int i;

	i = (unsigned int)port_by_name(c, p->name);
	if (p->name[0] == '\0')
		config_error(errs, "ports[%u].name: got \"\", allowed: a name", port);
	else if (i != port)
		config_error(errs, "ports[%u].name: got \"%s\", which ports[%u] has already", port,
			p->name, i);
	check_attachment(c, port, errs);
	check_ib_config(&c->port[port], port, errs);
	check_leader_addresses(c, port, errs);
	for (i = 0; listed_address(c, port, i, &l); i++) {
		check_gateway(&l, errs);
		check_unique(c, port, i, errs);
	}
}

/* True if the value of this member could not be read: no other error follows from it. */
static bool
service_member_is_wrong(const struct config_errors *errs, unsigned int i, const char *member)
{
	char path[64];

	snprintf(path, sizeof(path), "services[%u].%s", i, member);
	return config_errors_below(errs, path);
}

/* True if the item of the list is no object: there are no members to check. */
static bool
service_is_wrong(const struct config_errors *errs, unsigned int i)
{
	unsigned int k, kept = RTE_MIN(errs->values, (unsigned int)CONFIG_ERRORS_MAX);
	char text[64];

	snprintf(text, sizeof(text), "services[%u]:", i);
	for (k = 0; k < kept; k++)
		if (strncmp(errs->error[k].text, text, strlen(text)) == 0)
			return true;
	return false;
}

/* Somewhere to listen, and only one thing there. */
static void
check_service(const struct config *c, unsigned int i, struct config_errors *errs)
{
	const struct config_service *s = &c->service[i];
	const struct svc_config *all = c->engine.service;
	bool place_known = !service_member_is_wrong(errs, i, "port") &&
		!service_member_is_wrong(errs, i, "service_id") &&
		!service_member_is_wrong(errs, i, "tcp_port");
	char kinds[256] = "";
	unsigned int k;

	svc_kinds_that_listen(kinds, sizeof(kinds));
	if (!service_member_is_wrong(errs, i, "kind") &&
		(svc_kind(s->svc.kind) == NULL || !svc_kind(s->svc.kind)->server))
		config_error(errs, "services[%u].kind: got \"%s\", allowed: %s", i, s->svc.kind,
			kinds);
	if (s->port != 0 && s->svc.service_id != 0)
		config_error(errs,
			"services[%u]: got both port and service_id, allowed: one of them", i);
	if (place_known && s->port == 0 && s->svc.service_id == 0 && s->svc.tcp_port == 0)
		config_error(errs,
			"services[%u]: got neither port nor service_id, allowed: one of them", i);
	if (!service_member_is_wrong(errs, i, "local_port") && s->svc.local_port >= c->num_ports)
		config_error(errs,
			"services[%u].local_port: got %u, there are %u ports, counted from 0", i,
			s->svc.local_port, c->num_ports);
	for (k = 0; k < i; k++)
		if (all[k].service_id == all[i].service_id && all[i].service_id != 0)
			config_error(errs,
				"services[%u]: listens on service ID 0x%016" PRIx64
				", as services[%u] does already",
				i, all[i].service_id, k);
}

/* Components of Polca's own exist already; drivers' come when the EAL loads them. */
static void
check_log(const struct config *c, struct config_errors *errs)
{
	struct error why = { "" };
	unsigned int i;

	for (i = 0; i < c->num_log; i++)
		if (strncmp(c->log[i].component, "polca.", strlen("polca.")) == 0 &&
			log_component_check(c->log[i].component, &why) != 0)
			config_error(errs, "log[%u].component: %s", i, why.text);
}

/* A partition is its P_Key's lower 15 bits: 0 is none, and it has one SL. */
static void
check_partitions(const struct config *c, struct config_errors *errs)
{
	const struct sa_config *sa = &c->engine.sa.server;
	unsigned int i, k;

	for (i = 0; i < sa->num_partitions; i++) {
		if ((sa->partition[i].pkey & 0x7FFF) == 0)
			config_error(errs, "sa.partitions[%u].pkey: got 0x%04x, which is no P_Key",
				i, sa->partition[i].pkey);
		for (k = 0; k < i; k++)
			if (((sa->partition[k].pkey ^ sa->partition[i].pkey) & 0x7FFF) == 0)
				config_error(errs,
					"sa.partitions[%u]: the partition of P_Key 0x%04x has an SL already, in sa.partitions[%u]",
					i, sa->partition[i].pkey, k);
	}
}

/* The largest CPU in "0-1,(2-3)@4": of each item what follows its @, or without one all of it. */
static unsigned long
largest_cpu(const char *lcores)
{
	unsigned long largest = 0, before = 0, number;
	unsigned int depth = 0;
	const char *p = lcores;
	char *end;

	while (*p != '\0') {
		number = strtoul(p, &end, 10);
		if (end != p) {
			largest = RTE_MAX(largest, number);
			p = end;
			continue;
		}
		depth += *p == '(';
		depth -= *p == ')' && depth > 0;
		if (*p == '@')
			largest = before; /* the numbers in front of it are lcores */
		if (*p == ',' && depth == 0)
			before = largest;
		p++;
	}
	return largest;
}

/* What the host does not have: DPDK would refuse it at start. */
static void
check_host(const struct config *c, struct config_errors *errs)
{
	uint64_t mib = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
	unsigned long cpus = (unsigned long)sysconf(_SC_NPROCESSORS_CONF);

	if (c->user[0] != '\0' && !config_errors_below(errs, "security") &&
		getpwnam(c->user) == NULL)
		config_error(errs, "security.user: got \"%s\", allowed: a user of this host",
			c->user);
	if (config_errors_below(errs, "eal"))
		return;
	if (c->lcores[0] != '\0' && largest_cpu(c->lcores) >= cpus)
		config_error(errs,
			"eal.lcores: got \"%.64s\", but this host has %lu CPU%s, counted from 0",
			c->lcores, cpus, plural(cpus));
	if (c->memory_mb > mib)
		config_error(errs, "eal.memory_mb: got %u, but this host has %" PRIu64 " MiB",
			c->memory_mb, mib);
}

static void
check_process(const struct config *c, struct config_errors *errs)
{
	const struct rc_congestion *rate = &c->engine.limits.congestion;

	if (rate->min_rate > rate->max_rate && !config_errors_below(errs, "congestion"))
		config_error(errs, "congestion.min_rate: got %u, above max_rate, which is %u",
			rate->min_rate, rate->max_rate);
	if (c->multi_process && !c->hugepages && !config_errors_below(errs, "eal"))
		config_error(errs,
			"eal.multi_process: got true, but eal.hugepages is false: only hugepages can be shared");
}

mode_t
config_mode(const char *mode, const char *group)
{
	if (mode[0] != '\0')
		return (mode_t)strtoul(mode, NULL, 8);
	return group[0] != '\0' ? 0660 : 0600;
}

/* The mode and the group of a socket, which are in the object @p key. */
static void
check_admission(const char *key, const char *mode, const char *group, struct config_errors *errs)
{
	if (mode[strspn(mode, "01234567")] != '\0' || (config_mode(mode, group) & ~0066u) != 0600)
		config_error(errs,
			"%s.mode: got \"%s\", allowed: octal, 0600 and what of 0066 others may do",
			key, mode);
	if (group[0] != '\0' && getgrnam(group) == NULL)
		config_error(errs, "%s.group: got \"%s\", allowed: a group of this host", key,
			group);
}

static void
check_control(const struct config *c, struct config_errors *errs)
{
	check_admission("control", c->mode, c->group, errs);
	check_admission("verbs", c->verbs.mode, c->verbs.group, errs);
	if (c->monitor_group[0] != '\0' && getgrnam(c->monitor_group) == NULL)
		config_error(errs,
			"control.monitor_group: got \"%s\", allowed: a group of this host",
			c->monitor_group);
	if (c->monitor[0] != '\0' && strcmp(c->monitor, c->socket) == 0)
		config_error(errs,
			"control.monitor: got \"%s\", allowed: another path than socket's",
			c->monitor);
}

int
config_check_sockets(const struct config *c, struct error *err)
{
	static const char text[] = "%s: got \"%s\", which is %s already: name another path";

	if (c->monitor[0] != '\0' && strcmp(c->monitor, c->socket) == 0)
		return error_set(err, EINVAL, text, "control.monitor", c->monitor,
			"control.socket");
	if (c->metrics[0] != '\0' && strcmp(c->metrics, c->socket) == 0)
		return error_set(err, EINVAL, text, "metrics.listen", c->metrics, "control.socket");
	if (c->metrics[0] != '\0' && strcmp(c->metrics, c->monitor) == 0)
		return error_set(err, EINVAL, text, "metrics.listen", c->metrics,
			"control.monitor");
	if (c->verbs.socket[0] != '\0' &&
		(strcmp(c->verbs.socket, c->socket) == 0 ||
			strcmp(c->verbs.socket, c->monitor) == 0))
		return error_set(err, EINVAL, text, "verbs.socket", c->verbs.socket,
			"a socket of control");
	if (c->verbs.socket[0] != '\0' && strcmp(c->verbs.socket, c->metrics) == 0)
		return error_set(err, EINVAL, text, "verbs.socket", c->verbs.socket,
			"metrics.listen");
	return 0;
}

static void
check_metrics(const struct config *c, struct config_errors *errs)
{
	struct sockaddr_storage addr;
	int len = sizeof(addr);

	if (c->metrics[0] != '\0' && c->metrics[0] != '/' &&
		!metrics_http_loopback(c->metrics, &addr, &len))
		config_error(errs, "metrics.listen: got \"%s\", allowed: " METRICS_LISTEN,
			c->metrics);
}

void
config_check(const struct config *c, struct config_errors *errs)
{
	unsigned int i;

	errs->values = errs->num;
	check_process(c, errs);
	check_host(c, errs);
	if (!config_errors_below(errs, "control"))
		check_control(c, errs);
	if (!config_errors_below(errs, "metrics"))
		check_metrics(c, errs);
	if (!config_errors_below(errs, "log"))
		check_log(c, errs);
	if (!config_errors_below(errs, "sa"))
		check_partitions(c, errs);
	if (!config_errors_below(errs, "fleet"))
		config_check_fleet(c, errs);
	for (i = 0; i < c->num_ports; i++)
		if (!port_is_wrong(errs, i))
			check_port_config(c, i, errs);
	for (i = 0; i < c->num_services; i++)
		if (!service_is_wrong(errs, i))
			check_service(c, i, errs);
}
