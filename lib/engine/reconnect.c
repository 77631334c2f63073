/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Reconnect ports that have lost their memif server. No worker polls a port while it reconnects.
 */

#include <rte_cycles.h>

#include "engine/worker.h"

struct polling {
	unsigned int port;
	bool on;
};

static int
set_polling(struct worker *w, void *arg)
{
	const struct polling *p = arg;

	link_worker_poll_port(w->link, p->port, p->on);
	return 0;
}

static void
poll_port(struct engine *e, unsigned int port, bool on)
{
	struct polling p = { port, on };
	unsigned int i;

	for (i = 0; i < e->num_workers; i++)
		engine_call(e, i, set_polling, &p);
}

void
reconnect_watch(struct engine *e)
{
	uint64_t now = rte_get_tsc_cycles();
	unsigned int port;

	for (port = 0; port < link_num_ports(e->link); port++) {
		if (!link_is_lost(e->link, port, now))
			continue;
		poll_port(e, port, false);
		if (link_reconnect(e->link, port, now))
			poll_port(e, port, true);
	}
}
