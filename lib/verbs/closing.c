/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Programs can make whoever closes their descriptors wait, so threads close these. A connection
 * has a few threads at most: it ends if it passes more before these are closed. One that has ended
 * counts as a client for each.
 *
 * A user has some more at most, and as many again for connections that end with messages, which may
 * hold descriptors: close() of a descriptor of FUSE waits for its file system and cannot be
 * interrupted, but it is not called for one that is in a message. Connections beyond that stay open
 * until one of the user's threads has ended. While these are too many, the user's threads are
 * interrupted: a socket whose owner lets it linger is closed at once. Whatever else in a message
 * keeps the kernel waiting without interruption may still fill the list of all (VERBS_CLOSING_MAX).
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/close_apart.h"
#include "verbs/private.h"

#define CLOSING_SESSION_MAX 8 /* threads: one is enough, unless closing takes longer than a reply */
#define CLOSING_USER_MAX    32 /* likewise, of all sessions, and as many for connections */
#define CLOSING_USER_WAIT   64 /* connections that wait for one */

/* Threads for connections, or for what was passed. @param session  NULL: of all */
static unsigned int
closing_threads(const struct verbs_server *s, uid_t uid, const struct verbs_session *session,
	bool connection)
{
	const struct verbs_closing *c;
	unsigned int n = 0;

	LIST_FOREACH(c, &s->closing, link)
		n += c->apart != NULL && c->connection == connection && c->uid == uid &&
			(session == NULL || c->session == session);
	return n;
}

static void
closing_insert(struct verbs_server *s, const struct verbs_closing *what)
{
	struct verbs_closing *c = malloc(sizeof(*c));

	if (c == NULL) {
		if (what->apart != NULL)
			apart_forget(what->apart);
		else
			close(what->fd);
		return;
	}
	*c = *what;
	LIST_INSERT_HEAD(&s->closing, c, link);
	s->num_closing++;
}

static void
closing_add(struct verbs_server *s, struct verbs_closing c, const int *fds, unsigned int num)
{
	c.fd = -1;
	c.apart = close_apart_begin(fds, num);
	if (c.apart != NULL)
		closing_insert(s, &c);
}

void
verbs_closing_keep(struct verbs_server *s, uid_t uid, struct apart *apart)
{
	if (!apart_ended(apart))
		closing_insert(s, &(struct verbs_closing){ .uid = uid, .apart = apart, .fd = -1 });
}

static void
closing_remove(struct verbs_server *s, struct verbs_closing *c)
{
	LIST_REMOVE(c, link);
	s->num_closing--;
	free(c);
}

/* One of the user's threads for connections has ended: another connection can be closed. */
static void
closing_next(struct verbs_server *s, uid_t uid)
{
	struct verbs_closing *c;

	LIST_FOREACH(c, &s->closing, link)
		if (c->apart == NULL && c->uid == uid)
			break;
	if (c == NULL)
		return;
	c->apart = close_apart_begin(&c->fd, 1);
	if (c->apart == NULL)
		closing_remove(s, c);
}

void
verbs_closing_reap(struct verbs_server *s)
{
	struct verbs_closing *c, *next;
	bool connection;
	uid_t uid;

	for (c = LIST_FIRST(&s->closing); c != NULL; c = next) {
		next = LIST_NEXT(c, link);
		if (c->apart == NULL || !apart_ended(c->apart))
			continue;
		uid = c->uid;
		connection = c->connection;
		closing_remove(s, c);
		if (connection)
			closing_next(s, uid);
		next = LIST_FIRST(&s->closing); /* the list may have lost others */
	}
}

static unsigned int
closing_waits(const struct verbs_server *s, uid_t uid)
{
	const struct verbs_closing *c;
	unsigned int n = 0;

	LIST_FOREACH(c, &s->closing, link)
		n += c->apart == NULL && c->uid == uid;
	return n;
}

/*
 * Interrupt the threads of users too many of whose connections wait. A thread may begin to wait
 * just after: this is called for each connection that waits, and each second.
 */
static void
closing_hurry(const struct verbs_server *s)
{
	const struct verbs_closing *c;

	LIST_FOREACH(c, &s->closing, link)
		if (c->apart != NULL && closing_waits(s, c->uid) > CLOSING_USER_WAIT)
			apart_hurry(c->apart);
}

void
verbs_closing_look(struct verbs_server *s)
{
	verbs_closing_reap(s);
	closing_hurry(s);
}

void
verbs_closing_forget(struct verbs_server *s)
{
	struct verbs_closing *c;

	while ((c = LIST_FIRST(&s->closing)) != NULL) {
		if (c->apart != NULL) /* else the end of the process closes it */
			apart_forget(c->apart);
		closing_remove(s, c);
	}
}

void
verbs_close_passed(struct verbs_session *session)
{
	unsigned int i, num = 0;

	for (i = 0; i < session->num_passed; i++) {
		if (fd_in_memory(session->passed[i]))
			close(session->passed[i]); /* waits for nobody */
		else
			session->passed[num++] = session->passed[i];
	}
	session->num_passed = 0;
	if (num > 0)
		closing_add(session->server,
			(struct verbs_closing){ .session = session, .uid = session->uid },
			session->passed, num);
}

bool
verbs_may_pass(struct verbs_session *session)
{
	struct verbs_server *s = session->server;

	verbs_closing_reap(s);
	return closing_threads(s, session->uid, session, false) < CLOSING_SESSION_MAX &&
		closing_threads(s, session->uid, NULL, false) < CLOSING_USER_MAX;
}

void
verbs_disown(const struct verbs_session *session)
{
	struct verbs_closing *c;

	LIST_FOREACH(c, &session->server->closing, link)
		if (c->session == session)
			c->session = NULL;
}

/*
 * What waits in the socket may have descriptors, which whoever closes the socket closes, too. Of an
 * empty message only the credentials that come with it tell: there is no room for them.
 */
static bool
holds_messages(int fd)
{
	struct msghdr m = { .msg_iov = NULL };
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	return recvmsg(fd, &m, MSG_PEEK | MSG_DONTWAIT) >= 0 && (m.msg_flags & MSG_CTRUNC) != 0;
}

void
verbs_hang_up(struct verbs_server *s, int fd, uid_t uid)
{
	const struct verbs_closing connection = { .uid = uid, .connection = true, .fd = fd };

	shutdown(fd, SHUT_RDWR); /* no more messages come */
	if (!holds_messages(fd)) {
		close(fd);
	} else if (closing_threads(s, uid, NULL, true) < CLOSING_USER_MAX) {
		closing_add(s, connection, &fd, 1);
	} else {
		closing_insert(s, &connection);
		closing_hurry(s);
	}
}
