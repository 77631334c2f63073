/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Queue pairs: create, modify, query, destroy.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

static void
qp_map_rings(struct polca_qp *qp, const struct ring_queue_reply *reply)
{
	struct polca_context *c = qp->queue.context;
	struct ring_queue *shared = &c->queues[reply->slot];

	qp->queue.shared = shared;
	qp->queue.slot = reply->slot;
	ring_end_init(&qp->send, c->segment + reply->send_entries, reply->send_num,
		reply->send_stride, &shared->send_head, &shared->send_tail);
	if (reply->receive_num > 0)
		ring_end_init(&qp->receive, c->segment + reply->receive_entries, reply->receive_num,
			reply->receive_stride, &shared->receive_head, &shared->receive_tail);
}

static int
qp_request(struct polca_qp *qp, struct ibv_pd *pd, const struct ibv_qp_init_attr *a,
	struct ring_queue_reply *made)
{
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	object_begin(qp->queue.context, &qp->object, &qp->verbs.qp, -1);
	req.qp = (struct ring_qp_create){
		.cookie = qp->object.cookie,
		.caps = {
			.max_send_wr = a->cap.max_send_wr,
			.max_recv_wr = a->cap.max_recv_wr,
			.max_send_sge = a->cap.max_send_sge,
			.max_recv_sge = a->cap.max_recv_sge,
			.max_inline_data = a->cap.max_inline_data,
		},
		.pd = ((struct polca_pd *)pd)->slot,
		.send_cq = ((struct polca_cq *)a->send_cq)->slot,
		.recv_cq = ((struct polca_cq *)a->recv_cq)->slot,
		.srq = a->srq != NULL ? ((struct polca_srq *)a->srq)->queue.slot : RING_NONE,
		.sq_sig_all = a->sq_sig_all != 0,
	};
	rc = POLCA_CALL(qp->queue.context, RING_QP_CREATE, &req, qp, &reply);
	*made = reply.queue;
	return rc;
}

/* What libibverbs itself fills in after the kernel's reply. */
static void
qp_fill_ibv(struct ibv_qp *ibv, struct ibv_pd *pd, const struct ibv_qp_init_attr *a, uint32_t qpn)
{
	ibv->context = pd->context;
	ibv->qp_context = a->qp_context;
	ibv->pd = pd;
	ibv->send_cq = a->send_cq;
	ibv->recv_cq = a->recv_cq;
	ibv->srq = a->srq;
	ibv->handle = ibv->qp_num = qpn;
	ibv->qp_type = a->qp_type;
	ibv->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
}

struct ibv_qp *
polca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a)
{
	struct ring_queue_reply made;
	struct polca_qp *qp;
	int rc;

	if (a->qp_type != IBV_QPT_RC) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (qp == NULL)
		return NULL;
	qp->queue.context = context_of(pd->context);
	rc = qp_request(qp, pd, a, &made);
	if (rc != 0) {
		free(qp);
		errno = rc;
		return NULL;
	}
	qp_map_rings(qp, &made);
	qp->caps = made.caps;
	qp->sq_sig_all = a->sq_sig_all != 0;
	pthread_spin_init(&qp->send_lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->receive_lock, PTHREAD_PROCESS_PRIVATE);
	qp_fill_ibv(&qp->verbs.qp, pd, a, made.number);
	a->cap = (struct ibv_qp_cap){
		.max_send_wr = made.caps.max_send_wr,
		.max_recv_wr = made.caps.max_recv_wr,
		.max_send_sge = made.caps.max_send_sge,
		.max_recv_sge = made.caps.max_recv_sge,
		.max_inline_data = made.caps.max_inline_data,
	};
	qp->init = *a;
	users_add(qp);
	object_add(qp->queue.context, &qp->object);
	return &qp->verbs.qp;
}

