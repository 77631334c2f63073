/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The ports as a worker sees them. */

#include "engine/worker.h"

static void
worker_port_changed(struct worker *w, uint16_t port, const struct port_attr *old,
	const struct port_attr *attr)
{
	struct event ev = { EVENT_PORT_ACTIVE, port };

	rc_path_changed(w->rc, port, attr);
	if (w->id != 0 || old->up == attr->up)
		return;
	if (!attr->up)
		ev.type = EVENT_PORT_ERR;
	events_put(w, &ev);
}

void
worker_look_at_ports(struct worker *w)
{
	const struct port_attr *attr, *old;
	unsigned int port;

	for (port = 0; port < link_num_ports(w->engine->link); port++) {
		attr = link_port_attr(w->engine->link, port);
		old = w->port_seen[port];
		if (likely(attr == old))
			continue;
		w->port_seen[port] = attr;
		worker_port_changed(w, (uint16_t)port, old, attr);
	}
}

const struct port_attr *
worker_port(void *worker, uint16_t port)
{
	const struct worker *w = worker;

	return port < link_num_ports(w->engine->link) ? link_port_attr(w->engine->link, port)
						      : NULL;
}
