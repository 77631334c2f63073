/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/event_log.h"
#include "ctl/limit_lines.h"
#include "ctl/listener.h"
#include "ctl/rpc.h"

#define ACCEPTS_A_TURN 64
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

/* A socket that clients connect to. */
struct ctl_door {
	struct listener listener;
	struct event *event;
	bool read_only;
	bool new_clients;
};

struct ctl {
	struct ctl_limits limits;
	struct event_base *base; /* the engine's */
	struct ctl_door control, monitor;
	struct event *timer; /* ends the wait of ctl_run_once() */
	LIST_HEAD(, client) clients;
	unsigned int num_clients;
	enum client_want want; /* the most urgent of all clients */
	uint64_t until; /* the earliest time at which a waiting call must be run */
	struct rpc_state state;
};

static void
on_connection(evutil_socket_t fd, short events, void *door)
{
	struct ctl_door *d = door;

	(void)fd;
	(void)events;
	d->new_clients = true;
}

static void
on_timer(evutil_socket_t fd, short events, void *ctl)
{
	(void)fd;
	(void)events;
	(void)ctl;
}

static int
open_door(struct ctl *c, struct ctl_door *d, const char *key, const char *path, struct error *err)
{
	int rc = listener_open(&d->listener, key, path, SOCK_STREAM, err);

	if (rc != 0)
		return rc;
	d->event = event_new(c->base, d->listener.fd, EV_READ | EV_PERSIST, on_connection, d);
	if (d->event != NULL && event_add(d->event, NULL) == 0)
		return 0;
	return error_set(err, ENOMEM, "control socket: out of memory");
}

static void
close_door(struct ctl_door *d)
{
	if (d->event != NULL)
		event_free(d->event);
	listener_close(&d->listener);
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
	struct ctl *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		error_set(err, ENOMEM, "control socket: out of memory");
		return NULL;
	}
	c->limits = *limits;
	LIST_INIT(&c->clients);
	c->base = engine_event_base(e);
	c->control.listener.fd = c->monitor.listener.fd = -1;
	if (open_door(c, &c->control, "control.socket", socket_path, err) != 0)
		goto fail;
	c->timer = evtimer_new(c->base, on_timer, c);
	if (c->timer == NULL || rpc_state_init(&c->state, e) != 0) {
		error_set(err, ENOMEM, "control socket: out of memory");
		goto fail;
	}
	return c;
fail:
	ctl_destroy(c);
	return NULL;
}

int
ctl_admit(struct ctl *c, gid_t group, mode_t mode, struct error *err)
{
	return listener_admit(&c->control.listener, group, mode, err);
}

int
ctl_monitor(struct ctl *c, const char *socket_path, gid_t group, struct error *err)
{
	int rc = open_door(c, &c->monitor, "control.monitor", socket_path, err);

	c->monitor.read_only = true;
	if (rc != 0)
		return rc;
	return listener_admit(&c->monitor.listener, group, group == (gid_t)-1 ? 0600 : 0660, err);
}

void
ctl_reload(struct ctl *c, config_reload_fn fn, void *arg)
{
	c->state.reload = fn;
	c->state.reload_arg = arg;
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
	if (c->timer != NULL)
		event_free(c->timer);
	close_door(&c->control);
	close_door(&c->monitor);
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
accept_some(struct ctl *c, struct ctl_door *d, uint64_t now)
{
	struct client *cl;
	unsigned int i;
	int fd;

	if (!d->new_clients)
		return;
	d->new_clients = false;
	for (i = 0; i < ACCEPTS_A_TURN; i++) {
		fd = listener_accept(&d->listener);
		if (fd < 0)
			return;
		cl = client_create(fd, c->base, &c->limits, now);
		if (cl == NULL) {
			close(fd);
		} else if (!peer_allowed(&d->listener, fd)) {
			turn_client_away(cl, c, "only root and the server's own user may connect",
				now);
		} else if (!make_reply_room(c, now)) {
			ctl_log_limit(&c->state, cl, "a connection",
				"there are as many clients as the sockets take", now);
			turn_client_away(cl, c, "too many clients: close one that is not needed",
				now);
		} else {
			cl->read_only = d->read_only;
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
	c->until = UINT64_MAX;
	for (cl = LIST_FIRST(&c->clients); cl != NULL; cl = next) {
		next = LIST_NEXT(cl, link);
		want = client_run(cl, &c->state, now);
		if (want == CLIENT_WAITS && cl->call->until < c->until)
			c->until = cl->call->until;
		if (want == CLIENT_CLOSE)
			drop_client(c, cl);
		else if (want > c->want)
			c->want = want;
	}
	/* what they wait for may have changed before the engine knew that they wait */
	if (c->want == CLIENT_WAITS && engine_await(c->state.engine))
		c->want = CLIENT_NOW;
}

static int
wait_ms(const struct ctl *c, int timeout_ms)
{
	uint64_t now = monotonic_ms(), wait = DEADLINE_MS;

	if (c->want == CLIENT_NOW || c->until <= now)
		return 0;
	if (c->num_clients == 0)
		return timeout_ms;
	if (c->until - now < wait)
		wait = c->until - now;
	return timeout_ms < 0 || (int)wait < timeout_ms ? (int)wait : timeout_ms;
}

int
ctl_run_once(struct ctl *c, int timeout_ms)
{
	int wait = wait_ms(c, timeout_ms);
	struct timeval tv = { wait / 1000, wait % 1000 * 1000 };
	uint64_t now;

	if (wait > 0)
		evtimer_add(c->timer, &tv);
	if (event_base_loop(c->base, EVLOOP_ONCE | (wait == 0 ? EVLOOP_NONBLOCK : 0)) < 0)
		return -EIO;
	evtimer_del(c->timer);
	now = monotonic_ms();
	/* after the events: accepting may close a client that one of them was for */
	accept_some(c, &c->control, now);
	accept_some(c, &c->monitor, now);
	if (c->want == CLIENT_WAITS)
		engine_await(c->state.engine);
	event_log_fill(c->state.events, c->state.engine);
	run_clients(c, now);
	return 0;
}
