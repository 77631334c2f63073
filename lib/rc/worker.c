/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A worker: receives packets for its QPs. Sending: schedule.c.
 */

#include "rc/check.h"
#include "rc/failure.h"
#include "rc/owner.h"

struct rc_worker *
rc_worker_create(struct rc_dev *dev, const struct rc_worker_config *config)
{
	struct rc_worker *w;

	RTE_ASSERT(config->id < RC_WORKERS_MAX);
	if (config->id >= dev->workers || dev->worker[config->id] != NULL)
		return NULL;
	w = mem_zalloc(dev->alloc, sizeof(*w), CACHE_LINE);
	if (w == NULL)
		return NULL;
	/* freed with the device: its QPs may be on other workers */
	if (dev->slabs[config->id] == NULL)
		dev->slabs[config->id] = slab_create(dev->alloc);
	w->slab = dev->slabs[config->id];
	w->slots = rc_slots_create(dev, config->id);
	if (w->slots == NULL || w->slab == NULL) {
		mem_free(dev->alloc, w->slots);
		mem_free(dev->alloc, w);
		return NULL;
	}
	w->dev = dev;
	w->mem = dev->mem;
	w->tx = config->tx;
	w->wheel = config->wheel;
	w->id = config->id;
	w->config = *config;
	w->recorder.sink = rc_recording_sink;
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
	mem_free(w->dev->alloc, w->slots);
	mem_free(w->dev->alloc, w);
}

void
rc_worker_counters(const struct rc_worker *w, int port, struct rc_counters *sum)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from;
	unsigned int p, i;

	RTE_ASSERT(port < RC_PORTS_MAX);
	for (p = 0; p < RC_PORTS_MAX; p++) {
		from = (const uint64_t *)&w->counters[p];
		for (i = 0; (port < 0 || (unsigned int)port == p) && i < RC_COUNTER_COUNT; i++)
			to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	}
}

uint32_t
rc_worker_qps(const struct rc_worker *w)
{
	return __atomic_load_n(&w->num_qps, __ATOMIC_RELAXED);
}

bool
rc_worker_full(const struct rc_worker *w)
{
	/* who is told that there is room will find the slot: pairs with rc_slot_release() */
	return __atomic_load_n(&w->slots->used, __ATOMIC_ACQUIRE) >= w->slots->size;
}

/* --- receive: rc-transport 5 --- */

unsigned int
rc_own(const struct rc_worker *w, struct packet *const *pkts, unsigned int n)
{
	const struct rc_dev *dev = w->dev;
	const struct packet *pkt;
	unsigned int i;

	for (i = 0; i < n; i++) {
		pkt = pkts[i];
		if (unlikely(!COMMON_CASE(rc_owned_by_qp(pkt) &&
			    rc_slot_owner(dev, rc_slot(dev, pkt->dest_qpn)) == w->id)))
			break;
	}
	return i;
}

#define RC_TAKES_REQUESTS  0x1
#define RC_TAKES_RESPONSES 0x2
#define RC_TAKES_ALL       (RC_TAKES_REQUESTS | RC_TAKES_RESPONSES)

/* Which packets each QP state accepts (rc-transport 11) */
static const uint8_t rc_state_takes[QPS_COUNT] = {
	[QPS_RTR] = RC_TAKES_REQUESTS,
	[QPS_RTS] = RC_TAKES_ALL,
	[QPS_SQD] = RC_TAKES_ALL,
};

/*
 * rc-transport 5.5: the packet is from the QP's peer and to the QP's address. The peer may use any
 * UDP source port. `known`, a constant: port and encapsulation fit, and it is RoCE.
 */
static __rte_always_inline bool
address_fits(const struct av *av, const struct packet *pkt, bool known)
{
	if (!known && unlikely(pkt->port != av->port || pkt->encap != av->encap))
		return false;
	if (!known && unlikely(av->encap == ENCAP_IB)) {
		if (pkt->slid != av->dlid || pkt->dlid != av->slid || pkt->has_grh != av->grh)
			return false;
		if (!av->grh)
			return true;
	}
	return likely(gid_equal(&pkt->sgid, &av->dgid)) && likely(gid_equal(&pkt->dgid, &av->sgid));
}

