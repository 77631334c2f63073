/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * librdmacm's device. librdmacm opens /dev/infiniband/rdma_cm once for each event channel, and
 * writes its commands there. These calls are redirected, for librdmacm alone: the channel is a
 * socket that polca makes readable while the channel has events, so that poll(), epoll and
 * O_NONBLOCK work, and each command goes to polca over one connection of the process.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "fork_order.h"
#include "imports.h"
#include "provider.h"

#define RDMACM_NODE "/dev/infiniband/rdma_cm"

/* An event channel of this process. */
struct cm_channel {
	struct cm_channel *next;
	int fd;
	uint32_t slot; /* RING_NONE: of a connection that is gone, or of a forked child's parent */
	uint64_t serial; /* a descriptor may be used again */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_channel *cm_channels;
static char polca_path[108];
static int connection = -1;
static uint64_t last_serial;

/* --- the connection to polca; the caller holds the lock --- */

static int
cm_connect_polca(void)
{
	struct ring_request req = {
		.hello = { .magic = RING_MAGIC, .major = RING_MAJOR, .minor = RING_MINOR },
	};
	struct ring_reply reply;
	int rc = polca_socket_open(polca_path, &connection);

	if (rc != 0)
		return rc;
	rc = polca_socket_ask(connection, RING_CM_OPEN, &req, sizeof(req.hello), &reply, NULL);
	if (rc != 0) {
		close(connection);
		connection = -1;
	}
	return rc;
}

/* The slots of its channels mean others on the next one, so they name none. */
static void
cm_forget_connection(void)
{
	struct cm_channel *c;

	for (c = cm_channels; c != NULL; c = c->next)
		c->slot = RING_NONE;
	if (connection >= 0)
		close(connection);
	connection = -1;
}

static int
cm_exchange(enum ring_request_code code, struct ring_request *req, size_t size,
	struct ring_reply *reply, int *fd)
{
	int rc = polca_socket_ask(connection, code, req, size, reply, fd);

	/* polca has ended: it may be back when the next channel is opened */
	if (rc == EIO)
		cm_forget_connection();
	return rc;
}

/* --- channels --- */

static struct cm_channel *
cm_channel_of(int fd)
{
	struct cm_channel *c;

	for (c = cm_channels; c != NULL && c->fd != fd; c = c->next)
		;
	return c;
}

static int
cm_ask_channel(struct ring_reply *reply, int *fd)
{
	struct ring_request req = { 0 };
	int rc = connection < 0 ? cm_connect_polca() : 0;

	return rc != 0 ? rc : cm_exchange(RING_CM_CHANNEL_OPEN, &req, 0, reply, fd);
}

/* @return errno value */
static int
cm_channel_open(int *fd)
{
	struct cm_channel *c = calloc(1, sizeof(*c));
	struct ring_reply reply;
	int rc;

	if (c == NULL)
		return ENOMEM;
	rc = cm_ask_channel(&reply, &c->fd);
	if (rc == EIO) /* the connection was to a polca that has ended: there may be a new one */
		rc = cm_ask_channel(&reply, &c->fd);
	if (rc == 0 && c->fd < 0) /* the reply came without one */
		rc = EPROTO;
	if (rc != 0) {
		free(c);
		return rc;
	}
	c->slot = reply.slot.slot;
	c->serial = ++last_serial;
	c->next = cm_channels;
	cm_channels = c;
	*fd = c->fd;
	return 0;
}

/* In the place of open(2), for librdmacm. */
static int
cm_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	int fd = -1, rc;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (strcmp(path, RDMACM_NODE) != 0)
		return open(path, flags, mode);
	pthread_mutex_lock(&lock);
	rc = cm_channel_open(&fd);
	pthread_mutex_unlock(&lock);
	if (rc == 0)
		return fd;
	fprintf(stderr, "polca: cannot open an event channel over %s: %s\n", polca_path,
		strerror(rc));
	errno = rc;
	return -1;
}

/* In the place of fstat(2): librdmacm looks whether it has got a character device. */
static int
cm_fstat(int fd, struct stat *st)
{
	int rc = fstat(fd, st);

	pthread_mutex_lock(&lock);
	if (rc == 0 && cm_channel_of(fd) != NULL)
		st->st_mode = S_IFCHR | (st->st_mode & 07777);
	pthread_mutex_unlock(&lock);
	return rc;
}

/* In the place of close(2). */
static int
cm_close(int fd)
{
	struct ring_request req = { 0 };
	struct cm_channel **p, *c;
	struct ring_reply reply;

	pthread_mutex_lock(&lock);
	for (p = &cm_channels; *p != NULL && (*p)->fd != fd; p = &(*p)->next)
		;
	c = *p;
	if (c != NULL) {
		*p = c->next;
		req.slot.slot = c->slot;
		if (c->slot != RING_NONE)
			cm_exchange(RING_CM_CHANNEL_CLOSE, &req, sizeof(req.slot), &reply, NULL);
		free(c);
	}
	pthread_mutex_unlock(&lock);
	return close(fd);
}

/* --- commands --- */

/* Where the library wants the response: each command has the pointer in its own place. */
static void *
cm_response(uint32_t command, const void *body)
{
	const struct rdma_ucm_create_id *create = body;
	const uint64_t *first = body;

	switch (command) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		return (void *)(uintptr_t)create->response;
	case RDMA_USER_CM_CMD_DESTROY_ID:
	case RDMA_USER_CM_CMD_QUERY_ROUTE:
	case RDMA_USER_CM_CMD_QUERY:
	case RDMA_USER_CM_CMD_INIT_QP_ATTR:
	case RDMA_USER_CM_CMD_GET_EVENT:
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		return (void *)(uintptr_t)*first;
	default:
		return NULL;
	}
}

