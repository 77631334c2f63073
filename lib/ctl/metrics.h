/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_METRICS_H
#define CTL_METRICS_H

/**
 * @file
 * All counters as Prometheus metrics: under names of their own, and under those that
 * node_exporter's infiniband collector gives the same counters of a hardware adapter.
 */

#include <stdbool.h>

#include "engine/engine.h"

#define METRICS_QPS_MAX 1000

/**
 * @param qps  the counters of each of the first METRICS_QPS_MAX queue pairs, too
 * @return text in Prometheus' exposition format, to be freed; NULL: no memory
 */
char *metrics_text(struct engine *e, bool qps);

#endif
