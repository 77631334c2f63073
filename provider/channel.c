/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Completion channels. A provider has no operation for them: libibverbs writes a command to the
 * device. That call is redirected, for libibverbs alone; polca makes a pipe, whose reading end is
 * the channel. Writes to other devices pass through. The channel's end is a close(), redirected
 * likewise.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channel.h"
#include "fork_order.h"
#include "imports.h"

static struct polca_context *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

/* Which slot a channel's descriptor has. A descriptor that is closed and used again is new here. */
struct channel {
	struct channel *next;
	struct polca_context *context;
	int fd;
	int back; /* writing end of its pipe */
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

static void
close_once(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* With the lock, which fork() takes: a child closes none that is closed already. */
static void
context_close_descriptors(struct polca_context *c)
{
	close_once(&c->socket);
	close_once(&c->mirror_fd);
	close_once(&c->wake_fd);
	close_once(&c->event_back);
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
	context_close_descriptors(c);
	while ((gone = *ch) != NULL) {
		if (gone->context != c) {
			ch = &gone->next;
			continue;
		}
		*ch = gone->next;
		close(gone->back);
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

		if (!polca_is_dead(c) && strcmp(other->socket, device->socket) == 0)
			fd = c->mirror_fd;
	}
	pthread_mutex_unlock(&contexts_lock);
	return fd;
}

int
contexts_each(int (*call)(struct polca_context *c, void *arg), void *arg)
{
	struct polca_context *c;
	int rc = 0;

	pthread_mutex_lock(&contexts_lock);
	for (c = contexts; c != NULL && rc == 0; c = c->next)
		rc = call(c, arg);
	pthread_mutex_unlock(&contexts_lock);
	return rc;
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

/*
 * The socket stands for the program's life, the mirror for its memory, and the writing ends of the
 * pipes for polca: a child that outlives its parent must hold none of them. What the program itself
 * reads, events and channels, stays open until the child closes it.
 */
static void
contexts_fork_child(void)
{
	struct polca_context *c;
	struct channel *ch;

	for (c = contexts; c != NULL; c = c->next) {
		context_close_descriptors(c);
		c->segment = NULL; /* not mapped here: MADV_DONTFORK */
	}
	contexts = NULL;
	while ((ch = channels) != NULL) {
		channels = ch->next;
		close_once(&ch->back);
		free(ch);
	}
	pthread_mutex_unlock(&contexts_lock);
}

static void __attribute__((constructor(FORK_ORDER_CONTEXTS))) contexts_watch_forks(void)
{
	pthread_atfork(contexts_fork_prepare, contexts_fork_parent, contexts_fork_child);
}

uint32_t
channel_slot(struct polca_context *c, int fd, int *back)
{
	uint32_t slot = RING_NONE;
	struct channel *ch;

	pthread_mutex_lock(&contexts_lock);
	for (ch = channels; ch != NULL; ch = ch->next) {
		if (ch->context != c || ch->fd != fd)
			continue;
		slot = ch->slot;
		*back = ch->back;
	}
	pthread_mutex_unlock(&contexts_lock);
	return slot;
}

struct polca_context *
channel_context(int fd, bool *is_async)
{
	struct polca_context *c;
	struct channel *ch;

	pthread_mutex_lock(&contexts_lock);
	for (c = contexts; c != NULL && c->verbs.context.async_fd != fd; c = c->next)
		;
	*is_async = c != NULL;
	for (ch = channels; ch != NULL && c == NULL; ch = ch->next)
		if (ch->fd == fd)
			c = ch->context;
	pthread_mutex_unlock(&contexts_lock);
	return c;
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
channel_note(struct polca_context *c, const int fds[RING_CHANNEL_FDS], uint32_t slot)
{
	int fd = fds[0];
	struct channel *ch, *same = NULL;

	pthread_mutex_lock(&contexts_lock);
	for (ch = channels; ch != NULL; ch = ch->next)
		if (ch->fd == fd)
			same = ch;
	if (same == NULL) {
		same = calloc(1, sizeof(*same));
		if (same != NULL) {
			same->next = channels;
			same->back = -1;
			channels = same;
		}
	}
	if (same != NULL) {
		if (same->back >= 0) /* the program has closed its descriptor itself */
			close(same->back);
		same->context = c;
		same->fd = fd;
		same->back = fds[1];
		same->slot = slot;
	} else {
		close(fds[1]);
	}
	pthread_mutex_unlock(&contexts_lock);
}

/* In the place of close(2), for libibverbs: a channel's other end goes with it. */
static int
channel_close(int fd)
{
	struct channel **ch = &channels, *gone;

	pthread_mutex_lock(&contexts_lock);
	while (*ch != NULL && (*ch)->fd != fd)
		ch = &(*ch)->next;
	gone = *ch;
	if (gone != NULL) {
		*ch = gone->next;
		close(gone->back);
		free(gone);
	}
	pthread_mutex_unlock(&contexts_lock);
	return close(fd);
}

static int
channel_create(struct polca_context *c, const struct ib_uverbs_create_comp_channel *cmd)
{
	struct ib_uverbs_create_comp_channel_resp *resp =
		(struct ib_uverbs_create_comp_channel_resp *)(uintptr_t)cmd->response;
	struct ring_request req = { 0 };
	struct ring_reply reply;
	int fds[RING_CHANNEL_FDS], rc;

	rc = polca_call(c, RING_CHANNEL_CREATE, &req, 0, &reply, fds);
	if (rc != 0)
		return rc;
	if (fds[0] < 0 || fds[1] < 0) { /* the first, if there is only one */
		if (fds[0] >= 0)
			close(fds[0]);
		return EPROTO;
	}
	channel_note(c, fds, reply.slot.slot);
	resp->fd = (uint32_t)fds[0];
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

static void
channel_redirect_once(void)
{
	imports_redirect("libibverbs.so", "write", (void (*)(void))channel_write);
	imports_redirect("libibverbs.so", "read", (void (*)(void))event_read);
	imports_redirect("libibverbs.so", "close", (void (*)(void))channel_close);
}

void
channel_redirect(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, channel_redirect_once);
}
