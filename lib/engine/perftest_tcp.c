/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The sockets of perftest's exchange. A client sends a message and waits for the answer. A session
 * ends if its client sends more than one message ahead, does not read an answer, or has not
 * announced a queue pair within ANNOUNCE_S, or has been quiet for QUIET_S then. One address has
 * SESSIONS_PER_PEER of the sessions. When all are in use, those of the prefix, then of the address,
 * that has most give way.
 *
 * The sockets belong to the control thread's event loop. They never block, and each of its turns
 * takes a bounded number of connections and one message of each client, so that clients of the
 * control socket wait no longer because of them.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <rte_cycles.h>

#include "engine/connections.h"
#include "engine/perftest.h"

#define SESSIONS_MAX      64
#define SESSIONS_PER_PEER 16
#define ANNOUNCE_S        10 /* time for all that comes before the client's first queue pair */
#define QUIET_S           60 /* then without a message, or a packet to its queue pairs */
#define BACKLOG           16
/* TCP keep-alive: a vanished client is noticed within a minute */
#define KEEP_IDLE_S  30
#define KEEP_EVERY_S 10
#define KEEP_COUNT   3

#define CANNOT_ANSWER "has ended: it sent what cannot be answered"

struct perftest_sockets {
	struct event_base *base; /* the event loop of the control thread */
	struct perftest_listener {
		struct engine *engine;
		struct allow_list allow;
		bool any_gid;
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

/* --- the log --- */

/* Print a client's address as "10.0.0.2:7471" or "[fd77::2]:7471". */
static void
print_client(const struct sockaddr_storage *from, char *text, size_t size)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	char address[INET6_ADDRSTRLEN] = "?";

