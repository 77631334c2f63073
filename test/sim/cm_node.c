/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* A node with lib/cm, lib/mad and lib/rc, its crashes and restarts, and checks of its state. */

#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"
#include "coverage.h"

#define TICK (1u << 18)

/* --- addresses --- */

union gid
cm_gid(const struct cm_script *sc, unsigned int node, unsigned int path)
{
	const struct sim_node *n = &sc->sim->node[node];
	union gid gid = sc->encap == ENCAP_ROCEV2_IPV4 ? n->gid : n->gid6;

	gid.raw[14] ^= (uint8_t)path;
	return gid;
}

uint16_t
cm_lid(unsigned int node, unsigned int path)
{
	return (uint16_t)(1 + node + 16 * path);
}

/*
 * Byte 4 of a MAC is the path, byte 5 the node. On RoCE the alternate path goes from the node's
 * first port to the peer's second one, because a path must lead to the address that the message
 * came from.
 */
struct av
cm_av(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path)
{
	unsigned int ours = sc->encap == ENCAP_IB ? path : 0;

	return (struct av){
		.encap = sc->encap,
		.port = (uint16_t)ours,
		.sgid = cm_gid(sc, from, ours),
		.dgid = cm_gid(sc, to, path),
		.grh = sc->grh,
		.hop_limit = sc->encap != ENCAP_IB || sc->grh ? 64 : 0,
		.slid = cm_lid(from, ours),
		.dlid = cm_lid(to, path),
		.smac = { 2, 0, 0, 0, (uint8_t)ours, (uint8_t)from },
		.dmac = { 2, 0, 0, 0, (uint8_t)path, (uint8_t)to },
		.vlan = PATH_NO_VLAN,
	};
}

int
cm_node_of(const struct cm_script *sc, const struct av *av)
{
	for (unsigned int i = 0; i < sc->sim->nodes; i++)
		for (unsigned int path = 0; path < CM_PATHS; path++) {
			union gid gid = cm_gid(sc, i, path);

			if (gid_equal(&av->dgid, &gid))
				return (int)i;
		}
	return -1;
}

/* One of the service IDs is outside of RDMA-CM. */
uint64_t
cm_service(const struct cm_script *sc, unsigned int which)
{
	(void)sc;
	return which == 0
		? 0x1234
		: cm_service_id(which == 1 ? CM_PS_IB : CM_PS_TCP, (uint16_t)(7000 + which));
}

/* --- start --- */

static const struct port_attr *
cm_node_port_of(void *arg, uint16_t port)
{
	struct cm_side *side = arg;

	return port < CM_PATHS ? &side->port[port] : NULL;
}

static void
make_ports(struct cm_side *side)
{
	const struct cm_script *sc = side->script;
	unsigned int id = side->node->id;

	for (unsigned int i = 0; i < CM_PATHS; i++) {
		struct port_attr *p = &side->port[i];

		*p = (struct port_attr){
			.index = (uint16_t)i,
			.mtu = 1500,
			.active_mtu = 1024,
			.vlan = PATH_NO_VLAN,
			.up = true,
			.ib = sc->encap == ENCAP_IB,
			.mac = { 2, 0, 0, 0, (uint8_t)i, (uint8_t)id },
			.subnet_timeout = 14,
			.num_gids = 1,
			.num_pkeys = 1,
			.pkey = { 0xFFFF },
			.state = PORT_STATE_ACTIVE,
			.lid = cm_lid(id, i),
			.guid = side->guid + i,
		};
		p->gid[0].gid = cm_gid(sc, id, i);
		p->gid[0].type = sc->encap == ENCAP_IB ? GID_IB
			: sc->encap == ENCAP_ROCEV1    ? GID_ROCEV1
						       : GID_ROCEV2;
		for (unsigned int sl = 8; sl < PORT_SLS; sl++)
			p->sl_to_vl[sl] = 15;
	}
}

