/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>

#include "ctl/client.h"
#include "ctl/limit_lines.h"
#include "ctl/listener.h"
#include "ctl/metrics.h"
#include "ctl/metrics_http.h"

#define HEADERS_MAX 4096 /* bytes of a request */
#define TIMEOUT_S   5 /* a client that is silent for so long is closed */
/*
 * Events in the control thread's loop, of which each connection has one or two. Beyond this many,
 * new connections wait: local users cannot take the descriptors of the control socket.
 */
#define EVENTS_MAX    600
#define RETRY_S       1
#define LIMIT_LINE_MS 10000 /* a line at most once in so long */

struct metrics_http {
	struct engine *e;
	struct evhttp *http;
	struct evconnlistener *listener;
	struct event *retry;
	struct listener socket; /* Unix; .fd -1: TCP */
	struct limit_lines limit_lines;
};

static void
on_request(struct evhttp_request *req, void *server)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const struct metrics_http *m = server;
	struct evbuffer *out = evhttp_request_get_output_buffer(req);
	const char *query = evhttp_uri_get_query(uri);
	char *text;

	if (strcmp(evhttp_uri_get_path(uri), "/metrics") != 0) {
		evhttp_send_error(req, HTTP_NOTFOUND, "only /metrics is here");
		return;
	}
	text = metrics_text(m->e, query != NULL && strcmp(query, "qp=1") == 0);
	if (text == NULL || evbuffer_add(out, text, strlen(text)) != 0) {
		free(text);
		evhttp_send_error(req, HTTP_INTERNAL, "no memory");
		return;
	}
	free(text);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
		"text/plain; version=0.0.4; charset=utf-8");
	evhttp_send_reply(req, HTTP_OK, "OK", NULL);
}

static void
stop_accepting(struct metrics_http *m, const char *text)
{
	static const struct timeval wait = { .tv_sec = RETRY_S };

	limit_lines_log(&m->limit_lines, ctl_logtype, "metrics", -1, "new connections wait", text,
		monotonic_ms());
	evconnlistener_disable(m->listener);
	evtimer_add(m->retry, &wait);
}

/* Called for each connection that was accepted. NULL: evhttp makes its own bufferevent. */
static struct bufferevent *
on_accepted(struct event_base *base, void *server)
{
	if (event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) > EVENTS_MAX)
		stop_accepting(server, "there are as many as metrics.listen takes");
	return NULL;
}

/* No descriptor is left, for example. */
static void
on_accept_error(struct evconnlistener *listener, void *server)
{
	(void)listener;
	stop_accepting(server, strerror(EVUTIL_SOCKET_ERROR()));
}

static void
on_retry(evutil_socket_t fd, short events, void *server)
{
	struct metrics_http *m = server;

	(void)fd;
	(void)events;
	evconnlistener_enable(m->listener);
}

static int
http_listen(struct metrics_http *m, const char *listen, struct error *err)
{
	unsigned int flags = LEV_OPT_REUSEABLE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_CLOSE_ON_FREE;
	struct event_base *base = engine_event_base(m->e);
	struct sockaddr_storage addr;
	int len = sizeof(addr), ret;

	if (listen[0] != '/') {
		if (!metrics_http_loopback(listen, &addr, &len))
			return error_set(err, EINVAL,
				"metrics.listen: got \"%s\", allowed: " METRICS_LISTEN, listen);
		m->listener = evconnlistener_new_bind(base, NULL, NULL, flags, -1,
			(const struct sockaddr *)&addr, len);
		return m->listener != NULL
			? 0
			: error_set(err, errno, "metrics.listen: %s: %s", listen, strerror(errno));
	}
	ret = listener_open(&m->socket, "metrics.listen", listen, SOCK_STREAM, err);
	if (ret == 0)
		ret = listener_admit(&m->socket, (gid_t)-1, 0666, err);
	if (ret != 0)
		return ret;
	/* the descriptor stays the listener's, which removes the socket's name, too */
	m->listener = evconnlistener_new(base, NULL, NULL, flags & ~LEV_OPT_CLOSE_ON_FREE, 0,
		m->socket.fd);
	return m->listener != NULL ? 0 : -ENOMEM;
}

struct metrics_http *
metrics_http_create(struct engine *e, const char *listen, struct error *err)
{
	struct metrics_http *m = calloc(1, sizeof(*m));
	struct event_base *base = engine_event_base(e);

	if (m == NULL) {
		error_set(err, ENOMEM, "metrics: out of memory");
		return NULL;
	}
	m->e = e;
	token_bucket_init(&m->limit_lines.bucket, LIMIT_LINE_MS, 1);
	m->socket.fd = -1;
	m->http = evhttp_new(base);
	m->retry = evtimer_new(base, on_retry, m);
	if (m->http == NULL || m->retry == NULL) {
		error_set(err, ENOMEM, "metrics: out of memory");
		goto fail;
	}
	if (http_listen(m, listen, err) != 0)
		goto fail;
	if (evhttp_bind_listener(m->http, m->listener) == NULL) {
		evconnlistener_free(m->listener);
		error_set(err, ENOMEM, "metrics: out of memory");
		goto fail;
	}
	evconnlistener_set_error_cb(m->listener, on_accept_error);
	evhttp_set_allowed_methods(m->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(m->http, HEADERS_MAX);
	evhttp_set_max_body_size(m->http, 0);
	evhttp_set_timeout(m->http, TIMEOUT_S);
	evhttp_set_bevcb(m->http, on_accepted, m);
	evhttp_set_gencb(m->http, on_request, m);
	return m;
fail:
	m->listener = NULL;
	metrics_http_destroy(m);
	return NULL;
}

void
metrics_http_destroy(struct metrics_http *m)
{
	if (m == NULL)
		return;
	if (m->http != NULL)
		evhttp_free(m->http); /* and the listener */
	if (m->retry != NULL)
		event_free(m->retry);
	if (m->socket.fd >= 0)
		listener_close(&m->socket);
	free(m);
}
