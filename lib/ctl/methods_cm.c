/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Connections as they are, and their ends. */

#include "ctl/cm_args.h"

#define CONNECTION_HELP "the connection: number of cm_connect or cm_list"

static const struct table_row connection_params[] = {
	NUMBER_ROW("connection", CONNECTION_HELP, .flags = TABLE_REQUIRED, .min = 1),
	ROW_END,
};

/* --- what there is --- */

/* From TIMEWAIT on. */
static bool
has_ended(const struct cm_info *info)
{
	return info->state == CM_STATE_TIMEWAIT || info->state == CM_STATE_IDLE;
}

struct connection_row {
	uint32_t present;
	struct cm_info info;
	struct service_id_info id;
	const char *state;
	const char *side;
	const char *service;
	const char *peer;
	const char *end;
	const char *reason_name;
};
#define CONNECTION_ENDED     0x1
#define CONNECTION_REJECTED  0x2
#define CONNECTION_RDMA      0x4
#define CONNECTION_ALTERNATE 0x8

#define CONN(field, t, ...)       ROW(struct connection_row, field, t, __VA_ARGS__)
#define INFO(name, field, t, ...) ROW_NAMED(struct connection_row, name, info.field, t, __VA_ARGS__)

static const struct table_row connection_rows[] = {
	INFO("connection", id, TABLE_UINT),
	CONN(state, TABLE_STRING),
	CONN(side, TABLE_STRING, "ACTIVE: our cm_connect; PASSIVE"),
	SERVICE_NAME_ROW(struct connection_row),
	CONN(peer, TABLE_STRING, "its address, or lid:N"),
	ROW_INCLUDE(struct connection_row, id, rows_service_id),
	INFO("qp_num", qpn, TABLE_UINT),
	INFO("remote_qpn", remote_qpn, TABLE_UINT),
	INFO("age_us", age, TABLE_UINT, "since the first message"),
	CONN(end, TABLE_STRING,
		"of one that has ended: DISCONNECTED, REJECTED, REFUSED by us, TIMEOUT, STALE, QP_ERROR, CANCELLED",
		.bit = CONNECTION_ENDED),
	INFO("reason", reason, TABLE_UINT, .bit = CONNECTION_REJECTED),
	CONN(reason_name, TABLE_STRING, .bit = CONNECTION_REJECTED),
	ROW_END,
};

static const struct table_row cm_list_results[] = {
	PAGE_ROWS("connections", struct connection_row, connection_rows),
	ROW_END,
};

static void
fill_connection(struct rpc_call *call, struct connection_row *row)
{
	const struct cm_info *info = &row->info;

	row->id = service_id_info(info->service_id);
	row->state = cm_state_name(info->state);
	row->side = info->active ? "ACTIVE" : "PASSIVE";
	row->service = engine_cm_service_name(call->e, info->id);
	row->peer = cm_peer_text(call, info);
	row->end = cm_end_word(info->end);
	row->reason_name = cm_reason_name(info->reason);
	if (!has_ended(info))
		return;
	row->present |= CONNECTION_ENDED;
	if (info->end == CM_END_REJECTED || info->end == CM_END_REFUSED)
		row->present |= CONNECTION_REJECTED;
}

static int
next_connection(struct rpc_call *call, uint64_t *cursor, void *item)
{
	struct connection_row *row = item;

	if (!engine_cm_next(call->e, cursor, &row->info))
		return 0;
	fill_connection(call, row);
	return 1;
}

#define PATH(name, field, ...) ROW_NAMED(struct cm_path, name, field, TABLE_UINT, __VA_ARGS__)

static const struct table_row path_rows[] = {
	ROW_INCLUDE(struct cm_path, av, rows_ah),
	PATH("sgid_index", sgid_index),
	PATH("pkey", pkey, .digits = 4),
	PATH("path_mtu", mtu),
	PATH("rate", rate, "code"),
	PATH("packet_life", packet_life, "code"),
	ROW_END,
};

static const struct table_row rdma_rows[] = {
	ROW(struct cm_rdma, src, TABLE_GID),
	ROW(struct cm_rdma, src_port, TABLE_UINT),
	ROW(struct cm_rdma, dst, TABLE_GID),
	ROW_END,
};

static const struct table_row cm_show_results[] = {
	{ .name = "", .type = TABLE_INCLUDE, .fields = connection_rows },
	INFO("remote_id", remote_id, TABLE_UINT, "how the peer calls it"),
	INFO("remote_ca_guid", remote_ca_guid, TABLE_UINT, "who the peer is", .digits = 16),
	INFO("tid", tid, TABLE_UINT, "the transaction it was made in", .digits = 16),
	INFO("responder_resources", responder_resources, TABLE_UINT,
		"Reads and Atomics under way that the peer may have with us, as agreed"),
	INFO("initiator_depth", initiator_depth, TABLE_UINT, "and we with it"),
	INFO("rdma_cm", rdma, TABLE_OBJECT,
		"where RDMA-CM's header came or went, as its sender says", .fields = rdma_rows,
		.bit = CONNECTION_RDMA),
	INFO("path", path, TABLE_OBJECT, .fields = path_rows),
	INFO("alternate", alternate, TABLE_OBJECT, "the alternate path, if there is one",
		.fields = path_rows, .bit = CONNECTION_ALTERNATE),
	ROW_END,
};

