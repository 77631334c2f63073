/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* What the operator said about partitions. */

#include "sa/sa.h"

int
sa_partition_sl(const struct sa_config *config, uint16_t pkey)
{
	unsigned int i;

	for (i = 0; i < config->num_partitions; i++)
		if (((config->partition[i].pkey ^ pkey) & ~PKEY_FULL) == 0)
			return config->partition[i].sl;
	return -1;
}