	if (from->ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		inet_ntop(AF_INET6, &in6->sin6_addr, address, sizeof(address));
		snprintf(text, size, "[%s]:%u", address, ntohs(in6->sin6_port));
		return;
	}
	inet_ntop(AF_INET,
		from->ss_family == AF_INET6 ? (const void *)(in6->sin6_addr.s6_addr + 12)
					    : (const void *)&in->sin_addr,
		address, sizeof(address));
	snprintf(text, size, "%s:%u", address, ntohs(in->sin_port));
}

static void
perftest_log(struct engine *e, const char *peer, const char *what)
{
	char text[192];

	snprintf(text, sizeof(text), "perftest: the TCP connection from %s %s", peer, what);
	events_log_line(e, RTE_LOG_INFO, text);
}

/* --- a client --- */

/* @param why  for the log */
static void
end_session(struct perftest_session *s, const char *why)
{
	perftest_log(s->engine, s->client, why);
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
 * read. @return why the session has ended; NULL: it goes on
 */
static const char *
perftest_tcp_answer(struct perftest_session *s, int fd, size_t len)
{
	uint8_t out[PERFTEST_MESSAGE_MAX];
	int n = perftest_answer(&s->exchange, s->in, len, out);

	if (n < 0)
		return CANNOT_ANSWER;
	if (send(fd, out, (size_t)n, MSG_NOSIGNAL) != n)
		return "has ended: it does not read answers";
	s->heard = rte_get_tsc_cycles();
	s->len -= len;
	memmove(s->in, s->in + len, s->len);
	return NULL;
}

/*
 * Read and answer messages. @return why the session has ended, with success or not; NULL: it goes
 * on
 */
static const char *
perftest_tcp_serve(struct perftest_session *s, int fd)
{
	ssize_t got = recv(fd, s->in + s->len, sizeof(s->in) - s->len, 0);
	const char *why;
	int len;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (got <= 0)
		return got == 0 ? "has ended: closed by the client" : "has ended: it is broken";
	s->len += (size_t)got;
	while ((len = perftest_frame(&s->exchange, s->in, s->len)) > 0)
		if ((why = perftest_tcp_answer(s, fd, (size_t)len)) != NULL)
			return why;
	if (len < 0)
		return CANNOT_ANSWER;
	return s->exchange.step == PERFTEST_DONE ? "has ended: the exchange is complete" : NULL;
}

static void
perftest_tcp_run(evutil_socket_t fd, short events, void *session)
{
	const char *why = perftest_tcp_serve(session, fd);

	(void)events;
	if (why != NULL)
		end_session(session, why);
}

/* True if both are one address, or with @p prefix of one /24 or /64. */
static bool
same_client(const union gid *a, const union gid *b, bool prefix)
{
	const union gid of_a = gid_prefix(a), of_b = gid_prefix(b);

	return prefix ? gid_equal(&of_a, &of_b) : gid_equal(a, b);
}

/* @return number of sessions of this address, or with @p prefix of its prefix */
static unsigned int
perftest_sessions_of(const struct perftest_sockets *t, const union gid *peer, bool prefix)
{
	const struct perftest_session *s;
	unsigned int n = 0;

	for (s = t->session; s < t->session + SESSIONS_MAX; s++)
		n += s->used && same_client(&s->peer, peer, prefix);
	return n;
}

/*
 * The oldest session of the prefix that has most, or, in prefix @p within, of the address that has
 * most. All sessions are in use.
 */
static struct perftest_session *
oldest_of_most(struct perftest_sockets *t, const union gid *within, unsigned int *most)
{
	struct perftest_session *s, *oldest = NULL;
	unsigned int n;

	*most = 0;
	for (s = t->session; s < t->session + SESSIONS_MAX; s++) {
		if (within != NULL && !same_client(&s->peer, within, true))
			continue;
		n = perftest_sessions_of(t, &s->peer, within == NULL);
		if (n > *most || (n == *most && s->started < oldest->started)) {
			*most = n;
			oldest = s;
		}
	}
	return oldest;
}

/* @return NULL: all sessions have queue pairs */
static struct perftest_session *
oldest_silent(struct perftest_sockets *t)
{
	struct perftest_session *s, *oldest = NULL;

	for (s = t->session; s < t->session + SESSIONS_MAX; s++)
		if (s->num_qps == 0 && (oldest == NULL || s->started < oldest->started))
			oldest = s;
	return oldest;
}

/*
 * Anti-exhaustion: all sessions are in use, so the oldest of the prefix that has most gives way,
 * busy or not, if that leaves it no fewer than the new client's prefix; else, within the new
 * client's prefix, that of the address that has most, in the same way; else one that has announced
 * nothing. @return NULL: everybody has a fair share
 */
static struct perftest_session *
give_way(struct perftest_sockets *t, const union gid *peer)
{
	struct perftest_session *s;
	unsigned int most;

	s = oldest_of_most(t, NULL, &most);
	if (most > perftest_sessions_of(t, peer, true) + 1) {
		s = oldest_of_most(t, &s->peer, &most);
	} else {
		s = oldest_of_most(t, peer, &most);
		if (most <= perftest_sessions_of(t, peer, false) + 1)
			s = oldest_silent(t);
	}
	if (s != NULL)
		end_session(s, "has ended: others need its place");
	return s;
}

/* @return NULL: all are in use, or this address has its share */
static struct perftest_session *
find_session(struct perftest_sockets *t, const union gid *peer)
{
	struct perftest_session *s;

	if (perftest_sessions_of(t, peer, false) >= SESSIONS_PER_PEER)
		return NULL;
	for (s = t->session; s < t->session + SESSIONS_MAX; s++)
		if (!s->used)
			return s;
	return give_way(t, peer);
}

static bool
begin_session(struct perftest_listener *l, const union gid *peer, int fd, const char *client)
{
	struct engine *e = l->engine;
	struct perftest_sockets *t = e->perftest;
	struct perftest_session *s = find_session(t, peer);

	if (s == NULL)
		return false;
	s->event = perftest_tcp_add(t, fd, perftest_tcp_run, s);
	if (s->event == NULL)
		return false;
	set_options(fd);
	s->used = true;
	s->engine = e;
	s->place = (unsigned int)(l - t->listener);
	s->peer = *peer;
	s->any_gid = l->any_gid;
	snprintf(s->client, sizeof(s->client), "%s", client);
	s->started = s->heard = rte_get_tsc_cycles();
	s->packets = 0;
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

/* The client's address as a GID. */
static union gid
perftest_tcp_peer(const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;
	union gid peer;

	if (from->ss_family == AF_INET6) /* an IPv4 client's address is IPv4-mapped, as in a GID */
		memcpy(peer.raw, &in6->sin6_addr, sizeof(peer.raw));
	else
		peer = gid_from_ipv4((const uint8_t *)&in->sin_addr);
	return peer;
}

static void
perftest_tcp_take(struct perftest_listener *l, int fd, const struct sockaddr_storage *from)
{
	union gid peer = perftest_tcp_peer(from);
	const char *what = "is accepted";
	char client[64];

	print_client(from, client, sizeof(client));
	if (!allow_list_admits_address(&l->allow, &peer))
		what = "is refused: the service's allow list does not have its address";
	else if (!begin_session(l, &peer, fd, client))
		what = "is refused: there are as many as are possible, or as many from its address";
	else
		fd = -1; /* the session's */
	if (fd >= 0)
		close(fd);
	perftest_log(l->engine, client, what);
}

static void
perftest_tcp_accept(evutil_socket_t listener, short events, void *arg)
{
	struct perftest_listener *l = arg;
	struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(from);
	unsigned int n;
	int fd;

	(void)events;
	for (n = 0; n < BACKLOG &&
		(fd = accept4(listener, (struct sockaddr *)&from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
		n++, len = sizeof(from))
		perftest_tcp_take(l, fd, &from);
}

struct event_base *
engine_event_base(const struct engine *e)
{
	return e->perftest->base;
}

/* @return true: no message has come for QUIET_S, and no packet since this was asked last */
static bool
perftest_is_quiet(struct perftest_session *s, uint64_t now)
{
	uint64_t packets;

	if (now < s->heard + QUIET_S * s->engine->hz)
		return false;
	packets = perftest_packets(s);
	if (packets == s->packets)
		return true;
	s->packets = packets;
	s->heard = now;
	return false;
}

void
perftest_watch(struct engine *e, uint64_t now)
{
	struct perftest_session *s = e->perftest->session;

	for (; s < e->perftest->session + SESSIONS_MAX; s++) {
		if (!s->used)
			continue;
		if (s->num_qps > 0 && perftest_is_quiet(s, now))
			end_session(s, "has ended: nothing has come from it for a minute");
		else if (s->num_qps == 0 && now > s->started &&
			now - s->started > ANNOUNCE_S * e->hz)
			end_session(s, "has ended: it announced no queue pair in time");
	}
}

/* --- services --- */

/* A socket for IPv6 and IPv4; for IPv4 only, if the host has no IPv6 or the address is one. */
static int
open_listener(const char *address, uint16_t port)
{
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, yes = 1, no = 0;
	bool ipv4 = inet_pton(AF_INET, address, &any4.sin_addr) == 1;
	int fd = ipv4 ? -1 : socket(AF_INET6, type, 0), ret;

	if (!ipv4 && address[0] != '\0' && inet_pton(AF_INET6, address, &any6.sin6_addr) != 1) {
		if (fd >= 0)
			close(fd);
		return -EINVAL;
	}

	if (fd >= 0)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	else
		fd = socket(AF_INET, type, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	ret = ipv4 ? -1 : bind(fd, (struct sockaddr *)&any6, sizeof(any6));
	if (ipv4 || (ret != 0 && errno == EINVAL)) /* an IPv4 socket */
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
	fd = open_listener(config->tcp_address, config->tcp_port);
	if (fd == -EINVAL)
		return error_set(err, EINVAL,
			"tcp_address: got \"%s\", allowed: an IPv4 or IPv6 address of this host",
			config->tcp_address);
	if (fd < 0)
		return error_set(err, -fd, "tcp_port: cannot listen on %u: %s", config->tcp_port,
			strerror(-fd));
	t->listener[place].allow = config->allow;
	t->listener[place].any_gid = config->tcp_any_gid;
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
			end_session(s, "has ended: the service has");
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
