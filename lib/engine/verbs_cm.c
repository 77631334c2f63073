/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Connections that we open. The control thread resolves the path, then a worker connects and notes
 * the outcome. The attempt is the connection's user. When an attempt is forgotten its ID is
 * cleared, so that late callbacks of the connection, whose ID no longer matches, are ignored.
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/atomic.h"
#include "engine/connections.h"
#include "engine/verbs_private.h"

#define FORGET_S   60 /* an attempt is forgotten this long after the last query of its outcome */
#define REPLACE_S  1 /* its place may be reused this long after */
#define NEXT_HOP_S 2 /* time for ARP or ND to resolve the next hop */
#define NO_SERVICE UINT32_MAX
/* range of source ports that we choose */
#define PORT_FIRST 32768
#define PORTS      28232

enum step {
	STEP_ASK, /* the SA for the path */
	STEP_NEXT_HOP,
	STEP_SENT,
	STEP_OVER,
};

struct attempt {
	/*
	 * Atomic, written by the worker; 0: no connection, or the attempt was forgotten. When the
	 * connection of an earlier attempt in this place ends, its worker reads this field alone.
	 */
	cm_id id;
	/* used by the control thread only */
	bool used;
	bool timed_out;
	uint32_t generation;
	enum step step;
	struct engine *engine;
	unsigned int worker;
	uint64_t started; /* TSC */
	uint64_t seen; /* TSC of the last access by a client */
	uint64_t timeout; /* TSC; 0: none */
	uint32_t timeout_ms;
	uint32_t query; /* number of the SA query */
	unsigned int place; /* place of its service, or NO_SERVICE */
	struct conn_path_args path;
	struct cm_connect connect;
	int error;
	struct error why;
	/* written by the worker until .done */
	bool established;
	struct cm_info info;
	uint8_t private_data[CM_PRIVATE_MAX];
	uint8_t private_len;
	uint64_t ended;
	uint32_t done;
};

struct attempts {
	struct attempt attempt[ENGINE_CM_ATTEMPTS];
	unsigned int turn; /* round robin over the workers */
};

/* --- on the worker --- */

static void
attempt_note_outcome(void *user, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len, bool was_established)
{
	struct attempt *a = user;
	struct engine *e;

	if (RELAXED_GET(a->id) != info->id || a->done != 0)
		return;
	a->established = was_established;
	a->info = *info;
	a->private_len = RTE_MIN(len, CM_PRIVATE_MAX);
	if (a->private_len > 0)
		memcpy(a->private_data, private_data, a->private_len);
	a->ended = rte_get_tsc_cycles();
	e = a->engine;
	/* after the store the control thread may give the place to the next request */
	RELEASE_SET(a->done, 1);
	wakeup_send(e);
}

static void
attempt_established(void *user, const struct cm_info *info, const uint8_t *private_data,
	uint8_t len)
{
	attempt_note_outcome(user, info, private_data, len, true);
}

static void
attempt_ended(void *user, const struct cm_info *info, const uint8_t *private_data, uint8_t len)
{
	attempt_note_outcome(user, info, private_data, len, false);
}

static void
attempt_released(void *user)
{
	RTE_SET_USED(user);
}

static const struct cm_user attempt_user = {
	.name = "control plane",
	.established = attempt_established,
	.ended = attempt_ended,
	.released = attempt_released,
};

static int
connect_here(struct worker *w, void *arg)
{
	struct attempt *a = arg;
	uint64_t now = rte_get_tsc_cycles();
	cm_id id = 0;
	int ret;

	if (a->place != NO_SERVICE)
		ret = svc_worker_connect(service_here(w, a->place), &a->connect, now, &id, &a->why);
	else
		ret = cm_connect(w->cm, &a->connect, now, &id, &a->why);
	if (ret == 0)
		RELAXED_SET(a->id, id);
	return ret;
}

static int
attempt_cancel_here(struct worker *w, void *arg)
{
	struct attempt *a = arg;

	if (a->done == 0)
		cm_disconnect(w->cm, a->id, NULL, 0, rte_get_tsc_cycles());
	return 0;
}

