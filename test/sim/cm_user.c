/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The user of a connection: its callbacks, its actions, and the connections it opens. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cm_sim.h"
#include "coverage.h"

#define MAGIC 0x43D05A7Eu

/* --- private data --- */

static void
hello_encode(const struct cm_hello *h, uint8_t *p)
{
	memset(p, 0, CM_HELLO_LEN);
	put_be32(p, MAGIC);
	put_be64(p + 4, h->nonce);
	p[12] = h->plan;
	p[13] = h->count;
	p[14] = h->enders;
	put_be64(p + 16, h->va);
	put_be32(p + 24, h->key);
}

static bool
hello_decode(const uint8_t *p, struct cm_hello *h)
{
	*h = (struct cm_hello){
		.nonce = get_be64(p + 4),
		.plan = p[12],
		.count = p[13],
		.enders = p[14],
		.va = get_be64(p + 16),
		.key = get_be32(p + 24),
	};
	return get_be32(p) == MAGIC;
}

static bool
same_hello(const struct cm_hello *a, const struct cm_hello *b)
{
	uint8_t x[CM_HELLO_LEN], y[CM_HELLO_LEN];

	hello_encode(a, x);
	hello_encode(b, y);
	return memcmp(x, y, CM_HELLO_LEN) == 0;
}

/* Make private data of the user, also for DREQ and REJ. */
static uint8_t
words(const struct cm_life *l, uint8_t *p)
{
	struct cm_hello h = l->hello;

	h.nonce = l->nonce;
	h.va = l->place < CM_PLACES ? cm_data_va(l) : 0;
	h.key = l->side->key;
	hello_encode(&h, p);
	return CM_HELLO_LEN;
}

static struct cm_life *
cm_user_life_of(const struct cm_script *sc, uint64_t nonce)
{
	unsigned int i = nonce & 0xFFFF;

	return i < sc->num_lives && sc->lives[i]->nonce == nonce ? sc->lives[i] : NULL;
}

/* --- lives --- */

struct cm_life *
cm_life_new(struct cm_side *side)
{
	struct cm_script *sc = side->script;
	struct cm_life *l;

	if (sc->num_lives == CM_LIVES || sc->num_now == CM_NODES * CM_PLACES)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		abort();
	l->side = side;
	l->birth = side->birth;
	l->index = sc->num_lives;
	l->place = CM_PLACES;
	l->born = l->progress_at = sc->sim->now;
	l->nonce = (sim_rand(sc->sim) & ~0xFFFFull) | l->index;
	l->pace = sim_below(sc->sim, 4) ? 1 + sim_below(sc->sim, 10 * CM_MS)
					: 1 + sim_below(sc->sim, 400 * CM_MS);
	sc->lives[sc->num_lives++] = l;
	sc->now[sc->num_now++] = l;
	return l;
}

static void
life_gone(struct cm_life *l)
{
	struct cm_script *sc = l->side->script;

	cm_data_give_back(l);
	for (unsigned int i = 0; i < sc->num_now; i++)
		if (sc->now[i] == l) {
			sc->now[i] = sc->now[--sc->num_now];
			return;
		}
}

static void
cm_user_fill_param(struct cm_life *l, struct cm_conn_param *p)
{
	struct sim *s = l->side->node->sim;

	*p = (struct cm_conn_param){
		.qp = { .qp_type = QPT_RC, .pd = l->side->node->pd, .send_cq = l->side->send_cq,
			.recv_cq = l->side->recv_cq, .srq = RC_NO_SRQ,
			.cap = { .max_send_wr = 2 * CM_MESSAGES_MAX + 2,
				.max_recv_wr = CM_MESSAGES_MAX, .max_send_sge = 1,
				.max_recv_sge = 1, },
			.flow_control = sim_below(s, 2), },
		.access = MEM_ACCESS_REMOTE_WRITE,
		.responder_resources = (uint8_t)sim_below(s, 20),
		.initiator_depth = (uint8_t)sim_below(s, 20),
		.retry_count = 7,
		.rnr_retry_count = 7,
		.min_rnr_timer = (uint8_t)(1 + sim_below(s, 14)),
	};
	if (!l->active && l->hello.plan == CM_PLAN_BAD_QP)
		p->qp.cap.max_send_wr = UINT32_MAX;
	p->private_len = words(l, p->private_data);
}

/* --- passive side --- */

static bool
rdma_right(const struct cm_script *sc, const struct cm_life *a, const struct cm_life *p,
	const struct cm_request *req)
{
	union gid src = cm_gid(sc, a->side->node->id, 0), dst = cm_gid(sc, p->side->node->id, 0);

	if (cm_port_space(req->service_id) == 0)
		return !req->rdma.present;
	return req->rdma.present && gid_equal(&req->rdma.src, &src) &&
		gid_equal(&req->rdma.dst, &dst) && req->rdma.src_port == 4000 + a->index;
}

