/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sockets of perftest's exchange. A client sends a message and waits for the answer. A session
 * ends if its client sends more than one message ahead, does not read an answer, or does not send
 * its version within GREETING_S.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_cycles.h>

#include "engine/connections.h"
#include "engine/perftest.h"

#define SESSIONS_MAX 64
#define GREETING_S   10 /* time for the client's version */
#define BACKLOG      16
/* TCP keep-alive: a vanished client is noticed within a minute */
#define KEEP_IDLE_S  30
#define KEEP_EVERY_S 10
#define KEEP_COUNT   3

struct perftest_sockets {
	struct event_base *base; /* the event loop of the control thread */
	struct perftest_listener {
		struct engine *engine;
		struct allow_list allow;
		struct event *event; /* NULL: none */
	} listener[ENGINE_SERVICE_PLACES]; /* by the service's place */
	struct perftest_session session[SESSIONS_MAX];
};

/* Call @p run whenever the socket is readable. @return NULL: no memory; the socket stays open */
static struct event *
perftest_tcp_add(struct perftest_sockets *t, int fd, event_callback_fn run, void *arg)
{
	struct event *event = event_new(t->base, fd, EV_READ | EV_PERSIST, run, arg);

	if (event != NULL && event_add(event, NULL) == 0)
		return event;
	if (event != NULL)
		event_free(event);
	return NULL;
}

static void
perftest_tcp_close(struct event *event)
{
	int fd = event_get_fd(event);

	event_free(event);
	close(fd);
}

/* --- a client --- */

static void
end_session(struct perftest_session *s)
{
	perftest_close_qps(s);
	perftest_tcp_close(s->event);
	s->used = false;
}

