/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A connection from its REQ to the end of TIMEWAIT. The CM's calls are passed on to the kind's
 * functions; work requests are counted, so that completions never exceed the reserved room.
 */

#include <errno.h>
#include <string.h>

#include <rte_debug.h>

#include "svc/private.h"

/* --- places --- */

static void
svc_conn_shape(struct svc_conn *c, struct cm_conn_param *param)
{
	const struct svc *s = c->svc;
	uint32_t cqn = c->w->cqn;

	*param = (struct cm_conn_param){
		.qp = {
			.qp_type = QPT_RC,
			.pd = s->pd,
			.send_cq = cqn,
			.recv_cq = cqn,
			.srq = RC_NO_SRQ,
			.cap = {
				.max_send_wr = s->sends,
				.max_recv_wr = s->recvs,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = SVC_INLINE,
			},
			.sq_sig_all = true, /* each send is counted until it completes */
		},
		.responder_resources = 16,
		.initiator_depth = 16,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.min_rnr_timer = 4, /* 0.04 ms: receives are posted again soon */
	};
	if (s->ops->shape != NULL)
		s->ops->shape(c, param);
}

/* Why there is no place for a connection: count it and say it. */
static void
no_place(struct svc_worker *w, int64_t why, struct error *err)
{
	const struct svc_config *c = &w->svc->config;

	if (why == -EDQUOT) {
		svc_count(w->counters, peer_limit, 1);
		error_set_limit(err, ENOSPC,
			"service %s: the address has its share of the connections, %u in all",
			c->name, c->max_connections);
	} else {
		error_set_limit(err, ENOSPC,
			"service %s: no place for one more connection, it has %u", c->name,
			c->max_connections);
	}
}

struct svc_conn *
svc_conn_new(struct svc_worker *w, const union gid *peer, struct cm_conn_param *param,
	struct error *err)
{
	struct svc *s = w->svc;
	uint32_t *held = peer != NULL ? svc_places_of(&s->places, peer) : NULL;
	struct svc_conn *c;
	int64_t place = -ENOSPC;

	if (w->room >= s->sends + s->recvs)
		place = svc_place_take(&s->places, held);
	if (place < 0) {
		no_place(w, place, err);
		return NULL;
	}
	c = &s->conns[place];
	RTE_ASSERT((uint64_t)place < s->config.max_connections && c->state == SVC_CONN_FREE);
	*c = (struct svc_conn){
		.svc = s,
		.w = w,
		.place = (uint32_t)place,
		.held = held,
		.generation = (c->generation + 1) & SVC_GENERATION_MASK,
		.state = SVC_CONN_OPENING,
		.active = peer == NULL,
		.max_sends = s->sends,
		.max_recvs = s->recvs,
	};
	if (s->priv_size != 0)
		memset(svc_conn_priv(c), 0, s->priv_size);
	w->room -= c->max_sends + c->max_recvs;
	w->connections++;
	TAILQ_INSERT_TAIL(&w->conns, c, link);
	if (s->ops->turn != NULL)
		svc_want_turn(c);
	svc_conn_shape(c, param);
	return c;
}

void
svc_want_turn(struct svc_conn *c)
{
	RTE_ASSERT(c->svc->ops->turn != NULL);
	RTE_ASSERT(c->state != SVC_CONN_FREE && c->state != SVC_CONN_GONE);
	if (c->turning)
		return;
	c->turning = true;
	TAILQ_INSERT_TAIL(&c->w->turning, c, turn);
}

void
svc_conn_stop_turns(struct svc_conn *c)
{
	if (!c->turning)
		return;
	c->turning = false;
	TAILQ_REMOVE(&c->w->turning, c, turn);
}

/* Before a connection leaves .conns: move .ending past it and take it off .turning. */
static void
svc_conn_leave_walks(struct svc_worker *w, struct svc_conn *c)
{
	if (w->ending == c)
		w->ending = TAILQ_NEXT(c, link);
	svc_conn_stop_turns(c);
}

