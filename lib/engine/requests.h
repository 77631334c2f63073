/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_REQUESTS_H
#define ENGINE_REQUESTS_H

/**
 * @file Private to lib/engine: MAD requests and SA queries that clients started: a worker sends
 * them, and clients ask for their state. A table has a fixed number of places. The control thread
 * alone uses it.
 */

#include "engine/engine.h"
#include "mad/mad.h"

/** The first member of every request. */
struct request {
	bool used;
	bool timed_out;
	bool monitoring; /**< of a client of the monitoring socket */
	uint32_t generation;
	struct engine *engine;
	unsigned int worker;
	uint64_t started; /**< TSC */
	uint64_t seen; /**< TSC of the last access by a client */
	uint64_t timeout; /**< TSC cycles; 0: none */
	/* written by the worker until .done */
	mad_handle handle;
	struct mad_result result;
	uint32_t done;
};

struct request_kind {
	size_t size; /**< of a structure that begins with struct request */
	uint32_t num;
	uint32_t forget_s; /**< a request is forgotten this long after the last access */
	uint32_t replace_s; /**< the place of a finished one may be reused this long after */
	const char *full; /**< what to tell whoever finds no place */
	void (*release)(struct request *r); /**< what it has mapped */
};

struct requests {
	const struct request_kind *kind;
	char *places; /**< NULL: none was ever made */
	unsigned int turn; /**< round robin over the workers */
};

/**
 * A zeroed request, not started.
 *
 * @param monitoring  of a client of the monitoring socket; all of these share a quarter of the
 *                    places, so that operators find one
 * @return NULL: there is no place, or no memory; err says so
 */
void *request_new(struct requests *all, const struct request_kind *kind, struct engine *e,
	bool monitoring, struct error *err);
/** Let @p worker begin it: @p fn sets .handle. @return what @p fn does */
int request_start(struct request *r, unsigned int worker, worker_fn fn, void *arg);
uint32_t request_id(const struct requests *all, const struct request *r);
/** @return NULL: there is none (any more) */
void *request_find(const struct requests *all, uint32_t id);
/** True if the worker has written all that it will. */
bool request_is_done(const struct request *r);
/** End it, if it is under way, and free its place. */
void request_forget(struct requests *all, struct request *r);
/** End those whose time is over, and forget those that nobody looks at. */
void requests_watch(struct requests *all);
void requests_destroy(struct requests *all);

#endif
