/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A worker's communication manager: create, destroy, run, query. */

#include <errno.h>

#include "cm/private.h"

#define RESPONSE_TIMEOUT_MAX 31
#define RETRIES_MAX          15

/* Events about strangers: so many at once, then one in so many ms (choices). */
#define STRANGER_EVENTS   16
#define STRANGER_EVENT_MS 250

static uint32_t
cm_clamp(uint32_t v, uint32_t low, uint32_t high)
{
	return RTE_MIN(RTE_MAX(v, low), high);
}

static void
cm_clamp_limits(struct cm *cm)
{
	struct cm_limits *l = &cm->limits;

	l->max_connections = cm_clamp(l->max_connections, 1, 1u << 24);
	l->max_half_open = cm_clamp(l->max_half_open, 1, 1u << 24);
	cm_id_format(&cm->ids, cm->config.workers, l->max_connections + l->max_half_open);
	cm->slots = RTE_MIN(l->max_connections + l->max_half_open, 1u << cm->ids.slot_bits);
	l->max_connections = RTE_MIN(l->max_connections, cm->slots);
	l->max_half_open = RTE_MIN(l->max_half_open, cm->slots);
	l->max_half_open_per_peer = cm_clamp(l->max_half_open_per_peer, 1, l->max_half_open);
	l->max_connections_per_peer = cm_clamp(l->max_connections_per_peer, 1, l->max_connections);
	l->max_listeners = cm_clamp(l->max_listeners, 1, UINT16_MAX);
	l->response_timeout = cm_clamp(l->response_timeout, 0, RESPONSE_TIMEOUT_MAX);
	l->max_retries = cm_clamp(l->max_retries, 0, RETRIES_MAX);
	l->ack_delay = cm_clamp(l->ack_delay, 0, CM_TIME_CODE_MAX);
	l->packet_life = cm_clamp(l->packet_life, 0, CM_TIME_CODE_MAX);
}

struct cm *
cm_create(const struct cm_config *config)
{
	static const struct cm_timers timers = { cm_expired, cm_probe_expired };
	struct cm *cm = mem_zalloc(config->alloc, sizeof(*cm), 64);

	RTE_ASSERT(config->id < config->workers && config->hz > 0);
	RTE_ASSERT(config->wheel != NULL && config->mad != NULL && config->rc != NULL);
	RTE_ASSERT(config->port != NULL && config->rng != NULL);
	if (cm == NULL)
		return NULL;
	cm->config = *config;
	cm->limits = config->limits;
	cm->tick = (config->hz + 999) / 1000;
	token_bucket_init(&cm->stranger_events, cm_time(cm, STRANGER_EVENT_MS), STRANGER_EVENTS);
	cm->tids = rng_u32(config->rng);
	cm_clamp_limits(cm);
	if (cm_table_create(cm, &timers) != 0 || cm_agents_add(cm) != 0) {
		cm_table_destroy(cm);
		mem_free(config->alloc, cm);
		return NULL;
	}
	return cm;
}

void
cm_destroy(struct cm *cm)
{
	uint32_t i;

	if (cm == NULL)
		return;
	for (i = 0; i < cm->slots; i++)
		if (cm->conns[i].id != 0)
			cm_release(&cm->conns[i]);
	cm_table_destroy(cm);
	mem_free(cm->config.alloc, cm);
}

/* --- run --- */

/* Data from the peer establish the connection: the RTU was lost or is late (cm.md 6). */
static void
cm_comm_est(struct cm_conn *c, uint64_t now)
{
	if (c->state == CM_STATE_REP_SENT || c->state == CM_STATE_MRA_REP_RCVD)
		cm_establish(c, NULL, 0, now);
}

static void
cm_migrated(struct cm_conn *c)
{
	struct cm_path path = c->path;
	uint8_t timeout = c->ack_timeout;

	c->path = c->alternate;
	c->ack_timeout = c->alternate_timeout;
	c->alternate = path;
	c->alternate.present = false;
	c->alternate_timeout = timeout;
	/* a DREQ sent on the failed path would not arrive */
	c->to.av = c->path.av;
	c->to.neighbour = c->path.neighbour;
	c->to.pkey = c->path.pkey;
}

static void
cm_qp_failed(struct cm_conn *c, uint64_t now)
{
	if (c->state == CM_STATE_ESTABLISHED) {
		cm_send_dreq(c, NULL, 0, now);
		cm_tell_end(c, CM_END_QP_ERROR, 0, NULL, 0, now);
	} else {
		cm_disconnect(c->cm, c->id, NULL, 0, now);
	}
}

static void
cm_receives_wanted(const struct cm_conn *c)
{
	if (!c->told && c->ops->receives_wanted != NULL)
		c->ops->receives_wanted(c->user);
}