/* The command, and behind it the value that an option's pointer leads to. @return errno value */
static int
cm_copy_command(struct ring_cm_command *to, const void *buf, size_t count)
{
	const struct rdma_ucm_cmd_hdr *header = buf;
	const struct rdma_ucm_set_option *option = (const void *)(header + 1);

	if (count < sizeof(*header) || count > sizeof(to->bytes))
		return EINVAL;
	memcpy(to->bytes, buf, count);
	to->length = (uint32_t)count;
	if (header->cmd != RDMA_USER_CM_CMD_SET_OPTION)
		return 0;
	if (count < sizeof(*header) + sizeof(*option) || option->optlen > sizeof(to->bytes) - count)
		return EINVAL;
	memcpy(to->bytes + count, (const void *)(uintptr_t)option->optval, option->optlen);
	to->length += option->optlen;
	return 0;
}

/* @return errno value */
static int
cm_command(int fd, const void *buf, size_t count)
{
	const struct rdma_ucm_cmd_hdr *header = buf;
	const struct rdma_ucm_migrate_id *migrate = (const void *)(header + 1);
	const struct cm_channel *c, *from = NULL;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	void *response;
	size_t size;
	int rc;

	rc = cm_copy_command(&req.cm, buf, count);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&lock);
	c = cm_channel_of(fd);
	if (header->cmd == RDMA_USER_CM_CMD_MIGRATE_ID &&
		count >= sizeof(*header) + sizeof(*migrate))
		from = cm_channel_of((int)migrate->fd);
	req.cm.channel = c != NULL ? c->slot : RING_NONE;
	req.cm.from = from != NULL ? from->slot : RING_NONE;
	if (req.cm.channel == RING_NONE || (from != NULL && from->slot == RING_NONE))
		rc = ENODEV;
	else
		rc = cm_exchange(RING_CM_COMMAND, &req, sizeof(req.cm), &reply, NULL);
	pthread_mutex_unlock(&lock);
	if (rc != 0)
		return rc;
	response = cm_response(header->cmd, header + 1);
	size = reply.cm.length < header->out ? reply.cm.length : header->out;
	if (response != NULL && size <= sizeof(reply.cm.bytes))
		memcpy(response, reply.cm.bytes, size);
	return 0;
}

/* @return 0: it is no channel */
static uint64_t
cm_serial(int fd)
{
	const struct cm_channel *c;
	uint64_t serial;

	pthread_mutex_lock(&lock);
	c = cm_channel_of(fd);
	serial = c != NULL ? c->serial : 0;
	pthread_mutex_unlock(&lock);
	return serial;
}

/*
 * Wait until the channel has an event, unless it is nonblocking. A thread whose channel another one
 * closes goes on waiting, as in the kernel: rping ends its process meanwhile. @return errno value
 */
static int
cm_wait(int fd, uint64_t serial)
{
	char ready;
	ssize_t n = recv(fd, &ready, sizeof(ready), MSG_PEEK);

	if (n > 0)
		return 0;
	if (n < 0)
		return errno;
	if (cm_serial(fd) == serial)
		return ENODEV; /* polca has ended */
	pause();
	return EINTR;
}

/* In the place of write(2). GET_EVENT waits for an event. */
static ssize_t
cm_write(int fd, const void *buf, size_t count)
{
	const struct rdma_ucm_cmd_hdr *header = buf;
	uint64_t serial = cm_serial(fd);
	int rc;

	if (serial == 0)
		return write(fd, buf, count);
	for (;;) {
		rc = cm_command(fd, buf, count);
		if (rc == 0)
			return (ssize_t)count;
		if (rc == EAGAIN && header->cmd == RDMA_USER_CM_CMD_GET_EVENT)
			rc = cm_wait(fd, serial);
		if (rc == 0)
			continue;
		errno = rc;
		return -1;
	}
}

/* --- fork: the connection and its channels stay the parent's --- */

static void
cm_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
cm_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
cm_fork_child(void)
{
	cm_forget_connection();
	pthread_mutex_unlock(&lock);
}

static void __attribute__((constructor(FORK_ORDER_CM))) cm_watch_forks(void)
{
	pthread_atfork(cm_fork_prepare, cm_fork_parent, cm_fork_child);
}

/* --- redirection --- */

static void
cm_redirect(void)
{
	imports_redirect("librdmacm.so", "open", (void (*)(void))cm_open);
	imports_redirect("librdmacm.so", "fstat", (void (*)(void))cm_fstat);
	imports_redirect("librdmacm.so", "close", (void (*)(void))cm_close);
	imports_redirect("librdmacm.so", "write", (void (*)(void))cm_write);
}

/* In the place of opendir(3), for libibverbs: librdmacm may be loaded between two device lists. */
static DIR *
cm_opendir(const char *name)
{
	cm_redirect();
	return opendir(name);
}

void
rdmacm_redirect(const char *socket)
{
	pthread_mutex_lock(&lock);
	if (polca_path[0] == '\0')
		snprintf(polca_path, sizeof(polca_path), "%s", socket);
	pthread_mutex_unlock(&lock);
	cm_redirect();
	imports_redirect("libibverbs.so", "opendir", (void (*)(void))cm_opendir);
}
