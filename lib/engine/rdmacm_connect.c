/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections of librdmacm's programs: commands that become messages of the CM, and what workers
 * note about them that becomes events. The queue pair is the program's: it is in RTS before an
 * ACCEPT, which is the REP, and after the event CONNECT_RESPONSE, which an ACCEPT without
 * parameters answers by the RTU.
 */

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include <rte_cycles.h>

#include "engine/clients_private.h"
#include "engine/rdmacm_private.h"

/* --- notes of a worker --- */

/* The note publishes what was written before. Only the first one since the last look is listed. */
void
rdmacm_note(struct rdmacm_conn *conn, uint32_t note)
{
	struct rdmacm *r = conn->rdmacm;

	if (__atomic_fetch_or(&conn->notes, note, __ATOMIC_ACQ_REL) != 0)
		return;
	conn->next = __atomic_load_n(&r->noted, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&r->noted, &conn->next, conn, true, __ATOMIC_ACQ_REL,
		__ATOMIC_RELAXED))
		;
	if (conn->next == NULL)
		eventfd_write(r->wakeup_fd, 1);
}

static void
message_take(struct rdmacm_message *m, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len)
{
	m->info = *info;
	m->private_len = private_data != NULL ? RTE_MIN(len, CM_PRIVATE_MAX) : 0;
	if (m->private_len > 0)
		memcpy(m->private_data, private_data, m->private_len);
}

static void
rdmacm_responded(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	message_take(&conn->answer, info, private_data, len);
	rdmacm_note(conn, RDMACM_RESPONDED);
}

/* The active side knows already: it has sent the RTU. */
void
rdmacm_established(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	if (!info->active)
		message_take(&conn->answer, info, private_data, len);
	rdmacm_note(conn, RDMACM_ESTABLISHED);
}

void
rdmacm_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct rdmacm_conn *conn = user;

	message_take(&conn->end, info, private_data, len);
	rdmacm_note(conn, RDMACM_ENDED);
}

void
rdmacm_released(void *user)
{
	rdmacm_note(user, RDMACM_RELEASED);
}

static const struct cm_user rdmacm_active_user = {
	.name = "librdmacm",
	.responded = rdmacm_responded,
	.established = rdmacm_established,
	.ended = rdmacm_ended,
	.released = rdmacm_released,
};

/* --- notes become events --- */

static void
conn_tell(struct rdmacm_conn *conn, enum rdmacm_event_type type, int status,
	const struct rdmacm_message *m)
{
	struct rdmacm_event *ev;

	if (conn->id == NULL)
		return;
	ev = rdmacm_event_put(conn->id, type, status);
	if (ev != NULL)
		rdmacm_event_param(ev, &m->info, m->private_data, m->private_len);
}

static void
conn_established(struct rdmacm_conn *conn)
{
	conn->established = true;
	if (!conn->active)
		conn_tell(conn, RDMACM_EVENT_ESTABLISHED, 0, &conn->answer);
}

/* The kernel's events, by how the connection ended. */
static void
conn_ended(struct rdmacm_conn *conn)
{
	const struct cm_info *info = &conn->end.info;

	conn->ended = true;
	switch (info->end) {
	case CM_END_REJECTED:
		conn_tell(conn, RDMACM_EVENT_REJECTED, info->reason, &conn->end);
		break;
	case CM_END_TIMEOUT:
		conn_tell(conn, RDMACM_EVENT_UNREACHABLE, -ETIMEDOUT, &conn->end);
		break;
	case CM_END_REFUSED:
		if (conn->active)
			conn_tell(conn, RDMACM_EVENT_CONNECT_ERROR, -ECONNABORTED, &conn->end);
		break;
	case CM_END_CANCELLED:
		if (conn->established)
			conn_tell(conn, RDMACM_EVENT_DISCONNECTED, 0, &conn->end);
		else
			conn_tell(conn, RDMACM_EVENT_CONNECT_ERROR, -ECONNABORTED, &conn->end);
		break;
	default:
		conn_tell(conn, RDMACM_EVENT_DISCONNECTED, 0, &conn->end);
		break;
	}
}

static void
conn_released(struct rdmacm_conn *conn)
{
	if (conn->established)
		conn_tell(conn, RDMACM_EVENT_TIMEWAIT_EXIT, 0, &conn->end);
	if (conn->id != NULL)
		conn->id->conn = NULL;
	rdmacm_conn_free(conn);
}

static void
conn_take_notes(struct rdmacm_conn *conn)
{
	uint32_t notes = __atomic_exchange_n(&conn->notes, 0, __ATOMIC_ACQ_REL);

	if (notes & RDMACM_REQUESTED)
		rdmacm_requested(conn);
	if (notes & RDMACM_RESPONDED) {
		conn->peer = conn->answer.info;
		conn_tell(conn, RDMACM_EVENT_CONNECT_RESPONSE, 0, &conn->answer);
	}
	if (notes & RDMACM_ESTABLISHED)
		conn_established(conn);
	if (notes & RDMACM_ENDED)
		conn_ended(conn);
	if (notes & RDMACM_RELEASED)
		conn_released(conn);
}

void
rdmacm_run(struct rdmacm *r)
{
	struct rdmacm_conn *conn = __atomic_exchange_n(&r->noted, NULL, __ATOMIC_ACQ_REL);
	struct rdmacm_conn *next, *first = NULL;

	for (; conn != NULL; conn = next) { /* the oldest first */
		next = conn->next;
		conn->next = first;
		first = conn;
	}
	for (conn = first; conn != NULL; conn = next) {
		next = conn->next; /* once its notes are taken, a worker may list it again */
		conn_take_notes(conn);
	}
}

