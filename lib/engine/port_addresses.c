/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* More addresses for a port that runs. */

#include "engine/worker.h"

struct address_args {
	unsigned int port;
	const struct link_addr *addr;
};

static int
add_address_here(struct worker *w, void *arg)
{
	const struct address_args *a = arg;

	link_add_address(w->link, a->port, a->addr);
	return 0;
}

int
engine_check_address(const struct engine *e, unsigned int port, const struct link_addr *addr,
	struct error *err)
{
	return link_check_address(e->link, port, addr, err);
}

void
engine_add_address(struct engine *e, unsigned int port, const struct link_addr *addr)
{
	struct address_args a = { port, addr };
	struct event ev = { .type = EVENT_GID_CHANGE, .element = port, .gid = addr->gid };

	RTE_ASSERT(port < link_num_ports(e->link));
	link_admit_address(e->link, port, addr);
	engine_call(e, 0, add_address_here, &a);
	link_warn_of_kernel(e->link, port);
	events_put_control(e, &ev);
}