/* Find the active user of a REQ and compare all fields, even if the REQ is an old one. */
static void
meet(struct cm_life *l, const struct cm_request *req, int from)
{
	struct cm_script *sc = l->side->script;
	struct cm_life *a;

	if (!hello_decode(req->private_data, &l->hello) ||
		(a = cm_user_life_of(sc, l->hello.nonce)) == NULL || !a->active ||
		a->side->node->id != (unsigned int)from || a->to != l->side->node->id ||
		!same_hello(&l->hello, &a->hello) || !rdma_right(sc, a, l, req)) {
		sim_fail(sc->sim, "node %u: a REQ that node %d never sent", l->side->node->id,
			from);
		return;
	}
	l->peer = a;
	l->clean = a->clean;
	l->pace = a->pace;
	l->peer_va = l->hello.va;
	l->peer_key = l->hello.key;
	if (a->birth == a->side->birth && a->qpn != req->remote_qpn)
		sim_fail(sc->sim, "life %u has QP 0x%x, the REQ 0x%x", a->index, a->qpn,
			req->remote_qpn);
}

static uint8_t
plan_of_stranger(struct sim *s)
{
	static const uint8_t plans[] = { CM_PLAN_ACCEPT, CM_PLAN_ACCEPT, CM_PLAN_ACCEPT,
		CM_PLAN_LATE_ACCEPT, CM_PLAN_REFUSE, CM_PLAN_LATE_REFUSE, CM_PLAN_SILENT };

	return plans[sim_below(s, 7)];
}

static uint64_t
late_by(struct cm_script *sc)
{
	uint64_t whole =
		(sc->limits.max_retries + 1ull) * cm_ms(sc->limits.response_timeout) * CM_MS;

	return sim_below(sc->sim, (uint32_t)(whole / (sc->strict ? 2 : 1)) + 1);
}

static uint16_t
cm_user_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	struct cm_side *side = listener;
	struct cm_script *sc = side->script;
	int from = cm_node_of(sc, &req->path.av);
	struct cm_life *l = cm_life_new(side);

	if (l == NULL || !cm_data_take(l)) {
		if (l != NULL) {
			l->never = l->released = true;
			life_gone(l);
		}
		side->refused_at_once++;
		return CM_REJ_NO_RESOURCES;
	}
	l->id = req->id;
	*user = l;
	if (from < 0 || (unsigned int)from >= sc->honest) {
		l->hostile = true;
		l->hello.plan = plan_of_stranger(sc->sim);
	} else {
		meet(l, req, from);
	}
	sim_trace(sc->sim, "node %u: life %u, request 0x%08x of life %d, plan %u", side->node->id,
		l->index, l->id, l->peer != NULL ? (int)l->peer->index : -1, l->hello.plan);
	cm_user_fill_param(l, param);
	switch (l->hello.plan) {
	case CM_PLAN_LATE_ACCEPT:
	case CM_PLAN_LATE_REFUSE:
	case CM_PLAN_SILENT:
		l->waits = true;
		l->act_at = sc->sim->now + late_by(sc);
		return CM_LATER;
	case CM_PLAN_REFUSE:
		l->never = l->released = true;
		side->refused_at_once++;
		life_gone(l);
		return CM_REJ_CONSUMER;
	}
	l->act_at = sc->sim->now + sim_below(sc->sim, 50 * CM_US);
	return 0;
}

static int
cm_user_prepare(void *user, cm_id id, uint32_t qpn)
{
	struct cm_life *l = user;
	struct sim *s = l->side->node->sim;
	struct rc_qp_info info;

	cm_model_told(l, "prepare", !l->prepared && !l->ended && !l->released);
	l->prepared = true;
	l->id = id;
	l->qpn = qpn;
	if (rc_qp_query(l->side->node->worker, qpn, &info) != 0 || info.attr.qp_state != QPS_INIT)
		sim_fail(s, "life %u: QP 0x%x is not in INIT", l->index, qpn);
	if (cm_data_prepare(l) != 0)
		return -EINVAL;
	if (l->hello.plan == CM_PLAN_UNPREPARED && !l->active)
		return -ENOMEM;
	if (l->hello.plan == CM_PLAN_CANCEL_PASSIVE && !l->active && (l->nonce >> 20 & 3) == 0) {
		l->cancelled = true; /* in the callback */
		cm_disconnect(l->side->cm, l->id, NULL, 0, s->now);
	}
	return 0;
}

/* --- both sides --- */

