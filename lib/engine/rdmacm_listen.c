/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Listening IDs of librdmacm's programs. lib/cm knows one listener for each port number; the IDs
 * that have it on different addresses share it. A request takes one of the listener's spare
 * connections, as many as its backlog, and waits for the control thread, which makes the new ID.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/rdmacm_private.h"

/* --- on the worker --- */

/* How well a listener suits a request to this address; 0: not at all. */
static unsigned int
listener_score(const struct rdmacm_listener *l, const struct cm_request *req)
{
	const union gid *to = &req->rdma.dst;

	if (l->port >= 0 && l->port != req->port)
		return 0;
	if (!rdmacm_address_is_any(&l->address))
		return gid_equal(&l->address.gid, to) ? 3 : 0;
	if (l->address.family == AF_INET)
		return gid_is_ipv4(to) ? 2 : 0;
	return gid_is_ipv4(to) ? !l->ipv6_only : 2;
}

static struct rdmacm_listener *
listener_for(const struct rdmacm_service *s, const struct cm_request *req)
{
	const struct rdmacm_listeners *all = __atomic_load_n(&s->listeners, __ATOMIC_ACQUIRE);
	struct rdmacm_listener *found = NULL;
	unsigned int score, best = 0;
	uint32_t i;

	for (i = 0; i < all->num; i++) {
		score = listener_score(all->listener[i], req);
		if (score <= best)
			continue;
		best = score;
		found = all->listener[i];
	}
	return found;
}

static bool
rdmacm_admits(void *listener, const struct cm_request *req)
{
	return listener_for(listener, req) != NULL;
}

static struct rdmacm_conn *
listener_take(struct rdmacm_listener *l)
{
	struct rdmacm_conn *conn;
	uint32_t i;

	for (i = 0; i < l->backlog; i++) {
		if (__atomic_load_n(&l->spare[i], __ATOMIC_RELAXED) == NULL)
			continue;
		conn = __atomic_exchange_n(&l->spare[i], NULL, __ATOMIC_ACQ_REL);
		if (conn != NULL)
			return conn;
	}
	return NULL;
}

/* What the program's queue pair needs of the request. */
static void
request_take_info(struct rdmacm_conn *conn, const struct cm_request *req)
{
	conn->answer.info = (struct cm_info){
		.id = req->id,
		.path = req->path,
		.remote_qpn = req->remote_qpn,
		.rq_psn = req->local_psn,
		.sq_psn = req->remote_psn,
		.ack_timeout = req->ack_timeout,
		.retry_count = req->retry_count,
		.rnr_retry_count = req->rnr_retry_count,
		/* what the peer wants to begin, we answer, and the other way round */
		.responder_resources = req->initiator_depth,
		.initiator_depth = req->responder_resources,
	};
}

static uint16_t
rdmacm_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	struct rdmacm_listener *l = listener_for(listener, req);
	struct rdmacm_conn *conn = l != NULL ? listener_take(l) : NULL;

	RTE_SET_USED(param);
	if (conn == NULL)
		return CM_REJ_CONSUMER; /* as the kernel, whose backlog is full */
	conn->listener = l;
	conn->cm_id = req->id;
	conn->request = *req;
	memcpy(conn->request_data, req->private_data, req->private_len);
	conn->request.private_data = conn->request_data;
	request_take_info(conn, req);
	*user = conn;
	rdmacm_note(conn, RDMACM_REQUESTED);
	return CM_LATER;
}

const struct cm_user rdmacm_passive_user = {
	.name = "librdmacm",
	.request = rdmacm_request,
	.established = rdmacm_established,
	.ended = rdmacm_ended,
	.released = rdmacm_released,
	.admits = rdmacm_admits,
};

/* --- services: control thread --- */

static int
service_listen_here(struct worker *w, void *service)
{
	const struct rdmacm_service *s = service;

	return cm_listen(w->cm, s->service_id, UINT64_MAX, &rdmacm_passive_user, service);
}

static int
service_unlisten_here(struct worker *w, void *service)
{
	const struct rdmacm_service *s = service;

	return cm_unlisten(w->cm, s->service_id, UINT64_MAX);
}

static int
service_leave_here(struct worker *w, void *service)
{
	RTE_SET_USED(w);
	RTE_SET_USED(service);
	return 0;
}

/* Call the workers, so that none is inside a function of the CM's. @return the first failure */
static int
service_call(struct rdmacm_service *s, worker_fn fn, unsigned int *done)
{
	struct engine *e = s->rdmacm->engine;
	int rc = 0;

	for (*done = 0; *done < e->num_workers && rc == 0; (*done)++)
		rc = engine_call(e, *done, fn, s);
	return rc;
}

static struct rdmacm_service *
service_find(const struct rdmacm *r, uint64_t service_id)
{
	struct rdmacm_service *s;

	LIST_FOREACH(s, &r->services, link)
		if (s->service_id == service_id)
			return s;
	return NULL;
}

static struct rdmacm_service *
service_start(struct rdmacm *r, uint64_t service_id, struct error *err)
{
	struct rdmacm_service *s = calloc(1, sizeof(*s));
	unsigned int done, i;
	int rc;

	if (s != NULL)
		s->listeners = calloc(1, sizeof(*s->listeners));
	if (s == NULL || s->listeners == NULL) {
		free(s);
		error_set(err, ENOMEM, "no memory for a listener");
		return NULL;
	}
	s->rdmacm = r;
	s->service_id = service_id;
	rc = service_call(s, service_listen_here, &done);
	if (rc == 0) {
		LIST_INSERT_HEAD(&r->services, s, link);
		return s;
	}
	for (i = 0; i + 1 < done; i++)
		engine_call(r->engine, i, service_unlisten_here, s);
	if (rc == -EEXIST)
		error_set(err, EADDRINUSE, "listen: a service of polca has this port");
	else
		error_set_limit(err, ENOMEM, "listen: there are cm.max_listeners already");
	free(s->listeners);
	free(s);
	return NULL;
}

