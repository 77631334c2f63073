/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef POLCA_CTL_CONNECTION_H
#define POLCA_CTL_CONNECTION_H

/**
 * @file
 * A connection to the control socket.
 */

#include <signal.h>
#include <stddef.h>

#include <jansson.h>

/** The control socket of the system's service. */
#define CONNECTION_SERVICE "/run/polca/polca.sock"

struct connection;

/**
 * The default path of the control socket: $POLCA_SOCKET, or the default of this user. @return buf
 */
const char *connection_default_path(char *buf, size_t size);

/** @return NULL: errno is set */
struct connection *connection_open(const char *path);
void connection_close(struct connection *c);
/** Make a waiting call return EINTR once a signal handler has set *stop. */
void connection_interruptible(struct connection *c, const volatile sig_atomic_t *stop);

/**
 * Send descriptor @p fd with the next request. Takes it over: it is closed once it is sent, or with
 * the connection.
 */
void connection_attach(struct connection *c, int fd);
/** The first half of connection_call(). @return 0, or -1: errno is set */
int connection_send(struct connection *c, const char *method, json_t *params);
/** The second half of connection_call(). @return as connection_call() */
int connection_receive(struct connection *c, unsigned int timeout_ms, json_t **result,
	json_t **error);
/** The socket, to wait for a reply with poll(). */
int connection_fd(const struct connection *c);

/**
 * Call a method and wait for its reply.
 *
 * @param params      may be NULL; not taken over
 * @param timeout_ms  0: ten seconds
 * @return 0: *result is set; 1: the server returned an error, *error is set; -1: no reply, errno is
 * set
 */
int connection_call(struct connection *c, const char *method, json_t *params,
	unsigned int timeout_ms, json_t **result, json_t **error);

#endif
