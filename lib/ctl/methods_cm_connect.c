/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* cm_connect: the reply is held until the connection is established or has failed. */

#include <errno.h>
#include <string.h>

#include "ctl/cm_args.h"
#include "svc/grant.h"

#define DEFAULT_ACCESS (MEM_ACCESS_REMOTE_WRITE | MEM_ACCESS_REMOTE_READ | MEM_ACCESS_REMOTE_ATOMIC)
#define TIMEOUT_MAX_MS 600000

struct connect_args {
	struct ah_args ah; /* first: its bits and ours share a word */
	struct service_id_args id;
	bool rdma_cm;
	uint16_t src_port;
	const char *service;
	struct service_args svc;
	struct qp_init_attr qp;
	uint32_t qp_access_flags;
	struct table_bytes private_data;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t min_rnr_timer;
	uint16_t pkey_index;
	uint16_t path_mtu;
	uint8_t packet_life;
	uint32_t timeout_ms;
	uint32_t worker;

	/* progress of the call */
	bool started;
	uint32_t attempt; /* until it is done */
	cm_id connection; /* 0: not established yet */
	uint64_t since;
};
#define CONNECT_RDMA    (AH_LAST << 1)
#define CONNECT_PD      (AH_LAST << 2)
#define CONNECT_SEND_CQ (AH_LAST << 3)
#define CONNECT_RECV_CQ (AH_LAST << 4)
#define CONNECT_WORKER  (AH_LAST << 5)

#define AH  offsetof(struct connect_args, ah)
#define SVC offsetof(struct connect_args, svc)
#define QP  offsetof(struct connect_args, qp)

static const struct table_row connect_params[] = {
	AH_ROWS(AH),
	SERVICE_ID_ROWS(offsetof(struct connect_args, id)),
	ROW(struct connect_args, rdma_cm, TABLE_BOOL,
		"put RDMA-CM's header in front of the private data", .bit = CONNECT_RDMA,
		.def_text = "true where the service ID is one of rdma_cm's"),
	ROW(struct connect_args, src_port, TABLE_UINT, "source port in RDMA-CM's header",
		.def_text = "any"),
	AH_ROW_NAMED(AH, "local_port", port, TABLE_UINT,
		"local port to connect from, counted from 0", .max = LINK_PORTS_MAX - 1),
	ROW(struct connect_args, service, TABLE_STRING,
		"kind of client that uses the connection (polca-ctl service kinds explains each)",
		.max = SVC_NAME_MAX - 1, .texts = svc_kinds_that_connect,
		.def_text =
			"none: the caller uses the queue pair, by post_send, post_recv and cq_poll"),
	SERVICE_ROWS(SVC),
	SERVICE_ROW(SVC, count, TABLE_UINT, "with service: disconnect after so many exchanges",
		.def_text = "the kind's, or without end"),
	SERVICE_ROW(SVC, verify, TABLE_BOOL, "with service: check the data that comes back"),
	SERVICE_ROW(SVC, path, TABLE_STRING, "kind rcopy: name of the file at the peer",
		.max = SVC_PATH_MAX - 1, .def_text = "polca.rcopy"),
	QP_INIT_ROW(QP, pd, TABLE_UINT, "without service: protection domain of the queue pair",
		.bit = CONNECT_PD),
	QP_INIT_ROW(QP, send_cq, TABLE_UINT, "without service: completion queue of its send queue",
		.bit = CONNECT_SEND_CQ),
	QP_INIT_ROW(QP, recv_cq, TABLE_UINT, "completion queue of its receive queue",
		.bit = CONNECT_RECV_CQ, .def_text = "the same as send_cq"),
	QP_QUEUE_ROWS(QP),
	ROW(struct connect_args, qp_access_flags, TABLE_FLAGS,
		"without service: what the peer may do, where the region allows it too",
		.def = DEFAULT_ACCESS, .words = words_remote_access),
	ROW(struct connect_args, private_data, TABLE_BYTES,
		"without service: private data for the peer; with RDMA-CM's header 56 bytes at most",
		.max = CM_REQ_PRIVATE),
	ROW(struct connect_args, responder_resources, TABLE_UINT,
		"RDMA Reads and Atomics that the peer may have outstanding here, at most",
		.def = 16),
	ROW(struct connect_args, initiator_depth, TABLE_UINT,
		"RDMA Reads and Atomics that may be outstanding at the peer, at most", .def = 16),
	ROW(struct connect_args, retry_count, TABLE_UINT,
		"retries of both sides before RETRY_EXC_ERR", .max = 7, .def = 7),
	ROW(struct connect_args, rnr_retry_count, TABLE_UINT,
		"retries of the peer after our RNR NAKs; 7: without end", .max = 7, .def = 7),
	ROW(struct connect_args, min_rnr_timer, TABLE_UINT,
		"code of the time that our RNR NAKs ask the peer to wait; 12: 0.64 ms, 0: 655.36 ms",
		.max = 31, .def = 12),
	ROW(struct connect_args, path_mtu, TABLE_UINT,
		"payload bytes of a packet: 256, 512, 1024, 2048 or 4096", .max = 4096,
		.def_text = "the port's active_mtu, or what the SA says"),
	ROW(struct connect_args, packet_life, TABLE_UINT,
		"PacketLifeTime of the path: 4.096 us * 2^it", .max = 31,
		.def_text = "as configured, or what the SA says"),
	ROW(struct connect_args, pkey_index, TABLE_UINT, "index in the port's P_Key table",
		.max = PORT_PKEYS_MAX - 1),
	ROW(struct connect_args, timeout_ms, TABLE_UINT,
		"give up if the connection is not established within this time", .min = 1,
		.max = TIMEOUT_MAX_MS, .def = 20000),
	ROW(struct connect_args, worker, TABLE_UINT, "worker that owns the connection",
		.bit = CONNECT_WORKER, .max = RC_WORKERS_MAX - 1,
		.def_text = "the SRQ's, or each in turn"),
	ROW_END,
};