static enum verdict
pkey_violation(struct rc_qp *qp, const struct packet *pkt)
{
	struct rc_worker *w = qp->worker;

	if (pkt->port < RC_PORTS_MAX)
		port_violation(&w->violations[pkt->port].pkey);
	if (w->config.violation != NULL)
		w->config.violation(w->config.violation_arg, pkt, qp->dest_qpn);
	return VERDICT_PKEY;
}

/*
 * A packet with M 1 for an ARMED QP: the peer has migrated. If the packet is on the alternate path,
 * migrate (migrate.c): it is then to be checked against the QP's new path.
 */
static enum verdict
migration_verdict(struct rc_qp *qp, const struct packet *pkt)
{
	enum verdict v;

	if (!qp->worker->config.icrc_unchecked && !wire_crc_ok(pkt, &v))
		return v;
	if (!address_fits(&qp->attr.alt.av, pkt, false)) {
		rc_migration_refused(qp);
		return VERDICT_ADDRESS;
	}
	if (!port_pkey_match(pkt->pkey, qp->attr.alt.pkey))
		return pkey_violation(qp, pkt);
	rc_migrate(qp);
	return RC_PASSED;
}

/* rc-transport 5.5 to 5.8. `known`, a constant: packet_known() is true. */
static __rte_always_inline enum verdict
path_verdict(struct rc_qp *qp, const struct packet *pkt, bool known)
{
	enum verdict v;

	if (unlikely(!address_fits(&qp->path.av, pkt, known)))
		return VERDICT_ADDRESS;
	/* before the P_Key, so that a damaged packet counts no violation (rc-transport 5.8) */
	if (!qp->worker->config.icrc_unchecked && unlikely(!wire_crc_ok(pkt, &v)))
		return v;
	if (!known && !port_pkey_match(pkt->pkey, qp->pkey))
		return pkey_violation(qp, pkt);
	return RC_PASSED;
}

/* The opcode is not of the QP's service class: process a CNP (congestion 2), drop others. */
static enum verdict
receive_cnp(struct rc_qp *qp, const struct packet *pkt)
{
	enum verdict v;

	if (pkt->opcode != OPCODE_CNP)
		return VERDICT_QP_TYPE;
	if (!(rc_state_takes[qp->state] & RC_TAKES_REQUESTS))
		return VERDICT_QP_STATE;
	v = path_verdict(qp, pkt, false);
	if (v != RC_PASSED)
		return v;
	rc_count(qp, rcvd_pkts);
	rc_rp_notified(qp);
	return VERDICT_CNP;
}

/* The packet's class, the QP's state, and migration */
static enum verdict
state_verdict(struct rc_qp *qp, const struct packet *pkt)
{
	bool response = pkt->op->flags & OP_RESPONSE;

	if (OPCODE_CLASS(pkt->opcode) != OPCODE_RC) /* rc-transport 5.4 */
		return receive_cnp(qp, pkt);
	if (!(rc_state_takes[qp->state] & (response ? RC_TAKES_RESPONSES : RC_TAKES_REQUESTS)))
		return VERDICT_QP_STATE;
	if (qp->mig_state == MIG_ARMED && pkt->migreq)
		return migration_verdict(qp, pkt);
	return RC_PASSED;
}

_Static_assert(offsetof(struct packet, port) == offsetof(struct packet, pkey) + 2 &&
		offsetof(struct packet, encap) == offsetof(struct packet, pkey) + 4,
	"packet_word");

/* P_Key, port and encapsulation of a packet in one word */
static inline uint64_t
packet_word(const struct packet *pkt)
{
	uint64_t word;

	memcpy(&word, (const uint8_t *)pkt + offsetof(struct packet, pkey), sizeof(word));
	return word;
}

