/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Commands of librdmacm's programs that become messages of the CM. The queue pair is the program's:
 * it is in RTS before an ACCEPT, which is the REP, and after the event CONNECT_RESPONSE, which an
 * ACCEPT without parameters answers by the RTU.
 */

#include <errno.h>
#include <string.h>

#include "engine/clients_private.h"
#include "engine/rdmacm_private.h"

/* --- CONNECT and ACCEPT --- */

/* The program's own queue pair, of a device that it has opened itself. */
static int
conn_check_qp(const struct rdmacm_call *c, uint32_t qpn)
{
	if (clients_own_qp(c->program->engine, c->program->uid, c->program->pid, qpn))
		return 0;
	return error_set(c->err, EINVAL, "qp_num: %u is no queue pair of this program", qpn);
}

static int
conn_param(const struct rdmacm_call *c, const struct rdma_ucm_conn_param *from, unsigned int room,
	struct cm_conn_param *to)
{
	if (from->private_data_len > room)
		return error_set(c->err, EINVAL, "private_data: got %u bytes, allowed: %u",
			from->private_data_len, room);
	*to = (struct cm_conn_param){
		.qp = { .srq = from->srq ? 0 : RC_NO_SRQ, .flow_control = from->flow_control != 0 },
		.qpn = from->qp_num,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.retry_count = RTE_MIN(from->retry_count, 7),
		.rnr_retry_count = RTE_MIN(from->rnr_retry_count, 7),
		.private_len = from->private_data_len,
	};
	memcpy(to->private_data, from->private_data, from->private_data_len);
	return conn_check_qp(c, from->qp_num);
}

static int
conn_start(const struct rdmacm_call *c, const struct cm_conn_param *param)
{
	struct rdmacm_id *id = c->id;
	struct rdmacm *r = id->program->engine->rdmacm;
	struct rdmacm_conn *conn = rdmacm_conn_new(r);
	struct cm_connect connect = {
		.service_id = cm_service_id(id->ps, id->dst.port),
		.path = id->path,
		.rdma = { true, id->src.port, id->src.gid, id->dst.gid },
		.param = *param,
		.ops = &rdmacm_active_user,
		.user = conn,
	};
	struct rdmacm_conn_call call = { .connect = &connect, .err = c->err };
	int rc;

	if (conn == NULL)
		return error_set(c->err, ENOMEM, "no memory for a connection");
	conn->active = true;
	conn->responder_resources = param->responder_resources;
	conn->initiator_depth = param->initiator_depth;
	conn->worker = r->turn++ % r->engine->num_workers;
	conn->id = id;
	id->conn = conn;
	rc = rdmacm_conn_call(conn, rdmacm_connect_here, &call);
	if (rc == 0)
		return 0;
	id->conn = NULL;
	rdmacm_conn_free(conn);
	return rc;
}

int
rdmacm_connect(struct rdmacm_call *c)
{
	const struct rdma_ucm_connect *cmd = c->body;
	struct cm_conn_param param;
	int rc;

	if (c->program->engine->draining)
		return error_set(c->err, ESHUTDOWN, "the appliance is stopping");
	if (cmd->conn_param.valid == 0)
		return error_set(c->err, EINVAL, "connect: no parameters");
	if (c->id->state != RDMACM_ROUTE_RESOLVED)
		return error_set(c->err, EINVAL, "connect: resolve address and route first");
	rc = conn_param(c, &cmd->conn_param, CM_REQ_USER_PRIVATE, &param);
	if (rc == 0)
		rc = conn_start(c, &param);
	if (rc == 0)
		c->id->state = RDMACM_CONNECT;
	return rc;
}

static int
conn_check(const struct rdmacm_call *c, const char *what)
{
	if (c->id->state == RDMACM_CONNECT && c->id->conn != NULL)
		return 0;
	return error_set(c->err, EINVAL, "%s: the ID has no connection", what);
}

/* The queue pair of the active side is ready: the RTU. */
static int
accept_response(struct rdmacm_call *c)
{
	struct rdmacm_conn_call call = { .err = c->err };
	int rc = rdmacm_conn_call(c->id->conn, rdmacm_ready_here, &call);

	return rc == 0 ? 0
		       : error_set(c->err, EINVAL, "accept: no answer of the peer waits for it");
}

