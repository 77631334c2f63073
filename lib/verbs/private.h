/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

/** @file Private to lib/verbs. */

#include <sys/queue.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "ctl/limit_lines.h"
#include "ctl/listener.h"
#include "verbs/verbs.h"

/** One connection: a program that has opened a device. */
struct verbs_session {
	LIST_ENTRY(verbs_session) link;
	struct verbs_server *server;
	struct event *event;
	struct verbs_client *client; /* NULL: no HELLO yet, or .cm */
	struct rdmacm_program *cm; /* not NULL: opened for librdmacm */
	int fd;
	int passed_fd; /* came with the request that is served; -1: none */
	uid_t uid;
	pid_t pid;
};

struct verbs_server {
	struct engine *engine;
	struct verbs_config config;
	struct listener listener;
	struct event *event;
	struct event *refresh; /* a timer: the tree follows the ports */
	LIST_HEAD(, verbs_session) sessions;
	struct limit_lines limit_lines;
	const struct port_attr *written[LINK_PORTS_MAX]; /* what the tree shows */
};

/* server.c */
/**
 * True if there is room for one more of a user's devices, or (@p cm) of its programs that use
 * librdmacm; if not, @p err says why, and it is logged. @param fd  of the client
 */
bool verbs_has_room(struct verbs_server *s, int fd, uid_t uid, bool cm, struct error *err);

/* log.c */
extern int verbs_logtype;
/** Log, and count, that a client ran into a limit. @param client  NULL: it is none yet */
void verbs_log_limit(struct verbs_server *s, struct verbs_client *client, int fd, const char *what,
	const char *text);

/* session.c */
/** Take over the descriptor; without memory it is closed. */
void verbs_session_create(struct verbs_server *s, int fd, const struct ucred *peer);
void verbs_session_destroy(struct verbs_session *session);

/* requests.c */
#define VERBS_FDS_MAX RING_HELLO_FDS
struct verbs_answer {
	struct ring_reply reply;
	size_t size; /* of the reply */
	int fds[VERBS_FDS_MAX];
	unsigned int num_fds;
	unsigned int close_fds; /* so many, from the first on, are closed once they are passed */
};
/**
 * Execute one request of @p size bytes.
 *
 * @return false: the client does not speak the protocol; it is to be closed after the answer
 */
bool verbs_request(struct verbs_session *session, const struct ring_request *req, size_t size,
	struct verbs_answer *answer);

/* tree.c */
int verbs_tree_create(struct verbs_server *s, struct error *err);
/** Write again what has changed since the last call. */
void verbs_tree_follow(struct verbs_server *s);
void verbs_tree_remove(const char *socket);
uint64_t verbs_node_guid(const struct engine *e, unsigned int port);

#endif