static int
let_go_here(struct worker *w, void *arg)
{
	struct attempt *a = arg;

	RTE_SET_USED(w);
	RELAXED_SET(a->id, 0);
	return 0;
}

/* --- the table --- */

static bool
attempt_is_done(const struct attempt *a)
{
	return ACQUIRE_GET(a->done) != 0;
}

static uint32_t
attempt_number(const struct attempts *all, const struct attempt *a)
{
	return place_number(a->generation, ENGINE_CM_ATTEMPTS, (size_t)(a - all->attempt));
}

/* The outcome is known: cancel the SA query and tell the service. */
static void
attempt_end(struct engine *e, struct attempt *a)
{
	if (a->step == STEP_ASK)
		engine_sa_cancel(e, a->query, NULL);
	if (a->place != NO_SERVICE && a->step != STEP_OVER)
		service_connected(e, a->place,
			a->step == STEP_SENT && (!attempt_is_done(a) || a->established) ? a->id
											: 0);
	a->step = STEP_OVER;
}

static void
attempt_forget(struct engine *e, struct attempt *a)
{
	attempt_end(e, a);
	if (a->id != 0)
		engine_call(e, a->worker, let_go_here, a);
	a->used = false;
	a->generation++;
}

/* All but the ID, which attempt_forget() has cleared, and the generation. */
static void
attempt_clear(struct attempt *a)
{
	uint32_t generation = a->generation;

	RTE_ASSERT(a->id == 0);
	memset(&a->used, 0, sizeof(*a) - offsetof(struct attempt, used));
	a->generation = generation;
}

static struct attempt *
attempt_find(struct engine *e, uint32_t number)
{
	struct attempt *a = &e->attempts->attempt[number % ENGINE_CM_ATTEMPTS];

	if (!a->used || attempt_number(e->attempts, a) != number)
		return NULL;
	a->seen = rte_get_tsc_cycles();
	return a;
}

static struct attempt *
attempt_place(struct engine *e, struct error *err)
{
	struct attempt *a, *oldest = NULL;
	uint64_t now = rte_get_tsc_cycles();

	for (a = e->attempts->attempt; a < e->attempts->attempt + ENGINE_CM_ATTEMPTS; a++) {
		if (!a->used)
			return a;
		if (a->step == STEP_OVER && (oldest == NULL || a->seen < oldest->seen))
			oldest = a;
	}
	if (oldest != NULL && now > oldest->seen && now - oldest->seen > REPLACE_S * e->hz) {
		attempt_forget(e, oldest);
		return oldest;
	}
	error_set_limit(err, ENOSPC, "%d connections are being made already: wait",
		ENGINE_CM_ATTEMPTS);
	return NULL;
}

/* --- step by step --- */

static void
attempt_fail(struct engine *e, struct attempt *a, int error)
{
	attempt_end(e, a);
	a->error = error;
	a->ended = rte_get_tsc_cycles();
	a->done = 1;
}

static void
fill_rdma(struct attempt *a)
{
	struct cm_rdma *rdma = &a->connect.rdma;

	if (gid_is_zero(&rdma->src))
		rdma->src = a->connect.path.av.sgid;
	if (gid_is_zero(&rdma->dst))
		rdma->dst = a->connect.path.av.dgid;
	if (rdma->src_port == 0)
		rdma->src_port = (uint16_t)(PORT_FIRST + rng_u32(&rng_kernel) % PORTS);
}

static void
attempt_send_request(struct engine *e, struct attempt *a)
{
	int ret;

	if (a->connect.rdma.present)
		fill_rdma(a);
	a->why.text[0] = '\0';
	ret = engine_call(e, a->worker, connect_here, a);
	if (ret != 0)
		attempt_fail(e, a, ret);
	else
		a->step = STEP_SENT;
}

static void
attempt_take_path(struct engine *e, struct attempt *a)
{
	int ret = conn_path_answer(e, a->query, &a->path, &a->connect.path, &a->why);

	if (ret == -EAGAIN)
		return;
	a->step = STEP_NEXT_HOP;
	if (ret != 0)
		attempt_fail(e, a, ret);
	else
		attempt_send_request(e, a);
}

