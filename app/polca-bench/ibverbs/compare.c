/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Pairs of parts: our own posts, both ends on this CPU, then the same messages through libibverbs,
 * where a worker of polca, on another CPU, does the protocol of both ends.
 */

#include <errno.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "histogram.h"
#include "median.h"
#include "ibverbs/compare.h"

#define POLL 32

/* of messages: posted by us, by a program; the worker's, as it has no other work */
static const struct report_column rate_columns[] = {
	{ "bytes", "#bytes", 8, 0 },
	{ "own_mpps", "own[Mpps]", 11, 3 },
	{ "verbs_mpps", "verbs[Mpps]", 11, 3 },
	{ "own_mib", "own[MiB/sec]", 13, 2 },
	{ "verbs_mib", "verbs[MiB/sec]", 14, 2 },
	{ "ratio", "ratio", 7, 3 },
	{ "extra_ns", "extra[ns]", 10, 1 },
};

static const struct report_column latency_columns[] = {
	{ "bytes", "#bytes", 8, 0 },
	{ "own_us", "own[us]", 10, 3 },
	{ "verbs_us", "verbs[us]", 10, 3 },
	{ "added_us", "added[us]", 10, 3 },
};

static const struct report_column call_columns[] = {
	{ "call", "call", 36, 0 },
	{ "median_ns", "median[ns]", 12, 1 },
	{ "lowest_ns", "lowest[ns]", 12, 1 },
	{ "highest_ns", "highest[ns]", 12, 1 },
};

struct verbs_bench {
	struct benchmark *s;
	struct verbs_pair pair;
	struct histogram *histogram;
	struct paired result; /* messages a second, or us */
	double call[VERBS_CALLS][PAIRS];
};

static enum ibv_wr_opcode
verbs_opcode(const struct bench_options *o)
{
	static const enum ibv_wr_opcode of[] = {
		[BENCH_SEND] = IBV_WR_SEND,
		[BENCH_WRITE] = IBV_WR_RDMA_WRITE,
		[BENCH_READ] = IBV_WR_RDMA_READ,
		[BENCH_ATOMIC] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};

	return of[o->verb];
}

static int
pair_post(struct verbs_pair *p, uint32_t qp, struct error *err)
{
	const struct bench_options *o = p->o;
	unsigned int flags = o->size <= o->inline_size ? IBV_SEND_INLINE : 0;
	int ret = 0;

	while (p->credit[qp] > 0 && ret == 0) {
		/* a group of requests ends with its signaled one, so each group is completed */
		if (p->stopping && p->since_signal[qp] == 0)
			break;
		p->credit[qp]--;
		if (++p->since_signal[qp] == o->signal_every) {
			p->since_signal[qp] = 0;
			flags |= IBV_SEND_SIGNALED;
		}
		ret = verbs_post_send(p, VERBS_REQUESTER, qp, verbs_opcode(o), flags, err);
		flags &= ~(unsigned int)IBV_SEND_SIGNALED;
	}
	return ret;
}

/* Poll both ends, and post as much as is completed. */
static int
pair_turn(struct verbs_pair *p, struct error *err)
{
	struct ibv_wc wc[POLL];
	int n = ibv_poll_cq(p->side[VERBS_REQUESTER].send_cq, POLL, wc), i, ret = 0;

	for (i = 0; i < n && ret == 0; i++) {
		ret = verbs_check(&wc[i], err);
		p->credit[wc[i].wr_id] += p->o->signal_every;
		p->done += p->o->signal_every;
		if (ret == 0)
			ret = pair_post(p, (uint32_t)wc[i].wr_id, err);
	}
	if (n < 0)
		return error_set(err, EIO, "--verbs: polca has ended");
	if (p->o->verb != BENCH_SEND || ret != 0)
		return ret;
	n = ibv_poll_cq(p->side[VERBS_RESPONDER].receive_cq, POLL, wc);
	for (i = 0; i < n && ret == 0; i++) {
		ret = verbs_check(&wc[i], err);
		if (ret == 0)
			ret = verbs_post_receive(p, VERBS_RESPONDER, (uint32_t)wc[i].wr_id, err);
	}
	return ret;
}

static bool
pair_idle(const struct verbs_pair *p)
{
	uint32_t i;

	for (i = 0; i < p->o->qps; i++)
		if (p->credit[i] != p->o->depth)
			return false;
	return true;
}

/* A tenth of the time is the warm-up. Afterwards all is completed. */
static int
part_rate(struct verbs_bench *b, double *rate, struct error *err)
{
	struct verbs_pair *p = &b->pair;
	uint64_t span = (uint64_t)(b->s->o.seconds * (double)rte_get_tsc_hz());
	uint64_t begin = rte_rdtsc(), now = begin, from = 0, done = 0;
	int ret = 0;
	uint32_t i;

	p->stopping = false;
	for (i = 0; i < p->o->qps && ret == 0; i++)
		ret = pair_post(p, i, err);
	/* on a busy machine the time may be over before there is anything to count */
	while (ret == 0 && bench_stop == 0 &&
		(now - begin < span || from == 0 || p->done == done)) {
		ret = pair_turn(p, err);
		now = rte_rdtsc();
		if (from == 0 && now - begin >= span / 10) {
			from = now;
			done = p->done;
		}
	}
	*rate = (double)(p->done - done) * (double)rte_get_tsc_hz() / (double)(now - from);
	p->stopping = true;
	for (i = 0; i < p->o->qps && ret == 0; i++)
		ret = pair_post(p, i, err);
	while (ret == 0 && !pair_idle(p) && bench_stop == 0)
		ret = pair_turn(p, err);
	return ret;
}

