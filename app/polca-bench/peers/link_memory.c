/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Two ports of this process, joined by one ring in each direction. */

#include <stdio.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "peers/bench_link.h"

#define RING_SIZE 4096

static struct rte_ring *
make_ring(const char *name)
{
	return rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

int
link_memory_pair(const char *name, char device[ROLES][256], struct error *err)
{
	struct rte_ring *ring[ROLES];
	char text[RTE_RING_NAMESIZE];
	unsigned int i;

	for (i = 0; i < ROLES; i++) {
		snprintf(text, sizeof(text), "%s_to_%u", name, i);
		ring[i] = make_ring(text);
	}
	for (i = 0; i < ROLES; i++) {
		snprintf(text, sizeof(text), "%s_%u", name, i);
		if (ring[i] == NULL || ring[!i] == NULL ||
			rte_eth_from_rings(text, &ring[i], 1, &ring[!i], 1, SOCKET_ID_ANY) < 0)
			return error_set(err, rte_errno, "no port in memory: %s",
				rte_strerror(rte_errno));
		/* the ring driver prepends its name */
		snprintf(device[i], sizeof(device[i]), "net_ring_%s", text);
	}
	return 0;
}

int
link_memory_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err)
{
	RTE_SET_USED(o);
	RTE_SET_USED(role);
	return link_memory_pair("bench", device, err);
}
