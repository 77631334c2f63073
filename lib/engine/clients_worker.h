/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef ENGINE_CLIENTS_WORKER_H
#define ENGINE_CLIENTS_WORKER_H

/**
 * @file
 * A worker's side of its clients. Without clients a turn pays for two loads.
 */

#include "engine/worker.h"

/* clients_post.c */
/** Take doorbells, and post what the queues hold. @return work: requests and looks at queues */
unsigned int clients_post(struct worker *w);

/* clients_complete.c */
/** struct rc_worker_config.completed: list the CQ. @param worker  the struct worker */
void client_cq_completed(void *worker, uint32_t cqn, bool solicited);
/** Copy completions of the listed CQs, of which there are some, to their clients. @return work */
unsigned int clients_complete(struct worker *w);

/* clients_sleep.c */
/** Control thread, before the worker's first client: make what ends its sleep. */
int client_wake_open(struct worker *w, struct error *err);
void client_wake_close(struct worker *w);
/** A worker with clients: sleep for @p ts at most, until somebody wakes it. */
void clients_sleep(struct worker *w, const struct timespec *ts);
/** Any thread: end such a sleep. */
void clients_wake(struct worker *w);

#endif