static void
look_for_hop(struct engine *e, struct attempt *a, uint64_t now)
{
	if (conn_path_hop(e, &a->connect.path, &a->why) == 0)
		attempt_send_request(e, a);
	else if (now > a->started && now - a->started > NEXT_HOP_S * e->hz)
		attempt_fail(e, a, -EHOSTUNREACH);
}

static void
attempt_advance(struct engine *e, struct attempt *a, uint64_t now)
{
	switch (a->step) {
	case STEP_ASK:
		attempt_take_path(e, a);
		break;
	case STEP_NEXT_HOP:
		look_for_hop(e, a, now);
		break;
	case STEP_SENT:
		if (attempt_is_done(a))
			attempt_end(e, a);
		break;
	case STEP_OVER:
		break;
	}
}

static void
attempt_time_out(struct engine *e, struct attempt *a)
{
	if (a->step == STEP_SENT)
		engine_call(e, a->worker, attempt_cancel_here, a);
	else
		attempt_fail(e, a, -ETIMEDOUT);
	/* it may have been established while it was cancelled */
	a->timed_out = !a->established;
	if (a->timed_out)
		error_set(&a->why, ETIMEDOUT, "not established within %u ms", a->timeout_ms);
}

static void
attempt_watch(struct engine *e, struct attempt *a, uint64_t now)
{
	attempt_advance(e, a, now);
	if (a->step != STEP_OVER && a->timeout > 0 && now > a->started &&
		now - a->started > a->timeout) {
		attempt_time_out(e, a);
		attempt_advance(e, a, now);
	}
	if (now > a->seen && now - a->seen > FORGET_S * e->hz && a->step == STEP_OVER)
		attempt_forget(e, a);
}

void
engine_cm_watch(struct engine *e)
{
	uint64_t now = rte_get_tsc_cycles();
	unsigned int i;

	for (i = 0; e->attempts != NULL && i < ENGINE_CM_ATTEMPTS; i++)
		if (e->attempts->attempt[i].used)
			attempt_watch(e, &e->attempts->attempt[i], now);
	services_watch(e, now);
}

void
attempts_use_neighbours(const struct engine *e, struct link_neighbours_used *used)
{
	const struct attempt *a;
	unsigned int i;

	for (i = 0; e->attempts != NULL && i < ENGINE_CM_ATTEMPTS; i++) {
		a = &e->attempts->attempt[i];
		if (a->used && a->step != STEP_OVER && a->connect.path.present)
			link_neighbour_use(used, a->connect.path.neighbour);
	}
}

/* --- connecting --- */

static int
attempt_choose_worker(struct engine *e, const struct engine_cm_connect *c, struct error *err)
{
	if (c->service == NULL && c->param.qp.srq != RC_NO_SRQ)
		return qp_worker_for(e, c->worker, &c->param.qp, err);
	if (c->worker >= 0)
		return choose_worker(e, c->worker, err);
	return (int)(e->attempts->turn++ % e->num_workers);
}

static void
fill_attempt(const struct engine *e, const struct engine_cm_connect *c, struct attempt *a)
{
	a->place = NO_SERVICE;
	a->started = a->seen = rte_get_tsc_cycles();
	a->timeout_ms = c->timeout_ms;
	a->timeout = (uint64_t)c->timeout_ms * (e->hz / 1000);
	a->path = (struct conn_path_args){ *c->ah, c->pkey_index, c->path_mtu, c->packet_life };
	a->connect = (struct cm_connect){
		.service_id = c->service_id,
		.rdma = { c->rdma, c->src_port, c->src_addr, c->dst_addr },
		.param = c->param,
		.ops = &attempt_user,
		.user = a,
	};
}

/* With a LID the attempt can continue without the SA, so it leaves half of the time for that. */
static uint32_t
sa_time(const struct engine_cm_connect *c)
{
	return c->timeout_ms > 1 && c->ah->dlid != 0 ? c->timeout_ms / 2 : c->timeout_ms;
}