/* One message, until its receiver has polled it; the program does both. */
static int
verbs_one_way(struct verbs_pair *p, unsigned int from, struct error *err)
{
	struct ibv_wc wc;
	int ret = verbs_post_send(p, from, 0, IBV_WR_SEND, IBV_SEND_SIGNALED, err);

	if (ret == 0)
		ret = verbs_wait(p->side[!from].receive_cq, &wc, err);
	return ret;
}

static int
ping_pong(struct verbs_bench *b, struct error *err)
{
	struct verbs_pair *p = &b->pair;
	uint64_t start = rte_rdtsc();
	struct ibv_wc wc;
	unsigned int i;
	int ret = verbs_one_way(p, VERBS_REQUESTER, err);

	if (ret == 0)
		ret = verbs_one_way(p, VERBS_RESPONDER, err);
	histogram_add(b->histogram, (rte_rdtsc() - start) / 2);
	for (i = 0; i < VERBS_SIDES && ret == 0; i++) {
		ret = verbs_wait(p->side[i].send_cq, &wc, err);
		if (ret == 0)
			ret = verbs_post_receive(p, i, 0, err);
	}
	return ret;
}

static int
part_latency(struct verbs_bench *b, double *us, struct error *err)
{
	uint64_t span = (uint64_t)(b->s->o.seconds * (double)rte_get_tsc_hz());
	uint64_t begin = rte_rdtsc();
	int ret;

	histogram_reset(b->histogram);
	do {
		ret = ping_pong(b, err);
	} while (ret == 0 && rte_rdtsc() - begin < span);
	*us = histogram_percentile(b->histogram, 50) * 1e6 / (double)rte_get_tsc_hz();
	return ret;
}

static int
part_own(struct verbs_bench *b, uint32_t size, double *value, struct error *err)
{
	struct benchmark *s = b->s;
	double best;
	int ret = benchmark_prepare(s, size, err);

	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret == 0 && s->o.mode == BENCH_LAT)
		*value = histogram_percentile(s->load[REQUESTER][0].histogram, 50) * 1e6 /
			(double)rte_get_tsc_hz();
	else if (ret == 0)
		*value = benchmark_rate(s, &best);
	return ret;
}

static void
verbs_report_messages(struct verbs_bench *b, uint32_t size)
{
	struct report *r = b->s->report;
	struct paired_result m = paired_medians(&b->result);
	double mib = size / 1048576.0;

	if (b->s->o.mode == BENCH_LAT) {
		double row[] = { size, m.median[0], m.median[1], m.median[1] - m.median[0] };

		report_table(r, "verbs", latency_columns, RTE_DIM(latency_columns));
		report_row(r, row);
	} else {
		double row[] = { size, m.median[0] / 1e6, m.median[1] / 1e6, m.median[0] * mib,
			m.median[1] * mib, m.ratio, 1e9 / m.median[1] - 1e9 / m.median[0] };

		report_table(r, "verbs", rate_columns, RTE_DIM(rate_columns));
		report_row(r, row);
	}
	report_note(r,
		"medians of %u pair%s by turns: own posts, both ends on one CPU; a program through "
		"libibverbs, polca's worker on another CPU",
		b->result.pairs, plural(b->result.pairs));
}

static void
report_calls(struct verbs_bench *b)
{
	unsigned int i, n = b->result.pairs;

	report_table(b->s->report, "calls", call_columns, RTE_DIM(call_columns));
	for (i = 0; i < VERBS_CALLS; i++) {
		double row[] = { median(b->call[i], n), quantile(b->call[i], n, 0),
			quantile(b->call[i], n, 1) };

		report_named_row(b->s->report, verbs_call_names[i], row);
	}
}

static int
verbs_one_pair(struct verbs_bench *b, uint32_t size, struct error *err)
{
	double value[2], call[VERBS_CALLS];
	unsigned int at = b->result.pairs, i;
	int ret = part_own(b, size, &value[0], err);

	if (ret == 0)
		ret = (b->s->o.mode == BENCH_LAT ? part_latency : part_rate)(b, &value[1], err);
	if (ret == 0)
		ret = verbs_calls(&b->pair, call, err);
	if (ret != 0 || bench_stop != 0)
		return ret;
	for (i = 0; i < 2; i++)
		b->result.value[i][at] = value[i];
	for (i = 0; i < VERBS_CALLS; i++)
		b->call[i][at] = call[i];
	b->result.pairs++;
	return 0;
}

int
verbs_run(struct benchmark *s, uint32_t size, struct error *err)
{
	struct verbs_bench b = { .s = s, .histogram = histogram_create() };
	unsigned int i;
	int ret;

	if (b.histogram == NULL)
		return error_set(err, ENOMEM, "no memory for samples");
	s->o.seconds /= 2 * PAIRS;
	ret = verbs_pair_create(&b.pair, &s->o, err);
	for (i = 0; i < PAIRS && ret == 0 && bench_stop == 0; i++) {
		report_live(s->report, " pair %u of %u", i + 1, PAIRS);
		ret = verbs_one_pair(&b, size, err);
	}
	if (bench_stop != 0)
		ret = 0;
	if (ret == 0 && b.result.pairs > 0) {
		verbs_report_messages(&b, size);
		report_calls(&b);
	}
	verbs_pair_destroy(&b.pair);
	histogram_destroy(b.histogram);
	return ret;
}
