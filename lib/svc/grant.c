/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A grant in the private data, big-endian:
 *
 *    0  version, 1
 *    1  flags: 0x01 RDMA Read, 0x02 RDMA Write, 0x04 Atomics allowed, 0x08 this connection only
 *    2  reserved, 0 (16 bits)
 *    4  R_Key (32)
 *    8  address of the first byte (64)
 *   16  length in bytes (64)
 *
 * The rest of the private data is zero.
 */

#include <rte_debug.h>

#include "mem/mem.h"
#include "svc/grant.h"
#include "wire/bytes.h"

#define GRANT_VERSION 1
#define GRANT_READ    0x01
#define GRANT_WRITE   0x02
#define GRANT_ATOMIC  0x04
#define GRANT_OWN     0x08
#define GRANT_FLAGS   0x0f

static bool
grant_all_zero(const uint8_t *data, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (data[i] != 0)
			return false;
	return true;
}

void
svc_grant_put(uint8_t *data, const struct svc_grant *g)
{
	RTE_ASSERT(g->length > 0 && (g->access & ~(uint32_t)MEM_ACCESS_REMOTE) == 0);
	RTE_ASSERT(grant_all_zero(data, SVC_GRANT_LEN));
	data[0] = GRANT_VERSION;
	data[1] = (uint8_t)((g->access & MEM_ACCESS_REMOTE_READ ? GRANT_READ : 0) |
		(g->access & MEM_ACCESS_REMOTE_WRITE ? GRANT_WRITE : 0) |
		(g->access & MEM_ACCESS_REMOTE_ATOMIC ? GRANT_ATOMIC : 0) |
		(g->own ? GRANT_OWN : 0));
	put_be32(data + 4, g->rkey);
	put_be64(data + 8, g->va);
	put_be64(data + 16, g->length);
}

bool
svc_grant_get(const uint8_t *data, size_t len, struct svc_grant *g)
{
	if (len < SVC_GRANT_LEN || data[0] != GRANT_VERSION || (data[1] & ~GRANT_FLAGS) != 0 ||
		!grant_all_zero(data + 2, 2) ||
		!grant_all_zero(data + SVC_GRANT_LEN, len - SVC_GRANT_LEN))
		return false;
	*g = (struct svc_grant){
		.access = (data[1] & GRANT_READ ? MEM_ACCESS_REMOTE_READ : 0) |
			(data[1] & GRANT_WRITE ? MEM_ACCESS_REMOTE_WRITE : 0) |
			(data[1] & GRANT_ATOMIC ? MEM_ACCESS_REMOTE_ATOMIC : 0),
		.own = (data[1] & GRANT_OWN) != 0,
		.rkey = get_be32(data + 4),
		.va = get_be64(data + 8),
		.length = get_be64(data + 16),
	};
	return g->length > 0;
}
