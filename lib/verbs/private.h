/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

/** @file Private to lib/verbs. */

#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <event2/event.h>
#include <rte_log.h>

#include "ctl/limit_lines.h"
#include "ctl/listener.h"
#include "verbs/verbs.h"

/*
 * What polca keeps open for a program that has opened a device, beside its channels: the socket,
 * its directory in /proc, the segment, the mirror, 3 ends of the event pipe, 2 of the wake pipe
 */
#define VERBS_CLIENT_FDS  9
#define VERBS_PASSED_MAX  253 /* the kernel's most in a message: it closes what has no room */
#define VERBS_CLOSING_MAX 1024

struct apart;
struct verbs_range;

/** Work of another thread, as closing descriptors, or a connection that waits for one. */
struct verbs_closing {
	LIST_ENTRY(verbs_closing) link;
	struct apart *apart; /* the thread; NULL: the user has too many, .fd stays open */
	const struct verbs_session *session; /* has passed them; NULL: has ended */
	uid_t uid;
	bool connection; /* one with messages, not what a session has passed */
	int fd;
};

/** One connection: a program that has opened a device. */
struct verbs_session {
	LIST_ENTRY(verbs_session) link;
	struct verbs_server *server;
	struct event *event;
	struct verbs_client *client; /* NULL: no HELLO yet, or .cm */
	struct rdmacm_program *cm; /* not NULL: opened for librdmacm */
	int fd;
	int passed[VERBS_PASSED_MAX]; /* came with the request that is served */
	unsigned int num_passed;
	uid_t uid;
	pid_t pid; /* of who has connected */
	pid_t sender; /* of the request that is served; 0: the kernel does not say */
	uint64_t features; /* that both sides know; 0 before HELLO */
	int process; /* its directory in /proc, opened at HELLO; -1: none */
	struct verbs_range *range; /* not NULL: a request waits for it */
	void (*answer_later)(struct verbs_session *session); /* it has ended, or is late */
};

struct verbs_server {
	struct engine *engine;
	struct verbs_config config;
	struct listener listener;
	struct event *event;
	struct event *refresh; /* a timer: the tree follows the ports */
	LIST_HEAD(, verbs_session) sessions;
	LIST_HEAD(, verbs_closing) closing;
	unsigned int num_closing; /* at VERBS_CLOSING_MAX no connection is accepted */
	bool full; /* so it was, and is logged */
	struct limit_lines limit_lines;
	const struct port_attr *written[LINK_PORTS_MAX]; /* what the tree shows */
};

/* admit.c */
/**
 * True if there is room for one more of a user's devices, or (@p cm) of its programs that use
 * librdmacm; if not, @p err says why, and it is logged. @param fd  of the client
 */
bool verbs_has_room(struct verbs_server *s, int fd, uid_t uid, bool cm, struct error *err);

/* closing.c */
/** Close what came with the last request, without waiting. */
void verbs_close_passed(struct verbs_session *session);
/** False if too much of what the session, or its user, has passed is not closed yet. */
bool verbs_may_pass(struct verbs_session *session);
/** The session ends: what is being closed counts as clients. */
void verbs_disown(const struct verbs_session *session);
/** A thread for a user's program counts as a client while it goes on, unless it has ended. */
void verbs_closing_keep(struct verbs_server *s, uid_t uid, struct apart *apart);
/** Close a connection of a user, without waiting. */
void verbs_hang_up(struct verbs_server *s, int fd, uid_t uid);
/** Free what has ended. */
void verbs_closing_reap(struct verbs_server *s);
/** Each second: that, and hurry the threads of users of whom too many connections wait for one. */
void verbs_closing_look(struct verbs_server *s);
/** The end of the server. */
void verbs_closing_forget(struct verbs_server *s);

/* log.c */
extern int verbs_logtype;
#define VERBS_LOG(level, fmt, ...)                                                                 \
	rte_log(RTE_LOG_##level, verbs_logtype, "verbs: " fmt "\n", ##__VA_ARGS__)
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
	size_t size; /* of the reply; 0: it comes later */
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
/** The answer to the request that waits for session->range. @return as verbs_request() */
bool verbs_request_finish(struct verbs_session *session, struct verbs_answer *answer);

/* range.c */
/** How long a request waits for a look at the program; tests wait for less. */
extern struct timeval verbs_range_deadline;
/** At HELLO: the program may name memory by its addresses later, if polca may look at it. */
void verbs_range_prepare(struct verbs_session *session);
/** Begin to open the file at the addresses of the sender. @return 0: session->range is there */
int verbs_range_begin(struct verbs_session *session, const struct ring_mr *mr, struct error *err);
/** The thread has ended, or is late: register what it has opened. */
int verbs_range_take(struct verbs_session *session, struct ring_mr_reply *reply, struct error *err);
/** Nobody waits for it any more. */
void verbs_range_end(struct verbs_session *session);

/* tree.c */
int verbs_tree_create(struct verbs_server *s, struct error *err);
/** Write again what has changed since the last call. */
void verbs_tree_follow(struct verbs_server *s);
void verbs_tree_remove(const char *socket);
uint64_t verbs_node_guid(const struct engine *e, unsigned int port);

#endif
