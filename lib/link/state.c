/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Link state, subnet management's settings, and the attributes that follow from them.
 *
 * A port's attributes are immutable: a change writes the oldest of ATTR_COPIES copies and publishes
 * it. Readers use a pointer only within a turn of microseconds, so a copy may be rewritten GRACE_MS
 * after it was replaced. If there are more changes than copies within that time, they wait and are
 * published together with a later tick.
 */

#include "link/interface.h"
#include "link/lids.h"
#include "link/control.h"

#define STATE_MS       250
#define GRACE_MS       500
#define SUBNET_TIMEOUT 18 /* PortInfo's usual value: about a second */
#define ANNOUNCE_COUNT 3
#define ANNOUNCE_MS    1000

static void
add_gid(struct port_attr *a, const struct link_addr *addr, enum gid_type type)
{
	if (a->num_gids == PORT_GIDS_MAX)
		return;
	a->gid[a->num_gids++] = (struct port_gid){
		.gid = addr->gid,
		.type = type,
		.prefix_len = addr->prefix_len,
		.gateway = addr->gateway,
	};
}

/* @retval false  the device does not report its link: it counts as down */
static bool
read_link(const struct link_port *p, struct rte_eth_link *link)
{
	link->link_status = RTE_ETH_LINK_DOWN;
	if (rte_eth_link_get_nowait(p->ethdev, link) != 0)
		return false;
	if (p->driver_rule->link_of_interface && !interface_is_running(p))
		link->link_status = RTE_ETH_LINK_DOWN;
	return true;
}

static void
state_fill_roce(const struct link_port *p, struct port_attr *a)
{
	const struct link_port_config *c = &p->cfg;
	unsigned int i;

	a->up = p->carrier;
	a->state = a->up ? PORT_STATE_ACTIVE : PORT_STATE_DOWN;
	/* RoCEv2 GIDs first, so that index i is address i with and without RoCEv1 */
	for (i = 0; i < c->num_addr; i++)
		add_gid(a, &c->addr[i], GID_ROCEV2);
	for (i = 0; c->rocev1 && i < c->num_addr; i++)
		add_gid(a, &c->addr[i], GID_ROCEV1);
}

/* Unused entries keep their places, because subnet management chooses the indexes. */
static void
fill_gids(const struct port_settings *s, struct port_attr *a)
{
	unsigned int i;

	a->num_gids = 1;
	for (i = 0; i < PORT_GIDS_MAX; i++) {
		a->gid[i].type = GID_IB;
		if (i >= s->num_guids || s->guid[i] == 0)
			continue;
		put_be64(a->gid[i].gid.raw, s->gid_prefix);
		put_be64(a->gid[i].gid.raw + 8, s->guid[i]);
		a->gid[i].prefix_len = 64;
		a->num_gids = i + 1;
	}
}

static void
fill_port_pkeys(const struct port_settings *s, struct port_attr *a)
{
	unsigned int i;

	a->num_pkeys = 1;
	for (i = 0; i < PORT_PKEYS_MAX && i < s->num_pkeys; i++) {
		a->pkey[i] = s->pkey[i];
		if (s->pkey[i] != 0)
			a->num_pkeys = i + 1;
	}
}

static void
state_fill_ib(const struct link_port *p, struct port_attr *a)
{
	const struct port_settings *s = &p->settings;

	a->ib = true;
	a->ethertype = p->cfg.ethertype;
	a->state = p->carrier ? s->state : PORT_STATE_DOWN;
	a->up = a->state == PORT_STATE_ACTIVE;
	a->disabled = s->disabled;
	a->lid = s->lid;
	a->lmc = s->lmc;
	a->sm_lid = s->sm_lid;
	a->sm_sl = s->sm_sl;
	a->active_mtu = RTE_MIN(a->active_mtu, s->mtu);
	a->guid = p->cfg.guid;
	a->gid_prefix = s->gid_prefix;
	memcpy(a->sl_to_vl, s->sl_to_vl, sizeof(a->sl_to_vl));
	fill_gids(s, a);
}

static void
state_fill(const struct link_port *p, struct port_attr *a)
{
	memset(a, 0, sizeof(*a));
	snprintf(a->name, sizeof(a->name), "%s", p->cfg.name);
	a->index = p->index;
	put_mac(a->mac, p->mac_word);
	a->mtu = p->mtu;
	a->active_mtu = port_mtu_to_pmtu(p->mtu);
	a->vlan = p->cfg.vlan;
	a->subnet_timeout = p->settings.subnet_timeout;
	fill_port_pkeys(&p->settings, a);
	if (p->cfg.ib)
		state_fill_ib(p, a);
	else
		state_fill_roce(p, a);
}

/* Publish the attributes now, or if no copy is free, with a later tick. */
static void
state_publish(const struct link *l, struct link_port *p, uint64_t now)
{
	struct attr_copy *next = &p->attr_copies[p->attr_next % ATTR_COPIES];
	struct attr_copy *last = &p->attr_copies[(p->attr_next - 1) % ATTR_COPIES];

	p->attr_stale = now < next->free_at;
	if (p->attr_stale)
		return;
	state_fill(p, &next->attr);
	RELEASE_SET(p->attr, &next->attr);
	last->free_at = now + link_ms(l, GRACE_MS);
	p->attr_next++;
}

