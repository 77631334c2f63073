/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>

#include "ctl/counters.h"
#include "ctl/methods.h"
#include "engine/verbs_mad.h"

struct stats_args {
	uint32_t present;
	uint32_t port;
	uint32_t worker;
	uint32_t qp_num;
	bool per_worker;
	bool nonzero;
};
#define STATS_PORT   0x1
#define STATS_WORKER 0x2
#define STATS_QP     0x4

static const struct table_row stats_params[] = {
	ROW(struct stats_args, port, TABLE_UINT, .bit = STATS_PORT, .max = LINK_PORTS_MAX - 1,
		.def_text = "all", .help = "this port only"),
	ROW(struct stats_args, worker, TABLE_UINT, .bit = STATS_WORKER, .max = RC_WORKERS_MAX - 1,
		.def_text = "the sum of all", .help = "what this worker counted"),
	ROW(struct stats_args, qp_num, TABLE_UINT, .bit = STATS_QP, .max = 0xffffff,
		.help = "counters of this queue pair instead"),
	ROW(struct stats_args, per_worker, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "each worker's share too, as workers"),
	ROW(struct stats_args, nonzero, TABLE_BOOL, .flags = TABLE_DEFAULT,
		.help = "leave out counters that are 0"),
	ROW_END,
};

void
counter_take(void *arg, const char *name, uint64_t value)
{
	struct counter_sink *s = arg;

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
	json_t *sma;
};

static const struct table_row port_stats_rows[] = {
	ROW(struct port_stats, port, TABLE_UINT),
	ROW(struct port_stats, name, TABLE_STRING),
	ROW(struct port_stats, counters, TABLE_MEMBERS,
		.help = "rx_packets, rx_bytes, tx_packets, tx_bytes, tx_no_mbuf, tx_full, tx_unresolved, tx_port_state, tx_flooded and lid_moved (native InfiniBand), port_unreachable"),
	ROW(struct port_stats, served, TABLE_COUNTS, .help = "reason to count"),
	ROW(struct port_stats, dropped, TABLE_COUNTS, .help = "reason to count"),
	ROW(struct port_stats, sma, TABLE_COUNTS, .flags = TABLE_OPTIONAL,
		.help = "of a native InfiniBand port: subnet management's counters"),
	ROW_END,
};

static json_t *
json_verdicts(struct rpc_call *call, const struct link_counters *c, int kind)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = counter_sink(call, a->nonzero);

	counters_verdicts(c, kind, counter_take, &s);
	return s.obj;
}

/* Subnet management of a native IB port; other ports have none. */
static json_t *
json_sma(struct rpc_call *call, unsigned int port)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = counter_sink(call, a->nonzero);
	struct sma_counters c = { 0 };

	engine_sma_counters(call->e, port, &c);
	counters_sma(&c, counter_take, &s);
	return s.obj;
}

static int
add_port(struct rpc_call *call, struct table_list *ports, unsigned int port, int worker)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = counter_sink(call, a->nonzero);
	struct port_stats *row = ADD(call, ports, struct port_stats);
	struct link_counters c = { 0 };

	if (row == NULL)
		return -ENOMEM;
	engine_port_counters(call->e, port, worker, &c);
	counters_port(&c, counter_take, &s);
	*row = (struct port_stats){
		.port = port,
		.name = link_port_attr(engine_link(call->e), port)->name,
		.counters = s.obj,
		.served = json_verdicts(call, &c, VERDICT_SERVED),
		.dropped = json_verdicts(call, &c, VERDICT_DROPPED),
	};
	/* worker 0 does it all */
	if (worker <= 0 && engine_sma_managed(call->e, port))
		row->sma = json_sma(call, port);
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
	ROW(struct stats_share, rc, TABLE_COUNTS, .help = "the transport's counters"),
	ROW(struct stats_share, live, TABLE_COUNTS, .flags = TABLE_OPTIONAL,
		.help = "the liveness agent's counters"),
	ROW(struct stats_share, cm, TABLE_COUNTS, .flags = TABLE_OPTIONAL,
		.help = "the communication manager's counters: received_... and sent_... by message, rej_received_... and rej_sent_... by reason, where they are not 0"),
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
	struct table_list workers;
};
#define REPLY_QP      0x1
#define REPLY_WORKERS 0x2

