/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <string.h>

#include <rte_cycles.h>

#include "engine/requests.h"
#include "engine/verbs_private.h"

#define MONITORING_SHARE 4 /* of so many places of a table one is for the monitoring socket */

bool
request_is_done(const struct request *r)
{
	return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE) != 0;
}

/* The used request after @p r (NULL: the first). */
static struct request *
request_next(const struct requests *all, const struct request *r)
{
	const char *end = all->places, *at = all->places;

	if (all->places != NULL)
		end += all->kind->num * all->kind->size;
	if (r != NULL)
		at = (const char *)r + all->kind->size;
	for (; at < end; at += all->kind->size)
		if (((const struct request *)at)->used)
			return (struct request *)(uintptr_t)at;
	return NULL;
}

static int
request_cancel_here(struct worker *w, void *arg)
{
	struct request *r = arg;

	if (r->done == 0)
		mad_cancel(w->mad, r->handle, rte_get_tsc_cycles());
	return 0;
}

void
request_forget(struct requests *all, struct request *r)
{
	if (!request_is_done(r))
		engine_call(r->engine, r->worker, request_cancel_here, r);
	all->kind->release(r);
	r->used = false;
	r->generation++;
}

uint32_t
request_id(const struct requests *all, const struct request *r)
{
	size_t place = (size_t)((const char *)r - all->places) / all->kind->size;

	return place_number(r->generation, all->kind->num, place);
}

static struct request *
request_at(const struct requests *all, uint32_t place)
{
	return (struct request *)(all->places + place * all->kind->size);
}

void *
request_find(const struct requests *all, uint32_t id)
{
	struct request *r = all->places != NULL ? request_at(all, id % all->kind->num) : NULL;

	if (r == NULL || !r->used || request_id(all, r) != id)
		return NULL;
	r->seen = rte_get_tsc_cycles();
	return r;
}

/* More than so many seconds ago. The TSC of another CPU may be ahead. */
static bool
request_unseen(const struct request *r, uint64_t now, uint32_t seconds)
{
	return now > r->seen && now - r->seen > seconds * r->engine->hz;
}

/*
 * A place that is free, or whose request is done and unseen for long, the longest first. Requests
 * of the monitoring socket replace only each other.
 */
static struct request *
request_free_place(struct requests *all, bool monitoring, uint32_t most)
{
	struct request *r, *oldest = NULL, *free = NULL;
	uint32_t i, used = 0;

	for (i = 0; i < all->kind->num; i++) {
		r = request_at(all, i);
		if (!r->used) {
			free = free == NULL ? r : free;
			continue;
		}
		if (monitoring && !r->monitoring)
			continue;
		used++;
		if (request_is_done(r) && (oldest == NULL || r->seen < oldest->seen))
			oldest = r;
	}
	if (free != NULL && used < most)
		return free;
	if (oldest == NULL || !request_unseen(oldest, rte_get_tsc_cycles(), all->kind->replace_s))
		return NULL;
	request_forget(all, oldest);
	return oldest;
}

void *
request_new(struct requests *all, const struct request_kind *kind, struct engine *e,
	bool monitoring, struct error *err)
{
	struct request *r,
		begin = { .used = true, .monitoring = monitoring, .engine = e, .done = 1 };
	uint32_t most = monitoring ? kind->num / MONITORING_SHARE : kind->num;

	all->kind = kind;
	if (all->places == NULL)
		all->places = mem_zalloc(&allocator_malloc, kind->num * kind->size, 64);
	if (all->places == NULL) {
		error_set(err, ENOMEM, "no memory for requests");
		return NULL;
	}
	r = request_free_place(all, monitoring, most);
	if (r == NULL) {
		error_set_limit(err, ENOSPC, kind->full, most);
		return NULL;
	}
	begin.generation = r->generation;
	memset(r, 0, kind->size);
	*r = begin;
	return r;
}

int
request_start(struct request *r, unsigned int worker, worker_fn fn, void *arg)
{
	int ret;

	RTE_ASSERT(r->engine != NULL && fn != NULL);
	r->worker = worker;
	r->started = r->seen = rte_get_tsc_cycles();
	r->done = 0;
	ret = engine_call(r->engine, worker, fn, arg);
	if (ret != 0)
		r->done = 1;
	return ret;
}

void
requests_watch(struct requests *all)
{
	uint64_t now = rte_get_tsc_cycles();
	struct request *r;

	for (r = request_next(all, NULL); r != NULL; r = request_next(all, r)) {
		if (!request_is_done(r) && r->timeout > 0 && now > r->started &&
			now - r->started > r->timeout) {
			r->timed_out = true;
			engine_call(r->engine, r->worker, request_cancel_here, r);
		}
		if (request_unseen(r, now, all->kind->forget_s))
			request_forget(all, r);
	}
}

void
requests_destroy(struct requests *all)
{
	struct request *r;

	for (r = request_next(all, NULL); r != NULL; r = request_next(all, r))
		request_forget(all, r);
	mem_free(&allocator_malloc, all->places);
	all->places = NULL;
}
