/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker: takes packets in to its queue pairs. How they send, by turns: run.c.
 */

#include <rte_branch_prediction.h>
#include <rte_prefetch.h>

#include "rc/dev.h"
#include "wire/wire.h"

struct rc_worker *
rc_worker_create(struct rc_dev *dev, const struct rc_worker_config *config)
{
	struct rc_worker *w;

	if (config->id >= dev->workers || dev->worker[config->id] != NULL)
		return NULL;
	w = mem_zalloc(dev->alloc, sizeof(*w), CACHE_LINE);
	if (w == NULL)
		return NULL;
	if (dev->slabs[config->id] == NULL) /* it goes with the device: QPs may live elsewhere */
		dev->slabs[config->id] = slab_create(dev->alloc);
	w->slab = dev->slabs[config->id];
	w->slots = rc_slots_create(dev, config->id);
	if (w->slots == NULL || w->slab == NULL) {
		rc_slots_destroy(dev, w->slots);
		mem_free(dev->alloc, w);
		return NULL;
	}
	w->dev = dev;
	w->mem = dev->mem;
	w->tx = config->tx;
	w->wheel = config->wheel;
	w->id = config->id;
	w->icrc_unchecked = config->icrc_unchecked;
	w->event = config->event;
	w->event_arg = config->event_arg;
	w->violation = config->violation;
	w->violation_arg = config->violation_arg;
	STAILQ_INIT(&w->run_queue);
	LIST_INIT(&w->qps);
	LIST_INIT(&w->grace);
	dev->worker[config->id] = w;
	return w;
}

void
rc_worker_destroy(struct rc_worker *w)
{
	uint32_t srqn, cursor = 0;

	if (w == NULL)
		return;
	while (!LIST_EMPTY(&w->qps))
		rc_qp_free(LIST_FIRST(&w->qps));
	while (rc_srq_next(w, &cursor, &srqn))
		rc_srq_destroy(w, srqn, NULL);
	w->dev->worker[w->id] = NULL;
	rc_slots_destroy(w->dev, w->slots);
	mem_free(w->dev->alloc, w);
}

void
rc_event(struct rc_worker *w, enum event_type type, uint32_t element)
{
	struct event ev = { .type = type, .element = element };

	if (w->event != NULL)
		w->event(w->event_arg, &ev);
}

const struct rc_counters *
rc_worker_counters(const struct rc_worker *w)
{
	return &w->counters;
}

uint32_t
rc_worker_qps(const struct rc_worker *w)
{
	return __atomic_load_n(&w->num_qps, __ATOMIC_RELAXED);
}

struct rc_qp *
rc_qp_find(const struct rc_worker *w, uint32_t qpn)
{
	return rc_qp_at(w, qpn);
}

/* --- prefetch --- */

int
rc_arrived(const struct rc_worker *w, const struct packet *pkt)
{
	uint32_t slot = rc_slot(w->dev, pkt->dest_qpn);
	uint8_t owner = rc_slot_owner(w->dev, slot);
	struct rc_qp *qp;

	if (unlikely(owner != w->id))
		return owner == RC_NO_OWNER ? -1 : owner;
	qp = w->dev->qps[slot];
	if (unlikely(qp == NULL))
		return owner;
	rte_prefetch0(qp);
	rte_prefetch0(&qp->path);
	rte_prefetch0(&qp->counters);
	if (pkt->op->flags & OP_RESPONSE) {
		rte_prefetch0(&qp->req);
		rte_prefetch0(&qp->req.ack_timeout);
	} else {
		rte_prefetch0(&qp->recv_cq);
		rte_prefetch0(&qp->own_rq);
	}
	return owner;
}

void
rc_prefetch_queues(const struct rc_worker *w, const struct packet *pkt)
{
	struct rc_qp *qp = rc_qp_there(w, pkt->dest_qpn);

	if (unlikely(qp == NULL))
		return;
	if (pkt->op->flags & OP_RESPONSE) {
		rte_prefetch0(rc_sq_at(&qp->req, qp->req.ack));
	} else {
		if (pkt->op->flags & OP_RQ_WQE)
			rte_prefetch0(rc_rq_at(qp->rq, qp->rq->tail));
		rc_prefetch_header(qp);
	}
}

void
rc_prefetch(const struct rc_worker *w, uint32_t qpn)
{
	struct rc_qp *qp = rc_qp_there(w, qpn);

	if (unlikely(qp == NULL))
		return;
	rte_prefetch0(qp);
	rte_prefetch0(&qp->req);
	rte_prefetch0(&qp->own_rq);
}

/* --- receive: rc-transport 5 --- */

#define TAKES_REQUESTS  0x1
#define TAKES_RESPONSES 0x2

/* rc-transport 11, receive packets */
static const uint8_t state_takes[QPS_COUNT] = {
	[QPS_RTR] = TAKES_REQUESTS,
	[QPS_RTS] = TAKES_REQUESTS | TAKES_RESPONSES,
	[QPS_SQD] = TAKES_REQUESTS | TAKES_RESPONSES,
};

/* 5.4: opcodes of the QP's service class */
static bool
class_fits(const struct rc_qp *qp, const struct packet *pkt)
{
	return OPCODE_CLASS(pkt->opcode) == (qp->type == QPT_RC ? OPCODE_RC : OPCODE_UD);
}

