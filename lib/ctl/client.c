/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_debug.h>
#include <rte_log.h>

#include "base/close_apart.h"
#include "ctl/client.h"

#define READ_STEP    65536 /* bytes taken from a socket at a time */
#define CALLS_A_TURN 16 /* requests answered before the next client's turn */
#define PASSED_MAX   253 /* descriptors in a message */

static void
client_event(evutil_socket_t fd, short events, void *client)
{
	struct client *cl = client;

	(void)fd;
	cl->readable = (events & EV_READ) != 0;
}

/* Wait until the socket is readable, writable, either, or do not wait. */
static int
set_interest(struct client *cl, short interest)
{
	if (interest == cl->interest)
		return 0;
	cl->interest = interest;
	event_del(cl->event);
	event_assign(cl->event, cl->base, cl->fd, interest | EV_PERSIST, client_event, cl);
	return interest != 0 ? event_add(cl->event, NULL) : 0;
}

/* Close the descriptor that no call has asked for. */
static void
drop_passed_fd(struct client *cl)
{
	if (cl->passed_fd >= 0)
		close_passed(cl->passed_fd);
	cl->passed_fd = -1;
}

/* Descriptors may wait in the socket, which are closed with it. */
static void
close_connection(int fd)
{
	int unread = 0;

	shutdown(fd, SHUT_RDWR); /* nothing more comes */
	if (ioctl(fd, FIONREAD, &unread) == 0 && unread == 0)
		close(fd);
	else
		close_passed(fd);
}

static void
client_free(struct client *cl)
{
	drop_passed_fd(cl);
	if (cl->event != NULL)
		event_free(cl->event);
	if (cl->in != NULL)
		evbuffer_free(cl->in);
	if (cl->out != NULL)
		evbuffer_free(cl->out);
	free(cl);
}

struct client *
client_create(int fd, struct event_base *base, const struct ctl_limits *limits, uint64_t now)
{
	struct client *cl;

	RTE_ASSERT(fd >= 0 && base != NULL && limits != NULL);
	cl = calloc(1, sizeof(*cl));
	if (cl == NULL)
		return NULL;
	cl->fd = fd;
	cl->passed_fd = -1;
	cl->base = base;
	cl->limits = limits;
	cl->active = now;
	cl->in = evbuffer_new();
	cl->out = evbuffer_new();
	cl->event = event_new(base, fd, EV_READ, client_event, cl);
	if (cl->event != NULL && cl->in != NULL && cl->out != NULL &&
		set_interest(cl, EV_READ) == 0)
		return cl;
	client_free(cl);
	return NULL;
}

void
client_destroy(struct client *cl)
{
	int fd = cl->fd;

	rpc_close(cl->call);
	if (cl->answered != NULL && (cl->unread || evbuffer_get_length(cl->out) > 0))
		rpc_undo(cl->answered);
	rpc_close(cl->answered);
	client_free(cl);
	close_connection(fd);
}

RTE_LOG_REGISTER(ctl_logtype, polca.ctl, INFO);

/* The name of an errno value or, of an error of JSON-RPC, the number. */
static const char *
call_outcome(const struct rpc_call *call, char *buf, size_t size)
{
	const char *name = call->code > -32000 ? strerrorname_np(-call->code) : NULL;

	if (call->code == 0)
		return "done";
	snprintf(buf, size, "error %d", call->code);
	return name != NULL ? name : buf;
}

void
ctl_log_limit(struct rpc_state *state, const struct client *cl, const char *what, const char *text,
	uint64_t now)
{
	limit_lines_log(&state->limit_lines, ctl_logtype, "ctl", cl->fd, what, text, now);
}

/* Debug: who has called what. Parameters are not told, as they may be keys. */
static void
log_call(const struct client *cl, struct rpc_state *state, const struct rpc_call *call,
	uint64_t now)
{
	char outcome[32], caller[CALLER_TEXT_MAX];

	if (call->method == NULL)
		return;
	if (call->code != 0 && call->err.limit)
		ctl_log_limit(state, cl, call->method->name, call->err.text, now);
	if (!rte_log_can_log((uint32_t)ctl_logtype, RTE_LOG_DEBUG))
		return;
	rte_log(RTE_LOG_DEBUG, (uint32_t)ctl_logtype, "ctl: %s by %s: %s\n", call->method->name,
		caller_text(cl->fd, caller, sizeof(caller)),
		call_outcome(call, outcome, sizeof(outcome)));
}

