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
#include "engine/verbs_mad.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct engine *engine;

/* DPDK 23.03 renamed the function that adds an unsigned number; 25.11 has the new name only. */
static void
add_counter(void *arg, const char *name, uint64_t value)
{
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
show_port(const char *params, struct rte_tel_data *d)
{
	long port = index_of(params, 0, link_num_ports(engine_link(engine)));
	struct link_counters c = { 0 };

	if (port < 0)
		return -EINVAL;
	engine_port_counters(engine, (unsigned int)port, -1, &c);
	rte_tel_data_start_dict(d);
	counters_port(&c, add_counter, d);
	counters_verdicts(&c, -1, add_counter, d);
	return 0;
}

static int
show_rc(const char *params, struct rte_tel_data *d)
{
	long worker = index_of(params, LONG_MAX, engine_workers(engine));
	struct rc_counters c = { 0 };

	if (worker < 0)
		return -EINVAL;
	engine_rc_counters(engine, worker == LONG_MAX ? -1 : (int)worker, &c);
	rte_tel_data_start_dict(d);
	counters_rc(&c, add_counter, d);
	return 0;
}

static int
show_sa(const char *params, struct rte_tel_data *d)
{
	long worker = index_of(params, LONG_MAX, engine_workers(engine));
	struct mad_counters mad = { 0 };
	struct sa_counters sa = { 0 };

	if (worker < 0)
		return -EINVAL;
	engine_mad_counters(engine, worker == LONG_MAX ? -1 : (int)worker, &mad);
	engine_sa_counters(engine, worker == LONG_MAX ? -1 : (int)worker, &sa);
	rte_tel_data_start_dict(d);
	counters_mad(&mad, add_counter, d);
	counters_sa(&sa, add_counter, d);
	return 0;
}

static int
show_sma(const char *params, struct rte_tel_data *d)
{
	long port = index_of(params, 0, link_num_ports(engine_link(engine)));
	struct sma_counters c = { 0 };

	if (port < 0)
		return -EINVAL;
	engine_sma_counters(engine, (unsigned int)port, &c);
	rte_tel_data_start_dict(d);
	counters_sma(&c, add_counter, d);
	return 0;
}

static int
show_live(const char *params, struct rte_tel_data *d)
{
	long worker = index_of(params, LONG_MAX, engine_workers(engine));
	struct live_counters c = { 0 };

	if (worker < 0)
		return -EINVAL;
	engine_live_counters(engine, worker == LONG_MAX ? -1 : (int)worker, &c);
	rte_tel_data_start_dict(d);
	counters_live(&c, add_counter, d);
	return 0;
}

static int
show_cm(const char *params, struct rte_tel_data *d)
{
	long worker = index_of(params, LONG_MAX, engine_workers(engine));
	struct cm_counters c = { 0 };

	if (worker < 0)
		return -EINVAL;
	engine_cm_counters(engine, worker == LONG_MAX ? -1 : (int)worker, &c);
	rte_tel_data_start_dict(d);
	counters_cm(&c, add_counter, d);
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
	add_counter(d, "heartbeat_age_us", info.heartbeat_age_us);
	add_counter(d, "busy_permille", (uint64_t)(info.busy_share * 1000));
	add_counter(d, "longest_gap_us", (uint64_t)info.longest_gap_us);
	add_counter(d, "polls", info.polls);
	add_counter(d, "busy_polls", info.busy_polls);
	add_counter(d, "sleeps", info.sleeps);
	add_counter(d, "handoff_out", info.handoff_out);
	add_counter(d, "handoff_in", info.handoff_in);
	add_counter(d, "handoff_full", info.handoff_full);
	add_counter(d, "handoff_again", info.handoff_again);
	add_counter(d, "handoff_permille", (uint64_t)(info.handoff_percent * 10));
	add_counter(d, "rehomed_out", info.rehomed_out);
	add_counter(d, "rehomed_in", info.rehomed_in);
	rte_tel_data_add_dict_int(d, "handoff_depth", (int)info.handoff_depth);
	rte_tel_data_add_dict_int(d, "commands", (int)info.commands);
	rte_tel_data_add_dict_int(d, "qps", (int)info.qps);
	return 0;
}

static const struct telemetry_row {
	const char *path;
	int (*show)(const char *params, struct rte_tel_data *d);
	const char *help;
} rows[] = {
	{ "/polca/ports", show_ports, "Names of the ports. No parameters" },
	{ "/polca/port", show_port, "Counters of a port, as stats_get. Parameters: int port" },
	{ "/polca/rc", show_rc,
		"Counters of the RC transport, as stats_get. Parameters: int worker (none: the sum)" },
	{ "/polca/sa", show_sa,
		"Counters of QP1's datagrams and of the SA, as sa_stats. Parameters: int worker (none: the sum)" },
	{ "/polca/sma", show_sma,
		"Counters of a port's subnet management agent, as stats_get. Parameters: int port" },
	{ "/polca/live", show_live,
		"Counters of the liveness agent, as stats_get. Parameters: int worker (none: the sum)" },
	{ "/polca/cm", show_cm,
		"Counters of the communication manager, as stats_get. Parameters: int worker (none: the sum)" },
	{ "/polca/worker", show_worker,
		"State of a worker, as worker_list. Parameters: int worker" },
};
#define NUM_ROWS (sizeof(rows) / sizeof(rows[0]))

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
			rc = rows[i].show(params, d);
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
