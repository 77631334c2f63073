/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Names of the counters.
 */

#include "mad/mad.h"

const struct mad_counter_info mad_counter_infos[MAD_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	MAD_COUNTERS(X)
#undef X
};
