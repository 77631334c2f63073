/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections of a worker: its communication manager and its part of the services.
 */

#include <errno.h>

#include <rte_cycles.h>

#include "engine/connections.h"
#include "engine/subnet.h"

/* After so many changes at once, so many a second are reported; the others are counted. */
#define CONNECTION_EVENTS        200
#define CONNECTION_EVENTS_SECOND 50

static void
connections_changed(void *worker, const struct event *ev)
{
	struct worker *w = worker;

	if (w->connection_events.interval == 0)
		token_bucket_init(&w->connection_events, w->engine->hz / CONNECTION_EVENTS_SECOND,
			CONNECTION_EVENTS);
	if (token_bucket_take(&w->connection_events, w->last))
		events_put(w, ev);
	else
		w->stats.events_held++;
}

int
connections_create(struct worker *w, struct error *err)
{
	const struct engine *e = w->engine;
	struct cm_config config = {
		.id = w->id,
		.workers = w->workers,
		.hz = e->hz,
		.hash_key = e->cm_hash_key,
		.alloc = e->alloc,
		.rng = &rng_kernel,
		.wheel = w->wheel,
		.mad = w->mad,
		.rc = w->rc,
		.ca_guid = node_guid(e),
		.port = worker_port,
		.port_arg = w,
		.event = connections_changed,
		.event_arg = w,
		.limits = e->config.cm,
	};

	config.limits.max_rd_atomic = e->config.limits.max_rd_atomic;
	w->cm_hash_key = e->cm_hash_key;
	w->cm = cm_create(&config);
	return w->cm != NULL ? 0
			     : error_set(err, ENOMEM,
				       "no memory for %u connections on worker %u: lower "
				       "cm.max_connections, or raise eal.memory_mb",
				       config.limits.max_connections, w->id);
}

void
connections_destroy(struct worker *w)
{
	unsigned int i;

	for (i = 0; i < w->num_svc; i++)
		if (w->svc[i] != NULL)
			svc_worker_unlisten(w->svc[i]);
	if (w->cm != NULL)
		cm_destroy(w->cm);
	w->cm = NULL;
	for (i = 0; i < w->num_svc; i++)
		if (w->svc[i] != NULL)
			svc_worker_destroy(w->svc[i]);
	w->num_svc = 0;
}

static bool
connections_is_service(const struct worker *w, uint32_t qpn)
{
	cm_id id = w->cm != NULL ? cm_of_qp(w->cm, qpn) : 0;
	unsigned int i;

	for (i = 0; id != 0 && i < w->num_svc; i++)
		if (w->svc[i] != NULL && svc_worker_has(w->svc[i], id))
			return true;
	return false;
}

void
connections_event(void *worker, const struct event *ev)
{
	struct worker *w = worker;

	if (w->cm != NULL)
		cm_qp_event(w->cm, ev);
	/* every accepted connection raises one; it concerns only the communication manager */
	if (ev->type == EVENT_COMM_EST && w->cm != NULL && cm_of_qp(w->cm, ev->element) != 0)
		return;
	/* services count these themselves; each message of a fast peer may raise one */
	if (ev->type == EVENT_RQ_EMPTY && connections_is_service(w, ev->element))
		return;
	events_put(w, ev);
}

unsigned int
connections_serve(struct worker *w, uint64_t now)
{
	unsigned int i, work = 0;

	for (i = 0; i < w->num_svc; i++)
		if (w->svc[i] != NULL)
			work += svc_worker_run(w->svc[i], now, WORKER_BUDGET);
	return work;
}

static bool
connections_is_over(const struct cm_info *info)
{
	return info->state == CM_STATE_TIMEWAIT || info->state == CM_STATE_IDLE;
}

int
connections_busy(struct worker *w, void *arg)
{
	uint64_t now = rte_get_tsc_cycles();
	struct cm_info info;
	uint32_t cursor = 0;

	RTE_SET_USED(arg);
	while (cm_next(w->cm, &cursor, now, &info))
		if (!connections_is_over(&info))
			return 1;
	return 0;
}

int
connections_end(struct worker *w, void *arg)
{
	uint64_t now = rte_get_tsc_cycles();
	struct cm_info info;
	uint32_t cursor = 0;

	RTE_SET_USED(arg);
	while (cm_next(w->cm, &cursor, now, &info))
		if (!connections_is_over(&info) && info.state != CM_STATE_DREQ_SENT)
			cm_disconnect(w->cm, info.id, NULL, 0, now);
	return 0;
}