static bool
connect_given(const struct connect_args *a, uint32_t bit)
{
	return (a->ah.present & bit) != 0;
}

/* --- what is asked for --- */

static int
check_worker(struct rpc_call *call, const struct connect_args *a)
{
	if (!connect_given(a, CONNECT_WORKER) || a->worker < engine_workers(call->e))
		return 0;
	return error_set(&call->err, EINVAL, "worker: got %u, there are %u, counted from 0",
		a->worker, engine_workers(call->e));
}

/* The connection is driven by a service, or by the caller with a queue pair of its own. */
static int
connect_driver(struct rpc_call *call, struct connect_args *a, struct svc_config *config,
	struct engine_cm_connect *c)
{
	if (a->service == NULL &&
		(!connect_given(a, CONNECT_PD) || !connect_given(a, CONNECT_SEND_CQ)))
		return error_set(&call->err, EINVAL,
			"service: missing, allowed: a kind of service, or pd and send_cq for a queue pair of your own");
	c->param.qp = a->qp;
	c->param.qp.qp_type = QPT_RC;
	c->param.qp.flow_control = true;
	c->param.access = a->qp_access_flags;
	if (!connect_given(a, CONNECT_RECV_CQ))
		c->param.qp.recv_cq = c->param.qp.send_cq;
	if (a->service == NULL)
		return 0;
	if (connect_given(a, CONNECT_PD | CONNECT_SEND_CQ | CONNECT_RECV_CQ))
		return error_set(&call->err, EINVAL,
			"pd, send_cq, recv_cq: a service has its own, allowed: without service");
	if (a->private_data.len > 0)
		return error_set(&call->err, EINVAL,
			"private_data: a service has its own, allowed: without service");
	c->service = config;
	a->svc.local_port = a->ah.port;
	return service_config_of(call, "service", a->service, &a->svc, true, config);
}

static int
connect_private_data(struct rpc_call *call, const struct connect_args *a,
	struct engine_cm_connect *c)
{
	size_t room = c->rdma ? CM_REQ_USER_PRIVATE : CM_REQ_PRIVATE;

	if (a->private_data.len > room)
		return error_set(&call->err, EINVAL, "private_data: got %zu bytes, allowed: %zu%s",
			a->private_data.len, room, c->rdma ? " behind RDMA-CM's header" : "");
	if (a->private_data.len > 0)
		memcpy(c->param.private_data, a->private_data.data, a->private_data.len);
	c->param.private_len = (uint8_t)a->private_data.len;
	return 0;
}

static int
connect_service_id(struct rpc_call *call, const struct connect_args *a, struct engine_cm_connect *c)
{
	int rc = service_id_of(call, &a->id, &c->service_id);

	if (rc == 0 && c->service_id == 0)
		rc = error_set(&call->err, EINVAL,
			"port, service_id: got none of them: what to connect to there");
	c->rdma = connect_given(a, CONNECT_RDMA) ? a->rdma_cm : service_id_is_rdma(c->service_id);
	return rc;
}

