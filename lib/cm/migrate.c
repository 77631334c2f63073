/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Alternate paths of an established connection: LAP and APR (cm.md 2, 3). */

#include <errno.h>

#include "cm/private.h"

/* --- LAPs that we send --- */

int
cm_load_alternate(struct cm *cm, cm_id id, const struct cm_path *path, uint64_t now,
	struct error *err)
{
	struct cm_conn *c = cm_conn_of(cm, id);
	struct cm_msg m = { .type = CM_LAP };

	RTE_ASSERT(path != NULL);
	if (c == NULL || c->state != CM_STATE_ESTABLISHED)
		return error_set(err, ENOENT, "id: there is no established connection 0x%08x", id);
	if (c->users_qp)
		return error_set(err, EOPNOTSUPP, "id: 0x%08x is a program's own connection", id);
	if (c->lap_waiting)
		return error_set(err, EBUSY, "id: a LAP still waits for its APR");
	if (cm_port(cm, path->av.port) == NULL)
		return error_set(err, ENODEV, "path: there is no port %u", path->av.port);
	c->proposed = *path;
	c->proposed.present = true;
	c->proposed_timeout = cm_ack_timeout(cm_packet_life(cm, path), cm->limits.ack_delay);
	c->lap_waiting = true;
	m.tid = cm_new_tid(c);
	m.lap = (struct cm_lap){
		.qpn = c->remote_qpn,
		.remote_response_timeout = cm->limits.response_timeout,
	};
	cm_path_say(cm, path, c->proposed_timeout, &m.lap.alternate);
	cm_ask(c, &m, c->dreq_interval, now);
	cm_conn_check(c);
	return 0;
}

void
cm_lap_give_up(struct cm_conn *c)
{
	c->lap_waiting = false;
	cm_unwant(c, CM_WORK_SEND);
	timer_disarm(c->cm->config.wheel, &c->timer);
}

void
cm_apr(struct cm_conn *c, struct cm_rx *rx)
{
	if (!c->lap_waiting || rx->msg.tid != get_be64(c->mad + MAD_OFF_TID)) {
		cm_count(c->cm, duplicates);
		return;
	}
	cm_lap_give_up(c);
	if (rx->msg.apr.status != CM_APR_OK ||
		cm_qp_arm(c, &c->proposed, c->proposed_timeout) != CM_APR_OK)
		return;
	c->alternate = c->proposed;
	c->alternate_timeout = c->proposed_timeout;
}

/* --- LAPs that the peer sends --- */

static void
send_apr(struct cm_conn *c, const struct cm_rx *rx, uint8_t status)
{
	const struct cm_msg m = {
		.type = CM_APR,
		.tid = rx->msg.tid,
		.local_id = rx->msg.remote_id,
		.remote_id = rx->msg.local_id,
		.apr = { .status = status },
	};

	if (c != NULL)
		cm_trace_sent(c, CM_APR, 0);
	cm_send(rx->cm, rx->peer, &m);
}

static bool
cm_same_path(const struct cm_path *a, const struct cm_path *b)
{
	return a->av.port == b->av.port && a->av.encap == b->av.encap &&
		gid_equal(&a->av.dgid, &b->av.dgid) && gid_equal(&a->av.sgid, &b->av.sgid) &&
		a->av.dlid == b->av.dlid && a->av.slid == b->av.slid && a->av.sl == b->av.sl;
}

static uint8_t
load_proposed(struct cm_conn *c, const struct cm_rx *rx)
{
	const struct cm_lap *lap = &rx->msg.lap;
	struct cm_path path;
	uint16_t reason;
	uint8_t status;

	if (lap->qpn != c->qpn)
		return CM_APR_INVALID_QPN;
	reason = cm_path_back(rx, c, &lap->alternate, &path);
	if (reason != 0)
		return cm_reason_apr(reason);
	if (cm_same_path(&path, &c->path))
		return CM_APR_IS_CURRENT;
	if (path.mtu < c->path.mtu || !cm_path_take_pkey(c->cm, &path, c->path.pkey))
		return CM_APR_REJECTED;
	path.mtu = c->path.mtu;
	status = cm_qp_arm(c, &path, lap->alternate.ack_timeout);
	if (status == CM_APR_OK) {
		c->alternate = path;
		c->alternate_timeout = lap->alternate.ack_timeout;
	}
	return status;
}

void
cm_lap(struct cm_conn *c, struct cm_rx *rx)
{
	if (c->lap_answered && c->lap_tid == rx->msg.tid) {
		cm_count(c->cm, duplicates);
	} else {
		c->lap_status = load_proposed(c, rx);
		c->lap_tid = rx->msg.tid;
		c->lap_answered = true;
	}
	send_apr(c, rx, c->lap_status);
}

void
cm_stray_lap(struct cm_conn *c, struct cm_rx *rx)
{
	RTE_SET_USED(c);
	cm_count(rx->cm, unmatched);
	send_apr(c, rx, CM_APR_INVALID_ID);
}