static void
make_memory(struct cm_side *side)
{
	struct sim_node *n = side->node;
	struct mem_mr_attr attr = {
		.pd = n->pd,
		.length = CM_PLACES * CM_PLACE_LEN,
		.va = SIM_VA,
		.access = MEM_ACCESS_LOCAL_WRITE | MEM_ACCESS_REMOTE_WRITE,
		.backing = MEM_EXTERNAL,
		.numa_node = -1,
	};
	struct mem_mr_info info;

	attr.base = side->bytes = calloc(CM_PLACES, CM_PLACE_LEN);
	if (side->bytes == NULL || mem_mr_register(n->mem, &attr, &info, NULL) < 0 ||
		rc_cq_create(n->dev, 8192, &side->send_cq, NULL) < 0 ||
		rc_cq_create(n->dev, 8192, &side->recv_cq, NULL) < 0)
		abort();
	side->key = info.key;
	side->places = 0;
}

void
cm_side_start(struct cm_side *side)
{
	struct cm_script *sc = side->script;
	struct sim *s = sc->sim;
	struct sim_node *n = side->node;
	struct mad_worker_config mc = {
		.workers = 1,
		.hash_key = sim_rand(s),
		.hz = SIM_SECOND,
		.alloc = &n->alloc,
		.rng = &n->rng,
		.tx = &n->tx.sink,
		.port = cm_node_port_of,
		.port_arg = side,
		.limits = mad_limits_default,
	};
	struct cm_config cc = {
		.workers = 1,
		.hash_key = sim_rand(s),
		.hz = SIM_SECOND,
		.alloc = &n->alloc,
		.rng = &n->rng,
		.rc = n->worker,
		.ca_guid = side->guid,
		.port = cm_node_port_of,
		.port_arg = side,
		.limits = sc->limits,
	};

	make_ports(side);
	make_memory(side);
	mc.limits.max_sessions = 16;
	mc.limits.max_bytes = mc.limits.max_bytes_per_peer = 1u << 16;
	cc.wheel = mc.wheel = side->wheel = timer_wheel_create(&n->alloc, TICK, s->now);
	cc.mad = side->mad = mad_worker_create(&mc);
	side->cm = side->mad != NULL ? cm_create(&cc) : NULL;
	if (side->wheel == NULL || side->cm == NULL)
		abort();
	for (unsigned int i = 0; i < CM_SERVICES; i++)
		if (cm_listen(side->cm, cm_service(sc, i), UINT64_MAX, &cm_sim_user, side) < 0)
			abort();
	cm_listen_ud(side->cm, cm_service(sc, 2), UINT64_MAX, 0x77, 0x1234567);
	side->birth++;
	n->down = false;
	memset(side->seen, 0, sizeof(side->seen));
	memset(side->told_end, 0, sizeof(side->told_end));
	memset(side->sent, 0, sizeof(side->sent));
	memset(side->received, 0, sizeof(side->received));
	side->told_established = side->refused_at_once = 0;
	sim_trace(s, "node %u is up, birth %u", n->id, side->birth);
}

/* --- stop and crash --- */

/* Create lib/rc and memory again; the network does not change. */
static void
reborn(struct sim_node *n, uint64_t qpns)
{
	struct sim *s = n->sim;
	struct sim_network net = n->net;
	struct rc_limits limits = rc_limits_default;
	unsigned int empty = n->sink_empty;

	limits.max_qp = CM_PLACES;
	limits.max_cq = 4;
	limits.max_srq = 1;
	limits.min_ack_timeout = 0;
	limits.quarantine = sim_below(s, 2) ? 0 : sim_below(s, CM_PLACES / 2);
	limits.window = 8 + sim_below(s, 64);
	sim_node_init(s, n->id, &limits);
	n->net = net;
	n->sink_empty = empty;
	n->same_qpns = qpns;
	n->received = 0;
	memset(n->verdicts, 0, sizeof(n->verdicts));
}

static void
add_coverage(struct cm_side *side)
{
	coverage_cm_counters(side->node->sim->coverage, cm_counters(side->cm));
}

