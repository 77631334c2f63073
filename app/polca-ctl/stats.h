/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_STATS_H
#define POLCA_CTL_STATS_H

#include <jansson.h>

#include "report.h"

/** Remove rates that are 0, and objects that have nothing else. */
void stats_without_zeros(json_t *rates);

/** "stats get", with --rate, and "stats metrics". @return the exit status */
int stats_command_run(const struct options *o, struct connection *c, const json_t *command,
	json_t *params);

/**
 * Replace all counters in @p now by their growth per second since @p was; numbers that only name
 * something, such as "port", stay.
 */
void stats_rates(json_t *now, const json_t *was, double seconds);

#endif
