/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* send, write, read and atomic: messages between queue pairs. */

#include <errno.h>
#include <math.h>

#include <rte_common.h>

#include "bench.h"
#include "command.h"

#define MIB 1048576.0

static const struct report_column bw_columns[] = {
	{ "bytes", "#bytes", 10, 0 },
	{ "iterations", "#iterations", 14, 0 },
	{ "bw_peak_mib", "BW peak[MiB/sec]", 18, 2 },
	{ "bw_average_mib", "BW average[MiB/sec]", 20, 2 },
	{ "msg_rate_mpps", "MsgRate[Mpps]", 15, 6 },
	{ "requester_ns", "requester[ns]", 15, 1 },
	{ "responder_ns", "responder[ns]", 15, 1 },
};

static void
tell(const struct bench_options *o, const struct roles_result *r, struct report *report)
{
	double row[] = { o->size, NAN, NAN, r->goodput / 8 / MIB, r->rate / 1e6, r->ns[REQUESTER],
		r->ns[RESPONDER] };

	report_row(report, row);
	report_note(report, "%u bytes: %.2f M messages/s, %.2f Gb/s; requester %.1f ns, responder "
			"%.1f ns a message (%u of %u slices)", o->size, r->rate / 1e6,
			r->goodput / 1e9, r->ns[REQUESTER], r->ns[RESPONDER], r->clean, r->slices);
}

static int
run(const struct bench_options *o, struct report *report, struct error *err)
{
	char device[ROLES][256];
	const struct bench_link *link = link_find(o, err);
	struct roles_result r;
	struct load load[ROLES];
	struct end end[ROLES];
	unsigned int i;
	int ret;

	if (link == NULL)
		return -EINVAL;
	ret = link->create(o, REQUESTER, device, err);
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = end_create(&end[i], o, device[i], i, 0, err);
	if (ret == 0)
		ret = end_connect(&end[0], &end[1], o, err);
	for (i = 0; i < ROLES && ret == 0; i++)
		ret = load_create(&load[i], o, &end[i], &end[!i], err);
	if (ret == 0)
		ret = load_start(&load[RESPONDER], err);
	if (ret == 0)
		ret = load_start(&load[REQUESTER], err);
	if (ret == 0 && o->iterations > 0) {
		roles_count(load, 10 * o->qps * o->depth); /* warm */
		roles_count(load, o->iterations);
		return 0;
	}
	if (ret == 0)
		ret = roles_run(load, &r, err);
	if (ret != 0)
		return ret;
	report_table(report, "bw", bw_columns, RTE_DIM(bw_columns));
	tell(o, &r, report);
	for (i = 0; i < ROLES; i++) {
		load_destroy(&load[i]);
		end_destroy(&end[i]);
	}
	return 0;
}

int
traffic_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct eal_wish wish = { .bytes = UINT64_C(1) << 30 };
	int ret = bench_eal_start(o, &wish, err);

	RTE_SET_USED(c);
	if (ret != 0)
		return ret;
	report_environment(r, o);
	return run(o, r, err);
}
