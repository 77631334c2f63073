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
		set_int(s->obj, name, value);
}

json_t *
json_rc_counters(const struct rc_counters *c, bool nonzero)
{
	struct counter_sink s = { json_object(), nonzero };

	counters_rc(c, counter_take, &s);
	return s.obj;
}

static json_t *
json_verdicts(const struct link_counters *c, int kind, bool nonzero)
{
	struct counter_sink s = { json_object(), nonzero };

	counters_verdicts(c, kind, counter_take, &s);
	return s.obj;
}

/* Subnet management of a native IB port; other ports have none. */
static void
set_sma(const struct rpc_call *call, json_t *row, unsigned int port)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = { json_object(), a->nonzero };
	struct sma_counters c = { 0 };

	engine_sma_counters(call->e, port, &c);
	counters_sma(&c, counter_take, &s);
	set(row, "sma", s.obj);
}

static json_t *
json_live(const struct rpc_call *call, int worker)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = { json_object(), a->nonzero };
	struct live_counters c = { 0 };

	engine_live_counters(call->e, worker, &c);
	counters_live(&c, counter_take, &s);
	return s.obj;
}

static json_t *
json_cm(const struct rpc_call *call, int worker)
{
	const struct stats_args *a = call->args;
	struct counter_sink s = { json_object(), a->nonzero };
	struct cm_counters c = { 0 };

	engine_cm_counters(call->e, worker, &c);
	counters_cm(&c, counter_take, &s);
	return s.obj;
}

static json_t *
port_row(const struct rpc_call *call, unsigned int port, int worker)
{
	const struct stats_args *a = call->args;
	struct link_counters c = { 0 };
	struct counter_sink s = { json_object(), a->nonzero };

	engine_port_counters(call->e, port, worker, &c);
	set_int(s.obj, "port", port);
	set(s.obj, "name", json_string(link_port_attr(engine_link(call->e), port)->name));
	counters_port(&c, counter_take, &s);
	set(s.obj, "served", json_verdicts(&c, VERDICT_SERVED, a->nonzero));
	set(s.obj, "dropped", json_verdicts(&c, VERDICT_DROPPED, a->nonzero));
	/* worker 0 does it all */
	if (worker <= 0 && engine_sma_managed(call->e, port))
		set_sma(call, s.obj, port);
	return s.obj;
}

/* Ports and transport, as one worker (or all: -1) counted them. */
static void
set_share(const struct rpc_call *call, json_t *obj, int worker)
{
	const struct stats_args *a = call->args;
	struct rc_counters rc = { 0 };
	json_t *ports = json_array();
	unsigned int port;

	for (port = 0; port < link_num_ports(engine_link(call->e)); port++)
		if ((a->present & STATS_PORT) == 0 || a->port == port)
			json_array_append_new(ports, port_row(call, port, worker));
	set(obj, "ports", ports);
	engine_rc_counters(call->e, worker, &rc);
	set(obj, "rc", json_rc_counters(&rc, a->nonzero));
	set(obj, "live", json_live(call, worker));
	set(obj, "cm", json_cm(call, worker));
}

static json_t *
per_worker(const struct rpc_call *call)
{
	struct worker_info info;
	json_t *row, *rows = json_array();
	unsigned int w;

	for (w = 0; w < engine_workers(call->e); w++) {
		engine_worker_info(call->e, w, &info);
		row = json_object();
		set_int(row, "worker", w);
		set_int(row, "lcore", info.lcore);
		set_int(row, "handoff_out", info.handoff_out);
		set_int(row, "handoff_in", info.handoff_in);
		set_int(row, "handoff_full", info.handoff_full);
		set_int(row, "handoff_again", info.handoff_again);
		set_int(row, "rehomed_out", info.rehomed_out);
		set_int(row, "rehomed_in", info.rehomed_in);
		set_share(call, row, (int)w);
		json_array_append_new(rows, row);
	}
	return rows;
}

static int
qp_stats(struct rpc_call *call)
{
	const struct stats_args *a = call->args;
	struct rc_qp_info info;
	int rc = engine_qp_query(call->e, a->qp_num, &info, &call->err);

	if (rc != 0)
		return rc;
	set_int(call->result, "qp_num", a->qp_num);
	set(call->result, "rc", json_rc_counters(&info.counters, a->nonzero));
	return 0;
}

