/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright(c) 2026 Polca contributors
 */

/* The command server: the responder's endpoint of a run, for one client in another process. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>

#include "base/plural.h"
#include "peers/exchange.h"
#include "peers/remote.h"

#define START_MS 30000

struct server {
	struct benchmark bench;
	bool stopping; /* the client has sent "stop": post nothing new */
	bool done; /* the client has sent "done": send figures once we have drained as well */
	json_int_t messages; /* completed by the client; -1: some are not */
	bool ended;
	uint64_t busy; /* its value when the current size began */
};

static int
server_start(struct benchmark *s, struct error *err)
{
	struct eal_wish wish = { .workers = 0 };
	json_t *m = exchange_wait(s->exchange, "options", START_MS, err);
	int ret;

	if (m == NULL)
		return -ECONNRESET;
	ret = message_take_options(m, &s->o, err);
	json_decref(m);
	if (ret != 0)
		return ret;
	benchmark_wish(&s->o, s->link, RESPONDER, &wish);
	ret = bench_eal_start(&s->o, &wish, err);
	if (ret == 0)
		ret = benchmark_create(s, err);
	if (ret == 0)
		ret = exchange_send(s->exchange, message_end("ready", &s->end[RESPONDER]), err);
	if (ret != 0)
		return ret;
	m = exchange_wait(s->exchange, "end", START_MS, err);
	if (m == NULL)
		return -ECONNRESET;
	ret = message_take_end(m, s->o.qps, &s->peer[RESPONDER], err);
	json_decref(m);
	return ret != 0 ? ret : benchmark_connect(s, err);
}

static int
server_begin_size(struct server *v, const json_t *m, struct error *err)
{
	struct benchmark *s = &v->bench;
	json_int_t size = json_integer_value(json_object_get(m, "size"));
	int ret;

	if (size < 1 || size > s->o.size)
		return error_set(err, EPROTO, "size: got %lld, allowed: 1..%u", (long long)size,
			s->o.size);
	v->busy = s->runner[0].place[0].busy;
	v->stopping = v->done = false;
	ret = benchmark_prepare(s, (uint32_t)size, err);
	if (ret == 0)
		ret = exchange_send(s->exchange, json_pack("{s:s}", "type", "go"), err);
	return ret != 0 ? ret : load_send(&s->load[RESPONDER][0], err);
}

static int
server_take_message(struct server *v, const json_t *m, struct error *err)
{
	const char *type = json_string_value(json_object_get(m, "type"));

	if (type == NULL)
		return error_set(err, EPROTO, "the other process is not polca-bench");
	if (strcmp(type, "size") == 0)
		return server_begin_size(v, m, err);
	if (strcmp(type, "stop") == 0) {
		v->stopping = v->bench.load[RESPONDER][0].stopping = true;
		return 0;
	}
	if (strcmp(type, "done") == 0) {
		v->done = true;
		v->messages = json_integer_value(json_object_get(m, "messages"));
		return 0;
	}
	if (strcmp(type, "bye") == 0) {
		v->ended = true;
		return 0;
	}
	return error_set(err, EIO, "the other process: %s",
		json_string_value(json_object_get(m, "text")));
}

static int
server_send_figures(struct server *v, struct error *err)
{
	struct benchmark *s = &v->bench;
	struct load *l = &s->load[RESPONDER][0];
	double busy = (double)(s->runner[0].place[0].busy - v->busy) / (double)rte_get_tsc_hz();

	v->stopping = v->done = false;
	if (s->o.check && v->messages >= 0)
		l->wrong += memory_check_left(&s->end[RESPONDER], &s->o, s->size,
			(uint64_t)v->messages);
	if (s->o.verb == BENCH_SEND)
		report_note(s->report, "served %u byte%s: %lu Send%s received, busy %.3f s",
			s->size, plural(s->size), l->received, plural(l->received), busy);
	else
		report_note(s->report, "served %u byte%s: busy %.3f s", s->size, plural(s->size),
			busy);
	return exchange_send(s->exchange,
		json_pack("{s:s, s:f, s:I, s:I}", "type", "figures", "busy", busy, "wrong",
			(json_int_t)l->wrong, "done", (json_int_t)l->done),
		err);
}

static int
server_serve(struct server *v, struct error *err)
{
	struct benchmark *s = &v->bench;
	struct load *l = &s->load[RESPONDER][0];
	json_t *m;
	int ret;

	while (!v->ended && bench_stop == 0) {
		runner_slice(&s->runner[0]);
		ret = load_failure(l, err);
		if (ret == 0 && v->stopping && v->done && load_idle(l))
			ret = server_send_figures(v, err);
		if (ret != 0)
			return ret;
		ret = exchange_poll(s->exchange, &m, err);
		if (ret < 0)
			return ret;
		if (ret == 0)
			continue;
		ret = server_take_message(v, m, err);
		json_decref(m);
		if (ret != 0)
			return ret;
	}
	return 0;
}

static int
server_wait(struct server *v, struct error *err)
{
	struct benchmark *s = &v->bench;
	char where[256];
	int listener, ret;

	if (options_given(&s->o))
		return error_set(err, EINVAL,
			"server: --peer: got \"%.64s\", allowed: HOST:PORT or "
			"a path, where it waits for the client",
			s->o.peer);
	if (options_device(&s->o) && s->o.peer == NULL)
		return error_set(err, EINVAL,
			"server: --link %.64s: needs --peer HOST:PORT, where it waits for the client",
			s->o.link);
	s->link = link_find(&s->o, err);
	if (s->link == NULL)
		return -EINVAL;
	if (!s->link->remote)
		return error_set(err, EINVAL,
			"server: --link %s has no second process, allowed: memif, DEVICE",
			s->link->name);
	remote_address(&s->o, where, sizeof(where));
	listener = exchange_listen(where, err);
	if (listener < 0)
		return -EADDRINUSE;
	report_note(s->report, "waiting at %s", where);
	s->exchange = exchange_accept(listener, where, err);
	if (s->exchange == NULL)
		return bench_stop != 0 ? 0 : -ECONNABORTED;
	ret = server_start(s, err);
	if (ret == 0) {
		benchmark_report_environment(s);
		ret = server_serve(v, err);
	}
	if (ret != 0)
		exchange_send(s->exchange,
			json_pack("{s:s, s:s}", "type", "error", "text", err->text), NULL);
	return ret;
}

int
server_run(const struct command *c, const struct bench_options *o, struct report *r,
	struct error *err)
{
	struct server *v = calloc(1, sizeof(*v));
	int ret;

	RTE_SET_USED(c);
	if (v == NULL)
		return error_set(err, ENOMEM, "no memory");
	v->bench.o = *o;
	v->bench.report = r;
	v->bench.first = RESPONDER;
	ret = server_wait(v, err);
	benchmark_destroy(&v->bench);
	free(v);
	return ret;
}
