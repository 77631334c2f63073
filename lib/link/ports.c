/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What any thread may ask of an open port. */

#include "link/private.h"

const struct port_attr *
link_port_attr(const struct link *l, unsigned int port)
{
	return ACQUIRE_GET(link_port_at(l, port)->attr);
}

bool
link_port_heard_data(const struct link *l, unsigned int port)
{
	return RELAXED_GET(link_port_at(l, port)->heard_data);
}

unsigned int
link_num_ports(const struct link *l)
{
	return l->num_ports;
}

uint16_t
link_ethdev(const struct link *l, unsigned int port)
{
	return link_port_at(l, port)->ethdev;
}
