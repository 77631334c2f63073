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

struct connection;

/**
 * Where the server listens when nobody says: $POLCA_SOCKET, or the default of this user. @return
 * buf
 */
const char *connection_default_path(char *buf, size_t size);

/** @return NULL: errno says why */
struct connection *connection_open(const char *path);
void connection_close(struct connection *c);
/** A signal whose handler sets *stop ends a call that waits: errno is EINTR. */
void connection_interruptible(struct connection *c, const volatile sig_atomic_t *stop);

/** The two halves of connection_call(). @return 0, or -1: errno says why */
int connection_send(struct connection *c, const char *method, json_t *params);
/** @return as connection_call() */
int connection_receive(struct connection *c, unsigned int timeout_ms, json_t **result,
	json_t **error);
/** To wait for a reply with poll(). */
int connection_fd(const struct connection *c);

/**
 * @param params      may be NULL; not taken over
 * @param timeout_ms  0: ten seconds
 * @return 0: *result is set; 1: the server said no, *error is set; -1: no reply, errno says why
 */
int connection_call(struct connection *c, const char *method, json_t *params,
	unsigned int timeout_ms, json_t **result, json_t **error);

#endif
