/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef SIM_BOTTLENECK_H
#define SIM_BOTTLENECK_H

/**
 * @file
 * Two senders write to a third node as fast as they can, over one link. Used by the scenario
 * `congestion` and by test/perf/congestion_bench.c.
 */

#include <stdbool.h>
#include <stdint.h>

struct bottleneck_config {
	bool dcqcn;
	uint32_t gbps; /**< of each link */
	/** the switch sets CE while its queue to the third node has at least this many bytes */
	uint32_t mark;
	uint32_t drop; /**< frames beyond this many bytes in the queue are lost */
	uint64_t second_at; /**< when the second sender begins, ns */
	uint64_t ns; /**< duration */
	uint64_t from; /**< when the measurement begins, ns; it lasts until the end */
};

struct bottleneck_result {
	double gbps[2]; /**< payload received from each sender */
	double share; /**< Jain's fairness index: 1 if both are equal, 0.5 if one has all */
	double efficiency; /**< sum of both, divided by the link's rate */
	/* during the measurement */
	uint64_t marked, dropped, cnps, retransmitted;
	uint32_t queue_max; /**< bytes */
	unsigned int broken; /**< connections that ran out of retries */
};

void bottleneck_run(const struct bottleneck_config *config, struct bottleneck_result *result);

#endif
