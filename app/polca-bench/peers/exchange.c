/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "peers/exchange.h"
#include "peers/host_port.h"

#define LINE_MAX_BYTES (64u << 20) /* the numbers of a million queue pairs */
#define POLL_MS        50

struct exchange {
	int fd;
	char *line;
	size_t len, size;
};

static bool
is_tcp(const char *where)
{
	return strchr(where, '/') == NULL && strchr(where, ':') != NULL;
}

static int
unix_address(const char *where, struct sockaddr_un *a, struct error *err)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(where) >= sizeof(a->sun_path))
		return error_set(err, ENAMETOOLONG,
			"%.64s...: a socket's path has %zu bytes at most", where,
			sizeof(a->sun_path) - 1);
	snprintf(a->sun_path, sizeof(a->sun_path), "%s", where);
	return 0;
}

/* True if a process listens there. */
static bool
socket_alive(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes = fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0;

	if (fd >= 0)
		close(fd);
	return yes;
}

static int
listen_unix(const char *where, struct error *err)
{
	struct sockaddr_un a;
	int fd;

	if (unix_address(where, &a, err) != 0)
		return -1;
	if (socket_alive(&a)) {
		error_set(err, EADDRINUSE, "another program listens on %s", where);
		return -1;
	}
	unlink(where); /* left behind by a killed server */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 1) != 0) {
		error_set(err, errno, "cannot listen on %s: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static int
listen_tcp(const char *where, struct error *err)
{
	struct host_port w;
	struct addrinfo *list = host_port_resolve("--peer", where, 0, true, &w, err);
	int fd, one = 1;

	if (list == NULL)
		return -1;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, 1) != 0) {
		error_set(err, errno, "cannot listen on %s: %s", where, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

static struct exchange *
exchange_create(int fd, struct error *err)
{
	struct exchange *x = fd >= 0 ? calloc(1, sizeof(*x)) : NULL;

	if (fd >= 0 && x == NULL) {
		error_set(err, ENOMEM, "no memory");
		close(fd);
	}
	if (x != NULL)
		x->fd = fd;
	return x;
}

int
exchange_listen(const char *where, struct error *err)
{
	return is_tcp(where) ? listen_tcp(where, err) : listen_unix(where, err);
}

/*
 * A client sends first. A connection that closes without data only probed the socket,
 * as socket_alive() does.
 */
static bool
client_speaks(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	while (bench_stop == 0 && poll(&p, 1, POLL_MS) <= 0)
		;
	return bench_stop == 0 && recv(fd, &c, 1, MSG_PEEK) == 1;
}

struct exchange *
exchange_accept(int listener, const char *where, struct error *err)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	int fd;

	for (;;) {
		while (bench_stop == 0 && poll(&p, 1, POLL_MS) <= 0)
			;
		fd = bench_stop == 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd < 0 || client_speaks(fd))
			break;
		close(fd);
	}
	if (fd < 0)
		error_set(err, EINTR, "no client connected to %s", where);
	close(listener);
	if (!is_tcp(where))
		unlink(where);
	return exchange_create(fd, err);
}

static int
dial_unix(const char *where, struct error *err)
{
	struct sockaddr_un a;
	int fd, ret = unix_address(where, &a, err);

	if (ret != 0)
		return ret;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	ret = error_set(err, errno, "no process listens on %s (%s)", where, strerror(errno));
	if (fd >= 0)
		close(fd);
	return ret;
}

int
exchange_dial_tcp(const char *option, const char *where, uint16_t port, struct error *err)
{
	struct host_port w;
	struct addrinfo *t, *list = host_port_resolve(option, where, port, false, &w, err);
	char text[HOST_PORT_TEXT];
	int fd = -1, ret = -EINVAL;

	for (t = list; t != NULL && fd < 0 && bench_stop == 0; t = t->ai_next) {
		fd = socket(t->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, t->ai_addr, t->ai_addrlen) == 0)
			break;
		ret = error_set(err, errno, "%s: no process listens on %s (%s)", option,
			host_port_print(&w, text), strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	if (list != NULL)
		freeaddrinfo(list);
	if (fd < 0 && bench_stop != 0)
		return error_set(err, EINTR, "interrupted");
	return fd >= 0 ? fd : ret;
}

static int
exchange_dial(const char *where, struct error *err)
{
	return is_tcp(where) ? exchange_dial_tcp("--peer", where, 0, err) : dial_unix(where, err);
}

struct exchange *
exchange_connect(const char *where, struct error *err)
{
	struct error why = { "" };
	int fd = exchange_dial(where, &why);

	if (fd >= 0)
		return exchange_create(fd, err);
	error_set(err, ECONNREFUSED, fd == -EINVAL ? "%s" : "%s: start 'polca-bench server' first",
		why.text);
	return NULL;
}

void
exchange_destroy(struct exchange *x)
{
	if (x == NULL)
		return;
	close(x->fd);
	free(x->line);
	free(x);
}

static int
exchange_gone(struct error *err)
{
	return error_set(err, ECONNRESET, "the other process is gone");
}

/* @return 1: a line is complete, 0: not yet, negative: closed */
static int
exchange_fill(struct exchange *x, struct error *err)
{
	char *more;
	ssize_t n;

	while (memchr(x->line, '\n', x->len) == NULL) {
		if (x->size - x->len < 4096) {
			more = x->size < LINE_MAX_BYTES ? realloc(x->line, 2 * x->size + 65536)
							: NULL;
			if (more == NULL)
				return error_set(err, EMSGSIZE,
					"the other process sent too long a message");
			x->line = more;
			x->size = 2 * x->size + 65536;
		}
		n = recv(x->fd, x->line + x->len, x->size - x->len, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return exchange_gone(err);
		x->len += (size_t)n;
	}
	return 1;
}

int
exchange_poll(struct exchange *x, json_t **message, struct error *err)
{
	int ret = exchange_fill(x, err);
	const char *end;
	size_t len;

	if (ret <= 0)
		return ret;
	end = memchr(x->line, '\n', x->len);
	len = (size_t)(end - x->line);
	*message = json_loadb(x->line, len, 0, NULL);
	memmove(x->line, end + 1, x->len - len - 1);
	x->len -= len + 1;
	return *message != NULL ? 1
				: error_set(err, EPROTO, "the other process is not polca-bench");
}

/* The other process is gone: read its last messages for an error text. @return negative */
static int
exchange_last_error(struct exchange *x, struct error *err)
{
	const char *type, *text;
	json_t *m = NULL;
	int ret;

	while ((ret = exchange_poll(x, &m, err)) > 0) {
		type = json_string_value(json_object_get(m, "type"));
		text = json_string_value(json_object_get(m, "text"));
		if (type != NULL && strcmp(type, "error") == 0 && text != NULL) {
			ret = error_set(err, ECONNRESET, "the other process: %s", text);
			json_decref(m);
			return ret;
		}
		json_decref(m);
	}
	return ret != 0 ? ret : exchange_gone(err);
}

int
exchange_send(struct exchange *x, json_t *message, struct error *err)
{
	char *text = json_dumps(message, JSON_COMPACT);
	size_t len, at = 0;
	ssize_t n;

	json_decref(message);
	if (text == NULL)
		return error_set(err, ENOMEM, "no memory for a message");
	len = strlen(text);
	text[len++] = '\n';
	while (at < len) {
		n = send(x->fd, text + at, len - at, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	free(text);
	return at == len ? 0 : exchange_last_error(x, err);
}

static uint64_t
clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

json_t *
exchange_wait(struct exchange *x, const char *type, unsigned int ms, struct error *err)
{
	struct pollfd p = { .fd = x->fd, .events = POLLIN };
	uint64_t end = clock_ms() + ms;
	json_t *message = NULL;
	const char *got;
	int ret;

	while ((ret = exchange_poll(x, &message, err)) == 0) {
		if (clock_ms() >= end || bench_stop != 0) {
			error_set(err, ETIMEDOUT,
				bench_stop != 0 ? "interrupted"
						: "the other process does not answer");
			return NULL;
		}
		poll(&p, 1, POLL_MS);
	}
	if (ret < 0)
		return NULL;
	got = json_string_value(json_object_get(message, "type"));
	if (got != NULL && strcmp(got, type) == 0)
		return message;
	if (got != NULL && strcmp(got, "error") == 0)
		error_set(err, EIO, "the other process: %s",
			json_string_value(json_object_get(message, "text")));
	else
		error_set(err, EPROTO, "the other process said \"%s\", not \"%s\"",
			got != NULL ? got : "", type);
	json_decref(message);
	return NULL;
}
