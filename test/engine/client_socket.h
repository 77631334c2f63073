/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef TEST_ENGINE_CLIENT_SOCKET_H
#define TEST_ENGINE_CLIENT_SOCKET_H

/*
 * Programs on a verbs socket whose server is the test's: it runs only while a program waits for a
 * reply. Requests can be anything.
 */

#include "../passing.h"
#include "verbs/private.h"

#define REQUEST_EMPTY      offsetof(struct ring_request, hello)
#define REQUEST_WITH(body) (REQUEST_EMPTY + sizeof(((struct ring_request *)0)->body))

extern struct verbs_server program_server;
extern const struct ring_request program_hello; /* with all features; for port 0 */

/* An engine that runs no worker thread; limits are those of client_node.h. */
void program_server_start(struct engine *e);
/* No program is connected any more. */
void program_server_stop(void);
/* Connect as a program of this process' user, or of another. @return the program's end */
int program_dial(void);
int program_dial_as(uid_t uid);
/* Let the server do what it can without waiting. */
void program_server_run(void);
/* True if no program is connected. */
bool program_server_is_free(void);

void program_say(int fd, const void *request, size_t size, const int *fds, unsigned int num_fds);
/* @param fds  PASSING_MAX. @return .error of the reply; -1: there is none, or the end */
int program_hear(int fd, struct ring_reply *reply, int *fds, unsigned int *num_fds);
/* Both, without descriptors. */
int program_ask(int fd, const void *request, size_t size, struct ring_reply *reply);
/* HELLO, with a mirror unless that is -1. @return the program's mirror */
int program_greet(int fd, int mirror);
int program_greet_with(int fd, const struct ring_request *hello, int mirror);

#endif