/*
 * Remember what has been admitted, if class, P_Key, port and encapsulation of a packet decide alone
 * what `known` leaves out: the QP takes all packets, no migration is under way, the addresses are
 * GIDs, and no step is recorded. rc_qp_changed() forgets it.
 */
static void
packet_remember(struct rc_qp *qp, const struct packet *pkt)
{
	if (rc_state_takes[qp->state] == RC_TAKES_ALL && qp->mig_state == MIG_MIGRATED &&
		qp->path.av.encap != ENCAP_IB && qp->trace == NULL)
		qp->known = packet_word(pkt);
}

/* True if the general checks admitted a packet like this one. */
static inline bool
packet_known(const struct rc_qp *qp, const struct packet *pkt)
{
	return likely(OPCODE_CLASS(pkt->opcode) == OPCODE_RC) &&
		likely(packet_word(pkt) == qp->known);
}

/* All checks of rc-transport 5 from 5.4 on */
static inline enum verdict
packet_verdict(struct rc_qp *qp, const struct packet *pkt)
{
	enum verdict v = state_verdict(qp, pkt);

	if (v == RC_PASSED)
		v = path_verdict(qp, pkt, false);
	if (v != RC_PASSED)
		return v;
	if (qp->mig_state == MIG_REARM && !pkt->migreq)
		qp->mig_state = MIG_ARMED; /* the peer is at least in REARM too */
	packet_remember(qp, pkt);
	return RC_PASSED;
}

/* By value: a pointer to a local of rc_receive() would cost each packet a stack canary. */
static enum verdict __rte_noinline
receive_unknown(struct rc_qp *qp, const struct packet *pkt)
{
	bool traced = qp->trace != NULL;
	enum verdict v;

	if (traced)
		rc_trace_received(qp, pkt);
	v = packet_verdict(qp, pkt);
	if (!traced)
		return v;
	if (v == RC_PASSED)
		qp->worker->errors |= RC_RECORDS; /* receive_done() adds the verdict */
	else
		rc_trace_verdict(qp->worker, v);
	return v;
}

static void __rte_noinline
qp_established(struct rc_qp *qp)
{
	qp->comm_est = true;
	rc_qp_event(qp, EVENT_COMM_EST);
}

/* The end of a step that leaves more to do than common ones. */
static void __rte_noinline
receive_done(struct rc_qp *qp, enum verdict v)
{
	struct rc_worker *w = qp->worker;

	if (w->errors & RC_RECORDS) {
		w->errors &= ~RC_RECORDS;
		rc_trace_verdict(w, v);
	}
	rc_step_done(qp);
	if (w->errors & RC_CQ_OVERRUN)
		rc_cq_overruns(w);
}

enum verdict
rc_receive(struct rc_worker *w, const struct packet *pkt, uint64_t now)
{
	struct rc_qp *qp = rc_qp_at(w, pkt->dest_qpn);
	enum verdict v;

	RTE_ASSERT(pkt->op == &opcodes[pkt->opcode]);
	w->now = now;
	if (unlikely(qp == NULL))
		return VERDICT_QPN_UNKNOWN;
	if (likely(COMMON_CASE(packet_known(qp, pkt))))
		v = path_verdict(qp, pkt, true);
	else
		v = receive_unknown(qp, pkt);
	if (unlikely(v != RC_PASSED)) {
		rc_qp_check(qp);
		return v;
	}

	rc_count(qp, rcvd_pkts);
	if (unlikely(pkt->ecn_ce))
		rc_congestion(qp);
	if (pkt->op->flags & OP_RESPONSE) {
		v = rc_complete(qp, pkt);
	} else {
		/*
		 * the PSN shows that the packet is for this QP and not for a predecessor (cm.md 6)
		 */
		if (unlikely(!qp->comm_est) && pkt->psn == qp->resp.epsn)
			qp_established(qp);
		v = rc_respond(qp, pkt);
	}
	if (unlikely(w->errors != 0))
		receive_done(qp, v);
	rc_qp_check(qp);
	return v;
}
