/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* --plot: collect the values of each size, and draw them at the end. */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>

#include "limits/size_limit.h"
#include "plot.h"
#include "traffic/benchmark.h"

#define TEXT         320
#define LIMIT_SERIES (PLOT_SERIES - 1)

struct benchmark_plot {
	FILE *file;
	bool created; /**< the file did not exist: remove it if the run fails */
	struct size_limit *limit; /**< NULL: no limit is known for this run */
	double limit_ns[PLOT_POINTS]; /**< per message; NAN: not measured */
	struct plot plot;
	char title[TEXT], fact[PLOT_FACTS][TEXT];
};

static const struct report_column limit_columns[] = {
	{ "bytes", "#bytes", 10, 0 },
	{ "packets", "packets", 13, 0 },
	{ "limit_ns", "limit[ns]", 18, 1 },
	{ "limit_mpps", "limit[Mpps]", 20, 6 },
	{ "limit_gbps", "limit[Gb/s]", 15, 3 },
};

/* Names in the legend. */
static const char *const rate_names[LIMIT_SERIES] = { "average",
	"undisturbed: the time that both roles work" };
static const char *const latency_names[LIMIT_SERIES] = { "median", "99 %" };

static const char limit_is[] =
	"The limit is the time that one lcore needs for a message's packets at both "
	"ends without any protocol, measured after each size.";
static const char no_limit[] =
	"No limit is drawn: it is measured only when one lcore does the work "
	"of both ends in memory.";

