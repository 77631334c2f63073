/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Which worker a port's packets come to is the device's choice (configure.c); where that leaves
 * workers out, or puts all of a peer's packets into one queue, it is said at start.
 *
 * No flow rules: what RoCEv2 connections differ in, to a NIC, are addresses and the UDP source
 * port, and RSS takes both; BTH fields are matched by none of the common ones. Queue pairs follow
 * their packets instead (lib/engine/rehome.c).
 */

#include <stdio.h>

#include "link/private.h"

/* Why there are no more queues; "": the driver, or who made the device, has given so many */
static const char *
reason(const struct link_port *p)
{
	if (p->driver_rule->queues != QUEUES_RSS || p->rss_hf != 0)
		return "";
	return p->cfg.ib ? " (no device spreads native InfiniBand frames)"
			 : " (it does not spread IP packets)";
}

bool
steering_words(const struct link_port *p, unsigned int workers, char *text, size_t size)
{
	char who[32] = "worker 0 hands";

	if (p->nrx < workers) {
		if (p->nrx > 1)
			snprintf(who, sizeof(who), "workers 0 to %d hand", p->nrx - 1);
		snprintf(text, size,
			"%s: %s has %u receive queue%s for %u workers%s: %s the others their "
			"packets", p->cfg.name, p->driver, p->nrx, p->nrx == 1 ? "" : "s", workers,
			reason(p), who);
		return true;
	}
	if (workers > 1 && p->driver_rule->queues == QUEUES_RSS &&
			(p->rss_hf & RTE_ETH_RSS_UDP) == 0) {
		snprintf(text, size,
			"%s: %s spreads packets by addresses and not by UDP port: all of a peer's "
			"come to one worker", p->cfg.name, p->driver);
		return true;
	}
	return false;
}
