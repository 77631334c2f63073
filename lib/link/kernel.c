/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Warnings about this host's kernel on an interface that it shares with a port (af_packet, af_xdp,
 * tap, cards with a kernel driver next to DPDK's). If the kernel holds one of the port's addresses,
 * on any interface, it answers port 4791 with ICMP unreachable, and the peer believes it; if it has
 * a soft-RoCE device there, that answers, too. Devices that the kernel does not see are not
 * checked, because their packets never reach it.
 */

#include <glob.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "link/control.h"
#include "link/kernel.h"

#define TEXT_LEN 320

/* An IPv4 or IPv6 address, or a mask of one; zero for other families. */
static union gid
gid_from_sockaddr(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET)
		return ip_gid(&ip_v4, (const void *)&((const struct sockaddr_in *)sa)->sin_addr);
	if (sa->sa_family == AF_INET6)
		return ip_gid(&ip_v6, (const void *)&((const struct sockaddr_in6 *)sa)->sin6_addr);
	return (union gid){ 0 };
}

static unsigned int
prefix_length(const struct sockaddr *mask)
{
	union gid bits;
	unsigned int n;

	if (mask == NULL)
		return 0;
	bits = gid_from_sockaddr(mask);
	n = __builtin_popcountll(bits.word[0]) + __builtin_popcountll(bits.word[1]);
	return mask->sa_family == AF_INET ? n - 16 : n; /* without the prefix of mapped addresses */
}

static void
check_addresses(const struct link_port *p, const struct kernel_view *v, const char *interface)
{
	char text[TEXT_LEN], address[GID_STRLEN];
	const struct ifaddrs *i;
	const union gid *gid;
	union gid held;
	unsigned int a;

	for (i = v->addresses; i != NULL; i = i->ifa_next)
		for (a = 0; i->ifa_addr != NULL && a < p->cfg.num_addr; a++) {
			gid = &p->cfg.addr[a].gid;
			held = gid_from_sockaddr(i->ifa_addr);
			if (!gid_equal(&held, gid))
				continue;
			/* a link-local address on another interface belongs to another link */
			if (gid_is_link_local(gid) && strcmp(i->ifa_name, interface) != 0)
				continue;
			gid_print(gid, address);
			snprintf(text, sizeof(text),
				"%s: the kernel of this host holds %s on %s as "
				"well and refuses RoCE packets to it (ICMP port unreachable). Type: "
				"ip addr del %s/%u dev %s",
				p->cfg.name, address, i->ifa_name, address,
				prefix_length(i->ifa_netmask), i->ifa_name);
			v->warn(text);
		}
}

static bool
first_word_is(const char *path, const char *want)
{
	char word[IF_NAMESIZE];
	bool found;
	FILE *f;

	f = fopen(path, "r");
	if (f == NULL)
		return false;
	found = fscanf(f, "%15s", word) == 1 && strcmp(word, want) == 0;
	fclose(f);
	return found;
}

/* Only soft-RoCE devices have a file "parent": the interface that they are on. */
static void
check_soft_roce(const struct link_port *p, const struct kernel_view *v)
{
	char text[TEXT_LEN], path[256], *device;
	glob_t parents = { 0 };
	size_t i;

	snprintf(path, sizeof(path), "%s/class/infiniband/*/parent", v->sys);
	glob(path, 0, NULL, &parents);
	for (i = 0; i < parents.gl_pathc; i++) {
		if (!first_word_is(parents.gl_pathv[i], v->interface))
			continue;
		device = basename(dirname(parents.gl_pathv[i]));
		snprintf(text, sizeof(text),
			"%s: the kernel's soft-RoCE device %.64s is on %s as well: "
			"two answer RoCE there. Type: rdma link delete %.64s",
			p->cfg.name, device, v->interface, device);
		v->warn(text);
	}
	globfree(&parents);
}

/*
 * Tagged frames reach the kernel's addresses only through a VLAN interface with this ID. Its line
 * in /proc/net/vlan/config reads "eth1.5 | 5 | eth1".
 */
static bool
find_vlan_interface(const struct kernel_view *v, uint16_t vlan, char name[IF_NAMESIZE])
{
	char line[128], parent[IF_NAMESIZE];
	unsigned int id;
	bool found = false;
	FILE *f;

	f = fopen(v->vlans, "r");
	if (f == NULL)
		return false;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "%15s | %u | %15s", name, &id, parent) == 3 && id == vlan &&
			strcmp(parent, v->interface) == 0;
	fclose(f);
	return found;
}

void
kernel_check(const struct link_port *p, const struct kernel_view *v)
{
	char interface[IF_NAMESIZE];

	if (p->cfg.ib || v->interface[0] == '\0')
		return;
	check_soft_roce(p, v);
	snprintf(interface, sizeof(interface), "%.15s", v->interface);
	if (p->cfg.vlan == PATH_NO_VLAN || find_vlan_interface(v, p->cfg.vlan, interface))
		check_addresses(p, v, interface);
}

static void
kernel_log_warning(const char *text)
{
	LINK_LOG(WARNING, "%s", text);
}

void
link_warn_of_kernel(const struct link *l, unsigned int port)
{
	const struct link_port *p = &l->port[port];
	struct kernel_view v = {
		.sys = "/sys",
		.vlans = "/proc/net/vlan/config",
		.interface = p->interface[0].name,
		.warn = kernel_log_warning,
	};
	struct ifaddrs *list;

	if (getifaddrs(&list) != 0)
		return;
	v.addresses = list;
	kernel_check(p, &v);
	freeifaddrs(list);
}