static int
stats_get(struct rpc_call *call)
{
	const struct stats_args *a = call->args;
	bool one = (a->present & STATS_WORKER) != 0;

	if ((a->present & STATS_QP) != 0)
		return qp_stats(call);
	if ((a->present & STATS_PORT) != 0 && check_port(call, a->port) != 0)
		return -EINVAL;
	if (one && a->worker >= engine_workers(call->e))
		return error_set(&call->err, EINVAL, "worker: got %u, there are %u, counted from 0",
			a->worker, engine_workers(call->e));
	set_share(call, call->result, one ? (int)a->worker : -1);
	if (a->per_worker)
		set(call->result, "workers", per_worker(call));
	return 0;
}

/* --- what the counters mean --- */

static json_t *
meaning(const char *name, const char *help)
{
	json_t *row = json_object();

	set(row, "name", json_string(name));
	set(row, "help", json_string(help));
	return row;
}

static void
add_meaning(void *list, const char *name, const char *help)
{
	json_array_append_new(list, meaning(name, help));
}

static int
stats_describe(struct rpc_call *call)
{
	json_t *served = json_array(), *dropped = json_array(), *rc = json_array();
	json_t *mad = json_array(), *sa = json_array();
	json_t *sma = json_array(), *live = json_array();
	json_t *cm = json_array(), *services = json_array();
	unsigned int i;

	for (i = 0; i < VERDICT_COUNT; i++)
		json_array_append_new(
			verdict_infos[i].kind == VERDICT_SERVED ? served : dropped,
			meaning(verdict_infos[i].name, verdict_infos[i].help));
	for (i = 0; i < RC_COUNTER_COUNT; i++)
		json_array_append_new(rc,
			meaning(rc_counter_infos[i].name, rc_counter_infos[i].help));
	for (i = 0; i < MAD_COUNTER_COUNT; i++)
		json_array_append_new(mad,
			meaning(mad_counter_infos[i].name, mad_counter_infos[i].help));
	for (i = 0; i < SA_COUNTER_COUNT; i++)
		json_array_append_new(sa,
			meaning(sa_counter_infos[i].name, sa_counter_infos[i].help));
	for (i = 0; i < SMA_COUNTER_COUNT; i++)
		json_array_append_new(sma,
			meaning(sma_counter_infos[i].name, sma_counter_infos[i].help));
	for (i = 0; i < LIVE_COUNTER_COUNT; i++)
		json_array_append_new(live,
			meaning(live_counter_infos[i].name, live_counter_infos[i].help));
	counters_cm_help(add_meaning, cm);
	for (i = 0; i < SVC_COUNTER_COUNT; i++)
		json_array_append_new(services,
			meaning(svc_counter_infos[i].name, svc_counter_infos[i].help));
	set(call->result, "served", served);
	set(call->result, "dropped", dropped);
	set(call->result, "rc", rc);
	set(call->result, "mad", mad);
	set(call->result, "sa", sa);
	set(call->result, "sma", sma);
	set(call->result, "live", live);
	set(call->result, "cm", cm);
	set(call->result, "services", services);
	return 0;
}

const struct rpc_method methods_stats[] = {
	{ "stats_get", stats_get, stats_params, sizeof(struct stats_args),
		"Counters since start. Every packet received ends in exactly one of served or dropped, so these sum to rx_packets.",
		"ports: list of port, name, rx_packets, rx_bytes, tx_packets, tx_bytes, tx_no_mbuf, tx_full, tx_unresolved, tx_port_state, tx_flooded and lid_moved (native InfiniBand), port_unreachable, served and dropped (objects: reason to count); of a native InfiniBand port also sma (object of subnet management's counters)\n"
		"rc: object of the transport's counters\n"
		"live: object of the liveness agent's counters\n"
		"cm: object of the communication manager's counters: received_... and sent_... by message, rej_received_... and rej_sent_... by reason, where they are not 0\n"
		"workers: with per_worker: list of worker, lcore, handoff_out, handoff_in, handoff_full, handoff_again, rehomed_out, rehomed_in (as worker_list), ports, rc, live, cm\n"
		"qp_num: with qp_num: the queue pair; rc is its counters, and ports is absent",
		"polca-ctl stats get --nonzero" },
	{ "stats_describe", stats_describe, params_none, 0,
		"What each counter of stats_get, sa_stats and service_list means.",
		"served, dropped, rc, mad, sa, sma, live, cm, services: lists of name, help",
		"polca-ctl stats describe" },
	{ NULL },
};
