/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What the kernel drops because a port's ring is full, where DPDK's driver does not report it: by
 * the sockets that the driver has opened. They are found among the descriptors of this process,
 * once, when the port has started.
 *
 * net_af_packet: until DPDK 24.03, which reads the same counter, and reading it resets it.
 * net_af_xdp: it reports rx_dropped, which is without frames that found the ring full.
 */

#include <dirent.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <stdlib.h>

#include <rte_version.h>

#include "link/private.h"

#define PACKET_IS_ASKED (RTE_VERSION < RTE_VERSION_NUM(24, 3, 0, 0))

/* @param total  what was read before. @return what is known now */
static uint64_t
packet_drops(int fd, uint64_t total)
{
	struct tpacket_stats s;
	socklen_t len = sizeof(s);

	if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) != 0)
		return total;
	return total + s.tp_drops; /* since the last time */
}

static uint64_t
xdp_ring_full(int fd, uint64_t total)
{
	struct xdp_statistics s = { .rx_ring_full = 0 };
	socklen_t len = sizeof(s);

	if (getsockopt(fd, SOL_XDP, XDP_STATISTICS, &s, &len) != 0)
		return total;
	return s.rx_ring_full; /* since the socket was opened; 0 before Linux 5.9 */
}

static const struct ring_full_rule {
	const char *driver;
	int family;
	uint64_t (*read)(int fd, uint64_t total);
	bool asked;
} ring_full_rules[] = {
	{ "net_af_packet", AF_PACKET, packet_drops, PACKET_IS_ASKED },
	{ "net_af_xdp", AF_XDP, xdp_ring_full, true },
};

static const struct ring_full_rule *
ring_full_rule_of(const struct link_port *p)
{
	unsigned int i;

	for (i = 0; i < RTE_DIM(ring_full_rules); i++)
		if (ring_full_rules[i].asked && strcmp(p->driver, ring_full_rules[i].driver) == 0)
			return &ring_full_rules[i];
	return NULL;
}

/* True if the descriptor is a socket of this family that no other port has. */
static bool
is_new_socket(const struct link *l, int fd, int family)
{
	int got = 0;
	socklen_t len = sizeof(got);
	const struct link_port *p;
	unsigned int i;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &got, &len) != 0 || got != family)
		return false;
	LINK_FOREACH_PORT(p, l)
		for (i = 0; i < p->num_rx_sockets; i++)
			if (p->rx_socket[i].fd == fd)
				return false;
	return true;
}

void
ring_full_find(const struct link *l, struct link_port *p)
{
	const struct ring_full_rule *rule = ring_full_rule_of(p);
	const struct dirent *entry;
	DIR *dir;
	int fd;

	dir = rule != NULL ? opendir("/proc/self/fd") : NULL;
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL && p->num_rx_sockets < RTE_DIM(p->rx_socket)) {
		fd = atoi(entry->d_name);
		if (entry->d_name[0] != '.' && is_new_socket(l, fd, rule->family))
			p->rx_socket[p->num_rx_sockets++] = (struct rx_socket){ .fd = fd };
	}
	closedir(dir);
}

uint64_t
link_ring_full(struct link *l, unsigned int port)
{
	struct link_port *p = &l->port[port];
	const struct ring_full_rule *rule = ring_full_rule_of(p);
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < p->num_rx_sockets; i++) {
		p->rx_socket[i].drops = rule->read(p->rx_socket[i].fd, p->rx_socket[i].drops);
		sum += p->rx_socket[i].drops;
	}
	return sum;
}