static void
append_reply(struct client *cl, const struct rpc_call *call, uint64_t now)
{
	size_t len = 0;
	char *text = rpc_reply(call, cl->limits->max_reply, &len);

	if (text == NULL)
		return;
	rpc_close(cl->answered); /* its reply is no longer the last */
	cl->answered = NULL;
	if (evbuffer_add(cl->out, text, len) == 0) {
		if (cl->stalled_since == 0)
			cl->stalled_since = now;
	} else {
		/* no memory for its answer: better no connection than a gap */
		cl->gone = cl->unread = true;
	}
	free(text);
}

/* From now on nothing more is read; the connection closes when what is written has been read. */
static void
hang_up(struct client *cl)
{
	cl->eof = true;
	evbuffer_drain(cl->in, evbuffer_get_length(cl->in));
	cl->scanned = 0;
	cl->half_since = 0;
}

void
client_refuse(struct client *cl, enum rpc_code code, const char *text)
{
	struct rpc_call *call = rpc_refuse(code, text);

	if (call != NULL)
		append_reply(cl, call, cl->active);
	rpc_close(call);
	hang_up(cl);
}

/* May more be read? Not while what was read before is not dealt with. */
static bool
wants_input(const struct client *cl)
{
	return !cl->eof && cl->call == NULL && evbuffer_get_length(cl->in) == cl->scanned &&
		evbuffer_get_length(cl->out) < cl->limits->out_high;
}

static short
wanted_events(const struct client *cl)
{
	short want = 0;

	if (wants_input(cl))
		want |= EV_READ;
	if (evbuffer_get_length(cl->out) > 0)
		want |= EV_WRITE;
	return want;
}

/* Take over the descriptors that came with a message. @return how many */
static unsigned int
take_passed(struct client *cl, struct msghdr *m)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	unsigned int num, i;
	int fd;

	if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	num = (unsigned int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(fd));
	for (i = 0; i < num; i++) {
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
		if (num == 1 && cl->passed_fd < 0 && !cl->read_only) {
			cl->passed_fd = fd;
			return 0;
		}
		close_passed(fd);
	}
	return num;
}

/*
 * Receive bytes, and the descriptor that comes with them. There is room for as many as the kernel
 * passes: it would close others on the spot, and wait for what they wait for.
 */