/*
 * 5.5: it comes from the QP's peer and is for the QP's address; the peer may choose any UDP source
 * port
 */
static inline bool
address_fits(const struct av *av, const struct packet *pkt)
{
	if (unlikely(pkt->port != av->port || pkt->encap != av->encap))
		return false;
	if (unlikely(av->encap == ENCAP_IB)) {
		if (pkt->slid != av->dlid || pkt->dlid != av->slid || pkt->has_grh != av->grh)
			return false;
		if (!av->grh)
			return true;
	}
	return gid_equal(&pkt->sgid, &av->dgid) && gid_equal(&pkt->dgid, &av->sgid);
}

static enum verdict
pkey_violation(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_worker *w = qp->worker;

	if (pkt->port < RC_PORTS_MAX)
		port_violation(&w->violations[pkt->port].pkey);
	if (w->violation != NULL)
		w->violation(w->violation_arg, pkt, qp->dest_qpn);
	return VERDICT_PKEY;
}

/*
 * ARMED, and the peer has migrated: only the alternate path will do (migrate.c). True: the packet
 * may go on, by what is now the QP's path.
 */
static bool
migration_request(struct rc_qp *qp, const struct packet *pkt, enum verdict *v)
{
	if (!qp->worker->icrc_unchecked && !wire_crc_ok(pkt, v))
		return false;
	if (!address_fits(&qp->attr.alt_av, pkt)) {
		rc_migration_refused(qp);
		*v = VERDICT_ADDRESS;
		return false;
	}
	if (!port_pkey_match(pkt->pkey, qp->attr.alt_pkey)) {
		*v = pkey_violation(qp, pkt);
		return false;
	}
	rc_migrate(qp);
	return true;
}

/* What completes to the CQ that overran cannot go on. */
void
rc_cq_overruns(struct rc_worker *w)
{
	struct rc_qp *qp;

	w->cq_overrun = false;
	LIST_FOREACH(qp, &w->qps, link) {
		if (qp->state != QPS_RESET &&
				(rc_cq_overrun(qp->send_cq) || rc_cq_overrun(qp->recv_cq)))
			rc_qp_error(qp);
	}
	w->cq_overrun = false; /* set again by completions flushed in vain */
}

/* No packet of a service: its opcode is neither RC nor UD. Congestion 2. */
static enum verdict
receive_cnp(struct rc_qp *qp, const struct packet *pkt)
{
	enum verdict v;

	if (pkt->opcode != OPCODE_CNP)
		return VERDICT_QP_TYPE;
	if ((state_takes[qp->state] & TAKES_REQUESTS) == 0)
		return VERDICT_QP_STATE;
	if (!address_fits(&qp->path.av, pkt))
		return VERDICT_ADDRESS;
	if (!qp->worker->icrc_unchecked && !wire_crc_ok(pkt, &v))
		return v;
	if (!port_pkey_match(pkt->pkey, qp->pkey))
		return pkey_violation(qp, pkt);
	rc_count(qp, rcvd_pkts, 1);
	rc_rp_notified(qp);
	return VERDICT_CNP;
}

enum verdict
rc_receive(struct rc_worker *w, const struct packet *pkt, uint64_t now)
{
	bool response = pkt->op->flags & OP_RESPONSE;
	enum verdict v;
	struct rc_qp *qp;

	w->now = now;
	qp = rc_qp_at(w, pkt->dest_qpn);
	if (unlikely(qp == NULL))
		return VERDICT_QPN_UNKNOWN;
	if (unlikely(!class_fits(qp, pkt)))
		return receive_cnp(qp, pkt);
	if (unlikely((state_takes[qp->state] & (response ? TAKES_RESPONSES : TAKES_REQUESTS)) == 0))
		return VERDICT_QP_STATE;
	if (unlikely(qp->mig_state == MIG_ARMED) && pkt->migreq && !migration_request(qp, pkt, &v))
		return v;
	if (unlikely(!address_fits(&qp->path.av, pkt)))
		return VERDICT_ADDRESS;
	/* before the P_Key, so that a damaged packet counts no violation (rc-transport 5.8) */
	if (!w->icrc_unchecked && unlikely(!wire_crc_ok(pkt, &v)))
		return v;
	if (unlikely(!port_pkey_match(pkt->pkey, qp->pkey)))
		return pkey_violation(qp, pkt);
	if (unlikely(qp->mig_state == MIG_REARM) && !pkt->migreq)
		qp->mig_state = MIG_ARMED; /* the peer is at least in REARM too */

	rc_count(qp, rcvd_pkts, 1);
	if (unlikely(pkt->ecn_ce))
		rc_congestion(qp);
	if (response) {
		v = rc_complete(qp, pkt);
	} else {
		/* the first one of this life, not of one that had the number before (cm.md 6) */
		if (unlikely(!qp->comm_est) && pkt->psn == qp->resp.epsn) {
			qp->comm_est = true;
			rc_event(w, EVENT_COMM_EST, qp->qpn);
		}
		v = rc_respond(qp, pkt);
	}
	if (unlikely(w->cq_overrun))
		rc_cq_overruns(w);
	return v;
}
