/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* Invariants of connections: at all times, when one ends, and when all have ended. */

#include <string.h>

#include "cm_sim.h"

#define PEER_WAIT ((uint64_t)(1u << 16) * CM_MS) /* longest wait for a peer */
#define SLACK     (20 * CM_MS)

void
cm_model_told(struct cm_life *l, const char *what, bool right)
{
	struct sim *s = l->side->node->sim;

	sim_trace(s, "node %u: life %u is told %s", l->side->node->id, l->index, what);
	if (!right || l->birth != l->side->birth)
		sim_fail(s, "node %u: life %u (%s, plan %u) is told %s;%s%s%s%s before",
			l->side->node->id, l->index, l->active ? "active" : "passive",
			l->hello.plan, what, l->prepared ? " prepared" : "",
			l->established ? " established" : "", l->ended ? " ended" : "",
			l->released ? " released" : "");
}

/* --- both sides --- */

static void
compare_qps(struct cm_life *l, const struct cm_life *p)
{
	struct rc_qp_info a, b;
	const struct qp_attr *x = &a.attr, *y = &b.attr;

	if (rc_qp_query(l->side->node->worker, l->qpn, &a) != 0) {
		sim_fail(l->side->node->sim, "life %u is established without a QP", l->index);
		return;
	}
	if (p->birth != p->side->birth || p->ended ||
		rc_qp_query(p->side->node->worker, p->qpn, &b) != 0)
		return;
	if (x->dest_qp_num != p->qpn || x->max_rd_atomic != y->max_dest_rd_atomic ||
		x->max_dest_rd_atomic != y->max_rd_atomic || x->path_mtu != y->path_mtu ||
		x->retry_cnt != 7 || x->rnr_retry != 7)
		sim_fail(l->side->node->sim,
			"lives %u and %u: their QPs do not fit: resources %u %u and %u %u, MTU %u and %u",
			l->index, p->index, x->max_rd_atomic, x->max_dest_rd_atomic,
			y->max_rd_atomic, y->max_dest_rd_atomic, x->path_mtu, y->path_mtu);
	if (!a.sq_posted && !b.sq_posted && l->got == 0 && p->got == 0 && p->posted == 0 &&
		x->sq_psn != y->rq_psn)
		sim_fail(l->side->node->sim, "lives %u and %u: PSN 0x%x is sent, 0x%x expected",
			l->index, p->index, x->sq_psn, y->rq_psn);
}

void
cm_model_pair(struct cm_life *l, const struct cm_info *info)
{
	const struct cm_life *p = l->peer;

	if (info->id != l->id || info->qpn != l->qpn || info->active != l->active)
		sim_fail(l->side->node->sim, "life %u is established as another", l->index);
	if (p == NULL)
		return;
	if (info->remote_id != p->id || info->remote_qpn != p->qpn ||
		info->remote_ca_guid != p->side->guid)
		sim_fail(l->side->node->sim,
			"life %u is connected to 0x%08x, QP 0x%x, and not to life %u: 0x%08x, QP 0x%x",
			l->index, info->remote_id, info->remote_qpn, p->index, p->id, p->qpn);
	if (l->hello.plan == CM_PLAN_REFUSE || l->hello.plan == CM_PLAN_LATE_REFUSE ||
		l->hello.plan == CM_PLAN_SILENT || l->hello.plan == CM_PLAN_NO_SERVICE)
		sim_fail(l->side->node->sim, "life %u is established, though nobody accepted",
			l->index);
	compare_qps(l, p);
}

/* --- a connection that has ended --- */

static void
must_be(const struct cm_life *l, enum cm_end end, uint16_t reason)
{
	if (l->end != end || l->reason != reason || l->established)
		sim_fail(l->side->node->sim,
			"node %u: life %u, plan %u, has end %u with reason %u, not %u with %u",
			l->side->node->id, l->index, l->hello.plan, l->end, l->reason, end, reason);
}

