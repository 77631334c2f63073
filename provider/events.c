/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Events. Polca writes them to a pipe, with the cookie of the object that they are about;
 * libibverbs reads them, and takes the cookie for the object's address. That read is redirected:
 * it looks the cookie up, counts the event, and passes over those of objects that are gone. So an
 * object can be destroyed at any time, and its end waits until the program has acknowledged what
 * it got, as libibverbs promises.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "channel.h"
#include "provider.h"

union event {
	uint64_t cookie; /* of both */
	struct ring_completion_event completion;
	struct ring_async_event async;
};

static size_t
event_size(bool is_async)
{
	return is_async ? sizeof(struct ring_async_event) : sizeof(struct ring_completion_event);
}

/* False: the event is about the device or its port. */
static bool
event_names_object(const union event *ev, bool is_async)
{
	if (!is_async)
		return true;
	switch (ev->async.type) {
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return false;
	default:
		return true;
	}
}

/* --- objects --- */

static struct polca_object **
object_list(struct polca_context *c, uint64_t cookie)
{
	return &c->objects[cookie % POLCA_OBJECT_LISTS];
}

void
object_begin(struct polca_context *c, struct polca_object *o, void *ibv, int back)
{
	o->cookie = __atomic_add_fetch(&c->last_cookie, 1, __ATOMIC_RELAXED);
	o->ibv = ibv;
	o->back = back;
}

void
object_add(struct polca_context *c, struct polca_object *o)
{
	struct polca_object **list = object_list(c, o->cookie);

	pthread_mutex_lock(&c->objects_lock);
	o->next = *list;
	*list = o;
	pthread_mutex_unlock(&c->objects_lock);
}

/* Count the event, and name its object as the program knows it. @return false: it is gone */
static bool
event_deliver(struct polca_context *c, union event *ev, bool is_async)
{
	struct polca_object *o;

	pthread_mutex_lock(&c->objects_lock);
	o = *object_list(c, ev->cookie);
	while (o != NULL && o->cookie != ev->cookie)
		o = o->next;
	if (o != NULL) {
		if (is_async)
			o->async_events++;
		else
			o->events++;
		ev->cookie = (uintptr_t)o->ibv;
	}
	pthread_mutex_unlock(&c->objects_lock);
	return o != NULL;
}

ssize_t
event_read(int fd, void *buf, size_t count)
{
	bool is_async;
	struct polca_context *c = channel_context(fd, &is_async);
	size_t size = event_size(is_async);
	union event ev;
	ssize_t n;

	if (c == NULL || count != size)
		return read(fd, buf, count);
	do {
		n = read(fd, &ev, size);
		if (n != (ssize_t)size)
			return n;
	} while (event_names_object(&ev, is_async) && !event_deliver(c, &ev, is_async));
	memcpy(buf, &ev, size);
	return n;
}

/* --- the end of an object --- */

/* Write back what was taken out of a pipe, without the events that have this cookie. */
static void
events_put_back(int from, int to, bool is_async, uint64_t cookie)
{
	size_t size = event_size(is_async);
	union event ev;

	while (read(from, &ev, size) == (ssize_t)size) {
		ssize_t n;

		if (event_names_object(&ev, is_async) && ev.cookie == cookie)
			continue;
		n = write(to, &ev, size);
		(void)n; /* there was room for it */
	}
}

/*
 * Take an object's events out of a pipe, which else would be readable and have nothing for the
 * program. Without waiting, whatever the flags of the program's descriptor are: by splice().
 */
static void
events_purge(int fd, int back, bool is_async, uint64_t cookie)
{
	int waiting = 0, own[2];

	if (fd < 0 || back < 0 || ioctl(fd, FIONREAD, &waiting) != 0 || waiting == 0)
		return;
	if (pipe2(own, O_CLOEXEC | O_NONBLOCK) != 0)
		return;
	if (splice(fd, NULL, own[1], NULL, (size_t)waiting, SPLICE_F_NONBLOCK) > 0)
		events_put_back(own[0], back, is_async, cookie);
	close(own[0]);
	close(own[1]);
}

void
object_remove(struct polca_context *c, const struct polca_object *gone, int channel_fd)
{
	struct polca_object **o = object_list(c, gone->cookie);

	pthread_mutex_lock(&c->objects_lock);
	while (*o != gone)
		o = &(*o)->next;
	*o = gone->next;
	events_purge(channel_fd, gone->back, false, gone->cookie);
	events_purge(c->verbs.context.async_fd, c->event_back, true, gone->cookie);
	pthread_mutex_unlock(&c->objects_lock);
}

void
events_wait(pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *acknowledged,
	uint32_t got)
{
	pthread_mutex_lock(mutex);
	while (*acknowledged != got)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

/* --- without polca --- */

void
event_wake(const struct polca_object *cq)
{
	const struct ring_completion_event event = { cq->cookie };
	ssize_t n;

	if (cq->back < 0)
		return;
	n = write(cq->back, &event, sizeof(event));
	(void)n; /* a full pipe wakes, too */
}

void
event_wake_all(struct polca_context *c)
{
	const struct polca_object *o;

	pthread_mutex_lock(&c->objects_lock);
	for (unsigned int i = 0; i < POLCA_OBJECT_LISTS; i++)
		for (o = c->objects[i]; o != NULL; o = o->next)
			event_wake(o);
	pthread_mutex_unlock(&c->objects_lock);
}

void
event_fatal(struct polca_context *c)
{
	const struct ring_async_event event = { .type = IBV_EVENT_DEVICE_FATAL };
	ssize_t n = write(c->event_back, &event, sizeof(event));

	(void)n;
	pthread_mutex_lock(&c->objects_lock);
	close(c->event_back);
	c->event_back = -1;
	pthread_mutex_unlock(&c->objects_lock);
}
