/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Names of the counters.
 */

#include "sa/sa.h"

const struct sa_counter_info sa_counter_infos[SA_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	SA_COUNTERS(X)
#undef X
};