/* --- calls of the worker --- */

struct conn_call {
	struct rdmacm_conn *conn;
	const struct cm_connect *connect;
	const struct cm_conn_param *param;
	uint16_t reason;
	const uint8_t *private_data;
	uint8_t private_len;
	struct error *err;
};

static int
conn_call(struct rdmacm_conn *conn, worker_fn fn, struct conn_call *call)
{
	call->conn = conn;
	return engine_call(conn->rdmacm->engine, conn->worker, fn, call);
}

static int
conn_connect_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_connect(w->cm, a->connect, rte_get_tsc_cycles(), &a->conn->cm_id, a->err);
}

static int
conn_accept_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_accept(w->cm, a->conn->cm_id, a->param, rte_get_tsc_cycles());
}

static int
conn_ready_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_ready(w->cm, a->conn->cm_id, rte_get_tsc_cycles());
}

static int
conn_heard_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_heard(w->cm, a->conn->cm_id, rte_get_tsc_cycles());
}

static int
conn_refuse_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_refuse(w->cm, a->conn->cm_id, a->reason, a->private_data, a->private_len,
		rte_get_tsc_cycles());
}

static int
conn_disconnect_here(struct worker *w, void *arg)
{
	const struct conn_call *a = arg;

	return cm_disconnect(w->cm, a->conn->cm_id, a->private_data, a->private_len,
		rte_get_tsc_cycles());
}

void
rdmacm_refuse(struct rdmacm_conn *conn, uint16_t reason)
{
	struct conn_call call = { .reason = reason };

	conn_call(conn, conn_refuse_here, &call);
}

void
rdmacm_abandon(struct rdmacm_conn *conn)
{
	struct conn_call call = { .private_data = NULL };

	conn->id->conn = NULL;
	conn->id = NULL;
	if (!conn->ended)
		conn_call(conn, conn_disconnect_here, &call);
}

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
	struct conn_call call = { .connect = &connect, .err = c->err };
	int rc;

	if (conn == NULL)
		return error_set(c->err, ENOMEM, "no memory for a connection");
	conn->active = true;
	conn->responder_resources = param->responder_resources;
	conn->initiator_depth = param->initiator_depth;
	conn->worker = r->turn++ % r->engine->num_workers;
	conn->id = id;
	id->conn = conn;
	rc = conn_call(conn, conn_connect_here, &call);
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
	struct conn_call call = { .err = c->err };
	int rc = conn_call(c->id->conn, conn_ready_here, &call);

	return rc == 0 ? 0 : error_set(c->err, EINVAL, "accept: no answer of the peer waits for it");
}

static int
accept_request(struct rdmacm_call *c, const struct rdma_ucm_accept *cmd)
{
	struct rdmacm_conn *conn = c->id->conn;
	struct cm_conn_param param;
	struct conn_call call = { .param = &param, .err = c->err };
	int rc;

	if (conn->active)
		return error_set(c->err, EINVAL, "accept: this side has sent the request");
	if (cmd->uid == 0)
		return error_set(c->err, EINVAL, "uid: 0 is no ID of the library");
	rc = conn_param(c, &cmd->conn_param, CM_REP_PRIVATE, &param);
	if (rc == 0) {
		rc = conn_call(conn, conn_accept_here, &call);
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
	struct conn_call call = {
		.reason = cmd->reason != 0 ? cmd->reason : CM_REJ_CONSUMER,
		.private_data = cmd->private_data,
		.private_len = cmd->private_data_len,
		.err = c->err,
	};
	int rc = conn_check(c, "reject");

	if (rc != 0)
		return rc;
	if (cmd->reason != 0 && cmd->reason != CM_REJ_CONSUMER && cmd->reason != CM_REJ_VENDOR_OPTION)
		return error_set(c->err, EINVAL, "reason: got %u, allowed: 0, %d, %d", cmd->reason,
			CM_REJ_CONSUMER, CM_REJ_VENDOR_OPTION);
	if (cmd->private_data_len > CM_REJ_PRIVATE)
		return error_set(c->err, EINVAL, "private_data: got %u bytes, allowed: %d",
			cmd->private_data_len, CM_REJ_PRIVATE);
	/* a REP, too, can be rejected: then the connection is not established yet */
	rc = c->id->conn->established ? -EINVAL
		: conn_call(c->id->conn, c->id->conn->active ? conn_disconnect_here : conn_refuse_here,
			  &call);
	return rc == 0 ? 0 : error_set(c->err, EINVAL, "reject: nothing waits to be rejected");
}

/* Whichever side was first: the kernel's call succeeds, too, and one event DISCONNECTED follows. */
int
rdmacm_disconnect(struct rdmacm_call *c)
{
	struct conn_call call = { .err = c->err };

	if (c->id->state != RDMACM_CONNECT)
		return error_set(c->err, EINVAL, "disconnect: the ID has no connection");
	if (c->id->conn != NULL && c->id->conn->established)
		conn_call(c->id->conn, conn_disconnect_here, &call);
	return 0;
}

/* The only event that the CM wants to hear of: data came before the RTU. */
int
rdmacm_notify(struct rdmacm_call *c)
{
	const struct rdma_ucm_notify *cmd = c->body;
	struct conn_call call = { .err = c->err };
	int rc = conn_check(c, "notify");

	if (rc != 0)
		return rc;
	if (cmd->event != EVENT_COMM_EST)
		return error_set(c->err, EINVAL, "notify: event: got %u, allowed: COMM_EST",
			cmd->event);
	conn_call(c->id->conn, conn_heard_here, &call);
	return 0;
}
