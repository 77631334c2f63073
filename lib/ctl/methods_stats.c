/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>

#include <rte_ethdev.h>

#include "ctl/counters.h"
#include "ctl/methods.h"
#include "ctl/metrics.h"
#include "engine/verbs_mad.h"

struct stats_args {
	uint32_t present;
	uint32_t port;
	uint32_t worker;
	uint32_t qp_num;
	bool per_worker;
	bool nonzero;
	bool xstats;
};
#define STATS_PORT   0x1
#define STATS_WORKER 0x2
#define STATS_QP     0x4

static const struct table_row stats_params[] = {
	ROW(struct stats_args, port, TABLE_UINT, "this port only", .bit = STATS_PORT,
		.max = LINK_PORTS_MAX - 1, .def_text = "all"),
	ROW(struct stats_args, worker, TABLE_UINT, "what this worker counted", .bit = STATS_WORKER,
		.max = RC_WORKERS_MAX - 1, .def_text = "the sum of all"),
	ROW(struct stats_args, qp_num, TABLE_UINT, "counters of this queue pair instead",
		.bit = STATS_QP, .max = 0xffffff),
	ROW(struct stats_args, per_worker, TABLE_BOOL, "each worker's share too, as workers"),
	ROW(struct stats_args, nonzero, TABLE_BOOL, "leave out counters that are 0"),
	ROW(struct stats_args, xstats, TABLE_BOOL,
		"each port's device counters, too, by its driver's names"),
	ROW_END,
};

void
counter_take(void *arg, const char *name, const char *help, uint64_t value)
{
	struct counter_sink *s = arg;

	(void)help;
	if (value != 0 || !s->nonzero)
		json_set_int(s->obj, name, value);
}

struct counter_sink
counter_sink(struct rpc_call *call, bool nonzero)
{
	return (struct counter_sink){ arena_json(&call->arena, json_object()), nonzero };
}

json_t *
json_rc_counters(struct rpc_call *call, const struct rc_counters *c, bool nonzero)
{
	struct counter_sink s = counter_sink(call, nonzero);

	counters_rc(c, counter_take, &s);
	return s.obj;
}

/* --- ports --- */

struct port_stats {
	unsigned int port;
	const char *name;
	json_t *counters;
	json_t *served;
	json_t *dropped;
	json_t *rc;
	json_t *sma;
	json_t *xstats;
};

static const struct table_row port_stats_rows[] = {
	ROW(struct port_stats, port, TABLE_UINT),
	ROW(struct port_stats, name, TABLE_STRING),
	ROW(struct port_stats, counters, TABLE_MEMBERS,
		"rx_packets, rx_bytes, tx_packets, tx_bytes, tx_no_mbuf, tx_full, tx_unresolved, tx_port_state, tx_flooded and lid_moved (native InfiniBand), port_unreachable, neighbour_moved, neighbour_kept; what the device dropped before polca saw it, not per worker: rx_missed, rx_errors, rx_nombuf"),
	ROW(struct port_stats, served, TABLE_COUNTS, "reason to count"),
	ROW(struct port_stats, dropped, TABLE_COUNTS, "reason to count"),
	ROW(struct port_stats, rc, TABLE_COUNTS, "the transport's counters"),
	ROW(struct port_stats, sma, TABLE_COUNTS,
		"of a native InfiniBand port: subnet management's counters",
		.flags = TABLE_OPTIONAL),
	ROW(struct port_stats, xstats, TABLE_COUNTS,
		"with xstats: counters of the device, by its driver's names",
		.flags = TABLE_OPTIONAL),
	ROW_END,
};

static json_t *
json_counters(struct rpc_call *call, enum counter_set set, int port, int worker)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = counter_sink(call, a->nonzero);

	counters_read(call->e, set, port, worker, counter_take, &s);
	return s.obj;
}

/* The device's own counters: any number, under any names. NULL: it has none, or no memory. */
static json_t *
json_xstats(struct rpc_call *call, uint16_t ethdev)
{
	const struct stats_args *a = call->args;
	int i, n = rte_eth_xstats_get_names(ethdev, NULL, 0);
	struct counter_sink s = counter_sink(call, a->nonzero);
	struct rte_eth_xstat_name *names;
	struct rte_eth_xstat *values;

	if (n <= 0)
		return NULL;
	names = arena_alloc(&call->arena, (size_t)n * sizeof(*names));
	values = arena_alloc(&call->arena, (size_t)n * sizeof(*values));
	if (names == NULL || values == NULL ||
		rte_eth_xstats_get_names(ethdev, names, (unsigned int)n) != n ||
		rte_eth_xstats_get(ethdev, values, (unsigned int)n) != n)
		return NULL;
	for (i = 0; i < n; i++)
		counter_take(&s, names[values[i].id].name, NULL, values[i].value);
	return s.obj;
}