/* Read the private data of a REP; meet() has read those of the REQ. */
static void
cm_user_greet(struct cm_life *l, const uint8_t *data, uint8_t len)
{
	struct cm_script *sc = l->side->script;
	struct cm_hello h;

	if (l->hostile || !l->active)
		return;
	if (len < CM_HELLO_LEN || !hello_decode(data, &h) ||
		(l->peer = cm_user_life_of(sc, h.nonce)) == NULL || l->peer->peer != l ||
		l->peer->side->node->id != l->to) {
		sim_fail(sc->sim, "node %u, life %u: a REP that is not for it", l->side->node->id,
			l->index);
		return;
	}
	l->peer_va = h.va;
	l->peer_key = h.key;
}

static void
cm_user_established(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct cm_life *l = user;

	cm_model_told(l, "established",
		l->prepared && !l->established && !l->ended && !l->released);
	l->established = true;
	l->side->told_established++;
	l->progress_at = l->next_at = l->side->node->sim->now;
	l->by_data = !l->active && data == NULL;
	if (l->by_data)
		coverage_cm_by_data(l->side->node->sim->coverage);
	cm_user_greet(l, data, len);
	cm_model_pair(l, info);
}

static void
ended(void *user, const struct cm_info *info, const uint8_t *data, uint8_t len)
{
	struct cm_life *l = user;
	struct sim *s = l->side->node->sim;
	struct rc_qp_info qp;

	cm_model_told(l, "ended", !l->ended && !l->released && !l->never);
	l->ended = true;
	l->end = (uint8_t)info->end;
	l->reason = info->reason;
	l->side->told_end[info->end]++;
	coverage_cm_end(s->coverage, info->end);
	sim_trace(s, "life %u: end %u, reason %u", l->index, info->end, info->reason);
	if (l->prepared &&
		(rc_qp_query(l->side->node->worker, l->qpn, &qp) != 0 ||
			qp.attr.qp_state != QPS_ERR))
		sim_fail(s, "life %u has ended, its QP not", l->index);
	if (len >= CM_HELLO_LEN && !l->hostile && get_be32(data) == MAGIC &&
		(cm_user_life_of(l->side->script, get_be64(data + 4)) == NULL ||
			(l->peer != NULL && get_be64(data + 4) != l->peer->nonce &&
				l->established)))
		sim_fail(s, "life %u ends by another one's words", l->index);
}

static void
released(void *user)
{
	struct cm_life *l = user;
	struct rc_qp_info qp;

	cm_model_told(l, "released", !l->released && !l->never && (l->ended || l->side->stopping));
	l->released = true;
	if (l->prepared && rc_qp_query(l->side->node->worker, l->qpn, &qp) == 0)
		sim_fail(l->side->node->sim, "life %u is released, its QP not destroyed", l->index);
	cm_model_released(l);
	life_gone(l);
}

const struct cm_user cm_sim_user = { "simulation", cm_user_request, NULL, cm_user_prepare,
	cm_user_established, ended, released };

/* --- active side --- */

void
cm_sim_path(const struct cm_script *sc, unsigned int from, unsigned int to, unsigned int path,
	struct cm_path *p)
{
	*p = (struct cm_path){
		.av = cm_av(sc, from, to, path),
		.neighbour = PATH_NO_NEIGHBOUR,
		.pkey = 0xFFFF,
		.mtu = (uint16_t)(256u << sim_below(sc->sim, 3)),
		.packet_life = sc->limits.packet_life,
		.present = true,
	};
}

static uint8_t
any_plan(struct sim *s)
{
	switch (sim_below(s, 8)) {
	case 0:
	case 1:
	case 2:
		return CM_PLAN_ACCEPT;
	case 3:
		return CM_PLAN_LATE_ACCEPT;
	case 4:
		return sim_below(s, 2) ? CM_PLAN_SILENT : CM_PLAN_LATE_REFUSE;
	}
	return (uint8_t)sim_below(s, CM_PLANS);
}

static void
fill_connect(struct cm_life *l, struct cm_connect *c)
{
	struct cm_script *sc = l->side->script;
	struct sim *s = sc->sim;
	unsigned int from = l->side->node->id, which = sim_below(s, CM_SERVICES);

	*c = (struct cm_connect){
		.service_id = cm_service(sc, which),
		.ops = &cm_sim_user,
		.user = l,
	};
	if (l->hello.plan == CM_PLAN_NO_SERVICE)
		c->service_id = 0x5555;
	cm_sim_path(sc, from, l->to, 0, &c->path);
	l->alternate = sim_below(s, 3) == 0;
	if (l->alternate) {
		cm_sim_path(sc, from, l->to, 1, &c->alternate);
		c->alternate.mtu = c->path.mtu;
	}
	c->rdma = (struct cm_rdma){
		.present = cm_port_space(c->service_id) != 0,
		.src_port = (uint16_t)(4000 + l->index),
		.src = cm_gid(sc, from, 0),
		.dst = cm_gid(sc, l->to, 0),
	};
	cm_user_fill_param(l, &c->param);
}

