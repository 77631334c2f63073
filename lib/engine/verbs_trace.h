/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_VERBS_TRACE_H
#define ENGINE_VERBS_TRACE_H

/**
 * @file
 * The flight recorder: the last steps of a QP, connection or session (base/trace.h). For the
 * control thread.
 */

#include "base/trace.h"
#include "cm/cm.h"
#include "engine/engine.h"

/** A copy of an object's steps; their times are nanoseconds since the oldest of them. */
struct engine_trace {
	struct trace steps;
	uint64_t age_ns; /**< since the newest one */
};

/** What can be recorded. */
enum engine_traced {
	ENGINE_TRACED_QP,
	ENGINE_TRACED_CONNECTION,
	ENGINE_TRACED_SESSION, /**< all or none */
	ENGINE_TRACED_KINDS
};

/**
 * Start or stop recording of one object.
 *
 * @retval -ENOENT  there is no such object
 * @retval -EINVAL  sessions are recorded all or none
 * @retval -ENOMEM
 */
int engine_trace_switch(struct engine *e, enum engine_traced kind, uint32_t number, bool on,
	struct error *err);
/** All objects of a kind, and new ones. @return how many were switched; sessions: workers */
unsigned int engine_trace_switch_all(struct engine *e, enum engine_traced kind, bool on);
/** @retval -ENODATA its steps are not recorded */
int engine_trace_get(struct engine *e, enum engine_traced kind, uint32_t number,
	struct engine_trace *trace, struct error *err);
/** Steps of the newest session with this TID. @retval -ENOENT @retval -ENODATA */
int engine_session_trace(struct engine *e, uint64_t tid, struct engine_trace *trace,
	struct error *err);
/**
 * The steps that came with EVENT_QP_ERROR, by qp_failure.trace.
 *
 * @return false: there were none, or 64 other queue pairs have failed since
 */
bool engine_event_trace(const struct engine *e, uint32_t number, struct engine_trace *trace);

#endif
