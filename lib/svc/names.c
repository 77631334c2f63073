/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "svc/svc.h"

const struct svc_counter_info svc_counter_infos[SVC_COUNTER_COUNT] = {
#define X(name, help) { #name, help },
	SVC_COUNTERS(X)
#undef X
};
