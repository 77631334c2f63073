/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Addresses that ports have while this appliance leads the fleet: a client reaches whoever leads at
 * one address. The leader adds them, which announces them to the neighbours, and removes them
 * before another appliance can lead, also if etcd is out of reach.
 */

#include "engine/worker.h"
#include "store/fleet.h"

struct leader_address_args {
	unsigned int port;
};

static int
remove_address_here(struct worker *w, void *arg)
{
	const struct leader_address_args *a = arg;

	link_remove_last_address(w->link, a->port);
	return 0;
}

static void
add_leader_addresses(struct engine *e, unsigned int port, const struct link_port_config *c)
{
	unsigned int i;

	for (i = 0; i < c->num_leader_addr; i++) {
		engine_add_address(e, port, &c->leader_addr[i]);
	}
}

static void
remove_leader_addresses(struct engine *e, unsigned int port, const struct link_port_config *c)
{
	struct leader_address_args a = { port };
	struct event ev = { .type = EVENT_GID_CHANGE, .element = port, .removed = true };
	unsigned int i;

	for (i = c->num_leader_addr; i-- > 0;) {
		engine_call(e, 0, remove_address_here, &a);
		ev.gid = c->leader_addr[i].gid;
		events_put_control(e, &ev);
	}
}

void
leader_addresses_follow(struct engine *e)
{
	bool wanted = e->fleet != NULL && fleet_leads_alone(e->fleet);
	unsigned int port;

	if (wanted == e->leader_addresses || !e->running)
		return;
	e->leader_addresses = wanted;
	for (port = 0; port < e->config.link.num_ports; port++)
		(wanted ? add_leader_addresses : remove_leader_addresses)(e, port,
			&e->config.link.port[port]);
}
