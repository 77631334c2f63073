/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <math.h>
#include <stdlib.h>

#include "median.h"

static int
compare_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double
quantile(double *v, unsigned int n, double part)
{
	unsigned int at = (unsigned int)(part * n);

	if (n == 0)
		return NAN;
	qsort(v, n, sizeof(*v), compare_values);
	return v[at < n ? at : n - 1];
}

double
median(double *v, unsigned int n)
{
	return quantile(v, n, 0.5);
}
