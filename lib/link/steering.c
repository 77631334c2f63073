/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The device chooses the queue, and so the worker, of a received packet (configure.c). A message at
 * start says if some workers have no queue, or if all packets of a peer go to one queue.
 *
 * There are no flow rules: common NICs see RoCEv2 connections differ only in addresses and UDP
 * source port, which RSS uses already, and cannot match BTH fields. Instead, QPs move to the worker
 * that receives their packets (lib/engine/rehome.c).
 */

#include "base/plural.h"
#include "link/private.h"

/* Why there are not more queues; "": the driver or the device's configuration limits them */
static const char *
steering_reason(const struct link_port *p)
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
			"%s: %s has %u receive queue%s for %u workers%s: %s the others their packets",
			p->cfg.name, p->driver, p->nrx, plural(p->nrx), workers, steering_reason(p),
			who);
		return true;
	}
	if (workers > 1 && p->driver_rule->queues == QUEUES_RSS &&
		(p->rss_hf & RTE_ETH_RSS_UDP) == 0) {
		snprintf(text, size,
			"%s: %s spreads packets by addresses and not by UDP port: all of a peer's "
			"come to one worker",
			p->cfg.name, p->driver);
		return true;
	}
	return false;
}
