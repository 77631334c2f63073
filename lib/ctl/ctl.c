/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/event_log.h"
#include "ctl/listener.h"
#include "ctl/rpc.h"

#define EVENTS_MAX     64 /* sockets served in a turn */
#define ACCEPTS_A_TURN 64
#define WAIT_STEP_MS   1 /* a waiting call looks again so often */
#define DEADLINE_MS    500 /* deadlines of clients are minded so often */

const struct ctl_limits ctl_limits_default = {
	.max_clients = 256,
	.evict_ms = 30000,
	.max_request = 1 << 20,
	.max_reply = 4 << 20,
	.out_high = 256 << 10,
	.half_request_ms = 30000,
	.stall_ms = 10000,
};

struct ctl {
	struct ctl_limits limits;
	struct listener listener;
	int epoll_fd;
	LIST_HEAD(, client) clients;
	unsigned int num_clients;
	enum client_want want; /* the most urgent of all clients */
	struct rpc_state state;
	struct {
		void (*run)(void *arg);
		void *arg;
	} other; /* ctl_wait_for() */
};

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

struct ctl *
ctl_create(struct engine *e, const char *socket_path, struct error *err)
{
	return ctl_create_limited(e, socket_path, &ctl_limits_default, err);
}

struct ctl *
ctl_create_limited(struct engine *e, const char *socket_path, const struct ctl_limits *limits,
	struct error *err)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ctl *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		error_set(err, ENOMEM, "control socket: out of memory");
		return NULL;
	}
	c->limits = *limits;
	LIST_INIT(&c->clients);
	c->epoll_fd = -1;
	if (listener_open(&c->listener, socket_path, err) != 0)
		goto fail;
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (c->epoll_fd < 0 || epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->listener.fd, &ev) != 0 ||
		rpc_state_init(&c->state, e) != 0) {
		error_set(err, ENOMEM, "control socket: no epoll descriptor or no memory");
		goto fail;
	}
	return c;
fail:
	ctl_destroy(c);
	return NULL;
}

int
ctl_wait_for(struct ctl *c, int fd, void (*run)(void *arg), void *arg, struct error *err)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &c->other };

	c->other.run = run;
	c->other.arg = arg;
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	return error_set(err, errno, "control socket: cannot wait for other sockets");
}

static void
drop_client(struct ctl *c, struct client *cl)
{
	LIST_REMOVE(cl, link);
	c->num_clients--;
	client_destroy(cl);
}

void
ctl_destroy(struct ctl *c)
{
	struct client *cl;

	if (c == NULL)
		return;
	while ((cl = LIST_FIRST(&c->clients)) != NULL)
		drop_client(c, cl);
	listener_close(&c->listener);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	rpc_state_fini(&c->state);
	free(c);
}

/* Room for one more: the client that has been idle for longest goes, if that is long enough. */
static bool
make_reply_room(struct ctl *c, uint64_t now)
{
	struct client *cl, *oldest = NULL;

	if (c->num_clients < c->limits.max_clients)
		return true;
	LIST_FOREACH(cl, &c->clients, link)
		if (cl->call == NULL && (oldest == NULL || cl->active < oldest->active))
			oldest = cl;
	if (oldest == NULL || now - oldest->active < c->limits.evict_ms)
		return false;
	drop_client(c, oldest);
	return true;
}

/* A client that may not stay is told why, as far as its socket takes it at once. */
static void
turn_client_away(struct client *cl, struct ctl *c, const char *text, uint64_t now)
{
	client_refuse(cl, RPC_INVALID_REQUEST, text);
	client_run(cl, &c->state, now);
	client_destroy(cl);
}

static void
accept_some(struct ctl *c, uint64_t now)
{
	struct client *cl;
	unsigned int i;
	int fd;

	for (i = 0; i < ACCEPTS_A_TURN; i++) {
		fd = listener_accept(&c->listener);
		if (fd < 0)
			return;
		cl = client_create(fd, c->epoll_fd, &c->limits, now);
		if (cl == NULL) {
			close(fd);
		} else if (!peer_allowed(fd)) {
			turn_client_away(cl, c, "only root and the server's own user may connect",
				now);
		} else if (!make_reply_room(c, now)) {
			turn_client_away(cl, c, "too many clients: close one that is not needed",
				now);
		} else {
			LIST_INSERT_HEAD(&c->clients, cl, link);
			c->num_clients++;
		}
	}
}

static void
run_clients(struct ctl *c, uint64_t now)
{
	struct client *cl, *next;
	enum client_want want;

	c->want = CLIENT_IDLE;
	for (cl = LIST_FIRST(&c->clients); cl != NULL; cl = next) {
		next = LIST_NEXT(cl, link);
		want = client_run(cl, &c->state, now);
		if (want == CLIENT_CLOSE)
			drop_client(c, cl);
		else if (want > c->want)
			c->want = want;
	}
}

static int
wait_ms(const struct ctl *c, int timeout_ms)
{
	int limit = -1;

	if (c->want == CLIENT_NOW)
		return 0;
	if (c->want == CLIENT_SOON)
		limit = WAIT_STEP_MS;
	else if (c->num_clients > 0)
		limit = DEADLINE_MS;
	if (limit < 0)
		return timeout_ms;
	return timeout_ms < 0 || limit < timeout_ms ? limit : timeout_ms;
}

int
ctl_run_once(struct ctl *c, int timeout_ms)
{
	struct epoll_event ev[EVENTS_MAX];
	bool new_clients = false;
	uint64_t now;
	int i, n;

	n = epoll_wait(c->epoll_fd, ev, EVENTS_MAX, wait_ms(c, timeout_ms));
	if (n < 0 && errno != EINTR)
		return -errno;
	now = now_ms();
	for (i = 0; i < n; i++) {
		if (ev[i].data.ptr == NULL)
			new_clients = true;
		else if (ev[i].data.ptr == &c->other)
			c->other.run(c->other.arg);
		else
			client_event(ev[i].data.ptr, ev[i].events, now);
	}
	/* after the events: accepting may close a client that one of them was for */
	if (new_clients)
		accept_some(c, now);
	event_log_fill(c->state.events, c->state.engine);
	run_clients(c, now);
	return 0;
}