static void
service_stop(struct rdmacm_service *s)
{
	unsigned int done;

	service_call(s, service_unlisten_here, &done);
	LIST_REMOVE(s, link);
	free(s->listeners);
	free(s);
}

/* Replace the list that workers see. */
static int
service_change(struct rdmacm_service *s, struct rdmacm_listener *add,
	const struct rdmacm_listener *remove)
{
	struct rdmacm_listeners *old = s->listeners, *new;
	unsigned int done;
	uint32_t i;

	new = malloc(sizeof(*new) + (old->num + 1) * sizeof(new->listener[0]));
	if (new == NULL)
		return -ENOMEM;
	new->num = 0;
	for (i = 0; i < old->num; i++)
		if (old->listener[i] != remove)
			new->listener[new->num++] = old->listener[i];
	if (add != NULL)
		new->listener[new->num++] = add;
	__atomic_store_n(&s->listeners, new, __ATOMIC_RELEASE);
	service_call(s, service_leave_here, &done);
	free(old);
	return 0;
}

/* --- listeners: control thread --- */

void
rdmacm_listener_refill(struct rdmacm_listener *l)
{
	uint32_t i, full = 0;

	for (i = 0; i < l->backlog; i++)
		full += __atomic_load_n(&l->spare[i], __ATOMIC_RELAXED) != NULL;
	for (i = 0; i < l->backlog && full + l->waiting < l->backlog; i++) {
		if (__atomic_load_n(&l->spare[i], __ATOMIC_RELAXED) != NULL)
			continue;
		__atomic_store_n(&l->spare[i],
			rdmacm_conn_new(l->id->program->engine->rdmacm), __ATOMIC_RELEASE);
		full++;
	}
}

static void
listener_free(struct rdmacm_listener *l)
{
	uint32_t i;

	for (i = 0; i < l->backlog; i++)
		rdmacm_conn_free(l->spare[i]);
	free(l);
}

static uint64_t
listener_service_id(const struct rdmacm_id *id)
{
	return cm_service_id(id->ps, id->src.port);
}

static int
listener_start(struct rdmacm_id *id, uint32_t backlog, struct error *err)
{
	struct rdmacm *r = id->program->engine->rdmacm;
	uint64_t service_id = listener_service_id(id);
	struct rdmacm_service *s = service_find(r, service_id);
	struct rdmacm_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return error_set(err, ENOMEM, "no memory for a listener");
	*l = (struct rdmacm_listener){
		.id = id,
		.address = id->src,
		.port = id->port,
		.ipv6_only = id->ipv6_only,
		.backlog = backlog,
	};
	rdmacm_listener_refill(l);
	if (s == NULL)
		s = service_start(r, service_id, err);
	if (s == NULL || service_change(s, l, NULL) != 0) {
		if (s != NULL && s->listeners->num == 0)
			service_stop(s);
		listener_free(l);
		return s == NULL ? -EADDRINUSE : error_set(err, ENOMEM, "no memory for a listener");
	}
	id->listener = l;
	return 0;
}

int
rdmacm_listen(struct rdmacm_call *c)
{
	const struct rdma_ucm_listen *cmd = c->body;
	struct rdmacm_address any = { .family = AF_INET, .gid = gid_from_ipv4((uint8_t[4]){ 0 }) };
	uint32_t backlog = cmd->backlog;
	int rc = 0;

	if (c->id->state == RDMACM_IDLE)
		rc = rdmacm_bind(c->id, &any, c->err);
	if (rc != 0)
		return rc;
	if (c->id->state != RDMACM_BOUND)
		return error_set(c->err, EINVAL, "listen: the ID is used already");
	/* the kernel's rule: what makes no sense is as much as there may be */
	if (backlog == 0 || backlog > RDMACM_BACKLOG_MAX)
		backlog = RDMACM_BACKLOG_MAX;
	rc = listener_start(c->id, backlog, c->err);
	if (rc == 0)
		c->id->state = RDMACM_LISTEN;
	return rc;
}

void
rdmacm_unlisten(struct rdmacm_listener *l)
{
	struct rdmacm *r = l->id->program->engine->rdmacm;
	struct rdmacm_service *s = service_find(r, listener_service_id(l->id));

	/* without memory for a shorter list the whole service goes: nobody may use this listener */
	if (service_change(s, NULL, l) != 0) {
		uint32_t i;

		for (i = 0; i < s->listeners->num; i++)
			if (s->listeners->listener[i] == l)
				s->listeners->listener[i] = s->listeners->listener[--s->listeners->num];
	}
	if (s->listeners->num == 0)
		service_stop(s);
	rdmacm_run(r); /* requests that came until now */
	l->id->listener = NULL;
	listener_free(l);
}

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

void
rdmacm_requested(struct rdmacm_conn *conn)
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
			rdmacm_id_destroy(id);
		return;
	}
	request_fill_id(id, listening, conn);
	ev->child = id;
	ev->resp.id = id->number;
	rdmacm_event_param(ev, &conn->answer.info, conn->request_data, conn->request.private_len);
	ev->resp.param.conn.flow_control = conn->request.flow_control;
	ev->resp.param.conn.srq = conn->request.srq;
}
