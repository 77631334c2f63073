/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Report a run: perftest's columns and further ones. */

#include <math.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "traffic/benchmark.h"

#define MIB            1048576.0
#define MESSAGES_SLICE 4 /* fewest messages per slice on average for slices to be useful */

static const struct report_column bw_columns[] = {
	{ "bytes", "#bytes", 10, 0 },
	{ "iterations", "#iterations", 13, 0 },
	{ "bw_peak_mib", "BW peak[MiB/sec]", 18, 2 },
	{ "bw_average_mib", "BW average[MiB/sec]", 20, 2 },
	{ "msg_rate_mpps", "MsgRate[Mpps]", 15, 6 },
	{ "requester_ns", "requester[ns]", 14, 1 },
	{ "responder_ns", "responder[ns]", 14, 1 },
};

static const struct report_column rate_columns[] = {
	{ "bytes", "#bytes", 10, 0 },
	{ "iterations", "#iterations", 13, 0 },
	{ "msg_rate_peak_mpps", "MsgRate peak[Mpps]", 19, 6 },
	{ "msg_rate_mpps", "MsgRate average[Mpps]", 22, 6 },
	{ "requester_ns", "requester[ns]", 14, 1 },
	{ "responder_ns", "responder[ns]", 14, 1 },
};

static const char *const mode_names[] = { "bw", "rate", "lat" };

void
benchmark_report_environment(struct benchmark *s)
{
	struct link_state state;
	struct endpoint *end = &s->end[s->first];

	link_state(engine_link(end->engine), end->port, &state);
	report_environment(s->report, &s->o);
	report_fact(s->report, "port", "%s, link %s", state.driver, s->o.link);
	if (s->o.connect != NULL)
		report_fact(s->report, "service", "%s%s", s->o.connect,
			s->grant > 0 ? ", memory" : "");
	report_fact(s->report, "queues", "%u queue pair%s, depth %u, receives %u, PMTU %u%s%s%s",
		s->o.qps, plural(s->o.qps), s->o.depth, s->o.rx_depth, s->o.mtu,
		s->o.ack_per_packet ? ", an Ack each" : "",
		s->o.bidirectional ? ", bidirectional" : "", s->o.record ? ", recorded" : "");
	if (run_counts(&s->run))
		report_fact(s->report, "messages", "%lu, after %lu to warm up", s->o.iterations,
			count_warm_up(&s->run));
	else if (s->o.iterations > 0)
		report_fact(s->report, "messages", "%lu", s->o.iterations);
}

void
benchmark_report_head(struct benchmark *s)
{
	switch (s->o.mode) {
	case BENCH_LAT:
		report_latency_table(s->report, mode_names[s->o.mode]);
		break;
	case BENCH_RATE:
		report_table(s->report, mode_names[s->o.mode], rate_columns, RTE_DIM(rate_columns));
		break;
	case BENCH_BW:
	default:
		report_table(s->report, mode_names[s->o.mode], bw_columns, RTE_DIM(bw_columns));
		break;
	}
}

static double
cycles_to_seconds(uint64_t cycles)
{
	return (double)cycles / (double)rte_get_tsc_hz();
}

/*
 * True if the slices give a rate: most have messages, and several of them. A slice is too short for
 * messages that take as long, or complete many at a time.
 */
static bool
slices_useful(const struct benchmark *s)
{
	const struct runner *r = &s->runner[0];

	return r->slices > 0 && 10 * (r->clean + r->unclean) >= 9 * r->slices &&
		s->run.to.done - s->run.from.done >= MESSAGES_SLICE * (uint64_t)r->slices;
}

/* The busy time of each role per message: from the slices if one thread runs both roles. */
static void
role_ns(const struct benchmark *s, const struct far_side *far, double ns[ROLES], double *rate)
{
	const struct run *run = &s->run;
	double messages = (double)(run->to.done - run->from.done);
	struct slice m;
	unsigned int i;

	if (s->o.bidirectional && s->ends == ROLES)
		messages /= 2;
	for (i = 0; i < ROLES; i++)
		ns[i] = cycles_to_seconds(run->to.busy[i] - run->from.busy[i]) * 1e9 / messages;
	if (s->o.workers > 1)
		ns[RESPONDER] = NAN;
	if (s->link->remote)
		ns[!s->first] = far != NULL && far->messages > 0
			? far->busy * 1e9 / (double)far->messages
			: NAN;
	*rate = (double)(run->to.done - run->from.done) /
		cycles_to_seconds(run->to.time - run->from.time);
	if (run->runners > 1 || s->runner[0].places < ROLES || !slices_useful(s))
		return;
	runner_median(&s->runner[0], &m);
	*rate = m.rate;
	for (i = 0; i < ROLES; i++)
		ns[i] = m.ns[i] * (s->o.bidirectional ? 2 : 1);
}