void
svc_conn_free(struct svc_conn *c)
{
	struct svc_worker *w = c->w;

	RTE_ASSERT(c->state != SVC_CONN_FREE && c->request == 0);
	svc_conn_leave_walks(w, c);
	TAILQ_REMOVE(c->state == SVC_CONN_GONE ? &w->gone : &w->conns, c, link);
	w->room += c->max_sends + c->max_recvs;
	RTE_ASSERT(w->room <= w->svc->cq_depth && w->connections > 0);
	w->connections--;
	c->state = SVC_CONN_FREE;
	c->w = NULL;
	svc_place_give(&c->svc->places, c->place, c->held);
}

void
svc_conn_gone(struct svc_conn *c)
{
	struct svc_worker *w = c->w;
	struct rc_cq_info info = { 0 };

	RTE_ASSERT(c->state != SVC_CONN_FREE && c->state != SVC_CONN_GONE && c->request == 0);
	svc_conn_leave_walks(w, c);
	TAILQ_REMOVE(&w->conns, c, link);
	if (c->state == SVC_CONN_STANDING) /* cm_destroy() does not call ended() */
		svc_count(w->counters, connections, -1);
	c->state = SVC_CONN_GONE;
	/* its QP is destroyed: all its completions are in the queue now */
	rc_cq_query(c->svc->env.dev, w->cqn, &info);
	c->last = w->polled + info.pending;
	TAILQ_INSERT_TAIL(&w->gone, c, link);
}

void
svc_conn_stands(struct svc_conn *c)
{
	RTE_ASSERT(c->state == SVC_CONN_OPENING);
	c->state = SVC_CONN_STANDING;
	svc_count(c->w->counters, connections, 1);
	svc_count(c->w->counters, established, 1);
}

static uint64_t
wr_id_of(const struct svc_conn *c, uint64_t wr_id, bool recv)
{
	uint32_t upper = c->place | c->generation << SVC_PLACE_BITS |
		(uint32_t)recv << (SVC_PLACE_BITS + SVC_GENERATION_BITS);

	return (uint64_t)upper << 32 | (uint32_t)wr_id;
}

struct svc_conn *
svc_conn_of_wr(const struct svc_worker *w, uint64_t wr_id, bool *recv)
{
	uint32_t upper = (uint32_t)(wr_id >> 32), place = upper & (SVC_PLACES_MAX - 1);
	struct svc_conn *c = &w->svc->conns[place];

	*recv = upper >> (SVC_PLACE_BITS + SVC_GENERATION_BITS);
	if (place >= w->svc->config.max_connections || c->w != w ||
		c->generation != (upper >> SVC_PLACE_BITS & SVC_GENERATION_MASK))
		return NULL;
	return c;
}

/* --- struct cm_user: called by the CM --- */

/* True if the peer's connection would have a place now; it takes none yet. */
static bool
svc_has_room(struct svc_worker *w, const struct cm_request *req)
{
	const struct svc_places *p = &w->svc->places;
	const union gid peer = cm_address(&req->path.av);

	if (w->room < w->svc->sends + w->svc->recvs || !svc_places_left(p))
		return false;
	if (svc_places_admit(p, __atomic_load_n(svc_places_of(p, &peer), __ATOMIC_RELAXED)))
		return true;
	no_place(w, -EDQUOT, NULL);
	return false;
}

static void
svc_opening_add(struct svc_conn *c)
{
	c->request = c->w->requests;
	c->w->num_opening++;
	TAILQ_INSERT_TAIL(&c->w->opening, c, opening);
}

static void
svc_opening_remove(struct svc_conn *c)
{
	if (c->request == 0)
		return;
	c->request = 0;
	c->w->num_opening--;
	TAILQ_REMOVE(&c->w->opening, c, opening);
}

/*
 * Strangers hold at most half of the places of a service that gives them at the REQ; then the
 * oldest one gives way, but only after some more REQs, since its RTU may be on its way.
 */
#define OPENING_REQUESTS 16
static void
svc_opening_limit(struct svc_worker *w)
{
	uint32_t most = w->svc->config.max_connections / 2 / w->svc->env.workers;
	struct svc_conn *c = TAILQ_FIRST(&w->opening);

	if (c != NULL && w->num_opening >= most && w->requests - c->request >= OPENING_REQUESTS)
		cm_give_way(w->cm, c->id, w->now);
}

