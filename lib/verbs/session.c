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

#define VERBS_LOG(level, fmt, ...)                                                                 \
	rte_log(RTE_LOG_##level, verbs_logtype, "verbs: " fmt "\n", ##__VA_ARGS__)

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

/*
 * Read one message, and one descriptor at most: the kernel closes others, as there is no room for
 * them. @return bytes; 0: the end; -EAGAIN
 */
static ssize_t
session_read(struct verbs_session *session, struct ring_request *req)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { req, sizeof(*req) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_LEN(sizeof(int)),
	};
	struct cmsghdr *h;
	ssize_t n;

	n = recvmsg(session->fd, &m, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
	h = CMSG_FIRSTHDR(&m);
	if (h != NULL && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
		h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&session->passed_fd, CMSG_DATA(h), sizeof(int));
	return n;
}

static void
session_close_passed(struct verbs_session *session)
{
	if (session->passed_fd >= 0)
		close(session->passed_fd);
	session->passed_fd = -1;
}

static void
session_readable(evutil_socket_t fd, short events, void *arg)
{
	struct verbs_session *session = arg;
	struct verbs_answer answer;
	struct ring_request req;
	unsigned int i;
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
	RTE_ASSERT(answer.size > 0 && answer.size <= sizeof(answer.reply));
	RTE_ASSERT(answer.num_fds <= VERBS_FDS_MAX && answer.close_fds <= answer.num_fds);
	if (!session_reply(session, &answer))
		keep = false;
	for (i = 0; i < answer.close_fds; i++)
		close(answer.fds[i]);
	session_close_passed(session);
	if (!keep)
		verbs_session_destroy(session);
}

void
verbs_session_create(struct verbs_server *s, int fd, const struct ucred *peer)
{
	struct verbs_session *session = calloc(1, sizeof(*session));

	if (session == NULL) {
		close(fd);
		return;
	}
	session->server = s;
	session->fd = fd;
	session->passed_fd = -1;
	session->uid = peer->uid;
	session->pid = peer->pid;
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
	if (session->client != NULL) {
		VERBS_LOG(DEBUG, "process %d has closed its device", (int)session->pid);
		engine_client_destroy(session->client);
	}
	if (session->cm != NULL)
		engine_rdmacm_close(session->cm);
	if (session->event != NULL)
		event_free(session->event);
	session_close_passed(session);
	close(session->fd);
	free(session);
}
