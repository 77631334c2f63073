/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The poll loop of a worker. A turn runs the commands, takes a burst from the worker's queues and
 * from the hand-off rings, imports QPs that other workers gave it, processes the packets, runs the
 * timers and the services, lets QPs, the CM and the agents send, and flushes. It reads the clock
 * twice: at its beginning, and after it has taken the packets. Nothing from here down takes a lock,
 * allocates or logs.
 */

#include <sys/prctl.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

#include "base/tsan.h"
#include "engine/clients_worker.h"
#include "engine/connections.h"
#include "engine/live_agent.h"
#include "engine/pma_agent.h"
#include "engine/subnet.h"
#include "engine/vl15.h"
#include "engine/worker.h"
#include "rc/owner.h"
#include "wire/wire.h"

#define NOBODY         (-1)
#define VL15_ELSEWHERE (-2) /* worker 0, by its SMP ring */

/*
 * The verdict of a packet without owner (rc-transport 5.3; RoCEv2 congestion notification; smp-sma
 * 1).
 */
static enum verdict
worker_drop_verdict(const struct worker *w, const struct packet *pkt)
{
	enum verdict why = VERDICT_ICRC;

	if (vl15_takes(pkt))
		return VERDICT_SMP;
	if (pkt->opcode == OPCODE_CNP)
		return w->icrc_unchecked || wire_crc_ok(pkt, &why) ? VERDICT_CNP : why;
	if (pkt->dest_qpn == QPN_MULTICAST)
		return VERDICT_MULTICAST;
	return VERDICT_QPN_UNKNOWN;
}

/*
 * Owner of a packet to QP0 or QP1. Worker 0 owns QP0, and only QP0 may use VL15. The owner of a
 * QP1 datagram follows from its connection or its session. A packet that is no UD datagram stays
 * here, where lib/mad drops it.
 */
static int
worker_mad_owner(const struct worker *w, const struct packet *pkt)
{
	if (pkt->dest_qpn == QPN_SMI)
		return w->id != 0 && vl15_takes(pkt) ? VL15_ELSEWHERE : 0;
	if (vl15_takes(pkt))
		return NOBODY;
	if (OPCODE_CLASS(pkt->opcode) == OPCODE_UD && connections_message(pkt))
		return (int)cm_owner(w->cm_hash_key, w->workers, pkt->payload);
	if (OPCODE_CLASS(pkt->opcode) == OPCODE_UD)
		return (int)mad_owner(w->mad_hash_key, w->workers, pkt);
	return (int)w->id;
}

/* With DCQCN a CNP goes to the owner of the QP that is to slow down (congestion 2). */
static int
cnp_owner(const struct worker *w, const struct packet *pkt)
{
	return w->engine->config.limits.congestion.dcqcn ? rc_owner(w->dev, pkt->dest_qpn) : NOBODY;
}

/* Owner of a packet that is not for an ordinary QP: QP0, QP1, VL15, CNP or multicast. */
static int __rte_noinline
worker_other_owner(const struct worker *w, const struct packet *pkt)
{
	if (pkt->dest_qpn <= QPN_GSI || pkt->vl == LRH_VL_SMP)
		return worker_mad_owner(w, pkt);
	if (pkt->opcode == OPCODE_CNP)
		return cnp_owner(w, pkt);
	return NOBODY; /* multicast */
}

static inline int
worker_packet_owner(const struct worker *w, const struct packet *pkt)
{
	if (unlikely(!rc_owned_by_qp(pkt)))
		return worker_other_owner(w, pkt);
	return rc_owner(w->dev, pkt->dest_qpn);
}

/* A packet for QP0 or QP1. @retval false  it waits in the VL15 buffer, which now owns it */
static bool
worker_receive_mad(struct worker *w, struct packet *pkt, uint64_t now)
{
	enum verdict v;

	if (pkt->dest_qpn == QPN_GSI)
		v = mad_receive(w->mad, pkt, now);
	else if (!vl15_takes(pkt))
		v = mad_receive_smp(w->mad, pkt, now); /* not on VL15: this finds the verdict */
	else if (vl15_put(w, pkt))
		return false;
	else
		v = VERDICT_VL15_DROPPED;
	worker_count(w, pkt, v);
	if (connections_message(pkt))
		wakeup_send(w->engine); /* a connection may have changed */
	return true;
}

