/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_MEDIAN_H
#define BENCH_MEDIAN_H

/**
 * @file
 * Median and quantiles of a few values. The functions sort the values.
 */

/** @return NAN if n is 0 */
double median(double *v, unsigned int n);
/** @param part  0: the smallest, 1: the largest */
double quantile(double *v, unsigned int n, double part);

#endif