static void
check_transfer(const struct cm_life *l)
{
	if (!l->established || l->end != CM_END_DISCONNECTED || !cm_data_complete(l))
		sim_fail(l->side->node->sim,
			"node %u: life %u, plan %u, %s established, got %u of %u "
			"messages, sent %u, end %u, reason %u",
			l->side->node->id, l->index, l->hello.plan,
			l->established ? "was" : "was not", l->got, l->hello.count, l->done, l->end,
			l->reason);
}

/* A connection that its server leaves half open gives way if others need the place. */
static bool
gave_way(const struct cm_life *l)
{
	const struct cm_script *sc = l->side->script;

	return (sc->flood_from != 0 || !sc->strict) && l->end == CM_END_REJECTED &&
		l->reason == CM_REJ_NO_RESOURCES &&
		(l->hello.plan == CM_PLAN_LATE_ACCEPT || l->hello.plan == CM_PLAN_LATE_REFUSE ||
			l->hello.plan == CM_PLAN_SILENT);
}

static void
check_plan(const struct cm_life *l)
{
	if (gave_way(l))
		return;
	switch (l->hello.plan) {
	case CM_PLAN_ACCEPT:
	case CM_PLAN_LATE_ACCEPT:
		check_transfer(l);
		break;
	case CM_PLAN_REFUSE:
	case CM_PLAN_LATE_REFUSE:
		must_be(l, CM_END_REJECTED, CM_REJ_CONSUMER);
		break;
	case CM_PLAN_UNPREPARED:
		must_be(l, CM_END_REJECTED, CM_REJ_NO_RESOURCES);
		break;
	case CM_PLAN_BAD_QP:
		must_be(l, CM_END_REJECTED, CM_REJ_NO_QP);
		break;
	case CM_PLAN_NO_SERVICE:
		must_be(l, CM_END_REJECTED, CM_REJ_INVALID_SERVICE_ID);
		break;
	case CM_PLAN_SILENT:
		if (l->end == CM_END_REJECTED)
			must_be(l, CM_END_REJECTED, CM_REJ_TIMEOUT);
		else
			must_be(l, CM_END_TIMEOUT, 0);
		break;
	case CM_PLAN_CANCEL:
		if (l->cancelled)
			must_be(l, CM_END_CANCELLED, 0);
		else
			check_transfer(l);
		break;
	}
}

void
cm_model_released(struct cm_life *l)
{
	struct sim *s = l->side->node->sim;

	if (l->side->stopping) /* the node has crashed, or the script ends */
		return;
	if (l->cancelled != (l->end == CM_END_CANCELLED) && (!l->broken || l->cancelled))
		sim_fail(s, "life %u was %scancelled, and has end %u", l->index,
			l->cancelled ? "" : "not ", l->end);
	if (l->refused && l->end != CM_END_REFUSED)
		sim_fail(s, "life %u was refused, and has end %u", l->index, l->end);
	if (!l->clean)
		return;
	if (l->active)
		check_plan(l);
	else if (l->established && l->hello.plan <= CM_PLAN_LATE_ACCEPT)
		check_transfer(l);
}

/* --- all connections of a node --- */

struct look {
	struct cm_side *side;
	struct cm_info info[CM_PLACES];
	unsigned int n, half_open;
};

static bool
is_half_open(const struct cm_info *i)
{
	return !i->active && i->state >= CM_STATE_REQ_RCVD && i->state <= CM_STATE_MRA_REP_RCVD;
}

static uint64_t
longest(const struct look *k, const struct cm_info *i)
{
	const struct cm_script *sc = k->side->script;
	int node = cm_node_of(sc, &i->path.av);
	uint64_t tries =
		node >= 0 && (unsigned int)node < sc->honest ? sc->longest : 17 * PEER_WAIT;

	switch (i->state) {
	case CM_STATE_ESTABLISHED:
		return UINT64_MAX / 2; /* its user decides how long */
	case CM_STATE_MRA_REQ_RCVD:
	case CM_STATE_MRA_REP_RCVD:
	case CM_STATE_MRA_REQ_SENT:
		return PEER_WAIT + tries + SLACK;
	case CM_STATE_TIMEWAIT:
		return tries < PEER_WAIT ? 2 * tries + SLACK : PEER_WAIT + SLACK;
	default:
		return tries + SLACK;
	}
}