/* True if the packet reached its QP, which counted it (rcvd_pkts). */
static inline bool
worker_reached_qp(enum verdict v)
{
	return v <= VERDICT_RNR_NAK_SENT || (v >= VERDICT_OUT_OF_SEQUENCE && v <= VERDICT_SYNDROME);
}

/*
 * Process packets that this worker owns, and free them.
 *
 * @param from  the worker that handed them off, or NOBODY
 */
static __rte_always_inline void
worker_receive(struct worker *w, struct packet **pkts, unsigned int n, uint64_t now, int from)
{
	bool crowd = rc_crowd(w->rc);
	unsigned int i, done = 0;
	enum verdict v;

	for (i = 0; i < n; i++) {
		struct packet *pkt = pkts[i];

		if (crowd)
			rc_look_ahead(w->rc, pkts, n, i);
		if (likely(pkt->dest_qpn > QPN_GSI)) {
			v = rc_receive(w->rc, pkt, now);
			if (unlikely(v == VERDICT_QPN_UNKNOWN) && rehome_stray(w, pkt, now, &v))
				continue;
			worker_count(w, pkt, v);
			if (from != NOBODY && worker_reached_qp(v))
				rehome_note(w, (unsigned int)from, pkt);
		} else if (!worker_receive_mad(w, pkt, now)) {
			continue;
		}
		pkts[done++] = pkt;
	}
	link_free(pkts, done);
}

void
worker_sort(struct worker *w, struct packet **pkts, unsigned int n, uint64_t now)
{
	struct packet *lost[LINK_BURST];
	bool crowd = rc_crowd(w->rc);
	unsigned int i, own, nobody = 0;

	for (i = 0; crowd && i < n; i++)
		rc_prefetch_place(w->rc, pkts[i]->dest_qpn);
	own = rc_own(w->rc, pkts, n); /* usually all */
	for (i = own; i < n; i++) {
		struct packet *pkt = pkts[i];
		int to = worker_packet_owner(w, pkt);

		if (likely(to == (int)w->id)) {
			pkts[own++] = pkt;
		} else if (to >= 0) {
			if (likely(w->rehome.num_arriving == 0) || !rehome_park(w, pkt))
				handoff_stage(w, (unsigned int)to, pkt);
		} else if (to == VL15_ELSEWHERE) {
			handoff_smp(w, pkt);
		} else {
			worker_count(w, pkt, worker_drop_verdict(w, pkt));
			lost[nobody++] = pkt;
		}
	}
	if (unlikely(w->num_dirty > 0))
		handoff_flush(w);
	if (unlikely(nobody > 0))
		link_free(lost, nobody);
	if (own > 0)
		worker_receive(w, pkts, own, now, NOBODY);
}

/* Dequeue what other workers received for this one. @return number of packets */
static unsigned int
worker_take_handed_over(struct worker *w)
{
	unsigned int from, total = 0;

	for (from = 0; from < w->workers; from++) {
		if (from == w->id)
			continue;
		w->arrived[from].n = handoff_take(w, from, w->arrived[from].pkt);
		total += w->arrived[from].n;
	}
	return total;
}

/* rc_receive() notices when the QP was destroyed or moved in the meantime. */
static void
worker_receive_handed_over(struct worker *w, uint64_t now)
{
	struct handoff_burst *in;
	unsigned int from, i;

	for (from = 0; from < w->workers; from++) {
		in = &w->arrived[from];
		if (from == w->id || in->n == 0)
			continue;
		for (i = 0; rc_crowd(w->rc) && i < in->n; i++)
			rc_prefetch_place(w->rc, in->pkt[i]->dest_qpn);
		worker_receive(w, in->pkt, in->n, now, (int)from);
	}
}

