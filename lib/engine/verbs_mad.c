/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Our own MAD requests: a worker sends them, the control thread reads the answers. The answer of an
 * RMPP request is stored in memory that was mapped when the request began; an answer that does not
 * fit ends the request with an error.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_cycles.h>

#include "engine/verbs_mad.h"
#include "engine/verbs_private.h"
#include "wire/wire.h"

#define FORGET_S  60 /* a request is forgotten this long after the last access by a client */
#define REPLACE_S 1 /* the place of a finished request may be reused this long after */

struct ask {
	/* used by the control thread only */
	bool used;
	bool timed_out;
	uint32_t generation;
	unsigned int worker;
	uint64_t started; /* TSC */
	uint64_t seen; /* TSC of the last access by a client */
	uint64_t total; /* time limit in TSC cycles; 0: none */
	uint8_t *mem; /* the request's data, then room for the answer's data */
	size_t mem_size;
	uint32_t len; /* of the request's data */
	uint32_t room; /* for the answer's data */
	/* written by the worker until .done */
	mad_handle handle;
	uint64_t got; /* bytes of the answer */
	struct mad_result result;
	bool has_mad;
	uint8_t mad[MAD_LEN];
	uint32_t done;
};

struct mad_asks {
	struct ask ask[ENGINE_MAD_ASKS];
	unsigned int turn; /* round robin over the workers */
};

/* --- on the worker --- */

static int
mad_ask_read_request(void *arg, uint64_t offset, uint8_t *buf, uint32_t len)
{
	const struct ask *a = arg;

	memcpy(buf, a->mem + offset, len);
	return 0;
}

static int
mad_ask_take_data(void *arg, uint64_t offset, const uint8_t *data, uint32_t len)
{
	struct ask *a = arg;

	if (offset + len > a->room)
		return -ENOBUFS;
	memcpy(a->mem + a->len + offset, data, len);
	a->got = offset + len;
	return 0;
}

static void
mad_ask_take_end(void *arg, const struct mad_result *result)
{
	struct ask *a = arg;

	a->result = *result;
	a->has_mad = result->mad != NULL;
	if (a->has_mad)
		memcpy(a->mad, result->mad, MAD_LEN);
	__atomic_store_n(&a->done, 1, __ATOMIC_RELEASE);
}

struct call_args {
	struct ask *a;
	struct mad_call *call;
};

static int
mad_ask_call_here(struct worker *w, void *arg)
{
	const struct call_args *c = arg;

	return mad_call(w->mad, c->call, rte_get_tsc_cycles(), &c->a->handle);
}

static int
mad_ask_cancel_here(struct worker *w, void *arg)
{
	struct ask *a = arg;

	if (a->done == 0)
		mad_cancel(w->mad, a->handle, rte_get_tsc_cycles());
	return 0;
}

/* --- the table --- */

static bool
mad_ask_is_done(const struct ask *a)
{
	return __atomic_load_n(&a->done, __ATOMIC_ACQUIRE) != 0;
}

static uint32_t
mad_ask_id(const struct mad_asks *all, const struct ask *a)
{
	return place_number(a->generation, ENGINE_MAD_ASKS, (size_t)(a - all->ask));
}

static void
mad_ask_forget(struct engine *e, struct ask *a)
{
	if (!mad_ask_is_done(a))
		engine_call(e, a->worker, mad_ask_cancel_here, a);
	if (a->mem != NULL)
		munmap(a->mem, a->mem_size);
	a->mem = NULL;
	a->used = false;
	a->generation++;
}

static struct ask *
mad_ask_find(struct engine *e, uint32_t id)
{
	struct ask *a = e->asks != NULL ? &e->asks->ask[id % ENGINE_MAD_ASKS] : NULL;

	if (a == NULL || !a->used || mad_ask_id(e->asks, a) != id)
		return NULL;
	a->seen = rte_get_tsc_cycles();
	return a;
}

static struct ask *
mad_ask_oldest_done(struct mad_asks *all)
{
	struct ask *a, *oldest = NULL;

	for (a = all->ask; a < all->ask + ENGINE_MAD_ASKS; a++)
		if (a->used && mad_ask_is_done(a) && (oldest == NULL || a->seen < oldest->seen))
			oldest = a;
	return oldest;
}

static struct ask *
mad_ask_place(struct engine *e, struct error *err)
{
	uint64_t now = rte_get_tsc_cycles();
	struct ask *a;

	if (e->asks == NULL)
		e->asks = mem_zalloc(&allocator_malloc, sizeof(*e->asks), 64);
	if (e->asks == NULL) {
		error_set(err, ENOMEM, "no memory for requests");
		return NULL;
	}
	for (a = e->asks->ask; a < e->asks->ask + ENGINE_MAD_ASKS; a++)
		if (!a->used)
			return a;
	a = mad_ask_oldest_done(e->asks);
	if (a != NULL && now > a->seen && now - a->seen > REPLACE_S * e->hz) {
		mad_ask_forget(e, a);
		return a;
	}
	error_set(err, ENOSPC, "there are %d requests under way already: wait", ENGINE_MAD_ASKS);
	return NULL;
}

/* --- asking --- */