static uint16_t
svc_request_early(struct svc_worker *w, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	const union gid peer = cm_address(&req->path.av);
	struct svc_conn *c;
	uint16_t reason;

	w->requests++;
	svc_opening_limit(w);
	c = svc_conn_new(w, &peer, param, NULL);
	if (c == NULL)
		return CM_REJ_NO_RESOURCES;
	c->id = req->id;
	reason = w->svc->ops->request != NULL ? w->svc->ops->request(c, req, param) : 0;
	if (reason != 0) {
		svc_conn_free(c);
		return reason;
	}
	svc_opening_add(c);
	*user = c;
	return 0;
}

static bool
svc_cm_admits(void *listener, const struct cm_request *req)
{
	struct svc_worker *w = listener;
	const struct av *av = &req->path.av;

	if (allow_list_admits(&w->svc->config.allow,
		    av->encap != ENCAP_IB || av->grh ? &av->dgid : NULL, req->path.pkey))
		return true;
	svc_count(w->counters, refused, 1);
	return false;
}

static uint16_t
svc_cm_request(void *listener, const struct cm_request *req, struct cm_conn_param *param,
	void **user)
{
	struct svc_worker *w = listener;
	uint16_t reason = 0;

	if (w->svc->early)
		reason = svc_request_early(w, req, param, user);
	else if (svc_has_room(w, req))
		svc_conn_shape(&w->asked, param);
	else
		reason = CM_REJ_NO_RESOURCES;
	if (reason == 0)
		return 0;
	param->private_len = 0; /* private data, such as an R_Key, only for accepted peers */
	svc_count(w->counters, refused, 1);
	return reason;
}

/* The peer has answered our REP: now its connection takes a place. */
static int
svc_cm_seat(void *listener, const struct cm_request *req, void **user)
{
	struct svc_worker *w = listener;
	const union gid peer = cm_address(&req->path.av);
	struct cm_conn_param param;
	struct svc_conn *c = svc_conn_new(w, &peer, &param, NULL);

	if (c == NULL) {
		svc_count(w->counters, refused, 1);
		return -ENOSPC;
	}
	c->id = req->id;
	if (w->svc->ops->request != NULL)
		w->svc->ops->request(c, req, &param);
	*user = c;
	return 0;
}

static int
svc_cm_prepare(void *user, cm_id id, uint32_t qpn)
{
	struct svc_conn *c = user;

	c->id = id;
	c->qpn = qpn;
	return c->svc->ops->prepare != NULL ? c->svc->ops->prepare(c) : 0;
}

static void
svc_cm_established(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct svc_conn *c = user;

	svc_opening_remove(c);
	svc_conn_stands(c);
	if (c->svc->ops->established != NULL)
		c->svc->ops->established(c, private_data, len);
	if (c->watcher != NULL && c->watcher->established != NULL)
		c->watcher->established(c->watcher_user, info, private_data, len);
}

static void
svc_cm_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	struct svc_conn *c = user;

	svc_opening_remove(c);
	if (c->state == SVC_CONN_STANDING)
		svc_count(c->w->counters, connections, -1);
	c->state = SVC_CONN_ENDED;
	if (c->svc->ops->ended != NULL)
		c->svc->ops->ended(c, info);
	if (c->watcher != NULL && c->watcher->ended != NULL)
		c->watcher->ended(c->watcher_user, info, private_data, len);
}

static void
svc_cm_released(void *user)
{
	struct svc_conn *c = user;

	svc_opening_remove(c); /* cm_destroy() does not call ended() */
	svc_conn_gone(c);
	if (c->watcher != NULL && c->watcher->released != NULL)
		c->watcher->released(c->watcher_user);
}

/* Only count and tell the watcher: the kind posts receives again when it gets their completions. */
static void
svc_cm_receives_wanted(void *user)
{
	struct svc_conn *c = user;

	svc_count(c->w->counters, receives_missing, 1);
	if (c->watcher != NULL && c->watcher->receives_wanted != NULL)
		c->watcher->receives_wanted(c->watcher_user);
}