/* Timed work, WORKER_TICK_HZ times a second: link, port attributes, agents, QP moves. */
static void
worker_tick(struct worker *w, uint64_t now)
{
	w->tick = now + w->tick_cycles;
	link_tick(w->link, now);
	worker_look_at_ports(w);
	subnet_tick(w, now);
	live_agent_tick(w, now);
	pma_agent_tick(w);
	rehome_tick(w, now);
}

/* The time since the last poll counts as busy if that poll found work. */
static inline void
worker_account(struct worker *w, uint64_t now)
{
	uint64_t gap = now - w->last;

	if (w->was_busy)
		w->stats.busy_cycles += gap;
	if (unlikely(gap > w->stats.longest_gap && w->last <= now))
		w->stats.longest_gap = gap;
	w->last = now;
	w->stats.polls++;
	__atomic_store_n(&w->stats.heartbeat, now, __ATOMIC_RELAXED);
}

/* Start the timers that wait for answers once the drivers have taken the packets sent before. */
static void
worker_begin_waits(struct worker *w, uint64_t now)
{
	if (timer_wheel_sealed(w->wheel) && link_tx_left(w->link))
		timer_wheel_begin(w->wheel, now);
}

/*
 * No timer may expire early (rc-transport 8), even if the worker is stalled anywhere in its turn. A
 * timer that begins with a sent packet starts in a later turn, when the drivers have taken it. A
 * timer that begins with a received packet counts from a clock read after the turn's last packet
 * was taken from the device.
 */
bool
worker_poll(struct worker *w, uint64_t now)
{
	struct packet *pkts[LINK_BURST];
	unsigned int n, handed_over, work;

	worker_account(w, now);
	worker_begin_waits(w, now);
	work = command_run(w);
	n = link_rx(w->link, now, pkts);
	handed_over = w->workers > 1 ? worker_take_handed_over(w) : 0;
	now = w->clock();
	if (unlikely(rehome_has_mail(w)))
		work += rehome_take(w, now);
	worker_sort(w, pkts, n, now);
	if (handed_over > 0)
		worker_receive_handed_over(w, now);
	work += n + handed_over;
	work += timer_wheel_run(w->wheel, now);
	work += connections_serve(w, now);
	if (unlikely(w->clients.num > 0))
		work += clients_post(w);
	work += rc_run(w->rc, now, LINK_BURST);
	if (unlikely(!TAILQ_EMPTY(&w->clients.completing)))
		work += clients_complete(w);
	work += cm_run(w->cm, now, WORKER_BUDGET);
	work += gsi_run(w, now);
	link_tx_flush(w->link, now);
	if (timer_wheel_seal(w->wheel))
		link_tx_mark(w->link);
	if (unlikely(w->rehome.num_leaving > 0))
		rehome_give(w);
	if (unlikely(now >= w->tick))
		worker_tick(w, now);
	/* no pointer looked up in this turn is used any more */
	rte_rcu_qsbr_quiescent(w->rcu, w->id);
	w->was_busy = work > 0 || rc_pending(w->rc) || cm_pending(w->cm) || gsi_pending(w);
	w->stats.busy_polls += w->was_busy;
	return w->was_busy;
}

int
worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t now, until;

	/* sleeps are short and end at timers: the kernel's default slack of 50 us is too much */
	prctl(PR_SET_TIMERSLACK, 1000);
	rte_rcu_qsbr_thread_online(w->rcu, w->id);
	now = rte_get_tsc_cycles();
	w->last = now;
	idle_end(&w->idle, now);
	w->stats.started = now;
	while (__atomic_load_n(&w->stop, __ATOMIC_RELAXED) == 0) {
		now = rte_get_tsc_cycles();
		if (worker_poll(w, now)) {
			idle_end(&w->idle, now);
			continue;
		}
		/* an intended sleep does not count as a gap between polls */
		until = idle_wait(w, now);
		if (until > 0)
			w->last = RTE_MIN(until, rte_get_tsc_cycles());
	}
	command_run(w);
	rte_rcu_qsbr_thread_offline(w->rcu, w->id);
	tsan_release(w); /* rte_eal_wait_lcore() orders this before what engine_stop() does next */
	return 0;
}
