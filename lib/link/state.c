/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Link state, and the attributes that follow from it.
 *
 * A port's attributes are immutable; a change writes the oldest of ATTR_SLOTS copies and publishes
 * it. Readers take the pointer once a burst; as a port changes at most once per look (STATE_MS), a
 * copy is rewritten ATTR_SLOTS looks later at the earliest: that is the grace period, seconds
 * against a burst's microseconds.
 */

#include <stdio.h>

#include <rte_malloc.h>

#include "link/private.h"

#define STATE_MS 250
#define ANNOUNCE_COUNT 3
#define ANNOUNCE_MS 1000

static unsigned int
add_gid(struct port_attr *a, const struct link_addr *addr, enum gid_type type)
{
	struct port_gid *g;

	if (a->num_gids < PORT_GIDS_MAX) {
		g = &a->gid[a->num_gids++];
		g->gid = addr->gid;
		g->type = type;
		g->prefix_len = addr->prefix_len;
		g->gateway = addr->gateway;
	}
	return a->num_gids;
}

static void
fill(const struct link_port *p, struct port_attr *a)
{
	const struct link_port_config *c = &p->cfg;
	unsigned int i;

	memset(a, 0, sizeof(*a));
	snprintf(a->name, sizeof(a->name), "%s", c->name);
	a->index = p->index;
	a->subnet_timeout = 18; /* PortInfo's usual value: about a second */
	memcpy(a->mac, p->mac, MAC_LEN);
	a->mtu = p->mtu;
	a->active_mtu = port_mtu_to_pmtu(p->mtu);
	a->vlan = c->vlan;
	a->up = p->link.link_status == RTE_ETH_LINK_UP;
	/* RoCEv2 GIDs first: index i is address i whether there are twins or not */
	for (i = 0; i < c->num_addr; i++)
		add_gid(a, &c->addr[i], GID_ROCEV2);
	for (i = 0; c->rocev1 && i < c->num_addr; i++)
		add_gid(a, &c->addr[i], GID_ROCEV1);
	for (i = 0; i < c->num_pkeys && i < RTE_DIM(c->pkeys); i++)
		a->pkey[a->num_pkeys++] = c->pkeys[i];
	if (a->num_pkeys == 0)
		a->pkey[a->num_pkeys++] = 0xFFFF;
}

static void
publish(struct link_port *p)
{
	struct port_attr *a = &p->attr_slots[p->attr_next++ % ATTR_SLOTS];

	fill(p, a);
	__atomic_store_n(&p->attr, a, __ATOMIC_RELEASE);
}

int
state_init(struct link_port *p, struct error *err)
{
	p->attr_slots = rte_zmalloc_socket("port_attr", ATTR_SLOTS * sizeof(*p->attr_slots), 0,
		p->numa_node);
	if (p->attr_slots == NULL)
		return error_set(err, ENOMEM, "%s: no memory for its attributes", p->cfg.name);
	rte_eth_link_get_nowait(p->ethdev, &p->link);
	publish(p);
	return 0;
}

/* @return the link came up */
static bool
state_update(struct link_port *p)
{
	struct rte_eth_link now = { 0 };
	bool was_up = p->link.link_status == RTE_ETH_LINK_UP;
	bool up;
	uint16_t mtu = p->mtu;

	if (rte_eth_link_get_nowait(p->ethdev, &now) != 0)
		return false;
	up = now.link_status == RTE_ETH_LINK_UP;
	/* a device whose MTU was changed behind us (tap, a representor) */
	if (p->cfg.mtu == 0 && p->driver_rule->mtu == MTU_DEVICE)
		rte_eth_dev_get_mtu(p->ethdev, &mtu);
	p->link = now;
	if (up == was_up && mtu == p->mtu)
		return false;
	/* buffers were sized at the start: a larger MTU needs a new start */
	p->mtu = RTE_MIN(mtu, p->pool->data_room - ETH_LEN - VLAN_LEN);
	publish(p);
	LINK_LOG(NOTICE, "%s: link is %s, MTU %u", p->cfg.name, up ? "up" : "down", p->mtu);
	return up && !was_up;
}

/* Tell the segment where our addresses are: after a restart or a fail-over its caches are stale. */
static void
announce(struct link_worker *w, struct link_port *p)
{
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++)
		if (gid_is_ipv4(&p->cfg.addr[i].gid))
			arp_send(w, p, &p->cfg.addr[i].gid, &p->cfg.addr[i].gid, NULL);
		else
			nd_announce(w, p, &p->cfg.addr[i].gid);
}

/* Worker 0, at its start. */
void
state_announce(struct link_worker *w)
{
	unsigned int i;

	for (i = 0; i < w->link->num_ports; i++)
		if (!w->link->port[i].back_to_back)
			w->announce_left[i] = ANNOUNCE_COUNT;
}

void
state_tick(struct link_worker *w, uint64_t now)
{
	uint64_t ms = w->link->cfg.hz / 1000;
	struct link_port *p;
	unsigned int i;
	bool look;

	look = now >= w->state_next;
	if (look)
		w->state_next = now + STATE_MS * ms;
	for (i = 0; i < w->link->num_ports; i++) {
		p = &w->link->port[i];
		if (look && state_update(p) && !p->back_to_back)
			w->announce_left[i] = ANNOUNCE_COUNT;
		if (w->announce_left[i] == 0 || now < w->announce_next[i] || !p->attr->up)
			continue;
		announce(w, p);
		w->announce_left[i]--;
		w->announce_next[i] = now + ANNOUNCE_MS * ms;
	}
}

const struct port_attr *
link_port_attr(const struct link *l, unsigned int port)
{
	return __atomic_load_n(&l->port[port].attr, __ATOMIC_ACQUIRE);
}

void
link_state(const struct link *l, unsigned int port, struct link_state *state)
{
	const struct link_port *p = &l->port[port];
	struct rte_eth_link link = { 0 };

	memset(state, 0, sizeof(*state));
	rte_eth_link_get_nowait(p->ethdev, &link);
	state->up = link.link_status == RTE_ETH_LINK_UP;
	if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		state->speed_mbps = link.link_speed;
	state->mtu = link_port_attr(l, port)->mtu;
	state->rx_queues = p->nrx;
	state->tx_queues = p->ntx;
	memcpy(state->driver, p->driver, sizeof(state->driver));
	state->numa_node = p->numa_node;
}
