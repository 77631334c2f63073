/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "live/live.h"

const struct live_counter_info live_counter_infos[LIVE_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	LIVE_COUNTERS(X)
#undef X
};

const struct live_limits live_limits_default = {
	.ibping = true,
	.sysstat = true,
	.rate = 10000,
	.burst = 1000,
	.sources = 1024,
	.max_echo = 1u << 20,
};
