/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "sma/sma.h"

const struct sma_counter_info sma_counter_infos[SMA_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	SMA_COUNTERS(X)
#undef X
};

const struct sma_limits sma_limits_default = {
	.trap_interval_ms = 1000,
	.trap_retries = 10,
	.trap_rate = 10,
	.trap_burst = 10,
};

const char *
sma_trap_state_name(uint8_t state)
{
	static const char *const names[] = {
		[SMA_TRAP_FREE] = "FREE",
		[SMA_TRAP_HELD] = "HELD",
		[SMA_TRAP_SENT] = "SENT",
		[SMA_TRAP_REPRESSED] = "REPRESSED",
		[SMA_TRAP_GIVEN_UP] = "GIVEN_UP",
	};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}
