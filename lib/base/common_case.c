/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The switch of the common cases, from the environment. */

#include "base/common_case.h"

#ifdef RTE_ENABLE_ASSERT

#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

bool general_case;

RTE_INIT(general_case_init)
{
	const char *value = getenv("POLCA_GENERAL_CASE");

	general_case = value != NULL && strcmp(value, "1") == 0;
}

#endif
