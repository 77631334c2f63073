/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Connections as they are, and their ends. */

#include <errno.h>

#include "ctl/cm_args.h"

#define CONNECTION_HELP "the connection: number of cm_connect or cm_list"

static const struct table_row connection_params[] = {
	{ "connection", TABLE_UINT, TABLE_REQUIRED, offsetof(struct number_args, number),
		sizeof(uint32_t), .min = 1, .help = CONNECTION_HELP },
	ROW_END,
};

/* --- what there is --- */

/* From TIMEWAIT on. */
static bool
has_ended(const struct cm_info *info)
{
	return info->state == CM_STATE_TIMEWAIT || info->state == CM_STATE_IDLE;
}

static void
set_end(json_t *row, const struct cm_info *info)
{
	if (!has_ended(info))
		return;
	set(row, "end", json_string(cm_end_word(info->end)));
	if (info->end != CM_END_REJECTED && info->end != CM_END_REFUSED)
		return;
	set_int(row, "reason", info->reason);
	set(row, "reason_name", json_string(cm_reason_name(info->reason)));
}

static void
set_head(struct rpc_call *call, json_t *row, const struct cm_info *info)
{
	set_int(row, "connection", info->id);
	set(row, "state", json_string(cm_state_name(info->state)));
	set(row, "side", json_string(info->active ? "ACTIVE" : "PASSIVE"));
	set_service(row, engine_cm_service_name(call->e, info->id));
	set(row, "peer", json_cm_peer(info));
	set_service_id(row, info->service_id);
	set_int(row, "qp_num", info->qpn);
	set_int(row, "remote_qpn", info->remote_qpn);
	set_int(row, "age_us", info->age);
	set_end(row, info);
}

static int
cm_list(struct rpc_call *call)
{
	const struct page_args *a = call->args;
	uint64_t cursor = a->cursor;
	json_t *row, *rows = json_array();
	struct cm_info info;

	while (json_array_size(rows) < a->max) {
		if (!engine_cm_next(call->e, &cursor, &info)) {
			set_page(call, "connections", rows, false, 0);
			return 0;
		}
		row = json_object();
		set_head(call, row, &info);
		json_array_append_new(rows, row);
	}
	set_page(call, "connections", rows, true, cursor);
	return 0;
}

static json_t *
json_path(const struct cm_path *path)
{
	json_t *v = json_ah(&path->av);

	set_int(v, "sgid_index", path->sgid_index);
	set(v, "pkey", json_sprintf("0x%04x", path->pkey));
	set_int(v, "path_mtu", path->mtu);
	set_int(v, "rate", path->rate);
	set_int(v, "packet_life", path->packet_life);
	return v;
}

static void
set_rdma(json_t *row, const struct cm_rdma *rdma)
{
	json_t *v = json_object();

	set(v, "src", json_gid(&rdma->src));
	set_int(v, "src_port", rdma->src_port);
	set(v, "dst", json_gid(&rdma->dst));
	set(row, "rdma_cm", v);
}

static int
cm_show(struct rpc_call *call)
{
	const struct number_args *a = call->args;
	json_t *row = call->result;
	struct cm_info info;
	int rc = engine_cm_get(call->e, a->number, &info, &call->err);

	if (rc != 0)
		return rc;
	set_head(call, row, &info);
	set_int(row, "remote_id", info.remote_id);
	set(row, "remote_ca_guid",
		json_sprintf("0x%016llx", (unsigned long long)info.remote_ca_guid));
	set(row, "tid", json_sprintf("0x%016llx", (unsigned long long)info.tid));
	set_int(row, "responder_resources", info.responder_resources);
	set_int(row, "initiator_depth", info.initiator_depth);
	if (info.rdma.present)
		set_rdma(row, &info.rdma);
	set(row, "path", json_path(&info.path));
	if (info.alternate.present)
		set(row, "alternate", json_path(&info.alternate));
	return 0;
}

/* --- ends and other paths --- */

static int
cm_disconnect_method(struct rpc_call *call)
{
	const struct number_args *a = call->args;

	return engine_cm_disconnect(call->e, a->number, &call->err);
}

struct alternate_args {
	struct ah_args ah; /* first: its bits stand there */
	uint32_t connection;

	/* where we are */
	struct engine_ah to;
	bool proposed;
	uint64_t since;
};
#define AGREE_MS  1000 /* that the reply waits for the peer */
#define AH offsetof(struct alternate_args, ah)

