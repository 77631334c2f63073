/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The end of setup, active or passive: established, and the user takes its place (cm.md 5). */

#include "cm/private.h"

/*
 * A passive connection is established: it counts among max_connections now, and gets its user if
 * that waited for it.
 * @return false: no place for it; if the user ended it in prepare(), nothing is left to do
 */
static bool
take_seat(struct cm_conn *c)
{
	const struct cm_request req = {
		.service_id = c->service_id,
		.id = c->id,
		.port = c->path.av.port,
		.remote_id = c->remote_id,
		.remote_ca_guid = c->remote_ca_guid,
		.remote_qpn = c->remote_qpn,
		.remote_psn = c->sq_psn,
		.responder_resources = c->responder_resources,
		.initiator_depth = c->initiator_depth,
		.retry_count = c->retry_cnt,
		.rnr_retry_count = c->rnr_retry,
		.path = c->path,
		.alternate = c->alternate,
		.rdma = c->rdma,
	};

	if (cm_standing(c->cm) > c->cm->limits.max_connections || !cm_prefix_room_for(c))
		return false;
	if (c->listener == NULL)
		return true;
	if (c->seat_ops->seat(c->listener, &req, &c->user) != 0)
		return false;
	c->ops = c->seat_ops;
	return cm_qp_prepare(c, NULL) == 0;
}

void
cm_establish(struct cm_conn *c, const uint8_t *private_data, uint8_t len, uint64_t now)
{
	struct cm_info info;
	cm_id id = c->id;

	timer_disarm(c->cm->config.wheel, &c->timer);
	cm_unwant(c, CM_WORK_SEND);
	cm_half_open_remove(c);
	c->budget.proven = true;
	c->state = CM_STATE_ESTABLISHED;
	if (!c->active && !take_seat(c)) {
		if (cm_lives(c, id) && c->state == CM_STATE_ESTABLISHED) {
			cm_count(c->cm, no_place);
			limit_peer_note(&c->cm->limited.no_place, c->peer->addr.raw);
			cm_send_dreq(c, NULL, 0, now);
		}
		return;
	}
	cm_count(c->cm, connections);
	cm_tell_of_connection(c, EVENT_CONNECTION_MADE, now);
	cm_fill_info(c, now, &info);
	if (c->ops->established != NULL)
		c->ops->established(c->user, &info, private_data, len);
}