static int
attempt_begin(struct engine *e, const struct engine_cm_connect *c, struct attempt *a)
{
	int ret = conn_path_begin(e, &a->path, &a->connect.path, &a->why);

	if (ret < 0)
		return ret;
	a->step = ret == CONN_PATH_ASK ? STEP_ASK : STEP_NEXT_HOP;
	if (c->service != NULL) {
		int failed = service_client(e, c->service, a->worker, &a->place, &a->why);

		if (failed != 0)
			return failed;
	}
	if (ret == CONN_PATH_ASK)
		return conn_path_ask(e, &a->path, sa_time(c), &a->query, &a->why);
	if (ret == CONN_PATH_READY)
		attempt_send_request(e, a);
	else
		attempt_advance(e, a, a->started);
	return a->error;
}

int
engine_cm_connect(struct engine *e, const struct engine_cm_connect *c, uint32_t *attempt,
	struct error *err)
{
	struct attempt *a;
	int worker, ret;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "the appliance is stopping");
	ret = c->service != NULL ? callers_mr(e, "mr_key", c->service->mr_key, err)
				 : callers_new_qp(e, &c->param.qp, err);
	if (ret != 0)
		return ret;
	worker = attempt_choose_worker(e, c, err);
	if (worker < 0)
		return worker;
	a = attempt_place(e, err);
	if (a == NULL)
		return -ENOSPC;
	attempt_clear(a);
	a->used = true;
	a->engine = e;
	a->worker = (unsigned int)worker;
	fill_attempt(e, c, a);
	ret = attempt_begin(e, c, a);
	if (ret == 0) {
		*attempt = attempt_number(e->attempts, a);
		return 0;
	}
	error_set(err, -ret, "%s", a->why.text);
	attempt_forget(e, a);
	return ret;
}

/* --- the outcome --- */

static void
attempt_say_why(const struct attempt *a, struct error *why)
{
	static const char *const words[CM_END_COUNT] = {
		[CM_END_DISCONNECTED] = "the peer disconnected",
		[CM_END_REFUSED] = "the peer's answer could not be used",
		[CM_END_TIMEOUT] = "the peer does not answer",
		[CM_END_STALE] = "the peer has restarted",
		[CM_END_QP_ERROR] = "the queue pair failed",
		[CM_END_CANCELLED] = "it was cancelled",
	};

	if (a->timed_out || a->error != 0)
		*why = a->why;
	else if (a->info.end == CM_END_REJECTED)
		error_set(why, ECONNREFUSED, "the peer rejected it: %s (reason %u)",
			cm_reason_name(a->info.reason), a->info.reason);
	else
		error_set(why, ECONNABORTED, "%s", words[a->info.end % CM_END_COUNT]);
}

int
engine_cm_outcome(struct engine *e, uint32_t attempt, struct engine_cm_outcome *o,
	struct error *err)
{
	struct attempt *a;

	engine_cm_watch(e);
	a = attempt_find(e, attempt);
	memset(o, 0, sizeof(*o));
	if (a == NULL)
		return error_set(err, ENOENT, "there is no attempt %u (any more)", attempt);
	o->done = attempt_is_done(a);
	o->info.id = a->id;
	o->elapsed_us = ((o->done ? a->ended : a->seen) - a->started) / (e->hz / 1000000);
	if (!o->done)
		return 0;
	o->established = a->established;
	o->timed_out = a->timed_out;
	o->error = a->error;
	if (!a->established)
		attempt_say_why(a, &o->why);
	o->info = a->info;
	o->info.age = a->info.age / (e->hz / 1000000);
	o->private_len = a->private_len;
	memcpy(o->private_data, a->private_data, sizeof(o->private_data));
	return 0;
}

void
engine_cm_forget(struct engine *e, uint32_t attempt)
{
	struct attempt *a = attempt_find(e, attempt);

	if (a != NULL)
		attempt_forget(e, a);
}

int
attempts_create(struct engine *e, struct error *err)
{
	e->attempts = mem_zalloc(&allocator_malloc, sizeof(*e->attempts), 64);
	return e->attempts != NULL ? 0 : error_set(err, ENOMEM, "no memory for connections");
}

void
attempts_destroy(struct engine *e)
{
	mem_free(&allocator_malloc, e->attempts);
	e->attempts = NULL;
}
