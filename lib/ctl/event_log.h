/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef CTL_EVENT_LOG_H
#define CTL_EVENT_LOG_H

/**
 * @file
 * The last asynchronous events, numbered, so that several clients may each follow them.
 */

#include "engine/verbs.h"

#define EVENT_LOG_SIZE 4096 /* a power of two */

struct event_log;

struct event_log *event_log_create(void);
void event_log_destroy(struct event_log *log);
/**
 * Move all events from the engine into the log. Call it regularly, also without clients: it empties
 * the workers' rings, and the engine writes the lines of its log.
 */
void event_log_fill(struct event_log *log, struct engine *e);

/** Number of the next event to come; events are numbered from 1. */
uint64_t event_log_end(const struct event_log *log);
/** Number of the oldest event that is still kept. */
uint64_t event_log_first(const struct event_log *log);
/**
 * @param seq  from event_log_first() to before event_log_end()
 * @return NULL: this event found no room on its way
 */
const struct event *event_log_at(const struct event_log *log, uint64_t seq);
/** Events that the engine had no room for, since start. */
uint64_t event_log_lost(const struct event_log *log);

#endif