void
cm_life_connect(struct cm_script *sc, unsigned int from, unsigned int to)
{
	struct cm_side *side = &sc->side[from];
	struct cm_life *l = cm_life_new(side);
	struct error err = { "" };
	struct sim *s = sc->sim;
	struct cm_connect c;

	if (l == NULL)
		return;
	l->active = true;
	l->to = to;
	l->hostile = to >= sc->honest;
	l->clean = sc->strict;
	l->hello = (struct cm_hello){
		.nonce = l->nonce,
		.plan = any_plan(s),
		.count = (uint8_t)(sim_below(s, 4) ? sim_below(s, CM_MESSAGES_MAX + 1) : 0),
		.enders = (uint8_t)(1 + sim_below(s, 3)),
		.key = side->key,
	};
	l->act_at = s->now + sim_below(s, sim_below(s, 2) ? 20 * CM_US : 100 * CM_MS);
	if (l->hello.plan == CM_PLAN_BAD_KEY)
		l->hello.count = CM_MESSAGES_MAX;
	if (cm_data_take(l)) {
		l->hello.va = cm_data_va(l);
		fill_connect(l, &c);
		if (cm_connect(side->cm, &c, s->now, &l->id, &err) == 0) {
			sim_trace(s, "node %u: life %u, 0x%08x connects to node %u, plan %u", from,
				l->index, l->id, to, l->hello.plan);
			cm_side_look(side);
			return;
		}
	}
	if (sc->strict)
		sim_fail(s, "node %u cannot connect: %s", from, err.text);
	l->never = l->released = true;
	life_gone(l);
}

/* --- actions in a turn --- */

static void
cm_user_disconnect(struct cm_life *l)
{
	uint8_t data[CM_HELLO_LEN];
	int ret;

	if (l->established)
		l->disconnecting = true;
	else
		l->cancelled = true;
	ret = cm_disconnect(l->side->cm, l->id, data, words(l, data), l->side->node->sim->now);
	if (ret != 0 && ret != -EALREADY)
		sim_fail(l->side->node->sim, "life %u cannot disconnect: %d", l->index, ret);
	cm_side_look(l->side);
}

static void
cm_user_decide(struct cm_life *l)
{
	struct sim *s = l->side->node->sim;
	struct cm_conn_param param;
	int ret;

	if (s->now < l->act_at || l->hello.plan == CM_PLAN_SILENT)
		return;
	l->waits = false;
	cm_user_fill_param(l, &param);
	if (l->hello.plan == CM_PLAN_LATE_REFUSE) {
		l->refused = true;
		ret = cm_refuse(l->side->cm, l->id, CM_REJ_CONSUMER, param.private_data,
			param.private_len, s->now);
	} else {
		ret = cm_accept(l->side->cm, l->id, &param, s->now);
	}
	if (ret != 0 && l->clean)
		sim_fail(s, "life %u cannot answer: %d", l->index, ret);
	cm_side_look(l->side);
}

static void
cm_user_propose(struct cm_life *l)
{
	struct cm_script *sc = l->side->script;
	unsigned int to = l->active ? l->to : l->peer->side->node->id;
	struct error err = { "" };
	struct cm_path path;

	cm_sim_path(sc, l->side->node->id, to, sim_below(sc->sim, 8) != 0, &path);
	l->alternate = true;
	cm_load_alternate(l->side->cm, l->id, &path, sc->sim->now, &err);
}

static bool
may_end(const struct cm_life *l)
{
	return l->hello.enders & (l->active ? 1 : 2);
}

static void
transfer(struct cm_life *l)
{
	struct sim *s = l->side->node->sim;
	bool all = l->done == l->hello.count && cm_data_complete(l);

	if (l->broken || (all && may_end(l)) || (l->hostile && sim_below(s, 100) == 0) ||
		s->now > l->progress_at + l->side->script->longest + 2 * l->pace + SIM_SECOND) {
		cm_user_disconnect(l);
		return;
	}
	if (l->hostile)
		return;
	cm_data_post(l);
	if (!l->alternate && sim_below(s, 30) == 0)
		cm_user_propose(l);
}

void
cm_life_step(struct cm_life *l)
{
	struct sim *s = l->side->node->sim;

	if (l->ended || l->disconnecting || l->cancelled || l->refused || l->side->cm == NULL)
		return;
	if (l->waits)
		cm_user_decide(l);
	else if (l->established)
		transfer(l);
	else if (s->now >= l->act_at &&
		l->hello.plan == (l->active ? CM_PLAN_CANCEL : CM_PLAN_CANCEL_PASSIVE))
		cm_user_disconnect(l);
}
