/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The end of life of every connection, active or passive: ended, user told, TIMEWAIT, released
 * (cm.md 5, 6).
 */

#include "cm/private.h"

void
cm_be_patient(struct cm_conn *c, uint64_t now)
{
	c->patience = now + cm_time(c->cm, CM_PEER_MS_MAX);
}

void
cm_set_timer(struct cm_conn *c, uint64_t wait, uint64_t now)
{
	if (c->half_open)
		wait = RTE_MIN(wait, c->patience > now ? c->patience - now : 0);
	timer_start(c->cm->config.wheel, &c->timer, wait);
}

void
cm_fill_info(const struct cm_conn *c, uint64_t now, struct cm_info *info)
{
	*info = (struct cm_info){
		.id = c->id,
		.remote_id = c->remote_id,
		.tid = c->tid,
		.service_id = c->service_id,
		.active = c->active,
		.state = c->state,
		.qpn = c->has_qp || c->users_qp ? c->qpn : 0,
		.remote_qpn = c->remote_qpn,
		.remote_ca_guid = c->remote_ca_guid,
		.path = c->path,
		.alternate = c->alternate,
		.rdma = c->rdma,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.rq_psn = c->rq_psn,
		.sq_psn = c->sq_psn,
		.ack_timeout = c->ack_timeout,
		.retry_count = c->retry_cnt,
		.rnr_retry_count = c->rnr_retry,
		.end = c->end,
		.reason = c->reason,
		.age = now - c->opened,
	};
	if (c->lap_waiting)
		info->proposed = c->proposed;
}

void
cm_tell(struct cm *cm, enum event_type type, uint32_t qpn, struct connection_change change,
	const struct av *av)
{
	struct event ev = { .type = type, .element = qpn, .connection = change };

	ev.connection.port = av->port;
	if (av->encap == ENCAP_IB && !av->grh)
		ev.connection.dlid = av->dlid;
	else
		ev.connection.peer = av->dgid;
	if (cm->config.event != NULL)
		cm->config.event(cm->config.event_arg, &ev);
}

void
cm_tell_of_stranger(struct cm *cm, enum event_type type, uint32_t qpn,
	struct connection_change change, const struct av *av, uint64_t now)
{
	if (!token_bucket_take(&cm->stranger_events, now)) {
		cm->unreported++;
		return;
	}
	change.unreported = cm->unreported;
	cm->unreported = 0;
	cm_tell(cm, type, qpn, change, av);
}

void
cm_tell_of_connection(const struct cm_conn *c, enum event_type type, uint64_t now)
{
	const struct connection_change change = {
		.service_id = c->service_id,
		.peer_qpn = c->remote_qpn,
		.reason = c->reason,
		.end = c->end,
	};
	uint32_t qpn = c->has_qp || c->users_qp ? c->qpn : 0;

	if (c->active || c->budget.proven)
		cm_tell(c->cm, type, qpn, change, &c->path.av);
	else
		cm_tell_of_stranger(c->cm, type, qpn, change, &c->path.av, now);
}

static void
count_end(struct cm *cm, enum cm_end end)
{
	switch (end) {
	case CM_END_DISCONNECTED:
		cm_count(cm, disconnects);
		break;
	case CM_END_REJECTED:
		cm_count(cm, rejected);
		break;
	case CM_END_REFUSED:
		cm_count(cm, refused);
		break;
	case CM_END_TIMEOUT:
		cm_count(cm, timeouts);
		break;
	case CM_END_STALE:
		cm_count(cm, stale);
		break;
	default:
		break;
	}
}

void
cm_tell_end(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now)
{
	struct cm_info info;

	if (c->told)
		return;
	c->told = true;
	c->end = end;
	c->reason = reason;
	if (unlikely(c->trace != NULL))
		cm_trace_put(c, CM_STEP_ENDED, (uint8_t)end, reason);
	count_end(c->cm, end);
	cm_tell_of_connection(c, EVENT_CONNECTION_ENDED, now);
	cm_qp_error(c);
	cm_fill_info(c, now, &info);
	if (c->ops->ended != NULL)
		c->ops->ended(c->user, &info, private_data, len);
}

/*
 * Stop all timers, retries and events. The state is TIMEWAIT before the user is told, so that calls
 * into the CM from ended() find a connection that is over.
 */
static void
enter_timewait(struct cm_conn *c)
{
	timer_disarm(c->cm->config.wheel, &c->timer);
	cm_unwant(c, CM_WORK_SEND | CM_WORK_COMM_EST | CM_WORK_MIGRATED | CM_WORK_QP_ERROR);
	cm_half_open_remove(c);
	cm_probe_end(c);
	c->lap_waiting = false;
	c->state = CM_STATE_TIMEWAIT;
}

void
cm_end_timewait(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now)
{
	enter_timewait(c);
	cm_set_timer(c, cm_peer_time(c->cm, cm_timewait_ms(c->ack_timeout)), now);
	cm_tell_end(c, end, reason, private_data, len, now);
}

void
cm_end_idle(struct cm_conn *c, enum cm_end end, uint16_t reason, const uint8_t *private_data,
	uint8_t len, uint64_t now)
{
	enter_timewait(c);
	cm_tell_end(c, end, reason, private_data, len, now);
	cm_release(c);
}

void
cm_release(struct cm_conn *c)
{
	const struct cm_user *ops = c->ops;
	void *user = c->user;

	cm_qp_destroy(c);
	cm_conn_free(c);
	if (ops != NULL && ops->released != NULL)
		ops->released(user);
}
