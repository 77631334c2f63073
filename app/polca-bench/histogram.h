/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

/**
 * @file
 * A histogram of 64-bit samples in bounded memory: exact below 256, within 1/128 above. Minimum,
 * maximum and moments are exact.
 */

#include <stdint.h>

struct histogram;

struct histogram *histogram_create(void);
void histogram_destroy(struct histogram *h);
void histogram_reset(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t v);
uint64_t histogram_count(const struct histogram *h);
uint64_t histogram_min(const struct histogram *h);
uint64_t histogram_max(const struct histogram *h);
double histogram_mean(const struct histogram *h);
double histogram_stdev(const struct histogram *h);
/** The value that this percentage of the samples does not exceed. */
double histogram_percentile(const struct histogram *h, double percent);

#endif
