/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <stddef.h>

#include <rte_debug.h>

#include "port/allow_list.h"

bool
allow_list_admits_address(const struct allow_list *a, const union gid *peer)
{
	unsigned int i;

	RTE_ASSERT(a->num_peers <= ALLOW_PEERS_MAX);
	if (a->num_peers == 0)
		return true;
	for (i = 0; i < a->num_peers && peer != NULL; i++)
		if (gid_same_subnet(&a->peer[i].gid, peer, a->peer[i].prefix_len))
			return true;
	return false;
}

bool
allow_list_admits(const struct allow_list *a, const union gid *peer, uint16_t pkey)
{
	unsigned int i;

	RTE_ASSERT(a->num_pkeys <= ALLOW_PKEYS_MAX);
	if (!allow_list_admits_address(a, peer))
		return false;
	if (a->num_pkeys == 0)
		return true;
	for (i = 0; i < a->num_pkeys; i++)
		if (((a->pkey[i] ^ pkey) & ~PKEY_FULL) == 0)
			return true;
	return false;
}
