/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Two ports of this process: what one sends, the other receives, a ring each way. */

#include <stdio.h>

#include <rte_common.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

#include "link.h"

#define RING_SIZE 4096

static struct rte_ring *
make_ring(const char *name)
{
	return rte_ring_create(name, RING_SIZE, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
}

int
link_memory_create(const struct bench_options *o, enum bench_role role,
	char device[ROLES][256], struct error *err)
{
	static const char *const names[ROLES] = { "net_ring_requester", "net_ring_responder" };
	struct rte_ring *ring[ROLES] = { make_ring("to_requester"), make_ring("to_responder") };
	unsigned int i;

	RTE_SET_USED(o);
	RTE_SET_USED(role);
	for (i = 0; i < ROLES; i++) {
		if (ring[i] == NULL || ring[!i] == NULL ||
				rte_eth_from_rings(names[i] + sizeof("net_ring_") - 1, &ring[i], 1,
						&ring[!i], 1, SOCKET_ID_ANY) < 0)
			return error_set(err, rte_errno, "no port in memory: %s",
					rte_strerror(rte_errno));
		snprintf(device[i], sizeof(device[i]), "%s", names[i]);
	}
	return 0;
}
