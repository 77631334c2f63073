/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * A connection: requests in, replies out, one at a time. The socket keeps messages apart, so a
 * request is complete or wrong.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_debug.h>
#include <rte_log.h>

#include "verbs/private.h"

/* @return false: the client does not read, or is gone */
static bool
session_reply(const struct verbs_session *session, const struct verbs_answer *answer)
{
	char control[CMSG_SPACE(sizeof(int) * VERBS_FDS_MAX)] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)&answer->reply, answer->size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t bytes = sizeof(int) * answer->num_fds;
	struct cmsghdr *h;

	if (bytes > 0) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(bytes);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(h), answer->fds, bytes);
	}
	return sendmsg(session->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)answer->size;
}

#define SENDER_SPACE CMSG_SPACE(sizeof(struct ucred)) /* comes with each message */

/* True if descriptors come with the next message, which stays in the socket. */
static bool
session_passes(const struct verbs_session *session)
{
	char control[SENDER_SPACE];
	struct msghdr m = { .msg_control = control, .msg_controllen = sizeof(control) };

	return recvmsg(session->fd, &m, MSG_PEEK | MSG_DONTWAIT) >= 0 &&
		(m.msg_flags & MSG_CTRUNC) != 0;
}

static void
session_take_control(struct verbs_session *session, struct msghdr *m)
{
	struct cmsghdr *h;
	struct ucred sender;

	session->sender = 0;
	for (h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET)
			continue;
		if (h->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(h), sizeof(sender));
			session->sender = sender.pid;
		} else if (h->cmsg_type == SCM_RIGHTS) {
			session->num_passed =
				(unsigned int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(session->passed, CMSG_DATA(h), session->num_passed * sizeof(int));
		}
	}
}

/* Read one message. @return bytes; 0: the end; -EAGAIN */
static ssize_t
session_read(struct verbs_session *session, struct ring_request *req)
{
	char control[SENDER_SPACE + CMSG_SPACE(sizeof(int) * VERBS_PASSED_MAX)];
	struct iovec iov = { req, sizeof(*req) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	if (!verbs_may_pass(session) && session_passes(session)) {
		VERBS_LOG(WARNING, "process %d passes descriptors that do not close: disconnected",
			(int)session->pid);
		return 0;
	}
	n = recvmsg(session->fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
	session_take_control(session, &m);
	return n;
}

static void
session_answer(struct verbs_session *session, const struct verbs_answer *answer, bool keep)
{
	unsigned int i;

	RTE_ASSERT(answer->size > 0 && answer->size <= sizeof(answer->reply));
	RTE_ASSERT(answer->num_fds <= VERBS_FDS_MAX && answer->close_fds <= answer->num_fds);
	if (!session_reply(session, answer))
		keep = false;
	for (i = 0; i < answer->close_fds; i++)
		close(answer->fds[i]);
	if (!keep || event_add(session->event, NULL) != 0)
		verbs_session_destroy(session);
}

static void
session_answer_later(struct verbs_session *session)
{
	struct verbs_answer answer;
	bool keep;

	memset(&answer, 0, sizeof(answer));
	keep = verbs_request_finish(session, &answer);
	session_answer(session, &answer, keep);
}

static void
session_readable(evutil_socket_t fd, short events, void *arg)
{
	struct verbs_session *session = arg;
	struct verbs_answer answer;
	struct ring_request req;
	ssize_t size;
	bool keep;

	(void)fd;
	(void)events;
	memset(&req, 0, sizeof(req));
	size = session_read(session, &req);
	if (size == -EAGAIN)
		return;
	if (size == 0) {
		verbs_session_destroy(session);
		return;
	}
	memset(&answer, 0, sizeof(answer));
	keep = verbs_request(session, &req, (size_t)size, &answer);
	verbs_close_passed(session);
	if (answer.size == 0)
		event_del(session->event); /* until the answer */
	else
		session_answer(session, &answer, keep);
}

void
verbs_session_create(struct verbs_server *s, int fd, const struct ucred *peer)
{
	struct verbs_session *session = calloc(1, sizeof(*session));
	const int on = 1;

	if (session == NULL) {
		verbs_hang_up(s, fd, peer->uid);
		return;
	}
	session->server = s;
	session->fd = fd;
	session->uid = peer->uid;
	session->pid = peer->pid;
	session->process = -1;
	session->answer_later = session_answer_later;
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	session->event = event_new(engine_event_base(s->engine), fd, EV_READ | EV_PERSIST,
		session_readable, session);
	LIST_INSERT_HEAD(&s->sessions, session, link);
	if (session->event == NULL || event_add(session->event, NULL) != 0)
		verbs_session_destroy(session);
}

void
verbs_session_destroy(struct verbs_session *session)
{
	LIST_REMOVE(session, link);
	verbs_range_end(session);
	if (session->client != NULL) {
		VERBS_LOG(DEBUG, "process %d has closed its device", (int)session->pid);
		engine_client_destroy(session->client);
	}
	if (session->cm != NULL)
		engine_rdmacm_close(session->cm);
	if (session->event != NULL)
		event_free(session->event);
	if (session->process >= 0)
		close(session->process);
	verbs_close_passed(session);
	verbs_disown(session);
	verbs_hang_up(session->server, session->fd, session->uid);
	free(session);
}
