/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The counters of stats_get on DPDK's telemetry socket, for dpdk-telemetry.py. Its callbacks run
 * on a thread of the EAL: they read what anyone may read, and hold a lock against the engine going
 * away under them.
 */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "ctl/counters.h"
#include "ctl/ctl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine *engine;

/* DPDK 23.03 renamed the function that adds an unsigned number; 25.11 has the new name only. */
static void
add_counter(void *arg, const char *name, const char *help, uint64_t value)
{
	(void)help;
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(arg, name, value);
#else
	rte_tel_data_add_dict_u64(arg, name, value);
#endif
}

/* A number given after a comma: "/polca/port,1". @return it, or dflt when none is given, or -1 */
static long
index_of(const char *params, long dflt, long end)
{
	char *rest;
	long n;

	if (params == NULL || *params == '\0')
		return dflt;
	n = strtol(params, &rest, 10);
	return *rest == '\0' && n >= 0 && n < end ? n : -1;
}

static int
show_ports(const char *params, struct rte_tel_data *d)
{
	unsigned int port;

	(void)params;
	rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);
	for (port = 0; port < link_num_ports(engine_link(engine)); port++)
		rte_tel_data_add_array_string(d, link_port_attr(engine_link(engine), port)->name);
	return 0;
}

static int
show_worker(const char *params, struct rte_tel_data *d)
{
	long worker = index_of(params, 0, engine_workers(engine));
	struct worker_info info = { 0 };

	if (worker < 0)
		return -EINVAL;
	engine_worker_info(engine, (unsigned int)worker, &info);
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "lcore", (int)info.lcore);
	rte_tel_data_add_dict_int(d, "stalled", info.stalled);
	add_counter(d, "heartbeat_age_us", NULL, info.heartbeat_age_us);
	add_counter(d, "busy_permille", NULL, (uint64_t)(info.busy_share * 1000));
	add_counter(d, "longest_gap_us", NULL, (uint64_t)info.longest_gap_us);
	add_counter(d, "polls", NULL, info.polls);
	add_counter(d, "busy_polls", NULL, info.busy_polls);
	add_counter(d, "sleeps", NULL, info.sleeps);
	add_counter(d, "handoff_out", NULL, info.handoff_out);
	add_counter(d, "handoff_in", NULL, info.handoff_in);
	add_counter(d, "handoff_full", NULL, info.handoff_full);
	add_counter(d, "handoff_again", NULL, info.handoff_again);
	add_counter(d, "handoff_permille", NULL, (uint64_t)(info.handoff_percent * 10));
	add_counter(d, "rehomed_out", NULL, info.rehomed_out);
	add_counter(d, "rehomed_in", NULL, info.rehomed_in);
	rte_tel_data_add_dict_int(d, "handoff_depth", (int)info.handoff_depth);
	rte_tel_data_add_dict_int(d, "commands", (int)info.commands);
	rte_tel_data_add_dict_int(d, "qps", (int)info.qps);
	return 0;
}

static const struct telemetry_row {
	const char *path;
	const char *help;
	int (*show)(const char *params, struct rte_tel_data *d); /* NULL: counters */
	bool of_port; /* the parameter is a port, 0 when none is given; else a worker */
	unsigned int num_sets;
	enum counter_set sets[3];
} rows[] = {
	{ "/polca/ports", "Names of the ports. No parameters", show_ports },
	{ "/polca/port", "Counters of a port, as stats_get. Parameters: int port", NULL, true, 3,
		{ COUNTERS_PORT, COUNTERS_SERVED, COUNTERS_DROPPED } },
	{ "/polca/rc",
		"Counters of the RC transport, as stats_get. Parameters: int worker (none: the sum)",
		NULL, false, 1, { COUNTERS_RC } },
	{ "/polca/sa",
		"Counters of QP1's datagrams and of the SA, as sa_stats. Parameters: int worker (none: the sum)",
		NULL, false, 2, { COUNTERS_MAD, COUNTERS_SA } },
	{ "/polca/sma",
		"Counters of a port's subnet management agent, as stats_get. Parameters: int port",
		NULL, true, 1, { COUNTERS_SMA } },
	{ "/polca/live",
		"Counters of the liveness agent, as stats_get. Parameters: int worker (none: the sum)",
		NULL, false, 1, { COUNTERS_LIVE } },
	{ "/polca/cm",
		"Counters of the communication manager, as stats_get. Parameters: int worker (none: the sum)",
		NULL, false, 1, { COUNTERS_CM } },
	{ "/polca/clients", "Counters of programs on the verbs socket, as stats_get. No parameters",
		NULL, false, 1, { COUNTERS_CLIENTS } },
	{ "/polca/worker", "State of a worker, as worker_list. Parameters: int worker",
		show_worker },
};
#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))

static int
show_counters(const struct telemetry_row *row, const char *params, struct rte_tel_data *d)
{
	long port = -1, worker = LONG_MAX;
	unsigned int i;

	if (row->of_port)
		port = index_of(params, 0, link_num_ports(engine_link(engine)));
	else
		worker = index_of(params, LONG_MAX, engine_workers(engine));
	if (row->of_port ? port < 0 : worker < 0)
		return -EINVAL;
	rte_tel_data_start_dict(d);
	for (i = 0; i < row->num_sets; i++)
		counters_read(engine, row->sets[i], (int)port,
			worker == LONG_MAX ? -1 : (int)worker, add_counter, d);
	return 0;
}

/*
 * The telemetry library passes a callback no argument of its own: one callback finds its row by
 * the command.
 */
static int
show(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int rc = -EINVAL;
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < NUM_ROWS && engine != NULL; i++)
		if (strcmp(cmd, rows[i].path) == 0)
			rc = rows[i].show != NULL ? rows[i].show(params, d)
						  : show_counters(&rows[i], params, d);
	pthread_mutex_unlock(&lock);
	return rc;
}

void
ctl_telemetry(struct engine *e)
{
	static bool registered;
	size_t i;

	pthread_mutex_lock(&lock);
	engine = e;
	pthread_mutex_unlock(&lock);
	if (registered || e == NULL)
		return;
	registered = true;
	for (i = 0; i < NUM_ROWS; i++)
		rte_telemetry_register_cmd(rows[i].path, show, rows[i].help);
}
