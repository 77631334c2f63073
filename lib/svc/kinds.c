/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Functions that several kinds share. */

#include <errno.h>

#include <rte_debug.h>

#include "svc/kinds.h"

int
svc_check(const char *what, uint64_t got, uint64_t min, uint64_t max, struct error *err)
{
	RTE_ASSERT(min <= max);
	if (got >= min && got <= max)
		return 0;
	return error_set(err, EINVAL, "%s: got %llu, allowed: %llu to %llu", what,
		(unsigned long long)got, (unsigned long long)min, (unsigned long long)max);
}

int
svc_recv_ring(struct svc_conn *c, uint32_t count)
{
	const struct svc_config *config = svc_config(svc_conn_service(c));
	struct svc_region r = svc_conn_buffer(c);
	uint32_t i;
	int ret = 0;

	for (i = 0; i < count && ret == 0; i++)
		ret = svc_recv(c, i, &r, (uint64_t)i * config->size, config->size);
	return ret;
}

void
svc_fill(uint8_t *bytes, uint32_t length, uint64_t message)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		bytes[i] = (uint8_t)(message * 31 + i + (i >> 8));
}

bool
svc_filled(const uint8_t *bytes, uint32_t length, uint64_t message)
{
	uint32_t i;

	for (i = 0; i < length; i++) {
		if (bytes[i] != (uint8_t)(message * 31 + i + (i >> 8)))
			return false;
	}
	return true;
}
