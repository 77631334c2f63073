/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * What workers have noted about connections of librdmacm's programs becomes events, and new IDs.
 */

#include <errno.h>
#include <netinet/in.h>

#include "engine/rdmacm_private.h"

/* --- requests: control thread --- */

static void
request_fill_id(struct rdmacm_id *id, const struct rdmacm_id *listening, struct rdmacm_conn *conn)
{
	const struct cm_request *req = &conn->request;
	uint16_t family = gid_is_ipv4(&req->rdma.dst) ? AF_INET : AF_INET6;

	id->ps = listening->ps;
	id->state = RDMACM_CONNECT;
	id->port = req->port;
	id->sgid_index = req->path.sgid_index;
	id->path = req->path;
	id->path.present = true;
	id->src = (struct rdmacm_address){
		.family = family,
		.port = listening->src.port,
		.gid = req->rdma.dst,
	};
	id->dst = (struct rdmacm_address){
		.family = family,
		.port = req->rdma.src_port,
		.gid = req->rdma.src,
	};
	id->tos = listening->tos;
	id->ack_timeout = listening->ack_timeout;
	id->conn = conn;
	conn->id = id;
	conn->responder_resources = req->initiator_depth;
	conn->initiator_depth = req->responder_resources;
}

static void
conn_requested(struct rdmacm_conn *conn)
{
	struct rdmacm_id *listening = conn->listener->id, *id;
	struct rdmacm_event *ev;
	struct error err;

	conn->worker = cm_worker_of(conn->rdmacm->engine->cm_hash_key,
		conn->rdmacm->engine->num_workers, conn->cm_id);
	conn->peer = conn->answer.info;
	conn->listener->waiting++;
	id = rdmacm_id_new(listening->program, listening->channel, &err);
	ev = id == NULL ? NULL : rdmacm_event_put(listening, RDMACM_EVENT_CONNECT_REQUEST, 0);
	if (ev == NULL) {
		conn->listener->waiting--;
		rdmacm_listener_refill(conn->listener);
		rdmacm_refuse(conn, CM_REJ_CONSUMER);
		if (id != NULL)
			rdmacm_id_free(id);
		return;
	}
	request_fill_id(id, listening, conn);
	ev->child = id;
	id->request = ev;
	ev->resp.id = id->number;
	rdmacm_event_param(ev, &conn->answer.info, conn->request_data, conn->request.private_len);
	ev->resp.param.conn.flow_control = conn->request.flow_control;
	ev->resp.param.conn.srq = conn->request.srq;
}
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
		conn_requested(conn);
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