int
benchmark_plot_open(struct benchmark *s, struct error *err)
{
	struct benchmark_plot *p;
	int fd;

	if (s->o.plot == NULL)
		return 0;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return error_set(err, ENOMEM, "no memory for the plot");
	p->created = access(s->o.plot, F_OK) != 0;
	/* do not truncate an existing file before the end */
	fd = open(s->o.plot, O_WRONLY | O_CREAT, 0666);
	p->file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (p->file == NULL) {
		error_set(err, EINVAL, "--plot: cannot write %.128s: %s", s->o.plot,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		free(p);
		return -EINVAL;
	}
	s->plot = p;
	return 0;
}

int
benchmark_plot_limits(struct benchmark *s, struct error *err)
{
	bool holds = strcmp(s->o.link, "memory") == 0 && s->o.lcores == 1 && s->o.workers == 1;

	return s->plot != NULL && holds ? size_limit_create(&s->plot->limit, &s->o, err) : 0;
}

/* The panels show the same messages, in Gb/s and in messages/s. */
static void
plot_add_rates(struct plot *p, unsigned int series, unsigned int at, double rate)
{
	p->panel[0].value[series][at] = rate * p->size[at] * 8 / 1e9;
	p->panel[1].value[series][at] = rate;
}

void
benchmark_plot_add(struct benchmark *s, double first, double second)
{
	struct benchmark_plot *p = s->plot;
	struct plot *plot;
	unsigned int at;
	double ns;

	if (p == NULL || p->plot.points == PLOT_POINTS)
		return;
	plot = &p->plot;
	at = plot->points++;
	plot->size[at] = s->size;
	ns = p->limit != NULL ? size_limit_measure(p->limit, s->size) : 0;
	p->limit_ns[at] = ns > 0 ? ns : NAN;
	if (s->o.mode == BENCH_LAT) {
		plot->panel[0].value[0][at] = first;
		plot->panel[0].value[1][at] = second;
		plot->panel[0].value[LIMIT_SERIES][at] = p->limit_ns[at] / 1000;
		return;
	}
	plot_add_rates(plot, 0, at, first);
	plot_add_rates(plot, 1, at, second);
	plot_add_rates(plot, LIMIT_SERIES, at, 1e9 / p->limit_ns[at]);
}

static void
report_limits(const struct benchmark *s)
{
	const struct benchmark_plot *p = s->plot;
	unsigned int i;

	report_table(s->report, "limit", limit_columns, RTE_DIM(limit_columns));
	for (i = 0; i < p->plot.points; i++) {
		unsigned int packets = RTE_MAX(p->plot.size[i] / s->o.mtu, 1u);
		double ns = p->limit_ns[i], bytes = p->plot.size[i];
		double row[] = { bytes, packets, ns, 1e3 / ns, bytes * 8 / ns };

		report_row(s->report, row);
	}
}

static const char *
plot_fact(const struct benchmark *s, const char *key)
{
	const char *text = report_fact_text(s->report, key);

	return text != NULL ? text : "";
}

static void
describe_panel(struct plot_panel *panel, const char *label, const char *figure_unit,
	enum plot_unit unit)
{
	panel->label = label;
	panel->figure_unit = figure_unit;
	panel->unit = unit;
}

static void
plot_describe(struct benchmark *s)
{
	static const char *const verbs[] = { "Sends", "RDMA Writes", "RDMA Reads", "Atomics" };
	static const char *const modes[] = { "bandwidth", "message rate", "latency" };
	struct benchmark_plot *p = s->plot;
	struct plot *plot = &p->plot;
	bool latency = s->o.mode == BENCH_LAT;
	unsigned int i;

	snprintf(p->title, TEXT, "Polca: %s of %s over message size", modes[s->o.mode],
		verbs[s->o.verb]);
	snprintf(p->fact[0], TEXT, "%s; lcores: %s; %s", plot_fact(s, "cpu"),
		plot_fact(s, "lcores"), plot_fact(s, "memory"));
	snprintf(p->fact[1], TEXT, "%s%s; %s; ICRC %s", plot_fact(s, "port"),
		strcmp(s->o.link, "memory") == 0 ? ", no NIC" : "", plot_fact(s, "queues"),
		plot_fact(s, "icrc"));
	snprintf(p->fact[2], TEXT, "polca-bench %s, %s, %s", POLCA_VERSION, plot_fact(s, "build"),
		plot_fact(s, "dpdk"));
	plot->title = p->title;
	for (i = 0; i < PLOT_FACTS; i++)
		plot->fact[i] = p->fact[i];
	for (i = 0; i < LIMIT_SERIES; i++)
		plot->series[i] = latency ? latency_names[i] : rate_names[i];
	/* the roles run at the same time, so their times do not add up */
	if (p->limit == NULL && !latency)
		plot->series[1] = NULL;
	if (p->limit != NULL)
		plot->series[LIMIT_SERIES] = s->o.icrc
			? "limit: packet I/O, two copies and two CRCs"
			: "limit: packet I/O and two copies";
	plot->foot = p->limit != NULL ? limit_is : no_limit;
	plot->panels = latency ? 1 : 2;
	if (latency)
		describe_panel(&plot->panel[0],
			s->o.verb == BENCH_READ ? "a round trip" : "half a round trip", "us",
			PLOT_TIME);
	else
		describe_panel(&plot->panel[0], "Gb/s", "Gb/s", PLOT_NUMBER);
	describe_panel(&plot->panel[1], "messages/s", "messages/s", PLOT_COUNT);
}

static int
plot_draw(struct benchmark *s, struct error *err)
{
	struct benchmark_plot *p = s->plot;

	if (p->limit != NULL)
		report_limits(s);
	plot_describe(s);
	if (ftruncate(fileno(p->file), 0) != 0 && errno != EINVAL) /* a pipe has no length */
		return error_set(err, EIO, "--plot: cannot write %.128s: %s", s->o.plot,
			strerror(errno));
	if (plot_write(&p->plot, p->file) != 0)
		return error_set(err, EIO, "--plot: cannot write %.128s: %s", s->o.plot,
			strerror(errno));
	return 0;
}

int
benchmark_plot_close(struct benchmark *s, bool done, struct error *err)
{
	struct benchmark_plot *p = s->plot;
	int ret = 0;

	if (p == NULL)
		return 0;
	done = done && p->plot.points > 0;
	if (done)
		ret = plot_draw(s, err);
	if (fclose(p->file) != 0 && ret == 0)
		ret = error_set(err, EIO, "--plot: cannot write %.128s: %s", s->o.plot,
			strerror(errno));
	if (!done && p->created)
		unlink(s->o.plot);
	if (done && ret == 0)
		report_note(s->report, "wrote %s", s->o.plot);
	size_limit_destroy(p->limit);
	free(p);
	s->plot = NULL;
	return ret;
}