static int
accept_request(struct rdmacm_call *c, const struct rdma_ucm_accept *cmd)
{
	struct rdmacm_conn *conn = c->id->conn;
	struct cm_conn_param param;
	struct rdmacm_conn_call call = { .param = &param, .err = c->err };
	int rc;

	if (conn->active)
		return error_set(c->err, EINVAL, "accept: this side has sent the request");
	if (cmd->uid == 0)
		return error_set(c->err, EINVAL, "uid: 0 is no ID of the library");
	rc = conn_param(c, &cmd->conn_param, CM_REP_PRIVATE, &param);
	if (rc == 0) {
		rc = rdmacm_conn_call(conn, rdmacm_accept_here, &call);
		if (rc != 0)
			error_set(c->err, EINVAL, "accept: the peer has given up");
	}
	if (rc != 0) {
		rdmacm_refuse(conn, CM_REJ_CONSUMER); /* as the kernel's rdma_accept() */
		return -EINVAL;
	}
	c->id->uid = cmd->uid;
	return 0;
}

int
rdmacm_accept(struct rdmacm_call *c)
{
	const struct rdma_ucm_accept *cmd = c->body;
	int rc = conn_check(c, "accept");

	if (rc != 0)
		return rc;
	return cmd->conn_param.valid != 0 ? accept_request(c, cmd) : accept_response(c);
}

/* --- REJECT, DISCONNECT, NOTIFY --- */

int
rdmacm_reject(struct rdmacm_call *c)
{
	const struct rdma_ucm_reject *cmd = c->body;
	struct rdmacm_conn_call call = {
		.reason = cmd->reason != 0 ? cmd->reason : CM_REJ_CONSUMER,
		.private_data = cmd->private_data,
		.private_len = cmd->private_data_len,
		.err = c->err,
	};
	int rc = conn_check(c, "reject");

	if (rc != 0)
		return rc;
	if (cmd->reason != 0 && cmd->reason != CM_REJ_CONSUMER &&
		cmd->reason != CM_REJ_VENDOR_OPTION)
		return error_set(c->err, EINVAL, "reason: got %u, allowed: 0, %d, %d", cmd->reason,
			CM_REJ_CONSUMER, CM_REJ_VENDOR_OPTION);
	if (cmd->private_data_len > CM_REJ_PRIVATE)
		return error_set(c->err, EINVAL, "private_data: got %u bytes, allowed: %d",
			cmd->private_data_len, CM_REJ_PRIVATE);
	/* a REP, too, can be rejected: then the connection is not established yet */
	rc = c->id->conn->established
		? -EINVAL
		: rdmacm_conn_call(c->id->conn,
			  c->id->conn->active ? rdmacm_disconnect_here : rdmacm_refuse_here, &call);
	return rc == 0 ? 0 : error_set(c->err, EINVAL, "reject: nothing waits to be rejected");
}

/* Whichever side was first: the kernel's call succeeds, too, and one event DISCONNECTED follows. */
int
rdmacm_disconnect(struct rdmacm_call *c)
{
	struct rdmacm_conn_call call = { .err = c->err };

	if (c->id->state != RDMACM_CONNECT)
		return error_set(c->err, EINVAL, "disconnect: the ID has no connection");
	if (c->id->conn != NULL && c->id->conn->established)
		rdmacm_conn_call(c->id->conn, rdmacm_disconnect_here, &call);
	return 0;
}

/* The only event that the CM wants to hear of: data came before the RTU. */
int
rdmacm_notify(struct rdmacm_call *c)
{
	const struct rdma_ucm_notify *cmd = c->body;
	struct rdmacm_conn_call call = { .err = c->err };
	int rc = conn_check(c, "notify");

	if (rc != 0)
		return rc;
	if (cmd->event != EVENT_COMM_EST)
		return error_set(c->err, EINVAL, "notify: event: got %u, allowed: COMM_EST",
			cmd->event);
	rdmacm_conn_call(c->id->conn, rdmacm_heard_here, &call);
	return 0;
}