static int
add_port(struct rpc_call *call, struct table_list *ports, unsigned int port, int worker)
{
	const struct stats_args *a = call->args;
	struct port_stats *row = ADD(call, ports, struct port_stats);
	int p = (int)port;

	if (row == NULL)
		return -ENOMEM;
	*row = (struct port_stats){
		.port = port,
		.name = link_port_attr(engine_link(call->e), port)->name,
		.counters = json_counters(call, COUNTERS_PORT, p, worker),
		.served = json_counters(call, COUNTERS_SERVED, p, worker),
		.dropped = json_counters(call, COUNTERS_DROPPED, p, worker),
		.rc = json_counters(call, COUNTERS_RC, p, worker),
	};
	if (worker < 0 && a->xstats)
		row->xstats = json_xstats(call, link_ethdev(engine_link(call->e), port));
	/* worker 0 does it all */
	if (worker <= 0 && engine_sma_managed(call->e, port))
		row->sma = json_counters(call, COUNTERS_SMA, p, worker);
	return 0;
}

/* --- ports and transport, as one worker, or all of them, counted them --- */

struct stats_share {
	uint32_t present;
	struct table_list ports;
	json_t *rc;
	json_t *live;
	json_t *cm;
};
#define SHARE_PORTS 0x1

static const struct table_row share_rows[] = {
	ROW_LIST(struct stats_share, ports, struct port_stats, port_stats_rows, .bit = SHARE_PORTS),
	ROW(struct stats_share, rc, TABLE_COUNTS, "the transport's counters, over all ports"),
	ROW(struct stats_share, live, TABLE_COUNTS, "the liveness agent's counters",
		.flags = TABLE_OPTIONAL),
	ROW(struct stats_share, cm, TABLE_COUNTS,
		"the communication manager's counters: received_... and sent_... by message, rej_received_... and rej_sent_... by reason, where they are not 0",
		.flags = TABLE_OPTIONAL),
	ROW_END,
};

struct worker_stats {
	unsigned int worker;
	struct worker_info info;
	struct stats_share share;
};

#define HANDOFF(field) ROW_NAMED(struct worker_stats, #field, info.field, TABLE_UINT)

static const struct table_row worker_stats_rows[] = {
	ROW(struct worker_stats, worker, TABLE_UINT),
	HANDOFF(lcore),
	HANDOFF(handoff_out),
	HANDOFF(handoff_in),
	HANDOFF(handoff_full),
	HANDOFF(handoff_again),
	HANDOFF(rehomed_out),
	HANDOFF(rehomed_in),
	ROW_INCLUDE(struct worker_stats, share, share_rows),
	ROW_END,
};

struct stats_reply {
	uint32_t present;
	uint32_t qp_num;
	struct stats_share share;
	json_t *clients;
	struct table_list workers;
};
#define REPLY_QP      0x1
#define REPLY_WORKERS 0x2

static const struct table_row stats_get_results[] = {
	ROW(struct stats_reply, qp_num, TABLE_UINT,
		"with qp_num: the queue pair; rc is its counters, and the others are absent",
		.bit = REPLY_QP),
	ROW_INCLUDE(struct stats_reply, share, share_rows),
	ROW(struct stats_reply, clients, TABLE_COUNTS,
		"what programs on the verbs socket did, also those that have ended",
		.flags = TABLE_OPTIONAL),
	ROW_LIST(struct stats_reply, workers, struct worker_stats, worker_stats_rows,
		.bit = REPLY_WORKERS,
		.help = "with per_worker, handoff_... and rehomed_... as worker_list"),
	ROW_END,
};

static int
fill_stats_share(struct rpc_call *call, struct stats_share *share, int worker)
{
	const struct stats_args *a = call->args;
	unsigned int port;

	for (port = 0; port < link_num_ports(engine_link(call->e)); port++)
		if (((a->present & STATS_PORT) == 0 || a->port == port) &&
			add_port(call, &share->ports, port, worker) != 0)
			return -ENOMEM;
	share->rc = json_counters(call, COUNTERS_RC, -1, worker);
	share->live = json_counters(call, COUNTERS_LIVE, -1, worker);
	share->cm = json_counters(call, COUNTERS_CM, -1, worker);
	share->present = SHARE_PORTS;
	return 0;
}

static int
add_workers(struct rpc_call *call)
{
	struct stats_reply *reply = call->reply;
	struct worker_stats *row;
	unsigned int w;

	reply->present |= REPLY_WORKERS;
	for (w = 0; w < engine_workers(call->e); w++) {
		row = ADD(call, &reply->workers, struct worker_stats);
		if (row == NULL)
			return -ENOMEM;
		row->worker = w;
		engine_worker_info(call->e, w, &row->info);
		if (fill_stats_share(call, &row->share, (int)w) != 0)
			return -ENOMEM;
	}
	return 0;
}

static int
qp_stats(struct rpc_call *call)
{
	const struct stats_args *a = call->args;
	struct stats_reply *reply = call->reply;
	struct rc_qp_info info;
	int rc = engine_qp_query(call->e, a->qp_num, &info, &call->err);

	if (rc != 0)
		return rc;
	reply->present = REPLY_QP;
	reply->qp_num = a->qp_num;
	reply->share.rc = json_rc_counters(call, &info.counters, a->nonzero);
	return 0;
}

