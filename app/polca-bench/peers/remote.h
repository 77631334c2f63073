/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_REMOTE_H
#define BENCH_REMOTE_H

/**
 * @file
 * A run over two processes: the server has the responder's end, the client the requester's and the
 * say. Over the exchange goes, client first:
 *
 *   options              what the run is to be
 *           ready        the server's end, whose port now waits
 *   end                  the client's
 *   size        go       for each size: receives are posted
 *   stop                 nothing new
 *   done        figures  nothing is under way any more; what it cost the server
 *   bye
 */

#include <jansson.h>

#include "command.h"
#include "traffic/benchmark.h"

/** The client's side, instead of a run in one process; s->o and s->link are set. */
int remote_run(struct benchmark *s, struct error *err);
/** given.c: one end here, the other one is given; s->o and s->link are set. */
int peer_option_run(struct benchmark *s, struct error *err);
/** The command. */
int server_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err);

/* remote_message.c */
json_t *message_options(const struct bench_options *o);
/** What the client wants; the rest of @p o stays ours. */
int message_take_options(const json_t *message, struct bench_options *o, struct error *err);
json_t *message_end(const char *type, struct endpoint *end);
/** @param qps  how many queue pairs it must have. .qpn is allocated */
int message_take_end(const json_t *message, uint32_t qps, struct peer *p, struct error *err);
/** Where the two meet: o->peer, or as the link has it. */
void remote_address(const struct bench_options *o, char *where, size_t size);

/* link_memif.c */
extern const char *const link_memif_keys[];
int link_memif_check(const struct bench_options *o, struct error *err);
int link_memif_create(const struct bench_options *o, enum bench_role role,
	char device[ROLES][256], struct error *err);
bool link_memif_zero_copy(const struct bench_options *o);
void link_memif_address(const struct bench_options *o, char *where, size_t size);

#endif