/* The newer way to create, and if the program names operations, to post. */
struct ibv_qp *
polca_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex)
{
	struct ibv_qp_init_attr a = {
		.qp_context = ex->qp_context,
		.send_cq = ex->send_cq,
		.recv_cq = ex->recv_cq,
		.srq = ex->srq,
		.cap = ex->cap,
		.qp_type = ex->qp_type,
		.sq_sig_all = ex->sq_sig_all,
	};
	uint32_t optional = IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	bool wr = (ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
	struct ibv_qp *qp;

	(void)context;
	if ((ex->comp_mask & ~optional) != IBV_QP_INIT_ATTR_PD ||
		((ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && ex->create_flags != 0) ||
		(wr && !wr_operations_allowed(ex->send_ops_flags))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = polca_create_qp(ex->pd, &a);
	ex->cap = a.cap;
	if (qp != NULL && wr)
		wr_set_operations((struct polca_qp *)(void *)qp);
	return qp;
}

int
polca_destroy_qp(struct ibv_qp *ibv)
{
	struct polca_qp *qp = (struct polca_qp *)(void *)ibv;
	int rc = polca_call_destroy(qp->queue.context, RING_QP_DESTROY, qp->queue.slot);

	if (rc != 0)
		return rc;
	users_remove(qp);
	object_remove(qp->queue.context, &qp->object, -1);
	events_wait(&ibv->mutex, &ibv->cond, &ibv->events_completed, qp->object.async_events);
	pthread_spin_destroy(&qp->send_lock);
	pthread_spin_destroy(&qp->receive_lock);
	pthread_mutex_destroy(&ibv->mutex);
	pthread_cond_destroy(&ibv->cond);
	free(qp);
	return 0;
}

/* --- modify and query --- */

static void
path_from_ah(const struct ibv_ah_attr *ah, struct ring_path *path)
{
	memcpy(path->dgid, &ah->grh.dgid, sizeof(path->dgid));
	path->flow_label = ah->grh.flow_label;
	path->dlid = ah->dlid;
	path->sgid_index = ah->grh.sgid_index;
	path->hop_limit = ah->grh.hop_limit;
	path->traffic_class = ah->grh.traffic_class;
	path->sl = ah->sl;
	path->src_path_bits = ah->src_path_bits;
}

static void
path_to_ah(const struct ring_path *path, struct ibv_ah_attr *ah)
{
	memcpy(&ah->grh.dgid, path->dgid, sizeof(path->dgid));
	ah->grh.flow_label = path->flow_label;
	ah->dlid = path->dlid;
	ah->grh.sgid_index = (uint8_t)path->sgid_index;
	ah->grh.hop_limit = path->hop_limit;
	ah->grh.traffic_class = path->traffic_class;
	ah->sl = path->sl;
	ah->src_path_bits = path->src_path_bits;
	ah->is_global = 1;
	ah->port_num = 1;
}

/* After RESET both ends of a ring begin where the worker is. */
static void
qp_reset_rings(struct polca_qp *qp)
{
	qp->send.index = qp->send.seen = __atomic_load_n(qp->send.others, __ATOMIC_ACQUIRE);
	ring_publish(&qp->send);
	if (qp->receive.entries != NULL) {
		qp->receive.index = qp->receive.seen =
			__atomic_load_n(qp->receive.others, __ATOMIC_ACQUIRE);
		ring_publish(&qp->receive);
	}
	users_reset(qp);
}

int
polca_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask)
{
	struct polca_qp *qp = (struct polca_qp *)(void *)ibv;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int rc;

	if (((mask & IBV_QP_PORT) && a->port_num != 1) ||
		((mask & IBV_QP_AV) && (!a->ah_attr.is_global || a->ah_attr.port_num != 1)))
		return EINVAL;
	req.attr = (struct ring_qp_attr){
		.slot = qp->queue.slot,
		.mask = (uint32_t)mask,
		.qp_state = mask & IBV_QP_STATE ? a->qp_state : IBV_QPS_RESET,
		.cur_qp_state = mask & IBV_QP_CUR_STATE ? a->cur_qp_state : IBV_QPS_RESET,
		.path_mtu = a->path_mtu,
		.path_mig_state =
			mask & IBV_QP_PATH_MIG_STATE ? a->path_mig_state : IBV_MIG_MIGRATED,
		.rq_psn = a->rq_psn,
		.sq_psn = a->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.qp_access_flags = a->qp_access_flags,
		.pkey_index = a->pkey_index,
		.alt_pkey_index = a->alt_pkey_index,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_timeout = a->alt_timeout,
		.en_sqd_async_notify = a->en_sqd_async_notify,
	};
	path_from_ah(&a->ah_attr, &req.attr.path);
	path_from_ah(&a->alt_ah_attr, &req.attr.alt_path);
	rc = POLCA_CALL(qp->queue.context, RING_QP_MODIFY, &req, attr, &reply);
	if (rc == 0 && (mask & IBV_QP_STATE) && a->qp_state == IBV_QPS_RESET)
		qp_reset_rings(qp);
	return rc;
}

int
polca_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init)
{
	struct polca_qp *qp = (struct polca_qp *)(void *)ibv;
	struct ring_request req = { .slot.slot = qp->queue.slot };
	struct ring_reply reply;
	const struct ring_qp_attr *r = &reply.attr;
	int rc;

	(void)mask;
	rc = POLCA_CALL(qp->queue.context, RING_QP_QUERY, &req, slot, &reply);
	if (rc != 0)
		return rc;
	*a = (struct ibv_qp_attr){
		.qp_state = (enum ibv_qp_state)r->qp_state,
		.cur_qp_state = (enum ibv_qp_state)r->cur_qp_state,
		.path_mtu = (enum ibv_mtu)r->path_mtu,
		.path_mig_state = (enum ibv_mig_state)r->path_mig_state,
		.rq_psn = r->rq_psn,
		.sq_psn = r->sq_psn,
		.dest_qp_num = r->dest_qp_num,
		.qp_access_flags = r->qp_access_flags,
		.cap = qp->init.cap,
		.pkey_index = r->pkey_index,
		.max_rd_atomic = r->max_rd_atomic,
		.max_dest_rd_atomic = r->max_dest_rd_atomic,
		.min_rnr_timer = r->min_rnr_timer,
		.port_num = 1,
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
	};
	path_to_ah(&r->path, &a->ah_attr);
	*init = qp->init;
	ibv->state = a->qp_state;
	return 0;
}