static int
start_connect(struct rpc_call *call, struct connect_args *a)
{
	struct engine_ah ah;
	struct svc_config config;
	struct engine_cm_connect c = {
		.ah = &ah,
		.src_port = a->src_port,
		.pkey_index = a->pkey_index,
		.path_mtu = a->path_mtu,
		.packet_life = a->packet_life,
		.param = {
			.responder_resources = a->responder_resources,
			.initiator_depth = a->initiator_depth,
			.retry_count = a->retry_count,
			.rnr_retry_count = a->rnr_retry_count,
			.min_rnr_timer = a->min_rnr_timer,
		},
		.timeout_ms = a->timeout_ms,
		.worker = connect_given(a, CONNECT_WORKER) ? (int)a->worker : -1,
	};
	int rc = ctl_check_local_port(call, a->ah.port);

	if (rc == 0)
		rc = connect_service_id(call, a, &c);
	if (rc == 0)
		rc = connect_driver(call, a, &config, &c);
	if (rc == 0)
		rc = connect_private_data(call, a, &c);
	if (rc == 0)
		rc = check_worker(call, a);
	if (rc == 0)
		rc = make_ah(call, &a->ah, a->ah.port, &ah);
	if (rc != 0)
		return rc;
	a->since = call->now;
	a->started = true;
	return engine_cm_connect(call->e, &c, &a->attempt, &call->err);
}

/* --- what became of it --- */

struct connect_reply {
	uint32_t present;
	struct cm_info info;
	const char *service;
	struct table_bytes private_data;
	struct svc_grant memory;
	uint64_t elapsed_us;
	const char *reason_name;
};
#define CONNECT_MEMORY 0x1

static const struct table_row grant_rows[] = {
	ROW(struct svc_grant, rkey, TABLE_UINT),
	ROW(struct svc_grant, va, TABLE_UINT),
	ROW(struct svc_grant, length, TABLE_UINT),
	ROW(struct svc_grant, access, TABLE_FLAGS, .words = words_remote_access),
	ROW_NAMED(struct svc_grant, "per_connection", own, TABLE_BOOL,
		"the region is this connection's own"),
	ROW_END,
};

#define REPLY(field, t, ...) ROW(struct connect_reply, field, t, __VA_ARGS__)
#define INFO(name, field, ...)                                                                     \
	ROW_NAMED(struct connect_reply, name, info.field, TABLE_UINT, __VA_ARGS__)
#define PRIVATE_ROW REPLY(private_data, TABLE_BYTES, "the peer's, as hex text")

static const struct table_row cm_connect_results[] = {
	INFO("connection", id, "its number, for cm_show and cm_disconnect"),
	REPLY(service, TABLE_STRING, "name of the service that uses it, in service_list",
		.flags = TABLE_OPTIONAL),
	INFO("qp_num", qpn, "our queue pair"),
	INFO("remote_qpn", remote_qpn, "the peer's queue pair"),
	INFO("path_mtu", path.mtu, "payload bytes of a packet"),
	INFO("responder_resources", responder_resources,
		"RDMA Reads and Atomics that may be outstanding here, as agreed"),
	INFO("initiator_depth", initiator_depth, "and at the peer"),
	PRIVATE_ROW,
	REPLY(memory, TABLE_OBJECT, "where that is the grant of a service of kind memory",
		.fields = grant_rows, .bit = CONNECT_MEMORY),
	REPLY(elapsed_us, TABLE_UINT, "from the start until it was established"),
	ROW_END,
};

/* data of the error */
static const struct table_row rejected_rows[] = {
	INFO("reason", reason),
	REPLY(reason_name, TABLE_STRING),
	PRIVATE_ROW,
	ROW_END,
};

/* The outcome as a reply; memory is the peer's grant if it is a service of kind memory. */
static void
fill_reply(struct connect_reply *reply, const struct engine_cm_outcome *o)
{
	reply->info = o->info;
	reply->private_data = (struct table_bytes){ o->private_data, o->private_len };
	reply->elapsed_us = o->elapsed_us;
	reply->reason_name = cm_reason_name(o->info.reason);
	if (svc_grant_get(o->private_data, o->private_len, &reply->memory))
		reply->present = CONNECT_MEMORY;
}

