/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A port's addresses. Once the port has started, only worker 0 adds one behind the last, or removes
 * the last: it writes the address before the number that covers it, so that other workers, which
 * read the number first, never see half of an address. What is added again at a place which another
 * worker may still read is the address that was there.
 */

#include "link/interface.h"
#include "link/neigh.h"
#include "link/private.h"

const union gid *
port_first_address(const struct link_port *p, bool ipv4)
{
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++)
		if (gid_is_ipv4(&p->cfg.addr[i].gid) == ipv4)
			return &p->cfg.addr[i].gid;
	return NULL;
}

/* Neighbour solicitations come to a group address. */
void
admit_multicast(struct link_port *p)
{
	if (rte_eth_allmulticast_enable(p->ethdev) != 0 &&
		rte_eth_promiscuous_enable(p->ethdev) != 0)
		PORT_LOG(p, INFO, "%s cannot be told to receive multicast", p->driver);
}

int
link_check_address(const struct link *l, unsigned int port, const struct link_addr *addr,
	struct error *err)
{
	const struct link_port *p = &l->port[port];
	char text[GID_STRLEN];

	if (p->cfg.ib || p->cfg.rocev1)
		return port_error(p, err, EOPNOTSUPP,
			"addresses: only a port of RoCEv2 alone gets more of them while it runs");
	if (p->cfg.num_addr == LINK_ADDRS_MAX)
		return port_error(p, err, ENOSPC, "addresses: there are %u already",
			LINK_ADDRS_MAX);
	if (port_has_address(p, &addr->gid))
		return port_error(p, err, EEXIST, "addresses: it has %s already",
			gid_print(&addr->gid, text));
	return 0;
}

void
link_admit_address(struct link *l, unsigned int port, const struct link_addr *addr)
{
	struct link_port *p = &l->port[port];

	if (gid_is_ipv4(&addr->gid) || port_first_address(p, false) != NULL)
		return;
	interface_may_change(p);
	admit_multicast(p);
	interface_tell(p);
}

void
link_add_address(struct link_worker *w, unsigned int port, const struct link_addr *addr)
{
	struct link_port *p = link_port_at(w->link, port);

	RTE_ASSERT(p->cfg.num_addr < LINK_ADDRS_MAX); /* link_check_address() has found room */
	p->cfg.addr[p->cfg.num_addr] = *addr;
	RELEASE_SET(p->cfg.num_addr, p->cfg.num_addr + 1);
	neigh_is_own(w->link->neigh, p, &addr->gid);
	state_addresses_changed(w, p);
}

void
link_remove_last_address(struct link_worker *w, unsigned int port)
{
	struct link_port *p = link_port_at(w->link, port);

	RTE_ASSERT(p->cfg.num_addr > 0);
	RELEASE_SET(p->cfg.num_addr, p->cfg.num_addr - 1);
	state_addresses_changed(w, p);
}