/* A connection that a probe found dead: from then on the peer may use its QPN for a new one. */
static bool
given_up(const struct look *k, const struct cm_info *i)
{
	const struct cm_script *sc = k->side->script;

	for (unsigned int n = 0; n < sc->num_now && i->state == CM_STATE_TIMEWAIT; n++)
		if (sc->now[n]->side == k->side && sc->now[n]->id == i->id)
			return sc->now[n]->end == CM_END_STALE;
	return false;
}

static void
look_at(struct look *k, unsigned int at)
{
	const struct cm_info *i = &k->info[at], *o;
	const struct cm_limits *limits = &k->side->script->limits;
	struct sim *s = k->side->node->sim;
	unsigned int same = 0, same_half = 0;

	k->half_open += is_half_open(i);
	for (o = k->info; o < k->info + k->n; o++) {
		if (o != i && i->remote_qpn != 0 && i->remote_qpn == o->remote_qpn &&
			i->remote_ca_guid == o->remote_ca_guid &&
			cm_node_of(k->side->script, &i->path.av) ==
				cm_node_of(k->side->script, &o->path.av) &&
			!given_up(k, i) && !given_up(k, o))
			sim_fail(s,
				"node %u: 0x%08x (%s) and 0x%08x (%s) both have the peer's QP 0x%x",
				k->side->node->id, i->id, cm_state_name(i->state), o->id,
				cm_state_name(o->state), i->remote_qpn);
		if (!gid_equal(&i->path.av.dgid, &o->path.av.dgid) ||
			i->path.av.dlid != o->path.av.dlid)
			continue;
		same++;
		same_half += is_half_open(o);
	}
	/* a migrated connection counts for its first path */
	if (i->path.av.port == 0 &&
		(same > limits->max_connections_per_peer ||
			same_half > limits->max_half_open_per_peer))
		sim_fail(s, "node %u: a peer has %u connections, %u half open", k->side->node->id,
			same, same_half);
}

/* The QP's attributes are those that the CM reports. */
static void
look_at_qp(struct look *k, const struct cm_info *i)
{
	const struct sim_node *n = k->side->node;
	struct rc_qp_info qp;

	if (i->state != CM_STATE_ESTABLISHED || cm_pending(k->side->cm) ||
		rc_qp_query(n->worker, i->qpn, &qp) != 0)
		return;
	if (!gid_equal(&qp.attr.av.dgid, &i->path.av.dgid) || qp.attr.port != i->path.av.port ||
		(i->alternate.present && !qp.alt_loaded))
		sim_fail(n->sim,
			"node %u: 0x%08x goes by port %u, its QP by %u; alternate %d and %d", n->id,
			i->id, i->path.av.port, qp.attr.port, i->alternate.present, qp.alt_loaded);
}

static void
look_at_time(struct look *k, const struct cm_info *i)
{
	struct sim *s = k->side->node->sim;

	for (unsigned int p = 0; p < CM_PLACES; p++) {
		const struct cm_seen *seen = &k->side->seen[p];

		if (seen->id == i->id && s->now > seen->since + longest(k, i))
			sim_fail(s, "node %u: 0x%08x has been %s for %llu ms", k->side->node->id,
				i->id, cm_state_name(i->state),
				(unsigned long long)((s->now - seen->since) / CM_MS));
	}
}

void
cm_model_look(struct cm_side *side)
{
	struct sim *s = side->node->sim;
	struct look k = { .side = side };
	uint32_t cursor = 0;

	side->changed = false;
	while (k.n < CM_PLACES && cm_next(side->cm, &cursor, s->now, &k.info[k.n]))
		k.n++;
	for (unsigned int i = 0; i < k.n; i++) {
		look_at(&k, i);
		look_at_qp(&k, &k.info[i]);
		look_at_time(&k, &k.info[i]);
	}
	if (k.half_open > side->script->limits.max_half_open)
		sim_fail(s, "node %u: %u connections are half open", side->node->id, k.half_open);
	if (rc_worker_qps(side->node->worker) > k.n)
		sim_fail(s, "node %u: %u QPs of %u connections", side->node->id,
			rc_worker_qps(side->node->worker), k.n);
}

