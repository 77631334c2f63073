/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include "bottleneck.h"
#include "lan.h"

#define SENDERS 2
#define SINK    2 /* the node they write to */
#define WRITE   65536
#define DEPTH   32 /* outstanding Writes of a sender */

struct sender {
	uint32_t qpn, peer_qpn;
	uint64_t from;
	struct lan_node *sink;
	uint64_t bytes; /* received before the measurement began */
	struct rc_counters before;
};

static void
keep_writing(struct lan_node *n, uint64_t now)
{
	struct sender *s = n->arg;
	struct rc_qp_info info = lan_info(n, s->qpn);
	unsigned int i;

	if (info.attr.qp_state != QPS_RTS)
		return; /* its retries ran out */
	if (now < s->from) {
		n->wake = s->from;
		return;
	}
	for (i = info.sq_posted; i < DEPTH; i++)
		lan_post(n, s->qpn, s->sink, WR_RDMA_WRITE, WRITE);
}

static void
bottleneck_begin(struct lan *f, struct sender *senders)
{
	struct lan_node *sink = &f->node[SINK];
	unsigned int i;

	sink->queue_max = 0;
	sink->marked = sink->dropped = 0;
	for (i = 0; i < SENDERS; i++) {
		senders[i].bytes = lan_info(sink, senders[i].peer_qpn).counters.rcvd_bytes;
		senders[i].before = lan_info(&f->node[i], senders[i].qpn).counters;
	}
}

static void
bottleneck_end(struct lan *f, const struct sender *senders, const struct bottleneck_config *c,
	struct bottleneck_result *r)
{
	struct lan_node *sink = &f->node[SINK];
	double sum = 0, squares = 0;
	unsigned int i;

	*r = (struct bottleneck_result){
		.marked = sink->marked,
		.dropped = sink->dropped,
		.queue_max = sink->queue_max,
	};
	for (i = 0; i < SENDERS; i++) {
		struct rc_counters now = lan_info(&f->node[i], senders[i].qpn).counters;
		uint64_t bytes = lan_info(sink, senders[i].peer_qpn).counters.rcvd_bytes;

		r->gbps[i] = (double)(bytes - senders[i].bytes) * 8 / (double)(c->ns - c->from);
		r->broken += lan_info(&f->node[i], senders[i].qpn).attr.qp_state != QPS_RTS;
		r->cnps += now.rp_cnp_handled + now.rp_cnp_ignored -
			senders[i].before.rp_cnp_handled - senders[i].before.rp_cnp_ignored;
		r->retransmitted += now.retransmitted_pkts - senders[i].before.retransmitted_pkts;
		sum += r->gbps[i];
		squares += r->gbps[i] * r->gbps[i];
	}
	r->share = squares > 0 ? sum * sum / (SENDERS * squares) : 0;
	r->efficiency = sum / c->gbps;
}

void
bottleneck_run(const struct bottleneck_config *c, struct bottleneck_result *r)
{
	const struct lan_qp opt = { .pmtu = 4096, .timeout = 12, .rnr_timer = 12, .rd_atomic = 4 };
	struct rc_limits limits = rc_limits_default;
	struct sender senders[SENDERS] = { 0 };
	struct lan *f;
	unsigned int i;

	limits.max_qp = 64;
	limits.congestion.dcqcn = c->dcqcn;
	limits.congestion.max_rate = c->gbps * 1000;
	f = lan_create(SENDERS + 1, &limits);
	for (i = 0; i < f->nodes; i++)
		f->node[i].link.ns_per_kb = 8192 / c->gbps;
	f->node[SINK].link.mark = c->mark;
	f->node[SINK].link.drop = c->drop;
	for (i = 0; i < SENDERS; i++) {
		struct sender *s = &senders[i];

		s->sink = &f->node[SINK];
		s->from = f->now + (i == 1 ? c->second_at : 0);
		f->node[i].turn = keep_writing;
		f->node[i].arg = s;
		f->node[i].wake = s->from;
		lan_connect(&f->node[i], s->sink, &opt, &s->qpn, &s->peer_qpn);
	}
	bottleneck_begin(f, senders);
	lan_run(f, f->now + c->from);
	bottleneck_begin(f, senders);
	lan_run(f, f->now + c->ns - c->from);
	bottleneck_end(f, senders, c, r);
	lan_destroy(f);
}
