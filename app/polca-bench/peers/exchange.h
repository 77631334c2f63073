/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

/**
 * @file
 * Messages between two processes: one JSON object per line, over TCP if @p where is HOST:PORT, else
 * over the Unix socket at that path.
 */

#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

struct exchange;

/**
 * Listen; a socket file left by a dead server is replaced. @return a descriptor, or a negative
 * errno
 */
int exchange_listen(const char *where, struct error *err);
/** Wait for a client. Takes over @p listener, and removes the socket file. */
struct exchange *exchange_accept(int listener, const char *where, struct error *err);
/**
 * Open a TCP socket to the address in @p option: HOST:PORT, or HOST and @p port unless that is 0.
 *
 * @return a descriptor, or a negative errno
 */
int exchange_dial_tcp(const char *option, const char *where, uint16_t port, struct error *err);
struct exchange *exchange_connect(const char *where, struct error *err);
void exchange_destroy(struct exchange *x);

/** Takes over @p message. */
int exchange_send(struct exchange *x, json_t *message, struct error *err);
/**
 * Receive a message if one has arrived.
 *
 * @return 1: the caller owns *message; 0: none yet; negative: the other process is gone
 */
int exchange_poll(struct exchange *x, json_t **message, struct error *err);
/**
 * Wait for a message of this type (member "type"). The text of an "error" message is returned in
 * err.
 */
json_t *exchange_wait(struct exchange *x, const char *type, unsigned int ms, struct error *err);

#endif
