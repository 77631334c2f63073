/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion channels. A provider has no operation for them: libibverbs writes a command to the
 * device. That call is redirected, for libibverbs alone; polca makes a pipe, whose reading end is
 * the channel. Writes to other devices pass through.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channel.h"
#include "imports.h"

static struct polca_context *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

/* Which slot a channel's descriptor has. A descriptor that is closed and used again is new here. */
struct channel {
	struct channel *next;
	const struct polca_context *context;
	int fd;
	uint32_t slot;
};
static struct channel *channels;

void
contexts_add(struct polca_context *c)
{
	pthread_mutex_lock(&contexts_lock);
	c->next = contexts;
	contexts = c;
	pthread_mutex_unlock(&contexts_lock);
}

void
contexts_remove(struct polca_context *c)
{
	struct polca_context **p = &contexts;
	struct channel **ch = &channels, *gone;

	pthread_mutex_lock(&contexts_lock);
	while (*p != NULL && *p != c)
		p = &(*p)->next;
	if (*p != NULL)
		*p = c->next;
	while ((gone = *ch) != NULL) {
		if (gone->context != c) {
			ch = &gone->next;
			continue;
		}
		*ch = gone->next;
		free(gone);
	}
	pthread_mutex_unlock(&contexts_lock);
}

int
contexts_mirror(const struct polca_device *device)
{
	const struct polca_context *c;
	int fd = -1;

	pthread_mutex_lock(&contexts_lock);
	for (c = contexts; c != NULL && fd < 0; c = c->next) {
		const struct polca_device *other =
			(const struct polca_device *)(const void *)c->verbs.context.device;

		if (strcmp(other->socket, device->socket) == 0)
			fd = c->mirror_fd;
	}
	pthread_mutex_unlock(&contexts_lock);
	return fd;
}

static void
contexts_fork_prepare(void)
{
	pthread_mutex_lock(&contexts_lock);
}

static void
contexts_fork_parent(void)
{
	pthread_mutex_unlock(&contexts_lock);
}

/* The socket stands for the program's life: a child that outlives its parent must not hold it. */
static void
contexts_fork_child(void)
{
	struct polca_context *c;

	for (c = contexts; c != NULL; c = c->next) {
		close(c->socket);
		c->socket = -1;
	}
	contexts = NULL;
	pthread_mutex_unlock(&contexts_lock);
}

static void __attribute__((constructor)) contexts_watch_forks(void)
{
	pthread_atfork(contexts_fork_prepare, contexts_fork_parent, contexts_fork_child);
}

uint32_t
channel_slot(struct polca_context *c, int fd)
{
	uint32_t slot = RING_NONE;
	struct channel *ch;

	pthread_mutex_lock(&contexts_lock);
	for (ch = channels; ch != NULL; ch = ch->next)
		if (ch->context == c && ch->fd == fd)
			slot = ch->slot;
	pthread_mutex_unlock(&contexts_lock);
	return slot;
}

/* @return the device whose stand-in this descriptor is, or NULL */
static struct polca_context *
context_of_descriptor(int fd)
{
	struct polca_context *c;

	pthread_mutex_lock(&contexts_lock);
	for (c = contexts; c != NULL && c->cmd_fd != fd; c = c->next)
		;
	pthread_mutex_unlock(&contexts_lock);
	return c;
}

static void
channel_note(const struct polca_context *c, int fd, uint32_t slot)
{
	struct channel *ch, *same = NULL;

	pthread_mutex_lock(&contexts_lock);
	for (ch = channels; ch != NULL; ch = ch->next)
		if (ch->fd == fd)
			same = ch;
	if (same == NULL) {
		same = calloc(1, sizeof(*same));
		if (same != NULL) {
			same->next = channels;
			channels = same;
		}
	}
	if (same != NULL) {
		same->context = c;
		same->fd = fd;
		same->slot = slot;
	}
	pthread_mutex_unlock(&contexts_lock);
}

static int
channel_create(struct polca_context *c, const struct ib_uverbs_create_comp_channel *cmd)
{
	struct ib_uverbs_create_comp_channel_resp *resp =
		(struct ib_uverbs_create_comp_channel_resp *)(uintptr_t)cmd->response;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int fd = -1, rc;

	rc = polca_call(c, RING_CHANNEL_CREATE, &req, 0, &reply, &fd);
	if (rc == 0 && fd < 0)
		rc = EPROTO;
	if (rc != 0)
		return rc;
	channel_note(c, fd, reply.slot.slot);
	resp->fd = (uint32_t)fd;
	return 0;
}

/* In the place of write(2), for libibverbs. */
static ssize_t
channel_write(int fd, const void *buf, size_t count)
{
	const struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_create_comp_channel channel;
	} *cmd = buf;
	struct polca_context *c = context_of_descriptor(fd);
	int rc = ENOSYS;

	if (c == NULL)
		return write(fd, buf, count);
	if (count >= sizeof(*cmd) && cmd->header.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
		rc = channel_create(c, &cmd->channel);
	if (rc == 0)
		return (ssize_t)count;
	errno = rc;
	return -1;
}

void
channel_redirect(void)
{
	imports_redirect("libibverbs.so", "write", (void (*)(void))channel_write);
}
