/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "base/trace.h"

void
trace_print(FILE *f, const struct trace *t, uint64_t hz,
	void (*put)(FILE *f, const struct trace_step *s))
{
	unsigned int i, n;

	if (t == NULL) {
		fprintf(f, "  its last steps were not recorded (trace_start)\n");
		return;
	}
	n = trace_length(t);
	for (i = 0; i < n; i++) {
		fprintf(f, "  %12.3f us  ",
			(double)(trace_at(t, i)->time - trace_at(t, 0)->time) * 1e6 / (double)hz);
		put(f, trace_at(t, i));
		fputc('\n', f);
	}
}