static int
fill_established(struct rpc_call *call, const struct engine_cm_outcome *o)
{
	struct connect_args *a = call->args;
	struct connect_reply *reply = call->reply;
	uint8_t *data = arena_alloc(&call->arena, sizeof(o->private_data));

	a->connection = o->info.id;
	if (data == NULL)
		return -ENOMEM;
	fill_reply(reply, o);
	reply->private_data.data = memcpy(data, o->private_data, sizeof(o->private_data));
	reply->service = engine_cm_service_name(call->e, o->info.id);
	return 0;
}

/* A REJ, the peer's or ours: in words for a person, in data for a program. */
static int
fail_rejected(struct rpc_call *call, const struct engine_cm_outcome *o)
{
	uint16_t reason = o->info.reason;
	bool ours = o->info.end == CM_END_REFUSED;
	const char *text = ours ? "" : cm_reason_text(reason);
	struct connect_reply reply = { 0 };

	fill_reply(&reply, o);
	call->data = table_encode(rejected_rows, &reply);
	return error_set(&call->err, ECONNREFUSED, "%s: %s (%u)%s%s",
		ours ? "we rejected the peer's answer" : "rejected", cm_reason_name(reason), reason,
		text[0] != '\0' ? ": " : "", text);
}

static int
fail_connect(struct rpc_call *call, const struct engine_cm_outcome *o)
{
	const struct connect_args *a = call->args;
	bool silence = o->timed_out || (o->error == 0 && o->info.end == CM_END_TIMEOUT);
	int eno = o->error < 0 ? -o->error : silence ? ETIMEDOUT : ECONNABORTED;

	if (o->error == 0 && !o->timed_out &&
		(o->info.end == CM_END_REJECTED || o->info.end == CM_END_REFUSED))
		return fail_rejected(call, o);
	if (o->timed_out)
		return error_set(&call->err, ETIMEDOUT,
			"no answer within %u ms: is a communication manager there, and the address right?",
			a->timeout_ms);
	if (o->why.text[0] != '\0')
		return error_set(&call->err, eno, "%.*s", (int)sizeof(o->why.text) - 1,
			o->why.text);
	return error_set(&call->err, eno, "%s: %s", cm_end_word(o->info.end),
		silence ? "no answer, retries included" : "it ended before it stood");
}

static int
cm_connect_method(struct rpc_call *call)
{
	struct connect_args *a = call->args;
	struct engine_cm_outcome o = { 0 };
	int rc = a->started ? 0 : start_connect(call, a);

	if (rc == 0)
		rc = engine_cm_outcome(call->e, a->attempt, &o, &call->err);
	if (rc != 0)
		return rc;
	call->until = a->timeout_ms != 0 ? a->since + a->timeout_ms : UINT64_MAX;
	if (!o.done)
		return RPC_WAIT;
	rc = o.established ? fill_established(call, &o) : fail_connect(call, &o);
	engine_cm_forget(call->e, a->attempt);
	return rc;
}

/* The client never read the connection's number, so it cannot end the connection. */
static void
cm_connect_abandon(struct rpc_call *call)
{
	const struct connect_args *a = call->args;
	struct engine_cm_outcome o = { 0 };

	if (a->connection != 0) {
		engine_cm_disconnect(call->e, a->connection, &call->err);
		return;
	}
	if (!a->started)
		return;
	if (engine_cm_outcome(call->e, a->attempt, &o, &call->err) == 0 && o.info.id != 0)
		engine_cm_disconnect(call->e, o.info.id, &call->err);
	engine_cm_forget(call->e, a->attempt);
}

const struct rpc_method methods_cm_connect[] = {
	{ "cm_connect", cm_connect_method, connect_params, sizeof(struct connect_args),
		"Connect to a service of another channel adapter, or of this one. The reply comes when the connection is established or has failed; closing the socket before the reply has been read gives up the attempt or the connection. With service, a service of ours uses the connection. Without it, the caller does: its queue pair is made here, used by post_send, post_recv and cq_poll, and destroyed when the connection is over. Errors: ECONNREFUSED when it was rejected, with reason, reason_name and private_data in data; ETIMEDOUT when nobody answered.",
		"polca-ctl cm connect 10.0.0.2 7471 --service rping --count 10", cm_connect_abandon,
		RESULTS(cm_connect_results, struct connect_reply) },
	{ NULL },
};
