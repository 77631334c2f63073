/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_REMOTE_H
#define BENCH_REMOTE_H

/**
 * @file
 * A run of two processes. The server has the responder's endpoint, the client has the requester's
 * and controls the run. They exchange these messages, the client's on the left:
 *
 *   options              the options of the run
 *           ready        the server's endpoint; its port waits for the client
 *   end                  the client's endpoint
 *   size        go       for each size: receives are posted
 *   stop                 send nothing new
 *   done        figures  all requests are completed; the server's measurements
 *   bye
 */

#include <jansson.h>

#include "command.h"
#include "traffic/benchmark.h"

/** The client's run; s->o and s->link are set. */
int remote_run(struct benchmark *s, struct error *err);
/** peer_option.c: run against a program given by --peer; s->o and s->link are set. */
int peer_option_run(struct benchmark *s, struct error *err);
/** The command server. */
int server_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* remote_message.c */
json_t *message_options(const struct bench_options *o);
/** Apply the client's options; @p o keeps all others. */
int message_take_options(const json_t *message, struct bench_options *o, struct error *err);
json_t *message_end(const char *type, struct endpoint *end);
/** @param qps  number of queue pairs that it must have. .qpn is allocated */
int message_take_end(const json_t *message, uint32_t qps, struct peer *p, struct error *err);
/** The socket at which the two processes meet: o->peer, or a path chosen by the link. */
void remote_address(const struct bench_options *o, char *where, size_t size);

/* link_memif.c */
extern const char *const link_memif_keys[];
int link_memif_check(const struct bench_options *o, struct error *err);
int link_memif_create(const struct bench_options *o, enum bench_role role, char device[ROLES][256],
	struct error *err);
bool link_memif_zero_copy(const struct bench_options *o);
void link_memif_address(const struct bench_options *o, char *where, size_t size);

#endif