/* Map memory for the request's data, which is copied, and for the answer's data. */
static int
mad_ask_map_memory(struct ask *a, const struct engine_mad_ask *ask, struct error *err)
{
	if (!ask->many)
		return 0;
	a->len = ask->data != NULL ? ask->len : 0;
	a->room = ask->max_answer;
	a->mem_size = (size_t)a->len + a->room + 1;
	a->mem = mmap(NULL, a->mem_size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (a->mem == MAP_FAILED) {
		a->mem = NULL;
		return error_set(err, ENOMEM, "no memory for %u bytes to send and %u to receive",
			a->len, a->room);
	}
	if (a->len > 0)
		memcpy(a->mem, ask->data, a->len);
	return 0;
}

static void
mad_ask_fill_call(const struct engine *e, const struct engine_mad_ask *ask, struct ask *a,
	struct mad_call *call)
{
	call->protocol = ask->many ? MAD_RMPP : MAD_SINGLE;
	call->data_offset = ask->data_offset;
	call->mad = ask->mad;
	call->retries = ask->retries;
	call->no_retry = ask->no_retry;
	call->timeout = (uint64_t)ask->timeout_ms * (e->hz / 1000);
	call->no_answer = ask->no_answer;
	call->keep_tid = ask->keep_tid;
	call->resp_time = e->config.mad.resp_time;
	call->taker =
		(struct mad_taker){ a, ask->many ? mad_ask_take_data : NULL, mad_ask_take_end };
	if (!ask->many)
		return;
	call->flags = MAD_METHOD_MULTI_RESPONSE;
	if (a->len == 0)
		return;
	call->flags |= MAD_METHOD_MULTI_REQUEST;
	call->source =
		(struct mad_source){ .arg = a, .length = a->len, .read = mad_ask_read_request };
}

static int
mad_ask_start(struct engine *e, struct ask *a, struct mad_call *call, struct error *err)
{
	struct call_args args = { a, call };
	int ret;

	a->worker = call->to.qpn == QPN_SMI ? 0 : e->asks->turn++ % e->num_workers;
	a->started = a->seen = rte_get_tsc_cycles();
	a->done = 0;
	ret = engine_call(e, a->worker, mad_ask_call_here, &args);
	if (ret == 0)
		return 0;
	a->done = 1;
	return error_set(err, -ret,
		"worker %u has no session for this request: too many are under "
		"way (mad.max_sessions, mad.max_sessions_per_peer)",
		a->worker);
}

int
engine_mad_ask(struct engine *e, const struct engine_mad_ask *ask, uint32_t *id, struct error *err)
{
	struct mad_call call = { 0 };
	struct ask *a;
	int ret;

	if (e->draining)
		return error_set(err, ESHUTDOWN, "the appliance is stopping");
	ret = mad_ask_peer(e, ask, &call.to, err);
	if (ret != 0)
		return ret;
	a = mad_ask_place(e, err);
	if (a == NULL)
		return -ENOSPC;
	*a = (struct ask){ .generation = a->generation, .used = true, .done = 1 };
	a->total = (uint64_t)ask->total_ms * (e->hz / 1000);
	ret = mad_ask_map_memory(a, ask, err);
	if (ret == 0) {
		mad_ask_fill_call(e, ask, a, &call);
		ret = mad_ask_start(e, a, &call, err);
	}
	if (ret != 0)
		mad_ask_forget(e, a);
	else
		*id = mad_ask_id(e->asks, a);
	return ret;
}

/* --- reading the state --- */

int
engine_mad_look(struct engine *e, uint32_t id, struct engine_mad_answer *answer, struct error *err)
{
	struct ask *a;

	engine_mad_watch(e);
	a = mad_ask_find(e, id);
	memset(answer, 0, sizeof(*answer));
	if (a == NULL)
		return error_set(err, ENOENT, "there is no request %u (any more)", id);
	answer->done = mad_ask_is_done(a);
	if (!answer->done)
		return 0;
	answer->end = a->result.end;
	answer->timed_out = a->timed_out;
	answer->status = a->result.status;
	answer->rmpp_status = a->result.rmpp_status;
	answer->error = a->result.error;
	answer->has_mad = a->has_mad;
	memcpy(answer->mad, a->mad, MAD_LEN);
	answer->data = a->mem != NULL ? a->mem + a->len : NULL;
	answer->len = a->got;
	answer->resent = a->result.resent;
	answer->elapsed_ns = (uint64_t)((double)a->result.elapsed * 1e9 / (double)e->hz);
	return 0;
}

void
engine_mad_forget(struct engine *e, uint32_t id)
{
	struct ask *a = mad_ask_find(e, id);

	if (a != NULL)
		mad_ask_forget(e, a);
}

static void
mad_ask_watch(struct engine *e, struct ask *a, uint64_t now)
{
	if (!mad_ask_is_done(a) && a->total > 0 && now > a->started &&
		now - a->started > a->total) {
		a->timed_out = true;
		engine_call(e, a->worker, mad_ask_cancel_here, a);
	}
	if (now > a->seen && now - a->seen > FORGET_S * e->hz)
		mad_ask_forget(e, a);
}

void
engine_mad_watch(struct engine *e)
{
	uint64_t now = rte_get_tsc_cycles();
	unsigned int i;

	for (i = 0; e->asks != NULL && i < ENGINE_MAD_ASKS; i++)
		if (e->asks->ask[i].used)
			mad_ask_watch(e, &e->asks->ask[i], now);
}

void
mad_asks_destroy(struct engine *e)
{
	unsigned int i;

	for (i = 0; e->asks != NULL && i < ENGINE_MAD_ASKS; i++)
		if (e->asks->ask[i].used)
			mad_ask_forget(e, &e->asks->ask[i]);
	mem_free(&allocator_malloc, e->asks);
	e->asks = NULL;
}
