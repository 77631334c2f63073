/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * memif's client connects when its device starts and never again: a server that was restarted would
 * wait for it for ever. So the device starts anew, while no worker polls it.
 */

#include <rte_log.h>

#include "link/private.h"

#define RECONNECT_S 1

bool
link_is_lost(struct link *l, unsigned int port, uint64_t now)
{
	struct link_port *p = &l->port[port];
	struct rte_eth_link link = { 0 };

	if (!p->reconnects)
		return false;
	if (p->started && (rte_eth_link_get_nowait(p->ethdev, &link) != 0 || link.link_status))
		p->reconnect_at = now + RECONNECT_S * l->cfg.hz;
	return now >= p->reconnect_at;
}

/* The driver calls each try that fails an error: the log would know nothing else. */
static int
start_quietly(uint16_t ethdev)
{
	int type = rte_log_register("pmd.net.memif");
	int level = type < 0 ? 0 : rte_log_get_level(type);
	int rc;

	if (type >= 0)
		rte_log_set_level(type, RTE_LOG_CRIT);
	rc = rte_eth_dev_start(ethdev);
	if (type >= 0)
		rte_log_set_level(type, level);
	return rc;
}

bool
link_reconnect(struct link *l, unsigned int port, uint64_t now)
{
	struct link_port *p = &l->port[port];

	p->reconnect_at = now + RECONNECT_S * l->cfg.hz;
	if (p->started)
		device_stop(p);
	p->started = start_quietly(p->ethdev) == 0;
	return p->started;
}

void
link_worker_poll_port(struct link_worker *w, unsigned int port, bool poll)
{
	unsigned int i;

	for (i = 0; i < w->num_rx; i++)
		if (w->rx[i].port->index == port)
			w->rx[i].stopped = !poll;
	tx_stop(w->tx[port], !poll);
}
