/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

/**
 * @file
 * What two processes tell each other beside the link: JSON objects, one a line, over a Unix or TCP
 * socket. Where @p where is HOST:PORT it is TCP, else the path of a Unix socket.
 */

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/error.h"

struct exchange;

/** A file that a dead server left is replaced. @return a descriptor, or a negative errno */
int exchange_listen(const char *where, struct error *err);
/** Wait for a client; takes @p listener, and the file goes when one has come. */
struct exchange *exchange_accept(int listener, const char *where, struct error *err);
/**
 * A TCP socket alone, to what @p option names: HOST:PORT, or HOST and @p port unless that is 0.
 * @return a descriptor, or a negative errno
 */
int exchange_dial_tcp(const char *option, const char *where, uint16_t port, struct error *err);
struct exchange *exchange_connect(const char *where, struct error *err);
void exchange_destroy(struct exchange *x);

/** Takes @p message. */
int exchange_send(struct exchange *x, json_t *message, struct error *err);
/**
 * A message, if one is there. @return 1: *message is the caller's; 0: not yet; negative: the other
 * side is gone
 */
int exchange_poll(struct exchange *x, json_t **message, struct error *err);
/** Wait for one of this type (member "type"); an "error" is told as such. */
json_t *exchange_wait(struct exchange *x, const char *type, unsigned int ms, struct error *err);

#endif
