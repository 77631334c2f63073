/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A port's addresses. They are only ever added, and only worker 0 does so once the port has
 * started: it writes the address before the number that covers it, so that other workers, which
 * read the number first, never see half of an address.
 */

#include <errno.h>

#include <rte_debug.h>

#include "link/kernel.h"
#include "link/neigh.h"
#include "link/private.h"

static void
take_address(struct link_port *p, const union gid *gid)
{
	if (gid_is_ipv4(gid)) {
		memcpy(&p->ipv4[p->num_ipv4], gid->raw + 12, 4);
		__atomic_store_n(&p->num_ipv4, p->num_ipv4 + 1, __ATOMIC_RELEASE);
	} else {
		p->ipv6[p->num_ipv6] = *gid;
		__atomic_store_n(&p->num_ipv6, p->num_ipv6 + 1, __ATOMIC_RELEASE);
	}
}

void
take_addresses(struct link_port *p)
{
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++)
		take_address(p, &p->cfg.addr[i].gid);
}

/* Neighbour solicitations come to a group address. */
void
admit_multicast(struct link_port *p)
{
	if (rte_eth_allmulticast_enable(p->ethdev) != 0 &&
		rte_eth_promiscuous_enable(p->ethdev) != 0)
		LINK_LOG(INFO, "%s: %s cannot be told to receive multicast", p->cfg.name,
			p->driver);
}

int
link_check_address(const struct link *l, unsigned int port, const struct link_addr *addr,
	struct error *err)
{
	const struct link_port *p = &l->port[port];
	char text[GID_STRLEN];
	unsigned int i;

	if (p->cfg.ib || p->cfg.rocev1)
		return error_set(err, EOPNOTSUPP,
			"%s: addresses: only a port of RoCEv2 alone gets more of them while it runs",
			p->cfg.name);
	if (p->cfg.num_addr == LINK_ADDRS_MAX)
		return error_set(err, ENOSPC, "%s: addresses: there are %u already", p->cfg.name,
			LINK_ADDRS_MAX);
	for (i = 0; i < p->cfg.num_addr; i++)
		if (gid_equal(&p->cfg.addr[i].gid, &addr->gid))
			return error_set(err, EEXIST, "%s: addresses: it has %s already",
				p->cfg.name, gid_print(&addr->gid, text));
	return 0;
}

void
link_admit_address(struct link *l, unsigned int port, const struct link_addr *addr)
{
	struct link_port *p = &l->port[port];

	if (gid_is_ipv4(&addr->gid) || p->num_ipv6 > 0)
		return;
	interface_may_change(p);
	admit_multicast(p);
	interface_tell(p);
}

void
link_add_address(struct link_worker *w, unsigned int port, const struct link_addr *addr)
{
	struct link_port *p = &w->link->port[port];

	/* link_check_address() has found room for it */
	RTE_ASSERT(port < w->link->num_ports && p->cfg.num_addr < LINK_ADDRS_MAX);
	p->cfg.addr[p->cfg.num_addr++] = *addr;
	take_address(p, &addr->gid);
	neigh_is_own(w->link->neigh, p, &addr->gid);
	state_addresses_changed(w, p);
}

void
link_warn_of_kernel(const struct link *l, unsigned int port)
{
	kernel_look(&l->port[port]);
}
