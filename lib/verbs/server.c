/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_debug.h>

#include "verbs/private.h"

#define ACCEPTS_A_TURN 16
#define REFRESH_S      1
/* VERBS_PASSED_MAX come with a request, or are open while its memory is looked for */
#define CLIENT_FDS   (VERBS_CLIENT_FDS + VERBS_PASSED_MAX)
#define RESERVED_FDS 1024 /* of all else: three of them for each worker that has had a client */

const struct verbs_config verbs_config_default = {
	.max_clients = 64,
	.max_user_clients = 64,
	.mr_mb = 4096,
	.user_mr_mb = 1 << 18,
	.ring_mb = 256,
	.cm = {
		.max_channels = 256,
		.max_ids = 1024,
	},
	.limits = {
		.max_qp = 1024,
		.max_cq = 256,
		.max_srq = 16,
		.max_pd = 64,
		.max_mr = 4096,
		.max_mw = 4096,
		.max_channels = 64,
		.max_wr = 1 << 22,
		.user = {
			.max_qp = 1 << 16,
			.max_cq = 1 << 14,
			.max_srq = 1 << 10,
			.max_pd = 1 << 12,
			.max_mr = 1 << 18,
			.max_mw = 1 << 18,
			.max_wr = 1 << 28,
		},
	},
};

/*
 * The kernel has compared group and mode. A client beyond a limit gets the answer to its first
 * request before that has come: it says why the program cannot open the device.
 */
static void
verbs_admit(struct verbs_server *s, int fd)
{
	struct ring_reply reply = { .error = ENOMEM };
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	struct error err = { "" };

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
		!peer_allowed(&s->listener, fd)) {
		verbs_hang_up(s, fd, peer.uid);
		return;
	}
	if (!verbs_has_room(s, fd, peer.uid, false, &err)) {
		snprintf(reply.text, sizeof(reply.text), "%.*s", (int)sizeof(reply.text) - 1,
			err.text);
		send(fd, &reply, offsetof(struct ring_reply, text) + sizeof(reply.text),
			MSG_NOSIGNAL | MSG_DONTWAIT);
		verbs_hang_up(s, fd, peer.uid);
		return;
	}
	verbs_session_create(s, fd, &peer);
}

static void
verbs_accept(evutil_socket_t listener, short events, void *server)
{
	struct verbs_server *s = server;
	unsigned int i;
	int fd;

	(void)listener;
	(void)events;
	verbs_closing_reap(s);
	for (i = 0; i < ACCEPTS_A_TURN; i++) {
		if (s->num_closing >= VERBS_CLOSING_MAX) {
			if (!s->full)
				VERBS_LOG(WARNING,
					"%u descriptors of programs do not close: no new connections",
					s->num_closing);
			s->full = true;
			event_del(s->event); /* until verbs_refresh() */
			return;
		}
		s->full = false;
		fd = listener_accept(&s->listener);
		if (fd < 0)
			return;
		verbs_admit(s, fd);
	}
}

static void
verbs_refresh(evutil_socket_t fd, short events, void *server)
{
	struct verbs_server *s = server;

	(void)fd;
	(void)events;
	verbs_tree_follow(s);
	verbs_closing_look(s);
	event_add(s->event, NULL);
}

static int
verbs_listen(struct verbs_server *s, gid_t group, mode_t mode, struct error *err)
{
	const struct timeval second = { REFRESH_S, 0 };
	struct event_base *base = engine_event_base(s->engine);
	int rc = listener_open(&s->listener, "verbs.socket", s->config.socket, SOCK_SEQPACKET, err);

	if (rc == 0)
		rc = listener_admit(&s->listener, group, mode, err);
	if (rc != 0)
		return rc;
	s->event = event_new(base, s->listener.fd, EV_READ | EV_PERSIST, verbs_accept, s);
	s->refresh = event_new(base, -1, EV_PERSIST, verbs_refresh, s);
	if (s->event == NULL || s->refresh == NULL || event_add(s->event, NULL) != 0 ||
		event_add(s->refresh, &second) != 0)
		return error_set(err, ENOMEM, "verbs.socket: out of memory");
	return 0;
}

/*
 * Clients within their limits must not take the descriptors of others, nor of the control socket:
 * the process may have as many as they all may need, as far as its hard limit goes.
 */
static void
verbs_raise_descriptors(const struct verbs_config *config)
{
	rlim_t want = RESERVED_FDS + VERBS_CLOSING_MAX +
		(rlim_t)config->max_clients *
			(config->limits.max_channels + CLIENT_FDS + 2 * config->cm.max_channels);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
		return;
	limit.rlim_cur = want < limit.rlim_max ? want : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct verbs_server *
verbs_create(struct engine *e, const struct verbs_config *config, gid_t group, mode_t mode,
	struct error *err)
{
	struct verbs_server *s = calloc(1, sizeof(*s));

	RTE_ASSERT(config->max_clients > 0 && config->max_user_clients > 0);
	if (s == NULL) {
		error_set(err, ENOMEM, "verbs.socket: out of memory");
		return NULL;
	}
	LIST_INIT(&s->sessions);
	LIST_INIT(&s->closing);
	s->engine = e;
	s->config = *config;
	s->config.limits.max_mr_bytes = (uint64_t)config->mr_mb << 20;
	s->config.limits.user.max_mr_bytes = (uint64_t)config->user_mr_mb << 20;
	s->config.limits.ring_bytes = (uint64_t)config->ring_mb << 20;
	s->listener.fd = -1;
	verbs_raise_descriptors(config);
	if (verbs_listen(s, group, mode, err) == 0 && verbs_tree_create(s, err) == 0)
		return s;
	verbs_destroy(s);
	return NULL;
}

void
verbs_destroy(struct verbs_server *s)
{
	struct verbs_session *session;

	if (s == NULL)
		return;
	while ((session = LIST_FIRST(&s->sessions)) != NULL)
		verbs_session_destroy(session);
	if (s->event != NULL)
		event_free(s->event);
	if (s->refresh != NULL)
		event_free(s->refresh);
	if (s->listener.fd >= 0)
		verbs_tree_remove(s->config.socket);
	verbs_closing_forget(s);
	listener_close(&s->listener);
	free(s);
}