void
cm_side_stop(struct cm_side *side, bool crash)
{
	struct sim_node *n = side->node;
	struct sim *s = n->sim;

	cm_side_look(side);
	add_coverage(side);
	sim_trace(s, "node %u %s", n->id, crash ? "crashes" : "stops");
	side->stopping = true;
	cm_destroy(side->cm);
	side->stopping = false;
	side->cm = NULL;
	if (rc_worker_qps(n->worker) != 0)
		sim_fail(s, "node %u: %u QPs are left when the CM is gone", n->id,
			rc_worker_qps(n->worker));
	mad_worker_destroy(side->mad);
	timer_wheel_destroy(side->wheel);
	free(side->bytes);
	side->bytes = NULL;
	if (!crash)
		return;
	sim_node_fini(n);
	reborn(n, side->qpns);
	n->down = true;
	side->up_at = s->now +
		(sim_below(s, 2) ? sim_below(s, 10 * CM_MS) : sim_below(s, 400) * 10 * CM_MS);
}

static void
crash_now(struct sim *s, void *arg)
{
	struct cm_side *side = arg;

	if (s->guest != NULL && side->cm != NULL && side->script->crashes_left > 0) {
		side->script->crashes_left--;
		cm_side_stop(side, true);
	}
}

/* Plan a crash at a random message, except SIDR, which has no state to lose. */
void
cm_plan_crash(struct cm_script *sc)
{
	do {
		sc->crash_message = (uint8_t)sim_below(sc->sim, CM_MESSAGES);
	} while (sc->crash_message == CM_SIDR_REQ || sc->crash_message == CM_SIDR_REP);
	sc->crash_received = sim_below(sc->sim, 2);
}

/* Crash directly after this message, if planned. */
static void
crash_if_due(struct cm_side *side, enum cm_message type, bool received)
{
	struct cm_script *sc = side->script;
	struct sim *s = sc->sim;

	if (sc->crashes_left == 0 || sc->crash_message != type || sc->crash_received != received ||
		sim_below(s, 2))
		return;
	coverage_cm_crash(s->coverage, type, received);
	sim_trace(s, "node %u is to crash: %s %s", side->node->id, received ? "received" : "sent",
		cm_message_name(type));
	cm_plan_crash(sc);
	sim_at(s, s->now, crash_now, side);
}

/* --- states of connections --- */

static void
changed(struct cm_side *side, struct cm_seen *seen, cm_id id, uint8_t state)
{
	struct sim *s = side->node->sim;

	if (seen->id == id && seen->state == state)
		return;
	side->changed = true;
	if (seen->id != 0 && seen->id != id) { /* it ended, and another one has its place */
		changed(side, seen, seen->id, CM_STATE_IDLE);
		seen->id = 0;
	}
	if (seen->id == 0)
		seen->state = CM_STATE_IDLE;
	if (seen->state != state) {
		coverage_cm_state(s->coverage, seen->state, state);
		sim_trace(s, "node %u: 0x%08x %s -> %s", side->node->id, id != 0 ? id : seen->id,
			cm_state_name(seen->state), cm_state_name(state));
	}
	*seen = (struct cm_seen){
		.id = state == CM_STATE_IDLE ? 0 : id,
		.state = state,
		.since = s->now,
	};
}

void
cm_side_look(struct cm_side *side)
{
	uint32_t cursor = 0, next = 0;
	struct cm_info info;

	if (side->cm == NULL)
		return;
	while (cm_next(side->cm, &cursor, side->node->sim->now, &info)) {
		for (; next + 1 < cursor; next++)
			changed(side, &side->seen[next], side->seen[next].id, CM_STATE_IDLE);
		changed(side, &side->seen[next++], info.id, info.state);
	}
	for (; next < CM_PLACES; next++)
		changed(side, &side->seen[next], side->seen[next].id, CM_STATE_IDLE);
	if (side->changed)
		cm_model_look(side);
}

/* --- messages and turns --- */

