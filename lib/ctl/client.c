/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl/client.h"

#define READ_STEP    65536 /* bytes taken from a socket at a time */
#define CALLS_A_TURN 16 /* requests answered before the next client's turn */
#define KEEP_SIZE    65536 /* an empty buffer larger than this is given back */

/* --- buffers --- */

static size_t
buffer_len(const struct buffer *b)
{
	return b->end - b->start;
}

static bool
buffer_room(struct buffer *b, size_t room)
{
	size_t size = b->size;
	char *mem;

	if (b->start > 0) {
		memmove(b->mem, b->mem + b->start, buffer_len(b));
		b->end -= b->start;
		b->start = 0;
	}
	while (size - b->end < room)
		size = size == 0 ? 4096 : size * 2;
	if (size == b->size)
		return true;
	mem = realloc(b->mem, size);
	if (mem == NULL)
		return false;
	b->mem = mem;
	b->size = size;
	return true;
}

static void
buffer_used(struct buffer *b, size_t n)
{
	b->start += n;
	if (b->start != b->end)
		return;
	b->start = b->end = 0;
	if (b->size > KEEP_SIZE) {
		free(b->mem);
		b->mem = NULL;
		b->size = 0;
	}
}

/* --- the connection --- */

struct client *
client_create(int fd, int epoll_fd, const struct ctl_limits *limits, uint64_t now)
{
	struct client *cl = calloc(1, sizeof(*cl));
	struct epoll_event ev = { .events = EPOLLIN };

	if (cl == NULL)
		return NULL;
	cl->fd = fd;
	cl->epoll_fd = epoll_fd;
	cl->limits = limits;
	cl->active = now;
	cl->interest = ev.events;
	ev.data.ptr = cl;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		free(cl);
		return NULL;
	}
	return cl;
}

void
client_destroy(struct client *cl)
{
	close(cl->fd); /* leaves the epoll set by itself */
	rpc_close(cl->call);
	if (cl->answered != NULL && (cl->unread || buffer_len(&cl->out) > 0))
		rpc_undo(cl->answered);
	rpc_close(cl->answered);
	free(cl->in.mem);
	free(cl->out.mem);
	free(cl);
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
	if (buffer_room(&cl->out, len)) {
		memcpy(cl->out.mem + cl->out.end, text, len);
		cl->out.end += len;
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
	cl->in.start = cl->in.end = cl->scanned = 0;
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
	return !cl->eof && cl->call == NULL && buffer_len(&cl->in) == cl->scanned &&
		buffer_len(&cl->out) < cl->limits->out_high;
}

static void
set_interest(struct client *cl)
{
	struct epoll_event ev = { .data.ptr = cl };

	if (wants_input(cl))
		ev.events |= EPOLLIN;
	if (buffer_len(&cl->out) > 0)
		ev.events |= EPOLLOUT;
	if (ev.events == cl->interest)
		return;
	cl->interest = ev.events;
	epoll_ctl(cl->epoll_fd, EPOLL_CTL_MOD, cl->fd, &ev);
}

static void
read_some(struct client *cl, uint64_t now)
{
	ssize_t n;

	if (!buffer_room(&cl->in, READ_STEP)) {
		cl->gone = true;
		return;
	}
	n = recv(cl->fd, cl->in.mem + cl->in.end, READ_STEP, MSG_DONTWAIT);
	if (n > 0) {
		cl->in.end += (size_t)n;
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
	ssize_t n;

	if (buffer_len(&cl->out) == 0 || cl->gone)
		return;
	n = send(cl->fd, cl->out.mem + cl->out.start, buffer_len(&cl->out),
		MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			cl->gone = true;
		return;
	}
	buffer_used(&cl->out, (size_t)n);
	cl->stalled_since = buffer_len(&cl->out) > 0 ? now : 0;
}

void
client_event(struct client *cl, uint32_t events, uint64_t now)
{
	if (wants_input(cl) && (events & (EPOLLIN | EPOLLHUP)) != 0)
		read_some(cl, now);
	/* closed by the peer, both ways: a call that waits would wait for nobody */
	if ((events & EPOLLHUP) != 0 && cl->call != NULL)
		cl->gone = true;
	if ((events & EPOLLERR) != 0) /* ECONNRESET, as in read_some() */
		cl->gone = cl->unread = true;
}

/*
 * The next whole line, if there is one. What stands before the end of the stream counts as one: a
 * request from a file may lack the last newline.
 */
static bool
next_line(struct client *cl, const char **line, size_t *len)
{
	size_t have = buffer_len(&cl->in);
	const char *text = cl->in.mem + cl->in.start, *nl;

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
	buffer_used(&cl->in, len < buffer_len(&cl->in) ? len + 1 : len);
	cl->scanned = 0;
	cl->half_since = buffer_len(&cl->in) > 0 ? now : 0;
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
			cl->call = rpc_open(state, line, len, now);
		line_done(cl, len, now);
	}
	if (cl->call != NULL)
		return true;
	if (buffer_len(&cl->in) > cl->limits->max_request)
		client_refuse(cl, RPC_INVALID_REQUEST, "request too long");
	return false;
}

/* @return calls answered */
static unsigned int
answer_some(struct client *cl, struct rpc_state *state, uint64_t now)
{
	unsigned int done;

	for (done = 0; done < CALLS_A_TURN; done++) {
		if (!cl->gone && buffer_len(&cl->out) >= cl->limits->out_high)
			break;
		if (cl->call == NULL && !open_next(cl, state, now))
			break;
		cl->waiting = rpc_step(cl->call, now);
		if (cl->waiting != 0)
			break;
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
	bool more = cl->call == NULL && buffer_len(&cl->in) > cl->scanned;

	if (cl->gone && !more)
		return CLIENT_CLOSE;
	if (cl->eof && !more && cl->call == NULL && buffer_len(&cl->out) == 0)
		return CLIENT_CLOSE;
	if (cl->call != NULL)
		return cl->waiting == RPC_WAIT ? CLIENT_SOON : CLIENT_NOW;
	return more && done == CALLS_A_TURN ? CLIENT_NOW : CLIENT_IDLE;
}

enum client_want
client_run(struct client *cl, struct rpc_state *state, uint64_t now)
{
	unsigned int done;

	if (cl->gone && cl->call != NULL)
		return CLIENT_CLOSE;
	done = answer_some(cl, state, now);
	write_some(cl, now);
	if (cl->stalled_since != 0 && now - cl->stalled_since > cl->limits->stall_ms)
		return CLIENT_CLOSE; /* it does not read */
	if (cl->half_since != 0 && cl->call == NULL && buffer_len(&cl->out) == 0 &&
		now - cl->half_since > cl->limits->half_request_ms)
		client_refuse(cl, RPC_INVALID_REQUEST, "the request's line did not end in time");
	set_interest(cl);
	return next_want(cl, done);
}