static int
stats_get(struct rpc_call *call)
{
	const struct stats_args *a = call->args;
	struct stats_reply *reply = call->reply;
	bool one = (a->present & STATS_WORKER) != 0;

	if ((a->present & STATS_QP) != 0)
		return qp_stats(call);
	if ((a->present & STATS_PORT) != 0 && ctl_check_port(call, a->port) != 0)
		return -EINVAL;
	if (one && a->worker >= engine_workers(call->e))
		return error_set(&call->err, EINVAL, "worker: got %u, there are %u, counted from 0",
			a->worker, engine_workers(call->e));
	if (fill_stats_share(call, &reply->share, one ? (int)a->worker : -1) != 0)
		return -ENOMEM;
	if (!one && (a->present & STATS_PORT) == 0)
		reply->clients = json_counters(call, COUNTERS_CLIENTS, -1, -1);
	return a->per_worker ? add_workers(call) : 0;
}

/* --- what the counters mean --- */

struct meaning {
	const char *name;
	const char *help;
};

static const struct table_row meaning_rows[] = {
	ROW(struct meaning, name, TABLE_STRING),
	ROW(struct meaning, help, TABLE_STRING),
	ROW_END,
};

struct meanings_reply {
	struct table_list ports;
	struct table_list served;
	struct table_list dropped;
	struct table_list rc;
	struct table_list mad;
	struct table_list sa;
	struct table_list sma;
	struct table_list live;
	struct table_list cm;
	struct table_list clients;
	struct table_list services;
};
#define MEANINGS(field) ROW_LIST(struct meanings_reply, field, struct meaning, meaning_rows)

static const struct table_row stats_describe_results[] = { MEANINGS(ports), MEANINGS(served),
	MEANINGS(dropped), MEANINGS(rc), MEANINGS(mad), MEANINGS(sa), MEANINGS(sma), MEANINGS(live),
	MEANINGS(cm), MEANINGS(clients), MEANINGS(services), ROW_END };

struct meaning_sink {
	struct rpc_call *call;
	struct table_list *list;
};

static void
add_meaning(void *arg, const char *name, const char *help, uint64_t value)
{
	struct meaning_sink *s = arg;
	struct meaning *row = ADD(s->call, s->list, struct meaning);

	(void)value;
	if (row != NULL)
		*row = (struct meaning){ arena_printf(&s->call->arena, "%s", name),
			arena_printf(&s->call->arena, "%s", help) };
}

#define TO(field) (&(struct meaning_sink){ call, &reply->field })

static int
stats_describe(struct rpc_call *call)
{
	struct meanings_reply *reply = call->reply;

	counters_port(NULL, add_meaning, TO(ports));
	counters_verdicts(NULL, VERDICT_SERVED, add_meaning, TO(served));
	counters_verdicts(NULL, VERDICT_DROPPED, add_meaning, TO(dropped));
	counters_rc(NULL, add_meaning, TO(rc));
	counters_mad(NULL, add_meaning, TO(mad));
	counters_sa(NULL, add_meaning, TO(sa));
	counters_sma(NULL, add_meaning, TO(sma));
	counters_live(NULL, add_meaning, TO(live));
	counters_cm(NULL, add_meaning, TO(cm));
	counters_clients(NULL, add_meaning, TO(clients));
	counters_svc(NULL, add_meaning, TO(services));
	return 0;
}

/* --- metrics --- */

struct metrics_args {
	bool qp;
};

static const struct table_row metrics_params[] = {
	ROW(struct metrics_args, qp, TABLE_BOOL,
		"those of each of the first 1000 queue pairs, too"),
	ROW_END,
};

struct metrics_reply {
	const char *text;
};

static const struct table_row metrics_results[] = {
	ROW(struct metrics_reply, text, TABLE_STRING, "in Prometheus' format"),
	ROW_END,
};

static int
stats_metrics(struct rpc_call *call)
{
	const struct metrics_args *a = call->args;
	struct metrics_reply *reply = call->reply;
	char *text = metrics_text(call->e, a->qp);

	if (text != NULL)
		reply->text = arena_printf(&call->arena, "%s", text);
	free(text);
	return reply->text != NULL ? 0 : -ENOMEM;
}

const struct rpc_method methods_stats[] = {
	{ "stats_get", stats_get, stats_params, sizeof(struct stats_args),
		"Counters since start. Every packet received ends in exactly one of served or dropped, so these sum to rx_packets.",
		"polca-ctl stats get --nonzero", RESULTS(stats_get_results, struct stats_reply),
		.reads = true },
	{ "stats_describe", stats_describe, params_none, 0,
		"What each counter of stats_get, sa_stats and service_list means.",
		"polca-ctl stats describe", RESULTS(stats_describe_results, struct meanings_reply),
		.reads = true },
	{ "stats_metrics", stats_metrics, metrics_params, sizeof(struct metrics_args),
		"All counters as metrics for Prometheus.", "polca-ctl stats metrics",
		RESULTS(metrics_results, struct metrics_reply), .reads = true },
	{ NULL },
};