/*
 * Do one piece of a connection's work, which may free the connection. @return false: sink is full
 */
static bool
cm_work(struct cm_conn *c, uint64_t now)
{
	uint8_t bit = (uint8_t)(c->work & -c->work);

	if (bit == CM_WORK_SEND && !cm_send_waiting(c))
		return false;
	cm_unwant(c, bit);
	if (bit == CM_WORK_COMM_EST)
		cm_comm_est(c, now);
	else if (bit == CM_WORK_MIGRATED)
		cm_migrated(c);
	else if (bit == CM_WORK_QP_ERROR)
		cm_qp_failed(c, now);
	else if (bit == CM_WORK_RQ_EMPTY)
		cm_receives_wanted(c);
	else if (bit == CM_WORK_RELEASE)
		cm_release(c);
	cm_conn_check(c);
	return true;
}

unsigned int
cm_run(struct cm *cm, uint64_t now, unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget && !TAILQ_EMPTY(&cm->work) && cm_work(TAILQ_FIRST(&cm->work), now))
		done++;
	RTE_ASSERT(done <= budget);
	return done;
}

bool
cm_pending(const struct cm *cm)
{
	return !TAILQ_EMPTY(&cm->work);
}

/* CM_WORK_... of an event; 0 for events that cm_run() has nothing to do about. */
static uint8_t
cm_work_of(enum event_type type)
{
	switch (type) {
	case EVENT_COMM_EST:
		return CM_WORK_COMM_EST;
	case EVENT_PATH_MIG:
		return CM_WORK_MIGRATED;
	case EVENT_QP_FATAL:
	case EVENT_QP_REQ_ERR:
	case EVENT_QP_ACCESS_ERR:
		return CM_WORK_QP_ERROR;
	case EVENT_RQ_EMPTY:
		return CM_WORK_RQ_EMPTY;
	default:
		return 0;
	}
}

void
cm_qp_event(struct cm *cm, const struct event *ev)
{
	uint8_t work = cm_work_of(ev->type);
	struct cm_conn *c;

	if (work == 0 && ev->type != EVENT_PATH_MIG_ERR)
		return;
	c = cm_find(cm, CM_KEY_QPN, 0, ev->element, NULL);
	if (c == NULL)
		return;
	if (work == 0)
		c->alternate.present = false;
	else if (c->state != CM_STATE_TIMEWAIT)
		cm_want(c, work);
	cm_conn_check(c);
}

/* --- queries --- */

bool
cm_get(const struct cm *cm, cm_id id, uint64_t now, struct cm_info *info)
{
	const struct cm_conn *c = cm_conn_of(cm, id);

	if (c != NULL)
		cm_fill_info(c, now, info);
	return c != NULL;
}

void *
cm_user_of(const struct cm *cm, cm_id id, const struct cm_user *ops)
{
	const struct cm_conn *c = cm_conn_of(cm, id);

	return c != NULL && c->ops == ops ? c->user : NULL;
}

cm_id
cm_of_qp(const struct cm *cm, uint32_t qpn)
{
	const struct cm_conn *c = cm_find(cm, CM_KEY_QPN, 0, qpn, NULL);

	return c != NULL ? c->id : 0;
}

bool
cm_next(const struct cm *cm, uint32_t *cursor, uint64_t now, struct cm_info *info)
{
	while (*cursor < cm->high) {
		const struct cm_conn *c = &cm->conns[(*cursor)++];

		if (c->id == 0)
			continue;
		cm_fill_info(c, now, info);
		return true;
	}
	return false;
}

const struct cm_counters *
cm_counters(const struct cm *cm)
{
	return &cm->counters;
}

struct cm_limited *
cm_limited(struct cm *cm)
{
	return &cm->limited;
}

/* --- flight recorder: trace.c --- */

static int
conn_trace_switch(struct cm_conn *c, bool on)
{
	if (on)
		return cm_trace_start(c);
	cm_trace_free(c);
	return 0;
}

int
cm_trace_switch(struct cm *cm, cm_id id, bool on)
{
	struct cm_conn *c = cm_conn_of(cm, id);

	return c == NULL ? -ENOENT : conn_trace_switch(c, on);
}

unsigned int
cm_trace_switch_all(struct cm *cm, bool on)
{
	unsigned int n = 0;
	uint32_t i;

	cm->trace_all = on;
	for (i = 0; i < cm->high; i++)
		n += cm->conns[i].id != 0 && conn_trace_switch(&cm->conns[i], on) == 0;
	return n;
}

int
cm_trace(const struct cm *cm, cm_id id, struct trace *copy)
{
	const struct cm_conn *c = cm_conn_of(cm, id);

	if (c == NULL)
		return -ENOENT;
	if (c->trace == NULL)
		return -ENODATA;
	*copy = *c->trace;
	return 0;
}
