/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * The verbs socket: requests and replies, one at a time.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "provider.h"
#include "ring/server.h"
#include "wait.h"

#define REQUEST_HEADER offsetof(struct ring_request, hello)

static void
close_descriptors(int *fds, unsigned int num)
{
	for (unsigned int i = 0; i < num; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* More than max_fds can come: the room for them is rounded up. What is too many is closed. */
static void
take_descriptors(struct msghdr *m, int *fds, unsigned int max_fds)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	size_t i, num;
	int fd;

	if (h == NULL || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return;
	num = (h->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
	for (i = 0; i < num; i++) {
		memcpy(&fd, CMSG_DATA(h) + i * sizeof(fd), sizeof(fd));
		if (i < max_fds)
			fds[i] = fd;
		else
			close(fd);
	}
}

/* @return bytes of the reply; at most max_fds descriptors, others stay as they are */
static ssize_t
socket_receive(int socket, struct ring_reply *reply, int *fds, unsigned int max_fds)
{
	char control[CMSG_SPACE(sizeof(int) * RING_HELLO_FDS)];
	struct iovec iov = { reply, sizeof(*reply) };
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = max_fds > 0 ? control : NULL,
		.msg_controllen = max_fds > 0 ? CMSG_SPACE(sizeof(int) * max_fds) : 0,
	};
	ssize_t n;

	/* polca may have answered before it closed the connection: that follows the reset */
	do {
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n >= 0)
		take_descriptors(&m, fds, max_fds);
	return n;
}

/* @param pass  a descriptor to pass; -1: none */
static ssize_t
socket_send(int socket, const struct ring_request *req, size_t size, int pass)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { (void *)(uintptr_t)req, size };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *h;
	ssize_t n;

	if (pass >= 0) {
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &pass, sizeof(int));
	}
	do {
		n = sendmsg(socket, &m, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* After an error no descriptor is open, and all are -1. @return errno value */
static int
socket_exchange(int socket, const struct ring_request *req, size_t size, int pass,
	struct ring_reply *reply, int *fds, unsigned int max_fds)
{
	unsigned int i;
	ssize_t n;

	memset(reply, 0, sizeof(*reply));
	for (i = 0; i < max_fds; i++)
		fds[i] = -1;
	n = socket_send(socket, req, size, pass);
	if (n == (ssize_t)size || (n < 0 && errno == EPIPE))
		n = socket_receive(socket, reply, fds, max_fds);
	if (n < (ssize_t)offsetof(struct ring_reply, text)) {
		close_descriptors(fds, max_fds);
		return EIO;
	}
	if (reply->error != 0)
		close_descriptors(fds, max_fds);
	if (reply->error != 0 && reply->text[0] != '\0' && getenv("POLCA_DEBUG") != NULL)
		fprintf(stderr, "polca: %.*s\n", (int)sizeof(reply->text), reply->text);
	return reply->error;
}

bool
polca_is_gone(const struct polca_context *c)
{
	struct pollfd fd = { .fd = c->socket };

	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

/* Ask over the device's connection; other threads wait. */
static int
context_exchange(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, int pass, struct ring_reply *reply, int *fds)
{
	int rc;

	req->code = code;
	pthread_mutex_lock(&c->socket_lock);
	rc = socket_exchange(c->socket, req, REQUEST_HEADER + size, pass, reply, fds,
		fds != NULL ? RING_CHANNEL_FDS : 0);
	pthread_mutex_unlock(&c->socket_lock);
	if (rc == EIO)
		death_notice(c);
	return rc;
}

int
polca_call_passing(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, int pass, struct ring_reply *reply)
{
	return context_exchange(c, code, req, size, pass, reply, NULL);
}

int
polca_call(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, struct ring_reply *reply, int *fds)
{
	return context_exchange(c, code, req, size, -1, reply, fds);
}

int
polca_socket_ask(int socket, enum ring_request_code code, struct ring_request *req, size_t size,
	struct ring_reply *reply, int *fd)
{
	req->code = code;
	return socket_exchange(socket, req, REQUEST_HEADER + size, -1, reply, fd, fd != NULL);
}

int
polca_call_slot(struct polca_context *c, enum ring_request_code code, uint32_t slot)
{
	struct ring_request req = { .slot.slot = slot };
	struct ring_reply reply;

	return polca_call(c, code, &req, sizeof(req.slot), &reply, NULL);
}

int
polca_call_destroy(struct polca_context *c, enum ring_request_code code, uint32_t slot)
{
	int rc = polca_is_dead(c) ? EIO : polca_call_slot(c, code, slot);

	return rc == EIO && polca_is_dead(c) ? 0 : rc;
}

/*
 * What polca passes: the segment, the mirror, the wake pipe and both ends of the event pipe. After
 * an error they are still the caller's.
 */
static int
socket_adopt(struct polca_context *c, const struct ring_hello_reply *hello, const int *fds)
{
	const struct ring_geometry *g = &hello->geometry;
	void *segment;
	unsigned int i;

	for (i = 0; i < RING_HELLO_FDS; i++)
		if (fds[i] < 0)
			return EPROTO;
	segment =
		mmap(NULL, g->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds[0], 0);
	if (segment == MAP_FAILED)
		return errno;
	close(fds[0]);
	/* a child has no device: it must not ring for its parent */
	madvise(segment, g->bytes, MADV_DONTFORK);
	c->hello = *hello;
	c->segment = segment;
	c->shared = segment;
	c->doorbells = (uint32_t *)(void *)(c->segment + g->doorbells);
	c->queues = (struct ring_queue *)(void *)(c->segment + g->queues);
	c->cqs = (struct ring_cq *)(void *)(c->segment + g->cqs);
	c->mirror_fd = fds[1];
	c->wake_fd = fds[2];
	c->verbs.context.async_fd = fds[3];
	c->event_back = fds[4];
	return 0;
}

static int
socket_hello(struct polca_context *c, const struct polca_device *device)
{
	struct ring_request req = {
		.code = RING_HELLO,
		.hello = {
			.magic = RING_MAGIC,
			.major = RING_MAJOR,
			.minor = RING_MINOR,
			.features = RING_FEATURES,
			.port = device->port,
		},
	};
	struct ring_reply reply;
	int fds[RING_HELLO_FDS], rc;

	rc = socket_exchange(c->socket, &req, REQUEST_HEADER + sizeof(req.hello),
		contexts_mirror(device), &reply, fds, RING_HELLO_FDS);
	if (rc != 0)
		return rc;
	rc = socket_adopt(c, &reply.hello, fds);
	if (rc != 0)
		close_descriptors(fds, RING_HELLO_FDS);
	return rc;
}

int
polca_socket_open(const char *path, int *opened)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0
		? ring_server_check(fd, path)
		: errno;
	if (rc == 0)
		*opened = fd;
	else
		close(fd);
	return rc;
}

bool
polca_socket_end(int socket, int wait_ms)
{
	shutdown(socket, SHUT_WR); /* polca reads the end, whoever else has the descriptor */
	return wait_for_close(socket, wait_ms);
}

int
polca_connect(struct polca_context *c, const struct polca_device *device)
{
	int rc = polca_socket_open(device->socket, &c->socket);

	if (rc != 0)
		return rc;
	rc = socket_hello(c, device);
	if (rc != 0)
		close(c->socket);
	return rc;
}
