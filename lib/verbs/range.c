/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/*
 * Regions of shared memory that a program names by its addresses. The program can make whoever
 * looks at its mappings wait (mem/process_range.h): a thread does it, and the request is answered
 * when it has ended, or at a deadline, which ends the connection.
 *
 * Whose addresses they are: the kernel says with each message the number of the process that sends
 * it. The directory of /proc that is opened at HELLO stays that of one process. A later message
 * from a process of this number is of that very process, if it still lives when the directory is
 * used: two living processes have not the same number.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/apart.h"
#include "mem/process_range.h"
#include "verbs/private.h"

struct timeval verbs_range_deadline = { 10, 0 };

struct verbs_range {
	unsigned int users; /* atomic: the thread, and the session */
	struct apart *apart;
	struct event *event; /* .done is readable, or the deadline is reached */
	int done; /* the thread has ended */
	bool late; /* the deadline is reached */
	int process;
	uid_t uid;
	struct ring_mr ask;
	/* what the thread finds */
	int fd; /* or -errno, and why */
	uint64_t offset;
	struct error err;
};

void
verbs_range_prepare(struct verbs_session *session)
{
	char byte;

	if (process_range_permitted(NULL))
		session->process = process_directory_open(session->pid);
	/* what has been sent before may be of another process that had the number */
	if (session->process >= 0 &&
		(recv(session->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)) {
		close(session->process);
		session->process = -1;
	}
}

static void
range_leave(struct verbs_range *range)
{
	if (__atomic_sub_fetch(&range->users, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (range->fd >= 0)
		close(range->fd);
	if (range->process >= 0)
		close(range->process);
	if (range->done >= 0)
		close(range->done);
	free(range);
}

static void
range_find(void *arg)
{
	struct verbs_range *range = arg;

	range->fd = process_range_file(range->process, range->uid, range->ask.addr,
		range->ask.length, &range->offset, &range->err);
	eventfd_write(range->done, 1);
	range_leave(range);
}

/* @return what the session gave up: range_leave() is due */
static struct verbs_range *
range_detach(struct verbs_session *session)
{
	struct verbs_range *range = session->range;

	session->range = NULL;
	event_free(range->event);
	return range;
}

static void
range_ready(evutil_socket_t fd, short events, void *arg)
{
	struct verbs_session *session = arg;

	(void)fd;
	session->range->late = (events & EV_READ) == 0;
	session->answer_later(session);
}

static int
range_check(const struct verbs_session *session, struct error *err)
{
	if (!process_range_permitted(err))
		return -EPERM;
	if (session->process < 0)
		return error_set(err, EPERM,
			"addr: process %d was not to be seen at HELLO, or did not wait for its answer",
			(int)session->pid);
	if (session->sender != session->pid)
		return error_set(err, EPERM,
			"addr: process %d has opened the device, and process %d asks",
			(int)session->pid, (int)session->sender);
	return 0;
}

static bool
range_start(struct verbs_range *range, struct verbs_session *session)
{
	range->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	range->process = fcntl(session->process, F_DUPFD_CLOEXEC, 0);
	if (range->done < 0 || range->process < 0)
		return false;
	range->event = event_new(engine_event_base(session->server->engine), range->done, EV_READ,
		range_ready, session);
	if (range->event == NULL || event_add(range->event, &verbs_range_deadline) != 0)
		return false;
	range->users++;
	range->apart = apart_begin(range_find, range);
	if (range->apart != NULL)
		return true;
	range->users--;
	return false;
}

int
verbs_range_begin(struct verbs_session *session, const struct ring_mr *mr, struct error *err)
{
	struct verbs_range *range;
	int rc = range_check(session, err);

	if (rc != 0)
		return rc;
	range = calloc(1, sizeof(*range));
	if (range == NULL)
		return error_set(err, ENOMEM, "addr: out of memory");
	range->users = 1;
	range->uid = session->uid;
	range->ask = *mr;
	range->fd = range->process = range->done = -1;
	if (range_start(range, session)) {
		session->range = range;
		return 0;
	}
	if (range->event != NULL)
		event_free(range->event);
	range_leave(range);
	return error_set(err, ENOMEM, "addr: no thread to look at the program's mappings");
}

void
verbs_range_end(struct verbs_session *session)
{
	struct verbs_range *range;

	if (session->range == NULL)
		return;
	range = range_detach(session);
	verbs_closing_keep(session->server, session->uid, range->apart);
	range_leave(range);
}

int
verbs_range_take(struct verbs_session *session, struct ring_mr_reply *reply, struct error *err)
{
	struct verbs_range *range = session->range;
	struct ring_mr mr = range->ask;
	int rc;

	if (range->late) {
		verbs_range_end(session);
		return error_set(err, ETIMEDOUT,
			"addr: the program's mappings cannot be read for %d s",
			(int)verbs_range_deadline.tv_sec);
	}
	range_detach(session);
	apart_forget(range->apart);
	rc = range->fd;
	*err = range->err;
	mr.addr = range->offset;
	if (rc >= 0)
		rc = engine_client_mr_share(session->client, &mr, range->fd, reply, err);
	range_leave(range);
	return rc;
}
