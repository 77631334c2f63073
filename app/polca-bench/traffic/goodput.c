/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * --loss: alternate the same messages without and with loss. A part ends when its last message
 * completes, so its rate includes the cost of a loss at its end.
 */

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "traffic/loss.h"
#include "traffic/paired.h"

#define MIB 1048576.0

static const struct report_column columns[] = {
	{ "bytes", "#bytes", 8, 0 },
	{ "one_of", "lost 1 of", 9, 0 },
	{ "bw_lossless_mib", "BW lossless[MiB/sec]", 20, 2 },
	{ "bw_lossy_mib", "BW lossy[MiB/sec]", 17, 2 },
	{ "ratio", "ratio", 6, 3 },
	{ "ratio_total", "ratio of totals", 15, 3 },
	{ "lost", "lost", 7, 0 },
	{ "naks", "naks", 6, 0 },
	{ "timeouts", "timeouts", 8, 0 },
	{ "retransmitted", "retransmitted", 13, 0 },
};

struct goodput {
	struct paired rate; /* of all parts */
	double messages[2], seconds[2]; /* of all parts */
};

static void
sum_rc_counters(const struct benchmark *s, struct rc_counters *sum)
{
	struct rc_counters c;
	unsigned int i;

	*sum = (struct rc_counters){ .sent_pkts = 0 };
	for (i = 0; i < ROLES; i++) {
		if (s->end[i].shared)
			continue;
		engine_rc_counters(s->end[i].engine, -1, -1, &c);
		sum->rcvd_seq_err += c.rcvd_seq_err;
		sum->local_ack_timeout_err += c.local_ack_timeout_err;
		sum->retransmitted_pkts += c.retransmitted_pkts;
	}
}

static int
goodput_part(struct benchmark *s, struct goodput *g, unsigned int lossy, uint32_t size,
	struct error *err)
{
	double messages, seconds;
	int ret;

	ret = benchmark_prepare(s, size, err);
	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret != 0)
		return ret;
	messages = (double)(run_done(&s->run) - s->run.from.done);
	seconds = (double)(rte_rdtsc() - s->run.from.time) / (double)rte_get_tsc_hz();
	g->rate.value[lossy][g->rate.pairs] = messages / seconds;
	g->messages[lossy] += messages;
	g->seconds[lossy] += seconds;
	return 0;
}

static void
goodput_report(struct benchmark *s, const struct goodput *g, uint32_t size, const struct loss *loss)
{
	struct paired_result r = paired_medians(&g->rate);
	struct rc_counters c;

	sum_rc_counters(s, &c);
	double row[] = { size, s->o.loss, r.median[0] * size / MIB, r.median[1] * size / MIB,
		r.ratio, g->messages[1] / g->seconds[1] / (g->messages[0] / g->seconds[0]),
		(double)loss_count(loss), (double)c.rcvd_seq_err, (double)c.local_ack_timeout_err,
		(double)c.retransmitted_pkts };

	report_table(s->report, "loss", columns, RTE_DIM(columns));
	report_row(s->report, row);
	report_note(s->report,
		"loss: medians of %u interleaved pair%s; the totals include every stall, "
		"the medians only those that most parts have",
		g->rate.pairs, plural(g->rate.pairs));
}

int
goodput_run(struct benchmark *s, uint32_t size, struct error *err)
{
	struct loss *loss = loss_create(s->end, s->o.loss, err);
	struct goodput g = { .rate.pairs = 0 };
	int ret = loss != NULL ? 0 : -1;
	unsigned int lossy;

	s->o.seconds /= 2 * PAIRS;
	s->run.count = false;
	while (g.rate.pairs < PAIRS && ret == 0 && bench_stop == 0) {
		for (lossy = 0; lossy < 2 && ret == 0; lossy++) {
			loss_set(loss, lossy);
			ret = goodput_part(s, &g, lossy, size, err);
		}
		g.rate.pairs += ret == 0;
	}
	if (ret == 0)
		goodput_report(s, &g, size, loss);
	loss_destroy(loss);
	return ret;
}