static int
cm_show(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	struct connection_row *reply = call->reply;
	int rc = engine_cm_get(call->e, a->number, &reply->info, &call->err);

	if (rc != 0)
		return rc;
	fill_connection(call, reply);
	if (reply->info.rdma.present)
		reply->present |= CONNECTION_RDMA;
	if (reply->info.alternate.present)
		reply->present |= CONNECTION_ALTERNATE;
	return 0;
}

/* --- ends and other paths --- */

struct alternate_args {
	struct ah_args ah; /* first: its bits stand there */
	uint32_t connection;

	/* where we are */
	struct engine_ah to;
	bool proposed;
	uint64_t since;
};
#define AGREE_MS 1000 /* that the reply waits for the peer */
#define AH       offsetof(struct alternate_args, ah)

static const struct table_row alternate_params[] = {
	ROW(struct alternate_args, connection, TABLE_UINT, CONNECTION_HELP, .flags = TABLE_REQUIRED,
		.min = 1),
	AH_ROWS(AH),
	AH_ROW_NAMED(AH, "local_port", port, TABLE_UINT, "local port that the path begins at",
		.bit = AH_PORT, .max = LINK_PORTS_MAX - 1, .def_text = "the connection's"),
	ROW_END,
};

/* The port that the connection's queue pair uses now. */
static int
connection_port(struct rpc_call *call, const struct cm_info *info, uint16_t *port)
{
	struct rc_qp_info qp;
	int rc = engine_qp_query(call->e, info->qpn, &qp, &call->err);

	*port = qp.attr.port;
	return rc;
}

static int
propose_alternate(struct rpc_call *call, struct alternate_args *a)
{
	uint16_t port = a->ah.port;
	struct cm_info info;
	int rc = engine_cm_get(call->e, a->connection, &info, &call->err);

	if (rc == 0 && (a->ah.present & AH_PORT) == 0)
		rc = connection_port(call, &info, &port);
	if (rc == 0)
		rc = make_ah(call, &a->ah, port, &a->to);
	if (rc != 0)
		return rc;
	if (!hop_known(call, &a->to) && !waited(call, NEXT_HOP_WAIT_MS))
		return RPC_WAIT;
	a->proposed = true;
	a->since = call->now;
	return engine_cm_load_alternate(call->e, a->connection, &a->to, &call->err);
}

/* Is the connection's alternate path the one that was proposed? */
static bool
alternate_agreed(const struct cm_info *info, const struct engine_ah *ah)
{
	return info->alternate.present && gid_equal(&info->alternate.av.dgid, &ah->dgid) &&
		info->alternate.av.dlid == ah->dlid && info->alternate.sgid_index == ah->sgid_index;
}

struct alternate_reply {
	bool agreed;
	struct table_list warnings;
};

static const struct table_row cm_load_alternate_results[] = {
	ROW(struct alternate_reply, agreed, TABLE_BOOL,
		"is it the connection's alternate path now (cm_show)?"),
	WARNINGS_ROW(struct alternate_reply),
	ROW_END,
};

static int
cm_load_alternate_method(struct rpc_call *call)
{
	struct alternate_args *a = call->args;
	struct alternate_reply *reply = call->reply;
	struct cm_info info;
	bool ok;
	int rc = a->proposed ? 0 : propose_alternate(call, a);

	if (rc == 0)
		rc = engine_cm_get(call->e, a->connection, &info, &call->err);
	if (rc != 0)
		return rc;
	ok = alternate_agreed(&info, &a->to);
	call->until = a->since + AGREE_MS;
	if (!ok && call->now < call->until)
		return RPC_WAIT;
	reply->agreed = ok;
	if (!ok)
		add_warning(call, &reply->warnings,
			"the peer has not agreed: it does not want that path, uses it already, or has not answered yet");
	return 0;
}

const struct rpc_method methods_cm[] = {
	{ "cm_list", page_list, params_page, sizeof(struct page_args),
		"List connections, those that are being made and those that rest in TIMEWAIT too.",
		"polca-ctl cm list", PAGES(cm_list_results, next_connection) },
	{ "cm_show", cm_show, connection_params, sizeof(struct number_args),
		"Everything about one connection.", "polca-ctl cm show 4711",
		RESULTS(cm_show_results, struct connection_row), .reads = true },
	{ "cm_disconnect", number_method, connection_params, sizeof(struct number_args),
		"End a connection, or the attempt to make one. The reply comes at once: the peer is asked meanwhile, and the queue pair, in ERR now, is destroyed when TIMEWAIT is over.",
		"polca-ctl cm disconnect 4711", .verb = engine_cm_disconnect },
	{ "cm_load_alternate", cm_load_alternate_method, alternate_params,
		sizeof(struct alternate_args),
		"Propose an alternate path to the peer, and wait up to a second for its answer. Once it agrees both sides are armed; the event PATH_MIG tells when the path is used.",
		"polca-ctl cm alternate 4711 10.0.1.2 --local-port 1",
		RESULTS(cm_load_alternate_results, struct alternate_reply) },
	{ NULL },
};