static void
set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
	};
	unsigned int i;

	for (i = 0; i < RTE_DIM(options); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

/*
 * Answers are short and sent one at a time: if the socket has no room for one, the client does not
 * read.
 */
static bool
perftest_tcp_answer(struct perftest_session *s, int fd, size_t len)
{
	uint8_t out[PERFTEST_MESSAGE_MAX];
	int n = perftest_answer(&s->exchange, s->in, len, out);

	if (n < 0 || send(fd, out, (size_t)n, MSG_NOSIGNAL) != n)
		return false;
	s->len -= len;
	memmove(s->in, s->in + len, s->len);
	return true;
}

/* Read and answer messages. @retval false  the session has ended, with success or not */
static bool
perftest_tcp_serve(struct perftest_session *s, int fd)
{
	ssize_t got = recv(fd, s->in + s->len, sizeof(s->in) - s->len, 0);
	int len;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	s->len += (size_t)got;
	while ((len = perftest_frame(&s->exchange, s->in, s->len)) > 0)
		if (!perftest_tcp_answer(s, fd, (size_t)len))
			return false;
	return len == 0 && s->exchange.step != PERFTEST_DONE;
}

static void
perftest_tcp_run(evutil_socket_t fd, short events, void *session)
{
	(void)events;
	if (!perftest_tcp_serve(session, fd))
		end_session(session);
}

static bool
begin_session(struct engine *e, unsigned int place, int fd)
{
	struct perftest_sockets *t = e->perftest;
	struct perftest_session *s = t->session;

	while (s < t->session + SESSIONS_MAX && s->used)
		s++;
	if (s == t->session + SESSIONS_MAX)
		return false;
	s->event = perftest_tcp_add(t, fd, perftest_tcp_run, s);
	if (s->event == NULL)
		return false;
	set_options(fd);
	s->used = true;
	s->engine = e;
	s->place = place;
	s->started = rte_get_tsc_cycles();
	s->len = 0;
	s->num_qps = 0;
	s->exchange = (struct perftest_exchange){
		.stream = true,
		.mtu = perftest_mtu(e),
		.dest = perftest_dest,
		.arg = s,
	};
	return true;
}

/* True if the service's allow list admits the client's address. */
static bool
perftest_tcp_admits(const struct allow_list *allow, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	union gid peer;

	if (from->ss_family == AF_INET6) /* an IPv4 client's address is IPv4-mapped, as in a GID */
		memcpy(peer.raw, &in6->sin6_addr, sizeof(peer.raw));
	else
		peer = gid_from_ipv4((const uint8_t *)&in->sin_addr);
	return allow_list_admits_address(allow, &peer);
}

static void
perftest_tcp_accept(evutil_socket_t listener, short events, void *arg)
{
	struct perftest_listener *l = arg;
	struct engine *e = l->engine;
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(from);
	int fd;

	(void)events;
	for (; (fd = accept4(listener, (struct sockaddr *)&from, &len,
			SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
		len = sizeof(from))
		if (!perftest_tcp_admits(&l->allow, &from) ||
			!begin_session(e, (unsigned int)(l - e->perftest->listener), fd))
			close(fd);
}

struct event_base *
engine_event_base(const struct engine *e)
{
	return e->perftest->base;
}

void
perftest_watch(struct engine *e, uint64_t now)
{
	struct perftest_session *s = e->perftest->session;

	for (; s < e->perftest->session + SESSIONS_MAX; s++)
		if (s->used && s->exchange.step == PERFTEST_VERSION_STEP && now > s->started &&
			now - s->started > GREETING_S * e->hz)
			end_session(s);
}

/* --- services --- */

/* A socket for IPv6 and IPv4; if the host has no IPv6, for IPv4 only. */
static int
open_listener(uint16_t port)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, yes = 1, no = 0;
	int fd = socket(AF_INET6, type, 0), ret;

	if (fd >= 0)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	else
		fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	ret = bind(fd, (struct sockaddr *)&any6, sizeof(any6));
	if (ret != 0 && errno == EINVAL) /* an IPv4 socket */
		ret = bind(fd, (struct sockaddr *)&any4, sizeof(any4));
	if (ret == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int
perftest_listen(struct engine *e, unsigned int place, const struct svc_config *config,
	struct error *err)
{
	struct perftest_sockets *t = e->perftest;
	int fd;

	if (config->tcp_port == 0)
		return 0;
	if (strcmp(config->kind, "perftest") != 0)
		return error_set(err, EINVAL, "tcp_port: %s does not use TCP", config->kind);
	fd = open_listener(config->tcp_port);
	if (fd < 0)
		return error_set(err, -fd, "tcp_port: cannot listen on %u: %s", config->tcp_port,
			strerror(-fd));
	t->listener[place].allow = config->allow;
	t->listener[place].event =
		perftest_tcp_add(t, fd, perftest_tcp_accept, &t->listener[place]);
	if (t->listener[place].event != NULL)
		return 0;
	close(fd);
	return error_set(err, ENOMEM, "tcp_port: no memory to wait for it");
}

void
perftest_unlisten(struct engine *e, unsigned int place, bool sessions)
{
	struct perftest_sockets *t = e->perftest;
	struct perftest_session *s;

	if (t == NULL)
		return;
	if (t->listener[place].event != NULL)
		perftest_tcp_close(t->listener[place].event);
	t->listener[place].event = NULL;
	for (s = t->session; sessions && s < t->session + SESSIONS_MAX; s++)
		if (s->used && s->place == place)
			end_session(s);
}

int
perftest_create(struct engine *e, struct error *err)
{
	unsigned int i;

	e->perftest = mem_zalloc(&allocator_malloc, sizeof(*e->perftest), 64);
	if (e->perftest == NULL)
		return error_set(err, ENOMEM, "no memory for the sockets of services");
	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		e->perftest->listener[i].engine = e;
	e->perftest->base = event_base_new();
	if (e->perftest->base == NULL)
		return error_set(err, ENOMEM, "no event loop: no memory or descriptor");
	return 0;
}

void
perftest_destroy(struct engine *e)
{
	unsigned int i;

	if (e->perftest == NULL)
		return;
	for (i = 0; i < ENGINE_SERVICE_PLACES; i++)
		perftest_unlisten(e, i, true);
	if (e->perftest->base != NULL)
		event_base_free(e->perftest->base);
	mem_free(&allocator_malloc, e->perftest);
	e->perftest = NULL;
}