/* Messages without our ID belong to a connection by its peer's ID: a repeated REQ, or its REJ. */
static bool
is_of(const struct cm_info *i, const struct cm_msg *m)
{
	if (i->remote_id != m->local_id)
		return false;
	if (m->type == CM_REJ)
		return i->remote_ca_guid == get_be64(m->rej.ari);
	return !i->active && i->tid == m->tid && i->remote_ca_guid == m->req.ca_guid &&
		i->remote_qpn == m->req.qpn;
}

static uint8_t
state_of_peer(struct cm_side *side, const struct cm_msg *m)
{
	uint32_t cursor = 0;
	struct cm_info info;

	while (cm_next(side->cm, &cursor, side->node->sim->now, &info))
		if (is_of(&info, m))
			return info.state;
	return CM_STATE_IDLE;
}

static void
note_received(struct cm_side *side, const struct packet *pkt)
{
	struct sim *s = side->node->sim;
	struct cm_info info;
	struct cm_msg m;
	uint8_t state = CM_STATE_IDLE;

	if (!cm_is_message(pkt) || cm_msg_decode(pkt->payload, &m) != 0)
		return;
	if (m.type == CM_REQ || (m.type == CM_REJ && m.remote_id == 0))
		state = state_of_peer(side, &m);
	else if (cm_get(side->cm, m.remote_id, s->now, &info)) {
		state = info.state;
		for (unsigned int i = 0; m.type == CM_MRA && i < CM_PLACES; i++)
			if (side->seen[i].id == m.remote_id)
				side->seen[i].since = s->now;
	}
	coverage_cm_step(s->coverage, state, m.type);
}

/* One message increments exactly one counter, by 1. */
static void
check_count(struct cm_side *side, const uint64_t *before, const struct packet *pkt)
{
	const uint64_t *after = cm_counters(side->cm)->received;
	struct cm_msg m;

	for (unsigned int i = 0; i < CM_MESSAGES; i++) {
		if (after[i] == before[i])
			continue;
		if (after[i] != before[i] + 1 || !cm_is_message(pkt) ||
			cm_msg_decode(pkt->payload, &m) != 0 || m.type != i)
			sim_fail(side->node->sim, "node %u counts a received %s that is none",
				side->node->id, cm_message_name(i));
		side->received[i]++;
		crash_if_due(side, i, true);
	}
}

static enum verdict
cm_node_receive(struct sim_node *n, const struct packet *pkt)
{
	struct cm_script *sc = n->sim->guest_arg;
	struct cm_side *side = &sc->side[n->id];
	uint64_t before[CM_MESSAGES];
	enum verdict v;

	if (n->id >= sc->honest)
		return cm_hostile_receive(n, pkt);
	if (pkt->dest_qpn != 1)
		return VERDICT_QPN_UNKNOWN;
	memcpy(before, cm_counters(side->cm)->received, sizeof(before));
	if (wire_crc_ok(pkt, &v))
		note_received(side, pkt);
	v = mad_receive(side->mad, pkt, n->sim->now);
	check_count(side, before, pkt);
	cm_side_look(side);
	return v;
}

static bool
cm_node_run(struct sim_node *n)
{
	struct cm_script *sc = n->sim->guest_arg;
	struct cm_side *side = &sc->side[n->id];
	uint64_t now = n->sim->now;
	unsigned int fired;

	if (n->id >= sc->honest)
		return false;
	if (side->cm == NULL) {
		if (now < side->up_at)
			return false;
		cm_side_start(side);
	}
	fired = timer_wheel_run(side->wheel, now);
	mad_run(side->mad, now, n->burst);
	fired += cm_run(side->cm, now, n->burst);
	timer_wheel_sent(side->wheel, now);
	if (fired > 0)
		cm_side_look(side);
	return mad_pending(side->mad) || cm_pending(side->cm);
}

static uint64_t
cm_node_next(const struct sim_node *n)
{
	const struct cm_script *sc = n->sim->guest_arg;
	const struct cm_side *side = &sc->side[n->id];

	if (n->id >= sc->honest)
		return UINT64_MAX;
	return side->cm != NULL ? timer_wheel_next(side->wheel) : side->up_at;
}

