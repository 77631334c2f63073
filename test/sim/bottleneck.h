/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_BOTTLENECK_H
#define SIM_BOTTLENECK_H

/**
 * @file
 * Two senders, one link: both write to a third node as fast as they may. Shared by the scenario
 * `congestion` and by test/perf/congestion_bench.c.
 */

#include <stdbool.h>
#include <stdint.h>

struct bottleneck_config {
	bool dcqcn;
	uint32_t gbps; /**< of each link */
	/** bytes in the queue before the third node's link, from which on CE is set */
	uint32_t mark;
	uint32_t drop; /**< and beyond which all is lost */
	uint64_t second_at; /**< the second sender begins so late, ns */
	uint64_t ns; /**< how long */
	uint64_t from; /**< of that, what is measured: from here to the end */
};

struct bottleneck_result {
	double gbps[2]; /**< payload that arrived, of each sender */
	double share; /**< Jain's index of both: 1 is fair, 0.5 is one alone */
	double efficiency; /**< both together, of the link */
	/* of what is measured */
	uint64_t marked, dropped, cnps, retransmitted;
	uint32_t queue_max; /**< bytes */
	unsigned int broken; /**< connections that ran out of retries */
};

void bottleneck_run(const struct bottleneck_config *config, struct bottleneck_result *result);

#endif
