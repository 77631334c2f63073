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

#include "engine/requests.h"
#include "engine/verbs_mad.h"
#include "engine/verbs_private.h"
#include "wire/wire.h"

struct ask {
	struct request r;
	/* used by the control thread only */
	uint8_t *mem; /* the request's data, then room for the answer's data */
	size_t mem_size;
	uint32_t len; /* of the request's data */
	uint32_t room; /* for the answer's data */
	/* written by the worker until .r.done */
	uint64_t got; /* bytes of the answer */
	bool has_mad;
	uint8_t mad[MAD_LEN];
};

static void
mad_ask_release(struct request *r)
{
	const struct ask *a = (const struct ask *)r;

	if (a->mem != NULL)
		munmap(a->mem, a->mem_size);
}

static const struct request_kind mad_ask_kind = {
	.size = sizeof(struct ask),
	.num = ENGINE_MAD_ASKS,
	.forget_s = 60,
	.replace_s = 1,
	.full = "there are %u requests under way already: wait",
	.release = mad_ask_release,
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
	struct engine *e = a->r.engine;

	a->r.result = *result;
	a->has_mad = result->mad != NULL;
	if (a->has_mad)
		memcpy(a->mad, result->mad, MAD_LEN);
	/* after the store the control thread may give the place to the next request */
	__atomic_store_n(&a->r.done, 1, __ATOMIC_RELEASE);
	wakeup_send(e);
}

struct call_args {
	struct ask *a;
	struct mad_call *call;
};

static int
mad_ask_call_here(struct worker *w, void *arg)
{
	const struct call_args *c = arg;

	return mad_call(w->mad, c->call, rte_get_tsc_cycles(), &c->a->r.handle);
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

	ret = request_start(&a->r, call->to.qpn == QPN_SMI ? 0 : e->asks.turn++ % e->num_workers,
		mad_ask_call_here, &args);
	if (ret == 0)
		return 0;
	return error_set(err, -ret,
		"worker %u has no session for this request: too many are under "
		"way (mad.max_sessions, mad.max_sessions_per_peer)",
		a->r.worker);
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
	a = request_new(&e->asks, &mad_ask_kind, e, false, err);
	if (a == NULL)
		return -ENOSPC;
	a->r.timeout = (uint64_t)ask->total_ms * (e->hz / 1000);
	ret = mad_ask_map_memory(a, ask, err);
	if (ret == 0) {
		mad_ask_fill_call(e, ask, a, &call);
		ret = mad_ask_start(e, a, &call, err);
	}
	if (ret != 0)
		request_forget(&e->asks, &a->r);
	else
		*id = request_id(&e->asks, &a->r);
	return ret;
}

/* --- reading the state --- */

int
engine_mad_look(struct engine *e, uint32_t id, struct engine_mad_answer *answer, struct error *err)
{
	struct ask *a;

	requests_watch(&e->asks);
	a = request_find(&e->asks, id);
	memset(answer, 0, sizeof(*answer));
	if (a == NULL)
		return error_set(err, ENOENT, "there is no request %u (any more)", id);
	answer->done = request_is_done(&a->r);
	if (!answer->done)
		return 0;
	answer->end = a->r.result.end;
	answer->timed_out = a->r.timed_out;
	answer->status = a->r.result.status;
	answer->rmpp_status = a->r.result.rmpp_status;
	answer->error = a->r.result.error;
	answer->has_mad = a->has_mad;
	memcpy(answer->mad, a->mad, MAD_LEN);
	answer->data = a->mem != NULL ? a->mem + a->len : NULL;
	answer->len = a->got;
	answer->resent = a->r.result.resent;
	answer->elapsed_ns = (uint64_t)((double)a->r.result.elapsed * 1e9 / (double)e->hz);
	return 0;
}

void
engine_mad_forget(struct engine *e, uint32_t id)
{
	struct ask *a = request_find(&e->asks, id);

	if (a != NULL)
		request_forget(&e->asks, &a->r);
}

void
engine_mad_watch(struct engine *e)
{
	requests_watch(&e->asks);
}
