/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Clients' queue pairs: modify and query, between the verbs socket's structures and lib/rc's.
 */

#include <errno.h>
#include <string.h>

#include "engine/clients_private.h"

/* A multicast address, which no stranger on the network has as its own. */
union gid
clients_account(uid_t uid)
{
	return (union gid){ .raw = { 0xff, [12] = (uint8_t)(uid >> 24), (uint8_t)(uid >> 16),
				    (uint8_t)(uid >> 8), (uint8_t)uid } };
}

static struct engine_ah
client_ah(const struct verbs_client *c, const struct ring_path *path, const union gid *user)
{
	struct engine_ah ah = {
		.port = c->port,
		.sgid_index = path->sgid_index,
		.traffic_class = path->traffic_class,
		.flow_label = path->flow_label,
		.hop_limit = path->hop_limit,
		.sl = path->sl,
		.dlid = path->dlid,
		.src_path_bits = path->src_path_bits,
		.user = user,
	};

	memcpy(&ah.dgid, path->dgid, sizeof(path->dgid));
	return ah;
}

/*
 * Entries that the worker has not taken yet belong to the life before RESET, and so do the
 * completions that are in lib/rc: in the program's rings, its provider takes them out.
 */
static int
client_queue_reset_here(struct worker *w, void *arg)
{
	struct client_queue *q = arg;
	struct rc_qp_info info;
	int rc = rc_qp_query(w->rc, q->number, &info);

	if (rc != 0)
		return rc;
	client_cq_empty(w, w->engine->client_cqs[info.init.send_cq]);
	client_cq_empty(w, w->engine->client_cqs[info.init.recv_cq]);
	q->send.index += ring_ready(&q->send);
	ring_publish(&q->send);
	if (q->receive.entries != NULL) {
		q->receive.index += ring_ready(&q->receive);
		ring_publish(&q->receive);
	}
	return 0;
}

/* Numbers that become enums, which lib/rc takes as they are; it checks the ranges of all others. */
static int
client_attr_check(const struct ring_qp_attr *a, struct error *err)
{
	if (a->qp_state >= QPS_COUNT || a->cur_qp_state >= QPS_COUNT)
		return error_set(err, EINVAL,
			"qp_state, cur_qp_state: got %u and %u, allowed: 0 to %u", a->qp_state,
			a->cur_qp_state, QPS_COUNT - 1);
	if (a->path_mig_state >= MIG_COUNT)
		return error_set(err, EINVAL, "path_mig_state: got %u, allowed: 0 to %u",
			a->path_mig_state, MIG_COUNT - 1);
	return 0;
}

int
engine_client_qp_modify(struct verbs_client *c, const struct ring_qp_attr *a, struct error *err)
{
	const union gid user = clients_account(c->owner.uid);
	struct engine_ah ah = client_ah(c, &a->path, &user);
	struct engine_ah alt_ah = client_ah(c, &a->alt_path, &user);
	struct client_queue *q = client_qp_at(c, a->slot, err);
	struct qp_attr attr = {
		.qp_state = (enum qp_state)a->qp_state,
		.cur_qp_state = (enum qp_state)a->cur_qp_state,
		.en_sqd_async_notify = a->en_sqd_async_notify != 0,
		.qp_access_flags = a->qp_access_flags,
		.pkey_index = a->pkey_index,
		.port = c->port,
		.path_mtu = port_mtu_bytes((uint8_t)RTE_MIN(a->path_mtu, 255u)),
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.min_rnr_timer = a->min_rnr_timer,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.alt.pkey_index = a->alt_pkey_index,
		.alt.timeout = a->alt_timeout,
		.path_mig_state = (enum mig_state)a->path_mig_state,
	};
	int rc;

	if (q == NULL)
		return -EINVAL;
	rc = client_attr_check(a, err);
	if (rc != 0)
		return rc;
	rc = qp_modify_any(c->engine, q->number, &attr, &ah, &alt_ah, a->mask, err);
	if (rc != 0 || (a->mask & QP_ATTR_STATE) == 0 || attr.qp_state != QPS_RESET)
		return rc;
	rc = engine_call(c->engine, c->worker, client_queue_reset_here, q);
	return rc == 0 ? 0 : error_set(err, -rc, "qp: it is not on its client's worker");
}

static void
client_path_of(const struct av *av, uint16_t sgid_index, struct ring_path *path)
{
	memcpy(path->dgid, &av->dgid, sizeof(path->dgid));
	path->flow_label = av->flow_label;
	path->dlid = av->dlid;
	path->sgid_index = sgid_index;
	path->hop_limit = av->hop_limit;
	path->traffic_class = av->traffic_class;
	path->sl = av->sl;
}

int
engine_client_qp_query(struct verbs_client *c, uint32_t slot, struct ring_qp_attr *a,
	struct error *err)
{
	struct client_queue *q = client_qp_at(c, slot, err);
	struct rc_qp_info info;
	int rc;

	if (q == NULL)
		return -EINVAL;
	rc = engine_qp_query(c->engine, q->number, &info, err);
	if (rc != 0)
		return rc;
	memset(a, 0, sizeof(*a));
	a->slot = slot;
	a->qp_state = a->cur_qp_state = info.attr.qp_state;
	a->path_mtu = port_mtu_code(info.attr.path_mtu);
	a->path_mig_state = info.attr.path_mig_state;
	a->rq_psn = info.attr.rq_psn;
	a->sq_psn = info.attr.sq_psn;
	a->dest_qp_num = info.attr.dest_qp_num;
	a->qp_access_flags = info.attr.qp_access_flags;
	a->pkey_index = info.attr.pkey_index;
	a->max_rd_atomic = info.attr.max_rd_atomic;
	a->max_dest_rd_atomic = info.attr.max_dest_rd_atomic;
	a->min_rnr_timer = info.attr.min_rnr_timer;
	a->timeout = info.attr.timeout;
	a->retry_cnt = info.attr.retry_cnt;
	a->rnr_retry = info.attr.rnr_retry;
	client_path_of(&info.attr.av, info.attr.sgid_index, &a->path);
	return 0;
}