const struct cm_user svc_cm_user = {
	.name = "service",
	.admits = svc_cm_admits,
	.request = svc_cm_request,
	.seat = svc_cm_seat,
	.prepare = svc_cm_prepare,
	.established = svc_cm_established,
	.ended = svc_cm_ended,
	.released = svc_cm_released,
	.receives_wanted = svc_cm_receives_wanted,
};

/* --- for kinds --- */

static bool
may_post(const struct svc_conn *c)
{
	return c->state <= SVC_CONN_STANDING && !c->ending;
}

int
svc_post_send(struct svc_conn *c, const struct send_wr *wr)
{
	struct send_wr own = *wr;
	int ret;

	if (!may_post(c))
		return -ENOTCONN;
	if (c->sends == c->max_sends)
		return -ENOBUFS;
	own.wr_id = wr_id_of(c, wr->wr_id, false);
	ret = rc_post_send(c->w->rc, c->qpn, &own, NULL);
	if (ret == 0)
		c->sends++;
	return ret;
}

int
svc_post_recv(struct svc_conn *c, const struct recv_wr *wr)
{
	struct recv_wr own = *wr;
	int ret;

	if (!may_post(c))
		return -ENOTCONN;
	if (c->recvs == c->max_recvs)
		return -ENOBUFS;
	own.wr_id = wr_id_of(c, wr->wr_id, true);
	ret = rc_post_recv(c->w->rc, c->qpn, &own, NULL);
	if (ret == 0)
		c->recvs++;
	return ret;
}

static inline bool __rte_unused
in_region(const struct svc_region *r, uint64_t offset, uint32_t length)
{
	return offset <= r->length && length <= r->length - offset;
}

int
svc_send(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length)
{
	struct sge sge = { .addr = r->va + offset, .length = length, .lkey = r->lkey };
	struct send_wr wr = {
		.wr_id = wr_id,
		.opcode = WR_SEND,
		.num_sge = length != 0,
		.sg_list = &sge,
	};

	RTE_ASSERT(length == 0 || in_region(r, offset, length));
	return svc_post_send(c, &wr);
}

int
svc_recv(struct svc_conn *c, uint32_t wr_id, const struct svc_region *r, uint64_t offset,
	uint32_t length)
{
	struct sge sge = { .addr = r->va + offset, .length = length, .lkey = r->lkey };
	struct recv_wr wr = { .wr_id = wr_id, .num_sge = length != 0, .sg_list = &sge };

	RTE_ASSERT(length == 0 || in_region(r, offset, length));
	return svc_post_recv(c, &wr);
}

void
svc_disconnect(struct svc_conn *c)
{
	RTE_ASSERT(c->state != SVC_CONN_FREE);
	if (c->ending || c->state > SVC_CONN_STANDING)
		return;
	c->ending = true;
	cm_disconnect(c->w->cm, c->id, NULL, 0, c->w->now);
}

void
svc_violation(struct svc_conn *c)
{
	if (may_post(c))
		svc_count(c->w->counters, violations, 1);
	svc_disconnect(c);
}

/* False for the connection of a REQ that has no place yet (svc_place_early()). */
static inline bool __rte_unused
has_place(const struct svc_conn *c)
{
	return c->place < c->svc->config.max_connections && c == &c->svc->conns[c->place];
}

void *
svc_conn_priv(struct svc_conn *c)
{
	RTE_ASSERT(has_place(c));
	return c->svc->privs + c->place * c->svc->priv_size;
}

struct svc *
svc_conn_service(const struct svc_conn *c)
{
	return c->svc;
}

uint32_t
svc_conn_place(const struct svc_conn *c)
{
	RTE_ASSERT(has_place(c));
	return c->place;
}

bool
svc_conn_active(const struct svc_conn *c)
{
	return c->active;
}

uint32_t
svc_conn_qpn(const struct svc_conn *c)
{
	return c->qpn;
}

uint64_t
svc_conn_now(const struct svc_conn *c)
{
	return c->w->now;
}

struct svc_counters *
svc_conn_counters(struct svc_conn *c)
{
	return c->w->counters;
}
