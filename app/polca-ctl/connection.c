/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "connection.h"
#include "ring/server.h"

#define TIMEOUT_MS 10000
#define REPLY_MAX  (8 << 20)

struct connection {
	int fd;
	int attached; /* the descriptor that goes with the next request; -1: none */
	json_int_t id;
	char *buf;
	size_t len;
	size_t size;
	const volatile sig_atomic_t *stop; /* or NULL */
};

const char *
connection_default_path(char *buf, size_t size)
{
	static const char service[] = CONNECTION_SERVICE;
	const char *path = getenv("POLCA_SOCKET"), *dir = getenv("XDG_RUNTIME_DIR");

	/* the server chooses its default in the same way, except for the last line */
	if (path != NULL && path[0] != '\0')
		snprintf(buf, size, "%s", path);
	else if (geteuid() == 0)
		snprintf(buf, size, "%s", service);
	else if (dir != NULL && dir[0] == '/')
		snprintf(buf, size, "%s/polca.sock", dir);
	else
		snprintf(buf, size, "/tmp/polca-%u/polca.sock", (unsigned int)geteuid());
	/* a member of the service's group who runs no polca means the service */
	if ((path == NULL || path[0] == '\0') && access(buf, F_OK) != 0 &&
		access(service, R_OK | W_OK) == 0)
		snprintf(buf, size, "%s", service);
	return buf;
}

struct connection *
connection_open(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct connection *c;
	int fd, eno;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	c = calloc(1, sizeof(*c));
	eno = c == NULL ? ENOMEM : 0;
	if (eno == 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) != 0)
		eno = errno;
	if (eno == 0)
		eno = ring_server_check(fd, path);
	if (eno != 0) {
		close(fd);
		free(c);
		errno = eno;
		return NULL;
	}
	c->fd = fd;
	c->attached = -1;
	return c;
}

void
connection_close(struct connection *c)
{
	if (c == NULL)
		return;
	connection_attach(c, -1);
	close(c->fd);
	free(c->buf);
	free(c);
}

void
connection_interruptible(struct connection *c, const volatile sig_atomic_t *stop)
{
	c->stop = stop;
}

void
connection_attach(struct connection *c, int fd)
{
	if (c->attached >= 0)
		close(c->attached);
	c->attached = fd;
}

/* The attached descriptor goes with the first bytes. */
static ssize_t
send_some(struct connection *c, const char *text, size_t len)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { (void *)(uintptr_t)text, len };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (c->attached >= 0) {
		memcpy(CMSG_DATA(&control.header), &c->attached, sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
	}
	n = sendmsg(c->fd, &m, MSG_NOSIGNAL);
	if (n > 0)
		connection_attach(c, -1);
	return n;
}

static int
send_all(struct connection *c, const char *text, size_t len)
{
	ssize_t n;

	while (len > 0) {
		n = send_some(c, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		/*
		 * EPIPE is no failure yet: the server may have sent an error before it closed the
		 * connection, which the caller reads as the reply
		 */
		if (n < 0)
			return errno == EPIPE ? 0 : -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool
connection_interrupted(const struct connection *c)
{
	return c->stop != NULL && *c->stop != 0;
}

/*
 * Read more bytes into the buffer. After a signal, read only what has already arrived: poll()
 * reports EINTR even if the reply is in the socket. @return 1, 0 at the end, or -1
 */
static int
receive_some(struct connection *c, uint64_t deadline)
{
	struct pollfd pfd = { .fd = c->fd, .events = POLLIN };
	uint64_t now = clock_us() / 1000;
	bool wait = !connection_interrupted(c) && now < deadline;
	ssize_t n;
	char *buf;

	if (c->size - c->len < 65536) {
		if (c->size > REPLY_MAX) {
			errno = EMSGSIZE;
			return -1;
		}
		buf = realloc(c->buf, c->size + (256 << 10));
		if (buf == NULL)
			return -1;
		c->buf = buf;
		c->size += 256 << 10;
	}
	n = poll(&pfd, 1, wait ? (int)(deadline - now) : 0);
	if (n < 0 && errno == EINTR)
		return 1; /* the next call sees the signal */
	if (n == 0)
		errno = connection_interrupted(c) ? EINTR : ETIMEDOUT;
	if (n <= 0)
		return -1;
	n = recv(c->fd, c->buf + c->len, c->size - c->len, 0);
	if (n > 0)
		c->len += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

static json_t *
receive_line(struct connection *c, uint64_t deadline)
{
	char *nl;
	json_t *v;
	int rc;

	while ((nl = c->len > 0 ? memchr(c->buf, '\n', c->len) : NULL) == NULL) {
		rc = receive_some(c, deadline);
		if (rc == 0)
			errno = ECONNRESET;
		if (rc <= 0)
			return NULL;
	}
	v = json_loadb(c->buf, (size_t)(nl - c->buf), 0, NULL);
	c->len -= (size_t)(nl + 1 - c->buf);
	memmove(c->buf, nl + 1, c->len);
	if (v == NULL)
		errno = EPROTO;
	return v;
}

/*
 * Return the reply to the current call, and skip late replies to earlier ones. A null id is an
 * error about the connection itself.
 */
static json_t *
receive_reply(struct connection *c, uint64_t deadline)
{
	json_t *id, *reply;

	while ((reply = receive_line(c, deadline)) != NULL) {
		id = json_object_get(reply, "id");
		if (json_is_null(id) || json_integer_value(id) == c->id)
			break;
		json_decref(reply);
	}
	return reply;
}

static char *
request_text(struct connection *c, const char *method, json_t *params, size_t *len)
{
	json_t *req = json_object();
	char *text;

	json_object_set_new(req, "jsonrpc", json_string("2.0"));
	json_object_set_new(req, "id", json_integer(++c->id));
	json_object_set_new(req, "method", json_string(method));
	if (params != NULL)
		json_object_set(req, "params", params);
	text = json_dumps(req, JSON_COMPACT);
	json_decref(req);
	if (text != NULL) {
		*len = strlen(text);
		text[(*len)++] = '\n'; /* replaces the terminating NUL */
	}
	return text;
}

int
connection_send(struct connection *c, const char *method, json_t *params)
{
	size_t len = 0;
	char *text = request_text(c, method, params, &len);
	int rc = text != NULL ? send_all(c, text, len) : -1;

	free(text);
	return rc;
}

int
connection_receive(struct connection *c, unsigned int timeout_ms, json_t **result, json_t **error)
{
	json_t *reply = receive_reply(c, clock_us() / 1000 + timeout_ms);

	*result = *error = NULL;
	if (reply == NULL)
		return -1;
	*error = json_incref(json_object_get(reply, "error"));
	*result = json_incref(json_object_get(reply, "result"));
	json_decref(reply);
	if (*error == NULL && *result == NULL) {
		errno = EPROTO;
		return -1;
	}
	return *error != NULL ? 1 : 0;
}

int
connection_fd(const struct connection *c)
{
	return c->fd;
}

int
connection_call(struct connection *c, const char *method, json_t *params, unsigned int timeout_ms,
	json_t **result, json_t **error)
{
	*result = *error = NULL;
	if (connection_send(c, method, params) != 0)
		return -1;
	return connection_receive(c, timeout_ms > 0 ? timeout_ms : TIMEOUT_MS, result, error);
}