static void
report_words(const struct benchmark *s, double rate, const double ns[ROLES])
{
	const struct runner *r = &s->runner[0];
	char slices[48] = "";

	if (s->run.to.done == s->run.from.done && bench_stop == 0)
		report_note(s->report, "no message completed in this time: run longer with -D");
	if (s->o.json || !isfinite(ns[RESPONDER]) || !isfinite(ns[REQUESTER]))
		return;
	if (slices_useful(s)) /* a run on two lcores has no slices */
		snprintf(slices, sizeof(slices), " (%u of %u slice%s)", r->clean, r->slices,
			plural(r->slices));
	report_note(s->report,
		"%u byte%s: %.2f M messages/s, %.2f Gb/s; requester %.1f ns, "
		"responder %.1f ns a message%s",
		s->size, plural(s->size), rate / 1e6, rate * s->size * 8 / 1e9, ns[REQUESTER],
		ns[RESPONDER], slices);
	if (slices_useful(s) && r->clean == 0)
		report_note(s->report,
			s->o.check
				? "with --check, iterations are so long that interruptions go unnoticed"
				: "every slice was interrupted: the machine is busy");
}

double
benchmark_rate(const struct benchmark *s, double *best)
{
	const struct run *run = &s->run;
	double average = (double)(run->to.done - run->from.done) /
		cycles_to_seconds(run->to.time - run->from.time);

	/* a run on two lcores has no slices, but a best interval */
	*best = s->runner[0].best > average && (s->runner[0].slices == 0 || slices_useful(s))
		? s->runner[0].best
		: average;
	return average;
}

static void
report_bandwidth(struct benchmark *s, const struct far_side *far)
{
	double messages = (double)(s->run.to.done - s->run.from.done);
	double best, average = benchmark_rate(s, &best);
	double ns[ROLES], typical;

	role_ns(s, far, ns, &typical);
	if (s->o.mode == BENCH_RATE) {
		double row[] = { s->size, messages, best / 1e6, average / 1e6, ns[REQUESTER],
			ns[RESPONDER] };

		report_row(s->report, row);
	} else {
		double row[] = { s->size, messages, best * s->size / MIB, average * s->size / MIB,
			average / 1e6, ns[REQUESTER], ns[RESPONDER] };

		report_row(s->report, row);
	}
	/* a bidirectional message is charged half the busy time of both directions */
	benchmark_plot_add(s, average,
		(s->o.bidirectional ? 2 : 1) * 1e9 / (ns[REQUESTER] + ns[RESPONDER]));
	if (!s->o.all_sizes)
		report_words(s, typical, ns);
}

static void
report_lat_row(struct benchmark *s)
{
	const struct histogram *h = s->load[REQUESTER][0].histogram;
	double us = 1e6 / (double)rte_get_tsc_hz();

	report_latency(s->report, s->size, h);
	benchmark_plot_add(s, us * histogram_percentile(h, 50), us * histogram_percentile(h, 99));
}

static void
count_handed(const struct benchmark *s, struct handed_over *h)
{
	struct engine *e = s->end[s->first].engine;
	struct link_counters link;
	struct worker_info info;
	unsigned int i;

	*h = (struct handed_over){ .out = 0 };
	for (i = 0; i < s->o.workers; i++) {
		engine_worker_info(e, i, &info);
		h->out += info.handoff_out;
		h->moved += info.rehomed_in;
	}
	for (i = 0; i < ROLES; i++) {
		engine_port_counters(e, i, -1, &link);
		h->received += link.rx_packets;
	}
}

static void
report_handed(const struct benchmark *s)
{
	struct handed_over now;
	uint64_t out, received;

	if (s->o.workers < 2)
		return;
	count_handed(s, &now);
	out = now.out - s->handed.out;
	received = now.received - s->handed.received;
	report_note(s->report,
		"handed over between workers: %lu of %lu packets (%.1f %%), before "
		"that %lu of %lu; %lu queue pair%s moved",
		out, received, 100.0 * (double)out / (double)RTE_MAX(received, UINT64_C(1)),
		s->handed.out, s->handed.received, now.moved, plural(now.moved));
}

void
benchmark_report_row(struct benchmark *s, const struct far_side *far)
{
	if (s->o.mode == BENCH_LAT)
		report_lat_row(s);
	else
		report_bandwidth(s, far);
	report_handed(s);
}

static void
print_live(struct benchmark *s, uint64_t now)
{
	struct run_mark mark = { .time = now, .done = run_done(&s->run) };
	double rate;

	if (s->last_live.time < s->run.from.time) /* belongs to the previous size */
		s->last_live = s->run.from;
	rate = (double)(mark.done - s->last_live.done) / cycles_to_seconds(now - s->last_live.time);
	report_live(s->report, " %u byte%s: %.3f M messages/s, %.2f MiB/s, %.0f s", s->size,
		plural(s->size), rate / 1e6, rate * s->size / MIB,
		cycles_to_seconds(now - s->run.from.time));
	s->last_live = mark;
}

void
benchmark_look(struct benchmark *s, uint64_t now)
{
	if (s->o.workers > 1 && s->handed_of != s->run.from.time) {
		s->handed_of = s->run.from.time;
		count_handed(s, &s->handed);
	}
	if (now < s->next_live)
		return;
	if (s->next_live != 0)
		print_live(s, now);
	s->next_live = now + rte_get_tsc_hz();
}
