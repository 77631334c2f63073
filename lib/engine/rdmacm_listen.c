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
	uint32_t i, num = __atomic_load_n(&all->num, __ATOMIC_ACQUIRE);
	struct rdmacm_listener *l, *found = NULL;
	unsigned int score, best = 0;

	for (i = 0; i < num; i++) {
		l = __atomic_load_n(&all->listener[i], __ATOMIC_RELAXED);
		score = listener_score(l, req);
		if (score <= best)
			continue;
		best = score;
		found = l;
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

static const struct cm_user rdmacm_passive_user = {
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
rdmacm_service_find(const struct rdmacm *r, uint64_t service_id)
{
	struct rdmacm_service *s;

	LIST_FOREACH(s, &r->services, link)
		if (s->service_id == service_id)
			return s;
	return NULL;
}

/* Let all workers listen. @p service: NULL if this fails */
static int
service_start(struct rdmacm *r, uint64_t service_id, struct rdmacm_service **service,
	struct error *err)
{
	struct rdmacm_service *s = calloc(1, sizeof(*s));
	unsigned int done, i;
	int rc;

	*service = NULL;
	if (s != NULL)
		s->listeners = calloc(1, sizeof(*s->listeners));
	if (s == NULL || s->listeners == NULL) {
		free(s);
		return error_set(err, ENOMEM, "no memory for a listener");
	}
	s->rdmacm = r;
	s->service_id = service_id;
	rc = service_call(s, service_listen_here, &done);
	if (rc == 0) {
		LIST_INSERT_HEAD(&r->services, s, link);
		*service = s;
		return 0;
	}
	for (i = 0; i + 1 < done; i++)
		engine_call(r->engine, i, service_unlisten_here, s);
	free(s->listeners);
	free(s);
	if (rc == -EEXIST)
		return error_set(err, EADDRINUSE, "listen: a service of polca has this port");
	return error_set_limit(err, ENOMEM,
		"listen: all %u listeners are in use (cm.max_listeners)",
		r->engine->config.cm.max_listeners);
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

/* Replace the list that workers see by a longer one. */
static int
service_add_listener(struct rdmacm_service *s, struct rdmacm_listener *l)
{
	struct rdmacm_listeners *old = s->listeners, *new;
	unsigned int done;
	uint32_t i;

	new = malloc(sizeof(*new) + (old->num + 1) * sizeof(new->listener[0]));
	if (new == NULL)
		return -ENOMEM;
	for (i = 0; i < old->num; i++)
		new->listener[i] = old->listener[i];
	new->listener[old->num] = l;
	new->num = old->num + 1;
	__atomic_store_n(&s->listeners, new, __ATOMIC_RELEASE);
	service_call(s, service_leave_here, &done);
	free(old);
	return 0;
}

/*
 * Take a listener out of the list that workers see, without memory for another list, because this
 * must not fail. The last one is in both places until the list is shorter, so that no worker misses
 * it. Afterwards no worker uses the listener.
 */
static void
service_remove_listener(struct rdmacm_service *s, const struct rdmacm_listener *l)
{
	struct rdmacm_listeners *all = s->listeners;
	uint32_t i, last = all->num - 1;
	unsigned int done;

	for (i = 0; i < last && all->listener[i] != l; i++)
		;
	RTE_ASSERT(all->listener[i] == l);
	__atomic_store_n(&all->listener[i], all->listener[last], __ATOMIC_RELAXED);
	__atomic_store_n(&all->num, last, __ATOMIC_RELEASE);
	service_call(s, service_leave_here, &done);
}

/* --- listeners: control thread --- */

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
	struct rdmacm_service *s = rdmacm_service_find(r, service_id);
	struct rdmacm_listener *l = calloc(1, sizeof(*l));
	int rc = 0;

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
		rc = service_start(r, service_id, &s, err);
	if (rc == 0 && service_add_listener(s, l) != 0)
		rc = error_set(err, ENOMEM, "no memory for a listener");
	if (rc != 0) {
		if (s != NULL && s->listeners->num == 0)
			service_stop(s);
		listener_free(l);
		return rc;
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
	rc = rdmacm_port_own(c->id, c->err);
	if (rc != 0)
		return rc;
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
	struct rdmacm_service *s = rdmacm_service_find(r, listener_service_id(l->id));

	service_remove_listener(s, l);
	if (s->listeners->num == 0)
		service_stop(s);
	rdmacm_run(r); /* requests that came until now */
	l->id->listener = NULL;
	listener_free(l);
}