static ssize_t
receive(struct client *cl, struct evbuffer_iovec *room)
{
	union {
		char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
		struct cmsghdr header;
	} control;
	struct msghdr m = { .msg_iov = room,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(cl->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0 || (take_passed(cl, &m) == 0 && (m.msg_flags & MSG_CTRUNC) == 0))
		return n;
	client_refuse(cl, RPC_INVALID_REQUEST,
		cl->read_only
			? "the monitoring socket takes no descriptors"
			: "send one descriptor with a request, and wait for the reply before the next");
	return 0;
}

static void
read_some(struct client *cl, uint64_t now)
{
	struct evbuffer_iovec room;
	ssize_t n;

	if (evbuffer_reserve_space(cl->in, READ_STEP, &room, 1) != 1) {
		cl->gone = true;
		return;
	}
	n = receive(cl, &room);
	if (n > 0) {
		room.iov_len = (size_t)n;
		evbuffer_commit_space(cl->in, &room, 1);
		if (cl->half_since == 0)
			cl->half_since = now;
	} else if (n == 0) {
		cl->eof = true;
	} else if (errno != EAGAIN && errno != EINTR) {
		/* ECONNRESET: the client closed before it read all replies */
		cl->gone = cl->unread = true;
	}
}

static void
write_some(struct client *cl, uint64_t now)
{
	size_t len = evbuffer_get_contiguous_space(cl->out);
	ssize_t n;

	if (len == 0 || cl->gone)
		return;
	n = send(cl->fd, evbuffer_pullup(cl->out, (ev_ssize_t)len), len,
		MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			cl->gone = true;
		return;
	}
	evbuffer_drain(cl->out, (size_t)n);
	cl->stalled_since = evbuffer_get_length(cl->out) > 0 ? now : 0;
}

/* Has the peer closed, both ways? A call that waits would wait for nobody. */
static void
check_peer(struct client *cl)
{
	struct pollfd p = { .fd = cl->fd };

	if (poll(&p, 1, 0) <= 0)
		return;
	if ((p.revents & POLLHUP) != 0 && cl->call != NULL)
		cl->gone = true;
	if ((p.revents & POLLERR) != 0) /* ECONNRESET, as in read_some() */
		cl->gone = cl->unread = true;
}

/*
 * The next whole line, if there is one. What stands before the end of the stream counts as one: a
 * request from a file may lack the last newline.
 */
static bool
next_line(struct client *cl, const char **line, size_t *len)
{
	size_t have = evbuffer_get_length(cl->in);
	const char *text = (const char *)evbuffer_pullup(cl->in, -1), *nl;

	if (have == 0)
		return false;
	nl = memchr(text + cl->scanned, '\n', have - cl->scanned);
	if (nl == NULL && !cl->eof) {
		cl->scanned = have;
		return false;
	}
	*line = text;
	*len = nl != NULL ? (size_t)(nl - text) : have;
	return true;
}

static bool
blank(const char *line, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

/* The line is used up: what follows it is a line that has only begun now. */
static void
line_done(struct client *cl, size_t len, uint64_t now)
{
	evbuffer_drain(cl->in, len + 1);
	cl->scanned = 0;
	cl->half_since = evbuffer_get_length(cl->in) > 0 ? now : 0;
	cl->active = now;
}

/* @return is there a call under way now? */
static bool
open_next(struct client *cl, struct rpc_state *state, uint64_t now)
{
	const char *line;
	size_t len;

	while (cl->call == NULL && next_line(cl, &line, &len)) {
		if (len > cl->limits->max_request)
			break;
		if (!blank(line, len))
			cl->call = rpc_open(state, line, len, &cl->passed_fd, now);
		if (cl->call != NULL)
			cl->call->next_event = &cl->next_event;
		if (cl->call != NULL && cl->read_only)
			rpc_only_read(cl->call);
		line_done(cl, len, now);
	}
	if (cl->call != NULL)
		return true;
	if (evbuffer_get_length(cl->in) == 0)
		drop_passed_fd(cl);
	if (evbuffer_get_length(cl->in) > cl->limits->max_request)
		client_refuse(cl, RPC_INVALID_REQUEST, "request too long");
	return false;
}

/* @return calls answered */
static unsigned int
answer_some(struct client *cl, struct rpc_state *state, uint64_t now)
{
	unsigned int done;

	for (done = 0; done < CALLS_A_TURN; done++) {
		if (!cl->gone && evbuffer_get_length(cl->out) >= cl->limits->out_high)
			break;
		if (cl->call == NULL && !open_next(cl, state, now))
			break;
		cl->waiting = rpc_step(cl->call, now);
		if (cl->waiting != 0)
			break;
		log_call(cl, state, cl->call, now);
		append_reply(cl, cl->call, now);
		if (rpc_can_undo(cl->call))
			cl->answered = cl->call;
		else
			rpc_close(cl->call);
		cl->call = NULL;
	}
	return done;
}

static enum client_want
next_want(const struct client *cl, unsigned int done)
{
	bool more = cl->call == NULL && evbuffer_get_length(cl->in) > cl->scanned;

	if (cl->gone && !more)
		return CLIENT_CLOSE;
	if (cl->eof && !more && cl->call == NULL && evbuffer_get_length(cl->out) == 0)
		return CLIENT_CLOSE;
	if (cl->call != NULL)
		return cl->waiting == RPC_WAIT ? CLIENT_WAITS : CLIENT_NOW;
	return more && done == CALLS_A_TURN ? CLIENT_NOW : CLIENT_IDLE;
}

/* For the end of a turn: what client.h claims. Release builds contain none of it. */
static void
ctl_client_check(const struct client *cl)
{
	RTE_ASSERT(cl->fd >= 0 && cl->scanned <= evbuffer_get_length(cl->in));
	RTE_ASSERT(cl->answered == NULL || rpc_can_undo(cl->answered));
	/* a call that is under way is neither done nor the last that was answered */
	RTE_ASSERT(cl->call == NULL || (!cl->call->done && cl->waiting != 0));
	RTE_ASSERT(cl->call == NULL || cl->call != cl->answered);
	RTE_ASSERT(cl->passed_fd < 0 || !cl->read_only);
	RTE_SET_USED(cl);
}

enum client_want
client_run(struct client *cl, struct rpc_state *state, uint64_t now)
{
	unsigned int done;

	if (cl->readable || !wants_input(cl))
		check_peer(cl);
	if (cl->readable && wants_input(cl))
		read_some(cl, now);
	cl->readable = false;
	if (cl->gone && cl->call != NULL)
		return CLIENT_CLOSE;
	done = answer_some(cl, state, now);
	write_some(cl, now);
	if (cl->stalled_since != 0 && now - cl->stalled_since > cl->limits->stall_ms)
		return CLIENT_CLOSE; /* it does not read */
	if (cl->half_since != 0 && cl->call == NULL && evbuffer_get_length(cl->out) == 0 &&
		now - cl->half_since > cl->limits->half_request_ms)
		client_refuse(cl, RPC_INVALID_REQUEST, "the request's line did not end in time");
	if (set_interest(cl, wanted_events(cl)) != 0)
		return CLIENT_CLOSE;
	ctl_client_check(cl);
	return next_want(cl, done);
}
