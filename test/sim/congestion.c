/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Scenario `congestion`: two senders share a link that marks packets, with and without DCQCN. */

#include "bottleneck.h"
#include "script.h"

#define MS UINT64_C(1000000)

static void
congestion_tell(struct sim *s, const char *how, const struct bottleneck_result *r)
{
	sim_trace(s,
		"%s: %.3f and %.3f Gb/s, Jain %.3f, of the link %.3f; %llu marked, %llu CNPs, "
		"%llu dropped, %llu resent, queue %u",
		how, r->gbps[0], r->gbps[1], r->share, r->efficiency, (unsigned long long)r->marked,
		(unsigned long long)r->cnps, (unsigned long long)r->dropped,
		(unsigned long long)r->retransmitted, r->queue_max);
}

/*
 * congestion 6: with DCQCN no packet is dropped, the queue stays far from full, both senders have
 * equal shares, and the link is used. Without DCQCN the queue fills up, and packets are lost and
 * sent again.
 */
void
scenario_congestion(struct sim *s)
{
	struct bottleneck_config c = {
		.dcqcn = true,
		.gbps = sim_below(s, 2) ? 10 : 25,
		.mark = 65536,
		.drop = 1 << 20,
		.second_at = sim_below(s, 2 * MS),
		.ns = 60 * MS,
		.from = 30 * MS,
	};
	struct bottleneck_result r;

	bottleneck_run(&c, &r);
	congestion_tell(s, "dcqcn", &r);
	if (r.share < 0.9)
		sim_fail(s, "one of two has %.2f, the other %.2f Gb/s", r.gbps[0], r.gbps[1]);
	if (r.efficiency < 0.85)
		sim_fail(s, "only %.2f of the link is used", r.efficiency);
	if (r.cnps == 0 || r.marked == 0)
		sim_fail(s, "nothing was marked, or nobody told");
	if (r.dropped != 0 || r.retransmitted != 0 || r.queue_max > c.drop / 4)
		sim_fail(s, "the queue was %u bytes long, %llu packets dropped", r.queue_max,
			(unsigned long long)r.dropped);

	c.dcqcn = false;
	c.ns = 20 * MS;
	c.from = 0;
	bottleneck_run(&c, &r);
	congestion_tell(s, "without", &r);
	if (r.marked != 0)
		sim_fail(s, "a packet was marked that is not ECN capable");
	if (r.dropped == 0 || r.queue_max < c.drop / 2)
		sim_fail(s, "no congestion to react to: the queue was %u bytes long", r.queue_max);
}
