/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The commands send, write, read and atomic: messages between queue pairs. */

#include <errno.h>
#include <stdlib.h>

#include <rte_common.h>

#include "ibverbs/compare.h"
#include "limits/roofline.h"
#include "peers/perftest.h"
#include "peers/remote.h"
#include "traffic/benchmark.h"
#include "traffic/paired.h"

static int
traffic_look(struct run *run, uint64_t now)
{
	benchmark_look(run->arg, now);
	return 0;
}

static int
traffic_one_size(struct benchmark *s, uint32_t size, struct error *err)
{
	int ret = benchmark_prepare(s, size, err);

	if (ret == 0)
		ret = benchmark_run(s, err);
	if (ret == 0)
		benchmark_report_row(s, NULL);
	return ret;
}

/* Run in rounds, and measure the limits between them. */
static int
traffic_one_size_roofline(struct benchmark *s, uint32_t size, struct error *err)
{
	struct roofline *rl;
	struct slice median;
	unsigned int i;
	int ret;

	s->o.seconds /= ROOFLINE_ROUNDS;
	s->run.count = false; /* the comparison needs slices */
	ret = roofline_create(&rl, &s->o, err);
	for (i = 0; i < ROOFLINE_ROUNDS && ret == 0 && bench_stop == 0; i++) {
		ret = benchmark_prepare(s, size, err);
		if (ret == 0)
			ret = benchmark_run(s, err);
		runner_median(&s->runner[0], &median);
		if (ret == 0)
			roofline_round(rl, &median);
	}
	if (ret == 0) {
		benchmark_report_row(s, NULL);
		roofline_report(rl, s->report);
	}
	roofline_destroy(rl);
	return ret;
}

static int
traffic_run_sizes(struct benchmark *s, struct error *err)
{
	uint32_t size = s->o.all_sizes ? 2 : s->o.size;
	unsigned int i;
	int ret;

	ret = benchmark_create(s, err);
	if (ret != 0)
		return ret;
	for (i = 0; i < ROLES && s->ends == ROLES; i++)
		endpoint_describe(&s->end[!i], &s->peer[i]);
	ret = benchmark_connect(s, err);
	if (ret != 0)
		return ret;
	benchmark_report_environment(s);
	if (s->o.loss == 0 && s->o.beside == 0 && s->o.verbs == NULL)
		benchmark_report_head(s);
	s->run.look = traffic_look;
	s->run.arg = s;
	if (s->o.loss > 0)
		return goodput_run(s, size, err);
	if (s->o.beside > 0)
		return lat_with_reads_run(s, size, err);
	if (s->o.verbs != NULL)
		return verbs_run(s, size, err);
	if (s->o.roofline)
		return traffic_one_size_roofline(s, size, err);
	ret = benchmark_plot_limits(s, err);
	for (; size <= s->o.size && ret == 0 && bench_stop == 0; size *= 2)
		ret = traffic_one_size(s, size, err);
	return ret;
}

int
traffic_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct benchmark *s = calloc(1, sizeof(*s));
	struct eal_wish wish = { .workers = 0 };
	int ret;

	RTE_SET_USED(c);
	if (s == NULL)
		return error_set(err, ENOMEM, "no memory");
	s->o = *o;
	s->report = r;
	s->link = link_find(o, err);
	ret = s->link == NULL ? -EINVAL : benchmark_plot_open(s, err);
	if (ret == 0 && o->perftest != NULL) {
		ret = perftest_run(s, err);
	} else if (ret == 0 && options_given(o)) {
		ret = peer_option_run(s, err);
	} else if (ret == 0 && s->link->remote && o->connect == NULL) {
		ret = remote_run(s, err);
	} else if (ret == 0) {
		benchmark_wish(o, s->link, REQUESTER, &wish);
		ret = bench_eal_start(o, &wish, err);
		if (ret == 0)
			ret = traffic_run_sizes(s, err);
	}
	if (benchmark_plot_close(s, ret == 0, err) != 0 && ret == 0)
		ret = -EIO;
	benchmark_destroy(s);
	free(s);
	return ret;
}
