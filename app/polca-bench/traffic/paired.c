/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <string.h>

#include "median.h"
#include "traffic/paired.h"

struct paired_result
paired_medians(const struct paired *p)
{
	struct paired_result r;
	double v[PAIRS];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		memcpy(v, p->value[i], sizeof(v));
		r.median[i] = median(v, p->pairs);
	}
	r.ratio = r.median[1] / r.median[0];
	return r;
}