static void
must_equal(struct cm_side *side, const char *what, uint64_t counted, uint64_t seen)
{
	if (counted != seen)
		sim_fail(side->node->sim, "node %u: counter %s is %llu, seen were %llu",
			side->node->id, what, (unsigned long long)counted,
			(unsigned long long)seen);
}

void
cm_model_counters(struct cm_side *side)
{
	const struct cm_counters *c = cm_counters(side->cm);
	uint64_t rejs = 0, rejs_sent = 0;

	must_equal(side, "connections", c->connections, side->told_established);
	must_equal(side, "disconnects", c->disconnects, side->told_end[CM_END_DISCONNECTED]);
	must_equal(side, "rejected", c->rejected, side->told_end[CM_END_REJECTED]);
	must_equal(side, "timeouts", c->timeouts, side->told_end[CM_END_TIMEOUT]);
	must_equal(side, "stale", c->stale, side->told_end[CM_END_STALE]);
	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		if (!mad_pending(side->mad))
			must_equal(side, cm_message_name(i), c->sent[i], side->sent[i]);
		must_equal(side, cm_message_name(i), c->received[i], side->received[i]);
	}
	/* each once per established connection; data for a destroyed QP may be lost */
	if (side->script->lossless &&
		(side->sent[CM_DREQ] > side->told_established ||
			side->sent[CM_RTU] > side->told_established))
		sim_fail(side->node->sim,
			"node %u: %llu connections, %llu RTUs and %llu DREQs sent though none was lost",
			side->node->id, (unsigned long long)side->told_established,
			(unsigned long long)side->sent[CM_RTU],
			(unsigned long long)side->sent[CM_DREQ]);
	for (unsigned int i = 0; i < CM_REASONS; i++) {
		rejs += c->rej_received[i];
		rejs_sent += c->rej_sent[i];
	}
	must_equal(side, "REJs by reason", rejs, c->received[CM_REJ]);
	if (rejs_sent < c->sent[CM_REJ] || rejs_sent > c->sent[CM_REJ] + c->tx_stall)
		must_equal(side, "REJs sent by reason", rejs_sent, c->sent[CM_REJ]);
	if (c->refused < side->told_end[CM_END_REFUSED] + side->refused_at_once)
		must_equal(side, "refused", c->refused,
			side->told_end[CM_END_REFUSED] + side->refused_at_once);
}

/* --- the flood, the end --- */

void
cm_model_flood(struct cm_script *sc)
{
	bool over = sc->sim->now >= sc->flood_to;

	for (unsigned int i = 0; i < sc->num_lives; i++) {
		struct cm_life *l = sc->lives[i];

		if (l->peer == NULL || !(l->steady || l->peer->steady))
			continue;
		if (!over) {
			l->flooded = l->got;
		} else if (!l->established || (l->ended && !cm_data_complete(l)) ||
			(!cm_data_complete(l) && l->got == l->flooded)) {
			sim_fail(sc->sim,
				"life %u, established when the flood began, had %u messages "
				"then and has %u of %u now, end %u",
				l->index, l->flooded, l->got, l->hello.count, l->end);
		}
	}
}

void
cm_model_end(struct cm_script *sc)
{
	for (unsigned int i = 0; i < sc->num_lives; i++) {
		const struct cm_life *l = sc->lives[i];

		if (!l->released)
			sim_fail(sc->sim, "node %u: life %u, plan %u, is never released",
				l->side->node->id, l->index, l->hello.plan);
	}
	for (unsigned int i = 0; i < sc->honest; i++) {
		struct cm_side *side = &sc->side[i];

		if (side->places != 0 || rc_worker_qps(side->node->worker) != 0)
			sim_fail(sc->sim, "node %u: %u QPs are left when all is quiet", i,
				rc_worker_qps(side->node->worker));
	}
}
