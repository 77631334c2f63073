/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "rc/rc.h"

const struct rc_counter_info rc_counter_infos[RC_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	RC_COUNTERS(X)
#undef X
};
