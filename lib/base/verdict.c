/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "base/verdict.h"

const struct verdict_info verdict_infos[VERDICT_COUNT] = {
#define X(NAME, name, kind, help) [VERDICT_##NAME] = { #name, help, VERDICT_##kind },
	VERDICTS(X)
#undef X
};
