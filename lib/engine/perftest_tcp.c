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
 * The sockets belong to the event loop of the exchange's thread (perftest_thread.c), on which the
 * functions run that do not say otherwise. While a session waits for the control thread's answer,
 * its socket is not read; if the answer does not come within PERFTEST_ANSWER_S, the session ends. A
 * timer of this event loop watches that, because the other deadlines depend on the control thread.
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

#include "engine/perftest.h"

#define SESSIONS_PER_PEER 16
#define ANNOUNCE_S        10 /* time for all that comes before the client's first queue pair */
#define QUIET_S           60 /* then without a message, or a packet to its queue pairs */
/* TCP keep-alive: a vanished client is noticed within a minute */
#define KEEP_IDLE_S  30
#define KEEP_EVERY_S 10
#define KEEP_COUNT   3

#define CANNOT_ANSWER "has ended: it sent what cannot be answered"

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
perftest_log(struct perftest_sockets *t, const char *peer, const char *what)
{
	char text[192];

	snprintf(text, sizeof(text), "perftest: the TCP connection from %s %s", peer, what);
	log_line(&t->log, t->engine->hz, RTE_LOG_INFO, text);
}

/* --- a client --- */

/* @param why  for the log */
static void
end_session(struct perftest_session *s, const char *why)
{
	perftest_log(s->engine->perftest, s->client, why);
	event_free(s->late);
	perftest_tcp_close(s->event);
	s->used = false;
	if (s->question != PERFTEST_ASK_NOTHING)
		__atomic_store_n(&s->abandoned, 1, __ATOMIC_RELAXED);
	else if (s->num_qps > 0)
		perftest_ask(s, PERFTEST_ASK_CLOSE);
}

/* Its place stays taken until the control thread has answered. */
static void
perftest_tcp_late(evutil_socket_t fd, short events, void *session)
{
	(void)fd;
	(void)events;
	end_session(session, "has ended: the answer to it takes too long");
}

/* Ask the control thread; until its answer, the socket is not read. */
static void
ask_for_session(struct perftest_session *s, enum perftest_question question)
{
	event_del(s->event);
	event_add(s->late, &s->engine->perftest->patience);
	perftest_ask(s, question);
}

