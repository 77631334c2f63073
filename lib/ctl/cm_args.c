/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "ctl/cm_args.h"

/* --- service IDs (cm.md 7) --- */

const struct table_word words_port_space[] = {
	{ "TCP", CM_PS_TCP },
	{ "UDP", CM_PS_UDP },
	{ "IB", CM_PS_IB },
	{ "IPOIB", CM_PS_IPOIB },
	{ NULL, 0 },
};

int
service_id_of(struct rpc_call *call, const struct service_id_args *a, uint64_t *id)
{
	if (a->port != 0 && a->service_id != 0)
		return error_set(&call->err, EINVAL,
			"port, service_id: got both of them, allowed: one");
	*id = a->port != 0 ? cm_service_id((uint16_t)a->port_space, a->port) : a->service_id;
	return 0;
}

bool
service_id_is_rdma(uint64_t id)
{
	const struct table_word *w;

	for (w = words_port_space; w->name != NULL; w++)
		if (w->value == id >> 16)
			return true;
	return false;
}

const struct table_row rows_service_id[] = { SERVICE_ID_RESULT_ROWS(0), ROW_END };

struct service_id_info
service_id_info(uint64_t id)
{
	return (struct service_id_info){
		.present = SERVICE_ID_GIVEN | (service_id_is_rdma(id) ? SERVICE_ID_RDMA : 0),
		.port_space = (uint32_t)(id >> 16),
		.service_id = id,
		.port = (uint16_t)id,
	};
}

/* --- services --- */

/* Those that can take this side, in words and in data. */
static int
no_such_kind(struct rpc_call *call, const char *what, const char *kind, bool active)
{
	struct nearest near = nearest_to(kind);
	json_t *names = json_array();
	char list[160] = "";
	const struct svc_ops *ops;
	unsigned int i;

	for (i = 0; (ops = svc_kinds[i]) != NULL; i++) {
		if (active ? !ops->client : !ops->server)
			continue;
		json_array_append_new(names, json_string(ops->name));
		nearest_try(&near, ops->name);
	}
	if (active)
		svc_kinds_that_connect(list, sizeof(list));
	else
		svc_kinds_that_listen(list, sizeof(list));
	call->data = json_object();
	json_set(call->data, "kinds", names);
	return error_set(&call->err, EINVAL, "%s: got \"%.32s\", which %s, allowed: %s%s%s%s", what,
		kind,
		svc_kind(kind) == NULL ? "is none"
			: active       ? "only waits to be connected"
				       : "only connects",
		list, near.word != NULL ? "; did you mean " : "",
		near.word != NULL ? near.word : "", near.word != NULL ? "?" : "");
}

int
service_config_of(struct rpc_call *call, const char *what, const char *kind,
	const struct service_args *a, bool active, struct svc_config *config)
{
	const struct svc_ops *ops = svc_kind(kind);

	if (ops == NULL || (active ? !ops->client : !ops->server))
		return no_such_kind(call, what, kind, active);
	*config = (struct svc_config){
		.tcp_port = a->tcp_port,
		.tcp_any_gid = a->tcp_any_gid,
		.local_port = a->local_port,
		.length = a->length,
		.size = a->size,
		.depth = a->depth,
		.access = a->access,
		.mr_key = a->mr,
		.per_connection = a->per_connection,
		.max_connections = a->max_connections,
		.max_connections_per_peer = a->max_connections_per_peer,
		.count = a->count,
		.verify = a->verify,
		.active = active,
	};
	snprintf(config->kind, sizeof(config->kind), "%s", kind);
	if (a->path != NULL)
		snprintf(config->path, sizeof(config->path), "%s", a->path);
	return 0;
}

/* --- connections --- */

const char *
cm_end_word(enum cm_end end)
{
	static const char *const words[CM_END_COUNT] = {
		[CM_END_DISCONNECTED] = "DISCONNECTED",
		[CM_END_REJECTED] = "REJECTED",
		[CM_END_REFUSED] = "REFUSED",
		[CM_END_TIMEOUT] = "TIMEOUT",
		[CM_END_STALE] = "STALE",
		[CM_END_QP_ERROR] = "QP_ERROR",
		[CM_END_CANCELLED] = "CANCELLED",
	};

	return end < CM_END_COUNT ? words[end] : "?";
}

static const struct {
	uint16_t reason;
	const char *text;
} reasons[] = {
	{ CM_REJ_NO_QP, "the peer has no queue pair left" },
	{ CM_REJ_NO_RESOURCES, "the peer has no room for another connection: try again later" },
	{ CM_REJ_TIMEOUT, "the peer has waited for us for too long" },
	{ CM_REJ_UNSUPPORTED, "the peer does not take such requests" },
	{ CM_REJ_INVALID_ID, "the peer does not know this connection" },
	{ CM_REJ_INVALID_SERVICE_ID, "nobody listens there" },
	{ CM_REJ_INVALID_TRANSPORT, "the peer wants another transport than RC" },
	{ CM_REJ_STALE, "the peer still remembers an older connection: try again" },
	{ CM_REJ_PORT_CM_REDIRECT, "the peer wants another of its addresses to be asked" },
	{ CM_REJ_PORT_REDIRECT, "the peer wants another of its addresses to be asked" },
	{ CM_REJ_INVALID_MTU, "try a smaller path_mtu" },
	{ CM_REJ_FEW_RESPONDER_RESOURCES, "try a smaller initiator_depth" },
	{ CM_REJ_CONSUMER, "the application there does not want it" },
	{ CM_REJ_RNR_RETRY_COUNT, "try another rnr_retry_count" },
	{ CM_REJ_INVALID_CLASS_VERSION, "the peer speaks another version of the protocol" },
};

const char *
cm_reason_text(uint16_t reason)
{
	size_t i;

	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].reason == reason)
			return reasons[i].text;
	return "";
}

const char *
cm_peer_text(struct rpc_call *call, const struct cm_info *info)
{
	const union gid *gid = &info->path.av.dgid;
	char text[GID_STRLEN];

	if (info->rdma.present)
		gid = info->active ? &info->rdma.dst : &info->rdma.src;
	else if (gid_is_zero(gid))
		return arena_printf(&call->arena, "lid:%u", info->path.av.dlid);
	return arena_printf(&call->arena, "%s", gid_print(gid, text));
}
