/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef LINK_MEMIF_H
#define LINK_MEMIF_H

/* Private to lib/link: what only memif ports need. */

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct link;
struct link_port;
struct rte_rcu_qsbr;

/* reconnect.c: limit memif's log level. @return the argument for memif_log_restore() */
int memif_log_level(uint32_t most);
void memif_log_restore(int level);
/* Start a memif client; wait some seconds for its server. */
int memif_client_start(const struct link *l, struct link_port *p, struct error *err);
/* Run fn on EAL's interrupt thread, and wait for it. */
void interrupts_run(void (*fn)(void *arg), void *arg);
/*
 * memif.c: from now on, munmap() on that thread waits until all readers of rcu have been quiescent;
 * with NULL it no longer waits. Only one link of a process may use this.
 */
void memif_guard(struct rte_rcu_qsbr *rcu);
/* Refuse a memif port that is not marked as trusted. */
int memif_trust(const struct link_port *p, struct error *err);
/* Name the port, whose device was found, if its peer crashes the process. */
void memif_watch(const struct link_port *p);
/* True if such a text is a memif server's; the driver's own choice is a client. */
bool memif_is_server(const char *args);

#endif