/* Callback perftest_exchange.dest. The second call for a message gets the answer to the first. */
static int
perftest_tcp_dest(void *session, const struct perftest_dest *theirs, struct perftest_dest *ours)
{
	struct perftest_session *s = session;

	if (!s->answered) {
		s->theirs = *theirs;
		ask_for_session(s, PERFTEST_ASK_QP);
		return -EAGAIN;
	}
	s->answered = false;
	*ours = s->ours;
	return s->granted ? 0 : -EPERM;
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

	if (n == 0)
		return NULL; /* the control thread was asked: the message stays */
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
 * Answer the messages that have come. @return why the session has ended, with success or not; NULL:
 * it goes on
 */
static const char *
perftest_tcp_talk(struct perftest_session *s, int fd)
{
	const char *why;
	int len;

	while ((len = perftest_frame(&s->exchange, s->in, s->len)) > 0) {
		why = perftest_tcp_answer(s, fd, (size_t)len);
		if (why != NULL || s->question != PERFTEST_ASK_NOTHING)
			return why;
	}
	if (len < 0)
		return CANNOT_ANSWER;
	return s->exchange.step == PERFTEST_DONE ? "has ended: the exchange is complete" : NULL;
}

/* Read and answer messages. @return as perftest_tcp_talk() */
static const char *
perftest_tcp_serve(struct perftest_session *s, int fd)
{
	ssize_t got = recv(fd, s->in + s->len, sizeof(s->in) - s->len, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (got <= 0)
		return got == 0 ? "has ended: closed by the client" : "has ended: it is broken";
	s->len += (size_t)got;
	return perftest_tcp_talk(s, fd);
}

static void
perftest_tcp_run(evutil_socket_t fd, short events, void *session)
{
	const char *why = perftest_tcp_serve(session, fd);

	(void)events;
	if (why != NULL)
		end_session(session, why);
}

/* @return why the session has ended; NULL: it goes on */
static const char *
perftest_tcp_counted(struct perftest_session *s)
{
	if (s->counted == s->packets)
		return "has ended: nothing has come from it for a minute";
	s->packets = s->counted;
	s->heard = s->counting;
	return NULL;
}

void
perftest_tcp_answered(struct perftest_session *s)
{
	enum perftest_question question = s->question;
	const char *why = NULL;

	s->question = PERFTEST_ASK_NOTHING;
	if (!s->used) {
		if (s->num_qps > 0) /* opened after the socket was closed */
			perftest_ask(s, PERFTEST_ASK_CLOSE);
		return;
	}
	event_del(s->late);
	if (question == PERFTEST_ASK_QP) {
		s->answered = true;
		s->announced |= s->granted;
		why = perftest_tcp_talk(s, event_get_fd(s->event));
	} else {
		why = perftest_tcp_counted(s);
	}
	if (why == NULL && s->question == PERFTEST_ASK_NOTHING && event_add(s->event, NULL) != 0)
		why = "has ended: no memory to wait for it";
	if (why != NULL)
		end_session(s, why);
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

	for (s = t->session; s < t->session + PERFTEST_PLACES; s++)
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
	for (s = t->session; s < t->session + PERFTEST_PLACES; s++) {
		if (!s->used || (within != NULL && !same_client(&s->peer, within, true)))
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

	for (s = t->session; s < t->session + PERFTEST_PLACES; s++)
		if (s->used && !s->announced && (oldest == NULL || s->started < oldest->started))
			oldest = s;
	return oldest;
}

/*
 * Anti-exhaustion: all sessions are in use, so the oldest of the prefix that has most gives way,
 * busy or not, if that leaves it no fewer than the new client's prefix; else, within the new
 * client's prefix, that of the address that has most, in the same way; else one that has announced
 * nothing. @return false: everybody has a fair share
 */
static bool
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
	return s != NULL;
}

/* A place without a socket, and without queue pairs that the control thread has yet to close. */
static struct perftest_session *
free_session(struct perftest_sockets *t)
{
	struct perftest_session *s;

	for (s = t->session; s < t->session + PERFTEST_PLACES; s++)
		if (!s->used && s->question == PERFTEST_ASK_NOTHING)
			return s;
	return NULL;
}

/* @return NULL: all are in use, or this address has its share */
static struct perftest_session *
find_session(struct perftest_sockets *t, const union gid *peer)
{
	const struct perftest_session *s;
	unsigned int used = 0;

	if (perftest_sessions_of(t, peer, false) >= SESSIONS_PER_PEER)
		return NULL;
	for (s = t->session; s < t->session + PERFTEST_PLACES; s++)
		used += s->used;
	if (used >= PERFTEST_SESSIONS && !give_way(t, peer))
		return NULL;
	return free_session(t);
}

static bool
begin_session(struct perftest_listener *l, const union gid *peer, int fd, const char *client)
{
	struct perftest_sockets *t = l->sockets;
	struct perftest_session *s = find_session(t, peer);

	if (s == NULL)
		return false;
	s->late = evtimer_new(t->base, perftest_tcp_late, s);
	if (s->late == NULL)
		return false;
	s->event = perftest_tcp_add(t, fd, perftest_tcp_run, s);
	if (s->event == NULL) {
		event_free(s->late);
		return false;
	}
	set_options(fd);
	s->used = true;
	s->announced = s->answered = false;
	s->abandoned = 0;
	s->engine = t->engine;
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
		.mtu = (uint16_t)__atomic_load_n(&t->mtu, __ATOMIC_RELAXED),
		.dest = perftest_tcp_dest,
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
	perftest_log(l->sockets, client, what);
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
	for (n = 0; n < PERFTEST_BACKLOG &&
		(fd = accept4(listener, (struct sockaddr *)&from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;
		n++, len = sizeof(from))
		perftest_tcp_take(l, fd, &from);
}

void
perftest_tcp_watch(struct perftest_sockets *t, uint64_t now)
{
	struct perftest_session *s = t->session;

	for (; s < t->session + PERFTEST_PLACES; s++) {
		if (!s->used || s->question != PERFTEST_ASK_NOTHING)
			continue;
		if (s->announced && now >= s->heard + QUIET_S * t->engine->hz) {
			s->counting = now;
			ask_for_session(s, PERFTEST_ASK_PACKETS);
		} else if (!s->announced && now > s->started &&
			now - s->started > ANNOUNCE_S * t->engine->hz) {
			end_session(s, "has ended: it announced no queue pair in time");
		}
	}
}

/* --- services --- */

int
perftest_tcp_open(struct perftest_sockets *t, void *arg)
{
	const struct perftest_place *a = arg;
	struct perftest_listener *l = &t->listener[a->place];

	l->allow = a->config->allow;
	l->any_gid = a->config->tcp_any_gid;
	l->event = perftest_tcp_add(t, a->fd, perftest_tcp_accept, l);
	return l->event != NULL ? 0 : -ENOMEM;
}

int
perftest_tcp_shut(struct perftest_sockets *t, void *arg)
{
	const struct perftest_place *a = arg;
	struct perftest_listener *l = &t->listener[a->place];
	struct perftest_session *s;

	if (l->event != NULL)
		perftest_tcp_close(l->event);
	l->event = NULL;
	for (s = t->session; a->sessions && s < t->session + PERFTEST_PLACES; s++)
		if (s->used && s->place == a->place)
			end_session(s, "has ended: the service has");
	return 0;
}