static void
cm_node_event(struct sim_node *n, const struct event *ev)
{
	struct cm_script *sc = n->sim->guest_arg;

	if (n->id < sc->honest && sc->side[n->id].cm != NULL)
		cm_qp_event(sc->side[n->id].cm, ev);
}

/* --- the network --- */

struct late {
	struct sim_node *to;
	uint32_t len;
	uint8_t frame[];
};

static void
deliver_late(struct sim *s, void *arg)
{
	struct late *l = arg;

	if (s->guest != NULL)
		sim_deliver(s, l->to, s->now, l->frame, l->len);
	free(l);
}

static struct sim_node *
cm_node_route(struct sim_node *from, const uint8_t *frame)
{
	return &from->sim->node[frame[5] % from->sim->nodes];
}

/* Deliver the message again much later, perhaps after a restart. */
static void
again_later(struct sim_node *from)
{
	struct sim *s = from->sim;
	struct late *l = malloc(sizeof(*l) + from->last_len);

	if (l == NULL)
		abort();
	l->to = cm_node_route(from, from->last_frame);
	l->len = from->last_len;
	memcpy(l->frame, from->last_frame, from->last_len);
	sim_at(s, s->now + 1 + sim_below(s, 3000) * CM_MS, deliver_late, l);
}

static void
cm_node_sent(struct sim_node *from, const struct packet *pkt, bool lost)
{
	struct cm_script *sc = from->sim->guest_arg;
	struct cm_side *side = &sc->side[from->id];
	uint8_t mad[MAD_LEN];
	struct cm_msg m;

	(void)lost;
	if (from->id >= sc->honest || !cm_is_message(pkt))
		return;
	if (sc->late && sim_below(from->sim, 16) == 0)
		again_later(from);
	memcpy(mad, pkt->payload, MAD_LEN);
	mad[MAD_OFF_CLASS_VERSION] = CM_CLASS_VERSION; /* a REJ has the class version of its REQ */
	if (cm_msg_decode(mad, &m) != 0)
		return;
	side->sent[m.type]++;
	sim_trace(from->sim, "%u: %s 0x%08x 0x%08x%s%s", from->id, cm_message_name(m.type),
		m.local_id, m.remote_id, m.type == CM_REJ ? " " : "",
		m.type == CM_REJ ? cm_reason_name(m.rej.reason) : "");
	if (m.type == CM_REP && sc->has_hostile)
		cm_hostile_overhear(sc, from->id, cm_node_route(from, from->last_frame)->id, &m);
	if (m.type == CM_APR)
		coverage_cm_apr(from->sim->coverage, m.apr.status);
	crash_if_due(side, m.type, false);
}

static void
arrived(struct sim_node *n, const uint8_t *frame, struct packet *pkt)
{
	struct cm_script *sc = n->sim->guest_arg;

	pkt->smac = frame + 6;
	for (unsigned int i = 0; i < CM_PATHS; i++) {
		union gid gid = cm_gid(sc, n->id, i);

		if (pkt->has_grh ? gid_equal(&gid, &pkt->dgid) : pkt->dlid == cm_lid(n->id, i))
			pkt->port = (uint16_t)i;
	}
}

static void
cm_node_end(struct sim *s)
{
	struct cm_script *sc = s->guest_arg;

	for (unsigned int i = 0; i < sc->honest; i++) {
		if (sc->side[i].cm == NULL)
			continue;
		if (!s->failed)
			cm_model_counters(&sc->side[i]);
		cm_side_stop(&sc->side[i], false);
	}
	/* messages that are to be delivered later */
	s->guest = NULL;
	for (unsigned int i = 0; i < s->heap_count; i++)
		if (s->heap[i].fn == deliver_late) {
			free(s->heap[i].arg);
			s->heap[i].arg = NULL;
		}
	for (unsigned int i = 0; i < sc->num_lives; i++)
		free(sc->lives[i]);
	free(sc);
}

const struct sim_guest cm_guest = { cm_node_receive, cm_node_run, cm_node_next, cm_node_sent,
	cm_node_end, cm_node_route, arrived, cm_node_event };