static const struct table_row stats_get_results[] = {
	ROW(struct stats_reply, qp_num, TABLE_UINT, .bit = REPLY_QP,
		.help = "with qp_num: the queue pair; rc is its counters, and the others are absent"),
	ROW_INCLUDE(struct stats_reply, share, share_rows),
	ROW_LIST(struct stats_reply, workers, struct worker_stats, worker_stats_rows,
		.bit = REPLY_WORKERS,
		.help = "with per_worker, handoff_... and rehomed_... as worker_list"),
	ROW_END,
};

static int
fill_stats_share(struct rpc_call *call, struct stats_share *share, int worker)
{
	const struct stats_args *a = call->args;
	struct counter_sink live = counter_sink(call, a->nonzero);
	struct counter_sink cm = counter_sink(call, a->nonzero);
	struct rc_counters rc = { 0 };
	struct live_counters l = { 0 };
	struct cm_counters c = { 0 };
	unsigned int port;

	for (port = 0; port < link_num_ports(engine_link(call->e)); port++)
		if (((a->present & STATS_PORT) == 0 || a->port == port) &&
			add_port(call, &share->ports, port, worker) != 0)
			return -ENOMEM;
	engine_rc_counters(call->e, worker, &rc);
	engine_live_counters(call->e, worker, &l);
	engine_cm_counters(call->e, worker, &c);
	counters_live(&l, counter_take, &live);
	counters_cm(&c, counter_take, &cm);
	share->rc = json_rc_counters(call, &rc, a->nonzero);
	share->live = live.obj;
	share->cm = cm.obj;
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
	struct table_list served;
	struct table_list dropped;
	struct table_list rc;
	struct table_list mad;
	struct table_list sa;
	struct table_list sma;
	struct table_list live;
	struct table_list cm;
	struct table_list services;
};
#define MEANINGS(field) ROW_LIST(struct meanings_reply, field, struct meaning, meaning_rows)

static const struct table_row stats_describe_results[] = { MEANINGS(served), MEANINGS(dropped),
	MEANINGS(rc), MEANINGS(mad), MEANINGS(sa), MEANINGS(sma), MEANINGS(live), MEANINGS(cm),
	MEANINGS(services), ROW_END };

static void
add_meaning(struct rpc_call *call, struct table_list *list, const char *name, const char *help)
{
	struct meaning *row = ADD(call, list, struct meaning);

	if (row != NULL)
		*row = (struct meaning){ name, help };
}

/* Names and helps that are composed live no longer than this call. */
static void
add_cm_meaning(void *arg, const char *name, const char *help)
{
	struct rpc_call *call = arg;
	struct meanings_reply *reply = call->reply;

	add_meaning(call, &reply->cm, arena_printf(&call->arena, "%s", name),
		arena_printf(&call->arena, "%s", help));
}

#define ADD_MEANINGS(list, infos, count)                                                           \
	for (i = 0; i < (count); i++)                                                              \
	add_meaning(call, list, (infos)[i].name, (infos)[i].help)

static int
stats_describe(struct rpc_call *call)
{
	struct meanings_reply *reply = call->reply;
	unsigned int i;

	ADD_MEANINGS(verdict_infos[i].kind == VERDICT_SERVED ? &reply->served : &reply->dropped,
		verdict_infos, VERDICT_COUNT);
	ADD_MEANINGS(&reply->rc, rc_counter_infos, RC_COUNTER_COUNT);
	ADD_MEANINGS(&reply->mad, mad_counter_infos, MAD_COUNTER_COUNT);
	ADD_MEANINGS(&reply->sa, sa_counter_infos, SA_COUNTER_COUNT);
	ADD_MEANINGS(&reply->sma, sma_counter_infos, SMA_COUNTER_COUNT);
	ADD_MEANINGS(&reply->live, live_counter_infos, LIVE_COUNTER_COUNT);
	counters_cm_help(add_cm_meaning, call);
	ADD_MEANINGS(&reply->services, svc_counter_infos, SVC_COUNTER_COUNT);
	return 0;
}

const struct rpc_method methods_stats[] = {
	{ "stats_get", stats_get, stats_params, sizeof(struct stats_args),
		"Counters since start. Every packet received ends in exactly one of served or dropped, so these sum to rx_packets.",
		"polca-ctl stats get --nonzero", RESULTS(stats_get_results, struct stats_reply) },
	{ "stats_describe", stats_describe, params_none, 0,
		"What each counter of stats_get, sa_stats and service_list means.",
		"polca-ctl stats describe",
		RESULTS(stats_describe_results, struct meanings_reply) },
	{ NULL },
};