/* The settings of a RoCE port, and of others until subnet management sets them. */
static void
settings_init(struct link_port *p)
{
	struct port_settings *s = &p->settings;

	s->state = PORT_STATE_DOWN;
	s->subnet_timeout = SUBNET_TIMEOUT;
	s->mtu = port_mtu_to_pmtu(p->mtu);
	s->gid_prefix = LINK_LOCAL_PREFIX;
	s->guid[0] = p->cfg.guid;
	s->num_guids = 1;
	memcpy(s->pkey, p->cfg.pkeys, sizeof(p->cfg.pkeys));
	s->num_pkeys = p->cfg.num_pkeys;
	if (s->num_pkeys == 0)
		s->pkey[s->num_pkeys++] = 0xFFFF;
}

int
state_init(struct link *l, struct link_port *p, struct error *err)
{
	struct rte_eth_link link = { 0 };

	p->attr_copies = rte_zmalloc_socket("port_attr", ATTR_COPIES * sizeof(*p->attr_copies), 0,
		p->memory_node);
	if (p->attr_copies == NULL)
		return port_error(p, err, ENOMEM, "no memory for its attributes");
	read_link(p, &link);
	p->carrier = link.link_status;
	if (p->driver_rule->link_of_interface && !p->carrier)
		PORT_LOG(p, WARNING,
			"link is down: %s is down or has no carrier; if it is down: ip link set %s up",
			p->interface[0].name, p->interface[0].name);
	settings_init(p);
	state_publish(l, p, 0);
	return 0;
}

void
link_port_set(struct link_worker *w, unsigned int port, const struct port_settings *s)
{
	struct link_port *p = link_port_at(w->link, port);

	RTE_ASSERT(s->lmc <= 7);
	RELAXED_SET(p->heard_data, false);
	p->settings = *s;
	state_publish(w->link, p, w->now);
}

/* @return the link came up */
static bool
state_update(const struct link *l, struct link_port *p, uint64_t now)
{
	struct rte_eth_link link = { 0 };
	bool was_up = p->carrier;
	uint16_t mtu = p->mtu;

	if (!read_link(p, &link))
		return false;
	/* another program may have changed the device's MTU (tap, a representor) */
	if (p->cfg.mtu == 0 && p->driver_rule->mtu == MTU_DEVICE)
		rte_eth_dev_get_mtu(p->ethdev, &mtu);
	p->carrier = link.link_status;
	if (p->carrier == was_up && mtu == p->mtu)
		return false;
	/* buffers were sized at start, so a larger MTU takes effect only after a restart */
	p->mtu = RTE_MIN(mtu, p->pool->data_room - ETH_LEN - VLAN_LEN);
	state_publish(l, p, now);
	PORT_LOG(p, NOTICE, "link is %s, MTU %u", p->carrier ? "up" : "down", p->mtu);
	return p->carrier && !was_up;
}

/* Announce our addresses: after a restart or a fail-over the neighbours' caches are stale. */
static void
state_announce_addresses(struct link_worker *w, struct link_port *p)
{
	unsigned int i;

	for (i = 0; i < p->cfg.num_addr; i++)
		if (gid_is_ipv4(&p->cfg.addr[i].gid))
			arp_send(w, p, &p->cfg.addr[i].gid, &p->cfg.addr[i].gid, 0);
		else
			nd_announce(w, p, p->cfg.addr[i].gid.raw);
}

static void
announce_soon(struct link_worker *w, const struct link_port *p)
{
	if (p->peer == NULL)
		w->port[p->index].announce_left = ANNOUNCE_COUNT;
}

/* Worker 0, at its start. */
void
state_announce(struct link_worker *w)
{
	const struct link_port *p;

	LINK_FOREACH_PORT(p, w->link)
		announce_soon(w, p);
}

void
state_tick(struct link_worker *w, uint64_t now)
{
	bool look = now >= w->state_next;
	struct worker_port *o;
	struct link_port *p;

	if (look)
		w->state_next = now + link_ms(w->link, STATE_MS);
	LINK_FOREACH_PORT(p, w->link) {
		if (p->attr_stale)
			state_publish(w->link, p, now);
		if (look && state_update(w->link, p, now))
			announce_soon(w, p);
		o = &w->port[p->index];
		if (o->announce_left == 0 || now < o->announce_next || !p->attr->up)
			continue;
		state_announce_addresses(w, p);
		o->announce_left--;
		o->announce_next = now + link_ms(w->link, ANNOUNCE_MS);
	}
}

void
state_addresses_changed(struct link_worker *w, struct link_port *p)
{
	state_publish(w->link, p, w->now);
	announce_soon(w, p);
}

bool
link_port_carrier(const struct link *l, unsigned int port)
{
	return link_port_at(l, port)->carrier;
}

void
link_state(const struct link *l, unsigned int port, struct link_state *state)
{
	const struct link_port *p = link_port_at(l, port);
	struct rte_eth_link link = { 0 };

	memset(state, 0, sizeof(*state));
	read_link(p, &link);
	state->up = link.link_status;
	if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		state->speed_mbps = link.link_speed;
	state->mtu = link_port_attr(l, port)->mtu;
	state->rx_queues = p->nrx;
	state->tx_queues = p->ntx;
	memcpy(state->driver, p->driver, sizeof(state->driver));
	state->physical = p->physical;
	state->rss = p->rss_hf;
	state->numa_node = p->numa_node;
	state->memory_node = pool_memory_node(p->pool);
}
