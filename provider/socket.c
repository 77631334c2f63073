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

#define REQUEST_HEADER offsetof(struct ring_request, hello)

/* @return bytes of the reply; at most max_fds descriptors, others -1 */
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
	struct cmsghdr *h;
	unsigned int i;
	ssize_t n;

	for (i = 0; i < max_fds; i++)
		fds[i] = -1;
	/* polca may have answered before it closed the connection: that follows the reset */
	do {
		n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	h = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (h != NULL && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
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

static int
socket_exchange(int socket, const struct ring_request *req, size_t size, int pass,
	struct ring_reply *reply, int *fds, unsigned int max_fds)
{
	ssize_t n;

	memset(reply, 0, sizeof(*reply));
	n = socket_send(socket, req, size, pass);
	if (n == (ssize_t)size || (n < 0 && errno == EPIPE))
		n = socket_receive(socket, reply, fds, max_fds);
	if (n < (ssize_t)offsetof(struct ring_reply, text))
		return EIO;
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

int
polca_call(struct polca_context *c, enum ring_request_code code, struct ring_request *req,
	size_t size, struct ring_reply *reply, int *fds)
{
	int rc;

	req->code = code;
	pthread_mutex_lock(&c->socket_lock);
	rc = socket_exchange(c->socket, req, REQUEST_HEADER + size, -1, reply, fds,
		fds != NULL ? RING_CHANNEL_FDS : 0);
	pthread_mutex_unlock(&c->socket_lock);
	if (rc == EIO)
		death_notice(c);
	return rc;
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

/* What polca passes: the segment, the mirror, the wake pipe and both ends of the event pipe. */
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
	close(fds[0]);
	if (segment == MAP_FAILED)
		return errno;
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
			.port = device->port,
		},
	};
	struct ring_reply reply;
	int fds[RING_HELLO_FDS], rc;

	rc = socket_exchange(c->socket, &req, REQUEST_HEADER + sizeof(req.hello),
		contexts_mirror(device), &reply, fds, RING_HELLO_FDS);
	return rc != 0 ? rc : socket_adopt(c, &reply.hello, fds);
}

int
polca_socket_open(const char *path, int *opened)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0) {
		*opened = fd;
		return 0;
	}
	rc = errno;
	close(fd);
	return rc;
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