static const struct table_row alternate_params[] = {
	ROW(struct alternate_args, connection, TABLE_UINT, .flags = TABLE_REQUIRED, .min = 1,
		.help = CONNECTION_HELP),
	AH_ROWS(AH),
	AH_ROW_NAMED(AH, "local_port", port, TABLE_UINT, .bit = AH_PORT, .max = LINK_PORTS_MAX - 1,
		.def_text = "the connection's", .help = "local port that the path begins at"),
	ROW_END,
};

/* The port that the connection's queue pair uses now. */
static int
port_of(struct rpc_call *call, const struct cm_info *info, uint16_t *port)
{
	struct rc_qp_info qp;
	int rc = engine_qp_query(call->e, info->qpn, &qp, &call->err);

	*port = qp.attr.port;
	return rc;
}

static int
propose(struct rpc_call *call, struct alternate_args *a)
{
	uint16_t port = a->ah.port;
	struct cm_info info;
	int rc = engine_cm_get(call->e, a->connection, &info, &call->err);

	if (rc == 0 && (a->ah.present & AH_PORT) == 0)
		rc = port_of(call, &info, &port);
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
agreed(const struct cm_info *info, const struct engine_ah *ah)
{
	return info->alternate.present && gid_equal(&info->alternate.av.dgid, &ah->dgid) &&
		info->alternate.av.dlid == ah->dlid &&
		info->alternate.sgid_index == ah->sgid_index;
}

static int
cm_load_alternate_method(struct rpc_call *call)
{
	struct alternate_args *a = call->args;
	struct cm_info info;
	bool ok;
	int rc = a->proposed ? 0 : propose(call, a);

	if (rc == 0)
		rc = engine_cm_get(call->e, a->connection, &info, &call->err);
	if (rc != 0)
		return rc;
	ok = agreed(&info, &a->to);
	if (!ok && call->now - a->since < AGREE_MS)
		return RPC_WAIT;
	set(call->result, "agreed", json_boolean(ok));
	if (!ok)
		set(call->result, "warnings",
			json_pack("[s]", "the peer has not agreed: it does not want that path, uses it already, or has not answered yet"));
	return 0;
}

#define HEAD_RESULT                                                                                \
	"connection, state, side (ACTIVE: our cm_connect; PASSIVE), service (the name of who has it; null: a caller's own), peer (its address, or lid:N), service_id, port_space and port (where it is one of rdma_cm's), qp_num, remote_qpn, age_us (since the first message), and of one that has ended end (DISCONNECTED, REJECTED, REFUSED by us, TIMEOUT, STALE, QP_ERROR, CANCELLED), reason and reason_name"

const struct rpc_method methods_cm[] = {
	{ "cm_list", cm_list, params_page, sizeof(struct page_args),
		"List connections, those that are being made and those that rest in TIMEWAIT too.",
		"connections: list of " HEAD_RESULT PAGE_RESULT, "polca-ctl cm list" },
	{ "cm_show", cm_show, connection_params, sizeof(struct number_args),
		"Everything about one connection.",
		"(members): " HEAD_RESULT "\n"
		"remote_id, remote_ca_guid, tid: how the peer calls it, who the peer is, and the transaction it was made in\n"
		"responder_resources, initiator_depth: Reads and Atomics under way that the peer may have with us, and we with it, as agreed\n"
		"rdma_cm: where RDMA-CM's header came or went: object of src, src_port, dst, as its sender says\n"
		"path: object of dgid, sgid, traffic_class, flow_label, hop_limit, sl, dlid (native InfiniBand), sgid_index, pkey, path_mtu, rate and packet_life (codes)\n"
		"alternate: the same of the alternate path, if there is one",
		"polca-ctl cm show 4711" },
	{ "cm_disconnect", cm_disconnect_method, connection_params, sizeof(struct number_args),
		"End a connection, or the attempt to make one. The reply comes at once: the peer is asked meanwhile, and the queue pair, in ERR now, is destroyed when TIMEWAIT is over.",
		"", "polca-ctl cm disconnect 4711" },
	{ "cm_load_alternate", cm_load_alternate_method, alternate_params,
		sizeof(struct alternate_args),
		"Propose an alternate path to the peer, and wait up to a second for its answer. Once it agrees both sides are armed; the event PATH_MIG tells when the path is used.",
		"agreed: is it the connection's alternate path now (cm_show)?\n"
		"warnings: list of text, when it is not", "polca-ctl cm alternate 4711 10.0.1.2 --local-port 1" },
	{ NULL },
};
