/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

/**
 * @file
 * Of a few values: what stands in the middle, or at another part of them. They are sorted.
 */

/** @return NAN of nothing */
double median(double *v, unsigned int n);
/** @param part  0: the least, 1: the greatest */
double quantile(double *v, unsigned int n, double part);

#endif
